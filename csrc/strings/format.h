// The formats of JSON Schema as regular languages.
//
// In: a format name. Out: its language in any spelling.
// Cost: a name is a linear search in kFormats (format.cc); a pattern is parsed once a process; lowering takes
// from 10 us (uuid) to 300 (date-time) and 5 ms (idn-hostname), so callers keep the RegexId per arena.
// Sources: RFC 3339, 5321, 6531, 1123, 5890-5893, 2673, 4291, 3986, 3987, 6570, 6901, ECMA-262.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/ids.h"
#include "regex/spelling.h"

namespace structgen {

class RegexArena;

struct FormatInfo {
  std::string_view name;
  bool exact;                // the language is the specification's; otherwise it contains it
  std::string_view note;     // what is not enforced, for the report; empty when exact
  std::string (*pattern)();  // ECMA pattern of the whole text
};

// nullptr when the name is no format of JSON Schema (an annotation then).
const FormatInfo* find_format(std::string_view name);
std::span<const FormatInfo> all_formats();

// The texts of a format, with what ends a text. In the arena's own spelling it is remembered.
RegexId lower(RegexArena& arena, const FormatInfo& format, const Spelling& spelling);

}  // namespace structgen
