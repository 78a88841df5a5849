// A call that its caller may want to end before it is done: Ctrl-C.
//
// In: a question to the caller, asked only by the caller's own thread, at most every kEvery. Out:
// Interrupted, thrown at the next checkpoint of work (base/work.h) of every thread that works for the
// call, and where its own thread waits for a lock. Cost: a look at the clock per checkpoint; nothing if
// nobody asks.
//
// Why a question: what the caller does about Ctrl-C (a signal handler in Python) may call the core
// again or wait for other threads, so it must not run where locks are held. The question only finds
// out. The call then ends with all of its locks free, and its caller acts.
#pragma once

#include <atomic>
#include <chrono>

namespace structgen {

// Not a std::exception, so that no code on the way takes it for an error of its own.
struct Interrupted {};

// One call that can be ended.
class Interrupt {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kEvery{20};

  // While it lives, the thread works for a call that ends as soon as `wanted()` is true; null: it does
  // not end. Inside the scope of another call it is part of that call.
  explicit Interrupt(bool (*wanted)());
  ~Interrupt() { here = before_; }
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;
  bool asked() const { return asked_.load(std::memory_order_relaxed); }

  // The call for which this thread works; null: none that can be ended.
  static Interrupt* current() { return here.call; }
  // Throws Interrupted if the call is to end. The thread that answers must not wait for a lock of the
  // core.
  static void check();
  // For a thread that waits: it should wait kEvery at most and then ask(). False: it need not wake up
  // for that.
  static bool watches() { return here.own; }
  static void ask() {
    if (here.own) here.call->look();
  }
  static bool is_asked() { return here.call && here.call->asked(); }

  // While it lives, this thread helps with a call that another thread began.
  class Help;

 private:
  struct Here {
    Interrupt* call;
    // This thread began it.
    bool own;
  };
  void look();
  static inline constinit thread_local Here here{nullptr, false};

  bool (*const wanted_)();
  Clock::time_point next_{};
  std::atomic<bool> asked_{false};
  const Here before_;
};

class Interrupt::Help {
 public:
  explicit Help(Interrupt* call) : before_(here) { here = {call, false}; }
  ~Help() { here = before_; }
  Help(const Help&) = delete;
  Help& operator=(const Help&) = delete;

 private:
  const Here before_;
};

}  // namespace structgen
