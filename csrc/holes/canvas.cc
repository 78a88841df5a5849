// How it is decided whether a token may stand in a slot. canvas.h says how clouds and fillings decide;
// canvas_fillings.cc finds fillings.
//
// An example. Slots `{` _ _ `}` of a grammar of JSON objects, and the question whether `"a"` may stand
// in slot 1:
//
//     before(1)          the cloud behind `{`: F[1]
//     token              F[1] stepped by `"a"`: a colon has to follow
//     leads(2, c)        slot 2 is free: any(c) holds all that some token leads to. Slot 3 holds `}`: that
//                        cloud can read `}`, behind a token such as `:1`
//     the end            the cloud is accepting, and the text may end there: yes
//
// leads() goes on until it meets a cloud from which the rest was read before; the answer holds for all clouds
// on its path. F and the answers are kept from question to question. A change of slot p makes F anew behind
// p; it drops the answers for slots up to p.
//
// Where a cloud is blind, a yes needs a filling. The ways to find one, in this order: put the token into the
// kept filling and leave the other slots (splice()); write 1 or 4 slots on each side anew (nearby()), or 16
// or 64 with few tokens a slot (show_few()) or with all tokens (nearby()); search from the changed slot, then
// from the left over all slots (show()). dies() proves a no from older clouds, which hold more than F.
//
// Invariants.
// - kNo is a proof: no filling exists. kYes has a filling, or clouds that are not blind. kUnknown is
//   neither.
// - A question changes no slot: only set(), put() and clear() do.
// - leads_ holds answers for the slots as they are, leads_changed_ answers under the change that is asked
//   about. An answer of one table is never used for the other.
//
// Costs. One look-up for each slot where clouds are known. A search for a filling tries two tokens for each
// slot and kTries tokens more.
//
// Rejected. Asking the parser for each token of a row: fill_row() would take the size of the vocabulary times
// the number of slots. A table of all fillings: clouds are such a table, except that they hold no captured
// text.
#include "holes/canvas.h"

#include <algorithm>

#include "base/work.h"

