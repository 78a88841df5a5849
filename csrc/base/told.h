// An answer, or the limit that was met on the way to it.
//
// In: a question, as a function that throws an Error where its answer takes too much work, memory or states.
// Out: Told<T>. Cost: none where the question is answered; one exception where it is not.
//
// Three answers are possible to "does a text end so?": yes, no, and "that is too much to tell". The third is
// thrown where the caller cannot go on without the first two, because it passes through deep recursions.
// Whoever can go on asks by told(), the only place that catches a limit:
//
//     told([&] { return arena.is_empty(r); }).value_or(false)   // "not known to be empty"
//     FirstLimit unsure; ... unsure.otherwise(false, f) ...     // one of several answers may decide
//
// An error that says `for_the_caller()` (memory is used up, a test asked for it) passes through.
#pragma once

#include <exception>
#include <optional>
#include <type_traits>
#include <utility>

#include "base/error.h"

namespace structgen {

template <class T>
class Told {
 public:
  Told(T value) : value_(std::move(value)) {}
  explicit Told(std::exception_ptr limit) : limit_(std::move(limit)) {}

  explicit operator bool() const { return value_.has_value(); }
  T& operator*() { return *value_; }
  T* operator->() { return &*value_; }
  T value_or(T otherwise) && { return value_ ? std::move(*value_) : std::move(otherwise); }
  const std::exception_ptr& limit() const { return limit_; }  // null: it was told
  // Throws the limit where there is one.
  T value() && {
    if (limit_) std::rethrow_exception(limit_);
    return std::move(*value_);
  }

 private:
  std::optional<T> value_;
  std::exception_ptr limit_;
};

// f(), or the limit that it met. Of a function without a value: true. `passes(error)`: other errors that
// count as a limit.
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
    return Told<T>(std::current_exception());
  }
}
template <class F>
auto told(F&& f) {
  return told(std::forward<F>(f), [](const Error&) { return false; });
}

// For questions that one of several answers decides: a limit waits until the others are there.
class FirstLimit {
 public:
  // f(), or `unsure` where it is too much to tell.
  template <class T, class F>
  T otherwise(T unsure, F&& f) {
    Told<T> answer = told([&]() -> T { return f(); });
    if (!answer && !first_) first_ = answer.limit();
    return std::move(answer).value_or(std::move(unsure));
  }
  void rethrow() const {
    if (first_) std::rethrow_exception(first_);
  }

 private:
  std::exception_ptr first_;
};

}  // namespace structgen
