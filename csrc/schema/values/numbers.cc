// See numbers.h.
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
constexpr int64_t kFarBound = 30;         // digits of a bound
constexpr std::size_t kShortDivisor = 3;  // digits of a divisor that is decided beside it

// All grammars of an arena share them.
struct NumberLanguages : RegexCache {
  std::optional<NumberLanguage> of[3][2][2];  // by spelling, huge, narrow
  std::size_t byte_size() const override { return sizeof(*this); }
};
}  // namespace

NumberLanguage& Numbers::lexemes(Domain d) {
  const bool narrow = is(d, kNarrow), huge = d & kHuge;
  const NumberSpelling spelling = is(d, kWhole) ? NumberSpelling::kCanonical : spelling_;
  NumberLanguage*& known = lexemes_[d];
  if (!known) {
    auto& shared = regexes_.cache<NumberLanguages>().of[static_cast<std::size_t>(spelling)][huge][narrow];
    if (!shared)
      shared.emplace(regexes_, spelling, narrow,
                     huge ? NumberLanguage::kUnlimited : NumberLanguage::kReadableDigits);
    known = &*shared;
  }
  return *known;
}

// In the plain spelling 12 may be written 12.00 where a number is asked for, and not where a whole number is:
// `integer`, or an `enum` or `const` of whole numbers. This is a property of a text, not of its value, so a
// formula has two languages: kAll, which complements are taken from, and kOffered, a part of it.
// `integer` and whole constants are narrower in kOffered; a conjunction and a disjunction are made of
// kOffered, a negation is the complement of kAll, and "exactly one" is one kid's kOffered without the
// others' kAll. Every number that satisfies a formula has its canonical lexeme in both, so both are empty
// together.
//
// Without exponents numbers have at most kReadableDigits digits before the point. Conditions whose constants
// have few digits in all are met, if at all, by a number below their product and so below the limit: what the
// arithmetic of witness.cc and lattice.cc finds stays right. The automaton of a divisor counts its digits, so
// that it tells by itself what can still be completed. Where a condition names numbers of about that size,
// what satisfies it is no further from zero than the largest double, if some of it is not. Only there may a
// language that is empty within the limit be written beyond it: a divisor's automaton knows no number beyond
// the limit, so its complement has all of those.
RegexId Numbers::language(TypedId p) {
  const RegexId out = finite(p);
  if (regexes_.undecided(out)) regexes_.is_empty(out);
  return out;
}

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
    out = within(combine(p, of(written, kHuge)), lexemes(of(kAll, kHuge)).within_doubles());
  else if (counts_digits(p))
    out = combine(p, written);
  else if (out = regexes_.both(combine(p, written), lexemes(written).finite()); regexes_.judged_empty(out))
    out = RegexArena::empty();
  finite_.emplace(p.v, out);
  return out;
}

// The numbers that are in `some`; all of them where none is, or where that is too much to tell.
RegexId Numbers::within(RegexId numbers, RegexId some) {
  const RegexId out = regexes_.both(numbers, some);
  return FirstLimit().otherwise(true, [&] { return regexes_.is_empty(out); }) ? numbers : out;
}

// Whether every number that satisfies the formula is read by the automaton of a divisor.
bool Numbers::counts_digits(TypedId p) {
  check_depth();
  const Formula& f = formulas_[p];
  if (f.op == Op::kMultiple) return NumberLanguage::is_hard(formulas_.short_decimal(f.text()));
  const auto counts = [&](TypedId k) { return counts_digits(k); };
  if (f.op == Op::kAnd) {
    const Conditions all = read(p);
    const auto stays_hard = [&](Decimal d) {  // joined with `easy`; a multiple of 0.5 may have to be whole
      return !all.easy || !all.joined || !NumberLanguage::common_multiple(*all.easy, d, d) ||
             NumberLanguage::is_hard(d);
    };
    return std::ranges::any_of(all.hard, stays_hard) || std::ranges::any_of(all.others, counts);
  }
  return f.op == Op::kOr && f.n > 0 && std::ranges::all_of(formulas_.kids(p), counts);
}

// The digits of all numbers in a formula, those of their exponents' size included.
uint32_t Numbers::size_of_constants(TypedId p) {
  check_depth();
  constexpr uint32_t kMany = 4096;  // enough to know
  const Formula f = formulas_[p];
  if (row(f.op).family == Family::kNumber && f.op != Op::kInteger) {
    const Decimal& d = formulas_.decimal(f.text());
    return static_cast<uint32_t>(std::min<int64_t>(kMany, std::abs(d.exponent) + d.digits.size()));
  }
  if (f.n == 0) return 0;
  if (const uint32_t* known = constants_.find(p.v)) return *known;
  uint32_t out = 0;
  for (TypedId k : formulas_.kids(p))
    if ((out += size_of_constants(k)) >= kMany) break;
  constants_.emplace(p.v, out);
  return out;
}

bool Numbers::hard(TypedId p) {
  check_depth();
  const Formula& f = formulas_[p];
  if (f.op == Op::kMultiple) return NumberLanguage::is_hard(formulas_.short_decimal(f.text()));
  if (!(f.has & kHasMultiple)) return false;
  if (const auto* known = hard_.find(p.v)) return *known;
  bool out = false;
  for (TypedId k : formulas_.kids(p)) out = out || hard(k);
  hard_.emplace(p.v, out);
  return out;
}

// Where the lexemes of a part of what is offered are looked up.
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

// ---- conjunctions ----

