// Formulas of numbers as regular languages.
//
// In: a formula restricted to numbers, and the spelling of numbers. Out: a RegexId of all lexemes of
// the numbers that satisfy the formula. Cost: one node of the algebra per atom; remembered.
//
// A conjunction's conditions are read once (Conditions), and conjunction() takes the first of these
// ways that applies:
//
//   1. Few numbers (lattice.h): two divisors or more between two bounds. The common multiples are tried
//      one by one. Limits: 4096 are tried, 256 found, 15 digits each in one unit.
//   2. Multiples between bounds (numbers/multiple_between.cc): one automaton of the common multiple of all
//      divisors and the bounds. Limits: 18 digits of the common multiple; 30 digits of a bound times 10^s,
//      where the divisor has s <= 30 decimals.
//   3. Joined divisors: the automaton of their common multiple, where `integer` is the divisor 1. As
//      automata of their own they would read beginnings that no digits complete, and a search would have
//      to tell which. Limits: 18 digits and 40 decimals of a divisor (numbers/multiple.cc). Divisors whose
//      common multiple is beyond the limits stay apart.
//   4. Else each condition is a language of its own, and the algebra intersects them.
//
// If a way exceeds its limits, the next way is tried. If the last way is, that is an error: of the
// divisor (kSchemaTooComplex), or of the search for a text.
#pragma once

#include <optional>
#include <vector>

#include "base/flat_map.h"
#include "numbers/number.h"
#include "schema/formula/formula.h"

namespace structgen {

// The lexemes of formulas. It belongs to one grammar; the languages of single conditions belong to the
// arena and are shared by all its grammars.
class Numbers {
 public:
  Numbers(FormulaSpace& formulas, RegexArena& regexes, NumberSpelling spelling)
      : formulas_(formulas), regexes_(regexes), spelling_(spelling) {}
  // The lexemes of the numbers that satisfy p, within the limits of digits that numbers.cc explains.
  // Throws where it is too much to tell whether there are any.
  RegexId language(TypedId p);

 private:
  // Which lexemes a language is about. kAll: every lexeme of the numbers that satisfy the formula.
  // kNarrow: the same in a narrower universe (numbers/number.h), for formulas with a hard divisor. Two
  // more for the plain spelling; language() says why: kOffered: kAll without the zeros behind the point
  // of numbers that must be whole. kWhole: kOffered without any zeros at the end of a fraction. kHuge
  // is a bit beside the others: numbers may have any number of digits.
  enum Domain : uint8_t { kAll, kNarrow, kOffered, kWhole, kHuge };
  static Domain of(Domain kind, Domain like) { return static_cast<Domain>(kind | (like & kHuge)); }
  static bool is(Domain d, Domain kind) { return (d & ~kHuge) == kind; }
  // The conditions of one conjunction, sorted by the way in which they are decided.
  struct Conditions {
    std::optional<NumberLanguage::Bound> low, high;
    // The divisors, of which `integer` is 1. Those that have a common multiple of few digits are joined.
    std::vector<Decimal> divisors;
    // How many there were before.
    uint32_t asked = 0;
    // Draft 4's `integer`: no point and no exponent.
    bool without_point = false;
    // The conjuncts from which `low` and `high` come.
    std::vector<TypedId> bounds;
    // Conjuncts that are neither bounds nor divisors.
    std::vector<TypedId> others;
  };
  Conditions read(TypedId p);
  // The language that language() returns, but it may still be undecided whether the language is empty.
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
  // By domain. They belong to the arena, whose grammars share them.
  NumberLanguage* lexemes_[2 * kHuge] = {};
  // Keyed by domain; the result of combine().
  FlatMap<uint32_t, RegexId> memo_[2 * kHuge];
  FlatMap<uint32_t, bool> hard_;
  // Keyed by formula: size_of_constants().
  FlatMap<uint32_t, uint32_t> constants_;
  // Keyed by formula: finite().
  FlatMap<uint32_t, RegexId> finite_;
};

}  // namespace structgen
