// Locks that a forked child finds free.
//
// In: sections of code that hold a lock of the core. Out: fork() waits until no thread is in one, and none
// begins meanwhile, so the child finds every lock free and what it guards whole. Cost: two atomic operations
// a section.
//
// Reasoning: a child has the memory of its parent and one thread. A lock that another thread held would stay
// held for ever, and what that thread was changing would stay half changed, so giving the child fresh locks
// is not enough. Taking every lock before a fork needs their order and a list of them; one gate in front of
// all of them needs neither. fork() waits for as long as the longest compile or mask under way. Threads
// themselves do not survive: what owns some starts them anew in the child (PerProcess).
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

namespace structgen {

// In its scope this process is not forked by other threads. Sections may nest. Nothing in one may wait for a
// thread that is yet to enter a section.
class ForkSection {
 public:
  ForkSection() { enter(); }
  ~ForkSection() { leave(); }
  ForkSection(const ForkSection&) = delete;
  ForkSection& operator=(const ForkSection&) = delete;
  static void enter();
  static void leave();
};

// The lock of the core: std::mutex, and a ForkSection while it is held or waited for.
class Mutex {
 public:
  void lock() {
    ForkSection::enter();
    mutex_.lock();
  }
  bool try_lock() {
    ForkSection::enter();
    if (mutex_.try_lock()) return true;
    ForkSection::leave();
    return false;
  }
  void unlock() {
    mutex_.unlock();
    ForkSection::leave();
  }

 private:
  std::mutex mutex_;
};

// Forks between this process and the first that loaded the library.
uint64_t fork_count();

// One object a process, made when it is first asked for: a child gets one of its own, whose threads run
// there. Never freed: its threads outlive every other object. T is made by its default constructor.
template <class T>
class PerProcess {
 public:
  constexpr PerProcess() = default;
  T& get() {
    const uint64_t here = fork_count();
    Box* box = box_.load(std::memory_order_acquire);
    while (!box || box->process != here) {
      Box* const fresh = new Box{here, {}};
      if (box_.compare_exchange_strong(box, fresh, std::memory_order_acq_rel)) return fresh->object;
      delete fresh;
    }
    return box->object;
  }

 private:
  struct Box {
    uint64_t process;
    T object;
  };
  std::atomic<Box*> box_{nullptr};
};

}  // namespace structgen
