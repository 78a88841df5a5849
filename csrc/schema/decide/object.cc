// Which keys may come next in an object, and whether the object can still be completed.
//
// The problem. After some members an object may go on with names and with free keys, which
// patternProperties and the like sort into classes. A key may be offered if the object can still be
// completed behind it: required names must still be possible, counts must still be met, and no key may
// come twice.
//
// The idea. A formula is compiled into a plan (schema/decide/plan.h): bitsets over the names that the
// schema mentions (required, the order of keys), and a `rest`, the part that bitsets cannot answer
// (minProperties, dependentSchemas, oneOf). A state is the plan, what is left of its rest, and which
// names are used. Most schemas have no rest; then an answer is bit arithmetic. With properties a and b
// in this order, b required, nothing else allowed:
//
//     start()           used {};      offers a and b; may not close, because b is missing
//     take_name(a)      used {a};     offers b
//     take_name(b)      used {a, b}:  a is passed over, because it may not come after b; may close
//
// With a rest, a name is offered if one of its cells (solve.cc) leaves a rest that search() can meet.
// search() decides whether some set of further members meets a formula, whatever the order of the members.
// search() takes all required names at once (take_forced()), only counts keys that no condition tells apart
// (take_alike()), and tries all other keys one by one (some_member()).
//
// Invariants.
// - Each step of search() lowers a count, so the search ends. A member that meets no count can be dropped
//   from any object that satisfies the formula. So the search need not try such members.
// - Memos are keyed by the whole situation, compared in full. A no is stored only if the search met no open
//   formula (Solver::tainted).
// - Judges::possible assumes that no key has been written. Written keys only take possibilities away, so a
//   "no" of Judges::possible is right.
// - A state has the texts of all free keys that were written (`written`), or records that one text is missing
//   (`unknown_key`). In the second case the next free key may be a duplicate, so the mask tries the text of
//   the key (mask/fill.h).
// - A state whose object must differ from captured values has the set of the captured values that agree with
//   the written members (`outside`). The plan and the search ignore the set. apart() refuses a member if
//   every object that can still follow is in the set.
//
// Costs. Without a rest: a few words per state. With a rest: a step for each conjunct that mentions a name
// (may_write). The keys of n members are kept in sorted tables whose sizes double, which takes n log n steps
// for all keys.
//
// Rejected.
// - Every subset of names as a state that is built in advance: 2^n.
// - All cells of all offered names: a text takes one name, so has_cell() looks for one cell of each name
//   only.
#include "schema/decide/object.h"

#include <algorithm>

#include "base/depth.h"
#include "base/error.h"
#include "base/told.h"
#include "base/utf8.h"
#include "base/work.h"
#include "regex/charset.h"
#include "schema/decide/domain.h"
#include "strings/json_spelling.h"

