#include "holes/right.h"

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/depth.h"
#include "base/flat_map.h"
#include "base/undo.h"
#include "base/work.h"
#include "holes/leading.h"

namespace structgen {

namespace {
// The aim of a Leading (holes/leading.h): the derivative must match the text as a whole.
struct Behind {
  std::string text;
  bool met(RegexArena& arena, RegexId at) const { return arena.matches(at, text); }
  friend auto operator<=>(const Behind&, const Behind&) = default;
};

struct Quotients : RegexCache {
  explicit Quotients(RegexArena& regexes) : lazy(regexes.define<Leading<Behind>>()) {}
  // The languages {u : `u text` in r} for regexes that have no structure to take apart (sets of literals,
  // lazy languages). The arena owns their definition.
  Leading<Behind>& lazy;
  // The results for texts of one byte, by regex and byte.
  FlatMap<uint64_t, RegexId> by_byte;
  std::size_t byte_size() const override { return by_byte.byte_size() + lazy.byte_size(); }
};

RegexId before_byte(RegexArena& regexes, RegexId r, uint8_t b);

// Returns the regex of all u such that u followed by the byte matches r; it takes r apart. The last byte of a
// concatenation belongs to its right kid. It may also belong to the left kid if the right one may be empty.
RegexId by_structure(RegexArena& regexes, Leading<Behind>& lazy, RegexId r, uint8_t b) {
  const RegexNode n = regexes.node(r);
  const auto before = [&](uint32_t part) { return before_byte(regexes, RegexId{part}, b); };
  switch (n.kind) {
    case RegexKind::kEmpty:
    case RegexKind::kEpsilon:
    case RegexKind::kDone: return RegexArena::empty();
    case RegexKind::kAnything:
    case RegexKind::kPoison: return r;
    case RegexKind::kBytes: return regexes.byte_set(n.a).has(b) ? RegexArena::epsilon() : RegexArena::empty();
    case RegexKind::kLiteral: {
      // The text is copied, because the arena may move the bytes to which n points.
      std::string text(n.text, n.n);
      if (static_cast<uint8_t>(text.back()) != b) return RegexArena::empty();
      text.pop_back();
      return regexes.literal(text);
    }
    case RegexKind::kCat: {
      const RegexId right = regexes.cat(RegexId{n.a}, before(n.b));
      return regexes.nullable(RegexId{n.b}) ? regexes.alt(right, before(n.a)) : right;
    }
    case RegexKind::kAlt:
    case RegexKind::kAnd: {
      std::vector<RegexId> parts;
      for (uint32_t i = 0; i < n.n; ++i) parts.push_back(before(n.kids[i]));
      const std::span<const RegexId> all(parts);
      return n.kind == RegexKind::kAlt ? regexes.alt(all) : regexes.both(all);
    }
    case RegexKind::kNot: return regexes.negate(before(n.a));
    case RegexKind::kRepeat: {
      // The byte ends the last repetition, so there is one repetition less before it.
      const RegexId last = before(n.a);
      if (last == RegexArena::empty()) return last;
      const uint32_t min = n.min > 0 ? n.min - 1 : 0, max = n.max == kUnbounded ? kUnbounded : n.max - 1;
      return regexes.cat(regexes.repeat(RegexId{n.a}, min, max), last);
    }
    case RegexKind::kLiteralSet: return lazy.make(regexes, r, {std::string(1, static_cast<char>(b))});
    case RegexKind::kLazy: {
      // r may itself be the result of an earlier call. Both texts are then joined into one, so that lazy
      // languages do not stand inside each other.
      const auto [of, behind] = n.a == lazy.definition ? lazy.state(n.min) : std::pair(r, Behind{});
      return lazy.make(regexes, of, {static_cast<char>(b) + behind.text});
    }
  }
  return RegexArena::empty();
}

RegexId before_byte(RegexArena& regexes, RegexId r, uint8_t b) {
  check_depth();
  Quotients& all = regexes.cache<Quotients>(regexes);
  return all.by_byte.remember(uint64_t{r.v} << 8 | b, [&] {
    charge();
    return by_structure(regexes, all.lazy, r, b);
  });
}

}  // namespace

RegexId before_text(RegexArena& regexes, RegexId r, std::string_view text) {
  for (std::size_t i = text.size(); i-- > 0 && r != RegexArena::empty();)
    r = before_byte(regexes, r, static_cast<uint8_t>(text[i]));
  return r;
}

}  // namespace structgen
