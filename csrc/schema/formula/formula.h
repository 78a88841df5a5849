// Boolean formulas over schema atoms, hash-consed.
//
// In: constructor calls from lowering and derivation. Out: FormulaIds; And/Or are flat, sorted and
// simplified, negation is pushed to the atoms (a value formula negates only unresolved schemas, exact-one
// nodes and scalar atoms). Cost: one look-up a node.
// A value formula V speaks of any JSON value; a typed formula P is V restricted to one kind.
// Object and array keywords are counting literals over a region of keys or an index range:
//   all(L, V): every member in L satisfies V     some(L, V, n): at least n do     most(L, V, n): at most n do
//   not all(L,V) = some(L, not V, 1)   not some(L,V,n) = most(L,V,n-1)   not most(L,V,n) = some(L,V,n+1)
// Sources: Attouche et al., PVLDB 2022 (negation); the counting form is this project's.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
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

struct Formula {
  Op op = Op::kTrue;
  uint32_t a = 0, b = 0, c = 0, d = 0;
  const FormulaId* kids = nullptr;
  uint32_t n = 0;
  uint32_t has = 0;                                      // kHasVal and the like, of the whole subtree
  LocationId location() const { return LocationId{a}; }  // of kSchema
};
using RegionId = Id<struct RegionTag>;
using NameId = Id<struct NameTag>;  // a key of objects; its number is that of its text

// A set of object keys.
struct Region {
  enum Kind : uint8_t { kNames, kLanguage, kAny, kNot, kAnd, kOr } kind = kAny;
  uint32_t language = 0;           // kLanguage: a typed string formula
  std::span<const NameId> names;   // kNames: sorted
  std::span<const RegionId> kids;  // kNot, kAnd, kOr
};

class FormulaSpace {
 public:
  FormulaSpace();

  static constexpr FormulaId yes() { return FormulaId{0}; }
  static constexpr FormulaId no() { return FormulaId{1}; }
  FormulaId both(FormulaId x, FormulaId y);
  FormulaId all_of(std::span<const FormulaId> kids) { return nary(Op::kAnd, kids); }
  FormulaId either(FormulaId x, FormulaId y);
  FormulaId any_of(std::span<const FormulaId> kids) { return nary(Op::kOr, kids); }
  FormulaId one_of(std::vector<FormulaId> kids, bool typed);
  // A typed And, Or, One or Not with other kids.
  FormulaId rebuild(Op op, std::span<const FormulaId> kids);
  // The same with `f` applied to each kid; the caller remembers.
  template <typename F>
  FormulaId map_kids(FormulaId x, F&& f) {
    check_depth();
    const Formula n = nodes_[x.v];
    SmallVector<FormulaId, 16> kids;
    for (uint32_t i = 0; i < n.n; ++i) kids.push_back(f(n.kids[i]));
    return rebuild(n.op, kids);
  }
  FormulaId negate(FormulaId x);  // of a typed formula: pushed to the atoms
  FormulaId deny(
      FormulaId x);  // of a value formula: an atom also holds for the other kinds, so it is wrapped
  FormulaId atom(Op op, uint32_t a = 0, uint32_t b = 0, uint32_t c = 0, uint32_t d = 0);
  FormulaId types(uint32_t mask);
  FormulaId val(FormulaId value);
  FormulaId length(uint32_t min, uint32_t max);
  FormulaId strings(std::vector<std::string> texts);
  const std::vector<std::string>& string_set(uint32_t id) const { return string_sets_[id]; }
  FormulaId all(RegionId region, FormulaId value);
  FormulaId some(RegionId region, FormulaId value, uint32_t n);
  FormulaId most(RegionId region, FormulaId value, int64_t n);  // n < 0 is false
  FormulaId item_all(uint32_t first, uint32_t end, FormulaId value);
  FormulaId item_some(uint32_t first, uint32_t end, FormulaId value, uint32_t n);
  FormulaId item_most(uint32_t first, uint32_t end, FormulaId value, int64_t n);
  // One of the six above, by its count; `n` of kAll is not looked at.
  FormulaId members(Count count, RegionId region, FormulaId value, int64_t n);
  FormulaId items(Count count, uint32_t first, uint32_t end, FormulaId value, int64_t n);
  // What a count asks once one more member or item was written. `same`: the count over those that are left;
  // `fewer(n)`: the same with another number.
  template <typename F>
  FormulaId counted(Count count, FormulaId value, FormulaId same, F&& fewer, uint32_t n) {
    if (count == Count::kAll) return both(val(value), same);
    const FormulaId less = fewer(static_cast<int64_t>(n) - 1);
    if (value == yes()) return less;
    const FormulaId hit = val(value);
    return either(both(hit, less), both(negate(hit), same));
  }