namespace structgen {

namespace {
// For one link of a slot, show_some() reads the rest of the kept filling behind at most this many tokens.
constexpr std::size_t kReplayed = 256;
// Widths: the number of slots on each side of the change that get new tokens. Clouds of few slots cost less
// than show_few(), clouds of many slots more.
constexpr std::size_t kNarrow[] = {1, 4}, kWide[] = {16, 64};
// dies() begins at most kBack slots before the change, and reads at most kDies slots behind it.
constexpr std::size_t kBack = 4, kDies = 12;
// fill_row() searches for fillings for at most this many links of a slot. The verdict on the tokens of all
// other links stays unknown.
constexpr std::size_t kBuilt = 24;
}  // namespace

Canvas::Canvas(std::shared_ptr<Clouds> clouds, const Vocabulary& vocabulary, StateId start, std::size_t slots,
               bool open, TokenId pad)
    : clouds_(std::move(clouds)),
      vocabulary_(vocabulary),
      start_(start),
      open_(open),
      pad_(pad),
      slots_(slots, kMasked),
      before_{clouds_->of(start)},
      wider_(slots + 1),
      leads_(slots),
      leads_changed_(slots),
      leads_near_(slots),
      thin_(before_) {}

std::size_t Canvas::byte_size() const {
  std::size_t out = sizeof(Canvas) + slots_.size() * 8;
  for (const auto& m : leads_.of) out += m.byte_size();
  return out;
}

void Canvas::Answers::forget(std::size_t last) {
  for (std::size_t i = 0; i <= last; ++i) of[i].clear();
}

// Sets the change that all later questions assume. Without a value they assume none.
void Canvas::change(std::optional<Change> change) {
  if (change_) leads_changed_.forget(change_->slot);
  change_ = change;
  range_ = range();
  shown_.reset();
}

// Returns where the text may end: behind the last slot of text, and no later than the first end token. Behind
// an end token only padding may stand. With the slots `{`, _, `<eos>`, _ the text ends before slot 1 or 2.
Canvas::Range Canvas::range() const {
  constexpr Range kNowhere{1, 0};
  const std::size_t n = slots_.size();
  Range out{0, n};
  for (std::size_t i = 0; i < n; ++i) {
    const TokenId t = at(i);
    if (t == kMasked) continue;
    if (!ends(t))
      out.lo = i + 1;
    else if (out.hi == n)
      out.hi = i;
  }
  const std::size_t first_end = out.hi;
  if (first_end == n) return out;
  const TokenId first = at(first_end), filler = pad_ == kMasked ? first : pad_;
  for (std::size_t i = first_end + 1; i < n; ++i)
    if (at(i) != kMasked && at(i) != filler) return kNowhere;
  if (!vocabulary_.is_eos(first)) {
    // Padding stands only behind an end token, so there must be room for one before this slot.
    if (first_end == 0) return kNowhere;
    out.hi = first_end - 1;
    return out;
  }
  out.end = first;
  if (first != filler) out.lo = std::max(out.lo, first_end);
  return out;
}

CloudId Canvas::behind(CloudId c, TokenId t) {
  return t == kMasked ? clouds_->any(c) : ends(t) ? Clouds::kNone : clouds_->token(c, t);
}

// Returns the cloud behind slot i, which has the cloud c before it, within the limits near_.
CloudId Canvas::beyond(std::size_t i, CloudId c) {
  return near_ && at(i) == kMasked ? clouds_->any(c, near_->symbols) : behind(c, at(i));
}

// Returns F[i], the cloud before slot i, and computes F up to there.
CloudId Canvas::before(std::size_t i) {
  while (before_.size() <= i) before_.push_back(behind(before_.back(), slots_[before_.size() - 1]));
  return before_[i];
}

// Returns the cloud before slot i along the kept filling.
CloudId Canvas::along(std::size_t i) {
  while (thin_.size() <= i) thin_.push_back(clouds_->token(thin_.back(), filling_->tokens[thin_.size() - 1]));
  return thin_[i];
}

// Tells whether the cloud c before slot i holds every text that the cloud along the kept filling holds there,
// and slot i lies behind the change. If so, the tokens of the kept filling from slot i on lead from c to an
// end.
bool Canvas::meets_filling(std::size_t i, CloudId c) {
  return keeps_end() && unchanged_from(i) && i <= filling_->size() && clouds_->holds(c, along(i));
}

// Returns a short ending of the cloud c for the slots from i on, which are all empty. Returns null if no
// ending that is known is short enough.
const std::vector<TokenId>* Canvas::ending(std::size_t i, CloudId c) {
  const std::vector<TokenId>* const rest = clouds_->ending(c);
  return rest && rest->size() <= slots_.size() - i ? rest : nullptr;
}

// Tells whether the text may end before slot i with cloud c.
bool Canvas::ends_before(std::size_t i, CloudId c) {
  if (!range_.has(i)) return false;
  return i == slots_.size() && open_ ? clouds_->alive(c) : clouds_->cloud(c).accepting;
}

FlatMap<uint32_t, bool>& Canvas::answers(std::size_t i) {
  return (near_ ? leads_near_ : unchanged_from(i) ? leads_ : leads_changed_).of[i];
}

// Tells whether the slots from i on lead from the cloud c to an end. If near_ is set, they must lead to an
// end or to the kept filling at slot near_->stop at the latest.
bool Canvas::leads(std::size_t i, CloudId c) {
  const std::size_t from = i;
  std::vector<CloudId> met;
  bool out = false;
  for (; c != Clouds::kNone && (!near_ || i <= near_->stop); ++i) {
    if (const bool* known = answers(i).find(c.v)) {
      out = *known;
      break;
    }
    met.push_back(c);
    charge();
    out = (i == from && free_behind(i) && ending(i, c)) || ends_before(i, c) ||
          (i < range_.hi && meets_filling(i, c));
    if (out || i >= range_.hi) break;
    c = beyond(i, c);
  }
  for (std::size_t k = 0; k < met.size(); ++k) answers(from + k).emplace(met[k].v, out);
  return out;
}

// Tells whether an older cloud in wider_ already rules the change out. An older cloud was computed with fewer
// tokens in the slots, so it holds every text of F: if none of its texts fits the change, no text of F does.
// The walk begins up to kBack slots before the change, because the tokens there were set later than the older
// clouds were computed.
bool Canvas::dies() {
  const std::size_t slot = change_->slot;
  const auto known = [&](std::size_t i) {
    return i < before_.size() ? std::optional(before_[i]) : wider_[i];
  };
  std::size_t i = slot - std::min(slot, kBack);
  while (i < slot && !known(i)) ++i;
  if (!known(i)) return false;
  for (CloudId c = *known(i); c != Clouds::kNone; c = behind(c, at(i++)))
    if (i > slot + kDies || i >= range_.hi || (i > slot && i >= range_.lo && clouds_->cloud(c).accepting))
      return false;
  return true;
}

// Tells whether the text can end somewhere in range_, with tokens in all slots before its end.
bool Canvas::somewhere() {
  if (!change_) return leads(0, before(0));
  if (changes_text()) return leads(change_->slot + 1, clouds_->token(before(change_->slot), change_->token));
  for (std::size_t i = range_.lo; i <= range_.hi; ++i)
    if (clouds_->cloud(before(i)).accepting) return true;
  return false;
}

// Decides the question by tests, the cheapest first: the range, splice(), narrow clouds, show_few(), dies(),
// wide clouds, the clouds of all slots. If some cloud is blind, a filling must show a "yes".
Verdict Canvas::decide() {
  if (!range_.any()) return Verdict::kNo;
  if (changes_text()) {
    if (vocabulary_.bytes(change_->token).empty()) return Verdict::kNo;
    if ((shown_ = splice())) return Verdict::kYes;
    for (std::size_t width : kNarrow)
      if (filling_ && nearby(width)) return Verdict::kYes;
    for (std::size_t width : kWide)
      if ((shown_ = show_few(width))) return Verdict::kYes;
    if (dies()) return Verdict::kNo;
    for (std::size_t width : kWide)
      if (filling_ && nearby(width)) return Verdict::kYes;
  }
  if (!somewhere()) return Verdict::kNo;
  shown_ = show();
  // If no cloud was blind, clouds are exact, and their "yes" needs no filling.
  return shown_ || !clouds_->seen_blind() ? Verdict::kYes : Verdict::kUnknown;
}

Verdict Canvas::possible() {
  change({});
  if (filling_) return Verdict::kYes;
  const Verdict out = decide();
  if (shown_) keep(std::move(shown_));
  shown_.reset();
  return out;
}

// Returns a copy of the canvas with the slot empty. Its allows() tells which tokens may replace the slot's
// token.
Canvas Canvas::without(std::size_t slot) const {
  Canvas out(*this);
  out.clear(slot);
  return out;
}

Verdict Canvas::allows(std::size_t slot, TokenId t) {
  if (slots_[slot] == t) return possible();
  if (slots_[slot] != kMasked) return without(slot).allows(slot, t);
  if (shown_ && change_ && change_->slot == slot && change_->token == t) return Verdict::kYes;
  begin_filling();
  change({{slot, t}});
  const bool has = keeps_end() && (ends(t) || (slot < filling_->size() && filling_->tokens[slot] == t));
  if (!has) return decide();
  shown_ = filling_;
  return Verdict::kYes;
}

Verdict Canvas::set(std::size_t slot, TokenId t) {
  if (slots_[slot] == t) return possible();
  if (slots_[slot] != kMasked) {
    Canvas masked = without(slot);
    const Verdict told = masked.set(slot, t);
    if (told == Verdict::kYes) {
      put(slot, t);
      keep(std::move(masked.filling_));
    }
    return told;
  }
  const Verdict told = allows(slot, t);
  if (told == Verdict::kYes) {
    std::optional<Filling> shown = std::move(shown_);
    put(slot, t);
    keep(std::move(shown));
  }
  return told;
}

// Sets a slot. It drops the clouds of F behind this slot and all answers that depend on it.
void Canvas::assign(std::size_t slot, TokenId t) {
  slots_[slot] = t;
  if (before_.size() > slot + 1) before_.resize(slot + 1);
  leads_.forget(slot);
  change({});
}

// Sets a slot. The clouds of F behind the slot are kept as wider_: one more token in a slot only takes texts
// from a cloud, so the old clouds hold every text of the new ones.
void Canvas::put(std::size_t slot, TokenId t) {
  // If the slot holds another token, the clouds behind it do not contain the new ones. clear() drops them.
  clear(slot);
  for (std::size_t i = slot + 1; i < before_.size(); ++i) wider_[i] = before_[i];
  keep(std::nullopt);
  assign(slot, t);
}

// Clears a slot. With one more empty slot, clouds may hold more texts than those in wider_, so these are
// dropped.
void Canvas::clear(std::size_t slot) {
  if (slots_[slot] == kMasked) return;
  std::fill(wider_.begin() + static_cast<std::ptrdiff_t>(slot), wider_.end(), std::nullopt);
  assign(slot, kMasked);
}

// Asks once for each link out of the slot's cloud; all tokens of a link have the same answer. If clouds are
// blind, each token needs a filling of its own.
bool Canvas::fill_row(std::size_t slot, uint32_t* row) {
  std::fill(row, row + vocabulary_.words(), 0u);
  if (slots_[slot] != kMasked) return without(slot).fill_row(slot, row);
  bool exact = true;
  const auto ask = [&](TokenId t) {
    const Verdict told = allows(slot, t);
    if (told == Verdict::kYes) set_bit(row, t);
    exact = exact && told != Verdict::kUnknown;
  };
  for (TokenId t : vocabulary_.eos()) ask(t);
  if (pad_ != kMasked && !vocabulary_.is_eos(pad_)) ask(pad_);
  change({{slot, kAnyText}});
  if (!range_.any()) return exact;
  std::vector<Clouds::Link> links;
  clouds_->links(before(slot), [&](const Clouds::Link& w) {
    if (leads(slot + 1, w.to)) links.push_back(w);
    return true;
  });
  const bool blind = clouds_->seen_blind();
  exact = exact && !clouds_->lost_ways();
  std::size_t searches = kBuilt;
  for (const Clouds::Link& w : links) {
    const std::vector<TokenId>& tokens = clouds_->tokens(w);
    charge(static_cast<int64_t>(tokens.size() / 16));
    if (blind)
      exact = show_some(slot, tokens, searches, row) && exact;
    else
      for (TokenId t : tokens) set_bit(row, t);
  }
  change({});
  return exact;
}

// Writes those tokens of one link for which it finds a filling. It searches for one filling, and reads the
// rest of this filling behind the other tokens. Returns false if some token has no filling.
bool Canvas::show_some(std::size_t slot, const std::vector<TokenId>& tokens, std::size_t& searches,
                       uint32_t* row) {
  std::size_t replayed = 0;
  bool searched = false, all = true;
  std::optional<Filling> kept = filling_;
  for (TokenId t : tokens) {
    if (has_bit(row, t)) continue;
    change({{slot, t}});
    bool shown =
        filling_ && slot < filling_->size() && read(filling_->states[slot], t) == filling_->states[slot + 1];
    shown = shown || (replayed++ < kReplayed && splice());
    if (!shown && !searched && searches > 0) {
      searched = true;
      --searches;
      if (std::optional<Filling> found = somewhere() ? show() : std::nullopt) {
        shown = true;
        keep(std::move(found));
      }
    }
    if (shown) set_bit(row, t);
    all = all && shown;
  }
  keep(std::move(kept));
  return all;
}

Verdict Canvas::complete(std::vector<TokenId>& out) {
  const Verdict told = possible();
  if (told != Verdict::kYes) return told;
  if (!filling_) keep(show());
  if (!filling_) return Verdict::kUnknown;
  out = filling_->tokens;
  const std::size_t n = slots_.size();
  if (out.size() < n) {
    const TokenId end = range_.end != kMasked ? range_.end : vocabulary_.eos().front();
    out.push_back(end);
    out.resize(n, pad_ == kMasked ? end : pad_);
  }
  return Verdict::kYes;
}

}  // namespace structgen
