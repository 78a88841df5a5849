// Typed string formulas -> the texts themselves, without JSON's quotes and escapes.
//
// In: a formula restricted to strings. Out: a RegexId over UTF-8, or over the spelling of attributes. The
// same texts satisfy it as in scalar.h, so whether there are any is asked there. Cost: one algebra node an
// atom; memoised.
#pragma once

#include "base/flat_map.h"
#include "regex/spelling.h"
#include "schema/values/scalar.h"

namespace structgen {

class RawStrings {
 public:
  RawStrings(FormulaSpace& formulas, RegexArena& regexes, Scalars& scalars, const Spelling& spelling)
      : formulas_(formulas), regexes_(regexes), scalars_(scalars), spelling_(spelling) {}
  RegexId texts(FormulaId p);
  RegexId all();
  RegexId one(std::string_view text) { return regexes_.literal(written(text, spelling_)); }
  RegexId any_of(const std::vector<std::string>& texts);  // those that are UTF-8

 private:
  RegexId atom(const Formula& f);

  FormulaSpace& formulas_;
  RegexArena& regexes_;
  Scalars& scalars_;
  const Spelling& spelling_;
  RegexId all_ = RegexArena::empty();
  FlatMap<uint32_t, RegexId> memo_;
};

// What one reads as a text of `r` where a newline in front and one behind are taken off.
RegexId within_newlines(RegexArena& regexes, RegexId r);

}  // namespace structgen
