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
//     strides.h      the slots `[` _ `]`: the token `12` leaves [0-9]* of [0-9]+, and `1]` leaves the regex
//     leaps.h        what strides.h tells of one regex, for all regexes of a cloud at once
//     cloud.h        what may be read behind `[` and any one token: [0-9]* "]", or nothing
//     canvas.h       the last slot holds `]`, so the slot before it may hold `12`, but not `1]`
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

// Finds and keeps facts: the places at which a rule that begins at a place may end.
class Facts {
 public:
  using At = PlaceId;
  // A head: the number of a set of alternatives, about which facts are asked. The set belongs to a rule, to a
  // reader that was told a text, or to the rest of one alternative.
  using Head = Id<struct HeadTag>;
  using Spot = Path::Spot;

  // What the facts are for, which decides what they do with unknown captured text.
  enum class Aim : uint8_t {
    // Facts tell whether some text exists. What readers assume counts as proved.
    kText,
    // Facts give all beginnings of texts. An exit that rests on an assumption of a reader is an assumed
    // place.
    kQuotient,
    // Facts give all texts, and shortest ones. They never guess captured text: kSchemaTooComplex is thrown if
    // two items have to be equal and one of them is not known, or if items have to differ that have few
    // values in too many spellings. Each exit has a shortest derivation, where the other aims keep the first
    // one found. Each shorter derivation costs one more step.
    kIntersection,
  };
  // All arguments must outlive this object.
  Facts(RegexArena& regexes, Productions& productions, Alive& alive, Places& places, Path& path, Aim aim);

  // Tells whether some reader was told one of few texts of a captured symbol. The real text may be another of
  // them.
  bool tried() const { return tried_; }
  Stretches& stretches() { return stretches_; }

  // Return the head of a rule, and that of a reader behind the message `reading`.
  Head head(RuleId rule) { return reader(rule, Reading{}); }
  Head reader(RuleId rule, const Reading& reading);
  // Returns the head of the symbols from `begin` to `end` of an alternative. `label` is 1 + the label of the
  // terminal in front, or 0.
  Head tail(const Symbol* begin, const Symbol* end, uint32_t label);
  // Returns the alternatives of a head as the productions give them.
  const Alternatives& alternatives(Head h);
  // Returns the alternatives that facts read: as few as are known that have the texts of alternatives(h)
  // (Productions::expand_shared).
  const Alternatives& read(Head h);
  // Returns the number of a list of open captures: the list `captures` with one more, which begins at `here`.
  // Number 0 is the empty list.
  uint32_t opened(uint32_t captures, At here);
  // What is known of a captured text: a regex of all possible texts (poison: nothing is known), and whether
  // these have few values.
  struct Captured {
    RegexId regex;
    bool few = false;
  };
  // Returns the messages to a reader whose captured text lies between the beginning of the last capture and
  // `here`.
  std::vector<Reading> readings(uint32_t captures, At here, Captured text);
  // Returns what is known of the captured text in front of a reader. `begin` is the first symbol of the
  // reader's alternative.
  Captured captured(const Symbol* reader, const Symbol* begin);
  // Returns the list of open captures without the innermost one.
  uint32_t outer(uint32_t captures) const { return captures_[captures].outer; }

  // The answer to a question about a head: all places behind its texts that begin at a given place. `unsure`:
  // there may be more places. The span stays valid.
  struct Found {
    std::span<const At> exits;
    bool unsure;
  };
  // Returns the exits of a head that begins at `from`; finds all facts that this needs.
  Found ask(Head h, At from);
  // Returns how many bytes the text of witness() has; inside holes a lower bound. ask(h, from) must have
  // found the exit `to`.
  uint32_t length(Head h, At from, At to) {
    const uint32_t f = fact(h, from);
    return derivations_.length(facts_[f].read[*exit_index_.find(exit_key(f, to))]);
  }
  // Appends a text of `h` that leads from `from` to `to`; Derivations::write() explains `vary` and `items`.
  // Returns false if there is no such exit, or the text is too long.
  bool witness(Head h, At from, At to, bool vary, std::string& out,
               std::vector<std::string>* items = nullptr);
  std::size_t byte_size() const;

 private:
  // One entry of a list of open captures: where the innermost one begins, and the list without it.
  struct Capture {
    At begin;
    uint32_t outer;
  };
  // What a head stands for: a rule, the message that a reader was told, and the alternatives once they are
  // expanded.
  struct Told {
    Alternatives all;
    bool expanded = false;
    // The alternatives that facts read; null if these are `all`, or if nobody has asked for them. `asked`:
    // somebody has asked for them.
    std::unique_ptr<const Alternatives> shared;
    bool asked = true;
    // 1 + the label of the terminal in front, or 0.
    uint32_t label = 0;
    RuleId rule;
    // Tells that readers compare the texts of this rule.
    bool compared = false;
    Reading reading;
  };
  // An alternative that has been read up to `symbol`.
  struct Step {
    uint32_t fact;
    At at;
    uint32_t captures;
    // 1 + the label with which the terminal in front ended, or 0.
    uint32_t label;
    const Symbol* symbol;
    const Symbol* end;
    // The derivation of what has been read.
    Derivations::Id read;
  };
  // A head that begins at a place, and the exits found so far. `unsure`: there may be more exits.
  struct Fact {
    Head head;
    At from;
    bool unsure = false;
    std::vector<At> exits;
    // read[i] is the derivation that leads to exits[i].
    std::vector<Derivations::Id> read;
    // The numbers of the steps that go on from each exit of this fact.
    std::vector<uint32_t> waiting;
  };
  // Tells whether two steps are equal but for their derivations.
  static bool same(const Step& a, const Step& b) {
    return a.fact == b.fact && a.at == b.at && a.symbol == b.symbol && a.end == b.end &&
           a.captures == b.captures && a.label == b.label;
  }
  // The functions that find facts; facts.cc explains each of them.
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
  // The answer of tried().
  bool tried_ = false;
  Stretches stretches_;
  Derivations derivations_;
  // captures_[number] is a list of open captures; capture_index_ holds the numbers.
  std::vector<Capture> captures_{{At{}, 0}};
  FlatMap<uint64_t, uint32_t> capture_index_;
  // heads_[number] is what a head stands for. The three tables below hold the numbers of heads: by rule and
  // label, by told text, and by tail.
  std::deque<Told> heads_;
  FlatMap<uint64_t, Head> head_index_;
  std::map<std::pair<uint32_t, std::string>, Head> told_;
  std::map<std::tuple<const Symbol*, const Symbol*, uint32_t>, Head> tails_;
  // Holds the facts; fact_index_ holds their numbers by head and place.
  std::deque<Fact> facts_;
  FlatMap<uint64_t, uint32_t> fact_index_;
  // Holds the index in Fact::exits, by fact and exit.
  FlatMap<uint64_t, uint32_t> exit_index_;
  // Holds the pairs (fact, step that waits for it); the values are not used.
  FlatMap<uint64_t, bool> waits_;
  // Holds all steps, each once; step_index_ finds equal steps, and todo_ holds the numbers of those to take.
  std::vector<Step> steps_;
  InternTable step_index_;
  std::vector<uint32_t> todo_;
  std::vector<Alive::Step> after_;
  // Holds the answers of few(), by regex and spots.
  std::map<std::tuple<uint32_t, Spot, Spot>, std::optional<std::vector<Reading>>> few_;
};

}  // namespace structgen
