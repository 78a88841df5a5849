// uniqueItems: the next item of an array all of whose items must differ.
//
// The problem. "All items differ" depends on values that were read, and a value that is allowed now may
// be the only value that a later item can have. The negation (two items are equal) has to be decided as
// well.
//
// The idea. The values read so far are a set C inside the formula, as an atom unique(C). An item of unique(C)
// must be outside of C, and joins C when the text of the item is known (extend). Values that would leave
// nothing for later items are found by matching the later items with their values. Example: two items, of
// which the first is 1 or 2, and the second is 1:
//
//     cells: the first item is in {1, 2}; what is left is one item of {1}
//     match: the second item takes 1, and no other value can stand in for it: 1 is needed (refused)
//     so the first cell's value is {1, 2} without {1}, which is 2
//     extend(rest, "2"): unique({2}) and an item of {1}
//     cells: {1} without {2}, which is 1
//
// The functions of this file stand in this order: normal form (a formula as "unique(C) and Q" or "not
// unique(C) and Q"), captured values, unique(C), not unique(C), both. lasting.cc decides which arrays need no
// set C.
//
// Invariants.
// - A formula has at most one atom kUnique, because all uniqueItems of one array capture the same items.
// - A formula says "none of the captured values" only as a conjunct of its own (outside_of). In any other
//   place the condition is spelled out, value by value. decide/captured.h says how the condition changes when
//   a part of a value is written.
//
// Costs. Captured values: schema/decide/captured.h. Matching (matching.h) only looks at items whose values
// can be listed (domain.h); an item with more values than the array can use (`abundant`) always finds a
// value, so the matching leaves it out.
//
// Rejected.
// - One atom for each value read: each new formula had n parts, so n items took n^2 memory.
// - Offering every value outside of C: masks then led into arrays that could not be completed.
#include "schema/decide/unique.h"

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_set>

#include "base/depth.h"
#include "base/error.h"

