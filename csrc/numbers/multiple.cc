// multipleOf as regexes (see number.h) of numbers that the automaton of multiple_between.cc reads.
//
// The problem. Which texts are multiples of 0.75? The value of `3.75` is known only behind its last
// digit, and a mask must not allow a digit behind which no multiple can be completed.
//
// The idea. d = c / 10^s with whole numbers c, s >= 0. A lexeme with j digits behind the point is a
// multiple of d if and only if its digits, read as a whole number N, satisfy N * 10^(s-j) = 0 mod c (j
// <= s; beyond that only zeros may follow). The states of an automaton are unfolded as digits are read:
// a state holds N mod c. Whether some continuation completes it is arithmetic: among 10^m consecutive
// numbers there is a multiple of c if 10^m is at least c. So no state is a dead end, and nothing is
// searched.
//
//     0.75: c = 75, s = 2     `3` is a multiple: N = 3, and 300 mod 75 = 0
//                             behind `3.` come 0 (3.0) or 7: 375 mod 75 = 0, while no 35e is a multiple
//                             behind `3.7` comes 5
//
// Cost: one node for each remainder and number of digits that the text meets, for divisors of up to 18
// digits. If d = c * 10^z has more digits, a multiple is a multiple of c followed by z zeros.
//
// Rejected: the automaton of all remainders in advance. A divisor of nine digits has a billion of them.
#include <algorithm>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "base/error.h"
#include "numbers/divisor.h"
#include "numbers/number.h"
#include "regex/regex.h"

