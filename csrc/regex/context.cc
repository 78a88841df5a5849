// How a pattern whose assertions look back becomes a language; context.h says which patterns come here.
//
// The problem. `\bcat\b` and `(?<=\d)a` look at the text before them. A derivative does not know that
// text: it is the language of the texts that may follow.
//
// The idea. A state is a point: the rest of the pattern, and a left context, which is everything that
// the assertions need to know of the text so far. For `(?<=\d)a|b` the context is one bit: the last
// character was a digit. A context consists of the states of deterministic automata over the
// characters, one for each look-behind (`.*B`), together with the bits "at the start" and "behind a
// word character".
//
//     PatternRest        what is left: a node of the pattern, and the PatternRest behind it
//     LeftContexts       contexts, with their transitions over atoms: classes of characters that no context
//                        tells apart
//     ContextLanguage    a LazyLanguage (regex/regex.h) whose states are points; unfold() makes the regex
//                        of a point
//
// node_language() writes the language of a point. A class of characters is split by the context to
// which each character leads. A look-ahead is a conjunct, so the whole is an alternating automaton. An
// assertion that looks back is decided on the spot, by the context.
//
// Invariants.
// - The language is that of the pattern. A look-behind that looks ahead past its end is refused
//   (behind.h).
// - A loop is never unfolded into itself: an iteration that reads nothing counts as done
//   (loop_after()).
// - Points, contexts and atoms are limited. Too many are kSchemaTooComplex, and the error says which.
//
// Costs. A point is made when a text gets there. Nothing is enumerated in advance, so a `\b` that no
// text reaches costs nothing. kMaxEager nodes are lowered at once, before a lazy node breaks the
// recursion.
//
// Rejected. A marker character between all others (Hopcroft's trick for \b): every terminal would have
// to know it. Tables of contexts times nodes: most pairs are never met.
#include "regex/context.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/components.h"
#include "base/depth.h"
#include "base/error.h"
#include "base/undo.h"
#include "base/utf8.h"
#include "regex/behind.h"
#include "regex/lower_pattern.h"
#include "regex/regex.h"

namespace structgen {

namespace {

constexpr std::size_t kMaxAtoms = 64;
constexpr std::size_t kMaxContexts = 2'000;
constexpr std::size_t kMaxPoints = 50'000;
// language() lowers at most this many levels of nodes by recursion. A deeper node becomes a lazy node, which
// is unfolded when it is read.
constexpr int kMaxEager = 200;

[[noreturn]] void assertions_too_complex(const char* why) {
  throw Error(ErrorKind::kSchemaTooComplex, std::string("the pattern's assertions are too complex: ") + why);
}

// The left context: all that `^`, \b and look-behinds need to know of the text before a point.
struct Left {
  bool start = true;
  bool word = false;
  // For each look-behind (?<=B): the derivative of the regex .*B by the text so far, in UTF-8.
  std::vector<RegexId> behind;
  friend bool operator<(const Left& a, const Left& b) {
    return std::tie(a.start, a.word, a.behind) < std::tie(b.start, b.word, b.behind);
  }
};

// All left contexts, each once, and the transitions between them by atoms. An atom is a class of characters
// that no look-behind, anchor or \b tells apart.
class LeftContexts {
 public:
  LeftContexts(RegexArena& arena, const Pattern& pattern, const std::vector<uint32_t>& lookbehinds,
               bool boundary);

  uint32_t start() const { return 0; }
  const Left& at(uint32_t context) const { return *contexts_[context]; }
  // Returns true if a context tells only whether the text has begun. The pattern then has neither \b nor
  // look-behinds.
  bool trivial() const { return atoms_.size() == 1 && at(0).behind.empty(); }
  // Splits `set` into the characters that lead from `context` to one context; the key is the number of this
  // context.
  std::map<uint32_t, CodepointSet> split(uint32_t context, const CodepointSet& set);

 private:
  uint32_t intern(Left left);
  uint32_t next(uint32_t context, uint32_t atom);
  void refine(const CodepointSet& set);

