// Reads sets of literals as JSON strings: raw characters, short escapes, \uXXXX and surrogate pairs.
//
// In: a state of a set, and a byte. Out: the next state. Cost: two binary searches in the strings that
// are left. `LiteralSet::escape` says where inside of an escape the reader is; 0 is outside. A
// character that is escaped in part stands for a range of code points: behind `\u00` for U+0000 to
// U+00FF. Those strings too are a range of the sorted table.
#pragma once

#include <cstdint>

#include "regex/literals.h"

namespace structgen {

class JsonLiterals : public LiteralReader {
 public:
  // With `plain`, only the escapes that JSON writers use are read (plain_escape() in json_spelling.h).
  constexpr explicit JsonLiterals(bool plain) : plain_(plain) {}
  bool step(const LiteralTables& tables, LiteralSet& s, uint8_t byte, bool& done) const override;
  ByteSet first_bytes(const LiteralTables& tables, const LiteralSet& s) const override;

 private:
  bool take_codepoint(const LiteralTables& tables, LiteralSet& s, uint32_t cp) const;
  bool step_hex(const LiteralTables& tables, LiteralSet& s, uint32_t digit) const;
  bool step_plain_hex(const LiteralTables& tables, LiteralSet& s, uint8_t byte) const;
  bool any_escaped(const LiteralTables& tables, const LiteralSet& s, uint32_t first, uint32_t last,
                   bool with_letter) const;

  const bool plain_;
};

}  // namespace structgen
