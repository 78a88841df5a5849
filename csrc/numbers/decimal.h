// Decimal numbers of any size, read from JSON number text. No binary floating point anywhere.
//
// In: "1.50e3". Out: sign, significant digits, exponent of ten. Cost: linear in the text. Bounds and divisors
// may have at most kMaxDecimalExponent as their exponent: they are written out digit by digit. Values that
// are only compared may have any (parse_any).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace structgen {

constexpr int64_t kMaxDecimalExponent = 4000;
constexpr int64_t kHugeExponent =
    1'000'000'000'000'000'000;  // 10^18: larger exponents are taken for this one

// value = (-1)^negative * digits * 10^exponent.
// Invariant: digits has no leading and no trailing zero; zero is digits = "" and exponent = 0, not negative.
struct Decimal {
  bool negative = false;
  std::string digits;
  int64_t exponent = 0;

  static Decimal parse(std::string_view json_number);      // kSchemaTooComplex: a very large exponent
  static Decimal parse_any(std::string_view json_number);  // never that
  void require_short(std::string_view text) const;         // throws as `parse` does

  // The number as a count: up or down to a whole number, 0 for what is negative, at most 2 * 10^9.
  uint32_t count(bool round_up) const;
  double approximate() const;  // wrong in the last digits; infinite where it is too large
  bool zero() const { return digits.empty(); }
  bool integer() const { return exponent >= 0; }
  // Of the magnitude, written without exponent: no leading zeros (but "0"), no trailing zeros.
  std::string int_part() const;
  std::string frac_part() const;
  // Exponent of the first digit: 123.4 -> 2, 0.05 -> -2.
  int64_t scientific_exponent() const { return exponent + static_cast<int64_t>(digits.size()) - 1; }
};

int compare_magnitude(const Decimal& a, const Decimal& b);
int compare(const Decimal& a, const Decimal& b);

}  // namespace structgen
