// Makes hash-consed formulas; see formula.h.
//
// The problem. The solver asks the same questions of thousands of derivatives that are almost equal. If equal
// formulas were different objects, no answer would ever be found again.
//
// The idea. Every constructor brings its node into a normal form and looks it up, so formulas that the
// rules below make equal have one id:
//
//     both(x, both(y, x))            and(x, y): flat, sorted, each kid once
//     both(types(a|b), types(b|c))   types(b): conditions on the kind are one mask
//     both(x, not x)                 no
//     not all(L, V)                  some(L, not V, 1): negation is pushed to the atoms
//     one_of(x, x, y)                not x and y: if x held, two kids would hold
//
// Invariants. A node never changes, so an id may be kept anywhere. `has` is the union over the subtree.
// A Not stands over kSchema, kOne, kVal, kUnique, kArrayOutside, kObjectOutside, an atom of strings or
// numbers, or an Or of many numbers; in a ValueId also over a count; and over nothing else.
//
// Rejected: a disjunctive normal form, whose size is exponential.
#include "schema/formula/formula.h"

#include <algorithm>

#include "base/depth.h"
#include "base/error.h"
#include "base/sorted.h"
#include "base/undo.h"
#include "base/work.h"

namespace structgen {

namespace {
// A Boolean operator has at most this many kids; a larger one throws kSchemaTooComplex.
constexpr uint32_t kMaxKids = 2'000'000;
constexpr uint32_t kEndOfArray = kUnbounded;
}  // namespace

void unknown_operator(Op op) {
  throw Error(ErrorKind::kUnsupportedSchema,
              "no value is written for operator " + std::to_string(static_cast<int>(op)) + " of a formula");
}

void content_too_complex() {
  throw Error(ErrorKind::kSchemaTooComplex,
              "a string that holds the JSON text of a schema meets a condition on the text itself");
}

FormulaSpace::FormulaSpace() {
  nodes_.emplace_back();
  Formula f;
  f.op = Op::kFalse;
  nodes_.emplace_back(f);
  regions_.emplace_back();  // any key
}

std::size_t FormulaSpace::byte_size() const {
  return nodes_.byte_size() + index_.byte_size() + pool_.byte_size() + regions_.size() * 96 +
         texts_.size() * sizeof(std::string_view) + text_index_.byte_size() + denied_.byte_size() +
         negated_.byte_size() + decimals_.size() * (sizeof(Decimal) + 24);
}

// Returns the node equal to `f`, after adding it if there is none. Where the order of `kids` does not matter,
// the caller has sorted them. An Or of eight or more numeric constants is marked as a set of numbers; fewer
// cost less as atoms.
uint32_t FormulaSpace::add(Formula f, std::span<const uint32_t> kids) {
  constexpr std::size_t kMany = 8;
  if (f.op == Op::kOr && kids.size() >= kMany &&
      std::ranges::all_of(kids, [&](uint32_t k) { return nodes_[k].op == Op::kEqual; }))
    f.b = kNumberSet;
  uint64_t h = static_cast<uint64_t>(f.op);
  h = mix(mix(mix(mix(h, f.a), f.b), f.c), f.d);
  for (uint32_t k : kids) h = mix(h, k);
  return index_.find_or_add(
      h,
      [&](uint32_t i) {
        const Formula& o = nodes_[i];
        return o.op == f.op && o.a == f.a && o.b == f.b && o.c == f.c && o.d == f.d && o.n == kids.size() &&
               std::equal(kids.begin(), kids.end(), o.kids);
      },
      [&] {
        f.kids = pool_.copy(kids).data();
        f.n = static_cast<uint32_t>(kids.size());
        for (uint32_t k : kids) f.has |= nodes_[k].has;
        f.has |= structgen::row(f.op).has;
        return nodes_.emplace_back(f);
      });
}

uint32_t FormulaSpace::atom_node(Op op, uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
  Formula f;
  f.op = op;
  f.a = a;
  f.b = b;
  f.c = c;
  f.d = d;
  return add(f, {});
}

// The mask of all kinds becomes true and the mask of no kind false, so that the rules for true and false
// apply.
uint32_t FormulaSpace::types_node(uint32_t mask) {
  if (mask == kAllKinds) return yes().node;
  return mask == 0 ? no().node : atom_node(Op::kTypes, mask);
}

TypedId FormulaSpace::val(ValueId value) {
  if (value == yes()) return yes();
  return value == no() ? no() : atom(Op::kVal, value.v);
}

TypedId FormulaSpace::length(uint32_t min, uint32_t max) {
  if (min > max) return no();
  return min == 0 && max == kUnbounded ? yes() : atom(Op::kLength, min, max);
}

TypedId FormulaSpace::strings(std::vector<std::string> texts) {
  sort_unique(texts);
  if (texts.empty()) return no();
  uint64_t h = texts.size();
  for (const std::string& t : texts) h = hash_bytes(t.data(), t.size(), h);
  return atom(Op::kStrings, string_set_index_.number(h, string_sets_, std::move(texts)));
}

// `"required": []`, `"minItems": 0` and an `additionalProperties` without a key left are always true; two
// names cannot be three members. Such counts become yes() or no(), by whose ids other code recognises them.
TypedId FormulaSpace::all(RegionId region, ValueId value) {
  const Region& r = regions_[region.v];
  if (value == yes() || (r.kind == Region::kNames && r.names.empty())) return yes();
  return atom(Op::kAll, region.v, value.v);
}

TypedId FormulaSpace::some(RegionId region, ValueId value, uint32_t n) {
  const Region& r = regions_[region.v];
  if (n == 0) return yes();
  if (value == no() || (r.kind == Region::kNames && r.names.size() < n)) return no();
  return atom(Op::kSome, region.v, value.v, n);
}

TypedId FormulaSpace::most(RegionId region, ValueId value, int64_t n) {
  if (n < 0) return no();
  const Region& r = regions_[region.v];
  if (value == no() || (r.kind == Region::kNames && static_cast<int64_t>(r.names.size()) <= n)) return yes();
  // "At most 0 satisfy V" means "all satisfy not V". Both have one id.
  if (n == 0) return all(region, deny(value));
  return atom(Op::kMost, region.v, value.v, static_cast<uint32_t>(n));
}

TypedId FormulaSpace::item_all(uint32_t first, uint32_t end, ValueId value) {
  return value == yes() || first >= end ? yes() : atom(Op::kItemAll, first, value.v, 0, end);
}

TypedId FormulaSpace::item_some(uint32_t first, uint32_t end, ValueId value, uint32_t n) {
  if (n == 0) return yes();
  if (value == no() || first >= end || (end != kEndOfArray && end - first < n)) return no();
  return atom(Op::kItemSome, first, value.v, n, end);
}

TypedId FormulaSpace::item_most(uint32_t first, uint32_t end, ValueId value, int64_t n) {
  if (n < 0) return no();
  if (value == no() || first >= end || (end != kEndOfArray && end - first <= n)) return yes();
  if (n == 0) return item_all(first, end, deny(value));
  return atom(Op::kItemMost, first, value.v, static_cast<uint32_t>(n), end);
}

TypedId FormulaSpace::members(Count count, RegionId region, ValueId value, int64_t n) {
  if (count == Count::kAll) return all(region, value);
  return count == Count::kSome ? some(region, value, static_cast<uint32_t>(n)) : most(region, value, n);
}

TypedId FormulaSpace::items(Count count, uint32_t first, uint32_t end, ValueId value, int64_t n) {
  if (count == Count::kAll) return item_all(first, end, value);
  return count == Count::kSome ? item_some(first, end, value, static_cast<uint32_t>(n))
                               : item_most(first, end, value, n);
}

// Returns the And or the Or of the kids. A kid `unit` is dropped, as true is in an And. A kid `zero` decides
// alone, as false does in an And.
template <FormulaType F>
F FormulaSpace::nary(Op op, std::span<const F> kids) {
  const F unit = op == Op::kAnd ? yes() : no();
  const F zero = op == Op::kAnd ? no() : yes();
  charge(1 + static_cast<int64_t>(kids.size() / 2));
  SmallVector<uint32_t, 32> flat;
  uint32_t mask = op == Op::kAnd ? kAllKinds : 0;
  bool has_types = false;
  // All kids that are a mask of kinds become one mask: by `&` in an And, by `|` in an Or.
  const auto take = [&](F k) {
    const Formula& f = nodes_[k.v];
    if (f.op == Op::kTypes) {
      has_types = true;
      mask = op == Op::kAnd ? mask & f.a : mask | f.a;
    } else if (k != unit) {
      flat.push_back(k.v);
    }
  };
  // An And in an And, or an Or in an Or, is replaced by its kids. One level suffices, because these kids were
  // flattened when they were made.
  for (F k : kids) {
    if (k == zero) return zero;
    if (nodes_[k.v].op == op)
      for (F inner : this->kids(k)) take(inner);
    else
      take(k);
  }
  if (has_types) {
    const F t{types_node(mask)};
    if (t == zero) return zero;
    if (t != unit) flat.push_back(t.v);
  }
  std::sort(flat.begin(), flat.end());
  flat.shrink(std::unique(flat.begin(), flat.end()));
  // A kid and its negation: an And of both is false, an Or is true.
  for (uint32_t k : flat)
    if (nodes_[k].op == Op::kNot && std::binary_search(flat.begin(), flat.end(), nodes_[k].kids[0]))
      return zero;
  if (flat.empty()) return unit;
  if (flat.size() == 1) return F{flat[0]};
  if (flat.size() > kMaxKids)
    throw Error(ErrorKind::kSchemaTooComplex, "a Boolean combination has too many parts");
  Formula f;
  f.op = op;
  return F{add(f, flat)};
}

// Returns "exactly one of the kids holds". If one kid is true, all others must be false. If two kids are
// true, the formula is false.
template <FormulaType F>
F FormulaSpace::one_of(std::vector<F> kids) {
  check_depth();
  charge(1 + static_cast<int64_t>(kids.size()));
  std::erase(kids, F(no()));
  const auto certain = std::count(kids.begin(), kids.end(), F(yes()));
  if (certain > 1 || kids.empty()) return no();
  if (certain == 1) {
    std::erase(kids, F(yes()));
    return negation(any_of(kids));
  }
  if (kids.size() == 1) return kids[0];
  std::sort(kids.begin(), kids.end());
  // A kid that occurs twice must be false: if it held, two kids would hold.
  std::vector<F> single, twice;
  for (std::size_t i = 0; i < kids.size();) {
    std::size_t j = i;
    while (j < kids.size() && kids[j] == kids[i]) ++j;
    (j == i + 1 ? single : twice).push_back(kids[i]);
    i = j;
  }
  if (!twice.empty()) {
    const F none = any_of(twice);
    return both(one_of(std::move(single)), negation(none));
  }
  Formula f;
  f.op = Op::kOne;
  SmallVector<uint32_t, 32> nodes;
  for (F k : single) nodes.push_back(k.v);
  return F{add(f, nodes)};
}

TypedId FormulaSpace::rebuild(Op op, std::span<const TypedId> kids) {
  if (op == Op::kAnd) return all_of(kids);
  if (op == Op::kOr) return any_of(kids);
  return op == Op::kOne ? one_of(std::vector<TypedId>(kids.begin(), kids.end())) : negate(kids[0]);
}

TypedId FormulaSpace::negate(TypedId x) {
  return negated_.remember(x.v, [&] { return negate_new(x); });
}

ValueId FormulaSpace::deny(ValueId x) {
  return denied_.remember(x.v, [&] { return negate_new(x); });
}

// Negates a formula of either type; deny() and negate() remember the result. And and Or change places (De
// Morgan). A count becomes the opposite count only in a TypedId, because in a ValueId it also holds for
// values that are no objects.
template <FormulaType F>
F FormulaSpace::negate_new(F x) {
  check_depth();
  const Formula f = nodes_[x.v];
  if (x == yes() || f.op == Op::kOrder) return no();
  if (x == no()) return yes();
  if (f.op == Op::kNot) return F{f.kids[0]};
  if (f.op == Op::kTypes) return F{types_node(kAllKinds & ~f.a)};
  if ((f.op == Op::kAnd || f.op == Op::kOr) && !is_number_set(x)) {
    std::vector<F> negated;
    for (F k : kids(x)) negated.push_back(negation(k));
    return f.op == Op::kAnd ? any_of(negated) : all_of(negated);
  }
  if constexpr (std::same_as<F, TypedId>)
    if (const Count count = row(x).count; count != Count::kNone) {
      // not (all) = at least 1 member does not; not (at least n) = at most n - 1; not (at most n) = at least
      // n + 1.
      const ValueId value = count == Count::kAll ? deny(f.value()) : f.value();
      const int64_t n = count == Count::kAll ? 1 : f.c + (count == Count::kSome ? -1 : int64_t{1});
      const Count other = count == Count::kSome ? Count::kMost : Count::kSome;
      return row(x).family == Family::kMembers ? members(other, RegionId{f.a}, value, n)
                                               : items(other, f.a, f.d, value, n);
    }
  Formula n;
  n.op = Op::kNot;
  return F{add(n, {&x.v, 1})};
}

TextId FormulaSpace::intern_text(std::string_view text) {
  return TextId{text_index_.find_or_add(
      hash_bytes(text.data(), text.size(), 0), [&](uint32_t i) { return texts_[i] == text; },
      [&] {
        const std::span<const char> kept = pool_.copy(std::span<const char>(text));
        texts_.emplace_back(kept.data(), kept.size());
        return static_cast<uint32_t>(texts_.size() - 1);
      })};
}

const Decimal& FormulaSpace::decimal(TextId id) {
  return remember(decimals_, id, [&] { return Decimal::parse_any(texts_[id.v]); });
}

const Decimal& FormulaSpace::short_decimal(TextId id) {
  const Decimal& out = decimal(id);
  out.require_short(texts_[id.v]);
  return out;
}

// Returns the number of a region; equal regions have one. A constant goes into the hash, so that a region and
// a name with the same number differ.
RegionId FormulaSpace::add_region(Region r) {
  uint64_t h = mix(r.kind, r.language.v);
  for (NameId n : r.names) h = mix(h, n.v);
  for (RegionId k : r.kids) h = mix(h, k.v + 0x10000000ull);
  return RegionId{region_index_.find_or_add(
      h,
      [&](uint32_t i) {
        const Region& o = regions_[i];
        return o.kind == r.kind && o.language == r.language && std::ranges::equal(o.names, r.names) &&
               std::ranges::equal(o.kids, r.kids);
      },
      [&] {
        r.names = pool_.copy(r.names);
        r.kids = pool_.copy(r.kids);
        regions_.push_back(r);
        return static_cast<uint32_t>(regions_.size() - 1);
      })};
}

RegionId FormulaSpace::names(std::vector<NameId> names) {
  sort_unique(names);
  return add_region({Region::kNames, {}, names, {}});
}

RegionId FormulaSpace::language(ValueId keys) {
  if (keys == yes()) return any_key();
  if (keys == no()) return names({});
  return add_region({Region::kLanguage, keys, {}, {}});
}

// Returns the complement of a region. The complement of all keys is no key, and that of a complement is the
// region itself.
RegionId FormulaSpace::region_not(RegionId x) {
  const Region& f = regions_[x.v];
  if (f.kind == Region::kAny) return names({});
  if (f.kind == Region::kNames && f.names.empty()) return any_key();
  if (f.kind == Region::kNot) return f.kids[0];
  return add_region({Region::kNot, {}, {}, {&x, 1}});
}

RegionId FormulaSpace::region_and(std::vector<RegionId> kids) {
  sort_unique(kids);
  std::erase(kids, any_key());
  if (kids.empty()) return any_key();
  if (kids.size() == 1) return kids[0];
  return add_region({Region::kAnd, {}, {}, kids});
}

// Returns the union. De Morgan's law makes it of intersections and complements, so that equal regions have
// one form.
RegionId FormulaSpace::region_or(std::vector<RegionId> kids) {
  for (RegionId& k : kids) k = region_not(k);
  return region_not(region_and(std::move(kids)));
}

template ValueId FormulaSpace::nary(Op, std::span<const ValueId>);
template TypedId FormulaSpace::nary(Op, std::span<const TypedId>);
template ValueId FormulaSpace::one_of(std::vector<ValueId>);
template TypedId FormulaSpace::one_of(std::vector<TypedId>);

}  // namespace structgen
