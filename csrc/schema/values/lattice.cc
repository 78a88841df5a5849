// Enumerates the numbers of a formula (lattice.h). All decimals of the formula become integers, in units of
// one power of ten: with 6.75 and 19 the unit is 0.01, and the divisors are 675 and 1900. Then remainders,
// common multiples and comparisons are exact in 64 bits.
#include "schema/values/lattice.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>

#include "base/depth.h"
#include "numbers/fixed.h"
#include "schema/values/witness.h"

namespace structgen {

namespace {

// few_numbers() fails if it would try more multiples than kTriedMultiples, or if it finds more numbers than
// kFound.
constexpr int64_t kTriedMultiples = 4096;
constexpr std::size_t kFound = 256;
// No number is larger than this many units, so that a product of a step and a quotient stays below 2^63.
constexpr int64_t kLargest = 1'000'000'000'000'000;
constexpr int64_t kMostDigits = 16;

// The decimals of one formula as whole numbers of a unit, which is 10^exponent_ and found by scan(). ok() is
// false if a condition depends on more than the value of a number.
class Scaled {
 public:
  Scaled(FormulaSpace& formulas, TypedId p) : formulas_(formulas) { ok_ = scan(p); }
  bool ok() const { return ok_; }
  uint32_t divisors() const { return divisors_; }

  // Returns the decimal in units. Returns no value if it is no whole number of units or exceeds kLargest.
  std::optional<int64_t> of(const Decimal& d) const {
    Wide out = 0;
    bool whole = true;
    if (!in_units(d, exponent_, false, kMostDigits, out, whole) || out > kLargest) return {};
    return d.negative ? -static_cast<int64_t>(out) : static_cast<int64_t>(out);
  }

  // Returns true if every decimal of p is a whole number of units, so that of() has a value for it.
  bool fits(TypedId p) const {
    check_depth();
    const Formula& f = formulas_[p];
    if (row(f.op).family == Family::kNumber) return of(decimal(f)).has_value();
    return std::ranges::all_of(formulas_.kids(p), [&](TypedId k) { return fits(k); });
  }

  struct Bounds {
    // The bounds in units, both included; no value if that side has no bound.
    std::optional<int64_t> low, high;
    // Every number that satisfies the formula is a multiple of `step`; 0 if no step is known.
    int64_t step = 0;
  };
  // Returns bounds and a step that hold for every number of p, and maybe for others: an open bound counts as
  // closed, and a negation as "every number". Returns nothing if they do not fit into 64 bits.
  std::optional<Bounds> bounds(TypedId p) const {
    check_depth();
    const Formula& f = formulas_[p];
    Bounds out;
    if (row(f.op).family == Family::kNumber) {
      const auto x = of(decimal(f));
      if (!x) return {};
      if (f.op == Op::kAtLeast || f.op == Op::kEqual) out.low = *x;
      if (f.op == Op::kAtMost || f.op == Op::kEqual) out.high = *x;
      if (f.op == Op::kInteger || f.op == Op::kMultiple) out.step = std::abs(*x);
      if (f.op == Op::kEqual) out.step = std::max<int64_t>(std::abs(*x), 1);
      return out;
    }
    if (f.op == Op::kAnd) return of_all(p);
    return f.op == Op::kOr || f.op == Op::kOne ? of_some(p) : out;
  }

  // Joins the kids of a conjunction: it takes the tighter bounds and the least common multiple of the steps.
  std::optional<Bounds> of_all(TypedId p) const {
    Bounds out;
    for (TypedId k : formulas_.kids(p)) {
      const auto b = bounds(k);
      if (!b) return {};
      if (b->low) out.low = std::max(out.low.value_or(*b->low), *b->low);
      if (b->high) out.high = std::min(out.high.value_or(*b->high), *b->high);
      if (b->step == 0) continue;
      if (out.step == 0) {
        out.step = b->step;
      } else {
        const int64_t part = out.step / std::gcd(out.step, b->step);
        if (part > kLargest / b->step) return {};
        out.step = part * b->step;
      }
    }
    return out;
  }

