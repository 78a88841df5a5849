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

// A symbol of an alternative. kPart: a grammar of another kind. kNote: where a named part begins or ends.
// kGap: the texts between lexemes (blanks). kAfter: the context of the lexemes that follow. kLimit: the end
// of a rule whose tokens are limited.
struct CfgSymbol {
  enum Kind : uint8_t { kTerminal, kRule, kLexeme, kPart, kNote, kGap, kAfter, kLimit } kind = kTerminal;
  // A RegexId (kTerminal); the number of a rule, lexeme, part, note, gap or context; a number of tokens
  // (kLimit).
  uint32_t id = 0;
  friend bool operator==(const CfgSymbol&, const CfgSymbol&) = default;
  friend auto operator<=>(const CfgSymbol&, const CfgSymbol&) = default;
};

using CfgSequence = std::vector<CfgSymbol>;

// A rule: a list of alternatives or, if `counted`, one body that is repeated.
struct CfgRule {
  std::string name;
  std::vector<CfgSequence> alternatives;
  // True if lowering made this rule from a part of another rule, and only that rule uses it.
  bool part = false;
  // True if the only alternative is a body that is repeated `min` to `max` times.
  bool counted = false;
  uint32_t min = 0, max = 0;
  // analyse() sets `productive` (some text matches) and `nullable` (the empty text matches).
  bool productive = false;
  bool nullable = false;
  // The number of the group of left-recursive rules to which this rule belongs; 0 if it belongs to none.
  uint32_t group = 0;
};

// A limit: at most `tokens` tokens begin in each text of the rule.
struct CfgLimit {
  uint32_t rule = 0;
  uint32_t tokens = 0;
  std::string name;
  // The offset of the limit in the grammar's text.
  int64_t place = -1;
  // The context in which texts of the rule may begin, if the grammar has lexemes.
  uint32_t context = 0;
};

// A grammar. The number of a rule is its index in `rules`.
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

// Returns the warning about a rule that matches no text.
inline std::string useless(const std::string& rule) {
  return "rule '" + rule + "' matches no text, so nothing that needs it is used";
}

// Returns true if the symbol may read nothing. For a rule the answer is final after analyse().
bool nullable(const Cfg& cfg, RegexArena& regexes, CfgSymbol s);

// Removes rules and alternatives that no text reaches, computes contexts, replaces rules by automata
// (grammar/automata.h), and fills in the fields that hold its results. Throws kGrammar if no text matches.
void analyse(Cfg& cfg, RegexArena& regexes);

}  // namespace structgen
