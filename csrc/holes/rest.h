// The rest of a grammar after a text was read, as productions.
//
// In: a parse state behind the text, and the productions that it belongs to. Out: productions whose
// texts are the rest: rule() reads the texts that may follow. Cost: one rule for each set of stacks
// that a text reaches.
//
// Example: after `[1` in a grammar of arrays of integers, the rest has the texts `]`, `23]`, `,4]`, ...
//
// A set of stacks is a rule: its alternatives are its tops, each followed by the rule of the set below it. A
// symbol that captures a text and its reader stay in one alternative, because a reader is told only the text
// that its own alternative captured. A capture that is open behind the text that was read begins anew in the
// rest. Its reader is told the text captured before and the text captured in the rest as one text.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/flat_map.h"
#include "holes/extended_productions.h"
#include "parse/productions.h"
#include "parse/state.h"

namespace structgen {

// The productions of what may follow a text that was already read.
class RestOfText : public ExtendedProductions {
 public:
  // `parser` must read `base` and own `state`. Both must live longer than this object.
  RestOfText(Productions& base, Parser& parser, StateId state);
  RuleId rule() const { return own_rule(0); }

  GrammarTraits traits() const override { return base_.traits(); }
  std::span<const LexemePart> lexeme(uint32_t lexeme, uint32_t context) override {
    return base_.lexeme(lexeme, context);
  }
  uint64_t omitted() const override { return base_.omitted() + parser_.omitted(); }
  bool compared_with(RuleId reader, std::size_t most, std::vector<std::string>& out) override {
    return is_own(reader) || base_.compared_with(RuleId{reader.v / 2}, most, out);
  }
  bool narrow(RuleId rule, const Choice& choice, RuleId& out, bool& any) override;
  bool values(RuleId rule, uint32_t most, std::vector<std::string>& out) override {
    return !is_own(rule) && base_.values(RuleId{rule.v / 2}, most, out);
  }
  bool inexact() const override { return base_.inexact(); }
  std::size_t byte_size() const override {
    return own_.size() * 40 + stacks_.byte_size() + parser_.byte_size();
  }

 private:
  // What an added rule stands for: the start, a set of stacks, or a reader whose capture was open before the
  // hole. Such a reader is told the text from before the hole and the text behind it as one text.
  struct Own {
    enum OwnKind : uint8_t { kStart, kStack, kReader } kind;
    StackId stack = {};
    // For a kReader rule: the reader of the base, and the text that was captured before the hole.
    RuleId reader = {};
    std::string text = {};
  };
  void expand_own(uint32_t n, const Reading& reading, Alternatives& out) override;
  Symbol stack(StackId s);
  void start(Alternatives& out);
  void go_down(StackId s, std::vector<std::string>& captured, uint32_t open, bool label,
               std::vector<Symbol>& above, Alternatives& out);
  void go_on(const StackEntry& e, std::vector<std::string>& captured, uint32_t open, bool label,
             std::vector<Symbol>& above, Alternatives& out);

  Parser& parser_;
  const StateId state_;
  Alternatives start_;
  std::vector<Own> own_;
  // For each set of stacks, the number of its added rule.
  FlatMap<uint32_t, uint32_t> stacks_;
};

}  // namespace structgen
