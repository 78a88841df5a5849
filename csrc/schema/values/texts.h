// Typed string formulas -> the texts that satisfy them, in one spelling.
//
// In: a formula restricted to strings. Out: a RegexId: every writing of each text, with what ends a text in
// the spelling (JSON's closing quote; the opening one is not included). Cost: one algebra node an atom;
// memoised, and patterns are lowered once an arena.
//
// The arena's own spelling decides: there a language without a text is empty(), and what is too much to tell
// throws. In another spelling (the text of an element) the same texts satisfy the formula, so whether there
// are any is not asked again.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/flat_map.h"
#include "regex/spelling.h"
#include "schema/formula/formula.h"

namespace structgen {

class Texts {
 public:
  Texts(FormulaSpace& formulas, RegexArena& regexes, const Spelling& spelling);
  RegexId of(TypedId p);
  // The same, decided: throws where it is too much to tell whether there is any.
  RegexId decided(TypedId p);
  RegexId all() const { return all_; }
  RegexId one(std::string_view text);
  RegexId any_of(std::vector<std::string> texts);  // those that are UTF-8
  // The texts of a formula that lists them, maybe under more conditions; false where it does not.
  bool constants(TypedId p, std::vector<std::string>& kept);
  // Bodies with one writing a text: raw characters where possible, else the shortest escape.
  RegexId canonical_body();

 private:
  RegexId combine(TypedId p);
  RegexId atom(const Formula& f);
  RegexId conjunction(TypedId p);
  RegexId with_length(RegexId rest, uint32_t min, uint32_t max);
  RegexId length(uint32_t min, uint32_t max);
  bool lengths(RegexId r, uint64_t& min, uint64_t& max);

  FormulaSpace& formulas_;
  RegexArena& regexes_;
  const Spelling& spelling_;
  const bool decides_;  // the spelling is the arena's
  const RegexId end_, all_;
  FlatMap<uint32_t, RegexId> memo_;
};

}  // namespace structgen
