// A row of token slots, filled in any order: which token may stand in which slot.
//
// In: the state behind a prefix, a number of slots, tokens for some of them. Out: yes, no or not known, for a
// token in a slot; tokens for all others. Cost: a check reads on from the slot until it meets a cloud that
// was read on from before, a look-up a slot; captured text is told by a text that is put together, slot by
// slot.
//
// F[i] is the cloud before slot i (holes/cloud.h). A token may stand in slot p iff what it leads to from F[p]
// can be read on through the other slots to an end. That is exact but where clouds are blind: then "no" is
// still a proof, and "yes" is said only of a *filling*, tokens for all slots that the parser has read, text
// captured and all. One is kept, of what was said yes to last: a token that leads back to its states, or
// whose rest it can still read, needs no search. Else it is looked for near the slot first: from the filling
// a few slots before it back to the filling a few slots behind it. What is read on from such a part of F
// shows "yes"; what is read on from a cloud that holds more than F, as it was when fewer slots were known,
// shows "no".
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/flat_map.h"
#include "holes/cloud.h"
#include "holes/path.h"

namespace structgen {

class Canvas {
 public:
  static constexpr TokenId kMasked = -1;
  // `open`: more text may follow the slots; else it ends within them, or with them. `pad`: what fills the
  // slots behind the end token, or kMasked: that token again.
  Canvas(std::shared_ptr<Clouds> clouds, const Vocabulary& vocabulary, StateId start, std::size_t slots,
         bool open, TokenId pad);
  Canvas(const Canvas& o);
  std::size_t size() const { return slots_.size(); }
  const std::vector<TokenId>& slots() const { return slots_; }

  Verdict possible();
  Verdict allows(std::size_t slot, TokenId t);
  // Sets a slot if allows() says yes; what it says.
  Verdict set(std::size_t slot, TokenId t);
  void put(std::size_t slot, TokenId t);  // whatever it says
  void clear(std::size_t slot);
  // The tokens of which allows() would say yes; false: some of which it would say that it is not known were
  // left out.
  bool fill_row(std::size_t slot, uint32_t* row);
  // Tokens for all slots; kUnknown: none was found, which is no proof.
  Verdict complete(std::vector<TokenId>& out);
  std::size_t byte_size() const;

 private:
  using Id = Clouds::Id;
  static constexpr std::size_t kNowhere = ~std::size_t{0};
  static constexpr Id kUntold = ~Id{0};
  static constexpr TokenId kText = -2;  // some token that is text
  // The text ends before slot i for some i of these; where i is the number of slots, behind all of them.
  struct Range {
    std::size_t lo = 0, hi = 0;
    TokenId end = kMasked;  // what stands there already
    bool any = false;
  };
  struct Filling {
    std::vector<TokenId> tokens;
    std::vector<StateId> states;  // before each, and behind all
  };
  struct Try {  // one more slot of a filling
    TokenId token;
    StateId state;
  };
  bool ends(TokenId t) const { return t >= 0 && (t == pad_ || vocabulary_.is_eos(t)); }
  TokenId at(std::size_t i) const { return i == changed_ ? to_ : slots_[i]; }
  void change(std::size_t slot, TokenId t);
  Range range() const;
  bool over(std::size_t i, bool accepting) const { return i >= range_.lo && i <= range_.hi && accepting; }
  Id before(std::size_t i);  // F
  bool leads(std::size_t i, Id c);
  bool reaches(std::size_t i, Id c) { return near_ == kNowhere ? leads(i, c) : leads_near(i, c); }
  bool leads_near(std::size_t i, Id c);
  bool nearby(std::size_t width);
  bool dies();
  void begin_filling();
  bool somewhere();
  bool meets_filling(std::size_t i, Id c);
  bool free_behind(std::size_t i) const;
  void keep(std::optional<Filling> filling);
  StateId walk(StateId s, TokenId t);
  bool splice(Filling& out);
  bool build(std::size_t from, Filling& out);
  bool next_way(std::size_t i, StateId s, std::size_t skip, Try& out);
  bool show(Filling& out);
  Verdict decide();

  std::shared_ptr<Clouds> clouds_;
  const Vocabulary& vocabulary_;
  const StateId start_;
  const bool open_;
  const TokenId pad_;
  std::vector<TokenId> slots_;
  std::vector<Id> before_;  // those of F that are known
  std::vector<Id> wider_;   // F when fewer slots were known: it holds all that F does; kUntold: not known
  std::size_t changed_ = kNowhere;
  TokenId to_ = kMasked;
  Range range_;
  // What leads to an end from a cloud before a slot: of the slots as they are, and with the change.
  std::vector<FlatMap<uint32_t, bool>> leads_, leads_changed_;
  // The same of what meets the filling before slot near_; kNowhere: no bound.
  std::vector<FlatMap<uint32_t, bool>> leads_near_;
  std::size_t near_ = kNowhere;
  uint32_t deep_ = 0;  // symbols of stacks that are followed there
  std::optional<Filling> filling_;
  std::vector<Id> thin_;          // the clouds along it
  std::optional<Filling> shown_;  // of the change that was asked for last
};

}  // namespace structgen
