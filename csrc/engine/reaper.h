// Frees grammars on a thread of its own, so that no compile waits for it.
//
// In: grammars that are no longer kept. Out: their memory. Cost for the caller: a lock and a
// push. A cache that has outgrown its budget drops hundreds of grammars at once, some 50 ms of frees;
// dropping a few at each compile instead would add their cost to the median.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace structgen {

class Grammar;

class Reaper {
 public:
  Reaper();
  ~Reaper();  // waits until everything is freed
  Reaper(const Reaper&) = delete;
  Reaper& operator=(const Reaper&) = delete;
  void take(std::vector<std::shared_ptr<Grammar>> grammars);
  std::size_t pending() const;  // grammars not freed yet

 private:
  struct State;
  std::vector<std::shared_ptr<Grammar>> inherited();  // in a forked child
  std::unique_ptr<State> state_;
};

}  // namespace structgen
