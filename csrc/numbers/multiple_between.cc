// multipleOf with bounds (see number.h).
//
// A divisor c / 10^s and its bounds meet in one automaton. While digits are read, a plain decimal is a
// number P, and the values that it may become are M = value * 10^s in [P * 10^k, (P + 1) * 10^k).
// Whether a multiple of c within the bounds is among them is arithmetic. So no state is a dead end, and
// nothing is searched.
//
//     multiples of 7 between 10 and 30     14, 21, 28
//     `1` may become 10 to 19              14 is among them, so `1` is allowed
//     `3` may become 3, or 30 to 39        no multiple within the bounds, so `3` is not allowed
//
// The alternative, a product of the divisor's automaton with those of the bounds, would have to be
// searched; for divisors of five digits that is too much. Cost: one node for each combination of digits
// read, remainder, and side of each bound that the text meets.
#include <algorithm>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "numbers/divisor.h"
#include "numbers/number.h"
#include "regex/regex.h"

namespace structgen {

namespace {

// A bound times 10^s has at most this many digits.
constexpr int64_t kMaxDigits = 30;
constexpr Wide kMaxDivisor = 1'000'000'000'000'000'000;

// Returns 10^n, or 10^37 if it does not fit into a Wide. It is only compared with divisors and bounds, which
// are below 10^30, so the smaller power does as well.
Wide power(uint32_t n) { return power_of_ten(std::min(n, 37u)); }

uint32_t digits_of(Wide x) {
  uint32_t n = 1;
  for (; x >= 10; x /= 10) ++n;
  return n;
}

struct BetweenPhases {
  enum Phase : uint8_t { kBegin, kZero, kWhole, kFraction };
};
// A state of the automaton. P is the number that the digits read so far make, without their point.
struct DigitsBetween {
  BetweenPhases::Phase phase = BetweenPhases::kBegin;
  // True if P already exceeds the lower bound and there is no upper bound. Then only the remainder r matters.
  bool free = false;
  // True if the last digit of the fraction was not 0. It matters where the fraction may not end in zeros.
  bool nonzero = false;
  // The number of digits that were read; within a fraction only those behind the point, counted up to
  // most_digits_.
  uint32_t n = 0;
  uint64_t r = 0;  // P mod c
  // The number P. States that differ only in p may have one language (sides()).
  Wide p = 0;
};

class MultiplesBetween : public DigitAutomaton<DigitsBetween>, BetweenPhases {
 public:
  explicit MultiplesBetween(const Multiples& of)
      : of_(of),
        c_(of.c),
        s_(of.s),
        counts_(!of.ends && of.most_whole != NumberLanguage::kUnlimited),
        most_digits_(std::max(s_ + 1, of.zeros_until == kUnbounded ? 0 : of.zeros_until)),
        first_digits_(digits_of(of.first / power(s_))),
        last_digits_(digits_of(of.last / power(s_))) {}

 private:
  using State = DigitsBetween;

  // Writes the shortest digits that complete the begun number.
  bool completed(const State& q, std::string& text) const override {
    if (q.phase == kBegin || of_.mantissa) return false;
    const uint32_t read = q.phase == kFraction ? q.n : 0;
    return complete(q.phase == kWhole, q.phase == kFraction, [&](const Completing& way) {
      Wide y = 0;
      const uint32_t places = read + way.fraction;
      if (places > s_ || (q.phase == kWhole && counts_ && way.whole > of_.most_whole - q.n)) return false;
      const bool nonzero = way.fraction > 0 && places > of_.zeros_until;
      if (q.free ? !least_digits(q.r, way.digits(), s_ - places, c_, nonzero, y)
                 : !least_inside(q.p, way.digits(), s_ - places, nonzero, y))
        return false;
      text = way.text(y);
      return true;
    });
  }

  // Compares P with as many leading digits of `bound`, whose whole part has `digits` digits. Returns -1 if P
  // is smaller, 0 if they are equal, 1 if P is larger.
  int side(const State& q, Wide bound, uint32_t digits) const {
    const uint32_t left =
        q.phase == kFraction ? s_ - std::min(q.n, s_) : s_ + (digits > q.n ? digits - q.n : 0);
    const Wide prefix = bound / power(left);
    return q.p < prefix ? -1 : q.p > prefix;
  }
  // For each bound, tells whether P is smaller (-1) or larger (1) than the first digits of the bound, or
  // equal to them (0). Only if it is equal does P itself matter. Otherwise all numbers that begin with P lie
  // on one side of the bound, and only the remainder of P matters.
  std::pair<int, int> sides(const State& q) const {
    const bool inside = !q.free && q.phase >= kWhole;
    return {inside ? side(q, of_.first, first_digits_) : 0,
            inside && of_.ends ? side(q, of_.last, last_digits_) : 0};
  }
  bool same(const State& x, const State& y) const override {
    return x.phase == y.phase && x.free == y.free && x.nonzero == y.nonzero && x.n == y.n && x.r == y.r &&
           sides(x) == sides(y);
  }
  uint64_t hash(const State& q) const override {
    return mix(mix(q.phase * 4u + q.free * 2u + q.nonzero, q.n), q.r);
  }

