// Searches for few tokens: whether at most k tokens complete a state, along any text. Such a search is needed
// because the text with the fewest bytes may take more tokens than a longer text.
//
//     called by     Budget (searches.cc) and Spellable
//     with          a TokenGraph, two functions that count the tokens of a state, a limit on work
//     hands back    kYes with the tokens, kNo with a proof, or kUnknown because the work ran out
//     lives         for one call; the TokenGraph stays with the epoch
//
// In: a state, a number of tokens, a limit on work (nodes of the trie, and edges). Out: an answer and, after
// kYes, tokens. Cost: one pass over the states that one token leads to (budget/token_graph.h), for each
// number of tokens that is tried.
//
// Example: behind `{"a":` with `a` a string, the shortest completion is `""}`, which may take 3 tokens,
// while the longer text `"x"}` may be one token. A search for 2 tokens (with the end token) finds it.
//
// The idea. Many tokens lead to one state, so the search runs on a graph of states. within() searches depth
// first down to a given depth. within() remembers for each state a number of tokens that is proved to be too
// few, so that no pair of state and depth is searched twice. find() searches breadth first, for states whose
// shortest text the vocabulary cannot spell.
//
// The same answer for the same call. The answer of a search with a limit of work depends on what the search
// finds within this work. If a search took over what an earlier search found, its answer would depend on
// earlier questions. So a Reach belongs to one call: it remembers only what this call has found, and each
// state costs as much work as in a new graph. The edges that the graph keeps make a second call quicker and
// do not change its answer.
//
// The states of the graph have no captured text (mask/fill.h). A way that is found without captured text
// holds for every captured text. If no way is found and captured text matters, the answer is kUnknown. The
// states of an exact graph keep their captured text; then each captured text has its own states, which stay
// in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "budget/token_graph.h"
#include "parse/state.h"

namespace structgen {

constexpr std::size_t kLongWay = 64;

class Reach {
 public:
  enum class Answer : uint8_t { kNo, kYes, kUnknown };
  // No number of tokens is known, or no number suffices.
  static constexpr std::size_t kFar = static_cast<std::size_t>(-1) / 2;
  // A function from a state to a number of tokens, the end token included.
  using Count = std::function<std::size_t(StateId)>;
  // `fewest` gives a lower bound: fewer tokens never complete the state. `shortest` gives the number of
  // tokens of the state's shortest text, kFar if it is not known; it is called only where the lower bound
  // does not decide.
  Reach(TokenGraph& graph, Count fewest, Count shortest)
      : graph_(graph), fewest_(std::move(fewest)), shortest_(std::move(shortest)) {}

  // In all functions, s is a state that TokenGraph::begin() returned. `work` is the work that may be spent,
  // and what is left of it afterwards.
  // Tells whether at most k tokens, end token included, complete s.
  Answer within(StateId s, std::size_t k, uint64_t& work);
  // After a yes of within(): returns the tokens from s to a state whose shortest text fits the rest of the
  // budget, and sets s to this state.
  std::vector<TokenId> way(StateId& s);
  // Tells whether any number of tokens completes s. After a yes, `out` has the tokens from s to the nearest
  // state that accepts or for which `ends` is true, and s is set to this state. Of equally near states, the
  // first one in the order of edges is taken.
  Answer find(StateId& s, const std::function<bool(StateId)>& ends, std::vector<TokenId>& out,
              uint64_t& work);
  // Follows one sequence of tokens from s, for long values, where within() would try every number of tokens.
  // Returns kYes if at most `most` tokens complete s along it, otherwise kUnknown. At each state it takes the
  // token that leaves the fewest bytes by `bytes`, an upper bound of the bytes that complete a state. If no
  // token leaves fewer than before, it takes `next`, the first token of the shortest text (-1: none). It
  // stops where `rest`, the tokens known to suffice, fits. `out` gets the tokens, and s becomes the state
  // behind them.
  Answer descend(StateId& s, std::size_t most, const std::function<uint32_t(StateId)>& bytes,
                 const std::function<std::size_t(StateId)>& rest, const std::function<TokenId(StateId)>& next,
                 std::vector<TokenId>& out, uint64_t& work);
  // Returns a lower bound of the tokens that complete s, as this call has proved it so far. kFar says that no
  // tokens complete s.
  std::size_t least(StateId s) const;

 private:
  const TokenGraph::Edges* edges(StateId s, uint64_t& work);
  // Returns a number of tokens that completes s, as this call has found it so far; kFar if it found none.
  std::size_t known(StateId s) const;
  void take(StateId s, StateId to, TokenId token);
  void raise(StateId s, std::size_t least);

  TokenGraph& graph_;
  const Count fewest_, shortest_;
  // The fewest tokens found that complete a state, as a number with the end token, and the first of them.
  struct Step {
    std::size_t tokens;
    TokenId next;
  };
  std::unordered_map<uint32_t, Step> found_;
  std::unordered_map<uint32_t, std::size_t> least_;
  // A search that ended with kUnknown. Every search from the same state for at most `tokens` tokens with at
  // most `work` work then ends with kUnknown, too.
  struct Tried {
    std::size_t tokens = 0;
    uint64_t work = 0;
  };
  // The last search from each state that ended with kUnknown.
  std::unordered_map<uint32_t, Tried> tried_;
  // Holds the states whose edges this call has paid for.
  std::unordered_set<uint32_t> paid_;
};

}  // namespace structgen