  RegexArena& arena_;
  const CodepointSet word_;
  std::vector<CodepointSet> atoms_{CodepointSet::all()};
  std::map<Left, uint32_t> index_;
  // contexts_[i] points to context i, which is a key of index_.
  std::vector<const Left*> contexts_;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> next_;
};

// Returns the regex .*B of the look-behind (?<=B), over UTF-8. The look-behind holds where it matches all of
// the text so far.
RegexId lower_behind(RegexArena& arena, const Pattern& pattern, uint32_t body) {
  Pattern sub = pattern;
  const uint32_t parts[] = {sub.add_repeat(sub.add_class(CodepointSet::all()), 0, kNoMaximum), body};
  sub.root = sub.add_cat(parts);
  return lower(arena, sub, Match::kFull);
}

std::vector<uint32_t> children(const Pattern& p, uint32_t node) {
  const PatternNode& n = p.nodes[node];
  switch (n.kind) {
    case PatternKind::kCat:
    case PatternKind::kAlt: return {p.kids_of(n).begin(), p.kids_of(n).end()};
    case PatternKind::kRepeat:
    case PatternKind::kLookahead:
    case PatternKind::kLookbehind: return {n.a};
    default: return {};
  }
}

LeftContexts::LeftContexts(RegexArena& arena, const Pattern& pattern,
                           const std::vector<uint32_t>& lookbehinds, bool boundary)
    : arena_(arena), word_(pattern.word) {
  if (boundary) refine(word_);
  Left first;
  for (uint32_t look : lookbehinds) {
    reached(pattern.nodes.size(), {pattern.nodes[look].a}, [&](uint32_t node, auto&& go) {
      const PatternNode& n = pattern.nodes[node];
      if (n.kind == PatternKind::kBoundary) refine(word_);
      if (n.kind == PatternKind::kChar) refine(CodepointSet::one(n.a));
      if (n.kind == PatternKind::kClass) refine(pattern.sets[n.a]);
      for (uint32_t k : children(pattern, node)) go(k);
    });
    first.behind.push_back(lower_behind(arena, pattern, pattern.nodes[look].a));
  }
  intern(std::move(first));
}

// Splits every atom into the characters inside of `set` and those outside.
void LeftContexts::refine(const CodepointSet& set) {
  std::vector<CodepointSet> out;
  for (const CodepointSet& atom : atoms_) {
    for (CodepointSet part : {atom & set, atom - set})
      if (!part.empty()) out.push_back(std::move(part));
  }
  if (out.size() > kMaxAtoms) assertions_too_complex("too many character classes in look-behinds");
  atoms_ = std::move(out);
}

uint32_t LeftContexts::intern(Left left) {
  if (contexts_.size() == contexts_.capacity()) contexts_.reserve(2 * contexts_.size() + 8);
  const auto [it, fresh] = index_.try_emplace(std::move(left), static_cast<uint32_t>(contexts_.size()));
  if (fresh) contexts_.push_back(&it->first);
  if (contexts_.size() > kMaxContexts) assertions_too_complex("too many left contexts");
  return it->second;
}

// Returns the context after one character of an atom. All characters of an atom lead to the same context, so
// the first one is tried.
uint32_t LeftContexts::next(uint32_t context, uint32_t atom) {
  return remember(next_, {context, atom}, [&] {
    Left left = at(context);
    const uint32_t c = atoms_[atom].ranges()[0].lo;
    left.start = false;
    left.word = atoms_.size() > 1 && word_.contains(c);
    std::string text;
    append_utf8(text, c);
    for (RegexId& r : left.behind) r = arena_.run(r, text);
    return intern(std::move(left));
  });
}

std::map<uint32_t, CodepointSet> LeftContexts::split(uint32_t context, const CodepointSet& set) {
  std::map<uint32_t, CodepointSet> out;
  for (uint32_t a = 0; a < atoms_.size(); ++a) {
    const CodepointSet part = atoms_.size() == 1 ? set : atoms_[a] & set;
    if (part.empty()) continue;
    CodepointSet& slot = out[next(context, a)];
    slot = slot | part;
  }
  return out;
}

// What must still be read of the pattern, as a linked list whose links are indices.
struct PatternRest {
  enum Kind : uint8_t {
    kEnd,
    // A look-ahead has matched; any text may follow.
    kAny,
    kNode,
    // The node is read `min` to `max` times, then the rest `next` is read.
    kLoop,
    // An iteration of a loop over the node ends here. The loop goes on, or `next` is read.
    kAgain,
  } kind = kEnd;
  // True if the current iteration of a kAgain has read no character yet.
  bool fresh = false;
  uint32_t node = 0, min = 0, max = 0, next = 0;
  friend auto operator<=>(const PatternRest&, const PatternRest&) = default;
};

// The languages of a pattern with assertions, as one lazy language. Its states are points (see Point). run()
// returns the language of the whole pattern.
class ContextLanguage : public LazyLanguage {
 public:
  ContextLanguage(RegexArena& arena, Pattern pattern, const Spelling& spelling,
                  std::vector<uint32_t> lookbehinds, bool boundary)
      : arena_(arena),
        pattern_(std::move(pattern)),
        plain_(arena, pattern_, spelling),
        spelling_(spelling),
        lookbehinds_(std::move(lookbehinds)),
        left_(arena, pattern_, lookbehinds_, boundary) {}

