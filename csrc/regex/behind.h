// Look-behinds that look ahead: what looks past the end of a look-behind is moved behind it.
//
// In: a Pattern. Out: the same language, in which no look-behind looks at text behind its end: `(?<=a(?=b))`
// is
// `(?<=a)(?=b)`, `(?<!a$)` is `(?!(?<=a)$)`, and alternatives are told apart. What looks ahead inside and
// stays inside, as in `(?<=\bab)`, is left as it is. Cost: linear in the pattern but for alternatives that
// end in assertions, of which each becomes a look-behind. Errors: kUnsupportedSchema where text stands
// between such an assertion and the end of the look-behind and the assertion may look past it, as in
// `(?<=a(?=bc)b)`.
#pragma once

#include "regex/syntax.h"

namespace structgen {

void look_ahead_outside(Pattern& pattern);

}  // namespace structgen
