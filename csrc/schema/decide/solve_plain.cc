// Recognizes formulas that some simple value satisfies. The solver then needs no restriction and no plan
// (plan.h).
//
// In: a formula of any value. Out: true if such a value is seen at once. False means that the solver has to
// search. Cost: linear in the atoms. Most schemas are a type with at most one condition, or an object whose
// required members have such schemas. For {"required": ["a"], "properties": {"a": {"type": "string"}}} the
// value is the object with the member `a` alone.
#include <algorithm>
#include <utility>
#include <vector>

#include "base/depth.h"
#include "base/utf8.h"
#include "schema/decide/solve.h"
#include "schema/values/witness.h"

namespace structgen {

// Counts the conditions on each kind. The answer is yes if an allowed kind has no condition, or a single
// condition that some value meets. A condition that some value meets (`alone`) counts 1. Any other condition
// counts 2, which is already too many.
bool Solver::plainly_nonempty(ValueId v) {
  check_depth();
  if (const Formula& s = formulas_[v]; s.op == Op::kSchema) {
    if (lowering_.broken(s.location())) return false;
    v = lowering_.lower(s.location());
  }
  // Whether a value is one of the captured values is not seen at once.
  if (formulas_[v].has & kHasOutside) return false;
  uint32_t mask = kAllKinds, conditions[kKinds] = {};
  for (ValueId k : formulas_.conjuncts(v)) {
    const Formula& f = formulas_[k];
    const OpRow& row = structgen::row(f.op);
    if (f.op == Op::kTypes) {
      mask &= f.a;
      continue;
    }
    // The empty object or array satisfies the condition.
    if (row.closes) continue;
    if (!row.about) return false;
    const bool alone = (row.family == Family::kNumber || row.family == Family::kText) &&
                       structgen::plainly_nonempty(formulas_, FormulaSpace::of_its_kind(k));
    conditions[static_cast<int>(*row.about)] += alone ? 1 : 2;
  }
  for (int k = 0; k < kKinds; ++k)
    if ((mask >> k & 1) && conditions[k] <= 1) return true;
  return (mask & kind_bit(Kind::kObject)) && plain_object(v);
}

// Tries the object with exactly the required members. The object satisfies v if each member has at most one
// condition, which some value meets. Counts such as `maxProperties` are compared with the number of members.
bool Solver::plain_object(ValueId v) {
  check_depth();
  const auto kids = formulas_.conjuncts(v);
  std::vector<std::pair<NameId, ValueId>> members;
  for (ValueId k : kids) {
    const Formula& f = formulas_[k];
    if (f.op != Op::kSome) continue;
    const Region& r = formulas_.region(RegionId{f.a});
    if (r.kind != Region::kNames || r.names.size() != 1 || f.c != 1 ||
        !valid_utf8(formulas_.text(r.names[0])))
      return false;
    members.emplace_back(r.names[0], f.value());
  }
  std::ranges::sort(members, {}, [](const auto& m) { return m.first; });
  for (std::size_t i = 1; i < members.size(); ++i)
    if (members[i].first == members[i - 1].first) return false;
  // Adds a condition to a member's value; false if the member would have two conditions.
  const auto meets = [](ValueId& known, ValueId more) {
    if (more == FormulaSpace::yes() || known == more) return true;
    if (known != FormulaSpace::yes()) return false;
    known = more;
    return true;
  };
  for (ValueId k : kids) {
    const Formula& f = formulas_[k];
    if (f.op == Op::kMost) {
      if (f.c < members.size()) return false;
    } else if (f.op == Op::kAll) {
      const Region& r = formulas_.region(RegionId{f.a});
      if (r.kind == Region::kNames) {
        for (NameId n : r.names) {
          const auto at = std::ranges::lower_bound(members, n, {}, [](const auto& m) { return m.first; });
          if (at != members.end() && at->first == n && !meets(at->second, f.value())) return false;
        }
        continue;
      }
      for (auto& [name, value] : members) {
        const int in = holds(RegionId{f.a}, name);
        if (in < 0 || (in > 0 && !meets(value, f.value()))) return false;
      }
    }
  }
  for (const auto& [name, value] : members)
    if (!nonempty(value)) return false;
  return true;
}

// 1 if the region (a set of keys) contains the name, 0 if it does not, -1 if a pattern would have to be
// matched.
int Solver::holds(RegionId region, NameId name) const {
  check_depth();
  const Region& r = formulas_.region(region);
  switch (r.kind) {
    case Region::kAny: return 1;
    case Region::kNames: return std::ranges::binary_search(r.names, name);
    case Region::kLanguage: return -1;
    case Region::kNot: {
      const int in = holds(r.kids[0], name);
      return in < 0 ? in : 1 - in;
    }
    case Region::kAnd:
    case Region::kOr: break;
  }
  // The answer with which one kid decides for all kids: 1 in a union, 0 in an intersection.
  const int deciding = r.kind == Region::kOr;
  int out = 1 - deciding;
  for (RegionId k : r.kids) {
    const int in = holds(k, name);
    if (in == deciding) return in;
    if (in < 0) out = in;
  }
  return out;
}

}  // namespace structgen
