#include "schema/object.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "base/utf8.h"
#include "regex/charset.h"

namespace structgen {

namespace {
constexpr uint32_t kNoName = 0xFFFFFFFFu;
constexpr std::size_t kMaxClasses = 256;
constexpr uint32_t kFiniteClass = 64;  // keys up to which a class is written out as names
constexpr uint32_t kCountSteps = 3'000;  // of the search for keys of a class
}  // namespace

Objects::Objects(Solver& solver) : solver_(solver), formulas_(solver.formulas()) {
  bits_.emplace_back();
}

std::size_t Objects::byte_size() const {
  return states_.byte_size() + state_index_.byte_size() + bits_.size() * 48 + written_.size() * 48 + cells_.size() * 96 +
         plans_.size() * sizeof(Plan);
}

// ---- plans ----

void Objects::collect_region(RegionId r, std::vector<NameId>& names, std::vector<uint32_t>& leaves) {
  const Region& x = formulas_.region(r);
  names.insert(names.end(), x.names.begin(), x.names.end());
  if (x.kind == Region::kLanguage) leaves.push_back(x.language);
  for (RegionId k : x.kids) collect_region(k, names, leaves);
}

void Objects::collect(FormulaId f, std::vector<NameId>& names, std::vector<uint32_t>& maps, std::vector<uint32_t>& leaves,
                      std::unordered_map<uint32_t, bool>& seen) {
  const Formula& n = formulas_[f];
  switch (n.op) {
    case Op::kAll: case Op::kSome: case Op::kMost: collect_region(RegionId{n.a}, names, leaves); return;
    case Op::kOrder: maps.push_back(n.a); return;
    default: break;
  }
  if (n.n == 0 || !seen.emplace(f.v, true).second) return;
  for (FormulaId k : formulas_.kids(f)) collect(k, names, maps, leaves, seen);
}

FormulaId Objects::strip_order(FormulaId f) {
  const Formula n = formulas_[f];
  if (!(n.has & kHasOrder)) return f;
  if (n.op == Op::kOrder) return FormulaSpace::yes();
  std::vector<FormulaId> kids;
  for (uint32_t i = 0; i < n.n; ++i) kids.push_back(strip_order(n.kids[i]));
  switch (n.op) {
    case Op::kAnd: return formulas_.all_of(std::move(kids));
    case Op::kOr: return formulas_.any_of(std::move(kids));
    case Op::kOne: return formulas_.one_of(std::move(kids), true);
    default: return formulas_.negate(kids[0]);
  }
}

uint32_t Objects::plan_of(FormulaId p) {
  if (const auto it = plan_index_.find(p.v); it != plan_index_.end()) return it->second;
  auto plan = std::make_unique<Plan>();
  std::vector<NameId> names;
  std::vector<uint32_t> maps;
  std::unordered_map<uint32_t, bool> seen;
  collect(p, names, maps, plan->leaves, seen);
  std::sort(maps.begin(), maps.end());
  maps.erase(std::unique(maps.begin(), maps.end()), maps.end());
  std::sort(plan->leaves.begin(), plan->leaves.end());
  plan->leaves.erase(std::unique(plan->leaves.begin(), plan->leaves.end()), plan->leaves.end());
  plan->formula = strip_order(p);
  plan->names = std::move(names);
  expand_finite(*plan);
  std::vector<NameId>& n = plan->names;
  // A name with a lone surrogate has no spelling: it can never be written.
  std::erase_if(n, [&](NameId x) { return !valid_utf8(formulas_.text(x)); });
  std::sort(n.begin(), n.end(), [&](NameId x, NameId y) { return formulas_.text(x) < formulas_.text(y); });
  n.erase(std::unique(n.begin(), n.end()), n.end());
  std::vector<std::pair<std::string, uint32_t>> entries;
  for (uint32_t i = 0; i < n.size(); ++i) {
    plan->texts.emplace_back(formulas_.text(n[i]));
    entries.emplace_back(plan->texts.back(), i);
  }
  plan->table = solver_.regexes().tables().add(std::move(entries));
  order_names(*plan, maps);
  plan->pure = make_pure(*plan);
  const uint32_t id = static_cast<uint32_t>(plans_.size());
  plans_.push_back(std::move(plan));
  plan_index_.emplace(p.v, id);
  return id;
}

// Each name belongs to the first map that lists it; only names of one map are ordered, so the order has
// no cycles whatever the maps say.
void Objects::order_names(Plan& plan, const std::vector<uint32_t>& maps) {
  plan.chain_of.assign(plan.names.size(), kNoChain);
  plan.position.assign(plan.names.size(), 0);
  if (maps.empty()) return;
  std::unordered_map<NameId, uint32_t> index;
  for (uint32_t i = 0; i < plan.names.size(); ++i) index.emplace(plan.names[i], i);
  for (uint32_t m : maps) {
    std::vector<uint32_t> chain;
    for (NameId n : solver_.lowering().map_names(m)) {
      const auto it = index.find(n);
      if (it == index.end() || plan.chain_of[it->second] != kNoChain) continue;
      plan.chain_of[it->second] = static_cast<uint32_t>(plan.chains.size());
      plan.position[it->second] = static_cast<uint32_t>(chain.size());
      chain.push_back(it->second);
    }
    plan.chains.push_back(std::move(chain));
  }
}

bool Objects::hits(const Plan& plan, RegionId r, uint32_t name, uint32_t cls) {
  const Region& x = formulas_.region(r);
  switch (x.kind) {
    case Region::kAny: return true;
    case Region::kNames:
      return name != kNoName && std::binary_search(x.names.begin(), x.names.end(), plan.names[name]);
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
    return plan.classes[cls].in[static_cast<std::size_t>(at - plan.leaves.begin())];
  }
  const uint64_t key = (static_cast<uint64_t>(x.language) << 32) | plan.names[name];
  uint8_t& known = region_names_[key];
  if (known == 0) {
    const RegexId language = solver_.strings(FormulaId{x.language});
    known = solver_.regexes().matches(language, Scalars::spell(plan.texts[name])) ? 2 : 1;
  }
  return known == 2;
}

// Splits the free keys by every language leaf; empty classes vanish.
void Objects::find_classes(Plan& plan) {
  if (plan.classes_known) return;
  plan.classes_known = true;
  RegexArena& regexes = solver_.regexes();
  plan.classes = {{json_string_body(regexes), {}}};
  for (uint32_t leaf : plan.leaves) {
    const RegexId language = solver_.strings(FormulaId{leaf});
    std::vector<KeyClass> next;
    for (const KeyClass& c : plan.classes)
      for (bool inside : {true, false}) {
        KeyClass d = c;
        d.language = inside ? regexes.both(c.language, language) : regexes.minus(c.language, language);
        d.in.push_back(inside);
        if (!solver_.scalars().empty_string(d.language)) next.push_back(std::move(d));
      }
    plan.classes = std::move(next);
    if (plan.classes.size() > kMaxClasses)
      throw Error(ErrorKind::kSchemaTooComplex, "key patterns of one object overlap in too many ways");
  }
  if (plan.leaves.empty()) return;
  const RegexId canonical = solver_.scalars().canonical_body();
  for (KeyClass& c : plan.classes) c.keys = regexes.at_least(regexes.both(c.language, canonical), kCountSteps);
}

// A class of finitely many keys is written out as names: counting members needs to know how many there are.
void Objects::expand_finite(Plan& plan) {
  if (plan.leaves.empty()) return;
  find_classes(plan);
  RegexArena& regexes = solver_.regexes();
  const RegexId canonical = solver_.scalars().canonical_body();
  std::erase_if(plan.classes, [&](KeyClass& c) {
    std::vector<std::string> texts;
    bool any_in = false;
    for (bool b : c.in) any_in = any_in || b;
    if (!any_in || !regexes.enumerate(regexes.both(c.language, canonical), kFiniteClass, texts)) return false;
    for (std::string& t : texts) {
      std::string decoded;
      t.pop_back();
      for (std::size_t i = 0; i < t.size(); ++i) {
        if (t[i] != '\\') {
          decoded += t[i];
        } else if (t[i + 1] == 'u') {
          decoded += static_cast<char>(std::stoi(t.substr(i + 4, 2), nullptr, 16));
          i += 5;
        } else {
          decoded += t[++i];
        }
      }
      plan.names.push_back(formulas_.intern_text(decoded));
    }
    return true;
  });
}

bool Objects::make_pure(Plan& plan) {
  const FormulaId self = plan.formula;
  const Formula& f = formulas_[self];
  const std::span<const FormulaId> kids = f.op == Op::kAnd ? formulas_.kids(self) : std::span<const FormulaId>(&self, 1);
  plan.required.assign((plan.names.size() + 63) / 64, 0);
  for (FormulaId k : kids) {
    const Formula& l = formulas_[k];
    if (l.op == Op::kTrue || l.op == Op::kAll) continue;
    if (l.op != Op::kSome || l.c != 1 || FormulaId{l.b} != FormulaSpace::yes()) return false;
    const Region& r = formulas_.region(RegionId{l.a});
    if (r.kind != Region::kNames || r.names.size() != 1) return false;
    const std::string_view text = formulas_.text(r.names[0]);
    const auto at = std::lower_bound(plan.texts.begin(), plan.texts.end(), text);
    if (at == plan.texts.end() || *at != text) return false;  // required, but cannot be spelled
    add_bit(plan.required, static_cast<uint32_t>(at - plan.texts.begin()));
  }
  plan.value.assign(plan.names.size(), FormulaSpace::no());
  plan.ok.assign(plan.names.size(), 0);
  // Values of all names in one pass over the conjuncts: most speak of one name.
  std::vector<std::vector<FormulaId>> parts(plan.names.size());
  std::unordered_map<NameId, uint32_t> index;
  for (uint32_t i = 0; i < plan.names.size(); ++i) index.emplace(plan.names[i], i);
  for (FormulaId k : kids) {
    const Formula l = formulas_[k];
    if (l.op != Op::kAll) continue;
    const Region& r = formulas_.region(RegionId{l.a});
    if (r.kind == Region::kNames) {
      for (NameId n : r.names)
        if (const auto it = index.find(n); it != index.end()) parts[it->second].push_back(FormulaId{l.b});
    } else {
      for (uint32_t i = 0; i < plan.names.size(); ++i)
        if (hits(plan, RegionId{l.a}, i, 0)) parts[i].push_back(FormulaId{l.b});
    }
  }
  for (uint32_t i = 0; i < plan.names.size(); ++i) plan.value[i] = formulas_.all_of(std::move(parts[i]));
  return true;
}

bool Objects::name_ok(Plan& plan, uint32_t name) {
  if (plan.ok[name] == 0) {
    const bool ok = solver_.nonempty(plan.value[name]);
    if (!ok && solver_.tainted()) return false;
    plan.ok[name] = ok ? 2 : 1;
  }
  return plan.ok[name] == 2;
}

// ---- derivatives ----

FormulaId Objects::derive(const Plan& plan, FormulaId p, uint32_t name, uint32_t cls,
                          std::unordered_map<uint64_t, FormulaId>& memo) {
  const Formula f = formulas_[p];
  switch (f.op) {
    case Op::kTrue:
    case Op::kFalse: return p;
    case Op::kAll: case Op::kSome: case Op::kMost: {
      const RegionId r{f.a};
      const FormulaId v{f.b};
      if (!hits(plan, r, name, cls)) return p;
      RegionId left = r;  // a name is written once: a finite region shrinks
      if (const Region& x = formulas_.region(r); x.kind == Region::kNames) {
        std::vector<NameId> rest = x.names;
        std::erase(rest, plan.names[name]);
        left = formulas_.names(std::move(rest));
      }
      if (f.op == Op::kAll) return formulas_.both(formulas_.val(v), formulas_.all(left, v));
      const bool some = f.op == Op::kSome;
      const FormulaId same = some ? formulas_.some(left, v, f.c) : formulas_.most(left, v, f.c);
      const FormulaId fewer = some ? formulas_.some(left, v, f.c - 1) : formulas_.most(left, v, static_cast<int64_t>(f.c) - 1);
      if (v == FormulaSpace::yes()) return fewer;
      const FormulaId hit = formulas_.val(v);
      return formulas_.either(formulas_.both(hit, fewer), formulas_.both(formulas_.negate(hit), same));
    }
    default: break;
  }
  if (const auto it = memo.find(p.v); it != memo.end()) return it->second;
  solver_.spend();
  std::vector<FormulaId> kids;
  for (uint32_t i = 0; i < f.n; ++i) kids.push_back(derive(plan, f.kids[i], name, cls, memo));
  FormulaId out;
  switch (f.op) {
    case Op::kAnd: out = formulas_.all_of(std::move(kids)); break;
    case Op::kOr: out = formulas_.any_of(std::move(kids)); break;
    case Op::kOne: out = formulas_.one_of(std::move(kids), true); break;
    default: out = formulas_.negate(kids[0]);
  }
  memo.emplace(p.v, out);
  return out;
}

// Names that can no longer be written leave every finite region.
FormulaId Objects::forget_names(const Plan& plan, FormulaId p, const Bits& gone, std::unordered_map<uint32_t, FormulaId>& memo) {
  const Formula f = formulas_[p];
  switch (f.op) {
    case Op::kTrue:
    case Op::kFalse: return p;
    case Op::kAll: case Op::kSome: case Op::kMost: {
      const Region& x = formulas_.region(RegionId{f.a});
      if (x.kind != Region::kNames) return p;
      std::vector<NameId> rest;
      for (NameId n : x.names) {
        const std::string_view text = formulas_.text(n);
        const auto at = std::lower_bound(plan.texts.begin(), plan.texts.end(), text);
        const bool known = at != plan.texts.end() && *at == text;
        if (known && !has_bit(gone, static_cast<uint32_t>(at - plan.texts.begin()))) rest.push_back(n);
      }
      if (rest.size() == x.names.size()) return p;
      const RegionId r = formulas_.names(std::move(rest));
      const FormulaId v{f.b};
      return f.op == Op::kAll ? formulas_.all(r, v) : f.op == Op::kSome ? formulas_.some(r, v, f.c) : formulas_.most(r, v, f.c);
    }
    default:
      if (f.n == 0) return p;  // kVal
  }
  if (const auto it = memo.find(p.v); it != memo.end()) return it->second;
  std::vector<FormulaId> kids;
  for (uint32_t i = 0; i < f.n; ++i) kids.push_back(forget_names(plan, f.kids[i], gone, memo));
  FormulaId out;
  switch (f.op) {
    case Op::kAnd: out = formulas_.all_of(std::move(kids)); break;
    case Op::kOr: out = formulas_.any_of(std::move(kids)); break;
    case Op::kOne: out = formulas_.one_of(std::move(kids), true); break;
    default: out = formulas_.negate(kids[0]);
  }
  memo.emplace(p.v, out);
  return out;
}

// Writing a name also passes over the earlier names of its chain.
Bits Objects::after(const Plan& plan, const Bits& used, uint32_t name) const {
  Bits out = used;
  add_bit(out, name);
  if (plan.chain_of[name] != kNoChain) {
    const std::vector<uint32_t>& chain = plan.chains[plan.chain_of[name]];
    for (uint32_t i = 0; i < plan.position[name]; ++i) add_bit(out, chain[i]);
  }
  return out;
}

// ---- productivity ----

bool Objects::productive(FormulaId p) {
  if (p == FormulaSpace::no()) return false;
  if (solver_.closes(p)) return true;
  const uint32_t id = plan_of(p);
  Plan& plan = *plans_[id];
  if (plan.pure) {
    for (uint32_t i = 0; i < plan.names.size(); ++i)
      if (has_bit(plan.required, i) && !name_ok(plan, i)) return false;
    return true;
  }
  const Bits none((plan.names.size() + 63) / 64 + 1, 0);
  std::unordered_map<uint32_t, FormulaId> memo;
  return search(id, forget_names(plan, plan.formula, none, memo), none);
}

// Chooses one unmet conjunct and tries every way to meet it; each step lowers a count, so this ends.
// Members that meet no count can be dropped from any object, which makes the search complete.
bool Objects::search(uint32_t plan_id, FormulaId p, const Bits& used) {
  if (p == FormulaSpace::no()) return false;
  if (solver_.closes(p)) return true;
  solver_.spend(5);
  const Situation key{plan_id, p, intern_bits(used)};
  if (const auto it = productive_.find(key); it != productive_.end()) return it->second == 2;
  std::vector<FormulaId> branches, others;
  FormulaId literal;
  bool result = false;
  const bool clean_before = !solver_.tainted();
  if (solver_.branch(p, branches, literal, others)) {
    for (FormulaId b : branches)
      if (search(plan_id, b, used)) {
        result = true;
        break;
      }
  } else {
    result = search_literal(plan_id, p, literal, used);
  }
  if (result || (clean_before && !solver_.tainted())) productive_.emplace(key, result ? 2 : 1);
  return result;
}

bool Objects::search_literal(uint32_t plan_id, FormulaId p, FormulaId literal, const Bits& used) {
  Plan& plan = *plans_[plan_id];
  const Formula l = formulas_[literal];
  const auto attempt = [&](uint32_t name, uint32_t cls) {
    if (!hits(plan, RegionId{l.a}, name, cls)) return false;
    std::unordered_map<uint64_t, FormulaId> memo;
    FormulaId d = derive(plan, p, name, cls, memo);
    d = formulas_.both(d, formulas_.val(FormulaId{l.b}));
    // In a search the order of names is free: any set of members can be written in order.
    Bits next = used;
    if (name != kNoName) add_bit(next, name);
    bool found = false;
    std::vector<Cell> cells;
    solver_.split(d, FormulaSpace::yes(), [&](FormulaId rest) { return found = found || search(plan_id, rest, next); }, cells);
    return found;
  };
  for (uint32_t i = 0; i < plan.names.size(); ++i)
    if (!has_bit(used, i) && attempt(i, 0)) return true;
  find_classes(plan);
  for (uint32_t c = 0; c < plan.classes.size(); ++c)
    if (attempt(kNoName, c)) return true;
  return false;
}

// ---- states ----

uint32_t Objects::intern_bits(const Bits& b) {
  uint64_t h = b.size();
  for (uint64_t w : b) h = mix(h, w);
  return bits_index_.find_or_add(
      h, [&](uint32_t i) { return bits_[i] == b; },
      [&] {
        bits_.push_back(b);
        return static_cast<uint32_t>(bits_.size() - 1);
      });
}

uint32_t Objects::intern(const ObjectState& s) {
  const uint64_t h = mix(mix(mix(mix(s.plan, s.rest.v), s.used), s.written), s.unknown_key);
  return state_index_.find_or_add(
      h, [&](uint32_t i) { return states_[i] == s; },
      [&] {
        offers_.emplace_back();
        return states_.emplace_back(s);
      });
}

uint32_t Objects::start(FormulaId p) {
  const uint32_t id = plan_of(p);
  const Plan& plan = *plans_[id];
  ObjectState s;
  s.plan = id;
  const Bits none((plan.names.size() + 63) / 64 + 1, 0);
  s.used = intern_bits(none);
  std::unordered_map<uint32_t, FormulaId> memo;
  s.rest = plan.pure ? plan.formula : forget_names(plan, plan.formula, none, memo);
  return intern(s);
}

const std::vector<Cell>& Objects::name_cells(uint32_t s, uint32_t name) {
  const uint64_t key = (static_cast<uint64_t>(s) << 32) | name;
  if (const auto it = cells_.find(key); it != cells_.end()) return it->second;
  const ObjectState st = states_[s];
  const Plan& plan = *plans_[st.plan];
  const Bits next = after(plan, bits_[st.used], name);
  std::unordered_map<uint64_t, FormulaId> memo;
  std::unordered_map<uint32_t, FormulaId> forget;
  const FormulaId d = forget_names(plan, derive(plan, st.rest, name, 0, memo), next, forget);
  std::vector<Cell> cells;
  solver_.split(d, FormulaSpace::yes(), [&](FormulaId rest) { return search(st.plan, rest, next); }, cells);
  return cells_.emplace(key, std::move(cells)).first->second;
}

const Offers& Objects::offers(uint32_t s) {
  if (offers_[s]) return *offers_[s];
  auto out = std::make_unique<Offers>();
  const ObjectState st = states_[s];
  Plan& plan = *plans_[st.plan];
  find_classes(plan);
  const Bits used = bits_[st.used];
  out->names.assign((plan.names.size() + 63) / 64, 0);
  std::vector<bool> blocked(plan.names.size(), false);
  if (plan.pure) {
    out->close = true;
    for (uint32_t i = 0; i < plan.names.size(); ++i)
      if (has_bit(plan.required, i) && !has_bit(used, i)) out->close = false;
    for (const std::vector<uint32_t>& chain : plan.chains) {
      bool passed = false;  // a required name would be passed over
      for (uint32_t i : chain) {
        blocked[i] = passed;
        if (has_bit(plan.required, i) && !has_bit(used, i)) passed = true;
      }
    }
    for (uint32_t i = 0; i < plan.names.size(); ++i)
      if (!has_bit(used, i) && !blocked[i] && name_ok(plan, i)) add_bit(out->names, i);
  } else {
    out->close = solver_.closes(st.rest);
    for (uint32_t i = 0; i < plan.names.size(); ++i)
      if (!has_bit(used, i) && !name_cells(s, i).empty()) add_bit(out->names, i);
  }
  for (uint32_t c = 0; c < plan.classes.size(); ++c)
    if (!solver_.regexes().is_empty(free_language(s, c)) && !take_free(s, c, nullptr).empty()) out->classes.push_back(c);
  offers_[s] = std::move(out);
  return *offers_[s];
}

std::vector<Objects::Step> Objects::take_name(uint32_t s, uint32_t name) {
  const ObjectState st = states_[s];
  const Plan& plan = *plans_[st.plan];
  ObjectState next = st;
  next.used = intern_bits(after(plan, bits_[st.used], name));
  if (plan.pure) return {{plan.value[name], intern(next)}};
  std::vector<Step> out;
  for (const Cell& c : name_cells(s, name)) {
    next.rest = c.rest;
    out.push_back({c.value, intern(next)});
  }
  return out;
}

FormulaId Objects::pure_value(const Plan& plan, uint32_t name, uint32_t cls) {
  const FormulaId self = plan.formula;
  const std::span<const FormulaId> kids =
      formulas_[self].op == Op::kAnd ? formulas_.kids(self) : std::span<const FormulaId>(&self, 1);
  std::vector<FormulaId> parts;
  for (FormulaId k : kids) {
    const Formula& l = formulas_[k];
    if (l.op == Op::kAll && hits(plan, RegionId{l.a}, name, cls)) parts.push_back(FormulaId{l.b});
  }
  return formulas_.all_of(std::move(parts));
}

std::vector<Objects::Step> Objects::take_free(uint32_t s, uint32_t cls, const std::string* text) {
  const ObjectState st = states_[s];
  Plan& plan = *plans_[st.plan];
  ObjectState next = st;
  if (text)
    next.written = write_key(st.written, *text);
  else
    next.unknown_key = true;
  if (plan.pure) {
    if (plan.class_value.empty())
      for (uint32_t c = 0; c < plan.classes.size(); ++c) plan.class_value.push_back(pure_value(plan, kNoName, c));
    const FormulaId v = plan.class_value[cls];
    if (!solver_.nonempty(v)) return {};
    return {{v, intern(next)}};
  }
  // Free keys of one class are alike: their cells are kept under a name beyond the plan's.
  const uint64_t key = (static_cast<uint64_t>(s) << 32) | (plan.names.size() + cls);
  auto it = cells_.find(key);
  if (it == cells_.end()) {
    std::unordered_map<uint64_t, FormulaId> memo;
    const Bits used = bits_[st.used];
    const FormulaId d = derive(plan, st.rest, kNoName, cls, memo);
    std::vector<Cell> cells;
    solver_.split(d, FormulaSpace::yes(), [&](FormulaId rest) { return search(st.plan, rest, used); }, cells);
    it = cells_.emplace(key, std::move(cells)).first;
  }
  std::vector<Step> out;
  for (const Cell& c : it->second) {
    next.rest = c.rest;
    out.push_back({c.value, intern(next)});
  }
  return out;
}

uint32_t Objects::write_key(uint32_t written, const std::string& text) {
  LiteralTables& tables = solver_.regexes().tables();
  std::vector<uint32_t> list = written_[written];
  std::vector<std::string> merged{text};
  while (!list.empty() && tables.table(list.back()).texts.size() <= merged.size()) {
    const auto& t = tables.table(list.back()).texts;
    merged.insert(merged.end(), t.begin(), t.end());
    list.pop_back();
  }
  list.push_back(tables.add(std::move(merged)));
  return written_index_.find_or_add(
             hash_words(list, 5), [&](uint32_t i) { return written_[i + 1] == list; },
             [&] {
               written_.push_back(list);
               return static_cast<uint32_t>(written_.size() - 2);
             }) +
         1;
}

bool Objects::surely_more(uint32_t s, uint32_t cls) const {
  const uint32_t keys = plans_[states_[s].plan]->classes[cls].keys;
  if (keys == kUnbounded) return true;
  // Known names that fall into the class are not keys of it.
  std::size_t gone = plans_[states_[s].plan]->names.size() + 1;
  for (uint32_t t : written_[states_[s].written]) gone += solver_.regexes().tables().table(t).texts.size();
  return gone < keys;
}

RegexId Objects::free_language(uint32_t s, uint32_t cls) {
  const ObjectState& st = states_[s];
  const Plan& plan = *plans_[st.plan];
  RegexArena& regexes = solver_.regexes();
  std::vector<RegexId> taken;
  if (!plan.names.empty()) taken.push_back(regexes.json_set(plan.table, {}, false));
  for (uint32_t t : written_[st.written]) taken.push_back(regexes.json_set(t, {}, false));
  const RegexId language = plan.classes[cls].language;
  // Names and written keys exclude every spelling, so the rest is a language of bodies again.
  return taken.empty() ? language
                       : regexes.mark_body(regexes.minus(language, regexes.alt(std::span<const RegexId>(taken))));
}

}  // namespace structgen
