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

// The kinds of JSON values. `true` and `false` are two kinds, so that `"enum": [true, 1]` needs no atom for
// booleans but a mask of kinds.
enum class Kind : uint8_t { kNull, kFalse, kTrue, kNumber, kString, kArray, kObject };
constexpr int kKinds = 7;
constexpr uint32_t kAllKinds = (1u << kKinds) - 1;
constexpr uint32_t kind_bit(Kind k) { return 1u << static_cast<uint32_t>(k); }

// The operators. `a` to `d` are fields of a Formula, whose meaning depends on the operator.
enum class Op : uint8_t {
  kTrue,
  kFalse,
  kAnd,
  kOr,
  // Exactly one kid holds (`oneOf`).
  kOne,
  // The negation. It stands over few operators only; formula.cc lists them.
  kNot,
  // A subschema that has not been lowered; a = its location.
  kSchema,
  kTypes,  // a = mask of kinds
  // Part of the derivative of an object by a member: "the value of the member satisfies formula a".
  kVal,
  // strings
  kPattern,  // a = text index
  kFormat,   // a = text index (name)
  kLength,   // a = min, b = max code points
  // a = index of a sorted set of texts (`enum`, `const`).
  kStrings,
  // The string is the JSON text of a value that satisfies formula b (schema/decide/content.cc).
  kContent,
  // numbers
  // The number is whole. With b = 1 it is also written without fraction and exponent: in draft 4, 1.0 is no
  // integer.
  kInteger,
  // a = text index of the bound; b = 1: the bound itself is excluded.
  kAtLeast,
  kAtMost,
  kMultiple,  // a = text index
  kEqual,     // a = text index
  // objects: a = region, b = value formula, c = n
  kAll,
  kSome,
  kMost,
  // a = a properties map. The atom is always true, and only gives the order in which the keys are written.
  kOrder,
  // arrays: a = first index, d = end index, b = value formula, c = n
  kItemAll,
  kItemSome,
  kItemMost,
  // Items differ from each other and from the captured values a. A formula of arrays has at most one such
  // atom (schema/decide/unique.h).
  kUnique,
  // The array, or the object, is none of the captured values a (schema/decide/captured.h).
  kArrayOutside,
  kObjectOutside,
};

// The families of operators. One piece of code lowers all operators of a family.
enum class Family : uint8_t {
  kConstant,
  kConnective,
  // kSchema, kTypes and kVal, which are treated one by one.
  kLeaf,
  // Conditions on strings.
  kText,
  kContent,
  // Conditions on numbers.
  kNumber,
  // How many members with a key in a region have a value that satisfies a formula.
  kMembers,
  // How many items in a range of indices satisfy a formula.
  kItems,
  kOrder,
  // Items are compared with each other.
  kComparison,
  kOutside,
};

// How many: every member or item, at least n, at most n.
enum class Count : uint8_t { kNone, kAll, kSome, kMost };

// Bits of Formula::has: the operators that occur anywhere in a formula. The bits let a search skip a whole
// formula.
constexpr uint32_t kHasVal = 1, kHasOrder = 2, kHasUnique = 4, kHasMultiple = 8, kHasContent = 16,
                   kHasOutside = 32;

// The properties of an operator that hold for all values of its fields.
struct OpRow {
  Op op;
  Family family;
  // The kind of values that the operator is about. An atom of this operator holds for values of every other
  // kind.
  std::optional<Kind> about = {};
  Count count = Count::kNone;
  // True if `{}` or `[]` satisfies the atom: "every member ..." and "at most n" do, "at least n" does not.
  // For connectives the kids decide.
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
      // Whether the empty array or object satisfies the atom depends on the captured values (Solver::closes).
      {kArrayOutside, F::kOutside, array, Count::kNone, false, kHasOutside},
      {kObjectOutside, F::kOutside, object, Count::kNone, false, kHasOutside},
  });
}();

static_assert([] {
  for (std::size_t i = 0; i < kOps.size(); ++i)
    if (kOps[i].op != static_cast<Op>(i)) return false;
  return kOps.back().op == Op::kObjectOutside;  // the last operator
}());

// Throws kUnsupportedSchema: the operator stands where no operator of its family belongs.
[[noreturn]] void unknown_operator(Op op);
// Throws kSchemaTooComplex: kContent stands where no grammar can be made of it
// (schema/decide/content.cc).
[[noreturn]] void content_too_complex();

constexpr const OpRow& row(Op op) { return kOps[static_cast<std::size_t>(op)]; }

}  // namespace structgen
