// Grammar source -> context-free grammar over regexes.
//
// In: the nodes and rules of a front end. Out: a Cfg with its lexemes. Cost: linear in the source.
//
// What is regular becomes one terminal: a rule that refers to no rule in progress is taken in where it
// stands, as long as that stays small, and a rule that repeats only its own end or its own beginning (`ws: "
// " ws |`) is a loop. Terminals have exact masks that grammars share; rules cost a state for every place they
// can be in. What is left becomes rules.
#pragma once

#include <optional>
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

// `start` is a rule. Throws kGrammar; with at(rule) where it is about a rule.
Lowered lower(RegexArena& regexes, const GrammarSource& source, uint32_t start);

// One node alone. Throws kGrammar where it is not regular.
RegexId lower_regular(RegexArena& regexes, const GrammarSource& source, uint32_t node);

}  // namespace structgen
