// Escapes and bracket classes of a pattern.
//
// In: a cursor into the pattern, the flavour and the flags in force. Out: code points and sets.
// Cost: linear in the text read; one sort of a class's ranges.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "regex/charset.h"
#include "regex/syntax.h"

namespace structgen {

struct PatternFlags {
  bool ignore_case = false;  // i
  bool dot_all = false;      // s
  bool multi_line = false;   // m
  bool verbose = false;      // x, Python
  bool ascii = false;        // \d, \w, \s and \b know ASCII alone: a, Python, or the caller's wish
  bool ascii_case = false;   // i knows ASCII letters alone: a, Python
};

// Where the parser is. All reads go through here; errors carry the offset.
struct PatternCursor {
  std::string_view text;
  std::size_t at = 0;
  Flavor flavor = Flavor::kEcma;
  PatternFlags flags;

  bool done() const { return at >= text.size(); }
  bool looking_at(std::string_view s) const { return text.substr(at, s.size()) == s; }
  bool eat(std::string_view s) {
    if (!looking_at(s)) return false;
    at += s.size();
    return true;
  }
  char peek() const { return done() ? '\0' : text[at]; }
  uint32_t next_char();  // decodes one code point
  [[noreturn]] void fail(std::string fact, std::size_t offset) const;
  [[noreturn]] void fail(std::string fact) const { fail(std::move(fact), at); }
};

// One escape after its backslash, as it means outside and inside of brackets alike: either one
// character or a set (\d, \p{..}).
struct EscapeResult {
  bool is_set = false;
  uint32_t c = 0;
  CodepointSet set;
};
// `start` is the offset of the backslash, which has been read. Flags (case) are applied to sets: Python's \w,
// \d and \s and their complements are what they are without the flag.
EscapeResult read_escape(PatternCursor& in, std::size_t start, bool in_brackets);

// A bracket class whose '[' has been read; flags (case) applied.
CodepointSet read_brackets(PatternCursor& in, std::size_t start);

// The set, with what equals its members where the flag i stands.
CodepointSet with_cases(const PatternCursor& in, CodepointSet set);

CodepointSet dot_class(const PatternCursor& in);

}  // namespace structgen
