// multipleOf (see number.h).
//
// d = c / 10^s with integers c, s >= 0, and c = power * odd where power divides some 10^twos and odd is
// prime to 10. A lexeme with j digits after the point is a multiple of d iff its digits, read as an
// integer N, satisfy N * 10^(s-j) = 0 mod c (j <= s; what follows must be zeros). Mod `power` only the
// last digits count: a trie from the right. Mod `odd` zeros on the right change nothing, so the test is
// one automaton over the digits that skips the point.
// Cost: power * twos trie nodes; the odd automaton has `odd` states.
#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <tuple>
#include <vector>

#include "base/error.h"
#include "regex/regex.h"
#include "schema/number.h"

namespace structgen {

namespace {

constexpr uint64_t kMaxTrie = 5'000;   // residues * digits
constexpr uint64_t kMaxOdd = 13;       // states of one odd automaton
constexpr uint32_t kMaxScale = 40;     // digits after the point of a divisor

[[noreturn]] void too_complex(const std::string& why) {
  throw Error(ErrorKind::kSchemaTooComplex, "multipleOf: " + why);
}

uint64_t power_of_ten(uint32_t n, uint64_t modulus) {
  uint64_t r = 1 % modulus;
  for (uint32_t i = 0; i < n; ++i) r = r * 10 % modulus;
  return r;
}

// c / gcd(c, 10^t)
uint64_t reduced(uint64_t c, int64_t t) {
  for (; t > 0; --t) {
    const uint64_t g = std::gcd<uint64_t>(c, 10);
    if (g == 1) break;
    c /= g;
  }
  return c;
}

// Smallest t with c | 10^t, for c = 2^a 5^b.
uint32_t tens(uint64_t c) {
  uint32_t t = 0;
  for (; c > 1; c = reduced(c, 1)) ++t;
  return t;
}

// `whole` digits, a point if `fraction` > 0, `fraction` digits, whose value is r mod `modulus`.
class Suffixes {
 public:
  Suffixes(RegexArena& arena, uint64_t modulus) : arena_(arena), modulus_(modulus) {}

  RegexId build(uint32_t whole, uint32_t fraction, uint64_t r, bool first_nonzero = false) {
    if (whole + fraction == 0) return r == 0 ? RegexArena::epsilon() : RegexArena::empty();
    const auto key = std::tuple(whole, fraction, r, first_nonzero);
    if (auto it = memo_.find(key); it != memo_.end()) return it->second;
    const uint32_t left = whole + fraction - 1;
    const uint64_t place = power_of_ten(left, modulus_);
    std::map<uint64_t, ByteSet> groups;  // residue of the rest -> digits
    for (uint32_t d = first_nonzero ? 1 : 0; d < 10; ++d)
      groups[(r + modulus_ - d * place % modulus_) % modulus_].add(static_cast<uint8_t>('0' + d));
    std::vector<RegexId> parts;
    for (const auto& [rest, set] : groups) {
      const RegexId tail = whole > 0 ? after_whole(whole - 1, fraction, rest) : build(0, fraction - 1, rest);
      parts.push_back(arena_.cat(arena_.bytes(set), tail));
    }
    return memo_[key] = arena_.alt(parts);
  }

 private:
  RegexId after_whole(uint32_t whole, uint32_t fraction, uint64_t r) {
    const RegexId rest = build(whole, fraction, r);
    return whole == 0 && fraction > 0 ? arena_.cat(arena_.byte('.'), rest) : rest;
  }

  RegexArena& arena_;
  const uint64_t modulus_;
  std::map<std::tuple<uint32_t, uint32_t, uint64_t, bool>, RegexId> memo_;
};

// Strings of digits and points whose digits are 0 mod `prime_power`, by state elimination. A leaf node
// of the arena (modulus, remainder) would replace this and lift kMaxOdd.
RegexId eliminate(RegexArena& arena, uint32_t n) {
  std::vector<RegexId> edge(static_cast<std::size_t>(n) * n, RegexArena::empty());
  const auto at = [&](uint32_t i, uint32_t j) -> RegexId& { return edge[static_cast<std::size_t>(i) * n + j]; };
  for (uint32_t i = 0; i < n; ++i) {
    for (uint32_t d = 0; d < 10; ++d) {
      RegexId& e = at(i, (10 * i + d) % n);
      e = arena.alt(e, arena.byte(static_cast<uint8_t>('0' + d)));
    }
    at(i, i) = arena.alt(at(i, i), arena.byte('.'));
  }
  for (uint32_t k = n; k-- > 1;) {
    const RegexId loop = arena.star(at(k, k));
    for (uint32_t i = 0; i < k; ++i) {
      if (at(i, k) == RegexArena::empty()) continue;
      for (uint32_t j = 0; j < k; ++j) {
        const RegexId parts[] = {at(i, k), loop, at(k, j)};
        at(i, j) = arena.alt(at(i, j), arena.cat(parts));
      }
    }
  }
  return arena.star(at(0, 0));
}

}  // namespace

struct NumberLanguage::Divisor {
  uint64_t c = 1, power = 1, odd = 1;
  uint32_t s = 0;
  uint32_t twos = 0;   // power | 10^twos
  RegexId odd_test;    // digits and points, 0 mod odd; anything() when odd = 1

