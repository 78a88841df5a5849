// The regex algebra: random regexes over three letters beside a matcher that shares nothing with it.
//
// The matcher works on the expression as written: for a text it computes, part by part, the relation
// {(i, j): the part matches text[i, j)}. Complement is complement of that relation, a counter its powers.
#include <doctest/doctest.h>

#include <algorithm>
#include <bitset>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "random.h"
#include "regex/regex.h"
#include "strings/format.h"
#include "strings/json_spelling.h"

using namespace structgen;
using structgen_tests::Random;
using structgen_tests::times;

namespace {

constexpr std::size_t kLongest = 5, kMaxText = 96;

struct Expression;
using Part = std::shared_ptr<const Expression>;
struct Expression {
  enum Kind { kNothing, kEpsilon, kAnything, kSet, kLiteral, kCat, kAlt, kAnd, kNot, kRepeat } kind;
  std::string text;  // kSet: its letters; kLiteral
  std::vector<Part> kids;
  uint32_t least = 0, most = 0;
};

// [i]: the ends j of matches that begin at i.
using Relation = std::vector<std::bitset<kMaxText + 1>>;

Relation composed(const Relation& a, const Relation& b) {
  Relation out(a.size());
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::size_t j = i; j < b.size(); ++j)
      if (a[i][j]) out[i] |= b[j];
  return out;
}

Relation relation(const Expression& e, std::string_view text) {
  const std::size_t n = text.size() + 1;
  Relation out(n);
  switch (e.kind) {
    case Expression::kNothing: break;
    case Expression::kEpsilon:
      for (std::size_t i = 0; i < n; ++i) out[i].set(i);
      break;
    case Expression::kAnything:
      for (std::size_t i = 0; i < n; ++i)
        for (std::size_t j = i; j < n; ++j) out[i].set(j);
      break;
    case Expression::kSet:
      for (std::size_t i = 0; i + 1 < n; ++i)
        if (e.text.find(text[i]) != std::string::npos) out[i].set(i + 1);
      break;
    case Expression::kLiteral:
      for (std::size_t i = 0; i < n; ++i)
        if (text.substr(i).starts_with(e.text)) out[i].set(i + e.text.size());
      break;
    case Expression::kCat:
      for (std::size_t i = 0; i < n; ++i) out[i].set(i);
      for (const Part& kid : e.kids) out = composed(out, relation(*kid, text));
      break;
    case Expression::kAlt:
      for (const Part& kid : e.kids) {
        const Relation r = relation(*kid, text);
        for (std::size_t i = 0; i < n; ++i) out[i] |= r[i];
      }
      break;
    case Expression::kAnd:
      for (std::size_t i = 0; i < n; ++i)
        for (std::size_t j = i; j < n; ++j) out[i].set(j);
      for (const Part& kid : e.kids) {
        const Relation r = relation(*kid, text);
        for (std::size_t i = 0; i < n; ++i) out[i] &= r[i];
      }
      break;
    case Expression::kNot: {
      const Relation r = relation(*e.kids[0], text);
      for (std::size_t i = 0; i < n; ++i)
        for (std::size_t j = i; j < n; ++j) out[i].set(j, !r[i][j]);
      break;
    }
    case Expression::kRepeat: {
      const Relation one = relation(*e.kids[0], text);
      Relation power(n);
      for (std::size_t i = 0; i < n; ++i) power[i].set(i);
      // More parts than the text has bytes: the others are empty, and as many more may be as well.
      const uint32_t last = std::min<uint64_t>(e.most, uint64_t{e.least} + n);
      for (uint32_t k = 0; k <= last; ++k) {
        if (k >= e.least)
          for (std::size_t i = 0; i < n; ++i) out[i] |= power[i];
        power = composed(power, one);
      }
      break;
    }
  }
  return out;
}

bool accepts(const Expression& e, std::string_view text) { return relation(e, text)[0][text.size()]; }

