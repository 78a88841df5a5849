// Units of work: every expensive loop of the core is charged for, so that a limit that is met on one
// machine is met on all.
//
// In: charges (one unit is about a tenth of a microsecond), and scopes with limits. Out: an Error when
// the limit of a scope is used up, thrown by the charge that goes beyond it and by every later charge
// of the scope. Cost: a subtraction from a counter of the thread, and a branch; every kSlice units a
// checkpoint.
//
// A charge may throw. So it stands before anything is changed that would have to be put back, and never
// in a destructor.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace structgen {

// What the work is for, which decides the text of the error.
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

// The units of work that a call may take. If they are computed from a limit that the user set, `set` is this
// limit; otherwise 0.
struct Allowance {
  int64_t units;
  int64_t set = 0;
  Allowance(int64_t all) : units(all) {}
  Allowance(int64_t all, int64_t of) : units(all), set(of) {}
};

class Meter {
 public:
  static constexpr int64_t kEndless = int64_t{1} << 60;
  // There is a checkpoint after this many units, which take about a millisecond.
  static constexpr int64_t kSlice = 10'000;

  void charge(int64_t units) {
    if ((slice_ -= units) < 0) [[unlikely]]
      checkpoint();
  }
  // Counts work without throwing. The next charge() checks the bound.
  void spend(int64_t units) { slice_ -= units; }
  int64_t left() const { return slice_ + after_; }
  bool exhausted() const { return left() < 0; }
  Task task() const { return task_; }
  // Returns all units charged so far. The thread must be in no WorkScope.
  int64_t done() const { return kEndless + kSlice - left(); }
  // Makes charge() throw once, after this many more units; 0 stands for never. Tests use it to see what a
  // failed call leaves behind.
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
  // Subtracts the units charged since the last refill from `fail_`, the units until the planned failure.
  void settle();

  // The units left until the next checkpoint.
  int64_t slice_ = kSlice;
  int64_t after_ = kEndless;
  // What slice_ was at the last refill.
  int64_t given_ = kSlice;
  int64_t limit_ = kEndless;
  int64_t set_ = 0;
  int64_t fail_ = 0;
  Task task_ = Task::kNone;
  void (*look_)(void*) = nullptr;
  void* of_ = nullptr;
};

inline constinit thread_local Meter meter;

inline void charge(int64_t units = 1) { meter.charge(units); }

// Bounds the work of a call while it lives, beside the bounds of the scopes around it. Each checkpoint calls
// look(of), which may throw.
class WorkScope {
 public:
  WorkScope(Task task, Allowance limit, void (*look)(void*) = nullptr, void* of = nullptr);
  ~WorkScope();
  WorkScope(const WorkScope&) = delete;
  WorkScope& operator=(const WorkScope&) = delete;
  int64_t used() const { return mine_ - meter.left(); }
  // Allows some more units, for something that has to be finished.
  void grant(int64_t units);

 private:
  Meter outer_;
  int64_t mine_;
};

// Returns how much work one of several decisions may take: half of what is left, so that a hard decision
// leaves work to the others. Decisions nest; with an eighth, the inner ones had nothing left.
inline int64_t share_of_work() {
  constexpr int64_t kLeast = 2'000, kMost = 4'000'000;
  return std::clamp(meter.left() / 2, kLeast, kMost);
}
// Returns the work for a decision that must be made: nearly all that is left.
inline int64_t most_of_work() { return meter.left() / 16 * 15; }

// Throws the error of a call that needs more than `limit` bytes. It reaches the caller; no function on the
// way handles it.
[[noreturn]] void out_of_memory(std::size_t limit);

// Called at every checkpoint of every thread. It may throw to end the call.
extern void (*work_interrupt)();

}  // namespace structgen
