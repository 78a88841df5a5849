#include "mask/token_trie.h"

#include <algorithm>

namespace structgen {

void TokenTrie::build(std::vector<std::pair<std::string_view, TokenId>> tokens) {
  std::sort(tokens.begin(), tokens.end());
  nodes_.assign(1, Node{});
  order_.clear();
  order_.reserve(tokens.size());
  std::vector<uint32_t> path{0};  // node at each depth
  std::string_view last;
  const auto close_to = [&](std::size_t depth) {
    while (path.size() > depth + 1) {
      nodes_[path.back()].end = static_cast<uint32_t>(nodes_.size());
      path.pop_back();
    }
  };
  for (const auto& [text, id] : tokens) {
    const std::size_t shared = static_cast<std::size_t>(
        std::mismatch(last.begin(), last.end(), text.begin(), text.end()).first - last.begin());
    close_to(std::min(shared, text.size()));
    for (std::size_t d = path.size() - 1; d < text.size(); ++d) {
      Node n;
      n.byte = static_cast<uint8_t>(text[d]);
      n.depth = static_cast<uint32_t>(d + 1) & 0xFFFFFF;
      n.rank = static_cast<uint32_t>(order_.size());
      path.push_back(static_cast<uint32_t>(nodes_.size()));
      nodes_.push_back(n);
    }
    order_.push_back(id);
    last = text;
  }
  close_to(0);
  const uint32_t count = static_cast<uint32_t>(nodes_.size());
  nodes_[0].end = count;
  Node sentinel;
  sentinel.rank = static_cast<uint32_t>(order_.size());
  sentinel.end = count;
  nodes_.push_back(sentinel);
  // Children records, after the tree is known.
  kids_.assign(1, Kids{});
  children_.clear();
  for (uint32_t i = 0; i < count; ++i) {
    if (nodes_[i].end == i + 1) continue;
    Kids k;
    k.first = static_cast<uint32_t>(children_.size());
    for (uint32_t c = i + 1; c < nodes_[i].end; c = nodes_[c].end) {
      k.set.add(static_cast<uint8_t>(nodes_[c].byte));
      children_.push_back(c);
    }
    uint32_t sum = 0;
    for (int w = 0; w < 3; ++w) k.before[w] = sum += static_cast<uint32_t>(std::popcount(k.set.w[w]));
    nodes_[i].kids = static_cast<uint32_t>(kids_.size());
    kids_.push_back(k);
  }
}

}  // namespace structgen
