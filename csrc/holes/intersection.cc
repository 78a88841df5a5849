// How the alternatives of an intersection are found; intersection.h has the construction and its source.
//
// An example. S -> "a" S | "" and the regex `(aa)*` with the derivatives 0 (even, may end) and 1 (odd). A
// rule of the intersection is (rule, from, to):
//
//     (S, 0, end)     "a" leads from 0 to 1, then (S, 1, end); or nothing, because 0 may end
//     (S, 1, end)     "a" leads from 1 to 0, then (S, 0, end). No empty alternative: 1 may not end
//
// go() reads one alternative of the base from the left and keeps the place that it has reached. On the way it
// makes the symbols of the intersection. go() adds the new alternative if the place behind the alternative is
// the place that was asked for. A terminal is read between two places: between() returns those texts of the
// terminal that lead from the derivative of one place to that of the other, or the terminal itself if all its
// texts do. So a terminal that the regex does not restrict keeps its masks.
//
// A set of literals with labels (property names) is split by the derivatives to which the literals lead. A
// reader is told the captured text as Facts::readings() gives it. If two items have to be equal and one of
// them is not known, the condition is refused with an error, because a "no" has to be certain.
//
// Invariants.
// - An alternative is given only if facts say that a text of the rule is read by this alternative, so no rule
//   is a dead end.
// - The texts of (rule, from, to) are exactly the rule's texts that lead the regex from `from` to `to`.
//
// Costs. The intersection has at most one rule for each rule of the grammar and each pair of derivatives
// between which a text of this rule leads. The lazy languages "from here to there" unfold a byte at a time.
//
// Rejected. Intersecting each terminal and checking the rest at the end of the text: masks would allow tokens
// behind which the text cannot be completed. The regex as a second parser beside the first parser: neither
// parser sees the dead ends of the other.
#include "holes/intersection.h"

#include <algorithm>
#include <memory>

#include "base/depth.h"
#include "base/error.h"
#include "base/flat_map.h"
#include "base/undo.h"
#include "base/work.h"
#include "holes/leading.h"

