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

// The operators of expressions. `a`, `b`, `text` and `kids` are fields of GrammarNode.
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
  // The texts of kids[0] of which no shorter beginning is a text of kids[0]. kids[0] must be regular.
  kShortest,
  kRule,    // a = rule
  kLexeme,  // a = lexeme
  // A grammar of another kind, such as a JSON Schema; a = its number.
  kPart,
  // One of the texts `units`, the texts of the tokens `ids`; `units` is filled in when the vocabulary is
  // known.
  kTokens,
  // A run of neighbouring texts of `units`, at least a of them.
  kSubstring,
  // kids[0] as a capture named a. Without a name: a gap, which no capture that ends behind it includes.
  kCapture,
  // kids[0] named a, then kids[1] named b. If the border between both is open, b begins as early as it can.
  kSplit,
  // kids[0], in whose text at most a tokens begin. `text` is a name for error messages.
  kLimit,
  // Any number of the lexemes of gap a, which may stand between other lexemes.
  kGap,
};

// One node of an expression; `op` says which fields it uses.
struct GrammarNode {
  NodeOp op = NodeOp::kEmpty;
  uint32_t a = 0, b = 0;
  std::string text{};
  std::vector<uint32_t> kids{};
  std::vector<CodepointRange> ranges{};
  std::vector<int32_t> ids{};
  std::vector<std::string> units{};
  // The offset of the expression in the grammar's text; -1 if it is not known.
  int64_t place = -1;
};

struct GrammarRule {
  // The name of the rule; empty if a front end made the rule, which is then never shown to the user.
  std::string name;
  uint32_t node = 0;
  bool defined = false;
};

// A terminal that reads as much text as it can, as in a lexer.
struct Lexeme {
  std::string name;
  uint32_t node = 0;
  int32_t priority = 0;
  // True if the lexeme wins over a pattern that matches the same text.
  bool literal = false;
  // True if only longer texts of this lexeme decide where it ends, and no other lexeme does.
  bool alone = false;
  // `lazy`: the lexeme ends as soon as it matches, and no other lexeme goes on there. `whole` is the node of
  // the language that other lexemes compete with, if this lexeme is the first part of a longer text; -1: the
  // lexeme itself.
  bool lazy = false;
  int64_t whole = -1;
  // True if the texts are spelled as inside of a JSON string (strings/json_inside.h).
  bool inside = false;
};

// A grammar as a front end hands it over.
struct GrammarSource {
  std::vector<GrammarNode> nodes;
  std::vector<GrammarRule> rules;
  std::vector<Lexeme> lexemes;
  std::vector<std::string> captures;  // names
  // gaps[g] lists the lexemes of gap g.
  std::vector<std::vector<uint32_t>> gaps;
  // What the front end warns the user of.
  std::vector<std::string> warnings;
  uint32_t parts = 0;
  // True if some texts contain kEdge (parse/productions.h).
  bool edged = false;

  uint32_t add(GrammarNode node) {
    nodes.push_back(std::move(node));
    return static_cast<uint32_t>(nodes.size() - 1);
  }
  // Returns the number of a capture's name; equal names have one number.
  uint32_t capture(const std::string& name);
};

// Returns what is wrong with a node that would get the index `before`, as a short fact, or null if nothing
// is. What the node names must exist already.
const char* fault(const GrammarSource& source, const GrammarNode& node, std::size_t before);

}  // namespace structgen
