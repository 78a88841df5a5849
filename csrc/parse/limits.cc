#include "parse/limits.h"

#include <algorithm>

namespace structgen {

// A set of stacks has a larger number than every set below it. So one pass in the order of the numbers is
// enough.
uint32_t StackLimits::least(StackId s) {
  for (uint32_t at = static_cast<uint32_t>(least_.size()); at <= s.v; ++at) {
    uint32_t least = kUnlimited;
    for (const StackEntry& e : stacks_.entries(StackId{at})) {
      least = std::min(least, least_[e.rest.v]);
      if (e.top.kind() == Symbol::kLimit) least = std::min(least, e.top.number());
    }
    least_.push_back(least);
  }
  return least_[s.v];
}

bool StackLimits::possible(StackId s, const Productions& productions) {
  for (uint32_t at = static_cast<uint32_t>(possible_.size()); at <= s.v; ++at) {
    bool any = false;
    for (const StackEntry& e : stacks_.entries(StackId{at})) {
      const Symbol::Kind kind = e.top.kind();
      const bool rule = kind == Symbol::kRule || kind == Symbol::kReader;
      any = any || possible_[e.rest.v] != 0 || kind == Symbol::kLimit ||
            (rule && productions.traits_of(e.top.rule_id()).limits);
    }
    possible_.push_back(any);
  }
  return possible_[s.v] != 0;
}

// Returns a set of stacks with its top entries changed. `memo` holds the results for the sets below.
StackId StackLimits::changed(StackId s, Change change, const Memo& memo) {
  const auto to = [&](StackId rest) {
    return least(rest) == kUnlimited ? rest : StackId{memo.find(rest.v)->second};
  };
  // The entries are copied, because the arena may move its own while stacks are added.
  std::vector<StackEntry> entries;
  for (const StackEntry& e : stacks_.entries(s)) entries.push_back({e.top, to(e.rest)});
  std::vector<StackId> parts{stacks_.has_end(s) ? StackArena::end() : StackArena::none()};
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const Symbol top = entries[i].top;
    const StackId rest = entries[i].rest;
    if (rest == StackArena::none()) continue;
    if (top.kind() != Symbol::kLimit) {
      parts.push_back(stacks_.push(top, rest));
    } else if (change == kWithout) {
      parts.push_back(rest);
    } else if (change == kBack) {
      parts.push_back(stacks_.push(Symbol::limit(top.number() + 1), rest));
    } else if (top.number() > 0) {
      const bool less =
          change == kBegin && std::any_of(entries.begin(), entries.end(), [&](const StackEntry& e) {
            return e.top.kind() == Symbol::kLimit && e.rest == rest && top.number() < e.top.number();
          });
      if (!less) parts.push_back(stacks_.push(Symbol::limit(top.number() - 1), rest));
    }
  }
  return stacks_.unite(parts);
}

// A loop works from the bottom of the stacks upwards. A recursion might be too deep for deep stacks.
StackId StackLimits::mapped(StackId s, Change change, Memo& memo) {
  if (least(s) == kUnlimited) return s;
  if (const auto it = memo.find(s.v); it != memo.end()) return StackId{it->second};
  std::vector<StackId> todo{s};
  while (!todo.empty()) {
    const StackId at = todo.back();
    const std::size_t before = todo.size();
    if (!memo.contains(at.v))
      for (const StackEntry& e : stacks_.entries(at))
        if (least(e.rest) != kUnlimited && !memo.contains(e.rest.v)) todo.push_back(e.rest);
    if (todo.size() > before) continue;
    todo.pop_back();
    if (!memo.contains(at.v)) memo.emplace(at.v, changed(at, change, memo).v);
  }
  return StackId{memo.find(s.v)->second};
}

}  // namespace structgen
