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
// A search is charged the same work for the edges of a state whether they are made or kept already; this work
// depends on the state and the vocabulary alone. So a search goes as far in a known graph as in a new graph
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

// The costs of searches over the vocabulary; the unit is one trie node.
struct SearchCost {
  // Edges count as at least this much work, whatever the state.
  static constexpr uint64_t kLeast = 1'000;
  // The work of a state that a walk meets for the first time.
  static constexpr uint64_t kState = 32;

  // Walks down the trie, depth first, along bytes that the parser reads. arrive(node, before, after) returns
  // the state with which the walk goes on below the node; dead() ends it there. Adds the work of the walk to
  // `spent`: it depends only on the state, the trie and `arrive`. Returns false if it exceeds `work`.
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
    // False if edges may be missing, because captured text matters or because the state has more than kAlike
    // edges.
    bool all = true;
    // The work that making the edges takes in a new graph.
    uint64_t cost = 0;
  };
  // `limited` says that the grammar limits tokens (parse/limits.h). With `exact` the states keep their
  // captured text; otherwise they are blind (MaskBuilder::blind). trim() forgets the edges if they take more
  // than `most` bytes.
  TokenGraph(Parser& parser, MaskBuilder& masks, Targets& targets, const Vocabulary& vocabulary, bool limited,
             bool exact, std::size_t most)
      : parser_(parser),
        masks_(masks),
        targets_(targets),
        vocabulary_(vocabulary),
        limited_(limited),
        exact_(exact),
        most_(most) {}

  // Returns the node of the graph for a state.
  StateId begin(StateId s) const { return exact_ ? s : masks_.blind(s); }
  // Returns the edges of a node, or null if they cost more than `work`. They stay until trim().
  const Edges* edges(StateId s, uint64_t work);
  StateId step(StateId s, TokenId t);
  // Forgets all edges if they take too many bytes. Each Budget calls this before its first search.
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
  // By state: the largest work that did not suffice to make its edges.
  FlatMap<uint32_t, uint64_t> too_dear_;
  std::size_t bytes_ = 0;
};

}  // namespace structgen
