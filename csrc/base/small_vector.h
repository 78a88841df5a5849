// SmallVector: a list that is nearly always short, kept in place until it is not.
//
// In: values that are copied as bytes. Out: a contiguous range. Cost: no allocation up to N values,
// doubling beyond. It can be neither copied nor moved: it is for lists that live in one function.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>
#include <span>
#include <type_traits>

namespace structgen {

template <class T, std::size_t N>
class SmallVector {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

 public:
  SmallVector() {}
  ~SmallVector() {
    if (data_ != here()) std::free(data_);
  }
  SmallVector(const SmallVector&) = delete;
  SmallVector& operator=(const SmallVector&) = delete;

  void push_back(T value) {
    if (size_ == capacity_) grow();
    data_[size_++] = value;
  }
  void pop_back() { --size_; }
  void clear() { size_ = 0; }
  // Drops the elements from `end` on; `end` may be what std::unique returns.
  void shrink(T* end) { size_ = static_cast<std::size_t>(end - data_); }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  T& operator[](std::size_t i) { return data_[i]; }
  const T& operator[](std::size_t i) const { return data_[i]; }
  T& back() { return data_[size_ - 1]; }
  operator std::span<const T>() const { return {data_, size_}; }

 private:
  T* here() { return reinterpret_cast<T*>(space_); }
  void grow() {
    const std::size_t capacity = 2 * capacity_;
    T* const larger = static_cast<T*>(std::malloc(capacity * sizeof(T)));
    if (!larger) throw std::bad_alloc();
    std::memcpy(static_cast<void*>(larger), data_, size_ * sizeof(T));
    if (data_ != here()) std::free(data_);
    data_ = larger;
    capacity_ = capacity;
  }
  alignas(T) std::byte space_[N * sizeof(T)];
  T* data_ = here();
  std::size_t size_ = 0, capacity_ = N;
};

}  // namespace structgen
