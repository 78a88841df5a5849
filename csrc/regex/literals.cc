#include "regex/literals.h"

#include <algorithm>

#include "base/sorted.h"
#include "base/utf8.h"

namespace structgen {

uint32_t LiteralTables::add(std::vector<std::string> texts) {
  sort_unique(texts);
  std::vector<std::pair<std::string, uint32_t>> entries;
  entries.reserve(texts.size());
  for (std::string& t : texts)
    if (valid_utf8(t)) entries.emplace_back(std::move(t), static_cast<uint32_t>(entries.size()));
  return add(std::move(entries));
}

// Equal tables get one number. Two schemas with the same property names then share all states.
uint32_t LiteralTables::add(std::vector<std::pair<std::string, uint32_t>> entries) {
  std::erase_if(entries, [](const auto& e) { return !valid_utf8(e.first); });
  std::stable_sort(entries.begin(), entries.end(),
                   [](const auto& x, const auto& y) { return x.first < y.first; });
  entries.erase(std::unique(entries.begin(), entries.end(),
                            [](const auto& x, const auto& y) { return x.first == y.first; }),
                entries.end());
  uint64_t h = entries.size();
  for (const auto& [text, label] : entries) h = mix(hash_bytes(text.data(), text.size(), h), label);
  return index_.find_or_add(
      h,
      [&](uint32_t id) {
        const LiteralTable& t = *tables_[id];
        if (t.texts.size() != entries.size()) return false;
        for (std::size_t i = 0; i < entries.size(); ++i)
          if (t.labels[i] != entries[i].second || t.texts[i] != entries[i].first) return false;
        return true;
      },
      [&] {
        auto t = std::make_unique<LiteralTable>();
        for (auto& [text, label] : entries) {
          bytes_ += sizeof(std::string) + text.size() + 4;
          t->texts.push_back(std::move(text));
          t->labels.push_back(label);
        }
        made_.push_back(std::move(t));
        return tables_.emplace_back(made_.back().get());
      });
}

uint32_t LiteralTables::add_subset(std::span<const uint64_t> bits) {
  uint64_t h = bits.size();
  for (uint64_t w : bits) h = mix(h, w);
  return subset_index_.find_or_add(
      h,
      [&](uint32_t id) {
        return std::equal(bits.begin(), bits.end(), subsets_[id].begin(), subsets_[id].end());
      },
      [&] {
        bytes_ += bits.size() * 8 + 24;
        subsets_.emplace_back(bits.begin(), bits.end());
        return static_cast<uint32_t>(subsets_.size() - 1);
      });
}

bool LiteralTables::allowed(const LiteralSet& s, uint32_t i) const {
  return s.subset == 0 || ((subsets_[s.subset][i >> 6] >> (i & 63)) & 1);
}

bool LiteralTables::any_allowed(const LiteralSet& s, Range r) const {
  return any_allowed(s.subset, r.lo, r.hi);
}

// Returns true if the subset allows some string from `lo` to hi - 1. The loop tests 64 strings at a time.
bool LiteralTables::any_allowed(uint32_t subset, uint32_t lo, uint32_t hi) const {
  if (lo >= hi) return false;
  if (subset == 0) return true;
  const auto& bits = subsets_[subset];
  const uint32_t first = lo >> 6, last = (hi - 1) >> 6;
  for (uint32_t w = first; w <= last; ++w) {
    uint64_t x = bits[w];
    if (w == first) x &= ~0ull << (lo & 63);
    if (w == last && (hi & 63)) x &= ~0ull >> (64 - (hi & 63));
    if (x) return true;
  }
  return false;
}

bool LiteralTables::normalise(LiteralSet& s) const {
  if (s.subset != 0) {
    while (s.lo < s.hi && !allowed(s, s.lo)) ++s.lo;
    while (s.lo < s.hi && !allowed(s, s.hi - 1)) --s.hi;
    bool full = true;
    for (uint32_t i = s.lo; i < s.hi && full; ++i) full = allowed(s, i);
    if (full) s.subset = 0;
  }
  return s.lo < s.hi;
}

uint8_t LiteralTables::inside_character(const LiteralSet& s) const {
  const std::string& text = tables_[s.table]->texts[s.lo];
  std::size_t at = s.depth;
  while (at < text.size() && (static_cast<uint8_t>(text[at]) & 0xC0) == 0x80) ++at;
  return static_cast<uint8_t>(at - s.depth);
}

// Returns the strings of s that go on with `byte`. Their first `depth` bytes are equal, so they are sorted by
// the byte that follows. A string that ends here comes first, as if -1 followed.
LiteralTables::Range LiteralTables::with_byte(const LiteralSet& s, uint8_t byte) const {
  const auto& texts = tables_[s.table]->texts;
  const auto at = [&](const std::string& t) {
    return t.size() <= s.depth ? -1 : static_cast<int>(static_cast<uint8_t>(t[s.depth]));
  };
  const auto begin = texts.begin() + s.lo, end = texts.begin() + s.hi;
  const auto lo = std::partition_point(begin, end, [&](const std::string& t) { return at(t) < byte; });
  const auto hi = std::partition_point(lo, end, [&](const std::string& t) { return at(t) <= byte; });
  return {static_cast<uint32_t>(lo - texts.begin()), static_cast<uint32_t>(hi - texts.begin())};
}

// Returns the strings of s whose next code point is between `first` and `last`, as it is between 0 and 255
// behind the escape \u00.
LiteralTables::Range LiteralTables::with_codepoints(const LiteralSet& s, int64_t first, int64_t last) const {
  const auto& texts = tables_[s.table]->texts;
  const auto at = [&](const std::string& t) -> int64_t {
    uint32_t n;
    const uint32_t cp = decode_utf8(t, s.depth, n);
    return t.size() <= s.depth ? -1 : static_cast<int64_t>(cp);
  };
  const auto begin = texts.begin() + s.lo, end = texts.begin() + s.hi;
  const auto lo = std::partition_point(begin, end, [&](const std::string& t) { return at(t) < first; });
  const auto hi = std::partition_point(lo, end, [&](const std::string& t) { return at(t) <= last; });
  return {static_cast<uint32_t>(lo - texts.begin()), static_cast<uint32_t>(hi - texts.begin())};
}

}  // namespace structgen
