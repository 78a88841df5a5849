// What may be left of a regex when an unknown beginning of its texts was read.
//
// In: a regex. Out: its derivatives by every text. Cost: a step for each derivative and class of bytes,
// once an arena. Two shapes with thousands of derivatives are cut short:
//   - A set of literals stays one set: ending_in() finds where a text of it may end without reading it.
//   - "Any text but these few" counts as "any text" where a text may have any beginning, because only a few
//     of the texts are missing.
//
// Example, the regex `abc|x*`: `left` is the regex itself, `bc`, `c` and `x*`; `labels` is 0 alone.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "regex/regex.h"

namespace structgen {

// What may be left of a regex behind an unknown beginning.
struct Anywhere {
  // Holds the derivatives that have at least one byte to read, and the regex itself.
  std::vector<RegexId> left;
  // Holds the sets of literals that stand for all their derivatives: none, some or all bytes of a literal may
  // have been read.
  std::vector<RegexId> sets;
  // 1 + the label of each text that may have ended, ascending; 0 stands for a text without a label.
  std::vector<uint32_t> labels;
};

// Returns what may be left of r, which is computed once an arena.
const Anywhere& anywhere(RegexArena& regexes, RegexId r);

// Returns "any text" for "any text but these few", and any other regex as it is.
RegexId without_exceptions(RegexArena& regexes, RegexId r);

// The texts of a set of literals that begin before `rest` and end inside it, behind at least one byte of it.
struct Endings {
  // For each text that ends with the first quote of `rest`, 1 + its label, or 0 if it has none.
  std::vector<uint32_t> plain;
  // Sets of one text each whose end has to be found by stepping.
  std::vector<RegexId> others;
};
Endings ending_in(RegexArena& regexes, RegexId set, std::string_view rest);

}  // namespace structgen
