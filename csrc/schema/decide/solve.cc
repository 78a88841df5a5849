// Decides what the next member or item of a value may be, and whether any value satisfies a formula.
//
// The problem. A schema is a Boolean formula over keywords (schema/formula/formula.h). After some members of
// an object the parser asks about the next member: which values may it have, and which conditions are then
// left for the members behind it? The answer must contain no case that cannot be completed, whatever allOf,
// oneOf and not stand around these keywords.
//
// The idea, in three steps. restrict() fixes the kind of the value, so atoms of other kinds become true. The
// derivative by one member replaces each atom by two parts: its condition on this member's value, val(v), and
// its condition on the other members. split() takes the two parts of the whole formula apart, into cells: in
// a cell the value satisfies `value`, and the other members satisfy `rest`. Cells without a value or without
// a completion are dropped. For oneOf [{k: "x", n required}, {k: "y"}] at key k:
//
//     derivative      one of (val("x") and some(n), val("y"))
//     "x" true        the value is "x"; left is one of (some(n), val("y"))
//       "y" true      the value is "x" and "y": there is none, dropped
//       "y" false     a cell: the value is "x" and not "y", the rest is some(n), so n must come
//     "x" false       a cell: the value is "y" and not "x", the rest is true, so the object may end
//
// Whether a value exists (nonempty) is a least fixpoint: a formula that is being decided counts as empty,
// because a finite value cannot contain itself. So {"required": ["next"]}, where the schema of `next` is the
// whole schema again, has no value.
//
// Invariants.
// - Answers are exact, or Error(kSchemaTooComplex). attempt() alone turns this error into "no", and only in a
//   world that omits parts of a schema (base/effort.h).
// - A yes is stored. A formula is open while it is being decided. A no is stored only if no open formula was
//   asked on the way (low_).
// - Cells may overlap. The parser keeps all of them as alternatives.
//
// Rejected. The whole formula in disjunctive form: its size is exponential in the number of unions. Storing
// every no: then the answer whether a recursive schema has a value would depend on which formula was asked
// first.
#include "schema/decide/solve.h"

#include <algorithm>
#include <unordered_set>

#include "base/depth.h"
#include "base/error.h"
#include "base/sorted.h"
#include "base/told.h"
#include "base/undo.h"
#include "base/work.h"
#include "schema/values/witness.h"

