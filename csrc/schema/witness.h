// Typed formulas that plainly hold for some text or number: seen without an automaton. See witness.cc.
//
// In: a formula restricted to strings or numbers. Out: true where a value is seen at once. Cost: linear in
// its atoms.
#pragma once

#include "schema/formula.h"

namespace structgen {

bool plainly_nonempty(FormulaSpace& formulas, FormulaId p);

}  // namespace structgen
