// From which number of bytes on a state has a text of every length.
//
// In: a state without captured text. Out: a number n such that for each m >= n some text of m bytes
// completes the state, whatever text was captured; kFar: none is known. Cost: a look-up for what is
// known; else one addition for each symbol, as for the bounds of parse/lengths.h.
//
// A text grows by single bytes where a part of it repeats without end and one round may be one byte:
// blanks between tokens of JSON, characters of a string. So n is the length of a text that passes one
// such place. Behind `{"name":"A` in a closed object:
//
//     regex(characters, then `"`)   1: the quote, and any number of characters before it
//     stack(`}`)                    1 byte
//     of(state)                     2
//
// Where a part has no bound, the places along a shortest completion and one byte beside it are looked at
// instead. An n that is too large is harmless.
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
  uint32_t of(StateId s);
  // The same, with a look along a shortest completion also where the parts have a bound: the bound of an enum
  // is its longest text.
  uint32_t closer(StateId s);
  // The bytes of the longest text that completes the state; kFar: there are texts beyond any length;
  // kUnknown: that takes too much work, or depends on the captured text.
  uint32_t longest(StateId s);
  static constexpr uint32_t kUnknown = kFar + 1;
  std::size_t byte_size() const {
    return states_.byte_size() + longest_.byte_size() + parts_.byte_size() + stacks_.byte_size() +
           rules_.byte_size() + regexes_.byte_size();
  }

 private:
  // A part of a text: a bound of its shortest length, and the length from which on it has all of them.
  struct Part {
    uint32_t least, all;
  };
  static Part then(Part a, Part b);
  bool unit(RegexId r) const;
  uint32_t regex(RegexId r);
  uint32_t rule(RuleId r, bool reader);
  Part symbol(Symbol s);
  Part sequence(std::span<const Symbol> symbols);
  uint32_t stack(StackId s);
  uint32_t by_parts(StateId s);
  uint32_t on_the_way(StateId s);

  Parser& parser_;
  Productions& productions_;
  Completion& completion_;
  Lengths& lengths_;
  FlatMap<uint32_t, uint32_t> states_, longest_, parts_, stacks_, rules_, regexes_;
  uint32_t depth_ = 0, steps_ = 0;
};

}  // namespace structgen
