// Boolean formulas over schema atoms, hash-consed.
//
// In: constructor calls from lowering and derivation. Out: ValueIds and TypedIds; And/Or are flat, sorted and
// simplified, negation is pushed to the atoms (a value formula negates only unresolved schemas, exact-one
// nodes and atoms). Cost: one look-up a node.
// A value formula V (ValueId) speaks of any JSON value; a typed formula P (TypedId) is V restricted to one
// kind. Both are nodes of one space. They are two types because a literal differs in them: as a V,
// `minimum: 3` also holds for what is no number, and its negation holds for numbers alone.
//   restrict: V to P (Solver)   literal: P to V   of_its_kind: literal V to P   deny: V to V   negate: P to P
//   val: V of a member to P of what has the member
// Object and array keywords are counting literals over a region of keys or an index range:
//   all(L, V): every member in L satisfies V     some(L, V, n): at least n do     most(L, V, n): at most n do
//   not all(L,V) = some(L, not V, 1)   not some(L,V,n) = most(L,V,n-1)   not most(L,V,n) = some(L,V,n+1)
// Sources: Attouche et al., PVLDB 2022 (negation); the counting form is this project's.
#pragma once

#include <concepts>
#include <cstdint>
#include <deque>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <vector>

#include "base/arena.h"
#include "base/depth.h"
#include "base/flat_map.h"
#include "base/ids.h"
#include "base/intern.h"
#include "base/small_vector.h"
#include "numbers/decimal.h"
#include "regex/regex.h"
#include "schema/formula/ops.h"

namespace structgen {

// Either of the two: what asks for the structure of a formula alone.
template <class F>
concept FormulaType = std::same_as<F, ValueId> || std::same_as<F, TypedId>;

// True and false, which every kind of value, and hence every formula, has in common.
struct Truth {
  uint32_t node;
  constexpr operator ValueId() const { return ValueId{node}; }
  constexpr operator TypedId() const { return TypedId{node}; }
};

using TextId = Id<struct TextTag>;            // a text: FormulaSpace::text
using StringSetId = Id<struct StringSetTag>;  // a sorted set of texts: FormulaSpace::string_set
using RegionId = Id<struct RegionTag>;
using NameId = Id<struct NameTag>;  // a key of objects; its number is that of its text

struct Formula {
  Op op = Op::kTrue;
  uint32_t a = 0, b = 0, c = 0, d = 0;
  const uint32_t* kids = nullptr;  // nodes, of the formula's own type: FormulaSpace::kids
  uint32_t n = 0;
  uint32_t has = 0;                                      // kHasVal and the like, of the whole subtree
  LocationId location() const { return LocationId{a}; }  // of kSchema
  TextId text() const { return TextId{a}; }              // of kPattern, kFormat and the numbers but kInteger
  StringSetId string_set() const { return StringSetId{a}; }          // of kStrings
  ValueId value() const { return ValueId{op == Op::kVal ? a : b}; }  // of kVal, kContent and the counts
};

// A set of object keys.
struct Region {
  enum Kind : uint8_t { kNames, kLanguage, kAny, kNot, kAnd, kOr } kind = kAny;
  ValueId language;                // kLanguage: the texts that satisfy it
  std::span<const NameId> names;   // kNames: sorted
  std::span<const RegionId> kids;  // kNot, kAnd, kOr
};

class FormulaSpace {
 public:
  FormulaSpace();

  static constexpr Truth yes() { return {0}; }
  static constexpr Truth no() { return {1}; }

  // ---- of either type ----
  auto both(FormulaType auto x, std::type_identity_t<decltype(x)> y) {
    if (x == y || y == yes()) return x;
    if (x == yes()) return y;
    const decltype(x) kids[] = {x, y};
    return all_of(kids);
  }
  auto either(FormulaType auto x, std::type_identity_t<decltype(x)> y) {
    if (x == y || y == no()) return x;
    if (x == no()) return y;
    const decltype(x) kids[] = {x, y};
    return any_of(kids);
  }
  auto all_of(const auto& kids) { return nary(Op::kAnd, List<decltype(kids)>(kids)); }
  auto any_of(const auto& kids) { return nary(Op::kOr, List<decltype(kids)>(kids)); }
  template <FormulaType F>
  F one_of(std::vector<F> kids);
  const Formula& operator[](FormulaType auto f) const { return nodes_[f.v]; }
  auto kids(FormulaType auto f) const { return as<decltype(f)>({nodes_[f.v].kids, nodes_[f.v].n}); }
  // The kids of a conjunction, or f itself, which has to stay where it is.
  template <FormulaType F>
  auto conjuncts(const F& f) const {
    return nodes_[f.v].op == Op::kAnd ? kids(f) : as<F>({&f.v, 1});
  }
  void conjuncts(FormulaType auto&&) const = delete;
  const OpRow& row(FormulaType auto f) const { return structgen::row(nodes_[f.v].op); }
  // Many constants: an Or that stays one node where it is denied. (Under uniqueItems it is a chunk of the
  // items so far, which every further item denies: flattened, an item would cost as much as all before it.)
  bool is_number_set(FormulaType auto x) const {
    return nodes_[x.v].op == Op::kOr && nodes_[x.v].b == kNumberSet;
  }

  // ---- of any value ----
  ValueId schema(LocationId location) { return ValueId{atom_node(Op::kSchema, location.v)}; }
  ValueId types(uint32_t mask) { return ValueId{types_node(mask)}; }
  // A literal about values of kind k, or a union or conjunction of such: it holds for every other kind. One
  // that came out false forbids its kind, not every value.
  ValueId literal(Kind k, TypedId f) { return f == no() ? types(kAllKinds & ~kind_bit(k)) : ValueId{f.v}; }
  ValueId deny(ValueId x);  // an atom also holds for the other kinds, so it is wrapped
  // What a literal, a set of numbers or a constant says of the values of its own kind.
  static TypedId of_its_kind(ValueId v) { return TypedId{v.v}; }

