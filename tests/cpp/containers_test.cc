// base/: every container beside the standard library's under random operations; limits that pass through
// told().
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/arena.h"
#include "base/bitset.h"
#include "base/column.h"
#include "base/components.h"
#include "base/flat_map.h"
#include "base/intern.h"
#include "base/small_vector.h"
#include "base/told.h"
#include "base/utf8.h"
#include "random.h"

using namespace structgen;
using structgen_tests::Random;
using structgen_tests::times;

namespace {

// `keys`: how many different ones; `stride` puts them into few home slots or many.
void flat_map_beside_the_standard_one(uint64_t seed, uint32_t keys, uint64_t stride) {
  Random random(seed);
  FlatMap<uint64_t, uint32_t> map;
  std::unordered_map<uint64_t, uint32_t> model;
  for (int step = 0; step < 4000; ++step) {
    const uint64_t key = random.below(keys) * stride;
    const uint32_t value = random.below(1000);
    switch (random.below(8)) {
      case 0:
      case 1:
      case 2: {
        const auto [entry, fresh] = map.emplace(key, value);
        const auto [expected, expected_fresh] = model.emplace(key, value);
        REQUIRE(fresh == expected_fresh);
        REQUIRE(entry == expected->second);
        break;
      }
      case 3: map[key] = model[key] = value; break;
      case 4:
      case 5:
      case 6:
        map.erase(key);
        model.erase(key);
        break;
      default:
        if (random.below(500) == 0) {
          map.clear();
          model.clear();
        }
    }
    REQUIRE(map.size() == model.size());
    const uint64_t asked = random.below(keys) * stride;
    const uint32_t* const found = map.find(asked);
    const auto expected = model.find(asked);
    REQUIRE((found != nullptr) == (expected != model.end()));
    if (found) REQUIRE(*found == expected->second);
  }
  for (uint32_t k = 0; k < keys; ++k) {
    const uint32_t* const found = map.find(k * stride);
    REQUIRE((found != nullptr) == model.contains(k * stride));
    if (found) REQUIRE(*found == model[k * stride]);
  }
}

}  // namespace

TEST_CASE("FlatMap = std::unordered_map, erasures included") {
  for (uint32_t seed = 0; seed < times(40); ++seed)
    for (const uint32_t keys : {3u, 17u, 200u, 3000u})
      flat_map_beside_the_standard_one(seed, keys, seed % 2 ? 1 : uint64_t{1} << 32);
}

// The numbers of Fibonacci, each from two others of the same map, so the map grows while a value is made.
TEST_CASE("FlatMap::remember makes a value once, beside the values that it is made of") {
  FlatMap<uint64_t, uint32_t> map;
  uint32_t made = 0;
  const std::function<uint32_t(uint64_t)> fibonacci = [&](uint64_t n) -> uint32_t {
    return map.remember(n, [&] {
      ++made;
      return n < 2 ? static_cast<uint32_t>(n) : fibonacci(n - 1) + fibonacci(n - 2);
    });
  };
  REQUIRE(fibonacci(40) == 102'334'155);
  REQUIRE(fibonacci(40) == 102'334'155);
  REQUIRE(made == 41);
  REQUIRE(map.size() == 41);
  REQUIRE_THROWS(map.remember(50, []() -> uint32_t { throw 1; }));
  REQUIRE(map.find(50) == nullptr);
}

TEST_CASE("InternTable gives equal values one id, whatever their hashes and however it grows") {
  for (uint32_t seed = 0; seed < times(20); ++seed) {
    Random random(seed);
    const uint64_t mask = seed % 3 == 0 ? 7 : seed % 3 == 1 ? ~uint64_t{0} : uint64_t{0xFF} << 32 | 0x3;
    InternTable table;
    std::vector<uint64_t> values;
    std::map<uint64_t, uint32_t> model;
    const uint32_t range = seed % 3 == 1 ? 20'000 : 700;
    for (uint32_t step = 0; step < 3 * range; ++step) {
      const uint64_t value = random.below(range);
      const uint64_t hash = mix(0, value) & mask;
      uint32_t id = 0;
      const auto equal = [&](uint32_t i) { return values[i] == value; };
      const bool known = table.find(hash, equal, id);
      REQUIRE(known == model.contains(value));
      if (known) REQUIRE(id == model[value]);
      const uint32_t added = table.number(hash, values, value);
      REQUIRE(model.emplace(value, added).first->second == added);
    }
    REQUIRE(values.size() == model.size());
  }
}

