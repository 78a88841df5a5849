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
#include "parse/productions.h"
#include "parse/state.h"

namespace structgen {

class Rest : public Productions {
 public:
  // `parser`: made over `base`, with the state in it. Both must outlive this object.
  Rest(Productions& base, Parser& parser, StateId state);
  RuleId rule() const { return RuleId{1}; }
  // The number of a rule of the base in this numbering.
  static RuleId of(RuleId base);

  void expand(RuleId rule, const Reading& reading, Alternatives& out) override;
  void expand_shortest(RuleId rule, const Reading& reading, Alternatives& out) override;
  void start_search() override { base_.start_search(); }
  bool bound(RuleId rule, Bound& out) override;
  std::span<const LexemePart> lexeme(uint32_t lexeme, uint32_t context) override {
    return base_.lexeme(lexeme, context);
  }
  bool restricted() const override { return base_.restricted(); }
  bool context_free() const override { return base_.context_free(); }
  bool edged() const override { return base_.edged(); }
  uint64_t omitted() const override { return base_.omitted() + parser_.omitted(); }
  bool asks_alike() const override { return base_.asks_alike(); }
  bool compared(RuleId rule) const override { return rule.v % 2 == 0 && base_.compared(RuleId{rule.v / 2}); }
  bool compares(RuleId reader) const override {
    return reader.v % 2 == 0 && base_.compares(RuleId{reader.v / 2});
  }
  bool compared_with(RuleId reader, std::size_t most, std::vector<std::string>& out) override {
    return reader.v % 2 == 1 || base_.compared_with(RuleId{reader.v / 2}, most, out);
  }
  bool narrow(RuleId rule, const Choice& choice, RuleId& out, bool& any) override;
  bool values(RuleId rule, uint32_t most, std::vector<std::string>& out) override {
    return rule.v % 2 == 0 && base_.values(RuleId{rule.v / 2}, most, out);
  }
  bool inexact() const override { return base_.inexact(); }
  bool bordered() const override { return base_.bordered(); }
  bool unproven() const override { return base_.unproven(); }
  bool tries_texts() const override { return base_.tries_texts(); }
  bool plain(RuleId rule) const override {
    return rule.v % 2 == 0 ? base_.plain(RuleId{rule.v / 2}) : lexed_;
  }
  uint64_t needed_behind(RuleId rule) const override {
    return rule.v % 2 == 0 ? base_.needed_behind(RuleId{rule.v / 2}) : 0;
  }
  bool lexed() const { return lexed_; }
  std::size_t byte_size() const override { return own_.size() * 40 + stacks_.byte_size(); }

 private:
  struct Own {
    enum Kind : uint8_t { kStart, kStack, kReader } kind;
    // A StackId, or a RuleId of the base.
    uint32_t a = 0;
    // The text that was captured before.
    std::string text;
  };
  Symbol stack(StackId s);
  Symbol number(Symbol s) const;
  void renumber(Alternatives& out) const;
  void start(Alternatives& out);
  void go_down(StackId s, std::vector<std::string>& captured, uint32_t open, bool label,
               std::vector<Symbol>& above, Alternatives& out);
  void go_on(const StackEntry& e, std::vector<std::string>& captured, uint32_t open, bool label,
             std::vector<Symbol>& above, Alternatives& out);

  Productions& base_;
  Parser& parser_;
  const StateId state_;
  const bool lexed_;
  Alternatives start_;
  std::vector<Own> own_;
  // Keyed by StackId.
  FlatMap<uint32_t, uint32_t> stacks_;
};

}  // namespace structgen
