// JSON number lexemes whose value satisfies a numeric keyword, as byte languages (no delimiter).
//
// In: exact decimals. Out: RegexId. Every method returns a subset of any(), exactly the lexemes whose
// value satisfies the condition, so callers combine them with both, alt and minus(any(), x).
// Values are rational: 1.0 is an integer, 1e2 equals 100, -0 equals 0.
//
// The universe any(), chosen because predicates on free exponents are not regular:
//   -?(0|[1-9]\d*)(\.\d+)?                                    any length
//   -?[1-9](\.0+|\.<1..16 digits, then zeros>)?[eE][+-]?\d+   one digit before the point, any exponent
//   -?0(\.0+)?[eE][+-]?\d+                                    zero
// which holds all that JSON writers print: scientific notation is written with one digit before the point
// everywhere, and 17 digits say every double. The narrow universe, for divisors that are no power of ten,
// takes a mantissa with a fraction only where the exponent is at least 16 or at most -5 (what json.dumps
// writes): whether its digits are a multiple is an automaton for every number of digits, and those meet
// bounds and each other in conjunctions of thousands of states.
//
// Two spellings have smaller universes, without exponents and without -0 (NumberSpelling):
//   canonical   no zeros at the end of a fraction: one lexeme a value
//   plain       a fraction of at most six digits may end in zeros: 3.50, 100.00, 0.500000
// All three are one definition: a fraction of at most `zeros_until_` digits may end in zeros, where that is
// 0, 6 or no limit. finite() limits them to what every reader takes for a finite double (see
// Numbers::language). json_number() is every lexeme of RFC 8259; use it where no numeric condition applies.
//
// Cost: bounds and equality take a few arena calls a digit; integers() about 40; multipleOf is plain for
// divisors 10^k, else automata unfolded as digits are read (see multiple.cc; with bounds
// multiple_between.cc). Keep one NumberLanguage per arena: it caches.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/ids.h"
#include "numbers/decimal.h"

namespace structgen {

class RegexArena;

RegexId json_number(RegexArena& arena);

enum class NumberSpelling : uint8_t { kAny, kPlain, kCanonical };

class NumberLanguage {
 public:
  // `most_digits`: before the point of a multiple, in spellings without exponents; kUnlimited.
  NumberLanguage(RegexArena& arena, NumberSpelling spelling, bool narrow, uint32_t most_digits);

  RegexId any();
  RegexId integers();
  RegexId plain_integers();  // of those the ones without fraction and exponent: draft 4's
  RegexId at_least(const Decimal& bound, bool exclusive);
  RegexId at_most(const Decimal& bound, bool exclusive);
  // kSchemaTooComplex above 18 digits, zeros at their end aside, and above 40 decimals of another divisor
  // than 10^-k.
  RegexId multiple_of(const Decimal& divisor);
  struct Bound {
    Decimal value;
    bool open = false;
  };
  // Multiples that are at least `low` and at most `high` (null: no such bound), as one automaton. False: it
  // is not written that way (many digits, or no hard divisor).
  bool multiples_between(const Decimal& divisor, const Bound* low, const Bound* high, RegexId& out);
  static bool is_hard(const Decimal& divisor);  // no 10^-k: its multiples are kept in the narrow universe
  // The divisor whose multiples are the multiples of both. False: it has more digits than multiple_of takes.
  static bool common_multiple(const Decimal& a, const Decimal& b, Decimal& out);
  RegexId equal_to(const Decimal& value);

  // Lexemes without exponent of at most kReadableDigits digits before the point: every reader has a finite
  // double or a whole number of it.
  RegexId finite();           // all such shapes, to be joined with a condition
  RegexId finite_any();       // any() within them
  RegexId finite_integers();  // integers() within them
  static constexpr uint32_t kReadableDigits = 308, kUnlimited = 0xFFFFFFFFu;
  RegexId within_doubles();                      // no further from zero than the largest double
  static constexpr uint32_t kPlainFraction = 6;  // what %f writes: longer fractions end in no zero

