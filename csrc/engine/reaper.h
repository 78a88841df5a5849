// Frees grammars on a thread of its own, so that no compile waits for it.
//
// In: grammars that are no longer kept. Out: their memory. Cost for the caller: a lock and a push. A
// cache that has outgrown its budget drops hundreds of grammars at once, which takes some 50 ms to
// free. To drop a few at each compile instead would add their cost to the median compile time.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace structgen {

class Grammar;

class Reaper {
 public:
  Reaper();
  // Waits until everything is freed.
  ~Reaper();
  Reaper(const Reaper&) = delete;
  Reaper& operator=(const Reaper&) = delete;
  void take(std::vector<std::shared_ptr<Grammar>> grammars);
  // The number of grammars not freed yet.
  std::size_t pending() const;

 private:
  struct State;
  // In a forked child: the parent's queue.
  std::vector<std::shared_ptr<Grammar>> inherited();
  std::unique_ptr<State> state_;
};

}  // namespace structgen
