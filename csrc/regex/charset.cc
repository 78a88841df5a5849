#include "regex/charset.h"

#include <algorithm>
#include <utility>

namespace structgen {

namespace {

constexpr uint32_t kSurrogateLo = 0xD800, kSurrogateHi = 0xDFFF;

// Sorts the ranges and joins those that overlap or touch.
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

// Removes the surrogates from sorted ranges that neither overlap nor touch.
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

}  // namespace structgen
