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

// A trie of endings: what tokens hold behind the byte at which they leave a run or a lexeme. Node i's subtree
// is [i, nodes[i].end), and the tokens that end at node i are entries[nodes[i].first .. nodes[i + 1].first).
struct Suffixes {
  struct Node {
    uint32_t end = 0;    // first node after the subtree, in depth-first order
    uint32_t first = 0;  // tokens that end here: entries[first .. next node's first)
    uint32_t depth = 0;
    uint8_t byte = 0;
  };
  struct Entry {
    TokenId token;
    // The number of elements before the token leaves its run, or the depth at which it leaves a lexeme.
    uint32_t count;
  };
  // The nodes in depth-first order, without a root; the last one is a sentinel.
  std::vector<Node> nodes;
  std::vector<Entry> entries;
  uint32_t depth = 0;
  // Tells that the trie lives as long as the slices of the world, so that facts may be kept by its address.
  // This holds for tries of runs; a trie of lexemes goes with its grammar.
  bool lasting = false;
};

// A node of the vocabulary's trie at whose byte endings begin.
struct SuffixStart {
  uint32_t node;
  // The Suffixes::Entry::count of all tokens at and below the node.
  uint32_t count;
};

// Merges the subtrees of the nodes into one trie of endings.
void build_suffixes(const TokenTrie& trie, std::vector<SuffixStart> starts, Suffixes& out);

}  // namespace structgen
