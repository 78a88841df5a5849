// Derivatives of regexes, by a byte and by a text, and the bytes that may come next.
//
// In: a regex; a byte, or a text. Out: the regex of the texts that may follow; the set of live bytes. Cost: a
// read of an array for a derivative that was met before; else each part is derived once for its class of
// bytes. regex.cc has the idea, the invariants and the rejected ways.
//
//     next(x{0,3} y, 'x')       x{0,2} y, kept with the node
//     live(x{0,3} y)            x and y, read off the structure (first_bytes)
//     live(a* & ~(aa))          a, because some text goes on with it (derived_bytes)
//     past({name, nick}, "na")  {me}: one node, where next() makes one for each byte
#include "base/depth.h"
#include "base/work.h"
#include "regex/regex.h"

namespace structgen {

namespace {
// Marks an entry of RegexNode::next that has not been computed.
constexpr uint32_t kUnknownNext = 0xFFFFFFFFu;
// A search for emptiness may start others. At this depth next() starts no further one.
constexpr uint32_t kNestedSearches = 8;
}  // namespace

// Computes the derivative from the structure of the node. Other than next() it neither searches for emptiness
// nor remembers the result.
RegexId RegexArena::derive(RegexId r, uint8_t b) {
  check_depth();
  const RegexNode& n = nodes_[r.v];
  charge(1 + (n.kind == RegexKind::kAlt || n.kind == RegexKind::kAnd ? n.n : 0));
  switch (n.kind) {
    case RegexKind::kEmpty:
    case RegexKind::kEpsilon:
    case RegexKind::kDone: return empty();
    case RegexKind::kAnything:
    case RegexKind::kPoison: return r;
    case RegexKind::kBytes: return sets_[n.a].has(b) ? epsilon() : empty();
    case RegexKind::kLiteral: {
      if (static_cast<uint8_t>(n.text[0]) != b) return empty();
      if (n.n == 1) return epsilon();
      return add(RegexNode{.kind = RegexKind::kLiteral, .finite = true}, {}, {n.text + 1, n.n - 1});
    }
    case RegexKind::kLiteralSet: return derive_literal_set(r, b);
    case RegexKind::kLazy: return next(unfolded(r), b);
    case RegexKind::kNot: return negate(next(RegexId{n.a}, b));
    case RegexKind::kRepeat: {
      const RegexId d = next(RegexId{n.a}, b);
      if (d == empty()) return d;
      return cat(d,
                 repeat(RegexId{n.a}, n.min == 0 ? 0 : n.min - 1, n.max == kUnbounded ? n.max : n.max - 1));
    }
    case RegexKind::kCat: {
      const RegexId first = cat(next(RegexId{n.a}, b), RegexId{n.b});
      return nodes_[n.a].nullable ? alt(first, next(RegexId{n.b}, b)) : first;
    }
    case RegexKind::kAlt: {
      std::vector<RegexId> parts;
      for (uint32_t i = 0; i < n.n; ++i) {
        const RegexId d = next(RegexId{n.kids[i]}, b);
        if (d != empty()) parts.push_back(d);
      }
      if (parts.empty()) return empty();
      return parts.size() == 1 ? parts[0] : alt(std::span<const RegexId>(parts));
    }
    case RegexKind::kAnd: {
      std::vector<RegexId> parts;
      for (uint32_t i = 0; i < n.n; ++i) {
        const RegexId d = next(RegexId{n.kids[i]}, b);
        if (d == empty()) return empty();
        parts.push_back(d);
      }
      return both(std::span<const RegexId>(parts));
    }
  }
  return empty();
}

RegexId RegexArena::next(RegexId r, uint8_t b) {
  const ClassMap& c = classes(r);
  RegexNode& n = nodes_[r.v];
  if (!n.next) {
    n.next = pool_.allocate<uint32_t>(c.n);
    std::fill(n.next, n.next + c.n, kUnknownNext);
  }
  uint32_t& slot = n.next[c.of[b]];
  if (slot != kUnknownNext) {
    // The language may have been found to be empty after its derivative was remembered. empty() then takes
    // its place.
    if (effort_.omits() && nodes_[slot].emptiness == kEmpty) slot = empty().v;
    return RegexId{slot};
  }
  RegexId d = derive(r, c.rep[c.of[b]]);
  // A search for emptiness may start another one at each state of a lazy language. When kNestedSearches are
  // running, no further one is started, because the outer searches visit this node's derivatives anyway. The
  // result is not remembered: later callers must get an exact one.
  if (nodes_[d.v].lazy && searches_ >= kNestedSearches) return d;
  // The derivative is remembered before the search, because the definition of a lazy node may ask for it
  // again.
  slot = d.v;
  try {
    if (nodes_[d.v].boolean && judged_empty(d)) slot = (d = empty()).v;
  } catch (...) {
    slot = kUnknownNext;
    throw;
  }
  return d;
}

RegexId RegexArena::run(RegexId r, std::string_view text) {
  for (char c : text) {
    if (r == empty()) return r;
    r = next(r, static_cast<uint8_t>(c));
  }
  return r;
}

RegexId RegexArena::steps(RegexId r, std::string_view text) {
  for (char c : text) {
    if (r == empty()) return r;
    r = step(r, static_cast<uint8_t>(c));
  }
  return r;
}

std::optional<RegexId> RegexArena::past(RegexId r, std::string_view text) {
  const RegexNode n = nodes_[r.v];
  if (n.kind == RegexKind::kLiteralSet) {
    LiteralSet s = sets_of_literals_[n.a];
    for (char b : text) {
      bool done;
      charge();
      if (!tables_.step(s, static_cast<uint8_t>(b), done)) return empty();
      if (done) return std::nullopt;
    }
    return literal_set_node(s);
  }
  if (n.kind != RegexKind::kAnd) return std::nullopt;
  std::vector<RegexId> parts;
  // True if some kid is a repetition with a tail, such as `[a-z]*"`, no text of which ends within `text`
  // (checked below). Then no text of the intersection ends there either.
  bool in_run = false;
  for (uint32_t i = 0; i < n.n; ++i) {
    RegexId part{n.kids[i]};
    if (nodes_[part.v].kind == RegexKind::kNot) {
      const std::optional<RegexId> rest = past(RegexId{nodes_[part.v].a}, text);
      if (!rest || nodes_[rest->v].kind == RegexKind::kAnd) return std::nullopt;
      part = negate(*rest);
    } else if (counter(part).star()) {
      in_run = true;
      for (char b : text)
        if (part = next(part, static_cast<uint8_t>(b)); nullable(part)) return std::nullopt;
      if (part == empty()) return empty();
    } else {
      return std::nullopt;
    }
    parts.push_back(part);
  }
  if (!in_run) return std::nullopt;
  const RegexId out = both(std::span<const RegexId>(parts));
  return nodes_[out.v].boolean && judged_empty(out) ? empty() : out;
}

const ByteSet& RegexArena::live(RegexId r) {
  if (const ByteSet* known = nodes_[r.v].live) return *known;
  const ByteSet set = nodes_[r.v].boolean ? derived_bytes(r) : first_bytes(r);
  ByteSet* out = pool_.allocate<ByteSet>(1);
  *out = set;
  nodes_[r.v].live = out;
  return *out;
}

ByteSet RegexArena::steps(RegexId r) {
  if (!effort_.omits() || !nodes_[r.v].boolean || infinite_part(r) != empty()) return live(r);
  const ClassMap& c = classes(r);
  bool alive[256];
  for (uint16_t i = 0; i < c.n; ++i) alive[i] = step(r, c.rep[i]) != empty();
  ByteSet set;
  for (int b = 0; b < 256; ++b)
    if (alive[c.of[b]]) set.add(static_cast<uint8_t>(b));
  return set;
}

// Returns the bytes that may come next in a language with & or ~. "Any key but these" is an infinite language
// without finitely many strings. There, a byte behind which an infinite language is left may come next, and
// the excluded strings need no derivatives.
ByteSet RegexArena::derived_bytes(RegexId r) {
  const ClassMap& c = classes(r);
  const RegexId base = infinite_part(r);
  const auto alive_on = [&](uint8_t b) {
    if (base != empty())
      if (const RegexId d = next(base, b); d == empty() || infinite(d)) return d != empty();
    return next(r, b) != empty();
  };
  bool alive[256];
  for (uint16_t i = 0; i < c.n; ++i) alive[i] = alive_on(c.rep[i]);
  ByteSet set;
  for (int b = 0; b < 256; ++b)
    if (alive[c.of[b]]) set.add(static_cast<uint8_t>(b));
  return set;
}

// Returns the first bytes of a regex without & and ~. No kid of it is empty, so the structure tells the
// bytes; derivatives would make a node for each.
ByteSet RegexArena::first_bytes(RegexId r) {
  check_depth();
  const RegexNode& n = nodes_[r.v];
  switch (n.kind) {
    case RegexKind::kBytes: return sets_[n.a];
    case RegexKind::kLiteral: return ByteSet::of(static_cast<uint8_t>(n.text[0]));
    case RegexKind::kLiteralSet: return tables_.first_bytes(sets_of_literals_[n.a]);
    case RegexKind::kRepeat: return live(RegexId{n.a});
    case RegexKind::kCat: {
      ByteSet out = live(RegexId{n.a});
      if (nodes_[n.a].nullable) out |= live(RegexId{n.b});
      return out;
    }
    case RegexKind::kAlt: {
      ByteSet out;
      for (uint32_t i = 0; i < n.n; ++i) out |= live(RegexId{n.kids[i]});
      return out;
    }
    default: return derived_bytes(r);
  }
}

RegexId RegexArena::lifted(RegexId r, uint32_t reach) {
  check_depth();
  const RegexNode n = nodes_[r.v];
  if (n.kind != RegexKind::kCat && n.kind != RegexKind::kAlt && n.kind != RegexKind::kAnd &&
      n.kind != RegexKind::kRepeat)
    // Below a complement, a larger operand means fewer texts. So complements stay as they are.
    return r;
  return lifted_.remember((static_cast<uint64_t>(r.v) << 32) | reach, [&] {
    if (n.kind == RegexKind::kCat) {
      const RegexId a = lifted(RegexId{n.a}, reach), b = lifted(RegexId{n.b}, reach);
      return a.v == n.a && b.v == n.b ? r : cat(a, b);
    }
    if (n.kind == RegexKind::kRepeat) {
      const RegexId a = lifted(RegexId{n.a}, reach);
      const bool far = uint64_t{n.max} * least_length(RegexId{n.a}) >= reach;
      return a.v == n.a && (!far || n.max == kUnbounded) ? r : repeat(a, n.min, far ? kUnbounded : n.max);
    }
    std::vector<RegexId> kids;
    for (uint32_t i = 0; i < n.n; ++i) kids.push_back(lifted(RegexId{n.kids[i]}, reach));
    if (std::equal(kids.begin(), kids.end(), n.kids, [](RegexId k, uint32_t old) { return k.v == old; }))
      return r;
    return n.kind == RegexKind::kAlt ? alt(std::span<const RegexId>(kids))
                                     : both(std::span<const RegexId>(kids));
  });
}

}  // namespace structgen
