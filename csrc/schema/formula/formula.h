// Boolean formulas over the atoms of schemas, hash-consed.
//
// In: calls of constructors, from lowering (schema/lower) and from derivatives (schema/decide). Out: ids of
// formulas. An atom is the condition of one keyword; `both` and `either` combine formulas. And and Or are
// flat, sorted and simplified; negation is pushed down to the atoms. Cost: one look-up a node.
//
// There are two types of id. A ValueId is a formula of any JSON value. A TypedId is a formula of values of
// one kind, which the context knows. Both are nodes of one space, and one node means different things as the
// two types. As a ValueId `minimum: 3` also holds for "x", and its negation holds for numbers alone. As a
// TypedId of numbers its negation is simply "below 3". The ways between the two types:
//
//   restrict (Solver)   a ValueId and a kind to the TypedId of that kind
//   literal             a TypedId of kind k to a ValueId that holds for every other kind
//   of_its_kind         back from such a literal
//   val                 a ValueId of a member's value to a TypedId of objects that have the member
//   deny, negate        the negation of a ValueId, of a TypedId
//
// Keywords of objects and arrays are counts over a set of keys (a region) or a range of indices L:
//
//   all(L, V): every member in L satisfies V     some(L, V, n): at least n do     most(L, V, n): at most n do
//   not all(L,V) = some(L, not V, 1)   not some(L,V,n) = most(L,V,n-1)   not most(L,V,n) = some(L,V,n+1)
//
// So the negation of each keyword is a keyword again: `not {"required": ["a"]}` is "at most 0 members `a`".
// Source of the negation: Attouche et al., PVLDB 2022. The form as counts is this project's.
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

// A formula of one of the two types, ValueId or TypedId, for code that treats both alike.
template <class F>
concept FormulaType = std::same_as<F, ValueId> || std::same_as<F, TypedId>;

// True or false. It means the same for every kind of value, so it becomes a formula of either type.
struct Truth {
  uint32_t node;
  constexpr operator ValueId() const { return ValueId{node}; }
  constexpr operator TypedId() const { return TypedId{node}; }
};

using TextId = Id<struct TextTag>;
// The number of a sorted set of texts in a FormulaSpace.
using StringSetId = Id<struct StringSetTag>;
using RegionId = Id<struct RegionTag>;
// The number of a key of objects; it is the number of the key's text.
using NameId = Id<struct NameTag>;

// A node. The comments of Op (ops.h) say which of `a` to `d` an operator uses, and what they mean. A node
// never changes.
struct Formula {
  Op op = Op::kTrue;
  uint32_t a = 0, b = 0, c = 0, d = 0;
  // The operands, of the formula's own type; FormulaSpace::kids reads them.
  const uint32_t* kids = nullptr;
  uint32_t n = 0;
  // The bits kHasVal, kHasOrder and so on: which operators occur in the formula or in its operands.
  uint32_t has = 0;
  LocationId location() const { return LocationId{a}; }  // of kSchema
  TextId text() const { return TextId{a}; }              // of kPattern, kFormat and the numbers but kInteger
  StringSetId string_set() const { return StringSetId{a}; }          // of kStrings
  ValueId value() const { return ValueId{op == Op::kVal ? a : b}; }  // of kVal, kContent and the counts
};

// A set of keys of objects: the names of `properties`, the language of a `patternProperties` or
// `propertyNames`, or a combination of regions. `additionalProperties` is about And(Not names, Not pattern).
struct Region {
  enum RegionKind : uint8_t { kNames, kLanguage, kAny, kNot, kAnd, kOr } kind = kAny;
  // For kLanguage: the strings that satisfy this formula are the keys.
  ValueId language;
  std::span<const NameId> names;   // kNames: sorted
  std::span<const RegionId> kids;  // kNot, kAnd, kOr
};

class FormulaSpace {
 public:
  FormulaSpace();