namespace structgen {

namespace {
// A question that needs more states of an array than this throws kSchemaTooComplex.
constexpr std::size_t kMaxReachable = 5'000;
}  // namespace

Unique::Unique(Solver& solver)
    : solver_(solver),
      formulas_(solver.formulas()),
      captured_(solver.captured()),
      domains_(solver.domains()) {}

TypedId Unique::find_atom(TypedId f) const {
  while (formulas_[f].op != Op::kUnique)
    for (TypedId k : formulas_.kids(f))
      if (formulas_[k].has & kHasUnique) {
        f = k;
        break;
      }
  return f;
}

TypedId Unique::assume(TypedId x, bool truth, FlatMap<uint32_t, TypedId>& memo) {
  const Formula f = formulas_[x];
  if (!(f.has & kHasUnique)) return x;
  if (f.op == Op::kUnique) return truth ? FormulaSpace::yes() : FormulaSpace::no();
  return formulas_.map_kids(x, memo, [&](TypedId k) { return assume(k, truth, memo); });
}

// Sets `positive` if the atom kUnique stands in x under an even number of negations, and `negative` if it
// stands under an odd number. `sign` is false if x itself is negated. Inside an exactly-one the atom counts
// as standing under both.
void Unique::polarity(TypedId x, bool sign, bool& positive, bool& negative,
                      FlatMap<uint64_t, bool>& seen) const {
  check_depth();
  const Formula& f = formulas_[x];
  if (!(f.has & kHasUnique) || !seen.emplace(2ull * x.v + sign, true).second) return;
  if (f.op == Op::kUnique) {
    (sign ? positive : negative) = true;
    return;
  }
  for (TypedId k : formulas_.kids(x)) {
    polarity(k, f.op == Op::kNot ? !sign : sign, positive, negative, seen);
    if (f.op == Op::kOne) polarity(k, !sign, positive, negative, seen);
  }
}

// Returns the formula as branches of a union: "unique(C) and Q", or "not unique(C) and Q". Q has no such
// atom.
std::vector<TypedId> Unique::branches(TypedId p) {
  if (!(formulas_[p].has & kHasUnique)) return {p};
  const TypedId atom = find_atom(p);
  FlatMap<uint32_t, TypedId> memo[2];
  const TypedId with = assume(p, true, memo[1]), without = assume(p, false, memo[0]);
  if (with == without) return {with};
  bool positive = false, negative = false;
  FlatMap<uint64_t, bool> seen;
  polarity(p, true, positive, negative, seen);
  std::vector<TypedId> out;
  const auto add = [&](TypedId condition, TypedId f) {
    for (TypedId k : formulas_.disjuncts(f))
      if (const TypedId b = formulas_.both(condition, k); b != FormulaSpace::no()) out.push_back(b);
  };
  // `with` is the formula if the atom is true, `without` if it is false. If the atom stands only under even
  // numbers of negations, `without` implies `with`, so the branch of `without` needs no atom. If the atom
  // stands only under odd numbers of negations, the branch of `with` needs no atom. A branch without the atom
  // captures no items.
  add(negative && !positive ? FormulaSpace::yes() : atom, with);
  add(positive && !negative ? FormulaSpace::yes() : formulas_.negate(atom), without);
  return out;
}

// Splits a branch into its mode, its list C and Q.
Unique::Parts Unique::parts(TypedId p) const {
  Parts out;
  out.rest = p;
  const auto kids = formulas_.conjuncts(p);
  std::vector<TypedId> others;
  for (TypedId k : kids) {
    const Formula& f = formulas_[k];
    if (f.op == Op::kUnique) {
      out.mode = kDistinct;
      out.list = CapturedId{f.a};
    } else if (f.op == Op::kNot && formulas_[formulas_.kids(k)[0]].op == Op::kUnique) {
      out.mode = kRepeat;
      asked_alike_ = true;
      out.list = CapturedId{formulas_[formulas_.kids(k)[0]].a};
    } else {
      others.push_back(k);
    }
  }
  if (out.mode != kPlain) out.rest = const_cast<FormulaSpace&>(formulas_).all_of(others);
  return out;
}

TypedId Unique::join(Mode mode, CapturedId list, TypedId rest) {
  if (mode == kPlain) return rest;
  const TypedId atom = formulas_.atom(Op::kUnique, list.v);
  return formulas_.both(mode == kDistinct ? atom : formulas_.negate(atom), rest);
}

TypedId Unique::extend(TypedId rest, std::string_view text) {
  const Outside o = solver_.outside_of(rest);
  const Parts p = parts(o.rest);
  const std::string value = Captured::canonical(text);
  const TypedId out = p.mode == kPlain ? p.rest : join(p.mode, captured_.add(p.list, value), p.rest);
  const CapturedId left = captured_.behind(o.set, Captured::kFirstItem, value);
  return left.v == 0 ? out : formulas_.both(out, formulas_.atom(Op::kArrayOutside, left.v));
}

ItemCell Unique::fresh(const ItemCell& cell) {
  const ValueId fresh = formulas_.both(cell.value, captured_.outside(first_items(cell.rest)));
  return {fresh, solver_.outside_of(cell.rest).rest, cell.capture};
}

// Appends the cell, without the items behind which the array could only become an array of the set.
void Unique::add_outside(CapturedId set, ItemCell cell, std::vector<ItemCell>& out) {
  if (!captured_.has(set, Captured::kFirstItem)) return out.push_back(cell);
  const uint32_t cap = captured_.size(set) + 1;
  const auto covered = [&](TypedId rest) {
    const Domain& rests = domains_.arrays(rest, cap);
    return rests.abundant ? CapturedId() : captured_.covered(set, Captured::kFirstItem, rests.values);
  };
  CapturedId bad;
  if (cell.capture) {
    // The set has arrays that begin with the item `first`. The item `first` is bad if each array that can
    // follow it is what one of these arrays has behind it.
    for (const std::string& first : captured_.first_items(set))
      if (captured_.contains(covered(extend(cell.rest, first)), first)) bad = captured_.add(bad, first);
  } else {
    bad = covered(cell.rest);
  }
  cell.value = formulas_.both(cell.value, captured_.outside(bad));
  if (!solver_.nonempty(cell.value)) return;
  out.push_back({cell.value, formulas_.both(cell.rest, formulas_.atom(Op::kArrayOutside, set.v)), true});
}

// Returns the cells of a formula of arrays without the atom kUnique. The cells are remembered if they are
// final.
std::vector<Cell> Unique::plain_cells(TypedId q) {
  if (const auto it = plain_cells_.find(q); it != plain_cells_.end()) return it->second;
  const Omissions omissions(solver_.omitted());
  const std::vector<Cell> cells = solver_.array_cells(q);
  refuse_starved(cells.empty(), omissions);
  if (solver_.tainted()) return cells;
  held_ += 64 + sizeof(Cell) * cells.size();
  return plain_cells_.emplace(q, cells).first->second;
}

// Gives each item that must exist a value of its own, none of them in the list. Returns nothing if this is
// impossible.
std::optional<Matching> Unique::match(CapturedId list, const std::vector<ItemRange>& ranges) {
  check_depth();
  uint32_t need = 0;
  std::map<ValueId, uint32_t> items;
  for (const auto& [f, count] : ranges) {
    items[f] += count;
    need += count;
  }
  Matching out([&solver = solver_](uint32_t steps) { solver.spend(steps); });
  for (const auto& [f, count] : items) {
    const Domain& d = domains_.of(f, need + captured_.size(list) + 1);
    if (d.abundant) continue;
    Values free;
    for (const std::string& v : d.values)
      if (!captured_.contains(list, v)) free.push_back(v);
    if (!out.add(count, free)) return {};
  }
  if (!out.complete()) return {};
  return out;
}

// Returns all rests that an array of q can have, behind any number of items.
std::vector<TypedId> Unique::reachable(TypedId q) {
  check_depth();
  if (const auto it = reachable_.find(q); it != reachable_.end()) return it->second;
  std::vector<TypedId> queue{q};
  std::unordered_set<TypedId> seen{q};
  for (std::size_t i = 0; i < queue.size(); ++i) {
    solver_.spend(10);
    for (const Cell& c : plain_cells(queue[i]))
      if (seen.insert(c.rest).second) queue.push_back(c.rest);
    if (queue.size() > kMaxReachable)
      throw Error(ErrorKind::kSchemaTooComplex,
                  "too many states of an array to decide which items may repeat");
  }
  if (solver_.tainted()) return queue;
  held_ += 64 + sizeof(TypedId) * queue.size();
  return reachable_.emplace(q, std::move(queue)).first->second;
}

// Tells whether some array satisfies q, its items all differ, and none is in the list.
bool Unique::distinct(CapturedId list, TypedId q) {
  if (solver_.closes(q)) return true;
  if (!solver_.array_productive(q)) return false;
  if (const auto ranges = solver_.item_ranges(q)) return match(list, *ranges).has_value();
  Values used;
  return search(list, q, used);
}

// Finds an array of q whose items all differ and are outside of the list. `used` gets the values of this
// array that only few other values could replace.
bool Unique::search(CapturedId list, TypedId q, Values& used) {
  std::vector<TypedId> path;
  return search(q, list, static_cast<uint32_t>(reachable(q).size()), used, path);
}

// Searches for such an array, depth first. An item that has more values than the array has items gets no
// value here, because at the end some value is left for this item. A rest that is in `path` already is
// skipped, because the items since then can be left out.
bool Unique::search(TypedId q, CapturedId list, uint32_t bound, Values& used, std::vector<TypedId>& path) {
  check_depth();
  if (solver_.closes(q)) return true;
  solver_.spend(20);
  path.push_back(q);
  for (const Cell& c : plain_cells(q)) {
    if (std::ranges::find(path, c.rest) != path.end()) continue;
    const Domain d =
        domains_.of(c.value, bound + captured_.size(list) + static_cast<uint32_t>(used.size()) + 2);
    if (d.abundant) {
      if (search(c.rest, list, bound, used, path)) return true;
      continue;
    }
    for (const std::string& v : d.values) {
      solver_.spend(5);
      if (captured_.contains(list, v) || std::ranges::find(used, v) != used.end()) continue;
      used.push_back(v);
      if (search(c.rest, list, bound, used, path)) return true;
      used.pop_back();
    }
  }
  path.pop_back();
  return false;
}

// Returns the values that an item may not have: the values of the list, and the values that later items
// cannot do without. Returns nothing if the array cannot be completed at all. Where item_ranges() does not
// apply to `rest`, it searches for one array of distinct items. Only the values of this array can be needed.
// For each of them, refused() searches for an array without this value.
std::optional<CapturedId> Unique::refused(CapturedId list, TypedId rest, ValueId value) {
  if (solver_.closes(rest)) return list;
  Values used, needed;
  if (const auto ranges = solver_.item_ranges(rest)) {
    const std::optional<Matching> matching = match(list, *ranges);
    if (!matching) return {};
    needed = matching->needed();
  } else if (!search(list, rest, used)) {
    return {};
  }
  for (const std::string& v : used)
    if (solver_.nonempty(formulas_.both(value, captured_.member(captured_.add({}, v)))) &&
        !distinct(captured_.add(list, v), rest))
      needed.push_back(v);
  for (const std::string& v : needed) list = captured_.add(list, v);
  return list;
}

// Returns the formula of the values of all items that can still come. A captured value may be repeated if it
// satisfies this formula.
ValueId Unique::repeats(TypedId q) {
  check_depth();
  if (const auto* known = repeats_.find(q.v)) return *known;
  std::vector<ValueId> values;
  all_cells(q, [&](const Cell& c) {
    values.push_back(c.value);
    return true;
  });
  const ValueId out = formulas_.any_of(values);
  if (!solver_.tainted()) repeats_.emplace(q.v, out);
  return out;
}

// Tells whether two items can still be equal: a later item and a captured item, or two later items.
bool Unique::repeat_productive(CapturedId list, TypedId q) {
  if (!solver_.array_productive(q)) return false;
  const ValueId captured = captured_.member(list);
  return !all_cells(q, [&](const Cell& c) {
    return !solver_.nonempty(formulas_.both(c.value, captured)) &&
           !solver_.nonempty(formulas_.both(c.value, repeats(c.rest)));
  });
}

bool Unique::productive(TypedId p) {
  check_depth();
  if (const Outside o = solver_.outside_of(p); o.set.v != 0 || o.rest != p)
    return domains_.some_outside(Kind::kArray, o.rest, o.set);
  for (TypedId b : branches(p)) {
    const Parts s = parts(b);
    if (s.mode == kPlain      ? solver_.array_productive(s.rest)
        : s.mode == kDistinct ? distinct(s.list, s.rest)
                              : repeat_productive(s.list, s.rest))
      return true;
  }
  return false;
}

// Returns the cells of the next item. Under unique(C) the item is not in C, and no later item needs its value
// (refused()). Under not unique(C) a value in C meets the condition, and any other value is captured if a
// later item can repeat it.
std::vector<ItemCell> Unique::cells(TypedId p) {
  check_depth();
  if (const Outside o = solver_.outside_of(p); o.set.v != 0 || o.rest != p) {
    // The formula may also ask for two equal items. A reader (parse/productions.h) that is told an item's
    // text would then not know for which of the two conditions it is told, so the captured values are written
    // out as constants.
    for (TypedId b : branches(o.rest))
      if (parts(b).mode == kRepeat) {
        FlatMap<uint32_t, TypedId> memo;
        return solver_.item_cells(solver_.spell_out(p, memo));
      }
    std::vector<ItemCell> apart;
    for (const ItemCell& c : solver_.item_cells(o.rest)) add_outside(o.set, c, apart);
    return apart;
  }
  std::vector<ItemCell> out;
  const auto add = [&](ValueId value, TypedId rest, bool capture) {
    if (value == FormulaSpace::no()) return;
    for (ItemCell& c : out)
      if (c.rest == rest && c.capture == capture) {
        c.value = formulas_.either(c.value, value);
        return;
      }
    out.push_back({value, rest, capture});
  };
  for (TypedId b : branches(p)) {
    const Parts s = parts(b);
    const ValueId captured = s.mode == kRepeat ? captured_.member(s.list) : FormulaSpace::no();
    for (const Cell& c : plain_cells(s.rest)) {
      if (s.mode == kPlain) {
        add(c.value, c.rest, false);
        continue;
      }
      const ValueId fresh = formulas_.both(c.value, formulas_.deny(captured));
      for (TypedId rest : formulas_.disjuncts(c.rest)) {
        if (!solver_.array_productive(rest)) continue;
        if (s.mode == kDistinct) {
          const std::optional<CapturedId> never = refused(s.list, rest, c.value);
          if (!never || !domains_.some_outside(c.value, *never)) continue;
          // If no further item can follow, the text need not be captured.
          const ValueId value = formulas_.both(c.value, captured_.outside(*never));
          const bool more = !plain_cells(rest).empty();
          add(value, more ? join(kDistinct, s.list, rest) : rest, more);
          continue;
        }
        const ValueId again = formulas_.both(c.value, captured);
        if (solver_.nonempty(again)) add(again, rest, false);
        ValueId value = fresh;
        if (!repeat_productive(s.list, rest)) value = formulas_.both(fresh, repeats(rest));
        if (solver_.nonempty(value)) add(value, join(kRepeat, s.list, rest), true);
      }
    }
  }
  return out;
}

// Tells whether there is a cell behind which the array may close, and whose item has more values than the
// list excludes.
bool Unique::surely_more(TypedId rest) {
  if (formulas_[rest].has & kHasOutside) return false;
  const Parts s = parts(rest);
  if (s.mode == kRepeat) return true;
  return std::ranges::any_of(plain_cells(s.rest), [&](const Cell& c) {
    return solver_.closes(c.rest) && domains_.of(c.value, captured_.size(s.list) + 2).abundant;
  });
}

}  // namespace structgen
