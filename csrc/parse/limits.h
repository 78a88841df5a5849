// Limits on tokens: what becomes of a set of stacks where a token begins.
//
// In: stacks with marks (Symbol::kLimit), each of which says how many tokens may still begin in the text that
// is read above it. Out: the stacks after one more token has begun, those before it, and those without marks.
// Cost: a look-up; at first one new stack entry for every entry above a mark. Stacks without marks stay as
// they are.
//
// A mark is pushed together with what it limits and is passed like a note once that has been read, so nested
// occurrences each have their own. That a token begins takes one from every mark; a stack whose mark has none
// left is gone, unless the limited text ends here: then its mark was passed already.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "parse/stack.h"

namespace structgen {

class StackLimits {
 public:
  static constexpr uint32_t kUnlimited = 0xFFFFFFFFu;
  explicit StackLimits(StackArena& stacks) : stacks_(stacks) {}
  // The smallest mark of the stacks, or kUnlimited.
  uint32_t least(StackId s);
  // Of equal stacks but for a mark, that with the larger one allows all that the other does: the rest goes.
  StackId begin_token(StackId s) { return mapped(s, kBegin, begun_); }
  StackId without(StackId s) { return mapped(s, kWithout, without_); }
  // A token begins, and nothing is left out but stacks that are gone; take_back() is its inverse.
  StackId begin_token_exactly(StackId s) { return mapped(s, kExactly, exactly_); }
  StackId take_back(StackId s) { return mapped(s, kBack, back_); }
  std::size_t byte_size() const {
    return least_.capacity() * 4 + (begun_.size() + without_.size() + exactly_.size() + back_.size()) * 40;
  }

 private:
  enum Change { kBegin, kWithout, kExactly, kBack };
  using Memo = std::unordered_map<uint32_t, uint32_t>;
  StackId mapped(StackId s, Change change, Memo& memo);
  StackId changed(StackId s, Change change, const Memo& memo);

  StackArena& stacks_;
  std::vector<uint32_t> least_;  // by stack
  Memo begun_, without_, exactly_, back_;
};

}  // namespace structgen
