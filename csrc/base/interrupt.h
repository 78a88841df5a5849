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

// Thrown to end a call. It is no std::exception, so that no function on the way handles it like an error.
struct Interrupted {};

class Interrupt {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kEvery{20};

  // While this object lives, the thread works for a call that ends once wanted() is true; with a null
  // `wanted` it is never ended. If the thread works for a call already, the object changes nothing.
  explicit Interrupt(bool (*wanted)());
  ~Interrupt() { here = before_; }
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;
  bool asked() const { return asked_.load(std::memory_order_relaxed); }

  // Returns the call for which this thread works; null if this call cannot be ended.
  static Interrupt* current() { return here.call; }
  // Throws Interrupted if the call is to end. It is the thread that began the call that asks wanted(), so
  // this thread must not be waiting for a lock of the core.
  static void check();
  // Returns true if this thread must call ask() every kEvery while it waits.
  static bool watches() { return here.own; }
  static void ask() {
    if (here.own) here.call->look();
  }
  static bool is_asked() { return here.call && here.call->asked(); }

  // While this object lives, the thread works for a call that another thread began.
  class Help;

 private:
  struct Here {
    Interrupt* call;
    // True if this thread began the call, so that it asks wanted().
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