namespace structgen {

namespace {

// A divisor may have at most this many digits behind the point.
constexpr uint32_t kMaxScale = 40;

[[noreturn]] void divisor_too_complex(const std::string& why) {
  throw Error(ErrorKind::kSchemaTooComplex, "multipleOf: " + why);
}

// Returns c / gcd(c, 10^t): it divides a number exactly if c divides the number with t zeros behind it.
uint64_t reduced(uint64_t c, int64_t t) {
  for (; t > 0; --t) {
    const uint64_t g = std::gcd<uint64_t>(c, 10);
    if (g == 1) break;
    c /= g;
  }
  return c;
}

}  // namespace

NumberLanguage::Divisor::Divisor(const Decimal& d) {
  if (d.zero() || d.negative) throw Error(ErrorKind::kGrammar, "multipleOf must be greater than 0");
  if (d.exponent < -static_cast<int64_t>(kMaxScale) && is_hard(d))
    divisor_too_complex("the divisor has more than 40 decimals");
  if (d.digits.size() > 18) divisor_too_complex("the divisor has more than 18 digits");
  const bool long_zeros = d.exponent > 0 && d.exponent + static_cast<int64_t>(d.digits.size()) > 18;
  c = std::stoull(d.exponent > 0 && !long_zeros ? d.int_part() : d.digits);
  s = d.exponent < 0 || long_zeros ? -d.exponent : 0;
  while (reduced(c, zeros) != reduced(c, zeros + 1)) ++zeros;
}

// Returns the multiples without exponent. If the divisor ends in many zeros, a multiple of it is one of c
// with zeros behind it.
RegexId NumberLanguage::plain_multiples(const Divisor& d, bool with_zero) {
  if (d.s >= 0)
    return decimals({.c = d.c,
                     .s = static_cast<uint32_t>(d.s),
                     .first = with_zero ? 0 : d.c,
                     .most_whole = d.c == 1 ? kUnlimited : most_digits_,
                     .zeros_until = zeros_until_});
  const auto zeros = static_cast<uint32_t>(-d.s);
  const uint32_t most =
      most_digits_ == kUnlimited ? kUnlimited : most_digits_ - std::min(most_digits_, zeros);
  const RegexId parts[] = {decimals({.c = d.c, .first = d.c, .most_whole = most, .point = false}),
                           arena_.repeat(digit(0, 0), zeros, zeros), zero_fraction_};
  const RegexId out = arena_.cat(parts);
  return with_zero ? arena_.alt(arena_.cat(digit(0, 0), zero_fraction_), out) : out;
}

// Returns the multiples of one digit and an exponent x: digit * 10^(x+s) must be 0 mod c.
RegexId NumberLanguage::one_digit_multiples(const Divisor& d) {
  RegexId out = RegexArena::empty();
  const int64_t s = d.s;
  for (int64_t t = 0; t <= d.zeros; ++t) {
    const uint64_t modulus = reduced(d.c, t);
    const RegexId exponents = t == d.zeros ? exponent_at_least(t - s) : exponent_equal(t - s);
    for (int v = 1; v <= 9; ++v)
      if (static_cast<uint64_t>(v) % modulus == 0) out = arena_.alt(out, one_digit(v, v, exponents));
  }
  return out;
}

// Returns the multiples that are a mantissa with a fraction and an exponent x from `from` to `to`. With f
// digits behind the point and t = x - f + s, the digits times 10^t must be 0 mod c. The digits do not end in
// a zero, so t is at least 0 and f at most x + s. A shorter fraction counts as one that ends in zeros. From
// d.zeros on, t makes no difference.
RegexId NumberLanguage::fraction_multiples(const Divisor& d, int64_t from, int64_t to) {
  RegexId out = RegexArena::empty();
  bool last = false;
  for (int64_t x = std::max(from, 1 - d.s); x <= to && !last; ++x) {
    const int64_t f = std::min<int64_t>(kMantissaDigits, x + d.s), t = x + d.s - f;
    last = f == kMantissaDigits && t >= d.zeros;
    const Multiples of{
        .c = reduced(d.c, t), .s = static_cast<uint32_t>(f), .zeros_until = kUnbounded, .mantissa = true};
    const RegexId parts[] = {decimals(of), e_, last ? exponent_between(x, to) : exponent_equal(x)};
    out = arena_.alt(out, arena_.cat(parts));
  }
  return out;
}

bool NumberLanguage::is_hard(const Decimal& divisor) { return divisor.digits != "1" || divisor.exponent > 0; }

bool NumberLanguage::common_multiple(const Decimal& a, const Decimal& b, Decimal& out) {
  // A divisor as odd * 2^twos * 5^fives.
  struct Factors {
    uint64_t odd;
    int64_t twos, fives;
    explicit Factors(const Decimal& d) : odd(std::stoull(d.digits)), twos(d.exponent), fives(d.exponent) {
      for (; odd % 2 == 0; odd /= 2) ++twos;
      for (; odd % 5 == 0; odd /= 5) ++fives;
    }
  };
  for (const Decimal* d : {&a, &b})
    if (d->zero() || d->negative || d->digits.size() > 18) return false;
  const Factors x(a), y(b);
  const int64_t twos = std::max(x.twos, y.twos), fives = std::max(x.fives, y.fives),
                tens = std::min(twos, fives);
  constexpr Wide kLimit = 1'000'000'000'000'000'000;
  Wide digits = static_cast<Wide>(x.odd) * (y.odd / std::gcd(x.odd, y.odd));
  for (int64_t i = tens; i < twos && digits < kLimit; ++i) digits *= 2;
  for (int64_t i = tens; i < fives && digits < kLimit; ++i) digits *= 5;
  if (digits >= kLimit || std::abs(tens) > kMaxDecimalExponent) return false;
  out = Decimal{false, std::to_string(static_cast<uint64_t>(digits)), tens};
  return true;
}

RegexId NumberLanguage::multiple_of(const Decimal& divisor) {
  if (divisor.digits == "1" && divisor.exponent == 0 && !divisor.negative) return integers();
  const Divisor d(divisor);
  // Spellings without exponents have no negative zero.
  if (!exponents_) return arena_.alt(plain_multiples(d, true), minus_sign(plain_multiples(d, false)));
  const RegexId fractions =
      narrow_ ? arena_.alt(fraction_multiples(d, kLongMin, kNone), fraction_multiples(d, -kNone, kLongMax))
              : fraction_multiples(d, -kNone, kNone);
  const RegexId parts[] = {plain_multiples(d, true), zero_, one_digit_multiples(d), fractions};
  return either_sign(arena_.alt(parts));
}

}  // namespace structgen
