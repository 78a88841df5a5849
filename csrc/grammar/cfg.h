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

// A symbol of an alternative. kPart is a grammar of another kind, kNote marks a named part, kGap stands
// for the texts between lexemes (blanks), kAfter gives a context, kLimit ends a rule with a limit of
// tokens.
struct CfgSymbol {
  enum Kind : uint8_t { kTerminal, kRule, kLexeme, kPart, kNote, kGap, kAfter, kLimit } kind = kTerminal;
  // A RegexId (kTerminal); the number of a rule, lexeme, part, note, gap or context; or a number of
  // tokens (kLimit).
  uint32_t id = 0;
  friend bool operator==(const CfgSymbol&, const CfgSymbol&) = default;
  friend auto operator<=>(const CfgSymbol&, const CfgSymbol&) = default;
};

using CfgSequence = std::vector<CfgSymbol>;

// A rule: its alternatives, or the body that it repeats.
struct CfgRule {
  std::string name;
  std::vector<CfgSequence> alternatives;
  // True: lowering made it of a part of another rule, which alone uses it.
  bool part = false;
  // True: its one alternative is the body of a repetition {min,max}.
  bool counted = false;
  uint32_t min = 0, max = 0;
  // Set by analyse().
  bool productive = false;
  bool nullable = false;
  // The number of its group of left-recursive rules; 0: it is not left-recursive.
  uint32_t group = 0;
};

// A rule that ends in a limit: at most `tokens` tokens begin in each of its texts.
struct CfgLimit {
  uint32_t rule = 0;
  uint32_t tokens = 0;
  std::string name;
  // The byte of the grammar's text at which the limit stands.
  int64_t place = -1;
  // The context in which its texts may begin, in a grammar with lexemes.
  uint32_t context = 0;
};

// A grammar. Rules are numbered by their index.
struct Cfg {
  std::vector<CfgRule> rules;
  uint32_t start = 0;
  uint32_t groups = 0;
  // Per lexeme: true if it also matches the empty text.
  std::vector<bool> optional;
  // Per gap: its lexemes.
  std::vector<std::vector<uint32_t>> gaps;
  // Per context: the lexemes that may begin there, sorted.
  std::vector<std::vector<uint32_t>> contexts;
  std::vector<CfgLimit> limits;
  std::vector<std::string> warnings;
};

class RegexArena;

// The warning about a rule that matches no text.
inline std::string useless(const std::string& rule) {
  return "rule '" + rule + "' matches no text, so nothing that needs it is used";
}

// True if the symbol may be read as nothing; of a rule, as far as that is known.
bool nullable(const Cfg& cfg, RegexArena& regexes, CfgSymbol s);

// Removes rules and alternatives that no text reaches, computes contexts, makes rules automata
// (grammar/automata.h), and fills in the fields that hold its results. Throws kGrammar if no text
// matches.
void analyse(Cfg& cfg, RegexArena& regexes);

}  // namespace structgen