  bool step(State& q, char c) const override {
    if (c == '.') {
      if ((q.phase != kZero && q.phase != kWhole) || !of_.point) return false;
      q.phase = kFraction;
      q.n = 0;
      q.nonzero = false;
      return true;
    }
    const auto d = static_cast<uint32_t>(c - '0');
    if (q.phase == kZero || (of_.mantissa && (q.phase == kWhole || (q.phase == kBegin && d == 0))))
      return false;
    if (q.phase == kBegin) q.phase = d == 0 ? kZero : kWhole;
    const bool beyond = q.phase == kFraction && q.n >= s_;
    if (beyond && (d != 0 || q.n >= of_.zeros_until)) return false;
    if (!beyond) {
      q.r = static_cast<uint64_t>((static_cast<Wide>(q.r) * 10 + d) % c_);
      if (!q.free) q.p = q.p * 10 + d;
    }
    q.nonzero = of_.zeros_until != kUnbounded && q.phase == kFraction && d != 0;
    if (q.phase == kFraction)
      q.n = std::min(q.n + 1, most_digits_);
    else if (q.phase == kWhole && (!q.free || counts_) && q.n++ == of_.most_whole && counts_)
      return false;
    if (!of_.ends && !q.free && q.phase != kZero) {
      const uint32_t zeros = q.phase == kFraction ? s_ - std::min(q.n, s_) : s_;
      if (q.p * power(zeros) >= of_.first) {
        q.free = true;
        q.p = 0;
        if (q.phase == kWhole && !counts_) q.n = 0;
      }
    }
    return true;
  }

  // Returns true if some multiple of c lies in [from, to] and within the bounds.
  bool any(Wide from, Wide to) const {
    from = std::max(from, of_.first);
    if (of_.ends) to = std::min(to, of_.last);
    return from <= to && (from + c_ - 1) / c_ * c_ <= to;
  }

  // Finds the least y of `digits` digits such that the digits of p, then y, then `zeros` zeros are a multiple
  // within the bounds. Returns false if there is none.
  bool least_inside(Wide p, uint32_t digits, uint32_t zeros, bool nonzero, Wide& y) const {
    constexpr Wide kMost = ~Wide{0} / 10;
    const Wide unit = power(zeros), size = power(digits), common = std::gcd(c_, static_cast<uint64_t>(unit));
    if (unit > kMaxDivisor || size > kMost / unit / (p + 1)) return false;
    const Wide step = c_ / common * unit, from = p * size * unit, to = from + size * unit - 1;
    const Wide last = of_.ends ? std::min(to, of_.last) : to;
    Wide m = (std::max(from, of_.first) + step - 1) / step * step;
    for (int tries = 0; tries < 10 && m <= last; ++tries, m += step)
      if (!nonzero || m / unit % 10 != 0) {
        y = m / unit % size;
        return true;
      }
    return false;
  }

  bool accepts(const State& q) const override {
    if (q.phase == kBegin || (of_.mantissa && q.phase == kWhole)) return false;
    const uint32_t zeros = q.phase == kFraction ? s_ - std::min(q.n, s_) : s_;
    if (q.phase == kFraction && (q.n == 0 || !(q.nonzero || q.n <= of_.zeros_until))) return false;
    if (q.free) return times_power(q.r, zeros) == 0;
    return any(q.p * power(zeros), q.p * power(zeros));
  }

  bool alive(const State& q) const override {
    if (q.phase == kBegin || accepts(q)) return true;
    if (q.phase == kWhole && !of_.mantissa) {
      if (!of_.ends) {
        std::string text;
        return !counts_ || of_.most_whole - q.n >= (q.free ? kEnough : 2 * kEnough + kMaxDigits) ||
               completed(q, text);
      }
      for (Wide unit = power(s_); q.p * unit <= of_.last; unit *= 10)
        if (any(q.p * unit, q.p * unit + unit - 1)) return true;
      return false;
    }
    const uint32_t n = q.phase == kFraction ? q.n : 0, zeros = s_ - std::min(n, s_);
    // `from` is 1 if the text may not end with zeros alone. Behind the point at least one digit must follow.
    const Wide unit = power(zeros), from = q.nonzero || std::max(n, 1u) <= of_.zeros_until ? 0 : 1;
    if (from >= unit) return false;
    if (!q.free) return any(q.p * unit + from, q.p * unit + unit - 1);
    const Wide start = static_cast<Wide>(times_power(q.r, zeros)) + from;
    return (start + c_ - 1) / c_ * c_ <= start - from + unit - 1;
  }

  uint64_t times_power(uint64_t r, uint32_t n) const {
    Wide v = r;
    for (uint32_t i = 0; i < n; ++i) v = v * 10 % c_;
    return static_cast<uint64_t>(v);
  }

