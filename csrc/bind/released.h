// Runs work without the GIL, with the stack that the core's recursions may need, and ends it on Ctrl-C.
//
// In: a function that touches no Python object and may be called again. Out: its result. Cost: 0.2 us;
// csrc/base/depth.h says when a thread is started; in the main thread the GIL is taken every 20 ms to
// look at signals.
#pragma once

#include <nanobind/nanobind.h>

#include <utility>

#include "base/depth.h"
#include "base/interrupt.h"

namespace structgen {

// Returns a function that tells whether this thread's call has to end because of Ctrl-C; null if the thread
// gets no signals. The caller holds the GIL.
bool (*signal_question())();
// Runs Python's handler of SIGINT, and throws what it raises. The caller must hold no lock.
void handle_interrupt();

// One attempt to run an interruptible call. If a signal came that did not end it, the destructor hands the
// signal back to Python.
class Attempt {
 public:
  explicit Attempt(bool may_end) : call_(may_end ? signal_question() : nullptr) {}
  ~Attempt() {
    if (call_.asked() && !ended_) PyErr_SetInterrupt();
  }
  Attempt(const Attempt&) = delete;
  Attempt& operator=(const Attempt&) = delete;
  void ended() { ended_ = true; }

 private:
  Interrupt call_;
  bool ended_ = false;
};

// Returns f(). If Ctrl-C is pressed, f ends with Interrupted and Python's handler runs; if the handler
// returns, f begins again. After kMost interrupts f is no longer interrupted.
template <class F>
auto interruptible(F&& f) {
  constexpr int kMost = 16;
  for (int times = 0;; ++times) {
    {
      Attempt attempt(times < kMost);
      try {
        return f();
      } catch (const Interrupted&) {
        attempt.ended();
      }
    }
    handle_interrupt();
  }
}

// Calls f, which is Python code, with megabytes of stack. If this thread has little stack left, f runs on a
// thread of its own.
nanobind::object with_python_stack(const nanobind::callable& f);

// Returns f(), which runs without the GIL, with enough stack, and is ended by Ctrl-C. Nearly every binding
// uses this.
template <class F>
auto released(F&& f) {
  return interruptible([&] {
    const nanobind::gil_scoped_release release;
    return with_stack(f);
  });
}

}  // namespace structgen