  RegexId run() {
    return language(add({PatternRest::kNode, false, pattern_.root, 0, 0, add({})}), left_.start(), 0);
  }

  RegexId unfold(RegexArena&, uint32_t state) override;

 private:
  // A state of the lazy language: what is left of the pattern (its number), and the left context (its
  // number).
  using Point = std::pair<uint32_t, uint32_t>;

  uint32_t add(const PatternRest& rest);
  uint32_t loop_after(const PatternRest& again);
  // Returns what is left of `rest` after one more character of the text.
  uint32_t read(uint32_t rest);
  RegexId point(uint32_t rest, uint32_t context);
  RegexId language(uint32_t rest, uint32_t context, int depth);
  RegexId node_language(const PatternRest& rest, uint32_t context, int depth);
  RegexId class_language(const CodepointSet& set, uint32_t next, uint32_t context, int depth);
  RegexId plain_language(const PatternRest& rest, uint32_t context, int depth);
  RegexId look_language(const PatternNode& n, const PatternRest& rest, uint32_t context, int depth);
  bool needs_start(uint32_t node);
  bool dead_later(uint32_t rest);
  bool holds_behind(uint32_t node, uint32_t context);
  bool nullable(uint32_t rest, uint32_t context);
  bool node_nullable(const PatternRest& rest, uint32_t context);

