// Sets of nodes of a trie, each with a number, and the walk that reads a regex below them.
//
// In: nodes of the vocabulary's trie or of a trie of endings; a regex. Out: numbers of sets; the pairs of a
// node and a derivative that the bytes below a set lead to. Cost: a look-up for a set; a step for each pair.
//
// Example, the tokens `a`, `ab`, `ab,` and the regex [a-z]*: below the root the walk meets (`a`, [a-z]*) and
// (`ab`, [a-z]*). The regex reads no comma, so the walk does not go on to `ab,`.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/arena.h"
#include "base/bitset.h"
#include "base/flat_map.h"
#include "base/ids.h"
#include "base/intern.h"
#include "base/small_vector.h"
#include "base/work.h"
#include "mask/suffixes.h"
#include "mask/token_trie.h"
#include "mask/walk_table.h"
#include "regex/regex.h"

namespace structgen {

// If at least this many different bytes may begin a text of the regex, a walk looks at all children of a
// node.
constexpr int kManyLive = 24;

// VocabularyTrie and EndingsTrie give walks one interface: the children of a node by byte, the tokens at a
// node, and whether it is a leaf. The nodes below a node are first() to end() - 1.
struct VocabularyTrie {
  const TokenTrie& trie;
  ByteSet bytes(uint32_t node) const { return trie.kids(node).set; }
  template <class F>
  void each_child(uint32_t node, const ByteSet& bytes, F&& f) const {
    trie.each_child(node, bytes, f);
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
  uint8_t byte(uint32_t node) const { return static_cast<uint8_t>(trie.node(node).byte); }
  uint32_t first(uint32_t node) const { return node + 1; }
  uint32_t end(uint32_t node) const { return trie.node(node).end; }
  uint32_t depth(uint32_t node) const { return trie.node(node).depth; }
};

struct EndingsTrie {
  // The root, which has no node in the array.
  static constexpr uint32_t kRoot = 0xFFFFFFFFu;
  const Suffixes& trie;
  ByteSet bytes(uint32_t node) const {
    ByteSet out;
    each_child(node, ByteSet::all(), [&](uint32_t, uint8_t b) { out.add(b); });
    return out;
  }
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
  uint8_t byte(uint32_t node) const { return trie.nodes[node].byte; }
  uint32_t first(uint32_t node) const { return node == kRoot ? 0 : node + 1; }
  uint32_t end(uint32_t node) const {
    return node == kRoot ? static_cast<uint32_t>(trie.nodes.size()) - 1 : trie.nodes[node].end;
  }
  uint32_t depth(uint32_t node) const { return node == kRoot ? 0 : trie.nodes[node].depth; }
};

// Reads the nodes from `first` up to `end`, whose common parent was reached in a state of the table. For each
// node it calls meet(node, state of its parent, its state); a state may be dead. If meet() returns true, the
// walk goes on below the node. The walk visits each node in the order of memory and steps by a table, which
// takes a few nanoseconds; a look-up of those children that the regex may read takes longer, and is worth it
// only where they are few.
template <class Trie, class Meet>
void read_nodes(WalkTable& table, const Trie& trie, uint32_t first, uint32_t end, uint32_t state,
                Meet&& meet) {
  if (first == end) return;
  const uint32_t top = trie.depth(first) - 1;
  SmallVector<uint32_t, 64> at;  // by depth below the parent
  at.push_back(state);
  for (uint32_t i = first; i < end;) {
    if (i % 8 == 0) charge();
    const uint32_t depth = trie.depth(i) - top, from = at[depth - 1];
    const uint32_t to = table.next(from, trie.byte(i));
    if (!meet(i, from, to) || to == WalkTable::kDead) {
      i = trie.end(i);
      continue;
    }
    if (depth == at.size()) at.push_back(to);
    at[depth] = to;
    ++i;
  }
}

// Reads a regex below some nodes of a trie, which are in ascending order. For each byte that leads to a node
// and a derivative it calls meet(node, derivative), once for each such pair. If meet() returns true, the walk
// goes on below the node. Nodes are met in ascending order, unless one of `nodes` lies below another node of
// `nodes`. A trie lies in memory in this order, so a long walk reads its memory from the beginning to the
// end.
template <class Trie, class Meet>
void read_below(RegexArena& regexes, const Trie& trie, std::span<const uint32_t> nodes, RegexId regex,
                Meet&& meet) {
  struct Pair {
    uint32_t node;
    RegexId regex;
  };
  // A pair can be met twice only if one of the nodes lies below another.
  bool nested = nodes.size() > 1 && nodes.back() == EndingsTrie::kRoot;
  for (std::size_t i = 0; i + 1 < nodes.size() && !nested; ++i) nested = nodes[i + 1] < trie.end(nodes[i]);
  if (!nested && regexes.live(regex).count() >= kManyLive) {
    WalkTable table(regexes);
    const uint32_t state = table.state(regex);
    for (uint32_t node : nodes)
      read_nodes(table, trie, trie.first(node), trie.end(node), state,
                 [&](uint32_t at, uint32_t, uint32_t to) {
                   return to != WalkTable::kDead && meet(at, table.regex(to));
                 });
    return;
  }
  FlatMap<uint64_t, bool> met;
  // The pairs still to be met; the first one stands at the end.
  SmallVector<Pair, 64> todo;
  const auto read_on = [&](uint32_t at, RegexId from) {
    charge();
    const std::size_t first = todo.size();
    trie.each_child(at, regexes.live(from), [&](uint32_t child, uint8_t byte) {
      const RegexId to = regexes.step(from, byte);
      if (to == RegexArena::empty()) return;
      if (nested && !met.emplace(static_cast<uint64_t>(child) << 32 | to.v, true).second) return;
      todo.push_back({child, to});
    });
    std::reverse(todo.begin() + first, todo.end());
  };
  for (uint32_t node : nodes) {
    read_on(node, regex);
    while (!todo.empty()) {
      const auto [at, to] = todo.back();
      todo.pop_back();
      if (meet(at, to) && !trie.leaf(at) && !regexes.node(to).only_ends()) read_on(at, to);
    }
  }
}

using NodeSetId = Id<struct NodeSetTag>;

struct NodeSet {
  // The trie of endings to which the nodes belong, or null for the vocabulary's trie.
  const Suffixes* trie = nullptr;
  std::span<const uint32_t> nodes;
  // The bytes that lead from some node of the set to a child.
  ByteSet bytes;
};

class NodeSets {
 public:
  explicit NodeSets(const TokenTrie& trie) : trie_(trie) { sets_.emplace_back(); }
  static constexpr NodeSetId none() { return NodeSetId{0}; }
  // Returns the number of a set of inner nodes, which are in ascending order.
  NodeSetId intern(const Suffixes* trie, std::span<const uint32_t> nodes);
  // Returns the number of the union. All sets must belong to one trie.
  NodeSetId unite(std::vector<NodeSetId> sets);
  const NodeSet& operator[](NodeSetId id) const { return sets_[id.v]; }
  template <class F>
  auto with_trie(const NodeSet& set, F&& f) const {
    return set.trie ? f(EndingsTrie{*set.trie}) : f(VocabularyTrie{trie_});
  }
  std::size_t byte_size() const { return pool_.byte_size() + index_.byte_size() + sets_.byte_size(); }

 private:
  const TokenTrie& trie_;
  BumpPool pool_;
  InternTable index_;
  // The sets by number; number 0 is the empty set.
  StableVector<NodeSet> sets_;
};

}  // namespace structgen
