// The endings of tokens that leave a run or a lexeme, as a trie of their own.
//
// In: the nodes of the vocabulary's trie at which tokens have left. Out: a trie in depth-first order. Cost: a
// few loads for each node of their subtrees; no text is compared.
//
// Example: the tokens `a",`, `b",` and `x"]` leave a string with the endings `,`, `,` and `]`. The trie
// has two nodes, and the first holds two tokens. Hundreds of tokens leave a string; their endings are a
// few dozen.
#pragma once

#include <cstdint>
#include <vector>

#include "base/ids.h"
#include "mask/token_trie.h"

namespace structgen {

// A trie of endings: the bytes of tokens behind the byte by which they leave a run or a lexeme. The subtree
// of node i is [i, nodes[i].end). The tokens that end at node i are the entries from nodes[i].first to
// nodes[i + 1].first - 1.
struct Suffixes {
  struct Node {
    uint32_t end = 0;    // first node after the subtree, in depth-first order
    uint32_t first = 0;  // tokens that end here: entries[first .. next node's first)
    uint32_t depth = 0;
    uint8_t byte = 0;
  };
  struct Entry {
    TokenId token;
    // For a run: the number of elements before the token leaves it. For a lexeme: the depth at which the
    // token leaves it.
    uint32_t count;
  };
  // The nodes in depth-first order, without a root; the last one is a sentinel.
  std::vector<Node> nodes;
  std::vector<Entry> entries;
  uint32_t depth = 0;
  // True if the trie lives as long as the slices of the world, so that facts about it may be remembered by
  // its address. The tries of runs live so long; the trie of a lexeme is freed with its grammar.
  bool lasting = false;
};

// A node of the vocabulary's trie at which a token leaves a run or lexeme. The node's byte is the first byte
// of the ending.
struct SuffixStart {
  uint32_t node;
  // The `count` of all entries that come from this node.
  uint32_t count;
};

void build_suffixes(const TokenTrie& trie, std::vector<SuffixStart> starts, Suffixes& out);

}  // namespace structgen
