// The spans of a text as a language: any run of its units (characters, words, sentences).
//
// In: the units in order. Out: a RegexId. Cost: a suffix automaton with at most 2n states and 3n edges
// for n units, built in n log n. A state becomes a regex node when a text reaches it. An alternation of
// all spans would have n * n / 2 texts. Source: Blumer et al., "The smallest automaton recognizing the
// subwords of a text" (1985).
#pragma once

#include <string>
#include <vector>

#include "base/ids.h"

namespace structgen {

class RegexArena;

// Returns the texts of neighbouring units, one after the other, with at least `least` units (0 or 1): of the
// units a, b, c also `bc`, but not `ac`.
RegexId substring(RegexArena& regexes, const std::vector<std::string>& units, uint32_t least);

}  // namespace structgen
