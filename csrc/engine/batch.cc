#include "engine/batch.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/depth.h"
#include "base/fork.h"
#include "base/interrupt.h"
#include "base/undo.h"

namespace structgen {

namespace {

// Threads that run one job at a time, together with the caller's thread. The threads are detached: joining
// them when the process ends would race with code that still uses them.
class Workers {
 public:
  // Runs the job on this thread and on others, and waits for the others. While it waits, it looks for Ctrl-C
  // every Interrupt::kEvery.
  void run(unsigned threads, const std::function<void()>& job) {
    std::lock_guard one_job(job_lock_);
    {
      std::lock_guard hold(lock_);
      while (size_ + 1 < threads && size_ < 64) {
        try {
          std::thread(&Workers::loop, this, size_).detach();
        } catch (const std::system_error&) {
          // No more threads can be started. The threads that run do the job.
          break;
        }
        ++size_;
      }
      job_ = &job;
      wanted_ = std::min(threads - 1, size_);
      running_ = wanted_;
      ++round_;
    }
    wake_.notify_all();
    job();
    std::unique_lock hold(lock_);
    while (running_ > 0) {
      if (!Interrupt::watches()) {
        done_.wait(hold);
        continue;
      }
      done_.wait_for(hold, Interrupt::kEvery);
      hold.unlock();
      Interrupt::ask();
      hold.lock();
    }
    job_ = nullptr;
  }

 private:
  void loop(unsigned index) {
    uint64_t seen = 0;
    std::unique_lock hold(lock_);
    while (true) {
      wake_.wait(hold, [&] { return round_ != seen && job_; });
      seen = round_;
      if (index >= wanted_) continue;
      const std::function<void()>* job = job_;
      hold.unlock();
      (*job)();
      hold.lock();
      if (--running_ == 0) done_.notify_one();
    }
  }
  std::mutex job_lock_, lock_;
  std::condition_variable wake_, done_;
  const std::function<void()>* job_ = nullptr;
  unsigned size_ = 0, wanted_ = 0, running_ = 0;
  uint64_t round_ = 0;
};

// The worker threads of this process. Each worker enters a ForkSection (base/fork.h), which a fork waits for.
// A caller inside such a section must not wait for workers: the caller, the workers and the fork would wait
// for each other.
constinit PerProcess<Workers> workers;

// The calling thread alone copies fewer known masks than this, because waking another thread takes as long.
constexpr std::size_t kKnownAlone = 128;

// Calls f(0) to f(count - 1) on several threads. A thread takes a chunk of numbers, and the next chunk when
// it is done. f must not throw.
void each(std::size_t count, std::size_t chunk, unsigned threads, const std::function<void(std::size_t)>& f) {
  std::atomic<std::size_t> next{0};
  Interrupt* const call = Interrupt::current();
  workers.get().run(threads, [&, caller = std::this_thread::get_id()] {
    std::optional<Interrupt::Help> help;
    if (std::this_thread::get_id() != caller) help.emplace(call);
    while (true) {
      const std::size_t begin = next.fetch_add(chunk);
      if (begin >= count) return;
      for (std::size_t i = begin; i < std::min(begin + chunk, count); ++i) f(i);
    }
  });
}

class Batch {
 public:
  Batch(std::span<Sole<Matcher>* const> matchers, std::span<uint32_t* const> rows)
      : matchers_(matchers), rows_(rows), known_(matchers.size(), 0), failures_(matchers.size()) {
    uses_.reserve(matchers.size());
    for (std::size_t i = 0; i < matchers.size(); ++i) guarded(i, [&] { uses_.emplace_back(*matchers[i]); });
  }

  void copy(std::size_t i) noexcept {
    if (failures_[i]) return;
    guarded(i, [&] { known_[i] = matchers_[i]->fill_row_fast(rows_[i]); });
  }
  // Makes the mask of row i, on kStack bytes of stack (base/depth.h).
  void compute(std::size_t i) noexcept {
    if (Interrupt::is_asked()) return;
    guarded(i, [&] { with_stack([&] { matchers_[i]->fill_row(rows_[i]); }); });
  }
  bool done(std::size_t i) const { return known_[i] || failures_[i]; }
  void clear() noexcept {
    for (std::size_t i = 0; i < rows_.size(); ++i) clear(i);
  }
  std::vector<std::exception_ptr> failures() && {
    if (Interrupt::is_asked()) throw Interrupted{};
    if (std::ranges::none_of(failures_, [](const std::exception_ptr& f) { return f != nullptr; })) return {};
    return std::move(failures_);
  }

 private:
  template <class F>
  void guarded(std::size_t i, F&& f) noexcept {
    try {
      f();
    } catch (...) {
      failures_[i] = std::current_exception();
      clear(i);
    }
  }
  void clear(std::size_t i) noexcept {
    std::fill_n(rows_[i], matchers_[i]->grammar().vocabulary().words(), 0u);
  }
  const std::span<Sole<Matcher>* const> matchers_;
  const std::span<uint32_t* const> rows_;
  std::vector<Use> uses_;
  std::vector<uint8_t> known_;
  std::vector<std::exception_ptr> failures_;
};

}  // namespace

// Copies the known masks first, without a lock; then makes the others. All rows of a world are made by one
// thread: a world has one lock, for which several threads would only wait.
std::vector<std::exception_ptr> fill_rows(std::span<Sole<Matcher>* const> matchers,
                                          std::span<uint32_t* const> rows, unsigned threads) {
  Batch batch(matchers, rows);
  Undo nothing([&] { batch.clear(); });
  const auto finish = [&] {
    std::vector<std::exception_ptr> failures = std::move(batch).failures();
    nothing.keep();
    return failures;
  };
  const std::size_t count = matchers.size();
  if (threads <= 1 || count < 2 || count < kKnownAlone)
    for (std::size_t i = 0; i < count; ++i) batch.copy(i);
  else
    each(count, count / (threads * 4) + 1, threads, [&](std::size_t i) { batch.copy(i); });
  if (threads <= 1 || count < 2) {
    for (std::size_t i = 0; i < count; ++i)
      if (!batch.done(i)) batch.compute(i);
    return finish();
  }
  std::vector<std::pair<const World*, std::vector<std::size_t>>> groups;
  for (std::size_t i = 0; i < count; ++i) {
    if (batch.done(i)) continue;
    const World* const world = &matchers[i]->grammar().world();
    auto at = std::ranges::find(groups, world, [](const auto& group) { return group.first; });
    if (at == groups.end()) at = groups.insert(at, {world, {}});
    at->second.push_back(i);
  }
  const auto compute = [&](std::size_t group) {
    for (std::size_t i : groups[group].second) batch.compute(i);
  };
  if (groups.size() == 1)
    compute(0);
  else if (!groups.empty())
    each(groups.size(), 1, std::min<unsigned>(threads, static_cast<unsigned>(groups.size())), compute);
  return finish();
}

}  // namespace structgen
