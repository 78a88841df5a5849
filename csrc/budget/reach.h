// Least numbers of tokens: whether any tokens, and not only those of the text that is shortest in
// bytes, end a text in time.
//
// In: a state, a number of tokens, a limit on work. Out: yes, with the tokens; no, proved; or unknown.
// Cost: one pass over the states that one token leads to (budget/token_graph.h), once for each number
// of tokens.
//
// Example: behind `{"a":` with `a` a string, the shortest completion is `""}`, which may take 3 tokens,
// while the longer text `"x"}` may be one token. A search for 2 tokens (with the end token) finds it.
//
// The problem. Few tokens lead to different states, so the search runs on a graph of states. `within`
// goes down it to a depth and remembers for each state the number of tokens that is proved to be too
// few, so that no pair of state and depth is searched twice. `find` goes through it in breadth, for
// states whose shortest text the vocabulary cannot spell.
//
// The same answer for the same call. A search with a limit of work answers by what it finds within that
// work. If it took what an earlier search has found, the answer would depend on earlier questions. So a
// Reach belongs to one call: it remembers within the call, and pays for every state as if the graph
// were new. What the graph keeps makes a second call quicker and leaves its answer the same.
//
// Captured text is left out (mask/fill.h). A way that is found without it holds whatever the text is.
// That there is no way is not proved where the text would have mattered. An exact graph keeps the text;
// there every text has states of its own, and they stay in memory.
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

// A search for fewer tokens looks at no longer ways than this.
constexpr std::size_t kLongWay = 64;

class Reach {
 public:
  enum class Answer : uint8_t { kNo, kYes, kUnknown };
  static constexpr std::size_t kFar = static_cast<std::size_t>(-1) / 2;
  // The number of tokens of a state's shortest text, the end token included; kFar if none is known. It
  // must be a function of the state.
  using Shortest = std::function<std::size_t(StateId)>;
  Reach(TokenGraph& graph, Shortest shortest) : graph_(graph), shortest_(std::move(shortest)) {}

  // Every call needs a state that TokenGraph::begin() gave.
  //
  // Whether k tokens, the end token included, can complete s. `work` is what may be spent (nodes of the
  // trie and edges), and afterwards what is left of it.
  Answer within(StateId s, std::size_t k, uint64_t& work);
  // After a yes of within(): the tokens up to a state whose shortest text fits the rest. s becomes that
  // state.
  std::vector<TokenId> way(StateId& s);
  // Whether any number of tokens can. After a yes `out` leads from s to a state for which `ends` is
  // true, and s becomes that state: the nearest, and among equally near ones the first in the order of
  // edges.
  Answer find(StateId& s, const std::function<bool(StateId)>& ends, std::vector<TokenId>& out,
              uint64_t& work);
  // Whether `most` tokens complete s, trying one way: at each state the token that leaves the fewest
  // bytes by `bytes` (an upper bound of the bytes that complete a state). Where no token leaves fewer,
  // it takes `next`, the first token of the shortest text (-1: there is none). It stops when `rest`
  // says that the tokens left suffice. The answer is yes or unknown. It serves long values, where
  // within() would have to look at every length. `out` takes the tokens, and s becomes the state that
  // they lead to.
  Answer descend(StateId& s, std::size_t most, const std::function<uint32_t(StateId)>& bytes,
                 const std::function<std::size_t(StateId)>& rest, const std::function<TokenId(StateId)>& next,
                 std::vector<TokenId>& out, uint64_t& work);
  // A lower bound of the tokens that complete s, as far as this call knows; kFar: none can.
  std::size_t least(StateId s) const;

 private:
  const TokenGraph::Edges* edges(StateId s, uint64_t& work);
  // The number of tokens that suffice; kFar if none is known.
  std::size_t known(StateId s) const;
  void take(StateId s, StateId to, TokenId token);
  void raise(StateId s, std::size_t least);

  TokenGraph& graph_;
  const Shortest shortest_;
  struct Step {
    std::size_t tokens;
    TokenId next;
  };
  // Keyed by state: the first token of the best way found, and the tokens of that way.
  std::unordered_map<uint32_t, Step> found_;
  // Keyed by state: a proved lower bound.
  std::unordered_map<uint32_t, std::size_t> least_;
  // A search that told nothing: a search for no more tokens with no more work would not tell more.
  struct Tried {
    std::size_t tokens = 0;
    uint64_t work = 0;
  };
  std::unordered_map<uint32_t, Tried> tried_;
  // States whose edges this call has paid for.
  std::unordered_set<uint32_t> paid_;
};

}  // namespace structgen
