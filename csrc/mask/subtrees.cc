#include "mask/subtrees.h"

#include <algorithm>
#include <array>

#include "mask/walk_table.h"

namespace structgen {

namespace {

// States of a reader of UTF-8 (RFC 3629): between characters, then by what the next byte may be.
enum Reader : uint8_t { kBetween, kLast, kTwo, kThree, kAfterE0, kAfterED, kAfterF0, kAfterF4, kBad };

Reader read(Reader r, uint8_t b) {
  const auto within = [&](uint8_t low, uint8_t high, Reader next) { return b >= low && b <= high ? next : kBad; };
  switch (r) {
    case kBetween:
      if (b < 0x80) return kBetween;
      if (b < 0xC2 || b > 0xF4) return kBad;
      if (b < 0xE0) return kLast;
      if (b == 0xE0) return kAfterE0;
      if (b == 0xED) return kAfterED;
      if (b < 0xF0) return kTwo;
      if (b == 0xF0) return kAfterF0;
      return b == 0xF4 ? kAfterF4 : kThree;
    case kLast: return within(0x80, 0xBF, kBetween);
    case kTwo: return within(0x80, 0xBF, kLast);
    case kThree: return within(0x80, 0xBF, kTwo);
    case kAfterE0: return within(0xA0, 0xBF, kLast);
    case kAfterED: return within(0x80, 0x9F, kLast);
    case kAfterF0: return within(0x90, 0xBF, kTwo);
    case kAfterF4: return within(0x80, 0x8F, kTwo);
    case kBad: break;
  }
  return kBad;
}

// Bytes that patterns tend to tell apart stand alone; the last group takes the rest.
constexpr const char* kAlone[] = {"\t\r", "\n", " ", "\"", "'", "\\", "/",  "*", "-", ".", "_", "0123456789",
                                  "abcdef", "ABCDEF", "ghijklmnopqrstuvwxyz", "GHIJKLMNOPQRSTUVWXYZ", "<", ">", "()", "[]",
                                  "{}", ",", ":", ";", "@", "#", "$", "+=", "`"};

constexpr std::array<Categories, 256> categories() {
  std::array<Categories, 256> out{};
  uint32_t n = 0;
  for (const char* group : kAlone) {
    for (const char* c = group; *c; ++c) out[static_cast<uint8_t>(*c)] = 1u << n;
    ++n;
  }
  for (int b = 0; b < 128; ++b)
    if (!out[b]) out[b] = 1u << n;
  for (int b = 128; b < 256; ++b) out[b] = kWide;
  return out;
}
static_assert(std::size(kAlone) < 30);
constexpr std::array<Categories, 256> kCategories = categories();

}  // namespace

Categories category(uint8_t byte) { return kCategories[byte]; }

std::vector<Categories> categories_below(const TokenTrie& trie) {
  std::vector<Categories> out(trie.size(), 0);
  std::vector<uint32_t> parents(trie.size(), 0), path{0};  // node at each depth
  std::vector<Reader> reader(trie.size(), kBetween);
  for (uint32_t i = 1; i < trie.size(); ++i) {
    const TokenTrie::Node& n = trie.node(i);
    path.resize(n.depth);
    parents[i] = path.back();
    path.push_back(i);
    reader[i] = read(reader[parents[i]], static_cast<uint8_t>(n.byte));
  }
  // Upwards: what is no UTF-8 is none wherever above one begins, and a node inside a character cannot be one to begin at.
  std::vector<bool> bad(trie.size(), false);
  for (uint32_t i = trie.size(); i-- > 1;) {
    bad[i] = bad[i] || reader[i] == kBad;
    if (bad[i]) bad[parents[i]] = true;
    out[parents[i]] |= kCategories[trie.node(i).byte] | (out[i] & ~kBroken);
    if (bad[i] || reader[i] != kBetween) out[i] |= kBroken;
  }
  if (bad[0]) out[0] |= kBroken;
  return out;
}

Categories Loops::ascii(uint32_t state) {
  Categories out = kUnknown & ~(kBroken | kWide);
  for (int b = 0; b < 128; ++b)
    if (table_.next(state, static_cast<uint8_t>(b)) != state) out &= ~kCategories[b];
  return out;
}

// Whether every character beyond ASCII leads back to the state. `inner`: the states inside those.
bool Loops::wide(uint32_t state, std::vector<uint32_t>& inner) {
  std::vector<std::pair<Reader, uint32_t>> todo{{kBetween, state}}, seen;
  while (!todo.empty()) {
    const auto [reader, at] = todo.back();
    todo.pop_back();
    for (int b = 128; b < 256; ++b) {
      const Reader next = read(reader, static_cast<uint8_t>(b));
      if (next == kBad) continue;
      const uint32_t to = table_.next(at, static_cast<uint8_t>(b));
      if (to == WalkTable::kDead || (next == kBetween && to != state)) return false;
      const std::pair<Reader, uint32_t> pair{next, to};
      if (next == kBetween || std::find(seen.begin(), seen.end(), pair) != seen.end()) continue;
      seen.push_back(pair);
      todo.push_back(pair);
      inner.push_back(to);
    }
  }
  return true;
}

}  // namespace structgen