namespace structgen {

namespace {
// The steps that spend() allows since the last refill(). Then it throws, unless the world omits
// (base/effort.h).
constexpr uint64_t kBudget = 1'200'000;
// Values may have to exist inside each other at most this deep, as in {"required": ["a"]} in {"required":
// ["a"]} ...; a deeper nesting throws kSchemaTooComplex.
constexpr uint32_t kMaxDepth = 1'500;
// Applicators such as `allOf`, which stand in place, may be at most this deep inside each other.
constexpr uint32_t kMaxRestrictDepth = 2'000;
constexpr std::size_t kMaxCells = 3'000;
// The steps that exclusive() gives split_by_truth() before it makes cells of its own.
constexpr uint32_t kTrialSteps = 200;
// exclusive() gives up if some branch of an exactly-one has more rivals than this. A rival is a branch that
// may hold at the same time.
constexpr std::size_t kMaxRivals = 2;
// exclusive() serves an exactly-one if at least this many of its branches ask about the value, and ask as
// many different questions.
constexpr uint32_t kManyBranches = 6;
}  // namespace

void Solver::spend(uint32_t steps) {
  charge(steps);
  spent_ += steps;
  if (spent_ > kBudget && !effort().omits())
    throw Error(ErrorKind::kSchemaTooComplex, "the combination of subschemas is too large to decide exactly");
}

// Tells whether the formula depends on a reference that leads nowhere. Neither the formula nor its negation
// then accepts a value: `not {"$ref": "#/missing"}` must not accept everything.
bool Solver::unknown(ValueId v) {
  if (!lowering_.schemas().any_broken() && !lowering_.any_broken()) return false;
  check_depth();
  if (const auto* known = unknown_.find(v.v)) return *known != 0;
  spend();
  // While v is open the answer is no. A dynamic reference that leads back to v adds no condition to v.
  unknown_.emplace(v.v, 0);
  Undo forget([&] { unknown_.erase(v.v); });
  const Formula f = formulas_[v];
  bool out = false;
  if (f.op == Op::kSchema) out = lowering_.broken(f.location()) || unknown(lowering_.lower(f.location()));
  for (ValueId k : formulas_.kids(v)) out = out || unknown(k);
  forget.keep();
  unknown_[v.v] = out;
  return out;
}

namespace {
// What restrict_once() throws at a schema that it is restricting already.
struct Looping {
  LocationId location;
};
}  // namespace

// Restricts until no loop of dynamic references is met; such a loop is found only by following references.
// The schema where it closes is marked as broken. Then the restriction begins again, because negations that
// were restricted before may now have other answers.
TypedId Solver::restrict(ValueId v, Kind k) {
  if (restrict_depth_ > 0) return restrict_once(v, k);
  for (;;) try {
      return restrict_once(v, k);
    } catch (const Looping& loop) {
      lowering_.loops(loop.location);
      unknown_.clear();
    }
}

// Follows the structure of the formula. Conditions on kind k stay, and conditions on other kinds become true.
TypedId Solver::restrict_once(ValueId v, Kind k) {
  check_depth();
  const Formula f = formulas_[v];
  const OpRow& row = formulas_.row(v);
  const TypedId same = FormulaSpace::of_its_kind(v);
  if (row.family == Family::kConstant) return same;
  if (row.about) return *row.about == k ? same : FormulaSpace::yes();
  if (f.op == Op::kTypes) return f.a & kind_bit(k) ? FormulaSpace::yes() : FormulaSpace::no();
  if (formulas_.is_number_set(v)) return k == Kind::kNumber ? same : FormulaSpace::yes();
  const uint64_t key = (static_cast<uint64_t>(v.v) << 3) | static_cast<uint64_t>(k);
  if (const auto* known = restricted_.find(key)) return *known;
  if (f.op == Op::kSchema && !restricting_.emplace(key, true).second) throw Looping{f.location()};
  ++restrict_depth_;
  const Undo leave([&] {
    --restrict_depth_;
    if (f.op == Op::kSchema) restricting_.erase(key);
  });
  if (restrict_depth_ > kMaxRestrictDepth)
    throw Error(ErrorKind::kSchemaTooComplex, "subschemas nest too deeply");
  spend();
  TypedId out;
  if (f.op == Op::kSchema)
    // A broken schema allows no value, and its negation (below) allows none, either.
    out = lowering_.broken(f.location()) ? FormulaSpace::no() : restrict(lowering_.lower(f.location()), k);
  else if (f.op == Op::kNot)
    out = unknown(formulas_.kids(v)[0]) ? FormulaSpace::no()
                                        : formulas_.negate(restrict(formulas_.kids(v)[0], k));
  else if (f.op == Op::kOne && unknown(v))
    out = FormulaSpace::no();
  else
    out = formulas_.map_kids(v, [&](ValueId kid) { return restrict(kid, k); });
  restricted_.emplace(key, out);
  return out;
}

std::optional<LocationId> Solver::schema_of(ValueId v, uint32_t levels) const {
  const Formula& f = formulas_[v];
  if (f.op == Op::kSchema) {
    if (lowering_.schemas().added(lowering_.location(f.location()))) return std::nullopt;
    return f.location();
  }
  if (levels == 0) return std::nullopt;
  for (ValueId k : formulas_.kids(v))
    if (const auto found = schema_of(k, levels - 1)) return found;
  return std::nullopt;
}

// While v is being decided, it counts as empty, and low_ notes that this was used. If v comes out empty while
// low_ is below v's own depth, this "no" depends on a formula that is still open. Such a "no" is not stored.
bool Solver::nonempty(ValueId v) {
  check_depth();
  if (v == FormulaSpace::yes()) return true;
  if (v == FormulaSpace::no()) return false;
  if (const auto* known = nonempty_.find(v.v)) return *known == 2;
  if (const uint32_t* depth = open_.find(v.v)) {
    low_ = std::min(low_, *depth);
    return false;
  }
  if (depth_ >= kMaxDepth)
    throw Error(ErrorKind::kSchemaTooComplex, "required values nest too deeply to decide whether any exists");
  spend();
  const uint32_t before = low_, mine = depth_++;
  low_ = kClean;
  open_.emplace(v.v, mine);
  const auto forget = [&] {
    open_.erase(v.v);
    depth_ = mine;
  };
  bool result = false;
  try {
    result = compute_nonempty(v);
  } catch (Error& e) {
    forget();
    low_ = before;
    if (const auto at = schema_of(v, 3)) e.in_schema(*at);
    throw;
  } catch (...) {
    forget();
    low_ = before;
    throw;
  }
  forget();
  if (result) {
    nonempty_.emplace(v.v, 2);
    low_ = before;
  } else if (low_ >= mine) {
    nonempty_.emplace(v.v, 1);
    low_ = before;
  } else {
    low_ = std::min(low_, before);
  }
  return result;
}

// Strings, numbers and constants are asked first, because they need no formula of a member or item.
bool Solver::compute_nonempty(ValueId v) {
  if (plainly_nonempty(v)) return true;
  FirstLimit unsure;  // one kind with a value decides, whatever the others are
  for (Kind k :
       {Kind::kNull, Kind::kTrue, Kind::kFalse, Kind::kString, Kind::kNumber, Kind::kArray, Kind::kObject})
    if (unsure.otherwise(false, [&] { return kind_nonempty(v, k); })) return true;
  unsure.rethrow();
  return false;
}

bool Solver::closes(TypedId p) const {
  check_depth();
  const OpRow& row = formulas_.row(p);
  if (row.family == Family::kOutside)
    return !captured_.contains(CapturedId{formulas_[p].a}, row.about == Kind::kArray ? "[]" : "{}");
  if (row.family != Family::kConnective) return row.closes;
  const auto kids = formulas_.kids(p);
  const auto holds = [&](TypedId k) { return closes(k); };
  if (row.op == Op::kAnd) return std::ranges::all_of(kids, holds);
  if (row.op == Op::kOr) return std::ranges::any_of(kids, holds);
  return row.op == Op::kOne ? std::ranges::count_if(kids, holds) == 1 : !closes(kids[0]);
}

// Returns x with `truth` in place of each atom val(value), which says "the value satisfies `value`".
TypedId Solver::substitute(TypedId x, ValueId value, bool truth, FlatMap<uint32_t, TypedId>& memo) {
  const Formula f = formulas_[x];
  if (!(f.has & kHasVal)) return x;
  if (f.op == Op::kVal) return f.value() == value ? (truth ? FormulaSpace::yes() : FormulaSpace::no()) : x;
  return memo.remember(x.v, [&] {
    spend();
    return formulas_.map_kids(x, [&](TypedId k) { return substitute(k, value, truth, memo); });
  });
}

// Returns v if p is "not val(v)".
std::optional<ValueId> Solver::denied_val(TypedId p) const {
  if (formulas_[p].op != Op::kNot) return std::nullopt;
  const Formula& denied = formulas_[formulas_.kids(p)[0]];
  return denied.op == Op::kVal ? std::optional(denied.value()) : std::nullopt;
}

// Returns the formula of the first atom kVal in x, which must have one.
ValueId Solver::first_val(TypedId x) const {
  while (formulas_[x].op != Op::kVal) {
    for (TypedId k : formulas_.kids(x))
      if (formulas_[k].has & kHasVal) {
        x = k;
        break;
      }
  }
  return formulas_[x].value();
}

bool Solver::value_and_rest(TypedId f, ValueId& value, TypedId& rest) {
  std::vector<ValueId> values;
  std::vector<TypedId> rests;
  for (TypedId k : formulas_.conjuncts(f)) {
    const Formula u = formulas_[k];
    if (!(u.has & kHasVal))
      rests.push_back(k);
    else if (u.op == Op::kVal)
      values.push_back(u.value());
    else if (const std::optional<ValueId> v = denied_val(k))
      values.push_back(formulas_.deny(*v));
    else
      return false;
  }
  value = formulas_.all_of(values);
  rest = formulas_.all_of(rests);
  return true;
}

// The branches of an exactly-one, from which exclusive() makes cells.
class Solver::Branches {
 public:
  Branches(Solver& solver, ValueId value, const Judges& judges)
      : solver_(solver), formulas_(solver.formulas_), value_(value), judges_(judges) {}

