// The graph on which searches for few tokens run: its nodes are states, its edges tokens.
//
//     called by     Reach, for the edges of a state; lives as long as the epoch of the grammar
//     with          a state, and the work that its edges may take
//     hands back    one edge for each state to which a token leads, with the first such token; null if the
//                   edges take more work
//     asks          Targets inside strings; a walk down the trie elsewhere
//
// In: a state, a limit on work. Out: edges. Cost: one walk over the trie for each state (a millisecond at
// 131k tokens if every token is allowed, microseconds if few are); the edges are kept.
//
// The work that counts for the edges depends on the state and the vocabulary alone, even if they are kept
// already. So a search that pays for every state once goes as far in a known graph as in a new graph
// (budget/reach.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/flat_map.h"
#include "base/work.h"
#include "budget/targets.h"
#include "mask/fill.h"
#include "mask/vocabulary.h"
#include "parse/state.h"

namespace structgen {

// What searches over the vocabulary cost, in units of one trie node.
struct SearchCost {
  // edges() asks for at least this much work, whatever the state is.
  static constexpr uint64_t kLeast = 1'000;
  // This much is counted for a state that a walk meets for the first time.
  static constexpr uint64_t kState = 32;

  // Walks down the trie in depth-first order, along bytes that the parser reads. arrive(node, before, after)
  // returns the state with which the walk goes on below the node, or dead() to go no further there. Returns
  // false if the walk takes more than `work`. `spent` grows by the work of the walk, which depends only on
  // the state, the trie and `arrive`.
  template <class Arrive>
  static bool walk(Parser& parser, const TokenTrie& trie, StateId from, uint64_t work, uint64_t& spent,
                   Arrive&& arrive) {
    struct Open {
      const TokenTrie::Kids* kids;
      StateId state;
      ByteSet left;
    };
    std::vector<Open> path;
    FlatMap<uint32_t, bool> met;
    const auto enter = [&](uint32_t node, StateId s) {
      const TokenTrie::Kids& kids = trie.kids(node);
      const uint64_t n = trie.count(kids);
      charge(1 + static_cast<int64_t>(n / 8));
      spent += n + kState * met.emplace(s.v, true).second;
      path.push_back({&kids, s, kids.set & parser.live(s)});
    };
    if (from != Parser::dead() && !trie.leaf(0)) enter(0, from);
    while (!path.empty()) {
      if (spent > work) return false;
      Open& at = path.back();
      if (at.left.none()) {
        path.pop_back();
        continue;
      }
      const uint8_t byte = static_cast<uint8_t>(at.left.first());
      at.left.remove(byte);
      const StateId before = at.state;
      const uint32_t node = trie.child(*at.kids, byte);
      StateId next = parser.step(before, byte);
      if (next == Parser::dead()) continue;
      next = arrive(node, before, next);
      if (next != Parser::dead() && !trie.leaf(node)) enter(node, next);
    }
    return true;
  }
};

class TokenGraph {
 public:
  struct Edges {
    // The states to which tokens lead, each once, with the first token that leads there.
    std::vector<std::pair<StateId, TokenId>> to;
    // False if edges may be missing, because captured text matters or because there are more than kAlike.
    bool all = true;
    // The work that making the edges takes in a new graph.
    uint64_t cost = 0;
  };
  // `limited` says that the grammar limits tokens (parse/limits.h). With `exact` the states keep their
  // captured text; otherwise they are blind (MaskBuilder::blind). If the edges take more than `most` bytes,
  // trim() forgets them.
  TokenGraph(Parser& parser, MaskBuilder& masks, Targets& targets, const Vocabulary& vocabulary, bool limited,
             bool exact, std::size_t most)
      : parser_(parser),
        masks_(masks),
        targets_(targets),
        vocabulary_(vocabulary),
        limited_(limited),
        exact_(exact),
        most_(most) {}

  // Returns the state that stands for s in the graph.
  StateId begin(StateId s) const { return exact_ ? s : masks_.blind(s); }
  // Returns the edges of a state of the graph, which stay until trim(). Returns null if they cost more than
  // `work`.
  const Edges* edges(StateId s, uint64_t work);
  StateId step(StateId s, TokenId t);
  // Forgets all edges if they take more bytes than the constructor allowed. Each Budget calls it before its
  // first search.
  void trim();
  Parser& parser() const { return parser_; }
  const Vocabulary& vocabulary() const { return vocabulary_; }
  std::size_t byte_size() const { return bytes_ + too_dear_.byte_size(); }

 private:
  bool of_run(StateId s, Edges& out);
  bool by_walk(StateId s, Edges& out, uint64_t work);
  bool ends_in_text(StateId s, Edges& out) const;

  Parser& parser_;
  MaskBuilder& masks_;
  Targets& targets_;
  const Vocabulary& vocabulary_;
  const bool limited_, exact_;
  const std::size_t most_;
  std::unordered_map<uint32_t, Edges> edges_;
  // Holds, keyed by state, the most work that did not suffice for the edges.
  FlatMap<uint32_t, uint64_t> too_dear_;
  std::size_t bytes_ = 0;
};

}  // namespace structgen
