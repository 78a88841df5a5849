// FlatMap: a map from small keys to small values, in one array.
//
// In: integer keys, and values that are copied as bytes. Out: pointers and references that hold until
// the next insertion. Cost: one probe sequence; an insertion allocates only if the array doubles.
// std::unordered_map makes a node for each entry, which was a fifth of what the compile of a small
// schema allocates. An erased entry leaves no mark: the entries that were probed past it move up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

#include "base/intern.h"

namespace structgen {

template <class Key, class Value>
class FlatMap {
  static_assert(std::is_unsigned_v<Key> && std::is_trivially_copyable_v<Value>);

 public:
  std::size_t size() const { return count_; }
  std::size_t byte_size() const { return capacity_ * sizeof(Slot); }

  Value* find(Key key) {
    if (count_ == 0) return nullptr;
    for (std::size_t i = home(key);; i = next(i)) {
      if (!slots_[i].used) return nullptr;
      if (slots_[i].key == key) return &slots_[i].value;
    }
  }
  const Value* find(Key key) const { return const_cast<FlatMap*>(this)->find(key); }

  // Returns the value of the key, and true if the entry is new. If the key has an entry, its value stays.
  std::pair<Value&, bool> emplace(Key key, Value value) {
    if (2 * (count_ + 1) > capacity_) grow();
    std::size_t i = home(key);
    for (; slots_[i].used; i = next(i))
      if (slots_[i].key == key) return {slots_[i].value, false};
    slots_[i] = Slot{key, true, value};
    ++count_;
    return {slots_[i].value, true};
  }
  Value& operator[](Key key) { return emplace(key, Value{}).first; }
  // Returns the value of a key. For a new key make() computes it, and may add other entries meanwhile. If
  // make() throws, no entry is added.
  template <class Make>
  Value remember(Key key, Make&& make) {
    if (const Value* known = find(key)) return *known;
    const Value made = make();
    return emplace(key, made).first;
  }

  // Removes a key. Later entries of its probe sequence move into the hole, unless their home slot lies behind
  // it.
  void erase(Key key) {
    Value* const at = find(key);
    if (!at) return;
    std::size_t hole = home(key);
    while (&slots_[hole].value != at) hole = next(hole);
    for (std::size_t i = next(hole); slots_[i].used; i = next(i)) {
      const std::size_t wanted = home(slots_[i].key);
      // An entry whose home slot lies behind the hole stays.
      if (((i - wanted) & (capacity_ - 1)) < ((i - hole) & (capacity_ - 1))) continue;
      slots_[hole] = slots_[i];
      hole = i;
    }
    slots_[hole].used = false;
    --count_;
  }
  void clear() {
    for (std::size_t i = 0; i < capacity_; ++i) slots_[i].used = false;
    count_ = 0;
  }

 private:
  struct Slot {
    Key key{};
    bool used = false;
    Value value{};
  };
  std::size_t home(Key key) const { return static_cast<std::size_t>(mix(0, key)) & (capacity_ - 1); }
  std::size_t next(std::size_t i) const { return (i + 1) & (capacity_ - 1); }
  // At least half of the slots are free, so probe sequences stay short.
  void grow() {
    const std::size_t before = capacity_, after = before == 0 ? 8 : before * 2;
    std::unique_ptr<Slot[]> old = std::make_unique<Slot[]>(after);
    slots_.swap(old);
    capacity_ = after;
    count_ = 0;
    for (std::size_t i = 0; i < before; ++i)
      if (old[i].used) emplace(old[i].key, old[i].value);
  }
  std::unique_ptr<Slot[]> slots_;
  std::size_t capacity_ = 0, count_ = 0;
};

}  // namespace structgen
