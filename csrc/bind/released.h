// Work without the GIL, with the stack that the core's recursions may need, ended by Ctrl-C.
//
// In: a function that touches no Python object and may be called again. Out: its result. Cost: 0.2 us;
// csrc/base/depth.h says when a thread; in the main thread, every 20 ms, the GIL for a look at signals.
#pragma once

#include <nanobind/nanobind.h>

#include <utility>

#include "base/depth.h"
#include "base/interrupt.h"

namespace structgen {

// Of this thread, which holds the GIL: what a call in it asks whether to end; null where it gets no signals.
bool (*signal_question())();
// Runs Python's handler of SIGINT, with no lock held. Throws what it raises.
void handle_interrupt();

// One attempt at a call. A signal that it took over and did not end with goes back to Python.
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

// f(), which may end with Interrupted where Ctrl-C was pressed. The handler runs then; f is begun again where
// it returns, and after some times to the end.
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

// f(), which is Python, with megabytes of stack: on a thread of its own where this one has little.
nanobind::object with_python_stack(const nanobind::callable& f);

template <class F>
auto released(F&& f) {
  return interruptible([&] {
    const nanobind::gil_scoped_release release;
    return with_stack(f);
  });
}

}  // namespace structgen
