// Lowering of patterns whose assertions need left context or stand in a repetition: \b, look-behinds,
// look-aheads in a loop. This is the general method; lower_pattern.h covers the other patterns at less
// cost.
//
// In: a Pattern. Out: a RegexId whose nodes are unfolded as a text is read. A state is a pair: the rest
// of the pattern, and the left context. The pattern runs as an alternating automaton, in which a
// look-ahead is a conjunct. The left context is the states of the look-behinds; each look-behind is a
// deterministic automaton over the characters read so far. Cost: per state that a text reaches. Nothing
// is enumerated in advance. Refused (kUnsupportedSchema): a look-behind that looks ahead past its end;
// see behind.h.
#pragma once

#include "base/ids.h"
#include "regex/spelling.h"
#include "regex/syntax.h"

namespace structgen {

class RegexArena;

// As lower() of syntax.h, for every pattern. lower_pattern.h is faster, but cannot lower some assertions.
RegexId lower_with_context(RegexArena& arena, const Pattern& pattern, Match match, const Spelling& spelling);

}  // namespace structgen