  // ---- of one kind ----
  TypedId negate(TypedId x);  // pushed to the atoms
  TypedId atom(Op op, uint32_t a = 0, uint32_t b = 0, uint32_t c = 0, uint32_t d = 0) {
    return TypedId{atom_node(op, a, b, c, d)};
  }
  TypedId atom(Op op, TextId text, uint32_t b = 0) { return atom(op, text.v, b); }
  TypedId val(ValueId value);
  TypedId length(uint32_t min, uint32_t max);
  TypedId strings(std::vector<std::string> texts);
  TypedId content(ValueId value) { return value == no() ? no() : atom(Op::kContent, 0, value.v); }
  const std::vector<std::string>& string_set(StringSetId id) const { return string_sets_[id.v]; }
  TypedId all(RegionId region, ValueId value);
  TypedId some(RegionId region, ValueId value, uint32_t n);
  TypedId most(RegionId region, ValueId value, int64_t n);  // n < 0 is false
  TypedId item_all(uint32_t first, uint32_t end, ValueId value);
  TypedId item_some(uint32_t first, uint32_t end, ValueId value, uint32_t n);
  TypedId item_most(uint32_t first, uint32_t end, ValueId value, int64_t n);
  // One of the six above, by its count; `n` of kAll is not looked at.
  TypedId members(Count count, RegionId region, ValueId value, int64_t n);
  TypedId items(Count count, uint32_t first, uint32_t end, ValueId value, int64_t n);
  // What a count asks once one more member or item was written. `same`: the count over those that are left;
  // `fewer(n)`: the same with another number.
  template <typename F>
  TypedId counted(Count count, ValueId value, TypedId same, F&& fewer, uint32_t n) {
    if (count == Count::kAll) return both(val(value), same);
    const TypedId less = fewer(static_cast<int64_t>(n) - 1);
    if (value == yes()) return less;
    const TypedId hit = val(value);
    return either(both(hit, less), both(negate(hit), same));
  }
  // An And, Or, One or Not with other kids: `f` applied to each kid of x; the caller remembers.
  TypedId map_kids(FormulaType auto x, auto&& f) {
    check_depth();
    SmallVector<TypedId, 16> mapped;
    for (auto k : kids(x)) mapped.push_back(f(k));
    return rebuild(nodes_[x.v].op, mapped);
  }

  // ---- texts and names ----
  TextId intern_text(std::string_view text);
  NameId intern_name(std::string_view name) { return NameId{intern_text(name).v}; }
  std::string_view text(TextId id) const { return texts_[id.v]; }
  std::string_view text(NameId name) const { return texts_[name.v]; }
  // The number that a text is, read once; `short_decimal` throws as Decimal::parse does.
  const Decimal& decimal(TextId id);
  const Decimal& short_decimal(TextId id);

  // ---- regions ----
  RegionId names(std::vector<NameId> names);
  RegionId name(NameId n) { return add_region({Region::kNames, {}, {&n, 1}, {}}); }
  RegionId any_key() { return RegionId{0}; }
  RegionId language(ValueId keys);
  RegionId pattern(std::string_view keys) {  // the texts in which it is found
    return language(literal(Kind::kString, atom(Op::kPattern, intern_text(keys))));
  }
  RegionId region_not(RegionId r);
  RegionId region_and(std::vector<RegionId> kids);
  RegionId region_or(std::vector<RegionId> kids);
  const Region& region(RegionId r) const { return regions_[r.v]; }
  bool is_name(RegionId r, NameId n) const {
    const Region& x = regions_[r.v];
    return x.kind == Region::kNames && x.names.size() == 1 && x.names[0] == n;
  }

  uint32_t size() const { return nodes_.size(); }
  std::size_t byte_size() const;

 private:
  static constexpr uint32_t kNumberSet = 1;  // `b` of such an Or
  template <class Kids>
  using List = std::span<const std::ranges::range_value_t<Kids>>;
  template <FormulaType F>
  static auto as(std::span<const uint32_t> nodes) {
    return std::views::transform(nodes, [](uint32_t node) { return F{node}; });
  }
  uint32_t add(Formula f, std::span<const uint32_t> kids);
  uint32_t atom_node(Op op, uint32_t a, uint32_t b = 0, uint32_t c = 0, uint32_t d = 0);
  uint32_t types_node(uint32_t mask);
  template <FormulaType F>
  F nary(Op op, std::span<const F> kids);
  TypedId rebuild(Op op, std::span<const TypedId> kids);
  ValueId negation(ValueId x) { return deny(x); }
  TypedId negation(TypedId x) { return negate(x); }
  template <FormulaType F>
  F negate_new(F x);
  RegionId add_region(Region r);  // whose lists are copied where it is new

  StableVector<Formula> nodes_;
  InternTable index_;
  BumpPool pool_;
  FlatMap<uint32_t, ValueId> denied_;
  FlatMap<uint32_t, TypedId> negated_;
  std::deque<std::vector<std::string>> string_sets_;
  InternTable string_set_index_;
  std::deque<Region> regions_;
  InternTable region_index_;
  std::vector<std::string_view> texts_;  // in the pool
  InternTable text_index_;
  std::unordered_map<TextId, Decimal> decimals_;
};

}  // namespace structgen
