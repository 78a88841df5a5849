// Decides which arrays are lasting: their items must differ, and nothing else depends on the values of the
// items. Keys of an object are lasting if the same holds for them.
//
// The problem. With uniqueItems each item that was read makes a new formula, new automata and new states
// (unique.cc): 13 to 27 kB and 60 us a token. In most arrays these values decide one thing only, namely
// whether the item that ends now repeats an earlier one.
//
// The idea. Let every beginning of an item have infinitely many continuations. Then earlier items can never
// make a beginning hopeless; they can only forbid that the item ends there. The parser then reads the array
// without the atom kUnique, and a table beside the state compares the items (engine/distinct.h). So an array
// lasts if its only atom is unique({}), and each cell of each rest has a value formula that is endless: for
// every kind it has no value at all, or a value of that kind never runs out.
//
//     {"type": "integer", "minimum": 1}     lasts: behind `7` come 70 to 79, behind them 700 to 799 ...
//     {"type": "integer", "maximum": 9}     does not: behind `7` no digit may follow
//     {"type": "string", "pattern": "^a+"}  lasts: each state of the automaton leads to a state that goes on
//     {"enum": [1, 2]}                      does not: after [1, only 2 is left
//     {"enum": ["a", "b", "c", "d", "e"]}   lasts, if the array may close behind each item (listed())
//     {"type": "object"}                    lasts: wherever a text stands, one more key may come
//
// There must also be many values of nearly the shortest length: when n items are excluded, some other value
// must be longer than the shortest value only by a few bytes times log n. A budget relies on that
// (engine/lenient.h).
//
//     {"type": "string", "pattern": "^(ab)*$"}               does not last: one string for each two bytes
//     {"type": "array", "items": {"type": "null"}}           does not: one array for each five bytes
//     {"type": "string", "pattern": "^a(b{30}[a-z]*)?$"}     does not: behind "a" comes "abbb..."
//
// The free keys of an object always differ. The free keys last if behind every beginning of a key infinitely
// many keys follow. What a key asks of its value is decided by the class of the key, not by the keys before.
//
//     {"patternProperties": {"^k": {}}}     last: behind `"k` come k7, k70, k700 ...
//     {"propertyNames": {"maxLength": 2}}   do not: behind `"k7` only the closing quote may follow
//
// Invariants.
// - A yes is exact. A no may be wrong: then the formula keeps the values, which costs more and gives the same
//   masks.
// - The texts of a list can run out. The reader of the text (engine/distinct.h) knows which texts are left,
//   and refuses a beginning that no text of these has.
// - Two beginnings are left to the reader of the text: a word such as `true`, and a number behind which no
//   digit counts any more (Unique::lasting, Lenient::fate in engine/lenient.cc).
// - While an array is being decided, its own answer counts as no. So an array that can be an item of itself
//   does not last.
// - If n values are excluded behind a beginning, some value is left that is longer than the shortest value by
//   at most kFar + kNear (log4(n) + 1) bytes, or by one more item or key, which itself is longer than the
//   shortest item or key by at most as many bytes. Proof: k choices make at least 4^k values, because the
//   bytes that count at a choice lead to different values. A path costs the way to its first choice and the
//   ways between its choices.
// - If two or more items must still be written, n such items take log4(n) bytes each (dense()). If an item
//   may be an object, the shortest object `{}` may only be made new by a key whose value is long, so such
//   items do not last.
//
// Costs. Each answer is remembered. A question visits the rests of an array and, for a pattern, at most
// kMostStates states of an automaton.
//
// Rejected. An answer to "is another value left here?" for each state of the text: it depends on the values
// that were read, and states must not hold these values.
#include <algorithm>
#include <unordered_map>
#include <vector>

#include "base/depth.h"
#include "base/error.h"
#include "schema/decide/object.h"
#include "schema/decide/unique.h"

namespace structgen {

namespace {
// The most states of an automaton that spread() visits. For a larger automaton the result has
// `multiplies = false`.
constexpr std::size_t kMostStates = 256;
// These constants define when a language of strings multiplies. The detour of a path is the number of bytes
// by which the shortest string along this path is longer than the shortest string. A choice is a state in
// which at least kMany bytes may follow such that behind each of them the next choice is at most kNear bytes
// of detour away. A language multiplies if behind every beginning of a text a choice is at most kFar bytes of
// detour away.
constexpr uint32_t kFar = 12, kNear = 4, kMany = 8;
// If a list has at most this many texts, its items stay in the states, and not in a table beside them
// (listed()). For such a list there are few states: one for each subset of its texts.
constexpr uint32_t kShortList = 4;
// The length of the shortest value where no value is known.
constexpr uint32_t kNoValue = 1u << 30;
}  // namespace

bool Unique::lasting(TypedId p) {
  if (!(formulas_[p].has & kHasUnique) || formulas_[p].has & (kHasOutside | kHasContent)) return false;
  if (const bool* known = lasting_.find(p.v)) return *known;
  lasting_.emplace(p.v, false);
  return lasting_[p.v] = decided([&] { return lasts(p); });
}

// Returns f(), or false if this takes too much work.
template <class F>
bool Unique::decided(F&& f) {
  try {
    return f();
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::kSchemaTooComplex) throw;
    solver_.refill();
    return false;
  }
}

