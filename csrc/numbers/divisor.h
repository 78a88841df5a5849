// A divisor as the automata of multipleOf see it.
//
// In: an exact decimal. Out: c / 10^s in whole numbers; s is negative if c * 10^-s has more than 18
// digits. Of 0.75 c is 75 and s is 2. Cost: linear in its digits.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>

#include "numbers/fixed.h"
#include "numbers/number.h"

namespace structgen {

struct NumberLanguage::Divisor {
  // `odd` is c without its factors 2 and 5: the divisor that remains when enough zeros follow.
  uint64_t c = 1, odd = 1;
  int64_t s = 0;
  // The smallest t such that 10^t is a multiple of c / odd.
  int64_t twos = 0;

  // Throws kSchemaTooComplex, see NumberLanguage::multiple_of().
  explicit Divisor(const Decimal& d);
};

// A way to complete a decimal number: `whole` digits, then `fraction` digits behind a point. The point
// is written unless one was read (`point`).
struct Completing {
  uint32_t whole, fraction;
  bool point;

  uint32_t digits() const { return whole + fraction; }
  std::string text(Wide y) const {
    std::string out(digits(), '0');
    for (std::size_t i = out.size(); i > 0; --i, y /= 10) out[i - 1] = static_cast<char>('0' + y % 10);
    if (point && fraction > 0) out.insert(whole, 1, '.');
    return out;
  }
};

// Calls `take` with every way to add digits, ordered by the length of the text, until it returns true.
// `grows`: the whole part may get longer. `point`: a point was read.
template <class Take>
bool complete(bool grows, bool point, Take&& take) {
  // The digits of a Wide, minus a few.
  constexpr uint32_t kLongest = 36;
  for (uint32_t length = 1; length <= kLongest; ++length) {
    if (point) {
      if (take(Completing{0, length, false})) return true;
      continue;
    }
    if (grows && take(Completing{length, 0, true})) return true;
    for (uint32_t fraction = 1; fraction < length; ++fraction)
      if ((grows || fraction + 1 == length) && take(Completing{length - fraction - 1, fraction, true}))
        return true;
  }
  return false;
}

// The least y of `digits` digits such that (r * 10^digits + y) * 10^zeros is 0 mod c; with `nonzero`,
// one whose last digit is not 0. False: there is none.
inline bool least_digits(uint64_t r, uint32_t digits, uint32_t zeros, uint64_t c, bool nonzero, Wide& y) {
  for (; zeros > 0 && std::gcd<uint64_t>(c, 10) > 1; --zeros) c /= std::gcd<uint64_t>(c, 10);
  const Wide size = power_of_ten(digits);
  y = (c - r % c * (size % c) % c) % c;
  for (int tries = 0; tries < 10 && y < size; ++tries, y += c)
    // The last digits repeat after ten steps.
    if (!nonzero || y % 10 != 0) return true;
  return false;
}

}  // namespace structgen
