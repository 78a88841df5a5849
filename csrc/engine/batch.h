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

// Fills a row for each matcher; with threads <= 1 only the calling thread works. If a row fails, its words
// become zero, so that it allows no token, and its error stands at its index in the result. If no row fails,
// the result is empty. A matcher that another thread holds is a failure of its row. Only an interrupt, or a
// lack of memory for the result, is thrown; all words are then zero.
std::vector<std::exception_ptr> fill_rows(std::span<Sole<Matcher>* const> matchers,
                                          std::span<uint32_t* const> rows, unsigned threads);

}  // namespace structgen
