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

// One object per formula space and spelling.
class Texts {
 public:
  Texts(FormulaSpace& formulas, RegexArena& regexes, const Spelling& spelling);
  // The writings of the texts that satisfy p. The result may be undecided() in the algebra.
  RegexId of(TypedId p);
  // As of(), but the result is empty() if there is no text. Throws if the question takes too much work.
  RegexId decided(TypedId p);
  // Every text.
  RegexId all() const { return all_; }
  // The writings of one text.
  RegexId one(std::string_view text);
  // The writings of several texts. Texts that are not UTF-8 (a lone surrogate) have no writing and are
  // dropped.
  RegexId any_of(std::vector<std::string> texts);
  // The texts of a formula that is a list of texts, maybe under further conditions; false if the formula has
  // no list. `enum` beside `maxLength` is such a formula.
  bool constants(TypedId p, std::vector<std::string>& kept);
  // Every text in one writing: raw characters where JSON allows them, else the shortest escape. The
  // intersection with a language has one writing for each text, so that texts can be counted and enumerated.
  RegexId canonical_body();

 private:
  using Bits = std::vector<uint64_t>;
  bool some_of(TypedId p, StringSetId& list, Bits& kept);
  std::span<const uint64_t> common(StringSetId list, StringSetId other);
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
  // Whether emptiness is decided and sets of literals are used: the spelling is the arena's own.
  const bool decides_;
  const RegexId end_, all_;
  FlatMap<uint32_t, RegexId> memo_;
  // The table of a list, and by two lists the subset of the first that both have.
  FlatMap<uint32_t, uint32_t> tables_;
  FlatMap<uint64_t, uint32_t> common_;
};

}  // namespace structgen
