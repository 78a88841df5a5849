// Lasting arrays: whether the items of an array must differ and nothing else depends on their values. Lasting
// keys: the same for the keys of an object.
//
// The problem. With uniqueItems each item that was read makes a new formula, new automata and new states
// (unique.cc): 13 to 27 kB and 60 us a token. In most arrays these values decide one thing only, namely
// whether the item that ends now repeats an earlier one.
//
// The idea. If behind every beginning of an item infinitely many values follow, the items so far can forbid
// no byte but one that ends an item: some other value is always left. The parser then reads the array without
// the atom kUnique, and a table beside the state compares the items (engine/distinct.h). So an array lasts if
// its only atom is unique({}), and each cell of each rest has a value formula that is endless: for every kind
// it has no value at all, or a value of that kind never runs out.
//
//     {"type": "integer", "minimum": 1}     lasts: behind `7` come 70 to 79, behind them 700 to 799 ...
//     {"type": "integer", "maximum": 9}     does not: behind `7` no digit may follow
//     {"type": "string", "pattern": "^a+"}  lasts: each state of the automaton leads to a state that goes on
//     {"enum": [1, 2]}                      does not: after [1, only 2 is left
//     {"type": "object"}                    lasts: wherever a text stands, one more key may come
//
// The free keys of an object always differ. They last if behind every beginning of a key infinitely many keys
// follow. What a key asks of its value is decided by the class of the key, not by the keys before.
//
//     {"patternProperties": {"^k": {}}}     last: behind `"k` come k7, k70, k700 ...
//     {"propertyNames": {"maxLength": 2}}   do not: behind `"k7` only the closing quote may follow
//
// Invariants.
// - A yes is exact. A no may be wrong: then the formula keeps the values, and the masks are the same.
// - Two beginnings are left to the reader of the text: a word such as `true`, and a number behind which no
//   digit counts any more (Unique::lasting, Lenient::fate in engine/lenient.cc).
// - While an array is decided, its own answer is no. So an array within its own items does not last.
//
// Costs. Each answer is remembered. A question walks the rests of an array and, for a pattern, at most
// kMostStates states of an automaton.
//
// Rejected. An answer for each state of the text, "is another value left here": it has to know the values,
// and they are what the states must not hold.
#include <algorithm>
#include <unordered_set>
#include <vector>

#include "base/depth.h"
#include "base/error.h"
#include "schema/decide/object.h"
#include "schema/decide/unique.h"

namespace structgen {

namespace {
// The most states of an automaton of strings that endless_texts() visits.
constexpr std::size_t kMostStates = 256;
}  // namespace

bool Unique::lasting(TypedId p) {
  if (!(formulas_[p].has & kHasUnique) || formulas_[p].has & (kHasOutside | kHasContent)) return false;
  if (const bool* known = lasting_.find(p.v)) return *known;
  lasting_.emplace(p.v, false);
  return lasting_[p.v] = decided([&] { return lasts(p); });
}

// The answer of f(); false where it takes too much work.
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

// The answer of lasting(), which remembers it.
bool Unique::lasts(TypedId p) {
  const std::vector<TypedId> all = branches(p);
  if (all.size() != 1 || all[0] != p) return false;
  const Parts s = parts(all[0]);
  if (s.mode != kUnique || s.list.v != 0) return false;
  return all_cells(s.rest, [&](const Cell& c) { return endless(c.value); });
}

// True if behind every beginning of a value infinitely many values follow, but for the beginnings that
// lasting() names. An object with a free class of keys can get one more key wherever a text stands in it.
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
      (solver_.texts().constants(string, constants) || !endless_texts(solver_.strings(value))))
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
         std::ranges::any_of(objects.offers(start).classes,
                             [&](KeyClassId c) { return objects.free_keys(start, c) == kEndless; });
}

// True for all integers, for the numbers from 0 on, and for the integers from a bound on that is not
// negative: more digits make a number larger. Other formulas are not looked into.
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

// True if behind every beginning of a string infinitely many strings follow: each live state of the automaton
// of the strings has a step to a live state, and so reaches a loop. A string has finitely many spellings, so
// a loop spells infinitely many strings.
bool Unique::endless_texts(RegexId language) {
  RegexArena& regexes = solver_.regexes();
  std::vector<RegexId> states{language};
  std::unordered_set<RegexId> seen(states.begin(), states.end());
  for (std::size_t i = 0; i < states.size(); ++i) {
    solver_.spend(20);
    bool goes_on = false;
    const ClassMap& classes = regexes.classes(states[i]);
    for (uint16_t c = 0; c < classes.n; ++c) {
      const RegexId next = regexes.step(states[i], classes.rep[c]);
      if (next == RegexArena::empty() || regexes.live(next).none()) continue;
      goes_on = true;
      if (seen.insert(next).second) states.push_back(next);
    }
    if (!goes_on || states.size() > kMostStates) return false;
  }
  return true;
}

// The names of a plan and the written keys are finitely many. So it does not matter that they are no keys.
bool Unique::lasting(RegexId keys) {
  if (const bool* known = lasting_keys_.find(keys.v)) return *known;
  return lasting_keys_[keys.v] = decided([&] { return endless_texts(keys); });
}

// True if each array of p that is still open can get one more item.
bool Unique::endless_array(TypedId p) {
  if (formulas_[p].has & kHasOutside || (formulas_[p].has & kHasUnique && !lasting(p))) return false;
  const std::vector<TypedId> states = reachable(behind_fresh(p, true));
  return std::ranges::none_of(states, [&](TypedId q) { return plain_cells(q).empty(); });
}

}  // namespace structgen
