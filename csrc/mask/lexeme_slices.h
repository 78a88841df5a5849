// Which tokens stay inside a lexeme, and which bytes all other tokens hold behind the lexeme. The answer
// depends on the regex of the lexeme and not on the stacks below it, so all parse states of a grammar share
// it.
//
// In: a regex, a trie node, the bytes that may not follow. Out: the tokens below the node that stay inside
// the regex, and the endings of the tokens that leave the regex. Cost: one walk below the node and a sort,
// once for each such triple. The slice of a name without its keywords is stored as a difference to the slice
// of the name.
//
// Example, the regex of a name at the root: inside are `foo`, `x`, `_a1`; `foo(` leaves it with the
// ending `(`, and `x = ` with ` = `. With the keyword `if` taken out, `if` is in `lost`, and `if(` is
// in `blocked`, because a name cannot end there.
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
  // The tokens inside the regex, if they are few.
  std::vector<TokenId> few;
  // The tokens inside the regex, as a row, if they are many. Slices that differ in few tokens share one row.
  std::shared_ptr<Words> inside;
  // The tokens of `inside` that this regex lacks.
  std::vector<TokenId> lost;
  // The tokens that leave the regex, as a trie of their bytes behind it. The `count` of an entry is the depth
  // in the vocabulary's trie at which the token leaves.
  std::shared_ptr<Suffixes> exits;
  // Entries of `exits` that do not apply, because this regex does not end there; sorted.
  std::vector<std::pair<TokenId, uint32_t>> blocked;
};

class LexemeSlices {
 public:
  LexemeSlices(RegexArena& regexes, const Vocabulary& vocabulary)
      : regexes_(regexes), vocabulary_(vocabulary) {}
  // Returns the slice of a regex that begins at the trie node; the bytes above this node belong to earlier
  // lexemes. `forbidden` are the bytes that may not follow the lexeme, as a kBytes regex, or empty().
  const LexemeSlice& slice(RegexId regex, uint32_t node, RegexId forbidden);
  // Tells whether the regex may have many tokens inside. Only then a slice saves work.
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
