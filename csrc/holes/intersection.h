// The texts of a grammar that a regex matches as a whole, as productions.
//
// In: productions, a rule of theirs, a regex. Out: productions whose texts are those of the rule that
// the regex matches. Cost: facts (holes/facts.h) over the regex's derivatives, found as rules are asked
// for: at most a rule for each rule of the grammar and each pair of derivatives between which one of
// its texts leads.
//
// The construction is that of triples: a rule (rule, from, to) has the texts of a rule that lead from one
// derivative of the regex to another. A terminal becomes the intersection with "leads from here to there". A
// terminal all of whose texts lead to one derivative stays as it is, and so do its masks. An alternative is
// given only if facts say that a text of the rule is read by this alternative. Source: the intersection of a
// context-free language with a regular one (Bar-Hillel, Perles, Shamir 1961). intersection.cc has an example.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "base/intern.h"
#include "holes/fact_base.h"
#include "parse/productions.h"

namespace structgen {

// The productions of those texts of a rule that match a regex as a whole.
class Intersection : public Productions, protected FactBase {
 public:
  // `lexed` says that the rules consist of lexemes. The arguments must live longer than this object; `owner`
  // keeps `base` alive.
  Intersection(RegexArena& regexes, Productions& base, RuleId root, bool lexed, RegexId whole,
               std::shared_ptr<const void> owner);
  RuleId rule() const { return RuleId{0}; }
  Verdict possible();

  void expand(RuleId rule, const Reading& reading, Alternatives& out) override;
  // Writes one alternative: a text of the rule that is a shortest one as far as facts know. A search through
  // the rules might never end, because each key that is read makes new rules. A captured text that is not
  // known counts as one that differs from all others.
  void expand_shortest(RuleId rule, const Reading& reading, Alternatives& out) override;
  bool bound(RuleId rule, Bound& out) override;
  void start_search() override { base_.start_search(); }
  std::span<const LexemePart> lexeme(uint32_t lexeme, uint32_t context) override;
  GrammarTraits traits() const override {
    GrammarTraits out = base_.traits();
    out.restricted = out.restricted || lexed_;
    out.edged = false;
    out.unproven = true;
    out.tries_texts = out.tries_texts || tried();
    return out;
  }
  RuleTraits traits_of(RuleId) const override { return {.plain = lexed_}; }
  uint64_t omitted() const override { return base_.omitted(); }
  std::size_t byte_size() const override {
    return sizeof(Intersection) + FactBase::byte_size() + triples_.size() * 64 + triple_index_.byte_size();
  }

 private:
  using At = PlaceId;
  using Spot = Path::Spot;
  // The end of a triple whose texts may end wherever the whole text may end.
  static constexpr At kEnd{0xFFFFFFFFu};
  // A rule of the intersection: the texts of the base's rule `rule` that lead from the place `from` to the
  // place `to`.
  struct Triple {
    RuleId rule;
    At from, to;
    // What the rule is told of the text before it.
    enum Told : uint8_t {
      // The rule is no reader and is told nothing.
      kNothing,
      // The rule is told the label `label`. The triple holds it, so nobody tells the triple anything.
      kOneLabel,
      // The rule is told one label of a set; `labels` is the number of this set in label_sets_.
      kLabels,
      // The rule is told a captured text: one of a few (kFewTexts), or any text (the kind behind it).
      kFewTexts,
      kAnyText,
    } told = kNothing;
    uint32_t label = 0, labels = 0;
    friend bool operator==(const Triple&, const Triple&) = default;
  };
  // The spots at which texts of a regex end. `whole` says that the path reads every text of the regex.
  struct Reads {
    std::vector<Stretches::Exit> exits;
    bool whole = false;
  };
  // The translation of one alternative of the base into alternatives of the intersection, from left to right.
  struct Copy {
    const Symbol *begin, *end;
    At to;
    // The symbols of the new alternative that were made so far.
    std::vector<Symbol> made;
    Alternatives& out;
    // If not null, the symbols of an equally long alternative; facts are asked of these instead (see
    // alike()).
    const Symbol* alike = nullptr;
    RuleId asked(const Symbol* s) const { return (alike ? alike + (s - begin) : s)->rule_id(); }
    bool is_last(const Symbol* s) const { return s + 1 == end; }
    void add(Symbol last) {
      made.push_back(last);
      out.add(made);
      made.pop_back();
    }
  };
  // A labelled set of literals, split by the places to which its literals lead.
  struct Literals;
  Symbol triple(const Triple& t);
  Facts::Head head(const Triple& t, const Reading& reading);
  const Alternatives* alike(const Triple& t, const Reading& reading, Alternatives& of_text);
  At nearest(const Triple& t, Facts::Head h);
  bool done(At at, At to) const { return to == kEnd ? path_.ends(places_.spot(at)) : at == to; }
  bool any_done(std::span<const At> all, At to) const {
    return std::ranges::any_of(all, [&](At e) { return done(e, to); });
  }
  At unrestricted(At at) { return places_.of(places_.spot(at), alive_.without_follow(places_.pending(at))); }
  const Reads& reads(RegexId r, Spot from);
  bool reads_whole(RegexId r, Spot from);
  RegexId between(RegexId r, Spot from, Spot to);
  std::vector<At> exits(Facts::Head head, At from);
  void go(const Symbol* s, At at, uint32_t captures, Copy& copy);
  void go_behind(Symbol made, const Symbol* s, At at, uint32_t captures, Copy& copy) {
    copy.made.push_back(made);
    go(s, at, captures, copy);
    copy.made.pop_back();
  }
  void go_terminal(const Symbol* s, At at, uint32_t captures, Copy& copy);
  void go_last_terminal(RegexId r, std::span<const Stretches::Exit> exits, Spot from, Copy& copy);
  void go_set(const Symbol* s, At at, uint32_t captures, Copy& copy);
  void go_apart(const Literals& set, uint32_t label, Spot to, uint32_t captures, Copy& copy);
  void go_lexeme(const Symbol* s, At at, uint32_t captures, Copy& copy);
  void go_rule(const Symbol* s, At at, uint32_t captures, Copy& copy);
  void go_reader(const Symbol* s, At at, uint32_t captures, Copy& copy);
  void put(const Symbol* s, const Triple& what, std::span<const At> exits, uint32_t captures, Copy& copy);
  void put_rule(const Symbol* s, At at, std::span<const At> exits, uint32_t captures, Copy& copy);

  // The grammar whose texts are intersected with the regex. `owner_` keeps it alive.
  Productions& base_;
  const std::shared_ptr<const void> owner_;
  const RuleId root_;
  const bool lexed_;
  // True if some answer of exits() may lack places.
  bool unsure_ = false;
  std::vector<Triple> triples_;
  InternTable triple_index_;
  std::vector<std::vector<uint32_t>> label_sets_;
  std::map<std::vector<uint32_t>, uint32_t> label_set_index_;
  std::map<std::pair<uint32_t, Spot>, Reads> reads_;
  // A lexeme of the base, the spots at which its text begins and ends, and the bytes that may not follow it.
  using Lexeme = std::tuple<uint32_t, Spot, Spot, uint32_t>;
  // lexemes_[n] is lexeme n of the intersection; lexeme_index_ finds equal ones.
  std::vector<Lexeme> lexemes_;
  std::map<Lexeme, uint32_t> lexeme_index_;
  std::map<std::pair<uint32_t, uint32_t>, std::vector<LexemePart>> parts_;
};

}  // namespace structgen
