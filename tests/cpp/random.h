// Random choices of the C++ tests. In: a seed. Out: small numbers. Cost: a few nanoseconds each.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <random>

namespace structgen_tests {

inline uint64_t from_environment(const char* name, uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed + from_environment("STRUCTGEN_SEED", 0)) {}
  uint32_t below(uint32_t n) { return static_cast<uint32_t>(engine_() % n); }
  bool chance(uint32_t percent) { return below(100) < percent; }
  uint64_t bits() { return engine_(); }

 private:
  std::mt19937_64 engine_;
};

// How often a random check is repeated.
inline uint32_t times(uint32_t n) { return n * static_cast<uint32_t>(from_environment("STRUCTGEN_LONG", 1)); }

}  // namespace structgen_tests
