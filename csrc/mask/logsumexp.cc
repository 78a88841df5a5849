// Sums over the allowed logits of a row; declared in apply.h.
//
// Two passes: the largest allowed logit, then the sum of exp(x - largest), which cannot overflow. Words
// without an allowed token are skipped in both.
//
// exp is a polynomial of degree 6 on [-ln 2 / 2, ln 2 / 2] (Cephes; error below 2 ulp), scaled by a
// power of two, so that the loop over 32 lanes vectorises. The lanes are floats. Every 64 words they
// are added to a double, which keeps the sum's relative error near 1e-7 whatever the width.

#include <algorithm>
#include <cmath>

#include "mask/apply.h"
#include "mask/rows.h"

namespace structgen {
namespace {

constexpr float kNegInf = -std::numeric_limits<float>::infinity();

// Returns exp(x) for x <= 0 or NaN, and 0 below -87, where the result is no normal float. x is split into n
// ln 2 + r; adding and subtracting 1.5 * 2^23 rounds to the nearest integer n.
STRUCTGEN_INLINE float exp_negative(float x) {
  const float scaled = x * 1.44269504088896341f;
  const float rounded = (scaled + 12582912.0f) - 12582912.0f;  // to the nearest integer, for |scaled| < 2^22
  const float r = (x - rounded * 0.693359375f) - rounded * -2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  const float kept = x < -87.0f ? 0.0f : rounded;
  const float power = std::bit_cast<float>(static_cast<uint32_t>((static_cast<int32_t>(kept) + 127)) << 23);
  return x < -87.0f ? 0.0f : p * power;
}

// Writes 32 logits as floats, with -inf for refused tokens. There is no branch, so the loop vectorises.
template <class T>
STRUCTGEN_INLINE void load32(float* lanes, const typename T::Bits* in, uint32_t word) {
  for (unsigned j = 0; j < 32; ++j) lanes[j] = (word >> j) & 1u ? T::value(in[j]) : kNegInf;
}

// Writes the last word of a row as floats, with -inf for refused tokens. The row may end inside this word, so
// only allowed columns are read.
template <class T>
STRUCTGEN_INLINE void load_some(float* lanes, const typename T::Bits* in, uint32_t word) {
  for (unsigned j = 0; j < 32; ++j) lanes[j] = kNegInf;
  for (; word; word &= word - 1) {
    const int j = std::countr_zero(word);
    lanes[j] = T::value(in[j]);
  }
}

// Finds the largest allowed logit (kNegInf if none is allowed), and whether an allowed logit is NaN. NaN is
// tested for on its own, because every comparison with it is false.
template <class T>
STRUCTGEN_INLINE float largest(const typename T::Bits* in, std::size_t width, const uint32_t* mask,
                               std::size_t words, bool& nan) {
  alignas(64) float best[32], lanes[32];
  alignas(64) uint32_t strange[32] = {};
  std::fill(best, best + 32, kNegInf);
  const std::size_t count = std::min(words, (width + 31) / 32);
  for (std::size_t w = 0; w < count; ++w) {
    const uint32_t word = mask_word(mask, words, w, width);
    if (word == 0) continue;
    if (w * 32 + 32 <= width)
      load32<T>(lanes, in + w * 32, word);
    else
      load_some<T>(lanes, in + w * 32, word);
    for (unsigned j = 0; j < 32; ++j) {
      best[j] = lanes[j] > best[j] ? lanes[j] : best[j];
      strange[j] |= lanes[j] != lanes[j];
    }
  }
  nan = std::any_of(strange, strange + 32, [](uint32_t s) { return s != 0; });
  return *std::max_element(best, best + 32);
}

// Returns the sum of exp(x - top) over the allowed logits x of a row.
template <class T>
STRUCTGEN_INLINE double sum_exp(const typename T::Bits* in, std::size_t width, const uint32_t* mask,
                                std::size_t words, float top) {
  alignas(64) float sums[32] = {}, lanes[32];
  double total = 0;
  unsigned held = 0;
  const std::size_t count = std::min(words, (width + 31) / 32);
  for (std::size_t w = 0; w < count; ++w) {
    const uint32_t word = mask_word(mask, words, w, width);
    if (word == 0) continue;
    if (w * 32 + 32 <= width)
      load32<T>(lanes, in + w * 32, word);
    else
      load_some<T>(lanes, in + w * 32, word);
    for (unsigned j = 0; j < 32; ++j) sums[j] += exp_negative(lanes[j] - top);
    if (++held == 64) {
      for (float& s : sums) {
        total += s;
        s = 0;
      }
      held = 0;
    }
  }
  for (const float s : sums) total += s;
  return total;
}

template <class T>
STRUCTGEN_INLINE double sum_row(const typename T::Bits* in, std::size_t width, const uint32_t* mask,
                                std::size_t words) {
  bool nan = false;
  const float top = largest<T>(in, width, mask, words, nan);
  if (nan) return std::numeric_limits<double>::quiet_NaN();
  // The row allows nothing, or its largest allowed logit is +inf.
  if (std::isinf(top)) return top;
  return top + std::log(sum_exp<T>(in, width, mask, words, top));
}

STRUCTGEN_CLONES double sum_float32(const uint32_t* in, std::size_t width, const uint32_t* mask,
                                    std::size_t words) {
  return sum_row<Float32>(in, width, mask, words);
}
STRUCTGEN_CLONES double sum_float16(const uint16_t* in, std::size_t width, const uint32_t* mask,
                                    std::size_t words) {
  return sum_row<Float16>(in, width, mask, words);
}
STRUCTGEN_CLONES double sum_bfloat16(const uint16_t* in, std::size_t width, const uint32_t* mask,
                                     std::size_t words) {
  return sum_row<Bfloat16>(in, width, mask, words);
}

// Sums a row of doubles by plain loops and the library's exp: rows of doubles are only used to check other
// results.
double sum_float64(const uint64_t* in, std::size_t width, const uint32_t* mask, std::size_t words) {
  double top = -std::numeric_limits<double>::infinity(), total = 0;
  const auto each = [&](const auto& body) {
    for (std::size_t w = 0; w < std::min(words, (width + 31) / 32); ++w)
      for (uint32_t word = mask_word(mask, words, w, width); word; word &= word - 1)
        body(Float64::value(in[w * 32 + static_cast<std::size_t>(std::countr_zero(word))]));
  };
  bool nan = false;
  each([&](double x) {
    nan |= x != x;
    top = std::max(top, x);
  });
  if (nan) return std::numeric_limits<double>::quiet_NaN();
  if (std::isinf(top)) return top;
  each([&](double x) { total += std::exp(x - top); });
  return top + std::log(total);
}

double sum_any(const LogitRows& in, std::size_t row, const uint32_t* mask, std::size_t words) {
  const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(row) * in.stride;
  switch (in.element) {
    case Element::kFloat32:
      return sum_float32(static_cast<const uint32_t*>(in.data) + at, in.width, mask, words);
    case Element::kFloat16:
      return sum_float16(static_cast<const uint16_t*>(in.data) + at, in.width, mask, words);
    case Element::kBfloat16:
      return sum_bfloat16(static_cast<const uint16_t*>(in.data) + at, in.width, mask, words);
    case Element::kFloat64:
      return sum_float64(static_cast<const uint64_t*>(in.data) + at, in.width, mask, words);
  }
  return 0;
}

// Writes x - total for allowed tokens and -inf for the others. The loop over a word of 32 columns has a
// constant length, so it vectorises.
template <class T, class Number>
STRUCTGEN_INLINE void subtract(Number* out, const typename T::Bits* in, std::size_t width,
                               const uint32_t* mask, std::size_t words, Number total) {
  constexpr Number kNone = -std::numeric_limits<Number>::infinity();
  for (std::size_t w = 0; w < (width + 31) / 32; ++w) {
    const uint32_t word = mask_word(mask, words, w, width);
    const unsigned n = static_cast<unsigned>(std::min<std::size_t>(32, width - w * 32));
    Number* o = out + w * 32;
    const typename T::Bits* x = in + w * 32;
    if (word == 0)
      std::fill(o, o + n, kNone);
    else if (n == 32)
      for (unsigned j = 0; j < 32; ++j) o[j] = (word >> j) & 1u ? T::value(x[j]) - total : kNone;
    else
      for (unsigned j = 0; j < n; ++j) o[j] = (word >> j) & 1u ? T::value(x[j]) - total : kNone;
  }
}

STRUCTGEN_CLONES void subtract_float32(float* out, const uint32_t* in, std::size_t width,
                                       const uint32_t* mask, std::size_t words, float total) {
  subtract<Float32, float>(out, in, width, mask, words, total);
}
STRUCTGEN_CLONES void subtract_float16(float* out, const uint16_t* in, std::size_t width,
                                       const uint32_t* mask, std::size_t words, float total) {
  subtract<Float16, float>(out, in, width, mask, words, total);
}
STRUCTGEN_CLONES void subtract_bfloat16(float* out, const uint16_t* in, std::size_t width,
                                        const uint32_t* mask, std::size_t words, float total) {
  subtract<Bfloat16, float>(out, in, width, mask, words, total);
}

void normalise_row(void* out, const LogitRows& in, std::size_t row, const uint32_t* mask, std::size_t words) {
  double total = sum_any(in, row, mask, words);
  // If the row allows nothing, 0 is subtracted: -inf - 0 is -inf, while -inf - (-inf) would be NaN.
  if (total == -std::numeric_limits<double>::infinity()) total = 0;
  const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(row) * in.stride;
  float* o = static_cast<float*>(out) + row * in.width;
  const float t = static_cast<float>(total);
  switch (in.element) {
    case Element::kFloat32:
      return subtract_float32(o, static_cast<const uint32_t*>(in.data) + at, in.width, mask, words, t);
    case Element::kFloat16:
      return subtract_float16(o, static_cast<const uint16_t*>(in.data) + at, in.width, mask, words, t);
    case Element::kBfloat16:
      return subtract_bfloat16(o, static_cast<const uint16_t*>(in.data) + at, in.width, mask, words, t);
    case Element::kFloat64:
      return subtract<Float64, double>(static_cast<double*>(out) + row * in.width,
                                       static_cast<const uint64_t*>(in.data) + at, in.width, mask, words,
                                       total);
  }
}

}  // namespace

void masked_logsumexp(void* out, const LogitRows& in, const MaskRows& mask, unsigned threads) {
  over_rows(in.rows, in.rows * in.width * element_size(in.element), threads,
            [=](std::size_t first, std::size_t last) {
              for (std::size_t r = first; r < last; ++r) {
                const double total =
                    sum_any(in, r, mask.data + static_cast<std::ptrdiff_t>(r) * mask.stride, mask.words);
                if (in.element == Element::kFloat64)
                  static_cast<double*>(out)[r] = total;
                else
                  static_cast<float*>(out)[r] = static_cast<float>(total);
              }
            });
}

void masked_log_softmax(void* out, const LogitRows& in, const MaskRows& mask, unsigned threads) {
  over_rows(in.rows, in.rows * in.width * element_size(in.element), threads,
            [=](std::size_t first, std::size_t last) {
              for (std::size_t r = first; r < last; ++r)
                normalise_row(out, in, r, mask.data + static_cast<std::ptrdiff_t>(r) * mask.stride,
                              mask.words);
            });
}

}  // namespace structgen