bool Unique::lasts(TypedId p) {
  const std::vector<TypedId> all = branches(p);
  if (all.size() != 1 || all[0] != p) return false;
  const Parts s = parts(all[0]);
  if (s.mode != kDistinct || s.list.v != 0) return false;
  if (listed(s.rest) != RegexArena::empty()) return true;
  if (!all_cells(s.rest, [&](const Cell& c) { return endless(c.value); })) return false;
  const std::vector<TypedId> rests = reachable(s.rest);
  return std::ranges::all_of(rests.begin() + 1, rests.end(), [&](TypedId q) { return solver_.closes(q); }) ||
         all_cells(s.rest, [&](const Cell& c) { return dense(c.value); });
}

RegexId Unique::listed(TypedId q) {
  const std::vector<TypedId> rests = reachable(q);
  const std::vector<Cell> cells = plain_cells(q);
  if (cells.empty() ||
      !std::ranges::all_of(rests.begin() + 1, rests.end(), [&](TypedId r) { return solver_.closes(r); }))
    return RegexArena::empty();
  const ValueId value = cells[0].value;
  for (const Kind k : {Kind::kNull, Kind::kFalse, Kind::kTrue, Kind::kNumber, Kind::kArray, Kind::kObject})
    if (solver_.restrict(value, k) != FormulaSpace::no()) return RegexArena::empty();
  if (!all_cells(q, [&](const Cell& c) { return c.value == value; })) return RegexArena::empty();
  const RegexId texts = solver_.strings(value);
  if (solver_.regexes().node(texts).kind != RegexKind::kLiteralSet) return RegexArena::empty();
  const LiteralSet& set = solver_.regexes().literal_set_of(texts);
  return set.hi - set.lo > kShortList ? texts : RegexArena::empty();
}

// Tells whether, for every n, n different values can be written such that each is at most log4(n) bytes
// longer than the shortest value. The formula must be endless().
bool Unique::dense(ValueId value) {
  const auto of = [&](Kind k) { return solver_.restrict(value, k); };
  const auto has = [&](Kind k) { return of(k) != FormulaSpace::no(); };
  uint32_t number = kNoValue, string = kNoValue, other = kNoValue;
  if (has(Kind::kNumber)) {
    number = 1;
    const TypedId numbers = of(Kind::kNumber);
    for (const TypedId k : formulas_.conjuncts(numbers))
      if (const Formula& f = formulas_[k]; f.op == Op::kAtLeast)
        number = std::max(number, static_cast<uint32_t>(formulas_.decimal(f.text()).int_part().size()));
  }
  if (has(Kind::kNull) || has(Kind::kFalse) || has(Kind::kTrue)) other = 4;
  if (has(Kind::kArray) || has(Kind::kObject)) other = 2;
  if (number <= 2 || !has(Kind::kString)) return number <= other;
  const Spread spread = this->spread(solver_.strings(value));
  string = spread.bytes;
  return std::min(number, string) <= other && (number <= string || spread.dense);
}

// Tells whether every beginning of a value can still become infinitely many values. Unique::lasting names the
// beginnings that are exempt. An object qualifies if it has infinitely many free keys, because wherever its
// text stands one more key can be written.
bool Unique::endless(ValueId value) {
  check_depth();
  if (value == FormulaSpace::yes()) return true;
  const auto of = [&](Kind k) { return solver_.restrict(value, k); };
  const auto open = [](TypedId p) { return p == FormulaSpace::yes() || p == FormulaSpace::no(); };
  const TypedId number = of(Kind::kNumber);
  if (!open(number) && !endless_numbers(number)) return false;
  const TypedId string = of(Kind::kString);
  std::vector<std::string> constants;
  if (!open(string) && (formulas_[string].op != Op::kLength || formulas_[string].b != kUnbounded) &&
      (solver_.texts().constants(string, constants) || !spread(solver_.strings(value)).multiplies))
    return false;
  const TypedId array = of(Kind::kArray);
  if (!open(array) && !endless_array(array)) return false;
  const TypedId object = of(Kind::kObject);
  if (object == FormulaSpace::yes()) return true;
  if (object == FormulaSpace::no())
    return number != FormulaSpace::no() || string != FormulaSpace::no() || array != FormulaSpace::no();
  Objects& objects = solver_.objects();
  if (formulas_[object].has & (kHasUnique | kHasOutside) || !objects.productive(object)) return false;
  const ObjectId start = objects.start(object);
  return objects.state(start).rest == FormulaSpace::yes() &&
         std::ranges::any_of(objects.offers(start).classes, [&](KeyClassId c) {
           return objects.free_keys(start, c) == kEndless &&
                  lasting(objects.plan_of(start).classes[c.v].language);
         });
}

