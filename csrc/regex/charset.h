// Sets of Unicode scalar values and their spellings as byte languages.
//
// In: ranges of code points. Out: a RegexId over bytes. Cost: set operations are linear in the ranges;
// lowering is one trie over the digits of the code points (UTF-8 bytes or hex digits), equal subtrees shared,
// so a small class costs a few nodes.
//
// Source of the range splitting: R. Cox, "Regular Expression Matching in the Wild" (2010), section
// on UTF-8.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

#include "base/ids.h"

namespace structgen {

class RegexArena;

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

// One digit of a code point as it is written.
struct SpelledDigit {
  uint8_t bits;             // of the code point decided here
  bool hex;                 // the byte is a hex digit of high|digit; otherwise it is high|digit itself
  uint8_t high;             // fixed high bits of the byte or nibble
  std::string_view prefix;  // bytes before this one, 'U' standing for [Dd]
};

// The members of `ranges` (sorted, apart, below 2^(bits of all digits)), not empty, written digit by digit.
RegexId spell_digits(RegexArena& arena, std::span<const SpelledDigit> digits,
                     std::span<const CodepointRange> ranges);

RegexId utf8_class(RegexArena& arena, const CodepointSet& set);

}  // namespace structgen
