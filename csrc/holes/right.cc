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
// The text that has to be left, and may be left as a whole.
struct Behind {
  std::string text;
  bool met(RegexArena& arena, RegexId at) const { return arena.matches(at, text); }
  friend auto operator<=>(const Behind&, const Behind&) = default;
};

struct Quotients : RegexCache {
  explicit Quotients(RegexArena& regexes) : lazy(regexes.define<Leading<Behind>>()) {}
  // {u : u text in r}, for regexes that are automata and no trees (sets of literals, lazy languages). Owned
  // by the arena.
  Leading<Behind>& lazy;
  FlatMap<uint64_t, uint32_t> by_byte;
  std::size_t byte_size() const override { return by_byte.byte_size() + lazy.byte_size(); }
};

// The quotient by one byte, by the structure of the regex; the last byte of a concatenation comes from
// its right part, or from the left one if the right one may be empty.
RegexId before_byte(RegexArena& regexes, RegexId r, uint8_t b) {
  check_depth();
  Quotients& all = regexes.cache<Quotients>(regexes);
  const uint64_t key = (static_cast<uint64_t>(r.v) << 8) | b;
  if (const uint32_t* known = all.by_byte.find(key)) return RegexId{*known};
  charge();
  const RegexNode n = regexes.node(r);
  RegexId out = RegexArena::empty();
  switch (n.kind) {
    case RegexKind::kEmpty:
    case RegexKind::kEpsilon:
    case RegexKind::kDone: break;
    case RegexKind::kAnything:
    case RegexKind::kPoison: out = r; break;
    case RegexKind::kBytes:
      if (regexes.byte_set(n.a).has(b)) out = RegexArena::epsilon();
      break;
    case RegexKind::kLiteral: {
      // The arena may move the text to which n points.
      const std::string text(n.text, n.n);
      if (static_cast<uint8_t>(text.back()) == b)
        out = regexes.literal(std::string_view(text).substr(0, text.size() - 1));
      break;
    }
    case RegexKind::kCat: {
      out = regexes.cat(RegexId{n.a}, before_byte(regexes, RegexId{n.b}, b));
      if (regexes.nullable(RegexId{n.b})) out = regexes.alt(out, before_byte(regexes, RegexId{n.a}, b));
      break;
    }
    case RegexKind::kAlt:
    case RegexKind::kAnd: {
      std::vector<RegexId> parts;
      for (uint32_t i = 0; i < n.n; ++i) parts.push_back(before_byte(regexes, RegexId{n.kids[i]}, b));
      out = n.kind == RegexKind::kAlt ? regexes.alt(std::span<const RegexId>(parts))
                                      : regexes.both(std::span<const RegexId>(parts));
      break;
    }
    case RegexKind::kNot: out = regexes.negate(before_byte(regexes, RegexId{n.a}, b)); break;
    case RegexKind::kRepeat: {
      // The last repetition loses the byte, and one repetition less stands before it.
      const RegexId last = before_byte(regexes, RegexId{n.a}, b);
      if (last == RegexArena::empty()) break;
      const uint32_t min = n.min > 0 ? n.min - 1 : 0, max = n.max == kUnbounded ? kUnbounded : n.max - 1;
      out = regexes.cat(regexes.repeat(RegexId{n.a}, min, max), last);
      break;
    }
    case RegexKind::kLiteralSet:
      out = all.lazy.make(regexes, r, {std::string(1, static_cast<char>(b))});
      break;
    case RegexKind::kLazy: {
      // The quotient of a lazy quotient is one by the longer text, so they do not nest.
      RegexId of = r;
      std::string text(1, static_cast<char>(b));
      if (n.a == all.lazy.definition) {
        const auto& [inner, behind] = all.lazy.state(n.min);
        of = inner;
        text += behind.text;
      }
      out = all.lazy.make(regexes, of, {text});
      break;
    }
  }
  all.by_byte.emplace(key, out.v);
  return out;
}

}  // namespace

RegexId before_text(RegexArena& regexes, RegexId r, std::string_view text) {
  for (std::size_t i = text.size(); i-- > 0 && r != RegexArena::empty();)
    r = before_byte(regexes, r, static_cast<uint8_t>(text[i]));
  return r;
}

}  // namespace structgen
