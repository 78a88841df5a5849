#include "schema/decide/domain.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/depth.h"
#include "base/error.h"
#include "base/sorted.h"
#include "base/undo.h"
#include "base/utf8.h"
#include "schema/decide/object.h"
#include "strings/json_spelling.h"

namespace structgen {

namespace {

// At least this many values of a domain are listed, even if fewer are asked for, so that a longer array
// seldom needs a new list.
constexpr uint32_t kMinCap = 64;
// A question for more values of a domain than this throws kSchemaTooComplex.
constexpr uint32_t kMaxValues = 1u << 20;

std::size_t bytes_of(const std::vector<std::string>& texts) {
  std::size_t out = 64;
  for (const std::string& t : texts) out += sizeof t + (t.capacity() > 15 ? t.capacity() : 0);
  return out;
}

}  // namespace

// Returns the values that `enumerate` finds, or "at least `cap`", and remembers them. `cap` is rounded up to
// a power of two, so that for an array of n items the list is made log n times.
template <class Index, class F>
const Domain& Domains::listed(Index& index, typename Index::key_type key, uint32_t cap, F&& enumerate) {
  check_depth();
  cap = std::max(cap, kMinCap);
  uint32_t rounded = kMinCap;
  while (rounded < cap && rounded < kMaxValues) rounded *= 2;
  if (cap > kMaxValues) throw Error(ErrorKind::kSchemaTooComplex, "too many distinct items to tell apart");
  if (const auto it = index.find(key); it != index.end() && (!it->second.abundant || it->second.cap >= cap))
    return it->second;
  Domain d;
  d.cap = rounded;
  enumerate(rounded, d);
  if (d.abundant) d.values.clear();
  sort_unique(d.values);
  held_ += bytes_of(d.values);
  return index[key] = std::move(d);
}

const Domain& Domains::of(ValueId value, uint32_t cap) {
  static const Domain endless{true, kUnbounded, {}};
  if (value == FormulaSpace::yes()) return endless;
  // The values contain values of the same formula (as a tree contains trees), so there are infinitely many.
  if (open_.find(value.v)) return endless;
  return listed(domains_, value, cap, [&](uint32_t most, Domain& d) {
    open_.emplace(value.v, true);
    const Undo close([&] { open_.erase(value.v); });
    enumerate(value, most, d);
  });
}

const Domain& Domains::left(ObjectId state, uint32_t cap) {
  return listed(left_, state, cap, [&](uint32_t most, Domain& d) {
    enumerate_object(state, most, d);
    if (d.values.size() >= most) d.abundant = true;
  });
}

ValueId Domains::only(Kind kind, TypedId p) {
  return solver_.formulas().both(solver_.formulas().types(kind_bit(kind)),
                                 solver_.formulas().literal(kind, p));
}

bool Domains::few(ValueId value, uint32_t most, std::vector<std::string>& out) {
  try {
    const Domain& all = of(value, most);
    if (all.abundant || all.values.size() >= most) return false;
    out = all.values;
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::kSchemaTooComplex) throw;
    return false;
  }
  return true;
}

// Appends all values of a formula, kind by kind, but not more than `cap`.
void Domains::enumerate(ValueId value, uint32_t cap, Domain& out) {
  check_depth();
  constexpr std::pair<Kind, const char*> kWords[] = {
      {Kind::kNull, "null"}, {Kind::kTrue, "true"}, {Kind::kFalse, "false"}};
  for (const auto& [kind, word] : kWords)
    if (solver_.restrict(value, kind) == FormulaSpace::yes()) out.values.emplace_back(word);
  RegexArena& regexes = solver_.regexes();
  const auto texts = [&](RegexId language, RegexId canonical_texts, const char* prefix) {
    if (language == RegexArena::empty() || out.abundant) return;
    std::vector<std::string> found;
    solver_.spend(cap);
    if (!regexes.enumerate(regexes.both(language, canonical_texts), cap, found)) {
      out.abundant = true;
      return;
    }
    for (const std::string& t : found) {
      out.values.push_back(Captured::canonical(prefix + t));
    }
  };
  std::vector<std::string> constants;
  if (solver_.texts().constants(solver_.restrict(value, Kind::kString), constants)) {
    solver_.spend(static_cast<uint32_t>(constants.size()));
    for (const std::string& t : constants)
      if (valid_utf8(t)) out.values.push_back(Captured::key(t));
  } else {
    texts(solver_.strings(value), solver_.texts().canonical_body(), "\"");
  }
  texts(solver_.numbers(value), plain_numbers(), "");
  if (!out.abundant) enumerate_array(solver_.restrict(value, Kind::kArray), cap, out);
  Objects& objects = solver_.objects();
  if (const TypedId p = solver_.restrict(value, Kind::kObject);
      !out.abundant && p != FormulaSpace::no() && objects.productive(p))
    enumerate_object(objects.start(p), cap, out);
  if (out.values.size() >= cap) out.abundant = true;
}

// Returns the regex of all numbers without an exponent. Each number has one such spelling, except zero, which
// also has the spelling -0; canonical() makes both one text.
RegexId Domains::plain_numbers() {
  if (plain_numbers_ != RegexArena::empty()) return plain_numbers_;
  RegexArena& regexes = solver_.regexes();
  const RegexId digit = regexes.range('0', '9'), first = regexes.range('1', '9');
  const RegexId whole = regexes.alt(regexes.byte('0'), regexes.cat(first, regexes.star(digit)));
  const RegexId fraction = regexes.cat(regexes.byte('.'), regexes.cat(regexes.star(digit), first));
  return plain_numbers_ =
             regexes.cat(regexes.optional(regexes.byte('-')), regexes.cat(whole, regexes.optional(fraction)));
}

