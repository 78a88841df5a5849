#include "base/pages.h"

#ifdef __linux__

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>

#include "base/fork.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

namespace structgen {

namespace {

constexpr std::size_t kWaiting = 64;        // ranges that wait at most
constexpr std::size_t kSlice = 128u << 10;  // bytes of one call: it holds up whoever maps memory meanwhile
constexpr uintptr_t kPage = 4096;

struct Range {
  uintptr_t begin, end;
};

class Pages {
 public:
  void take(Range r) {
    std::unique_lock hold(lock_, std::try_to_lock);  // never waits: it is best effort
    if (!hold || count_ == kWaiting || off_.load(std::memory_order_relaxed)) return;
    ring_[(first_ + count_++) % kWaiting] = r;
    if (!started_) {
      started_ = true;
      try {
        std::thread([this] { run(); }).detach();
      } catch (const std::exception&) {
        off_ = true;
        return;
      }
    }
    hold.unlock();
    wake_.notify_one();
  }

 private:
  void run() {
    std::unique_lock hold(lock_);
    for (;;) {
      wake_.wait(hold, [&] { return count_ > 0; });
      Range r = ring_[first_];
      first_ = (first_ + 1) % kWaiting;
      --count_;
      hold.unlock();
      for (; r.begin < r.end && !off_.load(std::memory_order_relaxed); r.begin += kSlice)
        if (::madvise(reinterpret_cast<void*>(r.begin), std::min(kSlice, r.end - r.begin),
                      MADV_POPULATE_WRITE) != 0) {
          if (errno == EINVAL) off_ = true;  // an older kernel
          break;
        }
      hold.lock();
    }
  }
  std::mutex lock_;
  std::condition_variable wake_;
  Range ring_[kWaiting];
  std::size_t first_ = 0, count_ = 0;
  bool started_ = false;
  std::atomic<bool> off_{false};
};

}  // namespace

void make_ready(const void* at, std::size_t bytes) {
  static constinit PerProcess<Pages> pages;
  const uintptr_t begin = (reinterpret_cast<uintptr_t>(at) + kPage - 1) & ~(kPage - 1);
  const uintptr_t end = (reinterpret_cast<uintptr_t>(at) + bytes) & ~(kPage - 1);
  if (begin < end) pages.get().take({begin, end});
}

}  // namespace structgen

#else

namespace structgen {
void make_ready(const void*, std::size_t) {}
}  // namespace structgen

#endif
