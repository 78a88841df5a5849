// A spelling: how the characters of a text are written as bytes, and the terminator of the text (JSON:
// the closing quote).
//
// In: sets of code points, and texts. Out: regexes over bytes. A spelling is a constant of the program;
// two spellings are equal if they are the same object.
//
// A set is lowered as one trie over the digits of its code points (UTF-8 bytes or hex digits) with
// shared subtrees, so a small class costs a few nodes. Source of the splitting of ranges: R. Cox,
// "Regular Expression Matching in the Wild" (2010), section on UTF-8.
//
// UTF-8 is the only spelling that regex/ knows. strings/json_spelling.h has those of JSON strings, in
// which a character may be written in several ways (`A` and `\u0041`) and a quote ends the text.
//
// Invariant. No way to write one character begins another way to write any character. So a written text
// falls into characters in one way only, and &, | and ~ of texts are &, | and ~ of their regexes, as
// long as complements are taken within any_body().
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

// The functions of one spelling.
struct Spelling {
  // Every way to write one character of the set.
  RegexId (*characters)(RegexArena& arena, const CodepointSet& set);
  // Writes a text in its usual spelling, without its end. Null: a text is written as it is.
  std::string (*write)(std::string_view text) = nullptr;
  // The byte that ends a text; -1: no byte ends it.
  int end = -1;
  // The reader of literal sets in this spelling (regex/literals.h); null: there are none.
  const LiteralReader* literals = nullptr;
};

extern const Spelling kUtf8;

// One digit of a code point, in the way in which it is written.
struct SpelledDigit {
  // The number of bits of the code point that this digit decides.
  uint8_t bits;
  // True: the byte is the hex digit of high|digit, in either case. False: the byte is high|digit
  // itself.
  bool hex;
  // Fixed high bits of the byte, or of the hex digit.
  uint8_t high;
  // Bytes in front of the digit, such as `u`. A `U` stands for the hex digit D in either case, with which the
  // code of every surrogate begins (`\uD83D`).
  std::string_view prefix;
};

// The members of `ranges`, written digit by digit. `ranges` are sorted, disjoint, not empty, and below
// 2^(bits of all digits).
RegexId spell_digits(RegexArena& arena, std::span<const SpelledDigit> digits,
                     std::span<const CodepointRange> ranges);

// A set in UTF-8.
RegexId utf8_class(RegexArena& arena, const CodepointSet& set);

// One character of any kind.
RegexId any_character(RegexArena& arena, const Spelling& spelling);
// Every text, without its end (any_text) and with it (any_body).
RegexId any_text(RegexArena& arena, const Spelling& spelling);
RegexId any_body(RegexArena& arena, const Spelling& spelling);
// The terminator of a text: one byte, or epsilon().
RegexId end_of(RegexArena& arena, const Spelling& spelling);
// The text in its usual spelling, without its end.
std::string written(std::string_view text, const Spelling& spelling);

}  // namespace structgen
