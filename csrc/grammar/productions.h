// A context-free grammar as productions, left-recursive or not.
//
// In: an analysed Cfg, and the lexemes of a source. Out: alternatives on demand. Rule r has the number
// r * stride, so that grammars of other kinds can take the numbers between (engine/compose.h). Cost: a
// left-recursive group of n rules has n * n rules to ask for; only those are made that a text reaches.
//
// Left recursion: a rule A of a group is read from its left corner upwards. It begins with a symbol X
// that is no rule of its group, from an alternative B -> X w; reads w; and goes on with tail(A, B), the
// texts that may follow once B was read as the left corner of A. tail(A, B) has one alternative
// w' tail(A, C) for each alternative C -> B w', and if B is A, also the empty one.
//
//     e -> e "+" t | t        e: t tail(e, e)        tail(e, e): nothing | "+" t tail(e, e)
//
// Symbols in front of X that match the empty text are left out one by one, and X itself is read as a
// text that is not empty, so hidden left recursion is no special case. Notes in front of X stay. If X
// is a rule of the group, it was read already, so they say that it began where the group was entered.
// Source: the left-corner transform (Rosenkrantz & Lewis 1970), restricted to left-recursive rules as
// in Moore, "Removing Left Recursion from Context-Free Grammars" (NAACL 2000).
#pragma once

#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/arena.h"
#include "base/intern.h"
#include "grammar/cfg.h"
#include "grammar/lexemes.h"
#include "parse/productions.h"

namespace structgen {

class CfgProductions : public Productions {
 public:
  CfgProductions(RegexArena& regexes, Cfg cfg, std::vector<LexemeLanguage> lexemes);
  // Sets the symbol of part i of the grammar. engine/compose.h joins the parts.
  void set_part(uint32_t i, Symbol symbol);
  RuleId root() const { return RuleId{cfg_.start}; }
  const std::vector<CfgLimit>& limits() const { return cfg_.limits; }
  const std::vector<std::string>& warnings() const { return cfg_.warnings; }
  void expand(RuleId rule, const Reading& reading, Alternatives& out) override;
  std::span<const LexemePart> lexeme(uint32_t lexeme, uint32_t context) override;
  GrammarTraits traits() const override {
    return {.restricted = restricted_, .context_free = parts_.empty() && !cfg_.contexts.empty()};
  }
  RuleTraits traits_of(RuleId rule) const override;
  std::size_t byte_size() const override {
    return cfg_.rules.size() * 200 + made_.byte_size() + made_index_.byte_size();
  }

  // Sets the distance between rule numbers, for several grammars that share one numbering. This grammar is
  // the first of them: its rule r has the number r * stride.
  void set_stride(uint32_t stride) { stride_ = stride; }

 private:
  // A rule that is made here and stands in no Cfg. kTail: what may follow a text of the rule b, so that both
  // together are a text of the rule a. kCount: the repetition a{b,c}. kSome: `a` without the empty text.
  struct Made {
    enum Kind : uint32_t { kTail, kCount, kSome } kind;
    uint32_t a, b, c;
    friend bool operator==(const Made&, const Made&) = default;
  };
  // A corner of the left-recursive rule `rule` (left-corner parsing): one of its alternatives from the symbol
  // `first` on, if all symbols in front of it may be empty. In r -> r "+" t | t, one corner begins with r and
  // one with t.
  struct Corner {
    uint32_t rule;
    CfgSymbol first;
    std::vector<CfgSymbol> rest;
    // The notes that stood in front of `first`.
    std::vector<CfgSymbol> notes;
  };
  struct Group {
    // The corners whose first symbol is no rule of the group.
    std::vector<Corner> starts;
    // The corners that begin with a rule of the group, by this rule.
    std::unordered_map<uint32_t, std::vector<Corner>> ups;
    // True if a corner in `ups` has notes. A note must then mark where the group's text begins, too.
    bool noted = false;
  };
  Symbol symbol(CfgSymbol s) const;
  Symbol made(Made::Kind kind, uint32_t a, uint32_t b, uint32_t c);
  bool nullable(CfgSymbol s) const;
  const Group& group(uint32_t number);
  Symbol some(CfgSymbol s);
  void expand_some(uint32_t rule, Alternatives& out);
  // Calls f(i) for each symbol of the sequence that may read the first byte of the sequence.
  template <class F>
  void for_each_first(const CfgSequence& sequence, F&& f) const {
    for (std::size_t i = 0; i < sequence.size(); ++i) {
      const CfgSymbol::Kind kind = sequence[i].kind;
      if (kind != CfgSymbol::kNote && kind != CfgSymbol::kAfter && kind != CfgSymbol::kLimit) f(i);
      if (!nullable(sequence[i])) return;
    }
  }
  void append(const std::vector<CfgSymbol>& from, std::vector<Symbol>& to) const;
  static std::vector<CfgSymbol> notes(const CfgSequence& sequence, std::size_t n);

  RegexArena& regexes_;
  Cfg cfg_;
  Lexemes lexemes_;
  std::vector<Symbol> parts_;
  std::vector<std::unique_ptr<Group>> groups_;
  std::vector<std::vector<uint32_t>> members_;
  StableVector<Made> made_;
  InternTable made_index_;
  uint32_t stride_ = 1;
  std::vector<bool> limits_;  // by rule: a limit may be met in its text
  bool restricted_ = false;
};

}  // namespace structgen