  // Finds the exactly-one among the conjuncts of d, and groups its branches by what they say about the rest.
  // Returns false if no conjunct is an exactly-one of kManyBranches branches, or if some branch is not "the
  // value satisfies V and the rest satisfies R".
  bool read(TypedId d) {
    TypedId one = FormulaSpace::no();
    for (TypedId k : formulas_.conjuncts(d)) {
      const Formula& f = formulas_[k];
      if (one == FormulaSpace::no() && f.op == Op::kOne && (f.has & kHasVal) && f.n >= kManyBranches)
        one = k;
      else
        given_.push_back(k);
    }
    if (one == FormulaSpace::no()) return false;
    std::vector<TypedId> parts;
    for (TypedId k : formulas_.kids(one)) (formulas_[k].has & kHasVal ? parts : untouched_).push_back(k);
    if (parts.size() < kManyBranches) return false;
    std::unordered_map<TypedId, std::size_t> index;
    std::unordered_set<ValueId> distinct;
    for (TypedId k : parts) {
      ValueId v;
      TypedId r;
      if (!solver_.value_and_rest(k, v, r)) return false;
      const auto [it, fresh] = index.try_emplace(r, groups_.size());
      if (fresh) groups_.push_back({r, {}, {}, {}, {}, {}});
      groups_[it->second].values.push_back(v);
      distinct.insert(v);
    }
    if (judges_.trial || distinct.size() < kManyBranches) return false;
    for (Group& g : groups_) find_tags(g);
    others_ = given_;
    others_.push_back(formulas_.negate(formulas_.any_of(untouched_)));
    std::vector<TypedId> plain = others_;
    std::erase_if(plain, [&](TypedId k) { return (formulas_[k].has & kHasVal) != 0; });
    beside_ = formulas_.all_of(plain);
    return true;
  }

