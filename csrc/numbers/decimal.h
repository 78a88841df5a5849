// Decimal numbers of any size, read from the text of JSON numbers. Binary floating point is used
// nowhere.
//
// In: "1.50e3". Out: sign, significant digits, exponent of ten. Cost: linear in the text. Bounds and
// divisors are written out digit by digit, so their exponent may be kMaxDecimalExponent at most. Values
// that are only compared may have any exponent (parse_any).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace structgen {

constexpr int64_t kMaxDecimalExponent = 4000;
// 10^18: larger exponents of the first digit are taken for this one. They are those that are written in
// scientific notation.
constexpr int64_t kHugeExponent = 1'000'000'000'000'000'000;

// value = (-1)^negative * digits * 10^exponent. "1.50e3" is digits "15", exponent 2. Invariant: digits
// has no leading and no trailing zero. Zero is digits = "", exponent = 0, not negative.
struct Decimal {
  bool negative = false;
  std::string digits;
  int64_t exponent = 0;

  // Throws kGrammar for a text that is no number, and kSchemaTooComplex for a very large exponent.
  static Decimal parse(std::string_view json_number);
  // The same without a limit of the exponent.
  static Decimal parse_any(std::string_view json_number);
  // Throws kSchemaTooComplex as parse() does; `text` is only quoted.
  void require_short(std::string_view text) const;

  // The number as a count: rounded up or down to a whole number, 0 if it is negative, at most 2 * 10^9.
  uint32_t count(bool round_up) const;
  // As a double: the last digits are wrong, and it is infinite if it is too large.
  double approximate() const;
  bool zero() const { return digits.empty(); }
  bool integer() const { return exponent >= 0; }
  // The parts of the magnitude when it is written without exponent: the whole part without leading
  // zeros (but "0"), the fraction without trailing zeros.
  std::string int_part() const;
  std::string frac_part() const;
  // The exponent of the first digit: 123.4 has 2, 0.05 has -2.
  int64_t scientific_exponent() const { return exponent + static_cast<int64_t>(digits.size()) - 1; }
};

// Both return -1, 0 or 1.
int compare_magnitude(const Decimal& a, const Decimal& b);
int compare(const Decimal& a, const Decimal& b);

}  // namespace structgen
