// Which parts of a grammar read which stretches of a text with holes.
//
// In: productions, a path (holes/path.h). Out: for a rule and a place, the places behind the texts that
// the rule can read from there; and a derivation that shows it. Cost: a fact for every rule and place
// that is asked for, from the left to the right. That is linear in the fixed text for grammars such as
// those of programs and documents, and at most quadratic in it for each rule.
//
// A place is a spot of the path and a pending restriction of parse/alive.h: the bytes that may not follow the
// lexeme read last. A fact is asked for once. A step that needs a fact waits for it and goes on from every
// place that the fact finds later. A hole leads round to its own spot, so a recursion would not end; a list
// of steps takes its place.
//
// Captured text that lies in a hole is not known. If few texts are possible, they are tried one by one. If
// many are possible, the reader is told a text that differs from every other text (Reading::kFresh); the
// productions answer, or say that they cannot tell. Sources: Bar-Hillel, Perles, Shamir 1961; the worklist is
// that of GLL (Scott, Johnstone 2010) over a graph. facts.cc has an example.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/flat_map.h"
#include "base/intern.h"
#include "base/work.h"
#include "holes/path.h"
#include "parse/alive.h"
#include "parse/productions.h"
#include "parse/state.h"
#include "regex/regex.h"

namespace structgen {

class Facts {
 public:
  // A spot and a pending restriction.
  using At = uint32_t;
  // A set of alternatives: those of a rule, those of a reader that was told a text, or the tail of a single
  // alternative.
  using Head = uint32_t;
  using Spot = Path::Spot;

  // `asked_again`: a parser checks what follows a lexeme at the place where the last hole ends; see at().
  // `marked`: a place that is reached by an assumption of a reader (Alternatives::assumed) and a place that
  // is proved are two places.
  Facts(RegexArena& regexes, Productions& productions, Alive& alive, Path& path, bool asked_again = false,
        bool marked = false);

  // After this call captured text is never guessed. Instead, kSchemaTooComplex is thrown where two items have
  // to be equal and one of them is not known, and where items have to differ that have few values in too many
  // spellings.
  void refuse_repeats() { refuses_repeats_ = true; }
  // True if some reader was told one of the few texts that a captured symbol has. Another of them may be
  // read.
  bool tried() const { return tried_; }
  // After this call each exit has a shortest way; without it, the first way that was found. Each shorter way
  // costs one more step.
  void prefer_short() { short_ = true; }

  At at(Spot spot, Alive::Pending pending, bool assumed = false);
  bool assumed(At a) const { return places_[a].assumed; }
  // The proved place of the same spot and restriction.
  At plain(At a) { return assumed(a) ? at(spot(a), pending(a)) : a; }
  Spot spot(At a) const { return places_[a].spot; }
  uint32_t places() const { return static_cast<uint32_t>(places_.size()); }
  Alive::Pending pending(At a) const { return places_[a].pending; }

  Head head(RuleId rule) { return reader(rule, Reading{}); }
  Head reader(RuleId rule, const Reading& reading);
  // The head of the symbols from `begin` to `end` of an alternative. `label`: 1 + the label of the terminal
  // in front, or 0.
  Head tail(const Symbol* begin, const Symbol* end, uint32_t label);
  const Alternatives& alternatives(Head h);
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

  // Every place behind the texts of a head that are read from a place. `unsure`: there may be more places.
  struct Found {
    std::span<const At> exits;
    bool unsure;
  };
  Found ask(Head h, At from);
  // A spot behind texts of a regex, of one byte or more. `label`: 1 + the label in which the texts end, or 0.
  // `length`: the bytes of a shortest such text; inside a hole a lower bound.
  struct Exit {
    Spot spot;
    uint32_t label;
    uint32_t length;
  };
  std::span<const Exit> reads(RegexId r, Spot from);
  // Calls f(byte, derivative, spot, first) for every byte that the regex and the path read at the spot.
  // `first`: no smaller byte leads to this derivative and spot. Cost: a derivative for each class of bytes.
  template <class F>
  void steps(RegexId r, Spot here, F&& f) {
    const ByteSet there = path_.bytes(here) & regexes_.steps(r);
    if (there.none()) return;
    const ClassMap* const alike = path_.alike(regexes_, r, here);
    std::pair<RegexId, Spot> known[256];
    bool met[256] = {};
    there.for_each([&](uint8_t b) {
      const uint8_t n = alike ? alike->of[b] : b;
      const bool first = !std::exchange(met[n], true);
      if (first) {
        charge();
        const RegexId behind = regexes_.step(r, b);
        known[n] = {behind, behind == RegexArena::empty() ? here : path_.next(here, b)};
      }
      if (known[n].first != RegexArena::empty()) f(b, known[n].first, known[n].second, first);
    });
  }
  // The last spot up to which any text was read.
  Spot furthest() const { return furthest_; }
  // Texts of a regex that lead from one spot to another, shorter ones first, at most `most`. False:
  // there may be more. `label`: only texts that end with this label, as in Exit; 0 allows any. `finite`:
  // no text is written where there are infinitely many.
  bool texts(RegexId r, Spot from, Spot to, std::size_t most, std::vector<std::string>& out,
             uint32_t label = 0, bool finite = false);
  // The bytes of the text that witness() writes. The exit `to` must be one that ask(h, from) found.
  uint32_t length(Head h, At from, At to) {
    const uint32_t f = fact(h, from);
    return length(facts_[f].ways[*left_.find(exit_key(f, to))]);
  }
  // Writes the text of a derivation that leads from the first place of `h` to `to`. With `vary`, parts whose
  // text is free get different texts, as long as there are any. `items` gets the outermost parts that are
  // texts of rules whose texts are compared. False: the text is too long.
  bool witness(Head h, At from, At to, bool vary, std::string& out,
               std::vector<std::string>* items = nullptr);
  std::size_t byte_size() const;

