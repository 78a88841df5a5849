// The texts that a suffix completes, as productions: the right quotient of a grammar by a text.
//
// In: productions, a rule of theirs, a suffix of one byte or more. Out: productions whose texts are all
// u for which u suffix is a text of the rule. Cost: facts (holes/facts.h) about "any text, then the
// suffix", found as rules are asked for: linear in the suffix for grammars such as those of documents
// and programs.
//
// In a derivation of `u suffix`, some rules have a text that contains the border between u and the suffix. In
// each of these rules one symbol reads the suffix's first byte: this symbol crosses the border. The symbols
// before it stay as in the base. The symbols behind it read only bytes of the suffix and are left out. The
// crossing symbol itself becomes a rule of the quotient, named by the symbol and by the place where its text
// ends. So crossing rules are right-linear, and the derivations of u in the quotient are those of `u suffix`
// in the base. A terminal that crosses is replaced by its right quotient by those bytes of the suffix that it
// reads (holes/right.h). An alternative is given only if facts say that some text of the rule is read by this
// alternative.
//
// The border may lie between two lexemes. Then the suffix's first byte must be one that may follow the lexeme
// read last. To check this, the lexeme that begins with the suffix becomes a lexeme that reads one mark, the
// byte kEdge. The mark may follow a lexeme exactly where the suffix's first byte may. A state may end where
// the mark leads to an end (GrammarTraits::bordered). Source: closure of the context-free languages under
// quotient with a regular one (Ginsburg, Spanier 1963). quotient.cc has an example and a table of the
// questions.
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

// The productions of all texts u such that u followed by the suffix is a text of the base.
class Quotient : public ExtendedProductions, protected FactBase {
 public:
  // `lexed` says that the rules consist of lexemes. All arguments but the suffix must live longer than this
  // object. The parser that reads proofs is made anew when its states take more than `most` bytes.
  Quotient(RegexArena& regexes, Productions& base, RuleId root, bool lexed, std::string suffix,
           std::size_t most);
  RuleId rule() const { return own_rule(0); }
  Verdict possible();
  // Returns the largest number of the suffix's bytes that some text of the grammar reads; the error message
  // points behind these bytes. If the number is that of all bytes, some text reads the whole suffix, but no
  // text ends behind it.
  std::size_t fits();

  std::span<const LexemePart> lexeme(uint32_t lexeme, uint32_t context) override;
  GrammarTraits traits() const override {
    GrammarTraits out = base_.traits();
    out.restricted = out.restricted || lexed_;
    out.edged = false;
    out.bordered = lexed_;
    out.unproven = true;
    out.tries_texts = out.tries_texts || tried();
    return out;
  }
  RuleTraits traits_of(RuleId rule) const override {
    return {.plain = ExtendedProductions::traits_of(rule).plain};
  }
  uint64_t omitted() const override { return base_.omitted(); }
  bool inexact() const override { return inexact_ || base_.inexact(); }
  std::size_t byte_size() const override {
    return sizeof(Quotient) + base_.byte_size() + FactBase::byte_size() + crossings_.size() * 64 +
           crossing_index_.byte_size();
  }