Part drawn(Random& random, int depth) {
  auto e = std::make_shared<Expression>();
  const uint32_t kind = depth == 0 ? random.below(8) : 5 + random.below(20);
  const auto kids = [&](uint32_t n) {
    for (uint32_t i = 0; i < n; ++i) e->kids.push_back(drawn(random, depth - 1));
  };
  if (kind < 6) {
    e->kind = Expression::kSet;
    for (const char c : {'a', 'b', 'c'})
      if (random.chance(45)) e->text += c;
    if (e->text.empty()) e->text = "a";
  } else if (kind == 6) {
    e->kind = random.chance(50)   ? Expression::kEpsilon
              : random.chance(50) ? Expression::kNothing
                                  : Expression::kAnything;
  } else if (kind == 7) {
    e->kind = Expression::kLiteral;
    for (uint32_t i = 1 + random.below(3); i > 0; --i) e->text += static_cast<char>('a' + random.below(3));
  } else if (kind < 13) {
    e->kind = Expression::kCat;
    kids(2 + random.below(2));
  } else if (kind < 16) {
    e->kind = Expression::kAlt;
    kids(2 + random.below(3));
  } else if (kind < 19) {
    e->kind = Expression::kAnd;
    kids(2);
  } else if (kind < 21) {
    e->kind = Expression::kNot;
    kids(1);
  } else {
    e->kind = Expression::kRepeat;
    kids(1);
    e->least = random.below(random.chance(80) ? 3 : 9);
    e->most = random.chance(35) ? kUnbounded : e->least + random.below(4);
  }
  return e;
}

RegexId built(RegexArena& arena, const Expression& e) {
  std::vector<RegexId> kids;
  for (const Part& kid : e.kids) kids.push_back(built(arena, *kid));
  switch (e.kind) {
    case Expression::kNothing: return RegexArena::empty();
    case Expression::kEpsilon: return RegexArena::epsilon();
    case Expression::kAnything: return RegexArena::anything();
    case Expression::kSet: {
      ByteSet set;
      for (const char c : e.text) set.add(static_cast<uint8_t>(c));
      return arena.bytes(set);
    }
    case Expression::kLiteral: return arena.literal(e.text);
    case Expression::kCat: return arena.cat(std::span<const RegexId>(kids));
    case Expression::kAlt: return arena.alt(std::span<const RegexId>(kids));
    case Expression::kAnd: return arena.both(std::span<const RegexId>(kids));
    case Expression::kNot: return arena.negate(kids[0]);
    case Expression::kRepeat: return arena.repeat(kids[0], e.least, e.most);
  }
  return RegexArena::empty();
}

std::string shown(const Expression& e) {
  constexpr const char* kNames[] = {"nothing", "epsilon", "anything", "set", "literal",
                                    "cat",     "alt",     "and",      "not", "repeat"};
  std::string out = kNames[e.kind];
  if (!e.text.empty()) out += " " + e.text;
  if (e.kind == Expression::kRepeat) out += " " + std::to_string(e.least) + ".." + std::to_string(e.most);
  out += "(";
  for (const Part& kid : e.kids) out += shown(*kid) + " ";
  return out + ")";
}

const std::vector<std::string>& short_texts() {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> texts{""};
    for (std::size_t i = 0; i < texts.size(); ++i)
      if (texts[i].size() < kLongest)
        for (const char c : {'a', 'b', 'c'}) texts.push_back(texts[i] + c);
    return texts;
  }();
  return all;
}

// The same with the letters of sets as characters of the arena's spelling.
RegexId spelled(RegexArena& arena, const Expression& e) {
  if (e.kind == Expression::kSet) {
    CodepointSet set;
    for (const char c : e.text) set = set | CodepointSet::one(static_cast<uint8_t>(c) + (c == 'c') * 0x400u);
    return arena.spelling().characters(arena, set);
  }
  if (e.kind == Expression::kLiteral || e.kind == Expression::kNot) {
    std::vector<std::string> texts{e.text, e.text + "b", "\u00e9" + e.text, "\n"};
    return arena.literal_set(arena.tables().add(std::move(texts)), {}, false);
  }
  std::vector<RegexId> kids;
  for (const Part& kid : e.kids) kids.push_back(spelled(arena, *kid));
  switch (e.kind) {
    case Expression::kCat: return arena.cat(std::span<const RegexId>(kids));
    case Expression::kAlt: return arena.alt(std::span<const RegexId>(kids));
    case Expression::kAnd: return arena.both(std::span<const RegexId>(kids));
    case Expression::kRepeat: return arena.repeat(kids[0], e.least, e.most);
    default: return any_text(arena, arena.spelling());
  }
}

// Bodies of the spelling, for which the algebra has a normal form of its own.
RegexId spelled_body(RegexArena& arena, const Expression& e, uint32_t least, uint32_t most, bool within) {
  const RegexId any = any_text(arena, arena.spelling());
  RegexId r = spelled(arena, e);
  if (within) {
    const RegexId parts[] = {any, r, any};
    r = arena.cat(std::span<const RegexId>(parts));
  }
  const RegexId length = arena.cat(arena.repeat(arena.any_character(), least, most), arena.end());
  return arena.both(arena.cat(r, arena.end()), length);
}