namespace structgen {

namespace {
// reads_whole() answers no if it would visit more pairs (derivative, spot) than this.
constexpr std::size_t kMostPairs = 1u << 12;
// The parser that reads proofs is made anew when its states take more bytes than this.
constexpr std::size_t kReaderBytes = 16u << 20;
// bound() compares the bounds behind all labels of a reader if there are at most this many.
constexpr std::size_t kFewLabels = 64;

// The aim of a Leading (holes/leading.h): a text must lead to exactly this derivative.
struct Derivative {
  RegexId regex;
  bool met(RegexArena&, RegexId at) const { return at == regex; }
  friend auto operator<=>(const Derivative&, const Derivative&) = default;
};

// The languages of the texts that lead from one derivative to another, by pair of derivatives.
struct AllLeads : RegexCache {
  explicit AllLeads(RegexArena& regexes) : lazy(regexes.define<Leading<Derivative>>()) {}
  // The definition of these lazy languages. The arena owns it.
  Leading<Derivative>& lazy;
  std::size_t byte_size() const override { return lazy.byte_size(); }
};

bool same_kinds(const Alternatives& a, const Alternatives& b) {
  return a.assumed.empty() && b.assumed.empty() && a.ends == b.ends &&
         std::equal(a.symbols.begin(), a.symbols.end(), b.symbols.begin(), b.symbols.end(),
                    [](Symbol x, Symbol y) { return x.kind() == y.kind(); });
}

RegexId leads(RegexArena& regexes, RegexId from, RegexId to) {
  return regexes.cache<AllLeads>(regexes).lazy.make(regexes, from, {to});
}
}  // namespace

Intersection::Intersection(RegexArena& regexes, Productions& base, RuleId root, bool lexed, RegexId whole,
                           std::shared_ptr<const void> owner)
    : FactBase(regexes, base, {regexes, whole, base.traits().bordered}, Facts::Aim::kIntersection, false,
               kReaderBytes),
      base_(base),
      owner_(std::move(owner)),
      root_(root),
      lexed_(lexed) {
  triple({root_, places_.of(path_.first(), Alive::kClear), kEnd});
}

Verdict Intersection::possible() {
  const Facts::Found found = facts_->ask(facts_->head(root_), places_.of(path_.first(), Alive::kClear));
  if (any_done(found.exits, kEnd)) return Verdict::kYes;
  return found.unsure ? Verdict::kUnknown : Verdict::kNo;
}

Symbol Intersection::triple(const Triple& t) {
  const uint64_t h = mix(mix(mix(t.told, t.rule.v), mix(t.from.v, t.to.v)), mix(t.label, t.labels));
  const uint32_t n = triple_index_.number(h, triples_, t);
  if (n > kMaxNumber) throw Error(ErrorKind::kBudgetExceeded, "the grammar has too many rules");
  const bool known = t.told == Triple::kNothing || t.told == Triple::kOneLabel;
  return known ? Symbol::rule(RuleId{n}) : Symbol::reader(RuleId{n});
}

const Intersection::Reads& Intersection::reads(RegexId r, Spot from) {
  return remember(reads_, {r.v, from}, [&] {
    const auto exits = facts_->stretches().exits(r, from);
    return Reads{{exits.begin(), exits.end()}, reads_whole(r, from)};
  });
}

// Tells whether the path reads every text of the regex. The answer is no, too, if finding it out takes too
// many steps.
bool Intersection::reads_whole(RegexId r, Spot from) {
  if (const auto known = facts_->stretches().reads_all(r, from)) return *known;
  std::vector<std::pair<RegexId, Spot>> todo{{r, from}};
  const auto pair = [](RegexId d, Spot s) { return static_cast<uint64_t>(d.v) << 32 | s; };
  FlatMap<uint64_t, bool> seen;
  seen.emplace(pair(r, from), true);
  // The search is breadth first, because a byte that the path cannot read mostly comes early.
  for (std::size_t i = 0; i < todo.size(); ++i) {
    const auto [d, s] = todo[i];
    const bool all = facts_->stretches().steps(d, s, [&](uint8_t, RegexId behind, Spot to, bool first) {
      if (first && seen.emplace(pair(behind, to), true).second) todo.push_back({behind, to});
    });
    if (!all || seen.size() > kMostPairs) return false;
  }
  return true;
}

// Returns the texts of a regex that lead from one spot to another. If `to` is the only exit at which the
// whole text may end, these texts match what is left of the condition; if it is the only exit at which the
// text may not end, they do not match it. Masks of such regexes cost less than those of leads().
//     condition any* foo any*, regex any{0,80}"      to the end: any{0,80}" & any* foo any*
//                                                    elsewhere:  any{0,80}" & ~(any* foo any*)
RegexId Intersection::between(RegexId r, Spot from, Spot to) {
  const Reads& all = reads(r, from);
  const bool ends = path_.ends(to);
  const auto other = [&](const Stretches::Exit& e) { return e.spot != to; };
  const auto rival = [&](const Stretches::Exit& e) { return other(e) && path_.ends(e.spot) == ends; };
  if (std::ranges::any_of(all.exits, rival) || !(all.whole || ends))
    return regexes_.both(r, leads(regexes_, path_.state(from), path_.state(to)));
  // The empty text does not move on the path, so it counts only if `to` is the spot where the regex begins.
  const bool every = all.whole && std::ranges::none_of(all.exits, other);
  const RegexId left = path_.state(from);
  const RegexId read = every ? r : ends ? regexes_.both(r, left) : regexes_.minus(r, left);
  return regexes_.nullable(r) && from != to ? regexes_.minus(read, RegexArena::epsilon()) : read;
}

std::span<const LexemePart> Intersection::lexeme(uint32_t number, uint32_t context) {
  return remember(parts_, {number, context}, [&] {
    const auto [lexeme, from, to, follow] = lexemes_[number];
    std::vector<LexemePart> parts;
    for (const LexemePart& part : base_.lexeme(lexeme, context)) {
      if (part.follow.v != follow) continue;
      const RegexId some = between(part.regex, from, to);
      if (!regexes_.is_empty(some)) parts.push_back({some, part.follow});
    }
    return parts;
  });
}

// Returns the places at which texts of a head end that begin at `from`. Sets unsure_ if there may be more.
std::vector<PlaceId> Intersection::exits(Facts::Head head, At from) {
  const Facts::Found found = facts_->ask(head, from);
  unsure_ = unsure_ || found.unsure;
  return {found.exits.begin(), found.exits.end()};
}

// For each exit, appends a rule or reader to the new alternative and goes on with the symbols behind it.
// Behind the last symbol of an alternative only the exit `copy.to` counts.
void Intersection::put(const Symbol* s, const Triple& what, std::span<const At> exits, uint32_t captures,
                       Copy& copy) {
  Triple t = what;
  if (copy.is_last(s)) {
    t.to = copy.to;
    if (any_done(exits, copy.to)) copy.add(triple(t));
    return;
  }
  for (At e : exits) {
    t.to = e;
    go_behind(triple(t), s + 1, e, captures, copy);
  }
}

// Appends a rule. The rule's triple begins at the place without a pending, so that all places of this spot
// share one triple; the parser itself applies the pending to the first byte. If the rule reads the empty
// text, the pending stays in force behind it.
void Intersection::put_rule(const Symbol* s, At at, std::span<const At> exits, uint32_t captures,
                            Copy& copy) {
  const Triple t{s->rule_id(), unrestricted(at), {}};
  if (t.from == at || (copy.is_last(s) && copy.to == kEnd)) return put(s, t, exits, captures, copy);
  const std::span<const At> known = facts_->ask(facts_->head(copy.asked(s)), t.from).exits;
  const auto reached = [&](At e) { return std::ranges::find(known, e) != known.end(); };
  for (At e : exits) {
    if (reached(e)) put(s, t, {&e, 1}, captures, copy);
    const At anything = unrestricted(e);
    if (anything == e || places_.spot(e) != places_.spot(at) || !reached(anything)) continue;
    if (copy.is_last(s) && !done(e, copy.to)) continue;
    Triple nothing = t;
    nothing.to = anything;
    go_behind(triple(nothing), s + 1, e, captures, copy);
  }
}

// Reads the symbol s from the place `at` on, then by recursion the symbols behind it.
void Intersection::go(const Symbol* s, At at, uint32_t captures, Copy& copy) {
  check_depth();
  charge(4);
  if (s == copy.end) {
    if (done(at, copy.to)) copy.out.add(copy.made);
    return;
  }
  switch (s->kind()) {
    case Symbol::kNote: return go_behind(*s, s + 1, at, captures, copy);
    case Symbol::kCapture: return go_behind(*s, s + 1, at, facts_->opened(captures, at), copy);
    case Symbol::kAfter:
    case Symbol::kFollow: {
      std::vector<Alive::Step> steps;
      alive_.steps(*s, places_.pending(at), steps);
      return go_behind(*s, s + 1, places_.of(places_.spot(at), steps.front().to), captures, copy);
    }
    case Symbol::kLimit:
      throw Error(ErrorKind::kGrammar, "a condition on the whole text and max_tokens exclude each other");
    case Symbol::kTerminal: return go_terminal(s, at, captures, copy);
    case Symbol::kLexeme: return go_lexeme(s, at, captures, copy);
    case Symbol::kRule: return go_rule(s, at, captures, copy);
    case Symbol::kReader: return go_reader(s, at, captures, copy);
  }
}

void Intersection::go_terminal(const Symbol* s, At at, uint32_t captures, Copy& copy) {
  const RegexId r = s->regex();
  if (r == RegexArena::poison()) return copy.add(*s);
  if (regexes_.node(r).labelled) return go_set(s, at, captures, copy);
  const Spot from = places_.spot(at);
  // Exits are computed for the terminal without the first bytes that the pending forbids. The new symbol
  // keeps these bytes, because the parser of the intersection applies the pending, too.
  const RegexId some = alive_.restricted(r, alive_.follow(places_.pending(at)));
  const std::vector<Stretches::Exit>& exits = reads(some, from).exits;
  if (copy.is_last(s) && copy.to == kEnd) return go_last_terminal(r, exits, from, copy);
  for (const Stretches::Exit& e : exits)
    go_behind(Symbol::terminal(between(r, from, e.spot)), s + 1, places_.of(e.spot, Alive::kClear), captures,
              copy);
  if (regexes_.nullable(r)) go(s + 1, at, captures, copy);
}

// Adds the last terminal of an alternative. This terminal may end wherever the whole text may end, so it is
// intersected with what is left of the regex.
void Intersection::go_last_terminal(RegexId r, std::span<const Stretches::Exit> exits, Spot from,
                                    Copy& copy) {
  const auto ends = [&](const Stretches::Exit& e) { return path_.ends(e.spot); };
  const bool nothing = regexes_.nullable(r) && path_.ends(from);
  if (!nothing && !std::ranges::any_of(exits, ends)) return;
  const bool all =
      reads(r, from).whole && std::ranges::all_of(exits, ends) && (!regexes_.nullable(r) || nothing);
  copy.add(Symbol::terminal(all ? r : regexes_.both(r, path_.state(from))));
}

struct Intersection::Literals {
  RegexId set;
  // The reader that is told the label, and the spot before the literals.
  const Symbol* reader;
  Spot from;
};

// Adds a labelled set of literals with its reader. Two literals stay in one set if all spellings of both lead
// to one spot and their readers lead to the same places. Every other literal becomes a terminal of its own.
void Intersection::go_set(const Symbol* s, At at, uint32_t captures, Copy& copy) {
  const Literals set{s->regex(), s + 1, places_.spot(at)};
  if (copy.is_last(s) || set.reader->kind() != Symbol::kReader ||
      regexes_.node(set.set).kind != RegexKind::kLiteralSet)
    throw Error(ErrorKind::kSchemaTooComplex, "a label that nobody reads");
  const Reads& all = reads(set.set, set.from);
  std::map<uint32_t, std::vector<Spot>> spots;  // by label
  for (const Stretches::Exit& e : all.exits)
    if (e.label != 0) spots[e.label - 1].push_back(e.spot);
  // The labels of the literals that stay in one set: by the spot behind the literal, and by the places behind
  // its reader.
  std::map<std::pair<Spot, std::vector<At>>, std::vector<uint32_t>> together;
  for (const auto& [label, at_spots] : spots) {
    if (!all.whole || at_spots.size() != 1) {
      for (Spot to : at_spots) go_apart(set, label, to, captures, copy);
      continue;
    }
    std::vector<At> behind = exits(facts_->reader(set.reader->rule_id(), Reading::of_label(label)),
                                   places_.of(at_spots[0], Alive::kClear));
    std::sort(behind.begin(), behind.end());
    if (copy.is_last(set.reader)) behind.assign(any_done(behind, copy.to) ? 1 : 0, copy.to);
    if (!behind.empty()) together[{at_spots[0], std::move(behind)}].push_back(label);
  }
  for (const auto& [key, labels] : together) {
    Triple reader{set.reader->rule_id(), places_.of(key.first, Alive::kClear), copy.to, Triple::kLabels};
    reader.labels = numbered(label_set_index_, label_sets_, labels, labels);
    copy.made.push_back(Symbol::terminal(regexes_.with_labels(set.set, labels, true)));
    if (copy.is_last(set.reader))
      copy.add(triple(reader));
    else
      put(set.reader, reader, key.second, captures, copy);
    copy.made.pop_back();
  }
}

// Adds one literal, in those of its spellings that lead to the spot `to`.
void Intersection::go_apart(const Literals& set, uint32_t label, Spot to, uint32_t captures, Copy& copy) {
  const RuleId reader = set.reader->rule_id();
  const At begin = places_.of(to, Alive::kClear);
  const std::vector<At> behind = exits(facts_->reader(reader, Reading::of_label(label)), begin);
  copy.made.push_back(
      Symbol::terminal(regexes_.both(regexes_.with_labels(set.set, {&label, 1}, false),
                                     leads(regexes_, path_.state(set.from), path_.state(to)))));
  put(set.reader, {reader, begin, {}, Triple::kOneLabel, label}, behind, captures, copy);
  copy.made.pop_back();
}

// Adds a lexeme whose text leads from one spot to another, as a new lexeme of the intersection (lexeme()).
void Intersection::go_lexeme(const Symbol* s, At at, uint32_t captures, Copy& copy) {
  std::vector<Alive::Step> steps;
  alive_.steps(*s, places_.pending(at), steps);
  const Spot from = places_.spot(at);
  for (const Alive::Step& part : steps) {
    if (part.regex == RegexArena::poison() || part.regex == RegexArena::empty()) continue;
    for (const Stretches::Exit& e : reads(part.regex, from).exits) {
      const Lexeme key{s->number(), from, e.spot, alive_.follow(part.to).v};
      go_behind(Symbol::lexeme(numbered(lexeme_index_, lexemes_, key, key)), s + 1,
                places_.of(e.spot, part.to), captures, copy);
    }
  }
}

void Intersection::go_rule(const Symbol* s, At at, uint32_t captures, Copy& copy) {
  put_rule(s, at, exits(facts_->head(copy.asked(s)), at), captures, copy);
}

// Adds a reader of captured text, as one triple whatever text it is told. If the captured text has a few
// possible values and only some lead to an exit, the captured terminal is narrowed to these.
void Intersection::go_reader(const Symbol* s, At at, uint32_t captures, Copy& copy) {
  const uint32_t open = captures == 0 ? 0 : facts_->outer(captures);
  const Facts::Captured text = facts_->captured(s, copy.begin);
  const std::vector<Reading> readings = facts_->readings(captures, at, text);
  const bool few = !readings.empty() && readings[0].kind == Reading::kText;
  const Triple reader{s->rule_id(), at, {}, few ? Triple::kFewTexts : Triple::kAnyText};
  std::vector<At> all;
  // For each exit, the captured texts with which the reader leads there.
  std::map<At, std::vector<RegexId>> by;
  for (const Reading& told : readings)
    for (At e : exits(facts_->reader(copy.asked(s), told), at)) {
      if (std::ranges::find(all, e) == all.end()) all.push_back(e);
      if (told.kind == Reading::kText) by[e].push_back(regexes_.literal(told.text));
    }
  if (text.regex == RegexArena::poison() || readings.size() < 2 || copy.made.empty())
    return put(s, reader, all, open, copy);
  for (auto& [e, literals] : by) {
    const Symbol whole = copy.made.back();
    if (literals.size() < readings.size())
      copy.made.back() = Symbol::terminal(regexes_.alt(std::span<const RegexId>(literals)));
    put(s, reader, {&e, 1}, open, copy);
    copy.made.back() = whole;
  }
}

Facts::Head Intersection::head(const Triple& t, const Reading& reading) {
  if (t.told == Triple::kNothing) return facts_->head(t.rule);
  return facts_->reader(t.rule, t.told == Triple::kOneLabel ? Reading::of_label(t.label) : reading);
}

// Returns other alternatives of which facts can be asked, instead of those behind a told text; null if there
// are none. An example is an object with free keys that may not repeat. MEMBERS-x stands for the members
// behind the key x:
//
//     told "a"       ":" VALUE MEMBERS-a
//     told "b"       ":" VALUE MEMBERS-b
//     told kFresh    ":" VALUE MEMBERS-fresh, for a key that differs from all others
//
// All three have symbols of the same kinds. So facts about MEMBERS-fresh serve for all keys, and a key that
// was read brings no new facts. The symbols of the intersection are still made from MEMBERS-a. `of_text` gets
// the alternatives behind the told text; the result holds those behind a fresh text, symbol for symbol. The
// result is null if the kinds differ or the reader is told no text; facts are then asked of the told text.
const Alternatives* Intersection::alike(const Triple& t, const Reading& reading, Alternatives& of_text) {
  if (t.told != Triple::kAnyText || reading.kind != Reading::kText || lexed_) return nullptr;
  base_.expand(t.rule, reading, of_text);
  const Alternatives& others = facts_->alternatives(facts_->reader(t.rule, Reading::fresh()));
  return same_kinds(of_text, others) ? &others : nullptr;
}

void Intersection::expand_shortest(RuleId rule, const Reading& reading, Alternatives& out) {
  if (lexed_) return expand(rule, reading, out);  // a text alone does not tell what may not follow it
  if (rule.v >= triples_.size()) throw Error(ErrorKind::kValue, "rule out of range");
  Undo anew([&] { begin_anew(); });
  const Triple t = triples_[rule.v];
  Alternatives of_text;
  const bool fresh = alike(t, reading, of_text) != nullptr;
  const Reading told = fresh || reading.kind == Reading::kUnknown ? Reading::fresh() : reading;
  if (reading.kind == Reading::kUnknown) out.add({Symbol::terminal(RegexArena::poison())});
  const Facts::Head h = head(t, told);
  const Facts::Found found = facts_->ask(h, t.from);
  if (found.unsure && reading.kind != Reading::kUnknown) out.add({Symbol::terminal(RegexArena::poison())});
  const At to = nearest(t, h);
  anew.keep();
  if (to == kEnd) return;
  if (const auto shown = find_proof(h, t.from, to, fresh ? of_text : facts_->alternatives(h)))
    return out.add({Symbol::terminal(regexes_.literal(shown->text))});
  expand(rule, reading, out);
}

Intersection::At Intersection::nearest(const Triple& t, Facts::Head h) {
  At best = kEnd;
  for (At e : facts_->ask(h, t.from).exits)
    if (done(e, t.to) && (best == kEnd || facts_->length(h, t.from, e) < facts_->length(h, t.from, best)))
      best = e;
  return best;
}

// Writes to `out` an upper bound of the bytes of the rule's shortest text: the length of a text that
// find_proof() shows. Returns false if there is no such text. If the text of a reader is not known,
// Reading::unknown() stands for it. A reader of several labels has several sets of alternatives; the longest
// of their bounds counts.
bool Intersection::bound(RuleId rule, Bound& out) {
  if (lexed_ || rule.v >= triples_.size()) return false;
  const Triple t = triples_[rule.v];
  if (t.told == Triple::kLabels) {
    const std::vector<uint32_t>& labels = label_sets_[t.labels];
    if (labels.size() > kFewLabels) return false;
    for (const uint32_t label : labels)
      out.any.push_back(triple({t.rule, t.from, t.to, Triple::kOneLabel, label}));
    return true;
  }
  Undo anew([&] { begin_anew(); });
  const Facts::Head h = head(t, Reading::unknown());
  const At to = nearest(t, h);
  const auto shown = to == kEnd ? nullptr : find_proof(h, t.from, to, facts_->alternatives(h));
  anew.keep();
  out.bytes = shown ? shown->text.size() : 0;
  return shown != nullptr;
}

void Intersection::expand(RuleId rule, const Reading& reading, Alternatives& out) {
  if (rule.v >= triples_.size()) throw Error(ErrorKind::kValue, "rule out of range");
  Undo anew([&] { begin_anew(); });
  const Triple t = triples_[rule.v];
  Alternatives of_text;
  const Alternatives* const fresh = alike(t, reading, of_text);
  const Alternatives& all = fresh ? of_text : facts_->alternatives(head(t, reading));
  unsure_ = false;
  for (std::size_t i = 0; i < all.ends.size(); ++i) {
    const Symbol* const first = all[i].data();
    Copy copy{first, first + all[i].size(), t.to, {}, out, fresh ? (*fresh)[i].data() : nullptr};
    go(first, t.from, 0, copy);
  }
  if (unsure_ && reading.kind == Reading::kUnknown) out.add({Symbol::terminal(RegexArena::poison())});
  anew.keep();
}

}  // namespace structgen
