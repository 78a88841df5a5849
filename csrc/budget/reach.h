// Least numbers of tokens: whether the tokens of any text end in time. The text with the fewest bytes may
// take more tokens than a longer text.
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
// The idea. Many tokens lead to one state, so the search runs on a graph of states. within() goes down to a
// depth and remembers for each state a number of tokens that is proved to be too few. find() goes in breadth,
// for states whose shortest text the vocabulary cannot spell.
//
// A Reach belongs to one call: it remembers within the call, and pays for every state as if the graph were
// new. So the answer of a search with a limit of work does not depend on earlier searches.
//
// Captured text is left out (mask/fill.h): a way without it holds for every text, but "no way" is unproved
// where it matters. An exact graph keeps captured text, and has states for each.
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

// A search considers at most this many tokens.
constexpr std::size_t kLongWay = 64;

class Reach {
 public:
  enum class Answer : uint8_t { kNo, kYes, kUnknown };
  // No number of tokens is known, or none suffices.
  static constexpr std::size_t kFar = static_cast<std::size_t>(-1) / 2;
  // A number of tokens of a state, the end token included.
  using Count = std::function<std::size_t(StateId)>;
  // `fewest`: fewer tokens never complete the state. `shortest`: the tokens of its shortest text; kFar if
  // none is known. It is asked only where `fewest` does not decide.
  Reach(TokenGraph& graph, Count fewest, Count shortest)
      : graph_(graph), fewest_(std::move(fewest)), shortest_(std::move(shortest)) {}

  // In all functions s is a state that TokenGraph::begin() returned, and `work` is what may be spent; what is
  // left stays there.
  //
  // Tells whether at most k tokens, the end token included, complete s.
  Answer within(StateId s, std::size_t k, uint64_t& work);
  // After a yes of within(): returns tokens that lead from s to a state whose shortest text fits the rest of
  // the budget. s becomes this state.
  std::vector<TokenId> way(StateId& s);
  // Tells whether any number of tokens completes s. After a yes, `out` has tokens to the nearest state that
  // accepts or for which `ends` is true, and s becomes this state. Of several the first in the order of edges
  // is taken.
  Answer find(StateId& s, const std::function<bool(StateId)>& ends, std::vector<TokenId>& out,
              uint64_t& work);
  // Tries a single sequence of tokens, for long values, of which within() would try every length. At each
  // state it takes the token with the smallest `bytes` behind it, a bound of what completes a state, or
  // `next`, the first token of the shortest text, if no token has fewer bytes than before. Returns kYes if at
  // most `most` tokens complete s along it; kUnknown otherwise. It stops where `rest` says that the tokens
  // left suffice. `out` gets the tokens, and s becomes the state behind them.
  Answer descend(StateId& s, std::size_t most, const std::function<uint32_t(StateId)>& bytes,
                 const std::function<std::size_t(StateId)>& rest, const std::function<TokenId(StateId)>& next,
                 std::vector<TokenId>& out, uint64_t& work);
  // Returns the lower bound of the tokens that complete s which this call knows. kFar: no number completes s.
  std::size_t least(StateId s) const;

 private:
  const TokenGraph::Edges* edges(StateId s, uint64_t& work);
  // Returns a number of tokens that completes s, or kFar if none is known.
  std::size_t known(StateId s) const;
  void take(StateId s, StateId to, TokenId token);
  void raise(StateId s, std::size_t least);

  TokenGraph& graph_;
  const Count fewest_, shortest_;
  // A number of tokens that completes a state, the end token included, and the first of them.
  struct Step {
    std::size_t tokens;
    TokenId next;
  };
  // By state: the fewest tokens to the end that were found.
  std::unordered_map<uint32_t, Step> found_;
  // By state: proved lower bounds in tokens.
  std::unordered_map<uint32_t, std::size_t> least_;
  // A search that ended with kUnknown, as would any for at most `tokens` tokens with at most `work` work.
  struct Tried {
    std::size_t tokens = 0;
    uint64_t work = 0;
  };
  // By state: the last search that ended with kUnknown.
  std::unordered_map<uint32_t, Tried> tried_;
  // The states whose edges this call has paid for.
  std::unordered_set<uint32_t> paid_;
};

}  // namespace structgen