 private:
  // ---- magnitudes: unsigned lexemes ----
  RegexId magnitude();  // all of them
  RegexId above(const Decimal& bound, bool strict);
  RegexId below(const Decimal& bound, bool strict, bool with_zero);
  RegexId plain_above(const Decimal& bound, bool strict);
  RegexId plain_below(const Decimal& bound, bool strict, bool with_zero);
  RegexId scientific_above(const Decimal& bound, bool strict);
  RegexId scientific_below(const Decimal& bound, bool strict);
  RegexId scientific_equal(const Decimal& value);
  RegexId equal_to_far(const Decimal& value);
  RegexId scientific_any();
  RegexId exact_fraction(uint32_t digits);  // the digits of a mantissa's fraction, the last but zeros not 0
  RegexId minus_sign(RegexId magnitudes);
  RegexId either_sign(RegexId magnitudes);  // of which zero is none, without exponents

  // ---- fractions: digits after the point, of which `read` are written ----
  RegexId tail(std::size_t read);       // more digits of a fraction that may end here
  RegexId open_tail(std::size_t read);  // more digits of a fraction that ends in a zero here
  RegexId nonzero(std::size_t read);    // digits that are not all zero
  RegexId zeros(std::size_t read);      // zeros of a fraction that may end here
  bool may_end_in_zero(std::size_t read) const { return read <= zeros_until_; }
  RegexId digits_above(std::string_view fraction, std::size_t at, bool strict);
  RegexId digits_below(std::string_view fraction, std::size_t at, bool strict);
  RegexId fraction_above(std::string_view fraction, bool strict);
  RegexId fraction_below(std::string_view fraction, bool strict, bool bare);
  RegexId digit(int lo, int hi);
  RegexId digits(uint32_t min, uint32_t max);

  // ---- exponents: sign and digits after the e ----
  RegexId count_at_least(int64_t n);  // digits, leading zeros allowed, of a value >= n
  RegexId count_at_most(int64_t n);
  RegexId count_equal(int64_t n);
  RegexId exponent_at_least(int64_t k);
  RegexId exponent_at_most(int64_t k);
  RegexId exponent_equal(int64_t k);
  RegexId exponent_between(int64_t lo, int64_t hi);      // -kNone, kNone: no bound
  RegexId long_exponent(int64_t lo, int64_t hi);         // of a mantissa with a fraction, between lo and hi
  RegexId one_digit(int lo, int hi, RegexId exponents);  // [lo-hi](.0+)?e
  RegexId with_fraction(RegexId first, RegexId fraction, RegexId exponents);

  // ---- multipleOf (multiple.cc, multiple_between.cc) ----
  struct Divisor;
  RegexId plain_multiples(const Divisor& d, bool with_zero);
  RegexId one_digit_multiples(const Divisor& d);
  RegexId fraction_multiples(const Divisor& d, bool huge, bool tiny);  // narrow: of large, of small exponents
  bool magnitudes_between(const Divisor& d, const Bound& low, const Bound* high, bool with_zero,
                          RegexId& out);
  RegexId mantissas(uint64_t c, uint32_t last, bool exact);

  static constexpr uint32_t kMantissaDigits = 16;

  static constexpr int64_t kLongMin = 16, kLongMax = -5;  // narrow: exponents of mantissas with a fraction
  static constexpr int64_t kNone = INT64_MAX;

  RegexArena& arena_;
  const bool exponents_, narrow_;
  const uint32_t most_digits_;
  const uint32_t zeros_until_;        // a fraction of at most so many digits may end in zeros
  RegexId point_, e_, plus_;          // "." [eE] \+?
  RegexId any_digits_, some_digits_;  // \d* \d+
  RegexId to_nonzero_;                // \d*[1-9]
  RegexId any_fraction_, some_fraction_, zero_fraction_;  // with the point; some: not zero
  RegexId point_zeros_;                                   // (\.0+)?
  RegexId mantissa_;  // the fraction of a scientific lexeme: 1..16 digits, the last not 0, then zeros
  RegexId any_exponent_;
  RegexId zero_;                  // scientific lexemes of zero, none without exponents
  RegexId magnitude_, integers_;  // computed on first use
};

}  // namespace structgen
