// Typed string and number formulas -> regular languages.
//
// In: a formula restricted to strings or numbers. Out: a RegexId: for strings the body with its closing
// quote (opening quote not included), for numbers the lexeme. Cost: one algebra node an atom; memoised.
#pragma once

#include <string>
#include <vector>

#include "base/flat_map.h"
#include "regex/syntax.h"
#include "schema/formula/formula.h"
#include "schema/values/numbers.h"

namespace structgen {

class Scalars {
 public:
  Scalars(FormulaSpace& formulas, RegexArena& regexes, NumberSpelling numbers)
      : formulas_(formulas), regexes_(regexes), numbers_(formulas, regexes, numbers) {}
  RegexId string(FormulaId p);
  RegexId number(FormulaId p) { return numbers_.language(p); }
  // Bodies with one spelling a text: raw characters where possible, else the shortest escape.
  RegexId canonical_body();
  // Emptiness of a language of string bodies. Such languages hold every spelling of a text or none, so
  // only one spelling is searched.
  bool empty_string(RegexId bodies);
  // The texts of a typed string formula that lists them, maybe under more conditions; false where it does
  // not.
  bool constants(FormulaId p, std::vector<std::string>& kept);

 private:
  RegexId combine(FormulaId p);
  bool filter(FormulaId p, RegexId& out);
  RegexId string_atom(const Formula& f);
  RegexId conjunction(std::vector<RegexId> parts, uint32_t min, uint32_t max);
  RegexId length(uint32_t min, uint32_t max);
  bool lengths(RegexId r, uint64_t& min, uint64_t& max);

  FormulaSpace& formulas_;
  RegexArena& regexes_;
  Numbers numbers_;
  FlatMap<uint32_t, RegexId> memo_;
  FlatMap<uint32_t, RegexId> patterns_;
};

}  // namespace structgen