  static constexpr Truth yes() { return {0}; }
  static constexpr Truth no() { return {1}; }

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
  // conjuncts() returns the kids of an And, disjuncts() those of an Or; of another formula both return `f`
  // alone. The result points to `f`, so the deleted overloads refuse a temporary.
  template <FormulaType F>
  auto conjuncts(const F& f) const {
    return operands(Op::kAnd, f);
  }
  template <FormulaType F>
  auto disjuncts(const F& f) const {
    return operands(Op::kOr, f);
  }
  void conjuncts(FormulaType auto&&) const = delete;
  void disjuncts(FormulaType auto&&) const = delete;
  const OpRow& row(FormulaType auto f) const { return structgen::row(nodes_[f.v].op); }
  // Returns true for an Or of many numeric constants (`"enum": [1, 2, ..., 100]`). With `uniqueItems`,
  // captured items make such Ors, which every later item denies. So its negation stays one Not over the Or.
  // If each constant were negated, an item would cost as much as all items before it.
  bool is_number_set(FormulaType auto x) const {
    return nodes_[x.v].op == Op::kOr && nodes_[x.v].b == kNumberSet;
  }

  ValueId schema(LocationId location) { return ValueId{atom_node(Op::kSchema, location.v)}; }
  ValueId types(uint32_t mask) { return ValueId{types_node(mask)}; }
  // Makes a ValueId of a condition on values of kind `k`, which all other kinds satisfy. A condition that is
  // plainly false forbids the kind: `{"minLength": 3, "maxLength": 2}` accepts no string, and it accepts 5.
  ValueId literal(Kind k, TypedId f) { return f == no() ? types(kAllKinds & ~kind_bit(k)) : ValueId{f.v}; }
  // Returns the negation. An atom of strings also holds for every number, so its negation is no atom but a
  // Not over the atom.
  ValueId deny(ValueId x);
  // Undoes literal(): returns the TypedId from which `v` was made. `v` may also be a set of numbers or a
  // constant.
  static TypedId of_its_kind(ValueId v) { return TypedId{v.v}; }

  // ---- of one kind ----
  //
  // Returns the negation, with every Not moved down to the atoms.
  TypedId negate(TypedId x);
  TypedId atom(Op op, uint32_t a = 0, uint32_t b = 0, uint32_t c = 0, uint32_t d = 0) {
    return TypedId{atom_node(op, a, b, c, d)};
  }
  TypedId atom(Op op, TextId text, uint32_t b = 0) { return atom(op, text.v, b); }
  // Returns the question "the member's value satisfies the formula", which occurs in derivatives.
  TypedId val(ValueId value);
  // Returns "the string has `min` to `max` code points"; a `max` of kUnbounded is none.
  TypedId length(uint32_t min, uint32_t max);
  TypedId strings(std::vector<std::string> texts);
  // Returns "the string is the JSON text of a value that satisfies the formula".
  TypedId content(ValueId value) { return value == no() ? no() : atom(Op::kContent, 0, value.v); }
  const std::vector<std::string>& string_set(StringSetId id) const { return string_sets_[id.v]; }
  // Return counts of members whose key is in the region: all() says that all of them have a value that
  // satisfies the formula, some() that at least n have one, most() that at most n have one.
  TypedId all(RegionId region, ValueId value);
  TypedId some(RegionId region, ValueId value, uint32_t n);
  TypedId most(RegionId region, ValueId value, int64_t n);
  // Return counts of items: all items with an index from `first` to end - 1 satisfy the formula, at least n
  // do, or at most n do. `end` = kUnbounded is the end of the array.
  TypedId item_all(uint32_t first, uint32_t end, ValueId value);
  TypedId item_some(uint32_t first, uint32_t end, ValueId value, uint32_t n);
  TypedId item_most(uint32_t first, uint32_t end, ValueId value, int64_t n);
  // Returns the count that `count` names, by one of the functions above. kAll needs no `n`.
  TypedId members(Count count, RegionId region, ValueId value, int64_t n);
  TypedId items(Count count, uint32_t first, uint32_t end, ValueId value, int64_t n);
  // Returns what a count asks once a member (or item) of its region is written, whose value is not known yet.
  // `same` is the count over the members behind it, fewer(n) this count with the number n. "At least 2
  // satisfy V" becomes "this one does, and at least 1 of the others; or this one does not, and at least 2 of
  // the others".
  template <typename F>
  TypedId counted(Count count, ValueId value, TypedId same, F&& fewer, uint32_t n) {
    if (count == Count::kAll) return both(val(value), same);
    const TypedId less = fewer(static_cast<int64_t>(n) - 1);
    if (value == yes()) return less;
    const TypedId hit = val(value);
    return either(both(hit, less), both(negate(hit), same));
  }
  // Applies `f` to each kid of an And, Or, One or Not, and joins the results by the same operator. Callers
  // remember results, because formulas share kids.
  TypedId map_kids(FormulaType auto x, auto&& f) {
    check_depth();
    SmallVector<TypedId, 16> mapped;
    for (auto k : kids(x)) mapped.push_back(f(k));
    return rebuild(nodes_[x.v].op, mapped);
  }
  // The same, with the result for each formula remembered in `memo`.
  template <FormulaType F>
  F map_kids(F x, FlatMap<uint32_t, F>& memo, auto&& f) {
    return memo.remember(x.v, [&] { return map_kids(x, f); });
  }

