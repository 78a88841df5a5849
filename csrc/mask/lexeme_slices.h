// What parse states of one grammar share about its lexemes: tokens by the regex, not by the stack above it.
//
// In: a regex, a trie node, the bytes that may not follow. Out: the tokens below the node that stay inside
// the regex, and the endings of those that leave it. Cost: one walk below the node and a sort, once for the
// three; words that are taken out of a name (keywords) are a difference to the slice without that.
#pragma once

#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "mask/suffixes.h"
#include "mask/vocabulary.h"
#include "regex/regex.h"

namespace structgen {

struct LexemeSlice {
  using Words = std::vector<uint32_t>;
  std::vector<TokenId> few;       // tokens inside, or:
  std::shared_ptr<Words> inside;  // a row of them, less
  std::vector<TokenId> lost;      // these
  // What tokens hold after they have left the regex; an entry's count is the depth in the trie where it left.
  std::shared_ptr<Suffixes> exits;
  std::vector<std::pair<TokenId, uint32_t>> blocked;  // entries that do not leave it after all, sorted
};

class LexemeSlices {
 public:
  LexemeSlices(RegexArena& regexes, const Vocabulary& vocabulary)
      : regexes_(regexes), vocabulary_(vocabulary) {}
  // `forbidden` is a kBytes regex or empty(). No text of the regex is read before the node.
  const LexemeSlice& slice(RegexId regex, uint32_t node, RegexId forbidden);
  // Whether many tokens may lie inside the regex.
  bool wide(RegexId regex);
  std::size_t byte_size() const { return bytes_; }

 private:
  bool difference(RegexId regex, uint32_t node, RegexId forbidden, LexemeSlice& out);
  void whole(RegexId regex, uint32_t node, RegexId forbidden, LexemeSlice& out);
  RegexArena& regexes_;
  const Vocabulary& vocabulary_;
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, std::unique_ptr<LexemeSlice>> slices_;
  std::map<uint32_t, bool> wide_;
  std::size_t bytes_ = 0;
};

}  // namespace structgen