  // Finds the rivals of each group: other groups that can hold at the same time. Two groups exclude each
  // other if their rests exclude each other; with `by_value`, also if their values do. Returns false if some
  // group has more than kMaxRivals rivals.
  bool find_rivals(bool by_value) {
    for (Group& g : groups_) {
      g.rivals.clear();
      if (by_value && !solver_.nonempty(g.one)) continue;
      const TypedId rest = formulas_.both(beside_, g.rest);
      solver_.spend(static_cast<uint32_t>(groups_.size() / 8));
      for (const Group& other : groups_) {
        if (&other == &g || tags_differ(g, other)) continue;
        if (by_value && !solver_.nonempty(formulas_.both(g.one, other.any))) continue;
        if (judges_.possible(formulas_.both(rest, other.rest))) g.rivals.push_back(&other);
        if (g.rivals.size() > kMaxRivals) return false;
      }
    }
    return true;
  }

  void join_values() {
    for (Group& g : groups_) {
      g.one = formulas_.both(value_, formulas_.one_of(g.values));
      g.any = formulas_.any_of(g.values);
    }
  }

  // Makes a cell for each group, in which the rivals of this group are false, and one more cell for the
  // branches that say nothing about the value.
  void split_by_branch(std::vector<Cell>& out) {
    const auto denied = [&](const Group& g) {
      return formulas_.either(formulas_.negate(formulas_.val(g.any)), formulas_.negate(g.rest));
    };
    for (const Group& g : groups_) {
      std::vector<TypedId> rest = others_;
      rest.push_back(g.rest);
      for (const Group* rival : g.rivals) rest.push_back(denied(*rival));
      solver_.split(formulas_.all_of(rest), g.one, judges_, out);
    }
    if (untouched_.empty()) return;
    std::vector<TypedId> rest = given_;
    rest.push_back(formulas_.one_of(untouched_));
    for (const Group& g : groups_) rest.push_back(denied(g));
    solver_.split(formulas_.all_of(rest), value_, judges_, out);
  }