  // Joins the kids of a disjunction or of an "exactly one": it takes the looser bounds and the greatest
  // common divisor of the steps.
  std::optional<Bounds> of_some(TypedId p) const {
    Bounds out;
    bool first = true, stepped = true;
    for (TypedId k : formulas_.kids(p)) {
      const auto b = bounds(k);
      if (!b) return {};
      if (first) {
        out = *b;
      } else {
        out.low = out.low && b->low ? std::optional(std::min(*out.low, *b->low)) : std::nullopt;
        out.high = out.high && b->high ? std::optional(std::max(*out.high, *b->high)) : std::nullopt;
      }
      stepped = stepped && b->step != 0;
      out.step = stepped ? std::gcd(first ? 0 : out.step, b->step) : 0;
      first = false;
    }
    return out;
  }

  // Returns true if the number x * 10^exponent_ satisfies p. `pointed` says that it is written with a point
  // and zeros (12.0). A condition that asks for a whole number refuses that.
  bool satisfies(TypedId p, int64_t x, bool pointed) const {
    check_depth();
    const Formula& f = formulas_[p];
    if (pointed && asks_whole(formulas_, p)) return false;
    const auto some = [&](TypedId k) { return satisfies(k, x, pointed); };
    const auto plainly = [&](TypedId k) { return satisfies(k, x, false); };
    const auto kids = formulas_.kids(p);
    switch (f.op) {
      case Op::kAnd: return std::ranges::all_of(kids, some);
      case Op::kOr: {
        const bool mixed = names_fractions(formulas_, p);
        return std::ranges::any_of(
            kids, [&](TypedId k) { return mixed && formulas_[k].op == Op::kEqual ? plainly(k) : some(k); });
      }
      case Op::kOne: return std::ranges::count_if(kids, plainly) == 1 && std::ranges::any_of(kids, some);
      case Op::kNot: return !plainly(kids[0]);
      default: break;  // scan() found nothing but these, constants and numbers
    }
    if (row(f.op).family == Family::kConstant) return f.op == Op::kTrue;
    const int64_t y = *of(decimal(f));
    if (f.op == Op::kAtLeast) return f.b ? x > y : x >= y;
    if (f.op == Op::kAtMost) return f.b ? x < y : x <= y;
    return f.op == Op::kEqual ? x == y : x % y == 0;
  }

  Decimal number(int64_t x) const {
    return Decimal::parse_any(std::to_string(x) + "e" + std::to_string(exponent_));
  }

 private:
  const Decimal& decimal(const Formula& f) const {
    static const Decimal one = Decimal::parse("1");
    return f.op == Op::kInteger ? one : formulas_.decimal(f.text());
  }

  // Finds the smallest unit and counts the divisors. Returns false if p has a condition on anything but
  // numbers.
  bool scan(TypedId p) {
    check_depth();
    const Formula& f = formulas_[p];
    const Family family = row(f.op).family;
    if (family == Family::kConstant) return true;
    if (family == Family::kConnective)
      return std::ranges::all_of(formulas_.kids(p), [&](TypedId k) { return scan(k); });
    // Draft 4's `integer` (b = 1) depends on how the number is written.
    if (family != Family::kNumber || (f.op == Op::kInteger && f.b)) return false;
    const Decimal& d = decimal(f);
    // With finer decimals no room would be left for the integer part in 64 bits.
    if (d.exponent < -15) return false;
    exponent_ = std::min(exponent_, d.exponent);
    divisors_ += f.op == Op::kMultiple;
    return f.op != Op::kMultiple || !d.zero();
  }

  FormulaSpace& formulas_;
  int64_t exponent_ = 0;
  uint32_t divisors_ = 0;
  bool ok_ = false;
};

}  // namespace

// A formula with fewer than two divisors has a small automaton, so it is not listed here.
bool few_numbers(FormulaSpace& formulas, TypedId p, std::vector<FewNumber>& out) {
  if (!(formulas[p].has & kHasMultiple)) return false;
  const Scaled scaled(formulas, p);
  if (!scaled.ok() || scaled.divisors() < 2 || !scaled.fits(p)) return false;
  const auto bounds = scaled.bounds(p);
  if (!bounds || !bounds->low || !bounds->high || bounds->step == 0) return false;
  const int64_t step = bounds->step, low = *bounds->low, high = *bounds->high;
  // Division rounds toward zero, so the loop goes one multiple beyond each bound.
  if (high / step - low / step > kTriedMultiples) return false;
  for (int64_t k = low / step - 1; k <= high / step + 1; ++k) {
    if (!scaled.satisfies(p, k * step, false)) continue;
    if (out.size() == kFound) return false;
    out.push_back({scaled.number(k * step), !scaled.satisfies(p, k * step, true)});
  }
  return true;
}

}  // namespace structgen
