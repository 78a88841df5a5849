// What one token, whichever it is, does to a regex.
//
// In: a regex, and the places of the trie at which tokens go on with it: the root, or where a terminal in
// front of it ended. Out: the derivatives in which tokens end inside it, and the places at which it ends
// within tokens. Cost: a walk of the trie below those places, once for each pair, but for large branches in
// which the derivative is one that was met there before; what stands behind the regex does not matter to it,
// so all grammars of a world share the answers.
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
    std::vector<TokenId> examples;  // tokens that end there
  };
  struct Exit {
    uint32_t label;  // 1 + what the regex ended in, or 0
    uint32_t places;
  };
  std::vector<Left> left;
  std::vector<Exit> exits;
  // Tokens that end in each of `left`, once they were asked for.
  mutable std::vector<std::vector<TokenId>> tokens;
  mutable bool listed = false;
};

class Strides : public RegexCache {
 public:
  // The table of a world, made on first use: `vocabulary` is the world's.
  // `most`: bytes of what is remembered of branches.
  static Strides& of(RegexArena& regexes, const Vocabulary& vocabulary, std::size_t most);
  Strides(RegexArena& regexes, const Vocabulary& vocabulary, std::size_t most);
  static constexpr uint32_t kRoot = 0;  // the set of places where a token begins
  const Stride& stride(RegexId r, uint32_t places);
  const std::vector<TokenId>& tokens(RegexId r, uint32_t places, std::size_t left);
  std::size_t byte_size() const override {
    return bytes_ + index_.byte_size() + known_.byte_size() + branch_index_.byte_size();
  }
  // The number of a set of places.
  uint32_t intern(std::vector<uint32_t>& places);
  const std::vector<uint32_t>& places(uint32_t set) const { return sets_[set]; }

 private:
  struct Branch {  // what the tokens below a node of the trie do
    std::vector<Stride::Left> left;
    std::vector<std::pair<uint32_t, uint32_t>> exits;  // label, node
  };
  struct Gathering {
    Branch& out;
    FlatMap<uint32_t, uint32_t> number;  // of each regex in out.left
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
