// The texts that a suffix completes, as productions: the right quotient of a grammar by a text.
//
// In: productions, a rule of theirs, a suffix of one byte or more. Out: productions whose texts are all
// u for which u suffix is a text of the rule. Cost: facts (holes/facts.h) about "any text, then the
// suffix", found as rules are asked for: linear in the suffix for grammars such as those of documents
// and programs.
//
// In every rule on the way, one symbol holds the suffix's first byte: it crosses the border. The
// symbols before it are read as in the base. The symbols behind it read only suffix and are left out.
// The symbol itself becomes a rule (crossing, which symbol, where its text ends). So crossing rules are
// right-linear, and the derivations of u are those of u suffix. A terminal that crosses is its own
// right quotient (holes/right.h). An alternative is given only where a fact says that some text leads
// through it.
//
// Between lexemes the border matters, because only there it is known whether the suffix may follow the
// lexeme read last. So a lexeme that begins with the suffix reads one mark, the byte kEdge, which may
// not follow a lexeme where the suffix's first byte may not. A state may end where the mark leads to an
// end (Productions::bordered). Source: closure of the context-free languages under quotient with a
// regular one (Ginsburg, Spanier 1963). quotient.cc has an example and a table of the questions.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/flat_map.h"
#include "base/intern.h"
#include "holes/extended_productions.h"
#include "holes/fact_base.h"

namespace structgen {

class Quotient : public ExtendedProductions, protected FactBase {
 public:
  // `lexed`: whether the rules are made of lexemes. The arguments except the suffix must outlive this
  // object. `most`: bytes of the states of the parser that reads proofs.
  Quotient(RegexArena& regexes, Productions& base, RuleId root, bool lexed, std::string suffix,
           std::size_t most);
  RuleId rule() const { return own_rule(0); }
  // Whether there is any text.
  Verdict possible();
  // The number of bytes of the suffix that can be read behind some text; the error message points there. All
  // bytes: the suffix can be read, and the text cannot end behind it.
  std::size_t fits();

  std::span<const LexemePart> lexeme(uint32_t lexeme, uint32_t context) override;
  bool restricted() const override { return lexed_ || base_.restricted(); }
  uint64_t omitted() const override { return base_.omitted(); }
  bool bordered() const override { return lexed_; }
  bool unproven() const override { return true; }
  bool tries_texts() const override { return tried() || base_.tries_texts(); }
  bool inexact() const override { return inexact_ || base_.inexact(); }
  std::size_t byte_size() const override {
    return sizeof(Quotient) + base_.byte_size() + FactBase::byte_size() + crossings_.size() * 64 +
           crossing_index_.byte_size();
  }