TEST_CASE("hash_bytes and hash_words depend on every part and on the length") {
  Random random(1);
  for (uint32_t round = 0; round < times(300); ++round) {
    std::string text(1 + random.below(40), '\0');
    for (char& c : text) c = static_cast<char>(random.bits());
    std::string other = text;
    other[random.below(static_cast<uint32_t>(other.size()))] ^= static_cast<char>(1 << random.below(8));
    CHECK(hash_bytes(text.data(), text.size(), 3) != hash_bytes(other.data(), other.size(), 3));
    CHECK(hash_bytes(text.data(), text.size(), 3) != hash_bytes(text.data(), text.size() - 1, 3));
    CHECK(hash_bytes(text.data(), text.size(), 3) == hash_bytes(std::string(text).data(), text.size(), 3));
  }
}

TEST_CASE("StableVector: elements stay where they are, and new ones are zero") {
  struct Element {
    uint32_t a, b;
  };
  StableVector<Element, 2> vector;
  std::vector<const Element*> places;
  const uint32_t n = 200'000;
  for (uint32_t i = 0; i < n; ++i) {
    REQUIRE(vector.size() == i);
    REQUIRE((i % 2 ? vector.emplace_back(Element{i, i * 7}) : vector.emplace_back()) == i);
    places.push_back(&vector[i]);
  }
  for (uint32_t i = 0; i < n; ++i) {
    REQUIRE(&vector[i] == places[i]);
    REQUIRE(vector[i].a == (i % 2 ? i : 0));
    REQUIRE(vector[i].b == (i % 2 ? i * 7 : 0));
  }
  CHECK(vector.byte_size() >= n * sizeof(Element));
  CHECK(vector.byte_size() <= 3 * n * sizeof(Element));
}

TEST_CASE("StableVector: one thread appends while others read what was published") {
  StableVector<uint64_t> vector;
  std::atomic<uint32_t> published{0};
  const uint32_t n = 60'000;
  std::atomic<uint64_t> wrong{0};
  std::vector<std::thread> readers;
  for (int r = 0; r < 3; ++r)
    readers.emplace_back([&, r] {
      Random random(static_cast<uint64_t>(r));
      for (uint32_t size = 0; size < n;) {
        size = published.load(std::memory_order_acquire);
        if (size == 0) continue;
        const uint32_t i = random.below(size);
        if (vector[i] != uint64_t{i} * 3) ++wrong;
      }
    });
  for (uint32_t i = 0; i < n; ++i) {
    vector.emplace_back(uint64_t{i} * 3);
    published.store(i + 1, std::memory_order_release);
  }
  for (std::thread& t : readers) t.join();
  CHECK(wrong == 0);
}

TEST_CASE("BumpPool: spans are aligned, apart from each other and keep what was written") {
  Random random(5);
  BumpPool pool;
  std::vector<std::pair<std::span<const uint32_t>, uint32_t>> spans;
  std::size_t bytes = 0;
  for (uint32_t i = 0; i < 3000; ++i) {
    const std::size_t n = random.chance(2) ? 20'000 + random.below(20'000) : random.below(60);
    const std::vector<uint32_t> values(n, i);
    const std::span<const uint32_t> kept = pool.copy(std::span<const uint32_t>(values));
    REQUIRE(kept.size() == n);
    if (n == 0) continue;
    REQUIRE(reinterpret_cast<uintptr_t>(kept.data()) % alignof(uint32_t) == 0);
    REQUIRE(reinterpret_cast<uintptr_t>(pool.allocate<uint64_t>(i % 3)) % alignof(uint64_t) == 0);
    bytes += n * sizeof(uint32_t);
    spans.emplace_back(kept, i);
  }
  for (const auto& [span, value] : spans)
    REQUIRE(std::ranges::all_of(span, [v = value](uint32_t x) { return x == v; }));
  CHECK(pool.byte_size() >= bytes);
}

