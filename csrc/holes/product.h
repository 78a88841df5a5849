// The texts of a grammar that a regex matches as a whole, as productions.
//
// In: productions, a rule of theirs, a regex. Out: productions whose texts are those of the rule that
// the regex matches. Cost: facts (holes/facts.h) over the regex's derivatives, found as rules are asked
// for: at most a rule for each rule of the grammar and each pair of derivatives between which one of
// its texts leads.
//
// A rule is (rule, from, to): its texts lead from one derivative of the regex to another. A terminal
// becomes the intersection with "leads from here to there". A terminal all of whose texts lead to one
// derivative stays as it is, and so do its masks. An alternative is given only where a fact says that a
// text leads through it. Source: the intersection of a context-free language with a regular one
// (Bar-Hillel, Perles, Shamir 1961).
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/intern.h"
#include "holes/facts.h"
#include "holes/path.h"
#include "parse/alive.h"
#include "parse/productions.h"
#include "parse/stack.h"

namespace structgen {

class Product : public Productions {
 public:
  // `lexed`: whether the rules are made of lexemes. The arguments must outlive this object.
  Product(RegexArena& regexes, Productions& base, RuleId root, bool lexed, RegexId whole);
  RuleId rule() const { return RuleId{0}; }
  // Whether there is any text; `unsure`: that took too much work to decide.
  bool possible(bool& unsure);

  void expand(RuleId rule, const Reading& reading, Alternatives& out) override;
  // One text of the rule, a shortest one by the facts. (A search through rules has no end if each key that
  // was read makes new rules.) An unknown captured text counts as a text that differs from all others.
  void expand_shortest(RuleId rule, const Reading& reading, Alternatives& out) override;
  bool bound(RuleId rule, Bound& out) override;
  void start_search() override { base_.start_search(); }
  std::span<const LexemePart> lexeme(uint32_t lexeme, uint32_t context) override;
  bool restricted() const override { return lexed_ || base_.restricted(); }
  bool context_free() const override { return base_.context_free(); }
  uint64_t omitted() const override { return base_.omitted(); }
  bool asks_alike() const override { return base_.asks_alike(); }
  bool plain(RuleId) const override { return lexed_; }
  bool bordered() const override { return base_.bordered(); }
  bool unproven() const override { return true; }
  bool tries_texts() const override { return tried_ || facts_->tried() || base_.tries_texts(); }
  std::size_t byte_size() const override {
    return sizeof(Product) + facts_->byte_size() + (reader_ ? reader_->byte_size() : 0) + own_.size() * 64 +
           own_index_.byte_size();
  }

 private:
  using At = Facts::At;
  // This number stands for any place at which the text may end.
  static constexpr At kEnd = 0xFFFFFFFFu;
  struct Own {
    enum Kind : uint32_t { kRule, kReader, kTold } kind;
    // A rule of the base.
    uint32_t a;
    At from, to;
    // Of kTold: the label that the reader was told. Of kReader: what the reader is told. From kLabels on, the
    // reader is told a label of the set number `label - kLabels` of labels_.
    enum Told : uint32_t { kAnyText, kFewTexts, kLabels };
    uint32_t label = kAnyText;
    friend bool operator==(const Own&, const Own&) = default;
  };
  // The spots to which the texts of a regex lead, and whether every text of it leads to one.
  struct Reads {
    std::vector<Facts::Exit> exits;
    bool whole = false;
  };
  // One alternative of the base, as it is read from the left.
  struct Walk {
    const Symbol *begin, *end;
    At to;
    std::vector<Symbol> made;
    Alternatives& out;
    // The symbols of which facts are asked in place of those from begin to end, as many. Null: facts are
    // asked of the symbols themselves.
    const Symbol* alike = nullptr;
    RuleId asked(const Symbol* s) const { return (alike ? alike + (s - begin) : s)->rule_id(); }
  };
  Symbol own(const Own& o);
  Facts::Head head(const Own& o, const Reading& reading);
  const Alternatives* alike(const Own& o, const Reading& reading, Alternatives& of_text);
  At nearest(const Own& o, Facts::Head h);
  std::optional<std::string> written(const Own& o, Facts::Head h, At to, const Alternatives& all);
  void begin_anew();
  bool done(At at, At to) const { return to == kEnd ? path_->ends(facts_->spot(at)) : at == to; }
  At clear(At at) { return facts_->at(facts_->spot(at), alive_->without_follow(facts_->pending(at))); }
  const Reads& reads(RegexId r, Facts::Spot from);
  RegexId between(RegexId r, Facts::Spot from, Facts::Spot to);
  void go(const Symbol* s, At at, uint32_t captures, Walk& walk);
  void go_terminal(const Symbol* s, At at, uint32_t captures, Walk& walk);
  void go_set(const Symbol* s, At at, uint32_t captures, Walk& walk);
  void go_lexeme(const Symbol* s, At at, uint32_t captures, Walk& walk);
  void go_rule(const Symbol* s, At at, uint32_t captures, Walk& walk);
  void put(const Symbol* s, const Own& what, std::span<const At> exits, uint32_t captures, Walk& walk);
  void put_rule(const Symbol* s, At at, std::span<const At> exits, uint32_t captures, Walk& walk);

  RegexArena& regexes_;
  Productions& base_;
  const RuleId root_;
  const bool lexed_;
  const RegexId whole_;
  // alive_ needs an arena of stacks; this one stays empty.
  StackArena stacks_;
  std::unique_ptr<Alive> alive_;
  std::unique_ptr<Path> path_;
  std::unique_ptr<Facts> facts_;
  std::unique_ptr<Parser> reader_;  // of the base
  bool unsure_ = false;
  // True: facts that were dropped since had told a reader one of few texts.
  bool tried_ = false;
  std::vector<Own> own_;
  InternTable own_index_;
  // Sets of labels.
  std::vector<std::vector<uint32_t>> labels_;
  std::map<std::vector<uint32_t>, uint32_t> labels_index_;
  std::map<std::pair<uint32_t, Facts::Spot>, Reads> reads_;
  // A lexeme, the spots between which it leads, and the bytes that may not follow.
  using Lexeme = std::tuple<uint32_t, Facts::Spot, Facts::Spot, uint32_t>;
  std::vector<Lexeme> lexemes_;
  std::map<Lexeme, uint32_t> lexeme_index_;
  std::map<std::pair<uint32_t, uint32_t>, std::vector<LexemePart>> parts_;
};

}  // namespace structgen
