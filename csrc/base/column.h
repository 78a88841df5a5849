// Column: a constant array that owns its memory, or lies in memory that somebody else keeps (a mapped
// file).
//
// In: a vector, or a pointer and a count. Out: elements by index. Cost: one load, as with a vector. The
// trie of a vocabulary is made of columns, so a saved vocabulary is used where it lies in its file.
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace structgen {

template <class T>
class Column {
 public:
  Column() = default;
  Column(const Column&) = delete;
  Column& operator=(const Column&) = delete;
  void own(std::vector<T> values) {
    own_ = std::move(values);
    all_ = own_;
  }
  // Makes the column show `values`, which must live longer than the column.
  void view(std::span<const T> values) {
    own_.clear();
    all_ = values;
  }
  const T& operator[](std::size_t i) const { return all_[i]; }
  const T* data() const { return all_.data(); }
  std::size_t size() const { return all_.size(); }
  std::size_t byte_size() const { return all_.size_bytes(); }
  std::span<const T> all() const { return all_; }

 private:
  std::vector<T> own_;
  std::span<const T> all_;
};

}  // namespace structgen
