// Lower bounds of tokens: whether so many tokens are too few to complete a text.
//
// In: a state without captured text, a number of tokens. Out: true where no so many tokens complete it,
// proved; false says nothing. Cost: a walk of the trie for each place that is met, of which there are few,
// kept; then a pass over the places that one token leads to, once for each number asked for.
//
// The problem. To refuse a token near the end of a budget, a search (budget/reach.h) has to fail from the
// state that it leads to. Most states that the search meets differ in nothing that costs a token: how many
// blanks may still come, which bytes of a character are missing, what a pattern has read.
//
// The idea. A graph of places whose languages are larger: what is too little there is too little in the
// state.
//
//     blanks     a gap that may have 17 more of them is one that may have any number
//     strings    whatever is left of a string, it ends with a quote, so any bytes may come before a quote.
//     All
//                strings above one stack are one place. Behind it tokens go on with what any token of the
//                vocabulary holds after a quote (World::tails()), some hundred texts, stepped once a stack
//     choices    a state of several items needs no less than the best of them, each a place of its own
//
// Property names, constants and long strings of a fixed length stay as they are: their length is what costs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/flat_map.h"
#include "base/work.h"
#include "mask/fill.h"
#include "mask/suffixes.h"
#include "mask/token_trie.h"
#include "mask/world.h"
#include "parse/state.h"

namespace structgen {

constexpr std::size_t kDeep = 64;  // tokens up to which fewer are looked for

// Work of searches over the vocabulary, in nodes of the trie.
struct SearchCost {
  static constexpr uint64_t kLeast = 1'000;  // that a look at a state takes, at least
  static constexpr uint64_t kNewState = 32;  // what a new state counts for
  static constexpr uint64_t kUnit = 8;       // and what a unit of work that was charged for it does

  // Parser::step, where a step that nobody took before counts against the search.
  static StateId step(Parser& parser, StateId from, uint8_t byte, uint64_t& spent) {
    const StateId known = parser.peek(from, byte);
    if (known != Parser::unknown()) return known;
    const int64_t left = meter.left();
    const StateId next = parser.step(from, byte);
    spent += kNewState + kUnit * static_cast<uint64_t>(std::max<int64_t>(0, left - meter.left()));
    return next;
  }

  // Down the trie in depth-first order, where the bytes may stand. `arrive(node, before, after)` returns the
  // state that the walk goes on with, dead() where it does not go below the node. False: it takes more than
  // `work`.
  template <class Arrive>
  static bool walk(Parser& parser, const TokenTrie& trie, StateId from, uint64_t work, uint64_t& spent,
                   Arrive&& arrive) {
    struct Open {
      const TokenTrie::Kids* kids;
      StateId state;
      ByteSet left;
    };
    std::vector<Open> path;
    const auto enter = [&](uint32_t node, StateId s) {
      const TokenTrie::Kids& kids = trie.kids(node);
      const uint64_t n = trie.count(kids);
      charge(1 + static_cast<int64_t>(n / 8));
      spent += n;
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
      StateId next = step(parser, before, byte, spent);
      if (next == Parser::dead()) continue;
      next = arrive(node, before, next);
      if (next != Parser::dead() && !trie.leaf(node)) enter(node, next);
    }
    return true;
  }
};

class Outline {
 public:
  Outline(World& world, Parser& parser, MaskBuilder& masks) : world_(world), parser_(parser), masks_(masks) {}

  // What the calls that follow may spend: nodes of the trie and edges. 0: nothing is told, not even what is
  // known.
  void allow(uint64_t work) {
    work_ = work;
    off_ = work == 0;
  }
  // Whether `tokens`, the end-of-sequence token among them, are proved too few for s.
  bool too_few(StateId s, std::size_t tokens);
  // The same as far as it is known.
  bool known_too_few(StateId s, std::size_t tokens);
  // Where s is inside a string and no token that stays in it can be the first of `tokens`: the tokens that
  // can, which hold the quote that ends it and are allowed or not. False: this is not told.
  bool leaving(StateId s, std::size_t tokens, std::vector<TokenId>& out);
  std::size_t byte_size() const { return bytes_ + of_state_.byte_size() + of_key_.byte_size(); }

 private:
  using PlaceId = uint32_t;
  struct Place {
    StateId state;  // where it is left: behind the quote of a string
    bool string = false;
    bool expanded = false;
    uint32_t least = 2, most = kMany;  // tokens that are proved to be needed; that suffice here
    uint64_t too_little = 0;           // work that was not enough to look at it
    std::vector<PlaceId> to;
    std::vector<std::pair<PlaceId, uint32_t>> tails;  // of a string: of World::tails() which node leads where
  };
  static constexpr uint32_t kMany = 1u << 30;
  static constexpr uint32_t kQuote = 0xFFFFFFFFu;  // of `tails`: tokens end with the quote
  static constexpr PlaceId kEnd = 0, kUnsure = 1;  // the text ends; captured text decides

  const std::vector<PlaceId>& places(StateId s);
  void place(Item item, std::vector<Item>& others, std::vector<PlaceId>& out);
  bool blank(RegexId r) const;
  bool in_string(RegexId r);
  RegexId loose(RegexId r);
  PlaceId find(uint64_t key, StateId s, bool string);
  bool too_few(std::span<const PlaceId> any, uint32_t tokens);
  bool place_too_few(PlaceId p, uint32_t tokens);
  bool expand(PlaceId p);
  bool expand_state(StateId from, Place& out, uint64_t& spent);
  void expand_string(StateId left, Place& out, uint64_t& spent);

  World& world_;
  Parser& parser_;
  MaskBuilder& masks_;
  uint64_t work_ = 0;
  bool off_ = true;
  std::vector<Place> all_;
  std::vector<std::vector<PlaceId>> lists_;
  FlatMap<uint32_t, uint32_t> of_state_;  // -> lists_
  FlatMap<uint64_t, uint32_t> of_key_;    // -> all_
  std::size_t bytes_ = 0;
};

}  // namespace structgen
