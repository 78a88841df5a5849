// Units of work: what every dear loop of the core is charged for, so that a limit met on one machine is met
// on all.
//
// In: charges (about a tenth of a microsecond each), scopes with limits. Out: an Error once a scope's limit
// is used up, thrown by the charge that goes past it and by every later one of the scope. Cost: a subtraction
// from a counter of the thread and a branch; every kSlice units a checkpoint.
//
// A charge may throw, so it stands before anything is changed that would have to be put back, and never in a
// destructor.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace structgen {

enum class Task : uint8_t {
  kNone,
  kCompile,
  kMask,
  kAccept,
  kBudget,
  kCompletion,
  kForced,
  kCaptures,
  kHoles
};

// What a call may take. `set`: the limit that a user set, where the call may take a multiple of it.
struct Allowance {
  int64_t units;
  int64_t set = 0;
  Allowance(int64_t all) : units(all) {}
  Allowance(int64_t all, int64_t of) : units(all), set(of) {}
};

class Meter {
 public:
  static constexpr int64_t kEndless = int64_t{1} << 60;
  static constexpr int64_t kSlice = 10'000;  // units between two checkpoints, a millisecond

  void charge(int64_t units) {
    if ((slice_ -= units) < 0) [[unlikely]]
      checkpoint();
  }
  int64_t left() const { return slice_ + after_; }
  bool exhausted() const { return left() < 0; }
  Task task() const { return task_; }
  int64_t done() const { return kEndless + kSlice - left(); }  // outside of every scope: all that was charged
  // Throws once, after so many more units: tests find out what a call leaves behind. 0: no more.
  void fail_after(int64_t units);
  bool fails_later() const { return fail_ > 0; }

 private:
  friend class WorkScope;
  void checkpoint();
  void refill(int64_t left) {
    slice_ = std::min(left, fail_ > 0 ? std::min(fail_, kSlice) : kSlice);
    after_ = left - slice_;
    given_ = slice_;
  }
  void settle();  // what was charged since the last refill counts against `fail_`

  int64_t slice_ = kSlice;  // until the next checkpoint
  int64_t after_ = kEndless;
  int64_t given_ = kSlice;  // what `slice_` began with
  int64_t limit_ = kEndless;
  int64_t set_ = 0;
  int64_t fail_ = 0;
  Task task_ = Task::kNone;
  void (*look_)(void*) = nullptr;
  void* of_ = nullptr;
};

inline constinit thread_local Meter meter;

inline void charge(int64_t units = 1) { meter.charge(units); }

// What a call may take, inside what the calls around it may still take. `look(of)` is called at every
// checkpoint and may throw.
class WorkScope {
 public:
  WorkScope(Task task, Allowance limit, void (*look)(void*) = nullptr, void* of = nullptr);
  ~WorkScope();
  WorkScope(const WorkScope&) = delete;
  WorkScope& operator=(const WorkScope&) = delete;
  int64_t used() const { return mine_ - meter.left(); }
  // More for what has to be finished.
  void grant(int64_t units);

 private:
  Meter outer_;
  int64_t mine_;
};

// What one of several decisions may take, so that those that are too much leave some to the others: half of
// what is left. (Decisions stand within each other: with an eighth, the inner ones had nothing.)
inline int64_t share_of_work() {
  constexpr int64_t kLeast = 2'000, kMost = 4'000'000;
  return std::clamp(meter.left() / 2, kLeast, kMost);
}
// The same where a decision has to be made: nearly all of it.
inline int64_t most_of_work() { return meter.left() / 16 * 15; }

// Throws what a call raises that needs more bytes than `limit`; no setting makes a part of an answer of it.
[[noreturn]] void out_of_memory(std::size_t limit);

// Called at every checkpoint of every thread: whoever asked to be interrupted throws here.
extern void (*work_interrupt)();

}  // namespace structgen
