#include "base/hot_code.h"

#ifdef __ELF__

#include <chrono>
#include <cstdint>

extern "C" {
// Where csrc/hot_functions.ld puts the functions of a compile; both null where the linker was not given it.
[[gnu::weak, gnu::visibility("hidden")]] extern const char structgen_hot_begin[];
[[gnu::weak, gnu::visibility("hidden")]] extern const char structgen_hot_end[];
}

namespace structgen {

namespace {
constexpr std::uintptr_t kLine = 64;
constexpr std::chrono::microseconds kPause{300};  // between two calls that follow each other without a pause
}  // namespace

void fetch_hot_code() {
  using Clock = std::chrono::steady_clock;
  thread_local Clock::time_point last{};
  const Clock::time_point now = Clock::now();
  if (now - last > kPause)
    for (auto at = reinterpret_cast<std::uintptr_t>(structgen_hot_begin),
              end = reinterpret_cast<std::uintptr_t>(structgen_hot_end);
         at < end; at += kLine)
      // Read, not prefetched: of five thousand hints in a row the processor drops most.
      static_cast<void>(*reinterpret_cast<const volatile char*>(at));
  last = now;
}

}  // namespace structgen

#else

namespace structgen {
void fetch_hot_code() {}
}  // namespace structgen

#endif
