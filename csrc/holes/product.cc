// How alternatives are found whose text a regex matches; product.h has the construction and its source.
//
// An example. S -> "a" S | "" and the regex `(aa)*` with the derivatives 0 (even, may end) and 1 (odd). A
// rule of the product is (rule, from, to):
//
//     (S, 0, end)     "a" leads from 0 to 1, then (S, 1, end); or nothing, because 0 may end
//     (S, 1, end)     "a" leads from 1 to 0, then (S, 0, end). No empty alternative: 1 may not end
//
// go() reads one alternative of the base from the left with the place that it has come to, makes the
// symbols of the product on the way, and adds the alternative if it ends at the place that was asked
// for. A terminal is read between two places: between() gives those of its texts that lead from one
// derivative to the other, or the terminal itself where all of them do. So a terminal that the regex
// does not restrict keeps its masks.
//
// A set of literals with labels (property names) is split by the derivatives to which the literals
// lead. A reader is told the captured text as Facts::readings() gives it. If two items have to be equal
// and one of them is not known, the condition is refused, because a no must not be a guess.
//
// Invariants.
// - An alternative is given only where a fact says that a text leads through it, so no rule is a dead
//   end.
// - The texts of (rule, from, to) are exactly the rule's texts that lead the regex from `from` to `to`.
// - Facts that threw are made anew with the same numbers for the same places, because rules that were
//   given hold those numbers.
//
// Costs. At most a rule for each rule of the grammar and each pair of derivatives between which one of
// its texts leads. LazyLanguages of pairs unfold a byte at a time.
//
// Rejected. Intersecting each terminal and checking the rest at the end of the text: masks would allow
// tokens after which the text cannot be completed. The regex as a second parser beside the first:
// neither of them sees the other's dead ends.
#include "holes/product.h"

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
// A regex whose walk with the path meets more pairs counts as one that the path restricts.
constexpr std::size_t kMostPairs = 1u << 17;
// The most memory of the parser that reads witnesses, in bytes. Beyond it a new one is made.
constexpr std::size_t kReaderBytes = 16u << 20;
// The most labels of a reader for which bound() compares the ways behind them.
constexpr std::size_t kFewLabels = 64;

// The derivative to which a text has to lead.
struct Derivative {
  RegexId regex;
  bool met(RegexArena&, RegexId at) const { return at == regex; }
  friend auto operator<=>(const Derivative&, const Derivative&) = default;
};

