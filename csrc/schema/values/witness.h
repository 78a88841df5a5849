// Facts about a formula of strings or numbers that need no automaton: that some text or number
// satisfies it, or that its numbers are whole.
//
// In: a formula restricted to strings or numbers. Out: true if the answer is surely yes. False means that the
// answer is not known. Cost: linear in the atoms.
#pragma once

#include "schema/formula/formula.h"

namespace structgen {

// Returns true if some text or number surely satisfies p. After a false an automaton has to decide.
bool plainly_nonempty(FormulaSpace& formulas, TypedId p);

// Returns how many bytes of JSON suffice for some text or number of p, as an upper bound; 0 if the atoms show
// no such text or number. p asks something.
uint64_t plain_bytes(FormulaSpace& formulas, TypedId p);

// Returns true for `integer` and for constants that are all whole. In the plain spelling these numbers are
// written without a point.
bool asks_whole(FormulaSpace& formulas, TypedId p);
// Returns true for constants of which at least one has a fraction. With `"enum": [0.5, 1]` the number 1 may
// also be written 1.0.
bool names_fractions(FormulaSpace& formulas, TypedId p);

}  // namespace structgen
