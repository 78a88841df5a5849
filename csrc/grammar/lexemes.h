// Terminals that are read as a lexer reads them: each takes as much text as possible.
//
// In: a lexeme, and the lexemes that may all begin at one place. Out: the texts that it may be there,
// and the bytes that may not follow them. Cost: a walk over the states of the lexeme together with
// those of its rivals, a few hundred steps, remembered.
//
// A lexeme may end before byte b unless some lexeme of the same or a higher priority matches the text
// that is longer by b. Of equal texts a literal wins over a pattern (keywords over names). A higher
// priority wins as soon as it matches; so does a lazy lexeme, which ends there. Only one byte is looked
// ahead, and only as far as one text is the beginning of another by that byte: `1..2` is read as 1 and
// `..` where numbers may have a fraction, like a lexer that goes back to its last match.
//
//     NAME: /[a-z]+/ and "if", both allowed: NAME is [a-z]+ without `if`, and no letter may follow it;
//     "if" may not be followed by a letter either, because NAME would match the longer text.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "base/bitset.h"
#include "parse/productions.h"
#include "regex/regex.h"

namespace structgen {

// The texts of a lexeme, and its rank among other lexemes.
struct LexemeLanguage {
  RegexId regex;
  int32_t priority = 0;
  bool literal = false;
  bool alone = false;
  // It ends as soon as it matches.
  bool lazy = false;
  // The language that the others see of it. A lazy lexeme may be the first part of longer texts.
  RegexId whole;
  // parts() are spelled as the inside of a JSON string. Lexemes compete as their texts do. What may not
  // follow is told of characters that a string holds as they are: of an escape one byte tells nothing.
  bool inside = false;
};

// All lexemes of a grammar.
class Lexemes {
 public:
  // The empty text of a lexeme is dropped: rules say where it may be left out.
  Lexemes(RegexArena& regexes, std::vector<LexemeLanguage> all);
  // The ways to read a lexeme beside the lexemes `together`; `context` is the number of that set.
  std::span<const LexemePart> parts(uint32_t lexeme, std::span<const uint32_t> together, uint32_t context);
  // True if some byte of a gap may follow every lexeme, whatever its rivals are. Then no end of a
  // lexeme is a dead end.
  bool always_separable(const std::vector<std::vector<uint32_t>>& gaps);

 private:
  bool overlap(RegexId a, RegexId b);
  bool inside(RegexId literal, RegexId pattern);
  ByteSet longer(RegexId rivals);
  RegexId reach(RegexId r);
  const std::vector<LexemePart>& split(RegexId regex, RegexId rivals);
  RegexId spelled(RegexId follow) const;
  void compute(uint32_t lexeme, std::span<const uint32_t> together, std::vector<LexemePart>& out);

  RegexArena& regexes_;
  std::vector<LexemeLanguage> all_;
  std::map<uint64_t, bool> overlaps_, insides_;
  // Keyed by (regex, rivals).
  std::map<uint64_t, std::vector<LexemePart>> splits_;
  // Keyed by (lexeme, context).
  std::map<uint64_t, std::vector<LexemePart>> parts_;
};

}  // namespace structgen
