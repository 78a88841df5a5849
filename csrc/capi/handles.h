// What is behind the handles of include/structgen.h, and the one way in and out of the engine.
//
// In: a function that may throw. Out: a status and an error object. Cost: a try block and the look at the
// stack that csrc/base/depth.h describes.
#pragma once

#include <algorithm>
#include <atomic>
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
#include "include/structgen.h"

struct structgen_error {
  structgen_status status;
  std::string message, pointer, keyword;
  int64_t offset = -1;
};

struct structgen_vocabulary {
  std::shared_ptr<const structgen::Vocabulary> vocabulary;
};

struct structgen_compiler {
  std::shared_ptr<structgen::Compiler> compiler;
  bool subset;
};

struct structgen_grammar {
  std::shared_ptr<structgen::Grammar> grammar;
  std::vector<structgen::ReportEntry> report;
};

struct structgen_matcher {
  structgen::Matcher matcher;
  std::atomic<bool> used{false};
};

namespace structgen::capi {

[[noreturn]] inline void bad_argument(const char* what) { throw Error(ErrorKind::kValue, what); }

template <class Handle>
Handle& given(Handle* handle, const char* what) {
  if (!handle) bad_argument(what);
  return *handle;
}

// The matcher, for one call of one thread.
class Use {
 public:
  explicit Use(structgen_matcher* matcher) : handle_(given(matcher, "the matcher is NULL")) {
    if (handle_.used.exchange(true, std::memory_order_acquire))
      bad_argument(
          "another thread is using this matcher, or was when the process forked; fork one for each thread");
  }
  ~Use() { handle_.used.store(false, std::memory_order_release); }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;
  Matcher* operator->() const { return &handle_.matcher; }
  Matcher& operator*() const { return handle_.matcher; }

 private:
  structgen_matcher& handle_;
};

// The exception under way, as an object if there is memory for one and somebody wants it.
structgen_status caught(structgen_error** error) noexcept;

// f() with the engine's stack. f returns nothing, or whether the grammar takes what it was given.
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

// The fields of a struct of options that the caller knows; the others are zero.
template <class Options>
Options options_of(const Options* from) {
  Options out{};
  if (!from) return out;
  if (from->size < sizeof(std::size_t) || from->size > 4096)
    bad_argument("options: `size` is not set; begin with the struct's ..._INIT");
  std::memcpy(&out, from, std::min(from->size, sizeof(Options)));
  return out;
}

inline std::string_view bytes(const structgen_bytes& b) {
  if (!b.data && b.size) bad_argument("bytes at NULL");
  return {static_cast<const char*>(b.data), b.size};
}

}  // namespace structgen::capi
