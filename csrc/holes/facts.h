// Which parts of a grammar read which stretches of a text with holes.
//
// In: productions, a path (holes/path.h). Out: for a rule and a place, the places behind the texts that the
// rule can read from there; and a derivation that shows it. Cost: a fact for every rule and place that is
// asked for, from the left to the right. For grammars such as those of programs and documents the number of
// facts is linear in the length of the fixed text; for any grammar it is at most quadratic in this length for
// each rule.
//
// Facts are found by saturation: each fact is asked for once. A step that needs a fact waits for this fact,
// and goes on from every place (holes/places.h) that is found for the fact later. A hole leads round to its
// own spot, so a recursive search would not end; a list of steps takes the place of the recursion. The
// stretches that terminals read are found in holes/stretches.h, and derivations of texts are kept in
// holes/derivations.h.
//
// Captured text that lies in a hole is not known. If few texts are possible, they are tried one by one. If
// many are possible, the reader is told only that the text differs from every other captured text
// (Reading::kFresh). The productions then give the reader's alternatives, or say that they cannot tell.
// Sources: the facts are the triples of Bar-Hillel, Perles and Shamir (1961); the worklist is the one of GLL
// (Scott, Johnstone 2010), here over a graph. facts.cc has an example.
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

class Facts {
 public:
  using At = PlaceId;
  // A head is a set of alternatives whose exits are asked for: those of a rule, those of a reader that was
  // told a text, or the rest of one alternative. Equal heads have one number.
  using Head = Id<struct HeadTag>;
  using Spot = Path::Spot;

  // What the facts are for, which decides what they do with unknown captured text.
  enum class Aim : uint8_t {
    // Is there a text? A reader that is not told its captured text assumes some text, and an exit that rests
    // on this assumption counts as proved.
    kText,
    // Which beginnings of texts end in the hole? A reader that is not told its captured text assumes some
    // text. An exit that rests on such an assumption is marked as assumed (holes/places.h).
    kQuotient,
    // Which texts are there, and which is the shortest? Captured text is never guessed. kSchemaTooComplex is
    // thrown in two cases: two items must be equal and one of them is not known; or items must differ and
    // have few values, but the spellings of these values are too many to try. Each exit keeps a shortest
    // derivation. The other aims keep the first derivation that is found, because each shorter derivation
    // costs one more step.
    kIntersection,
  };
  // All arguments must live longer than this object.
  Facts(RegexArena& regexes, Productions& productions, Alive& alive, Places& places, Path& path, Aim aim);

  // Returns true if some captured text had a few possible values and its reader was told each of these
  // values. A fact may then rest on a value that the real text does not have.
  bool tried() const { return tried_; }
  Stretches& stretches() { return stretches_; }

  Head head(RuleId rule) { return reader(rule, Reading{}); }
  Head reader(RuleId rule, const Reading& reading);
  // Returns the head of a part of an alternative: its symbols from `begin` to `end`. `label` is 1 + the label
  // in which the terminal in front of them ended, or 0 without a label.
  Head tail(const Symbol* begin, const Symbol* end, uint32_t label);
  // Returns the alternatives of a head as the productions give them.
  const Alternatives& alternatives(Head h);
  // Returns the alternatives from which facts are computed: those of Productions::expand_shared() if there
  // are any, otherwise alternatives(h). Both have the same texts, but shared ones name fewer different rules,
  // so fewer facts are needed.
  const Alternatives& read(Head h);
  // Adds a capture that begins at `here` to list number `captures` of open captures, and returns the number
  // of the longer list. List 0 is empty.
  uint32_t opened(uint32_t captures, At here);
  // What is known of a captured text. `regex` holds all its possible spellings; it is poison if nothing is
  // known. `few` is true if all these spellings together stand for few different values.
  struct Captured {
    RegexId regex;
    bool few = false;
  };
  // Returns what a reader may be told of the text between the beginning of the last capture and `here`: one
  // Reading for each possible value, or a single Reading that stands for all values.
  std::vector<Reading> readings(uint32_t captures, At here, Captured text);
  // Returns what the alternative says of the text that this reader is told. `begin` is the first symbol of
  // the alternative.
  Captured captured(const Symbol* reader, const Symbol* begin);
  uint32_t outer(uint32_t captures) const { return captures_[captures].outer; }

