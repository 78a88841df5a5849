// Productions from a table: the grammar of a regex, of a choice, of texts that are written out.
//
// In: rules with their alternatives. Out: the same, on demand. Cost: a copy of the alternatives.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "parse/productions.h"

namespace structgen {

// A grammar whose rules are known in advance: the rule with the number i is rules[i].
class TableProductions : public Productions {
 public:
  explicit TableProductions(std::vector<Alternatives> rules) : rules_(std::move(rules)) {}
  void expand(RuleId rule, const Reading&, Alternatives& out) override {
    if (rule.v >= rules_.size()) throw Error(ErrorKind::kValue, "rule out of range");
    out = rules_[rule.v];
  }

 private:
  std::vector<Alternatives> rules_;
};

}  // namespace structgen
