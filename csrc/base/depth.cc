#include "base/depth.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

#ifdef _WIN32
#include <windows.h>
#else
#include <pthread.h>
#endif

#include "base/error.h"
#include "base/interrupt.h"

namespace structgen {

namespace {

// This many bytes of a stack are kept for functions that do not call check_depth(), and for signal handlers.
constexpr std::size_t kReserve = 48u << 10;

struct Bounds {
  uintptr_t low = 0, high = 0;
};

uintptr_t here() { return reinterpret_cast<uintptr_t>(__builtin_frame_address(0)); }

// Returns a low and a high address within the current stack, for a stack whose size the system does not tell.
// They are closer together than in any thread's stack.
Bounds guess() { return {here() - (64u << 10), here()}; }

Bounds own_stack() {
#ifdef _WIN32
  ULONG_PTR low = 0, high = 0;
  GetCurrentThreadStackLimits(&low, &high);
  return {low, high};
#elif defined(__APPLE__)
  const uintptr_t high = reinterpret_cast<uintptr_t>(pthread_get_stackaddr_np(pthread_self()));
  return {high - pthread_get_stacksize_np(pthread_self()), high};
#elif defined(__linux__)
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return guess();
  void* low = nullptr;
  std::size_t size = 0;
  const bool told = pthread_attr_getstack(&attributes, &low, &size) == 0;
  pthread_attr_destroy(&attributes);
  if (!told || size == 0) return guess();
  return {reinterpret_cast<uintptr_t>(low), reinterpret_cast<uintptr_t>(low) + size};
#else
  return guess();
#endif
}

// Returns the lowest address of this thread's stack. The system is asked once for each thread; if a coroutine
// has switched to another stack since, the address is a guess.
uintptr_t lowest() {
  thread_local constinit Bounds known{};
  if (known.high == 0) known = own_stack();
  if (here() < known.low || here() > known.high) return guess().low;
  return known.low;
}

}  // namespace

constinit thread_local uintptr_t stack_floor = UINTPTR_MAX;

namespace room {

bool working() { return stack_floor != UINTPTR_MAX; }

bool enough() {
  const uintptr_t low = lowest() + kReserve;
  return here() > low && here() - low >= kStack;
}

Work::Work() : before_(stack_floor) {
  const uintptr_t low = lowest() + kReserve;
  stack_floor = std::max(low, here() > kStack ? here() - kStack : low);
}

namespace {

// Work that another thread does while the caller waits. An interrupt of the caller's call interrupts it, too.
class Errand {
 public:
  explicit Errand(const std::function<void()>& work) : work_(work) {}
  void run() noexcept {
    const Work own;
    const Interrupt::Help help(call_);
    try {
      work_();
    } catch (...) {
      failure_ = std::current_exception();
    }
    const std::lock_guard hold(lock_);
    done_ = true;
    over_.notify_one();
  }
  void wait() {
    std::unique_lock hold(lock_);
    while (!done_) {
      if (!Interrupt::watches()) {
        over_.wait(hold);
        continue;
      }
      over_.wait_for(hold, Interrupt::kEvery);
      hold.unlock();
      Interrupt::ask();
      hold.lock();
    }
  }
  const std::exception_ptr& failure() const { return failure_; }

 private:
  const std::function<void()>& work_;
  Interrupt* const call_ = Interrupt::current();
  std::exception_ptr failure_;
  std::mutex lock_;
  std::condition_variable over_;
  bool done_ = false;
};

#ifndef _WIN32
void* run_errand(void* errand) {
  static_cast<Errand*>(errand)->run();
  return nullptr;
}

bool on_thread(Errand& errand) {
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return false;
  pthread_t thread;
  const bool started = pthread_attr_setstacksize(&attributes, kStack + (1u << 20)) == 0 &&
                       pthread_create(&thread, &attributes, run_errand, &errand) == 0;
  pthread_attr_destroy(&attributes);
  if (!started) return false;
  errand.wait();
  pthread_join(thread, nullptr);
  return true;
}
#else
DWORD WINAPI run_errand(void* errand) {
  static_cast<Errand*>(errand)->run();
  return 0;
}

bool on_thread(Errand& errand) {
  const HANDLE thread = CreateThread(nullptr, kStack + (1u << 20), run_errand, &errand,
                                     STACK_SIZE_PARAM_IS_A_RESERVATION, nullptr);
  if (!thread) return false;
  errand.wait();
  WaitForSingleObject(thread, INFINITE);
  CloseHandle(thread);
  return true;
}
#endif

}  // namespace

void elsewhere(const std::function<void()>& work) {
  Errand errand(work);
  if (!on_thread(errand)) {
    const Work own;
    work();
  } else if (errand.failure()) {
    std::rethrow_exception(errand.failure());
  }
}

}  // namespace room

void stack_is_low() {
  if (!room::working()) {
    // This thread has no stack_floor. Only the end of its stack bounds the recursion.
    const uintptr_t low = lowest() + kReserve;
    if (here() >= low) return;
  }
  too_complex("the schema, pattern or grammar nests too deeply");
}

}  // namespace structgen