  const Formula& operator[](FormulaId f) const { return nodes_[f.v]; }
  std::span<const FormulaId> kids(FormulaId f) const { return {nodes_[f.v].kids, nodes_[f.v].n}; }
  // The kids of a conjunction, or f itself, which has to stay where it is.
  std::span<const FormulaId> conjuncts(const FormulaId& f) const {
    return nodes_[f.v].op == Op::kAnd ? kids(f) : std::span<const FormulaId>(&f, 1);
  }
  std::span<const FormulaId> conjuncts(FormulaId&&) const = delete;
  const OpRow& row(FormulaId f) const { return structgen::row(nodes_[f.v].op); }

  // ---- texts and names ----
  uint32_t intern_text(std::string_view text);
  NameId intern_name(std::string_view name) { return NameId{intern_text(name)}; }
  std::string_view text(uint32_t id) const { return texts_[id]; }
  std::string_view text(NameId name) const { return texts_[name.v]; }
  // The number that a text is, read once; `short_decimal` throws as Decimal::parse does.
  const Decimal& decimal(uint32_t text_id);
  const Decimal& short_decimal(uint32_t text_id);

  // ---- regions ----
  RegionId names(std::vector<NameId> names);
  RegionId name(NameId n) { return add_region({Region::kNames, 0, {&n, 1}, {}}); }
  RegionId any_key() { return RegionId{0}; }
  RegionId language(FormulaId strings);
  RegionId region_not(RegionId r);
  RegionId region_and(std::vector<RegionId> kids);
  RegionId region_or(std::vector<RegionId> kids);
  const Region& region(RegionId r) const { return regions_[r.v]; }
  bool is_name(RegionId r, NameId n) const {
    const Region& x = regions_[r.v];
    return x.kind == Region::kNames && x.names.size() == 1 && x.names[0] == n;
  }

  // Many constants: an Or that stays one node where it is denied. (Under uniqueItems it is a chunk of the
  // items so far, which every further item denies: flattened, an item would cost as much as all before it.)
  bool is_number_set(FormulaId x) const { return nodes_[x.v].op == Op::kOr && nodes_[x.v].b == kNumberSet; }

  uint32_t size() const { return nodes_.size(); }
  std::size_t byte_size() const;

 private:
  static constexpr uint32_t kNumberSet = 1;  // `b` of such an Or
  FormulaId add(Formula f, std::span<const FormulaId> kids);
  FormulaId nary(Op op, std::span<const FormulaId> kids);
  RegionId add_region(Region r);  // whose lists are copied where it is new

  StableVector<Formula> nodes_;
  InternTable index_;
  BumpPool pool_;
  FormulaId negate_new(FormulaId x, bool typed);
  FlatMap<uint32_t, uint32_t> negations_[2];  // [typed]
  std::deque<std::vector<std::string>> string_sets_;
  InternTable string_set_index_;
  std::deque<Region> regions_;
  InternTable region_index_;
  std::vector<std::string_view> texts_;  // in the pool
  InternTable text_index_;
  std::unordered_map<uint32_t, Decimal> decimals_;  // by text
};

}  // namespace structgen
