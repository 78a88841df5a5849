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
// begins or ends here. kGap: the text between lexemes, such as blanks. kAfter: sets the context of the
// lexemes that follow. kLimit: the text of a rule with a limit on tokens ends here.
struct CfgSymbol {
  enum Kind : uint8_t { kTerminal, kRule, kLexeme, kPart, kNote, kGap, kAfter, kLimit } kind = kTerminal;
  // A RegexId (kTerminal), a number of tokens (kLimit), or the number of the rule, lexeme, part, note, gap or
  // context.
  uint32_t id = 0;
  friend bool operator==(const CfgSymbol&, const CfgSymbol&) = default;
  friend auto operator<=>(const CfgSymbol&, const CfgSymbol&) = default;
};

using CfgSequence = std::vector<CfgSymbol>;

// A rule: a list of alternatives, or a repetition of its only alternative if `counted` is true.
struct CfgRule {
  std::string name;
  std::vector<CfgSequence> alternatives;
  // True if lowering made this rule from an expression inside another rule, which alone calls it.
  bool part = false;
  // True for x{min,max}; x is the only alternative.
  bool counted = false;
  uint32_t min = 0, max = 0;
  // `productive`: there is a text. `nullable`: the empty text is one. analyse() sets both.
  bool productive = false;
  bool nullable = false;
  // The number of the rule's group, or 0. Rules of a group are left-recursive through each other.
  uint32_t group = 0;
};

struct CfgLimit {
  uint32_t rule = 0;
  uint32_t tokens = 0;
  std::string name;
  // The offset of the limit in the grammar's text.
  int64_t place = -1;
  // The context in which texts of the rule begin, in a grammar with lexemes.
  uint32_t context = 0;
};

struct Cfg {
  std::vector<CfgRule> rules;
  uint32_t start = 0;
  uint32_t groups = 0;
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

// Returns true if the symbol may be empty. For a rule the answer is right once analyse() has run.
bool nullable(const Cfg& cfg, RegexArena& regexes, CfgSymbol s);

// Removes rules and alternatives that are of no use, computes contexts, and replaces rules by automata
// (grammar/automata.h). It sets `productive`, `nullable`, `group` and `contexts`. Throws kGrammar if there is
// no text.
void analyse(Cfg& cfg, RegexArena& regexes);

}  // namespace structgen
