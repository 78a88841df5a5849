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
// regular one (Ginsburg, Spanier 1963). quotient.cc has an example.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/flat_map.h"
#include "base/intern.h"
#include "holes/facts.h"
#include "holes/path.h"
#include "parse/alive.h"
#include "parse/productions.h"
#include "parse/stack.h"
#include "parse/state.h"

namespace structgen {

class Quotient : public Productions {
 public:
  // `lexed`: whether the rules are made of lexemes. The arguments except the suffix must outlive this
  // object. `most`: bytes of the states of the parser that reads proofs.
  Quotient(RegexArena& regexes, Productions& base, RuleId root, bool lexed, std::string suffix,
           std::size_t most);
  RuleId rule() const { return RuleId{1}; }
  // Whether there is any text; `unsure`: that took too much work to decide.
  bool possible(bool& unsure);
  // The number of bytes of the suffix that can be read behind some text; the error message points there. All
  // bytes: the suffix can be read, and the text cannot end behind it.
  std::size_t fits();

  void expand(RuleId rule, const Reading& reading, Alternatives& out) override;
  void expand_shortest(RuleId rule, const Reading& reading, Alternatives& out) override;
  void start_search() override { base_.start_search(); }
  bool bound(RuleId rule, Bound& out) override;
  std::span<const LexemePart> lexeme(uint32_t lexeme, uint32_t context) override;
  bool restricted() const override { return lexed_ || base_.restricted(); }
  bool context_free() const override { return base_.context_free(); }
  uint64_t omitted() const override { return base_.omitted(); }
  bool asks_alike() const override { return base_.asks_alike(); }
  bool plain(RuleId rule) const override {
    return rule.v % 2 == 0 ? base_.plain(RuleId{rule.v / 2}) : lexed_;
  }
  bool bordered() const override { return lexed_; }
  bool unproven() const override { return true; }
  bool tries_texts() const override { return tried_ || facts_->tried() || base_.tries_texts(); }
  bool inexact() const override { return inexact_ || base_.inexact(); }
  std::size_t byte_size() const override {
    return sizeof(Quotient) + facts_->byte_size() + own_.size() * 64 + own_index_.byte_size() +
           (reader_ ? reader_->byte_size() : 0);
  }

 private:
  using At = Facts::At;
  // A rule whose text holds the border.
  struct Own {
    enum Kind : uint32_t {
      // Rule a of the base, from pending restriction b, to place c.
      kCross,
      // Reader a of the base, from pending restriction b, to place c.
      kReader,
      // Reader a, which is told the captured text and `text`; it leads from place c to place d, and
      // reads nothing before the border.
      kEnded,
    } kind;
    uint32_t a, b, c, d, text;
    friend bool operator==(const Own&, const Own&) = default;
  };
  Symbol own(const Own& o);
  Symbol number(Symbol s);
  RegexId marked(RegexId follow);
  Symbol crossing(uint32_t lexeme, Facts::Spot spot, RegexId follow);
  void begin_anew();
  bool done(At at, At to) const { return at == to || (to == end_ && path_->ends(facts_->spot(at))); }
  // A text that leads from one place to another and that a parser has read.
  struct Proof {
    std::string text;
    // The outermost parts of the text whose values are compared.
    std::vector<std::string> items;
  };
  using Question = std::tuple<Facts::Head, At, At>;
  const Proof* proof(Facts::Head head, At from, At to);
  const Proof* prove(const Question& question, std::unique_ptr<const Proof> found);
  bool compose(std::span<const Symbol> alternative, At to, Proof& out);
  bool reads(Facts::Head head, const std::string& text);
  // Whether `to` is an exit of `head` from `from`. Sets unsure_ if a captured text would have to be known,
  // and unknown_ if the question took too much work.
  bool leads(Facts::Head head, At from, At to);
  Verdict decide(Facts::Head head, At from, At to);
  Verdict resolve(Facts::Head head, At from, At to);
  std::vector<At> exits(Facts::Head head, At from);
  bool fit(RuleId reader, At from, At to, Symbol& rule);
  bool fit_apart(RuleId reader, RuleId rest, At from, At to, Symbol& rule);
  bool fit_again(RuleId reader, RuleId rest, RuleId free, At from, At to, Symbol& rule);
  void free_items(RuleId rest, At from, At to, std::vector<RuleId>& out);
  void sort_told(RuleId reader, RuleId rule, const std::vector<std::string>& texts, At from, At to,
                 std::vector<std::string>* good, std::vector<std::string>* bad);
  Verdict told(RuleId reader, const std::string& text, At from, At to);
  bool crossed(At at) const { return facts_->spot(at) > 1; }
  std::vector<std::vector<Symbol>> behind(const Symbol* s, const Symbol* end, At at, uint32_t label,
                                          uint32_t captures, At to);
  void cross(Facts::Head head, Alive::Pending from, At to, Alternatives& out);
  class Crossings;
  void add(std::vector<Symbol> sequence, Alternatives& out);
  uint32_t text(const std::string& t);

  RegexArena& regexes_;
  const std::size_t most_;
  Productions& base_;
  const RuleId root_;
  const bool lexed_;
  const std::string suffix_;
  // alive_ needs an arena of stacks; this one stays empty.
  StackArena stacks_;
  std::unique_ptr<Alive> alive_;
  std::unique_ptr<Path> path_;
  std::unique_ptr<Facts> facts_;
  At end_ = 0;
  bool unsure_ = false, unknown_ = false;
  // True: facts that were dropped since had told a reader one of few texts.
  bool tried_ = false;
  // True: the search ends with the first alternative.
  bool one_ = false;
  bool inexact_ = false;
  // The parser that reads proofs.
  std::unique_ptr<Parser> reader_;
  // The proof of each question. Null: no proof was found.
  std::map<Question, std::unique_ptr<const Proof>> proofs_;
  // Keyed by place: texts of proofs that lead there.
  std::map<At, std::deque<std::string>> shown_;
  std::map<Question, Verdict> decided_;
  std::vector<Question> resolving_;
  // Number of questions resolved since a rule was asked for.
  uint32_t resolved_ = 0;
  std::vector<Own> own_;
  InternTable own_index_;
  std::vector<std::string> texts_;
  std::map<std::string, uint32_t> text_index_;
  std::map<std::pair<uint32_t, uint32_t>, std::vector<LexemePart>> lexemes_;
  // A lexeme, the spot at which it ends, and the bytes that may not follow.
  using Crossing = std::tuple<uint32_t, Facts::Spot, uint32_t>;
  std::vector<Crossing> crossing_;
  std::map<Crossing, uint32_t> crossing_index_;
};

}  // namespace structgen