  // Makes a cell for each set of groups that can hold together. split_by_rests() serves formulas whose groups
  // seldom exclude each other: if a discriminator is optional, an object without the discriminator satisfies
  // all branches. If there are more than about two such sets for each group, nothing is appended and the
  // result is false.
  bool split_by_rests(std::vector<Cell>& out) {
    if (!untouched_.empty()) return false;
    std::vector<Cell> leaves;
    std::vector<ValueId> values;
    if (!choose(0, beside_, values, leaves)) return false;
    for (const Cell& c : leaves) {
      std::vector<TypedId> rest = others_;
      rest.push_back(c.rest);
      solver_.split(formulas_.all_of(rest), formulas_.both(value_, c.value), judges_, out);
    }
    return true;
  }

 private:
  // The branches that share one rest. `one`: exactly one of their conditions on the value holds. `any`: at
  // least one of them holds.
  struct Group {
    TypedId rest;
    ValueId one, any;
    std::vector<ValueId> values;
    // The groups that can hold together with this group.
    std::vector<const Group*> rivals;
    // The keys that the rest requires with one constant as their value, and these constants; sorted by key.
    std::vector<std::pair<NameId, std::string>> tags;
  };

  // Returns the key of a conjunct that is about this key alone.
  std::optional<NameId> only_key(const Formula& f) const {
    if (f.op != Op::kAll && f.op != Op::kSome) return std::nullopt;
    const Region& r = formulas_.region(RegionId{f.a});
    return r.kind == Region::kNames && r.names.size() == 1 ? std::optional(r.names[0]) : std::nullopt;
  }

  // Reads the constants that the group's rest requires for keys, such as "kind": "click". If two groups
  // require different constants for one key, they exclude each other, and no search is needed. In an
  // exactly-one of many branches nearly all pairs of groups do.
  void find_tags(Group& g) {
    std::vector<NameId> required;
    const auto kids = formulas_.conjuncts(g.rest);
    solver_.spend(static_cast<uint32_t>(kids.size()));
    for (TypedId k : kids)
      if (const Formula& f = formulas_[k]; f.op == Op::kSome && f.c > 0)
        if (const std::optional<NameId> key = only_key(f)) required.push_back(*key);
    sort_unique(required);
    for (TypedId k : kids) {
      const Formula f = formulas_[k];
      const std::optional<NameId> key = f.op == Op::kAll ? only_key(f) : std::nullopt;
      std::vector<std::string> texts;
      if (key && std::ranges::binary_search(required, *key) && only_strings(f.value()) &&
          solver_.texts_.constants(solver_.restrict(f.value(), Kind::kString), texts) && texts.size() == 1)
        g.tags.emplace_back(*key, std::move(texts[0]));
    }
    std::ranges::sort(g.tags);
  }

  bool only_strings(ValueId v) const {
    for (Kind k : {Kind::kNull, Kind::kTrue, Kind::kFalse, Kind::kNumber, Kind::kArray, Kind::kObject})
      if (solver_.restrict(v, k) != FormulaSpace::no()) return false;
    return true;
  }

  static bool tags_differ(const Group& x, const Group& y) {
    auto a = x.tags.begin();
    auto b = y.tags.begin();
    while (a != x.tags.end() && b != y.tags.end()) {
      if (a->first == b->first && a->second != b->second) return true;
      *a < *b ? ++a : ++b;
    }
    return false;
  }

  // Makes each group from the index `at` on true, then false. Each combination that can hold becomes a cell
  // in `leaves`. Returns false if there are too many such combinations.
  bool choose(std::size_t at, TypedId rest, std::vector<ValueId>& values, std::vector<Cell>& leaves) {
    if (!judges_.possible(rest)) return true;
    if (at == groups_.size()) {
      leaves.push_back({formulas_.one_of(values), rest});
      return leaves.size() <= 2 * groups_.size() + 16;
    }
    const Group& g = groups_[at];
    const std::size_t n = values.size();
    values.insert(values.end(), g.values.begin(), g.values.end());
    if (!choose(at + 1, formulas_.both(rest, g.rest), values, leaves)) return false;
    values.resize(n);
    return choose(at + 1, formulas_.both(rest, formulas_.negate(g.rest)), values, leaves);
  }

