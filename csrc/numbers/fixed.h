// Decimals in fixed point: whole numbers of 128 bits, in units of a power of ten.
//
// In: an exact decimal, and a unit. Out: how many units it is. Cost: linear in its digits.
#pragma once

#include <algorithm>
#include <cstdint>

#include "numbers/decimal.h"

namespace structgen {

// The widest integer of the compiler, which holds 38 decimal digits.
__extension__ using Wide = unsigned __int128;

inline Wide power_of_ten(uint32_t n) {
  Wide out = 1;
  for (; n > 0; --n) out *= 10;
  return out;
}

// Writes the magnitude of d as a number of units of 10^unit, rounded down, or up if `up` is true. Sets
// `whole` if nothing was rounded. Returns false if the result has more than `most` digits (at most 38).
inline bool in_units(const Decimal& d, int64_t unit, bool up, int64_t most, Wide& out, bool& whole) {
  const int64_t exponent = d.exponent - unit;
  const auto size = static_cast<int64_t>(d.digits.size());
  if (size + exponent > most || size > most) return false;
  out = 0;
  whole = exponent >= 0;
  const int64_t kept = whole ? size : std::max<int64_t>(size + exponent, 0);
  for (int64_t i = 0; i < kept; ++i)
    out = out * 10 + static_cast<uint32_t>(d.digits[static_cast<std::size_t>(i)] - '0');
  if (whole)
    out *= power_of_ten(static_cast<uint32_t>(exponent));
  else if (up)
    // A Decimal has no trailing zeros, so the digits left out are not all 0.
    ++out;
  return true;
}

}  // namespace structgen
