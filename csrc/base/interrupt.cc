#include "base/interrupt.h"

namespace structgen {

Interrupt::Interrupt(bool (*wanted)()) : wanted_(wanted), before_(here) {
  if (!here.call && wanted) here = {this, true};
}

void Interrupt::look() {
  const Clock::time_point now = Clock::now();
  if (now < next_ || asked()) return;
  // The first call of look() does not ask, because most calls of the library end before a second one.
  const bool first = next_ == Clock::time_point{};
  if (!first && wanted_()) asked_.store(true, std::memory_order_relaxed);
  next_ = (first ? now : Clock::now()) + kEvery;
}

void Interrupt::check() {
  if (!here.call) return;
  ask();
  if (here.call->asked()) throw Interrupted{};
}

}  // namespace structgen
