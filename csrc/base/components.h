// What can be reached in a graph, and its strongly connected components.
//
// In: the successors of each node. Out: the nodes that can be reached; and found(members, recursive) is
// called once for each component, after the components to which it leads. recursive: some node of it leads
// back to itself. Cost: linear; an explicit stack in place of recursion, because grammars may have chains of
// a million rules. Source: Tarjan, "Depth-first search and linear graph algorithms" (1972).
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace structgen {

// Returns which of n nodes can be reached from the nodes of `todo`. next(node, go) must call go(to) for each
// successor of the node.
template <class F>
std::vector<bool> reached(std::size_t n, std::vector<uint32_t> todo, F&& next) {
  std::vector<bool> out(n, false);
  while (!todo.empty()) {
    const uint32_t at = todo.back();
    todo.pop_back();
    if (out[at]) continue;
    out[at] = true;
    next(at, [&](uint32_t to) { todo.push_back(to); });
  }
  return out;
}

template <class F>
void components(const std::vector<std::vector<uint32_t>>& next, F&& found) {
  const uint32_t n = static_cast<uint32_t>(next.size());
  // order[n] is the time at which node n was met. low[n] is the earliest such time of an open node that n
  // reaches.
  std::vector<uint32_t> order(n, 0), low(n, 0), open;
  std::vector<bool> is_open(n, false);
  uint32_t time = 0;
  struct Frame {
    uint32_t node, edge;
  };
  std::vector<Frame> frames;
  for (uint32_t root = 0; root < n; ++root) {
    if (order[root]) continue;
    frames.push_back({root, 0});
    while (!frames.empty()) {
      const uint32_t at = frames.back().node;
      if (!order[at]) {
        order[at] = low[at] = ++time;
        open.push_back(at);
        is_open[at] = true;
      }
      if (frames.back().edge < next[at].size()) {
        const uint32_t to = next[at][frames.back().edge++];
        if (!order[to])
          frames.push_back({to, 0});
        else if (is_open[to])
          low[at] = std::min(low[at], order[to]);
        continue;
      }
      // The node reaches no node met before it that is still open. So it and all nodes above it on the stack
      // are a component.
      if (low[at] == order[at]) {
        std::size_t first = open.size() - 1;
        while (open[first] != at) --first;
        const std::span<const uint32_t> members(open.data() + first, open.size() - first);
        found(members,
              members.size() > 1 || std::find(next[at].begin(), next[at].end(), at) != next[at].end());
        for (uint32_t member : members) is_open[member] = false;
        open.resize(first);
      }
      frames.pop_back();
      if (!frames.empty()) low[frames.back().node] = std::min(low[frames.back().node], low[at]);
    }
  }
}

}  // namespace structgen
