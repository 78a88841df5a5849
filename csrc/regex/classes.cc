#include "regex/classes.h"

#include <algorithm>

namespace structgen {

namespace {
constexpr int kSingleBytes = 4;
// Returns the rank of a byte in searches for a shortest text; low ranks are tried first. First comes the
// closing quote of a JSON string, then letters and digits, then other bytes. Escapes and characters of
// several bytes come last, because each opens many more states.
uint8_t search_rank(int b) {
  if (b == '"') return 0;
  if ((b >= '0' && b <= '9') || (b >= 'a' && b <= 'z') || (b >= 'A' && b <= 'Z')) return 1;
  return b == '\\' ? 3 : b >= 0x80 ? 4 : 2;
}
}  // namespace

const uint8_t* ClassMap::search_order() const {
  if (!ordered_) {
    uint8_t best[256];
    std::fill(std::begin(best), std::end(best), uint8_t{9});
    for (int b = 0; b < 256; ++b) best[of[b]] = std::min(best[of[b]], search_rank(b));
    std::copy(rep, rep + n, order_);
    std::stable_sort(order_, order_ + n, [&](uint8_t x, uint8_t y) { return best[of[x]] < best[of[y]]; });
    ordered_ = true;
  }
  return order_;
}

ClassMaps::ClassMaps() {
  uint16_t raw[256] = {};
  one_ = intern(raw);
}

// Numbers the classes by their smallest bytes, and returns the arena's partition that is equal. Neighbouring
// bytes often have equal raw numbers, so a stretch of them is looked up once.
const ClassMap* ClassMaps::intern(const uint16_t (&raw)[256]) {
  ClassMap map;
  uint16_t key[256];
  uint16_t last_raw = raw[0], last_class = 0;
  key[0] = raw[0];
  map.n = 1;
  map.rep[0] = 0;
  map.of[0] = 0;
  for (int b = 1; b < 256; ++b) {
    if (raw[b] != last_raw) {
      uint16_t c = 0;
      while (c < map.n && key[c] != raw[b]) ++c;
      if (c == map.n) {
        key[map.n] = raw[b];
        map.rep[map.n] = static_cast<uint8_t>(b);
        ++map.n;
      }
      last_raw = raw[b];
      last_class = c;
    }
    map.of[b] = static_cast<uint8_t>(last_class);
  }
  const uint64_t h = hash_bytes(reinterpret_cast<const char*>(map.of), 256, 7);
  const uint32_t id = index_.find_or_add(
      h, [&](uint32_t i) { return std::memcmp(maps_[i]->of, map.of, 256) == 0; },
      [&] {
        map.id = static_cast<uint32_t>(maps_.size());
        maps_.push_back(std::make_unique<ClassMap>(map));
        return map.id;
      });
  return maps_[id].get();
}

const ClassMap* ClassMaps::of_set(const ByteSet& set) {
  uint16_t raw[256];
  for (int b = 0; b < 256; ++b) raw[b] = set.has(static_cast<uint8_t>(b));
  return intern(raw);
}

const ClassMap* ClassMaps::of_byte(uint8_t b) {
  if (!by_byte_[b]) by_byte_[b] = of_set(ByteSet::of(b));
  return by_byte_[b];
}

// For a few bytes, refining known partitions is faster than numbering all 256 bytes.
const ClassMap* ClassMaps::each(const ByteSet& set) {
  if (set.count() <= kSingleBytes) {
    const ClassMap* out = one_;
    set.for_each([&](uint8_t b) { out = product(out, of_byte(b)); });
    return out;
  }
  uint16_t raw[256] = {};
  set.for_each([&](uint8_t b) { raw[b] = static_cast<uint16_t>(b + 1); });
  return intern(raw);
}

const ClassMap* ClassMaps::product(const ClassMap* a, const ClassMap* b) {
  if (a == b || b == one_) return a;
  if (a == one_) return b;
  if (a->id > b->id) std::swap(a, b);
  const uint64_t key = (static_cast<uint64_t>(a->id) << 32) | b->id;
  if (const ClassMap* const* known = products_.find(key)) return *known;
  uint16_t raw[256];
  // A partition has at most 256 classes, so a->of * 256 + b->of fits into 16 bits.
  for (int i = 0; i < 256; ++i) raw[i] = static_cast<uint16_t>(a->of[i] * 256 + b->of[i]);
  const ClassMap* out = intern(raw);
  products_.emplace(key, out);
  return out;
}

}  // namespace structgen
