// What the tokens below each trie node are made of, and walks that do not go down where a regex only loops.
//
// In: a trie, which keeps one word a node: a set of byte categories. Out: for a state of a walk, the categories that
// lead back to it. Where the first lies in the second, every token below the node ends in that state, or inside a
// character that leads back to it. Cost: one pass over the trie when it is built; a few hundred loads a looping state.
//
// Reasoning: in a comment or a quoted text nearly every token only loops, and a walk of 130,000 of them to find that
// out takes two milliseconds. Categories and not bytes: 32 bits a node, not 256.
#pragma once

#include <cstdint>
#include <vector>

#include "mask/token_trie.h"

namespace structgen {

class WalkTable;

using Categories = uint32_t;
constexpr Categories kBlank = 1u << 29;   // a blank beyond ASCII, which \s and \S tell from the rest
constexpr Categories kWide = 1u << 30;    // some other character beyond ASCII, all of them well-formed
constexpr Categories kBroken = 1u << 31;  // not UTF-8, or the node stands inside a character
Categories category(uint8_t byte);        // a set of one
// Of each node: the categories of the bytes below it, not of its own.
std::vector<Categories> categories_below(const TokenTrie& trie);

class Loops {
 public:
  Loops(const TokenTrie& trie, WalkTable& table) : trie_(trie), table_(table) {}
  // Whether the state is worth asking about: seen to lead back to itself, now or before.
  bool seen(uint32_t from, uint32_t to) const { return from == to || (to < masks_.size() && masks_[to] != kUnknown); }
  // Whether everything below the node stays in `state`, or comes back to it, and reads none of `stops`, a set of
  // categories. `ends` tells whether a regex may end, which inside a character it must not.
  template <class Ends>
  bool cover(uint32_t node, uint32_t state, Categories stops, Ends&& ends) {
    const Categories below = trie_.below(node);
    if (below & (stops | kBroken)) return false;
    if (masks_.size() <= state) masks_.resize(state + 1, kUnknown);
    if (masks_[state] == kUnknown) masks_[state] = ascii(state);
    if (below & ~(masks_[state] | kWide | kBlank)) return false;
    const Categories beyond = below & (kWide | kBlank);
    if (!beyond) return true;
    if (wide_.size() <= state) wide_.resize(state + 1, kUnknown);
    if (wide_[state] == kUnknown) {
      std::vector<uint32_t> inner;
      Categories found = wide(state, inner);
      for (uint32_t s : inner)
        if (ends(s)) found = 0;
      wide_[state] = found;
    }
    return (beyond & ~wide_[state]) == 0;
  }

 private:
  static constexpr uint32_t kUnknown = 0xFFFFFFFFu;
  Categories ascii(uint32_t state);
  Categories wide(uint32_t state, std::vector<uint32_t>& inner);
  const TokenTrie& trie_;
  WalkTable& table_;
  std::vector<uint32_t> masks_, wide_;  // by state
};

}  // namespace structgen
