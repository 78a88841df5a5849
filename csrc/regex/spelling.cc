// Lowers sets of code points to bytes; see spelling.h. Digit i of a spelling decides `bits` bits of the
// code point and is one byte, with a fixed prefix in front. A node of the trie is the part of the set
// in one aligned block of code points.
//
//     [U+00E9-U+00FF] in UTF-8: digits 110xxxxx 10xxxxxx; one block with the first byte C3, then A9 to BF
#include "regex/spelling.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "base/bitset.h"
#include "base/depth.h"
#include "regex/regex.h"

namespace structgen {

namespace {

using Level = SpelledDigit;

// Returns the bytes that write one digit of a code point. A hex letter has two, such as a and A.
ByteSet digit_byte(const Level& level, uint32_t digit) {
  uint32_t v = level.high | digit;
  if (!level.hex) return ByteSet::of(static_cast<uint8_t>(v));
  if (v < 10) return ByteSet::of(static_cast<uint8_t>('0' + v));
  ByteSet s = ByteSet::of(static_cast<uint8_t>('a' + v - 10));
  s.add(static_cast<uint8_t>('A' + v - 10));
  return s;
}

ByteSet digit_range(const Level& level, uint32_t lo, uint32_t hi) {
  if (!level.hex)
    return ByteSet::range(static_cast<uint8_t>(level.high | lo), static_cast<uint8_t>(level.high | hi));
  ByteSet s;
  for (uint32_t d = lo; d <= hi; ++d) s |= digit_byte(level, d);
  return s;
}

constexpr Level kUtf8Two[] = {{5, false, 0xC0, {}}, {6, false, 0x80, {}}};
constexpr Level kUtf8Three[] = {{4, false, 0xE0, {}}, {6, false, 0x80, {}}, {6, false, 0x80, {}}};
constexpr Level kUtf8Four[] = {
    {3, false, 0xF0, {}}, {6, false, 0x80, {}}, {6, false, 0x80, {}}, {6, false, 0x80, {}}};

// Builds the regex of a set of code points as a tree of digits. Subtrees with all values are shared, and
// digits with equal subtrees share a branch.
class DigitTrie {
 public:
  DigitTrie(RegexArena& arena, std::span<const Level> levels) : arena_(arena), levels_(levels) {
    for (std::size_t i = levels.size(); i-- > 0;)
      shift_[i] = static_cast<uint8_t>(shift_[i + 1] + levels[i].bits);
  }

  // Returns the regex of the code points in `ranges`. All of them are below 2^shift_[0].
  RegexId build(std::span<const CodepointRange> ranges) { return block(0, 0, ranges); }

 private:
  // Returns the regex of the members between `base` and base + 2^shift_[level] - 1, written from digit
  // `level` on. There must be at least one.
  RegexId block(std::size_t level, uint32_t base, std::span<const CodepointRange> ranges) {
    check_depth();
    if (level == levels_.size()) return RegexArena::epsilon();
    const uint32_t child_bits = shift_[level + 1];
    const uint32_t child_mask = (1u << child_bits) - 1;
    const uint32_t last = base + ((1u << shift_[level]) - 1);
    std::vector<std::pair<RegexId, ByteSet>> groups;
    // The members below `at` are written already.
    uint32_t at = base;
    while (!ranges.empty()) {
      CodepointRange r = {std::max(ranges[0].lo, at), std::min(ranges[0].hi, last)};
      if (r.lo > last) break;
      const uint32_t lo_base = r.lo & ~child_mask;
      const bool whole_first = r.lo == lo_base && (r.hi >= lo_base + child_mask);
      if (whole_first) {
        // All values from lo_base to `end` are members, so each child is full.
        const uint32_t end = (r.hi + 1) & ~child_mask;
        add(groups, full(level + 1),
            digit_range(levels_[level], (lo_base - base) >> child_bits, ((end - 1) - base) >> child_bits));
        at = end;
      } else {
        add(groups, block(level + 1, lo_base, ranges),
            digit_byte(levels_[level], (lo_base - base) >> child_bits));
        at = lo_base + child_mask + 1;
      }
      while (!ranges.empty() && ranges[0].hi < at) ranges = ranges.subspan(1);
      if (at > last) break;
    }
    return join(level, groups);
  }

