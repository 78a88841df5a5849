#include "mask/node_sets.h"

#include <algorithm>

#include "base/sorted.h"

namespace structgen {

NodeSetId NodeSets::intern(const Suffixes* trie, std::span<const uint32_t> nodes) {
  if (nodes.empty()) return none();
  const auto equal = [&](uint32_t i) {
    return sets_[i].trie == trie && std::ranges::equal(sets_[i].nodes, nodes);
  };
  const auto make = [&] {
    NodeSet made{trie, pool_.copy(nodes), {}};
    with_trie(made, [&](const auto& t) {
      for (uint32_t node : nodes) made.bytes = made.bytes | t.bytes(node);
    });
    return sets_.emplace_back(made);
  };
  return NodeSetId{index_.find_or_add(hash_words(nodes, reinterpret_cast<uintptr_t>(trie)), equal, make)};
}

NodeSetId NodeSets::unite(std::vector<NodeSetId> sets) {
  sort_unique(sets);
  std::erase(sets, none());
  if (sets.size() < 2) return sets.empty() ? none() : sets[0];
  std::vector<uint32_t> all;
  for (NodeSetId id : sets) all.insert(all.end(), sets_[id.v].nodes.begin(), sets_[id.v].nodes.end());
  charge(static_cast<int64_t>(all.size() / 8));
  sort_unique(all);
  return intern(sets_[sets[0].v].trie, all);
}

}  // namespace structgen
