// Hash-consed sets of stacks: a persistent stack for grammars that are ambiguous.
//
// In: a symbol that is pushed on a set, or two sets that are united. Out: StackId. Equal ids are equal
// sets. Equal sets have equal ids, unless a union gave up merging them, which happens below kMergeDepth
// (stack.cc). Cost: a push is one look-up; a union is linear in the tops that differ, and remembered. A
// set is a directed acyclic graph {top symbol -> set of rests}, so ambiguous grammars stay polynomial.
// {a b, a c} is one entry `a` above the set {b, c}.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/arena.h"
#include "base/ids.h"
#include "base/intern.h"
#include "parse/productions.h"

namespace structgen {

// All stacks with the symbol `top` at the top; `rest` is the set of stacks below it.
struct StackEntry {
  Symbol top;
  StackId rest;
};

// Stores all sets of stacks of a parser; equal sets have one number.
class StackArena {
 public:
  StackArena();
  // Returns the set without any stack: no text can be read.
  static constexpr StackId none() { return StackId{0}; }
  // Returns the set of the empty stack: the text may end.
  static constexpr StackId end() { return StackId{1}; }
  // Returns the set in which `top` stands above every stack of `rest`.
  StackId push(Symbol top, StackId rest);
  // Does the same for several symbols, of which symbols[0] becomes the top.
  StackId push(std::span<const Symbol> symbols, StackId rest);
  // Returns the union of two sets.
  StackId unite(StackId a, StackId b) { return unite(a, b, 0); }
  // Returns the union of one or more sets; `all` is overwritten. Sets are united in pairs: if n sets were
  // added one by one, the unions on the way would take n * n / 2 entries.
  StackId unite(std::span<StackId> all);
  // entries() returns the entries of a set, sorted by top; has_end() tells whether the empty stack is in the
  // set.
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
    // The first set that was made by pushing one symbol on this one, or 0. Most sets have one such set, made
    // right after them; this member saves a look-up in a table of millions, which is a cache miss.
    uint32_t above = 0;
  };
  StackId unite(StackId a, StackId b, uint32_t depth);
  StackId intern(std::span<const StackEntry> entries, bool end);
  uint32_t add(std::span<const StackEntry> entries, bool end);
  // nodes_[id] is a set of stacks.
  StableVector<Node> nodes_;
  // Finds equal sets, among those to which no `above` points.
  InternTable index_;
  BumpPool pool_;
  // The union of two sets that are not none(). `pair` holds the smaller number in its high half, the larger
  // in its low half.
  struct Union {
    uint64_t pair;
    StackId set;
  };
  StableVector<Union> unions_;
  InternTable index_of_unions_;
};

}  // namespace structgen
