// Limits on tokens: how a set of stacks changes when a token begins.
//
// In: stacks with marks (Symbol::kLimit). A mark says how many tokens may still begin in the text that the
// symbols above the mark read. Out: the stacks after one more token has begun, the stacks before that token,
// and the stacks without marks. Cost: a look-up; the first time one new entry for every stack entry above a
// mark. Stacks without marks stay as they are.
//
// A mark is pushed together with the rule that it limits, and is popped when this rule has been read; so each
// occurrence of the rule has a mark of its own. When a token begins, every mark goes down by one. A stack
// whose mark is at 0 is dropped, unless the limited text ends there, because then its mark was passed
// already. With max_tokens = 2 for a name, the stacks behind two tokens are those in which the name has
// ended.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "parse/productions.h"
#include "parse/stack.h"

namespace structgen {

class StackLimits {
 public:
  // The result of least() for stacks without a mark.
  static constexpr uint32_t kUnlimited = 0xFFFFFFFFu;
  explicit StackLimits(StackArena& stacks) : stacks_(stacks) {}
  // Returns the smallest mark in the stacks, or kUnlimited if they have none.
  uint32_t least(StackId s);
  // Returns true if the stacks have a mark, or if reading them may push one.
  bool possible(StackId s, const Productions& productions);
  // Returns the stacks after one more token has begun. If two stacks differ in one mark alone, only the one
  // with the larger mark is kept: it allows all that the other allows.
  StackId begin_token(StackId s) { return mapped(s, kBegin, begun_); }
  StackId without(StackId s) { return mapped(s, kWithout, without_); }
  // Returns the stacks after one more token has begun, but keeps stacks that begin_token() would merge, so
  // that take_back() can undo it. Stacks with a mark at 0 are dropped.
  StackId begin_token_exactly(StackId s) { return mapped(s, kExactly, exactly_); }
  StackId take_back(StackId s) { return mapped(s, kBack, back_); }
  std::size_t byte_size() const {
    return least_.capacity() * 4 + possible_.capacity() +
           (begun_.size() + without_.size() + exactly_.size() + back_.size()) * 40;
  }

 private:
  enum Change { kBegin, kWithout, kExactly, kBack };
  using Memo = std::unordered_map<uint32_t, uint32_t>;
  StackId mapped(StackId s, Change change, Memo& memo);
  StackId changed(StackId s, Change change, const Memo& memo);

  StackArena& stacks_;
  std::vector<uint32_t> least_;
  std::vector<uint8_t> possible_;
  Memo begun_, without_, exactly_, back_;
};

}  // namespace structgen