// A number that two nodes, of one arena or of two, share if they are built alike.
uint64_t form(const RegexArena& arena, RegexId r, std::map<uint32_t, uint64_t>& known) {
  if (const auto it = known.find(r.v); it != known.end()) return it->second;
  const RegexNode& n = arena.node(r);
  std::vector<uint64_t> parts{static_cast<uint64_t>(n.kind), n.character, n.inside, n.after, n.min, n.max};
  if (n.kind == RegexKind::kBytes)
    for (const uint64_t word : arena.byte_set(n.a).w) parts.push_back(word);
  if (n.kind == RegexKind::kLiteralSet) {
    const LiteralSet& s = arena.literal_set_of(r);
    for (const uint32_t part : {s.lo, s.hi, s.depth, s.escape, s.labelled}) parts.push_back(part);
  }
  if (n.kind == RegexKind::kCat || n.kind == RegexKind::kNot || n.kind == RegexKind::kRepeat)
    parts.push_back(form(arena, RegexId{n.a}, known));
  if (n.kind == RegexKind::kCat) parts.push_back(form(arena, RegexId{n.b}, known));
  if (n.text) parts.push_back(hash_bytes(n.text, n.n, 1));
  if (n.kids) {
    std::vector<uint64_t> kids;
    for (uint32_t i = 0; i < n.n; ++i) kids.push_back(form(arena, RegexId{n.kids[i]}, known));
    std::sort(kids.begin(), kids.end());
    parts.insert(parts.end(), kids.begin(), kids.end());
  }
  uint64_t out = parts.size();
  for (const uint64_t part : parts) out = mix(out, part);
  return known[r.v] = out;
}

uint64_t form(const RegexArena& arena, RegexId r) {
  std::map<uint32_t, uint64_t> known;
  return form(arena, r, known);
}

// A text of the language that the search found, judged by the matcher.
void check_witness(RegexArena& arena, RegexId r, const Expression& e) {
  std::string text;
  REQUIRE(arena.witness(r, text));
  REQUIRE(arena.matches(r, text));
  if (text.size() <= kMaxText) REQUIRE(accepts(e, text));
}

}  // namespace

TEST_CASE("regex algebra: derivatives, emptiness and witnesses = every text up to five letters") {
  uint32_t empty = 0, full = 0;
  for (uint32_t seed = 0; seed < times(700); ++seed) {
    Random random(seed);
    const Part e = drawn(random, 1 + static_cast<int>(random.below(4)));
    INFO("seed ", seed, ": ", shown(*e));
    RegexArena arena;
    const RegexId r = built(arena, *e);
    bool any = false;
    for (const std::string& text : short_texts()) {
      const bool expected = accepts(*e, text);
      INFO("text ", text);
      REQUIRE(arena.matches(r, text) == expected);
      any = any || expected;
      if (expected)  // no derivative on the way is empty, and each byte is live
        for (std::size_t i = 0; i < text.size(); ++i) {
          const RegexId before = arena.run(r, std::string_view(text).substr(0, i));
          REQUIRE(arena.live(before).has(static_cast<uint8_t>(text[i])));
          REQUIRE(arena.next(before, static_cast<uint8_t>(text[i])) != RegexArena::empty());
        }
    }
    const bool is_empty = arena.is_empty(r);
    if (any) REQUIRE(!is_empty);
    if (!is_empty) check_witness(arena, r, *e);
    (is_empty ? empty : full) += 1;
    // A byte is live where, and only where, some text goes on with it.
    for (const char c : {'a', 'b', 'c', 'd'}) {
      const auto b = static_cast<uint8_t>(c);
      const RegexId after = arena.next(r, b);
      REQUIRE(arena.live(r).has(b) == (after != RegexArena::empty()));
      if (after == RegexArena::empty()) continue;
      std::string rest;
      REQUIRE(arena.witness(after, rest));
      if (rest.size() < kMaxText) REQUIRE(accepts(*e, c + rest));
    }
  }
  CHECK(empty > 20);  // the generator draws both
  CHECK(full > 200);
}