namespace structgen {

namespace {
constexpr uint32_t kMaxSearchDepth = 1'000;
// A conjunction of at most this many conjuncts is derived as a whole for each name. In a larger conjunction,
// only the conjuncts that mention the name are derived; Parts finds them.
constexpr std::size_t kFewParts = 32;
}  // namespace

Objects::Objects(Solver& solver) : solver_(solver), formulas_(solver.formulas()), plans_(solver) {
  bits_.emplace_back();
}

std::size_t Objects::byte_size() const {
  return states_.byte_size() + state_index_.byte_size() + bits_.size() * 48 + written_.size() * 48 +
         cells_.size() * 96 + plans_.size() * sizeof(Plan);
}

bool Objects::productive(TypedId p) {
  check_depth();
  if (p == FormulaSpace::no()) return false;
  if (solver_.closes(p)) return true;
  if (formulas_[p].has & kHasOutside) {
    const Outside o = solver_.outside_of(p);
    return solver_.domains().some_outside(Kind::kObject, o.rest, o.set);
  }
  const PlanId id = plans_.plan_of(p);
  Plan& plan = plans_[id];
  for (PlanNameId i : names_in(plan.required))
    if (!plans_.name_ok(plan, i)) return false;
  if (plan.pure()) return true;
  const Gone none{Bits(plan.words(), 0), {}};
  return search(id, plans_.forget(plan, plan.rest, none.names), none);
}

// Returns a lower bound of the number of keys of the class that can still be written. A result of 0 means
// that no key is left; if 0 would only be a lower bound (KeyClass::exact is false), the function throws.
uint64_t Objects::remaining(const Plan& plan, KeyClassId cls, const Bits& taken) const {
  const KeyClass& c = plan.classes[cls.v];
  if (c.keys == kEndless) return kEndless;
  const uint64_t left = c.keys - (taken.empty() ? 0 : std::min(c.keys, taken[cls.v]));
  if (left == 0 && !c.exact && !solver_.effort().omits())
    throw Error(ErrorKind::kSchemaTooComplex, "too many keys of one pattern to count them");
  return left;
}

// Counts a key of the class as written. For a class with infinitely many keys nothing is counted.
void Objects::take_one(const Plan& plan, KeyClassId cls, Bits& taken) const {
  if (plan.classes[cls.v].keys == kEndless) return;
  if (taken.empty()) taken.resize(plan.classes.size());
  ++taken[cls.v];
}

// Returns the two questions that split() asks about a rest. The caller gives `productive`, whose answer is
// exact. `possible` ignores which keys were written, so that one remembered answer serves all states of an
// object.
Solver::Judges Objects::judges(PlanId plan_id, Solver::Judge productive) {
  return {
      std::move(productive),
      [this, plan_id](TypedId rest) { return search(plan_id, rest, {Bits(plans_[plan_id].words(), 0), {}}); },
      nullptr};
}

// Tells whether some set of members meets p. The answer is exact, and productive_ remembers it. Let p be
// some({a}) and some(any key, 3). The member `a` must come. Behind `a`, some(any key, 2) is left, and a class
// of infinitely many keys meets this count at once. So the answer takes two steps, and no keys are
// enumerated.
bool Objects::search(PlanId plan_id, TypedId p, Gone gone) {
  check_depth();
  if (p == FormulaSpace::no()) return false;
  if (solver_.closes(p)) return true;
  solver_.spend(5);
  charge(10);  // as measured against the other units: a step of this search makes nodes and looks them up
  const Situation key = situation(plan_id, p, gone);
  if (const auto it = productive_.find(key); it != productive_.end()) return it->second == 2;
  const Deeper level(depth_, kMaxSearchDepth, ErrorKind::kSchemaTooComplex,
                     "too many members depend on each other to decide whether any object exists");
  const bool clean_before = !solver_.tainted();
  const bool result = decide(plan_id, p, gone);
  if (result || (clean_before && !solver_.tainted())) productive_.emplace(key, result ? 2 : 1);
  return result;
}

// Tries four ways to decide p, the cheapest first.
bool Objects::decide(PlanId plan_id, TypedId p, const Gone& at) {
  check_depth();
  Gone gone = at;
  bool dead = false;
  if (take_forced(plan_id, p, gone, dead)) return !dead && search(plan_id, p, std::move(gone));
  std::vector<TypedId> branches, others;
  TypedId literal;
  if (solver_.branch(p, branches, literal, others)) {
    FirstLimit unsure;
    for (TypedId b : branches)
      if (unsure.otherwise(false, [&] { return search(plan_id, b, gone); })) return true;
    unsure.rethrow();
    return false;
  }
  if (take_alike(plan_id, p, gone, literal, dead)) return !dead && search(plan_id, p, std::move(gone));
  return search_literal(plan_id, p, literal, gone);
}

// Writes all names for which p has a count of just this name, as from {"required": ["a"]}. Returns false if
// there is no such name. Sets `dead` if some such name can no longer be written, so that p cannot be met. A
// name with several possible rests behind it is left to the search.
bool Objects::take_forced(PlanId plan_id, TypedId& p, Gone& gone, bool& dead) {
  Plan& plan = plans_[plan_id];
  std::vector<PlanNameId> forced;
  for (TypedId k : formulas_.conjuncts(p)) {
    const Formula& l = formulas_[k];
    if (l.op != Op::kSome || l.c != 1) continue;
    const Region& r = formulas_.region(RegionId{l.a});
    if (r.kind != Region::kNames || r.names.size() != 1) continue;
    const PlanNameId name = plan.find(formulas_.text(r.names[0]));
    if (name == kNoName || has_bit(gone.names, name)) {
      dead = true;
      return true;
    }
    forced.push_back(name);
  }
  if (forced.empty()) return false;
  const auto conjuncts = formulas_.conjuncts(p);
  std::vector<TypedId> kids(conjuncts.begin(), conjuncts.end());
  const std::shared_ptr<const Parts> parts = kids.size() > kFewParts ? plans_.parts(plan_id, p) : nullptr;
  std::vector<PartId> all(parts ? 0 : kids.size());
  for (uint32_t i = 0; i < all.size(); ++i) all[i] = PartId{i};
  bool any = false;
  for (PlanNameId name : forced) {
    // Two counts may ask for one name, but it is written once.
    if (has_bit(gone.names, name)) continue;
    const std::vector<PartId> touched = parts ? parts->touched(name) : all;
    solver_.spend(static_cast<uint32_t>(touched.size()));
    std::vector<ValueId> values{plan.value[name.v]};
    std::vector<TypedId> rests;
    bool apart = true;
    for (PartId t : touched) {
      ValueId v;
      TypedId r;
      apart = apart && solver_.value_and_rest(plans_.derive(plan, kids[t.v], name, {}), v, r);
      if (!apart) break;
      values.push_back(v);
      rests.push_back(r);
    }
    if (!apart) continue;  // a choice: left to the search
    any = true;
    if (!solver_.nonempty(formulas_.all_of(values))) {
      dead = true;
      return true;
    }
    for (std::size_t i = 0; i < touched.size(); ++i) kids[touched[i].v] = rests[i];
    add_bit(gone.names, name);
  }
  if (any) p = formulas_.all_of(kids);
  return any;
}

// Tells whether some key of the class only lowers the number of members that p still asks for: `fewer` is p
// with this number lowered by one. Each further key of the class then does the same, so any number of them
// can be written.
bool Objects::repeats(const Plan& plan, TypedId p, KeyClassId cls, ValueId start, ValueId value,
                      TypedId fewer) {
  std::vector<Cell> cells;
  const TypedId d = formulas_.both(plans_.derive(plan, p, kNoName, cls), formulas_.val(value));
  const Solver::Judge any = [](TypedId) { return true; };
  solver_.split(d, start, {any, any, nullptr}, cells);
  return std::ranges::any_of(cells, [&](const Cell& cell) { return cell.rest == fewer; });
}

// Tells whether p says of the name only what it says of free keys. No list of names in p may contain it, and
// each other conjunct may only restrict its value; these conditions go to `values`.
bool Objects::names_alike(const Plan& plan, const Parts& parts, PlanNameId name,
                          std::vector<ValueId>& values) {
  return !parts.by_name.count(name) && std::ranges::all_of(parts.wide, [&](PartId part) {
    ValueId v;
    TypedId r;
    const TypedId kid = parts.kids[part.v];
    const bool alike = solver_.value_and_rest(plans_.derive(plan, kid, name, {}), v, r) && r == kid;
    values.push_back(v);
    return alike;
  });
}

// Takes the count `literal`, "at least n members of a region" with n > 1, and meets it by keys about which p
// says nothing else. Such keys violate no condition, so nothing else has to be tried. A class with infinitely
// many such keys suffices; the keys of other classes are counted. Returns false if nothing was changed. Sets
// `dead` if the keys do not suffice and no other key can help.
bool Objects::take_alike(PlanId plan_id, TypedId& p, Gone& gone, TypedId literal, bool& dead) {
  Plan& plan = plans_[plan_id];
  const Formula l = formulas_[literal];
  const RegionId region{l.a};
  const ValueId value = l.value();
  if (l.c < 2 || formulas_.region(region).kind == Region::kNames) return false;
  std::vector<TypedId> conjuncts;
  for (TypedId k : formulas_.conjuncts(p))
    if (k != literal) conjuncts.push_back(k);
  const TypedId others = formulas_.all_of(conjuncts);
  const auto with = [&](uint32_t n) { return formulas_.both(others, formulas_.some(region, value, n)); };
  uint64_t supply = 0;
  // True if there are keys about which p says more, which may help.
  bool more = false;
  bool exact = true;
  Gone after = gone;
  plans_.find_classes(plan);
  for (KeyClassId c; c.v < plan.classes.size(); ++c.v) {
    const uint64_t left = remaining(plan, c, gone.taken);
    if (left == 0 || !plans_.hits(plan, region, kNoName, c)) continue;
    const ValueId start = formulas_.both(plans_.class_value(plan, c), value);
    ValueId v;
    TypedId r;
    const bool alike = solver_.value_and_rest(plans_.derive(plan, others, kNoName, c), v, r) && r == others &&
                       solver_.nonempty(formulas_.both(start, v));
    if (left == kEndless && (alike || repeats(plan, p, c, start, value, with(l.c - 1)))) {
      p = others;
      return true;
    }
    if (left == kEndless || !alike) {
      more = true;
      continue;
    }
    supply += left;
    exact = exact && plan.classes[c.v].exact;
    if (after.taken.empty()) after.taken.resize(plan.classes.size());
    after.taken[c.v] += left;
  }
  const std::shared_ptr<const Parts> parts = plans_.parts(plan_id, others);
  for (PlanNameId i; i.v < plan.names.size() && supply < l.c; ++i.v) {
    if (has_bit(gone.names, i) || !plans_.hits(plan, region, i, {})) continue;
    std::vector<ValueId> values{plan.value[i.v], value};
    if (!names_alike(plan, *parts, i, values)) {
      more = true;
    } else if (solver_.nonempty(formulas_.all_of(values))) {
      ++supply;
      add_bit(after.names, i);
    }
  }
  solver_.spend(static_cast<uint32_t>(plan.names.size() / 16));
  if (supply >= l.c) {
    p = others;
    return true;
  }
  if (!exact && !solver_.effort().omits())
    throw Error(ErrorKind::kSchemaTooComplex, "too many keys of one pattern to count them");
  // The keys about which p says nothing else are used up. The count falls by their number, and the search
  // goes on with the other keys.
  dead = !more;
  if (supply == 0) return dead;
  gone = std::move(after);
  p = with(l.c - static_cast<uint32_t>(supply));
  return true;
}

bool Objects::search_literal(PlanId plan_id, TypedId p, TypedId literal, const Gone& gone) {
  return some_member(plan_id, p, literal, gone,
                     [&](TypedId rest, const Gone& next) { return search(plan_id, rest, next); });
}

// Tries each member that the count `literal` asks for: names first, then classes. For each member, then(rest,
// gone) is called with the conditions on the members behind it, and with the keys that can no longer be
// written. some_member() returns true as soon as then() returns true.
bool Objects::some_member(PlanId plan_id, TypedId p, TypedId literal, const Gone& gone,
                          const std::function<bool(TypedId, const Gone&)>& then) {
  check_depth();
  Plan& plan = plans_[plan_id];
  const Formula l = formulas_[literal];
  const auto attempt = [&](PlanNameId name, KeyClassId cls) {
    if (!plans_.hits(plan, RegionId{l.a}, name, cls)) return false;
    const TypedId d = formulas_.both(plans_.derive(plan, p, name, cls), formulas_.val(l.value()));
    Gone next = gone;
    if (name != kNoName)
      add_bit(next.names, name);
    else
      take_one(plan, cls, next.taken);
    bool found = false;
    std::vector<Cell> cells;
    Solver::Judges both = judges(plan_id, [&](TypedId rest) { return found = found || then(rest, next); });
    both.enough = &found;
    solver_.split(d, name != kNoName ? plan.value[name.v] : plans_.class_value(plan, cls), both, cells);
    return found;
  };
  for (PlanNameId i; i.v < plan.names.size(); ++i.v)
    if (!has_bit(gone.names, i) && attempt(i, {})) return true;
  plans_.find_classes(plan);
  for (KeyClassId c; c.v < plan.classes.size(); ++c.v)
    if (remaining(plan, c, gone.taken) > 0 && attempt(kNoName, c)) return true;
  return false;
}

// Tells whether members can meet all conjuncts of `left`. A conjunct that the empty object meets matters only
// if it shares keys with a conjunct that is not met: otherwise no member that the search tries can violate
// it.
bool Objects::possible(PlanId plan_id, const Left& left, const Gone& gone) {
  Plan& plan = plans_[plan_id];
  const Parts& parts = *left.parts;
  std::vector<bool> in(parts.kids.size(), false);
  std::vector<TypedId> chosen{left.changed};
  std::vector<PlanNameId> names;
  bool wide = false;
  plans_.names_of(plan, left.changed, names, wide);
  const auto add = [&](PartId kid) {
    if (in[kid.v] || std::binary_search(left.touched.begin(), left.touched.end(), kid)) return;
    in[kid.v] = true;
    chosen.push_back(parts.kids[kid.v]);
    plans_.names_of(plan, parts.kids[kid.v], names, wide);
  };
  for (PartId kid : parts.open) add(kid);
  for (std::size_t i = 0; i < names.size() && !wide; ++i)
    if (const auto it = parts.by_name.find(names[i]); it != parts.by_name.end())
      for (PartId kid : it->second) add(kid);
  if (wide || !names.empty())
    for (PartId kid : parts.wide) add(kid);
  if (wide)
    for (PartId kid; kid.v < parts.kids.size(); ++kid.v) add(kid);
  solver_.spend(static_cast<uint32_t>(chosen.size()));
  return search(plan_id, plans_.forget(plan, formulas_.all_of(chosen), gone.names), gone);
}

// Returns the names that can no longer come once `name` is written: `name` itself, and the names before it in
// its chain.
Bits Objects::after(const Plan& plan, const Bits& used, PlanNameId name) const {
  Bits out = used;
  add_bit(out, name);
  if (plan.chain_of[name.v] != kNoChain) {
    const std::vector<PlanNameId>& chain = plan.chains[plan.chain_of[name.v].v];
    for (uint32_t i = 0; i < plan.position[name.v]; ++i) add_bit(out, chain[i]);
  }
  return out;
}

BitsId Objects::intern_bits(const Bits& b) {
  uint64_t h = b.size();
  for (uint64_t w : b) h = mix(h, w);
  return BitsId{bits_index_.number(h, bits_, b)};
}

ObjectId Objects::intern(const ObjectState& s) {
  const uint64_t h =
      mix(mix(mix(mix(mix(mix(s.plan.v, s.rest.v), s.used.v), s.taken.v), s.written.v), s.unknown_key),
          s.outside.v);
  return ObjectId{state_index_.find_or_add(
      h, [&](uint32_t i) { return states_[i] == s; },
      [&] {
        offers_.emplace_back();
        return states_.emplace_back(s);
      })};
}

ObjectId Objects::start(TypedId p) {
  if (formulas_[p].has & kHasOutside) {
    const Outside o = solver_.outside_of(p);
    return with_outside(start(o.rest), o.set);
  }
  ObjectState s;
  s.plan = plans_.plan_of(p);
  Plan& plan = plans_[s.plan];
  const Bits none(plan.words(), 0);
  s.used = intern_bits(none);
  s.rest = plans_.forget(plan, plan.rest, none);
  return intern(s);
}

ObjectId Objects::with_outside(ObjectId s, CapturedId set) {
  ObjectState state = states_[s.v];
  state.outside = set;
  return intern(state);
}

ObjectId Objects::read(ObjectId s, std::string_view name, const std::string& value) {
  return with_outside(s, solver_.captured().behind(states_[s.v].outside, Captured::key(name), value));
}

CapturedId Objects::values_of(ObjectId s, std::string_view name) {
  return solver_.captured().covered(states_[s.v].outside, Captured::key(name), {});
}

ObjectId Objects::read_fresh(ObjectId s) { return with_outside(s, {}); }

// Returns the steps behind which the object can still become an object outside the set. In a step with
// `capture` the state still has the whole set; read() reduces it when the member's value is known.
std::vector<Objects::Step> Objects::apart(CapturedId set, std::string_view name, std::vector<Step> steps) {
  if (set.v == 0) return steps;
  const std::string key = Captured::key(name);
  const bool asked = solver_.captured().has(set, key);
  std::vector<Step> out;
  for (Step& step : steps) {
    const ObjectId free = with_outside(step.next, {});
    if (asked) step.value = formulas_.both(step.value, solver_.domains().apart(set, key, free));
    if (!asked)
      out.push_back({step.value, free});
    else if (solver_.nonempty(step.value))
      out.push_back({step.value, step.next, true});
  }
  return out;
}

// Returns the free keys that may not be written, because the object behind them could only become a captured
// value.
std::vector<std::string> Objects::refused_keys(ObjectId s, KeyClassId cls) {
  std::vector<std::string> out;
  const ObjectState st = states_[s.v];
  if (st.outside.v == 0) return out;
  for (const std::string& key : solver_.captured().keys(st.outside)) {
    if (key == Captured::kFirstItem) continue;
    const std::string name = from_json_body(key.substr(1));
    if (plans_[st.plan].find(name) == kNoName && take_free(s, cls, &name).empty()) out.push_back(name);
  }
  return out;
}

const std::vector<Cell>& Objects::name_cells(ObjectId s, PlanNameId name) {
  const uint64_t key = (static_cast<uint64_t>(s.v) << 32) | name.v;
  if (const auto it = cells_.find(key); it != cells_.end()) return it->second;
  const Omissions omissions(solver_.omitted());
  std::vector<Cell> cells = split_name(s, name, false);
  refuse_starved(cells.empty(), omissions);
  return cells_.emplace(key, std::move(cells)).first->second;
}

std::vector<Cell> Objects::split_name(ObjectId s, PlanNameId name, bool first) {
  const ObjectState st = states_[s.v];
  const Plan& plan = plans_[st.plan];
  Gone next = gone(st);
  next.names = after(plan, next.names, name);
  const TypedId d = plans_.forget(plan, plans_.derive(plan, st.rest, name, {}), next.names);
  bool found = false;
  Solver::Judges judge =
      judges(st.plan, [&](TypedId rest) { return found = (first && found) || search(st.plan, rest, next); });
  if (first) judge.enough = &found;
  judge.omits = true;
  std::vector<Cell> cells;
  solver_.split(d, plan.value[name.v], judge, cells);
  return cells;
}

// Tells whether name_cells() would return a cell, at less cost. For most names no cells are needed: a text
// writes one of the names on offer and skips the other names.
bool Objects::has_cell(ObjectId s, PlanNameId name) {
  const auto it = cells_.find((static_cast<uint64_t>(s.v) << 32) | name.v);
  return it != cells_.end() ? !it->second.empty() : !split_name(s, name, true).empty();
}

// Returns the ways to write a member whose key is in the class. These ways are remembered in cells_, like the
// cells of a name, under a number behind the numbers of the plan's names.
const std::vector<Cell>& Objects::free_cells(ObjectId s, KeyClassId cls) {
  const ObjectState st = states_[s.v];
  Plan& plan = plans_[st.plan];
  const uint64_t key = (static_cast<uint64_t>(s.v) << 32) | (plan.names.size() + cls.v);
  if (const auto it = cells_.find(key); it != cells_.end()) return it->second;
  const Omissions omissions(solver_.omitted());
  Gone next = gone(st);
  std::vector<Cell> cells;
  if (remaining(plan, cls, next.taken) > 0) {
    take_one(plan, cls, next.taken);
    Solver::Judges judge = judges(st.plan, [&](TypedId rest) { return search(st.plan, rest, next); });
    judge.omits = true;
    solver_.split(plans_.derive(plan, st.rest, kNoName, cls), plans_.class_value(plan, cls), judge, cells);
  }
  refuse_starved(cells.empty(), omissions);
  return cells_.emplace(key, std::move(cells)).first->second;
}

// Answers the question of has_cell(), whether a member of this name can be written, but derives only the
// conjuncts that mention the name. Otherwise offers() would derive each of 500 conjuncts for each of 500
// names.
bool Objects::may_write(ObjectId s, const Parts& parts, PlanNameId name, const Bits& next) {
  check_depth();
  const ObjectState st = states_[s.v];
  Plan& plan = plans_[st.plan];
  if (!plans_.name_ok(plan, name)) return false;
  Left left{&parts, parts.touched(name), FormulaSpace::yes()};
  std::vector<TypedId> changed;
  for (PartId t : left.touched) changed.push_back(plans_.derive(plan, parts.kids[t.v], name, {}));
  bool others_open = false;
  for (PartId kid : parts.open)
    others_open = others_open || !std::binary_search(left.touched.begin(), left.touched.end(), kid);
  const Gone then{next, bits_[st.taken.v]};
  bool found = false;
  Solver::Judges judge = judges(st.plan, [&](TypedId rest) {
    if (found) return true;
    left.changed = rest;
    return found = (!others_open && solver_.closes(rest)) || possible(st.plan, left, then);
  });
  judge.enough = &found;
  judge.omits = true;
  const TypedId d = formulas_.all_of(changed);
  if (!(formulas_[d].has & kHasVal)) return d != FormulaSpace::no() && judge.productive(d);
  std::vector<Cell> cells;
  solver_.split(d, plan.value[name.v], judge, cells);
  return found;
}

// Computes and remembers the offers of a state. A world that omits (base/effort.h) leaves out an offer that
// takes too much work to decide; if no offer is left then, the answer is not remembered (refuse_starved()).
const Offers& Objects::offers(ObjectId s) {
  check_depth();
  if (offers_[s.v]) return *offers_[s.v];
  const Omissions omissions(solver_.omitted());
  auto out = std::make_unique<Offers>();
  const ObjectState st = states_[s.v];
  Plan& plan = plans_[st.plan];
  plans_.find_classes(plan);
  const Bits used = bits_[st.used.v];
  out->names.assign((plan.names.size() + 63) / 64, 0);
  std::vector<bool> blocked(plan.names.size(), false);
  out->close = solver_.closes(st.rest) && !solver_.captured().contains(st.outside, "{}");
  out->close = out->close && names_without(plan.required, used).empty();
  for (const std::vector<PlanNameId>& chain : plan.chains) {
    // True once the chain had a required name that is not written yet. The names behind the required name may
    // not come, because keys stand in the order of the chain.
    bool passed = false;
    for (PlanNameId i : chain) {
      blocked[i.v] = passed;
      if (has_bit(plan.required, i) && !has_bit(used, i)) passed = true;
    }
  }
  const bool plain = st.rest == FormulaSpace::yes();
  const bool few = formulas_[st.rest].op != Op::kAnd || formulas_[st.rest].n <= kFewParts;
  const std::shared_ptr<const Parts> parts = few ? nullptr : plans_.parts(st.plan, st.rest);
  charge(static_cast<int64_t>(plan.names.size() / 8));
  for (PlanNameId i; i.v < plan.names.size(); ++i.v) {
    if (has_bit(used, i) || blocked[i.v]) continue;
    const bool offered = solver_.attempt(false, [&] {
      const bool alone = plain ? plans_.name_ok(plan, i)
                         : few ? has_cell(s, i)
                               : may_write(s, *parts, i, after(plan, used, i));
      return alone && (st.outside.v == 0 || !take_name(s, i).empty());
    });
    if (offered) add_bit(out->names, i);
  }
  for (KeyClassId c; c.v < plan.classes.size(); ++c.v) {
    const bool offered = solver_.attempt(false, [&] {
      return !solver_.regexes().is_empty(free_language(s, c)) && !take_free(s, c, nullptr).empty();
    });
    if (offered) out->classes.push_back(c);
  }
  refuse_starved(!out->close && !out->any_key(), omissions);
  offers_[s.v] = std::move(out);
  return *offers_[s.v];
}

std::vector<Objects::Step> Objects::take_name(ObjectId s, PlanNameId name) {
  const ObjectState st = states_[s.v];
  const Plan& plan = plans_[st.plan];
  ObjectState next = st;
  next.used = intern_bits(after(plan, bits_[st.used.v], name));
  const std::string text = plan.texts[name.v];
  if (st.rest == FormulaSpace::yes()) return apart(st.outside, text, {{plan.value[name.v], intern(next)}});
  std::vector<Step> out;
  for (const Cell& c : name_cells(st.outside.v == 0 ? s : with_outside(s, {}), name)) {
    next.rest = c.rest;
    out.push_back({c.value, intern(next)});
  }
  return apart(st.outside, text, std::move(out));
}

// A later name of a chain may come without the first name; behind either name the first name can no longer
// come. If the state behind the first name differs from s only in this, a later name leads from both states
// to the same state. So the later names are read from the state behind the first name.
std::vector<ObjectId> Objects::later(ObjectId s, Bits& names) {
  std::vector<ObjectId> out;
  const Plan& plan = plan_of(s);
  for (const std::vector<PlanNameId>& chain : plan.chains) {
    const auto first = std::ranges::find_if(chain, [&](PlanNameId i) { return has_bit(names, i); });
    if (first == chain.end() || has_bit(plan.required, *first)) continue;
    const std::vector<Step> steps = take_name(s, *first);
    if (steps.size() != 1 || steps[0].capture) continue;
    ObjectState same = states_[s.v];
    same.used = states_[steps[0].next.v].used;
    if (same != states_[steps[0].next.v]) continue;
    const Bits& left = offers(steps[0].next).names;
    if (std::none_of(first + 1, chain.end(), [&](PlanNameId i) { return has_bit(left, i); })) continue;
    std::for_each(first + 1, chain.end(), [&](PlanNameId i) {
      if (has_bit(left, i)) take_bit(names, i);
    });
    out.push_back(steps[0].next);
  }
  return out;
}

std::vector<Objects::Step> Objects::take_free(ObjectId s, KeyClassId cls, const std::string* text,
                                              bool fresh) {
  const ObjectState st = states_[s.v];
  Plan& plan = plans_[st.plan];
  ObjectState next = st;
  if (text)
    next.written = write_key(st.written, *text);
  else if (!fresh)
    next.unknown_key = true;
  // Only a key whose text is known can be compared with the keys of captured values.
  const auto leave = [&](std::vector<Step> steps) {
    return text ? apart(st.outside, *text, std::move(steps)) : steps;
  };
  if (!text) next.outside = {};
  if (st.rest == FormulaSpace::yes()) {
    const ValueId v = plans_.class_value(plan, cls);
    if (!solver_.nonempty(v)) return {};
    return leave({{v, intern(next)}});
  }
  if (plan.finite) {
    Bits taken = bits_[st.taken.v];
    take_one(plan, cls, taken);
    next.taken = intern_bits(taken);
  }
  std::vector<Step> out;
  for (const Cell& c : free_cells(st.outside.v == 0 ? s : with_outside(s, {}), cls)) {
    next.rest = c.rest;
    out.push_back({c.value, intern(next)});
  }
  return leave(std::move(out));
}

// Adds a key to a set of written keys, which is a list of literal tables. The new table absorbs the last
// table of the list as long as this table is no larger, as a carry does in a binary counter. So each key is
// merged log n times.
WrittenId Objects::write_key(WrittenId written, const std::string& text) {
  LiteralTables& tables = solver_.regexes().tables();
  std::vector<uint32_t> list = written_[written.v];
  std::vector<std::string> merged{text};
  while (!list.empty() && tables.table(list.back()).texts.size() <= merged.size()) {
    const auto& t = tables.table(list.back()).texts;
    merged.insert(merged.end(), t.begin(), t.end());
    list.pop_back();
  }
  list.push_back(tables.add(std::move(merged)));
  std::size_t keys = 0;
  for (uint32_t t : list) keys += tables.table(t).texts.size();
  most_written_ = std::max(most_written_, keys);
  return WrittenId{written_index_.number(hash_words(list, 5), written_, list)};
}

uint64_t Objects::free_keys(ObjectId s, KeyClassId cls) const {
  const ObjectState& st = states_[s.v];
  uint64_t keys = plans_[st.plan].classes[cls.v].keys;
  if (keys == kEndless) return keys;
  for (uint32_t t : written_[st.written.v])
    keys -= std::min<uint64_t>(keys, solver_.regexes().tables().table(t).texts.size());
  return keys;
}

RegexId Objects::free_language(ObjectId s, KeyClassId cls) {
  const ObjectState& st = states_[s.v];
  const Plan& plan = plans_[st.plan];
  RegexArena& regexes = solver_.regexes();
  std::vector<RegexId> taken;
  if (!plan.names.empty()) taken.push_back(regexes.literal_set(plan.table, {}, false));
  for (uint32_t t : written_[st.written.v]) taken.push_back(regexes.literal_set(t, {}, false));
  if (const std::vector<std::string> refused = refused_keys(s, cls); !refused.empty())
    taken.push_back(regexes.literal_set(regexes.tables().add(refused), {}, false));
  const RegexId language = plan.classes[cls.v].language;
  // Names and written keys are excluded in every spelling. So of each key the language has all spellings or
  // none.
  return taken.empty() ? language : regexes.minus(language, regexes.alt(std::span<const RegexId>(taken)));
}

// In an element of XML-like markup, keys are spelled otherwise than in JSON, and have no labels and no
// literal tables that states share. So their language is made from the patterns of the class.
RegexId Objects::free_texts(ObjectId s, KeyClassId cls, Texts& texts) {
  const ObjectState& st = states_[s.v];
  const Plan& plan = plans_[st.plan];
  RegexArena& regexes = solver_.regexes();
  RegexId out = texts.all();
  for (std::size_t i = 0; i < plan.leaves.size(); ++i) {
    const RegexId leaf = texts.of(solver_.restrict(plan.leaves[i], Kind::kString));
    out = plan.classes[cls.v].in[i] ? regexes.both(out, leaf) : regexes.minus(out, leaf);
  }
  std::vector<RegexId> taken;
  if (!plan.names.empty()) taken.push_back(texts.any_of(plan.texts));
  for (uint32_t t : written_[st.written.v]) taken.push_back(texts.any_of(regexes.tables().table(t).texts));
  return taken.empty() ? out : regexes.minus(out, regexes.alt(std::span<const RegexId>(taken)));
}

}  // namespace structgen