  // The answer for a head and a place: all places at which the head's texts end. `unsure` is true if there
  // may be more exits. The span stays valid.
  struct Found {
    std::span<const At> exits;
    bool unsure;
  };
  // Returns the places at which texts of the head end that begin at `from`. Finds all facts that this needs.
  Found ask(Head h, At from);
  // Returns the number of bytes of the text that witness() writes; where text lies in holes, at most this
  // number. ask(h, from) must have found the exit `to`.
  uint32_t length(Head h, At from, At to) {
    const uint32_t f = fact(h, from);
    return derivations_.length(facts_[f].read[*exit_index_.find(exit_key(f, to))]);
  }
  // Appends a text of `h` that leads from `from` to `to`; holes/derivations.h explains `vary` and `items`.
  // Returns false if there is no such exit, or if the text is too long.
  bool witness(Head h, At from, At to, bool vary, std::string& out,
               std::vector<std::string>* items = nullptr);
  std::size_t byte_size() const;

 private:
  // A list of open captures, as the place where its innermost capture begins and the number of the list
  // without it.
  struct Capture {
    At begin;
    uint32_t outer;
  };
  // A head: its rule or reader, what the reader was told, and its alternatives once they are expanded.
  struct Told {
    Alternatives all;
    bool expanded = false;
    // The answer of read() if it differs from `all`. `asked` is true once the productions were asked for
    // shared alternatives, or if they need not be asked.
    std::unique_ptr<const Alternatives> shared;
    bool asked = true;
    // 1 + the label of the terminal in front, or 0 if there is none.
    uint32_t label = 0;
    RuleId rule;
    bool compared = false;
    Reading reading;
  };
  // A point in the reading of an alternative: the symbols before `symbol` are read, and led from the fact's
  // place to `at`.
  struct Step {
    uint32_t fact;
    At at;
    uint32_t captures;
    uint32_t label;
    const Symbol* symbol;
    const Symbol* end;
    Derivations::Id read;
  };
  struct Fact {
    Head head;
    At from;
    bool unsure = false;
    std::vector<At> exits;
    // read[i] is the derivation of the text that ends at exits[i].
    std::vector<Derivations::Id> read;
    // The steps that wait for this fact. Each goes on from every exit of the fact, also from exits found
    // later.
    std::vector<uint32_t> waiting;
  };
  // Tells whether two steps differ at most in their derivations.
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
  // heads_[h] is head h. The three tables find a head by its rule and label, by the text that its reader was
  // told, and by the part of the alternative that it is.
  std::deque<Told> heads_;
  FlatMap<uint64_t, Head> head_index_;
  std::map<std::pair<uint32_t, std::string>, Head> told_;
  std::map<std::tuple<const Symbol*, const Symbol*, uint32_t>, Head> tails_;
  std::deque<Fact> facts_;
  FlatMap<uint64_t, uint32_t> fact_index_;
  // Finds the index of an exit in Fact::exits, by the fact and the exit.
  FlatMap<uint64_t, uint32_t> exit_index_;
  // The pairs of a fact and a step that waits for it, as a set: the values are not used.
  FlatMap<uint64_t, bool> waits_;
  // All steps that were ever made, each once; step_index_ finds equal ones. todo_ holds the numbers of those
  // not taken yet.
  std::vector<Step> steps_;
  InternTable step_index_;
  std::vector<uint32_t> todo_;
  std::vector<Alive::Step> after_;
  std::map<std::tuple<uint32_t, Spot, Spot>, std::optional<std::vector<Reading>>> few_;
};

}  // namespace structgen
