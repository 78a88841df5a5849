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

// What the work is for; it decides the text of the error.
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

// The work that a call may take, in units. If the call may take a multiple of a limit that a user set, `set`
// is that limit; else 0.
struct Allowance {
  int64_t units;
  int64_t set = 0;
  Allowance(int64_t all) : units(all) {}
  Allowance(int64_t all, int64_t of) : units(all), set(of) {}
};

// The counter of one thread.
class Meter {
 public:
  static constexpr int64_t kEndless = int64_t{1} << 60;
  // The units between two checkpoints, about a millisecond.
  static constexpr int64_t kSlice = 10'000;

  void charge(int64_t units) {
    if ((slice_ -= units) < 0) [[unlikely]]
      checkpoint();
  }
  // Counts work without looking at the limit, where nothing may be thrown; the next charge looks.
  void spend(int64_t units) { slice_ -= units; }
  int64_t left() const { return slice_ + after_; }
  bool exhausted() const { return left() < 0; }
  Task task() const { return task_; }
  // Outside of every scope: everything that was charged so far.
  int64_t done() const { return kEndless + kSlice - left(); }
  // Throws once, after so many more units; 0: not at all. Tests use it to find out what a failed call
  // leaves behind.
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
  // Takes the units charged since the last refill off `fail_`.
  void settle();

  // The units left until the next checkpoint.
  int64_t slice_ = kSlice;
  int64_t after_ = kEndless;
  // The units with which the slice began.
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

// Limits a call, within what the calls around it may still take. `look(of)` is called at every
// checkpoint and may throw.
class WorkScope {
 public:
  WorkScope(Task task, Allowance limit, void (*look)(void*) = nullptr, void* of = nullptr);
  ~WorkScope();
  WorkScope(const WorkScope&) = delete;
  WorkScope& operator=(const WorkScope&) = delete;
  int64_t used() const { return mine_ - meter.left(); }
  // Adds work for something that has to be finished.
  void grant(int64_t units);

 private:
  Meter outer_;
  int64_t mine_;
};

// The work that one of several decisions may take: half of the rest, so that a hard decision leaves
// some work to the others. (Decisions are nested: with an eighth, the inner ones had nothing left.)
inline int64_t share_of_work() {
  constexpr int64_t kLeast = 2'000, kMost = 4'000'000;
  return std::clamp(meter.left() / 2, kLeast, kMost);
}
// The same for a decision that has to be made: nearly all of it.
inline int64_t most_of_work() { return meter.left() / 16 * 15; }

// Throws the error of a call that needs more than `limit` bytes. No setting turns it into a part of an
// answer.
[[noreturn]] void out_of_memory(std::size_t limit);

// Called at every checkpoint of every thread; a caller that wants to be interrupted throws in it.
extern void (*work_interrupt)();

}  // namespace structgen
