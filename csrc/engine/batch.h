// Masks for many matchers at once.
//
// In: matchers and row pointers. Out: filled rows, and an error for each row that failed. Cost: the cost of a
// row for each matcher. Rows whose mask is known are copied without a lock, and the copies are divided among
// the threads. The worker threads live as long as the process, because making threads for each call costs
// more than a batch of copies.
#pragma once

#include <exception>
#include <span>
#include <vector>

#include "engine/matcher.h"
#include "engine/sole.h"

namespace structgen {

// Fills a row for each matcher; with threads <= 1 only the calling thread works. If a row fails, its words
// become zero, so that it allows no token, and its error stands at its index in the result. If no row fails,
// the result is empty. A matcher that another thread is using fails its row. Only an interrupt, or a lack of
// memory for the result, is thrown; all words are then zero.
std::vector<std::exception_ptr> fill_rows(std::span<Sole<Matcher>* const> matchers,
                                          std::span<uint32_t* const> rows, unsigned threads);

}  // namespace structgen
