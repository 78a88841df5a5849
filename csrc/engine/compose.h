// Several grammars as one: rules that refer to whole JSON Schemas.
//
// In: the productions of a grammar and of its parts. Out: productions over one numbering: rule r of
// grammar i is r * n + i, where n is the number of grammars. With one part (n = 2), rule 3 of the
// grammar is 6 and rule 3 of the part is 7. Cost: one pass over each expansion.
//
// A function with a rule asks the grammar to which the rule belongs, and renumbers the answer. Questions that
// a grammar of rules never answers (narrow(), values(), bound(), expand_shared()) go to the parts only.
#pragma once

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "base/error.h"
#include "grammar/productions.h"
#include "parse/productions.h"

namespace structgen {

class ComposedProductions : public Productions {
 public:
  ComposedProductions(std::unique_ptr<CfgProductions> rules, uint32_t parts)
      : rules_(std::move(rules)), stride_(parts + 1) {
    rules_->set_stride(stride_);
  }
  void add(std::unique_ptr<Productions> part, RuleId root) {
    parts_.push_back(std::move(part));
    const uint32_t i = static_cast<uint32_t>(parts_.size());
    rules_->set_part(i - 1, Symbol::rule(number(root, i)));
  }
  RuleId root() const { return number(rules_->root(), 0); }
  // Returns the number that a rule of the grammar has in the common numbering.
  RuleId rule(uint32_t of_rules) const { return number(RuleId{of_rules}, 0); }

  GrammarTraits traits() const override {
    GrammarTraits out = rules_->traits();
    out.context_free = out.context_free && parts_.empty();
    out.edged = edged_;
    for (const auto& p : parts_) {
      const GrammarTraits part = p->traits();
      out.asks_alike = out.asks_alike || part.asks_alike;
      out.tries_texts = out.tries_texts || part.tries_texts;
      out.unproven = out.unproven || part.unproven;
    }
    return out;
  }
  RuleTraits traits_of(RuleId rule) const override {
    const uint32_t i = rule.v % stride_;
    if (i == 0) return rules_->traits_of(rule);
    RuleTraits out = parts_[i - 1]->traits_of(RuleId{rule.v / stride_});
    out.limits = false;
    return out;
  }
  void expand(RuleId rule, const Reading& reading, Alternatives& out) override {
    const uint32_t i = rule.v % stride_;
    if (i == 0) return rules_->expand(rule, reading, out);
    parts_[i - 1]->expand(RuleId{rule.v / stride_}, reading, out);
    renumber(i, out.symbols);
  }
  void expand_shortest(RuleId rule, const Reading& reading, Alternatives& out) override {
    const uint32_t i = rule.v % stride_;
    if (i == 0) return rules_->expand_shortest(rule, reading, out);
    parts_[i - 1]->expand_shortest(RuleId{rule.v / stride_}, reading, out);
    renumber(i, out.symbols);
  }
  bool expand_shared(RuleId rule, Alternatives& out) override {
    const uint32_t i = rule.v % stride_;
    if (i == 0 || !parts_[i - 1]->expand_shared(RuleId{rule.v / stride_}, out)) return false;
    renumber(i, out.symbols);
    return true;
  }
  bool narrow(RuleId rule, const Choice& choice, RuleId& out, bool& any) override {
    const uint32_t i = rule.v % stride_;
    if (i == 0) return false;
    std::vector<RuleId> rules;
    for (const RuleId r : choice.rules) {
      if (r.v % stride_ != i) return false;
      rules.push_back(RuleId{r.v / stride_});
    }
    if (!parts_[i - 1]->narrow(RuleId{rule.v / stride_}, {choice.texts, rules, choice.others}, out, any))
      return false;
    out = number(out, i);
    return true;
  }
  bool values(RuleId rule, uint32_t most, std::vector<std::string>& out) override {
    const uint32_t i = rule.v % stride_;
    return i != 0 && parts_[i - 1]->values(RuleId{rule.v / stride_}, most, out);
  }
  bool bound(RuleId rule, Bound& out) override {
    const uint32_t i = rule.v % stride_;
    if (i == 0 || !parts_[i - 1]->bound(RuleId{rule.v / stride_}, out)) return false;
    renumber(i, out.all);
    renumber(i, out.any);
    return true;
  }
  std::size_t byte_size() const override {
    std::size_t out = rules_->byte_size();
    for (const auto& p : parts_) out += p->byte_size();
    return out;
  }
  void start_search() override {
    for (const auto& p : parts_) p->start_search();
  }
  std::span<const LexemePart> lexeme(uint32_t lexeme, uint32_t context) override {
    return rules_->lexeme(lexeme, context);
  }
  bool compared_with(RuleId reader, std::size_t most, std::vector<std::string>& out) override {
    const uint32_t i = reader.v % stride_;
    return i == 0 || parts_[i - 1]->compared_with(RuleId{reader.v / stride_}, most, out);
  }
  uint64_t omitted() const override {
    uint64_t out = 0;
    for (const auto& p : parts_) out += p->omitted();
    return out;
  }
  void set_edged() { edged_ = true; }

 private:
  RuleId number(RuleId r, uint32_t i) const {
    const uint64_t n = static_cast<uint64_t>(r.v) * stride_ + i;
    if (n > kMaxNumber) throw Error(ErrorKind::kBudgetExceeded, "the grammar has too many rules");
    return RuleId{static_cast<uint32_t>(n)};
  }
  void renumber(uint32_t i, std::vector<Symbol>& symbols) const {
    for (Symbol& s : symbols)
      if (s.kind() == Symbol::kRule)
        s = Symbol::rule(number(s.rule_id(), i));
      else if (s.kind() == Symbol::kReader)
        s = Symbol::reader(number(s.rule_id(), i));
  }
  std::unique_ptr<CfgProductions> rules_;
  std::vector<std::unique_ptr<Productions>> parts_;
  const uint32_t stride_;
  bool edged_ = false;
};

}  // namespace structgen
