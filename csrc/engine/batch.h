// Masks for many matchers at once.
//
// In: matchers and row pointers. Out: filled rows, and the failure of each row that has one. Cost: one
// row each; rows whose mask is known are copied without any lock, and copied rows scale with the
// threads. The worker threads live as long as the process: a pool built per call costs more than a
// batch of copies.
#pragma once

#include <exception>
#include <span>
#include <vector>

#include "engine/matcher.h"
#include "engine/sole.h"

namespace structgen {

// threads <= 1: in the calling thread. Every row is either filled, or its failure stands at its index
// in the list and its words are zero, so that nothing is allowed where nothing is known. That another thread
// holds a matcher is a failure of its row. The list is empty if no row failed. The error of a row is never
// thrown; an interrupt is, and so is a lack of memory for the list; then the words of all rows are zero.
std::vector<std::exception_ptr> fill_rows(std::span<Sole<Matcher>* const> matchers,
                                          std::span<uint32_t* const> rows, unsigned threads);

}  // namespace structgen