  TextId intern_text(std::string_view text);
  NameId intern_name(std::string_view name) { return NameId{intern_text(name).v}; }
  std::string_view text(TextId id) const { return texts_[id.v]; }
  std::string_view text(NameId name) const { return texts_[name.v]; }
  // decimal() returns the number that a text spells, which is parsed once. short_decimal() throws
  // kSchemaTooComplex if the number has too many digits for an automaton (Decimal::require_short).
  const Decimal& decimal(TextId id);
  const Decimal& short_decimal(TextId id);

  RegionId names(std::vector<NameId> names);
  RegionId name(NameId n) { return add_region({Region::kNames, {}, {&n, 1}, {}}); }
  RegionId any_key() { return RegionId{0}; }
  RegionId language(ValueId keys);
  // Returns the region of the keys in which the regex matches somewhere.
  RegionId pattern(std::string_view keys) {
    return language(literal(Kind::kString, atom(Op::kPattern, intern_text(keys))));
  }
  RegionId region_not(RegionId r);
  RegionId region_and(std::vector<RegionId> kids);
  RegionId region_or(std::vector<RegionId> kids);
  const Region& region(RegionId r) const { return regions_[r.v]; }

  uint32_t size() const { return nodes_.size(); }
  std::size_t byte_size() const;

 private:
  // The field `b` of an Or for which is_number_set() is true.
  static constexpr uint32_t kNumberSet = 1;
  template <class Kids>
  using List = std::span<const std::ranges::range_value_t<Kids>>;
  template <FormulaType F>
  static auto as(std::span<const uint32_t> nodes) {
    return std::views::transform(nodes, [](uint32_t node) { return F{node}; });
  }
  template <FormulaType F>
  auto operands(Op op, const F& f) const {
    return nodes_[f.v].op == op ? kids(f) : as<F>({&f.v, 1});
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
  RegionId add_region(Region r);

  StableVector<Formula> nodes_;
  InternTable index_;
  BumpPool pool_;
  FlatMap<uint32_t, ValueId> denied_;
  FlatMap<uint32_t, TypedId> negated_;
  std::deque<std::vector<std::string>> string_sets_;
  InternTable string_set_index_;
  std::deque<Region> regions_;
  InternTable region_index_;
  // The texts by number; their bytes lie in the pool.
  std::vector<std::string_view> texts_;
  InternTable text_index_;
  std::unordered_map<TextId, Decimal> decimals_;
};

}  // namespace structgen
