// The automaton of literals in JSON strings; see json_literals.h.
#include "strings/json_literals.h"

#include <algorithm>
#include <string_view>

#include "strings/json_spelling.h"

namespace structgen {

namespace {

// LiteralSet::escape packs four numbers: a Mode (3 bits from bit 28 on), the number of digits read (2 bits
// from 26), the high surrogate (10 bits from 16), and the value of the digits (16 bits).
enum Mode : uint32_t {
  kPlain = 0,
  kBackslash = 1,
  // \u was read; hex digits follow.
  kHex = 2,
  // The escape of a high surrogate was read. That of a low one must follow.
  kNeedBackslash = 3,
  kNeedU = 4,
  kLowHex = 5,
};
uint32_t pack(uint32_t mode, uint32_t digits, uint32_t high, uint32_t value) {
  return (mode << 28) | (digits << 26) | (high << 16) | value;
}
uint32_t mode_of(uint32_t e) { return e >> 28; }
uint32_t digits_of(uint32_t e) { return (e >> 26) & 3; }
uint32_t high_of(uint32_t e) { return (e >> 16) & 1023; }
uint32_t value_of(uint32_t e) { return e & 0xFFFF; }

int hex_digit(uint8_t b) {
  if (b >= '0' && b <= '9') return b - '0';
  if (b >= 'a' && b <= 'f') return b - 'a' + 10;
  if (b >= 'A' && b <= 'F') return b - 'A' + 10;
  return -1;
}

int short_escape(uint8_t b) {
  switch (b) {
    case '"':
    case '\\':
    case '/': return b;
    case 'b': return 8;
    case 'f': return 12;
    case 'n': return 10;
    case 'r': return 13;
    case 't': return 9;
    default: return -1;
  }
}

bool may_be_raw(uint8_t b) { return b >= 0x20 && b != '"' && b != '\\'; }

}  // namespace

// Moves the state over a character whose escape was read. Only the strings that go on with this character are
// left.
bool JsonLiterals::take_codepoint(const LiteralTables& tables, LiteralSet& s, uint32_t cp) const {
  const LiteralTables::Range r = tables.with_codepoints(s, cp, cp);
  s.lo = r.lo;
  s.hi = r.hi;
  s.depth += cp < 0x80 ? 1 : cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4;
  s.escape = 0;
  return tables.normalise(s);
}

// Reads a hex digit of \uXXXX. The digits read so far stand for a range of code points. High surrogates in
// the range also stand for the characters above U+FFFF whose pairs begin with one of them: after `\uD8` only
// such characters are left.
bool JsonLiterals::step_hex(const LiteralTables& tables, LiteralSet& s, uint32_t digit) const {
  const uint32_t e = s.escape;
  const uint32_t count = digits_of(e) + 1;
  const uint32_t value = (value_of(e) << 4) | digit;
  const uint32_t shift = 4 * (4 - count);
  const int64_t first = static_cast<int64_t>(value) << shift;
  const int64_t last = first + (int64_t{1} << shift) - 1;
  if (mode_of(e) == kLowHex) {
    const int64_t base = 0x10000 + (static_cast<int64_t>(high_of(e)) << 10);
    const int64_t lo = std::max<int64_t>(first, 0xDC00), hi = std::min<int64_t>(last, 0xDFFF);
    if (lo > hi) return false;
    if (count == 4) return take_codepoint(tables, s, static_cast<uint32_t>(base + lo - 0xDC00));
    const LiteralTables::Range r = tables.with_codepoints(s, base + lo - 0xDC00, base + hi - 0xDC00);
    s.lo = r.lo;
    s.hi = r.hi;
    s.escape = pack(kLowHex, count, high_of(e), value);
    return tables.normalise(s);
  }
  // The strings go on with a code point from `first` to `last`, or with one above U+FFFF whose high surrogate
  // is in this range.
  const int64_t h0 = std::max<int64_t>(first, 0xD800), h1 = std::min<int64_t>(last, 0xDBFF);
  LiteralTables::Range astral{0, 0};
  if (h0 <= h1)
    astral =
        tables.with_codepoints(s, 0x10000 + ((h0 - 0xD800) << 10), 0x10000 + ((h1 - 0xD800) << 10) + 0x3FF);
  if (count == 4) {
    if (h0 <= h1) {
      s.lo = astral.lo;
      s.hi = astral.hi;
      s.escape = pack(kNeedBackslash, 0, static_cast<uint32_t>(h0 - 0xD800), 0);
      return tables.normalise(s);
    }
    return take_codepoint(tables, s, value);
  }
  const LiteralTables::Range plane = tables.with_codepoints(s, first, last);
  const bool p = tables.any_allowed(s, plane), a = tables.any_allowed(s, astral);
  if (!p && !a) return false;
  s.lo = p ? plane.lo : astral.lo;
  s.hi = a ? astral.hi : plane.hi;
  s.escape = pack(kHex, count, 0, value);
  return tables.normalise(s);
}

// Returns true if some string goes on with a character from `first` to `last` that can be escaped, by a
// letter (\n) or by digits.
bool JsonLiterals::any_escaped(const LiteralTables& tables, const LiteralSet& s, uint32_t first,
                               uint32_t last, bool with_letter) const {
  const auto here = [&](uint32_t c) {
    const char e = plain_escape(c);
    return e != 0 && (e != 'u' || !with_letter) && (e == 'u' || with_letter) &&
           tables.any_allowed(s, tables.with_byte(s, static_cast<uint8_t>(c)));
  };
  for (uint32_t c = first; c <= std::min<uint32_t>(last, 0x1F); ++c)
    if (here(c)) return true;
  return with_letter &&
         ((first <= '"' && '"' <= last && here('"')) || (first <= '\\' && '\\' <= last && here('\\')));
}

// Reads a digit of \u00XX. Returns false if no string goes on with such a character.
bool JsonLiterals::step_plain_hex(const LiteralTables& tables, LiteralSet& s, uint8_t byte) const {
  const int digit = byte >= 'A' && byte <= 'F' ? -1 : hex_digit(byte);
  if (digit < 0) return false;
  const uint32_t count = digits_of(s.escape) + 1;
  const uint32_t value = (value_of(s.escape) << 4) | static_cast<uint32_t>(digit);
  const uint32_t shift = 4 * (4 - count), first = value << shift;
  if (!any_escaped(tables, s, first, first + (1u << shift) - 1, false)) return false;
  if (count == 4) return take_codepoint(tables, s, value);
  s.escape = pack(kHex, count, 0, value);
  return true;
}

bool JsonLiterals::step(const LiteralTables& tables, LiteralSet& s, uint8_t byte, bool& done) const {
  done = false;
  switch (mode_of(s.escape)) {
    case kPlain: {
      if (byte == '"') {
        done = tables.table(s.table).texts[s.lo].size() == s.depth && tables.allowed(s, s.lo);
        return done;
      }
      if (byte == '\\') {
        LiteralSet t = s;
        if (tables.table(s.table).texts[t.lo].size() == t.depth)
          // The first string ends here. The one behind it tells what may follow.
          ++t.lo;
        if (!tables.normalise(t)) return false;
        const auto& text = tables.table(s.table).texts[t.lo];
        // The text read so far ends inside a character of several bytes.
        if ((static_cast<uint8_t>(text[t.depth]) & 0xC0) == 0x80) return false;
        if (plain_ && !any_escaped(tables, t, 0, '\\', true) && !any_escaped(tables, t, 0, 0x1F, false))
          return false;
        t.escape = pack(kBackslash, 0, 0, 0);
        s = t;
        return true;
      }
      if (!may_be_raw(byte)) return false;
      const LiteralTables::Range r = tables.with_byte(s, byte);
      s.lo = r.lo;
      s.hi = r.hi;
      ++s.depth;
      return tables.normalise(s);
    }
    case kBackslash: {
      if (byte == 'u') {
        if (plain_ && !any_escaped(tables, s, 0, 0x1F, false)) return false;
        s.escape = pack(kHex, 0, 0, 0);
        return true;
      }
      const int cp = plain_ && byte == '/' ? -1 : short_escape(byte);
      return cp >= 0 && take_codepoint(tables, s, static_cast<uint32_t>(cp));
    }
    case kNeedBackslash: s.escape = pack(kNeedU, 0, high_of(s.escape), 0); return byte == '\\';
    case kNeedU: s.escape = pack(kLowHex, 0, high_of(s.escape), 0); return byte == 'u';
    default: {
      if (plain_) return step_plain_hex(tables, s, byte);
      const int d = hex_digit(byte);
      return d >= 0 && step_hex(tables, s, static_cast<uint32_t>(d));
    }
  }
}

ByteSet JsonLiterals::first_bytes(const LiteralTables& tables, const LiteralSet& s) const {
  ByteSet out;
  switch (mode_of(s.escape)) {
    case kPlain: {
      const auto& texts = tables.table(s.table).texts;
      uint32_t i = s.lo;
      if (texts[i].size() == s.depth) {
        if (tables.allowed(s, i)) out.add('"');
        ++i;
      }
      // No escape begins inside a character of several bytes. The next byte of the strings shows whether the
      // text stands inside one.
      if (plain_) {
        LiteralSet after = s;
        bool done;
        if (step(tables, after, '\\', done)) out.add('\\');
      } else if (i < s.hi && (static_cast<uint8_t>(texts[i][s.depth]) & 0xC0) != 0x80 &&
                 tables.any_allowed(s, {i, s.hi})) {
        out.add('\\');
      }
      while (i < s.hi) {
        const uint8_t b = static_cast<uint8_t>(texts[i][s.depth]);
        uint32_t end = i + 1;
        if (s.hi - i > 4)
          end = tables.with_byte(s, b).hi;
        else
          while (end < s.hi && static_cast<uint8_t>(texts[end][s.depth]) == b) ++end;
        if (may_be_raw(b) && tables.any_allowed(s, {i, end})) out.add(b);
        i = end;
      }
      break;
    }
    case kNeedBackslash: out.add('\\'); break;
    case kNeedU: out.add('u'); break;
    default:
      for (uint8_t b : std::string_view("\"\\/bfnrtu0123456789aAbBcCdDeEfF")) {
        LiteralSet after = s;
        bool done;
        if (step(tables, after, b, done)) out.add(b);
      }
  }
  return out;
}

}  // namespace structgen
