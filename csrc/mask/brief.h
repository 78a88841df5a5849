// A summary of one row of log-probabilities under a mask: its sums, its most probable allowed tokens,
// and the weight of the others.
//
// In: a float32 row, a mask (apply.h), and how many tokens to keep. Out: the ids and values of the most
// probable allowed tokens, in ascending order of ids; and sums in double precision. Of equal values the
// lower id is kept. Cost: one exp a token and three reads of the row; a row of 131,072 takes 0.2 to 0.3
// ms.
//
// The sampler that corrects for the mask needs these numbers at each step and not the whole row: how
// much probability the mask took away, and the entropy of what is left.
//
// Example: the row ln 0.5, ln 0.3, ln 0.15, ln 0.05, the mask without token 0, two tokens kept:
//
//     ids 1, 2         values ln 0.3, ln 0.15        best  ln 0.3
//     tail  0.05 / 0.3 (token 3, in units of the best token)        lost 0, lost_value ln 0.5
//
// No number is found by subtraction, which would lose digits where the rest is tiny: the weight of tokens
// that are not kept is summed by itself. A threshold, taken from a sample of the row, divides the tokens: the
// few tokens above the threshold may be among the best and are compared exactly; all other tokens are only
// summed. exp is right to a relative error of 1e-15.
#pragma once

#include <cstddef>
#include <cstdint>

namespace structgen {

struct Brief {
  // True if every allowed token with a weight was kept. With kept = 0 it means that brief_row() cannot serve
  // the row.
  bool whole = false;
  std::size_t kept = 0;
  double shift = 0;    // log of the sum of exp over the whole row
  double best = 0;     // the largest allowed value
  double tail = 0;     // sum of exp(x - best) over allowed tokens that were not kept
  double entropy = 0;  // entropy of the distribution of allowed tokens, in nats
  // The most probable refused token (the first of equal ones), or -1 if the mask refuses none.
  int64_t lost = -1;
  double lost_value = 0;
};

// Writes the most probable allowed tokens, at most `most` of them, to `ids` and `values`. brief_row() cannot
// serve three kinds of rows (`whole` is true and `kept` is 0): rows that allow nothing, rows with a NaN or
// +inf, and rows in which a refused token is e^300 times as probable as any allowed token. Sums are relative
// to the best allowed token, and exp_of() ends at e^310.
Brief brief_row(const float* row, std::size_t width, const uint32_t* mask, std::size_t words,
                std::size_t most, int32_t* ids, float* values);

}  // namespace structgen
