// Frees large objects on a thread of its own, so that no compile and no mask waits for it.
//
// In: grammars and epochs that are no longer used. Out: their memory. Cost for the caller: a lock and a push.
// A cache that has outgrown its budget drops hundreds of grammars at once; to free them takes some 50 ms, and
// an epoch of hostile texts 150 ms. Rejected: freeing a few grammars at each compile, because every compile
// would then take longer.
//
// A process has one such thread. A forked child starts a thread of its own; objects that the parent had not
// freed yet stay in the child's memory and are never freed.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

namespace structgen {

class Reaper {
 public:
  using Object = std::shared_ptr<const void>;
  static Reaper& get();
  Reaper() = default;
  Reaper(const Reaper&) = delete;
  Reaper& operator=(const Reaper&) = delete;
  // Frees the objects on the reaper's thread. If no thread can be started, or memory is short, the calling
  // thread frees them.
  void take(std::vector<Object> objects);
  // Waits until the object that is being freed is gone; all others stay until the process ends. stop() is
  // called when Python ends. An object may hold the vocabulary's Python object, and at its end Python stops
  // each thread that waits for the GIL; if the reaper were stopped inside a destructor, the process would end
  // with an error.
  void stop();
  // Returns how many objects wait to be freed.
  std::size_t pending() const { return pending_.load(std::memory_order_relaxed); }

 private:
  void run();

  std::mutex lock_;
  std::condition_variable more_, idle_;
  std::vector<Object> queue_;
  std::atomic<std::size_t> pending_{0};
  bool started_ = false;
  // True while an object is being freed.
  bool busy_ = false;
  bool stopped_ = false;
};

}  // namespace structgen
