// The endings of tokens that leave something, as a trie of their own.
//
// In: what each token holds after it has left. Out: a trie in depth-first order. Cost: a merge of what is in
// order, a sort where little is.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/ids.h"

namespace structgen {

// What tokens hold after they have left a run, as a trie of its own: hundreds of tokens leave a string,
// their endings are a few dozen.
struct Suffixes {
  struct Node {
    uint32_t end = 0;    // first node after the subtree, in depth-first order
    uint32_t first = 0;  // tokens that end here: entries[first .. next node's first)
    uint32_t depth = 0;
    uint8_t byte = 0;
  };
  struct Entry {
    TokenId token;
    uint32_t count;  // elements before the run was left
  };
  std::vector<Node> nodes;  // a sentinel at the end; no root
  std::vector<Entry> entries;
  uint32_t depth = 0;
  // Whether it stays where it is as long as the world's slices, so that what is told of it may be kept by its
  // address. Those of runs do; those of lexemes go with their grammar.
  bool lasting = false;
};

struct SuffixText {
  std::string_view text;  // lives as long as the call
  Suffixes::Entry entry;
};

void build_suffixes(std::vector<SuffixText> texts, Suffixes& out);

}  // namespace structgen
