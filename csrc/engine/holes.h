// Texts with holes under a compiled grammar: whether they can be filled, and the grammar of the
// fillings of one hole.
//
// In: a grammar, and fixed texts with holes, or a prefix and a suffix. Out: yes with a text, no, or not
// known; or a grammar whose texts are the middles. Cost: see holes/facts.h, within the limit of a
// matcher's call and 200 units for each byte of text. The grammar's world is locked meanwhile.
//
// Example: for a grammar of `{"a": <integer>}`, the prefix `{"a": ` and the suffix `}` give the grammar
// of the integers, with blanks behind them where the grammar allows blanks.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/grammar.h"
#include "holes/path.h"

namespace structgen {

struct Filling {
  Verdict verdict = Verdict::kUnknown;
  // A whole text, if the answer is yes.
  std::string text;
};

// Tells whether some text of the grammar consists of these parts, of which some are holes. With a yes comes a
// text that the grammar's parser has read; a no is proved. Throws kGrammar if the grammar limits tokens, and
// kValue if the parts are too long.
Filling can_complete(const std::shared_ptr<Grammar>& grammar, std::vector<Part> parts);

// Returns the grammar of all texts between `prefix` and `suffix`. Throws kUnsatisfiableInfill if one of them
// does not fit (pointer "prefix" or "suffix", and the offset in it), and kGrammar if the grammar limits
// tokens.
std::shared_ptr<Grammar> infill(std::shared_ptr<Grammar> grammar, std::string prefix, std::string suffix);

// Returns a grammar of the same texts whose rules hold its range of bytes. Questions that do not read a text
// from left to right need such a grammar, because nothing counts their bytes. The rules are an intersection
// (holes/intersection.h), whose errors it throws.
std::shared_ptr<Grammar> without_range(const std::shared_ptr<Grammar>& grammar);

// A step of a condition on whole texts. Steps are in postfix order: "contains foo or bar, and has at most 80
// bytes" is kContains {foo, bar}, kBytes 0..80, kAnd.
struct ConditionStep {
  enum StepKind : uint8_t {
    kRegex,
    kContains,
    kBytes,
    // kAnd joins the last two conditions: both must hold. With kOr one of them must.
    kAnd,
    kOr,
    // Negates the last condition.
    kNot,
  } kind = kRegex;
  std::vector<std::string> texts;
  uint64_t lo = 0, hi = 0;
};

// Returns the grammar of those texts that meet the condition. Throws kUnsatisfiableInfill (pointer
// "condition") if there are no such texts, kGrammar if the grammar limits tokens, and the errors of patterns
// and limits.
std::shared_ptr<Grammar> conditioned(const std::shared_ptr<Grammar>& grammar,
                                     const std::vector<ConditionStep>& condition);

}  // namespace structgen
