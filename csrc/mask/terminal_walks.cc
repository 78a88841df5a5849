#include "mask/terminal_walks.h"

#include <algorithm>

#include "base/small_vector.h"
#include "base/work.h"

namespace structgen {

namespace {

// The two kinds of tries, as the walk sees them: the children of a node by byte, the tokens at a node, and
// whether a node is a leaf.
struct VocabularyTrie {
  const TokenTrie& trie;
  template <class F>
  void each_child(uint32_t node, const ByteSet& bytes, F&& f) const {
    const TokenTrie::Kids& kids = trie.kids(node);
    (kids.set & bytes).for_each([&](uint8_t b) { f(trie.child(kids, b), b); });
  }
  template <class F>
  void each_token(uint32_t node, F&& f) const {
    for (TokenId t : trie.tokens(node)) f(Suffixes::Entry{t, 0});
  }
  template <class F>
  void each_token_below(uint32_t node, F&& f) const {
    for (TokenId t : trie.subtree_tokens(node).subspan(trie.tokens(node).size())) f(Suffixes::Entry{t, 0});
  }
  bool leaf(uint32_t node) const { return trie.leaf(node); }
};

struct EndingsTrie {
  const Suffixes& trie;
  template <class F>
  void each_child(uint32_t node, const ByteSet& bytes, F&& f) const {
    for (uint32_t i = first(node); i < end(node); i = trie.nodes[i].end)
      if (bytes.has(trie.nodes[i].byte)) f(i, trie.nodes[i].byte);
  }
  template <class F>
  void each_token(uint32_t node, F&& f) const {
    for (uint32_t e = trie.nodes[node].first; e < trie.nodes[node + 1].first; ++e) f(trie.entries[e]);
  }
  template <class F>
  void each_token_below(uint32_t node, F&& f) const {
    for (uint32_t e = trie.nodes[first(node)].first; e < trie.nodes[end(node)].first; ++e) f(trie.entries[e]);
  }
  bool leaf(uint32_t node) const { return first(node) == end(node); }
  // The nodes below a node are those from first() to end() - 1. The root has no node of its own.
  uint32_t first(uint32_t node) const { return node == TerminalWalks::kRoot ? 0 : node + 1; }
  uint32_t end(uint32_t node) const {
    return node == TerminalWalks::kRoot ? static_cast<uint32_t>(trie.nodes.size()) - 1 : trie.nodes[node].end;
  }
};

}  // namespace

template <class F>
auto TerminalWalks::with_trie(const NodeSet& set, F&& f) const {
  return set.trie ? f(EndingsTrie{*set.trie}) : f(VocabularyTrie{trie_});
}

NodeSetId TerminalWalks::intern(const Suffixes* trie, std::span<const uint32_t> nodes) {
  if (nodes.empty()) return none();
  const uint64_t h = hash_words(nodes, reinterpret_cast<uintptr_t>(trie));
  return NodeSetId{1 + index_.find_or_add(
                           h,
                           [&](uint32_t i) { return sets_[i].trie == trie && std::ranges::equal(sets_[i].nodes, nodes); },
                           [&] { return sets_.emplace_back(NodeSet{trie, pool_.copy(nodes)}); })};
}

NodeSetId TerminalWalks::root(const Suffixes* trie) {
  const uint32_t node = trie ? kRoot : 0;
  return intern(trie, {&node, 1});
}

NodeSetId TerminalWalks::node(uint32_t node) { return intern(nullptr, {&node, 1}); }

void TerminalWalks::tokens_below(NodeSetId from, std::vector<Suffixes::Entry>& out) const {
  const NodeSet& set = sets_[from.v - 1];
  with_trie(set, [&](const auto& trie) {
    for (uint32_t node : set.nodes) trie.each_token_below(node, [&](Suffixes::Entry e) { out.push_back(e); });
  });
}

const TerminalWalk& TerminalWalks::walk(RegexId regex, NodeSetId from) {
  const uint64_t key = static_cast<uint64_t>(regex.v) << 32 | from.v;
  if (const uint32_t* known = known_.find(key)) return walks_[*known];
  const NodeSet& set = sets_[from.v - 1];
  const uint32_t made =
      walks_.emplace_back(with_trie(set, [&](const auto& trie) { return make(regex, set, trie); }));
  known_.emplace(key, made);
  return walks_[made];
}

template <class Trie>
TerminalWalk TerminalWalks::make(RegexId regex, const NodeSet& from, const Trie& trie) {
  inside_.clear();
  uint32_t labels = 0;
  const auto end_of = [&](uint32_t label) -> Found& {
    for (uint32_t i = 0; i < labels; ++i)
      if (ends_[i].label == label) return ends_[i];
    if (labels == ends_.size()) ends_.emplace_back();
    Found& out = ends_[labels++];
    out.label = label;
    out.tokens.clear();
    out.nodes.clear();
    return out;
  };
  todo_.clear();
  for (uint32_t node : from.nodes) todo_.emplace_back(node, regex);
  while (!todo_.empty()) {
    const auto [at, r] = todo_.back();
    todo_.pop_back();
    charge();
    trie.each_child(at, regexes_.live(r), [&, r = r](uint32_t child, uint8_t byte) {
      const RegexId d = regexes_.step(r, byte);
      if (d == RegexArena::empty()) return;
      const RegexNode& n = regexes_.node(d);
      const bool leaf = trie.leaf(child), goes_on = !n.only_ends();
      if (goes_on) {
        trie.each_token(child, [&](Suffixes::Entry e) { inside_.push_back(e); });
        if (!leaf) todo_.emplace_back(child, d);
      }
      if (!n.nullable) return;
      Found& end = end_of(n.label());
      if (!goes_on) trie.each_token(child, [&](Suffixes::Entry e) { end.tokens.push_back(e); });
      if (!leaf) end.nodes.push_back(child);
    });
  }
  SmallVector<TerminalWalk::End, 4> ends;
  for (uint32_t i = 0; i < labels; ++i) {
    Found& e = ends_[i];
    if (e.tokens.empty() && e.nodes.empty()) continue;
    std::sort(e.nodes.begin(), e.nodes.end());
    ends.push_back({e.label, pool_.copy(std::span<const Suffixes::Entry>(e.tokens)), intern(from.trie, e.nodes)});
  }
  return {pool_.copy(std::span<const Suffixes::Entry>(inside_)),
          pool_.copy(std::span<const TerminalWalk::End>(ends))};
}

}  // namespace structgen
