// How deep recursions may go, and the stack that they may use.
//
// In: calls of functions that recurse over what a user wrote. Out: the same calls, or kSchemaTooComplex
// if they would need more than kStack bytes. Cost: a comparison per call; a thread (30 us) for a piece
// of work on a thread whose own stack is small.
//
// Why: threads have stacks of 8 MB, 512 kB (macOS) or 128 kB (musl). A pattern or schema from a
// stranger must not end the process, and must not be refused on one machine and accepted on another. So
// a piece of work (a compile, a mask) always has kStack bytes: if the thread has less left, the work
// runs on another thread while the caller waits. Every recursive function of the core calls
// check_depth(); tools/recursions.py looks for functions that do not. Bytes are counted and not calls,
// because recursions of several functions stand on each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <type_traits>
#include <utility>

#include "base/error.h"

namespace structgen {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::size_t kStack = 48u << 20;  // frames are several times as large
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr std::size_t kStack = 48u << 20;
#else
constexpr std::size_t kStack = 6u << 20;
#endif
#else
constexpr std::size_t kStack = 6u << 20;
#endif

// The lowest address to which the stack of the current work may grow. UINTPTR_MAX before the thread's first
// work.
extern constinit thread_local uintptr_t stack_floor;

// Throws kSchemaTooComplex, unless this thread has no stack_floor yet and its stack has room left.
void stack_is_low();

// Throws kSchemaTooComplex if the stack of the current work is used up.
inline void check_depth() {
  if (reinterpret_cast<uintptr_t>(__builtin_frame_address(0)) < stack_floor) [[unlikely]]
    stack_is_low();
}

// Counts one level of a recursion while it lives. If `depth` is `most` already, the constructor throws an
// Error of kind `kind`.
class Deeper {
 public:
  Deeper(uint32_t& depth, uint32_t most, ErrorKind kind, const char* what) : depth_(depth) {
    if (depth >= most) throw Error(kind, what);
    ++depth;
  }
  ~Deeper() { --depth_; }
  Deeper(const Deeper&) = delete;
  Deeper& operator=(const Deeper&) = delete;

 private:
  uint32_t& depth_;
};

namespace room {
// Returns true if this thread has a stack_floor already.
bool working();
// Returns true if this thread's stack has kStack bytes left.
bool enough();
// While it lives, this thread may use kStack bytes of its stack, or as many as are left.
class Work {
 public:
  Work();
  ~Work() { stack_floor = before_; }
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

 private:
  const uintptr_t before_;
};
// Runs `work` on another thread with enough stack, waits for it, and throws what it throws. If no thread can
// be started, `work` runs on this one.
void elsewhere(const std::function<void()>& work);
}  // namespace room

// Returns f(), which gets kStack bytes of stack, perhaps on another thread. So the caller must hold no lock
// and be in no ForkSection.
template <class F>
auto with_stack(F&& f) -> std::invoke_result_t<F&> {
  using Result = std::invoke_result_t<F&>;
  if (room::working()) return f();
  if (room::enough()) {
    const room::Work work;
    return f();
  }
  if constexpr (std::is_void_v<Result>) {
    room::elsewhere([&] { f(); });
  } else {
    std::optional<Result> out;
    room::elsewhere([&] { out.emplace(f()); });
    return std::move(*out);
  }
}

}  // namespace structgen
