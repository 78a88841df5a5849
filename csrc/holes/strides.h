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

// What any one token does to a regex: the derivatives that tokens leave, and the points at which tokens leave
// the regex.
struct Stride {
  // At most this many tokens are kept as examples of a derivative.
  static constexpr std::size_t kExamples = 6;
  // A derivative of the regex behind some tokens.
  struct Left {
    RegexId regex;
    std::vector<TokenId> examples;
  };
  // The trie nodes at which the regex ends with one label while longer tokens go on below.
  struct Exit {
    // 1 + the label with which the regex ended, or 0.
    uint32_t label;
    NodeSetId nodes;
  };
  std::vector<Left> left;
  std::vector<Exit> exits;
  // tokens[i] holds all tokens that end in left[i]. It is empty until tokens() is called.
  std::vector<std::vector<TokenId>> tokens;
};

class Strides : public RegexCache {
 public:
  // A world has one such object (RegexArena::cache). Remembered branches take at most `most` bytes.
  Strides(RegexArena& regexes, const TokenTrie& trie, std::size_t most);
  static constexpr NodeSetId kRoot{1};
  // Returns the stride of a regex from some trie nodes on. If the remembered branches take too many bytes,
  // all branches are forgotten, but no strides.
  Stride& stride(RegexId r, NodeSetId from);
  const std::vector<TokenId>& tokens(RegexId r, NodeSetId from, std::size_t left);
  std::size_t byte_size() const override {
    return bytes_ + sets_.byte_size() + known_.byte_size() + branch_index_.byte_size();
  }
  NodeSets& sets() { return sets_; }

 private:
  // What the tokens below one trie node do to a regex.
  struct Branch {
    std::vector<Stride::Left> left;
    // Pairs (label, node): at this node tokens leave the regex with this label.
    std::vector<std::pair<uint32_t, uint32_t>> exits;
    std::size_t byte_size() const { return sizeof(Branch) + left.size() * 64 + exits.size() * 8; }
  };
  // A branch or stride while it is being collected.
  struct Gathering {
    Branch all;
    // Finds the index of a derivative in `all.left`, by its regex.
    FlatMap<uint32_t, uint32_t> number;
    void add(RegexId to, std::span<const TokenId> tokens);
  };
  const Branch& branch(uint32_t node, RegexId r);
  void gather(std::span<const uint32_t> from, RegexId r, Gathering& out);
  RegexArena& regexes_;
  const VocabularyTrie trie_;
  const std::size_t most_;
  NodeSets sets_;
  // Finds a stride in strides_, by regex and set of nodes.
  FlatMap<uint64_t, uint32_t> known_;
  std::deque<Stride> strides_;
  // Finds a branch in branches_, by node and regex.
  FlatMap<uint64_t, uint32_t> branch_index_;
  std::deque<Branch> branches_;
  std::size_t bytes_ = 0, branch_bytes_ = 0;
};

}  // namespace structgen
