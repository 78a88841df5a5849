#include "base/work.h"

#include <string>

#include "base/error.h"

namespace structgen {

void (*work_interrupt)() = nullptr;

namespace {
// Writes 1234567 as "1,234,567".
std::string grouped(int64_t n) {
  std::string digits = std::to_string(n);
  for (std::size_t at = digits.size(); at > 3;) digits.insert(at -= 3, ",");
  return digits;
}

// Throws the error of a limit. It names the task, the limit, and the setting that raises the limit.
[[noreturn]] void refuse(Task task, int64_t limit, int64_t set) {
  std::string most = " takes more than " + grouped(limit) + " units of work";
  if (set > 0) most += ", " + grouped(limit / set) + " times the limit of " + grouped(set);
  switch (task) {
    case Task::kCompile:
      throw Error(ErrorKind::kSchemaTooComplex,
                  "compiling this" + most + "; simplify it, or raise Limits(compile=...)");
    case Task::kMask:
      // `most` may be a multiple of the limit that the user set for a mask.
      throw Error(ErrorKind::kBudgetExceeded, "this mask" + most + "; raise Limits(mask=...)" +
                                                  (set > 0 ? "" : ", or compile with on_limit='subset'"));
    case Task::kAccept:
      throw Error(ErrorKind::kBudgetExceeded, "reading this text" + most + "; raise Limits(mask=...)");
    case Task::kBudget:
      throw Error(ErrorKind::kBudgetExceeded,
                  "this mask within a budget of tokens" + most + "; raise Limits(mask=...)");
    case Task::kCompletion:
      throw Error(ErrorKind::kBudgetExceeded, "finding a completion" + most + "; raise Limits(mask=...)");
    case Task::kForced:
      throw Error(ErrorKind::kBudgetExceeded,
                  "finding what must come next" + most + "; raise Limits(mask=...)");
    case Task::kHoles:
      throw Error(ErrorKind::kBudgetExceeded, "telling what fits here" + most + "; raise Limits(mask=...)");
    default: throw Error(ErrorKind::kBudgetExceeded, "this call" + most + "; raise Limits(mask=...)");
  }
}
}  // namespace

void out_of_memory(std::size_t limit) {
  const std::string most = " takes more than " + std::to_string(limit >> 20) + " MB of automata and states; ";
  if (meter.task() == Task::kCompile)
    throw Error(ErrorKind::kSchemaTooComplex,
                "compiling this" + most + "simplify it, or raise Limits(memory=...)")
        .for_the_caller();
  throw Error(ErrorKind::kBudgetExceeded,
              "this text" + most + "compile the grammar again, or raise Limits(memory=...)")
      .for_the_caller();
}

void Meter::settle() {
  // If the planned failure is overdue, it happens at the next charge.
  if (fail_ > 0) fail_ = std::max<int64_t>(1, fail_ - (given_ - slice_));
  given_ = slice_;
}

void Meter::fail_after(int64_t units) {
  fail_ = units;
  refill(left());
}

// Called when a slice is used up. Throws a planned failure or the error of the limit; otherwise calls
// work_interrupt and the function of the scope.
void Meter::checkpoint() {
  const int64_t all = left();
  if (fail_ > 0) {
    const bool due = fail_ <= given_ - slice_;
    settle();
    if (due) {
      fail_ = 0;
      refill(all);
      // If this throws, its error replaces the one of the limit.
      if (work_interrupt) work_interrupt();
      throw Error(ErrorKind::kBudgetExceeded, "a failure that a test asked for").for_the_caller();
    }
  }
  if (all < 0) {
    // Units beyond the bound are not counted.
    slice_ = std::max<int64_t>(all, -1);
    after_ = 0;
    given_ = slice_;
    refuse(task_, limit_, set_);
  }
  refill(all);
  if (work_interrupt) work_interrupt();
  if (look_) look_(of_);
}

// The tighter one of two bounds is met first, so the error names its task.
WorkScope::WorkScope(Task task, Allowance limit, void (*look)(void*), void* of) {
  meter.settle();
  outer_ = meter;
  mine_ = std::min(limit.units, std::max<int64_t>(0, meter.left()));
  if (limit.units <= mine_ || meter.task_ == Task::kNone) {
    meter.task_ = task;
    meter.limit_ = limit.units;
    meter.set_ = limit.set;
  }
  if (look) {
    meter.look_ = look;
    meter.of_ = of;
  }
  meter.refill(mine_);
}

WorkScope::~WorkScope() {
  meter.settle();
  const int64_t fail = meter.fail_, spent = used();
  meter = outer_;
  meter.fail_ = fail;
  meter.refill(outer_.left() - spent);
}

void WorkScope::grant(int64_t units) {
  meter.settle();
  mine_ += units;
  meter.refill(std::max<int64_t>(0, meter.left()) + units);
}

}  // namespace structgen
