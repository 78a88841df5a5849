// Conditions that few numbers satisfy: the multiples of a common step between two bounds are tried one by
// one.
//
// In: a conjunction of conditions on numbers. Out: the numbers that satisfy the conjunction, if at most 4096
// multiples of a common step lie between its bounds, of which at most 256 satisfy all conditions. Cost:
// linear in the number of multiples.
//
// Rejected: automata. The numbers of states of several divisors multiply. "Multiple of 6.75, 19, 9.5 and
// 2.125, and not of 2, 5, 7, 11 or 37" has 10^8 states, while only eleven numbers between -100000 and -10000
// are multiples of 6.75, 19, 9.5 and 2.125.
#pragma once

#include <vector>

#include "numbers/decimal.h"
#include "schema/formula/formula.h"

namespace structgen {

struct FewNumber {
  Decimal value;
  // True if only the canonical lexeme may be written. A condition asks for a whole number, so in the plain
  // spelling 12 must not be written 12.0 (Numbers::language).
  bool whole;
};

// Lists the numbers that satisfy p, if there are few multiples of p's divisors between its bounds. Returns
// false if there are too many, or if p has another form; `out` is then not usable.
bool few_numbers(FormulaSpace& formulas, TypedId p, std::vector<FewNumber>& out);

}  // namespace structgen
