// Sets of Unicode scalar values, for the classes of patterns.
//
// In: ranges of code points, in any order. Out: the same, sorted and disjoint. Cost: linear in the
// ranges. A look-up is a binary search. The set is ranges and not bits, because a class such as \w has about
// 800 ranges, and the code points need 1.1 million bits.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <vector>

namespace structgen {

struct CodepointRange {
  // `lo` is the first code point of the range and `hi` the last.
  uint32_t lo, hi;
  friend bool operator==(const CodepointRange&, const CodepointRange&) = default;
};

constexpr uint32_t kMaxCodepoint = 0x10FFFF;

// A set of code points, as sorted ranges that neither overlap nor touch. It has no surrogates, because no
// UTF-8 text contains one.
class CodepointSet {
 public:
  CodepointSet() = default;
  CodepointSet(std::initializer_list<CodepointRange> ranges) : CodepointSet(std::vector(ranges)) {}
  explicit CodepointSet(std::vector<CodepointRange> ranges);  // any order, overlaps allowed
  static CodepointSet all();
  static CodepointSet one(uint32_t c) { return CodepointSet{{c, c}}; }

  const std::vector<CodepointRange>& ranges() const { return ranges_; }
  bool empty() const { return ranges_.empty(); }
  bool contains(uint32_t c) const;
  uint64_t size() const;
  bool single(uint32_t& c) const;

  CodepointSet complement() const;
  // Returns the members from `lo` to `hi` as sorted ranges, with `offset` subtracted from each member.
  std::vector<CodepointRange> slice(uint32_t lo, uint32_t hi, uint32_t offset) const;
  friend CodepointSet operator|(const CodepointSet& a, const CodepointSet& b);
  friend CodepointSet operator&(const CodepointSet& a, const CodepointSet& b);
  friend CodepointSet operator-(const CodepointSet& a, const CodepointSet& b);
  friend bool operator==(const CodepointSet&, const CodepointSet&) = default;

 private:
  std::vector<CodepointRange> ranges_;
};

}  // namespace structgen
