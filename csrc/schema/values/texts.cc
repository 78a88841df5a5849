// Strings of a formula in one spelling; see texts.h.
//
// The problem. `pattern`, `format`, lengths and constants are combined by and, or, not and "exactly
// one". The same formula is written inside JSON strings, where `"` is `\"` and a quote ends the text,
// and as the plain text of an element.
//
// The idea. No writing of a character begins a writing of another character. So the language of a conjunction
// is the intersection of the languages, and the language of a negation is the complement within all texts.
// The formula is walked once, and the spelling matters at the atoms alone:
//
//     {"pattern": "^a", "not": {"const": "a\""}}    in JSON:     (a | \u0061) any* "  less  the set {a"}
//                                                   as a text:   a any*            less  a"
//
// Three rules bring the results into forms that make masks fast. A list of constants under other conditions
// is filtered text by text and stays a list (constants()). Lengths are put in last, so that a run of
// characters only gets another counter, and a length that holds anyway is left out (with_length()). In the
// arena's own spelling constants are one literal set, which is one state whatever their number.
//
// Invariants. A language has either all writings of a text or none. In the arena's spelling a language
// without a text is empty(), unless the question takes too much work. Then the language stays undecided(),
// because under a complement empty() would allow too much.
//
// Costs. One node of the algebra per atom, remembered by formula. A pattern is lowered once per arena.
// Emptiness is asked only of a result with & or ~.
#include "schema/values/texts.h"

#include <algorithm>
#include <bit>
#include <map>
#include <utility>

#include "base/depth.h"
#include "base/utf8.h"
#include "regex/regex.h"
#include "regex/syntax.h"
#include "schema/values/witness.h"
#include "strings/format.h"
#include "strings/json_spelling.h"

