// Texts with holes under a compiled grammar: whether they can be filled, and the grammar of the
// fillings of one hole.
//
// In: a grammar, and fixed texts with gaps, or a prefix and a suffix. Out: yes with a text, no, or not
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
  // The whole text, where the answer is yes.
  std::string text;
};

// A yes is a promise: the grammar's parser has read the text. A no is a proof. Throws kGrammar where
// the grammar limits tokens, kValue where the parts are too long.
Filling can_complete(const std::shared_ptr<Grammar>& grammar, std::vector<Part> parts);

// The grammar of all texts between `prefix` and `suffix`. Throws kUnsatisfiableInfill with the byte at
// which they do not fit (its pointer is "prefix" or "suffix"), and kGrammar where the grammar limits
// tokens.
std::shared_ptr<Grammar> infill(std::shared_ptr<Grammar> grammar, std::string prefix, std::string suffix);

// The same texts without a range of bytes that is counted beside the states: for questions whose text is not
// read from left to right. An intersection (holes/intersection.h) where there is such a range; throws its
// errors.
std::shared_ptr<Grammar> without_range(const std::shared_ptr<Grammar>& grammar);

// A condition on whole texts, in postfix order: "contains foo or bar, and has at most 80 bytes" is
// kContains {foo, bar}, kBytes 0..80, kAnd.
struct ConditionStep {
  enum StepKind : uint8_t {
    // The whole text matches a pattern.
    kRegex,
    // One of the texts stands in it.
    kContains,
    // It has lo to hi bytes.
    kBytes,
    // Both of the last two conditions hold; kOr: one of them does.
    kAnd,
    kOr,
    // The last condition does not hold.
    kNot,
  } kind = kRegex;
  std::vector<std::string> texts;
  uint64_t lo = 0, hi = 0;
};

// The grammar of those texts that meet the condition. Throws kUnsatisfiableInfill with the pointer
// "condition" where there are none, kGrammar where the grammar limits tokens, the errors of parsing a
// pattern, and errors of limits.
std::shared_ptr<Grammar> conditioned(const std::shared_ptr<Grammar>& grammar,
                                     const std::vector<ConditionStep>& condition);

}  // namespace structgen
