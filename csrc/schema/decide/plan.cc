// Plans of objects: the keys that a formula of objects tells apart, and the condition on the value of each
// key.
//
// The problem. After every key the parser asks which keys may come next and which conditions their values
// must satisfy. A schema may name a thousand keys, tell further keys apart by patterns, count members, and
// combine such conditions by allOf, oneOf and not. Making the derivative of the whole formula by every key at
// every step would be far too slow.
//
// The idea. Once per formula of objects all keys are sorted into names and classes. A name occurs in a list
// of the formula. All other keys are free, and the patterns of the formula divide the free keys into classes.
// The formula says the same of any two keys of one class. Then every condition that concerns a single name is
// taken out of the formula (take_apart()): a required name and a condition on one name's value need no
// derivative. The other conditions are `rest`.
//
//     {"properties": {"a": A, "b": B}, "patternProperties": {"^x": X}, "required": ["a"], "minProperties": 2}
//     names     a, b           value A, B; a name that matches "^x" would also have to satisfy X
//     classes   "^x" keys: X   other keys: anything
//     required  a              a bit, no part of the rest: minProperties counts it like any member
//     rest      some(any key, anything, 2): derived by each key that is written
//
// The order of keys in one `properties` map gives a chain of names (order_names). A name whose order differs
// between two maps is in no chain.
//
// Invariants.
// - Names are sorted by text, like their literal table, so a label of the table is an index of the plan.
// - Classes are disjoint and never empty. Together with the names they contain every key.
// - `required`, `value` and `rest` together say what `formula` says.
//
// Rejected: classes from pairs of patterns. A key may match three patterns, and each combination asks for
// another value.
#include "schema/decide/plan.h"

#include <algorithm>

#include "base/depth.h"
#include "base/error.h"
#include "base/sorted.h"
#include "base/undo.h"
#include "base/utf8.h"
#include "base/work.h"
#include "regex/charset.h"
#include "strings/json_spelling.h"

