// The effect of one token, whichever token it is, on a regex.
//
// In: a regex, and a set of nodes of the trie at which tokens go on with the regex: the root, or the nodes at
// which a terminal in front of it ended. Out: the derivatives in which tokens end inside the regex, and the
// nodes at which the regex ends inside tokens. Cost: a walk of the trie below those nodes, once for each pair
// of regex and set. Large branches of the trie are remembered by the derivative that meets them, so their
// walks are shared. The symbols behind the regex do not matter, so all grammars of a world share the answers.
//
// Example, the tokens `a`, `ab`, `a"`, `a",` and the regex [a-z]*": `left` is [a-z]*" (for `a` and
// `ab`) and the empty rest (for `a"`); `exits` has the node of `a"`, at which the token `a",` goes on.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <utility>
#include <vector>

#include "base/flat_map.h"
#include "base/ids.h"
#include "mask/node_sets.h"
#include "regex/regex.h"

namespace structgen {

// The effect of one token on a regex: what is left inside the regex, and where tokens leave it.
struct Stride {
  // A derivative keeps at most so many tokens as examples.
  static constexpr std::size_t kExamples = 6;
  // A derivative in which some tokens end.
  struct Left {
    RegexId regex;
    // Some of the tokens that lead to this derivative.
    std::vector<TokenId> examples;
  };
  // The nodes of the trie at which the regex ends with one label, inside tokens that go on.
  struct Exit {
    // 1 + the label with which the regex ended, or 0.
    uint32_t label;
    NodeSetId nodes;
  };
  std::vector<Left> left;
  std::vector<Exit> exits;
  // tokens[i] holds all tokens that lead to left[i]; empty until tokens() is called.
  std::vector<std::vector<TokenId>> tokens;
};

// Computes and keeps the strides of a world.
class Strides : public RegexCache {
 public:
  // A world has one table (RegexArena::cache), whose remembered branches take at most `most` bytes.
  Strides(RegexArena& regexes, const TokenTrie& trie, std::size_t most);
  // The set of the root alone, where tokens begin.
  static constexpr NodeSetId kRoot{1};
  // Returns the stride of a regex from some nodes. If the remembered branches take too many bytes, all are
  // forgotten; strides stay.
  Stride& stride(RegexId r, NodeSetId from);
  // Returns all tokens that lead to the derivative number `left` of a stride.
  const std::vector<TokenId>& tokens(RegexId r, NodeSetId from, std::size_t left);
  std::size_t byte_size() const override {
    return bytes_ + sets_.byte_size() + known_.byte_size() + branch_index_.byte_size();
  }
  NodeSets& sets() { return sets_; }

 private:
  // What the tokens below one node of the trie do to a regex.
  struct Branch {
    std::vector<Stride::Left> left;
    // Pairs (label, node): tokens leave the regex with this label at this node.
    std::vector<std::pair<uint32_t, uint32_t>> exits;
    std::size_t byte_size() const { return sizeof(Branch) + left.size() * 64 + exits.size() * 8; }
  };
  // A branch that is being collected.
  struct Gathering {
    Branch all;
    // The index of each regex in all.left.
    FlatMap<uint32_t, uint32_t> number;
    void add(RegexId to, std::span<const TokenId> tokens);
  };
  const Branch& branch(uint32_t node, RegexId r);
  void gather(std::span<const uint32_t> from, RegexId r, Gathering& out);
  RegexArena& regexes_;
  // The trie of the world's vocabulary.
  const VocabularyTrie trie_;
  // The most bytes of branches_; beyond them stride() forgets all branches.
  const std::size_t most_;
  // Numbers the sets of nodes.
  NodeSets sets_;
  // Holds the index in strides_, by regex and set of nodes.
  FlatMap<uint64_t, uint32_t> known_;
  std::deque<Stride> strides_;
  // Holds the index in branches_, by node and regex.
  FlatMap<uint64_t, uint32_t> branch_index_;
  std::deque<Branch> branches_;
  // Count the bytes of strides_ and of branches_.
  std::size_t bytes_ = 0, branch_bytes_ = 0;
};

}  // namespace structgen
