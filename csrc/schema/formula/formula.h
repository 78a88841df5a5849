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

namespace structgen {

enum class Kind : uint8_t { kNull, kFalse, kTrue, kNumber, kString, kArray, kObject };
constexpr int kKinds = 7;
constexpr uint32_t kAllKinds = (1u << kKinds) - 1;
constexpr uint32_t kind_bit(Kind k) { return 1u << static_cast<uint32_t>(k); }

enum class Op : uint8_t {
  kTrue,
  kFalse,
  kAnd,
  kOr,
  kOne,     // exactly one kid holds
  kNot,     // of kSchema, kOne, kVal, a scalar atom or an Or of many numbers (is_number_set)
  kSchema,  // a = location, resolved lazily
  kTypes,   // a = mask of kinds
  kVal,     // inside a derivative: "the member's value satisfies formula a"
  // strings
  kPattern,   // a = text index
  kFormat,    // a = text index (name)
  kLength,    // a = min, b = max code points
  kStrings,   // a = index of a sorted set of texts
  kLanguage,  // a = RegexId: body and closing quote
  // numbers
  kInteger,  // a whole number; b = 1: written without fraction and exponent
  kAtLeast,  // a = text index, b = exclusive
  kAtMost,
  kMultiple,  // a = text index
  kEqual,     // a = text index
  // objects: a = region, b = value formula, c = n
  kAll,
  kSome,
  kMost,
  kOrder,  // a = properties map; always true, says which map orders the keys
  // arrays: a = first index, d = end index, b = value formula, c = n
  kItemAll,
  kItemSome,
  kItemMost,
  kUnique,  // items differ from each other and from captured list a; one such atom an array
            // (schema/decide/unique.h)
};

struct Formula {
  Op op = Op::kTrue;
  uint32_t a = 0, b = 0, c = 0, d = 0;
  const FormulaId* kids = nullptr;
  uint32_t n = 0;
  uint32_t has = 0;  // union over the subtree of flags below
};
constexpr uint32_t kHasVal = 1;       // contains kVal
constexpr uint32_t kHasOrder = 2;     // contains kOrder
constexpr uint32_t kHasUnique = 4;    // contains kUnique
constexpr uint32_t kHasMultiple = 8;  // contains kMultiple

using RegionId = Id<struct RegionTag>;
using NameId = uint32_t;

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

  const Formula& operator[](FormulaId f) const { return nodes_[f.v]; }
  std::span<const FormulaId> kids(FormulaId f) const { return {nodes_[f.v].kids, nodes_[f.v].n}; }

  // ---- texts and names ----
  uint32_t intern_text(std::string_view text);
  std::string_view text(uint32_t id) const { return texts_[id]; }
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