 private:
  static constexpr uint32_t kNone = 0xFFFFFFFFu;
  struct Place {
    Spot spot;
    Alive::Pending pending;
    bool assumed;
  };
  struct Capture {
    At begin;
    uint32_t outer;
  };
  struct Alternative {
    Alternatives all;
    bool expanded = false;
    // The label of the terminal in front.
    uint32_t label = 0;
    RuleId rule;
    // Readers compare the texts of this rule.
    bool compared = false;
    Reading reading;
  };
  // How a place was reached: by a text of a regex between two spots, or by two ways in a row.
  struct Way {
    // Numbers of ways. If b is kNone the way is a leaf, and a is its label.
    uint32_t a, b;
    RegexId regex;
    Spot from, to;
    uint32_t length;
    bool captured = false;
    // True: way `a` is the whole text of an item that is compared with other items.
    bool item = false;
  };
  // An alternative that is read up to `symbol`.
  struct Step {
    uint32_t fact;
    uint32_t at;
    uint32_t captures;
    uint32_t label;
    const Symbol* symbol;
    const Symbol* end;
    uint32_t way;
  };
  struct Fact {
    Head head;
    At from;
    bool unsure = false;
    std::vector<At> exits;
    // Indexed by exit.
    std::vector<uint32_t> ways;
    // Numbers of steps.
    std::vector<uint32_t> waiting;
  };
  bool ends(RegexId r, Spot here, Spot to, uint32_t label) const {
    const RegexNode& n = regexes_.node(r);
    return here == to && n.nullable && (label == 0 || (n.kind == RegexKind::kDone && n.min + 1 == label));
  }
  const std::string& shortest(const Way& leaf);
  std::optional<std::vector<Reading>> few(RegexId r, Spot from, Spot to);
  uint32_t fact(Head h, At from);
  void run();
  void proceed(uint32_t step);
  void push(const Step& s);
  void go_on(Step& s) const;
  void leave(uint32_t fact, At to, uint32_t way);
  void doubt(uint32_t fact);
  static uint64_t exit_key(uint32_t fact, At to) { return uint64_t{fact} << 32 | to; }
  void tell(uint32_t waiting, At exit, uint32_t way);
  bool stays(RuleId rule, Spot from) const;
  void call(Head h, uint32_t step);
  uint32_t length(uint32_t way) const { return way == kNone ? 0 : ways_[way].length; }
  uint32_t leaf(RegexId r, Spot from, const Exit& exit, bool captured);
  uint32_t joined(uint32_t a, uint32_t b);
  At behind(At exit, At before) {
    return assumed(before) && !assumed(exit) ? at(spot(exit), pending(exit), true) : exit;
  }
  void after_terminal(const Step& s, RegexId r, Alive::Pending to);

  RegexArena& regexes_;
  Productions& productions_;
  Alive& alive_;
  Path& path_;
  const bool free_, marked_;
  bool refuses_repeats_ = false, short_ = false, tried_ = false;
  std::vector<Place> places_;
  FlatMap<uint64_t, uint32_t> place_index_;
  std::vector<Capture> captures_{{0, 0}};
  FlatMap<uint64_t, uint32_t> capture_index_;
  std::deque<Alternative> heads_;
  FlatMap<uint64_t, uint32_t> head_index_;
  std::map<std::pair<uint32_t, std::string>, Head> told_;
  std::map<std::tuple<const Symbol*, const Symbol*, uint32_t>, Head> tails_;
  std::vector<Fact> facts_;
  FlatMap<uint64_t, uint32_t> fact_index_;
  // For a fact and an exit: the number of the exit among those of the fact.
  FlatMap<uint64_t, uint32_t> left_;
  // Pairs of a fact and a step that waits for it.
  FlatMap<uint64_t, bool> waits_;
  std::vector<Step> steps_;
  InternTable step_index_;
  std::vector<uint32_t> todo_;
  std::vector<Way> ways_;
  FlatMap<uint64_t, uint32_t> read_index_;
  // Begin and end in exits_.
  std::vector<std::pair<uint32_t, uint32_t>> read_;
  std::vector<Exit> exits_;
  std::vector<Alive::Step> after_;
  std::map<std::tuple<uint32_t, Spot, Spot>, std::optional<std::vector<Reading>>> few_;
  // The answers of shortest(), keyed by regex, spots and label.
  std::map<std::tuple<uint32_t, Spot, Spot, uint32_t>, std::string> shortest_;
  std::size_t shortest_bytes_ = 0;
  Spot furthest_ = 0;
};

// Whether the parser reads the text as one of the alternatives. Facts assume that captured texts differ. If
// two items of a witness are equal nevertheless, the witness is no text of the rule.
bool reads_one(Parser& parser, const Alternatives& all, std::string_view text);

}  // namespace structgen
