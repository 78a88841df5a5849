// Sets of Unicode scalar values.
//
// In: ranges of code points. Out: the same sorted and apart. Cost: linear in the ranges.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <vector>

namespace structgen {

struct CodepointRange {
  uint32_t lo, hi;  // inclusive
  friend bool operator==(const CodepointRange&, const CodepointRange&) = default;
};

constexpr uint32_t kMaxCodepoint = 0x10FFFF;

// Invariant: ranges sorted, lo <= hi, gaps of at least one between neighbours, no surrogates.
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
  // The only member when there is exactly one; false otherwise.
  bool single(uint32_t& c) const;

  CodepointSet complement() const;
  // The ranges of the members in [lo, hi], moved down by `offset`.
  std::vector<CodepointRange> slice(uint32_t lo, uint32_t hi, uint32_t offset) const;
  friend CodepointSet operator|(const CodepointSet& a, const CodepointSet& b);
  friend CodepointSet operator&(const CodepointSet& a, const CodepointSet& b);
  friend CodepointSet operator-(const CodepointSet& a, const CodepointSet& b);
  friend bool operator==(const CodepointSet&, const CodepointSet&) = default;

 private:
  std::vector<CodepointRange> ranges_;
};

}  // namespace structgen
