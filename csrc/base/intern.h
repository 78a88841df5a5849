// InternTable: the hash index of an arena that stores each value once.
//
// In: a 64-bit hash, an equality test over ids, a function that makes a new id. Out: the id of the
// equal value. Cost: one probe sequence. Growth is incremental, because a full rehash was a visible
// spike (1.8 ms): a few slots of the old table are moved at each insertion. Equality is always checked;
// a hash is never trusted. If the maker throws, the table is as it was.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <span>
#include <utility>

namespace structgen {

// Mixes the number v into the hash h, by a multiply-xorshift step with constants of MurmurHash3.
inline uint64_t mix(uint64_t h, uint64_t v) {
  h ^= v + 0x9E3779B97F4A7C15ull + (h << 6) + (h >> 2);
  h *= 0xFF51AFD7ED558CCDull;
  return h ^ (h >> 32);
}
inline uint64_t hash_words(std::span<const uint32_t> words, uint64_t seed) {
  uint64_t h = seed;
  for (uint32_t w : words) h = mix(h, w);
  return h;
}
inline uint64_t hash_bytes(const char* p, std::size_t n, uint64_t seed) {
  uint64_t h = mix(seed, n);
  while (n >= 8) {
    uint64_t w;
    __builtin_memcpy(&w, p, 8);
    h = mix(h, w);
    p += 8;
    n -= 8;
  }
  uint64_t w = 0;
  __builtin_memcpy(&w, p, n);
  return mix(h, w);
}

// A zeroed array, whose memory the system provides on first use.
template <class T>
class ZeroArray {
 public:
  explicit ZeroArray(std::size_t n = 0)
      : data_(n ? static_cast<T*>(std::calloc(n, sizeof(T))) : nullptr), n_(n) {
    if (n && !data_) throw std::bad_alloc();
  }
  ~ZeroArray() { std::free(data_); }
  ZeroArray(const ZeroArray&) = delete;
  ZeroArray& operator=(const ZeroArray&) = delete;
  void swap(ZeroArray& o) {
    std::swap(data_, o.data_);
    std::swap(n_, o.n_);
  }
  std::size_t size() const { return n_; }
  bool empty() const { return n_ == 0; }
  T& operator[](std::size_t i) { return data_[i]; }
  const T& operator[](std::size_t i) const { return data_[i]; }

 private:
  T* data_;
  std::size_t n_;
};

// A hash table of numbers (ids) of values. The caller keeps the values; the table stores only the ids.
class InternTable {
 public:
  explicit InternTable(uint32_t initial_log2 = 4) : slots_(1ull << initial_log2) {}

  // Returns the id for which equal(id) is true. If there is none, calls make() and returns its id.
  template <class Equal, class Make>
  uint32_t find_or_add(uint64_t hash, Equal&& equal, Make&& make) {
    const uint32_t tag = tag_of(hash);
    if (const Slot* s = probe(slots_, tag, equal)) return s->id;
    if (!old_.empty())
      if (const Slot* s = probe(old_, tag, equal)) return s->id;
    // make_room() may throw, so it runs first. If it came later, make() might have made an id that the table
    // never gets.
    make_room();
    const uint32_t id = make();
    add({tag, id});
    return id;
  }
  // Returns the index of a value in a list without duplicates, and appends the value if it is new.
  template <class List, class Value>
  uint32_t number(uint64_t hash, List& list, Value&& value) {
    return find_or_add(
        hash, [&](uint32_t i) { return list[i] == value; },
        [&] {
          list.emplace_back(std::forward<Value>(value));
          return static_cast<uint32_t>(list.size() - 1);
        });
  }
  template <class Equal>
  bool find(uint64_t hash, Equal&& equal, uint32_t& id) const {
    const uint32_t tag = tag_of(hash);
    const Slot* s = probe(slots_, tag, equal);
    if (!s && !old_.empty()) s = probe(old_, tag, equal);
    if (s) id = s->id;
    return s != nullptr;
  }
  std::size_t byte_size() const { return (slots_.size() + old_.size()) * sizeof(Slot); }

 private:
  struct Slot {
    // 32 bits of the value's hash; 0 marks a free slot. When the table grows, the entry's new position
    // follows from them, and the value is not hashed again.
    uint32_t tag = 0;
    uint32_t id = 0;
  };
  static uint32_t tag_of(uint64_t hash) { return std::max(static_cast<uint32_t>(hash), 1u); }
  template <class Equal>
  static const Slot* probe(const ZeroArray<Slot>& t, uint32_t tag, Equal&& equal) {
    const uint64_t m = t.size() - 1;
    for (uint64_t i = tag & m;; i = (i + 1) & m) {
      const Slot& s = t[i];
      if (s.tag == 0) return nullptr;
      if (s.tag == tag && equal(s.id)) return &s;
    }
  }
  static void put(ZeroArray<Slot>& t, Slot s) {
    const uint64_t m = t.size() - 1;
    uint64_t i = s.tag & m;
    while (t[i].tag) i = (i + 1) & m;
    t[i] = s;
  }
  void make_room() {
    if (!old_.empty() || (count_ + 1) * 2 <= slots_.size()) return;
    ZeroArray<Slot> larger(slots_.size() * 2);
    old_.swap(slots_);
    slots_.swap(larger);
    drained_ = 0;
  }
  void add(Slot s) {
    // make() may itself have added entries.
    make_room();
    put(slots_, s);
    ++count_;
    // A table that grows moves its entries step by step, and until then the old table is searched, too. Each
    // insertion moves 8 slots, so the old table is empty long before the new one is full.
    if (!old_.empty()) {
      const std::size_t end = std::min(old_.size(), drained_ + 8);
      for (; drained_ < end; ++drained_)
        if (old_[drained_].tag) put(slots_, old_[drained_]);
      if (drained_ == old_.size()) {
        ZeroArray<Slot> none;
        old_.swap(none);
      }
    }
  }
  ZeroArray<Slot> slots_;
  ZeroArray<Slot> old_;
  std::size_t drained_ = 0;
  uint64_t count_ = 0;
};

}  // namespace structgen
