// Which parts of a grammar read which stretches of a text with holes.
//
// In: productions, a path (holes/path.h). Out: for a rule and a place, the places behind the texts that
// the rule can read from there; and a derivation that shows it. Cost: a fact for every rule and place
// that is asked for, from the left to the right. That is linear in the fixed text for grammars such as
// those of programs and documents, and at most quadratic in it for each rule.
//
// Facts saturate: a fact is asked for once, and a step that needs it waits for it and goes on from every
// place (holes/places.h) that the fact finds later. A hole leads round to its own spot, so a recursion would
// not end; a list of steps takes its place. The stretches that terminals read are found in
// holes/stretches.h, and derivations of texts are kept in holes/derivations.h.
//
// Captured text that lies in a hole is not known. If few texts are possible, they are tried one by one. If
// many are possible, the reader is told a text that differs from every other text (Reading::kFresh); the
// productions answer, or say that they cannot tell. Sources: Bar-Hillel, Perles, Shamir 1961; the worklist is
// that of GLL (Scott, Johnstone 2010) over a graph. facts.cc has an example.
//
// The whole room by one example: S -> "[" N "]", where N is the terminal [0-9]+, and the text `[1` HOLE `]`.
//
//     rest.h         what S is after `[1`: R -> [0-9]* "]", with the texts `]`, `2]`, `23]`, ...
//     path.h         HOLE `]` as spots: 0 (in the hole), 1 (before `]`), 2 (the end)
//     stretches.h    [0-9]* leads from spot 0 to 0 (`2`); `]` leads from 0 to 0, in the hole, and to 2
//     anywhere.h     `]` begun in the hole: where the hole ends, `]` itself is left, or it has ended before
//     places.h       a spot, and what may not follow the lexeme read last; S has no lexemes
//     facts.h        R at spot 0 has the exits 0 and 2; 2 is the end, so the hole can be filled
//     derivations.h  exit 2 was reached by `]` alone: the shortest filling is empty
//     fact_base.h    a parser reads `[1]`, so the yes is proved
//     quotient.h     the grammar of the fillings: R' -> [0-9]* and what `]` has before the suffix, nothing
//     right.h        that nothing: the text in front of which `]` is a text of the terminal `]`
//     extended_productions.h    R and R' in one numbering
//     intersection.h    the texts of S of at most 4 bytes: each rule between two derivatives of .{0,4}
//     leading.h      the beginnings of a terminal that lead from one derivative to another
//     strides.h      the slots `[` _ `]`: a token such as `12` leaves [0-9]* of [0-9]+, and `1]` leaves the
//     regex leaps.h        the same for all regexes of a cloud cloud.h        what may be read behind `[` and
//     any one token: [0-9]* "]", or nothing canvas.h       the last slot holds `]`, so the slot before it may
//     hold `12`, and not `1]`
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/flat_map.h"
#include "base/intern.h"
#include "holes/derivations.h"
#include "holes/path.h"
#include "holes/places.h"
#include "holes/stretches.h"
#include "parse/alive.h"
#include "parse/productions.h"
#include "parse/state.h"
#include "regex/regex.h"

namespace structgen {

class Facts {
 public:
  using At = PlaceId;
  // A set of alternatives: those of a rule, those of a reader that was told a text, or the tail of a single
  // alternative.
  using Head = Id<struct HeadTag>;
  using Spot = Path::Spot;

  // What is asked, and so what facts do with captured text that is not known.
  enum class Aim : uint8_t {
    // Whether there is some text. What readers assume counts as proved.
    kText,
    // All beginnings of texts. An exit that is reached by an assumption of a reader leads to an assumed
    // place.
    kQuotient,
    // All texts, and shortest ones. Captured text is never guessed: kSchemaTooComplex is thrown where two
    // items have to be equal and one of them is not known, and where items have to differ that have few
    // values in too many spellings. Each exit has a shortest derivation; otherwise it has the first that was
    // found. Each shorter derivation costs one more step.
    kIntersection,
  };
  // All arguments must outlive this object.
  Facts(RegexArena& regexes, Productions& productions, Alive& alive, Places& places, Path& path, Aim aim);

  // True if some reader was told one of the few texts that a captured symbol has. Another of them may be
  // read.
  bool tried() const { return tried_; }
  Stretches& stretches() { return stretches_; }

