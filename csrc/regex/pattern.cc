// The constructors of syntax trees; see syntax.h. Each node knows how long its matches are and whether
// it contains an assertion, so that lowering and look-behinds need no further pass.
#include <algorithm>
#include <utility>

#include "base/work.h"
#include "regex/syntax.h"

namespace structgen {

namespace {

uint32_t saturating_add(uint32_t a, uint32_t b) {
  return a == kNoMaximum || b == kNoMaximum || a > kNoMaximum - 1 - b ? kNoMaximum : a + b;
}

uint32_t saturating_mul(uint32_t a, uint32_t b) {
  if (a == 0 || b == 0) return 0;
  if (a == kNoMaximum || b == kNoMaximum) return kNoMaximum;
  const uint64_t product = static_cast<uint64_t>(a) * b;
  return product >= kNoMaximum ? kNoMaximum : static_cast<uint32_t>(product);
}

// Appends a node and charges a unit of work for it, so that a long pattern meets the bound of its call.
uint32_t push(Pattern& p, const PatternNode& n) {
  charge();
  p.nodes.push_back(n);
  return static_cast<uint32_t>(p.nodes.size() - 1);
}

}  // namespace

uint32_t Pattern::add_empty() { return push(*this, PatternNode{}); }

uint32_t Pattern::add_char(uint32_t c) {
  PatternNode n;
  n.kind = PatternKind::kChar;
  n.a = c;
  n.shortest = n.longest = 1;
  return push(*this, n);
}

uint32_t Pattern::add_class(CodepointSet set) {
  uint32_t c;
  if (set.single(c)) return add_char(c);
  PatternNode n;
  n.kind = PatternKind::kClass;
  n.shortest = n.longest = 1;
  // Patterns repeat their classes. An equal set among the latest 16 is used again, and lowered once.
  const std::size_t oldest = sets.size() > 16 ? sets.size() - 16 : 0;
  std::size_t i = sets.size();
  while (i > oldest && !(sets[i - 1] == set)) --i;
  if (i > oldest) {
    n.a = static_cast<uint32_t>(i - 1);
  } else {
    n.a = static_cast<uint32_t>(sets.size());
    sets.push_back(std::move(set));
  }
  return push(*this, n);
}

// The lengths of a sequence are sums over its parts. An alternation has the least `shortest` and the greatest
// `longest` of its parts.
uint32_t Pattern::add_list(PatternKind kind, std::span<const uint32_t> parts) {
  if (parts.size() == 1) return parts[0];
  const bool cat = kind == PatternKind::kCat;
  PatternNode n;
  n.kind = kind;
  n.a = static_cast<uint32_t>(kids.size());
  n.n = static_cast<uint32_t>(parts.size());
  n.shortest = cat ? 0 : kNoMaximum;
  for (uint32_t k : parts) {
    const PatternNode& kid = nodes[k];
    n.asserts = n.asserts || kid.asserts;
    n.shortest = cat ? saturating_add(n.shortest, kid.shortest) : std::min(n.shortest, kid.shortest);
    n.longest = cat ? saturating_add(n.longest, kid.longest) : std::max(n.longest, kid.longest);
  }
  kids.insert(kids.end(), parts.begin(), parts.end());
  return push(*this, n);
}

uint32_t Pattern::add_cat(std::span<const uint32_t> parts) {
  return parts.empty() ? add_empty() : add_list(PatternKind::kCat, parts);
}

uint32_t Pattern::add_alt(std::span<const uint32_t> parts) { return add_list(PatternKind::kAlt, parts); }

uint32_t Pattern::add_repeat(uint32_t child, uint32_t min, uint32_t max) {
  if (min == 1 && max == 1) return child;
  if (max == 0) return add_empty();
  PatternNode n;
  n.kind = PatternKind::kRepeat;
  n.asserts = nodes[child].asserts;
  n.a = child;
  n.min = min;
  n.max = max;
  n.shortest = saturating_mul(nodes[child].shortest, min);
  n.longest = saturating_mul(nodes[child].longest, max);
  return push(*this, n);
}

uint32_t Pattern::add_anchor(PatternKind kind, bool negated) { return add_look(kind, 0, negated); }

uint32_t Pattern::add_look(PatternKind kind, uint32_t child, bool negated) {
  PatternNode n;
  n.kind = kind;
  n.negated = negated;
  n.asserts = true;
  n.a = child;
  return push(*this, n);
}

}  // namespace structgen