  RegexArena& arena_;
  const Pattern pattern_;
  PatternLowering plain_;
  const Spelling& spelling_;
  const std::vector<uint32_t> lookbehinds_;
  LeftContexts left_;
  std::vector<PatternRest> rests_;
  std::map<PatternRest, uint32_t> rest_index_;
  // By rest: true if nothing of the pattern must be read any more and no look-ahead is open.
  std::vector<bool> ends_;
  std::unordered_map<uint32_t, uint32_t> read_;
  std::vector<Point> points_;
  std::map<Point, uint32_t> point_index_;
  std::map<Point, RegexId> language_;
  std::map<Point, bool> nullable_;
  std::unordered_map<uint32_t, bool> dead_later_;
};

uint32_t ContextLanguage::add(const PatternRest& rest) {
  const uint32_t n = numbered(rest_index_, rests_, rest, PatternRest(rest));
  if (n == ends_.size())
    ends_.push_back(rest.kind == PatternRest::kEnd || (rest.kind != PatternRest::kAny && ends_[rest.next]));
  return n;
}

// Returns the rest with each iteration under way marked as not fresh, because a character was read.
uint32_t ContextLanguage::read(uint32_t rest) {
  check_depth();
  const PatternRest r = rests_[rest];
  if (r.kind == PatternRest::kEnd || r.kind == PatternRest::kAny) return rest;
  // An iteration that is not fresh has read a character, and so have the iterations around it. So nothing is
  // left to mark.
  if (r.kind == PatternRest::kAgain && !r.fresh) return rest;
  return remember(read_, rest, [&] {
    PatternRest out = r;
    out.fresh = false;
    out.next = read(r.next);
    return add(out);
  });
}

// Returns the loop that is left behind one iteration. An iteration that read nothing may be repeated up to
// the minimum, so the minimum is 0 behind it. If it is 0 already, such an iteration is dropped, because the
// loop would unfold into itself for ever.
uint32_t ContextLanguage::loop_after(const PatternRest& again) {
  PatternRest loop = again;
  loop.kind = PatternRest::kLoop;
  loop.fresh = false;
  loop.min = again.fresh || again.min == 0 ? 0 : again.min - 1;
  if (loop.max != kNoMaximum) --loop.max;
  return add(loop);
}

RegexId ContextLanguage::point(uint32_t rest, uint32_t context) {
  const uint32_t number = numbered(point_index_, points_, {rest, context}, Point(rest, context));
  if (points_.size() > kMaxPoints) assertions_too_complex("too many states");
  const bool body = ends_[rest] && &spelling_ == &arena_.spelling();
  return arena_.lazy(definition, number, nullable(rest, context), true, body);
}

// Returns the language of a point. A loop has two alternatives: one more iteration and, if the minimum is
// met, what stands behind the loop.
RegexId ContextLanguage::unfold(RegexArena&, uint32_t state) {
  const auto [id, context] = points_[state];
  const PatternRest r = rests_[id];
  if (r.kind != PatternRest::kLoop) return node_language(r, context, 1);
  const uint32_t again = add({PatternRest::kAgain, true, r.node, r.min, r.max, r.next});
  const RegexId more = language(add({PatternRest::kNode, false, r.node, 0, 0, again}), context, 1);
  return r.min == 0 ? arena_.alt(more, language(r.next, context, 1)) : more;
}

// Returns true if the node matches only at the start of the text.
bool ContextLanguage::needs_start(uint32_t node) {
  check_depth();
  const PatternNode& n = pattern_.nodes[node];
  if (!n.asserts) return false;
  const auto needs = [&](uint32_t k) { return needs_start(k); };
  switch (n.kind) {
    case PatternKind::kStart: return true;
    case PatternKind::kCat: return std::ranges::any_of(pattern_.kids_of(n), needs);
    case PatternKind::kAlt: return std::ranges::all_of(pattern_.kids_of(n), needs);
    case PatternKind::kRepeat: return n.min > 0 && needs_start(n.a);
    case PatternKind::kLookahead: return !n.negated && needs_start(n.a);
    default: return false;
  }
}

// Returns true if `rest` can match only at the start of the text, because it contains `^`. Without this test
// a search for emptiness would visit every state to find it out.
bool ContextLanguage::dead_later(uint32_t rest) {
  check_depth();
  const PatternRest r = rests_[rest];
  if (r.kind == PatternRest::kEnd || r.kind == PatternRest::kAny) return false;
  const bool read = r.kind == PatternRest::kNode || (r.kind == PatternRest::kLoop && r.min > 0);
  return remember(dead_later_, rest, [&] { return (read && needs_start(r.node)) || dead_later(r.next); });
}

// Returns the language of a rest in a left context. Nodes are lowered at once, down to kMaxEager levels; a
// loop always becomes a lazy node (point()).
RegexId ContextLanguage::language(uint32_t rest, uint32_t context, int depth) {
  check_depth();
  const PatternRest r = rests_[rest];
  if (!left_.at(context).start && dead_later(rest)) return RegexArena::empty();
  switch (r.kind) {
    case PatternRest::kEnd: return plain_.end();
    case PatternRest::kAny: return RegexArena::anything();
    case PatternRest::kLoop: return r.max == 0 ? language(r.next, context, depth) : point(rest, context);
    case PatternRest::kAgain:
      return r.fresh && r.min == 0 ? RegexArena::empty() : language(loop_after(r), context, depth);
    case PatternRest::kNode: break;
  }
  const Point key{rest, context};
  if (depth > kMaxEager && !language_.contains(key)) return point(rest, context);
  return remember(language_, key, [&] { return node_language(r, context, depth + 1); });
}

// Returns the language "one character of `set`, then `next`". It has one branch for each left context to
// which the characters lead.
RegexId ContextLanguage::class_language(const CodepointSet& set, uint32_t next, uint32_t context, int depth) {
  RegexId out = RegexArena::empty();
  const uint32_t rest = read(next);
  for (const auto& [to, part] : left_.split(context, set))
    out = arena_.alt(out, arena_.cat(plain_.set(part), language(rest, to, depth)));
  return out;
}

// Returns the language of a node without assertions. The left contexts must be trivial().
RegexId ContextLanguage::plain_language(const PatternRest& rest, uint32_t context, int depth) {
  const PatternNode& n = pattern_.nodes[rest.node];
  const RegexId body = plain_.plain(rest.node);
  const uint32_t later = left_.split(context, CodepointSet::all()).begin()->first;
  const RegexId tail = language(read(rest.next), later, depth);
  if (n.shortest > 0) return arena_.cat(body, tail);
  const RegexId some = arena_.minus(body, RegexArena::epsilon());
  return arena_.alt(arena_.cat(some, tail), language(rest.next, context, depth));
}

bool ContextLanguage::holds_behind(uint32_t node, uint32_t context) {
  for (std::size_t i = 0; i < lookbehinds_.size(); ++i)
    if (lookbehinds_[i] == node)
      return arena_.nullable(left_.at(context).behind[i]) != pattern_.nodes[node].negated;
  return false;
}

// Returns the language of a look-ahead or a \b, intersected with that of the rest. \b is read as a
// look-ahead: behind a word character no word character may follow; elsewhere one must.
RegexId ContextLanguage::look_language(const PatternNode& n, const PatternRest& rest, uint32_t context,
                                       int depth) {
  const RegexId next = language(rest.next, context, depth);
  RegexId ahead;
  bool negated = n.negated;
  if (n.kind == PatternKind::kBoundary) {
    ahead = arena_.cat(plain_.set(pattern_.word), RegexArena::anything());
    negated = negated != left_.at(context).word;
  } else {
    ahead = language(add({PatternRest::kNode, false, n.a, 0, 0, add({PatternRest::kAny, false, 0, 0, 0, 0})}),
                     context, depth);
  }
  return negated ? arena_.minus(next, ahead) : arena_.both(next, ahead);
}

// Recipe, regex feature 4, if it looks back: its language at a left context.
RegexId ContextLanguage::node_language(const PatternRest& rest, uint32_t context, int depth) {
  const PatternNode& n = pattern_.nodes[rest.node];
  if (n.kind == PatternKind::kEmpty) return language(rest.next, context, depth);
  if (!n.asserts && left_.trivial()) return plain_language(rest, context, depth);
  switch (n.kind) {
    case PatternKind::kChar: return class_language(CodepointSet::one(n.a), rest.next, context, depth);
    case PatternKind::kClass: return class_language(pattern_.sets[n.a], rest.next, context, depth);
    case PatternKind::kCat: {
      const auto kids = pattern_.kids_of(n);
      uint32_t next = rest.next;
      for (std::size_t i = kids.size(); i-- > 0;)
        next = add({PatternRest::kNode, false, kids[i], 0, 0, next});
      return language(next, context, depth);
    }
    case PatternKind::kAlt: {
      std::vector<RegexId> parts;
      for (uint32_t k : pattern_.kids_of(n))
        parts.push_back(language(add({PatternRest::kNode, false, k, 0, 0, rest.next}), context, depth));
      return arena_.alt(parts);
    }
    case PatternKind::kRepeat:
      return language(add({PatternRest::kLoop, false, n.a, n.min, n.max, rest.next}), context, depth);
    case PatternKind::kStart:
      return left_.at(context).start ? language(rest.next, context, depth) : RegexArena::empty();
    case PatternKind::kEnd: return arena_.both(language(rest.next, context, depth), plain_.end());
    case PatternKind::kLookbehind:
      return holds_behind(rest.node, context) ? language(rest.next, context, depth) : RegexArena::empty();
    default: return look_language(n, rest, context, depth);
  }
}

// Returns true if the rest matches the empty text in this context. The structure gives the answer, because a
// lazy node needs it when it is made, before its language is known.
bool ContextLanguage::nullable(uint32_t rest, uint32_t context) {
  check_depth();
  const PatternRest r = rests_[rest];
  switch (r.kind) {
    case PatternRest::kEnd: return spelling_.end < 0;
    case PatternRest::kAny: return true;
    case PatternRest::kLoop: {
      if (r.min == 0) return nullable(r.next, context);
      const uint32_t again = add({PatternRest::kAgain, true, r.node, r.min, r.max, r.next});
      return nullable(add({PatternRest::kNode, false, r.node, 0, 0, again}), context);
    }
    case PatternRest::kAgain: return !(r.fresh && r.min == 0) && nullable(loop_after(r), context);
    case PatternRest::kNode: break;
  }
  return remember(nullable_, {rest, context}, [&] { return node_nullable(r, context); });
}

bool ContextLanguage::node_nullable(const PatternRest& rest, uint32_t context) {
  const PatternNode& n = pattern_.nodes[rest.node];
  const auto next = [&] { return nullable(rest.next, context); };
  switch (n.kind) {
    case PatternKind::kChar:
    case PatternKind::kClass: return false;
    case PatternKind::kEmpty: return next();
    case PatternKind::kCat: {
      const auto kids = pattern_.kids_of(n);
      uint32_t all = rest.next;
      for (std::size_t i = kids.size(); i-- > 0;) all = add({PatternRest::kNode, false, kids[i], 0, 0, all});
      return nullable(all, context);
    }
    case PatternKind::kAlt: {
      for (uint32_t k : pattern_.kids_of(n))
        if (nullable(add({PatternRest::kNode, false, k, 0, 0, rest.next}), context)) return true;
      return false;
    }
    case PatternKind::kRepeat:
      return nullable(add({PatternRest::kLoop, false, n.a, n.min, n.max, rest.next}), context);
    case PatternKind::kStart: return left_.at(context).start && next();
    case PatternKind::kEnd: return spelling_.end < 0 && next();
    case PatternKind::kBoundary: return n.negated != left_.at(context).word && next();
    case PatternKind::kLookbehind: return holds_behind(rest.node, context) && next();
    case PatternKind::kLookahead: {
      const uint32_t body =
          add({PatternRest::kNode, false, n.a, 0, 0, add({PatternRest::kAny, false, 0, 0, 0, 0})});
      return next() && nullable(body, context) != n.negated;
    }
  }
  return false;
}

}  // namespace

RegexId lower_with_context(RegexArena& arena, const Pattern& pattern, Match match, const Spelling& spelling) {
  check_depth();
  Pattern whole = pattern;
  look_ahead_outside(whole);
  if (match == Match::kSearch) {
    const uint32_t any = whole.add_repeat(whole.add_class(CodepointSet::all()), 0, kNoMaximum);
    const uint32_t parts[] = {any, whole.root, any};
    whole.root = whole.add_cat(parts);
  }
  std::vector<uint32_t> lookbehinds;
  bool boundary = false;
  reached(whole.nodes.size(), {whole.root}, [&](uint32_t node, auto&& go) {
    const PatternNode& n = whole.nodes[node];
    boundary = boundary || n.kind == PatternKind::kBoundary;
    // A look-behind inside another one is part of the outer one's automaton already.
    if (n.kind == PatternKind::kLookbehind)
      lookbehinds.push_back(node);
    else if (n.asserts)
      for (uint32_t k : children(whole, node)) go(k);
  });
  return arena.define<ContextLanguage>(arena, std::move(whole), spelling, std::move(lookbehinds), boundary)
      .run();
}

}  // namespace structgen
