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

// The language of a node at the start of the text, and its language later in the text.
struct Placed {
  RegexId start, later;
};

// What PatternLowering throws at an assertion that it cannot lower. lower() then calls lower_with_context().
struct NeedsContext {};

class PatternLowering {
 public:
  PatternLowering(RegexArena& arena, const Pattern& pattern, const Spelling& spelling);

  // search() returns the texts that contain a match, full() those that are a match as a whole. Each text ends
  // with the terminator of the spelling.
  RegexId search();
  RegexId full();

  // Returns the texts that a node without assertions matches.
  RegexId plain(uint32_t node);
  RegexId set(const CodepointSet& set) { return spelling_.characters(arena_, set); }
  // Returns every text of the spelling, without the terminator (`end()`).
  RegexId any_text();
  RegexId end() const { return end_; }

 private:
  // Returns the language of a node that is followed by `next`.
  Placed placed(uint32_t node, Placed next);
  Placed placed_plain(uint32_t node, Placed next);
  Placed placed_repeat(const PatternNode& n, Placed next);
  Placed placed_look(const PatternNode& n, Placed next);
  Placed alternatives(const PatternNode& n, Placed next);
  // Returns the texts of `node` without parts that change nothing beside any text: `a+b?` followed by .*
  // becomes `a`. `left` says that any text may stand before the node, `right` that any text may stand behind
  // it.
  RegexId trimmed(uint32_t node, bool left, bool right);
  RegexId trimmed_cat(const PatternNode& n, bool left, bool right);
  RegexId plain_cat(const PatternNode& n);
  RegexId character(uint32_t c);
  RegexId at_end(RegexId next);
  // Returns true if `next` is any text, followed by its terminator.
  bool swallows(Placed next) const;
  // Returns true if every assertion in `node` looks only at characters of the node and at the next `after`
  // characters behind it.
  bool closed(uint32_t node, uint32_t after) const;

  RegexArena& arena_;
  const Pattern& pattern_;
  const Spelling& spelling_;
  RegexId rest();
  // Returns rest() for the placeholder kRest, and `next` otherwise.
  RegexId value(RegexId next);

  // The terminator of a text in the spelling: one byte, or epsilon().
  RegexId end_;
  // The result of any_text(), or kUnset before the first use: a pattern `^...$` never needs it.
  RegexId any_text_;
  std::vector<RegexId> plain_;
  std::vector<RegexId> classes_;
  std::unordered_map<uint32_t, RegexId> characters_;
};

}  // namespace structgen
