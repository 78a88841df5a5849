// The lexemes of JSON numbers whose value satisfies a numeric keyword, as byte languages without a
// delimiter.
//
// In: exact decimals. Out: RegexId. Every method returns a subset of any(): exactly the lexemes whose
// value satisfies the condition. So callers combine them with both, alt and minus(any(), x). Values are
// rational: 1.0 is an integer, 1e2 equals 100, -0 equals 0.
//
// Conditions on free exponents are not regular, so any() is a smaller universe than the lexemes of
// JSON:
//   -?(0|[1-9]\d*)(\.\d+)?                                    any length
//   -?[1-9](\.0+|\.<1..16 digits, then zeros>)?[eE][+-]?\d+   one digit before the point, any exponent
//   -?0(\.0+)?[eE][+-]?\d+                                    zero
// It contains everything that JSON writers print: scientific notation always has one digit before the
// point, and 17 digits write every double. The narrow universe is for divisors that are no power of
// ten. There a mantissa has a fraction only if the exponent is at least 16 or at most -5, which is what
// json.dumps writes. Whether the digits of a mantissa are a multiple is one automaton for each number
// of digits; with bounds and other divisors these would meet in conjunctions of thousands of states.
//
// Two spellings have smaller universes, without exponents and without -0 (NumberSpelling):
//   canonical   a fraction does not end in zeros: one lexeme for each value
//   plain       a fraction of at most six digits may end in zeros: 3.50, 100.00, 0.500000
// All three are one definition: a fraction of at most `zeros_until_` digits may end in zeros, with 0, 6
// or no limit. finite() restricts them to numbers that every reader takes for a finite double (see
// Numbers::language). json_number() is every lexeme of RFC 8259; it is for numbers without a condition.
//
// Cost: bounds and equality take a few calls of the arena per digit; integers() takes about 40;
// multipleOf is plain for divisors 10^k, else it is an automaton that is unfolded as digits are read
// (multiple_between.cc, with bounds or none; multiple.cc has the forms with an exponent). Keep one
// NumberLanguage per arena, because it caches.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/ids.h"
#include "numbers/decimal.h"

namespace structgen {

class RegexArena;
struct Multiples;

// Every lexeme of RFC 8259.
RegexId json_number(RegexArena& arena);

enum class NumberSpelling : uint8_t { kAny, kPlain, kCanonical };

// The languages of conditions in one arena, one spelling and one universe.
class NumberLanguage {
 public:
  // `most_digits`: the most digits before the point of a multiple, in spellings without exponents; or
  // kUnlimited.
  NumberLanguage(RegexArena& arena, NumberSpelling spelling, bool narrow, uint32_t most_digits);

  // Every lexeme of the universe.
  RegexId any();
  RegexId integers();
  // The integers that are written without fraction and exponent; draft 4 asks for these.
  RegexId plain_integers();
  RegexId at_least(const Decimal& bound, bool exclusive);
  RegexId at_most(const Decimal& bound, bool exclusive);
  // Throws kSchemaTooComplex if the divisor has more than 18 digits (without zeros at its end), or more
  // than 40 decimals unless it is 10^-k.
  RegexId multiple_of(const Decimal& divisor);
  // A bound; open: the bound itself is excluded.
  struct Bound {
    Decimal value;
    bool open = false;
  };
  // The multiples between two bounds (null: no bound), as one automaton. False: they cannot be written
  // in this way (too many digits, or no hard divisor).
  bool multiples_between(const Decimal& divisor, const Bound* low, const Bound* high, RegexId& out);
  // True if the divisor is not 10^-k. The multiples of such divisors are kept in the narrow universe.
  static bool is_hard(const Decimal& divisor);
  // The divisor whose multiples are the multiples of both. False: it has more digits than multiple_of()
  // takes.
  static bool common_multiple(const Decimal& a, const Decimal& b, Decimal& out);
  RegexId equal_to(const Decimal& value);

  // The next three are lexemes without exponent and with at most kReadableDigits digits before the point:
  // every reader has a finite double or an integer for them.
  // All such lexemes, to be intersected with a condition.
  RegexId finite();
  // any() within them.
  RegexId finite_any();
  // integers() within them.
  RegexId finite_integers();
  static constexpr uint32_t kReadableDigits = 308, kUnlimited = 0xFFFFFFFFu;
  // No further from zero than the largest double, which has so many digits.
  static constexpr uint32_t kDoubleDigits = 309;
  RegexId within_doubles();
  // The digits that printf's %f writes; longer fractions do not end in a zero.
  static constexpr uint32_t kPlainFraction = 6;

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
  // The digits of a mantissa's fraction, of which the last one before the zeros is not 0.
  RegexId exact_fraction(uint32_t digits);
  RegexId minus_sign(RegexId magnitudes);
  // Without exponents zero has no minus sign, so it must not be among the magnitudes.
  RegexId either_sign(RegexId magnitudes);

