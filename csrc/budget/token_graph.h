// The states that one token leads to: the graph that searches for few tokens go through.
//
// In: a state, work that may be spent. Out: its edges, one a distinct state, with the first token that leads
// there; or nothing, where they take more than that. Cost: one walk over the trie for each state (a
// millisecond at 131k tokens where any may stand, microseconds where few may), kept.
//
// What edges cost is a number of the state and the vocabulary, and not of what is known already. So a search
// that pays for every state once goes as far in a graph that is known as in one that is new (budget/reach.h).
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

// Work of searches over the vocabulary, in nodes of the trie.
struct SearchCost {
  static constexpr uint64_t kLeast = 1'000;  // that a look at a state takes, at least
  static constexpr uint64_t kState = 32;     // what a state counts for that a walk meets

  // Down the trie in depth-first order, where the bytes may stand. `arrive(node, before, after)` returns the
  // state that the walk goes on with, dead() where it does not go below the node. False: it takes more than
  // `work`. `spent` grows by a function of the state, the trie and `arrive`.
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
    std::vector<std::pair<StateId, TokenId>> to;  // distinct states, and the first token that leads there
    bool all = true;  // not where captured text matters, nor where there are too many
    uint64_t cost = 0;
  };
  // `limited`: the grammar limits tokens (parse/limits.h). `exact`: captured text is kept; else states are
  // without it (MaskBuilder::blind). `most`: bytes of all edges, beyond which trim() forgets them.
  TokenGraph(Parser& parser, MaskBuilder& masks, Targets& targets, const Vocabulary& vocabulary, bool limited,
             bool exact, std::size_t most)
      : parser_(parser),
        masks_(masks),
        targets_(targets),
        vocabulary_(vocabulary),
        limited_(limited),
        exact_(exact),
        most_(most) {}

  // The state of the graph that stands for s.
  StateId begin(StateId s) const { return exact_ ? s : masks_.blind(s); }
  // Null: they cost more than `work`. They stay until trim().
  const Edges* edges(StateId s, uint64_t work);
  // The state behind a token, from one of the graph.
  StateId step(StateId s, TokenId t);
  // Between two searches: forgets all where that is too much to keep.
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
  FlatMap<uint32_t, uint64_t> too_dear_;  // work that was not enough for the edges of a state
  std::size_t bytes_ = 0;
};

}  // namespace structgen
