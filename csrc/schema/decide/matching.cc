#include "schema/decide/matching.h"

#include <algorithm>
#include <utility>

namespace structgen {

bool Matching::add(uint32_t count, const std::vector<std::string>& values) {
  if (values.size() < count) return false;
  Group g{count, {}};
  for (const std::string& v : values) {
    const auto [it, fresh] = index_.emplace(v, static_cast<uint32_t>(texts_.size()));
    if (fresh) texts_.push_back(v);
    g.values.push_back(it->second);
  }
  groups_.push_back(std::move(g));
  owner_.resize(texts_.size(), kFree);
  seen_.resize(texts_.size(), 0);
  return true;
}

// Searches for an augmenting path, depth first, with a list of (group, next value to try) in place of a
// recursion. Owners change only when the path is complete, so a path that fails needs no undoing.
bool Matching::augment(GroupId start) {
  ++round_;
  std::vector<std::pair<GroupId, uint32_t>> stack{{start, 0}};
  std::vector<ScarceId> taken;
  while (!stack.empty()) {
    auto& [g, at] = stack.back();
    if (at == groups_[g.v].values.size()) {
      stack.pop_back();
      if (!taken.empty()) taken.pop_back();
      continue;
    }
    const ScarceId v = groups_[g.v].values[at++];
    if (seen_[v.v] == round_ || owner_[v.v] == g) continue;
    seen_[v.v] = round_;
    taken.push_back(v);
    if (owner_[v.v] == kFree) {
      for (std::size_t i = taken.size(); i-- > 0;) owner_[taken[i].v] = stack[i].first;
      return true;
    }
    stack.emplace_back(owner_[v.v], 0);
  }
  return false;
}

bool Matching::complete() {
  for (GroupId g; g.v < groups_.size(); ++g.v) {
    const Group& group = groups_[g.v];
    uint32_t i = 0;
    for (ScarceId v : group.values)
      if (i < group.count && owner_[v.v] == kFree) {
        owner_[v.v] = g;
        ++i;
      }
    const uint32_t steps = static_cast<uint32_t>(group.values.size()) / 8 + 1;
    spend_(steps);
    for (; i < group.count; ++i) {
      spend_(steps);
      if (!augment(g)) return false;
    }
  }
  return true;
}

// A matching can do without a value if the value is free, or if the group that has the value can take another
// value that a matching can do without. `spare` marks these values; the loop spreads the mark from group to
// group until nothing changes.
std::vector<std::string> Matching::needed() const {
  std::vector<bool> spare(texts_.size());
  for (uint32_t v = 0; v < texts_.size(); ++v) spare[v] = owner_[v] == kFree;
  std::vector<bool> reached(groups_.size(), false);
  for (bool again = true; again;) {
    again = false;
    for (GroupId g; g.v < groups_.size(); ++g.v) {
      const std::vector<ScarceId>& values = groups_[g.v].values;
      if (reached[g.v] || std::ranges::none_of(values, [&](ScarceId v) { return spare[v.v]; })) continue;
      reached[g.v] = again = true;
      for (ScarceId v : values)
        if (owner_[v.v] == g) spare[v.v] = true;
    }
    spend_(static_cast<uint32_t>(groups_.size()));
  }
  std::vector<std::string> out;
  for (uint32_t v = 0; v < texts_.size(); ++v)
    if (!spare[v]) out.push_back(texts_[v]);
  return out;
}

}  // namespace structgen
