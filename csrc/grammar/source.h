// A grammar as front ends hand it over: one expression language for rules and terminals alike.
//
// In: calls in any order, children before parents. Out: nodes and rules, numbered. Cost: one node a call.
// Whether a part is regular is not asked here; see lower.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "regex/charset.h"

namespace structgen {

enum class NodeOp : uint8_t {
  kEmpty,      // the empty text
  kNever,      // no text at all
  kBytes,      // text: these bytes
  kByte,       // text: one of these bytes
  kChars,      // one character of `ranges`
  kPattern,    // text: a Python regex, matched as a whole
  kSequence,   // kids
  kChoice,     // kids
  kRepeat,     // kids[0], a = min, b = max (kUnbounded)
  kBoth,       // texts of all kids (regular)
  kNot,        // every text but those of kids[0] (regular)
  kShortest,   // texts of kids[0] of which no beginning is one (regular)
  kRule,       // a = rule
  kLexeme,     // a = lexeme
  kPart,       // a = a grammar of another kind
  kTokens,     // one of the texts `units`: those of tokens `ids`, filled in once the vocabulary is known
  kSubstring,  // a run of the texts `units`, at least a of them
  kCapture,    // kids[0], remembered under the name a; without a name: a gap that ends no other capture
  kSplit,  // kids[0] named a, then kids[1] named b, which begins as early as it can where both can be read
  kLimit,  // kids[0], in whose text at most a tokens begin; text: a name for errors
  kGap,    // what may stand after lexemes: any number of the lexemes of gap a
};

struct GrammarNode {
  NodeOp op = NodeOp::kEmpty;
  uint32_t a = 0, b = 0;
  std::string text;
  std::vector<uint32_t> kids;
  std::vector<CodepointRange> ranges;
  std::vector<int32_t> ids;
  std::vector<std::string> units;
  int64_t place = -1;  // in the grammar's text, in bytes
};

struct GrammarRule {
  std::string name;  // empty: made by the front end, never named to the user
  uint32_t node = 0;
  bool defined = false;
};

// A terminal that takes as much text as it can, as a lexer does.
struct Lexeme {
  std::string name;
  uint32_t node = 0;
  int32_t priority = 0;
  bool literal = false;  // wins over a pattern that matches the same text
  bool alone = false;    // only its own longer texts bound it, not those of others
  // Ends as soon as it matches, and none other goes on there. `whole`: the node of what others see of it,
  // where it is only the first part of such a text.
  bool lazy = false;
  int64_t whole = -1;
};

struct GrammarSource {
  std::vector<GrammarNode> nodes;
  std::vector<GrammarRule> rules;
  std::vector<Lexeme> lexemes;
  std::vector<std::string> captures;        // names
  std::vector<std::vector<uint32_t>> gaps;  // lexemes of each
  std::vector<std::string> warnings;        // of the front end
  uint32_t parts = 0;
  bool edged = false;  // some texts hold kEdge (parse/productions.h)

  uint32_t add(GrammarNode node) {
    nodes.push_back(std::move(node));
    return static_cast<uint32_t>(nodes.size() - 1);
  }
};

}  // namespace structgen
