// Typed string and number formulas -> regular languages.
//
// In: a formula restricted to strings or numbers. Out: a RegexId: for strings the body with its closing
// quote (opening quote not included), for numbers the lexeme. Cost: one algebra node an atom; memoised.
#pragma once

#include <string>
#include <unordered_map>

#include "regex/syntax.h"
#include "schema/formula.h"
#include "schema/number.h"

namespace structgen {

class Scalars {
 public:
  Scalars(FormulaSpace& formulas, RegexArena& regexes, bool canonical_numbers)
      : formulas_(formulas), regexes_(regexes), numbers_(regexes, canonical_numbers), canonical_(canonical_numbers) {}
  RegexId string(FormulaId p);
  RegexId number(FormulaId p);
  // Bodies with one spelling a text: raw characters where possible, else the shortest escape.
  RegexId canonical_body();
  // Emptiness of a language of string bodies. Such languages hold every spelling of a text or none, so
  // only one spelling is searched.
  bool empty_string(RegexId bodies);
  // The canonical spelling of a string, closing quote included.
  static std::string spell(std::string_view text);

 private:
  RegexId combine(FormulaId p, bool strings);
  bool filter(FormulaId p, RegexId& out);
  RegexId string_atom(const Formula& f);
  RegexId number_atom(const Formula& f);
  RegexId conjunction(std::vector<RegexId> parts, uint32_t min, uint32_t max);
  RegexId length(uint32_t min, uint32_t max);
  bool lengths(RegexId r, uint64_t& min, uint64_t& max);
  RegexId universe(bool strings);

  FormulaSpace& formulas_;
  RegexArena& regexes_;
  NumberLanguage numbers_;
  bool canonical_;
  std::unordered_map<uint32_t, RegexId> memo_[2];
  std::unordered_map<uint32_t, RegexId> patterns_;
};

}  // namespace structgen
