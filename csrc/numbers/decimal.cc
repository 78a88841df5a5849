// Exact decimals; see decimal.h. Only approximate() rounds.
#include "numbers/decimal.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/error.h"

namespace structgen {

Decimal Decimal::parse(std::string_view text) {
  Decimal out = parse_any(text);
  out.require_short(text);
  return out;
}

void Decimal::require_short(std::string_view text) const {
  if (std::abs(exponent) > kMaxDecimalExponent)
    throw Error(ErrorKind::kSchemaTooComplex, "the number " + std::string(text.substr(0, 40)) +
                                                  " has an exponent beyond 4000; use a smaller bound");
}

double Decimal::approximate() const {
  double out = 0;
  const std::size_t kept = std::min<std::size_t>(digits.size(), 18);
  for (const char c : std::string_view(digits).substr(0, kept)) out = out * 10 + (c - '0');
  out *= std::pow(10.0, static_cast<double>(exponent + static_cast<int64_t>(digits.size() - kept)));
  return negative ? -out : out;
}

// Collects all digits and the exponent of the last one, then drops the zeros at both ends.
Decimal Decimal::parse_any(std::string_view text) {
  const auto bad = [&]() -> Error {
    return Error(ErrorKind::kGrammar, "'" + std::string(text.substr(0, 40)) + "' is not a JSON number");
  };
  Decimal out;
  std::string_view rest = text;
  if (!rest.empty() && rest[0] == '-') {
    out.negative = true;
    rest.remove_prefix(1);
  }
  bool point = false, any = false;
  std::size_t i = 0;
  for (; i < rest.size() && (rest[i] == '.' || (rest[i] >= '0' && rest[i] <= '9')); ++i) {
    if (rest[i] == '.') {
      if (point) throw bad();
      point = true;
      continue;
    }
    any = true;
    out.digits += rest[i];
    out.exponent -= point;
  }
  if (!any) throw bad();
  if (i < rest.size()) {
    if (rest[i] != 'e' && rest[i] != 'E') throw bad();
    ++i;
    if (i < rest.size() && rest[i] == '+') ++i;
    // The exponent that stands for every larger one. No text has enough digits behind a point to bring such a
    // number below 10^kHugeExponent.
    constexpr int64_t kMost = 2 * kHugeExponent;
    int64_t e = 0;
    const auto [end, error] = std::from_chars(rest.data() + i, rest.data() + rest.size(), e);
    if (error == std::errc::result_out_of_range)
      e = rest[i] == '-' ? -kMost : kMost;
    else if (error != std::errc())
      throw bad();
    if (end != rest.data() + rest.size()) throw bad();
    out.exponent += std::clamp(e, -kMost, kMost);
  }
  const std::size_t last = out.digits.find_last_not_of('0');
  if (last == std::string::npos) return Decimal{};
  out.exponent += static_cast<int64_t>(out.digits.size() - 1 - last);
  out.digits.resize(last + 1);
  out.digits.erase(0, out.digits.find_first_not_of('0'));
  const int64_t first = out.scientific_exponent();
  out.exponent += std::clamp(first, -kHugeExponent, kHugeExponent) - first;
  return out;
}

uint32_t Decimal::count(bool round_up) const {
  constexpr uint32_t kMost = 2'000'000'000;
  if (negative || zero()) return 0;
  if (scientific_exponent() > 9) return kMost;
  uint64_t out = 0;
  for (const char c : int_part()) out = out * 10 + static_cast<uint64_t>(c - '0');
  if (round_up && !integer()) ++out;
  return static_cast<uint32_t>(std::min<uint64_t>(out, kMost));
}

std::string Decimal::int_part() const {
  const int64_t n = static_cast<int64_t>(digits.size()) + exponent;
  if (n <= 0) return "0";
  std::string out = digits.substr(0, static_cast<std::size_t>(n));
  out.resize(static_cast<std::size_t>(n), '0');
  return out;
}

std::string Decimal::frac_part() const {
  if (exponent >= 0) return {};
  const auto n = static_cast<std::size_t>(-exponent);
  if (n <= digits.size()) return digits.substr(digits.size() - n);
  return std::string(n - digits.size(), '0') + digits;
}

// Compares the exponents of the first digits. If they are equal, it compares the digits as texts, because
// neither text has leading zeros.
int compare_magnitude(const Decimal& a, const Decimal& b) {
  if (a.zero() || b.zero()) return static_cast<int>(!a.zero()) - static_cast<int>(!b.zero());
  const int64_t x = a.scientific_exponent(), y = b.scientific_exponent();
  if (x != y) return x < y ? -1 : 1;
  const int c = a.digits.compare(b.digits);
  return c < 0 ? -1 : c > 0;
}

int compare(const Decimal& a, const Decimal& b) {
  if (a.negative != b.negative) return a.negative ? -1 : 1;
  const int c = compare_magnitude(a, b);
  return a.negative ? -c : c;
}

}  // namespace structgen
