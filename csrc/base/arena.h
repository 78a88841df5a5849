// Storage that never moves: StableVector (chunks of doubling size) and BumpPool (spans of raw values).
//
// In: values. Out: references that stay valid as long as the container. Readers of published elements
// need no lock while one writer appends. Cost: an index is a bit scan and two loads. Growth never
// copies: a vector that copied showed as a spike of a millisecond in the slowest step.
#pragma once

#include <atomic>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace structgen {

// A list whose elements never move. The memory of new elements is zeroed; a T of zeros must equal T{}.
template <class T, uint32_t kFirstLog2 = 4>
class StableVector {
  static_assert(std::is_trivially_destructible_v<T>);

 public:
  StableVector() = default;
  StableVector(const StableVector&) = delete;
  StableVector& operator=(const StableVector&) = delete;
  ~StableVector() {
    for (uint32_t k = 0; k < kChunks; ++k) std::free(chunks_[k].load(std::memory_order_relaxed));
  }

  uint32_t size() const { return size_; }
  T& operator[](uint32_t i) {
    const uint64_t n = static_cast<uint64_t>(i) + kFirst;
    const uint32_t k = static_cast<uint32_t>(std::bit_width(n)) - 1 - kFirstLog2;
    return chunks_[k].load(std::memory_order_acquire)[n - (kFirst << k)];
  }
  const T& operator[](uint32_t i) const { return const_cast<StableVector&>(*this)[i]; }

  template <class... Args>
  uint32_t emplace_back(Args&&... args) {
    const uint32_t i = size_;
    const uint64_t n = static_cast<uint64_t>(i) + kFirst;
    const uint32_t k = static_cast<uint32_t>(std::bit_width(n)) - 1 - kFirstLog2;
    T* chunk = chunks_[k].load(std::memory_order_relaxed);
    if (!chunk) {
      // calloc gets memory that the system zeroes when it is first used. Constructing all elements of a large
      // chunk took tens of milliseconds.
      chunk = static_cast<T*>(std::calloc(kFirst << k, sizeof(T)));
      if (!chunk) throw std::bad_alloc();
      chunks_[k].store(chunk, std::memory_order_release);
    }
    if constexpr (sizeof...(Args) > 0) chunk[n - (kFirst << k)] = T(std::forward<Args>(args)...);
    ++size_;
    return i;
  }
  std::size_t byte_size() const {
    return size_ == 0 ? 0 : (std::bit_ceil(static_cast<uint64_t>(size_) + kFirst) - kFirst) * sizeof(T);
  }

 private:
  static constexpr uint64_t kFirst = 1ull << kFirstLog2;
  static constexpr uint32_t kChunks = 33 - kFirstLog2;
  std::atomic<T*> chunks_[kChunks] = {};
  uint32_t size_ = 0;
};

// Hands out arrays of trivially copyable values, all of which it frees at once.
class BumpPool {
 public:
  // Returns n uninitialised values.
  template <class T>
  T* allocate(std::size_t n) {
    static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= alignof(std::max_align_t));
    const std::size_t bytes = n * sizeof(T);
    const std::size_t padding = -reinterpret_cast<std::uintptr_t>(cursor_) % alignof(T);
    if (padding + bytes > left_)
      grow(bytes);
    else
      skip(padding);
    T* out = reinterpret_cast<T*>(cursor_);
    skip(bytes);
    return out;
  }
  template <class T>
  std::span<const T> copy(std::span<const T> values) {
    if (values.empty()) return {};
    T* out = allocate<T>(values.size());
    std::memcpy(out, values.data(), values.size() * sizeof(T));
    return {out, values.size()};
  }
  std::size_t byte_size() const { return used_; }

 private:
  void skip(std::size_t bytes) {
    cursor_ += bytes;
    left_ -= bytes;
    used_ += bytes;
  }
  // An array that is larger than a block gets a block of its own size.
  void grow(std::size_t bytes) {
    std::size_t size = std::max<std::size_t>(bytes, next_size_);
    if (next_size_ < (1u << 20)) next_size_ *= 2;
    blocks_.push_back(std::unique_ptr<std::byte[]>(new std::byte[size]));
    cursor_ = blocks_.back().get();
    left_ = size;
  }
  std::vector<std::unique_ptr<std::byte[]>> blocks_;
  std::byte* cursor_ = nullptr;
  std::size_t left_ = 0;
  std::size_t used_ = 0;
  std::size_t next_size_ = 1024;
};

}  // namespace structgen
