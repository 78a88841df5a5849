// How a slot is decided, and how a filling is found; canvas.h has the two facts that decide.
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
// leads() goes on until it meets a cloud from which the rest was read before; the answer holds for all
// clouds on its path. F and the answers are kept from question to question: a change of slot p makes F
// anew behind p, and no answer before it.
//
// Where a cloud is blind, a yes needs a filling. The ways to find one, in this order: put the token into the
// kept filling and leave the other slots (splice()); write 1, 4, 16 or 64 slots on each side anew (nearby());
// search from the changed slot, then from the left over all slots (show()). dies() proves a no from older
// clouds, which hold more than F.
//
// Invariants.
// - kNo is a proof: no filling exists. kYes has a filling, or clouds that are not blind. kUnknown is
//   neither.
// - A question changes no slot: only set(), put() and clear() do.
// - leads_ belongs to the slots as they are, leads_changed_ to the change that is asked about; the two
//   never mix.
//
// Costs. A look-up a slot where clouds are known. A search for a filling tries two tokens a slot and
// kTries more.
//
// Rejected. Asking the parser for each token of a row: fill_row() would take the vocabulary times the
// slots. A table of all fillings: clouds are that table, but for captured text, which they cannot hold.
#include "holes/canvas.h"

#include <algorithm>

#include "base/error.h"
#include "base/undo.h"
#include "base/work.h"