  // Returns the regex of all values of the digits from `level` on.
  RegexId full(std::size_t level) {
    RegexId r = RegexArena::epsilon();
    for (std::size_t i = levels_.size(); i-- > level;) {
      r = arena_.cat(arena_.bytes(digit_range(levels_[i], 0, (1u << levels_[i].bits) - 1)), r);
      r = with_prefix(i, r);
    }
    return r;
  }

  static void add(std::vector<std::pair<RegexId, ByteSet>>& groups, RegexId rest, const ByteSet& bytes) {
    for (auto& [r, set] : groups)
      if (r == rest) {
        set |= bytes;
        return;
      }
    groups.emplace_back(rest, bytes);
  }

  RegexId join(std::size_t level, const std::vector<std::pair<RegexId, ByteSet>>& groups) {
    if (groups.size() == 1)
      return with_prefix(level, arena_.cat(arena_.bytes(groups[0].second), groups[0].first));
    std::vector<RegexId> parts;
    parts.reserve(groups.size());
    for (const auto& [rest, bytes] : groups) parts.push_back(arena_.cat(arena_.bytes(bytes), rest));
    return with_prefix(level, arena_.alt(parts));
  }

  RegexId with_prefix(std::size_t level, RegexId r) {
    const std::string_view prefix = levels_[level].prefix;
    for (std::size_t i = prefix.size(); i-- > 0;) {
      ByteSet s = ByteSet::of(static_cast<uint8_t>(prefix[i]));
      if (prefix[i] == 'U') {
        s = ByteSet::of('d');
        s.add('D');
      }
      r = arena_.cat(arena_.bytes(s), r);
    }
    return r;
  }

  RegexArena& arena_;
  std::span<const Level> levels_;
  // shift_[i] is the number of bits of the digits from index i on.
  std::array<uint8_t, 8> shift_{};
};

}  // namespace

RegexId spell_digits(RegexArena& arena, std::span<const SpelledDigit> digits,
                     std::span<const CodepointRange> ranges) {
  return DigitTrie(arena, digits).build(ranges);
}

RegexId utf8_class(RegexArena& arena, const CodepointSet& set) {
  std::vector<RegexId> parts;
  ByteSet ascii;
  for (const CodepointRange r : set.slice(0, 0x7F, 0))
    ascii |= ByteSet::range(static_cast<uint8_t>(r.lo), static_cast<uint8_t>(r.hi));
  if (ascii.any()) parts.push_back(arena.bytes(ascii));
  const auto add = [&](std::span<const Level> digits, uint32_t lo, uint32_t hi) {
    if (const auto ranges = set.slice(lo, hi, 0); !ranges.empty())
      parts.push_back(spell_digits(arena, digits, ranges));
  };
  add(kUtf8Two, 0x80, 0x7FF);
  add(kUtf8Three, 0x800, 0xFFFF);
  add(kUtf8Four, 0x10000, kMaxCodepoint);
  return arena.alt(parts);
}

const Spelling kUtf8{utf8_class};

RegexId any_character(RegexArena& arena, const Spelling& spelling) {
  if (spelling.end >= 0 && &spelling == &arena.spelling()) return arena.any_character();
  return spelling.characters(arena, CodepointSet::all());
}

RegexId any_text(RegexArena& arena, const Spelling& spelling) {
  return arena.star(any_character(arena, spelling));
}

RegexId any_body(RegexArena& arena, const Spelling& spelling) {
  return arena.cat(any_text(arena, spelling), end_of(arena, spelling));
}

RegexId end_of(RegexArena& arena, const Spelling& spelling) {
  return spelling.end < 0 ? RegexArena::epsilon() : arena.byte(static_cast<uint8_t>(spelling.end));
}

std::string written(std::string_view text, const Spelling& spelling) {
  return spelling.write ? spelling.write(text) : std::string(text);
}

}  // namespace structgen
