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
// The largest exponent, 10^18. In scientific notation, a larger exponent of the first digit is read as this
// one.
constexpr int64_t kHugeExponent = 1'000'000'000'000'000'000;

// A number: (-1)^negative * digits * 10^exponent. "1.50e3" has the digits "15" and the exponent 2. Digits
// neither begin nor end with a zero. Zero has no digits, exponent 0 and no sign.
struct Decimal {
  bool negative = false;
  std::string digits;
  int64_t exponent = 0;

  // Reads a number. Throws kGrammar if the text is no number, and kSchemaTooComplex if its exponent is too
  // large (require_short()).
  static Decimal parse(std::string_view json_number);
  // Reads a number with an exponent of any size. Throws kGrammar if the text is no number.
  static Decimal parse_any(std::string_view json_number);
  // Throws kSchemaTooComplex if the exponent is too large for parse(). The message quotes `text`.
  void require_short(std::string_view text) const;

  // Returns the number rounded up or down to a whole number, but at least 0 and at most 2 * 10^9.
  uint32_t count(bool round_up) const;
  // Returns the number as a double, whose last digits may be wrong. It is infinite if the number is too
  // large.
  double approximate() const;
  bool zero() const { return digits.empty(); }
  bool integer() const { return exponent >= 0; }
  // Write the magnitude without an exponent. int_part() returns the digits before the point, without leading
  // zeros (but "0"), frac_part() those behind it, without trailing zeros.
  std::string int_part() const;
  std::string frac_part() const;
  // Returns the exponent of the first digit: 2 for 123.4, -2 for 0.05.
  int64_t scientific_exponent() const { return exponent + static_cast<int64_t>(digits.size()) - 1; }
};

// Compare two numbers, compare_magnitude() without their signs. They return -1, 0 or 1: a is smaller than,
// equal to, or larger than b.
int compare_magnitude(const Decimal& a, const Decimal& b);
int compare(const Decimal& a, const Decimal& b);

}  // namespace structgen
