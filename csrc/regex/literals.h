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

#include "base/arena.h"
#include "base/bitset.h"
#include "base/intern.h"

namespace structgen {

struct LiteralTable {
  // The strings in the order of their bytes, which is the order of their code points; all are distinct.
  std::vector<std::string> texts;
  std::vector<uint32_t> labels;
};

// A state of the automaton that reads one of many strings of a table. The strings that can still come have
// numbers from `lo` to hi - 1 and are in the subset; their first `depth` bytes are equal and were read.
// `escape` is the number of bytes read of an unfinished escape, or 0.
struct LiteralSet {
  uint32_t table = 0;
  // The number of a bitset of the allowed strings; 0 allows all of them.
  uint32_t subset = 0;
  uint32_t lo = 0, hi = 0;
  uint32_t depth = 0;
  uint32_t escape = 0;
  uint32_t labelled = 0;
  friend bool operator==(const LiteralSet&, const LiteralSet&) = default;
};

class LiteralTables;

// Reads literal sets in one spelling. It keeps no state; its functions get the state as an argument.
class LiteralReader {
 public:
  // Moves the state over one byte. Returns false if no string goes on with the byte. Sets `done` if the byte
  // is the terminator of a string, whose number is then `s.lo`.
  virtual bool step(const LiteralTables& tables, LiteralSet& s, uint8_t byte, bool& done) const = 0;
  virtual ByteSet first_bytes(const LiteralTables& tables, const LiteralSet& s) const = 0;

 protected:
  constexpr LiteralReader() = default;
  ~LiteralReader() = default;
};

// The literal tables of an arena and their subsets. Equal tables are stored once, because schemas repeat
// their property names.
class LiteralTables {
 public:
  // `reader` reads the arena's spelling; null for an arena without literal sets.
  explicit LiteralTables(const LiteralReader* reader) : reader_(reader) { subsets_.emplace_back(); }
  // Makes a table and returns its number. It sorts the strings, drops those that the spelling cannot write,
  // and of equal ones keeps the first with its label.
  uint32_t add(std::vector<std::pair<std::string, uint32_t>> entries);
  // Makes a table in which the label of each string is its number in sorted order.
  uint32_t add(std::vector<std::string> texts);
  const LiteralTable& table(uint32_t id) const { return *tables_[id]; }
  uint32_t add_subset(std::span<const uint64_t> bits);
  std::span<const uint64_t> subset(uint32_t id) const { return subsets_[id]; }
  // Brings a state into normal form, so that equal states are one node: `lo` and `hi` move to allowed
  // strings, and a subset that allows all strings between them becomes 0. Returns false if no string is left.
  bool normalise(LiteralSet& s) const;
  bool step(LiteralSet& s, uint8_t byte, bool& done) const { return reader_->step(*this, s, byte, done); }
  ByteSet first_bytes(const LiteralSet& s) const { return reader_->first_bytes(*this, s); }
  // Returns how many continuation bytes the current UTF-8 character still lacks; 0 inside an escape.
  uint8_t inside_character(const LiteralSet& s) const;

  struct Range {
    uint32_t lo, hi;
  };
  bool allowed(const LiteralSet& s, uint32_t i) const;
  bool any_allowed(const LiteralSet& s, Range r) const;
  // with_byte() returns the strings of s that go on with a byte, with_codepoints() those that go on with a
  // code point from `first` to `last`.
  Range with_byte(const LiteralSet& s, uint8_t byte) const;
  Range with_codepoints(const LiteralSet& s, int64_t first, int64_t last) const;
  bool any_allowed(uint32_t subset, uint32_t lo, uint32_t hi) const;
  std::size_t byte_size() const { return bytes_; }

 private:
  const LiteralReader* const reader_;
  std::vector<std::unique_ptr<LiteralTable>> made_;
  StableVector<const LiteralTable*> tables_;
  InternTable index_;
  std::vector<std::vector<uint64_t>> subsets_;
  InternTable subset_index_;
  std::size_t bytes_ = 0;
};

}  // namespace structgen
