// The rest of a grammar after a text was read, as productions.
//
// In: a parse state behind the text, and the productions that it belongs to. Out: productions whose
// texts are the rest: rule() reads the texts that may follow. Cost: one rule for each set of stacks
// that a text reaches.
//
// Example: after `[1` in a grammar of arrays of integers, the rest has the texts `]`, `23]`, `,4]`, ...
//
// A set of stacks is a rule: its alternatives are its tops, each followed by the rule of the set below
// it. A symbol that captures a text and its reader stay in one alternative, because a reader is told
// only the text that its own alternative captured. Captures that are open begin anew, and their readers
// are told the text captured before as well.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/flat_map.h"
#include "holes/extended_productions.h"
#include "parse/productions.h"
#include "parse/state.h"

namespace structgen {

// The productions of what may follow the text that was read.
class RestOfText : public ExtendedProductions {
 public:
  // `parser` was made over `base` and has the state. Both must outlive this object.
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
  // Includes the bytes of the parser.
  std::size_t byte_size() const override {
    return own_.size() * 40 + stacks_.byte_size() + parser_.byte_size();
  }

 private:
  // What an own rule stands for: the start, a set of stacks, or a reader that is also told the text captured
  // before the hole.
  struct Own {
    enum OwnKind : uint8_t { kStart, kStack, kReader } kind;
    // The stacks that a kStack rule reads.
    StackId stack = {};
    // The reader of the base that a kReader rule stands for, and the text that was captured before the hole.
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

  // The arguments of the constructor.
  Parser& parser_;
  const StateId state_;
  // Holds the alternatives of the start, own rule 0.
  Alternatives start_;
  // own_[n] says what the object's own rule n stands for.
  std::vector<Own> own_;
  // Holds the own rule of each set of stacks.
  FlatMap<uint32_t, uint32_t> stacks_;
};

}  // namespace structgen
