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
//     match: the second item takes 1, and no other value can stand in for it: 1 is needed (spoilers)
//     so the first cell's value is {1, 2} without {1}, which is 2
//     extend(rest, "2"): unique({2}) and an item of {1}
//     cells: {1} without {2}, which is 1
//
// The sections of this file: normal form (a formula as "unique(C) and Q" or "not unique(C) and Q"), captured
// values, the values of a formula (domain), unique(C), not unique(C), both. Which arrays need no set C is
// decided in lasting.cc.
//
// Invariants.
// - A formula has at most one atom kUnique, because all uniqueItems of one array capture the same items.
// - A formula says "none of the captured values" only as a conjunct of its own (outside_of). In any other
//   place the condition is spelled out, value by value. decide/captured.h says how the condition changes when
//   a part of a value is written.
// - plain_cells() and reachable() may return scratch space if the answer must not be stored. Callers copy the
//   answer.
//
// Costs. Captured values: schema/decide/captured.h. Matching (matching.h) only looks at
// items whose values can be listed; an item with more values than the array can use (`abundant`) always finds
// a value and is left out.
//
// Rejected.
// - One atom for each value read: each new formula had n parts, so n items took n^2 memory.
// - Offering every value outside of C: masks then ran into arrays that could not be completed.
#include "schema/decide/unique.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_set>

#include "base/depth.h"
#include "base/error.h"
#include "base/sorted.h"
#include "base/undo.h"
#include "base/utf8.h"
#include "schema/decide/matching.h"
#include "schema/decide/object.h"
#include "strings/json_spelling.h"

namespace structgen {

namespace {
// The least number of values up to which a domain is enumerated, so that a longer array seldom needs a new
// enumeration.
constexpr uint32_t kMinCap = 64;
// The most states of an array, and the most values of a domain. Beyond them a question is too complex.
constexpr std::size_t kMaxReachable = 5'000;
constexpr uint32_t kMaxValues = 1u << 20;
}  // namespace

Unique::Unique(Solver& solver)
    : solver_(solver), formulas_(solver.formulas()), captured_(formulas_, solver.lowering()) {}

// ---- normal form ----

// The atom kUnique of a formula that has one.
TypedId Unique::find_atom(TypedId f) const {
  while (formulas_[f].op != Op::kUnique)
    for (TypedId k : formulas_.kids(f))
      if (formulas_[k].has & kHasUnique) {
        f = k;
        break;
      }
  return f;
}

// The formula with the atom replaced by true or false.
TypedId Unique::assume(TypedId x, bool truth, FlatMap<uint32_t, TypedId>& memo) {
  const Formula f = formulas_[x];
  if (!(f.has & kHasUnique)) return x;
  if (f.op == Op::kUnique) return truth ? FormulaSpace::yes() : FormulaSpace::no();
  if (const auto* known = memo.find(x.v)) return *known;
  const TypedId out = formulas_.map_kids(x, [&](TypedId k) { return assume(k, truth, memo); });
  memo.emplace(x.v, out);
  return out;
}

// Finds out whether the atom kUnique occurs positively and whether it occurs negatively; `sign` is the sign
// of x. Under an exactly-one the atom occurs in both ways.
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

// The formula as a union of "unique(C) and Q" and "not unique(C) and Q", with Q free of the atom.
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
  // If the atom occurs only positively, `without` implies `with`, so `without` needs no condition on the
  // atom; if it occurs only negatively, `with` needs none. A state without the condition does not have to
  // capture anything.
  add(negative && !positive ? FormulaSpace::yes() : atom, with);
  add(positive && !negative ? FormulaSpace::yes() : formulas_.negate(atom), without);
  return out;
}

