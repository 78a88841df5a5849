// Languages of formulas of numbers. numbers.h has the ways in which a conjunction becomes a language.
//
// An atom (a bound, a divisor, `integer`) is a language of csrc/numbers. finite() chooses a domain for the
// formula (Domain in numbers.h): a formula with a hard divisor, for example, is read in the narrow universe
// (numbers/number.h). combine() goes through the formula: unions and complements are those of the regex
// algebra, and conjunction() takes a conjunction by one of the four ways. {"minimum": 5, "multipleOf": 3}
// is way 2: one automaton that reads digits and knows the remainder, and whether the bound is passed.
#include "schema/values/numbers.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "base/depth.h"
#include "base/error.h"
#include "base/told.h"
#include "regex/regex.h"
#include "schema/values/lattice.h"
#include "schema/values/witness.h"

namespace structgen {

namespace {
// A bound with more digits than this is far from zero. A divisor beside it may have at most kShortDivisor
// digits.
constexpr int64_t kFarBound = 30;
constexpr std::size_t kShortDivisor = 3;

// The languages of single conditions, shared by all grammars of an arena.
struct NumberLanguages : RegexCache {
  // of[spelling][size][narrow] is the language for a spelling of numbers, a bound on digits (Domain), and the
  // narrow or the full universe.
  std::optional<NumberLanguage> of[3][3][2];
  std::size_t byte_size() const override { return sizeof(*this); }
};
}  // namespace

NumberLanguage& Numbers::lexemes(Domain d) {
  const bool narrow = is(d, kNarrow);
  const std::size_t size = d & kHuge ? 2 : d & kDouble ? 1 : 0;
  const NumberSpelling spelling = is(d, kWhole) ? NumberSpelling::kCanonical : spelling_;
  NumberLanguage*& known = lexemes_[d];
  if (!known) {
    auto& shared = regexes_.cache<NumberLanguages>().of[static_cast<std::size_t>(spelling)][size][narrow];
    constexpr uint32_t kDigits[] = {NumberLanguage::kReadableDigits, NumberLanguage::kDoubleDigits,
                                    NumberLanguage::kUnlimited};
    if (!shared) shared.emplace(regexes_, spelling, narrow, kDigits[size]);
    known = &*shared;
  }
  return *known;
}

// Which spellings a number may have, and how large it may be.
//
// In the plain spelling 12 may also be written 12.00 if the schema asks for a number, but not if the schema
// asks for a whole number (`integer`, or an `enum` or `const` of whole numbers). This is a property of the
// text and not of the value, so a formula has two languages: kAll, and its subset kOffered. Complements are
// taken of kAll.
//   - `integer` and whole constants have fewer lexemes in kOffered.
//   - A conjunction or disjunction in kOffered combines its kids in kOffered.
//   - A negation is the complement of the kid in kAll.
//   - "Exactly one" is one kid in kOffered without all other kids in kAll.
//
// Both languages have the canonical lexeme of every number that satisfies the formula, so either both are
// empty or neither is.
//
// Without exponents a number has at most kReadableDigits digits before the point. The limit makes no formula
// empty whose constants have few digits in all: if some number satisfies the formula, then so does a number
// below the product of the constants, which is below the limit. So the arithmetic of witness.cc and
// lattice.cc stays right. The automaton of a divisor counts digits itself, so it knows which beginnings can
// be completed within the limit.
//
// If the constants of a condition are about as large as the limit, the limit is the largest double instead,
// as long as some number within it satisfies the formula. Only for such conditions may a language that is
// empty within the limit be written beyond the limit. The automaton of a divisor knows no number beyond its
// limit, so the complement of the automaton has all such numbers. Hence the separate domains kDouble and
// kHuge. (Without the digits of kDouble, a search for the least multiple of 123456789012345678e295 within
// the doubles did not end.)
RegexId Numbers::language(TypedId p) {
  const RegexId out = finite(p);
  if (regexes_.undecided(out)) regexes_.is_empty(out);
  return out;
}

// The bound on digits is intersected only where nothing else bounds them. That is not so without conditions,
// for `integer` alone, and for divisors, whose automata count digits.
RegexId Numbers::finite(TypedId p) {
  const Domain domain = hard(p) ? kNarrow : kAll;
  constexpr uint32_t kSmall = NumberLanguage::kReadableDigits - 8;
  const Domain written = spelling_ == NumberSpelling::kPlain ? kOffered : domain;
  if (spelling_ == NumberSpelling::kAny || p == FormulaSpace::no()) return combine(p, written);
  if (const RegexId* known = finite_.find(p.v)) return *known;
  RegexId out;
  if (p == FormulaSpace::yes())
    out = lexemes(written).finite_any();
  else if (formulas_[p].op == Op::kInteger)
    out = lexemes(is(written, kOffered) ? kWhole : written).finite_integers();
  else if (size_of_constants(p) > kSmall)
    out = within_doubles(p, written);
  else if (counts_digits(p))
    out = combine(p, written);
  else if (out = regexes_.both(combine(p, written), lexemes(written).finite()); regexes_.judged_empty(out))
    out = RegexArena::empty();
  finite_.emplace(p.v, out);
  return out;
}

// Returns the numbers of p up to the largest double. If p has no number that small, or if telling takes too
// much work, returns the numbers of p of any size.
RegexId Numbers::within_doubles(TypedId p, Domain domain) {
  const RegexId out = regexes_.both(combine(p, of(domain, kDouble)), lexemes(kDouble).within_doubles());
  const bool none = FirstLimit().otherwise(true, [&] { return regexes_.is_empty(out); });
  return none ? combine(p, of(domain, kHuge)) : out;
}

// Returns true if the automaton of a hard divisor reads each number of the formula. It counts digits, so no
// other bound on digits is needed.
bool Numbers::counts_digits(TypedId p) {
  check_depth();
  const Formula& f = formulas_[p];
  if (f.op == Op::kMultiple) return NumberLanguage::is_hard(formulas_.short_decimal(f.text()));
  const auto counts = [&](TypedId k) { return counts_digits(k); };
  if (f.op == Op::kAnd) {
    const Conditions all = read(p);  // multiples of 0.5 and 0.2 are multiples of 1, which is not hard
    return std::ranges::any_of(all.divisors, NumberLanguage::is_hard) ||
           std::ranges::any_of(all.others, counts);
  }
  return f.op == Op::kOr && f.n > 0 && std::ranges::all_of(formulas_.kids(p), counts);
}

// Returns the sum of the digits of all constants of a formula; 1e300 has 301 digits.
uint32_t Numbers::size_of_constants(TypedId p) {
  check_depth();
  // Counting stops at kMany, because larger counts change nothing.
  constexpr uint32_t kMany = 4096;
  const Formula f = formulas_[p];
  if (row(f.op).family == Family::kNumber && f.op != Op::kInteger) {
    const Decimal& d = formulas_.decimal(f.text());
    return static_cast<uint32_t>(std::min<int64_t>(kMany, std::abs(d.exponent) + d.digits.size()));
  }
  if (f.n == 0) return 0;
  return constants_.remember(p.v, [&] {
    uint32_t out = 0;
    for (TypedId k : formulas_.kids(p))
      if ((out += size_of_constants(k)) >= kMany) break;
    return out;
  });
}

// Returns true if the formula has a hard divisor that is no power of ten. Such formulas use the narrow
// universe.
bool Numbers::hard(TypedId p) {
  check_depth();
  const Formula& f = formulas_[p];
  if (f.op == Op::kMultiple) return NumberLanguage::is_hard(formulas_.short_decimal(f.text()));
  if (!(f.has & kHasMultiple)) return false;
  return hard_.remember(
      p.v, [&] { return std::ranges::any_of(formulas_.kids(p), [&](TypedId k) { return hard(k); }); });
}

// Returns the domain for a kid of a formula in kOffered: kWhole if the kid, or a conjunct of it, asks for a
// whole number.
Numbers::Domain Numbers::kid_domain(TypedId p, Domain domain) {
  if (!is(domain, kOffered)) return domain;
  const Formula& f = formulas_[p];
  const auto whole = [&](TypedId k) { return asks_whole(formulas_, k); };
  if (f.op == Op::kAnd && std::ranges::any_of(formulas_.kids(p), whole)) return of(kWhole, domain);
  return whole(p) ? of(kWhole, domain) : domain;
}

RegexId Numbers::atom(TypedId p, NumberLanguage& numbers) {
  const Formula f = formulas_[p];
  // Recipe, keyword 5, of numbers with an atom of its own: its case.
  switch (f.op) {
    case Op::kInteger: return f.b ? numbers.plain_integers() : numbers.integers();
    case Op::kAtLeast: return numbers.at_least(formulas_.short_decimal(f.text()), f.b != 0);
    case Op::kAtMost: return numbers.at_most(formulas_.short_decimal(f.text()), f.b != 0);
    case Op::kMultiple: return numbers.multiple_of(formulas_.short_decimal(f.text()));
    case Op::kEqual: return numbers.equal_to(formulas_.decimal(f.text()));
    default: unknown_operator(f.op);
  }
}

// Sorts the kids of a conjunction. A negated bound is the opposite bound: not (x >= 3) is x < 3. Of two equal
// bounds the open one is tighter.
Numbers::Conditions Numbers::read(TypedId p) {
  Conditions out;
  for (TypedId k : formulas_.kids(p)) {
    const bool denied = formulas_[k].op == Op::kNot;
    const Formula f = formulas_[denied ? formulas_.kids(k)[0] : k];
    if (!denied && (f.op == Op::kInteger || f.op == Op::kMultiple)) {
      out.without_point = out.without_point || (f.op == Op::kInteger && f.b);
      const Decimal d = f.op == Op::kInteger ? Decimal::parse("1") : formulas_.short_decimal(f.text());
      ++out.asked;
      if (std::ranges::none_of(
              out.divisors, [&](Decimal& known) { return NumberLanguage::common_multiple(known, d, known); }))
        out.divisors.push_back(d);
    } else if (f.op == Op::kAtLeast || f.op == Op::kAtMost) {
      out.bounds.push_back(k);
      const bool lower = (f.op == Op::kAtLeast) != denied;
      const NumberLanguage::Bound bound{formulas_.short_decimal(f.text()), (f.b != 0) != denied};
      std::optional<NumberLanguage::Bound>& kept = lower ? out.low : out.high;
      const int order = kept ? compare(bound.value, kept->value) * (lower ? 1 : -1) : 1;
      if (order > 0 || (order == 0 && bound.open)) kept = bound;
    } else {
      out.others.push_back(k);
    }
  }
  return out;
}

// Returns the language of a conjunction: it takes the first of the four ways in numbers.h that applies.
RegexId Numbers::conjunction(TypedId p, Domain domain) {
  RegexId out;
  if (few(p, domain, out)) return out;
  std::vector<RegexId> parts;
  const auto divides = [&](TypedId k) {
    return formulas_[k].op == Op::kInteger || formulas_[k].op == Op::kMultiple;
  };
  if (std::ranges::any_of(formulas_.kids(p), divides)) {
    const Conditions all = read(p);
    if (between(all, domain, parts) || joined(all, domain, parts)) {
      if (all.without_point) parts.push_back(lexemes(domain).plain_integers());
      return regexes_.both(std::span<const RegexId>(parts));
    }
  }
  for (TypedId k : formulas_.kids(p)) parts.push_back(combine(k, domain));
  return regexes_.both(std::span<const RegexId>(parts));
}

// Way 1 of numbers.h: the numbers are few, so each is listed. In kOffered each number has only the spellings
// that its conditions allow.
bool Numbers::few(TypedId p, Domain domain, RegexId& out) {
  std::vector<FewNumber> found;
  if (!few_numbers(formulas_, p, found)) return false;
  std::vector<RegexId> parts;
  for (const FewNumber& n : found)
    parts.push_back(lexemes(is(domain, kOffered) && n.whole ? of(kWhole, domain) : domain).equal_to(n.value));
  out = regexes_.alt(std::span<const RegexId>(parts));
  return true;
}

// Way 2 of numbers.h: one automaton of the divisors and the bounds. It needs a bound; the divisors alone have
// a smaller automaton.
bool Numbers::between(const Conditions& all, Domain domain, std::vector<RegexId>& parts) {
  if (all.divisors.size() != 1 || (!all.low && !all.high)) return false;
  const Decimal& divisor = all.divisors[0];
  if (!NumberLanguage::is_hard(divisor)) return false;
  // To tell whether a number that was begun can be completed, the automaton searches through all remainders,
  // digit by digit up to the bound ("at least 10^40 and a multiple of 1001"). A bound that would make this
  // search too long is refused here.
  const auto far = [](const std::optional<NumberLanguage::Bound>& b, bool beyond) {
    return b && b->value.negative == beyond && b->value.scientific_exponent() >= kFarBound;
  };
  if (divisor.digits.size() > kShortDivisor && (far(all.low, false) || far(all.high, true)))
    too_complex("multipleOf: a divisor of more than three digits beside a bound of more than 30 digits");
  RegexId out;
  if (!lexemes(domain).multiples_between(divisor, all.low ? &*all.low : nullptr,
                                         all.high ? &*all.high : nullptr, out))
    return false;
  parts.push_back(out);
  for (TypedId k : all.others) parts.push_back(combine(k, domain));
  return true;
}

// Way 3 of numbers.h: one automaton of all divisors. An `integer` that is a multiple of 0.75 is a multiple of
// 3.
bool Numbers::joined(const Conditions& all, Domain domain, std::vector<RegexId>& parts) {
  if (all.asked == all.divisors.size()) return false;
  for (const Decimal& d : all.divisors) parts.push_back(lexemes(domain).multiple_of(d));
  for (TypedId k : all.bounds) parts.push_back(combine(k, domain));
  for (TypedId k : all.others) parts.push_back(combine(k, domain));
  return true;
}

// Returns the language of a formula in a domain, by the formula's structure. Every connective but the
// conjunction is an operation of the regex algebra.
RegexId Numbers::combine(TypedId p, Domain domain) {
  check_depth();
  domain = kid_domain(p, domain);
  if (p == FormulaSpace::no()) return RegexArena::empty();
  // In the spelling kAny a number without a condition may be any lexeme of JSON. In every other spelling the
  // lexemes of all numbers form a language of their own.
  if (p == FormulaSpace::yes())
    return spelling_ != NumberSpelling::kAny ? lexemes(domain).any() : json_number(regexes_);
  auto& memo = memo_[domain];
  if (const auto* known = memo.find(p.v)) return *known;
  const Formula f = formulas_[p];
  const Domain all = is(domain, kOffered) ? of(kAll, domain) : domain;
  RegexId out;
  switch (f.op) {
    case Op::kAnd: out = conjunction(p, domain); break;
    case Op::kOr: {
      std::vector<RegexId> parts;
      // `"enum": [1, 0.5]` names a fraction, so the whole constants of the enum may be written 1.0, too.
      const bool mixed = is(domain, kOffered) && names_fractions(formulas_, p);
      for (TypedId k : formulas_.kids(p))
        parts.push_back(combine(k, mixed && formulas_[k].op == Op::kEqual ? all : domain));
      out = regexes_.alt(std::span<const RegexId>(parts));
      break;
    }
    case Op::kOne: {
      // `none` has the lexemes that no kid so far has, `one` those that exactly one has. The work then grows
      // linearly with the kids; a disjunction of conjunctions would make it quadratic.
      RegexId none = lexemes(domain).any(), one = RegexArena::empty();
      for (TypedId k : formulas_.kids(p)) {
        const RegexId r = combine(k, all), offered = domain == all ? r : combine(k, domain);
        one = regexes_.alt(regexes_.minus(one, r), regexes_.both(none, offered));
        none = regexes_.minus(none, r);
      }
      out = one;
      break;
    }
    case Op::kNot: out = regexes_.minus(lexemes(domain).any(), combine(formulas_.kids(p)[0], all)); break;
    default: out = atom(p, lexemes(domain));
  }
  // If it takes too much work to tell whether the language is empty, it stays: under a complement, empty()
  // would allow too much.
  if (!plainly_nonempty(formulas_, p) && regexes_.node(out).boolean && regexes_.judged_empty(out))
    out = RegexArena::empty();
  memo.emplace(p.v, out);
  return out;
}

}  // namespace structgen
