// The code of a compile, fetched into the processor's caches before it runs.
//
// In: nothing; csrc/hot_functions.ld says which functions lie side by side. Out: nothing. Cost: 5 to 20 us,
// after a pause; a look at the clock else. Reasoning: a compile and its first mask run 170 KB of code, most
// of it once. After a pause other work has taken the caches, and the processor waits for each of 2,700 lines
// of code in turn, as against 700 of data (callgrind's simulation of an empty cache): a third of the time to
// first mask. Asked for at once they come side by side. Where the linker could not put the functions
// together, nothing happens.
#pragma once

namespace structgen {

void fetch_hot_code();

}  // namespace structgen
