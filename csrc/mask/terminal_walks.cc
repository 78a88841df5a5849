#include "mask/terminal_walks.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "base/small_vector.h"
#include "base/sorted.h"
#include "base/undo.h"
#include "base/work.h"

namespace structgen {

namespace {

// At this depth of nesting, a concatenation is walked as a whole.
constexpr uint32_t kMostNested = 32;
}  // namespace

NodeSetId TerminalWalks::exits(const RunExits& exits, std::span<const uint32_t> completed) {
  NodeSetId& all = exits_[&exits];
  if (all == none()) {
    std::vector<uint32_t> nodes;
    for (const Exit& e : exits.children)
      if (!trie_.leaf(e.node)) nodes.push_back(e.node);
    all = sets_.intern(nullptr, nodes);
  }
  if (completed.empty() || all == none()) return all;
  std::vector<uint32_t> rest;
  std::ranges::set_difference(sets_[all].nodes, completed, std::back_inserter(rest));
  return sets_.intern(nullptr, rest);
}

void TerminalWalks::tokens_below(NodeSetId from, std::vector<Suffixes::Entry>& out) const {
  sets_.with_trie(sets_[from], [&](const auto& trie) {
    for (uint32_t node : sets_[from].nodes)
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
        sets_.with_trie(sets_[from], [&](const auto& trie) { return make(regex, sets_[from], trie); }));
  if (regexes_.effort().omitted() == omitted) known_.emplace(key, made);
  return made;
}

// Tells whether a concatenation is walked kid by kid, because its kids occur more often than the whole. The
// second kid must not match the empty text: then the whole ends only where the second kid ends.
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
  std::vector<NodeSetId> ends{regexes_.nullable(RegexId{n.a}) ? from : none()};
  SmallVector<std::span<const Suffixes::Entry>, 8> inside;
  for (const auto& list : first.inside) inside.push_back(list);
  for (const TerminalWalk::End& end : first.ends) {
    if (!end.tokens.empty()) inside.push_back(end.tokens);
    ends.push_back(end.next);
  }
  const NodeSetId between = sets_.unite(std::move(ends));
  const TerminalWalk second = between == none() ? TerminalWalk{{}, {}, 0} : walk(RegexId{n.b}, between);
  for (const auto& list : second.inside) inside.push_back(list);
  return {pool_.copy(std::span<const std::span<const Suffixes::Entry>>(inside)), second.ends, second.deepest};
}

// If the regex is a run without some literals, and no token completes one of them, returns the walk of the
// run. Otherwise returns nothing.
std::optional<uint32_t> TerminalWalks::without_literals(RegexId regex, NodeSetId from) {
  const std::vector<RegexId> kept = regexes_.without_words(regex);
  std::vector<LiteralSet> sets;
  if (kept.size() != 1 || regexes_.node(regex).n == 1 || !regexes_.counter(kept[0]).star() ||
      !regexes_.excluded_literals(regex, sets))
    return std::nullopt;
  const uint32_t run = number(kept[0], from);
  for (const LiteralSet& literals : sets)
    if (sets_.with_trie(sets_[from], [&](const auto& trie) {
          return completes(literals, sets_[from], walks_[run].deepest, trie);
        }))
      return std::nullopt;
  return run;
}

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
  // Most nodes lead to a few regexes.
  std::array<RegexNode, 16> nodes;
  std::array<RegexId, 16> known;
  known.fill(RegexArena::empty());
  read_below(regexes_, trie, from.nodes, regex, [&](uint32_t node, RegexId to) {
    const std::size_t slot = to.v % known.size();
    if (known[slot] != to) {
      known[slot] = to;
      nodes[slot] = regexes_.node(to);
    }
    const RegexNode& n = nodes[slot];
    const bool goes_on = !n.only_ends();
    if (goes_on) trie.each_token(node, [&](Suffixes::Entry e) { inside_.push_back(e); });
    if (!n.nullable) return true;
    Found& end = end_of(n.label());
    deepest = std::max(deepest, trie.depth(node));
    if (!goes_on) trie.each_token(node, [&](Suffixes::Entry e) { end.tokens.push_back(e); });
    if (!trie.leaf(node)) end.nodes.push_back(node);
    return true;
  });
  SmallVector<TerminalWalk::End, 4> ends;
  for (uint32_t i = 0; i < labels; ++i) {
    Found& e = ends_[i];
    if (e.tokens.empty() && e.nodes.empty()) continue;
    sort_unique(e.nodes);
    ends.push_back(
        {e.label, pool_.copy(std::span<const Suffixes::Entry>(e.tokens)), sets_.intern(from.trie, e.nodes)});
  }
  const std::span<const Suffixes::Entry> inside = pool_.copy(std::span<const Suffixes::Entry>(inside_));
  return {pool_.copy(std::span(&inside, inside.empty() ? 0 : 1)),
          pool_.copy(std::span<const TerminalWalk::End>(ends)), deepest};
}

}  // namespace structgen