TEST_CASE("SmallVector = std::vector") {
  for (uint32_t seed = 0; seed < times(50); ++seed) {
    Random random(seed);
    SmallVector<uint32_t, 4> small;
    std::vector<uint32_t> model;
    for (int step = 0; step < 400; ++step) {
      const uint32_t value = random.below(100);
      switch (random.below(12)) {
        case 0:
          small.clear();
          model.clear();
          break;
        case 1:
        case 2:
          if (model.empty()) break;
          small.pop_back();
          model.pop_back();
          break;
        case 3: {
          std::sort(small.begin(), small.end());
          small.shrink(std::unique(small.begin(), small.end()));
          std::sort(model.begin(), model.end());
          model.erase(std::unique(model.begin(), model.end()), model.end());
          break;
        }
        default: small.push_back(value); model.push_back(value);
      }
      REQUIRE(small.size() == model.size());
      REQUIRE(small.empty() == model.empty());
      REQUIRE(std::equal(small.begin(), small.end(), model.begin(), model.end()));
      if (!model.empty()) REQUIRE(small.back() == model.back());
    }
  }
}

TEST_CASE("ByteSet = std::set of bytes") {
  for (uint32_t seed = 0; seed < times(300); ++seed) {
    Random random(seed);
    const auto draw = [&](std::set<int>& model) {
      ByteSet set;
      const uint32_t n = random.below(3) == 0 ? 0 : random.below(300);
      for (uint32_t i = 0; i < n; ++i) {
        const auto b = static_cast<uint8_t>(random.below(256));
        set.add(b);
        model.insert(b);
      }
      for (uint32_t i = 0; i < n / 4; ++i) {
        const auto b = static_cast<uint8_t>(random.below(256));
        set.remove(b);
        model.erase(b);
      }
      return set;
    };
    std::set<int> a, b;
    const ByteSet x = draw(a), y = draw(b);
    const auto same = [](const ByteSet& set, const auto& in) {
      std::vector<int> seen, expected;
      set.for_each([&](uint8_t c) { seen.push_back(c); });
      for (int c = 0; c < 256; ++c) {
        if (!in(c)) continue;
        expected.push_back(c);
      }
      REQUIRE(seen == expected);
      for (int c = 0; c < 256; ++c) REQUIRE(set.has(static_cast<uint8_t>(c)) == in(c));
      REQUIRE(set.count() == static_cast<int>(expected.size()));
      REQUIRE(set.none() == expected.empty());
      REQUIRE(set.first() == (expected.empty() ? 256 : expected[0]));
    };
    same(x, [&](int c) { return a.contains(c); });
    same(x & y, [&](int c) { return a.contains(c) && b.contains(c); });
    same(x | y, [&](int c) { return a.contains(c) || b.contains(c); });
    same(~x, [&](int c) { return !a.contains(c); });
    REQUIRE((x == y) == (a == b));
    const int lo = static_cast<int>(random.below(256)), hi = static_cast<int>(random.below(256));
    same(ByteSet::range(static_cast<uint8_t>(lo), static_cast<uint8_t>(hi)),
         [&](int c) { return lo <= c && c <= hi; });
  }
}

