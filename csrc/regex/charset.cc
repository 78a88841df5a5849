// See charset.h. Digit i contributes `bits` bits of the code point as one byte, after an optional fixed
// prefix. A node of the trie is the set restricted to one aligned block.
#include "regex/charset.h"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>
#include <utility>

#include "base/bitset.h"
#include "base/depth.h"
#include "regex/regex.h"
#include "regex/spelling.h"

namespace structgen {

namespace {

constexpr uint32_t kSurrogateLo = 0xD800, kSurrogateHi = 0xDFFF;

// ---- sets ----

void normalize(std::vector<CodepointRange>& ranges) {
  std::sort(ranges.begin(), ranges.end(), [](auto& a, auto& b) { return a.lo < b.lo; });
  std::size_t out = 0;
  for (const CodepointRange r : ranges) {
    if (r.lo > r.hi) continue;
    if (out > 0 && r.lo <= ranges[out - 1].hi + 1) {
      ranges[out - 1].hi = std::max(ranges[out - 1].hi, r.hi);
    } else {
      ranges[out++] = r;
    }
  }
  ranges.resize(out);
}

// Cuts the surrogates out; input normalised.
void drop_surrogates(std::vector<CodepointRange>& ranges) {
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    CodepointRange r = ranges[i];
    if (r.hi < kSurrogateLo || r.lo > kSurrogateHi) continue;
    ranges.erase(ranges.begin() + static_cast<std::ptrdiff_t>(i));
    if (r.hi > kSurrogateHi)
      ranges.insert(ranges.begin() + static_cast<std::ptrdiff_t>(i), {kSurrogateHi + 1, r.hi});
    if (r.lo < kSurrogateLo)
      ranges.insert(ranges.begin() + static_cast<std::ptrdiff_t>(i), {r.lo, kSurrogateLo - 1});
  }
}

// ---- lowering ----

using Level = SpelledDigit;

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

class DigitTrie {
 public:
  DigitTrie(RegexArena& arena, std::span<const Level> levels) : arena_(arena), levels_(levels) {
    for (std::size_t i = levels.size(); i-- > 0;)
      shift_[i] = static_cast<uint8_t>(shift_[i + 1] + levels[i].bits);
  }

  // The members of `ranges` (values below 2^shift_[0]) in digit order.
  RegexId build(std::span<const CodepointRange> ranges) { return block(0, 0, ranges); }

 private:
  // Members inside the block [base, base + 2^shift_[level]), spelled from `level` on; not empty.
  RegexId block(std::size_t level, uint32_t base, std::span<const CodepointRange> ranges) {
    check_depth();
    if (level == levels_.size()) return RegexArena::epsilon();
    const uint32_t child_bits = shift_[level + 1];
    const uint32_t child_mask = (1u << child_bits) - 1;
    const uint32_t last = base + ((1u << shift_[level]) - 1);
    std::vector<std::pair<RegexId, ByteSet>> groups;
    uint32_t at = base;  // everything below is handled
    while (!ranges.empty()) {
      CodepointRange r = {std::max(ranges[0].lo, at), std::min(ranges[0].hi, last)};
      if (r.lo > last) break;
      const uint32_t lo_base = r.lo & ~child_mask;
      const bool whole_first = r.lo == lo_base && (r.hi >= lo_base + child_mask);
      if (whole_first) {
        const uint32_t end = (r.hi + 1) & ~child_mask;  // the children in [lo_base, end) are full
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
  std::array<uint8_t, 8> shift_{};  // shift_[i] = sum of bits of levels i.. = log2 of a block of level i
};

}  // namespace

CodepointSet::CodepointSet(std::vector<CodepointRange> ranges) : ranges_(std::move(ranges)) {
  normalize(ranges_);
  drop_surrogates(ranges_);
}

CodepointSet CodepointSet::all() { return CodepointSet{{0, kMaxCodepoint}}; }

bool CodepointSet::contains(uint32_t c) const {
  auto it = std::upper_bound(ranges_.begin(), ranges_.end(), c,
                             [](uint32_t v, const CodepointRange& r) { return v < r.lo; });
  return it != ranges_.begin() && c <= std::prev(it)->hi;
}

uint64_t CodepointSet::size() const {
  uint64_t n = 0;
  for (const CodepointRange r : ranges_) n += r.hi - r.lo + 1;
  return n;
}

bool CodepointSet::single(uint32_t& c) const {
  if (ranges_.size() != 1 || ranges_[0].lo != ranges_[0].hi) return false;
  c = ranges_[0].lo;
  return true;
}

CodepointSet CodepointSet::complement() const {
  std::vector<CodepointRange> out;
  uint32_t at = 0;
  for (const CodepointRange r : ranges_) {
    if (r.lo > at) out.push_back({at, r.lo - 1});
    at = r.hi + 1;
  }
  if (at <= kMaxCodepoint) out.push_back({at, kMaxCodepoint});
  return CodepointSet(std::move(out));
}

CodepointSet operator|(const CodepointSet& a, const CodepointSet& b) {
  std::vector<CodepointRange> out = a.ranges_;
  out.insert(out.end(), b.ranges_.begin(), b.ranges_.end());
  return CodepointSet(std::move(out));
}

CodepointSet operator&(const CodepointSet& a, const CodepointSet& b) {
  std::vector<CodepointRange> out;
  for (std::size_t i = 0, j = 0; i < a.ranges_.size() && j < b.ranges_.size();) {
    const uint32_t lo = std::max(a.ranges_[i].lo, b.ranges_[j].lo);
    const uint32_t hi = std::min(a.ranges_[i].hi, b.ranges_[j].hi);
    if (lo <= hi) out.push_back({lo, hi});
    (a.ranges_[i].hi < b.ranges_[j].hi) ? ++i : ++j;
  }
  return CodepointSet(std::move(out));
}

CodepointSet operator-(const CodepointSet& a, const CodepointSet& b) { return a & b.complement(); }

std::vector<CodepointRange> CodepointSet::slice(uint32_t lo, uint32_t hi, uint32_t offset) const {
  auto it = std::lower_bound(ranges_.begin(), ranges_.end(), lo,
                             [](const CodepointRange& r, uint32_t v) { return r.hi < v; });
  std::vector<CodepointRange> out;
  for (; it != ranges_.end() && it->lo <= hi; ++it)
    out.push_back({std::max(it->lo, lo) - offset, std::min(it->hi, hi) - offset});
  return out;
}

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

// ---- spellings ----

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
