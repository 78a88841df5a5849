// Least numbers of tokens: whether the tokens of any text end in time. The text with the fewest bytes may
// take more tokens than another text.
//
// In: a state, a number of tokens, a limit on work. Out: yes, with the tokens; no, proved; or unknown.
// Cost: one pass over the states that one token leads to (budget/token_graph.h), once for each number
// of tokens.
//
// Example: behind `{"a":` with `a` a string, the shortest completion is `""}`, which may take 3 tokens,
// while the longer text `"x"}` may be one token. A search for 2 tokens (with the end token) finds it.
//
// The idea. Many tokens lead to one state, so the search runs on a graph of states. `within` goes down the
// graph to a depth and remembers for each state a number of tokens that is proved to be too few, so that no
// pair of state and depth is searched twice. `find` goes through the graph in breadth, for states whose
// shortest text the vocabulary cannot spell.
//
// The same answer for the same call. A search with a limit of work answers by what it finds within this
// work. If it took over what an earlier search found, the answer would depend on earlier questions. So a
// Reach belongs to one call: it remembers within the call, and pays for every state as if the graph were
// new. The edges that the graph keeps make a second call quicker and do not change its answer.
//
// Captured text is left out (mask/fill.h). A way that is found without the text holds for every text. That
// there is no way is unproved where the text matters. An exact graph keeps the text; every text then has its
// own states, which stay in memory.
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

// The most tokens of a way that a search for fewer tokens looks at.
constexpr std::size_t kLongWay = 64;

class Reach {
 public:
  enum class Answer : uint8_t { kNo, kYes, kUnknown };
  static constexpr std::size_t kFar = static_cast<std::size_t>(-1) / 2;
  // A number of tokens, the end token included, that is a function of the state.
  using Count = std::function<std::size_t(StateId)>;
  // `fewest`: no fewer tokens complete the state. `shortest`: the tokens of the state's shortest text; kFar
  // if none is known. It is asked only where the bound of `fewest` leaves the answer open.
  Reach(TokenGraph& graph, Count fewest, Count shortest)
      : graph_(graph), fewest_(std::move(fewest)), shortest_(std::move(shortest)) {}

  // Every call needs a state that TokenGraph::begin() gave.
  //
  // Whether k tokens, the end token included, can complete s. `work` is what may be spent (nodes of the
  // trie and edges), and afterwards what is left of it.
  Answer within(StateId s, std::size_t k, uint64_t& work);
  // After a yes of within(): the tokens up to a state whose shortest text fits the rest of the budget. s
  // becomes this state.
  std::vector<TokenId> way(StateId& s);
  // Whether any number of tokens can complete s. After a yes `out` leads from s to the nearest state for
  // which `ends` is true, and s becomes this state. Of equally near states the first in the order of edges is
  // taken.
  Answer find(StateId& s, const std::function<bool(StateId)>& ends, std::vector<TokenId>& out,
              uint64_t& work);
  // Whether `most` tokens complete s along one way. At each state the way takes the token that leaves the
  // fewest bytes by `bytes`, an upper bound of the bytes that complete a state. If no token leaves fewer
  // bytes than before, it takes `next`, the first token of the shortest text (-1: none). It stops when `rest`
  // says that the tokens left suffice. The answer is yes or unknown. descend() serves long values, for which
  // within() would look at every length. `out` takes the tokens, and s becomes the state to which they lead.
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
  const Count fewest_, shortest_;
  struct Step {
    std::size_t tokens;
    TokenId next;
  };
  // Keyed by state: the first token of the best way found, and the tokens of that way.
  std::unordered_map<uint32_t, Step> found_;
  // Keyed by state: a proved lower bound.
  std::unordered_map<uint32_t, std::size_t> least_;
  // A search without an answer. A search for as many tokens or fewer, with as much work or less, has no
  // answer either.
  struct Tried {
    std::size_t tokens = 0;
    uint64_t work = 0;
  };
  std::unordered_map<uint32_t, Tried> tried_;
  // States whose edges this call has paid for.
  std::unordered_set<uint32_t> paid_;
};

}  // namespace structgen
