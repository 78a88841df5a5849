// Locks that a forked child finds free.
//
// In: sections of code that hold a lock of the core. Out: fork() waits until no thread is in a section,
// and no section begins meanwhile. So the child finds every lock free, and everything that they guard
// whole. Cost: two atomic operations per section.
//
// Why: a child has the memory of its parent, but only one thread. A lock that another thread held would
// stay locked for ever, and what that thread was changing would stay half changed; fresh locks in the
// child are not enough. Taking every lock before a fork needs their order and a list of them; one gate
// in front of all of them needs neither. fork() waits for the longest compile or mask under way, but
// not for ever: after kForkPatience it goes on. Then the locks that were held are lost in the child,
// together with what they guard. Waiting for one of them there is an error, and its owner leaves what
// it guards as it is. Threads do not survive a fork: whoever owns some starts them anew in the child
// (PerProcess).
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>

namespace structgen {

// While this object lives, a fork by another thread waits. Sections may nest. A thread in a section must not
// wait for a thread that may still have to enter one.
class ForkSection {
 public:
  ForkSection() { enter(); }
  ~ForkSection() { leave(); }
  ForkSection(const ForkSection&) = delete;
  ForkSection& operator=(const ForkSection&) = delete;
  static void enter();
  static void leave();
};

// Returns how many forks lie between the process that loaded the library and this process.
uint64_t fork_count();
// A fork is torn if some thread was inside the library at that moment. Returns the number of the last torn
// fork, or 0.
uint64_t torn_fork();

constexpr std::chrono::milliseconds kForkPatience{30'000};
// Sets for how many milliseconds a fork waits for other threads. A negative number restores kForkPatience.
void set_fork_patience(int64_t milliseconds);

// A lock of the core. A thread that holds it or waits for it is in a ForkSection. Waiting ends with
// Interrupted if the current call is to end (base/interrupt.h), and with an Error if the lock is lost().
class Mutex {
 public:
  void lock() {
    if (!try_lock()) [[unlikely]]
      wait();
  }
  bool try_lock() {
    ForkSection::enter();
    if (mutex_.try_lock()) {
      holder_.store(fork_count() + 1, std::memory_order_relaxed);
      return true;
    }
    ForkSection::leave();
    return false;
  }
  void unlock() {
    holder_.store(0, std::memory_order_relaxed);
    mutex_.unlock();
    ForkSection::leave();
  }
  // Returns true if a thread of a parent process held the lock at a torn fork. No thread will ever release
  // it.
  bool lost() const {
    const uint64_t holder = holder_.load(std::memory_order_relaxed);
    return holder != 0 && holder <= torn_fork();
  }

 private:
  bool spin();
  void wait();
  std::timed_mutex mutex_;
  // If a thread holds the lock: fork_count() + 1 of the thread's process; otherwise 0.
  std::atomic<uint64_t> holder_{0};
};

// One object for each process, made on first use. A forked child gets an object of its own, because the
// threads of the old one run only in the parent. No object is freed, because its threads may outlive every
// other object. T needs a default constructor.
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
