// A row of token slots that are filled in any order: the tokens that each slot may take.
//
// In: the state behind a prefix, a number of slots, tokens for some of them. Out: yes, no or not known for a
// token in a slot; tokens for all other slots. Cost: a check steps clouds from the slot on, with one look-up
// for each slot, until it meets a cloud from which the rest was read before. Where captured text decides, a
// check puts a text together slot by slot.
//
// F[i] is the cloud before slot i (holes/cloud.h). A token may stand in slot p if and only if the cloud that
// it leads to from F[p] can be read on through the other slots to an end. This rule is exact unless clouds
// are blind. Where clouds are blind, "no" is still a proof, and "yes" is said only with a *filling*: tokens
// for all slots that the parser has read, captured text included. The filling of the last "yes" is kept. If a
// token leads back to the states of this filling, or the rest of the filling can be read behind the token, no
// search is needed. Otherwise a filling is looked for that differs from the kept one in a few slots before
// and behind the token. Such a search tries few tokens a slot or reads a part of F, so it can show only a
// "yes". Clouds from the time
// when fewer slots were known hold more than F, so they can show only a "no".
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/flat_map.h"
#include "holes/cloud.h"
#include "holes/path.h"

namespace structgen {

// Tells which tokens each slot of one canvas may take.
class Canvas {
 public:
  static constexpr TokenId kMasked = -1;
  // With `open`, more text may follow the slots; otherwise the text ends before some slot or behind the last
  // one. `pad` is the token that fills the slots behind an end token; if it is kMasked, end tokens fill them.
  Canvas(std::shared_ptr<Clouds> clouds, const Vocabulary& vocabulary, StateId start, std::size_t slots,
         bool open, TokenId pad);
  std::size_t size() const { return slots_.size(); }
  const std::vector<TokenId>& slots() const { return slots_; }
  const Clouds& clouds() const { return *clouds_; }

  // possible() tells whether the empty slots can be filled. allows() asks the same of a canvas that holds
  // token t in the slot.
  Verdict possible();
  Verdict allows(std::size_t slot, TokenId t);
  // Sets a slot if allows() says yes. Returns the verdict.
  Verdict set(std::size_t slot, TokenId t);
  void put(std::size_t slot, TokenId t);
  void clear(std::size_t slot);
  // Writes the row of a slot: the tokens for which allows() says yes. Returns false if allows() says "not
  // known" for some token; the row lacks such tokens.
  bool fill_row(std::size_t slot, uint32_t* row);
  // Writes tokens for all slots. Returns kUnknown if it finds none, but did not prove that there are none.
  Verdict complete(std::vector<TokenId>& out);
  std::size_t byte_size() const;

