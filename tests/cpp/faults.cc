#include "faults.h"

#include <execinfo.h>

#include <cstddef>
#include <cstdlib>
#include <new>

namespace structgen_tests {

namespace {
thread_local int64_t left = 0;
thread_local bool failed = false;
void* frames_of_failure[48];
int frame_count = 0;

bool fails() {
  if (left == 0 || --left > 0) return false;
  failed = true;
  frame_count = backtrace(frames_of_failure, 48);
  return true;
}
}  // namespace

void fail_allocation(int64_t n) {
  if (n > 0 && frame_count == 0) frame_count = backtrace(frames_of_failure, 1);  // its own first allocation
  left = n;
  failed = false;
}
bool allocation_failed() { return failed; }
int failed_at(void*** frames) {
  *frames = frames_of_failure;
  return frame_count;
}

void* allocate(std::size_t bytes, std::size_t alignment) {
  if (!fails())
    if (void* const out =
            alignment <= alignof(std::max_align_t)
                ? std::malloc(bytes ? bytes : 1)
                : std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment))
      return out;
  throw std::bad_alloc();
}

}  // namespace structgen_tests

using structgen_tests::allocate;

void* operator new(std::size_t n) { return allocate(n, 1); }
void* operator new[](std::size_t n) { return allocate(n, 1); }
void* operator new(std::size_t n, std::align_val_t a) { return allocate(n, static_cast<std::size_t>(a)); }
void* operator new[](std::size_t n, std::align_val_t a) { return allocate(n, static_cast<std::size_t>(a)); }
void* operator new(std::size_t n, const std::nothrow_t&) noexcept {
  return structgen_tests::fails() ? nullptr : std::malloc(n ? n : 1);
}
void* operator new[](std::size_t n, const std::nothrow_t&) noexcept {
  return structgen_tests::fails() ? nullptr : std::malloc(n ? n : 1);
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete[](void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, const std::nothrow_t&) noexcept { std::free(p); }
void operator delete[](void* p, const std::nothrow_t&) noexcept { std::free(p); }

#ifdef STRUCTGEN_WRAPPED
// The linker puts these in place of the engine's calls (-Wl,--wrap).
extern "C" {
void* __real_malloc(std::size_t n);
void* __real_calloc(std::size_t n, std::size_t size);
void* __wrap_malloc(std::size_t n) { return structgen_tests::fails() ? nullptr : __real_malloc(n); }
void* __wrap_calloc(std::size_t n, std::size_t size) {
  return structgen_tests::fails() ? nullptr : __real_calloc(n, size);
}
}
#endif
