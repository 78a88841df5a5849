// How deep recursions may go, and the stack that they may use.
//
// In: calls of functions that recurse over what a user wrote. Out: the same calls, or kSchemaTooComplex where
// they would need more than kStack bytes. Cost: a comparison a call; a thread, 30 us, a piece of work on a
// thread whose own stack is small.
//
// Reasoning: threads have stacks of 8 MB, 512 kB (macOS) or 128 kB (musl), and a pattern or schema from a
// stranger must neither end the process nor be refused on one machine and taken on another. So a piece of
// work (a compile, a mask) always has kStack bytes: where the thread has less left, it runs on another one
// while the caller waits. Every recursive function of the core calls check_depth(); tools/recursions.py looks
// for those that do not. Bytes are counted and not calls, because recursions of many functions stand on each
// other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <type_traits>
#include <utility>

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

// The address that the stack of the work under way must not reach; before any work, not known yet.
extern constinit thread_local uintptr_t stack_floor;

void stack_is_low();  // throws unless the floor was only unknown

// Throws kSchemaTooComplex where the stack of this piece of work is used up.
inline void check_depth() {
  if (reinterpret_cast<uintptr_t>(__builtin_frame_address(0)) < stack_floor) [[unlikely]]
    stack_is_low();
}

namespace room {
bool working();  // this thread is in a piece of work already
bool enough();   // this thread's stack has kStack bytes left
class Work {     // gives the caller its kStack bytes, or what is there
 public:
  Work();
  ~Work() { stack_floor = before_; }
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

 private:
  const uintptr_t before_;
};
// On a thread with enough stack; exceptions come through. Where no thread is to be had, on this one.
void elsewhere(const std::function<void()>& work);
}  // namespace room

// f(), with kStack bytes of stack. The caller holds no lock and is in no ForkSection: f may run on another
// thread.
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
