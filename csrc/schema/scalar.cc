#include "schema/scalar.h"

#include <algorithm>
#include <array>

#include "base/depth.h"
#include "base/utf8.h"
#include "regex/charset.h"
#include "schema/format.h"
#include "numbers/number.h"

namespace structgen {

std::string Scalars::spell(std::string_view text) {
  static const char* hex = "0123456789abcdef";
  std::string out;
  for (char c : text) {
    const uint8_t b = static_cast<uint8_t>(c);
    if (const char letter = plain_escape(b); letter != 0 && letter != 'u') {
      out += '\\';
      out += letter;
    } else if (letter == 'u') {
      out += "\\u00";
      out += hex[b >> 4];
      out += hex[b & 15];
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string Scalars::unspell(std::string_view spelled) {
  std::string out;
  spelled.remove_suffix(1);
  for (std::size_t i = 0; i < spelled.size(); ++i) {
    if (spelled[i] != '\\') {
      out += spelled[i];
    } else if (spelled[i + 1] == 'u') {
      out += static_cast<char>(std::stoi(std::string(spelled.substr(i + 4, 2)), nullptr, 16));
      i += 5;
    } else {
      constexpr std::string_view letters = "btnfr", meant = "\b\t\n\f\r";
      const std::size_t at = letters.find(spelled[++i]);
      out += at == std::string_view::npos ? spelled[i] : meant[at];
    }
  }
  return out;
}

RegexId Scalars::universe(Domain domain) {
  return domain == kStrings ? json_string_body(regexes_) : language(domain).any();
}

NumberLanguage& Scalars::language(Domain d) {
  const bool narrow = d == kNarrow;
  const NumberSpelling spelling = d == kWhole ? NumberSpelling::kCanonical : spelling_;
  NumberLanguage*& known = numbers_[d];
  if (!known)
    known = &regexes_.attached<NumberLanguage>(2 * static_cast<uint32_t>(spelling) + narrow, [&] {
      return std::make_shared<NumberLanguage>(regexes_, spelling, narrow);
    });
  return *known;
}

RegexId Scalars::canonical_body() {
  RegexId& known = regexes_.remembered(2);
  if (known == RegexArena::empty()) {
    ByteSet raw = ByteSet::range(0x20, 0xFF);
    raw.remove('"');
    raw.remove('\\');
    std::vector<RegexId> one{regexes_.bytes(raw)};
    for (uint32_t c = 0; c <= '\\'; ++c)
      if (plain_escape(c) != 0) {
        const char byte = static_cast<char>(c);
        std::string spelled = spell({&byte, 1});
        spelled.pop_back();  // the closing quote
        one.push_back(regexes_.literal(spelled));
      }
    known = regexes_.cat(regexes_.star(regexes_.alt(std::span<const RegexId>(one))), regexes_.byte('"'));
  }
  return known;
}

bool Scalars::empty_string(RegexId bodies) {
  if (bodies == RegexArena::empty()) return true;
  if (!regexes_.node(bodies).boolean) return false;
  return regexes_.is_empty(regexes_.mark_body(bodies));
}

RegexId Scalars::length(uint32_t min, uint32_t max) {
  return regexes_.cat(regexes_.repeat(json_any_char(regexes_), min, max), regexes_.byte('"'));
}

// Throws where it is too much to tell whether there is any.
RegexId Scalars::string(FormulaId p) {
  const RegexId out = combine(p, kStrings);
  if (regexes_.undecided(out)) regexes_.is_empty(out);
  return out;
}

// In the plain spelling 12 may be written 12.00 where a number is asked for, and not where a whole number is:
// `integer`, or an `enum` or `const` of whole numbers. This is a property of a text, not of its value, so a
// formula has two languages: kNumbers, which complements are taken from, and kOffered, a part of it.
// `integer` and whole constants are narrower in kOffered; a conjunction and a disjunction are made of
// kOffered, a negation is the complement of kNumbers, and "exactly one" is one kid's kOffered without the
// others' kNumbers. Every number that satisfies a formula has its canonical lexeme in both, so both are empty
// together.
//
// Without exponents numbers have at most kReadableDigits digits before the point, unless a condition names
// numbers of about that size. Conditions whose constants have few digits in all are met, if at all, by a
// number below their product and so below the limit: what the arithmetic of witness.cc and lattice.cc finds
// stays right. Not beside a hard divisor: its automaton times a counter of 308 is too large to decide.
RegexId Scalars::number(FormulaId p) {
  const RegexId out = finite_number(p);
  if (regexes_.undecided(out)) regexes_.is_empty(out);
  return out;
}

RegexId Scalars::finite_number(FormulaId p) {
  const Domain domain = hard(p) ? kNarrow : kNumbers;
  constexpr uint32_t kSmall = NumberLanguage::kReadableDigits - 8;
  const Domain written = spelling_ == NumberSpelling::kPlain ? kOffered : domain;
  if (spelling_ == NumberSpelling::kAny || domain == kNarrow || p == FormulaSpace::no() ||
      size_of_constants(p) > kSmall)
    return combine(p, written);
  if (const RegexId* known = finite_.find(p.v)) return *known;
  RegexId out;
  if (p == FormulaSpace::yes())
    out = language(written).finite_any();
  else if (formulas_[p].op == Op::kInteger)
    out = language(written == kOffered ? kWhole : written).finite_integers();
  else
    out = regexes_.both(combine(p, written), language(written).finite());
  finite_.emplace(p.v, out);
  return out;
}

// The digits of all numbers in a formula, those of their exponents' size included.
uint32_t Scalars::size_of_constants(FormulaId p) {
  check_depth();
  constexpr uint32_t kMany = 4096;  // enough to know
  const Formula f = formulas_[p];
  switch (f.op) {
    case Op::kAtLeast:
    case Op::kAtMost:
    case Op::kMultiple:
    case Op::kEqual: {
      const Decimal d = Decimal::parse_any(formulas_.text(f.a));
      return static_cast<uint32_t>(std::min<int64_t>(kMany, std::abs(d.exponent) + d.digits.size()));
    }
    default: break;
  }
  if (f.n == 0) return 0;
  if (const uint32_t* known = constants_.find(p.v)) return *known;
  uint32_t out = 0;
  for (FormulaId k : formulas_.kids(p))
    if ((out += size_of_constants(k)) >= kMany) break;
  constants_.emplace(p.v, out);
  return out;
}

bool Scalars::hard(FormulaId p) {
  check_depth();
  const Formula& f = formulas_[p];
  if (f.op == Op::kMultiple) return NumberLanguage::is_hard(Decimal::parse(formulas_.text(f.a)));
  if (!(f.has & kHasMultiple)) return false;
  if (const auto* known = hard_.find(p.v)) return *known;
  bool out = false;
  for (FormulaId k : formulas_.kids(p)) out = out || hard(k);
  hard_.emplace(p.v, out);
  return out;
}

bool asks_whole(const FormulaSpace& formulas, FormulaId p) {
  const Formula& f = formulas[p];
  if (f.op == Op::kInteger) return true;
  if (f.op == Op::kEqual) return Decimal::parse_any(formulas.text(f.a)).integer();
  return f.op == Op::kOr && f.n > 0 && std::ranges::all_of(formulas.kids(p), [&](FormulaId k) {
           return formulas[k].op == Op::kEqual && asks_whole(formulas, k);
         });
}

bool names_fractions(const FormulaSpace& formulas, FormulaId p) {
  return std::ranges::any_of(formulas.kids(p), [&](FormulaId k) {
    return formulas[k].op == Op::kEqual && !asks_whole(formulas, k);
  });
}

// Where the lexemes of a part of what is offered are looked up.
Scalars::Domain Scalars::kid_domain(FormulaId p, Domain domain) const {
  if (domain != kOffered) return domain;
  const Formula& f = formulas_[p];
  const auto whole = [&](FormulaId k) { return asks_whole(formulas_, k); };
  if (f.op == Op::kAnd && std::ranges::any_of(formulas_.kids(p), whole)) return kWhole;
  return whole(p) ? kWhole : kOffered;
}

RegexId Scalars::combine(FormulaId p, Domain domain) {
  check_depth();
  domain = kid_domain(p, domain);
  const bool strings = domain == kStrings;
  if (p == FormulaSpace::no()) return RegexArena::empty();
  // A number without conditions takes every lexeme; conditions are decided within numbers_.any().
  if (p == FormulaSpace::yes())
    return strings || spelling_ != NumberSpelling::kAny ? universe(domain) : json_number(regexes_);
  auto& memo = memo_[domain];
  if (const auto* known = memo.find(p.v)) return *known;
  const Formula f = formulas_[p];
  const Domain all = domain == kOffered ? kNumbers : domain;  // what complements are taken of
  RegexId out;
  switch (f.op) {
    case Op::kAnd: {
      if (strings ? filter(p, out) : few(p, domain, out)) break;
      std::vector<RegexId> parts;
      if (!strings && multiples(p, domain, parts)) {
        out = regexes_.both(std::span<const RegexId>(parts));
        break;
      }
      uint32_t min = 0, max = kUnbounded;
      for (FormulaId k : formulas_.kids(p)) {
        const Formula& kid = formulas_[k];
        if (kid.op == Op::kLength) {
          min = std::max(min, kid.a);
          max = std::min(max, kid.b);
        } else {
          parts.push_back(combine(k, domain));
        }
      }
      out =
          strings ? conjunction(std::move(parts), min, max) : regexes_.both(std::span<const RegexId>(parts));
      break;
    }
    case Op::kOr: {
      std::vector<RegexId> parts;
      const bool mixed = domain == kOffered && names_fractions(formulas_, p);
      for (FormulaId k : formulas_.kids(p))
        parts.push_back(combine(k, mixed && formulas_[k].op == Op::kEqual ? kNumbers : domain));
      out = regexes_.alt(std::span<const RegexId>(parts));
      break;
    }
    case Op::kOne: {
      // At most one so far, and exactly one so far, kid by kid.
      RegexId none = universe(domain), one = RegexArena::empty();
      for (FormulaId k : formulas_.kids(p)) {
        const RegexId r = combine(k, all), offered = domain == all ? r : combine(k, domain);
        one = regexes_.alt(regexes_.minus(one, r), regexes_.both(none, offered));
        none = regexes_.minus(none, r);
      }
      out = one;
      break;
    }
    case Op::kNot: out = regexes_.minus(universe(domain), combine(f.kids[0], all)); break;
    default: out = strings ? string_atom(f) : number_atom(f, language(domain));
  }
  if (strings) regexes_.mark_body(out);
  // What is undecided() stays as it is: under a complement less would be more.
  if (!plainly_nonempty(p) && regexes_.node(out).boolean && regexes_.judged_empty(out))
    out = RegexArena::empty();
  memo.emplace(p.v, out);
  return out;
}

// `integer` and divisors 10^-k join every other divisor: as automata of their own they would let texts live
// that no digit completes. (Other divisors stay apart: their product is larger than they are.) False: nothing
// to join. Bounds join them as well: together they are one automaton.
bool Scalars::multiples(FormulaId p, Domain domain, std::vector<RegexId>& parts) {
  Decimal easy;
  std::vector<Decimal> divisors;
  uint32_t joined = 0;
  bool plain = false;
  std::vector<FormulaId> others;
  for (FormulaId k : formulas_.kids(p)) {
    const Formula& f = formulas_[k];
    if (f.op != Op::kInteger && f.op != Op::kMultiple) {
      others.push_back(k);
      continue;
    }
    plain = plain || (f.op == Op::kInteger && f.b);
    const Decimal d = Decimal::parse(f.op == Op::kInteger ? std::string_view("1") : formulas_.text(f.a));
    if (NumberLanguage::is_hard(d))
      divisors.push_back(d);
    else if (++joined == 1)
      easy = d;
    else if (!NumberLanguage::common_multiple(easy, d, easy))
      return false;
  }
  const auto spelled = [&] {
    if (plain) parts.push_back(language(domain).plain_integers());
    return true;
  };
  if (!divisors.empty() &&
      bounded_multiples(joined ? std::optional(easy) : std::nullopt, divisors, others, domain, parts))
    return spelled();
  if (joined == 0 || joined + divisors.size() < 2) return false;
  if (divisors.empty()) divisors.push_back(easy);
  for (Decimal& d : divisors) {
    if (!NumberLanguage::common_multiple(easy, d, d)) return false;
    parts.push_back(language(domain).multiple_of(d));
  }
  for (FormulaId k : others) parts.push_back(combine(k, domain));
  return spelled();
}

bool Scalars::bounded_multiples(std::optional<Decimal> divisor, const std::vector<Decimal>& more,
                                const std::vector<FormulaId>& others, Domain domain,
                                std::vector<RegexId>& parts) {
  for (const Decimal& d : more)
    if (!divisor)
      divisor = d;
    else if (!NumberLanguage::common_multiple(*divisor, d, *divisor))
      return false;
  std::optional<NumberLanguage::Bound> low, high;
  std::vector<FormulaId> rest;
  for (FormulaId k : others) {
    const bool denied = formulas_[k].op == Op::kNot;
    const Formula f = denied ? formulas_[formulas_[k].kids[0]] : formulas_[k];
    if (f.op != Op::kAtLeast && f.op != Op::kAtMost) {
      rest.push_back(k);
      continue;
    }
    const bool lower = (f.op == Op::kAtLeast) != denied;
    const NumberLanguage::Bound bound{Decimal::parse(formulas_.text(f.a)), (f.b != 0) != denied};
    std::optional<NumberLanguage::Bound>& kept = lower ? low : high;
    const int order = kept ? compare(bound.value, kept->value) * (lower ? 1 : -1) : 1;
    if (order > 0 || (order == 0 && bound.open)) kept = bound;
  }
  if (!low && !high) return false;
  RegexId out;
  if (!language(domain).multiples_between(*divisor, low ? &*low : nullptr, high ? &*high : nullptr, out))
    return false;
  parts.push_back(out);
  for (FormulaId k : rest) parts.push_back(combine(k, domain));
  return true;
}

// A finite set and other conditions: the set is filtered text by text. Sets of constants meet in every
// if/then and oneOf, and automata for their differences would be far larger.
bool Scalars::filter(FormulaId p, RegexId& out) {
  check_depth();
  std::vector<std::string> kept;
  if (!constants(p, kept)) return false;
  out = kept.empty() ? RegexArena::empty()
                     : regexes_.json_set(regexes_.tables().add(std::move(kept)), {}, false);
  return true;
}

bool Scalars::constants(FormulaId p, std::vector<std::string>& kept) {
  check_depth();
  const FormulaId self = p;
  const Op op = formulas_[p].op;
  if (op != Op::kAnd && op != Op::kStrings) return false;
  const std::span<const FormulaId> list =
      op == Op::kAnd ? formulas_.kids(p) : std::span<const FormulaId>(&self, 1);
  const std::vector<FormulaId> kids(list.begin(), list.end());
  const std::vector<std::string>* smallest = nullptr;
  FormulaId chosen;
  for (FormulaId k : kids)
    if (formulas_[k].op == Op::kStrings &&
        (!smallest || formulas_.string_set(formulas_[k].a).size() < smallest->size())) {
      smallest = &formulas_.string_set(formulas_[k].a);
      chosen = k;
    }
  if (!smallest) return false;
  kept = *smallest;
  for (FormulaId k : kids) {
    if (k == chosen) continue;
    const Formula f = formulas_[k];
    const bool denied = f.op == Op::kNot;
    const Formula inner = denied ? formulas_[f.kids[0]] : f;
    if (inner.op == Op::kStrings) {
      const auto& other = formulas_.string_set(inner.a);
      std::erase_if(kept, [&](const std::string& t) {
        return std::binary_search(other.begin(), other.end(), t) == denied;
      });
    } else if (inner.op == Op::kLength) {
      std::erase_if(kept, [&](const std::string& t) {
        const uint32_t n = codepoint_count(t);
        return (n >= inner.a && n <= inner.b) == denied;
      });
    } else {
      const RegexId r = combine(k, kStrings);
      std::erase_if(kept, [&](const std::string& t) { return !regexes_.matches(r, spell(t)); });
    }
  }
  return true;
}

RegexId Scalars::string_atom(const Formula& f) {
  switch (f.op) {
    case Op::kPattern: {
      if (const RegexId* known = patterns_.find(f.a)) return *known;
      const RegexId out = lower_json(regexes_, parse_pattern(formulas_.text(f.a)));
      patterns_.emplace(f.a, out);
      return out;
    }
    case Op::kFormat: return format_json(regexes_, *find_format(formulas_.text(f.a)));
    case Op::kLength: return f.a > f.b ? RegexArena::empty() : length(f.a, f.b);
    case Op::kStrings: return regexes_.json_set(regexes_.tables().add(formulas_.string_set(f.a)), {}, false);
    case Op::kLanguage: return RegexId{f.a};
    default: return universe(kStrings);
  }
}

RegexId Scalars::number_atom(const Formula& f, NumberLanguage& numbers) {
  const auto decimal = [&] { return Decimal::parse(formulas_.text(f.a)); };
  switch (f.op) {
    case Op::kInteger: return f.b ? numbers.plain_integers() : numbers.integers();
    case Op::kAtLeast: return numbers.at_least(decimal(), f.b != 0);
    case Op::kAtMost: return numbers.at_most(decimal(), f.b != 0);
    case Op::kMultiple: return numbers.multiple_of(decimal());
    case Op::kEqual: return numbers.equal_to(Decimal::parse_any(formulas_.text(f.a)));
    default: return numbers.any();
  }
}

// Code points of the texts of r (closing quote included in r), from its structure. False: not known.
bool Scalars::lengths(RegexId r, uint64_t& min, uint64_t& max) {
  check_depth();
  const RegexNode& n = regexes_.node(r);
  constexpr uint64_t kMany = 1ull << 40;
  uint64_t lo, hi;
  if (regexes_.is_character(r)) {
    min = max = 1;
    return true;
  }
  switch (n.kind) {
    case RegexKind::kEpsilon: min = max = 0; return true;
    case RegexKind::kBytes: min = max = 0; return regexes_.byte_set(n.a) == ByteSet::of('"');
    case RegexKind::kCat:
      if (!lengths(RegexId{n.a}, min, max) || !lengths(RegexId{n.b}, lo, hi)) return false;
      min = std::min(min + lo, kMany);
      max = std::min(max + hi, kMany);
      return true;
    case RegexKind::kRepeat:
      if (!lengths(RegexId{n.a}, lo, hi)) return false;
      min = std::min(lo * n.min, kMany);
      max = n.max == kUnbounded ? (hi ? kMany : 0) : std::min(hi * n.max, kMany);
      return true;
    case RegexKind::kAlt:
      min = kMany;
      max = 0;
      for (uint32_t i = 0; i < n.n; ++i) {
        if (!lengths(RegexId{n.kids[i]}, lo, hi)) return false;
        min = std::min(min, lo);
        max = std::max(max, hi);
      }
      return true;
    default: return false;
  }
}

// Lengths meet the rest last: where the rest is counted characters the counter is narrowed, and where its
// own lengths fit already nothing is added. Both keep the result a run, which masks know best.
RegexId Scalars::conjunction(std::vector<RegexId> parts, uint32_t min, uint32_t max) {
  if (min > max) return RegexArena::empty();
  if (parts.empty()) return length(min, max);
  const RegexId rest = regexes_.both(std::span<const RegexId>(parts));
  if (min == 0 && max == kUnbounded) return rest;
  const RegexNode n = regexes_.node(rest);
  if (n.kind == RegexKind::kCat && RegexId{n.b} == regexes_.byte('"')) {
    const RegexNode c = regexes_.node(RegexId{n.a});
    if (c.kind == RegexKind::kRepeat && regexes_.is_character(RegexId{c.a})) {
      const uint32_t lo = std::max(c.min, min), hi = std::min(c.max, max);
      if (lo > hi) return RegexArena::empty();
      return regexes_.cat(regexes_.repeat(RegexId{c.a}, lo, hi), RegexId{n.b});
    }
  }
  uint64_t lo, hi;
  if (lengths(rest, lo, hi)) {
    if (lo > max || hi < min) return RegexArena::empty();
    if (lo >= min && hi <= max) return rest;
    if (lo >= min) return regexes_.both(rest, length(0, max));
    if (hi <= max) return regexes_.both(rest, length(min, kUnbounded));
  }
  return regexes_.both(rest, length(min, max));
}

}  // namespace structgen
