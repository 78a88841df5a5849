// The C++ tests: containers, sets of stacks and the regex algebra against models that share no code with
// them, and the core from several threads.
//
// `make test-cpp` runs them; `build/.../structgen_tests -tc="a pattern*"` runs some; STRUCTGEN_SEED and
// STRUCTGEN_LONG mean what they mean to the Python tests.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>
