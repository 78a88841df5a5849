#include "strings/json_inside.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/depth.h"
#include "base/utf8.h"
#include "regex/charset.h"

namespace structgen {

namespace {

// The texts that begin with a character from `lo` to `hi`, with the regex of what follows it.
struct Piece {
  uint32_t lo, hi;
  RegexId rest;
};

// The lazy language of texts as a JSON string spells them. A state is the number of a regex: that of the
// texts before they are spelled.
class Inside : public LazyLanguage {
 public:
  explicit Inside(RegexArena& arena) : arena_(arena) {}
  RegexId unfold(RegexArena& arena, uint32_t state) override;
  bool shortest(uint32_t state, std::string& text) const override {
    std::string inner;
    if (!arena_.witness(RegexId{state}, inner)) return false;
    text = written(inner, arena_.spelling());
    return true;
  }

 private:
  RegexArena& arena_;
};

// What all grammars of an arena share: the definition of the lazy language, and the regexes that were
// spelled.
struct Shared : RegexCache {
  explicit Shared(RegexArena& arena) : definition(arena.define<Inside>(arena).definition) {}
  const uint32_t definition;
  FlatMap<uint32_t, RegexId> known;
  std::size_t byte_size() const override { return sizeof(Shared) + known.byte_size(); }
};
Shared& shared(RegexArena& arena) { return arena.cache<Shared>(arena); }

// Splits r by the last `bytes` bytes of one character. The pieces are sorted by those bits of the code point
// that these bytes hold.
std::vector<Piece> pieces(RegexArena& arena, RegexId r, uint32_t bytes) {
  check_depth();
  if (bytes == 0) return {{0, 0, r}};
  std::vector<Piece> out, inner;
  RegexId last = RegexArena::empty();
  for (uint32_t digit = 0; digit < 64; ++digit) {
    const RegexId d = arena.step(r, static_cast<uint8_t>(0x80 | digit));
    if (d == RegexArena::empty()) continue;
    if (d != last) inner = pieces(arena, d, bytes - 1);
    last = d;
    const uint32_t base = digit << (6 * (bytes - 1));
    for (const Piece& p : inner)
      if (!out.empty() && out.back().rest == p.rest && out.back().hi + 1 == base + p.lo)
        out.back().hi = base + p.hi;
      else
        out.push_back({base + p.lo, base + p.hi, p.rest});
  }
  return out;
}

// Splits the texts of r by their first character.
std::vector<Piece> first_characters(RegexArena& arena, RegexId r) {
  std::vector<Piece> out;
  arena.live(r).for_each([&](uint8_t b) {
    const RegexId d = arena.step(r, b);
    if (d == RegexArena::empty() || (b >= 0x80 && b < 0xC2) || b > 0xF4) return;
    const uint32_t more = b < 0x80 ? 0 : b < 0xE0 ? 1 : b < 0xF0 ? 2 : 3;
    const uint32_t base = more == 0 ? b : (b & (0x3Fu >> more)) << (6 * more);
    for (const Piece& p : pieces(arena, d, more)) out.push_back({base + p.lo, base + p.hi, p.rest});
  });
  return out;
}

// Returns an alternative for each regex that may follow a first character: the spellings of the characters
// that lead to it, then the regex, spelled in turn.
RegexId Inside::unfold(RegexArena& arena, uint32_t state) {
  const RegexId r{state};
  std::vector<Piece> found = first_characters(arena, r);
  std::ranges::stable_sort(found, {}, [](const Piece& p) { return p.rest.v; });
  std::vector<RegexId> parts;
  if (arena.nullable(r)) parts.push_back(RegexArena::epsilon());
  for (std::size_t i = 0; i < found.size();) {
    const RegexId rest = found[i].rest;
    std::vector<CodepointRange> ranges;
    for (; i < found.size() && found[i].rest == rest; ++i) ranges.push_back({found[i].lo, found[i].hi});
    const RegexId one = arena.spelling().characters(arena, CodepointSet(std::move(ranges)));
    parts.push_back(arena.cat(one, inside_json(arena, rest)));
  }
  return arena.alt(std::span<const RegexId>(parts));
}

// Returns true if each text of r begins with a whole character. What stands in front of r then ends with a
// whole character, so both can be spelled on their own.
bool at_character(RegexArena& arena, RegexId r) {
  return (arena.live(r) & ByteSet::range(0x80, 0xBF)).none();
}

// Spells a regex kid by kid where the kids have whole characters. Elsewhere the result is a lazy node, which
// splits texts into characters.
RegexId spell(RegexArena& arena, RegexId r) {
  const RegexNode n = arena.node(r);
  const Spelling& spelling = arena.spelling();
  const auto lazy = [&] {
    return arena.lazy(shared(arena).definition, r.v, n.nullable, false, false, n.labelled);
  };
  switch (n.kind) {
    case RegexKind::kEmpty:
    case RegexKind::kEpsilon:
    case RegexKind::kPoison:
    case RegexKind::kDone: return r;
    case RegexKind::kBytes: {
      std::vector<CodepointRange> ranges;
      arena.byte_set(n.a).for_each([&](uint8_t b) { ranges.push_back({b, b}); });
      return spelling.characters(arena, CodepointSet(std::move(ranges)));
    }
    case RegexKind::kLiteral: {
      std::vector<RegexId> parts;
      for (uint32_t i = 0, length = 0; i < n.n; i += length)
        parts.push_back(spelling.characters(arena, CodepointSet::one(decode_utf8({n.text, n.n}, i, length))));
      return arena.cat(std::span<const RegexId>(parts));
    }
    case RegexKind::kCat:
      if (!at_character(arena, RegexId{n.b})) return lazy();
      return arena.cat(inside_json(arena, RegexId{n.a}), inside_json(arena, RegexId{n.b}));
    case RegexKind::kAlt: {
      std::vector<RegexId> parts;
      for (uint32_t i = 0; i < n.n; ++i) parts.push_back(inside_json(arena, RegexId{n.kids[i]}));
      return arena.alt(std::span<const RegexId>(parts));
    }
    case RegexKind::kRepeat:
      if (!at_character(arena, RegexId{n.a})) return lazy();
      return arena.repeat(inside_json(arena, RegexId{n.a}), n.min, n.max);
    default: return lazy();
  }
}

}  // namespace

RegexId inside_json(RegexArena& arena, RegexId r) {
  check_depth();
  if (const RegexId* known = shared(arena).known.find(r.v)) return *known;
  const RegexId out = spell(arena, r);
  shared(arena).known.emplace(r.v, out);
  return out;
}

}  // namespace structgen
