// A context-free grammar over terminals: its rules, and the results of its analysis.
//
// In: rules of symbols (from lower.h). Out: rules without useless alternatives, which of them match the
// empty text, and groups of rules that are left-recursive through each other. Cost: linear in the
// grammar, except for the fixpoints, which are linear in practice.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/ids.h"
#include "parse/productions.h"

namespace structgen {

// A symbol of an alternative. kPart: a grammar of another kind, such as a JSON Schema. kNote: a capture
// begins or ends here. kGap: the texts between lexemes, such as blanks. kAfter: the lexemes that follow have
// this context. kLimit: a rule whose tokens are limited ends here.
struct CfgSymbol {
  enum Kind : uint8_t { kTerminal, kRule, kLexeme, kPart, kNote, kGap, kAfter, kLimit } kind = kTerminal;
  // What the symbol names, by its kind: a RegexId (kTerminal), the number of a rule, lexeme, part, note, gap
  // or context, or a number of tokens (kLimit).
  uint32_t id = 0;
  friend bool operator==(const CfgSymbol&, const CfgSymbol&) = default;
  friend auto operator<=>(const CfgSymbol&, const CfgSymbol&) = default;
};

using CfgSequence = std::vector<CfgSymbol>;

// A rule: a list of alternatives, or if `counted` a repetition of one body.
struct CfgRule {
  std::string name;
  std::vector<CfgSequence> alternatives;
  // True if lowering made this rule from an expression inside of another rule, which alone uses it.
  bool part = false;
  // True if the rule is x{min,max} and its only alternative is x.
  bool counted = false;
  uint32_t min = 0, max = 0;
  // `productive`: some text matches. `nullable`: the empty text matches. analyse() sets both.
  bool productive = false;
  bool nullable = false;
  // The number of the group to which this rule belongs, or 0. The rules of a group are left-recursive through
  // each other.
  uint32_t group = 0;
};

// A limit on tokens: at most `tokens` tokens may begin in each text of the rule.
struct CfgLimit {
  uint32_t rule = 0;
  uint32_t tokens = 0;
  std::string name;
  // Where the limit stands in the grammar's text.
  int64_t place = -1;
  // The context in which texts of the rule may begin, if the grammar has lexemes.
  uint32_t context = 0;
};

struct Cfg {
  std::vector<CfgRule> rules;
  uint32_t start = 0;
  uint32_t groups = 0;
  // optional[l] is true if lexeme l also matches the empty text.
  std::vector<bool> optional;
  // gaps[g] lists the lexemes of gap g.
  std::vector<std::vector<uint32_t>> gaps;
  // contexts[c] lists the lexemes that may begin in context c, sorted.
  std::vector<std::vector<uint32_t>> contexts;
  std::vector<CfgLimit> limits;
  std::vector<std::string> warnings;
};

class RegexArena;

inline std::string useless(const std::string& rule) {
  return "rule '" + rule + "' matches no text, so nothing that needs it is used";
}

// Returns true if the symbol may match the empty text. For a rule the answer is final once analyse() has run.
bool nullable(const Cfg& cfg, RegexArena& regexes, CfgSymbol s);

// Removes rules and alternatives that no text can use, computes contexts, and replaces rules by automata
// (grammar/automata.h). It fills in `productive`, `nullable`, `group` and `contexts`. Throws kGrammar if no
// text matches.
void analyse(Cfg& cfg, RegexArena& regexes);

}  // namespace structgen
