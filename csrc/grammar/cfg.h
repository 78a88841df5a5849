// A context-free grammar over terminals: rules, what can be said about them, and which are left-recursive.
//
// In: rules of symbols (from lower.h). Out: rules without useless alternatives, nullability, and the groups
// of rules that are left-recursive through each other. Cost: linear in the grammar but for the fixpoints,
// which are linear in practice.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/ids.h"
#include "parse/productions.h"

namespace structgen {

struct CfgSymbol {
  enum Kind : uint8_t { kTerminal, kRule, kLexeme, kPart, kNote, kGap, kAfter, kLimit } kind = kTerminal;
  uint32_t id = 0;  // a RegexId, or the number of a rule, lexeme, part, note, gap or context, or tokens
  friend bool operator==(const CfgSymbol&, const CfgSymbol&) = default;
  friend auto operator<=>(const CfgSymbol&, const CfgSymbol&) = default;
};

using CfgSequence = std::vector<CfgSymbol>;

struct CfgRule {
  std::string name;
  std::vector<CfgSequence> alternatives;
  bool part = false;  // a part of another rule, and nothing else
  // A counted rule instead: its one alternative is the body of {min,max}.
  bool counted = false;
  uint32_t min = 0, max = 0;
  // Found out by analyse():
  bool productive = false;
  bool nullable = false;
  uint32_t group = 0;  // number of its left-recursive group, 0 = not left-recursive
};

// A rule that ends in a limit: at most `tokens` tokens begin in each of its texts.
struct CfgLimit {
  uint32_t rule = 0;
  uint32_t tokens = 0;
  std::string name;
  int64_t place = -1;    // of the limit in the grammar's text, in bytes
  uint32_t context = 0;  // in which it may begin, where there are lexemes
};

struct Cfg {
  std::vector<CfgRule> rules;
  uint32_t start = 0;
  uint32_t groups = 0;
  std::vector<bool> optional;                   // by lexeme: it matches the empty text too
  std::vector<std::vector<uint32_t>> gaps;      // lexemes of each gap
  std::vector<std::vector<uint32_t>> contexts;  // lexemes that may begin in each, sorted
  std::vector<CfgLimit> limits;
  std::vector<std::string> warnings;
};

class RegexArena;

// The warning about a rule that no text matches.
inline std::string useless(const std::string& rule) {
  return "rule '" + rule + "' matches no text, so nothing that needs it is used";
}

// Whether a symbol can be read as nothing; rules as far as that is known of them.
bool nullable(const Cfg& cfg, RegexArena& regexes, CfgSymbol s);

// Prunes what no text reaches, makes rules automata (grammar/automata.h) and fills in what is found out.
// Throws kGrammar where no text matches.
void analyse(Cfg& cfg, RegexArena& regexes);

}  // namespace structgen
