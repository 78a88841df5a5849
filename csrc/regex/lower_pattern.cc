// Lowers patterns by continuations; lower_pattern.h explains them. In JSON's spelling, for the search
// `a$|^b`:
//
//     a$     a "           the same at the start and later, so any text may stand before it
//     ^b     b any "       at the start; later it is empty, so no text may stand before it
//     all    any a "  |  b any "
#include "regex/lower_pattern.h"

#include <algorithm>
#include <array>
#include <string>

#include "base/depth.h"
#include "base/undo.h"
#include "base/utf8.h"
#include "regex/context.h"
#include "regex/regex.h"

namespace structgen {

namespace {
constexpr RegexId kUnset{0xFFFFFFFFu};
// A placeholder for rest(). Its node is made only if value() is asked for it.
constexpr RegexId kRest{0xFFFFFFFEu};
// A counter's body is written out if assertions in the body look at the text behind it. It is written out at
// most this many times; a larger counter throws NeedsContext.
constexpr uint32_t kMaxUnrolled = 16;

uint32_t count(uint32_t n) { return n == kNoMaximum ? kUnbounded : n; }
}  // namespace

PatternLowering::PatternLowering(RegexArena& arena, const Pattern& pattern, const Spelling& spelling)
    : arena_(arena),
      pattern_(pattern),
      spelling_(spelling),
      end_(end_of(arena, spelling)),
      any_text_(kUnset),
      plain_(pattern.nodes.size(), kUnset),
      classes_(pattern.sets.size(), kUnset) {}

RegexId PatternLowering::any_text() {
  if (any_text_ == kUnset) any_text_ = structgen::any_text(arena_, spelling_);
  return any_text_;
}

RegexId PatternLowering::rest() { return arena_.cat(any_text(), end_); }

RegexId PatternLowering::value(RegexId next) { return next == kRest ? rest() : next; }

RegexId PatternLowering::character(uint32_t c) {
  return remember(characters_, c, [&] { return set(CodepointSet::one(c)); });
}

// Returns the language of a sequence. Neighbouring characters in UTF-8 become one literal.
RegexId PatternLowering::plain_cat(const PatternNode& n) {
  std::vector<RegexId> parts;
  // The UTF-8 bytes of the last characters, as long as the kids are single characters.
  std::string run;
  const auto flush = [&] {
    if (run.size() == 1) parts.push_back(arena_.byte(static_cast<uint8_t>(run[0])));
    if (run.size() > 1) parts.push_back(arena_.literal(run));
    run.clear();
  };
  for (uint32_t k : pattern_.kids_of(n)) {
    const PatternNode& kid = pattern_.nodes[k];
    if (!spelling_.write && kid.kind == PatternKind::kChar) {
      append_utf8(run, kid.a);
    } else {
      flush();
      parts.push_back(plain(k));
    }
  }
  flush();
  return arena_.cat(parts);
}

RegexId PatternLowering::plain(uint32_t node) {
  check_depth();
  if (plain_[node] != kUnset) return plain_[node];
  const PatternNode& n = pattern_.nodes[node];
  RegexId out = RegexArena::epsilon();
  switch (n.kind) {
    // Recipe, regex feature 3: its language.
    case PatternKind::kChar: out = character(n.a); break;
    case PatternKind::kClass:
      if (classes_[n.a] == kUnset) classes_[n.a] = set(pattern_.sets[n.a]);
      out = classes_[n.a];
      break;
    case PatternKind::kCat: out = plain_cat(n); break;
    case PatternKind::kAlt: {
      std::vector<RegexId> parts;
      for (uint32_t k : pattern_.kids_of(n)) parts.push_back(plain(k));
      out = arena_.alt(parts);
      break;
    }
    case PatternKind::kRepeat: out = arena_.repeat(plain(n.a), n.min, count(n.max)); break;
    default: break;
  }
  return plain_[node] = out;
}

// Returns a simpler node with the same effect where any text may stand beside it. In a sequence, a first kid
// (`left`) or last kid (`right`) that may be empty is dropped, and X{m,n} becomes X{m}. A search for
// `^\s*name.*` then has a smaller automaton.
RegexId PatternLowering::trimmed(uint32_t node, bool left, bool right) {
  check_depth();
  const PatternNode& n = pattern_.nodes[node];
  if (!left && !right) return plain(node);
  if (n.shortest == 0) return RegexArena::epsilon();
  switch (n.kind) {
    case PatternKind::kCat: return trimmed_cat(n, left, right);
    case PatternKind::kAlt: {
      std::vector<RegexId> parts;
      for (uint32_t k : pattern_.kids_of(n)) parts.push_back(trimmed(k, left, right));
      return arena_.alt(parts);
    }
    case PatternKind::kRepeat:
      if (n.min == 1) return trimmed(n.a, left, right);
      return arena_.repeat(plain(n.a), n.min, n.min);
    default: return plain(node);
  }
}

RegexId PatternLowering::trimmed_cat(const PatternNode& n, bool left, bool right) {
  auto kids = pattern_.kids_of(n);
  const auto drops = [&](uint32_t k) { return pattern_.nodes[k].shortest == 0; };
  while (left && drops(kids.front())) kids = kids.subspan(1);
  while (right && drops(kids.back())) kids = kids.first(kids.size() - 1);
  std::vector<RegexId> parts;
  for (std::size_t i = 0; i < kids.size(); ++i)
    parts.push_back(trimmed(kids[i], left && i == 0, right && i + 1 == kids.size()));
  return arena_.cat(parts);
}

bool PatternLowering::swallows(Placed next) const {
  return next.start == next.later && (next.later == kRest || next.later == RegexArena::anything());
}

// Returns a node without assertions, followed by `next`. If the node reads nothing at the start of the text,
// `next` stands at the start, too; otherwise it stands later.
Placed PatternLowering::placed_plain(uint32_t node, Placed next) {
  const PatternNode& n = pattern_.nodes[node];
  const RegexId body = swallows(next) ? trimmed(node, false, true) : plain(node);
  if (body == RegexArena::epsilon()) return next;
  next = {value(next.start), value(next.later)};
  const RegexId later = arena_.cat(body, next.later);
  if (n.shortest > 0 || next.start == next.later) return {later, later};
  const bool simple = n.kind == PatternKind::kRepeat && pattern_.nodes[n.a].shortest > 0;
  const RegexId some =
      simple ? arena_.repeat(plain(n.a), 1, count(n.max)) : arena_.minus(body, RegexArena::epsilon());
  return {arena_.alt(arena_.cat(some, next.later), next.start), later};
}

// Returns the terminator if `next` allows the text to end here, and the empty language otherwise.
RegexId PatternLowering::at_end(RegexId next) {
  if (next == kRest) return end_;
  const char end = static_cast<char>(spelling_.end);
  const bool ends = spelling_.end >= 0 ? arena_.matches(next, {&end, 1}) : arena_.nullable(next);
  return ends ? end_ : RegexArena::empty();
}

Placed PatternLowering::alternatives(const PatternNode& n, Placed next) {
  std::vector<RegexId> start, later;
  for (uint32_t k : pattern_.kids_of(n)) {
    const Placed p = placed(k, next);
    start.push_back(value(p.start));
    later.push_back(value(p.later));
  }
  return {arena_.alt(start), arena_.alt(later)};
}

// Returns a look-ahead followed by the language K: K & X.* for (?=X), and K & ~(X.*) for (?!X); both for the
// start of the text and for later.
Placed PatternLowering::placed_look(const PatternNode& n, Placed next) {
  next = {value(next.start), value(next.later)};
  const RegexId any = RegexArena::anything();
  const Placed body = placed(n.a, {any, any});
  const auto apply = [&](RegexId k, RegexId b) { return n.negated ? arena_.minus(k, b) : arena_.both(k, b); };
  return {apply(next.start, body.start), apply(next.later, body.later)};
}

// The kids are visited from right to left; `after` grows by the least length of each kid.
bool PatternLowering::closed(uint32_t node, uint32_t after) const {
  check_depth();
  const PatternNode& n = pattern_.nodes[node];
  if (!n.asserts) return true;
  switch (n.kind) {
    case PatternKind::kCat: {
      const auto kids = pattern_.kids_of(n);
      for (std::size_t i = kids.size(); i-- > 0;) {
        if (!closed(kids[i], after)) return false;
        after = std::max(after, after + pattern_.nodes[kids[i]].shortest);  // saturates
      }
      return true;
    }
    case PatternKind::kAlt:
      return std::ranges::all_of(pattern_.kids_of(n), [&](uint32_t k) { return closed(k, after); });
    case PatternKind::kRepeat: return closed(n.a, 0);
    case PatternKind::kLookahead: return !pattern_.nodes[n.a].asserts && pattern_.nodes[n.a].longest <= after;
    default: return false;
  }
}

// Returns a repetition whose body has assertions, followed by `next`. If no assertion looks beyond the body,
// the body's language is repeated. Otherwise the body is written out several times, from right to left, each
// copy followed by the language of those behind it.
Placed PatternLowering::placed_repeat(const PatternNode& n, Placed next) {
  next = {value(next.start), value(next.later)};
  if (closed(n.a, 0)) {
    const RegexId epsilon = RegexArena::epsilon();
    const RegexId body = arena_.repeat(placed(n.a, {epsilon, epsilon}).later, n.min, count(n.max));
    const RegexId later = arena_.cat(body, next.later);
    if (!arena_.nullable(body) || next.start == next.later) return {later, later};
    return {arena_.alt(arena_.cat(arena_.minus(body, epsilon), next.later), next.start), later};
  }
  if (n.max > kMaxUnrolled) throw NeedsContext{};
  Placed out = next;
  for (uint32_t i = n.max; i-- > 0;) {
    out = placed(n.a, out);
    if (i >= n.min) out = {arena_.alt(out.start, next.start), arena_.alt(out.later, next.later)};
  }
  return out;
}

Placed PatternLowering::placed(uint32_t node, Placed next) {
  check_depth();
  const PatternNode& n = pattern_.nodes[node];
  if (!n.asserts) return placed_plain(node, next);
  switch (n.kind) {
    case PatternKind::kCat: {
      const auto kids = pattern_.kids_of(n);
      for (std::size_t i = kids.size(); i-- > 0;) next = placed(kids[i], next);
      return next;
    }
    case PatternKind::kAlt: return alternatives(n, next);
    case PatternKind::kRepeat: return placed_repeat(n, next);
    case PatternKind::kStart: return {next.start, RegexArena::empty()};
    case PatternKind::kEnd: return {at_end(next.start), at_end(next.later)};
    case PatternKind::kLookahead: return placed_look(n, next);
    default: throw NeedsContext{};
  }
}

RegexId PatternLowering::full() { return placed(pattern_.root, {end_, end_}).start; }

// Returns the search of each alternative. One that begins with `^` gets no .* in front; the others share one.
RegexId PatternLowering::search() {
  const PatternNode& root = pattern_.nodes[pattern_.root];
  std::vector<uint32_t> branches{pattern_.root};
  if (root.kind == PatternKind::kAlt && root.asserts)
    branches.assign(pattern_.kids_of(root).begin(), pattern_.kids_of(root).end());
  std::vector<RegexId> anchored, floating;
  for (uint32_t b : branches) {
    if (!pattern_.nodes[b].asserts) {
      floating.push_back(arena_.cat(trimmed(b, true, true), rest()));
      continue;
    }
    Placed p = placed(b, {kRest, kRest});
    p = {value(p.start), value(p.later)};
    if (p.later == RegexArena::empty()) {
      anchored.push_back(p.start);
    } else if (p.start == p.later) {
      floating.push_back(p.later);
    } else {
      anchored.push_back(p.start);
      const std::array<RegexId, 2> parts{any_character(arena_, spelling_), p.later};
      floating.push_back(arena_.cat(parts));
    }
  }
  if (!floating.empty()) anchored.push_back(arena_.cat(any_text(), arena_.alt(floating)));
  return arena_.alt(anchored);
}

RegexId lower(RegexArena& arena, const Pattern& pattern, Match match, const Spelling& spelling) {
  try {
    PatternLowering lowering(arena, pattern, spelling);
    return match == Match::kSearch ? lowering.search() : lowering.full();
  } catch (NeedsContext) {
    return lower_with_context(arena, pattern, match, spelling);
  }
}

}  // namespace structgen
