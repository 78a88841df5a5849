// What one request asks of a matcher beyond its grammar: its own end tokens, a limit on all tokens,
// tokens after the end.
//
// In: ids and numbers of a host's request. Out: a mask that was made for the vocabulary's end tokens,
// changed in place. Cost: two passes over the request's end tokens and the vocabulary's.
//
// Masks are made and kept with the vocabulary's end tokens, and a row is relabelled when it is handed out.
// Rejected: a vocabulary for each set of end tokens. A host gives a set with every request, and each set
// would have its own trie, automata and masks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/error.h"
#include "base/sorted.h"
#include "mask/vocabulary.h"

namespace structgen {

// The end tokens of one request, in place of the vocabulary's. They add no text even if they have bytes: a
// host's stop token may be an ordinary word.
class Ends {
 public:
  Ends(const Vocabulary& vocabulary, std::vector<TokenId> ids)
      : vocabulary_(vocabulary), ids_(std::move(ids)) {
    sort_unique(ids_);
    if (ids_.empty()) throw Error(ErrorKind::kValue, "end_token_ids is empty, so no text could end");
    for (TokenId t : {ids_.front(), ids_.back()})
      if (t < 0 || static_cast<uint32_t>(t) >= vocabulary_.size())
        throw Error(ErrorKind::kValue, "end_token_ids: id " + std::to_string(t) +
                                           " is outside the vocabulary of " +
                                           std::to_string(vocabulary_.size()) + " ids");
  }
  bool has(TokenId t) const { return std::binary_search(ids_.begin(), ids_.end(), t); }
  // Replaces the vocabulary's end tokens in a row by those of the request. If the row allows an end token of
  // the vocabulary, the text may end here, so all end tokens of the request are allowed. Throws
  // kBudgetExceeded if the row is then empty.
  void relabel(uint32_t* row) const {
    const auto bit = [](TokenId t) { return 1u << (t & 31); };
    const TokenId any = vocabulary_.eos().front();
    const bool may_end = row[static_cast<uint32_t>(any) >> 5] & bit(any);
    for (TokenId t : vocabulary_.eos()) row[static_cast<uint32_t>(t) >> 5] &= ~bit(t);
    for (TokenId t : ids_) {
      uint32_t& word = row[static_cast<uint32_t>(t) >> 5];
      word = may_end ? word | bit(t) : word & ~bit(t);
    }
    if (may_end || !std::all_of(row, row + vocabulary_.words(), [](uint32_t word) { return word == 0; }))
      return;
    throw Error(ErrorKind::kBudgetExceeded,
                "every token that may come next is one of end_token_ids, and the text may not end yet");
  }

 private:
  const Vocabulary& vocabulary_;
  std::vector<TokenId> ids_;  // sorted
};

struct Request {
  static constexpr std::size_t kAny = static_cast<std::size_t>(-1);
  std::vector<TokenId> ends;
  // The text has at most this many tokens, the end token included.
  std::size_t tokens = kAny;
  // True if all tokens are accepted behind the end.
  bool goes_on_after_end = false;
};

}  // namespace structgen
