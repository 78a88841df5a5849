#include "holes/strides.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/depth.h"
#include "base/sorted.h"
#include "base/work.h"

namespace structgen {

namespace {
// Branches with at least so many nodes are remembered.
constexpr uint32_t kLargeBranch = 64;
}  // namespace

Strides& Strides::of(RegexArena& regexes, const Vocabulary& vocabulary, std::size_t most) {
  return regexes.cache<Strides>(regexes, vocabulary, most);
}

Strides::Strides(RegexArena& regexes, const Vocabulary& vocabulary, std::size_t most)
    : regexes_(regexes), vocabulary_(vocabulary), most_(most) {
  std::vector<uint32_t> root{0};
  intern(root);
}

NodeSetId Strides::intern(std::vector<uint32_t>& nodes) {
  sort_unique(nodes);
  const std::size_t known = sets_.size();
  const NodeSetId out{index_.number(hash_words(nodes, 7), sets_, nodes)};
  if (sets_.size() > known) bytes_ += nodes.size() * 4 + 64;
  return out;
}

// Reads the trie below a node and the regex together. meet(node, regex) gets each pair that a byte leads to,
// and tells whether the walk goes on from there; out(node, label) is called where the regex ends and tokens
// go on. If below(node, regex) is true, the tokens below the pair are left out.
template <class Meet, class Out, class Below>
void Strides::walk(uint32_t from, RegexId r, Meet&& meet, Out&& out, Below&& below) const {
  const TokenTrie& trie = vocabulary_.trie();
  std::vector<std::pair<uint32_t, RegexId>> todo{{from, r}};
  while (!todo.empty()) {
    const auto [node, d] = todo.back();
    todo.pop_back();
    if (below(node, d)) continue;
    const TokenTrie::Kids& kids = trie.kids(node);
    (kids.set & regexes_.steps(d)).for_each([&](uint8_t b) {
      charge();
      const RegexId to = regexes_.step(d, b);
      if (to == RegexArena::empty()) return;
      const uint32_t child = trie.child(kids, b);
      if (!meet(child, to) || trie.leaf(child)) return;
      const RegexNode& n = regexes_.node(to);
      if (n.nullable) out(child, n.label());
      if (!n.only_ends()) todo.push_back({child, to});
    });
  }
}

// The effect of a branch of the trie on a regex. For a large branch below it branch() calls itself, so that
// other regexes find that part in the memo.
// Most regexes of one grammar differ along a few tokens only, such as "any text but a name of the
// object", so they share most branches.
const Strides::Branch& Strides::branch(uint32_t node, RegexId r) {
  check_depth();
  return branches_[branch_index_.remember(uint64_t{node} << 32 | r.v, [&] {
    Gathering found;
    gather(node, r, found);
    bytes_ += found.all.byte_size();
    branch_bytes_ += found.all.byte_size();
    branches_.push_back(std::move(found.all));
    return static_cast<uint32_t>(branches_.size() - 1);
  })];
}

// Adds a derivative once, with a few of its tokens as examples.
void Strides::Gathering::add(RegexId to, std::span<const TokenId> tokens) {
  const auto [i, fresh] = number.emplace(to.v, static_cast<uint32_t>(all.left.size()));
  if (fresh) all.left.push_back({to, {}});
  std::vector<TokenId>& some = all.left[i].examples;
  for (std::size_t k = 0; k < tokens.size() && some.size() < Stride::kExamples; ++k)
    some.push_back(tokens[k]);
}

// Everything below a node that the regex reads from there. A large branch is computed by itself and
// remembered; its examples are added here.
void Strides::gather(uint32_t from, RegexId r, Gathering& out) {
  const TokenTrie& trie = vocabulary_.trie();
  const auto meet = [&](uint32_t node, RegexId to) {
    if (const auto here = trie.tokens(node); !here.empty()) out.add(to, here.first(1));
    return true;
  };
  const auto exit = [&](uint32_t node, uint32_t label) { out.all.exits.push_back({label, node}); };
  walk(from, r, meet, exit, [&](uint32_t node, RegexId d) {
    if (node == from || trie.node(node).end - node < kLargeBranch) return false;
    const Branch& known = branch(node, d);
    charge(static_cast<int64_t>(1 + known.left.size() + known.exits.size() / 8));
    for (const Stride::Left& l : known.left) out.add(l.regex, l.examples);
    out.all.exits.insert(out.all.exits.end(), known.exits.begin(), known.exits.end());
    return true;
  });
}

// If the remembered branches take too many bytes, all are forgotten; strides stay.
Stride& Strides::made(RegexId r, NodeSetId from) {
  return strides_[known_.remember(uint64_t{r.v} << 32 | from.v, [&] {
    if (branch_bytes_ > most_) {
      branches_.clear();
      branch_index_.clear();
      bytes_ -= std::exchange(branch_bytes_, 0);
    }
    Gathering found;
    for (uint32_t node : sets_[from.v]) gather(node, r, found);
    std::map<uint32_t, std::vector<uint32_t>> exits;
    for (const auto& [label, node] : found.all.exits) exits[label].push_back(node);
    Stride out{std::move(found.all.left), {}, {}};
    for (auto& [label, nodes] : exits) out.exits.push_back({label, intern(nodes)});
    bytes_ += sizeof(Stride) + out.left.size() * 64 + out.exits.size() * 8;
    strides_.push_back(std::move(out));
    return static_cast<uint32_t>(strides_.size() - 1);
  })];
}

const std::vector<TokenId>& Strides::tokens(RegexId r, NodeSetId from, std::size_t left) {
  Stride& s = made(r, from);
  if (!s.tokens.empty()) return s.tokens[left];
  std::vector<std::vector<TokenId>> all(s.left.size());
  FlatMap<uint32_t, uint32_t> number;
  for (uint32_t i = 0; i < s.left.size(); ++i) number.emplace(s.left[i].regex.v, i);
  const std::vector<uint32_t>& nodes = sets_[from.v];
  // A node may lie below another one of the set, so pairs may be met twice.
  FlatMap<uint64_t, bool> seen;
  const auto meet = [&](uint32_t node, RegexId to) {
    if (nodes.size() > 1 && !seen.emplace(uint64_t{node} << 32 | to.v, true).second) return false;
    if (const auto here = vocabulary_.trie().tokens(node); !here.empty()) {
      std::vector<TokenId>& list = all[*number.find(to.v)];
      list.insert(list.end(), here.begin(), here.end());
    }
    return true;
  };
  for (uint32_t node : nodes)
    walk(node, r, meet, [](uint32_t, uint32_t) {}, [](uint32_t, RegexId) { return false; });
  for (const auto& list : all) bytes_ += list.size() * sizeof(TokenId);
  s.tokens = std::move(all);
  return s.tokens[left];
}

}  // namespace structgen
