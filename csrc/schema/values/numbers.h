// Formulas of numbers as regular languages.
//
// In: a formula restricted to numbers, and the spelling of numbers. Out: a RegexId of all lexemes of the
// numbers that satisfy the formula. Cost: one node of the regex algebra per atom; results are remembered.
//
// A conjunction's conditions are read once (Conditions), and conjunction() takes the first of these
// ways that applies:
//
//   1. Few numbers (lattice.h): two divisors or more between two bounds. The common multiples are tried
//      one by one. Limits: 4096 tried, 256 found, and 15 digits for each number in one unit.
//   2. Multiples between bounds (numbers/multiple_between.cc): one automaton of the common multiple of all
//      divisors and the bounds. Limits: 18 digits of the common multiple; 30 digits of a bound times 10^s,
//      where the divisor has s <= 30 decimals.
//   3. Joined divisors: the automaton of their common multiple, where `integer` is the divisor 1.
//      Separate automata would read beginnings that no digits complete, and a search would have to find
//      them. Limits: 18 digits and 40 decimals of a divisor (numbers/multiple.cc). Divisors whose common
//      multiple exceeds the limits stay apart.
//   4. Else each condition is a language of its own, and the algebra intersects them.
//
// If a way exceeds its limits, the next way is tried. If the last way exceeds its limits, the error names the
// divisor (kSchemaTooComplex) or comes from the search for a text.
#pragma once

#include <optional>
#include <vector>

#include "base/flat_map.h"
#include "numbers/number.h"
#include "schema/formula/formula.h"

namespace structgen {

// Turns formulas of numbers into regexes of their lexemes, for one grammar. The languages of single
// conditions belong to the arena; all its grammars share them.
class Numbers {
 public:
  Numbers(FormulaSpace& formulas, RegexArena& regexes, NumberSpelling spelling)
      : formulas_(formulas), regexes_(regexes), spelling_(spelling) {}
  // Returns the lexemes of the numbers that satisfy p; numbers.cc says how many digits they may have. Throws
  // if it takes too much work to tell whether there is such a number.
  RegexId language(TypedId p);

 private:
  // Which lexemes a language has. kAll: every lexeme of the numbers that satisfy the formula. kNarrow: only
  // lexemes of a narrower universe (numbers/number.h), for formulas with a hard divisor. kOffered and kWhole
  // serve the plain spelling, as language() explains. kOffered: as kAll, but a number that must be whole has
  // no zeros behind a point. kWhole: as kOffered, and no fraction ends with a zero. kDouble and kHuge are
  // added to one of these: numbers may then have as many digits as the largest double, or any number of
  // digits.
  enum Domain : uint8_t { kAll, kNarrow, kOffered, kWhole, kDouble, kHuge = 2 * kDouble };
  static Domain of(Domain kind, Domain like) { return static_cast<Domain>(kind | (like & ~kWhole)); }
  static bool is(Domain d, Domain kind) { return (d & kWhole) == kind; }
  struct Conditions {
    std::optional<NumberLanguage::Bound> low, high;
    // The divisors; `integer` is the divisor 1. Divisors are replaced by their common multiple while it has
    // few digits.
    std::vector<Decimal> divisors;
    // The number of divisors before they were joined.
    uint32_t asked = 0;
    // True for `integer` of draft 4, which allows neither a point nor an exponent.
    bool without_point = false;
    // The kids from which `low` and `high` come.
    std::vector<TypedId> bounds;
    // The kids that are neither bounds nor divisors.
    std::vector<TypedId> others;
  };
  Conditions read(TypedId p);
  // Returns the lexemes of p like language(), but does not decide whether there are any.
  RegexId finite(TypedId p);
  RegexId within_doubles(TypedId p, Domain domain);
  bool counts_digits(TypedId p);
  RegexId combine(TypedId p, Domain domain);
  RegexId conjunction(TypedId p, Domain domain);
  bool few(TypedId p, Domain domain, RegexId& out);
  bool between(const Conditions& all, Domain domain, std::vector<RegexId>& parts);
  bool joined(const Conditions& all, Domain domain, std::vector<RegexId>& parts);
  RegexId atom(TypedId p, NumberLanguage& numbers);
  bool hard(TypedId p);
  uint32_t size_of_constants(TypedId p);
  Domain kid_domain(TypedId p, Domain domain);
  NumberLanguage& lexemes(Domain d);

  FormulaSpace& formulas_;
  RegexArena& regexes_;
  NumberSpelling spelling_;
  // The languages of conditions, by domain; the arena owns them.
  NumberLanguage* lexemes_[2 * kHuge] = {};
  FlatMap<uint32_t, RegexId> memo_[2 * kHuge];
  FlatMap<uint32_t, bool> hard_;
  FlatMap<uint32_t, uint32_t> constants_;
  FlatMap<uint32_t, RegexId> finite_;
};

}  // namespace structgen
