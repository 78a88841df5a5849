// Lowering of syntax trees without left context (internal to regex/; the entry points are in syntax.h).
//
// In: a Pattern, a spelling. Out: RegexId. A node is lowered together with its continuation K, the
// language of what may follow it in the text: (?=X) K = K & X.*, (?!X) K = K & ~(X.*), and `$` keeps
// of K the end of the text alone. ^ needs one bit of left context, hence the pair.
// Cost: one arena call a node. Patterns without assertions never meet & or ~.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/ids.h"
#include "regex/spelling.h"
#include "regex/syntax.h"

namespace structgen {

// A language at the start of the text, and the same anywhere later.
struct Placed {
  RegexId start, later;
};

// Thrown (and caught inside regex/) when a node needs the general method of context.h.
struct NeedsContext {};

class PatternLowering {
 public:
  PatternLowering(RegexArena& arena, const Pattern& pattern, const Spelling& spelling);

  RegexId search();
  RegexId full();

  // The texts that a node without assertions matches.
  RegexId plain(uint32_t node);
  RegexId set(const CodepointSet& set) { return spelling_.characters(arena_, set); }
  RegexId any_text();
  RegexId end() const { return end_; }

 private:
  Placed placed(uint32_t node, Placed next);
  Placed placed_plain(uint32_t node, Placed next);
  Placed placed_repeat(const PatternNode& n, Placed next);
  Placed placed_look(const PatternNode& n, Placed next);
  Placed alternatives(const PatternNode& n, Placed next);
  // `node` beside .* on the given sides: what only lengthens the match is dropped.
  RegexId trimmed(uint32_t node, bool left, bool right);
  RegexId trimmed_cat(const PatternNode& n, bool left, bool right);
  RegexId plain_cat(const PatternNode& n);
  RegexId character(uint32_t c);
  RegexId at_end(RegexId next);
  bool swallows(Placed next) const;
  // True when every assertion in `node` is decided inside it, given `after` characters that follow.
  bool closed(uint32_t node, uint32_t after) const;

  RegexArena& arena_;
  const Pattern& pattern_;
  const Spelling& spelling_;
  RegexId rest();               // any_text() end()
  RegexId value(RegexId next);  // kRest made real

  RegexId end_;                   // what ends a text: one byte, or nothing
  RegexId any_text_;              // any_char*, built when first asked for: `^...$` never does
  std::vector<RegexId> plain_;    // by node; unset = kUnset
  std::vector<RegexId> classes_;  // by set
  std::unordered_map<uint32_t, RegexId> characters_;
};

}  // namespace structgen
