// Least numbers of tokens: whether some tokens, and not only those of a text that is shortest in bytes, end a
// text in time.
//
// In: a state, a number of tokens, a limit on work. Out: yes, with the tokens; no, proved; or unknown. Cost:
// one pass over the states that one token leads to (budget/token_graph.h), once for each number asked for.
//
// The problem. States are numbers and few tokens lead to different ones, so what is searched is a graph.
// `within` goes down it to a depth and remembers for each state the number of tokens that is proved to be too
// few, so that no pair of state and depth is searched twice. `find` goes through it in breadth, for states
// whose shortest text the vocabulary cannot spell.
//
// One answer. A search that may spend so much answers by what it finds in that work. If it took what an
// earlier search has found, the answer would depend on earlier questions. So a Reach belongs to one call: it
// remembers within the call, and pays for every state as if the graph were new. What the graph keeps makes a
// second call quicker, and its answer the same.
//
// Text that is captured is left out (mask/fill.h). A way that is found then is one whatever the text is; that
// there is none is not proved where the text would have mattered. An exact graph keeps the text: every text
// is states of its own then, and they stay.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "budget/outline.h"
#include "budget/token_graph.h"
#include "parse/state.h"

namespace structgen {

class Reach {
 public:
  enum class Answer : uint8_t { kNo, kYes, kUnknown };
  static constexpr std::size_t kFar = static_cast<std::size_t>(-1) / 2;
  // How many tokens complete a state by its shortest text, the end token included; kFar: none is known. A
  // function of the state.
  using Shortest = std::function<std::size_t(StateId)>;
  // `outline`: what proves that tokens are too few at less cost; null: nothing does.
  Reach(TokenGraph& graph, Shortest shortest, Outline* outline)
      : graph_(graph), shortest_(std::move(shortest)), outline_(outline) {}

  // All from a state that TokenGraph::begin() gave.
  // Whether k tokens, the end-of-sequence token included, can complete s. `work` is what may be spent (nodes
  // of the trie and edges), and what is left of it.
  Answer within(StateId s, std::size_t k, uint64_t& work);
  // Tokens to the end after a yes of within(), up to a state whose shortest text takes no more than is left,
  // which s becomes.
  std::vector<TokenId> way(StateId& s);
  // Whether any tokens can. After a yes `out` leads from s to a state of which `ends` says so, which s
  // becomes: the nearest, and of those the first in the order of edges.
  Answer find(StateId& s, const std::function<bool(StateId)>& ends, std::vector<TokenId>& out,
              uint64_t& work);
  // Whether `most` tokens complete s: at each state the one that leaves the fewest bytes by `bytes` (an upper
  // bound of the bytes that complete a state), and where none leaves fewer, `next`, the first of the shortest
  // text (-1: there is none), until `rest` tokens are few enough. Yes or unknown: one way is tried. For long
  // values, where within() would have to look at every length. Puts the tokens into `out`; s becomes the
  // state that they lead to.
  Answer descend(StateId& s, std::size_t most, const std::function<uint32_t(StateId)>& bytes,
                 const std::function<std::size_t(StateId)>& rest, const std::function<TokenId(StateId)>& next,
                 std::vector<TokenId>& out, uint64_t& work);
  // No fewer tokens can complete s, as far as this call knows; kFar: none can.
  std::size_t least(StateId s) const;

 private:
  const TokenGraph::Edges* edges(StateId s, uint64_t& work);
  bool leave(StateId s, std::size_t k, uint64_t& work, Answer& out);
  std::size_t known(StateId s) const;  // tokens that suffice; kFar
  void take(StateId s, StateId to, TokenId token);
  void raise(StateId s, std::size_t least);

  TokenGraph& graph_;
  const Shortest shortest_;
  Outline* const outline_;
  struct Step {
    std::size_t tokens;
    TokenId next;
  };
  std::unordered_map<uint32_t, Step> found_;
  std::unordered_map<uint32_t, std::size_t> least_;
  // A search for so many tokens, with so much work, told nothing: a search for no more tells no more.
  struct Tried {
    std::size_t tokens = 0;
    uint64_t work = 0;
  };
  std::unordered_map<uint32_t, Tried> tried_;
  std::unordered_set<uint32_t> paid_;  // states whose edges this call has paid for
};

}  // namespace structgen