  Head head(RuleId rule) { return reader(rule, Reading{}); }
  Head reader(RuleId rule, const Reading& reading);
  // The head of the symbols from `begin` to `end` of an alternative. `label`: 1 + the label of the terminal
  // in front, or 0.
  Head tail(const Symbol* begin, const Symbol* end, uint32_t label);
  const Alternatives& alternatives(Head h);
  // Those that are read: alternatives with the same texts, as few as are known (Productions::expand_shared).
  const Alternatives& read(Head h);
  // The number of the list `captures` of open captures with one more capture, which begins at `here`. 0 is
  // the empty list.
  uint32_t opened(uint32_t captures, At here);
  // What is known of a captured text: all possible texts as one regex, or poison; and whether they have few
  // values.
  struct Captured {
    RegexId regex;
    bool few = false;
  };
  // The messages to a reader whose captured text lies between two places.
  std::vector<Reading> readings(uint32_t captures, At here, Captured text);
  // The captured text in front of a reader; `begin` is the first symbol of the reader's alternative.
  Captured captured(const Symbol* reader, const Symbol* begin);
  uint32_t outer(uint32_t captures) const { return captures_[captures].outer; }

  // Every place behind the texts of a head that are read from a place; the span stays valid. `unsure`: there
  // may be more places.
  struct Found {
    std::span<const At> exits;
    bool unsure;
  };
  Found ask(Head h, At from);
  // The bytes of the text that witness() writes. The exit `to` must be one that ask(h, from) found.
  uint32_t length(Head h, At from, At to) {
    const uint32_t f = fact(h, from);
    return derivations_.length(facts_[f].read[*exit_index_.find(exit_key(f, to))]);
  }
  // Appends the text of a derivation that leads from the first place of `h` to `to`; Derivations::write()
  // tells what `vary` and `items` are. False: there is no such exit, or the text is too long.
  bool witness(Head h, At from, At to, bool vary, std::string& out,
               std::vector<std::string>* items = nullptr);
  std::size_t byte_size() const;

 private:
  struct Capture {
    At begin;
    uint32_t outer;
  };
  // A head: what was asked for, and its alternatives once they are expanded.
  struct Told {
    Alternatives all;
    bool expanded = false;
    // Those that are read, where they are not `all`. False of `asked`: there may be such.
    std::unique_ptr<const Alternatives> shared;
    bool asked = true;
    // 1 + the label of the terminal in front, or 0.
    uint32_t label = 0;
    RuleId rule;
    // Readers compare the texts of this rule.
    bool compared = false;
    Reading reading;
  };
  // An alternative that is read up to `symbol`.
  struct Step {
    uint32_t fact;
    At at;
    uint32_t captures;
    // 1 + the label that the terminal in front ended with, or 0.
    uint32_t label;
    const Symbol* symbol;
    const Symbol* end;
    // Of what was read so far.
    Derivations::Id read;
  };
  struct Fact {
    Head head;
    At from;
    bool unsure = false;
    std::vector<At> exits;
    // Indexed by exit.
    std::vector<Derivations::Id> read;
    // Numbers of steps.
    std::vector<uint32_t> waiting;
  };
  // Whether two steps are the same; their derivations may differ.
  static bool same(const Step& a, const Step& b) {
    return a.fact == b.fact && a.at == b.at && a.symbol == b.symbol && a.end == b.end &&
           a.captures == b.captures && a.label == b.label;
  }
  std::optional<std::vector<Reading>> few(RegexId r, Spot from, Spot to);
  uint32_t fact(Head h, At from);
  void proceed(uint32_t step);
  bool pass(Step& s);
  void push(const Step& s);
  void go_on(Step& s) const;
  void leave(uint32_t fact, At to, Derivations::Id read);
  void doubt(uint32_t fact);
  static uint64_t exit_key(uint32_t fact, At to) { return uint64_t{fact} << 32 | to.v; }
  void tell(uint32_t waiting, At exit, Derivations::Id read);
  bool stays(RuleId rule, Spot from) const;
  void call(Head h, uint32_t step);
  void after_terminal(const Step& s, RegexId r, Alive::Pending to);

  RegexArena& regexes_;
  Productions& productions_;
  Alive& alive_;
  Places& places_;
  const Aim aim_;
  bool tried_ = false;
  Stretches stretches_;
  Derivations derivations_;
  std::vector<Capture> captures_{{At{}, 0}};
  FlatMap<uint64_t, uint32_t> capture_index_;
  std::deque<Told> heads_;
  FlatMap<uint64_t, Head> head_index_;
  std::map<std::pair<uint32_t, std::string>, Head> told_;
  std::map<std::tuple<const Symbol*, const Symbol*, uint32_t>, Head> tails_;
  std::deque<Fact> facts_;
  FlatMap<uint64_t, uint32_t> fact_index_;
  // For a fact and an exit: the number of the exit among those of the fact.
  FlatMap<uint64_t, uint32_t> exit_index_;
  // A set: its keys are pairs of a fact and a step that waits for it, its values are not read.
  FlatMap<uint64_t, bool> waits_;
  std::vector<Step> steps_;
  InternTable step_index_;
  std::vector<uint32_t> todo_;
  std::vector<Alive::Step> after_;
  // The answers of few().
  std::map<std::tuple<uint32_t, Spot, Spot>, std::optional<std::vector<Reading>>> few_;
};

}  // namespace structgen
