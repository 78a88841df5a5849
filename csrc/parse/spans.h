// The named parts of a text: where they begin and end.
//
// In: a grammar with notes (Symbol::kNote), and a text. Out: spans in bytes. Cost: a few microseconds
// per byte where parts begin and end, well under one inside of a terminal; memory linear in the text.
// Nothing is remembered between calls: callers that never ask only pay for the notes on the stacks.
//
// A text may have several derivations. Their notes decide which one counts, from left to right: at
// every place a part begins if one can begin, and no part ends that can go on (leftmost, then longest).
// The text is read three times: forwards with sets of stacks, which are all derivations at once;
// backwards, to keep what leads to the end; and forwards again, to choose one note after the other.
// Source: the two passes of Frisch & Cardelli, "Greedy regular expression matching" (ICALP 2004), here
// over sets of stacks.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "parse/state.h"

namespace structgen {

struct Span {
  uint32_t name;
  // The offsets in bytes of the first byte of the span, and of the byte behind its last one.
  std::size_t begin, end;
};

// Returns the named captures of a text that `start` reads. They are sorted by begin; of equal begins, longer
// ones come first. With `complete` the text must be whole. Without it more text may follow, and captures that
// are still open are left out. `tokens` are the offsets at which tokens begin, ascending; only grammars that
// limit tokens need them. Throws kBudgetExceeded.
std::vector<Span> find_spans(Parser& parser, Productions& productions, RuleId start, std::string_view text,
                             bool complete, std::span<const std::size_t> tokens = {});

}  // namespace structgen
