// Where the row of a mask comes from, and what reads its tokens: chosen once a grammar.
//
// In: a sequence that may go on (terminated ones are the matcher's). Out: rows of words() int32 words with
// the vocabulary's end tokens, and states. Cost: a known row is one copy and takes no lock; the others take
// the lock themselves.
//
// The sources (engine/rows.cc):
//
//     PlainRow     the mask of the state; what is too much to tell is an error. Of a grammar with a
//     condition, or a
//                  middle, tokens are read behind a captured text, and a row without tokens is an error
//     PartRow      the same where the world omits (base/effort.h): a row may be a part of the mask
//     SpelledRow   a vocabulary that may be unable to spell what the grammar asks for (budget/spellable.h)
//     LimitedRow   a grammar that limits tokens (budget/limits.h)
//
// A token of a row is read by the source that made the row, because only that one knows what it promised.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/sequence.h"

namespace structgen {

struct Row {
  uint32_t* words;
  bool exact = true;  // false: tokens may be missing, because it was too much to tell of some
};

class RowSource {
 public:
  virtual ~RowSource() = default;
  // The row, where it is known. Takes no lock.
  virtual bool known(const Sequence& s, Row& row) const = 0;
  // Throws kBudgetExceeded where no row is found within the limits.
  virtual void fill(Sequence& s, Row& row) const = 0;
  // Only tokens after which `budget` tokens complete the text, the one to come and the end token included.
  // False: proved that there are none. Throws kBudgetExceeded where none is found and nothing proved.
  virtual bool within(Sequence& s, Row& row, std::size_t budget) const = 0;
  // The state behind a token with bytes; dead where it is not allowed.
  virtual StateId read(Sequence& s, TokenId t) const = 0;
};

const RowSource& row_source(const Grammar& grammar);
// Whether the budget is known to suffice after every token of the row. Takes no lock.
bool loose_within(Sequence& s, std::size_t budget);

}  // namespace structgen
