// Terminals that are read as a lexer reads them: each takes as much text as possible.
//
// In: a lexeme, and the lexemes that may all begin at one place. Out: the texts that it may be there,
// and the bytes that may not follow them. Cost: a visit of the states of the lexeme together with
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

// The texts of a lexeme, and its rank among the lexemes of a grammar.
struct LexemeLanguage {
  RegexId regex;
  int32_t priority = 0;
  bool literal = false;
  bool alone = false;
  // True for a lazy lexeme, which ends as soon as it matches. Others end as late as they can.
  bool lazy = false;
  // The language by which this lexeme competes with others. That of a lazy lexeme may hold longer texts than
  // `regex`.
  RegexId whole;
  // True if the texts stand inside a JSON string and are escaped. Lexemes compete by their unescaped texts.
  // LexemePart::follow then has only bytes that a string holds unescaped, because the first byte of an escape
  // does not tell the character.
  bool inside = false;
};

class Lexemes {
 public:
  // The empty text of each lexeme is dropped: where a lexeme may be missing, the rules say so.
  Lexemes(RegexArena& regexes, std::vector<LexemeLanguage> all);
  // Returns the parts of a lexeme: each has some of its texts and the bytes that may not follow them. They
  // depend on the lexemes `together` that may begin where this one does, which is the set number `context`.
  std::span<const LexemePart> parts(uint32_t lexeme, std::span<const uint32_t> together, uint32_t context);
  // Returns true if it is sure that behind every lexeme a gap of one byte (such as a blank) may follow, even
  // if every other lexeme may begin where this one does. The byte may differ from lexeme to lexeme. The text
  // can then go on wherever a lexeme ends.
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
  std::map<uint64_t, std::vector<LexemePart>> splits_;
  std::map<uint64_t, std::vector<LexemePart>> parts_;
};

}  // namespace structgen
