// A row of token slots that are filled in any order: the tokens that each slot may take.
//
// In: the state behind a prefix, a number of slots, tokens for some of them. Out: yes, no or not known
// for a token in a slot; tokens for all other slots. Cost: a check reads on from the slot until it
// meets a cloud from which the rest was read before, one look-up a slot. Captured text is decided by a
// text that is put together slot by slot.
//
// F[i] is the cloud before slot i (holes/cloud.h). A token may stand in slot p if and only if the cloud
// that it leads to from F[p] can be read on through the other slots to an end. This is exact unless
// clouds are blind. Where they are blind, "no" is still a proof, and "yes" is said only with a
// *filling*: tokens for all slots that the parser has read, captured text included. The filling of the
// last "yes" is kept. If a token leads back to the states of this filling, or the rest of the filling can be
// read behind the token, no search is needed. Otherwise a filling is looked for that differs from the kept
// one in a few slots before and behind the token. Such a search reads a part of F, so it can show only a
// "yes". Clouds from the time when fewer slots were known hold more than F, so they can show only a "no".
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
  // `open`: more text may follow the slots; otherwise the text ends within the slots or with the last one.
  // `pad`: the token that fills the slots behind the end token; kMasked: the end token fills them.
  Canvas(std::shared_ptr<Clouds> clouds, const Vocabulary& vocabulary, StateId start, std::size_t slots,
         bool open, TokenId pad);
  Canvas(const Canvas& o);
  std::size_t size() const { return slots_.size(); }
  const std::vector<TokenId>& slots() const { return slots_; }

  Verdict possible();
  Verdict allows(std::size_t slot, TokenId t);
  // Sets a slot if allows() says yes, and returns the verdict.
  Verdict set(std::size_t slot, TokenId t);
  // Sets a slot in any case.
  void put(std::size_t slot, TokenId t);
  void clear(std::size_t slot);
  // Writes the tokens for which allows() says yes. False: allows() says "not known" of some token, which is
  // left out.
  bool fill_row(std::size_t slot, uint32_t* row);
  // Tokens for all slots. kUnknown: no tokens were found, and none were ruled out.
  Verdict complete(std::vector<TokenId>& out);
  std::size_t byte_size() const;

 private:
  using Id = Clouds::Id;
  static constexpr std::size_t kNowhere = ~std::size_t{0};
  static constexpr Id kUntold = ~Id{0};
  // Stands for any token of text.
  static constexpr TokenId kAnyText = -2;
  // The text may end before slot i if lo <= i <= hi. The number of slots stands for the end behind the last
  // slot.
  struct Range {
    std::size_t lo = 0, hi = 0;
    // The end token that stands in a slot already.
    TokenId end = kMasked;
    bool any = false;
  };
  struct Filling {
    std::vector<TokenId> tokens;
    // The state before each token, and the state behind all of them.
    std::vector<StateId> states;
  };
  // The token that is tried in the next slot of a filling.
  struct Try {
    TokenId token;
    StateId state;
  };
  bool ends(TokenId t) const { return t >= 0 && (t == pad_ || vocabulary_.is_eos(t)); }
  TokenId at(std::size_t i) const { return i == changed_ ? to_ : slots_[i]; }
  void change(std::size_t slot, TokenId t);
  Range range() const;
  bool over(std::size_t i, bool accepting) const { return i >= range_.lo && i <= range_.hi && accepting; }
  // F[i]. Computes F as far as i.
  Id before(std::size_t i);
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
  // The clouds of F that were computed.
  std::vector<Id> before_;
  // F as it was when fewer slots were known. Each cloud holds at least what F holds. kUntold: not known.
  std::vector<Id> wider_;
  std::size_t changed_ = kNowhere;
  TokenId to_ = kMasked;
  Range range_;
  // Indexed by slot, then keyed by cloud: whether the cloud before that slot leads to an end, for the
  // slots as they are and for the slots with the change.
  std::vector<FlatMap<uint32_t, bool>> leads_, leads_changed_;
  // Indexed by slot, then keyed by cloud: whether the cloud before that slot meets the filling before
  // slot near_; kNowhere: there is no bound.
  std::vector<FlatMap<uint32_t, bool>> leads_near_;
  std::size_t near_ = kNowhere;
  // leads_near() does not follow stacks with more symbols.
  uint32_t deep_ = 0;
  std::optional<Filling> filling_;
  // The clouds along the filling.
  std::vector<Id> thin_;
  // The filling that showed the last yes, with the change in it.
  std::optional<Filling> shown_;
};

}  // namespace structgen