TEST_CASE("components = who reaches whom, those that a component leads to first") {
  for (uint32_t seed = 0; seed < times(400); ++seed) {
    Random random(seed);
    const uint32_t n = random.below(12);
    std::vector<std::vector<uint32_t>> next(n);
    std::vector<std::vector<bool>> reach(n, std::vector<bool>(n, false));
    for (uint32_t i = 0; i < n; ++i)
      for (uint32_t k = random.below(4); k > 0; --k) {
        next[i].push_back(random.below(n));
        reach[i][next[i].back()] = true;
      }
    for (uint32_t k = 0; k < n; ++k)
      for (uint32_t i = 0; i < n; ++i)
        for (uint32_t j = 0; j < n; ++j)
          if (reach[i][k] && reach[k][j]) reach[i][j] = true;
    std::vector<uint32_t> number(n, n);
    uint32_t found = 0;
    components(next, [&](std::span<const uint32_t> members, bool recursive) {
      for (const uint32_t m : members) {
        REQUIRE(number[m] == n);  // each node once
        number[m] = found;
        REQUIRE(recursive == reach[m][m]);
      }
      ++found;
    });
    for (uint32_t i = 0; i < n; ++i)
      for (uint32_t j = 0; j < n; ++j) {
        REQUIRE((number[i] == number[j]) == (i == j || (reach[i][j] && reach[j][i])));
        if (reach[i][j]) REQUIRE(number[j] <= number[i]);
      }
  }
  std::vector<std::vector<uint32_t>> chain(300'000);  // no recursion
  for (uint32_t i = 0; i + 1 < chain.size(); ++i) chain[i].push_back(i + 1);
  uint32_t found = 0;
  components(chain, [&](std::span<const uint32_t>, bool) { ++found; });
  CHECK(found == chain.size());
}

namespace {
// Table 3-7 of the Unicode standard: what may follow a first byte. Length 0: not well-formed.
uint32_t well_formed_length(const std::vector<uint8_t>& s) {
  struct Row {
    int lo, hi, second_lo, second_hi;
    uint32_t length;
  };
  constexpr Row rows[] = {
      {0x00, 0x7F, 0, 0, 1},       {0xC2, 0xDF, 0x80, 0xBF, 2}, {0xE0, 0xE0, 0xA0, 0xBF, 3},
      {0xE1, 0xEC, 0x80, 0xBF, 3}, {0xED, 0xED, 0x80, 0x9F, 3}, {0xEE, 0xEF, 0x80, 0xBF, 3},
      {0xF0, 0xF0, 0x90, 0xBF, 4}, {0xF1, 0xF3, 0x80, 0xBF, 4}, {0xF4, 0xF4, 0x80, 0x8F, 4}};
  for (const Row& row : rows) {
    if (s.empty() || s[0] < row.lo || s[0] > row.hi) continue;
    if (s.size() < row.length) return 0;
    if (row.length > 1 && (s[1] < row.second_lo || s[1] > row.second_hi)) return 0;
    for (uint32_t k = 2; k < row.length; ++k)
      if (s[k] < 0x80 || s[k] > 0xBF) return 0;
    return row.length;
  }
  return 0;
}
}  // namespace

TEST_CASE("UTF-8: every code point and back, and nothing that is not well-formed") {
  for (uint32_t cp = 0; cp <= 0x10FFFF; ++cp) {
    if (cp == 0xD800) cp = 0xE000;
    std::string text;
    append_utf8(text, cp);
    uint32_t length = 0;
    REQUIRE(decode_utf8(text, 0, length) == cp);
    REQUIRE(length == text.size());
  }
  Random random(9);
  constexpr uint8_t kEdges[] = {0x00, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC1, 0xC2, 0xDF, 0xE0,
                                0xE1, 0xEC, 0xED, 0xEE, 0xEF, 0xF0, 0xF1, 0xF3, 0xF4, 0xF5, 0xF8, 0xFF};
  for (uint32_t round = 0; round < times(200'000); ++round) {
    std::vector<uint8_t> bytes(random.below(6));
    for (uint8_t& b : bytes)
      b = random.chance(80) ? kEdges[random.below(std::size(kEdges))]
                            : static_cast<uint8_t>(random.below(256));
    const std::string text(bytes.begin(), bytes.end());
    uint32_t length = 7;
    decode_utf8(text, 0, length);
    REQUIRE(length == well_formed_length(bytes));
    bool valid = true;
    for (std::vector<uint8_t> rest = bytes; valid && !rest.empty();) {
      const uint32_t n = well_formed_length(rest);
      valid = n > 0;
      rest.erase(rest.begin(), rest.begin() + n);
    }
    REQUIRE(valid_utf8(text) == valid);
  }
}

TEST_CASE("Column: its own values, or those of somebody else") {
  Column<uint32_t> column;
  CHECK(column.size() == 0);
  column.own({1, 2, 3});
  CHECK(std::ranges::equal(column.all(), std::vector<uint32_t>{1, 2, 3}));
  const std::vector<uint32_t> elsewhere = {7, 8};
  column.view(elsewhere);
  CHECK(column.data() == elsewhere.data());
  CHECK(column.size() == 2);
  CHECK(column.byte_size() == 8);
  column.own({5});
  CHECK(column[0] == 5);
}

TEST_CASE("told: a scope whose work is used up throws its own error") {
  const auto meets_another = [] { throw Error(ErrorKind::kBudgetExceeded, "no completion was found"); };
  {
    const WorkScope enough(Task::kMask, 10 * kLimitWork);
    CHECK(!told_with_work_left(meets_another));
  }
  const WorkScope little(Task::kMask, kLimitWork / 2);
  std::string said;
  try {
    told_with_work_left(meets_another);
  } catch (const Error& e) {
    said = e.what();
  }
  CHECK(said.starts_with("this mask takes more than 100 units of work"));
}
