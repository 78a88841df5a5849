// One text out of a list, as a tree over the beginnings of the texts.
//
// In: texts, in any order, also repeated. Out: a regex that matches each of them. Cost: a sort, and one
// node for each branch of the tree. A derivative of a plain alternation looks at every text, so a
// hundred thousand choices would cost a hundred thousand steps per byte. In the tree it looks at 256
// branches or 64 texts.
#pragma once

#include <string>
#include <vector>

#include "regex/regex.h"

namespace structgen {

// Returns the regex of these texts. They may come in any order and repeat. Without texts it is empty().
RegexId one_of(RegexArena& regexes, std::vector<std::string> texts);

}  // namespace structgen
