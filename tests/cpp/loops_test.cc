// schema/read/loops.h: the references on loops beside a search from each of them.
#include <doctest/doctest.h>

#include <vector>

#include "random.h"
#include "schema/read/loops.h"

using namespace structgen;
using structgen_tests::Random;
using structgen_tests::times;

namespace {

using Edge = std::pair<uint32_t, uint32_t>;

std::vector<uint32_t> searched(const std::vector<uint32_t>& above, const std::vector<Edge>& references) {
  std::vector<uint32_t> out;
  for (uint32_t i = 0; i < references.size(); ++i) {
    std::vector<bool> reached(above.size());
    std::vector<uint32_t> todo{references[i].second};
    reached[references[i].second] = true;
    const auto reach = [&](uint32_t v) {
      if (!reached[v]) todo.push_back(v);
      reached[v] = true;
    };
    while (!todo.empty()) {
      const uint32_t at = todo.back();
      todo.pop_back();
      for (uint32_t v = 0; v < above.size(); ++v)
        if (above[v] == at) reach(v);
      for (const auto& [from, to] : references)
        if (from == at) reach(to);
    }
    if (reached[references[i].first]) out.push_back(i);
  }
  return out;
}

}  // namespace

TEST_CASE("loops: references beside a search") {
  Random random(1);
  uint32_t looped = 0;
  for (uint32_t n = 0; n < times(20'000); ++n) {
    std::vector<uint32_t> above{kNotInPlace};
    for (uint32_t v = 1; v < 2 + random.below(8); ++v)
      above.push_back(random.chance(60) ? random.below(v) : kNotInPlace);
    const uint32_t size = static_cast<uint32_t>(above.size());
    std::vector<Edge> references;
    for (uint32_t i = random.below(5); i > 0; --i)
      references.emplace_back(random.below(size), random.below(size));
    const std::vector<uint32_t> found = looping_references(above, references);
    REQUIRE(found == searched(above, references));
    looped += !found.empty();
  }
  CHECK(looped > times(2'000));
}
