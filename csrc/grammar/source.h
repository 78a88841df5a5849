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
  // The texts of kids[0] that do not begin with a shorter text of kids[0]. kids[0] must be regular.
  kShortest,
  kRule,    // a = rule
  kLexeme,  // a = lexeme
  // A grammar of another kind, such as a JSON Schema, with the number `a`.
  kPart,
  // One of the texts `units`. The texts of the tokens `ids` are added to `units` once the vocabulary is
  // known.
  kTokens,
  // At least `a` texts of the list `units` that stand side by side there, in this order.
  kSubstring,
  // kids[0] as a capture with name number `a`, or without a name as a gap, which captures around it leave out
  // at their ends.
  kCapture,
  // kids[0] as capture `a`, then kids[1] as capture `b`, which begins as early as possible.
  kSplit,
  // kids[0], in each of whose texts at most `a` tokens may begin. `text` is its name in error messages.
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
  // Where the expression stands in the grammar's text; -1 if this is not known.
  int64_t place = -1;
};

struct GrammarRule {
  // The name of the rule. It is empty for a rule that a front end made, which no message shows.
  std::string name;
  uint32_t node = 0;
  bool defined = false;
};

// A terminal of a grammar with a lexer: it reads as much text as it can.
struct Lexeme {
  std::string name;
  uint32_t node = 0;
  int32_t priority = 0;
  // True if the lexeme wins over a pattern that has the same text.
  bool literal = false;
  // True if the lexeme ends where its own texts end, whatever other lexemes could read.
  bool alone = false;
  // `lazy`: the lexeme ends where it first matches, even if another lexeme could read on. `whole`: if the
  // lexeme begins a longer text, the node of these longer texts, which compete with other lexemes; otherwise
  // -1.
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
  // gaps[g]: the lexemes of gap g.
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

// Returns what is wrong with a node, or null. `before` is the index that the node would get: its kids must
// have smaller ones.
const char* fault(const GrammarSource& source, const GrammarNode& node, std::size_t before);

}  // namespace structgen
