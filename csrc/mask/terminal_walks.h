// What one terminal reads below nodes of a trie, kept for all grammars of a world.
//
// In: a regex, and a set of nodes of the vocabulary's trie or of a trie of endings. Out: the tokens that end
// within the regex, the tokens that end it, and the set of nodes at which it ends and behind which tokens go
// on. Cost: a look-up for a pair that was met before; otherwise a walk of what the regex reads below the
// nodes.
//
// The problem. A mask walks the trie from its state, and each new state on the way costs a derivative for
// each item, a frontier and a look-up. Yet states differ mostly in their stacks, and few tokens reach down
// into the stacks: behind the value of each property of each object there is a gap, a comma, a gap and a
// quote.
//
// The idea. The walk is cut where a terminal ends. What a regex reads below a set of nodes does not depend on
// the stack, so it is kept. The nodes at which the regex ends form a set, which gets a number of its own. A
// mask then goes from terminal to terminal (MaskBuilder::read_from), and most of its walks were made by
// another grammar:
//
//     gap below {root}      inside: `_`, `__`, ... (blanks); it ends at each of them: B = {`_`, `__`, ...}
//     comma below {root}    it ends with the token `,` and at C = {`,`}
//     comma below B         it ends with the token `_,` and at D = {`_,`}
//
// Where possible, the walk of a new regex is put together from known walks. The walk of a concatenation is
// the walk of its first part, followed by the walk of the second part from the ends of the first. A string
// that must differ from some literals reads what any string reads, unless a token completes one of these
// literals.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/arena.h"
#include "base/bitset.h"
#include "base/flat_map.h"
#include "base/ids.h"
#include "mask/node_sets.h"
#include "mask/runs.h"
#include "mask/suffixes.h"
#include "mask/token_trie.h"
#include "regex/regex.h"

namespace structgen {

struct TerminalWalk {
  struct End {
    // The label as RegexNode::label() returns it: 0, or 1 + the label of the text that a labelled literal set
    // has read.
    uint32_t label;
    // The tokens that end where the regex ends and cannot go on.
    std::span<const Suffixes::Entry> tokens;
    // The nodes at which the regex ends while tokens go on below, as a set; none() if there are none.
    NodeSetId next;
  };
  // The tokens behind which the regex can go on. A walk that is put together from other walks has the lists
  // of these walks.
  std::span<const std::span<const Suffixes::Entry>> inside;
  // One entry for each label.
  std::span<const End> ends;
  // The depth of the deepest node at which the regex ends.
  uint32_t deepest;
};

// Keeps all terminal walks of a world. The caller holds the world's lock.
class TerminalWalks {
 public:
  TerminalWalks(RegexArena& regexes, const TokenTrie& trie) : regexes_(regexes), trie_(trie), sets_(trie) {}
  static constexpr NodeSetId none() { return NodeSets::none(); }
  // Returns the set of the root of a trie of endings, which must be `lasting`.
  NodeSetId root(const Suffixes& trie) { return sets_.intern(&trie, {&EndingsTrie::kRoot, 1}); }
  // Returns the set of some inner nodes of the vocabulary's trie, given in ascending order.
  NodeSetId nodes(std::span<const uint32_t> nodes) { return sets_.intern(nullptr, nodes); }
  // Returns the set of those exits below which tokens go on, without the sorted nodes `completed`.
  NodeSetId exits(const RunExits& exits, std::span<const uint32_t> completed);
  const TerminalWalk& walk(RegexId regex, NodeSetId from);
  // Returns the bytes by which some node of the set has a child.
  const ByteSet& bytes(NodeSetId set) const { return sets_[set].bytes; }
  std::span<const uint32_t> nodes_of(NodeSetId set) const { return sets_[set].nodes; }
  void tokens_below(NodeSetId from, std::vector<Suffixes::Entry>& out) const;
  std::size_t byte_size() const {
    return pool_.byte_size() + sets_.byte_size() + walks_.byte_size() + known_.byte_size();
  }

 private:
  bool parted(RegexId regex) const;
  TerminalWalk in_parts(RegexId regex, NodeSetId from);
  uint32_t number(RegexId regex, NodeSetId from);
  std::optional<uint32_t> without_literals(RegexId regex, NodeSetId from);
  template <class Trie>
  bool completes(const LiteralSet& literals, const NodeSet& from, uint32_t deepest, const Trie& trie) const;
  template <class Trie>
  TerminalWalk make(RegexId regex, const NodeSet& from, const Trie& trie);
  struct Found {
    uint32_t label;
    std::vector<Suffixes::Entry> tokens;
    std::vector<uint32_t> nodes;
  };
  RegexArena& regexes_;
  const TokenTrie& trie_;
  NodeSets sets_;
  // What make() has collected so far. These are members so that their memory is reused.
  std::vector<Suffixes::Entry> inside_;
  std::vector<Found> ends_;
  // The number of concatenations that are being walked kid by kid, one inside the other.
  uint32_t nested_ = 0;
  BumpPool pool_;
  StableVector<TerminalWalk> walks_;
  // The answers of exits() for an empty `completed`.
  std::unordered_map<const RunExits*, NodeSetId> exits_;
  // The index of each known walk, by regex and set of nodes.
  FlatMap<uint64_t, uint32_t> known_;
};

}  // namespace structgen
