// The source of a grammar's rows, which also reads the tokens of these rows. The source is chosen once for
// each grammar.
//
// In: a sequence that may go on (the matcher handles terminated ones). Out: rows of words() int32 words
// with the vocabulary's end tokens, and states. Cost: a known row is one copy and takes no lock; the
// other calls take the lock themselves.
//
// The sources (engine/rows.cc):
//
//     PlainRow     the mask of the state; a mask that takes too much work is an error. For a grammar with a
//                  condition (`grammar & without("x")`), or for the middle that `infill` asks for, tokens
//                  are also read behind a captured text, and a row without tokens is an error
//     DistinctRow  JSON with arrays whose items differ: the items stand beside the state (engine/distinct.h)
//     PartRow      the same where the world omits (base/effort.h): a row may be a part of the mask
//     SpelledRow   a vocabulary that may be unable to spell what the grammar asks for (budget/spellable.h)
//     LimitedRow   a grammar that limits tokens (budget/limits.h)
//     RangedRow    a grammar whose texts have a range of bytes: the bytes are counted beside the state
//
// The source that made a row reads its tokens, because only that source knows what the row promised.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/sequence.h"

namespace structgen {

struct Row {
  uint32_t* words;
  // False if tokens may be missing that took too much work to judge.
  bool exact = true;
};

class RowSource {
 public:
  virtual ~RowSource() = default;
  virtual bool known(const Sequence& s, Row& row) const = 0;
  // Writes the row. Throws kBudgetExceeded if it finds no token within the call's work.
  virtual void fill(Sequence& s, Row& row) const = 0;
  // Writes only tokens behind which the text can be completed with `budget` tokens, counting the next token
  // and the end token. Returns false if it is proved that there is no such token. Throws kBudgetExceeded if
  // no such token was found and nothing is proved.
  virtual bool within(Sequence& s, Row& row, std::size_t budget) const = 0;
  // Returns the state behind a token with bytes; dead() if the token is not allowed.
  virtual StateId read(Sequence& s, TokenId t) const = 0;
  // Returns true if the state `to`, `bytes` bytes behind the sequence, has a completion. Only sources whose
  // mortal() is true have states without a completion.
  virtual bool completable(Sequence& /*s*/, StateId /*to*/, std::size_t /*bytes*/) const { return true; }
  virtual bool mortal() const { return false; }
};

const RowSource& row_source(const Grammar& grammar);
// Returns true if a budget of `budget` tokens is known to refuse no token of the row. Takes no lock.
bool loose_within(Sequence& s, std::size_t budget);

}  // namespace structgen
