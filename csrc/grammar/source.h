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

// The operators of expressions. Each uses some fields of GrammarNode: `a`, `b`, `text`, `kids`.
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
  // The texts of kids[0] that have no shorter text of kids[0] at their beginning. kids[0] must be regular.
  kShortest,
  kRule,    // a = rule
  kLexeme,  // a = lexeme
  // The grammar number `a` of another kind, such as a JSON Schema.
  kPart,
  // One of the texts `units`, or the text of one of the tokens `ids`, which is added to `units` once the
  // vocabulary is known.
  kTokens,
  // At least `a` neighbouring texts of the list `units`, in their order.
  kSubstring,
  // kids[0] as a capture with name number `a`. Without a name it is a gap: captures around it leave it out at
  // their ends.
  kCapture,
  // kids[0] captured as `a`, then kids[1] captured as `b`. Where the text can be split in several ways, b
  // begins as early as possible.
  kSplit,
  // kids[0], and at most `a` tokens may begin in its text. `text` is its name in error messages.
  kLimit,
  // Any number of the lexemes of gap `a`, such as blanks.
  kGap,
};

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
  // The name of the rule; empty if a front end made the rule. The user never sees such a rule.
  std::string name;
  uint32_t node = 0;
  bool defined = false;
};

// A terminal of a grammar with a lexer: it reads as much text as it can.
struct Lexeme {
  std::string name;
  uint32_t node = 0;
  int32_t priority = 0;
  // True if the lexeme wins against a pattern that matches the same text.
  bool literal = false;
  // True if the lexeme competes with itself only: it ends where no longer text of its own goes on.
  bool alone = false;
  // `lazy` says that the lexeme ends as soon as it matches, even if another lexeme could read on. If a lazy
  // lexeme is the beginning of a longer text, `whole` is the node of the longer text, which then competes
  // with other lexemes; -1 stands for the lexeme itself.
  bool lazy = false;
  int64_t whole = -1;
  // True if the texts are spelled as inside of a JSON string (strings/json_inside.h).
  bool inside = false;
};

struct GrammarSource {
  std::vector<GrammarNode> nodes;
  std::vector<GrammarRule> rules;
  std::vector<Lexeme> lexemes;
  std::vector<std::string> captures;  // names
  // gaps[g] lists the lexemes of gap g.
  std::vector<std::vector<uint32_t>> gaps;
  std::vector<std::string> warnings;
  uint32_t parts = 0;
  // True if some texts contain kEdge (parse/productions.h).
  bool edged = false;

  uint32_t add(GrammarNode node) {
    nodes.push_back(std::move(node));
    return static_cast<uint32_t>(nodes.size() - 1);
  }
  uint32_t capture(const std::string& name);
};

// Returns in a few words what is wrong with a node; null if nothing is. `before` is the index that the node
// would get: it may name only nodes with smaller ones.
const char* fault(const GrammarSource& source, const GrammarNode& node, std::size_t before);

}  // namespace structgen
