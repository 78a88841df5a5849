#include "mask/terminal_walks.h"

#include <algorithm>
#include <iterator>

#include "base/small_vector.h"
#include "base/sorted.h"
#include "base/undo.h"
#include "base/work.h"

namespace structgen {

namespace {

// So many concatenations in concatenations are walked part by part.
constexpr uint32_t kMostNested = 32;

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
  // The first node behind the subtree.
  uint32_t end(uint32_t node) const { return trie.node(node).end; }
  uint32_t depth(uint32_t node) const { return trie.node(node).depth; }
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
  uint32_t depth(uint32_t node) const { return node == TerminalWalks::kRoot ? 0 : trie.nodes[node].depth; }
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
  const auto equal = [&](uint32_t i) {
    return sets_[i].trie == trie && std::ranges::equal(sets_[i].nodes, nodes);
  };
  const auto make = [&] {
    NodeSet made{trie, pool_.copy(nodes), {}};
    with_trie(made, [&](const auto& t) {
      for (uint32_t node : nodes)
        t.each_child(node, ByteSet::all(), [&](uint32_t, uint8_t byte) { made.bytes.add(byte); });
    });
    return sets_.emplace_back(made);
  };
  return NodeSetId{1 + index_.find_or_add(hash_words(nodes, reinterpret_cast<uintptr_t>(trie)), equal, make)};
}

NodeSetId TerminalWalks::exits(const RunExits& exits, std::span<const uint32_t> completed) {
  NodeSetId& all = exits_[&exits];
  if (all == none()) {
    std::vector<uint32_t> nodes;
    for (const Exit& e : exits.children)
      if (!trie_.leaf(e.node)) nodes.push_back(e.node);
    all = intern(nullptr, nodes);
  }
  if (completed.empty() || all == none()) return all;
  std::vector<uint32_t> rest;
  std::ranges::set_difference(set(all).nodes, completed, std::back_inserter(rest));
  return intern(nullptr, rest);
}

void TerminalWalks::tokens_below(NodeSetId from, std::vector<Suffixes::Entry>& out) const {
  with_trie(set(from), [&](const auto& trie) {
    for (uint32_t node : set(from).nodes)
      trie.each_token_below(node, [&](Suffixes::Entry e) { out.push_back(e); });
  });
}

const TerminalWalk& TerminalWalks::walk(RegexId regex, NodeSetId from) { return walks_[number(regex, from)]; }

uint32_t TerminalWalks::number(RegexId regex, NodeSetId from) {
  const uint64_t key = static_cast<uint64_t>(regex.v) << 32 | from.v;
  if (const uint32_t* known = known_.find(key)) return *known;
  const uint64_t omitted = regexes_.effort().omitted();
  uint32_t made;
  if (const std::optional<uint32_t> same = without_literals(regex, from))
    made = *same;
  else if (parted(regex))
    made = walks_.emplace_back(in_parts(regex, from));
  else
    made = walks_.emplace_back(
        with_trie(set(from), [&](const auto& trie) { return make(regex, set(from), trie); }));
  if (regexes_.effort().omitted() == omitted) known_.emplace(key, made);
  return made;
}

// A concatenation is walked part by part, because its parts are met more often than the whole. Its second
// part must read some byte, so that the whole ends where the second part ends.
bool TerminalWalks::parted(RegexId regex) const {
  const RegexNode& n = regexes_.node(regex);
  return n.kind == RegexKind::kCat && !regexes_.node(RegexId{n.a}).labelled &&
         !regexes_.node(RegexId{n.b}).nullable && nested_ < kMostNested;
}

TerminalWalk TerminalWalks::in_parts(RegexId regex, NodeSetId from) {
  const RegexNode n = regexes_.node(regex);
  ++nested_;
  const Undo outer([&] { --nested_; });
  const TerminalWalk first = walk(RegexId{n.a}, from);
  NodeSetId between = regexes_.nullable(RegexId{n.a}) ? from : none();
  std::vector<Suffixes::Entry> inside(first.inside.begin(), first.inside.end());
  for (const TerminalWalk::End& end : first.ends) {
    inside.insert(inside.end(), end.tokens.begin(), end.tokens.end());
    between = unite(between, end.next);
  }
  if (between == none()) return {pool_.copy(std::span<const Suffixes::Entry>(inside)), {}, 0};
  const TerminalWalk& second = walk(RegexId{n.b}, between);
  inside.insert(inside.end(), second.inside.begin(), second.inside.end());
  return {pool_.copy(std::span<const Suffixes::Entry>(inside)), second.ends, second.deepest};
}

NodeSetId TerminalWalks::unite(NodeSetId a, NodeSetId b) {
  if (a == none() || b == none() || a == b) return a == none() ? b : a;
  std::vector<uint32_t> all;
  std::ranges::set_union(set(a).nodes, set(b).nodes, std::back_inserter(all));
  return intern(set(a).trie, all);
}

// The walk of a run without some literals is that of the run, where no token completes a literal.
std::optional<uint32_t> TerminalWalks::without_literals(RegexId regex, NodeSetId from) {
  const std::vector<RegexId> kept = regexes_.without_words(regex);
  std::vector<LiteralSet> sets;
  if (kept.size() != 1 || regexes_.node(regex).n == 1 || !regexes_.counter(kept[0]).star() ||
      !regexes_.excluded_literals(regex, sets))
    return std::nullopt;
  const uint32_t run = number(kept[0], from);
  for (const LiteralSet& literals : sets)
    if (with_trie(set(from), [&](const auto& trie) {
          return completes(literals, set(from), walks_[run].deepest, trie);
        }))
      return std::nullopt;
  return run;
}

// Whether a token completes one of the literals at a node of at most this depth.
template <class Trie>
bool TerminalWalks::completes(const LiteralSet& literals, const NodeSet& from, uint32_t deepest,
                              const Trie& trie) const {
  const LiteralTables& tables = regexes_.tables();
  std::vector<std::pair<uint32_t, LiteralSet>> todo;
  for (uint32_t node : from.nodes) todo.emplace_back(node, literals);
  bool found = false;
  while (!todo.empty() && !found) {
    const auto [at, read] = todo.back();
    todo.pop_back();
    if (trie.depth(at) >= deepest) continue;
    charge();
    trie.each_child(at, tables.first_bytes(read), [&, &read = read](uint32_t child, uint8_t byte) {
      LiteralSet rest = read;
      bool done;
      if (!tables.step(rest, byte, done)) return;
      found = found || done;
      if (!done && !trie.leaf(child)) todo.emplace_back(child, rest);
    });
  }
  return found;
}

template <class Trie>
TerminalWalk TerminalWalks::make(RegexId regex, const NodeSet& from, const Trie& trie) {
  inside_.clear();
  uint32_t labels = 0, deepest = 0;
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
  // A node below another one is met on two ways.
  bool nested = from.nodes.size() > 1 && from.nodes.back() == kRoot;
  for (std::size_t i = 0; i + 1 < from.nodes.size() && !nested; ++i)
    nested = from.nodes[i + 1] < trie.end(from.nodes[i]);
  FlatMap<uint64_t, bool> met;
  todo_.clear();
  for (uint32_t node : from.nodes) todo_.emplace_back(node, regex);
  while (!todo_.empty()) {
    const auto [at, r] = todo_.back();
    todo_.pop_back();
    charge();
    trie.each_child(at, regexes_.live(r), [&, r = r](uint32_t child, uint8_t byte) {
      const RegexId d = regexes_.step(r, byte);
      if (d == RegexArena::empty()) return;
      if (nested && !met.emplace(static_cast<uint64_t>(child) << 32 | d.v, true).second) return;
      const RegexNode& n = regexes_.node(d);
      const bool leaf = trie.leaf(child), goes_on = !n.only_ends();
      if (goes_on) {
        trie.each_token(child, [&](Suffixes::Entry e) { inside_.push_back(e); });
        if (!leaf) todo_.emplace_back(child, d);
      }
      if (!n.nullable) return;
      Found& end = end_of(n.label());
      deepest = std::max(deepest, trie.depth(child));
      if (!goes_on) trie.each_token(child, [&](Suffixes::Entry e) { end.tokens.push_back(e); });
      if (!leaf) end.nodes.push_back(child);
    });
  }
  SmallVector<TerminalWalk::End, 4> ends;
  for (uint32_t i = 0; i < labels; ++i) {
    Found& e = ends_[i];
    if (e.tokens.empty() && e.nodes.empty()) continue;
    sort_unique(e.nodes);
    ends.push_back(
        {e.label, pool_.copy(std::span<const Suffixes::Entry>(e.tokens)), intern(from.trie, e.nodes)});
  }
  return {pool_.copy(std::span<const Suffixes::Entry>(inside_)),
          pool_.copy(std::span<const TerminalWalk::End>(ends)), deepest};
}

}  // namespace structgen
