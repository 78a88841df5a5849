// multipleOf without bounds (see number.h); its automaton is that of multiple_between.cc, with one bound or
// none.
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

// A divisor has at most this many digits behind the point.
constexpr uint32_t kMaxScale = 40;

[[noreturn]] void divisor_too_complex(const std::string& why) {
  throw Error(ErrorKind::kSchemaTooComplex, "multipleOf: " + why);
}

// Returns c / gcd(c, 10^t): the number that divides N if c divides N * 10^t.
uint64_t reduced(uint64_t c, int64_t t) {
  for (; t > 0; --t) {
    const uint64_t g = std::gcd<uint64_t>(c, 10);
    if (g == 1) break;
    c /= g;
  }
  return c;
}

// What was read of a mantissa, such as 1.25 in 1.25e3.
struct Mantissa {
  enum Phase : uint8_t { kBegin, kWhole, kFraction } phase = kBegin;
  // The number of digits that were read behind the point.
  uint32_t digits = 0;
  // The remainder modulo c of the digits that were read, as a number without its point.
  uint64_t r = 0;
  // True if the last digit of the fraction was not 0. If the automaton is not `exact`, one such digit
  // anywhere suffices.
  bool nonzero = false;
  friend bool operator==(const Mantissa&, const Mantissa&) = default;
};

// The mantissas d.ddd whose digits, without the point and without zeros at the end, are a multiple of c. f is
// the number of these digits behind the point. If `exact`, f is `last`; otherwise it is at most `last`, which
// is used only if neither 2 nor 5 divides c, so that zeros at the end change nothing.
class MantissaMultiples : public DigitAutomaton<Mantissa> {
 public:
  MantissaMultiples(uint64_t c, uint32_t last, bool exact) : c_(c), last_(last), exact_(exact) {}

 private:
  using State = Mantissa;
  bool same(const State& x, const State& y) const override { return x == y; }
  uint64_t hash(const State& q) const override { return mix(mix(q.phase * 2u + q.nonzero, q.digits), q.r); }

  bool step(State& q, char c) const override {
    if (c == '.') {
      if (q.phase != State::kWhole) return false;
      q.phase = State::kFraction;
      return true;
    }
    const auto d = static_cast<uint32_t>(c - '0');
    if (q.phase == State::kWhole || (q.phase == State::kBegin && d == 0)) return false;
    const bool beyond = q.phase == State::kFraction && q.digits == last_;
    if (beyond && d != 0) return false;
    if (!beyond) q.r = static_cast<uint64_t>((static_cast<Wide>(q.r) * 10 + d) % c_);
    if (q.phase == State::kFraction && !beyond) {
      ++q.digits;
      // With `exact` only the last digit must not be 0; otherwise any digit suffices.
      q.nonzero = d != 0 || (!exact_ && q.nonzero);
    }
    if (q.phase == State::kBegin) q.phase = State::kWhole;
    return true;
  }

  bool accepts(const State& q) const override {
    return q.phase == State::kFraction && q.nonzero && q.r == 0 && (!exact_ || q.digits == last_);
  }

  bool alive(const State& q) const override {
    if (accepts(q)) return true;
    if (q.phase == State::kBegin) return true;
    const uint32_t left = last_ - q.digits;
    if (exact_ || left == 0) return completes(q, left);
    // Tries to complete the mantissa with m more digits, the last of which is not 0.
    for (uint32_t m = 1; m <= left; ++m)
      if (completes(q, m)) return true;
    return false;
  }

  // Returns true if m more digits, the last of which is not 0, make a multiple.
  bool completes(const State& q, uint32_t m) const {
    Wide y = 0;
    return least_digits(q.r, m, 0, c_, true, y);
  }

  const uint64_t c_;
  const uint32_t last_;
  const bool exact_;
};

}  // namespace