TEST_CASE("regex algebra: laws of &, |, ~ and counters, decided by emptiness") {
  uint32_t differ = 0;
  for (uint32_t seed = 0; seed < times(300); ++seed) {
    Random random(seed + 100'000);
    RegexArena arena;
    const Part first = drawn(random, 2), second = drawn(random, 2), third = drawn(random, 2);
    INFO("seed ", seed, ": ", shown(*first), " ", shown(*second), " ", shown(*third));
    const RegexId a = built(arena, *first), b = built(arena, *second), c = built(arena, *third);
    const auto same = [&](RegexId x, RegexId y) {
      return arena.is_empty(arena.minus(x, y)) && arena.is_empty(arena.minus(y, x));
    };
    CHECK(arena.negate(arena.negate(a)) == a);
    CHECK(arena.is_empty(arena.both(a, arena.negate(a))));
    CHECK(same(arena.alt(a, arena.negate(a)), RegexArena::anything()));
    CHECK(arena.both(a, b) == arena.both(b, a));
    CHECK(arena.alt(a, b) == arena.alt(b, a));
    CHECK(arena.alt(a, a) == a);
    CHECK(arena.both(a, a) == a);
    CHECK(same(arena.negate(arena.alt(a, b)), arena.both(arena.negate(a), arena.negate(b))));
    CHECK(same(arena.both(a, arena.alt(b, c)), arena.alt(arena.both(a, b), arena.both(a, c))));
    CHECK(same(arena.cat(a, arena.alt(b, c)), arena.alt(arena.cat(a, b), arena.cat(a, c))));
    CHECK(same(arena.cat(arena.cat(a, b), c), arena.cat(a, arena.cat(b, c))));
    CHECK(same(arena.star(arena.star(a)), arena.star(a)));
    CHECK(same(arena.star(a), arena.alt(RegexArena::epsilon(), arena.cat(a, arena.star(a)))));
    const uint32_t m = random.below(3), n = m + random.below(3);
    RegexId unrolled = RegexArena::empty(), power = RegexArena::epsilon();
    for (uint32_t k = 0; k <= n; ++k, power = arena.cat(power, a))
      if (k >= m) unrolled = arena.alt(unrolled, power);
    CHECK(same(arena.repeat(a, m, n), unrolled));
    // Two languages are called equal exactly where no text tells them apart.
    const RegexId apart = arena.alt(arena.minus(a, b), arena.minus(b, a));
    bool told = false;
    for (const std::string& text : short_texts())
      told = told || accepts(*first, text) != accepts(*second, text);
    if (told) CHECK(!same(a, b));
    std::string text;
    if (!same(a, b)) {
      ++differ;
      REQUIRE(arena.witness(apart, text));
      if (text.size() <= kMaxText) CHECK(accepts(*first, text) != accepts(*second, text));
    }
  }
  CHECK(differ > 50);
}

TEST_CASE("regex algebra: finite languages are enumerated and counted") {
  uint32_t finite = 0;
  for (uint32_t seed = 0; seed < times(400); ++seed) {
    Random random(seed + 200'000);
    RegexArena arena;
    const Part e = drawn(random, 1 + static_cast<int>(random.below(3)));
    INFO("seed ", seed, ": ", shown(*e));
    const RegexId r = built(arena, *e);
    std::vector<std::string> found;
    if (!arena.enumerate(r, 300, found)) continue;
    ++finite;
    std::sort(found.begin(), found.end());
    REQUIRE(std::adjacent_find(found.begin(), found.end()) == found.end());
    for (const std::string& text : found)
      if (text.size() <= kMaxText) REQUIRE(accepts(*e, text));
    for (const std::string& text : short_texts())
      REQUIRE(accepts(*e, text) == std::binary_search(found.begin(), found.end(), text));
    bool exact = false;
    const uint64_t count = arena.count(r, 10'000, exact);
    REQUIRE(count <= found.size());
    if (exact) REQUIRE(count == found.size());
  }
  CHECK(finite > 40);
}

TEST_CASE("regex algebra: past() leads where the derivatives lead") {
  uint32_t sets = 0, runs = 0, dead = 0;
  for (uint32_t seed = 0; seed < times(2'000); ++seed) {
    Random random(seed);
    RegexArena arena(kJson);
    const auto text = [&](std::vector<std::string> pieces, uint32_t most) {
      std::string out;
      for (uint32_t n = random.below(most + 1); n > 0; --n) out += pieces[random.below(pieces.size())];
      return out;
    };
    std::vector<std::string> names;
    for (uint32_t n = 1 + random.below(5); n > 0; --n) names.push_back(text({"a", "b", "\u00e9", "\""}, 5));
    const RegexId set = arena.literal_set(arena.tables().add(std::move(names)), {}, random.below(2) == 0);
    const RegexId run = arena.cat(arena.star(arena.any_character()), arena.end());
    for (const RegexId r : {set, arena.both(run, arena.negate(set)), run}) {
      const std::string begun = text({"a", "b", "\xc3", "\xa9", "\\u00", "6", "1", "\"", "\\\""}, 5);
      INFO("seed ", seed, ", text ", begun);
      const std::optional<RegexId> to = arena.past(r, begun);
      if (!to) continue;
      REQUIRE(*to == arena.run(r, begun));
      (*to == RegexArena::empty() ? dead : r == set ? sets : runs) += 1;
    }
  }
  CHECK(std::min({sets, runs, dead}) > times(2'000) / 10);
}

TEST_CASE("regex algebra: counters are numbers, not copies") {
  RegexArena arena;
  const RegexId r = arena.repeat(arena.range('a', 'b'), 100'000, 2'000'000);
  CHECK(arena.size() < 100);
  CHECK(arena.matches(r, std::string(100'000, 'a')));
  CHECK(!arena.matches(r, std::string(99'999, 'a')));
  CHECK(!arena.is_empty(r));
}

TEST_CASE("regex algebra: what a call makes does not depend on what was made before it") {
  uint32_t bodies = 0;
  for (uint32_t seed = 0; seed < times(400); ++seed) {
    Random random(seed + 300'000);
    const Spelling& spelling = random.chance(50) ? kJson : kPlainJson;
    const Part e = drawn(random, 1 + static_cast<int>(random.below(4)));
    INFO("seed ", seed, ": ", shown(*e));
    const uint32_t least = random.below(3), most = random.chance(40) ? kUnbounded : least + random.below(4);
    const bool within = random.chance(50);
    RegexArena fresh(spelling), used(spelling);
    // The same bytes in other places, other texts, and searches in them.
    for (uint32_t i = 0; i < 3; ++i) {
      const Part other = random.chance(30) ? e : drawn(random, 2);
      const RegexId plain = built(used, *other), text = spelled_body(used, *other, 0, 2, random.chance(50));
      used.is_empty(used.minus(plain, text));
      used.is_empty(used.minus(text, plain));
    }
    const RegexId once = spelled_body(used, *e, least, most, within);
    const RegexId other = spelled_body(used, *drawn(random, 2), 0, kUnbounded, true);
    used.is_empty(used.minus(once, other));
    RegexId a = spelled_body(fresh, *e, least, most, within);
    RegexId b = spelled_body(used, *e, least, most, within);
    CHECK(b == once);
    bodies += fresh.node(a).body() == 1;
    for (uint32_t steps = 0; steps < 12; ++steps) {
      REQUIRE(form(fresh, a) == form(used, b));
      const ByteSet live = fresh.live(a);
      REQUIRE(live == used.live(b));
      if (live.none()) break;
      std::vector<uint8_t> bytes;
      live.for_each([&](uint8_t byte) { bytes.push_back(byte); });
      const uint8_t byte = bytes[random.below(static_cast<uint32_t>(bytes.size()))];
      a = fresh.next(a, byte);
      b = used.next(b, byte);
    }
  }
  CHECK(bodies > times(400) / 4);
}

TEST_CASE("formats: the bytes of a shortest text are those of the language") {
  for (const FormatInfo& f : all_formats()) {
    RegexArena arena(kJson);
    std::string text;
    REQUIRE(arena.witness(lower(arena, f, kJson), text));
    CHECK_MESSAGE(f.least + 1 == text.size(), f.name, " ", text);
  }
}

TEST_CASE("regex algebra: a body holds every spelling of a text or none") {
  uint32_t bodies = 0;
  for (uint32_t seed = 0; seed < times(300); ++seed) {
    Random random(seed + 400'000);
    RegexArena arena(kJson);
    const Part e = drawn(random, 1 + static_cast<int>(random.below(3)));
    INFO("seed ", seed, ": ", shown(*e));
    const RegexId whole = spelled_body(arena, *e, 0, kUnbounded, random.chance(50));
    const RegexId r = random.chance(50) ? whole : arena.minus(any_body(arena, kJson), whole);
    if (arena.node(r).body() != 1) continue;
    ++bodies;
    CHECK(arena.is_empty(arena.minus(r, any_body(arena, kJson))));
    for (const std::string& text : short_texts()) {
      std::string raw, escaped;
      for (const char c : text) {
        raw += c == 'c' ? std::string("\xd1\xa3") : std::string(1, c);
        escaped += c == 'a' ? "\\u0061" : c == 'b' ? "\\u0062" : "\\u0463";
      }
      REQUIRE(arena.matches(r, raw + '"') == arena.matches(r, escaped + '"'));
    }
  }
  CHECK(bodies > times(300) / 3);
}
