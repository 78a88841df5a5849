// Terminals that are read as a lexer reads them: as much text as possible.
//
// In: a lexeme, and those that may all begin at one place. Out: the texts that it may be there, and the bytes
// that may not follow them. Cost: a walk over the lexeme's states together with those of its rivals, a few
// hundred steps, remembered.
//
// A lexeme may end before byte b unless one of them, of the same priority or a higher one, matches a text
// that is longer by b. Of equal texts a literal wins over a pattern (keywords over names), and a higher
// priority wins as soon as it matches, as does a lazy lexeme, which ends there. This looks one byte ahead, as
// far as one text is a beginning of another by that byte: `1..2` is read as 1 and `..` where numbers may have
// a fraction, as a lexer does that goes back to its last match.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "base/bitset.h"
#include "parse/productions.h"
#include "regex/regex.h"

namespace structgen {

struct LexemeLanguage {
  RegexId regex;
  int32_t priority = 0;
  bool literal = false;
  bool alone = false;
  bool lazy = false;  // ends as soon as it matches
  RegexId whole;      // what others see of it; that of a lazy one may be longer than it is
};

class Lexemes {
 public:
  // The empty text of a lexeme is none: rules say where it may be left out.
  Lexemes(RegexArena& regexes, std::vector<LexemeLanguage> all);
  // `context` is a number for `together`.
  std::span<const LexemePart> parts(uint32_t lexeme, std::span<const uint32_t> together, uint32_t context);
  // Whether some byte of a gap may follow every lexeme, whatever its rivals, so that no end is a dead one.
  bool always_separable(const std::vector<std::vector<uint32_t>>& gaps);

 private:
  bool overlap(RegexId a, RegexId b);
  bool inside(RegexId literal, RegexId pattern);
  ByteSet longer(RegexId rivals);
  RegexId reach(RegexId r);
  const std::vector<LexemePart>& split(RegexId regex, RegexId rivals);
  void compute(uint32_t lexeme, std::span<const uint32_t> together, std::vector<LexemePart>& out);

  RegexArena& regexes_;
  std::vector<LexemeLanguage> all_;
  std::map<uint64_t, bool> overlaps_, insides_;
  std::map<uint64_t, std::vector<LexemePart>> splits_;  // (regex, rivals)
  std::map<uint64_t, std::vector<LexemePart>> parts_;   // (lexeme, context)
};

}  // namespace structgen