 private:
  // Stands for any token of text, as the token of a Change.
  static constexpr TokenId kAnyText = -2;
  // The text may end before slot i if lo <= i <= hi. If i is the number of slots, the text ends behind the
  // last one.
  struct Range {
    std::size_t lo = 0, hi = 0;
    // The end token that some slot holds, or kMasked if none does.
    TokenId end = kMasked;
    bool any() const { return lo <= hi; }
    bool has(std::size_t i) const { return lo <= i && i <= hi; }
  };
  // Tokens for the first slots. The parser has read them, captured text included.
  struct Filling {
    std::vector<TokenId> tokens;
    // The state before each token, and the state behind the last one.
    std::vector<StateId> states;
    std::size_t size() const { return tokens.size(); }
    StateId last() const { return states.back(); }
    void add(TokenId t, StateId behind) {
      tokens.push_back(t);
      states.push_back(behind);
    }
    void remove_last() {
      tokens.pop_back();
      states.pop_back();
    }
    Filling first(std::size_t n) const;
    void add_rest(const Filling& of);
  };
  using Next = Clouds::Next;
  // The assumption of a question: this slot holds this token.
  struct Change {
    std::size_t slot;
    TokenId token;
  };
  // The bounds of a search that replaces only tokens near the change and keeps the others of the kept
  // filling.
  struct Near {
    // Before this slot, or earlier, the search must reach a cloud from which the kept filling goes on.
    std::size_t stop;
    // The search follows only stacks of at most this many symbols.
    uint32_t symbols;
  };
  // The known answers of leads(): of[i] tells for a cloud before slot i whether it leads to an end. A copy of
  // a canvas begins without answers.
  struct Answers {
    explicit Answers(std::size_t slots) : of(slots + 1) {}
    Answers(const Answers& o) : of(o.of.size()) {}
    void forget(std::size_t last);
    std::vector<FlatMap<uint32_t, bool>> of;
  };
  // Tells whether t ends the text or stands behind its end.
  bool ends(TokenId t) const { return t >= 0 && (t == pad_ || vocabulary_.is_eos(t)); }
  TokenId at(std::size_t i) const { return change_ && i == change_->slot ? change_->token : slots_[i]; }
  bool unchanged_from(std::size_t i) const { return !change_ || i > change_->slot; }
  bool changes_text() const { return change_ && !ends(change_->token); }
  void change(std::optional<Change> change);
  Range range() const;
  void assign(std::size_t slot, TokenId t);
  Canvas without(std::size_t slot) const;
  CloudId behind(CloudId c, TokenId t);
  CloudId beyond(std::size_t i, CloudId c);
  CloudId before(std::size_t i);
  CloudId along(std::size_t i);
  FlatMap<uint32_t, bool>& answers(std::size_t i);
  bool ends_before(std::size_t i, CloudId c);
  bool meets_filling(std::size_t i, CloudId c);
  // Tells whether the slots from i on are all empty and the text may end before any of them.
  bool free_behind(std::size_t i) const { return i >= range_.lo && range_.hi == slots_.size(); }
  const std::vector<TokenId>* ending(std::size_t i, CloudId c);
  bool leads(std::size_t i, CloudId c);
  bool dies();
  bool somewhere();
  Verdict decide();
  bool show_some(std::size_t slot, const std::vector<TokenId>& tokens, std::size_t& searches, uint32_t* row);

  void keep(std::optional<Filling> filling);
  void begin_filling();
  bool keeps_end() const { return filling_ && range_.has(filling_->size()); }
  StateId read(StateId s, TokenId t);
  bool ended(const Filling& f);
  bool add_ending(Filling& out);
  std::optional<Next> next(std::size_t i, StateId s, std::size_t link);
  std::optional<Next> next_few(std::size_t i, StateId s, bool free, std::size_t& turn);
  void add_kept(Filling& out);
  bool trace(Filling& out, CloudId c);
  bool add_link(Filling& out, Clouds::Entry from, Clouds::Entry to, std::size_t turn);
  void add_read(Filling& out, const std::vector<TokenId>& tokens);
  bool build(Filling& out);
  std::optional<Filling> begun();
  std::optional<Filling> splice();
  std::optional<Filling> show();
  std::optional<Filling> show_few(std::size_t width);
  std::optional<Filling> near(std::size_t from, std::size_t stop);
  bool nearby(std::size_t width);

  std::shared_ptr<Clouds> clouds_;
  const Vocabulary& vocabulary_;
  const StateId start_;
  const bool open_;
  const TokenId pad_;
  std::vector<TokenId> slots_;
  // before_[i] is the cloud before slot i, F at the top of this file, up to the last slot that was asked for.
  std::vector<CloudId> before_;
  // By slot: the cloud before the slot at a time when fewer slots were filled, if one is known. It holds at
  // least the texts of the slot's present cloud.
  std::vector<std::optional<CloudId>> wider_;
  // The change that the question assumes, or none, and where the text may end with this change.
  std::optional<Change> change_;
  Range range_;
  // The answers of leads(), in three tables, because each holds under another assumption: no change; the
  // change; the change, and only clouds within the bounds near_.
  Answers leads_, leads_changed_, leads_near_;
  std::optional<Near> near_;
  // Tells whether the clouds that near() looked at last lead to an end.
  bool led_ = false;
  // The kept filling: tokens for all slots, found earlier, which prove that the empty slots can be filled.
  // Questions try to change few of its tokens.
  std::optional<Filling> filling_;
  std::vector<CloudId> thin_;
  std::optional<Filling> shown_;
};

}  // namespace structgen
