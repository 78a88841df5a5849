// What may be left of a regex when an unknown beginning of some text of the regex was read.
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

// What may be left of a regex behind an unknown beginning of one of its texts.
struct Anywhere {
  // The regex itself and its derivatives, without those that can only read the empty text.
  std::vector<RegexId> left;
  // Sets of literals, each of which stands for all its derivatives: no byte, some bytes, or all bytes of a
  // literal may have been read.
  std::vector<RegexId> sets;
  // The labels of texts that may have been read to their end: 1 + the label, or 0 for a text without one;
  // ascending.
  std::vector<uint32_t> labels;
};

const Anywhere& anywhere(RegexArena& regexes, RegexId r);

// Returns "any text" if the regex means "any text but these few". Any other regex is returned unchanged.
RegexId without_exceptions(RegexArena& regexes, RegexId r);

// The texts of a set of literals that may end at the first quote of `rest`, if an unknown beginning of theirs
// stands before `rest`.
struct Endings {
  // The labels of the texts that end there in each spelling: 1 + the label, or 0 for a text without one.
  std::vector<uint32_t> plain;
  // The other texts, each as a set of its own. A caller finds their ends by reading `rest` byte by byte.
  std::vector<RegexId> others;
};
Endings ending_in(RegexArena& regexes, RegexId set, std::string_view rest);

}  // namespace structgen
