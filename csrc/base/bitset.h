// ByteSet: 256 bits, one for each byte. Every operation has a constant cost.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace structgen {

struct ByteSet {
  std::array<uint64_t, 4> w{};

  static constexpr ByteSet all() { return ByteSet{{~0ull, ~0ull, ~0ull, ~0ull}}; }
  static constexpr ByteSet of(uint8_t b) {
    ByteSet s;
    s.add(b);
    return s;
  }
  static constexpr ByteSet range(uint8_t lo, uint8_t hi) {
    ByteSet s;
    for (int b = lo; b <= hi; ++b) s.add(static_cast<uint8_t>(b));
    return s;
  }
  constexpr void add(uint8_t b) { w[b >> 6] |= 1ull << (b & 63); }
  constexpr void remove(uint8_t b) { w[b >> 6] &= ~(1ull << (b & 63)); }
  constexpr bool has(uint8_t b) const { return (w[b >> 6] >> (b & 63)) & 1; }
  constexpr bool none() const { return !(w[0] | w[1] | w[2] | w[3]); }
  constexpr bool any() const { return !none(); }
  int count() const {
    return std::popcount(w[0]) + std::popcount(w[1]) + std::popcount(w[2]) + std::popcount(w[3]);
  }
  // Returns the smallest member, or 256 if the set is empty.
  int first() const {
    for (int i = 0; i < 4; ++i)
      if (w[i]) return i * 64 + std::countr_zero(w[i]);
    return 256;
  }
  template <class F>
  void for_each(F&& f) const {
    for (int i = 0; i < 4; ++i)
      for (uint64_t x = w[i]; x; x &= x - 1) f(static_cast<uint8_t>(i * 64 + std::countr_zero(x)));
  }
  friend constexpr ByteSet operator&(ByteSet a, const ByteSet& b) {
    for (int i = 0; i < 4; ++i) a.w[i] &= b.w[i];
    return a;
  }
  friend constexpr ByteSet operator|(ByteSet a, const ByteSet& b) {
    for (int i = 0; i < 4; ++i) a.w[i] |= b.w[i];
    return a;
  }
  friend constexpr ByteSet operator~(ByteSet a) {
    for (int i = 0; i < 4; ++i) a.w[i] = ~a.w[i];
    return a;
  }
  ByteSet& operator|=(const ByteSet& b) { return *this = *this | b; }
  ByteSet& operator&=(const ByteSet& b) { return *this = *this & b; }
  friend constexpr bool operator==(const ByteSet&, const ByteSet&) = default;
};

}  // namespace structgen