// Appends all arrays by the number of their items. Every list of items that is tried can be completed, so
// `cap` different lists of one length prove that there are at least `cap` arrays.
void Domains::enumerate_array(TypedId p, uint32_t cap, Domain& out) {
  if (p == FormulaSpace::no() || !solver_.array_productive(p)) return;
  std::set<std::pair<std::string, TypedId>> level{{"", p}};
  while (!level.empty()) {
    std::set<std::pair<std::string, TypedId>> next;
    std::set<std::string> prefixes, done;
    for (const auto& [prefix, f] : level) {
      if (solver_.closes(f)) done.insert("[" + prefix + "]");
      for (const ItemCell& c : solver_.item_cells(f)) {
        const Domain& d = of(c.value, cap);
        solver_.spend(static_cast<uint32_t>(d.values.size()) + 10);
        if (d.abundant) {
          out.abundant = true;
          return;
        }
        const std::vector<std::string> values = d.values;
        for (const std::string& v : values) {
          const std::string longer = prefix.empty() ? v : prefix + "," + v;
          next.emplace(longer, solver_.extend(c, v));
          prefixes.insert(longer);
          if (prefixes.size() >= cap) {
            out.abundant = true;
            return;
          }
        }
      }
    }
    out.values.insert(out.values.end(), done.begin(), done.end());
    if (out.values.size() >= cap) {
      out.abundant = true;
      return;
    }
    level = std::move(next);
  }
}

// Appends all objects, by a depth-first search through the object states. If `cap` free keys of a class are
// left, there are at least `cap` objects.
void Domains::enumerate_object(ObjectId start, uint32_t cap, Domain& out) {
  Objects& objects = solver_.objects();
  using Members = std::map<std::string, std::string>;
  std::set<std::pair<ObjectId, Members>> seen;
  std::vector<std::pair<ObjectId, Members>> todo{{start, {}}};
  seen.insert(todo.back());
  std::set<std::string> done;
  while (!todo.empty()) {
    const auto [state, members] = todo.back();
    todo.pop_back();
    solver_.spend(20);
    const Offers offers = objects.offers(state);
    if (offers.close) done.insert(Captured::object(members));
    bool many = out.values.size() + done.size() >= cap;
    for (KeyClassId c : offers.classes) many = many || objects.free_keys(state, c) >= cap;
    if (many) {
      out.abundant = true;
      return;
    }
    std::vector<std::pair<std::string, Objects::Step>> steps;
    const std::vector<std::string> names = objects.plan(objects.state(state).plan).texts;
    for (PlanNameId i : names_in(offers.names))
      for (const Objects::Step& step : objects.take_name(state, i)) steps.emplace_back(names[i.v], step);
    for (KeyClassId c : offers.classes) {
      std::vector<std::string> keys;
      RegexArena& regexes = solver_.regexes();
      const RegexId free = regexes.both(objects.free_language(state, c), solver_.texts().canonical_body());
      if (!regexes.enumerate(free, cap, keys))
        throw Error(ErrorKind::kSchemaTooComplex, "too many keys to tell items apart");
      for (const std::string& k : keys) {
        const std::string key = from_json_body(k);
        for (const Objects::Step& step : objects.take_free(state, c, &key)) steps.emplace_back(key, step);
      }
    }
    for (const auto& [name, step] : steps) {
      const Domain& d = of(step.value, cap);
      solver_.spend(static_cast<uint32_t>(d.values.size()) * 10);
      if (d.abundant) {
        out.abundant = true;
        return;
      }
      const std::vector<std::string> values = d.values;
      for (const std::string& v : values) {
        Members more = members;
        more[Captured::key(name)] = v;
        const ObjectId next = step.capture ? objects.read(step.next, name, v) : step.next;
        std::pair<ObjectId, Members> entry{next, std::move(more)};
        if (seen.insert(entry).second) todo.push_back(std::move(entry));
      }
    }
  }
  out.values.insert(out.values.end(), done.begin(), done.end());
}

bool Domains::some_outside(ValueId value, CapturedId set) {
  const Domain& d = of(value, captured_.size(set) + 1);
  return d.abundant ||
         !std::ranges::all_of(d.values, [&](const std::string& v) { return captured_.contains(set, v); });
}

bool Domains::some_outside(Kind kind, TypedId p, CapturedId set) {
  if (!(kind == Kind::kArray ? solver_.array_productive(p) : solver_.objects().productive(p))) return false;
  return set.v == 0 || some_outside(only(kind, p), set);
}

// If the member "a" may be followed by {"b": 1} or {"b": 2}, a value v of "a" is refused if both {"a": v,
// "b": 1} and {"a": v, "b": 2} are in the set. `next` is the state behind the member; this state must exclude
// no values of its own.
ValueId Domains::apart(CapturedId set, std::string_view key, ObjectId next) {
  const Domain& rests = left(next, captured_.size(set) + 1);
  if (rests.abundant) return FormulaSpace::yes();
  return captured_.outside(captured_.covered(set, key, rests.values));
}

}  // namespace structgen
