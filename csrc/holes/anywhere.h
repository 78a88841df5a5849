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

struct Anywhere {
  // The derivatives, the regex itself among them, with at least one byte to read.
  std::vector<RegexId> left;
  // Sets of literals of which none, some or all bytes are still to be read.
  std::vector<RegexId> sets;
  // 1 + the label of each text that may end here, ascending; 0 stands for no label.
  std::vector<uint32_t> labels;
};

const Anywhere& anywhere(RegexArena& regexes, RegexId r);

// Turns "any text but these few" into "any text"; any other regex stays r.
RegexId without_exceptions(RegexArena& regexes, RegexId r);

// The texts of a set of literals that may end inside `rest`: begun before it, and with at least one
// byte in it.
struct Endings {
  // 1 + the label (0: none) of each text that ends behind the first quote of `rest`.
  std::vector<uint32_t> plain;
  // Sets of one text each whose ends have to be found by stepping.
  std::vector<RegexId> others;
};
Endings ending_in(RegexArena& regexes, RegexId set, std::string_view rest);

}  // namespace structgen
