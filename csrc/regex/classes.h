// ClassMap: a partition of the 256 byte values; bytes of one class always lead to the same place.
//
// In: byte sets or two partitions. Out: interned partitions (equal pointers <=> equal partitions).
// Cost: building one is 256 steps; products are memoised by pair.
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
  uint8_t of[256] = {};   // class of a byte, numbered by first appearance
  uint8_t rep[256] = {};  // smallest byte of a class
  uint16_t n = 0;
  uint32_t id = 0;
  // Representatives in the order a search for a witness tries them (computed on first use).
  const uint8_t* search_order() const;

 private:
  mutable uint8_t order_[256] = {};
  mutable bool ordered_ = false;
};

class ClassMaps {
 public:
  ClassMaps();
  const ClassMap* one() const { return one_; }  // a single class
  const ClassMap* of_set(const ByteSet& set);   // { set, rest }
  const ClassMap* of_byte(uint8_t b);
  const ClassMap* product(const ClassMap* a, const ClassMap* b);
  // raw[b] are arbitrary class numbers below 65536.
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
