// The named groups of a pattern in a text: where each of them was read.
//
// In: a Pattern with groups, and a text. Out: spans in bytes, one for each time a group was read. Cost:
// for each character at most the size of the pattern with its counters written out, usually a small
// part of it. Nothing backtracks.
//
// Of several readings the one counts that Python's `re` would choose: the first alternative, the
// longest repetition or, if it is lazy, the shortest, decided from left to right. Groups inside of an
// assertion are not reported. Source: the virtual machine of Pike (sam, 1987), as described by R. Cox,
// "Regular Expression Matching: the Virtual Machine Approach" (2009): all readings at once, in the
// order of preference.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "regex/syntax.h"

namespace structgen {

struct GroupSpan {
  // The index of the group's name in Pattern::names.
  uint32_t name;
  // The span in bytes of the text; `end` is the offset behind its last byte.
  std::size_t begin, end;
};

// Returns the spans of the named groups, sorted by begin, longer spans first. If the text can be matched in
// several ways, the way that a backtracking engine would find first counts. With `complete` the text must
// match the whole pattern. Without it the text may go on, and groups that have not ended are left out. Throws
// kBudgetExceeded beyond the limits of groups.cc.
std::vector<GroupSpan> find_groups(const Pattern& pattern, std::string_view text, bool complete);

}  // namespace structgen
