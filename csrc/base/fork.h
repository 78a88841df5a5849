// Locks that a forked child finds free.
//
// In: sections of code that hold a lock of the core. Out: fork() waits until no thread is in one, and none
// begins meanwhile, so the child finds every lock free and what it guards whole. Cost: two atomic operations
// a section.
//
// Reasoning: a child has the memory of its parent and one thread. A lock that another thread held would stay
// held for ever, and what that thread was changing would stay half changed, so giving the child fresh locks
// is not enough. Taking every lock before a fork needs their order and a list of them; one gate in front of
// all of them needs neither. fork() waits for the longest compile or mask under way, but not for ever: after
// kForkPatience it goes on, and in the child the locks that were held then are lost, and with them what they
// guard. Whoever asks for one there gets an error; whoever owns one leaves what it guards as it is. Threads
// themselves do not survive: what owns some starts them anew in the child (PerProcess).
#pragma once

#include <atomic>
#include <chrono>
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

// Forks between this process and the first that loaded the library.
uint64_t fork_count();
// The last of them that did not wait to the end; 0: none.
uint64_t torn_fork();

constexpr std::chrono::milliseconds kForkPatience{30'000};
// For the forks to come, in milliseconds; negative: kForkPatience again.
void set_fork_patience(int64_t milliseconds);

// The lock of the core, and a ForkSection while it is held or waited for. Waiting for it ends with
// Interrupted where the call under way is to end (base/interrupt.h), and with an Error where the lock is
// lost.
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
  // A thread of a parent process held it when that forked.
  bool lost() const {
    const uint64_t holder = holder_.load(std::memory_order_relaxed);
    return holder != 0 && holder <= torn_fork();
  }

 private:
  void wait();
  std::timed_mutex mutex_;
  std::atomic<uint64_t> holder_{0};  // the process whose thread holds it, as fork_count() + 1
};

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