  // ---- fractions: digits after the point, of which `read` are written ----
  // More digits of a fraction that may end here.
  RegexId tail(std::size_t read);
  // More digits of a fraction whose last digit is a zero. The fraction must go on unless it may end in a
  // zero.
  RegexId open_tail(std::size_t read);
  // Digits that are not all zero.
  RegexId nonzero(std::size_t read);
  // Zeros of a fraction, behind each of which the fraction may end.
  RegexId zeros(std::size_t read);
  bool may_end_in_zero(std::size_t read) const { return read <= zeros_until_; }
  RegexId digits_above(std::string_view fraction, std::size_t at, bool strict);
  RegexId digits_below(std::string_view fraction, std::size_t at, bool strict);
  RegexId fraction_above(std::string_view fraction, bool strict);
  RegexId fraction_below(std::string_view fraction, bool strict, bool bare);
  template <class Rest>
  RegexId beside(std::string_view bound, std::size_t at, bool above, RegexId equal, Rest&& rest);
  // The digits behind place j of n.
  RegexId behind(uint32_t n, std::size_t j) {
    return digits(n - static_cast<uint32_t>(j) - 1, n - static_cast<uint32_t>(j) - 1);
  }
  RegexId digit(int lo, int hi);
  RegexId digits(uint32_t min, uint32_t max);

  // ---- exponents: sign and digits after the e ----
  // Digits, with leading zeros, of a value >= n.
  RegexId count_at_least(int64_t n);
  RegexId count_at_most(int64_t n);
  RegexId count_equal(int64_t n);
  RegexId exponent_at_least(int64_t k);
  RegexId exponent_at_most(int64_t k);
  RegexId exponent_equal(int64_t k);
  // From lo to hi; -kNone and kNone stand for no bound.
  RegexId exponent_between(int64_t lo, int64_t hi);
  // The exponents from lo to hi behind a mantissa with a fraction.
  RegexId long_exponent(int64_t lo, int64_t hi);
  RegexId one_digit(int lo, int hi, RegexId exponents);  // [lo-hi](.0+)?e
  RegexId with_fraction(RegexId first, RegexId fraction, RegexId exponents);

  // ---- multipleOf (multiple.cc, multiple_between.cc) ----
  struct Divisor;
  RegexId decimals(const Multiples& of);
  RegexId plain_multiples(const Divisor& d, bool with_zero);
  RegexId one_digit_multiples(const Divisor& d);
  // Narrow universe: mantissas with large exponents, with small ones.
  RegexId fraction_multiples(const Divisor& d, bool huge, bool tiny);
  bool magnitudes_between(const Divisor& d, const Bound& low, const Bound* high, bool with_zero,
                          RegexId& out);
  RegexId mantissas(uint64_t c, uint32_t last, bool exact);

  static constexpr uint32_t kMantissaDigits = 16;

  // Narrow universe: the exponents of mantissas with a fraction.
  static constexpr int64_t kLongMin = 16, kLongMax = -5;
  static constexpr int64_t kNone = INT64_MAX;

  RegexArena& arena_;
  const bool exponents_, narrow_;
  const uint32_t most_digits_;
  // A fraction of at most so many digits may end in zeros.
  const uint32_t zeros_until_;
  RegexId point_, e_, plus_;          // "." [eE] \+?
  RegexId any_digits_, some_digits_;  // \d* \d+
  RegexId to_nonzero_;                // \d*[1-9]
  // A fraction with its point: any or none, one that is not zero, one that is zero or none.
  RegexId any_fraction_, some_fraction_, zero_fraction_;
  RegexId point_zeros_;  // (\.0+)?
  // The fraction of a scientific lexeme: 1 to 16 digits, the last of which is not 0, then zeros.
  RegexId mantissa_;
  RegexId any_exponent_;
  // Scientific lexemes of zero; empty without exponents.
  RegexId zero_;
  // Computed on first use.
  RegexId magnitude_, integers_;
};

}  // namespace structgen
