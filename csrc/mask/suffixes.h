// The endings of tokens that leave a run or a lexeme, as a trie of their own.
//
// In: the bytes that each token holds after it has left. Out: a trie in depth-first order. Cost: a
// merge where most texts come in order, a sort where they do not.
//
// Example: the tokens `a",`, `b",` and `x"]` leave a string with the endings `,`, `,` and `]`. The trie
// has two nodes, and the first holds two tokens. Hundreds of tokens leave a string; their endings are a
// few dozen.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/ids.h"

namespace structgen {

// A trie of endings. Node i's subtree is [i, nodes[i].end); the tokens that end at node i are
// entries[nodes[i].first .. nodes[i + 1].first).
struct Suffixes {
  struct Node {
    uint32_t end = 0;    // first node after the subtree, in depth-first order
    uint32_t first = 0;  // tokens that end here: entries[first .. next node's first)
    uint32_t depth = 0;
    uint8_t byte = 0;
  };
  struct Entry {
    TokenId token;
    // The number of elements (or the depth, for lexemes) before the token left.
    uint32_t count;
  };
  // There is no root; the last node is a sentinel.
  std::vector<Node> nodes;
  std::vector<Entry> entries;
  uint32_t depth = 0;
  // Whether the trie stays where it is as long as the world's slices, so that facts about it may be
  // kept by its address. Tries of runs do; those of lexemes go with their grammar.
  bool lasting = false;
};

struct SuffixText {
  // Must live as long as the call of build_suffixes().
  std::string_view text;
  Suffixes::Entry entry;
};

void build_suffixes(std::vector<SuffixText> texts, Suffixes& out);

}  // namespace structgen
