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

RegexId json_number(RegexArena& arena);

enum class NumberSpelling : uint8_t { kAny, kPlain, kCanonical };

// Makes the languages of conditions, for one arena, spelling and universe. Each function returns the lexemes
// of the universe whose value satisfies a condition.
class NumberLanguage {
 public:
  // `most_digits` bounds the digits before the point of a multiple, in spellings without exponents;
  // kUnlimited stands for any number.
  NumberLanguage(RegexArena& arena, NumberSpelling spelling, bool narrow, uint32_t most_digits);

  RegexId any();
  RegexId integers();
  // Returns the integers that are written without fraction and exponent, as draft 4 asks.
  RegexId plain_integers();
  RegexId at_least(const Decimal& bound, bool exclusive);
  RegexId at_most(const Decimal& bound, bool exclusive);
  // Throws kSchemaTooComplex for two kinds of divisors: those with more than 18 digits, not counting zeros at
  // the end, and those with more than 40 digits behind the point that are not 10^-k.
  RegexId multiple_of(const Decimal& divisor);
  // A bound. `open` says that the bound itself is excluded.
  struct Bound {
    Decimal value;
    bool open = false;
  };
  // Makes one automaton of the multiples between two bounds; null stands for no bound. Returns false if there
  // is no such automaton: the numbers have too many digits, or the divisor is not hard.
  bool multiples_between(const Decimal& divisor, const Bound* low, const Bound* high, RegexId& out);
  // Returns true if the divisor is not 10^-k. The multiples of such divisors are taken from the narrow
  // universe.
  static bool is_hard(const Decimal& divisor);
  // Finds the divisor whose multiples are the multiples of both `a` and `b`. Returns false if multiple_of()
  // would refuse it.
  static bool common_multiple(const Decimal& a, const Decimal& b, Decimal& out);
  RegexId equal_to(const Decimal& value);

  // Returns the lexemes without an exponent and with at most kReadableDigits digits before the point. Every
  // reader has a finite double or an integer for such a lexeme.
  RegexId finite();
  // Returns the lexemes that are in any() and in finite().
  RegexId finite_any();
  // Returns the lexemes that are in integers() and in finite().
  RegexId finite_integers();
  static constexpr uint32_t kReadableDigits = 308, kUnlimited = 0xFFFFFFFFu;
  // The largest double has this many digits. within_doubles() returns the lexemes of numbers that are no
  // further from zero.
  static constexpr uint32_t kDoubleDigits = 309;
  RegexId within_doubles();
  // In the plain spelling, a fraction of more digits than this (which printf's %f writes) does not end in a
  // zero.
  static constexpr uint32_t kPlainFraction = 6;

 private:
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
  // Returns the digits of a mantissa's fraction: `digits` digits, the last of which is not 0, then any zeros.
  RegexId exact_fraction(uint32_t digits);
  RegexId minus_sign(RegexId magnitudes);
  // Returns the lexemes without and with a minus sign. Zero has no minus sign in spellings without exponents,
  // so `magnitudes` must not have zero.
  RegexId either_sign(RegexId magnitudes);

  // ---- fractions: the digits that may follow behind `read` digits of a fraction ----
  //
  // Returns these digits, or none, because the fraction may end here.
  RegexId tail(std::size_t read);
  // Returns the digits that may follow `read` digits, of which the last one is a 0. None may follow only if
  // the fraction may end in a zero here.
  RegexId open_tail(std::size_t read);
  // Returns the digits that may follow `read` digits, of which at least one is not 0.
  RegexId nonzero(std::size_t read);
  // Returns only zeros: as many as may follow `read` digits at the end of a fraction.
  RegexId zeros(std::size_t read);
  bool may_end_in_zero(std::size_t read) const { return read <= zeros_until_; }
  RegexId digits_above(std::string_view fraction, std::size_t at, bool strict);
  RegexId digits_below(std::string_view fraction, std::size_t at, bool strict);
  RegexId fraction_above(std::string_view fraction, bool strict);
  RegexId fraction_below(std::string_view fraction, bool strict, bool bare);
  template <class Rest>
  RegexId beside(std::string_view bound, std::size_t at, bool above, RegexId equal, Rest&& rest);
  // Returns the n - j - 1 digits behind digit j of n digits.
  RegexId behind(uint32_t n, std::size_t j) {
    return digits(n - static_cast<uint32_t>(j) - 1, n - static_cast<uint32_t>(j) - 1);
  }
  RegexId digit(int lo, int hi);
  RegexId digits(uint32_t min, uint32_t max);

  // ---- exponents: sign and digits behind the e ----
  //
  // Returns the digits, with leading zeros, of the numbers >= n.
  RegexId count_at_least(int64_t n);
  RegexId count_at_most(int64_t n);
  RegexId count_equal(int64_t n);
  RegexId exponent_at_least(int64_t k);
  RegexId exponent_at_most(int64_t k);
  RegexId exponent_equal(int64_t k);
  // Returns the exponents from lo to hi; -kNone and kNone stand for no bound.
  RegexId exponent_between(int64_t lo, int64_t hi);
  // Returns those exponents from lo to hi that may follow a mantissa with a fraction.
  RegexId long_exponent(int64_t lo, int64_t hi);
  RegexId one_digit(int lo, int hi, RegexId exponents);  // [lo-hi](.0+)?e
  RegexId with_fraction(RegexId first, RegexId fraction, RegexId exponents);

  struct Divisor;
  RegexId decimals(const Multiples& of);
  RegexId plain_multiples(const Divisor& d, bool with_zero);
  RegexId one_digit_multiples(const Divisor& d);
  // Returns multiples whose mantissa has a fraction. In the narrow universe `huge` asks for those with
  // exponents from kLongMin on, `tiny` for those with exponents up to kLongMax.
  RegexId fraction_multiples(const Divisor& d, bool huge, bool tiny);
  bool magnitudes_between(const Divisor& d, const Bound& low, const Bound* high, bool with_zero,
                          RegexId& out);
  RegexId mantissas(uint64_t c, uint32_t last, bool exact);

  static constexpr uint32_t kMantissaDigits = 16;

  // In the narrow universe a mantissa with a fraction has an exponent >= kLongMin or <= kLongMax.
  static constexpr int64_t kLongMin = 16, kLongMax = -5;
  static constexpr int64_t kNone = INT64_MAX;

  RegexArena& arena_;
  const bool exponents_, narrow_;
  const uint32_t most_digits_;
  // A fraction of at most this many digits may end in zeros.
  const uint32_t zeros_until_;
  RegexId point_, e_, plus_;          // "." [eE] \+?
  RegexId any_digits_, some_digits_;  // \d* \d+
  RegexId to_nonzero_;                // \d*[1-9]
  // With their points: any fraction or none; a fraction other than zero; a fraction of zeros or none.
  RegexId any_fraction_, some_fraction_, zero_fraction_;
  RegexId point_zeros_;  // (\.0+)?
  // The fraction of a mantissa: 1 to 16 digits, the last of which is not 0, then any zeros.
  RegexId mantissa_;
  RegexId any_exponent_;
  // The lexemes of zero with an exponent; empty in spellings without exponents.
  RegexId zero_;
  RegexId magnitude_, integers_;
};

}  // namespace structgen