namespace structgen {

namespace {

// If other conditions leave at least this many texts of a list, they become a subset of the list's literal
// table.
constexpr uint32_t kLongList = 64;

// Languages that all grammars of an arena share.
struct Shared : RegexCache {
  RegexId canonical{};
  std::map<std::pair<const Spelling*, std::string>, RegexId, std::less<>> patterns;
  std::size_t bytes = sizeof(Shared);
  std::size_t byte_size() const override { return bytes; }
};

}  // namespace

Texts::Texts(FormulaSpace& formulas, RegexArena& regexes, const Spelling& spelling)
    : formulas_(formulas),
      regexes_(regexes),
      spelling_(spelling),
      decides_(&spelling == &regexes.spelling()),
      end_(end_of(regexes, spelling)),
      all_(any_body(regexes, spelling)) {}

RegexId Texts::canonical_body() {
  RegexId& known = regexes_.cache<Shared>().canonical;
  if (known == RegexArena::empty()) {
    ByteSet raw = ByteSet::range(0x20, 0xFF);
    raw.remove('"');
    raw.remove('\\');
    // Control characters, `"` and `\` have one escape each: a short one such as \n if there is one, else
    // \u00XX.
    std::vector<RegexId> one{regexes_.bytes(raw)};
    for (uint32_t c = 0; c <= '\\'; ++c) {
      const char byte = static_cast<char>(c);
      if (plain_escape(c) != 0) one.push_back(regexes_.literal(written({&byte, 1}, kPlainJson)));
    }
    known = regexes_.cat(regexes_.star(regexes_.alt(std::span<const RegexId>(one))), regexes_.end());
  }
  return known;
}

RegexId Texts::one(std::string_view text) {
  return regexes_.cat(regexes_.literal(written(text, spelling_)), end_);
}

RegexId Texts::any_of(std::vector<std::string> texts) {
  std::erase_if(texts, [](const std::string& t) { return !valid_utf8(t); });
  if (texts.empty()) return RegexArena::empty();
  // In the arena's spelling the texts are a literal set, which reads all escapes of each text. Labels are not
  // needed.
  if (decides_) return regexes_.literal_set(regexes_.tables().add(std::move(texts)), {}, false);
  std::vector<RegexId> parts;
  for (const std::string& t : texts) parts.push_back(one(t));
  return regexes_.alt(std::span<const RegexId>(parts));
}

RegexId Texts::decided(TypedId p) {
  const RegexId out = of(p);
  if (regexes_.undecided(out)) regexes_.is_empty(out);
  return out;
}

RegexId Texts::of(TypedId p) {
  check_depth();
  if (p == FormulaSpace::no()) return RegexArena::empty();
  if (p == FormulaSpace::yes()) return all_;
  return memo_.remember(p.v, [&] {
    const RegexId r = combine(p);
    // If it takes too much work to tell whether the language is empty, it stays: under a complement, empty()
    // would allow too much.
    const bool doubtful = decides_ && !plainly_nonempty(formulas_, p) && regexes_.node(r).boolean;
    return doubtful && regexes_.judged_empty(r) ? RegexArena::empty() : r;
  });
}

// Returns the language of a formula by its structure: a connective is an operation of the regex algebra, and
// any other formula is an atom.
RegexId Texts::combine(TypedId p) {
  const OpRow& row = formulas_.row(p);
  if (row.family != Family::kConnective) return atom(formulas_[p]);
  if (row.op == Op::kAnd) return conjunction(p);
  if (row.op == Op::kNot) return regexes_.minus(all_, of(formulas_.kids(p)[0]));
  std::vector<RegexId> parts;
  for (TypedId k : formulas_.kids(p)) parts.push_back(of(k));
  if (row.op == Op::kOr) return regexes_.alt(std::span<const RegexId>(parts));
  // `none` has the texts that no kid so far has, `one` those that exactly one has.
  RegexId none = all_, one = RegexArena::empty();
  for (const RegexId r : parts) {
    one = regexes_.alt(regexes_.minus(one, r), regexes_.both(none, r));
    none = regexes_.minus(none, r);
  }
  return one;
}

// Returns the language of an atom. JSON Schema searches for a pattern in the text, hence Match::kSearch.
RegexId Texts::atom(const Formula& f) {
  // Recipe, keyword 6, of strings with an atom of its own: its case; also in conjunction() if it is a length.
  switch (f.op) {
    case Op::kPattern: {
      const std::pair key(&spelling_, std::string(formulas_.text(f.text())));
      Shared& shared = regexes_.cache<Shared>();
      if (const auto known = shared.patterns.find(key); known != shared.patterns.end()) return known->second;
      const RegexId out = lower(regexes_, parse_pattern(key.second), Match::kSearch, spelling_);
      shared.bytes += key.second.size() + 96;
      return shared.patterns.emplace(key, out).first->second;
    }
    case Op::kFormat: return lower(regexes_, *find_format(formulas_.text(f.text())), spelling_);
    case Op::kLength: return f.a > f.b ? RegexArena::empty() : length(f.a, f.b);
    case Op::kStrings: return any_of(formulas_.string_set(f.string_set()));
    case Op::kContent: content_too_complex();
    default: unknown_operator(f.op);
  }
}

// Takes the shortest list of a conjunction and drops the texts that its other conjuncts refuse. Another list
// is searched, a length counts characters, and anything else is asked by its regex.
bool Texts::some_of(TypedId p, StringSetId& list, Bits& kept) {
  check_depth();
  const Op op = formulas_[p].op;
  if (op != Op::kAnd && op != Op::kStrings) return false;
  const auto conjuncts = formulas_.conjuncts(p);
  const std::vector<TypedId> kids(conjuncts.begin(), conjuncts.end());
  const std::vector<std::string>* smallest = nullptr;
  TypedId chosen;
  for (TypedId k : kids)
    if (formulas_[k].op == Op::kStrings &&
        (!smallest || formulas_.string_set(formulas_[k].string_set()).size() < smallest->size())) {
      list = formulas_[k].string_set();
      smallest = &formulas_.string_set(list);
      chosen = k;
    }
  if (!smallest) return false;
  const std::vector<std::string>& texts = *smallest;
  kept.assign((texts.size() + 63) / 64, 0);
  for (std::size_t i = 0; i < texts.size(); ++i) kept[i / 64] |= 1ull << (i % 64);
  const auto keep_if = [&](auto&& test) {
    for (std::size_t i = 0; i < texts.size(); ++i)
      if ((kept[i / 64] >> (i % 64) & 1) && !test(texts[i])) kept[i / 64] &= ~(1ull << (i % 64));
  };
  const std::string ending(spelling_.end < 0 ? 0 : 1, static_cast<char>(spelling_.end));
  for (TypedId k : kids) {
    if (k == chosen) continue;
    const Formula f = formulas_[k];
    const bool denied = f.op == Op::kNot;
    const Formula inner = denied ? formulas_[formulas_.kids(k)[0]] : f;
    if (inner.op == Op::kStrings) {
      const std::span<const uint64_t> both = common(list, inner.string_set());
      for (std::size_t i = 0; i < kept.size(); ++i) kept[i] &= denied ? ~both[i] : both[i];
    } else if (inner.op == Op::kLength) {
      keep_if([&](const std::string& t) {
        const uint32_t n = codepoint_count(t);
        return (n >= inner.a && n <= inner.b) != denied;
      });
    } else {
      const RegexId r = of(k);
      keep_if([&](const std::string& t) {
        return regexes_.nullable(regexes_.run(r, written(t, spelling_) + ending));
      });
    }
  }
  return true;
}

// Returns the bitset of the texts of `list` that are also in `other`, and remembers it. The texts of the
// shorter list are looked up in the longer one.
std::span<const uint64_t> Texts::common(StringSetId list, StringSetId other) {
  const auto& texts = formulas_.string_set(list);
  const auto& others = formulas_.string_set(other);
  const auto find = [&] {
    Bits both((texts.size() + 63) / 64, 0);
    const auto add = [&](std::size_t i) { both[i / 64] |= 1ull << (i % 64); };
    if (others.size() < texts.size()) {
      for (const std::string& t : others)
        if (const auto at = std::ranges::lower_bound(texts, t); at != texts.end() && *at == t)
          add(static_cast<std::size_t>(at - texts.begin()));
    } else {
      for (std::size_t i = 0; i < texts.size(); ++i)
        if (std::ranges::binary_search(others, texts[i])) add(i);
    }
    return regexes_.tables().add_subset(both);
  };
  return regexes_.tables().subset(common_.remember(uint64_t{list.v} << 32 | other.v, find));
}

bool Texts::constants(TypedId p, std::vector<std::string>& kept) {
  StringSetId list;
  Bits bits;
  if (!some_of(p, list, bits)) return false;
  kept = listed(list, bits);
  return true;
}

std::vector<std::string> Texts::listed(StringSetId list, const Bits& kept) const {
  std::vector<std::string> out;
  const auto& texts = formulas_.string_set(list);
  for (std::size_t i = 0; i < texts.size(); ++i)
    if (kept[i / 64] >> (i % 64) & 1) out.push_back(texts[i]);
  return out;
}

// Returns the regex of the texts that constants() lists. Many texts become a subset of the table of the whole
// list, which costs a bit for each text. Few texts become a table of their own, so that equal texts of
// different lists have one regex.
std::optional<RegexId> Texts::constants(TypedId p) {
  StringSetId list;
  Bits bits;
  if (!some_of(p, list, bits)) return std::nullopt;
  uint32_t n = 0;
  for (const uint64_t word : bits) n += static_cast<uint32_t>(std::popcount(word));
  const auto& texts = formulas_.string_set(list);
  if (decides_ && n >= kLongList) {
    const uint32_t table = tables_.remember(list.v, [&] { return regexes_.tables().add(texts); });
    if (regexes_.tables().table(table).texts.size() == texts.size())
      return regexes_.literal_set(table, bits, false);
  }
  return any_of(listed(list, bits));
}

// Returns all texts of `min` to `max` characters, as one counted repetition.
RegexId Texts::length(uint32_t min, uint32_t max) {
  return regexes_.cat(regexes_.repeat(any_character(regexes_, spelling_), min, max), end_);
}

// Computes from the structure of r how many code points its texts have at least and at most, terminator
// included. Returns false if r has & or ~, or bytes that are no whole character.
bool Texts::lengths(RegexId r, uint64_t& min, uint64_t& max) {
  check_depth();
  const RegexNode& n = regexes_.node(r);
  // Lengths beyond this count as this; no schema asks for so long a string.
  constexpr uint64_t kMany = 1ull << 40;
  uint64_t lo, hi;
  if (regexes_.is_character(r)) {
    min = max = 1;
    return true;
  }
  switch (n.kind) {
    case RegexKind::kEpsilon: min = max = 0; return true;
    case RegexKind::kBytes: min = max = 0; return r == end_;
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

// Returns the language of a conjunction. If one conjunct is a list of texts, each text is tested against the
// others. Every if/then and oneOf over a discriminator has such conjunctions, for which an intersection of
// automata would be far larger.
RegexId Texts::conjunction(TypedId p) {
  if (const auto list = constants(p)) return *list;
  std::vector<RegexId> parts;
  uint32_t min = 0, max = kUnbounded;
  for (TypedId k : formulas_.kids(p)) {
    const Formula& kid = formulas_[k];
    if (kid.op == Op::kLength) {
      min = std::max(min, kid.a);
      max = std::min(max, kid.b);
    } else {
      parts.push_back(of(k));
    }
  }
  if (min > max) return RegexArena::empty();
  if (parts.empty()) return length(min, max);
  const RegexId rest = regexes_.both(std::span<const RegexId>(parts));
  return min == 0 && max == kUnbounded ? rest : with_length(rest, min, max);
}

// Restricts a language to texts of `min` to `max` characters. Three forms need no second automaton:
//   [a-z]{0,9} and minLength 2             becomes [a-z]{2,9}: the counter changes
//   a fixed text and a length              the text or nothing
//   a bound that all texts meet anyway     is left out
// The result of the first is a run, whose masks need no walk (mask/runs.h).
RegexId Texts::with_length(RegexId rest, uint32_t min, uint32_t max) {
  const RegexNode n = regexes_.node(rest);
  if (n.kind == RegexKind::kCat && RegexId{n.b} == end_) {
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
