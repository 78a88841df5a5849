// Memory that is about to be used, made ready by another thread.
//
// In: a range of fresh memory. Out: nothing; some time later its pages are there. Cost: a look at a lock.
// Reasoning: the first touch of a page costs the toucher one and a half microseconds on a virtual machine,
// ten to twenty times a schema that is compiled where nothing was freed before. The range may be gone by the
// time it is its turn: making pages ready changes no content, and is refused where nothing is mapped. Best
// effort: where the system cannot, and where too many wait, nothing happens.
#pragma once

#include <cstddef>

namespace structgen {

constexpr std::size_t kAheadBytes = 64 << 10;  // ranges from this size are worth a call

void make_ready(const void* at, std::size_t bytes);

}  // namespace structgen
