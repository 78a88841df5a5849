// Unicode properties and case folding, as sets of code points.
//
// In: the name of a property in the form of patterns (`L`, `Letter`, `Script=Greek`, `Alphabetic`).
// Out: its set. Cost: a linear search over about 250 names, and a copy of the ranges. Case closure
// goes through the 1,400 pairs of case folding. The tables are written by tools/make_unicode.py.
#pragma once

#include <optional>
#include <string_view>

#include "regex/charset.h"

namespace structgen {

// Returns the set of \p{name} or \p{name=value}; no value if there is no such name.
std::optional<CodepointSet> unicode_property(std::string_view name, std::string_view value);

// Returns the set with every character that simple case folding makes equal to a member (the flag i).
CodepointSet case_closure(const CodepointSet& set);
// Returns the set with every character that Python's re makes equal to a member: by str.lower() and by a list
// of pairs. i, I and the Turkish dotless and dotted letters are equal.
CodepointSet python_case_closure(const CodepointSet& set);
// Returns the set and the other case of each of its ASCII letters.
CodepointSet ascii_case_closure(const CodepointSet& set);

// The sets that \s, \w and \d name, in ECMA and in Python.
const CodepointSet& ecma_space();    // \s
const CodepointSet& ascii_word();    // [A-Za-z0-9_]
const CodepointSet& ascii_digit();   // [0-9]
const CodepointSet& ascii_space();   // Python's \s under (?a)
const CodepointSet& python_space();  // str.isspace
const CodepointSet& python_word();   // str.isalnum or _
const CodepointSet& python_digit();  // category Nd

}  // namespace structgen
