#include "mask/apply.h"

#include <algorithm>
#include <system_error>
#include <thread>
#include <vector>

#include "mask/rows.h"

namespace structgen {

namespace {
// The number of processors. It is read once, because each call of hardware_concurrency() reads a file of the
// system.
const std::size_t kCpus = std::max(1u, std::thread::hardware_concurrency());
}  // namespace

std::size_t element_size(Element e) {
  switch (e) {
    case Element::kFloat32: return 4;
    case Element::kFloat64: return 8;
    default: return 2;
  }
}

// Calls body() on several threads, each with neighbouring rows: 10 rows on 3 threads are [0, 3), [3, 6) and
// [6, 10). The calling thread takes the first range.
void over_rows(std::size_t rows, std::size_t bytes, unsigned threads,
               const std::function<void(std::size_t, std::size_t)>& body) {
  constexpr std::size_t kBytesPerThread = 4 << 20;  // about 0.3 ms of work
  std::size_t n = threads ? threads : bytes / kBytesPerThread;
  if (threads == 0 && n > 1) {
    n = std::min<std::size_t>({n, kCpus, 8});
  }
  n = std::min(n, rows);
  if (n <= 1) return body(0, rows);
  std::vector<std::thread> others;
  for (std::size_t i = 1; i < n; ++i) {
    try {
      others.emplace_back(body, rows * i / n, rows * (i + 1) / n);
      // If no more threads can be started, the calling thread takes the rows of the missing thread.
    } catch (const std::system_error&) {
      body(rows * i / n, rows * (i + 1) / n);
    }
  }
  body(0, rows / n);
  for (std::thread& t : others) t.join();
}

namespace {

// Writes 32 elements: the input where the mask bit is 1, `fill` elsewhere. Each bit becomes an element of all
// ones or all zeros, so the loop has no branch, and the compiler vectorises it.
template <class Bits>
STRUCTGEN_INLINE void select32(Bits* out, const Bits* in, uint32_t word, Bits fill) {
  for (unsigned j = 0; j < 32; ++j) {
    const Bits keep = static_cast<Bits>(0) - static_cast<Bits>((word >> j) & 1u);
    out[j] = static_cast<Bits>((in[j] & keep) | (fill & static_cast<Bits>(~keep)));
  }
}

// Writes `fill` over the refused tokens of a row. Eight words (256 tokens) that are all allowed cost one
// test. If a word refuses at most three tokens, as most words do inside a JSON string, only these elements
// are written; writing all 32 would touch more memory.
template <class Bits>
STRUCTGEN_INLINE void in_place(Bits* out, const uint32_t* mask, std::size_t words, Bits fill) {
  std::size_t w = 0;
  while (w < words) {
    if (w + 8 <= words) {
      uint32_t all = ~0u;
      for (unsigned j = 0; j < 8; ++j) all &= mask[w + j];
      if (all == ~0u) {
        w += 8;
        continue;
      }
    }
    for (const std::size_t end = std::min(words, w + 8); w < end; ++w) {
      uint32_t refused = ~mask[w];
      if (refused == ~0u)
        std::fill(out + w * 32, out + w * 32 + 32, fill);
      else if (std::popcount(refused) > 3)
        select32(out + w * 32, out + w * 32, mask[w], fill);
      else
        for (; refused; refused &= refused - 1)
          out[w * 32 + static_cast<std::size_t>(std::countr_zero(refused))] = fill;
    }
  }
}

// Masks the whole words of a row, in place or into another array.
template <class Bits>
STRUCTGEN_INLINE void whole_words(Bits* out, const Bits* in, const uint32_t* mask, std::size_t words,
                                  Bits fill) {
  if (out == in) return in_place(out, mask, words, fill);
  for (std::size_t w = 0; w < words; ++w) select32(out + w * 32, in + w * 32, mask[w], fill);
}

// STRUCTGEN_CLONES (rows.h) cannot mark a template, so each element size has a function of its own.
// words_of() calls the function for a type.
STRUCTGEN_CLONES void words32(uint32_t* out, const uint32_t* in, const uint32_t* mask, std::size_t n,
                              uint32_t fill) {
  whole_words(out, in, mask, n, fill);
}
STRUCTGEN_CLONES void words16(uint16_t* out, const uint16_t* in, const uint32_t* mask, std::size_t n,
                              uint16_t fill) {
  whole_words(out, in, mask, n, fill);
}
STRUCTGEN_CLONES void words64(uint64_t* out, const uint64_t* in, const uint32_t* mask, std::size_t n,
                              uint64_t fill) {
  whole_words(out, in, mask, n, fill);
}
void words_of(uint32_t* o, const uint32_t* i, const uint32_t* m, std::size_t n, uint32_t f) {
  words32(o, i, m, n, f);
}
void words_of(uint16_t* o, const uint16_t* i, const uint32_t* m, std::size_t n, uint16_t f) {
  words16(o, i, m, n, f);
}
void words_of(uint64_t* o, const uint64_t* i, const uint32_t* m, std::size_t n, uint64_t f) {
  words64(o, i, m, n, f);
}

// Masks one row in three parts: the whole words; the word in which the row or the mask ends; the columns
// beyond the mask, which are refused.
template <class T>
void mask_row(typename T::Bits* out, const typename T::Bits* in, std::size_t width, const uint32_t* mask,
              std::size_t words) {
  const std::size_t whole = std::min(words, width / 32);
  words_of(out, in, mask, whole, T::kNegInf);
  std::size_t at = whole * 32;
  if (whole < words) {
    const uint32_t last = mask[whole];
    for (unsigned j = 0; at < width; ++j, ++at) out[at] = (last >> j) & 1u ? in[at] : T::kNegInf;
  }
  std::fill(out + at, out + width, T::kNegInf);
}

template <class T>
void mask_all(void* out, std::ptrdiff_t out_stride, const LogitRows& in, const MaskRows& mask,
              const int64_t* indices, std::size_t n, unsigned threads) {
  using Bits = typename T::Bits;
  const Bits* source = static_cast<const Bits*>(in.data);
  Bits* target = static_cast<Bits*>(out);
  if (indices && target != source)
    for (std::size_t r = 0; r < in.rows; ++r)
      std::copy_n(source + static_cast<std::ptrdiff_t>(r) * in.stride, in.width,
                  target + static_cast<std::ptrdiff_t>(r) * out_stride);
  // With `indices` the logits were copied to the target above, so the target is masked in place.
  const Bits* from = indices ? target : source;
  const std::ptrdiff_t from_stride = indices ? out_stride : in.stride;
  over_rows(n, n * in.width * sizeof(Bits), threads, [=](std::size_t first, std::size_t last) {
    for (std::size_t i = first; i < last; ++i) {
      const std::ptrdiff_t row =
          indices ? static_cast<std::ptrdiff_t>(indices[i]) : static_cast<std::ptrdiff_t>(i);
      mask_row<T>(target + row * out_stride, from + row * from_stride, in.width,
                  mask.data + static_cast<std::ptrdiff_t>(i) * mask.stride, mask.words);
    }
  });
}

}  // namespace

void mask_logits(void* out, std::ptrdiff_t out_stride, const LogitRows& in, const MaskRows& mask,
                 const int64_t* indices, std::size_t n_indices, unsigned threads) {
  const std::size_t n = indices ? n_indices : in.rows;
  switch (in.element) {
    case Element::kFloat32: return mask_all<Float32>(out, out_stride, in, mask, indices, n, threads);
    case Element::kFloat16: return mask_all<Float16>(out, out_stride, in, mask, indices, n, threads);
    case Element::kBfloat16: return mask_all<Bfloat16>(out, out_stride, in, mask, indices, n, threads);
    case Element::kFloat64: return mask_all<Float64>(out, out_stride, in, mask, indices, n, threads);
  }
}

}  // namespace structgen
