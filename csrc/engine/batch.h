// Masks for many matchers at once.
//
// In: matchers and row pointers. Out: filled rows. Cost: one row each; rows whose mask is known are copied
// without any lock. The worker threads live as long as the process: a pool built per call costs more than a
// batch of copies.
#pragma once

#include <span>

#include "engine/matcher.h"

namespace structgen {

// threads <= 1: in the calling thread. Exceptions of a row are rethrown after all rows are done.
void fill_rows(std::span<Matcher* const> matchers, std::span<uint32_t* const> rows, unsigned threads);

}  // namespace structgen
