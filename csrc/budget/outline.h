// Lower bounds of tokens: whether so many tokens are too few to complete a text.
//
// In: a state without captured text, a number of tokens. Out: true where no so many tokens complete it,
// proved; false says nothing. Cost: a walk of the trie for each place that is met, of which there are few,
// kept; then a pass over the places that few tokens lead to.
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
//
// One answer. Places stay, with what it costs to look at one. What is proved of them belongs to a call
// (begin()), which goes through the places in breadth and pays for each of them once, as if all were new. So
// an answer depends on what the call asked before, and on no other call.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/flat_map.h"
#include "base/work.h"
#include "budget/token_graph.h"
#include "mask/fill.h"
#include "mask/suffixes.h"
#include "mask/token_trie.h"
#include "mask/world.h"
#include "parse/state.h"

namespace structgen {

constexpr std::size_t kDeep = 64;  // tokens up to which fewer are looked for

class Outline {
 public:
  Outline(World& world, Parser& parser, MaskBuilder& masks) : world_(world), parser_(parser), masks_(masks) {}

  // A call begins: nothing is proved, and nothing is told before allow().
  void begin();
  // What the questions that follow may spend: nodes of the trie and edges. 0: nothing is told.
  void allow(uint64_t work) {
    work_ = work;
    off_ = work == 0;
  }
  // Whether `tokens`, the end-of-sequence token among them, are proved too few for s.
  bool too_few(StateId s, std::size_t tokens);
  // The same as far as this call knows.
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
    uint64_t cost = 0;      // of `to`
    uint64_t too_dear = 0;  // work that was not enough to look at it
    // Of the call that `call` counts: whether it has paid; tokens that are proved to be needed; that suffice.
    uint32_t call = 0;
    bool paid = false;
    uint32_t least = 2, most = kMany;
    uint32_t seen = 0;  // by the question that questions_ counts
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
  Place& now(PlaceId p);
  bool too_few(std::span<const PlaceId> any, uint32_t tokens);
  bool expand(PlaceId p);
  bool expand_state(StateId from, Place& out);
  void expand_string(StateId left, Place& out);

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
  uint32_t calls_ = 0, questions_ = 0;
};

}  // namespace structgen
