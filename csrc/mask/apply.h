// Token bitmasks applied to rows of logits, on the CPU.
//
// In: logits, `rows` rows of `width` elements, which lie `stride` elements apart; and a mask, `words`
// 32-bit words a row, whose rows lie `mask_stride` words apart (0: one row for all). Bit t % 32 of word
// t / 32 is 1 where token t is allowed. Columns from 32 * words on have no bit and are refused: a model
// may pad its logits to 128,256 columns for 128,000 tokens. Out: the same rows with -inf where a token
// is refused (`mask_logits`), the log-sum-exp of the allowed logits of each row, or the log-softmax
// over them.
//
// Example, one row of 4 logits and the mask 0b0101 (tokens 0 and 2):
//
//     logits        1     5     1     7
//     mask_logits   1    -inf   1    -inf
//     logsumexp     1 + ln 2 = 1.693
//     log_softmax  -0.693 -inf -0.693 -inf
//
// Cost: one pass over memory. In place, a word of 32 allowed tokens is only looked at, and a word of 32
// refused tokens is only written: a row of 131,072 floats takes 2 us where nearly all are allowed and
// 15 us where none is. Sums skip words without an allowed token, so the cost of a narrow mask follows
// the number of tokens that it allows.
//
// The loops run over 32 elements and are plain, so that gcc vectorises them. On x86-64 Linux each function is
// compiled for the baseline, AVX2 and AVX-512, and the loader picks one. Rows are shared among threads only
// where there is enough work: starting a thread costs 20 to 50 us.
#pragma once

#include <cstddef>
#include <cstdint>

namespace structgen {

enum class Element : uint8_t { kFloat32, kFloat16, kBfloat16, kFloat64 };

std::size_t element_size(Element e);

// An array of logits that the caller owns (NumPy, torch or C).
struct LogitRows {
  const void* data = nullptr;
  Element element = Element::kFloat32;
  std::size_t rows = 0;
  std::size_t width = 0;
  std::ptrdiff_t stride = 0;  // elements from one row to the next
};

struct MaskRows {
  const uint32_t* data = nullptr;
  std::ptrdiff_t stride = 0;  // words from one row to the next; 0: every row has the same mask
  std::size_t words = 0;
};

// Writes each row of `in` to `out`, with -inf where the mask refuses a token. `out` may be `in.data` if the
// strides are equal. With `indices`, row i of the mask applies to the logits row indices[i], and the other
// logits rows are copied as they are. `threads` is the number of threads; 0 derives it from the size of the
// rows.
void mask_logits(void* out, std::ptrdiff_t out_stride, const LogitRows& in, const MaskRows& mask,
                 const int64_t* indices, std::size_t n_indices, unsigned threads);

// Writes log(sum(exp(x))) over the allowed logits x of each row: -inf if nothing is allowed, NaN if an
// allowed logit is NaN. `out` gets one value for each row: a double for kFloat64, otherwise a float.
void masked_logsumexp(void* out, const LogitRows& in, const MaskRows& mask, unsigned threads);

// Writes x - logsumexp where a token is allowed, and -inf elsewhere. A row that allows nothing becomes -inf
// everywhere. `out` is contiguous and gets rows x width values: doubles for kFloat64, otherwise floats.
void masked_log_softmax(void* out, const LogitRows& in, const MaskRows& mask, unsigned threads);

}  // namespace structgen