 private:
  using At = PlaceId;
  // A rule that the quotient adds: one whose text holds the border between the hole and the suffix.
  struct Crossing {
    enum CrossingKind : uint8_t {
      kRule,
      kReader,
      // A reader whose capture begins in the hole and ends in the suffix. It is told the bytes of the hole
      // followed by `text`, the captured bytes of the suffix. Its own texts lie in the suffix.
      kEnded,
    } kind;
    RuleId rule;
    // For a kRule or kReader, which may begin anywhere in the hole: the pending of the lexeme in front of it.
    Alive::Pending pending = Alive::kClear;
    // For a kEnded reader: the place in the suffix where it begins.
    At from = {};
    At to = {};
    // For a kEnded reader: the index of the captured bytes of the suffix in texts_.
    uint32_t text = 0;
    friend bool operator==(const Crossing&, const Crossing&) = default;
  };
  // A lexeme of the base that crosses the border: its text ends at the spot `end` of the suffix, and no byte
  // of `follow` may come next. The lexeme of the quotient has the same texts without the suffix's bytes.
  struct CutLexeme {
    uint32_t lexeme;
    Path::Spot end;
    RegexId follow;
    friend auto operator<=>(const CutLexeme&, const CutLexeme&) = default;
  };
  void expand_own(uint32_t n, const Reading& reading, Alternatives& out) override;
  Symbol translate(Symbol s) const override;
  Symbol crossing(const Crossing& c);
  const Crossing& crossing_of(Symbol s) const { return crossings_[s.rule_id().v / 2 - 1]; }
  Symbol cut_lexeme(uint32_t lexeme, Path::Spot end, RegexId follow);
  RegexId marked(RegexId follow) const;
  std::vector<LexemePart> whole_lexeme(uint32_t lexeme, uint32_t context);
  std::vector<LexemePart> cut_parts(const CutLexeme& cut, uint32_t context);
  void begin_anew();
  bool done(At at, At to) const { return at == to || (to == end_ && path_.ends(places_.spot(at))); }
  // ---- quotient_questions.cc ----
  // Does a text of `head` lead from the place `from` to the place `to`?
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
  // An item that is compared with other items: its rule, the reader that is told it, and the places from and
  // to which this reader must lead.
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
  bool crossed(At at) const { return places_.spot(at) > 1; }
  std::size_t suffix_bytes(At at) const;
  std::vector<std::vector<Symbol>> behind(const Symbol* s, const Symbol* end, At at, uint32_t label,
                                          uint32_t captures, At to);
  void cross(Facts::Head head, Alive::Pending from, At to, Alternatives& out);
  class Crossings;
  void cross_some(Facts::Head head, Alive::Pending from, At to, Alternatives& out);
  // What the answers may lack: alternatives that depend on captured text (`text`), or on a question that took
  // too much work (`question`).
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
  // Tells whether the search may stop: to resolve a question one alternative is enough.
  bool enough(const Alternatives& out) const { return !resolving_.empty() && !out.ends.empty(); }
  void add(std::vector<Symbol> sequence, Alternatives& out);
  uint32_t text(const std::string& t);

  // The base's rule of whole texts, the suffix, and the place behind the suffix.
  const RuleId root_;
  const std::string suffix_;
  const At end_;
  // What the answers since the last begin() may lack.
  Doubt doubt_;
  // The answer of inexact(): an alternative was left out because no proof of it was found.
  bool inexact_ = false;
  // Holds the proof of each question that was asked; null if none was found.
  std::map<Question, std::unique_ptr<const Proof>> proofs_;
  // By place: the texts of proofs that end at it, for reuse in other proofs.
  std::map<At, std::deque<std::string>> shown_;
  std::map<Question, Verdict> decided_;
  // The questions under way in resolve(). Each was asked to decide the one before it.
  std::vector<Question> resolving_;
  // The number of questions resolved since the last rule was asked for, at most kMostResolved.
  uint32_t resolved_ = 0;
  // crossings_[i] is what the added rule i + 1 stands for; crossing_index_ finds equal ones.
  std::vector<Crossing> crossings_;
  InternTable crossing_index_;
  // texts_[n] is a beginning of the suffix that belongs to a captured text (Crossing::text).
  std::vector<std::string> texts_;
  std::map<std::string, uint32_t> text_index_;
  std::map<std::pair<uint32_t, uint32_t>, std::vector<LexemePart>> lexemes_;
  // cut_lexemes_[n] is lexeme 2n + 1 of the quotient; lexeme 2n is lexeme n of the base.
  std::vector<CutLexeme> cut_lexemes_;
  std::map<CutLexeme, uint32_t> cut_lexeme_index_;
};

}  // namespace structgen
