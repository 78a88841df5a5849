// Lower bounds of tokens: whether so many tokens are too few to complete a text.
//
// In: a state without captured text, a number of tokens. Out: true if it is proved that so many tokens
// do not complete the text; false says nothing. Cost: a walk of the trie for each place that is met, of
// which there are few and which are kept; then a pass over the places that few tokens lead to.
//
// The problem. To refuse a token near the end of a budget, a search (budget/reach.h) has to fail from
// the state that the token leads to. Most states that the search meets differ in nothing that costs a
// token: how many blanks may still come, which bytes of a character are missing, what a pattern has
// read.
//
// The idea. A graph of places whose languages are larger. If the tokens are too few in the larger
// language, they are too few in the state.
//
//     blanks     a gap that may have 17 more of them becomes one that may have any number
//     strings    whatever is left of a string, it ends with a quote, so any bytes may come before a quote.
//                All strings above one stack are one place. Behind it, tokens go on with the bytes that
//                tokens of the vocabulary hold after a quote (World::tails()): some hundred texts, stepped
//                once for each stack
//     choices    a state of several items needs no less than the best of them, each a place of its own
//
// Property names, constants and long strings of a fixed length stay as they are, because their length
// is what costs tokens.
//
// The same answer for the same call. Places are kept, with the cost of looking at each. Proofs belong
// to a call (begin()), which goes through the places in breadth and pays for each of them once, as if
// all were new. So an answer depends on what the call asked before, and on no other call.
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

// Fewer tokens are looked for only up to this number.
constexpr std::size_t kDeep = 64;

class Outline {
 public:
  Outline(World& world, Parser& parser, MaskBuilder& masks) : world_(world), parser_(parser), masks_(masks) {}

  // Begins a call: nothing is proved, and no question is answered before allow().
  void begin();
  // The work that the questions that follow may spend: nodes of the trie and edges. 0: no question is
  // answered.
  void allow(uint64_t work) {
    work_ = work;
    off_ = work == 0;
  }
  // Whether `tokens` tokens, the end token included, are proved to be too few for s.
  bool too_few(StateId s, std::size_t tokens);
  // The same as far as this call already knows.
  bool known_too_few(StateId s, std::size_t tokens);
  // For s inside a string where no token that stays in the string can be the first of `tokens`: the
  // tokens that can be. They hold the quote that ends the string and may or may not be allowed. False:
  // this is not known.
  bool leaving(StateId s, std::size_t tokens, std::vector<TokenId>& out);
  std::size_t byte_size() const { return bytes_ + of_state_.byte_size() + of_key_.byte_size(); }

 private:
  using PlaceId = uint32_t;
  struct Place {
    // For a string: the state behind its closing quote.
    StateId state;
    bool string = false;
    bool expanded = false;
    // The work of finding `to`.
    uint64_t cost = 0;
    // Work that was not enough to look at the place.
    uint64_t too_dear = 0;
    // These fields belong to the call with number `call`: whether it has paid; the number of tokens
    // that is proved to be needed; the number that suffices.
    uint32_t call = 0;
    bool paid = false;
    uint32_t least = 2, most = kMany;
    // The last question that met the place, by questions_.
    uint32_t seen = 0;
    std::vector<PlaceId> to;
    // For a string: pairs of a place and the node of World::tails() that leads there.
    std::vector<std::pair<PlaceId, uint32_t>> tails;
  };
  static constexpr uint32_t kMany = 1u << 30;
  // In `tails`: the token ends with the quote.
  static constexpr uint32_t kQuote = 0xFFFFFFFFu;
  // kEnd: the text ends. kUnsure: captured text decides.
  static constexpr PlaceId kEnd = 0, kUnsure = 1;

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
  // To an index of lists_.
  FlatMap<uint32_t, uint32_t> of_state_;
  // To an index of all_.
  FlatMap<uint64_t, uint32_t> of_key_;
  std::size_t bytes_ = 0;
  uint32_t calls_ = 0, questions_ = 0;
};

}  // namespace structgen
