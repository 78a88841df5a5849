// The position of an error in a schema: a JSON Pointer and a keyword.
//
// In: a schema that no value satisfies, or an error that knows the number of its schema
// (Error::schema). Out: an error with a JSON Pointer. Cost: one question to the solver for each schema
// on the way down, at most 200 steps. Nothing here runs unless there is an error.
#pragma once

#include "base/error.h"
#include "schema/decide/solve.h"
#include "schema/lower/lower.h"
#include "schema/read/resolve.h"

namespace structgen {

// Throws kUnsatisfiableSchema. Of the schemas that every instance of the root, or some value in every
// instance, would have to satisfy, the error names the innermost one that has no instance.
[[noreturn]] void raise_unsatisfiable(SchemaSet& schemas, Lowering& lowering, Solver& solver);
// Completes an error that has the number of its schema. It adds the pointer of the schema and, if only one
// keyword of the schema can be the cause, this keyword.
void locate(Error& e, const SchemaSet& schemas, const Lowering& lowering);

}  // namespace structgen
