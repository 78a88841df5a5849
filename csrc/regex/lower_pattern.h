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

// Two languages: at the start of the text, and at any later place.
struct Placed {
  RegexId start, later;
};

// Thrown where a node needs the general method of context.h, and caught inside of regex/.
struct NeedsContext {};

// Lowers one pattern in one spelling.
class PatternLowering {
 public:
  PatternLowering(RegexArena& arena, const Pattern& pattern, const Spelling& spelling);

  // The texts in which the pattern matches somewhere, and those that it matches as a whole; each with
  // the terminator of the spelling.
  RegexId search();
  RegexId full();

  // The texts that a node without assertions matches.
  RegexId plain(uint32_t node);
  RegexId set(const CodepointSet& set) { return spelling_.characters(arena_, set); }
  // The characters of every text, without what closes a text in its spelling (`end()`).
  RegexId any_text();
  RegexId end() const { return end_; }

 private:
  // The language of a node followed by `next`.
  Placed placed(uint32_t node, Placed next);
  Placed placed_plain(uint32_t node, Placed next);
  Placed placed_repeat(const PatternNode& n, Placed next);
  Placed placed_look(const PatternNode& n, Placed next);
  Placed alternatives(const PatternNode& n, Placed next);
  // The texts of `node` where .* stands before it (left) or behind it (right). Parts that only make the
  // match longer are dropped: `a+b?` with .* behind it is `a`.
  RegexId trimmed(uint32_t node, bool left, bool right);
  RegexId trimmed_cat(const PatternNode& n, bool left, bool right);
  RegexId plain_cat(const PatternNode& n);
  RegexId character(uint32_t c);
  RegexId at_end(RegexId next);
  // True if `next` is "anything that ends the text".
  bool swallows(Placed next) const;
  // True if every assertion in `node` is decided inside of it, given that at least `after` characters
  // follow.
  bool closed(uint32_t node, uint32_t after) const;

  RegexArena& arena_;
  const Pattern& pattern_;
  const Spelling& spelling_;
  // any_text() and the end.
  RegexId rest();
  // `next`, with kRest replaced by rest().
  RegexId value(RegexId next);

  // The terminator of a text: one byte, or nothing.
  RegexId end_;
  // Built when first asked for: a pattern `^...$` never needs it.
  RegexId any_text_;
  // Indexed by node; kUnset where not computed.
  std::vector<RegexId> plain_;
  // Indexed by set; kUnset where not computed.
  std::vector<RegexId> classes_;
  std::unordered_map<uint32_t, RegexId> characters_;
};

}  // namespace structgen
