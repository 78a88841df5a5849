#include "schema/read/loops.h"

#include "base/components.h"
#include "base/flat_map.h"

namespace structgen {

namespace {

using Edge = std::pair<uint32_t, uint32_t>;

bool cyclic(std::span<const Edge> edges) {
  FlatMap<uint32_t, uint32_t> numbers;
  const auto number = [&](uint32_t node) {
    return numbers.emplace(node, static_cast<uint32_t>(numbers.size())).first;
  };
  std::vector<std::vector<uint32_t>> next;
  for (const auto& [from, to] : edges) {
    const uint32_t at = number(from), target = number(to);
    next.resize(numbers.size());
    next[at].push_back(target);
  }
  bool out = false;
  components(next, [&](std::span<const uint32_t>, bool recursive) { out |= recursive; });
  return out;
}

}  // namespace

std::vector<uint32_t> looping_references(std::span<const uint32_t> above, std::span<const Edge> references) {
  if (references.empty()) return {};
  const uint32_t schemas = static_cast<uint32_t>(above.size());
  // top[v] is the outermost schema that applies to the same value as schema v. Schemas form a loop exactly if
  // these do.
  std::vector<uint32_t> top(schemas);
  for (uint32_t v = 0; v < schemas; ++v) top[v] = above[v] == kNotInPlace ? v : top[above[v]];
  std::vector<Edge> outermost;
  outermost.reserve(references.size());
  for (const auto& [from, to] : references) outermost.emplace_back(top[from], top[to]);
  if (!cyclic(outermost)) return {};
  std::vector<std::vector<uint32_t>> next(schemas);
  for (uint32_t v = 0; v < schemas; ++v)
    if (above[v] != kNotInPlace) next[above[v]].push_back(v);
  for (const auto& [from, to] : references) next[from].push_back(to);
  std::vector<uint32_t> component(schemas);
  uint32_t count = 0;
  components(next, [&](std::span<const uint32_t> members, bool) {
    for (uint32_t member : members) component[member] = count;
    ++count;
  });
  std::vector<uint32_t> out;
  for (uint32_t i = 0; i < references.size(); ++i)
    if (component[references[i].first] == component[references[i].second]) out.push_back(i);
  return out;
}

}  // namespace structgen
