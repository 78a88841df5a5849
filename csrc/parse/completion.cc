// How a shortest text that completes a state is found; completion.h says who asks for it.
//
// The problem. A budget needs the shortest text that ends what was begun. Rules refer to each other in
// circles, and their alternatives appear only when they are expanded, so no table of lengths can be
// computed beforehand.
//
// The idea. A depth-first search keeps what it learns. rule() tries the alternatives of a rule in the order
// of the text of their own terminals, the least text first, and stops when the next alternative cannot be
// shorter. Inside the search for a rule, the same rule counts as a rule without texts: a shortest derivation
// has no rule within itself (Knuth 1977). Behind `{"a": [`, in a schema whose items are objects of the same
// kind:
//
//     item()        the regex at hand, then its stacks, symbol by symbol: stack()
//     rule(items)   alternatives `]` (1 byte) and item (`{`, 1 byte, and more): `]` is tried first
//     best          `]`; the other one needs at least 1 byte more (floor()), so it is not looked into
//     then          the rest of the stack: `}`. The completion is `]}`
//
// A symbol has several shortest texts if lexemes may run into each other: one for each pending
// (parse/alive.h) behind the text. Among texts of one length the first in the order of bytes wins, so
// there is one answer.
//
// What the search misses. A rule that is being searched is open. Alternatives that lead back into an open
// rule are skipped. An answer that was found with such a skip is marked with the smallest depth of an open
// rule that was skipped (low). An answer goes to rules_ if no rule further out was skipped. Otherwise the
// answer is a Partial, which is forgotten when the skipped rule is closed (completion_rules.cc). If the
// search finds nothing although there is a text, because rules need each other in a circle, settle() computes
// the least fixpoint over the rules that were met.
//
// Rules without an end. An array whose items are compared has another rule behind each item. A search that
// follows them deeper and deeper never returns where no item brings the end nearer: of oneOf [{items: M},
// {items: integers, contains: large, unique}], `[7,0,1,2,...` is in both as long as the items differ. So
// rule() searches within a number of bytes. This number doubles until no text that was cut off (cut) can be
// shorter than the best text.
//
// The questions. Each answer has one shortest text for each pending behind it.
//
//     question     shortest texts of                    asks                            kept
//     of()         a state                              all()                           for the epoch
//     all()        all items of a state                 item(), settle()                -
//     item()       a regex, then its stacks             stack(), labelled()             -
//     stack()      a set of stacks                      sequence()                      where stacks join
//     sequence()   symbols in a row                     symbol(), read(), labelled()    -
//     labelled()   a regex and the reader of its label  rule(), for each literal        -
//     rule()       a rule, by deeper and deeper limits  within()                        -
//     within()     a rule, within a number of bytes     known(), search()               rules_, or found_
//     search()     the alternatives of a rule           sequence(); tie() for a text    -
//                                                       that is as short
//     settle()     rules that need each other           sequence(), as long as some     settled_
//                                                       answer changes
//
// Invariants.
// - A text that is returned completes the state: the parser reads it to its end.
// - What is kept is a function of its key. No answer depends on what was asked before.
// - If text is captured, the search tells this text to its reader. If the text is not known, the search meets
//   poison, and text_matters() tells the caller.
//
// Rejected. Dijkstra over rules: the alternatives of all rules would have to be known before the first
// answer. Exact lengths without texts: a budget has to cut the text into tokens, so it needs the text.
#include "parse/completion.h"

#include <algorithm>

#include "base/depth.h"
#include "base/error.h"
#include "base/told.h"
#include "base/undo.h"
#include "base/work.h"

