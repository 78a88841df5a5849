// Ctrl-C while the core works, and threads that Python's signals never reach.
//
// In: nothing. Out: whether SIGINT came since the last look; the exception of its handler. Cost: see
// bind/released.h.
//
// PyOS_InterruptOccurred() takes the signal over without running its handler, which is what
// base/interrupt.h needs. A thread that runs Python code for the main thread (with_python_stack) is
// sent KeyboardInterrupt. Other signals cannot be asked for in this way: their handlers run when the
// call is over.
#include <nanobind/nanobind.h>

#include "base/fork.h"
#include "base/interrupt.h"
#include "bind/released.h"

namespace nb = nanobind;

namespace structgen {

namespace {

// The thread that runs Python code for the main thread (with_python_stack()); 0 if there is none. The GIL
// guards it.
struct Helper {
  unsigned long thread;
  // True once came() has sent KeyboardInterrupt to this thread. Interrupt::is_asked() turns true only after
  // came() has released the GIL, and by then the thread may have raised the exception.
  bool interrupted;
};
Helper python_helper{0, false};

// Only Python knows whether a signal came, so the GIL is taken to ask it.
bool came() {
  const nb::gil_scoped_acquire held;
  if (PyOS_InterruptOccurred() == 0) return false;
  if (python_helper.thread) {
    PyThreadState_SetAsyncExc(python_helper.thread, PyExc_KeyboardInterrupt);
    python_helper.interrupted = true;
  }
  return true;
}

bool in_main_thread() {
  struct Known {
    // fork_count() + 1 of the process for which `main` was set. In a forked child the thread that forked is
    // the main thread, so `main` is set again.
    uint64_t process;
    bool main;
  };
  thread_local constinit Known known{0, false};
  const uint64_t process = fork_count() + 1;
  if (known.process != process) {
    const nb::module_ threading = nb::module_::import_("threading");
    known = {process, threading.attr("get_ident")().equal(threading.attr("main_thread")().attr("ident"))};
  }
  return known.main;
}

}  // namespace

bool (*signal_question())() { return in_main_thread() ? came : nullptr; }

void handle_interrupt() {
  // This thread works for another thread, and that one will run the handler.
  if (Interrupt::current()) {
    PyErr_SetNone(PyExc_KeyboardInterrupt);
    throw nb::python_error();
  }
  const nb::module_ signal = nb::module_::import_("signal");
  const nb::object number = signal.attr("SIGINT"), handler = signal.attr("getsignal")(number);
  if (!PyCallable_Check(handler.ptr())) return;
  PyFrameObject* const frame = PyEval_GetFrame();
  handler(number, frame ? nb::borrow(reinterpret_cast<PyObject*>(frame)) : nb::none());
}

nb::object with_python_stack(const nb::callable& f) {
  if (room::enough()) return f();
  const bool main = in_main_thread();
  return interruptible([&] {
    const nb::gil_scoped_release release;
    return with_stack([&]() -> nb::object {
      const nb::gil_scoped_acquire held;
      if (main) python_helper = {PyThread_get_thread_ident(), false};
      try {
        nb::object out = f();
        if (main) python_helper = {0, false};
        return out;
      } catch (nb::python_error& error) {
        const bool interrupted = main && python_helper.interrupted;
        if (main) python_helper = {0, false};
        if (interrupted && error.matches(PyExc_KeyboardInterrupt)) throw Interrupted{};
        throw;
      }
    });
  });
}

}  // namespace structgen
