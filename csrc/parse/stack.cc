#include "parse/stack.h"

#include <algorithm>

#include "base/depth.h"
#include "base/work.h"

namespace structgen {

namespace {
// Below this depth unite() does not merge entries with equal tops. This bounds its recursion; the union has
// the same stacks, but shares less memory.
constexpr uint32_t kMergeDepth = 200;
}  // namespace

StackArena::StackArena() {
  nodes_.emplace_back();
  Node end;
  end.end = true;
  nodes_.emplace_back(end);
}

std::size_t StackArena::byte_size() const {
  return nodes_.byte_size() + index_.byte_size() + pool_.byte_size() + unions_.byte_size() +
         index_of_unions_.byte_size();
}

uint32_t StackArena::add(std::span<const StackEntry> entries, bool end) {
  Node n;
  n.entries = pool_.copy(entries).data();
  n.n = static_cast<uint32_t>(entries.size());
  n.end = end;
  return nodes_.emplace_back(n);
}

StackId StackArena::intern(std::span<const StackEntry> entries, bool end) {
  if (entries.empty()) return end ? StackArena::end() : none();
  if (entries.size() == 1 && !end) {
    const StackEntry& e = entries[0];
    if (uint32_t first = nodes_[e.rest.v].above; first != 0) {
      if (nodes_[first].entries->top == e.top) return StackId{first};
    } else {
      first = add(entries, end);
      nodes_[e.rest.v].above = first;
      return StackId{first};
    }
  }
  uint64_t h = end;
  for (const StackEntry& e : entries) h = mix(mix(h, e.top.v), e.rest.v);
  return StackId{index_.find_or_add(
      h,
      [&](uint32_t i) {
        const Node& n = nodes_[i];
        return n.end == end && n.n == entries.size() &&
               std::equal(entries.begin(), entries.end(), n.entries,
                          [](const StackEntry& x, const StackEntry& y) {
                            return x.top == y.top && x.rest == y.rest;
                          });
      },
      [&] { return add(entries, end); })};
}

StackId StackArena::push(Symbol top, StackId rest) {
  const StackEntry e{top, rest};
  return intern({&e, 1}, false);
}

StackId StackArena::push(std::span<const Symbol> symbols, StackId rest) {
  for (std::size_t i = symbols.size(); i-- > 0;) rest = push(symbols[i], rest);
  return rest;
}

StackId StackArena::unite(std::span<StackId> all) {
  for (std::size_t n = all.size(); n > 1; n = (n + 1) / 2) {
    for (std::size_t i = 0; i + 1 < n; i += 2) all[i / 2] = unite(all[i], all[i + 1], 0);
    if (n % 2) all[n / 2] = all[n - 1];
  }
  return all[0];
}

// Merges two sorted lists of entries. Entries with equal tops become one entry, above the union of the sets
// below them.
StackId StackArena::unite(StackId a, StackId b, uint32_t depth) {
  check_depth();
  if (a == b || b == none()) return a;
  if (a == none()) return b;
  if (b < a) std::swap(a, b);
  const uint64_t key = (static_cast<uint64_t>(a.v) << 32) | b.v;
  const auto same = [&](uint32_t i) { return unions_[i].pair == key; };
  if (uint32_t known; index_of_unions_.find(mix(0, key), same, known)) return unions_[known].set;
  std::vector<StackEntry> out;
  const auto x = entries(a), y = entries(b);
  charge(12 + 2 * static_cast<int64_t>(x.size() + y.size()));
  std::size_t i = 0, j = 0;
  while (i < x.size() || j < y.size()) {
    if (j == y.size() || (i < x.size() && x[i].top < y[j].top)) {
      out.push_back(x[i++]);
    } else if (i == x.size() || y[j].top < x[i].top) {
      out.push_back(y[j++]);
    } else if (x[i].rest == y[j].rest) {
      out.push_back(x[i++]);
      ++j;
    } else if (depth < kMergeDepth) {
      out.push_back({x[i].top, unite(x[i].rest, y[j].rest, depth + 1)});
      ++i;
      ++j;
    } else {
      // Both lists may have several entries with this top. A pair of a top and a set below it is kept once,
      // so that a union with a part of the set does not grow.
      const Symbol top = x[i].top;
      const auto first = static_cast<std::ptrdiff_t>(out.size());
      for (; i < x.size() && x[i].top == top; ++i) out.push_back(x[i]);
      for (; j < y.size() && y[j].top == top; ++j) out.push_back(y[j]);
      std::sort(out.begin() + first, out.end(),
                [](const StackEntry& p, const StackEntry& q) { return p.rest < q.rest; });
      out.erase(std::unique(out.begin() + first, out.end(),
                            [](const StackEntry& p, const StackEntry& q) { return p.rest == q.rest; }),
                out.end());
    }
  }
  const StackId result = intern(out, has_end(a) || has_end(b));
  index_of_unions_.find_or_add(mix(0, key), same, [&] { return unions_.emplace_back(Union{key, result}); });
  return result;
}

}  // namespace structgen
