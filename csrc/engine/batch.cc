#include "engine/batch.h"

#include <atomic>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace structgen {

namespace {

// A fixed set of threads that run one job at a time together with the caller. Leaked on purpose: joining at
// process exit would race with whoever still uses it.
class Workers {
 public:
  static Workers& instance() {
    static Workers* w = new Workers;
    return *w;
  }
  void run(unsigned threads, const std::function<void()>& job) {
    std::lock_guard one_job(job_lock_);
    {
      std::lock_guard hold(lock_);
      while (size_ + 1 < threads && size_ < 64) {
        std::thread(&Workers::loop, this, size_).detach();
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
    done_.wait(hold, [&] { return running_ == 0; });
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

}  // namespace

void fill_rows(std::span<Matcher* const> matchers, std::span<uint32_t* const> rows, unsigned threads) {
  if (threads <= 1 || matchers.size() < 2) {
    for (std::size_t i = 0; i < matchers.size(); ++i) matchers[i]->fill_row(rows[i]);
    return;
  }
  std::atomic<std::size_t> next{0};
  std::exception_ptr failure;
  std::mutex failure_lock;
  const std::size_t chunk = std::max<std::size_t>(1, matchers.size() / (threads * 4));
  Workers::instance().run(threads, [&] {
    while (true) {
      const std::size_t begin = next.fetch_add(chunk);
      if (begin >= matchers.size()) return;
      for (std::size_t i = begin; i < std::min(begin + chunk, matchers.size()); ++i) try {
          matchers[i]->fill_row(rows[i]);
        } catch (...) {
          std::lock_guard hold(failure_lock);
          failure = std::current_exception();
        }
    }
  });
  if (failure) std::rethrow_exception(failure);
}

}  // namespace structgen
