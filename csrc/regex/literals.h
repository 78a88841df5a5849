// Sets of literal strings, as ranges of a sorted table.
//
// In: UTF-8 strings. Out: LiteralSet values. Each is a state of the automaton that reads the strings,
// in every way in which a spelling writes their characters, and the byte that ends a text. Cost: a step
// is two binary searches in the range that is left, whatever the number of strings: a thousand property
// names are one state and not a thousand. Strings that are not valid UTF-8 (lone surrogates) have no
// spelling and are dropped.
//
//     table: age, name, names    after "n": the range [1, 3), depth 1
//     after "name"               the same range, depth 4
//     after "names"              [2, 3), depth 5; the end of the text completes string 2
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

// The strings of a set that is never changed.
struct LiteralTable {
  // Sorted by bytes, which is the order of code points; distinct.
  std::vector<std::string> texts;
  // One for each text.
  std::vector<uint32_t> labels;
};

// A state: the strings lo to hi - 1 of the table, as far as they are in the subset, have their first
// `depth` bytes in common, and these have been read. `escape` says where inside of an escape sequence
// the reader is; 0 is outside.
struct LiteralSet {
  uint32_t table = 0;
  // 0: every string; else an index of an interned bitset.
  uint32_t subset = 0;
  uint32_t lo = 0, hi = 0;
  uint32_t depth = 0;
  uint32_t escape = 0;
  uint32_t labelled = 0;
  friend bool operator==(const LiteralSet&, const LiteralSet&) = default;
};

class LiteralTables;

// The automaton of one spelling. It gets the state as an argument and keeps none itself.
class LiteralReader {
 public:
  // Reads one byte. False: no string goes on with it. `done` becomes true if the byte ends the text of
  // string `s.lo`.
  virtual bool step(const LiteralTables& tables, LiteralSet& s, uint8_t byte, bool& done) const = 0;
  // The bytes on which step() succeeds.
  virtual ByteSet first_bytes(const LiteralTables& tables, const LiteralSet& s) const = 0;

 protected:
  constexpr LiteralReader() = default;
  ~LiteralReader() = default;
};

// All tables of an arena, with their subsets. Tables are interned: schemas repeat their property names.
class LiteralTables {
 public:
  // `reader` is that of the spelling in which all sets are written; null if no set is ever made.
  explicit LiteralTables(const LiteralReader* reader) : reader_(reader) { subsets_.emplace_back(); }
  // Sorts, drops duplicates (the first label stays) and strings without a spelling. Returns the table's
  // number.
  uint32_t add(std::vector<std::pair<std::string, uint32_t>> entries);
  // With labels 0 to n - 1 in sorted order.
  uint32_t add(std::vector<std::string> texts);
  const LiteralTable& table(uint32_t id) const { return *tables_[id]; }
  uint32_t add_subset(std::span<const uint64_t> bits);
  std::span<const uint64_t> subset(uint32_t id) const { return subsets_[id]; }
  // Shrinks the range to strings that are allowed, and drops a subset that excludes none of them.
  // Without this equal states would have several ids. False: no string is left.
  bool normalise(LiteralSet& s) const;
  // See LiteralReader.
  bool step(LiteralSet& s, uint8_t byte, bool& done) const { return reader_->step(*this, s, byte, done); }
  ByteSet first_bytes(const LiteralSet& s) const { return reader_->first_bytes(*this, s); }
  // How many continuation bytes are missing to the end of the character that is being read, outside of
  // escapes.
  uint8_t inside_character(const LiteralSet& s) const;

  // ---- for readers ----
  struct Range {
    uint32_t lo, hi;
  };
  bool allowed(const LiteralSet& s, uint32_t i) const;
  bool any_allowed(const LiteralSet& s, Range r) const;
  // The strings of s that go on with a byte, or with a character from `first` to `last`.
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
