// A divisor as the automata of multipleOf see it.
//
// In: an exact decimal. Out: c / 10^s in whole numbers. Cost: linear in its digits.
#pragma once

#include <cstdint>

#include "schema/number.h"

namespace structgen {

__extension__ using Wide = unsigned __int128;

struct NumberLanguage::Divisor {
  uint64_t c = 1, odd = 1;  // odd = c without its factors 2 and 5
  uint32_t s = 0;
  int64_t twos = 0;  // smallest t with c / odd | 10^t

  explicit Divisor(const Decimal& d);  // kSchemaTooComplex above 18 digits or 40 decimals
};

}  // namespace structgen
