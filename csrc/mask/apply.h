// Token bitmasks on rows of logits, on the CPU.
//
// In: logits, `rows` rows of `width` elements, `stride` elements apart; a mask, `words` 32-bit words a row,
// `mask_stride` words apart (0: one row for all). Bit t % 32 of word t / 32 is 1 where token t is allowed;
// columns from 32 * words on have no bit and are not allowed.
// Out: the same rows with -inf (`mask_logits`), their log-sum-exp, or their log-softmax over the allowed.
// Cost: one pass over memory. In place, words of 32 allowed tokens are only looked at, and words of 32
// refused ones only written: a row of 131,072 floats takes 2 us where nearly all are allowed and 15 us
// where none is. Sums skip refused words, so a narrow mask costs what it allows.
//
// Plain loops of 32 elements, which gcc vectorises; on x86-64 Linux each function is compiled for the
// baseline, AVX2 and AVX-512, and the loader picks one. Rows are shared among threads only where there is
// work for them: starting one costs 20-50 us.
#pragma once

#include <cstddef>
#include <cstdint>

namespace structgen {

enum class Element : uint8_t { kFloat32, kFloat16, kBfloat16, kFloat64 };

std::size_t element_size(Element e);

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

// Writes every row of `in` to `out`, -inf where it is not allowed; `out` may be `in.data` (same stride).
// With `indices`, mask row i is for logits row indices[i]; rows without a mask are copied as they are.
// `threads` 0 chooses by size.
void mask_logits(void* out, std::ptrdiff_t out_stride, const LogitRows& in, const MaskRows& mask,
                 const int64_t* indices, std::size_t n_indices, unsigned threads);

// log(sum(exp(x))) over the allowed x of a row, formed in double; -inf where nothing is allowed, NaN where
// an allowed logit is NaN. `out` has one value a row: double for kFloat64, else float.
void masked_logsumexp(void* out, const LogitRows& in, const MaskRows& mask, unsigned threads);

// x - logsumexp where allowed, else -inf; a row with nothing allowed is -inf throughout.
// `out` is contiguous, rows x width: double for kFloat64, else float.
void masked_log_softmax(void* out, const LogitRows& in, const MaskRows& mask, unsigned threads);

}  // namespace structgen
