// Typed number formulas -> regular languages.
//
// In: a formula restricted to numbers, and how numbers are spelled. Out: a RegexId: the lexemes. Cost: one
// algebra node an atom; memoised.
//
// The conditions of a conjunction are read once (Conditions), and one function decides what becomes of them
// (Numbers::conjunction). The first of these that applies:
//
//   1. Few numbers (lattice.h): two divisors or more between two bounds. The multiples of what divides them
//      all are tried one by one. Limits: 4096 tried, 256 found, 15 digits each in one fixed point.
//   2. Multiples between bounds (numbers/multiple_between.cc): the common multiple of all divisors and the
//      bounds are one automaton. Limits: 18 digits of the common multiple, 30 of a bound times 10^s, where
//      the divisor has s <= 30 decimals.
//   3. Joined divisors: `integer` and divisors 10^-k join every other divisor. As automata of their own they
//      would let texts live that no digit completes. Other divisors stay apart: their product is larger than
//      they are. Limits: 18 digits and 40 decimals of a divisor (numbers/multiple.cc).
//   4. Else each condition is a language, and the algebra intersects them.
//
// Beyond its limits each leaves the conjunction to the next. What is too much for the last is an error of the
// divisor (kSchemaTooComplex) or of the search for a text.
#pragma once

#include <optional>
#include <vector>

#include "base/flat_map.h"
#include "numbers/number.h"
#include "schema/formula/formula.h"

namespace structgen {

class Numbers {
 public:
  Numbers(FormulaSpace& formulas, RegexArena& regexes, NumberSpelling spelling)
      : formulas_(formulas), regexes_(regexes), spelling_(spelling) {}
  RegexId language(TypedId p);

 private:
  // kAll: every lexeme of the numbers that satisfy a formula. kNarrow: the same under a condition whose
  // divisor is hard, in a narrower universe (numbers/number.h). For the plain spelling only: kOffered is kAll
  // without the zeros behind the point of what is asked to be whole, and kWhole is that spelling without any
  // zeros at the end of a fraction (see language()). With kHuge, multiples have any number of digits.
  enum Domain : uint8_t { kAll, kNarrow, kOffered, kWhole, kHuge };
  static Domain of(Domain kind, Domain like) { return static_cast<Domain>(kind | (like & kHuge)); }
  static bool is(Domain d, Domain kind) { return (d & ~kHuge) == kind; }
  // A conjunction's conditions.
  struct Conditions {
    std::optional<NumberLanguage::Bound> low, high;
    std::optional<Decimal> easy;  // the common multiple of `integer` and the divisors 10^-k
    bool joined = true;           // false: it has too many digits
    uint32_t divisors = 0;        // how many went into `easy`, and the others
    std::vector<Decimal> hard;    // divisors that are no power of ten
    bool without_point = false;   // draft 4's `integer`
    std::vector<TypedId> bounds;  // what `low` and `high` come from
    std::vector<TypedId> others;  // neither bounds nor divisors
  };
  Conditions read(TypedId p);
  RegexId finite(TypedId p);
  RegexId within(RegexId numbers, RegexId some);
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
  NumberLanguage* lexemes_[2 * kHuge] = {};     // by domain: of the arena, which all its grammars share
  FlatMap<uint32_t, RegexId> memo_[2 * kHuge];  // by domain
  FlatMap<uint32_t, bool> hard_;
  FlatMap<uint32_t, uint32_t> constants_;  // by formula, see size_of_constants
  FlatMap<uint32_t, RegexId> finite_;      // language(), by formula
};

}  // namespace structgen
