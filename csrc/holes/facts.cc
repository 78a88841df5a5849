// How facts are found: "this rule, begun at this place of the path, may end at these places".
//
// The problem. A text with holes stands for very many texts, too many to try. Does the grammar have one of
// these texts? Which parts of the grammar read which stretch of the text with holes? Which text proves the
// answer?
//
// The idea. The text is a path of spots (holes/path.h): a fixed byte leads from one spot to the next,
// and a hole leads round to its own spot. A fact is a rule at a place (a spot, and the bytes that may
// not follow the lexeme read last) with its exits. For S -> "a" S "b" | "" and the text `a` HOLE `b`,
// spots 0 (before a), 1 (the hole), 2 (the end):
//
//     (S, 0)            waits for "a": spot 1. Then S is asked for at 1
//     (S, 1)            exit 1, by the empty text; "a" in the hole leads to 1, so S waits for itself there;
//                       behind it "b" leads to 1, in the hole, and to 2, the fixed byte: exits 1 and 2
//     (S, 0) goes on    from 1 "b" leads to 1 and 2. Exit 2 is the end, so the text can be completed
//
// A step is an alternative that is read up to a symbol. Steps are interned, so equal steps are taken once. A
// step that needs a fact is put on the fact's list (`waiting`) and goes on with every exit that is found
// later. The search has no recursion: in a hole, which leads round to its own spot, a recursion would never
// end.
//
// Captured text. If both ends of a captured text are fixed, its reader is told the text. If few texts are
// possible, the reader is told each of them. Otherwise the reader is told that the text differs from all
// others (Reading::kFresh). A place behind such a reader may be `assumed`; the proved place is another place.
// Quotient proves an assumption or says that it cannot.
//
// Derivations. Each exit has a derivation (holes/derivations.h): the first that was found, or with
// Aim::kIntersection a shortest one. If a shorter derivation of a step or an exit is found, the steps behind
// it are taken again, so that lengths settle as in the method of Bellman and Ford.
//
// Invariants.
// - Once ask() has emptied the list of steps, a fact has all its exits, unless the fact is `unsure`: one of
//   its steps met poison. If a fact is unsure, every fact that waits for it is made unsure, too (doubt()).
// - Heads, alternatives and exits stay where they are, so spans of them stay valid.
//
// Costs. The search takes one step for each pair of a symbol and a place that it meets, and reads each regex
// once from each spot. The number of steps is linear in the length of the fixed text where rules end at few
// places, and for each rule at most quadratic in this length.
//
// Rejected. A parser that steps by sets of bytes: such a parser forgets which rule read which stretch, and in
// a hole of any length it reaches no last state. Earley items over spots give the same table as facts do;
// facts keep only those entries of the table that are asked for from the left.
#include "holes/facts.h"

#include <algorithm>

#include "base/error.h"
#include "base/undo.h"
#include "base/work.h"
#include "holes/anywhere.h"

