#include "mask/suffixes.h"

#include <algorithm>
#include <array>

namespace structgen {

namespace {

// Sorts starts by the byte of their node, and a long list by counting.
class ByByte {
 public:
  explicit ByByte(const TokenTrie& trie) : trie_(trie) {}
  uint8_t byte(const SuffixStart& s) const { return static_cast<uint8_t>(trie_.node(s.node).byte); }
  void sort(SuffixStart* first, SuffixStart* last) {
    constexpr std::ptrdiff_t kFew = 32;
    if (last - first <= kFew) {
      for (SuffixStart* i = first; i < last; ++i) {
        const SuffixStart x = *i;
        SuffixStart* to = i;
        for (; to > first && byte(to[-1]) > byte(x); --to) *to = to[-1];
        *to = x;
      }
      return;
    }
    std::array<uint32_t, 257> at{};
    for (const SuffixStart* i = first; i < last; ++i) ++at[byte(*i) + 1u];
    for (std::size_t b = 1; b < at.size(); ++b) at[b] += at[b - 1];
    sorted_.resize(static_cast<std::size_t>(last - first));
    for (const SuffixStart* i = first; i < last; ++i) sorted_[at[byte(*i)]++] = *i;
    std::copy(sorted_.begin(), sorted_.end(), first);
  }

 private:
  const TokenTrie& trie_;
  std::vector<SuffixStart> sorted_;
};

// Appends a subtree that is merged with no other one. Its node gets the given depth.
void copy_subtree(const TokenTrie& trie, const SuffixStart& start, uint32_t depth, Suffixes& out) {
  const uint32_t moved = static_cast<uint32_t>(out.nodes.size()) - start.node;
  const uint32_t above = trie.node(start.node).depth - depth;
  for (uint32_t i = start.node; i < trie.node(start.node).end; ++i) {
    const TokenTrie::Node& n = trie.node(i);
    out.nodes.push_back({n.end + moved, static_cast<uint32_t>(out.entries.size()), n.depth - above,
                         static_cast<uint8_t>(n.byte)});
    out.depth = std::max(out.depth, n.depth - above);
    for (TokenId t : trie.tokens(i)) out.entries.push_back({t, start.count});
  }
}

}  // namespace

// Works depth first. `open` are the nodes of the vocabulary's trie that are still to be merged, level by
// level: the deepest level stands at the end, and in a level the smallest byte. All nodes of a level with one
// byte become one node of the endings; their children become the next level.
void build_suffixes(const TokenTrie& trie, std::vector<SuffixStart> starts, Suffixes& out) {
  ByByte by_byte(trie);
  struct Level {
    // The index in `open` at which the level begins, and the node of the endings above it.
    std::size_t first;
    uint32_t above;
  };
  constexpr uint32_t kNone = 0xFFFFFFFFu;
  std::vector<SuffixStart> open = std::move(starts);
  std::vector<Level> levels{{0, kNone}};
  const auto arrange = [&](std::size_t first) {
    by_byte.sort(open.data() + first, open.data() + open.size());
    std::reverse(open.begin() + static_cast<std::ptrdiff_t>(first), open.end());
  };
  arrange(0);
  std::vector<SuffixStart> group;
  while (!levels.empty()) {
    const Level level = levels.back();
    if (open.size() == level.first) {
      if (level.above != kNone) out.nodes[level.above].end = static_cast<uint32_t>(out.nodes.size());
      levels.pop_back();
      continue;
    }
    const uint8_t byte = by_byte.byte(open.back());
    group.clear();
    for (; open.size() > level.first && by_byte.byte(open.back()) == byte; open.pop_back())
      group.push_back(open.back());
    const uint32_t depth = static_cast<uint32_t>(levels.size());
    if (group.size() == 1) {
      copy_subtree(trie, group[0], depth, out);
      continue;
    }
    Suffixes::Node node;
    node.byte = byte;
    node.depth = depth;
    node.first = static_cast<uint32_t>(out.entries.size());
    out.depth = std::max(out.depth, node.depth);
    levels.push_back({open.size(), static_cast<uint32_t>(out.nodes.size())});
    out.nodes.push_back(node);
    for (const SuffixStart& s : group) {
      for (TokenId t : trie.tokens(s.node)) out.entries.push_back({t, s.count});
      trie.each_child(s.node, ByteSet::all(),
                      [&](uint32_t child, uint8_t) { open.push_back({child, s.count}); });
    }
    std::sort(out.entries.begin() + node.first, out.entries.end(),
              [](const Suffixes::Entry& x, const Suffixes::Entry& y) { return x.token < y.token; });
    if (open.size() > levels.back().first) arrange(levels.back().first);
  }
  Suffixes::Node sentinel;
  sentinel.first = static_cast<uint32_t>(out.entries.size());
  out.nodes.push_back(sentinel);
}

}  // namespace structgen
