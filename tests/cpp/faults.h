// Allocations that fail when they are told to.
//
// In: a number of allocations. Out: the one that comes after so many in this thread throws std::bad_alloc (or
// returns null, of malloc and calloc in the engine's own objects), once. Cost: a counter an allocation.
#pragma once

#include <cstdint>

namespace structgen_tests {

// The n-th allocation of this thread from now on fails; 0: none does.
void fail_allocation(int64_t n);
// Whether one has failed since the last call of fail_allocation().
bool allocation_failed();
// Where: addresses of the call, for addr2line.
int failed_at(void*** frames);

}  // namespace structgen_tests