namespace structgen {

namespace {
constexpr std::size_t kMaxClasses = 256;
// If a class has at most this many keys, they become names.
constexpr uint32_t kFiniteClass = 64;
// count_keys() visits at most this many nodes of a class. If a class has more nodes, the count of its keys is
// only a lower bound.
constexpr uint32_t kCountNodes = 3'000;
}  // namespace

PlanNameId Plan::find(std::string_view text) const {
  const auto at = std::lower_bound(texts.begin(), texts.end(), text);
  return at != texts.end() && *at == text ? PlanNameId{static_cast<uint32_t>(at - texts.begin())} : kNoName;
}

std::vector<PartId> Parts::touched(PlanNameId name) const {
  std::vector<PartId> out = wide;
  if (const auto it = by_name.find(name); it != by_name.end())
    out.insert(out.end(), it->second.begin(), it->second.end());
  sort_unique(out);
  return out;
}

void Plans::collect_region(RegionId r, std::vector<NameId>& names, std::vector<ValueId>& leaves) {
  check_depth();
  const Region& x = formulas_.region(r);
  names.insert(names.end(), x.names.begin(), x.names.end());
  if (x.kind == Region::kLanguage) leaves.push_back(x.language);
  for (RegionId k : x.kids) collect_region(k, names, leaves);
}

// Collects the names, the languages and the ordered `properties` (maps) of a formula. `seen` are the formulas
// visited.
void Plans::collect(TypedId f, Plan& plan, std::vector<MapId>& maps, FlatMap<uint32_t, bool>& seen) {
  check_depth();
  charge();
  const Formula& n = formulas_[f];
  if (row(n.op).family == Family::kMembers) return collect_region(RegionId{n.a}, plan.names, plan.leaves);
  if (n.op == Op::kOrder) return maps.push_back(MapId{n.a});
  if (n.n == 0 || !seen.emplace(f.v, true).second) return;
  for (TypedId k : formulas_.kids(f)) collect(k, plan, maps, seen);
}

// Returns the formula without kOrder, the atom that orders keys: true stands in its place.
TypedId Plans::strip_order(TypedId f, Memo& memo) {
  const Formula& n = formulas_[f];
  if (!(n.has & kHasOrder)) return f;
  if (n.op == Op::kOrder) return FormulaSpace::yes();
  return formulas_.map_kids(f, memo, [&](TypedId k) { return strip_order(k, memo); });
}

TypedId Plans::without_order(TypedId p) {
  Memo memo;
  return strip_order(p, memo);
}

// Makes a plan in six steps: it collects names and languages, drops the order, makes the keys of small
// classes names, sorts the names, counts the keys of the classes, and puts names in order and the formula
// into parts.
PlanId Plans::plan_of(TypedId p) {
  if (const auto* known = plan_index_.find(p.v)) return *known;
  auto plan = std::make_unique<Plan>();
  std::vector<MapId> maps;
  FlatMap<uint32_t, bool> seen;
  collect(p, *plan, maps, seen);
  sort_unique(maps);
  sort_unique(plan->leaves);
  plan->formula = without_order(p);
  expand_finite(*plan);
  std::vector<NameId>& n = plan->names;
  sort_unique(n);
  // A name with a lone surrogate has no spelling, so nobody can write it.
  std::erase_if(n, [&](NameId x) { return !valid_utf8(formulas_.text(x)); });
  std::sort(n.begin(), n.end(), [&](NameId x, NameId y) { return formulas_.text(x) < formulas_.text(y); });
  std::vector<std::pair<std::string, uint32_t>> entries;
  entries.reserve(n.size());
  plan->texts.reserve(n.size());
  for (uint32_t i = 0; i < n.size(); ++i) {
    plan->texts.emplace_back(formulas_.text(n[i]));
    entries.emplace_back(plan->texts.back(), i);
  }
  plan->table = solver_.regexes().tables().add(std::move(entries));
  count_keys(*plan);
  order_names(*plan, maps);
  take_apart(*plan);
  const PlanId id{static_cast<uint32_t>(plans_.size())};
  plans_.push_back(std::move(plan));
  plan_index_.emplace(p.v, id);
  return id;
}

// Puts the names into chains. A map is the list of names of one `properties`. A name belongs to the first map
// that lists it, and only names of one map are ordered, so there are no cycles. If two maps contradict each
// other, as [a, b] and [b, a] do, the name `a` stands in no chain.
void Plans::order_names(Plan& plan, const std::vector<MapId>& maps) {
  plan.chain_of.assign(plan.names.size(), kNoChain);
  plan.position.assign(plan.names.size(), 0);
  if (maps.empty()) return;
  // By NameId: the index of the name in the plan.
  FlatMap<uint32_t, PlanNameId> index;
  for (PlanNameId i; i.v < plan.names.size(); ++i.v) index.emplace(plan.names[i.v].v, i);
  std::vector<bool> torn(plan.names.size(), false);
  for (MapId m : maps) {
    std::vector<PlanNameId> chain;
    // For each chain: the highest position in it that a name of this map has had so far.
    FlatMap<uint32_t, uint32_t> last;
    for (NameId n : solver_.lowering().map_names(m)) {
      const PlanNameId* const at = index.find(n.v);
      if (!at) continue;
      ChainId& own = plan.chain_of[at->v];
      uint32_t& position = plan.position[at->v];
      if (own != kNoChain) {
        uint32_t& high = last[own.v];
        if (position < high) torn[at->v] = true;
        high = std::max(high, position);
        continue;
      }
      own = ChainId{static_cast<uint32_t>(plan.chains.size())};
      position = static_cast<uint32_t>(chain.size());
      chain.push_back(*at);
    }
    // The names that earlier maps list were handled above. This chain has only new names, in the order of the
    // map.
    plan.chains.push_back(std::move(chain));
  }
  if (std::find(torn.begin(), torn.end(), true) == torn.end()) return;
  for (uint32_t i = 0; i < torn.size(); ++i)
    if (torn[i]) plan.chain_of[i] = kNoChain;
  for (std::vector<PlanNameId>& chain : plan.chains) {
    std::erase_if(chain, [&](PlanNameId i) { return torn[i.v]; });
    for (uint32_t at = 0; at < chain.size(); ++at) plan.position[chain[at].v] = at;
  }
}

// Makes names of the keys of each class with at most kFiniteClass keys: {"patternProperties": {"^[ab]$": V}}
// has the names a and b. The class of all other keys stays.
void Plans::expand_finite(Plan& plan) {
  if (plan.leaves.empty()) return;
  find_classes(plan);
  RegexArena& regexes = solver_.regexes();
  const RegexId canonical = solver_.texts().canonical_body();
  std::erase_if(plan.classes, [&](KeyClass& c) {
    std::vector<std::string> texts;
    bool any_in = false;
    for (bool b : c.in) any_in = any_in || b;
    if (!any_in) return false;
    const bool all = solver_.attempt(
        false, [&] { return regexes.enumerate(regexes.both(c.language, canonical), kFiniteClass, texts); });
    if (!all) return false;
    for (std::string& t : texts) plan.names.push_back(formulas_.intern_name(from_json_body(t)));
    return true;
  });
}

// Splits the free keys by each pattern of the plan, and drops empty classes. If there are too many classes,
// or if splitting takes too much work, a world that omits (base/effort.h) keeps only some of the classes; its
// objects then have no keys of the other classes.
void Plans::find_classes(Plan& plan) {
  if (plan.classes_known) return;
  RegexArena& regexes = solver_.regexes();
  std::vector<KeyClass> classes(1);
  classes[0].language = any_body(regexes, regexes.spelling());
  for (ValueId leaf : plan.leaves) {
    const RegexId language = solver_.attempt(RegexArena::poison(), [&] { return solver_.strings(leaf); });
    if (language == RegexArena::poison()) {
      classes.clear();
      break;
    }
    std::vector<KeyClass> next;
    for (const KeyClass& c : classes)
      for (bool inside : {true, false}) {
        KeyClass d = c;
        d.language = inside ? regexes.both(c.language, language) : regexes.minus(c.language, language);
        d.in.push_back(inside);
        if (!solver_.attempt(true, [&] { return solver_.regexes().is_empty(d.language); }))
          next.push_back(std::move(d));
      }
    classes = std::move(next);
    if (classes.size() <= kMaxClasses) continue;
    if (!solver_.effort().omits())
      throw Error(ErrorKind::kSchemaTooComplex, "key patterns of one object overlap in too many ways");
    solver_.omit();
    classes.resize(kMaxClasses);
  }
  plan.classes = std::move(classes);
  plan.classes_known = true;
}

// Counts the keys of each class, without the plan's names. All names of the plan must be known before.
void Plans::count_keys(Plan& plan) {
  if (plan.leaves.empty()) return;
  find_classes(plan);
  RegexArena& regexes = solver_.regexes();
  const RegexId canonical = solver_.texts().canonical_body();
  for (KeyClass& c : plan.classes) {
    c.exact = false;
    c.keys = solver_.attempt(uint64_t{0}, [&] {
      return regexes.count(regexes.both(c.language, canonical), kCountNodes, c.exact);
    });
    if (c.keys == kEndless) continue;
    plan.finite = true;
    for (const std::string& t : plan.texts)
      if (c.keys > 0 && regexes.matches(c.language, json_body(t))) --c.keys;
  }
}

// Tells whether p has a condition that one more member can violate without being named: "at most n", or
// "every key of a pattern ...". A One or a Not that mentions any pattern counts as such a condition.
bool Plans::restricts_members(TypedId p, FlatMap<uint32_t, bool>& seen) {
  check_depth();
  const Formula& f = formulas_[p];
  if (f.op == Op::kAll || f.op == Op::kMost) return formulas_.region(RegionId{f.a}).kind != Region::kNames;
  if (f.op == Op::kOne || f.op == Op::kNot) {
    bool wide = false;
    std::vector<PlanNameId> names;
    names_of({}, p, names, wide);
    return wide;
  }
  if (f.n == 0 || !seen.emplace(p.v, true).second) return false;
  for (TypedId k : formulas_.kids(p))
    if (restricts_members(k, seen)) return true;
  return false;
}

// Takes the formula apart into `value`, `required` and `rest`. A conjunct "every member in L satisfies V"
// gives V to `value` for each name in L. For free keys class_value() reads V from the formula.
void Plans::take_apart(Plan& plan) {
  const TypedId self = plan.formula;
  const auto kids = formulas_.conjuncts(self);
  plan.required.assign(plan.words(), 0);
  plan.value.assign(plan.names.size(), FormulaSpace::no());
  plan.ok.assign(plan.names.size(), 0);
  // By NameId: the index of the name in the plan.
  FlatMap<uint32_t, PlanNameId> index;
  for (PlanNameId i; i.v < plan.names.size(); ++i.v) index.emplace(plan.names[i.v].v, i);
  std::vector<TypedId> rest;
  std::vector<std::pair<PlanNameId, TypedId>> required;
  std::vector<std::vector<ValueId>> values(plan.names.size());
  for (TypedId k : kids) {
    const Formula& l = formulas_[k];
    if (l.op == Op::kTrue) continue;
    const Region* r = l.op == Op::kAll || l.op == Op::kSome ? &formulas_.region(RegionId{l.a}) : nullptr;
    if (l.op == Op::kAll && r->kind == Region::kNames) {
      for (NameId n : r->names)
        if (const PlanNameId* at = index.find(n.v)) values[at->v].push_back(l.value());
    } else if (l.op == Op::kAll) {
      for (PlanNameId i; i.v < plan.names.size(); ++i.v)
        if (hits(plan, RegionId{l.a}, i, {})) values[i.v].push_back(l.value());
    } else if (r && l.c == 1 && l.value() == FormulaSpace::yes() && r->kind == Region::kNames &&
               r->names.size() == 1 && index.find(r->names[0].v)) {
      required.emplace_back(index[r->names[0].v], k);
    } else {
      rest.push_back(k);
    }
  }
  for (uint32_t i = 0; i < plan.names.size(); ++i) plan.value[i] = formulas_.all_of(values[i]);
  // The required names that the rest mentions, too. These names stay in the rest, so that the counts of the
  // rest see these members. A region that is no list of names, such as a pattern, counts as mentioning a name
  // only if a member can violate the condition. For "at least n", a required member counts like any other
  // member.
  std::vector<PlanNameId> named;
  bool wide = false;
  const TypedId counting = formulas_.all_of(rest);
  FlatMap<uint32_t, bool> seen;
  const bool limits = restricts_members(counting, seen);
  if (!rest.empty()) names_of(plan, counting, named, wide);
  std::sort(named.begin(), named.end());
  for (const auto& [name, literal] : required)
    if (limits || std::binary_search(named.begin(), named.end(), name))
      rest.push_back(literal);
    else
      add_bit(plan.required, name);
  plan.rest = formulas_.all_of(rest);
}

// Tells by the structure of the region whether it contains the name or the class. For a language,
// KeyClass::in has the answer for a class. For a name, the regex of the language gives the answer, which is
// remembered.
bool Plans::hits(const Plan& plan, RegionId r, PlanNameId name, KeyClassId cls) {
  check_depth();
  charge();
  const Region& x = formulas_.region(r);
  switch (x.kind) {
    case Region::kAny: return true;
    case Region::kNames:
      return name != kNoName && std::binary_search(x.names.begin(), x.names.end(), plan.names[name.v]);
    case Region::kNot: return !hits(plan, x.kids[0], name, cls);
    case Region::kAnd:
      for (RegionId k : x.kids)
        if (!hits(plan, k, name, cls)) return false;
      return true;
    case Region::kOr:
      for (RegionId k : x.kids)
        if (hits(plan, k, name, cls)) return true;
      return false;
    case Region::kLanguage: break;
  }
  if (name == kNoName) {
    const auto at = std::lower_bound(plan.leaves.begin(), plan.leaves.end(), x.language);
    return plan.classes[cls.v].in[static_cast<std::size_t>(at - plan.leaves.begin())];
  }
  const uint64_t key = (static_cast<uint64_t>(x.language.v) << 32) | plan.names[name.v].v;
  return region_names_.remember(key, [&] {
    const RegexId language = solver_.strings(x.language);
    return solver_.regexes().matches(language, json_body(plan.texts[name.v]));
  });
}

// A "no" is stored only if it depends on no formula that is still being decided (Solver::tainted).
bool Plans::name_ok(Plan& plan, PlanNameId name) {
  if (plan.ok[name.v] == 0) {
    const bool ok = solver_.nonempty(plan.value[name.v]);
    if (!ok && solver_.tainted()) return false;
    plan.ok[name.v] = ok ? 2 : 1;
  }
  return plan.ok[name.v] == 2;
}

// Joins V of each conjunct "every member in L satisfies V" whose region L contains the class.
ValueId Plans::class_value(Plan& plan, KeyClassId cls) {
  if (plan.class_value.empty()) {
    const TypedId self = plan.formula;
    const auto kids = formulas_.conjuncts(self);
    std::vector<std::vector<ValueId>> values(plan.classes.size());
    for (TypedId k : kids) {
      const Formula& l = formulas_[k];
      if (l.op != Op::kAll || formulas_.region(RegionId{l.a}).kind == Region::kNames) continue;
      for (KeyClassId c; c.v < plan.classes.size(); ++c.v)
        if (hits(plan, RegionId{l.a}, kNoName, c)) values[c.v].push_back(l.value());
    }
    std::vector<ValueId> all;
    for (const std::vector<ValueId>& v : values) all.push_back(formulas_.all_of(v));
    plan.class_value = std::move(all);
  }
  return plan.class_value[cls.v];
}

TypedId Plans::derive(const Plan& plan, TypedId p, PlanNameId name, KeyClassId cls) {
  Memo memo;
  return derive(plan, p, name, cls, memo);
}

// Follows the structure of the formula. A count whose region contains the key asks for the value of this key
// and falls by one (FormulaSpace::counted). Every other node is made anew from the derivatives of its
// operands.
TypedId Plans::derive(const Plan& plan, TypedId p, PlanNameId name, KeyClassId cls, Memo& memo) {
  charge();
  const Formula f = formulas_[p];
  const OpRow& row = formulas_.row(p);
  if (row.family == Family::kConstant) return p;
  if (row.family == Family::kMembers) {
    const RegionId r{f.a};
    const ValueId v = f.value();
    if (!hits(plan, r, name, cls)) return p;
    // A name is written once, so it leaves each list of names.
    RegionId left = r;
    if (const Region& x = formulas_.region(r); x.kind == Region::kNames) {
      std::vector<NameId> rest(x.names.begin(), x.names.end());
      std::erase(rest, plan.names[name.v]);
      left = formulas_.names(std::move(rest));
    }
    const TypedId same = formulas_.members(row.count, left, v, f.c);
    return formulas_.counted(
        row.count, v, same, [&](int64_t n) { return formulas_.members(row.count, left, v, n); }, f.c);
  }
  return memo.remember(p.v, [&] {
    solver_.spend();
    return formulas_.map_kids(p, [&](TypedId k) { return derive(plan, k, name, cls, memo); });
  });
}

TypedId Plans::forget(const Plan& plan, TypedId p, const Bits& gone) {
  Memo memo;
  return forget(plan, p, gone, memo);
}

// Removes the names in `gone` from a count over names. The removal may decide the count:
// "at least 2 of {a, b}" is false once `a` was passed over.
TypedId Plans::forget(const Plan& plan, TypedId p, const Bits& gone, Memo& memo) {
  check_depth();
  charge();
  const Formula f = formulas_[p];
  const OpRow& row = formulas_.row(p);
  if (row.family == Family::kMembers) {
    const Region& x = formulas_.region(RegionId{f.a});
    if (x.kind != Region::kNames) return p;
    std::vector<NameId> rest;
    for (NameId n : x.names)
      if (const PlanNameId i = plan.find(formulas_.text(n)); i != kNoName && !has_bit(gone, i))
        rest.push_back(n);
    if (rest.size() == x.names.size()) return p;
    return formulas_.members(row.count, formulas_.names(std::move(rest)), f.value(), f.c);
  }
  if (f.n == 0) return p;
  return formulas_.map_kids(p, memo, [&](TypedId k) { return forget(plan, k, gone, memo); });
}

void Plans::collect_names(const Plan& plan, TypedId p, std::vector<PlanNameId>& names, bool& wide,
                          FlatMap<uint32_t, bool>& seen) {
  check_depth();
  charge();
  const Formula& f = formulas_[p];
  if (f.op == Op::kAll || f.op == Op::kSome || f.op == Op::kMost) {
    const Region& r = formulas_.region(RegionId{f.a});
    if (r.kind != Region::kNames) {
      wide = true;
      return;
    }
    for (NameId n : r.names)
      if (const PlanNameId i = plan.find(formulas_.text(n)); i != kNoName) names.push_back(i);
    return;
  }
  if (f.n == 0 || !seen.emplace(p.v, true).second) return;
  for (TypedId k : formulas_.kids(p)) collect_names(plan, k, names, wide, seen);
}

void Plans::names_of(const Plan& plan, TypedId p, std::vector<PlanNameId>& names, bool& wide) {
  FlatMap<uint32_t, bool> seen;
  collect_names(plan, p, names, wide, seen);
}

// Returns the conjuncts of p, found by name, and remembers them for the plan. The table is emptied when it
// has kKept entries; a text needs few entries at a time.
std::shared_ptr<const Parts> Plans::parts(PlanId plan_id, TypedId p) {
  constexpr std::size_t kKept = 256;
  const uint64_t key = (static_cast<uint64_t>(plan_id.v) << 32) | p.v;
  if (const auto it = parts_.find(key); it != parts_.end()) return it->second;
  const auto made = std::make_shared<Parts>();
  Parts& out = *made;
  for (TypedId k : formulas_.conjuncts(p))
    if (k != FormulaSpace::yes()) out.kids.push_back(k);
  std::vector<PlanNameId> names;
  for (PartId i; i.v < out.kids.size(); ++i.v) {
    if (!solver_.closes(out.kids[i.v])) out.open.push_back(i);
    names.clear();
    bool wide = false;
    names_of(*plans_[plan_id.v], out.kids[i.v], names, wide);
    if (wide) out.wide.push_back(i);
    sort_unique(names);
    for (PlanNameId n : names) out.by_name[n].push_back(i);
  }
  if (parts_.size() >= kKept) parts_.clear();
  parts_.emplace(key, made);
  return made;
}

}  // namespace structgen
