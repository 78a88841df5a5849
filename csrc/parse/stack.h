// Hash-consed sets of stacks: the persistent stack.
//
// In: a symbol pushed on a set, two sets united. Out: StackId. Equal ids are equal sets; equal sets have
// equal ids unless a union gave up merging them, which only stacks deeper than kMergeDepth (stack.cc) see.
// Cost: a push is one look-up; a union is linear in the tops that differ and memoised. A set is a DAG
// {top symbol -> set of rests}, so ambiguous grammars stay polynomial.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/arena.h"
#include "base/flat_map.h"
#include "base/ids.h"
#include "base/intern.h"
#include "parse/productions.h"

namespace structgen {

struct StackEntry {
  Symbol top;
  StackId rest;
};

class StackArena {
 public:
  StackArena();
  static constexpr StackId none() { return StackId{0}; }  // no stack at all
  static constexpr StackId end() { return StackId{1}; }   // the empty stack: the text may end
  StackId push(Symbol top, StackId rest);
  StackId push(std::span<const Symbol> symbols, StackId rest);  // symbols[0] becomes the top
  StackId unite(StackId a, StackId b) { return unite(a, b, 0); }
  // Of one or more, which are overwritten. In pairs: added one by one, the sets of n alternatives, each
  // interned, would take n * n / 2 entries.
  StackId unite(std::span<StackId> all);
  std::span<const StackEntry> entries(StackId s) const { return {nodes_[s.v].entries, nodes_[s.v].n}; }
  bool has_end(StackId s) const { return nodes_[s.v].end; }
  uint32_t size() const { return nodes_.size(); }
  std::size_t byte_size() const;

 private:
  struct Node {
    const StackEntry* entries =
        nullptr;  // sorted by top; one for each top, except deep in a union (stack.cc)
    uint32_t n = 0;
    bool end = false;
  };
  StackId unite(StackId a, StackId b, uint32_t depth);
  StackId intern(std::span<const StackEntry> entries, bool end);
  StableVector<Node> nodes_;
  InternTable index_;
  BumpPool pool_;
  FlatMap<uint64_t, uint32_t> unions_;
};

}  // namespace structgen
