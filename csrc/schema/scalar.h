// Typed string and number formulas -> regular languages.
//
// In: a formula restricted to strings or numbers. Out: a RegexId: for strings the body with its closing
// quote (opening quote not included), for numbers the lexeme. Cost: one algebra node an atom; memoised.
#pragma once

#include <optional>
#include <string>

#include "base/flat_map.h"
#include "regex/syntax.h"
#include "schema/formula.h"
#include "numbers/number.h"

namespace structgen {

// `integer`, and constants that are all whole: what is written without a point in the plain spelling.
bool asks_whole(const FormulaSpace& formulas, FormulaId p);
// Constants among which one has a fraction: where 0.5 may be written, 1 may be 1.0.
bool names_fractions(const FormulaSpace& formulas, FormulaId p);

class Scalars {
 public:
  Scalars(FormulaSpace& formulas, RegexArena& regexes, NumberSpelling numbers)
      : formulas_(formulas), regexes_(regexes), spelling_(numbers) {}
  RegexId string(FormulaId p);
  RegexId number(FormulaId p);
  // True: some text or number satisfies p, seen without an automaton (witness.cc).
  bool plainly_nonempty(FormulaId p) const;
  // Bodies with one spelling a text: raw characters where possible, else the shortest escape.
  RegexId canonical_body();
  // Emptiness of a language of string bodies. Such languages hold every spelling of a text or none, so
  // only one spelling is searched.
  bool empty_string(RegexId bodies);
  // The texts of a typed string formula that lists them, maybe under more conditions; false where it does
  // not.
  bool constants(FormulaId p, std::vector<std::string>& kept);
  // The canonical spelling of a string, closing quote included.
  static std::string spell(std::string_view text);
  static std::string unspell(std::string_view spelled);  // of a canonical spelling

 private:
  // kNumbers: every lexeme of the numbers that satisfy a formula. kNarrow: the same under a condition whose
  // divisor is hard, in a narrower universe (numbers/number.h). For the plain spelling only: kOffered is
  // kNumbers without the zeros behind the point of what is asked to be whole, and kWhole is that spelling
  // without any zeros at the end of a fraction (see number()).
  enum Domain : uint8_t { kStrings, kNumbers, kNarrow, kOffered, kWhole };
  bool hard(FormulaId p);
  Domain kid_domain(FormulaId p, Domain domain) const;
  uint32_t size_of_constants(FormulaId p);
  NumberLanguage& language(Domain d);
  RegexId combine(FormulaId p, Domain domain);
  RegexId finite_number(FormulaId p);
  bool filter(FormulaId p, RegexId& out);
  bool few(FormulaId p, Domain domain, RegexId& out);  // lattice.cc
  bool multiples(FormulaId p, Domain domain, std::vector<RegexId>& parts);
  // One divisor out of all, and the bounds among the others. False: no bounds, or too many digits.
  bool bounded_multiples(std::optional<Decimal> divisor, const std::vector<Decimal>& more,
                         const std::vector<FormulaId>& others, Domain domain, std::vector<RegexId>& parts);
  RegexId string_atom(const Formula& f);
  RegexId number_atom(const Formula& f, NumberLanguage& numbers);
  RegexId conjunction(std::vector<RegexId> parts, uint32_t min, uint32_t max);
  RegexId length(uint32_t min, uint32_t max);
  bool lengths(RegexId r, uint64_t& min, uint64_t& max);
  RegexId universe(Domain domain);

  FormulaSpace& formulas_;
  RegexArena& regexes_;
  NumberSpelling spelling_;
  NumberLanguage* numbers_[5] = {};     // by domain: of the arena, which all its grammars share
  FlatMap<uint32_t, RegexId> memo_[5];  // by domain
  FlatMap<uint32_t, bool> hard_;
  FlatMap<uint32_t, uint32_t> constants_;  // by formula, see size_of_constants
  FlatMap<uint32_t, RegexId> finite_;      // number(), by formula
  FlatMap<uint32_t, RegexId> patterns_;
};

}  // namespace structgen
