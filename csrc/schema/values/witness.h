// What is seen of a typed formula without an automaton: that it holds for some text or number, that its
// numbers are whole.
//
// In: a formula restricted to strings or numbers. Out: true where that is seen at once. Cost: linear in
// its atoms.
#pragma once

#include "schema/formula/formula.h"

namespace structgen {

bool plainly_nonempty(FormulaSpace& formulas, TypedId p);

// `integer`, and constants that are all whole: what is written without a point in the plain spelling.
bool asks_whole(FormulaSpace& formulas, TypedId p);
// Constants among which one has a fraction: where 0.5 may be written, 1 may be 1.0.
bool names_fractions(FormulaSpace& formulas, TypedId p);

}  // namespace structgen
