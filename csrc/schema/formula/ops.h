// The operators of formulas, a row each: the kind of value that an operator is about, how it counts, and
// whether an empty object or array satisfies it.
//
// In: an operator. Out: its row. Cost: one read of an array. Code that treats the operators of a family alike
// asks the row. The meaning of an operator stands in one place, where its family is lowered: values/texts.cc
// for strings, values/numbers.cc for numbers, FormulaSpace for the counts of members and items. A new
// operator needs a row here (else the static_assert below fails), and a case where its family is lowered,
// which throws on an operator without a case. A `default:` in each of many switches would let a new operator
// count as true without an error.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace structgen {

// The kinds of JSON values. `true` and `false` are kinds of their own, so `"enum": [true, 1]` needs only a
// mask of kinds for `true`.
enum class Kind : uint8_t { kNull, kFalse, kTrue, kNumber, kString, kArray, kObject };
constexpr int kKinds = 7;
constexpr uint32_t kAllKinds = (1u << kKinds) - 1;
constexpr uint32_t kind_bit(Kind k) { return 1u << static_cast<uint32_t>(k); }

// The operators. What the fields `a` to `d` of a Formula mean depends on its operator.
enum class Op : uint8_t {
  kTrue,
  kFalse,
  kAnd,
  kOr,
  // Exactly one kid holds (`oneOf`).
  kOne,
  // The negation of its kid; formula.cc lists the few operators that the kid may have.
  kNot,
  // A subschema that has not been lowered yet; a = the number of its location.
  kSchema,
  kTypes,  // a = mask of kinds
  // A question in the derivative of an object by a member: "the member's value satisfies formula a".
  kVal,
  // The string contains a match of the regex.
  kPattern,  // a = text index
  kFormat,   // a = text index (name)
  kLength,   // a = min, b = max code points
  // The string is one of a set of texts (`enum`, `const`); a = number of the set.
  kStrings,
  // The string is the JSON text of a value that satisfies formula b (schema/decide/content.cc).
  kContent,
  // The number is whole. b = 1, for draft 4, where 1.0 is no integer: it is written without fraction and
  // exponent.
  kInteger,
  // The number is at least the bound. a = text index of the bound; b = 1: the bound itself is excluded.
  kAtLeast,
  kAtMost,
  kMultiple,  // a = text index
  kEqual,     // a = text index
  // Counts of the members whose key is in region a and whose value satisfies formula b. kAll: all members of
  // the region do. kSome: at least c do. kMost: at most c do.
  kAll,
  kSome,
  kMost,
  // Always true; a = the list of names that gives the order in which keys are written.
  kOrder,
  // Counts of the items with an index from a to d - 1 that satisfy formula b. kItemAll: all do. kItemSome: at
  // least c do. kItemMost: at most c do.
  kItemAll,
  kItemSome,
  kItemMost,
  // Items differ from each other and from the set a of captured values. A formula of arrays has at most one
  // such atom (schema/decide/unique.h).
  kUnique,
  // The array or object differs from all values of the set a of captured values (schema/decide/captured.h).
  kArrayOutside,
  kObjectOutside,
};

// The families of operators. The operators of a family are treated by the same code.
enum class Family : uint8_t {
  kConstant,
  kConnective,
  // kSchema, kTypes and kVal, which have nothing in common.
  kLeaf,
  kText,
  kContent,
  kNumber,
  // How many members, with a key in a region, have a value that satisfies a formula.
  kMembers,
  // How many items in a range of indices satisfy a formula.
  kItems,
  kOrder,
  // The condition that items differ from each other.
  kComparison,
  kOutside,
};

// How many members or items a count asks for: every one, at least n, or at most n.
enum class Count : uint8_t { kNone, kAll, kSome, kMost };

// Bits of Formula::has. A bit says that an operator occurs somewhere in a formula; a search for this operator
// skips formulas without the bit.
constexpr uint32_t kHasVal = 1, kHasOrder = 2, kHasUnique = 4, kHasMultiple = 8, kHasContent = 16,
                   kHasOutside = 32;

// The properties of an operator that do not depend on its fields.
struct OpRow {
  Op op;
  Family family;
  // The kind of values that the operator restricts; values of other kinds satisfy its atoms. No value: all
  // kinds.
  std::optional<Kind> about = {};
  Count count = Count::kNone;
  // True if `{}` or `[]` satisfies the atom, as it does "every member ..." and "at most n", but not "at least
  // n". For And, Or, One and Not it depends on the kids.
  bool closes = false;
  uint32_t has = 0;
};

// Recipe, keyword 4, with an atom of its own: its name in Op above, and a row.
inline constexpr auto kOps = [] {
  using enum Op;
  using F = Family;
  constexpr Kind string = Kind::kString, number = Kind::kNumber, object = Kind::kObject, array = Kind::kArray;
  return std::to_array<OpRow>({
      {kTrue, F::kConstant, {}, Count::kNone, true},
      {kFalse, F::kConstant},
      {kAnd, F::kConnective},
      {kOr, F::kConnective},
      {kOne, F::kConnective},
      {kNot, F::kConnective},
      {kSchema, F::kLeaf},
      {kTypes, F::kLeaf},
      {kVal, F::kLeaf, {}, Count::kNone, false, kHasVal},
      {kPattern, F::kText, string},
      {kFormat, F::kText, string},
      {kLength, F::kText, string},
      {kStrings, F::kText, string},
      {kContent, F::kContent, string, Count::kNone, false, kHasContent},
      {kInteger, F::kNumber, number},
      {kAtLeast, F::kNumber, number},
      {kAtMost, F::kNumber, number},
      {kMultiple, F::kNumber, number, Count::kNone, false, kHasMultiple},
      {kEqual, F::kNumber, number},
      {kAll, F::kMembers, object, Count::kAll, true},
      {kSome, F::kMembers, object, Count::kSome},
      {kMost, F::kMembers, object, Count::kMost, true},
      {kOrder, F::kOrder, object, Count::kNone, true, kHasOrder},
      {kItemAll, F::kItems, array, Count::kAll, true},
      {kItemSome, F::kItems, array, Count::kSome},
      {kItemMost, F::kItems, array, Count::kMost, true},
      {kUnique, F::kComparison, array, Count::kNone, true, kHasUnique},
      // Whether `[]` or `{}` satisfies these atoms depends on the captured values (Solver::closes).
      {kArrayOutside, F::kOutside, array, Count::kNone, false, kHasOutside},
      {kObjectOutside, F::kOutside, object, Count::kNone, false, kHasOutside},
  });
}();

static_assert([] {
  for (std::size_t i = 0; i < kOps.size(); ++i)
    if (kOps[i].op != static_cast<Op>(i)) return false;
  return kOps.back().op == Op::kObjectOutside;  // the last operator
}());

// Throws kUnsupportedSchema. Code calls it for an operator of another family than it expects.
[[noreturn]] void unknown_operator(Op op);
// Throws kSchemaTooComplex. Code calls it if it can make no grammar of a kContent (schema/decide/content.cc).
[[noreturn]] void content_too_complex();

constexpr const OpRow& row(Op op) { return kOps[static_cast<std::size_t>(op)]; }

}  // namespace structgen
