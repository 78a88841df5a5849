// Regexes of the numbers that a keyword allows; number.h has the universe of spellings.
//
// An example: x >= 12.5 over plain numbers. Bounds are built digit by digit, from the last digit to the
// first. At digit j either the number differs from the bound already, and the rest is free, or it
// equals the bound so far, and digit j + 1 decides.
//
//     more digits before the point    three and more: [1-9][0-9]{2,}, any fraction
//     as many                         1 then [3-9], any fraction; [2-9][0-9], any fraction
//     equal so far: 12                a point, then 5 and anything, or [6-9] and anything
//
// So a bound of n digits is a regex of n levels, each a choice of two, and no automaton. Negative
// numbers are the mirror image behind the sign. Zero is treated on its own, because -0 equals 0.
//
// With exponents the value decides and not the spelling. There is one digit before the point, so the
// exponent is compared with that of the bound, and the mantissa only if the exponents are equal.
//
// Rejected: automata for bounds. A bound of 40 digits would meet another one in a product of automata; two
// regexes meet in a conjunction, which is unfolded as it is read.
#include "numbers/number.h"

#include <algorithm>
#include <limits>
#include <string>

#include "base/error.h"
#include "regex/regex.h"

namespace structgen {

namespace {
constexpr RegexId kUnset{0xFFFFFFFFu};
int digit_at(std::string_view digits, std::size_t i) { return digits[i] - '0'; }
}  // namespace

RegexId json_number(RegexArena& arena) {
  const RegexId digits = arena.repeat(arena.range('0', '9'), 1, kUnbounded);
  const RegexId sign = arena.optional(arena.bytes(ByteSet::of('+') | ByteSet::of('-')));
  const RegexId integer =
      arena.alt(arena.byte('0'), arena.cat(arena.range('1', '9'), arena.star(arena.range('0', '9'))));
  const RegexId parts[] = {
      arena.optional(arena.byte('-')), integer, arena.optional(arena.cat(arena.byte('.'), digits)),
      arena.optional(arena.cat(arena.bytes(ByteSet::of('e') | ByteSet::of('E')), arena.cat(sign, digits)))};
  return arena.cat(parts);
}

NumberLanguage::NumberLanguage(RegexArena& arena, NumberSpelling spelling, bool narrow, uint32_t most_digits)
    : arena_(arena),
      exponents_(spelling == NumberSpelling::kAny),
      narrow_(narrow),
      most_digits_(exponents_ ? kUnlimited : most_digits),
      zeros_until_(exponents_                           ? kUnbounded
                   : spelling == NumberSpelling::kPlain ? kPlainFraction
                                                        : 0),
      magnitude_(kUnset),
      integers_(kUnset) {
  const RegexId zero = arena.byte('0'), nonzero_digit = arena.range('1', '9');
  point_ = arena.byte('.');
  e_ = arena.bytes(ByteSet::of('e') | ByteSet::of('E'));
  plus_ = arena.optional(arena.byte('+'));
  any_digits_ = digits(0, kUnbounded);
  some_digits_ = digits(1, kUnbounded);
  to_nonzero_ = arena.cat(any_digits_, nonzero_digit);
  const RegexId fraction = exponents_          ? some_digits_
                           : zeros_until_ == 0 ? to_nonzero_
                                               : arena.alt(digits(1, zeros_until_), to_nonzero_);
  any_fraction_ = arena.optional(arena.cat(point_, fraction));
  some_fraction_ = arena.cat(point_, nonzero(0));
  point_zeros_ = arena.optional(arena.cat(point_, arena.repeat(zero, 1, kUnbounded)));
  zero_fraction_ = zeros_until_ == 0 ? RegexArena::epsilon()
                                     : arena.optional(arena.cat(point_, arena.repeat(zero, 1, zeros_until_)));
  mantissa_ = arena.cat(digits(0, kMantissaDigits - 1), arena.cat(nonzero_digit, arena.star(zero)));
  any_exponent_ = arena.cat(arena.optional(arena.bytes(ByteSet::of('+') | ByteSet::of('-'))), some_digits_);
  const RegexId zero_parts[] = {zero, point_zeros_, e_, any_exponent_};
  zero_ = exponents_ ? arena.cat(zero_parts) : RegexArena::empty();
}

RegexId NumberLanguage::digit(int lo, int hi) {
  if (lo > hi) return RegexArena::empty();
  return arena_.range(static_cast<uint8_t>('0' + lo), static_cast<uint8_t>('0' + hi));
}

RegexId NumberLanguage::digits(uint32_t min, uint32_t max) { return arena_.repeat(digit(0, 9), min, max); }

RegexId NumberLanguage::minus_sign(RegexId magnitudes) { return arena_.cat(arena_.byte('-'), magnitudes); }

RegexId NumberLanguage::either_sign(RegexId magnitudes) {
  return arena_.cat(arena_.optional(arena_.byte('-')), magnitudes);
}

// Returns the texts of digits that are larger (`above`) or smaller than the digits of `bound` from index `at`
// on. At the first index j where they differ, the digit is larger (or smaller) than the bound's, and rest(j)
// follows. If they do not differ, `equal` follows.
template <class Rest>
RegexId NumberLanguage::beside(std::string_view bound, std::size_t at, bool above, RegexId equal,
                               Rest&& rest) {
  for (std::size_t j = bound.size(); j-- > at;) {
    const int b = digit_at(bound, j);
    const RegexId other = above ? digit(b + 1, 9) : digit(j == 0 ? 1 : 0, b - 1);
    equal = arena_.alt(arena_.cat(other, rest(j)), arena_.cat(digit(b, b), equal));
  }
  return equal;
}

// An exponent may have leading zeros, which are read first.
RegexId NumberLanguage::count_at_least(int64_t n) {
  if (n <= 0) return some_digits_;
  const std::string bound = std::to_string(n);
  const auto size = static_cast<uint32_t>(bound.size());
  const RegexId same =
      beside(bound, 0, true, RegexArena::epsilon(), [&](std::size_t j) { return behind(size, j); });
  const RegexId longer = arena_.cat(digit(1, 9), digits(size, kUnbounded));
  return arena_.cat(arena_.star(digit(0, 0)), arena_.alt(longer, same));
}

RegexId NumberLanguage::count_at_most(int64_t n) {
  if (n < 0) return RegexArena::empty();
  const RegexId zero = arena_.repeat(digit(0, 0), 1, kUnbounded);
  if (n == 0) return zero;
  const std::string bound = std::to_string(n);
  const auto size = static_cast<uint32_t>(bound.size());
  RegexId same =
      beside(bound, 0, false, RegexArena::epsilon(), [&](std::size_t j) { return behind(size, j); });
  if (size > 1) same = arena_.alt(same, arena_.cat(digit(1, 9), digits(0, size - 2)));
  return arena_.alt(zero, arena_.cat(arena_.star(digit(0, 0)), same));
}

RegexId NumberLanguage::count_equal(int64_t n) {
  if (n == 0) return arena_.repeat(digit(0, 0), 1, kUnbounded);
  return arena_.cat(arena_.star(digit(0, 0)), arena_.literal(std::to_string(n)));
}

// The sign of an exponent decides how its digits are compared. 0 has both signs: e+0 and e-0 are equal.
RegexId NumberLanguage::exponent_at_least(int64_t k) {
  if (k > 0) return arena_.cat(plus_, count_at_least(k));
  return arena_.alt(arena_.cat(plus_, some_digits_), minus_sign(count_at_most(-k)));
}

RegexId NumberLanguage::exponent_at_most(int64_t k) {
  if (k < 0) return minus_sign(count_at_least(-k));
  return arena_.alt(arena_.cat(plus_, count_at_most(k)), minus_sign(some_digits_));
}

RegexId NumberLanguage::exponent_equal(int64_t k) {
  if (k > 0) return arena_.cat(plus_, count_equal(k));
  return k < 0 ? minus_sign(count_equal(-k))
               : arena_.cat(arena_.alt(plus_, arena_.byte('-')), count_equal(0));
}

RegexId NumberLanguage::exponent_between(int64_t lo, int64_t hi) {
  if (lo == -kNone && hi == kNone) return any_exponent_;
  if (lo == hi) return exponent_equal(lo);
  if (hi == kNone) return exponent_at_least(lo);
  return lo == -kNone ? exponent_at_most(hi) : arena_.both(exponent_at_least(lo), exponent_at_most(hi));
}

// In the narrow universe a mantissa with a fraction has only exponents from kLongMin on, or up to kLongMax.
RegexId NumberLanguage::long_exponent(int64_t lo, int64_t hi) {
  if (!narrow_) return exponent_between(lo, hi);
  RegexId out = RegexArena::empty();
  const int64_t from = std::max(lo, kLongMin), to = std::min(hi, kLongMax);
  if (from <= hi) out = exponent_between(from, hi);
  if (lo <= to) out = arena_.alt(out, exponent_between(lo, to));
  return out;
}

RegexId NumberLanguage::one_digit(int lo, int hi, RegexId exponents) {
  const RegexId parts[] = {digit(lo, hi), point_zeros_, e_, exponents};
  return arena_.cat(parts);
}

RegexId NumberLanguage::with_fraction(RegexId first, RegexId fraction, RegexId exponents) {
  const RegexId parts[] = {first, point_, fraction, e_, exponents};
  return arena_.cat(parts);
}

// Where a fraction may end in zeros, it may end at any digit. A longer fraction must go on to a digit that is
// not 0.
RegexId NumberLanguage::open_tail(std::size_t read) {
  if (exponents_) return any_digits_;
  if (!may_end_in_zero(read)) return to_nonzero_;
  return arena_.alt(digits(0, zeros_until_ - static_cast<uint32_t>(read)), to_nonzero_);
}

RegexId NumberLanguage::tail(std::size_t read) {
  return exponents_ ? any_digits_ : arena_.optional(open_tail(read));
}

RegexId NumberLanguage::nonzero(std::size_t read) {
  const RegexId all = arena_.cat(to_nonzero_, any_digits_);
  if (exponents_) return all;
  return zeros_until_ == 0 ? to_nonzero_ : arena_.both(all, open_tail(read));
}

RegexId NumberLanguage::zeros(std::size_t read) {
  if (exponents_) return arena_.star(digit(0, 0));
  if (!may_end_in_zero(read)) return RegexArena::epsilon();
  return arena_.repeat(digit(0, 0), 0, zeros_until_ - static_cast<uint32_t>(read));
}

RegexId NumberLanguage::digits_above(std::string_view fraction, std::size_t at, bool strict) {
  const RegexId equal = strict ? nonzero(fraction.size()) : tail(fraction.size());
  return beside(fraction, at, true, equal, [&](std::size_t j) { return tail(j + 1); });
}

// A fraction that is a beginning of the bound's fraction is smaller, because the bound's last digit is not 0.
// So it may end wherever it may end in its last digit.
RegexId NumberLanguage::digits_below(std::string_view fraction, std::size_t at, bool strict) {
  RegexId out = strict ? RegexArena::empty() : zeros(fraction.size());
  for (std::size_t j = fraction.size(); j-- > at;) {
    const int b = digit_at(fraction, j);
    const bool ends = j > at && (fraction[j - 1] != '0' || may_end_in_zero(j));
    const RegexId less = arena_.alt(arena_.cat(digit(1, b - 1), tail(j + 1)),
                                    b > 0 ? arena_.cat(digit(0, 0), open_tail(j + 1)) : RegexArena::empty());
    out = arena_.alt(less, arena_.cat(digit(b, b), out));
    if (ends) out = arena_.alt(out, RegexArena::epsilon());
  }
  return out;
}

RegexId NumberLanguage::fraction_above(std::string_view fraction, bool strict) {
  if (fraction.empty()) return strict ? some_fraction_ : any_fraction_;
  return arena_.cat(point_, digits_above(fraction, 0, strict));
}

// `bare` says that a number without a fraction is below the bound, too.
RegexId NumberLanguage::fraction_below(std::string_view fraction, bool strict, bool bare) {
  if (fraction.empty()) return strict || !bare ? RegexArena::empty() : zero_fraction_;
  const RegexId out = arena_.cat(point_, digits_below(fraction, 0, strict));
  return bare ? arena_.alt(out, RegexArena::epsilon()) : out;
}

// The larger numbers have a whole part of more digits, a larger one of as many digits, or the bound's whole
// part and a larger fraction.
RegexId NumberLanguage::plain_above(const Decimal& bound, bool strict) {
  const std::string whole = bound.int_part();
  const auto size = static_cast<uint32_t>(whole.size());
  const RegexId same = beside(whole, 0, true, fraction_above(bound.frac_part(), strict),
                              [&](std::size_t j) { return arena_.cat(behind(size, j), any_fraction_); });
  const RegexId longer[] = {digit(1, 9), digits(size, kUnbounded), any_fraction_};
  return arena_.alt(arena_.cat(longer), same);
}

RegexId NumberLanguage::plain_below(const Decimal& bound, bool strict, bool with_zero) {
  const std::string whole = bound.int_part();
  const auto size = static_cast<uint32_t>(whole.size());
  const RegexId equal = fraction_below(bound.frac_part(), strict, with_zero || whole != "0");
  const RegexId same = beside(whole, 0, false, equal,
                              [&](std::size_t j) { return arena_.cat(behind(size, j), any_fraction_); });
  if (whole == "0") return same;
  const RegexId below_one = arena_.cat(digit(0, 0), with_zero ? any_fraction_ : some_fraction_);
  const RegexId shorter[] = {digit(1, 9), digits(0, size < 2 ? 0 : size - 2), any_fraction_};
  return arena_.alt(arena_.alt(below_one, same), size < 2 ? RegexArena::empty() : arena_.cat(shorter));
}

// The larger numbers have a larger exponent, or the same exponent and a larger first digit, or both equal and
// larger digits behind the first.
RegexId NumberLanguage::scientific_above(const Decimal& bound, bool strict) {
  const int64_t k = bound.scientific_exponent();
  const int first = digit_at(bound.digits, 0);
  const bool single = bound.digits.size() == 1;
  RegexId out = arena_.alt(one_digit(1, 9, exponent_at_least(k + 1)),
                           one_digit(single && !strict ? first : first + 1, 9, exponent_equal(k)));
  out = arena_.alt(out, with_fraction(digit(1, 9), mantissa_, long_exponent(k + 1, kNone)));
  const RegexId here = long_exponent(k, k);
  if (here == RegexArena::empty()) return out;
  const RegexId rest = single ? mantissa_ : arena_.both(mantissa_, digits_above(bound.digits, 1, strict));
  return arena_.alt(out, arena_.alt(with_fraction(digit(first + 1, 9), mantissa_, here),
                                    with_fraction(digit(first, first), rest, here)));
}

RegexId NumberLanguage::scientific_below(const Decimal& bound, bool strict) {
  const int64_t k = bound.scientific_exponent();
  const int first = digit_at(bound.digits, 0);
  const bool single = bound.digits.size() == 1;
  RegexId out = arena_.alt(one_digit(1, 9, exponent_at_most(k - 1)),
                           one_digit(1, single && strict ? first - 1 : first, exponent_equal(k)));
  out = arena_.alt(out, with_fraction(digit(1, 9), mantissa_, long_exponent(-kNone, k - 1)));
  const RegexId here = long_exponent(k, k);
  if (here == RegexArena::empty()) return out;
  out = arena_.alt(out, with_fraction(digit(1, first - 1), mantissa_, here));
  if (single) return out;
  const RegexId rest = arena_.both(mantissa_, digits_below(bound.digits, 1, strict));
  return arena_.alt(out, with_fraction(digit(first, first), rest, here));
}

RegexId NumberLanguage::scientific_equal(const Decimal& value) {
  const int64_t k = value.scientific_exponent();
  const int first = digit_at(value.digits, 0);
  // kHugeExponent stands for all exponents of at least this size.
  if (std::abs(k) == kHugeExponent) {
    const RegexId e = k > 0 ? exponent_at_least(kHugeExponent) : exponent_at_most(-kHugeExponent);
    return value.digits.size() == 1
               ? one_digit(first, first, e)
               : with_fraction(digit(first, first),
                               arena_.cat(arena_.literal(std::string_view(value.digits).substr(1)), zeros(0)),
                               e);
  }
  if (value.digits.size() == 1) return one_digit(first, first, exponent_equal(k));
  const std::string_view rest = std::string_view(value.digits).substr(1);
  if (rest.size() > kMantissaDigits) return RegexArena::empty();
  return with_fraction(digit(first, first), arena_.cat(arena_.literal(rest), zeros(0)), long_exponent(k, k));
}

RegexId NumberLanguage::scientific_any() {
  return arena_.alt(one_digit(1, 9, any_exponent_),
                    with_fraction(digit(1, 9), mantissa_, long_exponent(-kNone, kNone)));
}

RegexId NumberLanguage::exact_fraction(uint32_t n) {
  const RegexId parts[] = {digits(n - 1, n - 1), digit(1, 9), arena_.star(digit(0, 0))};
  return arena_.cat(parts);
}

RegexId NumberLanguage::magnitude() {
  if (magnitude_ != kUnset) return magnitude_;
  RegexId all = arena_.cat(arena_.alt(digit(0, 0), arena_.cat(digit(1, 9), any_digits_)), any_fraction_);
  if (exponents_) all = arena_.alt(all, arena_.alt(zero_, scientific_any()));
  return magnitude_ = all;
}

RegexId NumberLanguage::above(const Decimal& bound, bool strict) {
  if (bound.zero() && !strict) return magnitude();
  const RegexId plain = plain_above(bound, strict);
  if (!exponents_) return plain;
  if (!bound.zero()) return arena_.alt(plain, scientific_above(bound, strict));
  return arena_.alt(plain, scientific_any());
}

RegexId NumberLanguage::below(const Decimal& bound, bool strict, bool with_zero) {
  const RegexId plain = plain_below(bound, strict, with_zero);
  if (!exponents_ && !with_zero && zeros_until_ > 0) return arena_.both(plain, above(Decimal{}, true));
  if (!exponents_ || (bound.zero() && strict)) return plain;
  const RegexId out = with_zero ? arena_.alt(plain, zero_) : plain;
  return bound.zero() ? out : arena_.alt(out, scientific_below(bound, strict));
}

RegexId NumberLanguage::any() {
  if (exponents_) return either_sign(magnitude());
  return arena_.alt(minus_sign(above(Decimal{}, true)), magnitude());
}

// An integer with an exponent has an exponent of at least the number of digits of its fraction.
RegexId NumberLanguage::integers() {
  if (integers_ != kUnset) return integers_;
  const RegexId positive = arena_.cat(digit(1, 9), any_digits_);
  if (!exponents_)
    return integers_ = arena_.cat(arena_.alt(digit(0, 0), either_sign(positive)), zero_fraction_);
  const RegexId plain = arena_.cat(arena_.alt(digit(0, 0), positive), zero_fraction_);
  std::vector<RegexId> parts{plain, zero_, one_digit(1, 9, exponent_at_least(0))};
  if (narrow_) parts.push_back(with_fraction(digit(1, 9), mantissa_, long_exponent(kLongMin, kNone)));
  for (uint32_t f = 1; f <= kMantissaDigits && !narrow_; ++f)
    parts.push_back(with_fraction(digit(1, 9), exact_fraction(f), long_exponent(f, kNone)));
  return integers_ = either_sign(arena_.alt(std::span<const RegexId>(parts)));
}

RegexId NumberLanguage::plain_integers() {
  const RegexId positive = arena_.cat(digit(1, 9), any_digits_);
  if (!exponents_) return arena_.alt(digit(0, 0), either_sign(positive));
  return either_sign(arena_.alt(digit(0, 0), positive));
}

RegexId NumberLanguage::finite() {
  return arena_.cat(arena_.optional(arena_.byte('-')),
                    arena_.cat(digits(1, kReadableDigits), arena_.optional(arena_.cat(point_, any_digits_))));
}

RegexId NumberLanguage::within_doubles() {
  Decimal largest = Decimal::parse("1.7976931348623157e308");
  const RegexId below = at_most(largest, false);
  largest.negative = true;
  return arena_.both(below, at_least(largest, false));
}

RegexId NumberLanguage::finite_any() {
  const RegexId whole = arena_.cat(digit(1, 9), digits(0, kReadableDigits - 1));
  const RegexId small = arena_.cat(digit(0, 0), some_fraction_);
  const RegexId positive = arena_.alt(arena_.cat(whole, any_fraction_), small);
  return arena_.alt(arena_.cat(digit(0, 0), zero_fraction_), either_sign(positive));
}

RegexId NumberLanguage::finite_integers() {
  const RegexId whole = either_sign(arena_.cat(digit(1, 9), digits(0, kReadableDigits - 1)));
  return arena_.cat(arena_.alt(digit(0, 0), whole), zero_fraction_);
}

// Above a negative bound are the negative numbers of smaller magnitude, and all numbers that are not
// negative.
RegexId NumberLanguage::at_least(const Decimal& bound, bool exclusive) {
  if (!bound.zero() && !bound.negative) return above(bound, exclusive);
  if (bound.negative) {
    Decimal size = bound;
    size.negative = false;
    return arena_.alt(minus_sign(below(size, exclusive, exponents_)), magnitude());
  }
  if (exclusive) return above(bound, true);
  if (!exponents_) return magnitude();
  return arena_.alt(minus_sign(arena_.alt(arena_.cat(digit(0, 0), zero_fraction_), zero_)), magnitude());
}

RegexId NumberLanguage::at_most(const Decimal& bound, bool exclusive) {
  if (bound.negative) {
    Decimal size = bound;
    size.negative = false;
    return minus_sign(above(size, exclusive));
  }
  if (bound.zero() && exclusive) return minus_sign(above(bound, true));
  const RegexId negative = minus_sign(exponents_ ? magnitude() : above(Decimal{}, true));
  return arena_.alt(negative, below(bound, exclusive, true));
}

// Returns the lexemes of a number with a very large exponent. Without an exponent it would be a row of zeros,
// more than 2^31 of which no text holds.
RegexId NumberLanguage::equal_to_far(const Decimal& value) {
  constexpr int64_t kLongest = int64_t{1} << 31;
  RegexId out = exponents_ ? scientific_equal(value) : RegexArena::empty();
  const int64_t count =
      value.exponent > 0 ? value.exponent : -value.exponent - static_cast<int64_t>(value.digits.size());
  if (count < kLongest) {
    const RegexId row =
        arena_.repeat(digit(0, 0), static_cast<uint32_t>(count), static_cast<uint32_t>(count));
    const RegexId digits = arena_.literal(value.digits);
    const RegexId large[] = {digits, row, zero_fraction_};
    const RegexId small[] = {digit(0, 0), point_, row, digits,
                             zeros(static_cast<std::size_t>(count) + value.digits.size())};
    out = arena_.alt(out, value.exponent > 0 ? arena_.cat(large) : arena_.cat(small));
  } else if (!exponents_) {
    throw Error(ErrorKind::kSchemaTooComplex, "a number without exponent has too many digits");
  }
  return value.negative ? minus_sign(out) : out;
}

RegexId NumberLanguage::equal_to(const Decimal& value) {
  if (std::abs(value.exponent) > kMaxDecimalExponent) return equal_to_far(value);
  const std::string fraction = value.frac_part();
  const RegexId tail =
      fraction.empty() ? zero_fraction_ : arena_.cat(arena_.literal("." + fraction), zeros(fraction.size()));
  RegexId out = arena_.cat(arena_.literal(value.int_part()), tail);
  if (value.zero()) return exponents_ ? either_sign(arena_.alt(out, zero_)) : out;
  if (exponents_) out = arena_.alt(out, scientific_equal(value));
  return value.negative ? minus_sign(out) : out;
}

}  // namespace structgen
