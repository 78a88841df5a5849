// Look-behinds that look ahead: moves the assertions that look past the end of a look-behind out of it.
//
// In: a Pattern. Out: the same language, in which no look-behind looks at text behind its end.
// `(?<=a(?=b))` becomes `(?<=a)(?=b)`, `(?<!a$)` becomes `(?!(?<=a)$)`, and alternatives with different
// assertions become alternatives of look-behinds. An assertion that looks ahead and stays inside, as in
// `(?<=\bab)`, stays where it is. Cost: linear in the pattern, except for alternatives that end in
// assertions: each becomes a look-behind of its own. Errors: kUnsupportedSchema if text stands between
// such an assertion and the end of the look-behind and the assertion may look past it, as in
// `(?<=a(?=bc)b)`.
//
// Why: a look-behind is an automaton over the text so far (context.h), which cannot wait for later
// text.
#pragma once

#include "regex/syntax.h"

namespace structgen {

// Rewrites, in place, look-behinds that hold assertions about the text behind their end: `(?<=a$)` becomes
// `(?<=a)$`.
void look_ahead_outside(Pattern& pattern);

}  // namespace structgen
