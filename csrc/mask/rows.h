// What the loops over rows of logits share: element types as numbers, words of a mask, threads over rows.
//
// In and out: as in apply.h. Cost: that of the loops which use them.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>

#include "mask/apply.h"

// Compiles a function once for each instruction set; the loader chooses a version. This needs ifunc (glibc
// and gcc), which does not work with sanitizers.
#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(__clang__) && __GNUC__ >= 12 && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define STRUCTGEN_CLONES __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#else
#define STRUCTGEN_CLONES
#endif

// Inlines a function. A loop is compiled for the instruction set of the function around it, so it must be
// inlined into the one marked STRUCTGEN_CLONES.
#if defined(__GNUC__)
#define STRUCTGEN_INLINE inline __attribute__((always_inline))
#else
#define STRUCTGEN_INLINE inline
#endif

namespace structgen {

// For each type of element: the type of its bits, the bits of -inf, and the float that given bits stand for.
struct Float32 {
  using Bits = uint32_t;
  static constexpr Bits kNegInf = 0xFF800000u;
  static STRUCTGEN_INLINE float value(Bits b) { return std::bit_cast<float>(b); }
};
struct Float16 {
  using Bits = uint16_t;
  static constexpr Bits kNegInf = 0xFC00u;
  // Without a branch: the exponent of a normal number is shifted; any other number comes from a
  // multiplication of floats.
  static STRUCTGEN_INLINE float value(Bits b) {
    const uint32_t sign = static_cast<uint32_t>(b & 0x8000u) << 16;
    const uint32_t rest = static_cast<uint32_t>(b & 0x7FFFu) << 13;
    const float small = std::bit_cast<float>(rest) * std::bit_cast<float>(0x77800000u);  // 2^112
    const uint32_t wide = rest + 0x70000000u;                                            // inf and NaN
    const uint32_t bits = (b & 0x7C00u) == 0x7C00u ? wide : std::bit_cast<uint32_t>(small);
    return std::bit_cast<float>(bits | sign);
  }
};
struct Bfloat16 {
  using Bits = uint16_t;
  static constexpr Bits kNegInf = 0xFF80u;
  static STRUCTGEN_INLINE float value(Bits b) { return std::bit_cast<float>(static_cast<uint32_t>(b) << 16); }
};
struct Float64 {
  using Bits = uint64_t;
  static constexpr Bits kNegInf = 0xFFF0000000000000ull;
  static STRUCTGEN_INLINE double value(Bits b) { return std::bit_cast<double>(b); }
};

// Returns word w of a mask, without the bits beyond the row's last column.
STRUCTGEN_INLINE uint32_t mask_word(const uint32_t* mask, std::size_t words, std::size_t w,
                                    std::size_t width) {
  if (w >= words) return 0;
  const std::size_t left = width - w * 32;
  return left >= 32 ? mask[w] : mask[w] & ((1u << left) - 1);
}

void over_rows(std::size_t rows, std::size_t bytes, unsigned threads,
               const std::function<void(std::size_t, std::size_t)>& body);

}  // namespace structgen
