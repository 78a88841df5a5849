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

// Returns the texts made of neighbouring units, at least `least` of them (0 or 1). Of the units a, b, c the
// text `bc` is one, `ac` is none.
RegexId substring(RegexArena& regexes, const std::vector<std::string>& units, uint32_t least);

}  // namespace structgen
