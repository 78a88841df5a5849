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

// The types behind the opaque pointers of the C interface. Each is freed by its own function.
struct structgen_error {
  structgen_status status;
  std::string message, pointer, keyword;
  int64_t offset = -1;
};

struct structgen_vocabulary {
  std::shared_ptr<const structgen::Vocabulary> vocabulary;
};

// `subset`: parts of a grammar that take too much work to decide are omitted (Limits(on_limit="subset")
// in Python).
struct structgen_compiler {
  std::shared_ptr<structgen::Compiler> compiler;
  bool subset;
};

// The report is copied here, because C callers keep pointers into it.
struct structgen_grammar {
  std::shared_ptr<structgen::Grammar> grammar;
  std::vector<structgen::ReportEntry> report;
};

struct structgen_matcher {
  structgen::Sole<structgen::Matcher> matcher;
};

namespace structgen::capi {

[[noreturn]] inline void bad_argument(const char* what) { throw Error(ErrorKind::kValue, what); }

// The object behind a handle; throws kValue with `what` if it is NULL.
template <class Handle>
Handle& given(Handle* handle, const char* what) {
  if (!handle) bad_argument(what);
  return *handle;
}

// Holds the matcher for one call of one thread; throws kValue if it is NULL or another thread holds it.
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

// Turns the exception under way into a status, and into an error object if the caller wants one and
// there is memory for it.
structgen_status caught(structgen_error** error) noexcept;

// Runs f() with the stack that the engine needs. f returns nothing, or whether the grammar accepts its
// argument (if not, the status is STRUCTGEN_REFUSED).
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

// The fields of a struct of options that the caller's version has; newer fields are zero. So a program
// that was built with an older header keeps working.
template <class Options>
Options options_of(const Options* from) {
  Options out{};
  if (!from) return out;
  if (from->size < sizeof(std::size_t) || from->size > 4096)
    bad_argument("options: `size` is not set; begin with the struct's ..._INIT");
  std::memcpy(&out, from, std::min(from->size, sizeof(Options)));
  return out;
}

// The bytes that a caller hands over; NULL is only allowed with size 0.
inline std::string_view bytes(const structgen_bytes& b) {
  if (!b.data && b.size) bad_argument("bytes at NULL");
  return {static_cast<const char*>(b.data), b.size};
}

}  // namespace structgen::capi
