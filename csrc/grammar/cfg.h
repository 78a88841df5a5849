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
// begins or ends. kGap: text between lexemes, such as blanks. kAfter: the context of the next lexeme. kLimit:
// a rule whose tokens are limited ends.
struct CfgSymbol {
  enum Kind : uint8_t { kTerminal, kRule, kLexeme, kPart, kNote, kGap, kAfter, kLimit } kind = kTerminal;
  // Depends on the kind: a RegexId (kTerminal), a number of tokens (kLimit), else the number of the rule,
  // lexeme, part, note, gap or context.
  uint32_t id = 0;
  friend bool operator==(const CfgSymbol&, const CfgSymbol&) = default;
  friend auto operator<=>(const CfgSymbol&, const CfgSymbol&) = default;
};

using CfgSequence = std::vector<CfgSymbol>;

// A rule: a list of alternatives, or if `counted` a repetition of one body.
struct CfgRule {
  std::string name;
  std::vector<CfgSequence> alternatives;
  // True if lowering made the rule from a part of another rule.
  bool part = false;
  // True if the rule is x{min,max} and its only alternative is x.
  bool counted = false;
  uint32_t min = 0, max = 0;
  // `productive`: some text matches. `nullable`: the empty text matches. analyse() sets both.
  bool productive = false;
  bool nullable = false;
  // Rules that are left-recursive through each other have the same group, numbered from 1; all others have 0.
  uint32_t group = 0;
};

// At most `tokens` tokens may begin in each text of the rule.
struct CfgLimit {
  uint32_t rule = 0;
  uint32_t tokens = 0;
  std::string name;
  // Where the limit stands in the grammar's text.
  int64_t place = -1;
  // In a grammar with lexemes: the context in which texts of the rule begin.
  uint32_t context = 0;
};

struct Cfg {
  std::vector<CfgRule> rules;
  uint32_t start = 0;
  uint32_t groups = 0;
  // optional[l]: lexeme l may also be empty.
  std::vector<bool> optional;
  // gaps[g]: the lexemes of gap g.
  std::vector<std::vector<uint32_t>> gaps;
  // contexts[c]: the lexemes that may begin in context c, sorted.
  std::vector<std::vector<uint32_t>> contexts;
  std::vector<CfgLimit> limits;
  std::vector<std::string> warnings;
};

class RegexArena;

inline std::string useless(const std::string& rule) {
  return "rule '" + rule + "' matches no text, so nothing that needs it is used";
}

// Returns true if the symbol may match the empty text. Of a rule this is known once analyse() has run.
bool nullable(const Cfg& cfg, RegexArena& regexes, CfgSymbol s);

// Removes rules and alternatives that no text uses, fills in `productive`, `nullable`, `group` and
// `contexts`, and replaces rules by automata (grammar/automata.h). Throws kGrammar if no text matches.
void analyse(Cfg& cfg, RegexArena& regexes);

}  // namespace structgen
