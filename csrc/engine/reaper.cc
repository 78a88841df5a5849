#include "engine/reaper.h"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/fork.h"
#include "engine/grammar.h"

namespace structgen {

struct Reaper::State {
  // Changes of the queue are in a ForkSection as well, because a forked child takes the queue over.
  std::mutex lock;
  std::condition_variable more;
  std::vector<std::shared_ptr<Grammar>> queue;
  std::atomic<std::size_t> pending{0};
  bool stopping = false;
  std::thread thread;
  const uint64_t owner = fork_count();

  // The thread's loop.
  void run() {
    for (;;) {
      {
        std::unique_lock hold(lock);
        more.wait(hold, [&] { return stopping || !queue.empty(); });
        if (queue.empty()) return;
      }
      while (free_one()) {
      }
    }
  }

  // Frees one grammar in a ForkSection, so that a fork waits for one grammar at most.
  bool free_one() {
    const ForkSection whole;
    std::shared_ptr<Grammar> next;
    {
      std::lock_guard hold(lock);
      if (queue.empty()) return false;
      next = std::move(queue.back());
      queue.pop_back();
    }
    next.reset();
    pending.fetch_sub(1, std::memory_order_relaxed);
    return true;
  }
};

Reaper::Reaper() = default;

Reaper::~Reaper() {
  if (!state_) return;
  if (state_->owner != fork_count()) {
    static_cast<void>(inherited());
    return;
  }
  {
    std::lock_guard hold(state_->lock);
    state_->stopping = true;
  }
  state_->more.notify_one();
  state_->thread.join();
}

void Reaper::take(std::vector<std::shared_ptr<Grammar>> grammars) {
  if (state_ && state_->owner != fork_count())
    for (std::shared_ptr<Grammar>& g : inherited()) grammars.push_back(std::move(g));
  if (!state_) {
    auto made = std::make_unique<State>();
    try {
      made->thread = std::thread([s = made.get()] { s->run(); });
    } catch (const std::system_error&) {
      // No more threads can be started: `grammars` is freed here, when the function returns.
      return;
    }
    state_ = std::move(made);
  }
  {
    std::lock_guard hold(state_->lock);
    state_->queue.reserve(state_->queue.size() + grammars.size());
    state_->pending.fetch_add(grammars.size(), std::memory_order_relaxed);
    for (std::shared_ptr<Grammar>& g : grammars) state_->queue.push_back(std::move(g));
  }
  state_->more.notify_one();
}

// In a forked child the thread does not exist, and the lock may be held by nobody. Both are left as
// they are, and the caller frees the queue.
std::vector<std::shared_ptr<Grammar>> Reaper::inherited() {
  State* const left = state_.release();
  // The queue may be half changed.
  if (torn_fork() > left->owner) return {};
  return std::move(left->queue);
}

// Grammars that the parent had not freed when it forked count in the child from the next take() on.
std::size_t Reaper::pending() const {
  return state_ && state_->owner == fork_count() ? state_->pending.load(std::memory_order_relaxed) : 0;
}

}  // namespace structgen
