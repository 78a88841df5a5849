// Right quotients of regexes: what may stand before a text so that both together match.
//
// In: a regex, a text. Out: the regex of all u with u text in it. Cost: one pass over the regex a byte, each
// remembered; a set of literals or a language unfolded on demand becomes one of the latter kind.
// The quotient by one text commutes with & and ~ as it does with |, so there is one for every regex; that of
// a run of characters is the run with one of them less, whose masks are those of the run. Source: the mirror
// image of the derivative (Brzozowski 1964).
#pragma once

#include <string_view>

#include "regex/regex.h"

namespace structgen {

RegexId before_text(RegexArena& regexes, RegexId r, std::string_view text);

}  // namespace structgen
