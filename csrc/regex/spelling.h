// A spelling: how the characters of a text are written as bytes, and what ends the text.
//
// In: sets of code points, texts. Out: regexes over bytes. A spelling is a constant of the program, and two
// spellings are equal if they are the same object.
//
// A set is lowered as one trie over the digits of its code points (UTF-8 bytes or hex digits), equal subtrees
// shared, so a small class costs a few nodes. Source of the range splitting: R. Cox, "Regular Expression
// Matching in the Wild" (2010), section on UTF-8.
//
// UTF-8 is the one spelling that regex/ knows. strings/json_spelling.h has those of JSON strings, in which a
// character may have several ways to be written (`A` and `\u0041`) and a quote ends the text.
//
// Invariants. No way to write one character begins another way of any character. So a text that is written
// falls into characters in one way, and &, | and ~ of texts are &, | and ~ of their regexes, as long as a
// complement is taken within any_body().
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/ids.h"
#include "regex/charset.h"

namespace structgen {

class RegexArena;
class LiteralReader;

struct Spelling {
  // Every way to write one character of the set.
  RegexId (*characters)(RegexArena& arena, const CodepointSet& set);
  // A text as one would write it, without its end; null: as it is.
  std::string (*write)(std::string_view text) = nullptr;
  // The byte that ends a text; -1: nothing does.
  int end = -1;
  // Reads sets of literals written like this (regex/literals.h); null: there are none.
  const LiteralReader* literals = nullptr;
};

extern const Spelling kUtf8;

// One digit of a code point as it is written.
struct SpelledDigit {
  uint8_t bits;             // of the code point decided here
  bool hex;                 // the byte is a hex digit of high|digit; otherwise it is high|digit itself
  uint8_t high;             // fixed high bits of the byte or nibble
  std::string_view prefix;  // bytes before this one, 'U' standing for [Dd]
};

// The members of `ranges` (sorted, apart, below 2^(bits of all digits)), not empty, written digit by digit.
RegexId spell_digits(RegexArena& arena, std::span<const SpelledDigit> digits,
                     std::span<const CodepointRange> ranges);

RegexId utf8_class(RegexArena& arena, const CodepointSet& set);

// One character of any kind.
RegexId any_character(RegexArena& arena, const Spelling& spelling);
// Every text without its end; with it.
RegexId any_text(RegexArena& arena, const Spelling& spelling);
RegexId any_body(RegexArena& arena, const Spelling& spelling);
// What ends a text: a byte, or epsilon().
RegexId end_of(RegexArena& arena, const Spelling& spelling);
std::string written(std::string_view text, const Spelling& spelling);

}  // namespace structgen
