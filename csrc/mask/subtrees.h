// The categories of bytes that the tokens below each trie node are made of. With them a walk skips a subtree
// if the regex only moves within a few states there.
//
// In: a trie, which keeps for each node one word, a set of categories of bytes. Out: for a state of a walk, a
// set of states that contains this state, and the categories whose bytes lead from each state of the set into
// the set. If all bytes below a node are in those categories, every token below the node ends in a state of
// the set, or inside a character that leads back into the set. Cost: one pass over the trie when it is built;
// then a few hundred loads for each state of a set.
//
// Reasoning: in a comment, in a quoted text, in a key that must hold `foo` somewhere, nearly every token
// stays inside, and a walk of 130,000 tokens that finds this out takes milliseconds. A node keeps categories
// and not a set of bytes, because categories take 32 bits for each node, and a set of bytes would take 256.
//
// Example, the regex [a-z ]* at a node with `the`, `then` and `the end` below it: the categories below
// are letters and the blank, all of which lead from the regex to itself, so the three tokens are taken
// unread. With `the.` below the node, the dot's category is dead, and the walk goes down.
#pragma once

#include <cstdint>
#include <vector>

#include "mask/token_trie.h"

namespace structgen {

class WalkTable;

using Categories = uint32_t;
// Blanks beyond ASCII, such as U+00A0. \s and \S tell them from other characters.
constexpr Categories kBlank = 1u << 29;
// The category of all other characters beyond ASCII.
constexpr Categories kWideCharacter = 1u << 30;
// Bytes that are not UTF-8. A trie node inside a character counts as such a byte.
constexpr Categories kMalformed = 1u << 31;
Categories category(uint8_t byte);
// Returns, for each node, the categories of the bytes below it; the node's own byte does not count.
std::vector<Categories> categories_below(const TokenTrie& trie);

// Walks ask Loops only at nodes with more than this many nodes below.
constexpr uint32_t kLoopsBelow = 1;

// Tells for one walk below which nodes the regex moves only within a small set of states.
class Loops {
 public:
  // Without `pass` the regex ends in all states of a set, or in none. With `pass` it may end in some of them;
  // the caller of cover() then gives the bytes that may follow an end (`open`).
  Loops(const TokenTrie& trie, WalkTable& table, bool pass) : trie_(trie), table_(table), pass_(pass) {}
  // Tells whether cover() is likely to pay: the set of the state is known, or many tokens lie below the node.
  bool worth(uint32_t node, uint32_t state) const {
    if (state < of_.size() && of_[state] != kUnknown) return of_[state] != kNothing;
    return trie_.subtree_tokens(node).size() >= kMany;
  }
  // Tells whether the tokens below the node may be taken without reading them. Their bytes must stay in the
  // set of `state`, and wherever a character ends, the regex may end exactly if it may end in `state`. With
  // `pass` the regex may end elsewhere, too, but no byte below the node may be in `open`, the categories of
  // the bytes that may follow an end.
  bool cover(uint32_t node, uint32_t state, Categories open) {
    const Categories below = trie_.below(node);
    if (below & kMalformed) return false;
    if (of_.size() <= state) of_.resize(state + 1, kUnknown);
    if (of_[state] == kUnknown) ask(state);
    if (of_[state] == kNothing) return false;
    Closed& c = closed_[of_[state]];
    const Categories beyond = below & (kWideCharacter | kBlank);
    if (below & ~(c.ascii | beyond) || (c.ends && below & open)) return false;
    if (!beyond) return true;
    if (!c.wide_known) wide(c);
    return (beyond & ~c.wide) == 0;
  }

 private:
  static constexpr uint32_t kUnknown = 0xFFFFFFFFu, kNothing = 0xFFFFFFFEu;
  // If fewer tokens than this lie below a node, worth() answers no unless the set of the state is known.
  static constexpr std::size_t kMany = 48;
  // A set has at most this many states. If a state reaches more, it is a set of its own.
  static constexpr std::size_t kStates = 4;
  struct Closed {
    std::vector<uint32_t> states;
    // The categories of ASCII bytes that lead from each state of the set into the set.
    Categories ascii = 0;
    Categories wide = 0;
    bool ends = false;
    bool wide_known = false;
  };
  void ask(uint32_t state);
  bool close(Closed& closed);
  Categories loop(uint32_t state);
  Categories alive(uint32_t state);
  void wide(Closed& closed);
  bool stops(uint32_t from, uint32_t state) const;
  const TokenTrie& trie_;
  WalkTable& table_;
  const bool pass_;
  // True once some set had too many states. From then on each state is a set of its own.
  bool large_ = false;
  // of_[state] is the number of the state's set.
  std::vector<uint32_t> of_;
  std::vector<Closed> closed_;
  std::vector<Categories> alive_;
};

}  // namespace structgen
