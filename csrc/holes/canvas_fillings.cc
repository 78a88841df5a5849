// How a filling of a canvas is found. A filling holds tokens for all slots that the parser has read; canvas.h
// says what a filling proves.
//
// trace() computes the clouds from a slot to the end. Then it goes back: for an entry of the cloud behind a
// slot it finds an entry of the cloud before the slot from which a token leads there. So two passes over the
// slots find a filling, unless captured text forbids its tokens. build() then tries other tokens slot by
// slot, and traces the rest behind each.
#include <algorithm>

#include "base/undo.h"
#include "base/work.h"
#include "holes/canvas.h"

namespace structgen {

namespace {
// build() gives up after kTries steps and two more for each slot. In a search within the bounds near_ build()
// gives up after kTriesNear steps and one more for each slot: if captured text forbids what clouds allow,
// wider bounds help more than more steps.
constexpr std::size_t kTries = 400, kTriesNear = 8;
// near() follows stacks with at most this many more symbols than those of the kept filling. Deeper stacks
// make more clouds, and few fillings need them.
constexpr uint32_t kDeeper = 1;
// trace() tries this many ways, because captured text may forbid the tokens of some.
constexpr std::size_t kTurns = 12;
// show_few() reaches at most this many pairs of a slot and a state.
constexpr std::size_t kPairs = 500;
}  // namespace

Canvas::Filling Canvas::Filling::first(std::size_t n) const {
  const auto end = static_cast<std::ptrdiff_t>(n);
  return {{tokens.begin(), tokens.begin() + end}, {states.begin(), states.begin() + end + 1}};
}

void Canvas::Filling::add_rest(const Filling& of) {
  for (std::size_t i = size(); i < of.size(); ++i) add(of.tokens[i], of.states[i + 1]);
}

void Canvas::keep(std::optional<Filling> filling) {
  filling_ = std::move(filling);
  thin_.resize(1);
}

// Finds a filling without any change, if none is kept. It searches shallow stacks first.
void Canvas::begin_filling() {
  if (filling_) return;
  const std::optional<Change> before = change_;
  change({});
  if (range_.any()) {
    keep(near(0, slots_.size()));
    if (!filling_ && leads(0, this->before(0))) keep(show());
  }
  change(before);
}

StateId Canvas::read(StateId s, TokenId t) { return clouds_->parser().read(s, vocabulary_.bytes(t)); }

// Tells whether the text may end behind the tokens of the filling.
bool Canvas::ended(const Filling& f) {
  return range_.has(f.size()) &&
         ((f.size() == slots_.size() && open_) || clouds_->parser().state(f.last()).accepting);
}

// Appends the shortest ending. Returns false if the parser does not read it behind the captured text.
bool Canvas::add_ending(Filling& out) {
  const std::size_t begun = out.size();
  if (!free_behind(begun)) return false;
  const std::vector<TokenId>* const rest = ending(begun, clouds_->of(out.last()));
  if (!rest) return false;
  for (TokenId t : *rest) {
    out.add(t, read(out.last(), t));
    if (out.last() == Parser::dead()) break;
  }
  if (clouds_->parser().state(out.last()).accepting) return true;
  out = out.first(begun);
  return false;
}

// Returns one token that slot i may take behind the state s, with the state behind the token, or nothing. An
// empty slot has many such tokens, and `link` counts through them: the caller asks with the `link` of the
// last token to get the next one.
std::optional<Canvas::Next> Canvas::next(std::size_t i, StateId s, std::size_t link) {
  if (at(i) != kMasked) {
    const StateId to = read(s, at(i));
    return to == Parser::dead() ? std::nullopt : std::optional(Next{at(i), to});
  }
  // The token of the kept filling is tried first.
  if (filling_ && i < filling_->size()) {
    const TokenId t = filling_->tokens[i];
    const StateId to = read(s, t);
    if (to != Parser::dead() && leads(i + 1, clouds_->of(to)) && link-- == 0) return Next{t, to};
  }
  std::optional<Next> out;
  clouds_->links(clouds_->of(s), [&](const Clouds::Link& w) {
    if (!leads(i + 1, w.to)) return true;
    const std::vector<TokenId> some = clouds_->examples(w);
    for (std::size_t k = 0; k < some.size(); ++k) {
      // Each slot takes the examples of a link in another order. Captured texts of several slots then differ
      // more often.
      const TokenId t = some[(k + i) % some.size()];
      const StateId to = read(s, t);
      if (to == Parser::dead() || !leads(i + 1, clouds_->of(to)) || link-- > 0) continue;
      out = Next{t, to};
      return false;
    }
    return true;
  });
  return out;
}

// Appends the longest beginning of the kept filling that the parser reads and behind which the clouds lead to
// an end. If clouds do not lead to an end behind some beginning, they do not behind any longer one, so a
// binary search finds the length.
void Canvas::add_kept(Filling& out) {
  if (!filling_) return;
  Filling longest = out;
  for (std::size_t i = out.size(); i < std::min(filling_->size(), range_.hi); ++i) {
    const TokenId t = at(i) == kMasked ? filling_->tokens[i] : at(i);
    const StateId to = read(longest.last(), t);
    if (to == Parser::dead()) break;
    longest.add(t, to);
  }
  std::size_t least = longest.size() == filling_->size() && ended(longest) ? longest.size() : out.size();
  std::size_t most = longest.size();
  while (least < most) {
    const std::size_t middle = most - (most - least) / 2;
    if (leads(middle, clouds_->of(longest.states[middle])))
      least = middle;
    else
      most = middle - 1;
  }
  out = longest.first(least);
}

// Finds tokens for the slots that `out` lacks, behind which stands cloud c. The clouds of all these slots are
// known, so the search begins at the end: to an entry of the cloud behind a slot it finds an entry of the
// cloud before the slot. Returns false if captured text forbids the tokens.
bool Canvas::trace(Filling& out, CloudId c) {
  if (add_ending(out)) return true;
  const std::size_t from = out.size();
  std::vector<CloudId> way{c};
  std::size_t end = from;
  for (; !(range_.has(end) && clouds_->cloud(c).accepting) && !meets_filling(end, c); ++end) {
    if (c == Clouds::kNone || end >= std::min(near_ ? near_->stop : range_.hi, range_.hi)) return false;
    way.push_back(c = beyond(end, c));
  }
  if (clouds_->cloud(c).open) return false;
  const bool meets = !(range_.has(end) && clouds_->cloud(c).accepting);
  for (std::size_t turn = 0; turn < kTurns; ++turn) {
    // goals[k] is an entry of the cloud that stands k slots before the end.
    std::vector<Clouds::Entry> goals{meets ? clouds_->some(along(end)) : Clouds::kEnd};
    for (std::size_t i = end; i-- > from;) {
      const auto before = clouds_->source(way[i - from], at(i), goals.back(), turn);
      if (!before) return false;
      goals.push_back(*before);
    }
    while (out.size() < end && add_link(out, goals[end - out.size()], goals[end - out.size() - 1], turn)) {
    }
    if (meets && out.size() == end) add_read(out, filling_->tokens);
    if (ended(out)) return true;
    out = out.first(from);
  }
  return false;
}

// Appends a token that leads from one entry to another. Returns false if the parser reads none of the
// examples.
bool Canvas::add_link(Filling& out, Clouds::Entry from, Clouds::Entry to, std::size_t turn) {
  const std::size_t i = out.size();
  const auto add = [&](TokenId t) {
    const StateId s = read(out.last(), t);
    if (s != Parser::dead()) out.add(t, s);
    return s != Parser::dead();
  };
  if (at(i) != kMasked) return add(at(i));
  return !clouds_->links(from, [&](const Clouds::Link& w) {
    if (!clouds_->has(w.to, to)) return true;
    const std::vector<TokenId> some = clouds_->examples(w);
    // The examples are taken in another order in each slot, so that captured texts differ.
    for (std::size_t k = 0; k < some.size(); ++k)
      if (add(some[(k + (turn + 1) * i) % some.size()])) return false;
    return true;
  });
}

// Appends tokens for the slots that `out` lacks, until the parser reads no more.
void Canvas::add_read(Filling& out, const std::vector<TokenId>& tokens) {
  for (std::size_t i = out.size(); i < tokens.size(); ++i) {
    const StateId s = read(out.last(), tokens[i]);
    if (s == Parser::dead()) return;
    out.add(tokens[i], s);
  }
}

// Finds tokens for the slots that `out` lacks, depth first. Returns false if it finds none.
bool Canvas::build(Filling& out) {
  const std::size_t from = out.size();
  // For each slot behind the first `from`: the `link` with which next() was asked.
  std::vector<std::size_t> links;
  for (std::size_t tries = near_ ? near_->stop - from + kTriesNear : 2 * slots_.size() + kTries; tries > 0;
       --tries) {
    const std::size_t i = out.size();
    if (from + links.size() == i) {
      if (ended(out)) return true;
      if (keeps_end() && unchanged_from(i) && i <= filling_->size() && filling_->states[i] == out.last()) {
        out.add_rest(*filling_);
        return true;
      }
      if (trace(out, clouds_->of(out.last()))) return true;
      if (i < range_.hi) {
        add_kept(out);
        links.resize(out.size() - from);
        if (out.size() > i) continue;
        links.push_back(0);
      }
    }
    if (from + links.size() > i) {
      if (const std::optional<Next> on = next(i, out.last(), links.back())) {
        out.add(on->token, on->state);
        continue;
      }
      links.pop_back();
    }
    // Goes back to the last slot that has another token to try.
    for (;; links.pop_back()) {
      if (links.empty()) return false;
      out.remove_last();
      if (at(out.size()) == kMasked) break;
    }
    ++links.back();
  }
  return false;
}

// Returns the tokens of the kept filling before the change, and the changed token. Returns nothing if the
// parser cannot read them.
std::optional<Canvas::Filling> Canvas::begun() {
  if (!filling_ || change_->slot >= filling_->size()) return std::nullopt;
  const StateId s = read(filling_->states[change_->slot], change_->token);
  if (s == Parser::dead()) return std::nullopt;
  Filling out = filling_->first(change_->slot);
  out.add(change_->token, s);
  return out;
}

// Returns a copy of the kept filling with the changed token in its slot. Returns nothing if the parser cannot
// read these tokens.
std::optional<Canvas::Filling> Canvas::splice() {
  std::optional<Filling> out = begun();
  if (!out || !keeps_end()) return std::nullopt;
  while (out->size() < filling_->size()) {
    const std::size_t i = out->size();
    if (out->last() == filling_->states[i]) {
      out->add_rest(*filling_);
      return out;
    }
    const StateId s = read(out->last(), filling_->tokens[i]);
    if (s == Parser::dead()) return std::nullopt;
    out->add(filling_->tokens[i], s);
  }
  return ended(*out) ? out : std::nullopt;
}

// Returns a filling with the change, or nothing. It tries to keep the beginning of the kept filling before it
// builds a new one.
std::optional<Canvas::Filling> Canvas::show() {
  if (changes_text())
    if (std::optional<Filling> out = begun();
        out && leads(out->size(), clouds_->of(out->last())) && build(*out))
      return out;
  Filling out{{}, {start_}};
  return build(out) ? std::optional(std::move(out)) : std::nullopt;
}

// Returns a filling whose first `from` tokens are those of the kept filling. Its other tokens follow shallow
// stacks, and from slot `stop` on at the latest it continues with the tokens of the kept filling, or has
// ended. Returns nothing if it finds none. Sets led_.
std::optional<Canvas::Filling> Canvas::near(std::size_t from, std::size_t stop) {
  leads_near_.forget(slots_.size());
  Undo anew([&] { near_.reset(); });
  near_ = {stop, clouds_->depth(along(from)) + kDeeper};
  led_ = leads(from, along(from));
  if (!led_) return std::nullopt;
  Filling out = filling_ ? filling_->first(from) : Filling{{}, {start_}};
  return trace(out, along(from)) || build(out) ? std::optional(std::move(out)) : std::nullopt;
}

// Returns the next token that show_few() tries in slot i behind the state s, and its state, which may be
// dead. `turn` counts the tokens that were tried there. A free slot takes the tokens of the kept filling in
// this slot and beside it, then Clouds::few().
std::optional<Canvas::Next> Canvas::next_few(std::size_t i, StateId s, bool free, std::size_t& turn) {
  if (i >= range_.hi) return std::nullopt;
  if (at(i) != kMasked) return turn++ == 0 ? std::optional(Next{at(i), read(s, at(i))}) : std::nullopt;
  const std::size_t shifts[] = {i, i + 1, i - 1};
  while (turn < (free ? std::size(shifts) : 1))
    if (const std::size_t kept = shifts[turn++]; kept < filling_->size())
      return Next{filling_->tokens[kept], read(s, filling_->tokens[kept])};
  if (!free) return std::nullopt;
  const std::vector<Next>& some = clouds_->few(s);
  const std::size_t k = turn++ - std::size(shifts);
  return k < some.size() ? std::optional(some[k]) : std::nullopt;
}

// Returns a filling with the change, or nothing. Only the slots at most `width` from the change take other
// tokens than those of the kept filling. The search goes depth first, and no slot meets a state twice.
std::optional<Canvas::Filling> Canvas::show_few(std::size_t width) {
  const std::size_t slot = change_->slot, from = slot - std::min(slot, width);
  if (!filling_ || from > filling_->size()) return std::nullopt;
  Filling out = filling_->first(from);
  FlatMap<uint64_t, bool> met;
  // By slot, from slot `from` on: the number of tokens that were tried.
  std::vector<std::size_t> turns{0};
  while (met.size() < kPairs) {
    charge();
    const std::size_t i = out.size();
    const std::optional<Next> on = next_few(i, out.last(), i <= slot + width, turns.back());
    if (!on) {
      turns.pop_back();
      if (turns.empty()) return std::nullopt;
      out.remove_last();
      continue;
    }
    if (on->state == Parser::dead() || !met.emplace(uint64_t{i} << 32 | on->state.v, true).second) continue;
    out.add(on->token, on->state);
    turns.push_back(0);
    if (i < slot) continue;
    if (ended(out) || add_ending(out)) return out;
    if (keeps_end() && i < filling_->size() && filling_->states[i + 1] == on->state) {
      out.add_rest(*filling_);
      return out;
    }
  }
  return std::nullopt;
}

// Tells whether the change fits if only `width` slots on each side of it get new tokens. The filling that
// shows this becomes shown_.
bool Canvas::nearby(std::size_t width) {
  const std::size_t slot = change_->slot, length = filling_->size();
  if (slot > length + width || slot + 1 > range_.hi) return false;
  const std::size_t from = std::min(slot - std::min(slot, width), length);
  shown_ = near(from, std::min(slot + 1 + width, slots_.size()));
  return shown_ || (led_ && !clouds_->seen_blind());
}

}  // namespace structgen
