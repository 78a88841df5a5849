// Texts with holes under a compiled grammar: whether they can be filled, and the grammar of what fills one.
//
// In: a grammar, and fixed texts with gaps, or a prefix and a suffix. Out: yes with a text, no, or not known;
// a grammar whose texts are the middles. Cost: holes/facts.h, within the limit of a matcher's call and 200
// units a byte of text. The grammar's world is locked meanwhile.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/grammar.h"
#include "holes/path.h"

namespace structgen {

struct Filling {
  Verdict verdict = Verdict::kUnknown;
  std::string text;  // the whole of it, where the answer is yes
};

// Yes is a promise: the text was read by the grammar's parser. No is a proof. Throws kGrammar where the
// grammar limits tokens, kValue where the parts are too long.
Filling can_complete(const std::shared_ptr<Grammar>& grammar, std::vector<Part> parts);

// The grammar of all texts between `prefix` and `suffix`. Throws kUnsatisfiableInfill with the byte at which
// they do not fit (its pointer is "prefix" or "suffix"), kGrammar where the grammar limits tokens.
std::shared_ptr<Grammar> infill(std::shared_ptr<Grammar> grammar, std::string prefix, std::string suffix);

// A condition on whole texts, in postfix order.
struct ConditionStep {
  enum Kind : uint8_t {
    kRegex,     // one pattern, which the whole text matches
    kContains,  // one of the texts stands in it
    kBytes,     // it has lo..hi bytes
    kAnd,       // of the last two
    kOr,
    kNot,  // of the last one
  } kind = kRegex;
  std::vector<std::string> texts;
  uint64_t lo = 0, hi = 0;
};

// The grammar of those texts that meet the condition. Throws kUnsatisfiableInfill with the pointer
// "condition" where there are none, kGrammar where the grammar limits tokens, what parsing a pattern throws,
// and errors of limits.
std::shared_ptr<Grammar> conditioned(const std::shared_ptr<Grammar>& grammar,
                                     const std::vector<ConditionStep>& condition);

}  // namespace structgen
