// A spelling: how the characters of a text are written as bytes, and what ends the text.
//
// In: sets of code points, texts. Out: regexes over bytes. Cost: as charset.h says; a spelling is a constant
// of the program, and two spellings are equal if they are the same object.
//
// UTF-8 is the one spelling that regex/ knows. strings/json_spelling.h has those of JSON strings, in which a
// character may have several ways to be written (`A` and `\u0041`) and a quote ends the text.
//
// Invariants. No way to write one character begins another way of any character. So a text that is written
// falls into characters in one way, and &, | and ~ of texts are &, | and ~ of their regexes, as long as a
// complement is taken within any_body().
#pragma once

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

// One character of any kind.
RegexId any_character(RegexArena& arena, const Spelling& spelling);
// Every text without its end; with it.
RegexId any_text(RegexArena& arena, const Spelling& spelling);
RegexId any_body(RegexArena& arena, const Spelling& spelling);
// What ends a text: a byte, or epsilon().
RegexId end_of(RegexArena& arena, const Spelling& spelling);
std::string written(std::string_view text, const Spelling& spelling);

}  // namespace structgen
