// Lowering of patterns whose assertions need left context or stand under a repetition: \b, look-behind,
// look-ahead in a loop (the general method; lower_pattern.h covers the rest).
//
// In: a Pattern. Out: a RegexId whose nodes are unfolded as the text is read. A state is (what is left
// of the pattern, left context): the pattern runs as an alternating automaton in which a look-ahead is a
// conjunct, and the left context is the states of the look-behinds, each a deterministic automaton over
// the characters read so far.
// Cost: per state visited; nothing is enumerated in advance.
// Refused (kUnsupportedSchema): what looks right inside a look-behind, past its end; see behind.h.
#pragma once

#include "base/ids.h"
#include "regex/spelling.h"
#include "regex/syntax.h"

namespace structgen {

class RegexArena;

RegexId lower_with_context(RegexArena& arena, const Pattern& pattern, Match match, const Spelling& spelling);

}  // namespace structgen