namespace structgen {

namespace {
// The units of work that are charged for each stack frame of an open rule that an exception leaves.
constexpr int64_t kFrameWork = 40;
// choices() bounds each literal together with the value behind it in sets of at most this many literals. In
// larger sets choices() bounds the literal alone.
constexpr std::size_t kFewChoices = 64;
}  // namespace

// Returns the literals of a set, sorted by Choice::least. In a set of more than kFewChoices literals, `least`
// does not count the value behind the literal.
std::vector<Completion::Choice> Completion::choices(const LiteralSet& set, RuleId reader) {
  RegexArena& regexes = parser_.regexes();
  const LiteralTable& table = regexes.tables().table(set.table);
  std::vector<Choice> out;
  for (uint32_t i = set.lo; i < set.hi; ++i) {
    if (!regexes.tables().any_allowed(set.subset, i, i + 1)) continue;
    std::string text = written(std::string_view(table.texts[i]).substr(set.depth), regexes.spelling());
    text += static_cast<char>(regexes.spelling().end);
    const uint32_t least = static_cast<uint32_t>(text.size());
    out.push_back({std::move(text), table.labels[i], least});
  }
  if (out.size() > 1 && out.size() <= kFewChoices)
    for (Choice& c : out) c.least += floor(reader, Reading::of_label(c.label), 0);
  std::ranges::stable_sort(out, {}, &Choice::least);
  return out;
}

// Returns the shortest texts of a labelled regex with the text of the reader behind it. The literal decides
// what the reader reads, so each literal is tried with its reader: for {"id": 1, "description": "..."} the
// shortest pair of name and value wins, not the shortest name. Of equally short pairs the first pair in the
// order of bytes wins.
Completion::ShortTexts Completion::labelled(RegexId r, RuleId reader) {
  check_depth();
  RegexArena& regexes = parser_.regexes();
  ShortTexts best;
  const auto read = [&](const std::string& text, uint32_t label) {
    for (ShortText& w :
         behind(text.size(), [&] { return rule(reader, Reading::of_label(label), Alive::kClear); }))
      keep(best, w.to, text + w.text, {});
  };
  if (regexes.node(r).kind != RegexKind::kLiteralSet) {
    const std::string text = shortest(r);
    const RegexNode& end = regexes.node(regexes.run(r, text));
    if (end.kind == RegexKind::kDone) read(text, end.min);
    return best;
  }
  const LiteralSet set = regexes.literal_set_of(r);
  if (set.escape != 0) {
    // Inside an escape the next byte decides which literals are left, so each byte is tried.
    regexes.live(r).for_each([&](uint8_t b) {
      for (ShortText& w : labelled(regexes.step(r, b), reader))
        keep(best, w.to, static_cast<char>(b) + w.text, {});
    });
    return best;
  }
  for (const Choice& c : choices(set, reader)) {
    if (!best.empty() && c.least >= best[0].text.size()) break;
    read(c.text, c.label);
  }
  return best;
}

// Appends a text to a capture. Does nothing if no text is captured or the captured text is unknown.
void Completion::capture(CaptureId& c, std::string_view text) {
  if (c.v <= 1) return;
  for (char b : text) c = parser_.captures().append(c, static_cast<uint8_t>(b));
}

// Returns the shortest texts of one symbol that begins with the pending `from`.
Completion::ShortTexts Completion::symbol(Symbol s, Pending from) {
  if (s.kind() == Symbol::kRule) {
    ShortTexts found = rule(s.rule_id(), Reading{}, from);
    if (parser_.alive().plain(s.rule_id()) || from == Alive::kClear) return found;
    // In a grammar without lexemes the texts of a rule do not depend on the pending. So the shortest texts
    // are computed once, and those whose first byte the pending forbids are dropped.
    const RegexId follow = parser_.alive().follow(from);
    std::erase_if(found, [&](const ShortText& w) {
      return !w.text.empty() && follow != RegexArena::empty() &&
             parser_.regexes()
                 .byte_set(parser_.regexes().node(follow).a)
                 .has(static_cast<uint8_t>(w.text[0]));
    });
    return found;
  }
  std::vector<Alive::Step> steps;
  parser_.alive().steps(s, from, steps);
  ShortTexts out;
  for (const Alive::Step& step : steps)
    if (step.regex == RegexArena::poison())
      now_.poison = true;
    else
      keep(out, step.to, shortest(step.regex), {});
  return out;
}

Completion::ShortTexts Completion::read(RuleId reader, CaptureId& c, Pending from) {
  Reading reading;
  reading.kind = Reading::kUnknown;
  if (c.v > 1) {
    CaptureId outer;
    reading.kind = Reading::kText;
    reading.text = parser_.captures().finish(c, outer);
    c = outer;
  }
  return rule(reader, reading, from);
}

Completion::ShortTexts Completion::sequence(std::span<const Symbol> symbols, Pending from, CaptureId c) {
  check_depth();
  ShortTexts now{{from, "", c}};
  for (std::size_t i = 0; i < symbols.size() && !now.empty(); ++i) {
    const Symbol s = symbols[i];
    if (s.kind() == Symbol::kCapture) {
      for (ShortText& w : now) w.capture = parser_.captures().start(w.capture);
      continue;
    }
    const bool labels =
        s.kind() == Symbol::kTerminal && parser_.regexes().node(s.regex()).labelled && i + 1 < symbols.size();
    ShortTexts next;
    for (const ShortText& w : now) {
      if (s.kind() == Symbol::kTerminal && s.regex() == RegexArena::poison()) {
        now_.poison = true;
        continue;
      }
      CaptureId here = w.capture;
      const std::span<const Symbol> rest = symbols.subspan(i + (labels ? 2 : 1));
      const ShortTexts parts = behind(w.text.size() + own_text(rest), [&] {
        return labels                        ? labelled(s.regex(), symbols[i + 1].rule_id())
               : s.kind() == Symbol::kReader ? read(s.rule_id(), here, w.to)
                                             : symbol(s, w.to);
      });
      for (const ShortText& part : parts) {
        CaptureId after = here;
        capture(after, part.text);
        if (w.text.size() + part.text.size() <= kMaxText) keep(next, part.to, w.text + part.text, after);
      }
    }
    if (labels) ++i;
    now = std::move(next);
  }
  return now;
}

// Returns f(), which searches behind `bytes` bytes that are written already. So f() runs with less room, by
// `bytes` bytes. While f() runs, now_.cut counts from behind these bytes; afterwards now_.cut counts from in
// front of them again.
template <class F>
Completion::ShortTexts Completion::behind(std::size_t bytes, F&& f) {
  const uint32_t room = now_.room, cut = std::exchange(now_.cut, kNone);
  now_.room -= static_cast<uint32_t>(std::min<std::size_t>(room, bytes));
  ShortTexts out = f();
  now_.cut = static_cast<uint32_t>(std::min<uint64_t>(cut, uint64_t{now_.cut} + bytes));
  now_.room = room;
  return out;
}

// Returns the shortest texts of a set of stacks. It goes down symbol by symbol, and branches where the stacks
// of the set have different tops. While a capture is open nothing is remembered, because the result depends
// on the captured text.
Completion::ShortTexts Completion::stack(StackId s, Pending from, CaptureId c) {
  check_depth();
  ShortTexts done, now{{from, "", c}};
  while (!now.empty()) {
    // The number of steps is limited for each symbol of a stack, not for the whole stack.
    if (depth_ == 0 && !settling_) steps_ = 0;
    for (const ShortText& w : now) work_ += 1 + w.text.size() / 256;
    charge(static_cast<int64_t>(4 * now.size()));
    if (parser_.stacks().has_end(s)) {
      for (ShortText& w : now) keep(done, Alive::kClear, std::move(w.text), {});
      break;
    }
    const auto entries = parser_.stacks().entries(s);
    if (entries.size() != 1) {
      for (const ShortText& w : now) {
        const bool memo = w.capture.v <= 1 && !settling_;
        const Key key{s.v, w.to};
        ShortTexts best;
        if (const Kept::Entry* known = memo ? stacks_.find(key) : nullptr) {
          best = Kept::texts(*known);
          now_.poison = now_.poison || known->poison;
        } else {
          const bool poison_before = now_.poison;
          now_.poison = false;
          for (const StackEntry& e : entries) {
            const Symbol top = e.top;
            for (const ShortText& first : sequence({&top, 1}, w.to, w.capture))
              for (const ShortText& rest : stack(e.rest, first.to, first.capture))
                keep(best, Alive::kClear, first.text + rest.text, {});
          }
          if (memo && !best.empty() && best[0].text.size() < 4096) stacks_.add(key, best, now_.poison);
          now_.poison = now_.poison || poison_before;
        }
        for (const ShortText& rest : best) keep(done, Alive::kClear, w.text + rest.text, {});
      }
      break;
    }
    const StackEntry e = entries[0];
    const Symbol top = e.top;
    ShortTexts next;
    for (const ShortText& w : now)
      for (const ShortText& part : sequence({&top, 1}, w.to, w.capture))
        keep(next, part.to, w.text + part.text, part.capture);
    for (const ShortText& w : next)
      if (w.text.size() > 64u * kMaxText)
        throw Error(ErrorKind::kBudgetExceeded, "the shortest completion is too long");
    now = std::move(next);
    s = e.rest;
  }
  return done;
}

// Returns the shortest texts of an item: what is left of its regex, then its stacks.
Completion::ShortTexts Completion::item(const Item& i) {
  if (i.regex == RegexArena::poison()) {
    now_.poison = true;
    return {};
  }
  ShortTexts best;
  CaptureId c = i.capture;
  if (!parser_.regexes().node(i.regex).labelled) {
    const std::string text = shortest(i.regex);
    capture(c, text);
    for (const ShortText& w : stack(i.stack, Alive::kClear, c)) keep(best, w.to, text + w.text, {});
    return best;
  }
  for (const StackEntry& e : parser_.stacks().entries(i.stack)) {
    for (const ShortText& first : labelled(i.regex, e.top.rule_id())) {
      CaptureId here = c;
      capture(here, first.text);
      for (const ShortText& rest : stack(e.rest, first.to, here))
        keep(best, rest.to, first.text + rest.text, {});
    }
  }
  return best;
}

Completion::ShortTexts Completion::settled(const Key& key) {
  const auto [it, fresh] = settled_.try_emplace(key);
  if (fresh) todo_.push_back(key);
  std::vector<Key>& users = it->second.users;
  if (at_ && std::find(users.begin(), users.end(), *at_) == users.end()) users.push_back(*at_);
  return it->second.texts;
}

void Completion::settle() {
  Alternatives alts;
  while (!todo_.empty()) {
    if (++steps_ > 10 * kMaxSteps)
      throw Error(ErrorKind::kBudgetExceeded, "the shortest completion takes too long to find");
    ++work_;
    charge(10);
    const Key key = todo_.back();
    todo_.pop_back();
    settled_[key].waiting = false;
    at_ = &key;
    alts.symbols.clear();
    alts.ends.clear();
    productions_.expand(RuleId{static_cast<uint32_t>(key.rule >> 32)}, Reading{}, alts);
    const ShortTexts before = settled_[key].texts;
    ShortTexts best = before;
    for (const std::span<const Symbol> symbols : alts.each()) keep_all(best, sequence(symbols, key.from, {}));
    at_ = nullptr;
    const auto same = [](const ShortText& x, const ShortText& y) { return x.to == y.to && x.text == y.text; };
    if (std::equal(best.begin(), best.end(), before.begin(), before.end(), same)) continue;
    bytes_ += std::max(size_of(best), size_of(before)) - size_of(before);
    Settled& known = settled_[key];
    known.texts = std::move(best);
    for (const Key& user : known.users) {
      Settled& u = settled_[user];
      if (u.waiting) continue;
      u.waiting = true;
      todo_.push_back(user);
    }
  }
}

// Returns the shortest texts that complete a state. If the search finds none, settle() computes a fixpoint.
Completion::ShortTexts Completion::all(StateId s) {
  ShortTexts out;
  for (const Item& i : parser_.items(s)) keep_all(out, item(i));
  if (!out.empty()) return out;
  settling_ = true;
  try {
    do {
      settle();
      for (const Item& i : parser_.items(s)) keep_all(out, item(i));
    } while (!todo_.empty());
    // An exception leaves the fixpoint half computed, so it is dropped as a whole.
  } catch (...) {
    settled_.clear();
    todo_.clear();
    at_ = nullptr;
    settling_ = false;
    throw;
  }
  settling_ = false;
  settled_poison_ = settled_poison_ || now_.poison;
  now_.poison = settled_poison_;
  return out;
}

void Completion::begin_search() {
  steps_ = 0;
  depth_ = 0;
  now_ = {};
  ties_ = false;
  open_.clear();
  found_.clear();
  until_.clear();
  productions_.start_search();
}

uint32_t Completion::length(RuleId r) {
  begin_search();
  const auto search = [&] {
    const ShortTexts found = rule(r, Reading{}, Alive::kClear);
    return found.empty() ? kNone : static_cast<uint32_t>(found[0].text.size());
  };
  return told(search).value_or(kNone);
}

uint32_t Completion::length(RegexId r) {
  return told([&] { return static_cast<uint32_t>(shortest(r).size()); }).value_or(kNone);
}

const std::string& Completion::of(StateId s) {
  const auto [it, fresh] = states_.try_emplace(s.v);
  if (!fresh || parser_.state(s).accepting) return it->second;
  begin_search();
  try {
    ShortTexts all = this->all(s);
    if (all.empty()) throw Error(ErrorKind::kBudgetExceeded, "no completion was found");
    if (now_.poison)
      tainted_states_.insert(s.v);
    else
      tainted_states_.erase(s.v);
    std::string& out = states_[s.v] = std::move(all[0].text);
    out.shrink_to_fit();
    bytes_ += size_of(out);
    return out;
  } catch (...) {
    states_.erase(s.v);
    // The search may have failed before it met poison, so the state counts as one that met it.
    tainted_states_.insert(s.v);
    // Leaving the stack frames of all open rules takes time, too.
    meter.spend(kFrameWork * depth_);
    throw;
  }
}

}  // namespace structgen
