// Rules as minimal automata over symbols.
//
// In: a Cfg whose alternatives are pruned. Out: the same language, with rules that are right-linear but for
// recursion that nests: `q -> symbol q'`. Cost: linear in what is taken in, bounded a rule; a rule that would
// grow beyond the bound stays as it was.
//
// Reasoning: fifteen levels of operators are fifteen rules, and a text that has just read a name stands in
// all of them: fifteen symbols on its stack, each of which must be asked what may follow. As an automaton
// they are one state (a level A -> B (op B)* adds an edge back to where B ends), so a parse state is a few
// symbols and what differs in nothing is the same stack. Rules are taken in where nothing of the caller
// stands before them or after them, and small ones everywhere; in front of and behind brackets a rule stays a
// symbol of its own. Source: recursive transition networks (Woods 1970), determinised by subsets and
// minimised by refinement (Moore 1956) over their symbols, terminals and rules alike.
#pragma once

#include "grammar/cfg.h"

namespace structgen {

// `cfg` has been through give_contexts and group. A grammar with notes (captures) is left alone.
void to_automata(Cfg& cfg, RegexArena& regexes);

}  // namespace structgen
