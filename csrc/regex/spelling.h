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

struct Spelling {
  // Returns the regex of every way to write one character of the set.
  RegexId (*characters)(RegexArena& arena, const CodepointSet& set);
  // Writes a text in its usual spelling, without its terminator. If null, texts are written as they are.
  std::string (*write)(std::string_view text) = nullptr;
  // The byte that ends a text, as the closing quote of a JSON string; -1 if there is none.
  int end = -1;
  // Reads literal sets in this spelling (regex/literals.h); null if the spelling has no literal sets.
  const LiteralReader* literals = nullptr;
};

extern const Spelling kUtf8;

// One digit of a code point, in an escape or in UTF-8: a byte that holds `bits` bits of the code point.
struct SpelledDigit {
  uint8_t bits;
  // If true, the byte is the hex digit of the number high|digit, a letter of either case. If false, the byte
  // is that number itself.
  bool hex;
  // The fixed high bits. The digit is the low bits.
  uint8_t high;
  // The bytes in front of the digit, such as `u`. Here `U` stands for D or d, the hex digit with which every
  // surrogate begins (`\uD83D`).
  std::string_view prefix;
};

// Returns the regex of the code points in `ranges`, written digit by digit. The ranges are sorted, disjoint,
// not empty, and below 2^(bits of all digits).
RegexId spell_digits(RegexArena& arena, std::span<const SpelledDigit> digits,
                     std::span<const CodepointRange> ranges);

RegexId utf8_class(RegexArena& arena, const CodepointSet& set);

RegexId any_character(RegexArena& arena, const Spelling& spelling);
// any_text() returns every text without its terminator, any_body() every text with it.
RegexId any_text(RegexArena& arena, const Spelling& spelling);
RegexId any_body(RegexArena& arena, const Spelling& spelling);
// Returns the terminator of a text: one byte, or epsilon().
RegexId end_of(RegexArena& arena, const Spelling& spelling);
// Returns the text in its usual spelling, without its terminator.
std::string written(std::string_view text, const Spelling& spelling);

}  // namespace structgen
