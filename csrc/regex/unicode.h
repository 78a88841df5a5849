// Unicode properties and case folding, as sets of code points.
//
// In: a property name as patterns write it (`L`, `Letter`, `Script=Greek`, `Alphabetic`). Out: its set.
// Cost: a linear search over the names (about 250), then a copy of the ranges; case closure walks the
// 1,400 folding pairs. The tables are written by tools/make_unicode.py.
#pragma once

#include <optional>
#include <string_view>

#include "regex/charset.h"

namespace structgen {

// \p{name} or \p{name=value}; nothing when the name is unknown.
std::optional<CodepointSet> unicode_property(std::string_view name, std::string_view value);

// Every character that equals a member under simple case folding (the `i` flag).
CodepointSet case_closure(const CodepointSet& set);
// The same in Python's re, which compares by str.lower() and pairs of its own: the four letters i are equal.
CodepointSet python_case_closure(const CodepointSet& set);
// The same of ASCII letters alone.
CodepointSet ascii_case_closure(const CodepointSet& set);

// The classes of the two flavours.
const CodepointSet& ecma_space();    // \s
const CodepointSet& ascii_word();    // [A-Za-z0-9_]
const CodepointSet& ascii_digit();   // [0-9]
const CodepointSet& ascii_space();   // Python's \s under (?a)
const CodepointSet& python_space();  // str.isspace
const CodepointSet& python_word();   // str.isalnum or _
const CodepointSet& python_digit();  // category Nd

}  // namespace structgen
