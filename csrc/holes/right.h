// Right quotients of regexes: the texts that may stand before a given text so that both together match.
//
// In: a regex, a text. Out: the regex of all u for which u text is in the language. For (ab)*c and the
// text `bc` it is (ab)*a. Cost: one pass over the regex for each byte of the text; each result is
// remembered. A set of literals or a language that unfolds on demand becomes a language that unfolds on
// demand.
//
// The quotient by one text commutes with & and ~ as it does with |, so every regex has a quotient. If the
// text is the end of a character, the quotient of a run E{m,n} is a run of one character less, followed by
// the bytes with which that character begins. Source: the mirror image of the derivative (Brzozowski 1964).
#pragma once

#include <string_view>

#include "regex/regex.h"

namespace structgen {

// Returns the regex of all texts u for which `u text` matches r.
RegexId before_text(RegexArena& regexes, RegexId r, std::string_view text);

}  // namespace structgen
