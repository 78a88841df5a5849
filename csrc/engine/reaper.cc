#include "engine/reaper.h"

#ifndef _WIN32
#include <unistd.h>
#endif

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "engine/grammar.h"

namespace structgen {

namespace {
long process() {
#ifdef _WIN32
  return 0;  // no fork there
#else
  return ::getpid();
#endif
}
}  // namespace

struct Reaper::State {
  std::mutex lock;
  std::condition_variable more;
  std::vector<std::shared_ptr<Grammar>> queue;
  std::atomic<std::size_t> pending{0};
  bool stopping = false;
  std::thread thread;
  long owner = 0;

  void run() {
    std::unique_lock hold(lock);
    for (;;) {
      more.wait(hold, [&] { return stopping || !queue.empty(); });
      if (queue.empty()) return;
      std::vector<std::shared_ptr<Grammar>> batch = std::exchange(queue, {});
      hold.unlock();
      for (std::shared_ptr<Grammar>& g : batch) {
        g.reset();
        pending.fetch_sub(1, std::memory_order_relaxed);
      }
      hold.lock();
    }
  }
};

Reaper::Reaper() = default;

Reaper::~Reaper() {
  if (!state_) return;
  if (state_->owner != process()) {  // forked: the thread, and maybe the lock's holder, are in the parent
    static_cast<void>(state_.release());
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
  if (state_ && state_->owner != process()) static_cast<void>(state_.release());
  if (!state_) {
    auto made = std::make_unique<State>();
    made->owner = process();
    try {
      made->thread = std::thread([s = made.get()] { s->run(); });
    } catch (const std::system_error&) {
      return;  // no more threads: freed here
    }
    state_ = std::move(made);
  }
  state_->pending.fetch_add(grammars.size(), std::memory_order_relaxed);
  {
    std::lock_guard hold(state_->lock);
    for (std::shared_ptr<Grammar>& g : grammars) state_->queue.push_back(std::move(g));
  }
  state_->more.notify_one();
}

// What the parent had not freed when it forked is not waited for in the child: nobody there would free it.
std::size_t Reaper::pending() const {
  return state_ && state_->owner == process() ? state_->pending.load(std::memory_order_relaxed) : 0;
}

}  // namespace structgen
