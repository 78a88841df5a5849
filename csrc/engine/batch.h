// Masks for many matchers at once.
//
// In: matchers and row pointers. Out: filled rows, and what went wrong with which. Cost: one row each; rows
// whose mask is known are copied without any lock. The worker threads live as long as the process: a pool
// built per call costs more than a batch of copies.
#pragma once

#include <exception>
#include <span>
#include <vector>

#include "engine/matcher.h"

namespace structgen {

// threads <= 1: in the calling thread. Every row is filled, or its failure stands at its place and its words
// are zero: nothing is allowed where nothing is known. No failures: an empty list. What throws is the list.
std::vector<std::exception_ptr> fill_rows(std::span<Matcher* const> matchers, std::span<uint32_t* const> rows,
                                          unsigned threads);

}  // namespace structgen
