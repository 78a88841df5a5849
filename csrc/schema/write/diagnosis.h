// The place and the keyword of an error in a schema.
//
// In: a schema that no value satisfies, or an error that knows the number of a schema (Error::schema). Out:
// an error with a JSON pointer. Cost: a question to the solver for each schema on the way down, 200 steps at
// most.
#pragma once

#include "base/error.h"
#include "schema/decide/solve.h"
#include "schema/lower/lower.h"
#include "schema/read/resolve.h"

namespace structgen {

// Throws kUnsatisfiableSchema at the innermost schema along the way down that has no instance of its own.
[[noreturn]] void raise_unsatisfiable(SchemaSet& schemas, Lowering& lowering, Solver& solver);
// Gives an error that knows the number of its schema that schema's pointer and, where it is clear, keyword.
void place(Error& e, const SchemaSet& schemas, const Lowering& lowering);

}  // namespace structgen
