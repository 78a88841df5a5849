// Hash-consed sets of stacks. An ambiguous grammar needs a set of stacks at once; equal parts of all sets are
// stored once.
//
// In: a symbol that is pushed on a set, or two sets that are united. Out: StackId. Equal ids are equal sets.
// Equal sets have equal ids, unless a union gave up merging them, which happens below kMergeDepth (stack.cc).
// Cost: a push is one look-up; a union is linear in the number of different tops, and is remembered. A set is
// a directed acyclic graph {top symbol -> set of rests}, so ambiguous grammars stay polynomial. {a b, a c} is
// one entry `a` above the set {b, c}.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/arena.h"
#include "base/ids.h"
#include "base/intern.h"
#include "parse/productions.h"

namespace structgen {

// Stacks with the same symbol at the top: `top`, above each stack of the set `rest`.
struct StackEntry {
  Symbol top;
  StackId rest;
};

class StackArena {
 public:
  StackArena();
  // Returns the empty set of stacks: nothing can be read, and the text cannot end.
  static constexpr StackId none() { return StackId{0}; }
  // Returns the set of only the empty stack, at which a text may end.
  static constexpr StackId end() { return StackId{1}; }
  StackId push(Symbol top, StackId rest);
  // Pushes several symbols; symbols[0] becomes the top.
  StackId push(std::span<const Symbol> symbols, StackId rest);
  StackId unite(StackId a, StackId b) { return unite(a, b, 0); }
  // Returns the union of one or more sets; `all` is overwritten. The sets are united in pairs, then the
  // unions in pairs: adding n sets to one union would copy n * n / 2 entries.
  StackId unite(std::span<StackId> all);
  // entries() has the stacks of a set that are not empty, by their top. has_end() tells whether the set has
  // the empty stack.
  std::span<const StackEntry> entries(StackId s) const { return {nodes_[s.v].entries, nodes_[s.v].n}; }
  bool has_end(StackId s) const { return nodes_[s.v].end; }
  uint32_t size() const { return nodes_.size(); }
  std::size_t byte_size() const;

 private:
  struct Node {
    const StackEntry* entries =
        nullptr;  // sorted by top; one for each top, except deep in a union (stack.cc)
    uint32_t n : 31 = 0;
    uint32_t end : 1 = false;
    // One set made by pushing a symbol on this set, or 0. Most sets get only one such set, right after they
    // were made. Looking here first saves a look-up in a table of millions of entries, which is a cache miss.
    uint32_t above = 0;
  };
  StackId unite(StackId a, StackId b, uint32_t depth);
  StackId intern(std::span<const StackEntry> entries, bool end);
  uint32_t add(std::span<const StackEntry> entries, bool end);
  StableVector<Node> nodes_;
  // Finds equal sets. Sets that some `above` names are not in it.
  InternTable index_;
  BumpPool pool_;
  // The union of two sets, neither of them none(). `pair` has the smaller number in its upper 32 bits, the
  // larger one in its lower 32 bits.
  struct Union {
    uint64_t pair;
    StackId set;
  };
  StableVector<Union> unions_;
  InternTable index_of_unions_;
};

}  // namespace structgen
