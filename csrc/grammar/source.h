// A grammar in the form in which front ends hand it over: one language of expressions for rules and
// terminals.
//
// In: calls in any order, children before parents. Out: nodes and rules, numbered. Cost: one node per
// call. Whether a part is regular is decided in lower.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "regex/charset.h"

namespace structgen {

// The operators of expressions. `a`, `b`, `text`, `kids` and so on are fields of GrammarNode.
enum class NodeOp : uint8_t {
  kEmpty,     // the empty text
  kNever,     // no text at all
  kBytes,     // text: these bytes
  kByte,      // text: one of these bytes
  kChars,     // one character of `ranges`
  kPattern,   // text: a Python regex, matched as a whole
  kSequence,  // kids
  kChoice,    // kids
  kRepeat,    // kids[0], a = min, b = max (kUnbounded)
  kBoth,      // texts of all kids (regular)
  kNot,       // every text but those of kids[0] (regular)
  // The texts of kids[0] no beginning of which is a text of kids[0] (regular).
  kShortest,
  kRule,    // a = rule
  kLexeme,  // a = lexeme
  // a = the number of a grammar of another kind.
  kPart,
  // One of the texts `units`, which are those of the tokens `ids`; filled in when the vocabulary is
  // known.
  kTokens,
  // A run of the texts `units`, at least a of them.
  kSubstring,
  // kids[0], remembered under the name a. Without a name: a gap, which belongs to no capture that ends
  // behind it.
  kCapture,
  // kids[0] named a, then kids[1] named b. b begins as early as it can where both can be read.
  kSplit,
  // kids[0], in whose text at most a tokens begin; text: a name for errors.
  kLimit,
  // The texts that may stand behind lexemes: any number of the lexemes of gap a.
  kGap,
};

// One node of an expression.
struct GrammarNode {
  NodeOp op = NodeOp::kEmpty;
  uint32_t a = 0, b = 0;
  std::string text{};
  std::vector<uint32_t> kids{};
  std::vector<CodepointRange> ranges{};
  std::vector<int32_t> ids{};
  std::vector<std::string> units{};
  // The byte of the grammar's text at which it stands; -1: not known.
  int64_t place = -1;
};

struct GrammarRule {
  // Empty: made by the front end, and never shown to the user.
  std::string name;
  uint32_t node = 0;
  bool defined = false;
};

// A terminal that takes as much text as it can, as in a lexer.
struct Lexeme {
  std::string name;
  uint32_t node = 0;
  int32_t priority = 0;
  // It wins over a pattern that matches the same text.
  bool literal = false;
  // Only its own longer texts bound it, not those of other lexemes.
  bool alone = false;
  // The lexeme ends as soon as it matches, and no other lexeme goes on there. `whole`: if this lexeme
  // is only the first part of a text, the node of the whole text, which the other lexemes see; -1:
  // itself.
  bool lazy = false;
  int64_t whole = -1;
  // Its texts are written as the inside of a JSON string holds them (strings/json_inside.h).
  bool inside = false;
};

// A whole grammar of a front end.
struct GrammarSource {
  std::vector<GrammarNode> nodes;
  std::vector<GrammarRule> rules;
  std::vector<Lexeme> lexemes;
  std::vector<std::string> captures;  // names
  // Per gap: its lexemes.
  std::vector<std::vector<uint32_t>> gaps;
  // Warnings of the front end.
  std::vector<std::string> warnings;
  uint32_t parts = 0;
  // Some texts contain kEdge (parse/productions.h).
  bool edged = false;

  uint32_t add(GrammarNode node) {
    nodes.push_back(std::move(node));
    return static_cast<uint32_t>(nodes.size() - 1);
  }
  // The number of a capture's name; one name has one number.
  uint32_t capture(const std::string& name);
};

// What is wrong with a node that stands behind `before` others, as a short fact; null: nothing is. The
// lexemes, rules, gaps, captures and parts that the node names must be there already.
const char* fault(const GrammarSource& source, const GrammarNode& node, std::size_t before);

}  // namespace structgen