// The texts that lead from one derivative to another.
struct AllLeads : RegexCache {
  explicit AllLeads(RegexArena& regexes) : lazy(regexes.define<Leading<Derivative>>()) {}
  // Owned by the arena.
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

Product::Product(RegexArena& regexes, Productions& base, RuleId root, bool lexed, RegexId whole)
    : regexes_(regexes), base_(base), root_(root), lexed_(lexed), whole_(whole) {
  alive_ = std::make_unique<Alive>(regexes_, base_, stacks_);
  path_ = std::make_unique<Path>(regexes_, whole_, base_.bordered());
  begin_anew();
  own({Own::kRule, root_.v, facts_->at(path_->first(), Alive::kClear), kEnd});
}

// Facts that threw are half made and not kept. They begin anew, with the same numbers for the same
// places.
void Product::begin_anew() {
  std::vector<std::pair<Facts::Spot, Alive::Pending>> places;
  if (facts_)
    for (At a = 0; a < facts_->places(); ++a) places.emplace_back(facts_->spot(a), facts_->pending(a));
  tried_ = tried_ || (facts_ && facts_->tried());
  facts_ = std::make_unique<Facts>(regexes_, base_, *alive_, *path_);
  facts_->refuse_repeats();
  facts_->prefer_short();
  for (const auto& [spot, pending] : places) facts_->at(spot, pending);
}

bool Product::possible(bool& unsure) {
  const Facts::Found found = facts_->ask(facts_->head(root_), facts_->at(path_->first(), Alive::kClear));
  unsure = found.unsure;
  return std::any_of(found.exits.begin(), found.exits.end(), [&](At e) { return done(e, kEnd); });
}

Symbol Product::own(const Own& o) {
  const uint32_t n = own_index_.number(mix(mix(mix(o.kind, o.a), mix(o.from, o.to)), o.label), own_, o);
  if (n > kMaxNumber) throw Error(ErrorKind::kBudgetExceeded, "the grammar has too many rules");
  return o.kind == Own::kReader ? Symbol::reader(RuleId{n}) : Symbol::rule(RuleId{n});
}

// The exits of a regex from a spot. `whole` is found by a walk over all texts of the regex together
// with the path: no byte of a text may be missing on the path. Where the walk is too long, it is false.
const Product::Reads& Product::reads(RegexId r, Facts::Spot from) {
  const std::pair key(r.v, from);
  if (const auto it = reads_.find(key); it != reads_.end()) return it->second;
  Reads out;
  const auto exits = facts_->reads(r, from);
  out.exits.assign(exits.begin(), exits.end());
  out.whole = true;
  std::vector<std::pair<RegexId, Facts::Spot>> todo{{r, from}};
  const auto pair = [](RegexId d, Facts::Spot s) { return static_cast<uint64_t>(d.v) << 32 | s; };
  FlatMap<uint64_t, bool> seen;
  seen.emplace(pair(r, from), true);
  while (!todo.empty() && out.whole) {
    if (seen.size() > kMostPairs) out.whole = false;
    const auto [d, s] = todo.back();
    todo.pop_back();
    const ByteSet steps = regexes_.steps(d);
    if ((steps & path_->bytes(s)).count() != steps.count()) out.whole = false;
    facts_->steps(d, s, [&](uint8_t, RegexId behind, Facts::Spot to, bool first) {
      if (first && seen.emplace(pair(behind, to), true).second) todo.push_back({behind, to});
    });
  }
  return reads_.emplace(key, std::move(out)).first->second;
}

RegexId Product::between(RegexId r, Facts::Spot from, Facts::Spot to) {
  const Reads& all = reads(r, from);
  // The exits belong to texts of one byte or more, so the empty text is taken out where it leads
  // elsewhere.
  if (all.whole && all.exits.size() == 1 && all.exits[0].spot == to)
    return regexes_.nullable(r) && from != to ? regexes_.minus(r, RegexArena::epsilon()) : r;
  return regexes_.both(r, leads(regexes_, path_->state(from), path_->state(to)));
}

std::span<const LexemePart> Product::lexeme(uint32_t number, uint32_t context) {
  const auto [it, fresh] = parts_.try_emplace({number, context});
  if (!fresh) return it->second;
  Undo forget([&] { parts_.erase({number, context}); });
  const auto [lexeme, from, to, follow] = lexemes_[number];
  std::vector<LexemePart> parts;
  for (const LexemePart& part : base_.lexeme(lexeme, context)) {
    if (part.follow.v != follow) continue;
    const RegexId some = between(part.regex, from, to);
    if (!regexes_.is_empty(some)) parts.push_back({some, part.follow});
  }
  std::vector<LexemePart>& out = parts_[{number, context}];
  out = std::move(parts);
  forget.keep();
  return out;
}

// ---- alternatives ----

// Appends a rule or reader, once for each exit, and goes on behind it. The last symbol of an
// alternative leads where the alternative leads.
void Product::put(const Symbol* s, const Own& what, std::span<const At> exits, uint32_t captures,
                  Walk& walk) {
  Own o = what;
  if (s + 1 == walk.end) {
    if (std::none_of(exits.begin(), exits.end(), [&](At e) { return done(e, walk.to); })) return;
    o.to = walk.to;
    walk.made.push_back(own(o));
    walk.out.add(walk.made);
    walk.made.pop_back();
    return;
  }
  for (At e : exits) {
    o.to = e;
    walk.made.push_back(own(o));
    go(s + 1, e, captures, walk);
    walk.made.pop_back();
  }
}

// A rule is asked for from a place at which anything may follow, so that there are fewer of them; the
// parser restricts its first byte. If the rule reads nothing, the pending restriction stays as it was
// before it; then the rule of those empty texts leads to the place at which anything may follow.
void Product::put_rule(const Symbol* s, At at, std::span<const At> exits, uint32_t captures, Walk& walk) {
  const Own o{Own::kRule, s->rule_id().v, clear(at), 0};
  if (o.from == at || (s + 1 == walk.end && walk.to == kEnd)) return put(s, o, exits, captures, walk);
  const Facts::Found found = facts_->ask(facts_->head(walk.asked(s)), o.from);
  const std::vector<At> known(found.exits.begin(), found.exits.end());
  const auto reached = [&](At e) { return std::find(known.begin(), known.end(), e) != known.end(); };
  for (At e : exits) {
    if (reached(e)) put(s, o, {&e, 1}, captures, walk);
    const At anything = clear(e);
    if (anything == e || facts_->spot(e) != facts_->spot(at) || !reached(anything)) continue;
    if (s + 1 == walk.end && !done(e, walk.to)) continue;
    Own nothing = o;
    nothing.to = anything;
    walk.made.push_back(own(nothing));
    go(s + 1, e, captures, walk);
    walk.made.pop_back();
  }
}

// Reads the symbol s at the place `at`, and recursively the rest of the alternative.
void Product::go(const Symbol* s, At at, uint32_t captures, Walk& walk) {
  check_depth();
  charge(4);
  if (s == walk.end) {
    if (done(at, walk.to)) walk.out.add(walk.made);
    return;
  }
  switch (s->kind()) {
    case Symbol::kNote:
    case Symbol::kCapture:
    case Symbol::kAfter:
    case Symbol::kFollow: {
      if (s->kind() == Symbol::kCapture) captures = facts_->opened(captures, at);
      if (s->kind() == Symbol::kAfter || s->kind() == Symbol::kFollow) {
        std::vector<Alive::Step> steps;
        alive_->steps(*s, facts_->pending(at), steps);
        at = facts_->at(facts_->spot(at), steps.front().to);
      }
      walk.made.push_back(*s);
      go(s + 1, at, captures, walk);
      walk.made.pop_back();
      return;
    }
    case Symbol::kLimit:
      throw Error(ErrorKind::kGrammar, "a condition on the whole text and max_tokens exclude each other");
    case Symbol::kTerminal: return go_terminal(s, at, captures, walk);
    case Symbol::kLexeme: return go_lexeme(s, at, captures, walk);
    case Symbol::kRule:
    case Symbol::kReader: return go_rule(s, at, captures, walk);
  }
}

void Product::go_terminal(const Symbol* s, At at, uint32_t captures, Walk& walk) {
  const RegexId r = s->regex();
  if (r == RegexArena::poison()) {
    walk.made.push_back(*s);
    walk.out.add(walk.made);
    walk.made.pop_back();
    return;
  }
  if (regexes_.node(r).labelled) return go_set(s, at, captures, walk);
  const Facts::Spot from = facts_->spot(at);
  // The exits are those of the restricted terminal; the parser restricts the terminal of the product in
  // the same way, so the symbol itself stays unrestricted.
  const RegexId some = alive_->restricted(r, alive_->follow(facts_->pending(at)));
  const std::vector<Facts::Exit> exits = reads(some, from).exits;
  // The last terminal: it is intersected with all that is left of the regex.
  if (s + 1 == walk.end && walk.to == kEnd) {
    const bool any =
        std::any_of(exits.begin(), exits.end(), [&](const Facts::Exit& e) { return path_->ends(e.spot); });
    if (!any && !(regexes_.nullable(r) && path_->ends(from))) return;
    const bool all =
        reads(r, from).whole &&
        std::all_of(exits.begin(), exits.end(), [&](const Facts::Exit& e) { return path_->ends(e.spot); }) &&
        (!regexes_.nullable(r) || path_->ends(from));
    walk.made.push_back(Symbol::terminal(all ? r : regexes_.both(r, path_->state(from))));
    walk.out.add(walk.made);
    walk.made.pop_back();
    return;
  }
  for (const Facts::Exit& e : exits) {
    walk.made.push_back(Symbol::terminal(between(r, from, e.spot)));
    go(s + 1, facts_->at(e.spot, Alive::kClear), captures, walk);
    walk.made.pop_back();
  }
  if (regexes_.nullable(r)) go(s + 1, at, captures, walk);
}

// A labelled set of literals and its reader. Literals with one spelling, or all of whose spellings lead
// to one place, stay together in one set. Any other literal becomes a terminal of its own.
void Product::go_set(const Symbol* s, At at, uint32_t captures, Walk& walk) {
  const RegexId set = s->regex();
  if (s + 1 == walk.end || s[1].kind() != Symbol::kReader ||
      regexes_.node(set).kind != RegexKind::kLiteralSet)
    throw Error(ErrorKind::kSchemaTooComplex, "a label that nobody reads");
  const Facts::Spot from = facts_->spot(at);
  const LiteralSet of = regexes_.literal_set_of(set);
  const LiteralTable& table = regexes_.tables().table(of.table);
  const auto bits = [&](const std::vector<uint32_t>& labels) {
    std::vector<uint64_t> out((table.texts.size() + 63) / 64, 0);
    for (uint32_t i = of.lo; i < of.hi; ++i)
      if (std::find(labels.begin(), labels.end(), table.labels[i]) != labels.end())
        out[i >> 6] |= 1ull << (i & 63);
    return out;
  };
  const Reads all = reads(set, from);
  std::map<uint32_t, std::vector<Facts::Spot>> spots;  // by label
  for (const Facts::Exit& e : all.exits)
    if (e.label != 0) spots[e.label - 1].push_back(e.spot);
  const auto exits_of = [&](uint32_t label, Facts::Spot spot) {
    Reading told;
    told.kind = Reading::kLabel;
    told.label = label;
    const Facts::Found found =
        facts_->ask(facts_->reader(s[1].rule_id(), told), facts_->at(spot, Alive::kClear));
    unsure_ = unsure_ || found.unsure;
    return std::vector<At>(found.exits.begin(), found.exits.end());
  };
  std::map<std::pair<Facts::Spot, std::vector<At>>, std::vector<uint32_t>> together;
  for (const auto& [label, at_spots] : spots) {
    // All spellings of this literal lead to one spot.
    if (all.whole && at_spots.size() == 1) {
      std::vector<At> exits = exits_of(label, at_spots[0]);
      std::sort(exits.begin(), exits.end());
      if (s + 2 == walk.end) {
        const bool ends = std::any_of(exits.begin(), exits.end(), [&](At e) { return done(e, walk.to); });
        exits.assign(ends ? 1 : 0, walk.to);
      }
      if (!exits.empty()) together[{at_spots[0], std::move(exits)}].push_back(label);
      continue;
    }
    for (Facts::Spot spot : at_spots) {
      const std::vector<At> exits = exits_of(label, spot);
      const RegexId one = regexes_.restricted_set(set, bits({label}), false);
      walk.made.push_back(
          Symbol::terminal(regexes_.both(one, leads(regexes_, path_->state(from), path_->state(spot)))));
      put(s + 1, {Own::kTold, s[1].rule_id().v, facts_->at(spot, Alive::kClear), 0, label}, exits, captures,
          walk);
      walk.made.pop_back();
    }
  }
  for (const auto& [key, labels] : together) {
    walk.made.push_back(Symbol::terminal(regexes_.restricted_set(set, bits(labels), true)));
    const Own reader{Own::kReader, s[1].rule_id().v, facts_->at(key.first, Alive::kClear), 0,
                     Own::kLabels + numbered(labels_index_, labels_, labels, labels)};
    if (s + 2 == walk.end) {
      Own o = reader;
      o.to = walk.to;
      walk.made.push_back(own(o));
      walk.out.add(walk.made);
      walk.made.pop_back();
    } else {
      put(s + 1, reader, key.second, captures, walk);
    }
    walk.made.pop_back();
  }
}

// A lexeme between two spots is a lexeme of the product's own (lexeme()).
void Product::go_lexeme(const Symbol* s, At at, uint32_t captures, Walk& walk) {
  std::vector<Alive::Step> steps;
  alive_->steps(*s, facts_->pending(at), steps);
  const Facts::Spot from = facts_->spot(at);
  for (const Alive::Step& part : steps) {
    if (part.regex == RegexArena::poison() || part.regex == RegexArena::empty()) continue;
    const std::vector<Facts::Exit> exits = reads(part.regex, from).exits;
    for (const Facts::Exit& e : exits) {
      const Lexeme key{s->number(), from, e.spot, alive_->follow(part.to).v};
      walk.made.push_back(Symbol::lexeme(numbered(lexeme_index_, lexemes_, key, key)));
      go(s + 1, facts_->at(e.spot, part.to), captures, walk);
      walk.made.pop_back();
    }
  }
}

void Product::go_rule(const Symbol* s, At at, uint32_t captures, Walk& walk) {
  std::vector<At> exits;
  const auto ask = [&](Facts::Head head) {
    const Facts::Found found = facts_->ask(head, at);
    unsure_ = unsure_ || found.unsure;
    for (At e : found.exits)
      if (std::find(exits.begin(), exits.end(), e) == exits.end()) exits.push_back(e);
  };
  if (s->kind() == Symbol::kRule) {
    ask(facts_->head(walk.asked(s)));
    return put_rule(s, at, exits, captures, walk);
  }
  const uint32_t open = captures == 0 ? 0 : facts_->outer(captures);
  const Facts::Captured text = facts_->captured(s, walk.begin);
  const std::vector<Reading> readings = facts_->readings(captures, at, text);
  const bool few = !readings.empty() && readings[0].kind == Reading::kText;
  const Own reader{Own::kReader, s->rule_id().v, at, 0, few ? Own::kFewTexts : Own::kAnyText};
  // Keyed by exit: the texts after which the reader leads there.
  std::map<At, std::vector<RegexId>> by;
  for (const Reading& told : readings) {
    ask(facts_->reader(walk.asked(s), told));
    if (told.kind != Reading::kText) continue;
    const Facts::Found found = facts_->ask(facts_->reader(walk.asked(s), told), at);
    for (At e : found.exits) by[e].push_back(regexes_.literal(told.text));
  }
  if (text.regex == RegexArena::poison() || readings.size() < 2 || walk.made.empty())
    return put(s, reader, exits, open, walk);
  // Only some of the captured texts lead on, so those take the place of the captured terminal.
  for (auto& [e, literals] : by) {
    const Symbol all = walk.made.back();
    if (literals.size() < readings.size())
      walk.made.back() = Symbol::terminal(regexes_.alt(std::span<const RegexId>(literals)));
    put(s, reader, {&e, 1}, open, walk);
    walk.made.back() = all;
  }
}

Facts::Head Product::head(const Own& o, const Reading& reading) {
  if (o.kind == Own::kRule) return facts_->head(RuleId{o.a});
  Reading told = reading;
  if (o.kind == Own::kTold) {
    told.kind = Reading::kLabel;
    told.label = o.label;
  }
  return facts_->reader(RuleId{o.a}, told);
}

// The base may have other alternatives behind each text that a reader is told: behind a key, the rules of an
// object without this key. `of_text` gets the alternatives behind the told text. If they have the same kinds
// of symbols as the alternatives behind a text that differs from all others, the latter are returned: their
// facts serve for both. Null: the kinds differ, or the reader is not told any text; facts are asked of the
// told text.
const Alternatives* Product::alike(const Own& o, const Reading& reading, Alternatives& of_text) {
  if (o.kind != Own::kReader || o.label != Own::kAnyText || reading.kind != Reading::kText || lexed_)
    return nullptr;
  base_.expand(RuleId{o.a}, reading, of_text);
  Reading fresh;
  fresh.kind = Reading::kFresh;
  const Alternatives& others = facts_->alternatives(facts_->reader(RuleId{o.a}, fresh));
  return same_kinds(of_text, others) ? &others : nullptr;
}

void Product::expand_shortest(RuleId rule, const Reading& reading, Alternatives& out) {
  if (lexed_) return expand(rule, reading, out);  // a text alone does not tell what may not follow it
  if (rule.v >= own_.size()) throw Error(ErrorKind::kValue, "rule out of range");
  Undo anew([&] { begin_anew(); });
  const Own o = own_[rule.v];
  Alternatives of_text;
  const bool fresh = alike(o, reading, of_text) != nullptr;
  Reading told = reading;
  if (fresh || reading.kind == Reading::kUnknown) told.kind = Reading::kFresh;
  if (reading.kind == Reading::kUnknown) out.add({Symbol::terminal(RegexArena::poison())});
  const Facts::Head h = head(o, told);
  const Facts::Found found = facts_->ask(h, o.from);
  if (found.unsure && reading.kind != Reading::kUnknown) out.add({Symbol::terminal(RegexArena::poison())});
  const At to = nearest(o, h);
  anew.keep();
  if (to == kEnd) return;
  if (const auto text = written(o, h, to, fresh ? of_text : facts_->alternatives(h)))
    return out.add({Symbol::terminal(regexes_.literal(*text))});
  expand(rule, reading, out);
}

// The exit that the shortest text leads to; kEnd: there is none.
Product::At Product::nearest(const Own& o, Facts::Head h) {
  At best = kEnd;
  for (At e : facts_->ask(h, o.from).exits)
    if (done(e, o.to) && (best == kEnd || facts_->length(h, o.from, e) < facts_->length(h, o.from, best)))
      best = e;
  return best;
}

// A shortest text that leads there, if the base reads it as one of the alternatives.
std::optional<std::string> Product::written(const Own& o, Facts::Head h, At to, const Alternatives& all) {
  if (!reader_ || reader_->byte_size() > kReaderBytes) reader_ = std::make_unique<Parser>(regexes_, base_);
  for (const bool vary : {false, true}) {
    std::string text;
    if (!facts_->witness(h, o.from, to, vary, text)) break;
    if (reads_one(*reader_, all, text)) return text;
  }
  return std::nullopt;
}

// A bound of the texts of a rule. Behind an unknown text the base reads what may follow every text. Each
// label leads to other alternatives, so the longest of them counts.
bool Product::bound(RuleId rule, Bound& out) {
  if (lexed_ || rule.v >= own_.size()) return false;
  const Own o = own_[rule.v];
  if (o.kind == Own::kReader && o.label >= Own::kLabels) {
    const std::vector<uint32_t>& labels = labels_[o.label - Own::kLabels];
    if (labels.size() > kFewLabels) return false;
    for (const uint32_t label : labels) out.any.push_back(own({Own::kTold, o.a, o.from, o.to, label}));
    return true;
  }
  Undo anew([&] { begin_anew(); });
  Reading told;
  if (o.kind == Own::kReader) told.kind = Reading::kUnknown;
  const Facts::Head h = head(o, told);
  const At to = nearest(o, h);
  const auto text = to == kEnd ? std::nullopt : written(o, h, to, facts_->alternatives(h));
  anew.keep();
  out.bytes = text ? text->size() : 0;
  return text.has_value();
}

void Product::expand(RuleId rule, const Reading& reading, Alternatives& out) {
  if (rule.v >= own_.size()) throw Error(ErrorKind::kValue, "rule out of range");
  Undo anew([&] { begin_anew(); });
  const Own o = own_[rule.v];
  Alternatives of_text;
  const Alternatives* const fresh = alike(o, reading, of_text);
  const Alternatives& all = fresh ? of_text : facts_->alternatives(head(o, reading));
  unsure_ = false;
  for (std::size_t i = 0; i < all.ends.size(); ++i) {
    const Symbol* const first = all[i].data();
    Walk walk{first, first + all[i].size(), o.to, {}, out, fresh ? (*fresh)[i].data() : nullptr};
    go(first, o.from, 0, walk);
  }
  if (unsure_ && reading.kind == Reading::kUnknown) out.add({Symbol::terminal(RegexArena::poison())});
  anew.keep();
}

}  // namespace structgen
