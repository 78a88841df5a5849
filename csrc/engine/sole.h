// Objects that belong to one thread at a time. The Python and the C interface hand them out.
//
// In: a matcher or a canvas. Out: a Use for the duration of one call; a second call during this call is
// refused. The second call does not wait, because the first call may be making a mask. Cost: two atomic
// operations a call.
#pragma once

#include <atomic>
#include <string>
#include <utility>

#include "base/error.h"

namespace structgen {

// An object of type T that only one thread at a time may use. A copy of it may be used by any thread.
template <class T>
class Sole : public T {
 public:
  using T::T;
  explicit Sole(const T& of) : T(of) {}
  Sole(const Sole& other) : T(other) {}
  Sole(Sole&& other) noexcept : T(std::move(other)) {}
  std::atomic<bool> used{false};
};

// Holds the object of a Sole for one call. Throws kValue if another thread holds it; `name` stands in the
// message.
class Use {
 public:
  template <class T>
  explicit Use(Sole<T>& of, const char* name = "matcher") : used_(&of.used) {
    if (used_->exchange(true, std::memory_order_acquire))
      throw Error(ErrorKind::kValue, std::string("another thread is using this ") + name +
                                         ", or was when the process forked; fork() one for each thread");
  }
  Use(Use&& other) noexcept : used_(std::exchange(other.used_, nullptr)) {}
  ~Use() {
    if (used_) used_->store(false, std::memory_order_release);
  }
  Use& operator=(Use&&) = delete;

 private:
  std::atomic<bool>* used_;
};

}  // namespace structgen
