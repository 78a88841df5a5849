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

uint32_t Strides::intern(std::vector<uint32_t>& places) {
  sort_unique(places);
  return index_.find_or_add(
      hash_words(places, 7), [&](uint32_t i) { return sets_[i] == places; },
      [&] {
        sets_.push_back(places);
        bytes_ += places.size() * 4 + 64;
        return static_cast<uint32_t>(sets_.size() - 1);
      });
}

// Calls token(node, regex) where tokens end, and out(node, label) where the regex ends and tokens go
// on.
template <class Token, class Out>
void Strides::walk(RegexId r, uint32_t places, Token&& token, Out&& out) {
  const TokenTrie& trie = vocabulary_.trie();
  const std::vector<uint32_t> from = sets_[places];
  std::vector<std::pair<uint32_t, RegexId>> todo;
  // A place may lie below another one, so pairs may be met twice.
  FlatMap<uint64_t, bool> seen;
  for (uint32_t place : from) {
    todo.push_back({place, r});
    while (!todo.empty()) {
      const auto [node, d] = todo.back();
      todo.pop_back();
      const TokenTrie::Kids& kids = trie.kids(node);
      (kids.set & regexes_.steps(d)).for_each([&](uint8_t b) {
        charge();
        const RegexId to = regexes_.step(d, b);
        if (to == RegexArena::empty()) return;
        const uint32_t child = trie.child(kids, b);
        if (from.size() > 1 && !seen.emplace((static_cast<uint64_t>(child) << 32) | to.v, true).second)
          return;
        const RegexNode& n = regexes_.node(to);
        if (!trie.tokens(child).empty()) token(child, to);
        if (trie.leaf(child)) return;
        if (n.nullable) out(child, n.label());
        if (!n.only_ends()) todo.push_back({child, to});
      });
    }
  }
}

// The effect of a branch of the trie on a regex. For a large branch below it branch() calls itself, so that
// other regexes find that part in the memo.
// Most regexes of one grammar differ along a few tokens only, such as "any text but a name of the
// object", so they share most branches.
const Strides::Branch& Strides::branch(uint32_t node, RegexId r) {
  check_depth();
  const uint64_t key = (static_cast<uint64_t>(node) << 32) | r.v;
  if (const uint32_t* known = branch_index_.find(key)) return *branches_[*known];
  auto made = std::make_unique<Branch>();
  Gathering all{*made, {}};
  gather(node, r, all);
  const std::size_t more = sizeof(Branch) + made->left.size() * 64 + made->exits.size() * 8;
  bytes_ += more;
  branch_bytes_ += more;
  branches_.push_back(std::move(made));
  branch_index_.emplace(key, static_cast<uint32_t>(branches_.size() - 1));
  return *branches_.back();
}

// Adds a derivative once, with a few of its tokens as examples.
void Strides::Gathering::add(RegexId to, std::span<const TokenId> tokens) {
  const auto [i, fresh] = number.emplace(to.v, static_cast<uint32_t>(out.left.size()));
  if (fresh) out.left.push_back({to, {}});
  std::vector<TokenId>& some = out.left[i].examples;
  for (std::size_t k = 0; k < tokens.size() && some.size() < Stride::kExamples; ++k)
    some.push_back(tokens[k]);
}

// Everything below a node that the regex reads from there.
void Strides::gather(uint32_t from, RegexId r, Gathering& out) {
  const TokenTrie& trie = vocabulary_.trie();
  std::vector<std::pair<uint32_t, RegexId>> todo{{from, r}};
  while (!todo.empty()) {
    const auto [node, d] = todo.back();
    todo.pop_back();
    // A large branch is computed by itself and remembered. Its examples are added here.
    if (node != from && trie.node(node).end - node >= kLargeBranch) {
      const Branch& below = branch(node, d);
      charge(static_cast<int64_t>(1 + below.left.size() + below.exits.size() / 8));
      for (const Stride::Left& l : below.left) out.add(l.regex, l.examples);
      out.out.exits.insert(out.out.exits.end(), below.exits.begin(), below.exits.end());
      continue;
    }
    const TokenTrie::Kids& kids = trie.kids(node);
    (kids.set & regexes_.steps(d)).for_each([&](uint8_t b) {
      charge();
      const RegexId to = regexes_.step(d, b);
      if (to == RegexArena::empty()) return;
      const uint32_t child = trie.child(kids, b);
      const RegexNode& n = regexes_.node(to);
      if (const auto here = trie.tokens(child); !here.empty()) out.add(to, here.first(1));
      if (trie.leaf(child)) return;
      if (n.nullable) out.out.exits.push_back({n.label(), child});
      if (!n.only_ends()) todo.push_back({child, to});
    });
  }
}

// If the remembered branches take too many bytes, all are forgotten; strides stay.
const Stride& Strides::stride(RegexId r, uint32_t places) {
  const uint64_t key = (static_cast<uint64_t>(r.v) << 32) | places;
  if (const uint32_t* known = known_.find(key)) return *strides_[*known];
  if (branch_bytes_ > most_) {
    branches_.clear();
    branch_index_.clear();
    bytes_ -= std::exchange(branch_bytes_, 0);
  }
  Branch all;
  Gathering gathering{all, {}};
  const std::vector<uint32_t> from = sets_[places];
  for (uint32_t place : from) gather(place, r, gathering);
  auto made = std::make_unique<Stride>();
  made->left = std::move(all.left);
  std::map<uint32_t, std::vector<uint32_t>> exits;
  for (const auto& [label, node] : all.exits) exits[label].push_back(node);
  for (auto& [label, at] : exits) made->exits.push_back({label, intern(at)});
  bytes_ += sizeof(Stride) + made->left.size() * 64 + made->exits.size() * 8;
  strides_.push_back(std::move(made));
  known_.emplace(key, static_cast<uint32_t>(strides_.size() - 1));
  return *strides_.back();
}

const std::vector<TokenId>& Strides::tokens(RegexId r, uint32_t places, std::size_t left) {
  const Stride& s = stride(r, places);
  if (!s.listed) {
    std::vector<std::vector<TokenId>> all(s.left.size());
    FlatMap<uint32_t, uint32_t> number;
    for (uint32_t i = 0; i < s.left.size(); ++i) number.emplace(s.left[i].regex.v, i);
    const TokenTrie& trie = vocabulary_.trie();
    walk(
        r, places,
        [&](uint32_t node, RegexId to) {
          std::vector<TokenId>& list = all[*number.find(to.v)];
          const auto here = trie.tokens(node);
          list.insert(list.end(), here.begin(), here.end());
        },
        [](uint32_t, uint32_t) {});
    for (const auto& list : all) bytes_ += list.size() * sizeof(TokenId);
    s.tokens = std::move(all);
    s.listed = true;
  }
  return s.tokens[left];
}

}  // namespace structgen
