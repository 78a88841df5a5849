// The effect of one token, whichever it is, on a regex.
//
// In: a regex, and the places of the trie at which tokens go on with it: the root, or the nodes at
// which a terminal in front of it ended. Out: the derivatives in which tokens end inside the regex, and
// the places at which the regex ends inside tokens. Cost: a walk of the trie below those places, once
// for each pair of regex and places. Large branches of the trie are remembered by the derivative that
// meets them, so their walks are shared. The symbols behind the regex do not matter, so all grammars of
// a world share the answers.
//
// Example, the tokens `a`, `ab`, `a"`, `a",` and the regex [a-z]*": `left` is [a-z]*" (for `a` and
// `ab`) and the empty rest (for `a"`); `exits` has the node of `a"`, at which the token `a",` goes on.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/flat_map.h"
#include "base/intern.h"
#include "mask/vocabulary.h"
#include "regex/regex.h"

namespace structgen {

struct Stride {
  static constexpr std::size_t kExamples = 6;
  struct Left {
    RegexId regex;
    // Some tokens that end there.
    std::vector<TokenId> examples;
  };
  struct Exit {
    // 1 + the label in which the regex ended, or 0.
    uint32_t label;
    uint32_t places;
  };
  std::vector<Left> left;
  std::vector<Exit> exits;
  // For each of `left` all tokens that end there; made when they are first asked for.
  mutable std::vector<std::vector<TokenId>> tokens;
  mutable bool listed = false;
};

class Strides : public RegexCache {
 public:
  // The table of a world, made on first use. `vocabulary` is the world's. `most`: bytes of the branches
  // that are remembered.
  static Strides& of(RegexArena& regexes, const Vocabulary& vocabulary, std::size_t most);
  Strides(RegexArena& regexes, const Vocabulary& vocabulary, std::size_t most);
  // The set of places at which a token begins.
  static constexpr uint32_t kRoot = 0;
  const Stride& stride(RegexId r, uint32_t places);
  // All tokens that end in the derivative number `left` of a stride.
  const std::vector<TokenId>& tokens(RegexId r, uint32_t places, std::size_t left);
  std::size_t byte_size() const override {
    return bytes_ + index_.byte_size() + known_.byte_size() + branch_index_.byte_size();
  }
  // The number of a set of places.
  uint32_t intern(std::vector<uint32_t>& places);
  const std::vector<uint32_t>& places(uint32_t set) const { return sets_[set]; }

 private:
  // The effect of the tokens below one node of the trie.
  struct Branch {
    std::vector<Stride::Left> left;
    // Pairs of a label and a node.
    std::vector<std::pair<uint32_t, uint32_t>> exits;
  };
  struct Gathering {
    Branch& out;
    // The index of each regex in out.left.
    FlatMap<uint32_t, uint32_t> number;
    void add(RegexId to, std::span<const TokenId> tokens);
  };
  const Branch& branch(uint32_t node, RegexId r);
  void gather(uint32_t from, RegexId r, Gathering& out);
  template <class Token, class Out>
  void walk(RegexId r, uint32_t places, Token&& token, Out&& out);
  RegexArena& regexes_;
  const Vocabulary& vocabulary_;
  const std::size_t most_;
  std::vector<std::vector<uint32_t>> sets_;
  InternTable index_;
  FlatMap<uint64_t, uint32_t> known_;
  std::vector<std::unique_ptr<Stride>> strides_;
  FlatMap<uint64_t, uint32_t> branch_index_;
  std::vector<std::unique_ptr<Branch>> branches_;
  std::size_t bytes_ = 0, branch_bytes_ = 0;
};

}  // namespace structgen