  Solver& solver_;
  FormulaSpace& formulas_;
  const ValueId value_;
  const Judges& judges_;
  std::vector<Group> groups_;
  // The branches that say nothing about the value. If one of these branches holds, no other branch may hold.
  std::vector<TypedId> untouched_;
  // given_ are the conjuncts beside the exactly-one. others_ are the conjuncts of given_, and "no branch of
  // untouched_ holds". beside_ is the conjunction of those conjuncts in others_ that say nothing about the
  // value.
  std::vector<TypedId> given_, others_;
  TypedId beside_;
};

// Splits "exactly one of many branches holds", where branch i says that the value is in V_i and the rest
// meets R_i. split_by_truth() would ask about each V_i and make up to 2^n cells; exclusive() makes one cell
// for each R_i. Cells may overlap, because the parser follows all of them. The cell of branch i must deny the
// branches that could hold beside it. Most branches cannot hold beside branch i: R_i excludes R_j if they ask
// for different constants of a discriminator, or V_i excludes V_j. At most kMaxRivals branches may remain. An
// example is oneOf over 50 kinds of events, each with {"kind": {"const": ...}}, at the key `data`. Returns
// false and appends nothing if the derivative has another form.
bool Solver::exclusive(TypedId d, ValueId value, const Judges& judges, std::vector<Cell>& out) {
  Branches branches(*this, value, judges);
  if (!branches.read(d)) return false;
  // Rests are compared first, because comparing rests asks no question about values.
  bool few = branches.find_rivals(false);
  if (!few) {
    // If the values tell the branches apart, as when each has its own type, split_by_truth() makes fewer
    // cells. The cells of split_by_truth() are taken if it ends within kTrialSteps steps.
    uint32_t steps = kTrialSteps;
    std::vector<Cell> cells;
    Judges trial = judges;
    trial.trial = &steps;
    split_by_truth(d, value, trial, cells);
    if (steps > 0) {
      for (const Cell& c : cells) add_cell(c, out);
      return true;
    }
  }
  branches.join_values();
  if (few || branches.find_rivals(true)) {
    branches.split_by_branch(out);
    return true;
  }
  return branches.split_by_rests(out);
}

// Adds a cell. If there is a cell with this rest already, its value becomes "the one value or the other".
void Solver::add_cell(Cell cell, std::vector<Cell>& out) {
  for (Cell& c : out)
    if (c.rest == cell.rest) {
      c.value = formulas_.either(c.value, cell.value);
      return;
    }
  out.push_back(cell);
  if (out.size() > kMaxCells)
    throw Error(ErrorKind::kSchemaTooComplex, "a member's subschemas overlap in too many ways");
}

// Splits any derivative. Conditions on the value that hold in all cases go to `value` first. Then the cells
// come from the branches of an Or, from exclusive(), or from split_by_truth().
void Solver::split(TypedId d, ValueId value, const Judges& judges, std::vector<Cell>& out) {
  check_depth();
  if (judges.trial && (*judges.trial == 0 || --*judges.trial == 0)) return;
  if (judges.enough && *judges.enough) return;
  // A conjunct val(v), or its negation, decides the question whether the value satisfies v: it goes to
  // `value`, and all other val(v) become true, or false. New conjuncts of this form may arise, so the loop
  // repeats.
  for (bool again = true; again;) {
    again = false;
    if (d == FormulaSpace::no()) return;
    std::vector<std::pair<ValueId, bool>> units;
    for (TypedId k : formulas_.conjuncts(d)) {
      const Formula& u = formulas_[k];
      if (u.op == Op::kVal)
        units.emplace_back(u.value(), true);
      else if (const std::optional<ValueId> v = denied_val(k))
        units.emplace_back(*v, false);
    }
    if (units.empty()) break;
    again = true;
    std::vector<ValueId> parts{value};
    for (const auto& [v, truth] : units) parts.push_back(truth ? v : formulas_.deny(v));
    value = formulas_.all_of(parts);
    if (value == FormulaSpace::no()) return;
    for (const auto& [v, truth] : units) {
      FlatMap<uint32_t, TypedId> memo;
      d = substitute(d, v, truth, memo);
    }
  }
  const auto holds = [&](auto&& f) { return judges.omits ? attempt(false, f) : f(); };
  if (d == FormulaSpace::no() || !holds([&] { return nonempty(value); })) return;
  spend();
  if (!(formulas_[d].has & kHasVal)) {
    if (!holds([&] { return judges.productive(d); })) return;
    return add_cell({value, d}, out);
  }
  // Each branch of an Or makes cells of its own. The cells of two branches may overlap, because the parser
  // follows all of them.
  if (formulas_[d].op == Op::kOr) {
    for (TypedId k : formulas_.kids(d)) split(k, value, judges, out);
    return;
  }
  if (exclusive(d, value, judges, out)) return;
  split_by_truth(d, value, judges, out);
}

// Splits by one atom val(v): into the cells whose value satisfies v, and the cells whose value does not
// satisfy v.
void Solver::split_by_truth(TypedId d, ValueId value, const Judges& judges, std::vector<Cell>& out) {
  const ValueId v = first_val(d);
  for (bool truth : {true, false}) {
    FlatMap<uint32_t, TypedId> memo;
    const ValueId branch_value = formulas_.both(value, truth ? v : formulas_.deny(v));
    split(substitute(d, v, truth, memo), branch_value, judges, out);
  }
}

bool Solver::branch(TypedId p, std::vector<TypedId>& branches, TypedId& literal,
                    std::vector<TypedId>& others) {
  const auto kids = formulas_.conjuncts(p);
  // A count, such as "at least 2 of {a, b}", is chosen before a union: it names keys or indices, so fewer
  // members have to be tried.
  TypedId chosen = FormulaSpace::no();
  bool found = false;
  for (TypedId k : kids) {
    if (closes(k)) continue;
    const Op op = formulas_[k].op;
    const bool is_literal = op == Op::kSome || op == Op::kItemSome;
    if (!found || is_literal) {
      chosen = k;
      found = true;
      if (is_literal) break;
    }
  }
  others.clear();
  for (TypedId k : kids)
    if (k != chosen) others.push_back(k);
  const Formula f = formulas_[chosen];
  if (f.op == Op::kSome || f.op == Op::kItemSome) {
    literal = chosen;
    return false;
  }
  const auto with = [&](TypedId x) {
    std::vector<TypedId> all = others;
    all.push_back(x);
    return formulas_.all_of(all);
  };
  branches.clear();
  if (f.op == Op::kOr) {
    for (TypedId k : formulas_.kids(chosen)) branches.push_back(with(k));
    return true;
  }
  // An exactly-one has an alternative for each branch, in which this branch holds and the others do not. The
  // alternatives of its negation are "no branch holds", and for each two branches "both hold".
  const bool negated = f.op == Op::kNot;
  const TypedId one = negated ? formulas_.kids(chosen)[0] : chosen;
  const std::vector<TypedId> parts(formulas_.kids(one).begin(), formulas_.kids(one).end());
  spend(static_cast<uint32_t>(parts.size() * parts.size()));
  if (!negated) {
    for (std::size_t i = 0; i < parts.size(); ++i) {
      std::vector<TypedId> all;
      for (std::size_t j = 0; j < parts.size(); ++j)
        all.push_back(i == j ? parts[j] : formulas_.negate(parts[j]));
      branches.push_back(with(formulas_.all_of(all)));
    }
    return true;
  }
  branches.push_back(with(formulas_.negate(formulas_.any_of(parts))));
  for (std::size_t i = 0; i < parts.size(); ++i)
    for (std::size_t j = i + 1; j < parts.size(); ++j)
      branches.push_back(with(formulas_.both(parts[i], parts[j])));
  return true;
}

}  // namespace structgen
