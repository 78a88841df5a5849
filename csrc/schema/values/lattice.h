// Numbers that are few: multiples of something between two bounds, tried one by one.
//
// In: a conjunction of number conditions. Out: the numbers that meet them, where at most 4096 multiples of a
// common step lie between its bounds and at most 256 of them meet the rest. Cost: linear in the candidates.
// The automata of several divisors multiply (6.75, 19, 9.5, 2.125 and not 2, 5, 7, 11, 37 have 10^8 states
// together); the numbers between -100000 and -10000 that 6.75, 19, 9.5 and 2.125 divide are eleven.
#pragma once

#include <vector>

#include "numbers/decimal.h"
#include "schema/formula/formula.h"

namespace structgen {

struct FewNumber {
  Decimal value;
  bool whole;  // what asks for a whole number holds it: in the plain spelling it has no point
};

// False: they are not told this way.
bool few_numbers(FormulaSpace& formulas, TypedId p, std::vector<FewNumber>& out);

}  // namespace structgen
