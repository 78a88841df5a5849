// Sets of literal strings as ranges of a sorted table, read through JSON's escapes.
//
// In: sorted UTF-8 strings. Out: JsonSet values, each a state of the automaton that reads the JSON
// spellings of the strings followed by a closing quote. Cost: a step is two binary searches in the
// live range, whatever the number of strings; a thousand property names are one state, not a
// thousand. Strings that are not valid UTF-8 (lone surrogates) have no spelling and are dropped.
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
struct JsonSet {
  uint32_t table = 0;
  uint32_t subset = 0;  // 0 = every string, else index of an interned bitset
  uint32_t lo = 0, hi = 0;
  uint32_t depth = 0;
  uint32_t escape = 0;
  uint32_t labelled = 0;
  friend bool operator==(const JsonSet&, const JsonSet&) = default;
};

// How JSON writers escape a character, after the backslash: a letter (or the character itself), 'u' where it
// is \\u00XX with small digits, 0 where it is written as it is.
constexpr char plain_escape(uint32_t c) {
  switch (c) {
    case '"':
    case '\\': return static_cast<char>(c);
    case 8: return 'b';
    case 9: return 't';
    case 10: return 'n';
    case 12: return 'f';
    case 13: return 'r';
    default: return c < 0x20 ? 'u' : 0;
  }
}

class LiteralTables {
 public:
  // plain: only JSON writers' escapes are read (see plain_escape).
  explicit LiteralTables(bool plain = false) : plain_(plain) { subsets_.emplace_back(); }
  // Sorts, drops duplicates (first label wins) and strings without a spelling; interned by content.
  uint32_t add(std::vector<std::pair<std::string, uint32_t>> entries);
  uint32_t add(std::vector<std::string> texts);  // labels 0..n-1 in sorted order
  const LiteralTable& table(uint32_t id) const { return *tables_[id]; }
  uint32_t add_subset(std::span<const uint64_t> bits);
  // Shrinks lo/hi to allowed strings and forgets a subset that no longer excludes anything. False:
  // no string is left.
  bool normalise(JsonSet& s) const;
  // One byte. False: dead. `done` is set when the closing quote completes string `s.lo`.
  bool step(JsonSet& s, uint8_t byte, bool& done) const;
  // Bytes on which step() succeeds.
  ByteSet first_bytes(const JsonSet& s) const;
  // Bytes on which it may, as class numbers (0 = dead), for a ClassMap.
  void classes(const JsonSet& s, uint16_t (&raw)[256]) const;
  bool any_allowed(uint32_t subset, uint32_t lo, uint32_t hi) const;
  std::size_t byte_size() const { return bytes_; }

 private:
  struct Range {
    uint32_t lo, hi;
  };
  bool allowed(const JsonSet& s, uint32_t i) const;
  bool any_allowed(const JsonSet& s, Range r) const;
  Range with_byte(const JsonSet& s, uint8_t byte) const;
  Range with_codepoints(const JsonSet& s, int64_t first, int64_t last) const;
  bool take_codepoint(JsonSet& s, uint32_t cp) const;
  bool step_hex(JsonSet& s, uint32_t digit) const;
  bool step_plain_hex(JsonSet& s, uint8_t byte) const;
  bool any_escaped(const JsonSet& s, uint32_t first, uint32_t last, bool with_letter) const;

  const bool plain_;
  std::vector<std::unique_ptr<LiteralTable>> tables_;
  InternTable index_;
  std::vector<std::vector<uint64_t>> subsets_;
  InternTable subset_index_;
  std::size_t bytes_ = 0;
};

}  // namespace structgen