namespace structgen {

namespace {
// A search for a filling takes at most two steps for each slot and kTries more.
constexpr std::size_t kTries = 400;
// The most tokens of one way for which the rest of the filling is read again.
constexpr std::size_t kReplayed = 256;
// The numbers of slots that nearby() writes anew on each side of a change, one after the other.
constexpr std::size_t kWidths[] = {1, 4, 16, 64};
// The least number of symbols by which stacks may be deeper in nearby() than the stacks of the filling.
constexpr uint32_t kDeeper = 6;
// The most slots that dies() reads.
constexpr std::size_t kDies = 12;
// The most ways of a slot for which fill_row() looks for a filling.
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
      wider_(slots + 1, kUntold),
      leads_(slots + 1),
      leads_changed_(slots + 1),
      leads_near_(slots + 1) {}

// A copy keeps the clouds and F, and begins with no answers.
Canvas::Canvas(const Canvas& o)
    : clouds_(o.clouds_),
      vocabulary_(o.vocabulary_),
      start_(o.start_),
      open_(o.open_),
      pad_(o.pad_),
      slots_(o.slots_),
      before_(o.before_),
      wider_(o.wider_),
      leads_(o.slots_.size() + 1),
      leads_changed_(o.slots_.size() + 1),
      leads_near_(o.slots_.size() + 1),
      filling_(o.filling_) {}

std::size_t Canvas::byte_size() const {
  std::size_t out = sizeof(Canvas) + slots_.size() * 8;
  for (const auto& m : leads_) out += m.byte_size();
  return out;
}

// Makes the questions that follow be about the slots with token t in slot `slot`.
void Canvas::change(std::size_t slot, TokenId t) {
  if (changed_ != kNowhere)
    for (std::size_t i = 0; i <= changed_; ++i) leads_changed_[i].clear();
  changed_ = slot;
  to_ = t;
  range_ = range();
  shown_.reset();
}

// The places at which the text may end: behind the last slot of text, and no later than the first end
// token; behind an end token only padding may stand. With the slots `{`, _, `<eos>`, _ the text ends
// before slot 1 or 2.
Canvas::Range Canvas::range() const {
  const std::size_t n = slots_.size();
  Range out;
  std::size_t last_text = kNowhere, first_end = n;
  for (std::size_t i = 0; i < n; ++i) {
    const TokenId t = at(i);
    if (t == kMasked) continue;
    if (!ends(t))
      last_text = i;
    else if (first_end == n)
      first_end = i;
  }
  // The text cannot end before a slot that holds text.
  out.lo = last_text == kNowhere ? 0 : last_text + 1;
  out.hi = first_end;
  if (first_end < n) {
    const TokenId first = at(first_end);
    if (pad_ == kMasked) {
      for (std::size_t i = first_end; i < n; ++i)
        if (at(i) != kMasked && at(i) != first) return out;
      out.end = first;
    } else {
      // The token is padding: the end stands before it.
      if (!vocabulary_.is_eos(first)) {
        if (first_end == 0) return out;
        out.hi = first_end - 1;
      }
      for (std::size_t i = first_end + 1; i < n; ++i)
        if (at(i) != kMasked && at(i) != pad_) return out;
      if (vocabulary_.is_eos(first)) {
        out.end = first;
        if (first != pad_) out.lo = std::max(out.lo, first_end);
      }
    }
  }
  out.any = out.lo <= out.hi;
  return out;
}

Canvas::Id Canvas::before(std::size_t i) {
  while (before_.size() <= i) {
    const TokenId t = slots_[before_.size() - 1];
    const Id c = before_.back();
    before_.push_back(t == kMasked ? clouds_->any(c) : ends(t) ? Clouds::kNone : clouds_->token(c, t));
  }
  return before_[i];
}

void Canvas::keep(std::optional<Filling> filling) {
  filling_ = std::move(filling);
  thin_.clear();
}

// Whether the cloud c before slot i, behind the change, holds the cloud of the kept filling before this slot.
// If so, the rest of the filling leads from c to an end.
bool Canvas::meets_filling(std::size_t i, Id c) {
  if (!filling_ || (changed_ != kNowhere && i <= changed_) || i > filling_->tokens.size() ||
      filling_->tokens.size() < range_.lo || filling_->tokens.size() > range_.hi)
    return false;
  if (thin_.empty()) thin_.push_back(before_[0]);
  while (thin_.size() <= i) {
    const Id next = clouds_->token(thin_.back(), filling_->tokens[thin_.size() - 1]);
    thin_.push_back(next);
  }
  return clouds_->holds(c, thin_[i]);
}

// Whether every slot from i on is masked and the text may end anywhere there.
bool Canvas::free_behind(std::size_t i) const { return i >= range_.lo && range_.hi == slots_.size(); }

// Whether the cloud c before slot i can be read on through the slots from there to an end.
bool Canvas::leads(std::size_t i, Id c) {
  const std::size_t from = i;
  std::vector<Id> path;
  bool out = false;
  for (;; ++i) {
    if (c == Clouds::kNone) break;
    // Behind the change the slots do not depend on the question, so all questions share the answers there.
    auto& known = i > changed_ || changed_ == kNowhere ? leads_[i] : leads_changed_[i];
    if (const bool* told = known.find(c)) {
      out = *told;
      break;
    }
    path.push_back(c);
    charge();
    if (i == from && free_behind(i))
      if (const std::vector<TokenId>* rest = clouds_->ending(c); rest && rest->size() <= slots_.size() - i) {
        out = true;
        break;
      }
    if (i >= range_.lo && i <= range_.hi)
      out = i == slots_.size() && open_ ? clouds_->alive(c) : clouds_->cloud(c).accepting;
    if (out || i >= range_.hi || (out = meets_filling(i, c))) break;
    const TokenId t = at(i);
    c = t == kMasked ? clouds_->any(c) : clouds_->token(c, t);
  }
  for (std::size_t k = 0; k < path.size(); ++k) {
    const std::size_t j = from + k;
    (j > changed_ || changed_ == kNowhere ? leads_[j] : leads_changed_[j]).emplace(path[k], out);
  }
  return out;
}

// leads() with a bound: a yes has to meet the filling, or an end, in front of slot near_.
bool Canvas::leads_near(std::size_t i, Id c) {
  const std::size_t from = i;
  std::vector<Id> path;
  bool out = false;
  for (; c != Clouds::kNone && i <= near_; ++i) {
    if (const bool* told = leads_near_[i].find(c)) {
      out = *told;
      break;
    }
    path.push_back(c);
    charge();
    if (i >= range_.lo && i <= range_.hi)
      out = i == slots_.size() && open_ ? clouds_->alive(c) : clouds_->cloud(c).accepting;
    if (out || i >= range_.hi || (out = meets_filling(i, c))) break;
    const TokenId t = at(i);
    c = t == kMasked ? clouds_->shallow(clouds_->any(c), deep_) : clouds_->token(c, t);
  }
  for (std::size_t k = 0; k < path.size(); ++k) leads_near_[from + k].emplace(path[k], out);
  return out;
}

// Whether the change fits if only `width` slots on each side of it are written anew; shown_ is then the
// filling.
bool Canvas::nearby(std::size_t width) {
  const std::size_t length = filling_->tokens.size();
  if (changed_ > length + width || changed_ + 1 > range_.hi) return false;
  // The filling is kept up to slot `from`, and met again in front of slot near_.
  const std::size_t from = std::min(changed_ - std::min(changed_, width), length);
  near_ = std::min(changed_ + 1 + width, slots_.size());
  for (auto& known : leads_near_) known.clear();
  Undo anew([&] { near_ = kNowhere; });
  if (thin_.empty()) thin_.push_back(before_[0]);
  while (thin_.size() <= from)
    thin_.push_back(clouds_->token(thin_.back(), filling_->tokens[thin_.size() - 1]));
  // Rounded up, so that there are few bounds and their clouds are shared.
  deep_ = (clouds_->depth(thin_[from]) / kDeeper + 2) * kDeeper;
  if (!leads_near(from, thin_[from])) return false;
  Filling found;
  found.tokens.assign(filling_->tokens.begin(), filling_->tokens.begin() + static_cast<std::ptrdiff_t>(from));
  found.states.assign(filling_->states.begin(),
                      filling_->states.begin() + static_cast<std::ptrdiff_t>(from) + 1);
  if (!build(from, found)) return !clouds_->seen_blind();
  shown_ = std::move(found);
  return true;
}

// Whether older clouds rule the change out. They were made when fewer slots were known, so they hold more
// texts than F. If none of their texts is left with the change, none of F is.
bool Canvas::dies() {
  if (changed_ >= wider_.size() || wider_[changed_] == kUntold) return false;
  Id c = clouds_->token(wider_[changed_], to_);
  for (std::size_t i = changed_ + 1; c != Clouds::kNone; ++i) {
    if (i > changed_ + kDies || i >= range_.hi) return false;
    if (i >= range_.lo && clouds_->cloud(c).accepting) return false;
    c = at(i) == kMasked ? clouds_->any(c) : clouds_->token(c, at(i));
  }
  return true;
}

// Finds a filling of the slots as they are, if none is kept.
void Canvas::begin_filling() {
  if (filling_) return;
  const std::size_t changed = changed_;
  const TokenId to = to_;
  change(kNowhere, kMasked);
  Filling found;
  if (range_.any && leads(0, before(0)) && show(found)) keep(std::move(found));
  change(changed, to);
}

StateId Canvas::walk(StateId s, TokenId t) {
  for (char c : vocabulary_.bytes(t)) {
    s = clouds_->parser().step(s, static_cast<uint8_t>(c));
    if (s == Parser::dead()) break;
  }
  return s;
}

// The token number `skip`, in the order of the ways, that the parser reads in state s with its captured text.
bool Canvas::next_way(std::size_t i, StateId s, std::size_t skip, Try& out) {
  bool found = false;
  clouds_->ways(clouds_->of(s), [&](Id c, RegexId r, uint32_t places, std::size_t left) {
    if (!reaches(i + 1, c)) return true;
    const std::vector<TokenId> some = clouds_->strides().stride(r, places).left[left].examples;
    for (std::size_t k = 0; k < some.size(); ++k) {
      // The examples are taken in another order at each slot, so that captured texts differ.
      const TokenId t = some[(k + i) % some.size()];
      const StateId to = walk(s, t);
      if (to == Parser::dead() || !reaches(i + 1, clouds_->of(to))) continue;
      if (skip-- > 0) continue;
      out = {t, to};
      found = true;
      return false;
    }
    return true;
  });
  return found;
}

// Finds tokens for the slots from `from` on, depth first; `out` has the tokens before. It stops after two
// steps for each slot and kTries more.
bool Canvas::build(std::size_t from, Filling& out) {
  const std::size_t n = slots_.size();
  // The number of ways tried, for each slot from `from` on.
  std::vector<std::size_t> taken;
  std::size_t tries = 0;
  // Goes back to the last slot that has another way.
  const auto back = [&] {
    while (!taken.empty()) {
      out.tokens.pop_back();
      out.states.pop_back();
      if (at(from + taken.size() - 1) == kMasked) {
        ++taken.back();
        return true;
      }
      taken.pop_back();
    }
    return false;
  };
  // This slot was not looked at yet.
  bool fresh = true;
  for (;;) {
    if (++tries > 2 * n + kTries) return false;
    const std::size_t i = out.tokens.size();
    const StateId s = out.states.back();
    if (fresh) {
      const bool accepting = i == n && open_ ? true : clouds_->parser().state(s).accepting;
      if (over(i, accepting)) return true;
      if (filling_ && (changed_ == kNowhere || i > changed_) && i < filling_->states.size() &&
          filling_->states[i] == s && filling_->tokens.size() >= range_.lo &&
          filling_->tokens.size() <= range_.hi) {
        for (std::size_t k = i; k < filling_->tokens.size(); ++k) {
          out.tokens.push_back(filling_->tokens[k]);
          out.states.push_back(filling_->states[k + 1]);
        }
        return true;
      }
      // The shortest ending, if it can be read with the real captured text.
      if (free_behind(i)) {
        const std::vector<TokenId>* rest = clouds_->ending(clouds_->of(s));
        StateId end = s;
        for (std::size_t k = 0; rest && k < rest->size() && end != Parser::dead(); ++k)
          end = walk(end, (*rest)[k]);
        if (rest && rest->size() <= n - i && clouds_->parser().state(end).accepting) {
          for (TokenId t : *rest) {
            out.tokens.push_back(t);
            out.states.push_back(walk(out.states.back(), t));
          }
          return true;
        }
      }
      if (i < range_.hi) taken.push_back(0);
    }
    bool on = false;
    Try next{};
    if (!fresh || i < range_.hi) {
      const TokenId t = at(i);
      if (t == kMasked) {
        on = next_way(i, s, taken.back(), next);
      } else {
        next = {t, walk(s, t)};
        on = next.state != Parser::dead();
      }
      if (!on) taken.pop_back();
    }
    fresh = on;
    if (on) {
      out.tokens.push_back(next.token);
      out.states.push_back(next.state);
    } else if (!back()) {
      return false;
    }
  }
}

// The kept filling with the change in it. The rest stays as it is, if the parser can still read it.
bool Canvas::splice(Filling& out) {
  if (!filling_ || changed_ >= filling_->tokens.size()) return false;
  const StateId s = walk(filling_->states[changed_], to_);
  if (s == Parser::dead()) return false;
  const auto begin = [](const auto& list, std::size_t n) {
    return std::vector(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(n));
  };
  out.tokens = begin(filling_->tokens, changed_);
  out.states = begin(filling_->states, changed_ + 1);
  out.tokens.push_back(to_);
  out.states.push_back(s);
  const std::size_t length = filling_->tokens.size();
  if (length < range_.lo || length > range_.hi) return false;
  for (std::size_t i = changed_ + 1;; ++i) {
    const StateId now = out.states.back();
    if (i == length) return (length == slots_.size() && open_) || clouds_->parser().state(now).accepting;
    if (now == filling_->states[i]) {
      out.tokens.insert(out.tokens.end(), filling_->tokens.begin() + static_cast<std::ptrdiff_t>(i),
                        filling_->tokens.end());
      out.states.insert(out.states.end(), filling_->states.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                        filling_->states.end());
      return true;
    }
    const StateId next = walk(now, filling_->tokens[i]);
    if (next == Parser::dead()) return false;
    out.tokens.push_back(filling_->tokens[i]);
    out.states.push_back(next);
  }
}

// A filling with the change: first with the kept filling's beginning, then from the start.
bool Canvas::show(Filling& out) {
  if (filling_ && changed_ < filling_->tokens.size() && to_ >= 0 && !ends(to_)) {
    const StateId s = walk(filling_->states[changed_], to_);
    if (s != Parser::dead() && leads(changed_ + 1, clouds_->of(s))) {
      out.tokens.assign(filling_->tokens.begin(),
                        filling_->tokens.begin() + static_cast<std::ptrdiff_t>(changed_));
      out.states.assign(filling_->states.begin(),
                        filling_->states.begin() + static_cast<std::ptrdiff_t>(changed_) + 1);
      out.tokens.push_back(to_);
      out.states.push_back(s);
      if (build(changed_ + 1, out)) return true;
    }
  }
  out.tokens.clear();
  out.states.assign(1, start_);
  return build(0, out);
}

// Whether the text can end at one of the places of range_, with all slots before this place filled.
bool Canvas::somewhere() {
  if (changed_ == kNowhere || to_ == kMasked) return leads(0, before(0));
  if (!ends(to_)) return leads(changed_ + 1, clouds_->token(before(changed_), to_));
  for (std::size_t i = range_.lo; i <= range_.hi; ++i)
    if (clouds_->cloud(before(i)).accepting) return true;
  return false;
}

// The order of the tests is by cost: the range, splice(), dies(), nearby(), then the clouds of all
// slots, and a filling where a cloud is blind.
Verdict Canvas::decide() {
  if (!range_.any) return Verdict::kNo;
  const bool text = changed_ != kNowhere && !ends(to_);
  if (text && vocabulary_.bytes(to_).empty()) return Verdict::kNo;
  if (text) {
    Filling quick;
    if (splice(quick)) {
      shown_ = std::move(quick);
      return Verdict::kYes;
    }
    if (to_ >= 0) {
      if (dies()) return Verdict::kNo;
      for (std::size_t k = 0; filling_ && k < std::size(kWidths); ++k)
        if (nearby(kWidths[k])) return Verdict::kYes;
    }
  }
  if (!somewhere()) return Verdict::kNo;
  Filling found;
  // Clouds that are not blind are exact, so a yes of theirs needs no filling.
  if (!show(found)) return clouds_->seen_blind() ? Verdict::kUnknown : Verdict::kYes;
  shown_ = std::move(found);
  return Verdict::kYes;
}

Verdict Canvas::possible() {
  change(kNowhere, kMasked);
  if (filling_) return Verdict::kYes;
  const Verdict out = decide();
  if (out == Verdict::kYes && shown_) keep(std::move(shown_));
  shown_.reset();
  return out;
}

Verdict Canvas::allows(std::size_t slot, TokenId t) {
  if (slots_[slot] == t) return possible();
  // A slot that is set is asked about as if it were masked.
  if (slots_[slot] != kMasked) {
    Canvas without(*this);
    without.clear(slot);
    return without.allows(slot, t);
  }
  begin_filling();
  change(slot, t);
  if (filling_ && range_.any) {
    const std::size_t length = filling_->tokens.size();
    if (ends(t) ? length >= range_.lo && length <= range_.hi : slot < length && filling_->tokens[slot] == t) {
      shown_ = filling_;
      return Verdict::kYes;
    }
  }
  return decide();
}

Verdict Canvas::set(std::size_t slot, TokenId t) {
  if (slots_[slot] == t) return possible();
  if (slots_[slot] != kMasked) {
    Canvas without(*this);
    without.clear(slot);
    const Verdict told = without.set(slot, t);
    if (told != Verdict::kYes) return told;
    put(slot, t);
    keep(std::move(without.filling_));
    return told;
  }
  const Verdict told = allows(slot, t);
  if (told != Verdict::kYes) return told;
  std::optional<Filling> shown = std::move(shown_);
  put(slot, t);
  keep(std::move(shown));
  return told;
}

// Keeps the clouds of F behind the slot as wider_: with one more token known, the new F holds no more.
void Canvas::put(std::size_t slot, TokenId t) {
  // A slot that is set is masked first, so that F is made anew from it on.
  if (slots_[slot] != kMasked) clear(slot);
  slots_[slot] = t;
  for (std::size_t i = slot + 1; i < before_.size(); ++i) wider_[i] = before_[i];
  if (before_.size() > slot + 1) before_.resize(slot + 1);
  for (std::size_t i = 0; i <= slot; ++i) leads_[i].clear();
  keep(std::nullopt);
  change(kNowhere, kMasked);
}

// With one token less known, F may hold more than the clouds in wider_, so wider_ is dropped.
void Canvas::clear(std::size_t slot) {
  if (slots_[slot] == kMasked) return;
  slots_[slot] = kMasked;
  std::fill(wider_.begin() + static_cast<std::ptrdiff_t>(slot), wider_.end(), kUntold);
  if (before_.size() > slot + 1) before_.resize(slot + 1);
  for (std::size_t i = 0; i <= slot; ++i) leads_[i].clear();
  change(kNowhere, kMasked);
}

// All ways out of the slot's cloud are asked about once, each for all of its tokens. Where clouds are
// blind, each token needs a filling: one search a way, then replays of its rest.
bool Canvas::fill_row(std::size_t slot, uint32_t* row) {
  std::fill(row, row + vocabulary_.words(), 0u);
  if (slots_[slot] != kMasked) {
    Canvas without(*this);
    without.clear(slot);
    return without.fill_row(slot, row);
  }
  const auto put = [&](TokenId t) { set_bit(row, t); };
  bool exact = true;
  const auto ask = [&](TokenId t) {
    const Verdict told = allows(slot, t);
    if (told == Verdict::kYes) put(t);
    exact = exact && told != Verdict::kUnknown;
    return told;
  };
  for (TokenId t : vocabulary_.eos()) ask(t);
  if (pad_ != kMasked && !vocabulary_.is_eos(pad_)) ask(pad_);
  change(slot, kAnyText);
  if (!range_.any) return exact;
  struct Group {
    RegexId regex;
    uint32_t places;
    std::size_t left;
  };
  std::vector<Group> groups;
  clouds_->ways(before(slot), [&](Id c, RegexId r, uint32_t places, std::size_t left) {
    if (leads(slot + 1, c)) groups.push_back({r, places, left});
    return true;
  });
  const bool blind = clouds_->seen_blind();
  exact = exact && !clouds_->lost_ways();
  std::size_t built = 0;
  for (const Group& g : groups) {
    const std::vector<TokenId>& tokens = clouds_->strides().tokens(g.regex, g.places, g.left);
    charge(static_cast<int64_t>(tokens.size() / 16));
    if (!blind) {
      for (TokenId t : tokens) put(t);
      continue;
    }
    // One filling of the way, and the tokens with which it can still be read.
    std::size_t replayed = 0;
    bool shown = false;
    std::optional<Filling> kept = filling_;
    for (TokenId t : tokens) {
      if (row[static_cast<uint32_t>(t) >> 5] >> (t & 31) & 1) continue;
      change(slot, t);
      Filling found;
      if (filling_ && slot + 1 < filling_->states.size() &&
          walk(filling_->states[slot], t) == filling_->states[slot + 1]) {
        put(t);
        continue;
      }
      if (replayed++ < kReplayed && splice(found)) {
        put(t);
        continue;
      }
      if (!shown && built < kBuilt) {
        shown = true;
        ++built;
        if (somewhere() && show(found)) {
          put(t);
          keep(std::move(found));
          continue;
        }
      }
      exact = false;
    }
    keep(std::move(kept));
  }
  change(kNowhere, kMasked);
  return exact;
}

Verdict Canvas::complete(std::vector<TokenId>& out) {
  Verdict told = possible();
  if (told != Verdict::kYes) return told;
  if (!filling_) {
    Filling found;
    if (!show(found)) return Verdict::kUnknown;
    keep(std::move(found));
  }
  range_ = range();
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
