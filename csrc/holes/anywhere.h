// What may be left of a regex once some text of it was read, whichever.
//
// In: a regex. Out: its derivatives by every text. Cost: a step a derivative and class of bytes, once an
// arena; two shapes that have thousands are cut short:
//   - a set of literals stays one: where a text of it may end is told without reading it;
//   - "any text but these few" is "any text" wherever texts of any beginning do, because only some of them
//     are gone.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "regex/regex.h"

namespace structgen {

struct Anywhere {
  std::vector<RegexId> left;     // one byte or more was read, or none: the regex itself is among them
  std::vector<RegexId> sets;     // literals of which none, some or all bytes are to be read
  std::vector<uint32_t> labels;  // 1 + those of texts that end there, ascending; 0 stands for none
};

const Anywhere& anywhere(RegexArena& regexes, RegexId r);

// "Any text but these few" as "any text", else r.
RegexId without_exceptions(RegexArena& regexes, RegexId r);

// Texts of a set of literals that may end within `rest`: begun before it, and with a byte of it.
struct Endings {
  std::vector<uint32_t> plain;  // labels, 1 + each or 0 for none, of those that end behind its first quote
  std::vector<RegexId> others;  // sets of one text each, of which it is to be found out where they end
};
Endings ending_in(RegexArena& regexes, RegexId set, std::string_view rest);

}  // namespace structgen
