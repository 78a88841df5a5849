// Who may use which share of a compiler's cache_bytes, and what is dropped first.
//
// In: cache_bytes. Out: limits in bytes. Cost: none.
//
// The holders of memory, and the limit of each, from the cheapest to replace to the dearest:
//
// Slices: masks of the inside of strings, one a regex, and what terminals read (mask/terminal_walks.h).
// Slices are dropped before a mask is made if they take more than a quarter of cache_bytes. One text uses the
// same slices again and again, and a new slice costs a walk over the trie.
//
// An epoch: states and masks of one grammar. When an epoch takes half of cache_bytes, the grammar opens a new
// epoch, and its matchers move the states of their texts to the new epoch (engine/grammar.h). The limit is
// half, because the old epoch lives until its last matcher has left it.
//
// A world: automata that its grammars share. No automaton of a world is dropped alone, because ids of
// automata are held everywhere. When a world exceeds its share, the compiler opens another world, and the old
// world is freed with the last grammar that was made in it. The share is half of the whole, divided among the
// worlds that are open.
//
// Grammars: those that the compiler keeps (`Compiler::keep`); Python finds them by their text. Once all
// worlds together exceed cache_bytes, the grammars that were used longest ago are dropped until three
// quarters of cache_bytes are left. A quarter is freed at once, on another thread (engine/reaper.h), because
// freeing a few grammars at each compile would add to the median compile time.
//
// Trials: texts that a mask under a budget tries (budget/trial.h), at most two thousand a mask. They add
// automata for texts that nobody writes. Once a world has `tried()` bytes of such automata, no more texts are
// tried in it, and a mask that would try some is inexact.
//
// What budgets, canvases and middles keep beside states. Each of these has a limit of its own, at which it
// stops growing or is emptied. If the limit makes an answer less exact, the answer says so. There are: edges
// of searches for fewer tokens (budget/token_graph.h), rows within a budget (budget/budget.h), what tokens
// can spell (budget/spellable.h), what any token does to a regex (holes/strides.h), the states that read a
// middle (holes/quotient.h), clouds (engine/canvas.h).
//
// Runs of characters belong to the vocabulary, which several compilers share. Runs that no world uses any
// more stay up to 24 MB (mask/runs.cc), whatever cache_bytes is.
//
// One text alone may need more than the cache: its states cannot be dropped while a matcher stands in them.
// So a call fails only if its world exceeds `most()`, which is far above cache_bytes and protects the
// machine. This limit is looked at while automata and states are made, not only between calls. A grammar
// whose world is beyond `renewed()` is compiled again, in another world, when its text is asked for the next
// time.
//
// Example with cache_bytes = 64 MB and one world: slices 16 MB, an epoch and the world 32 MB each,
// grammars dropped down to 48 MB, a compile in a new world beyond 144 MB, an error beyond 576 MB.
#pragma once

#include <cstddef>

namespace structgen {

// Recipe, eviction 1: the limit, as a share of cache_bytes.
struct CachePolicy {
  std::size_t bytes;

  std::size_t slices() const { return bytes / 4; }
  std::size_t epoch() const { return bytes / 2; }
  std::size_t world(std::size_t open) const { return bytes / 2 / open; }
  // When memory is short, grammars are dropped until the worlds have at most this many bytes.
  std::size_t kept() const { return bytes / 4 * 3; }
  std::size_t tried() const { return bytes + (16u << 20); }
  std::size_t reach() const { return bytes / 8 + kOneSearch; }
  std::size_t rows() const { return bytes / 32; }
  std::size_t spelling() const { return bytes / 4 + kOneSearch; }
  std::size_t strides() const { return bytes / 4; }
  std::size_t middles() const { return bytes / 4; }
  std::size_t canvases() const { return bytes; }
  std::size_t renewed() const { return 2 * bytes + (16u << 20); }
  std::size_t most() const { return 8 * bytes + (64u << 20); }
  // A search under a budget may take this many bytes, however small the cache is. If the search needs more,
  // it answers from what was found so far.
  static constexpr std::size_t kOneSearch = 4u << 20;
  // The compiler keeps at most this many grammars, however small they are.
  static constexpr std::size_t kGrammars = 1024;
};

}  // namespace structgen
