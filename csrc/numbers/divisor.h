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
  // The number of zeros behind a number from which on one zero more does not change whether c divides it.
  int64_t zeros = 0;

  // Throws kSchemaTooComplex, see NumberLanguage::multiple_of().
  explicit Divisor(const Decimal& d);
};

// Plain unsigned decimals whose value is M / 10^s, where c divides M and first <= M <= last. Both ends are
// multiples of c. Of the multiples of 0.75 between 1 and 3, c is 75, s is 2, and M is 150, 225 or 300.
struct Multiples {
  uint64_t c;
  uint32_t s = 0;
  Wide first = 0, last = 0;
  // False: there is no last.
  bool ends = false;
  // If there is no last: the most digits before the point, or kUnlimited.
  uint32_t most_whole = NumberLanguage::kUnlimited;
  // A fraction of at most so many digits may end in zeros.
  uint32_t zeros_until = 0;
  // False: there is no fraction.
  bool point = true;
  // True: the point stands behind the first digit, which is not 0, and a fraction follows.
  bool mantissa = false;
};

}  // namespace structgen
