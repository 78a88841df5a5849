// Guides the search for a shortest completion: how many more members an object needs, and which members bring
// it nearer to its end.
//
// In: the state of an object. Out: its distance (the least number of members until it may close), and the
// offers that lower the distance. Cost: iterative deepening over the counts that are not met yet; distances
// are remembered. Beyond kMaxSteps the distance counts as unknown, and every member that some count asks for
// is offered.
//
// Without the distance the search for a completion would visit too many states: a member that a count asks
// for does not always bring the end nearer, and each free key makes a new state. Of {"minProperties": 2,
// "required": ["a"]} the distance is 2; behind `a` it is 1, and any key lowers it.
#include <algorithm>

#include "base/depth.h"
#include "base/sorted.h"
#include "schema/decide/object.h"
#include "schema/decide/solve.h"

namespace structgen {

namespace {
// The steps of one distance(). If they do not suffice, it returns kFar.
constexpr uint32_t kMaxSteps = 3'000;
// distance() tries at most this many members more than the lower bound.
constexpr uint32_t kMaxMembers = 40;
constexpr std::size_t kEnough = 3;
}  // namespace

// Returns a lower bound of the members that p still asks for: the number of names that p requires, or the
// largest count in p, whichever is more.
uint32_t Objects::least_members(TypedId p) const {
  std::vector<NameId> names;
  uint32_t most = 0;
  for (TypedId k : formulas_.conjuncts(p)) {
    const Formula& f = formulas_[k];
    if (f.op != Op::kSome) continue;
    most = std::max(most, f.c);
    if (const Region& r = formulas_.region(RegionId{f.a}); r.kind == Region::kNames && r.names.size() == 1)
      names.push_back(r.names[0]);
  }
  sort_unique(names);
  return std::max(most, static_cast<uint32_t>(names.size()));
}

// Tells whether n more members can meet p. What the search proves is stored in Known. If the search stops at
// kMaxSteps, it has not proved a "no", and stores nothing.
bool Objects::within(PlanId plan_id, TypedId p, const Gone& gone, uint32_t n) {
  check_depth();
  if (p == FormulaSpace::no()) return false;
  if (solver_.closes(p)) return true;
  if (n == 0 || least_members(p) > n) return false;
  if (++nearest_steps_ > kMaxSteps) return false;
  const Situation key = situation(plan_id, p, gone);
  if (const auto it = within_.find(key); it != within_.end()) {
    if (n >= it->second.within) return true;
    if (n < it->second.not_within) return false;
  }
  solver_.spend(5);
  std::vector<TypedId> branches, others;
  TypedId literal;
  bool found = false;
  if (solver_.branch(p, branches, literal, others)) {
    for (TypedId b : branches)
      if (within(plan_id, b, gone, n)) {
        found = true;
        break;
      }
  } else {
    found = within_literal(plan_id, p, literal, gone, n);
  }
  if (nearest_steps_ > kMaxSteps && !found) return false;
  Known& known = within_[key];
  if (found)
    known.within = std::min(known.within, n);
  else
    known.not_within = std::max(known.not_within, n + 1);
  return found;
}

// Tells whether n members can meet p, where the count `literal` asks for at least one of them. The order of
// members does not change their number, so this member is taken to come next.
bool Objects::within_literal(PlanId plan_id, TypedId p, TypedId literal, const Gone& gone, uint32_t n) {
  return some_member(plan_id, p, literal, gone,
                     [&](TypedId rest, const Gone& next) { return within(plan_id, rest, next, n - 1); });
}

// Searches with one member more each time, from the lower bound on.
uint32_t Objects::distance(PlanId plan_id, TypedId p, const Gone& gone) {
  if (solver_.closes(p)) return 0;
  const Situation key = situation(plan_id, p, gone);
  if (const auto it = distance_.find(key); it != distance_.end()) return it->second;
  nearest_steps_ = 0;
  const uint32_t least = std::max(1u, least_members(p));
  uint32_t out = kFar;
  for (uint32_t n = least; n <= least + kMaxMembers && nearest_steps_ <= kMaxSteps; ++n)
    if (within(plan_id, p, gone, n)) {
      out = n;
      break;
    }
  distance_.emplace(key, out);
  return out;
}

// Returns the conditions on the members to come: the rest, and the required names that are missing.
TypedId Objects::demanded(const ObjectState& st) {
  const Plan& plan = plans_[st.plan];
  std::vector<TypedId> kids{st.rest};
  for (PlanNameId i : names_without(plan.required, bits_[st.used.v]))
    kids.push_back(formulas_.some(formulas_.name(plan.names[i.v]), FormulaSpace::yes(), 1));
  return formulas_.all_of(kids);
}

// Returns the number of members that the object still needs. If the rest asks for nothing, it is the number
// of required names that are missing.
uint32_t Objects::members_needed(ObjectId s) {
  const ObjectState st = states_[s.v];
  const Plan& plan = plans_[st.plan];
  if (st.rest != FormulaSpace::yes()) return distance(st.plan, demanded(st), gone(st));
  return static_cast<uint32_t>(names_without(plan.required, bits_[st.used.v]).size());
}

// Collects the regions of all counts in p, such as "at least 2 members of the region".
void Objects::wanted(TypedId p, std::unordered_set<TypedId>& seen, std::vector<RegionId>& out) {
  check_depth();
  if (!seen.insert(p).second) return;
  const Formula& f = formulas_[p];
  if (f.op == Op::kSome) out.push_back(RegionId{f.a});
  if (f.op == Op::kAll || f.op == Op::kMost) return;
  for (TypedId k : formulas_.kids(p)) {
    // An exactly-one may need one of its branches to be false, so counts in the negation of each branch are
    // collected, too. The negation of an exactly-one says "none, or two, of the branches", which has the same
    // counts.
    if (f.op == Op::kOne) wanted(formulas_.negate(k), seen, out);
    wanted(k, seen, out);
  }
}

// Returns the offers with a key that some count asks for. useful() takes them if the distance is not known.
Offers Objects::wanted_offers(ObjectId s) {
  Offers out = offers(s);
  const ObjectState st = states_[s.v];
  const Plan& plan = plans_[st.plan];
  std::vector<RegionId> regions;
  std::unordered_set<TypedId> seen;
  wanted(demanded(st), seen, regions);
  const auto hit = [&](PlanNameId name, KeyClassId cls) {
    for (RegionId r : regions)
      if (plans_.hits(plan, r, name, cls)) return true;
    return false;
  };
  for (PlanNameId i : names_in(out.names))
    if (!hit(i, {})) take_bit(out.names, i);
  std::erase_if(out.classes, [&](KeyClassId c) { return !hit(kNoName, c); });
  return out;
}

// Returns the offers behind which the object is one member nearer to its end. An offer behind which the
// distance is not known is left out.
Offers Objects::useful(ObjectId s) {
  const Offers all = offers(s);
  const ObjectState st = states_[s.v];
  const Plan& plan = plans_[st.plan];
  // The nearest end may be a captured value, which is forbidden. So no offer is left out.
  if (st.outside.v != 0) return all;
  Offers out;
  out.close = all.close;
  out.names.assign(all.names.size(), 0);
  // Every required name has to come, and the order does not change their number, so one required name is
  // enough.
  if (st.rest == FormulaSpace::yes()) {
    for (PlanNameId i : names_in(all.names))
      if (has_bit(plan.required, i)) {
        add_bit(out.names, i);
        break;
      }
    return out;
  }
  const uint32_t far = members_needed(s);
  if (far == kFar) return wanted_offers(s);
  const auto nearer = [&](const std::vector<Step>& steps) {
    for (const Step& step : steps)
      if (const uint32_t left = members_needed(step.next); left != kFar && left + 1 <= std::max(far, 1u))
        return true;
    return false;
  };
  // The first round tries only the members that the first unmet count asks for; if keys have no order, one of
  // these members may as well come next. If keys have an order, another member may have to come first, so the
  // second round tries all offers.
  std::vector<TypedId> branches, others;
  TypedId literal = FormulaSpace::no();
  const bool asked = far > 0 && !solver_.branch(demanded(st), branches, literal, others);
  const RegionId region{asked ? formulas_[literal].a : 0};
  for (const bool any : {!asked, true}) {
    std::size_t taken = 0;
    for (PlanNameId i : names_in(all.names)) {
      if (taken >= kEnough) break;
      if (!any && !plans_.hits(plan, region, i, {})) continue;
      if (!nearer(take_name(s, i))) continue;
      add_bit(out.names, i);
      ++taken;
    }
    for (KeyClassId c : all.classes) {
      if (taken >= kEnough) break;
      if (!any && !plans_.hits(plan, region, kNoName, c)) continue;
      if (!nearer(take_free(s, c, nullptr))) continue;
      out.classes.push_back(c);
      ++taken;
    }
    if (taken) return out;
  }
  return wanted_offers(s);
}

}  // namespace structgen
