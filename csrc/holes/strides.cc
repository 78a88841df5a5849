#include "holes/strides.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/depth.h"
#include "base/sorted.h"
#include "base/work.h"

namespace structgen {

namespace {
constexpr uint32_t kLargeBranch = 64;
}  // namespace

Strides::Strides(RegexArena& regexes, const TokenTrie& trie, std::size_t most)
    : regexes_(regexes), trie_{trie}, most_(most), sets_(trie) {
  sets_.intern(nullptr, std::vector<uint32_t>{0});
}

// Returns what the tokens below a trie node do to a regex. Large branches inside it are remembered on their
// own, so that other regexes find them: most regexes of a grammar, such as "any text but a name of the
// object", differ along a few tokens only and share the other branches.
const Strides::Branch& Strides::branch(uint32_t node, RegexId r) {
  check_depth();
  return branches_[branch_index_.remember(uint64_t{node} << 32 | r.v, [&] {
    Gathering found;
    gather({&node, 1}, r, found);
    bytes_ += found.all.byte_size();
    branch_bytes_ += found.all.byte_size();
    branches_.push_back(std::move(found.all));
    return static_cast<uint32_t>(branches_.size() - 1);
  })];
}

void Strides::Gathering::add(RegexId to, std::span<const TokenId> tokens) {
  const auto [i, fresh] = number.emplace(to.v, static_cast<uint32_t>(all.left.size()));
  if (fresh) all.left.push_back({to, {}});
  std::vector<TokenId>& some = all.left[i].examples;
  for (std::size_t k = 0; k < tokens.size() && some.size() < Stride::kExamples; ++k)
    some.push_back(tokens[k]);
}

// Collects what the tokens below some trie nodes do to a regex. A large branch is left to branch(), which
// remembers it; its result is added here.
void Strides::gather(std::span<const uint32_t> from, RegexId r, Gathering& out) {
  read_below(regexes_, trie_, from, r, [&](uint32_t node, RegexId to) {
    charge();
    if (const auto here = trie_.trie.tokens(node); !here.empty()) out.add(to, here.first(1));
    if (trie_.leaf(node)) return false;
    const RegexNode& n = regexes_.node(to);
    if (n.nullable) out.all.exits.push_back({n.label(), node});
    if (n.only_ends() || trie_.end(node) - node < kLargeBranch) return true;
    const Branch& known = branch(node, to);
    charge(static_cast<int64_t>(1 + known.left.size() + known.exits.size() / 8));
    for (const Stride::Left& l : known.left) out.add(l.regex, l.examples);
    out.all.exits.insert(out.all.exits.end(), known.exits.begin(), known.exits.end());
    return false;
  });
}

Stride& Strides::stride(RegexId r, NodeSetId from) {
  return strides_[known_.remember(uint64_t{r.v} << 32 | from.v, [&] {
    if (branch_bytes_ > most_) {
      branches_.clear();
      branch_index_.clear();
      bytes_ -= std::exchange(branch_bytes_, 0);
    }
    Gathering found;
    gather(sets_[from].nodes, r, found);
    std::map<uint32_t, std::vector<uint32_t>> exits;
    for (const auto& [label, node] : found.all.exits) exits[label].push_back(node);
    Stride out{std::move(found.all.left), {}, {}};
    for (auto& [label, nodes] : exits) {
      sort_unique(nodes);
      out.exits.push_back({label, sets_.intern(nullptr, nodes)});
    }
    bytes_ += sizeof(Stride) + out.left.size() * 64 + out.exits.size() * 8;
    strides_.push_back(std::move(out));
    return static_cast<uint32_t>(strides_.size() - 1);
  })];
}

const std::vector<TokenId>& Strides::tokens(RegexId r, NodeSetId from, std::size_t left) {
  Stride& s = stride(r, from);
  if (!s.tokens.empty()) return s.tokens[left];
  std::vector<std::vector<TokenId>> all(s.left.size());
  FlatMap<uint32_t, uint32_t> number;
  for (uint32_t i = 0; i < s.left.size(); ++i) number.emplace(s.left[i].regex.v, i);
  read_below(regexes_, trie_, sets_[from].nodes, r, [&](uint32_t node, RegexId to) {
    charge();
    if (const auto here = trie_.trie.tokens(node); !here.empty()) {
      std::vector<TokenId>& list = all[*number.find(to.v)];
      list.insert(list.end(), here.begin(), here.end());
    }
    return true;
  });
  for (const auto& list : all) bytes_ += list.size() * sizeof(TokenId);
  s.tokens = std::move(all);
  return s.tokens[left];
}

}  // namespace structgen
