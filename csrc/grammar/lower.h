// Lowers the source of a grammar to a context-free grammar over regexes.
//
// In: the nodes and rules of a front end. Out: a Cfg with its lexemes. Cost: linear in the source.
//
// A regular part becomes one terminal. A rule that refers to no rule in progress is merged into its
// place, as long as that stays small, and a rule that repeats only its own end or its own beginning
// (`ws: " " ws |`) is a loop. Terminals have exact masks that grammars share, while rules cost a state
// for every position in which they can be. Everything else becomes rules.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "grammar/cfg.h"
#include "grammar/lexemes.h"
#include "grammar/source.h"

namespace structgen {

class RegexArena;

struct Lowered {
  Cfg cfg;
  std::vector<LexemeLanguage> lexemes;
};

// Lowers the rule `start` and all rules that it uses. Throws kGrammar; an error about a rule says where the
// rule stands.
Lowered lower(RegexArena& regexes, const GrammarSource& source, uint32_t start);

// Returns the regexes of some nodes. Throws kGrammar if one of them is not regular.
std::vector<RegexId> lower_regular(RegexArena& regexes, const GrammarSource& source,
                                   std::span<const uint32_t> nodes);

}  // namespace structgen