NumberLanguage::Divisor::Divisor(const Decimal& d) {
  if (d.zero() || d.negative) throw Error(ErrorKind::kGrammar, "multipleOf must be greater than 0");
  if (d.exponent < -static_cast<int64_t>(kMaxScale) && is_hard(d))
    divisor_too_complex("the divisor has more than 40 decimals");
  if (d.digits.size() > 18) divisor_too_complex("the divisor has more than 18 digits");
  const bool long_zeros = d.exponent > 0 && d.exponent + static_cast<int64_t>(d.digits.size()) > 18;
  c = std::stoull(d.exponent > 0 && !long_zeros ? d.int_part() : d.digits);
  s = d.exponent < 0 || long_zeros ? -d.exponent : 0;
  odd = reduced(c, 64);
  for (uint64_t rest = c; rest != odd; rest = reduced(rest, 1)) ++twos;
}

// Returns the multiples without an exponent. If all of them are whole tens, hundreds and so on (s < 0), zeros
// follow the multiples of c. If c is 1, the divisor is 10^-k and a regex is enough; otherwise an automaton
// reads them.
RegexId NumberLanguage::plain_multiples(const Divisor& d, bool with_zero) {
  if (d.s < 0) {
    const auto zeros = static_cast<uint32_t>(-d.s);
    const uint32_t most =
        most_digits_ == kUnlimited ? kUnlimited : most_digits_ - std::min(most_digits_, zeros);
    RegexId front = RegexArena::empty();
    if (d.c != 1)
      front = decimals({.c = d.c, .first = d.c, .most_whole = most, .point = false});
    else if (most > 0)
      front = arena_.cat(digit(1, 9), digits(0, most == kUnlimited ? kUnbounded : most - 1));
    const RegexId parts[] = {front, arena_.repeat(digit(0, 0), zeros, zeros), zero_fraction_};
    const RegexId out = arena_.cat(parts);
    return with_zero ? arena_.alt(arena_.cat(digit(0, 0), zero_fraction_), out) : out;
  }
  const RegexId positive = arena_.cat(digit(1, 9), any_digits_);
  const auto s = static_cast<uint32_t>(d.s);
  if (d.c != 1)
    return decimals({.c = d.c,
                     .s = s,
                     .first = with_zero ? 0 : d.c,
                     .most_whole = most_digits_,
                     .zeros_until = zeros_until_});
  const RegexId whole = arena_.alt(digit(0, 0), positive);
  if (s == 0) return arena_.cat(with_zero ? whole : positive, zero_fraction_);
  const RegexId to_nonzero = arena_.cat(digits(0, s - 1), digit(1, 9));
  RegexId end = to_nonzero;
  if (exponents_)
    end = arena_.cat(digits(1, s), zeros(0));
  else if (zeros_until_ > 0)
    end = arena_.alt(end, s >= zeros_until_
                              ? digits(1, zeros_until_)
                              : arena_.cat(digits(1, s), arena_.repeat(digit(0, 0), 0, zeros_until_ - s)));
  const RegexId fraction = arena_.cat(point_, end);
  if (with_zero) return arena_.cat(whole, arena_.optional(fraction));
  const RegexId small = exponents_ || zeros_until_ == 0 ? fraction : arena_.both(fraction, some_fraction_);
  return arena_.alt(arena_.cat(positive, arena_.optional(fraction)), arena_.cat(digit(0, 0), small));
}

// Returns the multiples of one digit and an exponent x, such as 3e5: c divides digit * 10^(x+s).
RegexId NumberLanguage::one_digit_multiples(const Divisor& d) {
  RegexId out = RegexArena::empty();
  const int64_t s = d.s;
  for (int64_t t = 0; t <= d.twos; ++t) {
    const uint64_t modulus = reduced(d.c, t);
    const RegexId exponents = t == d.twos ? exponent_at_least(t - s) : exponent_equal(t - s);
    for (int v = 1; v <= 9; ++v)
      if (static_cast<uint64_t>(v) % modulus == 0) out = arena_.alt(out, one_digit(v, v, exponents));
  }
  return out;
}

