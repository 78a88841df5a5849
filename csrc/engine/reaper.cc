#include "engine/reaper.h"

#include <iterator>
#include <new>
#include <system_error>
#include <thread>

#include "base/fork.h"

namespace structgen {

namespace {
constinit PerProcess<Reaper> reapers;
}  // namespace

Reaper& Reaper::get() { return reapers.get(); }

void Reaper::take(std::vector<Object> objects) {
  const ForkSection whole;
  {
    std::lock_guard hold(lock_);
    try {
      if (!started_) std::thread([this] { run(); }).detach();
      started_ = true;
      queue_.reserve(queue_.size() + objects.size());
    } catch (const std::system_error&) {
      return;
    } catch (const std::bad_alloc&) {
      return;
    }
    pending_.fetch_add(objects.size(), std::memory_order_relaxed);
    std::move(objects.begin(), objects.end(), std::back_inserter(queue_));
  }
  more_.notify_one();
}

// Frees objects until stop(). Each is freed in a ForkSection of its own, so that a fork waits for one object
// at most.
void Reaper::run() {
  for (;;) {
    {
      std::unique_lock hold(lock_);
      more_.wait(hold, [&] { return !queue_.empty(); });
    }
    const ForkSection whole;
    Object next;
    {
      std::lock_guard hold(lock_);
      if (stopped_) return;
      busy_ = true;
      next = std::move(queue_.back());
      queue_.pop_back();
    }
    next.reset();
    pending_.fetch_sub(1, std::memory_order_relaxed);
    {
      std::lock_guard hold(lock_);
      busy_ = false;
    }
    idle_.notify_all();
  }
}

void Reaper::stop() {
  std::unique_lock hold(lock_);
  stopped_ = true;
  idle_.wait(hold, [&] { return !busy_; });
}

}  // namespace structgen
