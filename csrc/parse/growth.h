// Ranges of lengths: a state has a completion of each length in the range.
//
// In: a state without captured text. Out: two numbers of bytes, `from` and `span`. For some n of at most
// `from`, the state has a completion of each length from n to n + span, whatever text was captured. With a
// span of kFar it has a completion of every length from n on. Cost: a look-up for a known range; for a new
// range one addition for each symbol, as for the bounds of parse/lengths.h.
//
// A text grows by single bytes where a part of it repeats and one round may be one byte: blanks between
// tokens of JSON, characters of a string. If the number of rounds is not bounded, one such place gives every
// length; the spans of places with a bound add up. Behind `{"name":"A` in a closed object:
//
//     regex(characters, then `"`)            from 1, kFar: the quote, any number of characters before it
//     regex(at most 8 of them, then `"`)     from 1, span 8
//     stack(`}`)                             from 1, span 0
//     of(state)                              from 2, kFar or 8
//
// A part may have several ranges. Two are kept: the widest one, and the earliest one. Behind the value `1`
// the blanks of JSON give the earliest range, from 3 to 60, and a key behind them the widest one, from 16 on.
// Where no part grows without end, closer() also asks for the ranges of the states along a shortest
// completion, of the states that one other byte leads to from there, and of the states along the completions
// of a few of these. A `from` that is too large, or a span that is too small, only makes a row smaller than
// it should be.
#pragma once

#include <cstdint>
#include <span>

#include "base/flat_map.h"
#include "parse/completion.h"
#include "parse/lengths.h"
#include "parse/productions.h"
#include "parse/state.h"

namespace structgen {

class Growth {
 public:
  static constexpr uint32_t kFar = Lengths::kFar;
  Growth(Parser& parser, Productions& productions, Completion& completion, Lengths& lengths)
      : parser_(parser), productions_(productions), completion_(completion), lengths_(lengths) {}
  // A promise about a state: for some n <= `from`, the state has a completion of each length from n to n +
  // `span` bytes. A `span` of kFar stands for "every length from n on". If no range is known, `from` is kFar.
  struct LengthRange {
    uint32_t from = kFar, span = 0;
    bool endless() const { return span == kFar; }
    // n may be 0, so `span` is the last length that is surely in the range.
    uint32_t to() const { return span; }
    // Returns true if this range has more lengths than the other, or as many and begins earlier.
    bool better(const LengthRange& o) const { return span != o.span ? span > o.span : from < o.from; }
  };
  // The two ranges that are kept: the widest one, and of those with more than one length the one that begins
  // first.
  struct LengthRanges {
    LengthRange widest, earliest;
    void add(const LengthRange& o) {
      if (o.from >= kFar) return;
      if (o.better(widest)) widest = o;
      if (o.span > 0 && (o.from != earliest.from ? o.from < earliest.from : o.span > earliest.span))
        earliest = o;
    }
    // Adds the ranges of a part that stands behind `bytes` bytes.
    void join(const LengthRanges& o, uint32_t bytes = 0) {
      for (const LengthRange& s : {o.widest, o.earliest}) add({Lengths::sum(s.from, bytes), s.span});
    }
  };
  LengthRanges of(StateId s);
  // Returns the ranges of parts(s), and the ranges that begin on a shortest completion of s or one byte
  // beside it. These ranges help where every range of parts(s) has an end, such as the longest text of an
  // enum. A state with captured text has a completion of its own, so it may have ranges where its blind state
  // has none.
  LengthRanges closer(StateId s);
  // Return the ranges that follow from the parts of a state, or of a set of stacks, without a search for a
  // text.
  LengthRanges parts(StateId s);
  LengthRanges parts(StackId s) { return stack(s).some; }
  // Returns the length in bytes of the longest text that completes the state. kFar: there is no longest text.
  // kUnknown: the answer takes too much work, or depends on the captured text.
  uint32_t longest(StateId s);
  static constexpr uint32_t kUnknown = kFar + 1;
  std::size_t byte_size() const {
    return states_.byte_size() + longest_.byte_size() + parts_.byte_size() + stacks_.byte_size() +
           rules_.byte_size() + regexes_.byte_size();
  }

 private:
  // A part of a text: an upper bound of the bytes of its shortest text, and its ranges of lengths.
  struct Part {
    uint32_t least;
    LengthRanges some;
  };
  static Part then(const Part& a, const Part& b);
  bool unit(RegexId r) const;
  Part regex(RegexId r);
  LengthRanges grown(RegexId r);
  Part rule(Symbol s);
  Part symbol(Symbol s);
  Part sequence(std::span<const Symbol> symbols);
  Part stack(StackId s);
  LengthRanges on_the_way(StateId s, bool turns);

  Parser& parser_;
  Productions& productions_;
  Completion& completion_;
  Lengths& lengths_;
  // The answers of closer() and parts(), then the ranges of stacks, rules and regexes. longest_ has the
  // answers of longest().
  FlatMap<uint32_t, LengthRanges> states_, parts_, stacks_, rules_, regexes_;
  FlatMap<uint32_t, uint32_t> longest_;
  uint32_t depth_ = 0, steps_ = 0;
};

}  // namespace structgen
