// One text of a list, as a tree over what the texts begin with.
//
// In: texts, in any order, also repeated. Out: their alternation. Cost: a sort, then a node a branch: what
// many texts begin with is read once, and their bytes branch behind it. A derivative of a plain alternation
// looks at every text, so a hundred thousand choices would cost a hundred thousand steps a byte. Here it
// looks at 256 branches or at 64 texts.
#pragma once

#include <string>
#include <vector>

#include "regex/regex.h"

namespace structgen {

RegexId one_of(RegexArena& regexes, std::vector<std::string> texts);

}  // namespace structgen