namespace structgen {

namespace {
// If a regex gives a captured text at most this many values, the reader is asked about each value.
constexpr std::size_t kTriedTexts = 64;
constexpr int64_t kFactWork = 20, kStepWork = 3;
constexpr uint64_t key(uint32_t a, uint32_t b) { return (static_cast<uint64_t>(a) << 32) | b; }

[[noreturn]] void few_values() {
  throw Error(
      ErrorKind::kSchemaTooComplex,
      "a condition cannot be decided where items have to differ (uniqueItems) that have few values in "
      "many spellings; strings=\"plain\" has one spelling of a string");
}
}  // namespace

Facts::Facts(RegexArena& regexes, Productions& productions, Alive& alive, Places& places, Path& path, Aim aim)
    : regexes_(regexes),
      productions_(productions),
      alive_(alive),
      places_(places),
      aim_(aim),
      stretches_(regexes, path),
      derivations_(stretches_) {}

std::size_t Facts::byte_size() const {
  return places_.byte_size() + heads_.size() * 200 + head_index_.byte_size() +
         facts_.size() * (sizeof(Fact) + 48) + fact_index_.byte_size() + exit_index_.byte_size() +
         steps_.capacity() * sizeof(Step) + step_index_.byte_size() + derivations_.byte_size() +
         stretches_.byte_size() + stretches_.path().byte_size();
}

Facts::Head Facts::reader(RuleId rule, const Reading& reading) {
  const auto add = [&] {
    heads_.emplace_back();
    heads_.back().rule = rule;
    heads_.back().reading = reading;
    heads_.back().asked = reading.kind != Reading::kNone;
    return Head{static_cast<uint32_t>(heads_.size() - 1)};
  };
  if (reading.kind == Reading::kText) return remember(told_, {rule.v, reading.text}, add);
  // Labels and the readings that carry no text are keys of this table. Readings with a captured text have
  // another one.
  const uint32_t told = reading.kind == Reading::kLabel     ? reading.label + 3
                        : reading.kind == Reading::kUnknown ? 1
                        : reading.kind == Reading::kFresh   ? 2
                                                            : 0;
  return head_index_.remember(key(told, rule.v), add);
}

// A part of an alternative is found by the addresses of its symbols, which never move.
Facts::Head Facts::tail(const Symbol* begin, const Symbol* end, uint32_t label) {
  if (const auto known = tails_.find({begin, end, label}); known != tails_.end()) return known->second;
  Told h;
  h.expanded = true;
  h.label = label;
  h.all.add(std::span(begin, end));
  return numbered(tails_, heads_, {begin, end, label}, std::move(h));
}

const Alternatives& Facts::alternatives(Head h) {
  Told& a = heads_[h.v];
  if (!a.expanded) {
    charge(4);
    Alternatives all;
    productions_.expand(a.rule, a.reading, all);
    charge(static_cast<int64_t>(all.symbols.size()));
    a.all = std::move(all);
    a.expanded = true;
    a.compared = a.reading.kind == Reading::kNone && productions_.traits_of(a.rule).compared;
    a.reading = Reading{};
  }
  return a.all;
}

const Alternatives& Facts::read(Head h) {
  Told& a = heads_[h.v];
  Alternatives shared;
  if (!std::exchange(a.asked, true) && productions_.expand_shared(a.rule, shared)) {
    charge(4 + static_cast<int64_t>(shared.symbols.size()));
    a.shared = std::make_unique<const Alternatives>(std::move(shared));
  }
  return a.shared ? *a.shared : alternatives(h);
}

uint32_t Facts::opened(uint32_t captures, At here) {
  return capture_index_.remember(key(captures, here.v), [&] {
    captures_.push_back({here, captures});
    return static_cast<uint32_t>(captures_.size() - 1);
  });
}

// Returns the texts of a regex that lead from one spot to the other, each as a Reading for a reader. Returns
// nothing if there are many.
std::optional<std::vector<Reading>> Facts::few(RegexId r, Spot from, Spot to) {
  std::vector<std::string> all;
  if (!stretches_.texts(r, from, to, kTriedTexts, all, 0, true)) return std::nullopt;
  std::vector<Reading> out;
  for (std::string& text : all) out.push_back(Reading::of_text(std::move(text)));
  return out;
}

std::vector<Reading> Facts::readings(uint32_t captures, At here, Captured captured) {
  const RegexId terminal = captured.regex;
  if (captures == 0) return {Reading::unknown()};
  const Spot from = places_.spot(captures_[captures].begin), to = places_.spot(here);
  const Path& path = stretches_.path();
  if (path.fixed(from, to)) return {Reading::of_text(path.text(from, to))};
  // The possible texts are tried one by one only if the reader might refuse them all. If the capture begins
  // in a hole and its regex is "any text but a few", some text always differs from those that were captured
  // before.
  if (terminal != RegexArena::poison() &&
      !(path.loops(from) && without_exceptions(regexes_, terminal) != terminal)) {
    const std::tuple key(terminal.v, from, to);
    auto known = few_.find(key);
    if (known == few_.end()) known = few_.emplace(key, few(terminal, from, to)).first;
    if (known->second) {
      tried_ = true;
      return *known->second;
    }
  }
  if (captured.few) few_values();
  return {Reading::fresh()};
}

// Returns what the grammar says of the text between kCapture and the reader. Something is known if one
// terminal reads the text, or if a rule reads the text and each alternative of this rule is one terminal.
Facts::Captured Facts::captured(const Symbol* reader, const Symbol* begin) {
  const RegexId unknown = RegexArena::poison();
  if (aim_ != Aim::kIntersection || reader - begin < 2 || reader[-2].kind() != Symbol::kCapture)
    return {unknown};
  if (reader[-1].kind() == Symbol::kTerminal) return {reader[-1].regex()};
  if (reader[-1].kind() != Symbol::kRule) return {unknown};
  const RuleId rule = reader[-1].rule_id();
  std::vector<std::string> values;
  const bool few = productions_.values(rule, kTriedTexts, values);
  const Alternatives& all = alternatives(head(rule));
  std::vector<RegexId> parts;
  for (const std::span<const Symbol> s : all.each()) {
    if (s.size() != 1 || s[0].kind() != Symbol::kTerminal || s[0].regex() == unknown ||
        regexes_.node(s[0].regex()).labelled)
      return {unknown, few};
    parts.push_back(s[0].regex());
  }
  return {regexes_.alt(std::span<const RegexId>(parts)), few};
}

uint32_t Facts::fact(Head h, At from) {
  const uint64_t k = key(h.v, from.v);
  if (const uint32_t* known = fact_index_.find(k)) return *known;
  charge(kFactWork);
  const uint32_t id = static_cast<uint32_t>(facts_.size());
  facts_.emplace_back();
  facts_[id].head = h;
  facts_[id].from = from;
  fact_index_.emplace(k, id);
  const uint32_t label = heads_[h.v].label;
  // todo_ is a stack, so the alternatives are pushed in reverse order: the first one is taken first.
  const Alternatives& all = read(h);
  if (aim_ == Aim::kIntersection && !all.assumed.empty() && all.assumed.size() < all.ends.size())
    throw Error(
        ErrorKind::kSchemaTooComplex,
        "a condition cannot be decided where two items have to be equal: uniqueItems in `not` or `oneOf`");
  const auto assumes = [&](std::size_t i) {
    return aim_ == Aim::kQuotient &&
           std::find(all.assumed.begin(), all.assumed.end(), i) != all.assumed.end();
  };
  for (std::size_t i = all.ends.size(); i-- > 0;)
    push({id, assumes(i) ? places_.of(places_.spot(from), places_.pending(from), true) : from, 0, label,
          all[i].data(), all[i].data() + all[i].size(), Derivations::kNone});
  return id;
}

void Facts::push(const Step& s) {
  charge();
  const uint64_t h =
      mix(mix(mix(key(s.fact, s.at.v), key(s.captures, s.label)), reinterpret_cast<uintptr_t>(s.symbol)),
          reinterpret_cast<uintptr_t>(s.end));
  const uint32_t n = static_cast<uint32_t>(steps_.size());
  const uint32_t id = step_index_.find_or_add(
      h, [&](uint32_t i) { return same(steps_[i], s); },
      [&] {
        steps_.push_back(s);
        return n;
      });
  if (id != n) {
    if (aim_ != Aim::kIntersection || derivations_.length(steps_[id].read) <= derivations_.length(s.read))
      return;
    steps_[id].read = s.read;
  }
  charge(kStepWork);
  todo_.push_back(id);
}

// Moves a step behind a rule or reader. A reader that was told a captured text closes this capture; a rule,
// or a reader that was told a label, closes none.
void Facts::go_on(Step& s) const {
  if (s.symbol->kind() == Symbol::kReader && s.label == 0 && s.captures)
    s.captures = captures_[s.captures].outer;
  s.label = 0;
  ++s.symbol;
}

// Adds an exit to a fact, or a shorter derivation of an exit that it has, and tells all steps that wait for
// the fact. An assumed exit is dropped if the same exit is proved already.
void Facts::leave(uint32_t id, At to, Derivations::Id read) {
  if (places_.assumed(to) && exit_index_.find(exit_key(id, places_.proved(to)))) return;
  Fact& f = facts_[id];
  const auto [n, fresh] = exit_index_.emplace(exit_key(id, to), static_cast<uint32_t>(f.exits.size()));
  const uint32_t exit = n;
  if (!fresh &&
      (aim_ != Aim::kIntersection || derivations_.length(f.read[exit]) <= derivations_.length(read)))
    return;
  if (heads_[f.head.v].compared && read != Derivations::kNone) read = derivations_.item(read);
  if (fresh) {
    f.exits.push_back(to);
    f.read.push_back(read);
  } else {
    f.read[exit] = read;
  }
  for (std::size_t i = 0; i < f.waiting.size(); ++i) tell(f.waiting[i], to, read);
}

// Takes up a step that waits for a fact, with one exit of this fact.
void Facts::tell(uint32_t waiting, At exit, Derivations::Id read) {
  Step s = steps_[waiting];
  s.at = places_.behind(s.at, exit);
  go_on(s);
  s.read = derivations_.joined(s.read, read);
  push(s);
}

// Marks a fact, and all facts that wait for it, as unsure.
void Facts::doubt(uint32_t id) {
  std::vector<uint32_t> todo{id};
  while (!todo.empty()) {
    const uint32_t f = todo.back();
    todo.pop_back();
    if (facts_[f].unsure) continue;
    facts_[f].unsure = true;
    for (uint32_t w : facts_[f].waiting) todo.push_back(steps_[w].fact);
  }
}

// Tells whether a text of the rule that begins in the last hole must also end in it. The text must end in the
// hole if what has to follow the rule is longer than the fixed text behind the hole.
bool Facts::stays(RuleId rule, Spot from) const {
  const Path& path = stretches_.path();
  return path.loops(from) && path.text_behind(from) && !productions_.traits_of(rule).plain &&
         productions_.traits_of(rule).needed_behind > path.last() - from;
}

void Facts::call(Head h, uint32_t step) {
  const RuleId rule = steps_[step].symbol->rule_id();
  if (stays(rule, places_.spot(steps_[step].at))) {
    Step s = steps_[step];
    s.at = places_.of(places_.spot(s.at), Alive::kClear, places_.assumed(s.at));
    go_on(s);
    return push(s);
  }
  const uint32_t f = fact(h, places_.proved(steps_[step].at));
  if (waits_.emplace(key(f, step), true).second) {
    facts_[f].waiting.push_back(step);
    if (facts_[f].unsure) doubt(steps_[step].fact);
  }
  for (std::size_t i = 0; i < facts_[f].exits.size(); ++i) tell(step, facts_[f].exits[i], facts_[f].read[i]);
}

// Pushes the steps behind a terminal, or behind a part of a lexeme: one for each exit.
void Facts::after_terminal(const Step& from, RegexId r, Alive::Pending to) {
  const Spot begin = places_.spot(from.at);
  // If the terminal is all of the text captured so far, its regex describes the captured text.
  const bool captured = from.captures && captures_[from.captures].begin == places_.proved(from.at);
  for (const Stretches::Exit& e : stretches_.exits(r, begin)) {
    Step s = from;
    ++s.symbol;
    s.label = e.label;
    s.at = places_.of(e.spot, to, places_.assumed(from.at));
    s.read =
        derivations_.joined(from.read, derivations_.leaf({r, begin, e.spot, e.label, e.length}, captured));
    push(s);
  }
}

// Reads the symbol in front of which the step stands; this symbol must be neither a rule nor a reader. For a
// terminal or lexeme it pushes a step behind each exit. Returns true if the symbol may read nothing; the
// caller then moves this step past it.
bool Facts::pass(Step& s) {
  switch (s.symbol->kind()) {
    case Symbol::kNote: return true;
    case Symbol::kLimit:
      throw Error(ErrorKind::kGrammar, "a text with holes cannot have limits on tokens (max_tokens)");
    case Symbol::kCapture: s.captures = opened(s.captures, places_.proved(s.at)); return true;
    case Symbol::kAfter:
    case Symbol::kFollow:
      after_.clear();
      alive_.steps(*s.symbol, places_.pending(s.at), after_);
      s.at = places_.of(places_.spot(s.at), after_.front().to, places_.assumed(s.at));
      return true;
    case Symbol::kTerminal: {
      const RegexId r = s.symbol->regex();
      if (r == RegexArena::poison()) {
        doubt(s.fact);
        return false;
      }
      after_terminal(s, alive_.restricted(r, alive_.follow(places_.pending(s.at))), Alive::kClear);
      s.label = regexes_.node(r).label();
      return regexes_.nullable(r);
    }
    case Symbol::kLexeme:
      after_.clear();
      alive_.steps(*s.symbol, places_.pending(s.at), after_);
      for (const Alive::Step& part : std::vector(after_))
        if (part.regex != RegexArena::poison()) after_terminal(s, part.regex, part.to);
      return false;
    case Symbol::kRule:
    case Symbol::kReader: break;
  }
  return false;
}

// Reads symbols until the step stands in front of a rule. The result is pushed as a new step, so that equal
// steps are taken once.
void Facts::proceed(uint32_t id) {
  Step s = steps_[id];
  const auto calls = [&] { return s.symbol->kind() == Symbol::kRule || s.symbol->kind() == Symbol::kReader; };
  for (; s.symbol == s.end || !calls(); ++s.symbol) {
    if (s.symbol == s.end) return leave(s.fact, s.at, s.read);
    if (!pass(s)) return;
  }
  if (!same(s, steps_[id])) return push(s);
  const RuleId rule = s.symbol->rule_id();
  if (s.symbol->kind() == Symbol::kRule) return call(head(rule), id);
  if (s.label) return call(reader(rule, Reading::of_label(s.label - 1)), id);
  Captured text = captured(s.symbol, read(facts_[s.fact].head).symbols.data());
  if (s.captures) {
    const RegexId last =
        derivations_.captured(s.read, places_.spot(captures_[s.captures].begin), places_.spot(s.at));
    if (last != RegexArena::poison()) text.regex = last;
  }
  for (const Reading& told : readings(s.captures, s.at, text)) call(reader(rule, told), id);
}

Facts::Found Facts::ask(Head h, At from) {
  const uint32_t f = fact(h, from);
  while (!todo_.empty()) {
    const uint32_t step = todo_.back();
    todo_.pop_back();
    proceed(step);
  }
  return {facts_[f].exits, facts_[f].unsure};
}

bool Facts::witness(Head h, At from, At to, bool vary, std::string& out, std::vector<std::string>* items) {
  const uint32_t* const exit = exit_index_.find(exit_key(fact(h, from), to));
  return exit && derivations_.write(facts_[fact(h, from)].read[*exit], vary, out, items);
}

}  // namespace structgen
