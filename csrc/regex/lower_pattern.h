// Lowering of syntax trees that need no left context. Internal to regex/; the entry points are in
// syntax.h.
//
// In: a Pattern, and a spelling. Out: a RegexId. A node is lowered together with its continuation K,
// the language of the texts that may follow it: (?=X) K is K & X.*, (?!X) K is K & ~(X.*), and `$`
// keeps of K only the end of the text. `^` needs one bit of left context, whether the text begins here;
// hence the pairs (Placed). Cost: one call of the arena per node. Patterns without assertions need no &
// and no ~.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/ids.h"
#include "regex/spelling.h"
#include "regex/syntax.h"

namespace structgen {

// A language at the start of the text, and the language that takes its place everywhere later.
struct Placed {
  RegexId start, later;
};

// Thrown at an assertion that this file cannot lower. lower() catches it and uses the general method of
// context.h.
struct NeedsContext {};

// Lowers one pattern in one spelling.
class PatternLowering {
 public:
  PatternLowering(RegexArena& arena, const Pattern& pattern, const Spelling& spelling);

  // search() returns the texts in which the pattern matches somewhere, full() those that it matches as a
  // whole. Each text ends with the terminator of the spelling.
  RegexId search();
  RegexId full();

  // Returns the texts of a node without assertions.
  RegexId plain(uint32_t node);
  RegexId set(const CodepointSet& set) { return spelling_.characters(arena_, set); }
  // Returns every text of the spelling, without the terminator (`end()`).
  RegexId any_text();
  RegexId end() const { return end_; }

 private:
  // Returns the language of a node followed by the language `next`.
  Placed placed(uint32_t node, Placed next);
  Placed placed_plain(uint32_t node, Placed next);
  Placed placed_repeat(const PatternNode& n, Placed next);
  Placed placed_look(const PatternNode& n, Placed next);
  Placed alternatives(const PatternNode& n, Placed next);
  // Returns the texts of `node` if any text may stand before it (`left`) or behind it (`right`), without
  // parts that only lengthen the match: `a+b?` with .* behind it is `a`.
  RegexId trimmed(uint32_t node, bool left, bool right);
  RegexId trimmed_cat(const PatternNode& n, bool left, bool right);
  RegexId plain_cat(const PatternNode& n);
  RegexId character(uint32_t c);
  RegexId at_end(RegexId next);
  // Returns true if `next` is any text and its end.
  bool swallows(Placed next) const;
  // Returns true if every assertion in `node` is decided by the characters in `node` and `after` more behind
  // it.
  bool closed(uint32_t node, uint32_t after) const;

  RegexArena& arena_;
  const Pattern& pattern_;
  const Spelling& spelling_;
  // Returns every text with its end.
  RegexId rest();
  // Returns `next`, or rest() if `next` is the placeholder kRest.
  RegexId value(RegexId next);

  // The terminator of a text in the spelling: one byte, or epsilon().
  RegexId end_;
  // The result of any_text(), made on first use: a pattern `^...$` never needs it.
  RegexId any_text_;
  // plain_[i] is the language of node i, or kUnset before its first use.
  std::vector<RegexId> plain_;
  // classes_[i] is the language of set i, or kUnset before its first use.
  std::vector<RegexId> classes_;
  std::unordered_map<uint32_t, RegexId> characters_;
};

}  // namespace structgen