// Reads a branch: its mode, its list, and the rest Q.
Unique::Parts Unique::parts(TypedId p) const {
  Parts out;
  out.rest = p;
  const auto kids = formulas_.conjuncts(p);
  std::vector<TypedId> others;
  for (TypedId k : kids) {
    const Formula& f = formulas_[k];
    if (f.op == Op::kUnique) {
      out.mode = kUnique;
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

// The inverse of parts().
TypedId Unique::join(Mode mode, CapturedId list, TypedId rest) {
  if (mode == kPlain) return rest;
  const TypedId atom = formulas_.atom(Op::kUnique, list.v);
  return formulas_.both(mode == kUnique ? atom : formulas_.negate(atom), rest);
}

// ---- captured values ----

// Replaces every atom "outside of the captured values" by the negation of these values as constants.
TypedId Unique::spell_out(TypedId p, FlatMap<uint32_t, TypedId>& memo) {
  check_depth();
  const Formula f = formulas_[p];
  if (!(f.has & kHasOutside)) return p;
  if (const OpRow& row = structgen::row(f.op); row.family == Family::kOutside)
    return formulas_.negate(solver_.restrict(captured_.member(CapturedId{f.a}), *row.about));
  if (const auto* known = memo.find(p.v)) return *known;
  const TypedId out = formulas_.map_kids(p, [&](TypedId k) { return spell_out(k, memo); });
  memo.emplace(p.v, out);
  return out;
}

Outside Unique::outside_of(TypedId p) {
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

namespace {
std::size_t bytes_of(const std::vector<std::string>& texts) {
  std::size_t out = 64;
  for (const std::string& t : texts) out += sizeof t + (t.capacity() > 15 ? t.capacity() : 0);
  return out;
}
}  // namespace

TypedId Unique::extend(TypedId rest, std::string_view text) {
  const Outside o = outside_of(rest);
  const Parts p = parts(o.rest);
  const std::string value = Captured::canonical(text);
  const TypedId out = p.mode == kPlain ? p.rest : join(p.mode, captured_.add(p.list, value), p.rest);
  const CapturedId left = captured_.behind(o.set, Captured::kFirstItem, value);
  return left.v == 0 ? out : formulas_.both(out, formulas_.atom(Op::kArrayOutside, left.v));
}

// ---- values of a formula ----

// The values that `enumerate` finds, or the fact that there are at least `cap` values; remembered under a
// key. `cap` is rounded up to a power of two, so that the domains of growing arrays are made log n times.
template <class Index, class F>
const Unique::Domain& Unique::listed(Index& index, typename Index::key_type key, uint32_t cap,
                                     F&& enumerate) {
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

// The values of a formula.
const Unique::Domain& Unique::domain(ValueId value, uint32_t cap) {
  static const Domain endless{true, kUnbounded, {}};
  if (value == FormulaSpace::yes()) return endless;
  // The value contains values of its own formula (a tree in a tree), so there is no largest value.
  if (open_domains_.find(value.v)) return endless;
  return listed(domains_, value, cap, [&](uint32_t most, Domain& d) {
    open_domains_.emplace(value.v, true);
    const Undo close([&] { open_domains_.erase(value.v); });
    enumerate(value, most, d);
  });
}

// What may still be written of an object: each possible set of further members, as an object of its own.
const Unique::Domain& Unique::left(ObjectId state, uint32_t cap) {
  return listed(left_, state, cap, [&](uint32_t most, Domain& d) {
    enumerate_object(state, most, d);
    if (d.values.size() >= most) d.abundant = true;
  });
}

ValueId Unique::only(Kind kind, TypedId p) {
  return formulas_.both(formulas_.types(kind_bit(kind)), formulas_.literal(kind, p));
}

bool Unique::few(ValueId value, uint32_t most, std::vector<std::string>& out) {
  try {
    const Domain& all = domain(value, most);
    if (all.abundant || all.values.size() >= most) return false;
    out = all.values;
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::kSchemaTooComplex) throw;
    return false;
  }
  return true;
}

// Appends all values of a formula, kind by kind, until there are `cap` values.
void Unique::enumerate(ValueId value, uint32_t cap, Domain& out) {
  check_depth();
  constexpr std::pair<Kind, const char*> kWords[] = {
      {Kind::kNull, "null"}, {Kind::kTrue, "true"}, {Kind::kFalse, "false"}};
  for (const auto& [kind, word] : kWords)
    if (solver_.restrict(value, kind) == FormulaSpace::yes()) out.values.emplace_back(word);
  RegexArena& regexes = solver_.regexes();
  const auto texts = [&](RegexId language, RegexId canonical_texts, const char* prefix) {
    if (language == RegexArena::empty() || out.abundant) return;
    Values found;
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
  // A number in plain form has one lexeme. Zero has two, of which canonical() makes one.
  if (plain_numbers_ == RegexArena::empty()) {
    const RegexId digit = regexes.range('0', '9'), first = regexes.range('1', '9');
    const RegexId whole = regexes.alt(regexes.byte('0'), regexes.cat(first, regexes.star(digit)));
    const RegexId fraction = regexes.cat(regexes.byte('.'), regexes.cat(regexes.star(digit), first));
    plain_numbers_ =
        regexes.cat(regexes.optional(regexes.byte('-')), regexes.cat(whole, regexes.optional(fraction)));
  }
  texts(solver_.numbers(value), plain_numbers_, "");
  if (!out.abundant) enumerate_array(solver_.restrict(value, Kind::kArray), cap, out);
  Objects& objects = solver_.objects();
  if (const TypedId p = solver_.restrict(value, Kind::kObject);
      !out.abundant && p != FormulaSpace::no() && objects.productive(p))
    enumerate_object(objects.start(p), cap, out);
  if (out.values.size() >= cap) out.abundant = true;
}

// Appends all arrays, level by level: the prefixes with 0, 1, 2 ... items. Every prefix can be
// completed, so `cap` different prefixes of one length are at least `cap` arrays.
void Unique::enumerate_array(TypedId p, uint32_t cap, Domain& out) {
  if (p == FormulaSpace::no() || !solver_.array_productive(p)) return;
  std::set<std::pair<std::string, TypedId>> level{{"", p}};
  while (!level.empty()) {
    std::set<std::pair<std::string, TypedId>> next;
    std::set<std::string> prefixes, done;
    for (const auto& [prefix, f] : level) {
      if (solver_.closes(f)) done.insert("[" + prefix + "]");
      for (const ItemCell& c : solver_.item_cells(f)) {
        const Domain& d = domain(c.value, cap);
        solver_.spend(static_cast<uint32_t>(d.values.size()) + 10);
        if (d.abundant) {
          out.abundant = true;
          return;
        }
        const Values values = d.values;
        for (const std::string& v : values) {
          const std::string longer = prefix.empty() ? v : prefix + "," + v;
          next.emplace(longer, c.capture ? extend(c.rest, v) : c.rest);
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

// Appends all objects, depth-first through the object states. If a class has `cap` free keys, the object is
// abundant at once.
void Unique::enumerate_object(ObjectId start, uint32_t cap, Domain& out) {
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
    if (offers.close) {
      std::string text = "{";
      for (const auto& [key, value] : members) text += (text.size() > 1 ? "," : "") + key + ":" + value;
      done.insert(text + "}");
    }
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
      Values keys;
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
      const Domain& d = domain(step.value, cap);
      solver_.spend(static_cast<uint32_t>(d.values.size()) * 10);
      if (d.abundant) {
        out.abundant = true;
        return;
      }
      const Values values = d.values;
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

bool Unique::some_outside(Kind kind, TypedId p, CapturedId set) {
  if (!(kind == Kind::kArray ? solver_.array_productive(p) : solver_.objects().productive(p))) return false;
  return set.v == 0 || some_outside(only(kind, p), set, {});
}

// `next` is a state without excluded values. If {"b": 1} and {"b": 2} may come behind the member "a", a value
// v of "a" is refused if both {"a": v, "b": 1} and {"a": v, "b": 2} are in the set.
ValueId Unique::apart(CapturedId set, std::string_view key, ObjectId next) {
  const Domain& rests = left(next, captured_.size(set) + 1);
  if (rests.abundant) return FormulaSpace::yes();
  return captured_.outside(captured_.covered(set, key, rests.values));
}

ItemCell Unique::fresh(const ItemCell& cell) {
  const ValueId fresh = formulas_.both(cell.value, captured_.outside(first_items(cell.rest)));
  return {fresh, outside_of(cell.rest).rest, cell.capture};
}

// Appends the cell, restricted to items with which the array can still end outside of the set.
void Unique::add_outside(CapturedId set, ItemCell cell, std::vector<ItemCell>& out) {
  if (!captured_.has(set, Captured::kFirstItem)) return out.push_back(cell);
  const uint32_t cap = captured_.size(set) + 1;
  const auto covered = [&](TypedId rest) {
    const Domain& rests = domain(only(Kind::kArray, rest), cap);
    return rests.abundant ? CapturedId() : captured_.covered(set, Captured::kFirstItem, rests.values);
  };
  CapturedId bad;
  if (cell.capture) {
    // Which items may come behind this item depends on its value.
    for (const std::string& first : captured_.first_items(set))
      if (captured_.contains(covered(extend(cell.rest, first)), first)) bad = captured_.add(bad, first);
  } else {
    bad = covered(cell.rest);
  }
  cell.value = formulas_.both(cell.value, captured_.outside(bad));
  if (!solver_.nonempty(cell.value)) return;
  out.push_back({cell.value, formulas_.both(cell.rest, formulas_.atom(Op::kArrayOutside, set.v)), true});
}

// True if the formula has a value that is neither in the list nor in `more`.
bool Unique::some_outside(ValueId value, CapturedId list, const Values& more) {
  const Domain& d = domain(value, captured_.size(list) + static_cast<uint32_t>(more.size()) + 1);
  if (d.abundant) return true;
  for (const std::string& v : d.values)
    if (!held(list, more, v)) return true;
  return false;
}

bool Unique::held(CapturedId list, const Values& more, const std::string& value) const {
  return captured_.contains(list, value) || std::ranges::find(more, value) != more.end();
}

// ---- unique(C) ----

// The cells of a formula of arrays without the atom kUnique; remembered if the answer is final.
const std::vector<Cell>& Unique::plain_cells(TypedId q) {
  if (const auto it = plain_cells_.find(q); it != plain_cells_.end()) return it->second;
  const Omissions omissions(solver_.omitted());
  std::vector<Cell> cells = solver_.array_cells(q);
  refuse_starved(cells.empty(), omissions);
  static thread_local std::vector<Cell> scratch;
  if (solver_.tainted()) return scratch = std::move(cells);  // callers copy
  held_ += 64 + sizeof(Cell) * cells.size();
  return plain_cells_.emplace(q, std::move(cells)).first->second;
}

// Matches the items that must exist with different values, outside of the list and of `more`. False if there
// is no matching. `used` gets the scarce values that the matching takes; `needed` gets the values that every
// matching takes.
bool Unique::match(CapturedId list, const std::vector<ItemRange>& ranges, const Values& more, Values& used,
                   Values* needed) {
  check_depth();
  uint32_t need = 0;
  std::map<ValueId, uint32_t> items;
  for (const auto& [f, count] : ranges) {
    items[f] += count;
    need += count;
  }
  Matching matching(solver_);
  for (const auto& [f, count] : items) {
    const Domain& d = domain(f, need + captured_.size(list) + static_cast<uint32_t>(more.size()) + 1);
    if (d.abundant) continue;
    Values free;
    for (const std::string& v : d.values)
      if (!held(list, more, v)) free.push_back(v);
    if (!matching.add(count, free)) return false;
  }
  if (!matching.complete()) return false;
  matching.used(used);
  if (needed) matching.needed(*needed);
  return true;
}

// All rests that an array can have after any number of items.
const std::vector<TypedId>& Unique::reachable(TypedId q) {
  check_depth();
  if (const auto it = reachable_.find(q); it != reachable_.end()) return it->second;
  std::vector<TypedId> queue{q};
  std::unordered_set<TypedId> seen{q};
  for (std::size_t i = 0; i < queue.size(); ++i) {
    solver_.spend(10);
    const std::vector<Cell> cells = plain_cells(queue[i]);
    for (const Cell& c : cells)
      if (seen.insert(c.rest).second) queue.push_back(c.rest);
    if (queue.size() > kMaxReachable)
      throw Error(ErrorKind::kSchemaTooComplex,
                  "too many states of an array to decide which items may repeat");
  }
  if (solver_.tainted()) {
    static thread_local std::vector<TypedId> scratch;
    return scratch = std::move(queue);
  }
  held_ += 64 + sizeof(TypedId) * queue.size();
  return reachable_.emplace(q, std::move(queue)).first->second;
}

// True if some array of distinct items satisfies q, and none of its items is in `list` or in `more`.
// `used` gets the scarce values of the array.
bool Unique::distinct(CapturedId list, TypedId q, const Values& more, Values& used) {
  if (solver_.closes(q)) return true;
  if (!solver_.array_productive(q)) return false;
  std::vector<ItemRange> ranges;
  if (solver_.item_ranges(q, ranges)) return match(list, ranges, more, used, nullptr);
  used = more;
  std::vector<TypedId> path;
  const uint32_t bound = static_cast<uint32_t>(reachable(q).size());
  const std::size_t base = used.size();
  if (!search(q, list, bound, used, path)) return false;
  used.erase(used.begin(), used.begin() + static_cast<std::ptrdiff_t>(base));
  return true;
}

// Depth-first search for an array of distinct items. An item with more values than the array can use gets no
// value here, because at the end some value is still left for it. A rest that is already on the path would be
// a detour.
bool Unique::search(TypedId q, CapturedId list, uint32_t bound, Values& used, std::vector<TypedId>& path) {
  check_depth();
  if (solver_.closes(q)) return true;
  solver_.spend(20);
  path.push_back(q);
  const std::vector<Cell> cells = plain_cells(q);
  for (const Cell& c : cells) {
    if (std::find(path.begin(), path.end(), c.rest) != path.end()) continue;
    const Domain d = domain(c.value, bound + captured_.size(list) + static_cast<uint32_t>(used.size()) + 2);
    if (d.abundant) {
      if (search(c.rest, list, bound, used, path)) return true;
      continue;
    }
    for (const std::string& v : d.values) {
      solver_.spend(5);
      if (held(list, used, v)) continue;
      used.push_back(v);
      if (search(c.rest, list, bound, used, path)) return true;
      used.pop_back();
    }
  }
  path.pop_back();
  return false;
}

// Finds the values whose capture would leave no way to complete the array. False: the array cannot be
// completed even now. For a formula without item_ranges(), one array of distinct items is found first. Only
// the values in this array can be needed, and each of them is tested by a search for an array without it.
bool Unique::spoilers(CapturedId list, TypedId rest, ValueId value, Values& out) {
  if (solver_.closes(rest)) return true;
  std::vector<ItemRange> ranges;
  Values used;
  if (solver_.item_ranges(rest, ranges)) return match(list, ranges, {}, used, &out);
  if (!distinct(list, rest, {}, used)) return false;
  for (const std::string& v : used) {
    if (!solver_.nonempty(formulas_.both(value, captured_.member(captured_.add({}, v))))) continue;
    Values others;
    if (!distinct(list, rest, {v}, others)) out.push_back(v);
  }
  return true;
}

// ---- not unique(C) ----

// The formula of the values of all items that can still come. A captured value that satisfies it may be
// repeated.
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

// True if two equal items are still possible: a later item equals a captured one, or two later items
// are equal.
bool Unique::repeat_productive(CapturedId list, TypedId q) {
  if (!solver_.array_productive(q)) return false;
  const ValueId captured = captured_.member(list);
  return !all_cells(q, [&](const Cell& c) {
    return !solver_.nonempty(formulas_.both(c.value, captured)) &&
           !solver_.nonempty(formulas_.both(c.value, repeats(c.rest)));
  });
}

// ---- both ----

bool Unique::productive(TypedId p) {
  check_depth();
  if (const Outside o = outside_of(p); o.set.v != 0 || o.rest != p)
    return some_outside(Kind::kArray, o.rest, o.set);
  for (TypedId b : branches(p)) {
    const Parts s = parts(b);
    Values used;
    if (s.mode == kPlain    ? solver_.array_productive(s.rest)
        : s.mode == kUnique ? distinct(s.list, s.rest, {}, used)
                            : repeat_productive(s.list, s.rest))
      return true;
  }
  return false;
}

// The cells of the next item. For unique(C): any value of the cell that is outside of C and no spoiler
// (spoilers()). For not unique(C): a value in C settles the condition; any other value is captured, if it can
// be repeated later.
std::vector<ItemCell> Unique::cells(TypedId p) {
  check_depth();
  if (const Outside o = outside_of(p); o.set.v != 0 || o.rest != p) {
    // The formula may also ask for two equal items. Then a reader (parse/productions.h) would get the text of
    // an item for either of two conditions and could not tell which, so the captured values are spelled out.
    for (TypedId b : branches(o.rest))
      if (parts(b).mode == kRepeat) {
        FlatMap<uint32_t, TypedId> memo;
        return solver_.item_cells(spell_out(p, memo));
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
    const std::vector<Cell> cells = plain_cells(s.rest);
    const ValueId captured = s.mode == kRepeat ? captured_.member(s.list) : FormulaSpace::no();
    for (const Cell& c : cells) {
      if (s.mode == kPlain) {
        add(c.value, c.rest, false);
        continue;
      }
      const ValueId fresh = formulas_.both(c.value, formulas_.deny(captured));
      for (TypedId rest : formulas_.disjuncts(c.rest)) {
        if (!solver_.array_productive(rest)) continue;
        if (s.mode == kUnique) {
          Values bad;
          if (!spoilers(s.list, rest, c.value, bad) || !some_outside(c.value, s.list, bad)) continue;
          // Where no further item can follow, the text need not be captured.
          CapturedId refused = s.list;
          for (const std::string& v : bad) refused = captured_.add(refused, v);
          const ValueId value = formulas_.both(c.value, captured_.outside(refused));
          const bool more = !plain_cells(rest).empty();
          add(value, more ? join(kUnique, s.list, rest) : rest, more);
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

// True if the array may close behind some cell whose item has more values than the captured values could
// exclude.
bool Unique::surely_more(TypedId rest) {
  if (formulas_[rest].has & kHasOutside) return false;
  const Parts s = parts(rest);
  if (s.mode == kRepeat) return true;
  const std::vector<Cell> cells = plain_cells(s.rest);
  for (const Cell& c : cells)
    if (solver_.closes(c.rest) && domain(c.value, captured_.size(s.list) + 2).abundant) return true;
  return false;
}

}  // namespace structgen