Numbers::Conditions Numbers::read(TypedId p) {
  Conditions out;
  for (TypedId k : formulas_.kids(p)) {
    const bool denied = formulas_[k].op == Op::kNot;
    const Formula f = formulas_[denied ? formulas_.kids(k)[0] : k];
    if (!denied && (f.op == Op::kInteger || f.op == Op::kMultiple)) {
      out.without_point = out.without_point || (f.op == Op::kInteger && f.b);
      const Decimal d = f.op == Op::kInteger ? Decimal::parse("1") : formulas_.short_decimal(f.text());
      ++out.divisors;
      if (NumberLanguage::is_hard(d))
        out.hard.push_back(d);
      else if (!out.easy)
        out.easy = d;
      else
        out.joined = out.joined && NumberLanguage::common_multiple(*out.easy, d, *out.easy);
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

RegexId Numbers::conjunction(TypedId p, Domain domain) {
  RegexId out;
  if (few(p, domain, out)) return out;
  std::vector<RegexId> parts;
  const auto divides = [&](TypedId k) {
    return formulas_[k].op == Op::kInteger || formulas_[k].op == Op::kMultiple;
  };
  if (std::ranges::any_of(formulas_.kids(p), divides)) {
    const Conditions all = read(p);
    if (all.joined && (between(all, domain, parts) || joined(all, domain, parts))) {
      if (all.without_point) parts.push_back(lexemes(domain).plain_integers());
      return regexes_.both(std::span<const RegexId>(parts));
    }
  }
  for (TypedId k : formulas_.kids(p)) parts.push_back(combine(k, domain));
  return regexes_.both(std::span<const RegexId>(parts));
}

bool Numbers::few(TypedId p, Domain domain, RegexId& out) {
  std::vector<FewNumber> found;
  if (!few_numbers(formulas_, p, found)) return false;
  std::vector<RegexId> parts;
  for (const FewNumber& n : found)
    parts.push_back(lexemes(is(domain, kOffered) && n.whole ? of(kWhole, domain) : domain).equal_to(n.value));
  out = regexes_.alt(std::span<const RegexId>(parts));
  return true;
}

bool Numbers::between(const Conditions& all, Domain domain, std::vector<RegexId>& parts) {
  if (all.hard.empty() || (!all.low && !all.high)) return false;
  std::optional<Decimal> divisor = all.easy;
  for (const Decimal& d : all.hard)
    if (!divisor)
      divisor = d;
    else if (!NumberLanguage::common_multiple(*divisor, d, *divisor))
      return false;
  // What is left of such a number is decided by a search through all multiples beyond the bound.
  const auto far = [](const std::optional<NumberLanguage::Bound>& b, bool beyond) {
    return b && b->value.negative == beyond && b->value.scientific_exponent() >= kFarBound;
  };
  if (divisor->digits.size() > kShortDivisor && (far(all.low, false) || far(all.high, true)))
    too_complex("multipleOf: a divisor of more than three digits beside a bound of more than 30 digits");
  RegexId out;
  if (!lexemes(domain).multiples_between(*divisor, all.low ? &*all.low : nullptr,
                                         all.high ? &*all.high : nullptr, out))
    return false;
  parts.push_back(out);
  for (TypedId k : all.others) parts.push_back(combine(k, domain));
  return true;
}

bool Numbers::joined(const Conditions& all, Domain domain, std::vector<RegexId>& parts) {
  if (!all.easy || all.divisors < 2) return false;
  std::vector<Decimal> divisors = all.hard.empty() ? std::vector{*all.easy} : all.hard;
  for (Decimal& d : divisors)
    if (!NumberLanguage::common_multiple(*all.easy, d, d)) return false;
  for (const Decimal& d : divisors) parts.push_back(lexemes(domain).multiple_of(d));
  for (TypedId k : all.bounds) parts.push_back(combine(k, domain));
  for (TypedId k : all.others) parts.push_back(combine(k, domain));
  return true;
}

RegexId Numbers::combine(TypedId p, Domain domain) {
  check_depth();
  domain = kid_domain(p, domain);
  if (p == FormulaSpace::no()) return RegexArena::empty();
  // A number without conditions takes every lexeme; conditions are decided within the universe.
  if (p == FormulaSpace::yes())
    return spelling_ != NumberSpelling::kAny ? lexemes(domain).any() : json_number(regexes_);
  auto& memo = memo_[domain];
  if (const auto* known = memo.find(p.v)) return *known;
  const Formula f = formulas_[p];
  const Domain all = is(domain, kOffered) ? of(kAll, domain) : domain;  // what complements are taken of
  RegexId out;
  switch (f.op) {
    case Op::kAnd: out = conjunction(p, domain); break;
    case Op::kOr: {
      std::vector<RegexId> parts;
      const bool mixed = is(domain, kOffered) && names_fractions(formulas_, p);
      for (TypedId k : formulas_.kids(p))
        parts.push_back(combine(k, mixed && formulas_[k].op == Op::kEqual ? all : domain));
      out = regexes_.alt(std::span<const RegexId>(parts));
      break;
    }
    case Op::kOne: {
      // At most one so far, and exactly one so far, kid by kid.
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
  // What is undecided() stays as it is: under a complement less would be more.
  if (!plainly_nonempty(formulas_, p) && regexes_.node(out).boolean && regexes_.judged_empty(out))
    out = RegexArena::empty();
  memo.emplace(p.v, out);
  return out;
}

}  // namespace structgen
