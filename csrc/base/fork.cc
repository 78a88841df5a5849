#include "base/fork.h"

#ifndef _WIN32
#include <pthread.h>
#endif

#include <algorithm>
#include <thread>

#include "base/error.h"
#include "base/interrupt.h"

namespace structgen {

namespace {

// The number of threads in sections. A thread that enters one writes `inside` and then reads `forking`; a
// thread that forks writes `forking` and then reads `inside`. Both are sequentially consistent, so at least
// one thread sees what the other wrote.
std::atomic<uint32_t> inside{0};
std::atomic<uint32_t> forking{0};
std::atomic<uint64_t> forks{0};
std::atomic<uint64_t> torn{0};
std::atomic<int64_t> patience{kForkPatience.count()};
// Held by the thread that forks. This thread is the only one of the child, and there it still holds the lock.
std::mutex one_fork;
thread_local uint32_t depth = 0;

void exit_gate() { inside.fetch_sub(1); }

#ifndef _WIN32
// True if every other thread had left its section when the fork began.
bool all_left;

// Waits until all other threads have left their sections, or until `patience` is over. The forking thread may
// be in a section itself. An atomic has no wait with a time limit, so the loop sleeps, each time longer.
void prepare() {
  using Clock = std::chrono::steady_clock;
  one_fork.lock();
  forking.store(1);
  const uint32_t own = depth ? 1 : 0;
  const Clock::time_point begin = Clock::now();
  const Clock::time_point end = begin + std::chrono::milliseconds(patience.load());
  for (Clock::time_point now = begin; !(all_left = inside.load() == own) && now < end; now = Clock::now())
    std::this_thread::sleep_for(std::clamp<Clock::duration>((now - begin) / 8, std::chrono::microseconds(20),
                                                            std::chrono::milliseconds(2)));
}

void open_gate() {
  forking.store(0);
  forking.notify_all();
  one_fork.unlock();
}

void in_parent() { open_gate(); }

// The child has only this thread, so `inside` is counted anew.
void in_child() {
  inside.store(depth ? 1 : 0);  // a thread that was about to wait at the gate had counted itself for a moment
  forks.fetch_add(1);
  if (!all_left) torn.store(forks.load());
  open_gate();
}

const int registered = pthread_atfork(prepare, in_parent, in_child);
#endif

}  // namespace

// Enters a section, or waits while another thread forks. A waiting thread is not counted, so that the fork
// does not wait for it.
void ForkSection::enter() {
  if (depth++ > 0) return;
  for (;;) {
    inside.fetch_add(1);
    if (!forking.load()) return;
    exit_gate();
    forking.wait(1);
  }
}

void ForkSection::leave() {
  if (--depth == 0) exit_gate();
}

uint64_t fork_count() { return forks.load(std::memory_order_relaxed); }
uint64_t torn_fork() { return torn.load(std::memory_order_relaxed); }
void set_fork_patience(int64_t milliseconds) {
  patience = milliseconds < 0 ? kForkPatience.count() : milliseconds;
}

// Gives the processor's other hardware thread some cycles, if the processor has an instruction for this.
static void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Tries to take the lock for the time kSpin. Most sections last some microseconds, less than the kernel takes
// to wake a sleeping thread: new masks of one grammar took two threads 160 ms without spin(), and take 135.
bool Mutex::spin() {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::microseconds kSpin{20};
  constexpr int kPauses = 16;
  const Clock::time_point end = Clock::now() + kSpin;
  do {
    for (int i = 0; i < kPauses; ++i) pause();
    if (holder_.load(std::memory_order_relaxed) == 0 && try_lock()) return true;
  } while (Clock::now() < end);
  return false;
}

void Mutex::wait() {
  const auto refuse = [] {
    throw Error(ErrorKind::kBudgetExceeded,
                "this process was forked while another thread worked on this for longer than a fork waits; "
                "compile it anew here, or fork before such work begins");
  };
  if (lost()) refuse();
  if (spin()) return;
  ForkSection::enter();
  if (!Interrupt::watches()) {
    mutex_.lock();
  } else {
    while (!mutex_.try_lock_for(Interrupt::kEvery)) {
      Interrupt::ask();
      if (!Interrupt::is_asked()) continue;
      ForkSection::leave();
      throw Interrupted{};
    }
  }
  holder_.store(fork_count() + 1, std::memory_order_relaxed);
}

}  // namespace structgen
