// The operators of formulas, a row each: what each is about, and what it says of an empty value.
//
// In: an operator. Out: its row. Cost: an array read. Code that treats operators of a family alike asks the
// row; what an operator means is said once, where its family is lowered: values/texts.cc and
// values/numbers.cc for strings and numbers, FormulaSpace for the counts of members and items. A new operator
// needs a row here, or the static_assert below fails, and a case in its family, which refuses what it does
// not know.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

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
  kNot,     // of what: see formula.cc
  kSchema,  // a = location, resolved lazily
  kTypes,   // a = mask of kinds
  kVal,     // inside a derivative: "the member's value satisfies formula a"
  // strings
  kPattern,  // a = text index
  kFormat,   // a = text index (name)
  kLength,   // a = min, b = max code points
  kStrings,  // a = index of a sorted set of texts
  kContent,  // JSON text of a value that satisfies b (schema/decide/content.cc)
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

enum class Family : uint8_t {
  kConstant,
  kConnective,
  kLeaf,  // kSchema, kTypes, kVal: each for itself
  kText,  // a condition on strings
  kContent,
  kNumber,   // and on numbers
  kMembers,  // how many members of a region have values that satisfy a formula
  kItems,    // and how many items of a range
  kOrder,
  kUnique,
};

// How many: every one, at least n, at most n.
enum class Count : uint8_t { kNone, kAll, kSome, kMost };

// What a formula contains.
constexpr uint32_t kHasVal = 1, kHasOrder = 2, kHasUnique = 4, kHasMultiple = 8, kHasContent = 16;

struct OpRow {
  Op op;
  Family family;
  std::optional<Kind> about = {};  // it holds for values of every other kind
  Count count = Count::kNone;
  bool closes = false;  // the empty object, or array, satisfies it; of connectives the kids tell
  uint32_t has = 0;
};

// Recipe, keyword 4, with an atom of its own: a row.
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
      {kUnique, F::kUnique, array, Count::kNone, true, kHasUnique},
  });
}();

static_assert([] {
  for (std::size_t i = 0; i < kOps.size(); ++i)
    if (kOps[i].op != static_cast<Op>(i)) return false;
  return kOps.back().op == Op::kUnique;  // the last operator
}());

// Of an operator in a place where its family does not belong.
[[noreturn]] void unknown_operator(Op op);
// Of kContent where it is no grammar; see schema/decide/content.cc.
[[noreturn]] void content_too_complex();

constexpr const OpRow& row(Op op) { return kOps[static_cast<std::size_t>(op)]; }

}  // namespace structgen
