// A call that its caller may want to end before it is done: Ctrl-C.
//
// In: a question to the caller, asked by the caller's own thread alone, at most every kEvery. Out:
// Interrupted, thrown at the next checkpoint of work (base/work.h) of every thread that works for the call,
// and where its own thread waits for a lock. Cost: a look at the clock a checkpoint; nothing where nobody
// asks.
//
// Reasoning: what the caller does about it (a signal handler in Python) may call the core again or wait for
// other threads, so it must not run where locks are held. The question only finds out; the call ends with all
// its locks free, and then its caller acts.
#pragma once

#include <atomic>
#include <chrono>

namespace structgen {

struct Interrupted {};  // no std::exception: nothing on the way takes it for an error of its own

class Interrupt {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kEvery{20};

  // In its scope the thread works for a call that ends once `wanted()`; null: it does not end. Inside another
  // call's scope it is part of that call.
  explicit Interrupt(bool (*wanted)());
  ~Interrupt() { here = before_; }
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;
  bool asked() const { return asked_.load(std::memory_order_relaxed); }

  // The call that this thread works for; null: none that can be ended.
  static Interrupt* current() { return here.call; }
  // Throws Interrupted where the call is to end. No lock of the core may be waited for by who answers.
  static void check();
  // For a thread that waits: it waits kEvery at most and then asks. False: no need to wake for that.
  static bool watches() { return here.own; }
  static void ask() {
    if (here.own) here.call->look();
  }
  static bool is_asked() { return here.call && here.call->asked(); }

  // In its scope this thread helps with a call that another thread began.
  class Help;

 private:
  struct Here {
    Interrupt* call;
    bool own;  // this thread began it
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
