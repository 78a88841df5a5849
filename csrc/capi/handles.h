// The objects behind the handles of include/structgen.h, and the only way in and out of the engine.
//
// In: a function that may throw. Out: a status and an error object. Cost: a try block, and the look at
// the stack that csrc/base/depth.h describes. No exception leaves the library.
#pragma once

#include <algorithm>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/depth.h"
#include "base/error.h"
#include "engine/compile.h"
#include "engine/matcher.h"
#include "engine/sole.h"
#include "include/structgen.h"

// The types behind the opaque pointers of the C interface; each type has a function that frees it.
struct structgen_error {
  structgen_status status;
  std::string message, pointer, keyword;
  int64_t offset = -1;
};

struct structgen_vocabulary {
  std::shared_ptr<const structgen::Vocabulary> vocabulary;
};

// `subset` says that a grammar leaves out what takes too much work to decide (Limits(on_limit="subset") in
// Python).
struct structgen_compiler {
  std::shared_ptr<structgen::Compiler> compiler;
  bool subset;
};

// Callers keep pointers into the report, so the handle has a copy that lives as long as itself.
struct structgen_grammar {
  std::shared_ptr<structgen::Grammar> grammar;
  std::vector<structgen::ReportEntry> report;
};

struct structgen_matcher {
  structgen::Sole<structgen::Matcher> matcher;
};

namespace structgen::capi {

[[noreturn]] inline void bad_argument(const char* what) { throw Error(ErrorKind::kValue, what); }

// Returns the object of a handle. For NULL it throws kValue with the text `what`.
template <class Handle>
Handle& given(Handle* handle, const char* what) {
  if (!handle) bad_argument(what);
  return *handle;
}

// Holds a matcher for one call. The constructor throws kValue if the handle is NULL, or if another thread
// holds the matcher.
class Held {
 public:
  explicit Held(structgen_matcher* matcher)
      : matcher_(given(matcher, "the matcher is NULL").matcher), use_(matcher_) {}
  Matcher* operator->() const { return &matcher_; }
  Matcher& operator*() const { return matcher_; }

 private:
  Sole<Matcher>& matcher_;
  const Use use_;
};

// Turns the exception that was caught into a status. Also makes an error object, if the caller asks for one
// and there is memory.
structgen_status caught(structgen_error** error) noexcept;

// Runs f() with the stack that the engine needs, and returns a status. f returns nothing, or whether the
// grammar accepts what it was given; if not, the status is STRUCTGEN_REFUSED.
template <class F>
structgen_status guarded(structgen_error** error, F&& f) noexcept {
  if (error) *error = nullptr;
  try {
    if constexpr (std::is_void_v<std::invoke_result_t<F&>>) {
      with_stack(f);
      return STRUCTGEN_OK;
    } else {
      return with_stack(f) ? STRUCTGEN_OK : STRUCTGEN_REFUSED;
    }
  } catch (...) {
    return caught(error);
  }
}

// Copies as much of the options as the caller's version of the struct has; newer fields become zero. So a
// program that was built with an older header keeps working.
template <class Options>
Options options_of(const Options* from) {
  Options out{};
  if (!from) return out;
  if (from->size < sizeof(std::size_t) || from->size > 4096)
    bad_argument("options: `size` is not set; begin with the struct's ..._INIT");
  std::memcpy(&out, from, std::min(from->size, sizeof(Options)));
  return out;
}

// Returns the bytes that a caller passes; NULL is allowed only with size 0.
inline std::string_view bytes(const structgen_bytes& b) {
  if (!b.data && b.size) bad_argument("bytes at NULL");
  return {static_cast<const char*>(b.data), b.size};
}

}  // namespace structgen::capi
