// A regex as the inside of a JSON string.
//
// In: a language of UTF-8 texts. Out: the same texts as a string holds them, without its quotes: each
// character in every spelling that the arena's strings have for it. `"a"` becomes `\"a\"` and all other
// spellings. Cost: a node per node. A regex without such structure (a set of literals, & and ~,
// characters cut into bytes) costs a node per state, made when a text gets there. The arena remembers
// the results. A text in a string in a string is spelled twice.
//
// No way to write a character begins another one. So a concatenation, a union or a counter is spelled by
// spelling its kids. Counters stay counters, and labels stay labels.
#pragma once

#include "regex/regex.h"

namespace structgen {

RegexId inside_json(RegexArena& arena, RegexId r);

}  // namespace structgen
