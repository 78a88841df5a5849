#include "base/fork.h"

#ifndef _WIN32
#include <pthread.h>
#endif

namespace structgen {

namespace {

// `inside`: threads in sections. Both are sequentially consistent: a thread that enters and one that forks
// each write one of them and then read the other, and at least one of the two must see the other's.
std::atomic<uint32_t> inside{0};
std::atomic<uint32_t> forking{0};
std::atomic<uint64_t> forks{0};
std::mutex one_fork;  // held by the thread that forks; the child's copy is that thread's
thread_local uint32_t depth = 0;

void exit_gate() {
  inside.fetch_sub(1);
  if (forking.load()) inside.notify_all();
}

#ifndef _WIN32
// A fork from within a section is the caller's own affair: it waits for the others alone.
void prepare() {
  one_fork.lock();
  forking.store(1);
  const uint32_t own = depth ? 1 : 0;
  for (uint32_t n; (n = inside.load()) != own;) inside.wait(n);
}

void open_gate() {
  forking.store(0);
  forking.notify_all();
  one_fork.unlock();
}

void in_parent() { open_gate(); }

void in_child() {
  inside.store(depth ? 1 : 0);  // a thread that was about to wait at the gate had counted itself for a moment
  forks.fetch_add(1);
  open_gate();
}

const int registered = pthread_atfork(prepare, in_parent, in_child);
#endif

}  // namespace

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

}  // namespace structgen
