#include "mask/token_trie.h"

#include <algorithm>
#include <utility>

#include "base/work.h"
#include "mask/subtrees.h"

namespace structgen {

// Builds the trie from the tokens, sorted by their bytes. Each token closes those nodes of the previous
// token's path that it does not share, and opens nodes for the rest of its bytes.
void TokenTrie::build(std::vector<std::pair<std::string_view, TokenId>> tokens) {
  std::sort(tokens.begin(), tokens.end(), [](const auto& a, const auto& b) {
    // Millions of tokens take seconds to sort; charge() lets Ctrl-C stop the sort.
    charge();
    return a < b;
  });
  std::vector<Node> nodes(1);
  std::vector<Kids> kids(1);
  std::vector<uint32_t> children;
  std::vector<TokenId> order;
  order.reserve(tokens.size());
  std::vector<uint32_t> path{0};  // node at each depth
  std::string_view last;
  const auto close_to = [&](std::size_t depth) {
    while (path.size() > depth + 1) {
      nodes[path.back()].end = static_cast<uint32_t>(nodes.size());
      path.pop_back();
    }
  };
  for (const auto& [text, id] : tokens) {
    charge();
    const std::size_t shared = static_cast<std::size_t>(
        std::mismatch(last.begin(), last.end(), text.begin(), text.end()).first - last.begin());
    close_to(std::min(shared, text.size()));
    for (std::size_t d = path.size() - 1; d < text.size(); ++d) {
      Node n;
      n.byte = static_cast<uint8_t>(text[d]);
      n.depth = static_cast<uint32_t>(d + 1) & 0xFFFFFF;
      n.rank = static_cast<uint32_t>(order.size());
      path.push_back(static_cast<uint32_t>(nodes.size()));
      nodes.push_back(n);
    }
    order.push_back(id);
    last = text;
  }
  close_to(0);
  const uint32_t count = static_cast<uint32_t>(nodes.size());
  nodes[0].end = count;
  Node sentinel;
  sentinel.rank = static_cast<uint32_t>(order.size());
  sentinel.end = count;
  nodes.push_back(sentinel);
  // Records of children are made last, because they need the ends of all subtrees.
  for (uint32_t i = 0; i < count; ++i) {
    charge();
    if (nodes[i].end == i + 1) continue;
    Kids k;
    k.first = static_cast<uint32_t>(children.size());
    for (uint32_t c = i + 1; c < nodes[i].end; c = nodes[c].end) {
      k.set.add(static_cast<uint8_t>(nodes[c].byte));
      children.push_back(c);
    }
    uint32_t sum = 0;
    for (int w = 0; w < 3; ++w) k.before[w] = sum += static_cast<uint32_t>(std::popcount(k.set.w[w]));
    nodes[i].kids = static_cast<uint32_t>(kids.size());
    kids.push_back(k);
  }
  nodes_.own(std::move(nodes));
  kids_.own(std::move(kids));
  children_.own(std::move(children));
  order_.own(std::move(order));
  below_.own(categories_below(*this));
}

void TokenTrie::view(const Parts& parts) {
  nodes_.view(parts.nodes);
  kids_.view(parts.kids);
  children_.view(parts.children);
  order_.view(parts.order);
  below_.view(parts.below);
}

// Checks each node: subtrees nest, ranks rise, children lie inside the subtree and one level deeper, and
// counts agree with the sets.
bool TokenTrie::sound(uint32_t vocabulary, uint32_t longest) const {
  if (nodes_.size() < 2 || kids_.size() < 1 || order_.size() > vocabulary ||
      below_.size() + 1 != nodes_.size())
    return false;
  const uint32_t count = size();
  if (nodes_[0].end != count || nodes_[0].depth != 0 || nodes_[0].rank != 0 ||
      nodes_[count].rank != order_.size())
    return false;
  for (uint32_t i = 0; i < count; ++i) {
    const Node& n = nodes_[i];
    if (n.end <= i || n.end > count || n.kids >= kids_.size() || n.depth > longest) return false;
    // Every node needs a token below it, because path() reads the node's bytes from a token.
    if (n.rank > nodes_[i + 1].rank || nodes_[n.end].rank <= n.rank) return false;
    if (i > 0 && n.depth != nodes_[i - 1].depth + 1 && (n.depth == 0 || n.depth > nodes_[i - 1].depth))
      return false;
    if (n.kids == 0) {
      if (n.end != i + 1) return false;
      continue;
    }
    const Kids& k = kids_[n.kids];
    uint32_t sum = 0;
    for (int w = 0; w < 3; ++w)
      if (k.before[w] != (sum += static_cast<uint32_t>(std::popcount(k.set.w[w])))) return false;
    sum += static_cast<uint32_t>(std::popcount(k.set.w[3]));
    if (k.first > children_.size() || sum > children_.size() - k.first) return false;
    for (uint32_t c = k.first; c < k.first + sum; ++c)
      if (children_[c] <= i || children_[c] >= n.end || nodes_[children_[c]].depth != n.depth + 1)
        return false;
  }
  for (TokenId t : order_.all())
    if (t < 0 || static_cast<uint32_t>(t) >= vocabulary) return false;
  return true;
}

}  // namespace structgen