// Tells whether p is "all integers", "all numbers from 0 on", or "all integers from a bound >= 0 on". Behind
// the digits of such a number more digits may follow, and the larger number satisfies p, too. For any other
// formula the answer is no.
bool Unique::endless_numbers(TypedId p) {
  const auto kids = formulas_.conjuncts(p);
  const bool whole = std::ranges::any_of(kids, [&](TypedId k) { return formulas_[k].op == Op::kInteger; });
  return kids.size() <= std::size_t{1} + whole && std::ranges::all_of(kids, [&](TypedId k) {
           const Formula& f = formulas_[k];
           if (f.op != Op::kAtLeast) return f.op == Op::kInteger;
           const Decimal& bound = formulas_.decimal(f.text());
           return bound.zero() || (whole && !bound.negative);
         });
}

// Tells how many strings a beginning can become (Spread). The cost of a path is what it adds to the length of
// the shortest string from its start. Two bytes of a choice may begin two spellings of one character, so the
// number of different strings may be half the number of spellings, but no less.
Unique::Spread Unique::spread(RegexId language) {
  if (const Spread* known = spreads_.find(language.v)) return *known;
  RegexArena& regexes = solver_.regexes();
  std::vector<RegexId> states{language};
  std::unordered_map<RegexId, std::size_t> seen{{language, 0}};
  struct Step {
    std::size_t to;
    uint32_t bytes;
  };
  std::vector<std::vector<Step>> steps;
  // end[i] is the number of bytes from state i to the nearest end.
  std::vector<uint32_t> end;
  for (std::size_t i = 0; i < states.size(); ++i) {
    solver_.spend(20);
    steps.emplace_back();
    end.push_back(kNoValue);
    const ClassMap& classes = regexes.classes(states[i]);
    for (uint16_t c = 0; c < classes.n; ++c) {
      const RegexId to = regexes.step(states[i], classes.rep[c]);
      if (to == RegexArena::empty()) continue;
      if (regexes.live(to).none()) {
        end[i] = 1;
        continue;
      }
      const auto [at, fresh] = seen.emplace(to, states.size());
      if (fresh) states.push_back(to);
      steps[i].push_back({at->second, static_cast<uint32_t>(std::ranges::count(classes.of, c))});
    }
    if (steps[i].empty() || states.size() > kMostStates) return spreads_[language.v] = {};
  }
  const auto settle = [&](std::vector<uint32_t>& values, auto&& f) {
    std::vector<uint32_t> before;
    do {
      before = values;
      for (std::size_t i = 0; i < states.size(); ++i) values[i] = f(i);
      solver_.spend(static_cast<uint32_t>(states.size()));
    } while (values != before);
  };
  settle(end, [&](std::size_t i) {
    uint32_t least = end[i];
    for (const Step& s : steps[i]) least = std::min(least, end[s.to] + 1);
    return least;
  });
  // near[i] is the cost of the cheapest path from state i to a choice, and 0 at a choice. The rounds of
  // settle() only raise costs: if a state turns out to be no choice, the costs of other states rise.
  std::vector<uint32_t> near(states.size());
  const auto choices = [&](uint32_t most) {
    std::ranges::fill(near, 0);
    settle(near, [&](std::size_t i) {
      uint32_t bytes = 0, least = kFar + 1;
      for (const Step& s : steps[i]) {
        const uint32_t cost = 1 + end[s.to] - end[i] + near[s.to];
        if (cost <= most) bytes += s.bytes;
        least = std::min(least, cost);
      }
      return bytes >= kMany ? 0 : least;
    });
  };
  choices(1);
  Spread out{.dense = near[0] == 0, .bytes = end[0]};
  choices(kNear);
  out.multiplies = std::ranges::max(near) <= kFar;
  return spreads_[language.v] = out;
}

// The language also contains the names of the plan and the keys that were written, which may not come again.
// There are finitely many such keys, so the answer also holds without them. It is not known here how many
// keys must still be written, so the keys must be `dense`, too.
bool Unique::lasting(RegexId keys) {
  if (!spreads_.find(keys.v) && !decided([&] { return spread(keys), true; })) spreads_[keys.v] = {};
  const Spread found = spreads_[keys.v];
  return found.multiplies && found.dense;
}

// Tells whether every array of p that was begun can get one more item, and this item an endless() value.
bool Unique::endless_array(TypedId p) {
  if (formulas_[p].has & kHasOutside || (formulas_[p].has & kHasUnique && !lasting(p))) return false;
  if (const bool* known = endless_arrays_.find(p.v)) return *known;
  endless_arrays_.emplace(p.v, false);
  const std::vector<TypedId> states = reachable(behind_fresh(p, true));
  return endless_arrays_[p.v] = std::ranges::all_of(states, [&](TypedId q) {
           return std::ranges::any_of(plain_cells(q), [&](const Cell& c) { return endless(c.value); });
         });
}

}  // namespace structgen
