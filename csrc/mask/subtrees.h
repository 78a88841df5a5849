// What the tokens below each trie node are made of, and walks that do not go down where a regex only goes
// round.
//
// In: a trie, which keeps one word a node: a set of byte categories. Out: for a state of a walk, a set of
// states that it is in and the categories that lead from each of them into the set. Where what is below a
// node lies in those, every token below it ends in the set, or inside a character that leads back into it.
// Cost: one pass over the trie when it is built; a few hundred loads a state of a set.
//
// Reasoning: in a comment, a quoted text, a key that must hold `foo` somewhere, nearly every token stays
// inside, and a walk of 130,000 of them to find that out takes milliseconds. Categories and not bytes: 32
// bits a node, not 256.
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

// Trie nodes below one from which Loops are asked whether all of them stay inside.
constexpr uint32_t kLoopsBelow = 1;

class Loops {
 public:
  // `pass`: a regex may end inside, and it is the caller's to say after which bytes that counts.
  Loops(const TokenTrie& trie, WalkTable& table, bool pass) : trie_(trie), table_(table), pass_(pass) {}
  // Whether the state is worth asking about at the node.
  bool worth(uint32_t node, uint32_t state) const {
    if (state < of_.size() && of_[state] != kUnknown) return of_[state] != kNothing;
    return trie_.subtree_tokens(node).size() >= kMany;
  }
  // Whether everything below the node stays where the regex lives and does not end, or, where it may, before
  // none of the bytes of `open`, a set of categories.
  bool cover(uint32_t node, uint32_t state, Categories open) {
    const Categories below = trie_.below(node);
    if (below & kBroken) return false;
    if (of_.size() <= state) of_.resize(state + 1, kUnknown);
    if (of_[state] == kUnknown) ask(state);
    if (of_[state] == kNothing) return false;
    Closed& c = closed_[of_[state]];
    const Categories beyond = below & (kWide | kBlank);
    if (below & ~(c.ascii | beyond) || (c.ends && below & open)) return false;
    if (!beyond) return true;
    if (!c.wide_known) wide(c);
    return (beyond & ~c.wide) == 0;
  }

 private:
  static constexpr uint32_t kUnknown = 0xFFFFFFFFu, kNothing = 0xFFFFFFFEu;
  static constexpr std::size_t kMany = 48;   // tokens below a node from which a state is looked at
  static constexpr std::size_t kStates = 4;  // of one set; where there are more, the state alone is one
  struct Closed {
    std::vector<uint32_t> states;
    Categories ascii = 0;  // from each state into the set
    Categories wide = 0;
    bool ends = false;  // in some state the regex may end
    bool wide_known = false;
  };
  void ask(uint32_t state);
  bool close(Closed& closed);
  Categories loop(uint32_t state);
  Categories alive(uint32_t state);
  void wide(Closed& closed);
  bool stops(uint32_t state) const;
  const TokenTrie& trie_;
  WalkTable& table_;
  const bool pass_;
  bool large_ = false;        // a set had more states: in this walk no other is looked for
  std::vector<uint32_t> of_;  // by state: number of its set
  std::vector<Closed> closed_;
  std::vector<Categories> alive_;  // by state
};

}  // namespace structgen
