// The divisor of multipleOf, and the multiples that an automaton reads (multiple_between.cc).
//
// In: an exact decimal. Out: c / 10^s in whole numbers; s is negative if c * 10^-s has more than 18
// digits. Of 0.75 c is 75 and s is 2. Cost: linear in its digits.
#pragma once

#include <cstdint>

#include "numbers/fixed.h"
#include "numbers/number.h"

namespace structgen {

struct NumberLanguage::Divisor {
  uint64_t c = 1;
  int64_t s = 0;
  // From this many zeros behind a number on, one more zero does not change whether c divides the number.
  int64_t zeros = 0;

  // Throws kSchemaTooComplex for the divisors that NumberLanguage::multiple_of() refuses.
  explicit Divisor(const Decimal& d);
};

// Plain unsigned decimals whose value is M / 10^s, where c divides M and first <= M <= last. Both ends are
// multiples of c. For the multiples of 0.75 between 1 and 3, c is 75, s is 2, and M is 150, 225 or 300.
struct Multiples {
  uint64_t c;
  uint32_t s = 0;
  Wide first = 0, last = 0;
  // Tells whether `last` is a limit.
  bool ends = false;
  // The largest number of digits before the point if there is no `last`; kUnlimited for any.
  uint32_t most_whole = NumberLanguage::kUnlimited;
  // A fraction of at most this many digits may end in zeros.
  uint32_t zeros_until = 0;
  // Tells whether a number may have a fraction.
  bool point = true;
  // Tells that the decimals are mantissas: the point stands behind the first digit, which is not 0, and a
  // fraction follows.
  bool mantissa = false;
};

}  // namespace structgen
