// The formats of JSON Schema as regular languages.
//
// In: the name of a format. Out: its language in any spelling. Cost: a name is a linear search in
// kFormats (format.cc). A pattern is parsed once per process. Lowering takes from 10 us (uuid) over 300
// us (date-time) to 5 ms (idn-hostname), so callers keep the RegexId per arena. Sources: RFC 3339,
// 5321, 6531, 1123, 5890-5893, 2673, 4291, 3986, 3987, 6570, 6901, ECMA-262.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/ids.h"
#include "regex/spelling.h"

namespace structgen {

class RegexArena;

struct FormatInfo {
  std::string_view name;
  // The number of bytes of a shortest text.
  uint32_t least;
  // True if the regex accepts exactly what the specification accepts; false if it accepts more.
  bool exact;
  // For the report: what of the format is not enforced; empty if `exact`.
  std::string_view note;
  // Returns an ECMA pattern that matches the whole text.
  std::string (*pattern)();
};

// Returns the format of this name, or nullptr for an unknown name, which constrains nothing.
const FormatInfo* find_format(std::string_view name);
std::span<const FormatInfo> all_formats();

// Returns the texts of a format in `spelling`, each with its terminator. In the arena's own spelling the
// result is remembered.
RegexId lower(RegexArena& arena, const FormatInfo& format, const Spelling& spelling);

}  // namespace structgen