 private:
  using At = PlaceId;
  // An own rule: one whose text holds the border.
  struct Crossing {
    enum CrossingKind : uint8_t {
      kRule,
      kReader,
      // A reader that is told the captured text and `text`, and reads nothing before the border.
      kEnded,
    } kind;
    // Of the base.
    RuleId rule;
    // kRule, kReader: what may not follow the text in front of it; it begins anywhere in the hole.
    Alive::Pending pending = Alive::kClear;
    // kEnded: where it begins.
    At from = {};
    At to = {};
    // kEnded: the number of a text in texts_.
    uint32_t text = 0;
    friend bool operator==(const Crossing&, const Crossing&) = default;
  };
  // A lexeme of the base grammar whose last bytes are the first ones of the suffix: the spot of the path
  // where it ends, and the bytes that may not follow it.
  struct CutLexeme {
    uint32_t lexeme;
    Path::Spot end;
    RegexId follow;
    friend auto operator<=>(const CutLexeme&, const CutLexeme&) = default;
  };
  void expand_own(uint32_t n, const Reading& reading, Alternatives& out) override;
  Symbol translate(Symbol s) const override;
  Symbol crossing(const Crossing& c);
  Symbol cut_lexeme(uint32_t lexeme, Path::Spot end, RegexId follow);
  RegexId marked(RegexId follow) const;
  std::vector<LexemePart> whole_lexeme(uint32_t lexeme, uint32_t context);
  std::vector<LexemePart> cut_parts(const CutLexeme& cut, uint32_t context);
  void begin_anew();
  bool done(At at, At to) const { return at == to || (to == end_ && path_.ends(places_.spot(at))); }
  // ---- quotient_questions.cc ----
  // Whether `head`, begun at a place, may end at the place `to`.
  struct Question {
    Facts::Head head;
    At from, to;
    friend auto operator<=>(const Question&, const Question&) = default;
  };
  std::vector<At> exits(Facts::Head head, At from);
  bool leads(const Question& q);
  Verdict decide(const Question& q);
  Verdict resolve(const Question& q);
  const Proof* proof(const Question& q);
  const Proof* prove(const Question& q, std::unique_ptr<const Proof> found);
  bool compose(std::span<const Symbol> alternative, At to, Proof& out);
  bool compose_rule(Symbol s, std::string told, Proof& out);
  // A compared item: its rule, and the reader behind it, which has to lead from one place to another.
  struct Item {
    RuleId reader, rule;
    At from, to;
  };
  std::optional<RuleId> fit(RuleId reader, RuleId rule, At from, At to);
  std::optional<RuleId> fit_apart(const Item& item, RuleId rest);
  std::optional<RuleId> fit_again(const Item& item, RuleId rest, RuleId free);
  std::vector<RuleId> free_items(RuleId rest, At from, At to);
  std::optional<RuleId> narrowed(RuleId rule, const Productions::Choice& choice);
  std::vector<std::string> told(const Item& item, const std::vector<std::string>& texts, bool leads);
  // ---- quotient_crossing.cc ----
  bool crossed(At at) const { return places_.spot(at) > 1; }
  std::size_t suffix_bytes(At at) const;
  std::vector<std::vector<Symbol>> behind(const Symbol* s, const Symbol* end, At at, uint32_t label,
                                          uint32_t captures, At to);
  void cross(Facts::Head head, Alive::Pending from, At to, Alternatives& out);
  class Crossings;
  // ---- quotient.cc ----
  void cross_some(Facts::Head head, Alive::Pending from, At to, Alternatives& out);
  // What may be missing in an answer: alternatives that depend on a captured text, and alternatives that
  // depend on a question which took too much work.
  struct Doubt {
    bool text = false, question = false;
  };
  Verdict noted(Verdict v) {
    doubt_.question = doubt_.question || v == Verdict::kUnknown;
    return v;
  }
  void begin() {
    doubt_ = {};
    resolved_ = 0;
  }
  // A question is resolved: its search ends with the first alternative.
  bool enough(const Alternatives& out) const { return !resolving_.empty() && !out.ends.empty(); }
  void add(std::vector<Symbol> sequence, Alternatives& out);
  uint32_t text(const std::string& t);

  const RuleId root_;
  const std::string suffix_;
  const At end_;
  // Of what was asked since it was cleared.
  Doubt doubt_;
  bool inexact_ = false;
  // The proof of each question. Null: no proof was found.
  std::map<Question, std::unique_ptr<const Proof>> proofs_;
  // Keyed by place: texts of proofs that lead there.
  std::map<At, std::deque<std::string>> shown_;
  std::map<Question, Verdict> decided_;
  // The questions that resolve() is deciding, the outermost first.
  std::vector<Question> resolving_;
  // Number of questions resolved since a rule was asked for.
  uint32_t resolved_ = 0;
  // Indexed by own rule, less 1.
  std::vector<Crossing> crossings_;
  InternTable crossing_index_;
  // The captured parts of the suffix (Crossing::text).
  std::vector<std::string> texts_;
  std::map<std::string, uint32_t> text_index_;
  // Keyed by lexeme and context: the answers of lexeme().
  std::map<std::pair<uint32_t, uint32_t>, std::vector<LexemePart>> lexemes_;
  // Own lexeme 2n + 1 is number n; 2n is the base's lexeme n.
  std::vector<CutLexeme> cut_lexemes_;
  std::map<CutLexeme, uint32_t> cut_lexeme_index_;
};

}  // namespace structgen