  Divisor(RegexArena& arena, const Decimal& d) {
    if (d.zero() || d.negative) throw Error(ErrorKind::kGrammar, "multipleOf must be greater than 0");
    if (d.exponent < -static_cast<int64_t>(kMaxScale)) too_complex("the divisor has more than 40 decimals");
    const std::string digits = d.exponent > 0 ? d.int_part() : d.digits;
    if (digits.size() > 18) too_complex("the divisor has more than 18 digits");
    c = std::stoull(digits);
    s = d.exponent < 0 ? static_cast<uint32_t>(-d.exponent) : 0;
    odd = reduced(c, 64);
    power = c / odd;
    twos = tens(power);
    if (power * twos > kMaxTrie) too_complex("the divisor needs more than 5,000 states");
    odd_test = odd_automaton(arena);
  }

  // The digits are 0 mod each prime power.
  RegexId odd_automaton(RegexArena& arena) const {
    RegexId out = RegexArena::anything();
    uint64_t rest = odd;
    for (uint64_t p = 3; rest > 1; p += 2) {
      if (p > kMaxOdd) too_complex("the divisor has a prime factor above 13");
      uint64_t part = 1;
      for (; rest % p == 0; rest /= p) part *= p;
      if (part > 1 && part > kMaxOdd) too_complex("the divisor needs too many states");
      if (part > 1) out = arena.both(out, eliminate(arena, static_cast<uint32_t>(part)));
    }
    return out;
  }
};

// Plain decimals with exactly `fraction` digits after the point, 0 mod `power`; odd is not looked at.
RegexId NumberLanguage::plain_multiples_of_power(const Divisor& d, uint32_t fraction) {
  const uint64_t modulus = reduced(d.power, static_cast<int64_t>(d.s) - fraction);
  const uint32_t last = tens(modulus);
  Suffixes suffixes(arena_, modulus);
  const RegexId whole = arena_.alt(digit(0, 0), arena_.cat(digit(1, 9), any_digits_));
  if (last <= fraction) {
    if (fraction == 0) return whole;
    const RegexId parts[] = {whole, point_, digits(fraction - last, fraction - last), suffixes.build(0, last, 0)};
    return arena_.cat(parts);
  }
  const uint32_t need = last - fraction;  // digits of the whole part that count
  RegexId out = arena_.cat(arena_.cat(digit(1, 9), any_digits_), suffixes.build(need, fraction, 0));
  for (uint32_t n = 1; n <= need; ++n) out = arena_.alt(out, suffixes.build(n, fraction, 0, true));
  // A single 0 before the point.
  const RegexId point = fraction == 0 ? RegexArena::epsilon() : point_;
  return arena_.alt(out, arena_.cat(digit(0, 0), arena_.cat(point, suffixes.build(0, fraction, 0))));
}

RegexId NumberLanguage::plain_multiples(const Divisor& d) {
  RegexId shape;
  if (d.power == 1) {
    const RegexId whole = arena_.alt(digit(0, 0), arena_.cat(digit(1, 9), any_digits_));
    const RegexId fraction = canonical_ ? arena_.cat(digits(0, d.s == 0 ? 0 : d.s - 1), digit(1, 9))
                                        : arena_.cat(digits(1, d.s), zeros_);
    shape = arena_.cat(whole, d.s == 0 ? zero_fraction_ : arena_.optional(arena_.cat(point_, fraction)));
  } else {
    shape = RegexArena::empty();
    const RegexId canonical_end = arena_.cat(arena_.star(arena_.bytes(ByteSet::range('0', '9') | ByteSet::of('.'))), digit(1, 9));
    for (uint32_t j = 0; j <= d.s; ++j) {
      RegexId part = plain_multiples_of_power(d, j);
      if (j == d.s) part = arena_.cat(part, j == 0 ? zero_fraction_ : zeros_);
      if (canonical_ && j > 0) part = arena_.both(part, canonical_end);
      shape = arena_.alt(shape, part);
    }
  }
  return arena_.both(shape, d.odd_test);
}

// One digit and an exponent x: digit * 10^(x+s) = 0 mod c.
RegexId NumberLanguage::one_digit_multiples(const Divisor& d) {
  RegexId out = RegexArena::empty();
  const auto s = static_cast<int64_t>(d.s);
  for (int64_t t = 0; t <= d.twos; ++t) {
    const uint64_t modulus = reduced(d.c, t);
    const RegexId exponents = t == d.twos ? exponent_at_least(t - s) : exponent_equal(t - s);
    for (int v = 1; v <= 9; ++v)
      if (static_cast<uint64_t>(v) % modulus == 0) out = arena_.alt(out, one_digit(v, v, exponents));
  }
  return out;
}

// d.ddd with exactly `fraction` digits (then zeros), the last not 0, whose digits are 0 mod `modulus`.
RegexId NumberLanguage::exact_mantissas(const Divisor& d, uint32_t fraction, uint64_t modulus) {
  const uint64_t power = modulus / d.odd;
  const uint32_t last = tens(power);
  Suffixes suffixes(arena_, power);
  RegexId digits_part;
  if (last <= fraction) {
    const RegexId parts[] = {digit(1, 9), point_, digits(fraction - last, fraction - last), suffixes.build(0, last, 0)};
    digits_part = arena_.cat(parts);
  } else {
    digits_part = suffixes.build(1, fraction, 0, true);
  }
  const RegexId shape[] = {digit(1, 9), point_, digits(fraction - 1, fraction - 1), digit(1, 9)};
  const RegexId exact = arena_.both(arena_.both(arena_.cat(shape), digits_part), d.odd_test);
  return arena_.cat(exact, arena_.star(digit(0, 0)));
}

// Mantissas with f digits after the point and exponent x: N * 10^t = 0 mod c with t = x - f + s >= 0.
RegexId NumberLanguage::fraction_multiples(const Divisor& d) {
  RegexId out = RegexArena::empty();
  const auto s = static_cast<int64_t>(d.s), twos = static_cast<int64_t>(d.twos);
  const auto exact = [&](uint32_t f, int64_t x) {
    const int64_t t = x - f + s;
    if (t < 0) return;
    const RegexId parts[] = {exact_mantissas(d, f, reduced(d.c, t)), e_, exponent_equal(x)};
    out = arena_.alt(out, arena_.cat(parts));
  };
  // Exponents so large that only `odd` matters; the same for every f up to `free`.
  const int64_t free = std::min<int64_t>(kMantissaDigits, kLongMin + s - twos);
  if (free > 0) {
    const RegexId fraction[] = {digits(0, static_cast<uint32_t>(free) - 1), digit(1, 9), arena_.star(digit(0, 0))};
    const RegexId shape = arena_.cat(digit(1, 9), arena_.cat(point_, arena_.cat(fraction)));
    const RegexId parts[] = {arena_.both(shape, d.odd_test), e_, long_exponent(kLongMin, kNone)};
    out = arena_.cat(parts);
  }
  for (uint32_t f = static_cast<uint32_t>(std::max<int64_t>(free, 0)) + 1; f <= kMantissaDigits; ++f) {
    const int64_t enough = f + twos - s;
    const RegexId parts[] = {exact_mantissas(d, f, d.odd), e_, long_exponent(enough, kNone)};
    out = arena_.alt(out, arena_.cat(parts));
    for (int64_t x = kLongMin; x < enough; ++x) exact(f, x);
  }
  for (uint32_t f = 1; f <= kMantissaDigits; ++f)
    for (int64_t x = kLongMax; x - f + s >= 0; --x) exact(f, x);
  return out;
}

RegexId NumberLanguage::multiple_of(const Decimal& divisor) {
  if (divisor.digits == "1" && divisor.exponent == 0 && !divisor.negative) return integers();
  const Divisor d(arena_, divisor);
  RegexId out = plain_multiples(d);
  if (!canonical_) {
    out = arena_.alt(out, arena_.alt(one_digit_multiples(d), fraction_multiples(d)));
    return either_sign(out);
  }
  // No "-0": the only canonical spelling of zero is "0".
  const RegexId negative = arena_.both(out, arena_.cat(arena_.alt(digit(1, 9), arena_.literal("0.")), RegexArena::anything()));
  return arena_.alt(out, minus_sign(negative));
}

}  // namespace structgen
