// JSON number lexemes whose value satisfies a numeric keyword, as byte languages (no delimiter).
//
// In: exact decimals. Out: RegexId. Every method returns a subset of any(), exactly the lexemes whose
// value satisfies the condition, so callers combine them with both, alt and minus(any(), x).
// Values are rational: 1.0 is an integer, 1e2 equals 100, -0 equals 0.
//
// The universe any(), chosen because predicates on free exponents are not regular:
//   -?(0|[1-9]\d*)(\.\d+)?                       any length
//   -?[1-9](\.0+)?[eE][+-]?\d+                   one digit and any exponent
//   -?[1-9]\.<1..16 digits, then zeros>[eE]x     x >= 16 or x <= -5
// which holds all that json.dumps and JSON.stringify write. The canonical universe is the plain decimal
// form without trailing zeros after the point and without -0. json_number() is every lexeme of RFC 8259;
// use it where no numeric condition applies.
//
// Cost: bounds and equality take a few arena calls a digit; integers() about 40; multipleOf is plain for
// divisors 10^k, else automata unfolded as digits are read (see multiple.cc). Keep one NumberLanguage per arena: it caches.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/ids.h"
#include "schema/decimal.h"

namespace structgen {

class RegexArena;

RegexId json_number(RegexArena& arena);

class NumberLanguage {
 public:
  NumberLanguage(RegexArena& arena, bool canonical);

  RegexId any();
  RegexId integers();
  RegexId at_least(const Decimal& bound, bool exclusive);
  RegexId at_most(const Decimal& bound, bool exclusive);
  RegexId multiple_of(const Decimal& divisor);  // kSchemaTooComplex above 18 digits or 40 decimals
  RegexId equal_to(const Decimal& value);

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
  RegexId minus_sign(RegexId magnitudes);
  RegexId either_sign(RegexId magnitudes);  // of which zero is none, when canonical

  // ---- fractions: digits after the point ----
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
  RegexId count_between(int64_t lo, int64_t hi);
  RegexId exponent_at_least(int64_t k);
  RegexId exponent_at_most(int64_t k);
  RegexId exponent_equal(int64_t k);
  RegexId long_exponent(int64_t lo, int64_t hi);  // of a mantissa with a fraction, between lo and hi
  RegexId one_digit(int lo, int hi, RegexId exponents);  // [lo-hi](.0+)?e
  RegexId with_fraction(RegexId first, RegexId fraction, RegexId exponents);

  // ---- multipleOf (multiple.cc) ----
  struct Divisor;
  RegexId plain_multiples(const Divisor& d, bool with_zero);
  RegexId one_digit_multiples(const Divisor& d);
  RegexId fraction_multiples(const Divisor& d);
  RegexId mantissas(uint64_t c, uint32_t last, bool exact);

  static constexpr int64_t kLongMin = 16, kLongMax = -5;  // exponents of mantissas with a fraction
  static constexpr uint32_t kMantissaDigits = 16;
  static constexpr int64_t kNone = INT64_MAX;

  RegexArena& arena_;
  const bool canonical_;
  RegexId point_, e_, plus_;          // "." [eE] \+?
  RegexId any_digits_, some_digits_;  // \d* \d+
  RegexId tail_;        // more digits of a fraction that may end here
  RegexId open_tail_;   // more digits of a fraction that ends in a zero here
  RegexId nonzero_;     // digits that are not all zero
  RegexId zeros_;       // more zeros of a fraction
  RegexId any_fraction_, some_fraction_, zero_fraction_;  // with the point; some: not zero
  RegexId point_zeros_;  // (\.0+)?
  RegexId mantissa_;     // the fraction of a scientific lexeme: 1..16 digits, the last not 0, then zeros
  RegexId magnitude_, integers_;  // computed on first use
};

}  // namespace structgen
