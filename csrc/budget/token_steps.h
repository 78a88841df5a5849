// Walks over the tokens of a row, which compute a value behind each token: mostly the state to which the
// token leads.
//
//     called by     Limits, Trial and Spellable, which judge tokens by the states behind them
//     with          a row; what is known in front of its tokens; a function that reads one byte
//     hands back    take(token, behind) for each token
//
// In: a row, a start value and functions. Out: calls of take(). Cost: a step for each node of the trie above
// a token of the row.
//
// Example: of the tokens `ab` and `ac` the byte `a` is stepped once.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/work.h"
#include "mask/fill.h"
#include "mask/token_trie.h"
#include "mask/vocabulary.h"
#include "parse/state.h"

namespace structgen {

// Reads the bytes of one token by step(behind, byte), which updates `behind`, until stops(behind) is true.
// Returns `behind`.
template <class Behind, class Step, class Stops>
Behind behind(std::string_view token, Behind at, Step&& step, Stops&& stops) {
  for (std::size_t i = 0; i < token.size() && (i == 0 || !stops(at)); ++i)
    at = step(at, static_cast<uint8_t>(token[i]));
  return at;
}

// Calls take(token, behind) for each token of a row, in the order of the trie. Subtrees without such tokens
// are skipped.
template <class Behind, class Step, class Stops, class Take>
void each_behind(const Vocabulary& vocabulary, const uint32_t* row, const Behind& first, Step&& step,
                 Stops&& stops, Take&& take) {
  const TokenTrie& trie = vocabulary.trie();
  // at[d] is `behind` at depth d of the path to the current node.
  std::vector<Behind> at(vocabulary.longest() + 2, first);
  // before[i] is how many of the first i tokens, in the order of the trie, are in the row.
  std::vector<uint32_t> before{0};
  before.reserve(trie.parts().order.size() + 1);
  for (TokenId t : trie.parts().order) before.push_back(before.back() + has_bit(row, t));
  for (uint32_t i = 1; i < trie.size();) {
    charge();
    const TokenTrie::Node& node = trie.node(i);
    if (before[trie.node(node.end).rank] == before[node.rank]) {
      i = node.end;
      continue;
    }
    const Behind& here = at[node.depth] = step(at[node.depth - 1], static_cast<uint8_t>(node.byte));
    const bool stopped = stops(here);
    for (TokenId t : stopped ? trie.subtree_tokens(i) : trie.tokens(i))
      if (has_bit(row, t)) take(t, here);
    i = stopped ? node.end : i + 1;
  }
}

inline bool more_than(std::span<const uint32_t> row, std::size_t n) {
  std::size_t found = 0;
  for (std::size_t w = 0; w < row.size() && found <= n; ++w)
    if (row[w]) found += static_cast<std::size_t>(std::popcount(row[w]));
  return found > n;
}

// Returns true if captured text decides everything that follows: the state's only item is poison.
inline bool decided_by_text(const State& s) { return s.poisoned && s.n == 1 && !s.accepting; }

// A blind state (MaskBuilder::blind). `blind` says that captured text was dropped to make it.
struct BlindState {
  StateId state;
  bool blind;
};
// How a walk over blind states reads a byte, and where it stops.
struct BlindWalk {
  Parser& parser;
  MaskBuilder& masks;
  BlindState first(StateId s) const { return {masks.blind(s), masks.blind(s) != s}; }
  BlindState operator()(const BlindState& at, uint8_t b) const {
    const StateId next = parser.step(at.state, b), to = masks.blind(next);
    return {to, at.blind || to != next};
  }
  bool stops(const BlindState& at) const {
    return at.state == Parser::dead() || decided_by_text(parser.state(at.state));
  }
};

}  // namespace structgen
