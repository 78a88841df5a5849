// UTF-8 in and out: encodes a code point, decodes one, checks a string. Linear, without tables.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace structgen {

// Appends a code point as UTF-8. A surrogate is written as three bytes, which are not valid UTF-8.
inline void append_utf8(std::string& out, uint32_t cp) {
  if (cp < 0x80) {
    out += static_cast<char>(cp);
  } else if (cp < 0x800) {
    out += static_cast<char>(0xC0 | (cp >> 6));
    out += static_cast<char>(0x80 | (cp & 63));
  } else if (cp < 0x10000) {
    out += static_cast<char>(0xE0 | (cp >> 12));
    out += static_cast<char>(0x80 | ((cp >> 6) & 63));
    out += static_cast<char>(0x80 | (cp & 63));
  } else {
    out += static_cast<char>(0xF0 | (cp >> 18));
    out += static_cast<char>(0x80 | ((cp >> 12) & 63));
    out += static_cast<char>(0x80 | ((cp >> 6) & 63));
    out += static_cast<char>(0x80 | (cp & 63));
  }
}

// Returns the code point at byte i, and sets `length` to its number of bytes. If the bytes are not
// well-formed (overlong, a surrogate, above 10FFFF, cut off), `length` becomes 0.
inline uint32_t decode_utf8(std::string_view s, std::size_t i, uint32_t& length) {
  const auto at = [&](std::size_t k) { return static_cast<uint8_t>(s[i + k]); };
  const auto tail = [&](std::size_t k) { return i + k < s.size() && (at(k) & 0xC0) == 0x80; };
  length = 0;
  if (i >= s.size()) return 0;
  const uint32_t b = at(0);
  if (b < 0x80) {
    length = 1;
    return b;
  }
  if (b >= 0xC2 && b < 0xE0 && tail(1)) {
    length = 2;
    return ((b & 31) << 6) | (at(1) & 63);
  }
  if (b >= 0xE0 && b < 0xF0 && tail(1) && tail(2)) {
    const uint32_t cp = ((b & 15) << 12) | ((at(1) & 63u) << 6) | (at(2) & 63u);
    if (cp >= 0x800 && (cp < 0xD800 || cp > 0xDFFF)) length = 3;
    return cp;
  }
  if (b >= 0xF0 && b < 0xF5 && tail(1) && tail(2) && tail(3)) {
    const uint32_t cp = ((b & 7) << 18) | ((at(1) & 63u) << 12) | ((at(2) & 63u) << 6) | (at(3) & 63u);
    if (cp >= 0x10000 && cp <= 0x10FFFF) length = 4;
    return cp;
  }
  return 0;
}

inline bool valid_utf8(std::string_view s) {
  for (std::size_t i = 0; i < s.size();) {
    uint32_t n;
    decode_utf8(s, i, n);
    if (n == 0) return false;
    i += n;
  }
  return true;
}

inline uint32_t codepoint_count(std::string_view s) {
  uint32_t n = 0;
  for (char c : s) n += (static_cast<uint8_t>(c) & 0xC0) != 0x80;
  return n;
}

}  // namespace structgen
