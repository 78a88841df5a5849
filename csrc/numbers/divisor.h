// A divisor as the automata of multipleOf see it.
//
// In: an exact decimal. Out: c / 10^s in whole numbers; s is below 0 where c * 10^-s has more than 18 digits.
// Cost: linear in its digits.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>

#include "numbers/fixed.h"
#include "numbers/number.h"

namespace structgen {

struct NumberLanguage::Divisor {
  uint64_t c = 1, odd = 1;  // odd = c without its factors 2 and 5
  int64_t s = 0;
  int64_t twos = 0;  // smallest t with c / odd | 10^t

  explicit Divisor(const Decimal& d);  // kSchemaTooComplex, see NumberLanguage::multiple_of()
};

// What completes a decimal number, shortest first: `whole` digits, then `fraction` digits behind a point that
// is written unless one was read.
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

// Calls `take` with every way to add digits, by the length of the text, until it is true. `grows`: the whole
// part may; `point`: one was read.
template <class Take>
bool complete(bool grows, bool point, Take&& take) {
  constexpr uint32_t kLongest = 36;  // digits of a Wide, less a few
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

// The least y of so many digits with (r * 10^digits + y) * 10^zeros = 0 mod c; `nonzero`: that ends in none.
// False: there is none.
inline bool least_digits(uint64_t r, uint32_t digits, uint32_t zeros, uint64_t c, bool nonzero, Wide& y) {
  for (; zeros > 0 && std::gcd<uint64_t>(c, 10) > 1; --zeros) c /= std::gcd<uint64_t>(c, 10);
  const Wide size = power_of_ten(digits);
  y = (c - r % c * (size % c) % c) % c;
  for (int tries = 0; tries < 10 && y < size; ++tries, y += c)
    if (!nonzero || y % 10 != 0) return true;  // the last digits repeat after ten steps
  return false;
}

}  // namespace structgen
