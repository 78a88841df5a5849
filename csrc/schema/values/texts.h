// Formulas of strings as regular languages, in one spelling.
//
// In: a formula restricted to strings. Out: a RegexId of every writing of every text that satisfies the
// formula, with the terminator of the spelling (JSON's closing quote) and without the opening quote. Cost:
// one node of the regex algebra per atom; results are remembered. A pattern is lowered once per arena.
//
// The spelling may be the arena's own (JSON). Then a language without a text is always empty(), and a
// question that takes too much work throws. The spelling may also be the spelling of an element. The same
// texts satisfy the formula in both spellings, so whether there is any text has been decided in the arena's
// own spelling and is not asked again.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/flat_map.h"
#include "regex/spelling.h"
#include "schema/formula/formula.h"

namespace structgen {

// Turns formulas of strings into regexes, for one FormulaSpace and one spelling.
class Texts {
 public:
  Texts(FormulaSpace& formulas, RegexArena& regexes, const Spelling& spelling);
  // Returns the texts that satisfy p, spelled. It may be too much to tell whether there is one
  // (RegexArena::undecided).
  RegexId of(TypedId p);
  // Returns of(p), or empty() if no text satisfies p. Throws if this takes too much work to tell.
  RegexId decided(TypedId p);
  // Returns every text, spelled, with its terminator.
  RegexId all() const { return all_; }
  RegexId one(std::string_view text);
  // Returns all spellings of several texts. A text that is not UTF-8 (half of a surrogate pair) has no
  // spelling and is dropped.
  RegexId any_of(std::vector<std::string> texts);
  // If p is a list of texts, perhaps with further conditions (`enum` beside `maxLength`), writes the texts
  // that satisfy it. Returns false if p has no list.
  bool constants(TypedId p, std::vector<std::string>& kept);
  // Returns every text in one spelling: raw where JSON allows it, otherwise the shortest escape. Intersected
  // with this, a language has each text once, so that its texts can be counted and listed.
  RegexId canonical_body();

 private:
  using Bits = std::vector<uint64_t>;
  bool some_of(TypedId p, StringSetId& list, Bits& kept);
  std::span<const uint64_t> common(StringSetId list, StringSetId other);
  std::vector<std::string> listed(StringSetId list, const Bits& kept) const;
  std::optional<RegexId> constants(TypedId p);
  RegexId combine(TypedId p);
  RegexId atom(const Formula& f);
  RegexId conjunction(TypedId p);
  RegexId with_length(RegexId rest, uint32_t min, uint32_t max);
  RegexId length(uint32_t min, uint32_t max);
  bool lengths(RegexId r, uint64_t& min, uint64_t& max);

  FormulaSpace& formulas_;
  RegexArena& regexes_;
  const Spelling& spelling_;
  // True if the spelling is the arena's own. Then of() decides emptiness, and lists become literal sets.
  const bool decides_;
  const RegexId end_, all_;
  FlatMap<uint32_t, RegexId> memo_;
  // tables_ has the literal table of each list. common_ has, for a pair of lists, the subset of the first one
  // that is in the second one, too.
  FlatMap<uint32_t, uint32_t> tables_;
  FlatMap<uint64_t, uint32_t> common_;
};

}  // namespace structgen