  // The divisor has at most 19 digits, so this many more digits complete any digits to a multiple.
  static constexpr uint32_t kEnough = 20;
  const Multiples of_;
  const uint64_t c_;
  const uint32_t s_;
  // True if there is a bound on the digits before the point.
  const bool counts_;
  // DigitsBetween::n counts the digits of a fraction up to this number.
  const uint32_t most_digits_;
  // The numbers of digits before the point: of the first bound, and of the last bound.
  const uint32_t first_digits_, last_digits_;
};

}  // namespace

RegexId NumberLanguage::decimals(const Multiples& of) {
  return arena_.define<MultiplesBetween>(of).start(arena_);
}

// Returns the unsigned multiples between two magnitudes, or from `low` on if `high` is null. Returns false if
// the bounds have too many digits.
bool NumberLanguage::magnitudes_between(const Divisor& d, const Bound& low, const Bound* high, bool with_zero,
                                        RegexId& out) {
  Wide first = 0, last = 0;
  bool whole = true;
  if (d.s < 0 || d.s > kMaxDigits || !in_units(low.value, -d.s, true, kMaxDigits, first, whole)) return false;
  const auto s = static_cast<uint32_t>(d.s);
  if (low.open && whole) ++first;
  if (!exponents_ && !with_zero) first = std::max<Wide>(first, 1);
  first = (first + d.c - 1) / d.c * d.c;
  out = RegexArena::empty();
  if (high) {
    if (!in_units(high->value, -d.s, false, kMaxDigits, last, whole)) return false;
    if (high->open && whole) {
      if (last == 0) return true;
      --last;
    }
    last = last / d.c * d.c;
    if (first > last) return true;
  }
  Multiples of{.c = d.c, .s = s, .first = first, .last = last, .ends = high != nullptr};
  of.most_whole = most_digits_;
  of.zeros_until = zeros_until_;
  out = decimals(of);
  if (!exponents_) return true;
  // Now the lexemes with an exponent. In the narrow universe (number.h) such a lexeme has a fraction only
  // from 10^16 up or below 10^-4. Few schemas have bounds there, so an intersection serves.
  const Decimal huge{false, "1", kLongMin}, tiny{false, "1", kLongMax + 1};
  const auto within = [&](RegexId lexemes, bool from, bool to) {
    if (from) lexemes = arena_.both(lexemes, above(low.value, low.open));
    return to ? arena_.both(lexemes, below(high->value, high->open, false)) : lexemes;
  };
  const bool from = !low.value.zero(), to = high != nullptr;
  out = arena_.alt(out, within(one_digit_multiples(d), from, to));
  if (!high)
    out = arena_.alt(
        out, within(fraction_multiples(d, true, false), compare_magnitude(low.value, huge) > 0, false));
  for (int64_t x = kLongMin; high && x <= high->value.scientific_exponent(); ++x) {
    // A mantissa d.ddd of at most 16 digits, times 10^x, is a number with x + s further digits, whose last
    // ones are zeros.
    const auto places = static_cast<uint32_t>(x) + s;
    const Wide zeros = power(places - kMantissaDigits),
               c = d.c / std::gcd(d.c, static_cast<uint64_t>(zeros)) * zeros;
    if (zeros > kMaxDivisor || c > kMaxDivisor) return false;
    const Wide from_here = (first + c - 1) / c * c, to_here = last / c * c;
    if (from_here > to_here) continue;
    const RegexId parts[] = {decimals({.c = static_cast<uint64_t>(c),
                                       .s = places,
                                       .first = from_here,
                                       .last = to_here,
                                       .ends = true,
                                       .zeros_until = kUnbounded,
                                       .mantissa = true}),
                             e_, long_exponent(x, x)};
    out = arena_.alt(out, arena_.cat(parts));
  }
  if (compare_magnitude(low.value, tiny) < 0)
    out = arena_.alt(out, within(fraction_multiples(d, false, true), from,
                                 to && compare_magnitude(high->value, tiny) < 0));
  if (first == 0) out = arena_.alt(out, zero_);
  return true;
}

bool NumberLanguage::multiples_between(const Decimal& divisor, const Bound* low, const Bound* high,
                                       RegexId& out) {
  if (!narrow_ && exponents_) return false;
  const Divisor d(divisor);
  const auto size = [](Bound b) {
    b.value.negative = false;
    return b;
  };
  const Bound zero{Decimal{}, false};
  RegexId positive = RegexArena::empty(), negative = RegexArena::empty();
  // The numbers >= 0 lie between max(low, 0) and `high`. The magnitudes of the negative ones lie between
  // max(-high, 0) and -low.
  if (!high || !high->value.negative) {
    const bool above_zero = low && !low->value.negative;
    if (!magnitudes_between(d, above_zero ? *low : zero, high, true, positive)) return false;
  }
  if (!low || low->value.negative || low->value.zero()) {
    const bool below_zero = high && (high->value.negative || high->value.zero());
    const Bound end = low ? size(*low) : zero;
    if (!magnitudes_between(d, below_zero ? size(*high) : zero, low ? &end : nullptr, false, negative))
      return false;
  }
  out = arena_.alt(positive, minus_sign(negative));
  return true;
}

}  // namespace structgen
