#include "schema/values/scalar.h"

#include <algorithm>
#include <array>

#include "base/depth.h"
#include "base/utf8.h"
#include "regex/charset.h"
#include "schema/values/witness.h"
#include "strings/format.h"
#include "strings/json_spelling.h"

namespace structgen {

namespace {
struct Canonical : RegexCache {
  RegexId body = RegexArena::empty();  // not made yet
  std::size_t byte_size() const override { return sizeof(*this); }
};
}  // namespace

RegexId Scalars::canonical_body() {
  RegexId& known = regexes_.cache<Canonical>().body;
  if (known == RegexArena::empty()) {
    ByteSet raw = ByteSet::range(0x20, 0xFF);
    raw.remove('"');
    raw.remove('\\');
    std::vector<RegexId> one{regexes_.bytes(raw)};
    for (uint32_t c = 0; c <= '\\'; ++c) {
      const char byte = static_cast<char>(c);
      if (plain_escape(c) != 0) one.push_back(regexes_.literal(written({&byte, 1}, kPlainJson)));
    }
    known = regexes_.cat(regexes_.star(regexes_.alt(std::span<const RegexId>(one))), regexes_.end());
  }
  return known;
}

bool Scalars::empty_string(RegexId bodies) {
  if (bodies == RegexArena::empty()) return true;
  if (!regexes_.node(bodies).boolean) return false;
  return regexes_.is_empty(bodies);
}

RegexId Scalars::length(uint32_t min, uint32_t max) {
  return regexes_.cat(regexes_.repeat(regexes_.any_character(), min, max), regexes_.end());
}

// Throws where it is too much to tell whether there is any.
RegexId Scalars::string(FormulaId p) {
  const RegexId out = combine(p);
  if (regexes_.undecided(out)) regexes_.is_empty(out);
  return out;
}

RegexId Scalars::combine(FormulaId p) {
  check_depth();
  if (p == FormulaSpace::no()) return RegexArena::empty();
  if (p == FormulaSpace::yes()) return any_body(regexes_, regexes_.spelling());
  if (const auto* known = memo_.find(p.v)) return *known;
  const Formula f = formulas_[p];
  RegexId out;
  switch (f.op) {
    case Op::kAnd: {
      if (filter(p, out)) break;
      std::vector<RegexId> parts;
      uint32_t min = 0, max = kUnbounded;
      for (FormulaId k : formulas_.kids(p)) {
        const Formula& kid = formulas_[k];
        if (kid.op == Op::kLength) {
          min = std::max(min, kid.a);
          max = std::min(max, kid.b);
        } else {
          parts.push_back(combine(k));
        }
      }
      out = conjunction(std::move(parts), min, max);
      break;
    }
    case Op::kOr: {
      std::vector<RegexId> parts;
      for (FormulaId k : formulas_.kids(p)) parts.push_back(combine(k));
      out = regexes_.alt(std::span<const RegexId>(parts));
      break;
    }
    case Op::kOne: {
      // At most one so far, and exactly one so far, kid by kid.
      RegexId none = any_body(regexes_, regexes_.spelling()), one = RegexArena::empty();
      for (FormulaId k : formulas_.kids(p)) {
        const RegexId r = combine(k);
        one = regexes_.alt(regexes_.minus(one, r), regexes_.both(none, r));
        none = regexes_.minus(none, r);
      }
      out = one;
      break;
    }
    case Op::kNot: out = regexes_.minus(any_body(regexes_, regexes_.spelling()), combine(f.kids[0])); break;
    default: out = string_atom(f);
  }
  // What is undecided() stays as it is: under a complement less would be more.
  if (!plainly_nonempty(formulas_, p) && regexes_.node(out).boolean && regexes_.judged_empty(out))
    out = RegexArena::empty();
  memo_.emplace(p.v, out);
  return out;
}

// A finite set and other conditions: the set is filtered text by text. Sets of constants meet in every
// if/then and oneOf, and automata for their differences would be far larger.
bool Scalars::filter(FormulaId p, RegexId& out) {
  check_depth();
  std::vector<std::string> kept;
  if (!constants(p, kept)) return false;
  out = kept.empty() ? RegexArena::empty()
                     : regexes_.literal_set(regexes_.tables().add(std::move(kept)), {}, false);
  return true;
}

bool Scalars::constants(FormulaId p, std::vector<std::string>& kept) {
  check_depth();
  const Op op = formulas_[p].op;
  if (op != Op::kAnd && op != Op::kStrings) return false;
  const std::span<const FormulaId> list = formulas_.conjuncts(p);
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
      const RegexId r = combine(k);
      std::erase_if(kept, [&](const std::string& t) { return !regexes_.matches(r, json_body(t)); });
    }
  }
  return true;
}

RegexId Scalars::string_atom(const Formula& f) {
  switch (f.op) {
    case Op::kPattern: {
      if (const RegexId* known = patterns_.find(f.a)) return *known;
      const RegexId out =
          lower(regexes_, parse_pattern(formulas_.text(f.a)), Match::kSearch, regexes_.spelling());
      patterns_.emplace(f.a, out);
      return out;
    }
    case Op::kFormat: return lower(regexes_, *find_format(formulas_.text(f.a)), regexes_.spelling());
    case Op::kLength: return f.a > f.b ? RegexArena::empty() : length(f.a, f.b);
    case Op::kStrings:
      return regexes_.literal_set(regexes_.tables().add(formulas_.string_set(f.a)), {}, false);
    default: unknown_operator(f.op);
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
