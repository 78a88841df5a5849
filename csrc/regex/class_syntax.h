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

struct PatternFlags {
  bool ignore_case = false;  // i
  bool dot_all = false;      // s
  bool multi_line = false;   // m
  // The flag x: blanks and comments in the pattern are skipped. Only Python has it.
  bool verbose = false;
  // \d, \w, \s and \b match ASCII characters only: Python's flag a, or the caller's wish.
  bool ascii = false;
  // The flag i equates the cases of ASCII letters only, because Python's flag a is set.
  bool ascii_case = false;
};

// A cursor over the text of a pattern; the parser reads the pattern only through it. Errors name the position
// in bytes.
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
  uint32_t next_char();
  [[noreturn]] void fail(std::string fact, std::size_t offset) const;
  [[noreturn]] void fail(std::string fact) const { fail(std::move(fact), at); }
};

struct EscapeResult {
  bool is_set = false;
  uint32_t c = 0;
  CodepointSet set;
};
// Reads an escape whose backslash stands at offset `start`. Under the flag i the letters of a set get their
// other cases; Python's \w, \d, \s and their complements stay as they are.
EscapeResult read_escape(PatternCursor& in, std::size_t start, bool in_brackets);

// Reads a class whose `[` stands at offset `start`. Under the flag i its letters get their other cases.
CodepointSet read_brackets(PatternCursor& in, std::size_t start);

// Returns the set, under the flag i with all characters that differ from a member in case alone.
CodepointSet with_cases(const PatternCursor& in, CodepointSet set);

// Returns the characters that `.` matches: all but line breaks, or all characters under the flag s.
CodepointSet dot_class(const PatternCursor& in);

}  // namespace structgen
