// The tokens as a byte trie in depth-first order.
//
// In: token byte strings. Out: nodes 0..n-1 in depth-first order. Node 0 is the root, and the subtree
// of i is [i, end(i)), so a walk skips a subtree by setting i = end(i). Children are found by byte
// through a 256-bit set and a rank. Cost: 20 bytes a node, 48 more for an inner node.
//
// Example, the tokens `a`, `ab`, `b`: nodes 0 (root), 1 `a`, 2 `ab`, 3 `b`; end(1) = 3; the tokens in
// order are a, ab, b, and subtree_tokens(1) = {a, ab}.
//
// The order of tokens is that of the nodes. So the tokens of a subtree are one span, whose begin and
// end are ranks.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/bitset.h"
#include "base/column.h"
#include "base/ids.h"

namespace structgen {

class TokenTrie {
 public:
  struct Node {
    uint32_t end = 0;   // first node after the subtree
    uint32_t rank = 0;  // tokens that come before this node in depth-first order
    // The index of the node's Kids record, or 0 for a leaf.
    uint32_t kids = 0;
    uint32_t byte : 8 = 0;
    uint32_t depth : 24 = 0;
  };
  // The children of an inner node. `set` has their bytes; in `children_` they begin at the index `first`, in
  // the order of their bytes.
  struct Kids {
    ByteSet set;
    uint32_t first = 0;
    // before[i] is the number of children in the words 0 to i of `set`.
    uint32_t before[3] = {};
  };

  // The arrays of a finished trie, as they are written to a file or mapped from one.
  struct Parts {
    std::span<const Node> nodes;
    std::span<const Kids> kids;
    std::span<const uint32_t> children;
    std::span<const TokenId> order;
    std::span<const uint32_t> below;
  };

  // Builds the trie from pairs (bytes, id). No token has empty bytes; several tokens may have the same bytes.
  void build(std::vector<std::pair<std::string_view, TokenId>> tokens);

  // Takes a finished trie in memory that must outlive this object.
  void view(const Parts& parts);
  Parts parts() const { return {nodes_.all(), kids_.all(), children_.all(), order_.all(), below_.all()}; }
  // Tells whether every index of a loaded trie stays inside the arrays. Walks do not check this.
  bool sound(uint32_t vocabulary, uint32_t longest) const;

  uint32_t size() const { return static_cast<uint32_t>(nodes_.size() - 1); }
  const Node& node(uint32_t i) const { return nodes_[i]; }
  const Kids& kids(uint32_t i) const { return kids_[nodes_[i].kids]; }
  bool leaf(uint32_t i) const { return nodes_[i].kids == 0; }
  uint32_t child(const Kids& k, uint8_t b) const {
    const uint32_t w = b >> 6;
    const uint32_t below = static_cast<uint32_t>(std::popcount(k.set.w[w] & ((1ull << (b & 63)) - 1)));
    return children_[k.first + (w ? k.before[w - 1] : 0) + below];
  }
  // Calls f(child, byte) for the children of a node by these bytes, in ascending order.
  template <class F>
  void each_child(uint32_t i, const ByteSet& bytes, F&& f) const {
    const Kids& k = kids(i);
    uint32_t at = k.first;
    for (uint32_t w = 0; w < 4; ++w) {
      // If all children of a word are asked for, they are read one after the other.
      const uint64_t asked = k.set.w[w] & bytes.w[w];
      const bool all = asked == k.set.w[w];
      for (uint64_t rest = asked; rest; rest &= rest - 1) {
        const uint8_t b = static_cast<uint8_t>(w * 64 + static_cast<uint32_t>(std::countr_zero(rest)));
        f(all ? children_[at++] : child(k, b), b);
      }
      if (w < 3) at = k.first + k.before[w];
    }
  }
  static uint32_t count(const Kids& k) {
    return k.before[2] + (k.set.w[3] ? static_cast<uint32_t>(std::popcount(k.set.w[3])) : 0);
  }
  // tokens() returns the tokens that end at the node, subtree_tokens() those that end at the node or below
  // it.
  std::span<const TokenId> tokens(uint32_t i) const {
    return {order_.data() + nodes_[i].rank, nodes_[i + 1].rank - nodes_[i].rank};
  }
  std::span<const TokenId> subtree_tokens(uint32_t i) const {
    return {order_.data() + nodes_[i].rank, nodes_[nodes_[i].end].rank - nodes_[i].rank};
  }
  uint32_t below(uint32_t i) const { return below_[i]; }
  std::size_t byte_size() const {
    return nodes_.byte_size() + kids_.byte_size() + children_.byte_size() + order_.byte_size() +
           below_.byte_size();
  }

 private:
  // The nodes in depth-first order, followed by a sentinel.
  Column<Node> nodes_;
  // The children of inner nodes; record 0 stands for no children.
  Column<Kids> kids_;
  Column<uint32_t> children_;
  Column<TokenId> order_;
  Column<uint32_t> below_;
};

}  // namespace structgen
