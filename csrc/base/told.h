// An answer, or the limit that was met on the way to it.
//
// In: a question, as a function that throws an Error if its answer takes too much work, memory or
// states. Out: Told<T>. Cost: none if the question is answered; one exception if it is not.
//
// "Does a text end here?" has three answers: yes, no, and "that is too much to tell". The third one is
// thrown, because it passes through deep recursions whose callers cannot go on without one of the first
// two. A caller that can go on asks by told(), which alone catches a limit:
//
//     told([&] { return arena.is_empty(r); }).value_or(false)   // "not known to be empty"
//     FirstLimit unsure; ... unsure.otherwise(false, f) ...     // one of several answers may decide
//
// An error that is `for_the_caller()` (memory is used up, a test asked for it) passes through.
#pragma once

#include <exception>
#include <optional>
#include <type_traits>
#include <utility>

#include "base/error.h"
#include "base/work.h"

namespace structgen {

// An exception that ends a search costs this much work to catch: 20 microseconds.
constexpr int64_t kLimitWork = 200;

// An answer, or the error of a question that took too much work.
template <class T>
class Told {
 public:
  Told(T value) : value_(std::move(value)) {}
  explicit Told(std::exception_ptr limit) : limit_(std::move(limit)) {}

  explicit operator bool() const { return value_.has_value(); }
  T& operator*() { return *value_; }
  T* operator->() { return &*value_; }
  T value_or(T otherwise) && { return value_ ? std::move(*value_) : std::move(otherwise); }
  // Returns the error, or null if there is an answer.
  const std::exception_ptr& limit() const { return limit_; }
  // Returns the answer; throws the error if there is none.
  T value() && {
    if (limit_) std::rethrow_exception(limit_);
    return std::move(*value_);
  }

 private:
  std::optional<T> value_;
  std::exception_ptr limit_;
};

// Returns f() or, if f throws because it took too much, this error. If f returns nothing, the answer is
// `true`. Errors for which passes(error) is true are kept in the same way.
template <class F, class Passes>
auto told(F&& f, Passes&& passes) {
  using R = std::invoke_result_t<F>;
  using T = std::conditional_t<std::is_void_v<R>, bool, R>;
  try {
    if constexpr (std::is_void_v<R>) {
      f();
      return Told<T>(true);
    } else {
      return Told<T>(f());
    }
  } catch (const Error& e) {
    if (!e.is_limit() && !passes(e)) throw;
    meter.spend(kLimitWork);
    return Told<T>(std::current_exception());
  }
}
template <class F>
auto told(F&& f) {
  return told(std::forward<F>(f), [](const Error&) { return false; });
}

// As told() above, for a caller that goes on without an answer. If no work is left to go on with, it throws
// the error of the scope's own bound, whatever f() met.
template <class F>
auto told_with_work_left(F&& f) {
  auto out = told(std::forward<F>(f));
  if (!out && meter.exhausted()) charge();
  return out;
}

// For several questions, one of which may decide alone. The first error is thrown only if no later answer
// decides.
class FirstLimit {
 public:
  // Returns f(), or `unsure` if f() took too much.
  template <class T, class F>
  T otherwise(T unsure, F&& f) {
    Told<T> answer = told([&]() -> T { return f(); });
    if (!answer && !first_) first_ = answer.limit();
    return std::move(answer).value_or(std::move(unsure));
  }
  // Throws the first limit that was met, if any. The caller calls this if no answer has decided.
  void rethrow() const {
    if (first_) std::rethrow_exception(first_);
  }

 private:
  std::exception_ptr first_;
};

}  // namespace structgen
