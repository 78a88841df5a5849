// Rules as minimal automata over symbols.
//
// In: a Cfg whose alternatives are pruned. Out: the same language, with rules that are right-linear
// except for recursion that nests: `q -> symbol q'`. Cost: linear in what is merged into a rule, with a
// bound per rule. A rule that would grow beyond the bound stays as it was.
//
// Why: fifteen levels of operators are fifteen rules. A text that has just read a name stands in all of
// them: fifteen symbols on its stack, each of which must be asked what may follow. As an automaton they
// are one state (a level A -> B (op B)* adds an edge back to where B ends). So a parse state has few
// symbols, and positions that mean the same have the same stack. A rule is merged into its caller if
// nothing of the caller stands before or behind the call, and a small rule everywhere. Between brackets
// a rule stays a symbol of its own. Source: recursive transition networks (Woods 1970), determinised by
// subsets and minimised by refinement (Moore 1956) over their symbols, terminals and rules alike.
#pragma once

#include "grammar/cfg.h"

namespace structgen {

// Replaces the rules of `cfg` by automata. analyse() in cfg.cc calls it when contexts and groups are known. A
// grammar with notes (captures) or limits stays as it is.
void to_automata(Cfg& cfg, RegexArena& regexes);

}  // namespace structgen
