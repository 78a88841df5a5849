// A grammar that has all rules of another grammar and, beside them, rules of its own.
//
// In: productions. Out: productions; a rule of the base has twice its number, so odd numbers are free, and
// both kinds can stand in one alternative. Cost: a pass over each alternative of the base.
//
// Example: rule 3 of the base is rule 6 here; rule 7 is the own rule number 3.
#pragma once

#include "base/error.h"
#include "parse/productions.h"

namespace structgen {

class ExtendedProductions : public Productions {
 public:
  // `lexed` says that the rules consist of lexemes. `base` must live longer than this object.
  ExtendedProductions(Productions& base, bool lexed) : base_(base), lexed_(lexed) {}
  static RuleId of(RuleId base) { return checked(2 * uint64_t{base.v}); }

  void expand(RuleId rule, const Reading& reading, Alternatives& out) final {
    if (is_own(rule)) return expand_own(rule.v / 2, reading, out);
    base_.expand(RuleId{rule.v / 2}, reading, out);
    translate(out.symbols);
  }
  void expand_shortest(RuleId rule, const Reading& reading, Alternatives& out) final {
    if (is_own(rule)) return expand_own(rule.v / 2, reading, out);
    base_.expand_shortest(RuleId{rule.v / 2}, reading, out);
    translate(out.symbols);
  }
  bool expand_shared(RuleId rule, Alternatives& out) final {
    if (is_own(rule) || !base_.expand_shared(RuleId{rule.v / 2}, out)) return false;
    translate(out.symbols);
    return true;
  }
  bool bound(RuleId rule, Bound& out) final {
    if (is_own(rule) || !base_.bound(RuleId{rule.v / 2}, out)) return false;
    translate(out.all);
    translate(out.any);
    return true;
  }
  void start_search() override { base_.start_search(); }
  RuleTraits traits_of(RuleId rule) const override {
    return is_own(rule) ? RuleTraits{.plain = lexed_} : base_.traits_of(RuleId{rule.v / 2});
  }
  bool lexed() const { return lexed_; }

 protected:
  // is_own() tells whether a rule was added by this class; own_rule() returns the rule of the added rule
  // number n.
  static bool is_own(RuleId rule) { return rule.v % 2 != 0; }
  static RuleId own_rule(std::size_t n) { return checked(2 * uint64_t{n} + 1); }
  // Writes the alternatives of own_rule(n). All symbols in them must be numbered as in these productions
  // (of(), translate()).
  virtual void expand_own(uint32_t n, const Reading& reading, Alternatives& out) = 0;
  // Returns a symbol of the base as a symbol of these productions.
  virtual Symbol translate(Symbol s) const {
    if (s.kind() == Symbol::kRule) return Symbol::rule(of(s.rule_id()));
    return s.kind() == Symbol::kReader ? Symbol::reader(of(s.rule_id())) : s;
  }

  Productions& base_;
  const bool lexed_;

 private:
  static RuleId checked(uint64_t number) {
    if (number > kMaxNumber) throw Error(ErrorKind::kBudgetExceeded, "the grammar has too many rules");
    return RuleId{static_cast<uint32_t>(number)};
  }
  void translate(std::vector<Symbol>& symbols) const {
    for (Symbol& s : symbols) s = translate(s);
  }
};

}  // namespace structgen
