// Sets of literal strings as ranges of a sorted table.
//
// In: sorted UTF-8 strings. Out: LiteralSet values, each a state of the automaton that reads the strings, in
// every way that a spelling has for their characters, and the byte that ends a text. Cost: a step is two
// binary searches in the live range, whatever the number of strings; a thousand property names are one state,
// not a thousand. Strings that are not valid UTF-8 (lone surrogates) have no spelling and are dropped.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bitset.h"
#include "base/intern.h"

namespace structgen {

struct LiteralTable {
  std::vector<std::string> texts;  // sorted by bytes, which is code-point order; distinct
  std::vector<uint32_t> labels;    // one per text
};

// A state: the strings lo..hi-1 of the table (those in the subset) share their first `depth` bytes,
// which have been read; `escape` says where inside an escape sequence the reader is (0 = outside).
struct LiteralSet {
  uint32_t table = 0;
  uint32_t subset = 0;  // 0 = every string, else index of an interned bitset
  uint32_t lo = 0, hi = 0;
  uint32_t depth = 0;
  uint32_t escape = 0;
  uint32_t labelled = 0;
  friend bool operator==(const LiteralSet&, const LiteralSet&) = default;
};

class LiteralTables;

// The automaton of one spelling; it is told the state, and keeps none.
class LiteralReader {
 public:
  // One byte. False: dead. `done` is set when the end of the text completes string `s.lo`.
  virtual bool step(const LiteralTables& tables, LiteralSet& s, uint8_t byte, bool& done) const = 0;
  // Bytes on which step() succeeds.
  virtual ByteSet first_bytes(const LiteralTables& tables, const LiteralSet& s) const = 0;
  // Bytes on which it may, as class numbers (0 = dead), for a ClassMap.
  virtual void classes(const LiteralTables& tables, const LiteralSet& s, uint16_t (&raw)[256]) const = 0;

 protected:
  constexpr LiteralReader() = default;
  ~LiteralReader() = default;
};

class LiteralTables {
 public:
  // `reader`: of the spelling that all sets are written in; null where none is made.
  explicit LiteralTables(const LiteralReader* reader) : reader_(reader) { subsets_.emplace_back(); }
  // Sorts, drops duplicates (first label wins) and strings without a spelling; interned by content.
  uint32_t add(std::vector<std::pair<std::string, uint32_t>> entries);
  uint32_t add(std::vector<std::string> texts);  // labels 0..n-1 in sorted order
  const LiteralTable& table(uint32_t id) const { return *tables_[id]; }
  uint32_t add_subset(std::span<const uint64_t> bits);
  // Shrinks lo/hi to allowed strings and forgets a subset that no longer excludes anything. False:
  // no string is left.
  bool normalise(LiteralSet& s) const;
  // See LiteralReader.
  bool step(LiteralSet& s, uint8_t byte, bool& done) const { return reader_->step(*this, s, byte, done); }
  ByteSet first_bytes(const LiteralSet& s) const { return reader_->first_bytes(*this, s); }
  void classes(const LiteralSet& s, uint16_t (&raw)[256]) const { reader_->classes(*this, s, raw); }
  // Continuation bytes that are missing to the end of a character, outside of escapes.
  uint8_t inside_character(const LiteralSet& s) const;

  // ---- for readers ----
  struct Range {
    uint32_t lo, hi;
  };
  bool allowed(const LiteralSet& s, uint32_t i) const;
  bool any_allowed(const LiteralSet& s, Range r) const;
  // The strings of s that go on with a byte, or with a character from first to last.
  Range with_byte(const LiteralSet& s, uint8_t byte) const;
  Range with_codepoints(const LiteralSet& s, int64_t first, int64_t last) const;
  bool any_allowed(uint32_t subset, uint32_t lo, uint32_t hi) const;
  std::size_t byte_size() const { return bytes_; }

 private:
  const LiteralReader* const reader_;
  std::vector<std::unique_ptr<LiteralTable>> tables_;
  InternTable index_;
  std::vector<std::vector<uint64_t>> subsets_;
  InternTable subset_index_;
  std::size_t bytes_ = 0;
};

}  // namespace structgen
