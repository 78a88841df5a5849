// The solver's questions about one kind: whether a string, number, array or object satisfies a formula, and
// what the next item of an array may be. object.cc decides objects, and unique.cc decides arrays whose items
// must differ. solve.cc depends on neither of the two files.
//
// In: a formula restricted to a kind. Out: yes or no, and the cells of the next item. Cost: answers are
// remembered. A conjunction of "every item of a range" and "at least n items" is decided range by range; any
// other formula of arrays is decided by derivatives.
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "base/depth.h"
#include "base/error.h"
#include "base/sorted.h"
#include "base/undo.h"
#include "schema/decide/domain.h"
#include "schema/decide/object.h"
#include "schema/decide/solve.h"
#include "schema/decide/unique.h"
#include "schema/values/witness.h"

namespace structgen {

Solver::Solver(Lowering& lowering, FormulaSpace& formulas, RegexArena& regexes, Texts& texts,
               Numbers& numbers)
    : lowering_(lowering),
      formulas_(formulas),
      regexes_(regexes),
      texts_(texts),
      numbers_(numbers),
      captured_(formulas, lowering),
      domains_(std::make_unique<Domains>(*this)),
      objects_(std::make_unique<Objects>(*this)),
      unique_(std::make_unique<Unique>(*this)) {}

Solver::~Solver() = default;

std::size_t Solver::byte_size() const {
  return captured_.byte_size() + domains_->byte_size() + objects_->byte_size() + unique_->byte_size() +
         restricted_.byte_size() + nonempty_.byte_size() + array_productive_.byte_size() +
         unknown_.byte_size();
}

// Tells whether the form of the formula v shows that some string, number or constant satisfies it. A "no"
// proves nothing. Most schemas are a type with at most one condition, and plainly_nonempty() decides them
// without a plan (plan.h); plans for 67,000 properties would use up the solver's steps. The function counts
// the conditions on each kind of value that v allows. The answer is yes if some kind has no condition, or a
// single condition that some value surely meets. Such a condition (`alone`) counts 1; any other condition
// counts 2, which is too many.
bool Solver::plainly_nonempty(ValueId v) {
  check_depth();
  if (const Formula& s = formulas_[v]; s.op == Op::kSchema) {
    if (lowering_.broken(s.location())) return false;
    v = lowering_.lower(s.location());
  }
  // The form of the formula does not show which values are captured.
  if (formulas_[v].has & kHasOutside) return false;
  uint32_t mask = kAllKinds, conditions[kKinds] = {};
  for (ValueId k : formulas_.conjuncts(v)) {
    const Formula& f = formulas_[k];
    const OpRow& row = structgen::row(f.op);
    if (f.op == Op::kTypes) {
      mask &= f.a;
      continue;
    }
    // The value `{}` or `[]` satisfies the condition.
    if (row.closes) continue;
    if (!row.about) return false;
    const bool alone = (row.family == Family::kNumber || row.family == Family::kText) &&
                       structgen::plainly_nonempty(formulas_, FormulaSpace::of_its_kind(k));
    conditions[static_cast<int>(*row.about)] += alone ? 1 : 2;
  }
  for (int k = 0; k < kKinds; ++k)
    if ((mask >> k & 1) && conditions[k] <= 1) return true;
  return false;
}

// Tells whether a value of kind k satisfies v. plainly_nonempty() (values/witness.h) is asked first, because
// most strings and numbers need no automaton.
bool Solver::kind_nonempty(ValueId v, Kind k) {
  const TypedId p = restrict(v, k);
  if (p == FormulaSpace::no()) return false;
  if (p == FormulaSpace::yes()) return true;
  switch (k) {
    case Kind::kString: {
      if (structgen::plainly_nonempty(formulas_, p)) return true;
      const Contents held = contents(p);
      return std::ranges::any_of(held.values, [&](ValueId w) { return nonempty(w); }) ||
             texts_.decided(held.texts) != RegexArena::empty();
    }
    case Kind::kNumber:
      return structgen::plainly_nonempty(formulas_, p) || numbers_.language(p) != RegexArena::empty();
    case Kind::kArray: return array_productive(p);
    case Kind::kObject: return objects_->productive(p);
    default: return false;  // null, true and false restrict to yes or no
  }
}

TypedId Solver::spell_out(TypedId p, FlatMap<uint32_t, TypedId>& memo) {
  check_depth();
  const Formula f = formulas_[p];
  if (!(f.has & kHasOutside)) return p;
  if (const OpRow& row = structgen::row(f.op); row.family == Family::kOutside)
    return formulas_.negate(restrict(captured_.member(CapturedId{f.a}), *row.about));
  return formulas_.map_kids(p, memo, [&](TypedId k) { return spell_out(k, memo); });
}

Outside Solver::outside_of(TypedId p) {
  Outside out{p, {}};
  if (!(formulas_[p].has & kHasOutside)) return out;
  std::vector<TypedId> others;
  FlatMap<uint32_t, TypedId> memo;
  for (TypedId k : formulas_.conjuncts(p))
    if (formulas_.row(k).family == Family::kOutside)
      out.set = captured_.join(out.set, CapturedId{formulas_[k].a});
    else
      others.push_back(spell_out(k, memo));
  out.rest = formulas_.all_of(others);
  return out;
}

// Returns the condition on the items to come, once one item is written. Ranges of indices move down by one:
// `items 2..` becomes `items 1..`. A range from 0 on becomes a condition on the value of the item that was
// just written. A count such as "at least 2 items from index 0 on" becomes a choice on this value
// (FormulaSpace::counted).
TypedId Solver::shift(TypedId p, FlatMap<uint32_t, TypedId>& memo) {
  const Formula f = formulas_[p];
  const uint32_t first = f.a == 0 ? 0 : f.a - 1, end = f.d == kUnbounded ? f.d : f.d - 1;
  const OpRow& row = formulas_.row(p);
  // The atom kUnique stays. Unique::extend changes it when the item's text is known.
  if (row.family == Family::kConstant || row.family == Family::kComparison) return p;
  if (row.family == Family::kItems) {
    const ValueId v = f.value();
    const TypedId rest = formulas_.items(row.count, first, end, v, f.c);
    if (f.a > 0) return rest;
    return formulas_.counted(
        row.count, v, rest, [&](int64_t n) { return formulas_.items(row.count, first, end, v, n); }, f.c);
  }
  return memo.remember(p.v, [&] {
    spend();
    return formulas_.map_kids(p, [&](TypedId k) { return shift(k, memo); });
  });
}

// Returns the cells of the next item, for a formula without the atom kUnique.
std::vector<Cell> Solver::array_cells(TypedId p) {
  check_depth();
  FlatMap<uint32_t, TypedId> memo;
  std::vector<Cell> out;
  const Judge judge = [&](TypedId rest) { return array_productive(rest); };
  split(shift(p, memo), FormulaSpace::yes(), {judge, judge, nullptr, nullptr, true}, out);
  return out;
}

std::vector<ItemCell> Solver::item_cells(TypedId p) {
  if (formulas_[p].has & (kHasUnique | kHasOutside)) return unique_->cells(p);
  std::vector<ItemCell> out;
  for (const Cell& c : array_cells(p)) out.push_back({c.value, c.rest, false});
  return out;
}

TypedId Solver::extend(const ItemCell& cell, std::string_view text) {
  return cell.capture ? unique_->extend(cell.rest, text) : cell.rest;
}

std::optional<std::vector<ItemRange>> Solver::item_ranges(TypedId p) {
  const auto kids = formulas_.conjuncts(p);
  uint32_t need = 0;
  std::vector<uint32_t> bounds{0};
  for (TypedId k : kids) {
    const Formula& l = formulas_[k];
    if (l.op == Op::kTrue) continue;
    // The conjunct says that the item with index l.a exists and satisfies V. So there are at least l.a + 1
    // items, and V restricts the item with index l.a.
    if (l.op == Op::kItemSome && l.c == 1 && l.d == l.a + 1)
      need = std::max(need, l.d);
    else if (l.op != Op::kItemAll)
      return std::nullopt;
    bounds.push_back(l.a);
    bounds.push_back(l.d);
  }
  sort_unique(bounds);
  std::vector<ItemRange> out;
  for (std::size_t i = 0; bounds[i] < need; ++i) {
    std::vector<ValueId> here;
    for (TypedId k : kids)
      if (const Formula& l = formulas_[k]; l.op != Op::kTrue && l.a <= bounds[i] && bounds[i] < l.d)
        here.push_back(l.value());
    out.push_back({formulas_.all_of(here), bounds[i + 1] - bounds[i]});
  }
  return out;
}

// Decides an array by its ranges. Returns nothing if the formula has another form.
std::optional<bool> Solver::simple_array(TypedId p) {
  const auto ranges = item_ranges(p);
  if (!ranges) return std::nullopt;
  return std::ranges::all_of(*ranges, [&](const ItemRange& r) { return nonempty(r.value); });
}

// A "no" is stored only if it depends on no formula that is still being decided, as in Solver::nonempty.
bool Solver::array_productive(TypedId p) {
  check_depth();
  if (p == FormulaSpace::no()) return false;
  if (closes(p)) return true;
  if (const auto* known = array_productive_.find(p.v)) return *known == 2;
  const uint32_t before = low_;
  low_ = kClean;
  bool result = false;
  if (formulas_[p].has & (kHasUnique | kHasOutside))
    result = unique_->productive(p);
  else if (const std::optional<bool> simple = simple_array(p))
    result = *simple;
  else
    result = search_array(p);
  if (result || low_ == kClean) array_productive_.emplace(p.v, result ? 2 : 1);
  low_ = result ? before : std::min(low_, before);
  return result;
}

// A breadth-first search over the rests behind 0 items, 1 item, 2 items, and so on. It cannot take the
// conjuncts one after the other, as the search for members does, because the order of items is fixed. Counts
// and indices only fall, so there are finitely many rests.
bool Solver::search_array(TypedId p) {
  check_depth();
  std::vector<TypedId> queue{p};
  std::unordered_set<TypedId> seen{p};
  for (std::size_t i = 0; i < queue.size(); ++i) {
    FlatMap<uint32_t, TypedId> memo;
    std::vector<Cell> cells;
    const Judge judge = [](TypedId) { return true; };
    split(shift(queue[i], memo), FormulaSpace::yes(), {judge, judge}, cells);
    for (const Cell& c : cells) {
      if (closes(c.rest) || simple_array(c.rest).value_or(false)) return true;
      if (seen.insert(c.rest).second) queue.push_back(c.rest);
    }
    spend(10);
  }
  return false;
}

}  // namespace structgen
