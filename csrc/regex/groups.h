// Where the named groups of a pattern lie in a text.
//
// In: a Pattern with groups, a text. Out: spans in bytes, one for every time a group was read. Cost: the size
// of the written-out pattern for each character at most, usually a few of its parts; nothing backtracks.
//
// Which reading counts is what Python's `re` says: of alternatives the first, of repetitions the longest or,
// where they are lazy, the shortest, decided from left to right. Groups inside an assertion are not reported.
// Source: the virtual machine of Pike (sam, 1987) as described by R. Cox, "Regular Expression Matching: the
// Virtual Machine Approach" (2009): all readings at once, in the order of their preference.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "regex/syntax.h"

namespace structgen {

struct GroupSpan {
  uint32_t name;           // index into Pattern::names
  std::size_t begin, end;  // bytes
};

// `complete`: the text ends here and the whole pattern matches it; else it may go on, the preferred reading
// of what there is counts, and groups that did not end yet are left out. Ordered by begin, longer ones first.
// Throws kBudgetExceeded.
std::vector<GroupSpan> find_groups(const Pattern& pattern, std::string_view text, bool complete);

}  // namespace structgen
