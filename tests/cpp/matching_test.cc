// schema/decide/matching.h beside all ways to give the items different values.
#include "schema/decide/matching.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "random.h"

using structgen::Matching;
using structgen_tests::Random;
using structgen_tests::times;

namespace {

struct Group {
  uint32_t count;
  std::vector<uint32_t> values;
};

// Visits every way to give the items from `item` on a value that no earlier item has. `items` holds the
// values of each item, `taken` the values that are given so far; `common` loses the values that a way does
// without.
bool any_way(const std::vector<std::vector<uint32_t>>& items, std::size_t item, uint32_t taken,
             uint32_t& common) {
  if (item == items.size()) {
    common &= taken;
    return true;
  }
  bool found = false;
  for (uint32_t v : items[item])
    if (!(taken >> v & 1)) found = any_way(items, item + 1, taken | 1u << v, common) || found;
  return found;
}

std::vector<Group> random_groups(Random& random) {
  const uint32_t values = 1 + random.below(7);
  std::vector<Group> out(1 + random.below(4));
  for (Group& g : out) {
    g.count = random.below(3);
    for (uint32_t v = 0; v < values; ++v)
      if (random.chance(60)) g.values.push_back(v);
  }
  return out;
}

std::string text(uint32_t v) { return "value " + std::to_string(v); }

}  // namespace

TEST_CASE("a matching = all ways to give items different values") {
  Random random(1);
  uint32_t matched = 0, refused = 0, forced = 0;
  for (uint32_t round = 0; round < times(3000); ++round) {
    const std::vector<Group> groups = random_groups(random);
    std::vector<std::vector<uint32_t>> items;
    for (const Group& g : groups) items.insert(items.end(), g.count, g.values);
    uint32_t common = ~0u;
    const bool expected = any_way(items, 0, 0, common);

    Matching matching([](uint32_t) {});
    const bool enough = std::ranges::all_of(groups, [&](const Group& g) {
      std::vector<std::string> texts;
      for (uint32_t v : g.values) texts.push_back(text(v));
      return matching.add(g.count, texts);
    });
    REQUIRE((enough && matching.complete()) == expected);
    ++(expected ? matched : refused);
    if (!expected) continue;
    std::vector<std::string> needed;
    for (uint32_t v = 0; v < 7; ++v)
      if (common >> v & 1 && !items.empty()) needed.push_back(text(v));
    std::vector<std::string> found = matching.needed();
    std::ranges::sort(found);
    REQUIRE(found == needed);
    forced += !needed.empty();
  }
  CHECK(std::min({matched, refused, forced}) > times(100));
}

TEST_CASE("a matching ends where its steps are used up") {
  uint32_t left = 20;
  Matching matching([&](uint32_t steps) {
    if (steps > left) throw std::runtime_error("no steps are left");
    left -= steps;
  });
  std::vector<std::string> values;
  for (uint32_t v = 0; v < 40; ++v) values.push_back(text(v));
  for (uint32_t g = 0; g < 40; ++g) REQUIRE(matching.add(1, values));
  CHECK_THROWS_AS(matching.complete(), std::runtime_error);
}
