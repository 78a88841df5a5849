// ClassMap: a partition of the 256 bytes. Bytes of one class lead every state that uses it to the same
// state, so transitions are kept per class: a regex of ASCII letters has two, not 256.
//
// In: sets of bytes, or two partitions. Out: interned partitions: equal pointers are equal partitions.
// Cost: making one takes 256 steps; products are remembered by their pair.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "base/bitset.h"
#include "base/flat_map.h"
#include "base/intern.h"

namespace structgen {

struct ClassMap {
  // The class of each byte. Classes are numbered from 0 on, in the order of their smallest bytes.
  uint8_t of[256] = {};
  uint8_t rep[256] = {};
  uint16_t n = 0;
  uint32_t id = 0;
  // Returns one byte of each class, in the order in which a search for a shortest text tries them. The order
  // is computed on first use.
  const uint8_t* search_order() const;

 private:
  mutable uint8_t order_[256] = {};
  mutable bool ordered_ = false;
};

// All partitions of an arena. Equal partitions are one object.
class ClassMaps {
 public:
  ClassMaps();
  // Returns the partition whose only class holds all bytes.
  const ClassMap* one() const { return one_; }
  // Returns the partition of two classes: the bytes of the set and all others.
  const ClassMap* of_set(const ByteSet& set);
  const ClassMap* of_byte(uint8_t b);
  // Returns the partition in which each byte of the set is a class of its own, and all other bytes form one
  // class.
  const ClassMap* each(const ByteSet& set);
  // Returns the product of two partitions: bytes share a class if they share one in `a` and share one in `b`.
  const ClassMap* product(const ClassMap* a, const ClassMap* b);
  // Returns the partition in which bytes with equal numbers in `raw` share a class.
  const ClassMap* intern(const uint16_t (&raw)[256]);
  std::size_t byte_size() const { return maps_.size() * sizeof(ClassMap); }

 private:
  std::vector<std::unique_ptr<ClassMap>> maps_;
  InternTable index_;
  FlatMap<uint64_t, const ClassMap*> products_;
  const ClassMap* by_byte_[256] = {};
  const ClassMap* one_ = nullptr;
};

}  // namespace structgen
