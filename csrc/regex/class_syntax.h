// Escapes and bracket classes of a pattern: \d, \u0041, [a-z\s].
//
// In: a cursor into the pattern, its dialect and the flags in force. Out: code points and sets. Cost:
// linear in the text that is read, and one sort of the ranges of a class.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "regex/charset.h"
#include "regex/syntax.h"

namespace structgen {

// The flags in force at a place of the pattern.
struct PatternFlags {
  bool ignore_case = false;  // i
  bool dot_all = false;      // s
  bool multi_line = false;   // m
  // x, of Python only.
  bool verbose = false;
  // \d, \w, \s and \b know ASCII alone: by Python's flag a, or because the caller asks for it.
  bool ascii = false;
  // The flag i knows ASCII letters alone: by Python's flag a.
  bool ascii_case = false;
};

// The place of the parser in the pattern. All text is read through it; errors carry its offset in
// bytes.
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
  // Decodes one code point and moves behind it.
  uint32_t next_char();
  [[noreturn]] void fail(std::string fact, std::size_t offset) const;
  [[noreturn]] void fail(std::string fact) const { fail(std::move(fact), at); }
};

// An escape, inside or outside of brackets: one character (\n, \x41) or a set (\d, \p{L}).
struct EscapeResult {
  bool is_set = false;
  uint32_t c = 0;
  CodepointSet set;
};
// Reads an escape whose backslash, at offset `start`, has been read. The flag i is applied to sets,
// except for Python's \w, \d, \s and their complements, which ignore it.
EscapeResult read_escape(PatternCursor& in, std::size_t start, bool in_brackets);

// Reads a class whose '[' has been read; the flag i is applied.
CodepointSet read_brackets(PatternCursor& in, std::size_t start);

// The set, with all characters that the flag i makes equal to a member, if the flag is set.
CodepointSet with_cases(const PatternCursor& in, CodepointSet set);

// The characters of `.`: everything but line breaks, or everything with the flag s.
CodepointSet dot_class(const PatternCursor& in);

}  // namespace structgen