// Returns the mantissas that MantissaMultiples describes. If c is 1, every mantissa is a multiple, and a
// regex reads them.
RegexId NumberLanguage::mantissas(uint64_t c, uint32_t last, bool exact) {
  if (c != 1) return arena_.define<MantissaMultiples>(c, last, exact).start(arena_);
  const RegexId parts[] = {digit(1, 9), point_, digits(exact ? last - 1 : 0, last - 1), digit(1, 9),
                           arena_.star(digit(0, 0))};
  return arena_.cat(parts);
}

// Returns the multiples whose mantissa has a fraction. With f digits behind the point and the exponent x, the
// digits are a number N, and c divides N * 10^t, where t = x - f + s is at least 0.
RegexId NumberLanguage::fraction_multiples(const Divisor& d, bool huge, bool tiny) {
  RegexId out = RegexArena::empty();
  const int64_t s = d.s;
  // In the full universe the exponent may have any size.
  if (!narrow_) {
    for (uint32_t f = 1; f <= kMantissaDigits; ++f)
      // t = twos stands for all larger t as well, because there only `odd` must divide N. t < 0 is
      // impossible, because N does not end in a zero.
      for (int64_t t = 0; t <= d.twos; ++t) {
        const int64_t x = t + f - s;
        const RegexId parts[] = {mantissas(reduced(d.c, t), f, true), e_,
                                 t == d.twos ? exponent_at_least(x) : exponent_equal(x)};
        out = arena_.alt(out, arena_.cat(parts));
      }
    return out;
  }
  const auto exact = [&](uint32_t f, int64_t x) {
    const int64_t t = x - f + s;
    if (t < 0) return;
    const RegexId parts[] = {mantissas(reduced(d.c, t), f, true), e_, exponent_equal(x)};
    out = arena_.alt(out, arena_.cat(parts));
  };
  // f is the number of digits behind the point. Up to `free` of them, t >= twos holds for all large
  // exponents, so `odd` alone must divide N, and one automaton is enough.
  const int64_t free = !huge ? 0 : std::min<int64_t>(kMantissaDigits, kLongMin + s - d.twos);
  if (free > 0) {
    const RegexId parts[] = {mantissas(d.odd, static_cast<uint32_t>(free), false), e_,
                             long_exponent(kLongMin, kNone)};
    out = arena_.cat(parts);
  }
  for (uint32_t f = static_cast<uint32_t>(std::max<int64_t>(free, 0)) + 1; huge && f <= kMantissaDigits;
       ++f) {
    const int64_t enough = f + d.twos - s;
    const RegexId parts[] = {mantissas(d.odd, f, true), e_, long_exponent(enough, kNone)};
    out = arena_.alt(out, arena_.cat(parts));
    for (int64_t x = kLongMin; x < enough; ++x) exact(f, x);
  }
  for (uint32_t f = 1; tiny && f <= kMantissaDigits; ++f)
    for (int64_t x = kLongMax; x - f + s >= 0; --x) exact(f, x);
  return out;
}

bool NumberLanguage::is_hard(const Decimal& divisor) { return divisor.digits != "1" || divisor.exponent > 0; }

bool NumberLanguage::common_multiple(const Decimal& a, const Decimal& b, Decimal& out) {
  // The value is odd * 2^twos * 5^fives, where neither 2 nor 5 divides `odd`.
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
  // In spellings without exponents zero is never written with a minus sign.
  if (!exponents_) return arena_.alt(plain_multiples(d, true), minus_sign(plain_multiples(d, false)));
  const RegexId parts[] = {plain_multiples(d, true), zero_, one_digit_multiples(d),
                           fraction_multiples(d, true, true)};
  return either_sign(arena_.alt(parts));
}

}  // namespace structgen
