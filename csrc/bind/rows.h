// A bitmask that Python hands over: rows of 32-bit words, which the core writes.
//
// In: an object with a writable C-contiguous buffer of int32 with one dimension or two, or a tensor on
// the CPU. Out: its rows. Cost: asking for the buffer. The GIL must be held while a Rows is made and
// while it is destroyed.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/error.h"

namespace structgen {

// A writable, contiguous row or matrix of int32, which Python owns and this object holds during a call.
class Rows {
 public:
  Rows(nanobind::handle h, uint32_t words) : words_(words) {
    // A tensor gives no buffer, but its numpy view, which shares the memory, does.
    if (!PyObject_CheckBuffer(h.ptr())) {
      if (!nanobind::hasattr(h, "numpy")) fail("expected a writable C-contiguous int32 array");
      keep_ = h.attr("numpy")();
      h = keep_;
    }
    if (PyObject_GetBuffer(h.ptr(), &view_, PyBUF_WRITABLE | PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) != 0) {
      PyErr_Clear();
      fail(keep_ ? "expected a writable C-contiguous int32 tensor on the CPU"
                 : "expected a writable C-contiguous int32 array");
    }
    held_ = true;
    const char* f = view_.format ? view_.format : "B";
    if (view_.itemsize != 4 || !(f[0] == 'i' || f[0] == 'I' || f[0] == 'l' || f[0] == 'L'))
      fail("expected dtype int32");
    if (view_.ndim < 1 || view_.ndim > 2) fail("expected shape (rows, words)");
    const Py_ssize_t width = view_.shape[view_.ndim - 1];
    if (width < static_cast<Py_ssize_t>(words))
      fail("expected at least " + std::to_string(words) + " words a row, got " + std::to_string(width));
    width_ = static_cast<std::size_t>(width);
    count_ = view_.ndim == 2 ? static_cast<std::size_t>(view_.shape[0]) : 1;
  }
  ~Rows() {
    if (held_) PyBuffer_Release(&view_);
  }
  Rows(const Rows&) = delete;
  Rows& operator=(const Rows&) = delete;
  std::size_t count() const { return count_; }
  // Returns the number of a row; a negative index counts from the end. Throws if there is no such row.
  std::size_t index(int64_t i) {
    const int64_t from_start = i < 0 ? i + static_cast<int64_t>(count_) : i;
    if (from_start < 0 || from_start >= static_cast<int64_t>(count_))
      fail("row " + std::to_string(i) + " of " + std::to_string(count_));
    return static_cast<std::size_t>(from_start);
  }
  // Returns the row with its words beyond the vocabulary cleared, because models may have more logits than
  // tokens.
  uint32_t* row(int64_t i) {
    uint32_t* p = static_cast<uint32_t*>(view_.buf) + index(i) * width_;
    for (std::size_t w = words_; w < width_; ++w) p[w] = 0;
    return p;
  }

 private:
  [[noreturn]] void fail(const std::string& what) {
    if (held_) PyBuffer_Release(&view_);
    held_ = false;
    throw Error(ErrorKind::kValue, "bitmask: " + what);
  }
  Py_buffer view_{};
  nanobind::object keep_;
  bool held_ = false;
  uint32_t words_;
  std::size_t width_ = 0, count_ = 0;
};

}  // namespace structgen
