// Which parts of a grammar read which stretches of a text with holes.
//
// In: productions, a path (holes/path.h). Out: for a rule and a place the places behind the texts that it can
// read from there; a derivation that shows it. Cost: a fact for every rule and place that is asked for, met
// from the left to the right: linear in the fixed text for grammars as programs and documents have them, at
// most quadratic in it a rule.
//
// A place is a spot of the path and a pending of parse/alive.h: what may not follow the lexeme read last. A
// fact is asked for once; whoever needs it waits there and goes on with every place that it finds later. A
// hole leads round to the spot that it began at, so there is no recursion, but a list of what is to be done.
// Captured text that lies in a hole is not known. Few possible texts are tried one by one; of more it is
// taken that one differs from every other (Reading::kFresh), which answers or says that it cannot tell.
// Sources: Bar-Hillel, Perles, Shamir 1961; the worklist is that of GLL (Scott, Johnstone 2010) over a graph.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/flat_map.h"
#include "base/intern.h"
#include "base/work.h"
#include "holes/path.h"
#include "parse/alive.h"
#include "parse/productions.h"
#include "regex/regex.h"

namespace structgen {

class Facts {
 public:
  using At = uint32_t;    // a spot and a pending
  using Head = uint32_t;  // alternatives: of a rule, of a reader that was told something, or one tail of one
  using Spot = Path::Spot;

  // `asked_again`: a parser checks what follows a lexeme where the last hole ends; see at(). `marked`: a
  // place that is reached by what a reader assumed (Alternatives::assumed) is another one than the same place
  // proved.
  Facts(RegexArena& regexes, Productions& productions, Alive& alive, Path& path, bool asked_again = false,
        bool marked = false);

  // From here on captured text is never guessed: it throws kSchemaTooComplex where two items have to be equal
  // of which one is not known, and where items have to differ that have few values in too many spellings.
  void refuse_repeats() { refuses_repeats_ = true; }
  // From here on each exit has a shortest way, else the first that was found. Costs a step more for each
  // shorter way.
  void prefer_short() { short_ = true; }

  At at(Spot spot, Alive::Pending pending, bool assumed = false);
  bool assumed(At a) const { return places_[a].assumed; }
  // The place as it is where it is proved.
  At plain(At a) { return assumed(a) ? at(spot(a), pending(a)) : a; }
  Spot spot(At a) const { return places_[a].spot; }
  uint32_t places() const { return static_cast<uint32_t>(places_.size()); }
  Alive::Pending pending(At a) const { return places_[a].pending; }

  Head head(RuleId rule) { return reader(rule, Reading{}); }
  Head reader(RuleId rule, const Reading& reading);
  // Some symbols of a head's alternative. `label`: 1 + what the terminal in front was labelled, or 0.
  Head tail(const Symbol* begin, const Symbol* end, uint32_t label);
  const Alternatives& alternatives(Head h);
  // A list of captures that are open, with one more, that begins here. 0: none are.
  uint32_t opened(uint32_t captures, At here);
  // What is captured: all of it as one regex, or poison; and whether it has few values.
  struct Captured {
    RegexId regex;
    bool few = false;
  };
  // What a reader is told whose captured text lies between two places.
  std::vector<Reading> readings(uint32_t captures, At here, Captured text);
  // What stands in front of a reader; `begin`: of its alternative.
  Captured captured(const Symbol* reader, const Symbol* begin);
  uint32_t outer(uint32_t captures) const { return captures_[captures].outer; }

  // Every place behind what is read from `from`. `unsure`: there may be more.
  struct Found {
    std::span<const At> exits;
    bool unsure;
  };
  Found ask(Head h, At from);
  // The same for some text of a regex, of one byte or more; `label`: 1 + what it ended in, or 0.
  // `length`: bytes of a shortest such text; inside a hole a lower bound.
  struct Exit {
    Spot spot;
    uint32_t label;
    uint32_t length;
  };
  std::span<const Exit> reads(RegexId r, Spot from);
  // f(byte, derivative, spot, first) for every byte that a regex and the path read here. `first`: the first
  // of the bytes that lead to both. Cost: a derivative a class of bytes.
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
  // The last spot that any text was read up to.
  Spot furthest() const { return furthest_; }
  // Texts of a regex that lead from one spot to another, shorter ones first, at most `most`; false: there
  // may be more. `label`: as of an exit; those that end in it, if it is not 0. `finite`: none where there is
  // no end of them.
  bool texts(RegexId r, Spot from, Spot to, std::size_t most, std::vector<std::string>& out,
             uint32_t label = 0, bool finite = false);
  // Bytes of that text. `to` is an exit of what ask(h, from) found.
  uint32_t length(Head h, At from, At to) {
    const uint32_t f = fact(h, from);
    return length(facts_[f].ways[*left_.find(exit_key(f, to))]);
  }
  // The text of a derivation that leads from the first place of `h` to `to`; `vary`: no part of it
  // that may be chosen is chosen twice, as far as there are others. False where it is too long. `items`: gets
  // the outermost parts of it that are texts of rules whose texts are compared.
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
    uint32_t label = 0;  // of the terminal in front
    RuleId rule;
    bool compared = false;  // its texts are compared by readers
    Reading reading;
  };
  // How a place was reached: a text of a regex between two spots, or two ways one behind the other.
  struct Way {
    uint32_t a, b;  // ways; b == kNone: a leaf, and a its label
    RegexId regex;
    Spot from, to;
    uint32_t length;
    bool captured = false;
    bool item = false;  // way `a` is all of a text that is compared with others
  };
  struct Step {  // an alternative read up to `symbol`
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
    std::vector<uint32_t> ways;     // of each exit
    std::vector<uint32_t> waiting;  // steps
  };
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
  bool refuses_repeats_ = false, short_ = false;
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
  FlatMap<uint64_t, uint32_t> left_;  // by fact and exit: which of its exits
  FlatMap<uint64_t, bool> waits_;     // fact and step
  std::vector<Step> steps_;
  InternTable step_index_;
  std::vector<uint32_t> todo_;
  std::vector<Way> ways_;
  FlatMap<uint64_t, uint32_t> read_index_;
  std::vector<std::pair<uint32_t, uint32_t>> read_;  // begin and end in exits_
  std::vector<Exit> exits_;
  std::vector<Alive::Step> after_;
  std::map<std::tuple<uint32_t, Spot, Spot>, std::optional<std::vector<Reading>>> few_;
  Spot furthest_ = 0;
};

}  // namespace structgen
