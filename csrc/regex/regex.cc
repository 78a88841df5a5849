// How nodes of the regex algebra are made. Their derivatives are in derivatives.cc, questions about whole
// languages in search.cc.
//
// The problem. A mask needs the bytes that may come next in a regex, and the rest of the regex after
// each. The regexes have intersections (`pattern` beside `maxLength`), complements (`not`, any key but
// these) and counters of thousands. An automaton that is built in advance may be too large, and most of
// it would never be used.
//
// The idea. The derivative of r by a byte b is the language of the texts that may follow b in r. It is
// a regex again; it goes through &, | and ~ part by part; and it is made when a text first gets there
// (Brzozowski 1964). Nodes are hash-consed, so a derivative that was met before has the same id, and
// the nodes are the states of a lazy automaton.
//
//     r = x{0,3} y                     one node for the counter, whatever its maximum is
//     next(r, 'x') = x{0,2} y          cat(next(x{0,3}, 'x'), y); next() of the counter lowers its numbers
//     next(r, 'y') = epsilon           x{0,3} is nullable, so y may begin: "y" is a text of r
//     next(r & ~(x y), 'x') = x{0,2} y & ~y
//     and by 'y' again = epsilon & ~epsilon = empty, found by both() without a search: "xy" is refused
//
// Invariants.
// - Ids 0 to 3 are empty(), epsilon(), anything() and poison().
// - The kids of | and & are flat, sorted and distinct, with at most one set of bytes among them. cat()
//   nests to the right. Regexes that these rules make equal have one id; other equal languages may have
//   several.
// - A node never changes, except for what is computed on first use (classes, next, live, emptiness).
// - next(r, b) is empty() exactly if no text goes on with b. Nodes with & or ~ (`boolean`) need a
//   search for that. The slot of `next` is filled before the search, because the search may come back
//   to it, and cleared if the search throws.
// - The rules for texts of the arena's spelling (all_bodies, join_runs, c{m,n} any* = c{m} any*) hold
//   from the first node on. What they ask of a node (character, body()) is read off its structure, so
//   the same calls make the same nodes, whatever was made before. This is why character() is a node of
//   its own: the bytes a to z are the characters a to z in one place, and the middle of something else
//   in another.
//
// Costs. A constructor sorts its kids and looks once into a hash table. A known next() is one read of
// an array. A new one derives each part once per class of bytes. Recursion is as deep as `height`, at
// most kMaxHeight.
//
// Rejected.
// - Copies for counters: x{0,5000} would be 5000 nodes, and each derivative another 5000.
// - Multiplying & over | out everywhere: exponential. It is done for nested languages of look-arounds
//   alone (distributed), which would otherwise have a new state for each character.
// - Derivatives for `live` of languages without & and ~: their first bytes are read off the structure
//   (first_bytes), which makes no node for ways that no text goes.
#include "regex/regex.h"

#include <algorithm>
#include <array>

#include "base/depth.h"
#include "base/error.h"
#include "base/sorted.h"
#include "base/work.h"

namespace structgen {

namespace {
// A union or intersection of more kids than this is refused.
constexpr uint32_t kMaxKids = 50'000;
// distributed() multiplies out a lazy union of this height or more.
constexpr uint16_t kNested = 8;
// The bytes are counted again after this many new nodes, because counting visits all caches.
constexpr uint32_t kLook = 512;
// A derivative recurses at most this deep. A higher node is refused when it is made.
constexpr uint16_t kMaxHeight = 4'000;

uint32_t add_counts(uint32_t a, uint32_t b) {
  return a == kUnbounded || b == kUnbounded || a + b < a ? kUnbounded : a + b;
}
}  // namespace

RegexArena::RegexArena(const Spelling& spelling, bool omits)
    : spelling_(spelling), effort_(omits), tables_(spelling.literals) {
  nodes_.emplace_back();  // empty
  nodes_[0].finite = true;
  nodes_[0].after = RegexNode::kEvery;
  RegexNode eps;
  eps.inside = RegexNode::kText;
  eps.after = 0;
  eps.finite = true;
  eps.kind = RegexKind::kEpsilon;
  eps.nullable = true;
  nodes_.emplace_back(eps);
  RegexNode any;
  any.kind = RegexKind::kAnything;
  any.nullable = true;
  any.after = RegexNode::kEvery;
  nodes_.emplace_back(any);
  RegexNode poison;
  poison.kind = RegexKind::kPoison;
  nodes_.emplace_back(poison);
  if (spelling.end < 0) return;
  end_ = byte(static_cast<uint8_t>(spelling.end));
  nodes_[end_.v].inside = RegexNode::kBody;
  nodes_[end_.v].after = 0;
  any_character_ = spelling.characters(*this, CodepointSet::all());
}

std::size_t RegexArena::byte_size() const {
  std::size_t cached = 0;
  for (const auto& [type, cache] : caches_) cached += cache->byte_size();
  return nodes_.byte_size() + index_.byte_size() + pool_.byte_size() + sets_.byte_size() +
         sets_of_literals_.byte_size() + tables_.byte_size() + class_maps_.byte_size() +
         least_lengths_.byte_size() + set_index_.byte_size() + literals_index_.byte_size() +
         escapes_.byte_size() + unfolded_.byte_size() + lifted_.byte_size() + lazies_.size() * 64 + cached;
}

RegexId RegexArena::add(RegexNode node, std::span<const uint32_t> kids, std::string_view text) {
  uint64_t h = static_cast<uint64_t>(node.kind) + 1;
  h = mix(mix(mix(mix(h, node.a), node.b), node.min), node.max + node.character);
  h = hash_words(kids, h);
  if (!text.empty()) h = hash_bytes(text.data(), text.size(), h);
  const uint32_t id = index_.find_or_add(
      h,
      [&](uint32_t i) {
        const RegexNode& o = nodes_[i];
        return o.kind == node.kind && o.character == node.character && o.a == node.a && o.b == node.b &&
               o.min == node.min && o.max == node.max && o.n == kids.size() + text.size() &&
               std::equal(kids.begin(), kids.end(), o.kids) &&
               (text.empty() || std::memcmp(o.text, text.data(), text.size()) == 0);
      },
      [&] { return append(node, kids, text); });
  return RegexId{id};
}

uint32_t RegexArena::append(RegexNode& node, std::span<const uint32_t> kids, std::string_view text) {
  charge(1 + static_cast<int64_t>(kids.size() / 8));
  // If counting throws out_of_memory(), next_look_ stays as it is, so the next node counts and throws again.
  if (nodes_.size() >= next_look_) {
    if (byte_size() > most_) out_of_memory(most_);
    next_look_ = nodes_.size() + kLook;
  }
  if (!kids.empty()) {
    node.kids = pool_.copy(kids).data();
    node.n = static_cast<uint32_t>(kids.size());
  }
  if (!text.empty()) {
    node.text = pool_.copy(std::span<const char>(text.data(), text.size())).data();
    node.n = static_cast<uint32_t>(text.size());
  }
  if (node.height > kMaxHeight) too_complex("a pattern nests too deeply");
  node.shortest = structural_length(node, kids, text.size());
  if (end_ != empty()) shape(node, kids);
  return nodes_.emplace_back(node);
}

// Computes `inside` and `after` of a node from those of its kids. In JSON's spelling [a-z]{0,5} is kText with
// after 0. With a closing quote behind it, it is kBody with after 0. The derivative of a three-byte character
// by its first byte is kTail with after 2. With a text and a closing quote behind it, it is kBody with after
// 2.
void RegexArena::shape(RegexNode& n, std::span<const uint32_t> kids) const {
  constexpr uint8_t kEvery = RegexNode::kEvery, kBroken = RegexNode::kBroken;
  const auto set = [&](RegexNode::Inside inside, uint8_t after) {
    n.inside = inside;
    n.after = after;
  };
  if (n.character) return set(RegexNode::kText, 0);
  switch (n.kind) {
    // The terminator alone is the body of the empty text. Continuation bytes are a tail. Any other set shows
    // nothing.
    case RegexKind::kBytes: {
      static const ByteSet kContinuation = ByteSet::range(0x80, 0xBF);
      const ByteSet& bytes = sets_[n.a];
      if (bytes == sets_[nodes_[end_.v].a]) return set(RegexNode::kBody, 0);
      if ((bytes & ~kContinuation).none()) return set(RegexNode::kTail, 1);
      return;
    }
    case RegexKind::kLiteralSet: {
      const LiteralSet& s = sets_of_literals_[n.a];
      return set(RegexNode::kBody, s.escape == 0 ? tables_.inside_character(s) : kBroken);
    }
    case RegexKind::kRepeat:
      if (nodes_[n.a].inside == RegexNode::kText && nodes_[n.a].after == 0) set(RegexNode::kText, 0);
      return;
    case RegexKind::kNot:
      if (nodes_[n.a].inside != RegexNode::kTail) n.after = nodes_[n.a].after;
      return;
    case RegexKind::kCat: {
      const RegexNode &x = nodes_[n.a], &y = nodes_[n.b];
      if (x.inside == RegexNode::kTail) {
        if (y.after == kBroken) return;
        const int after = x.after + (y.after == kEvery ? 0 : y.after);
        if (after < 4) set(y.inside, static_cast<uint8_t>(after));
      } else if (x.inside == RegexNode::kText && x.after != kBroken && (y.after == 0 || y.after == kEvery) &&
                 y.inside != RegexNode::kTail) {
        set(y.inside, x.after);
      }
      return;
    }
    case RegexKind::kAlt:
    // The kids must agree on `after`. Where they differ in `inside`, an intersection takes the narrowest, a
    // union takes kOther.
    case RegexKind::kAnd: {
      const bool all = n.kind == RegexKind::kAlt;
      bool same = true, tails = false, body = false, text = false;
      uint8_t after = kEvery;
      for (const uint32_t k : kids) {
        const RegexNode& kid = nodes_[k];
        same = same && kid.inside == nodes_[kids[0]].inside;
        tails = tails || kid.inside == RegexNode::kTail;
        body = body || kid.inside == RegexNode::kBody;
        text = text || kid.inside == RegexNode::kText;
        if (kid.after == kEvery || kid.after == after) continue;
        after = after == kEvery ? kid.after : kBroken;
      }
      if (same)
        set(nodes_[kids[0]].inside, after);
      else if (!tails)
        set(all    ? RegexNode::kOther
            : body ? RegexNode::kBody
            : text ? RegexNode::kText
                   : RegexNode::kOther,
            after);
      return;
    }
    default: return;
  }
}

// Computes `shortest` of a node. It is exact for literals and sequences; for intersections it is an estimate.
uint32_t RegexArena::structural_length(const RegexNode& n, std::span<const uint32_t> kids,
                                       std::size_t text) const {
  constexpr uint64_t kMany = 1u << 30;
  const auto of = [&](uint32_t id) { return static_cast<uint64_t>(nodes_[id].shortest); };
  uint64_t out = 0;
  switch (n.kind) {
    case RegexKind::kBytes: out = 1; break;
    case RegexKind::kLiteral: out = text; break;
    case RegexKind::kLiteralSet: {
      const LiteralSet& s = sets_of_literals_[n.a];
      out = tables_.table(s.table).texts[s.lo].size() - s.depth + 1;
      break;
    }
    case RegexKind::kCat: out = of(n.a) + of(n.b); break;
    case RegexKind::kRepeat: out = of(n.a) * n.min; break;
    case RegexKind::kAlt:
      out = kMany;
      for (uint32_t k : kids) out = std::min(out, of(k));
      break;
    case RegexKind::kAnd:
      // An intersection gets the sum of its kids and not their maximum, so that a search sees the progress in
      // each kid.
      for (uint32_t k : kids) out += of(k);
      break;
    default: break;
  }
  return static_cast<uint32_t>(std::min(out, kMany));
}

RegexId RegexArena::bytes(const ByteSet& set) { return bytes(set, false); }

// Returns the node of a set of bytes. With `character` it is marked as RegexNode::character, and is another
// node.
RegexId RegexArena::bytes(const ByteSet& set, bool character) {
  if (set.none()) return empty();
  uint64_t h = 11;
  for (uint64_t w : set.w) h = mix(h, w);
  RegexNode n;
  n.kind = RegexKind::kBytes;
  n.finite = true;
  n.character = character;
  n.a = set_index_.find_or_add(
      h, [&](uint32_t i) { return sets_[i] == set; }, [&] { return sets_.emplace_back(set); });
  return add(n, {}, {});
}

RegexId RegexArena::character(RegexId r) {
  RegexNode n = nodes_[r.v];
  if (n.character || r == empty()) return r;
  n.character = true;
  n.classes = nullptr;
  n.next = nullptr;
  n.live = nullptr;
  const std::vector<uint32_t> kids(n.kids, n.kids + (n.kids ? n.n : 0));
  const std::string text(n.text, n.text ? n.n : 0);
  n.kids = nullptr;
  n.text = nullptr;
  n.n = 0;
  return add(n, kids, text);
}

RegexId RegexArena::literal(std::string_view text) {
  if (text.empty()) return epsilon();
  // A derivative of a literal stores a literal that is one byte shorter, so a long text becomes a chain of
  // short literals.
  RegexId out = epsilon();
  std::size_t end = text.size();
  while (end > 0) {
    const std::size_t size = end % kLiteralMax == 0 ? kLiteralMax : end % kLiteralMax;
    RegexNode n;
    n.kind = RegexKind::kLiteral;
    n.finite = true;
    const RegexId piece = add(n, {}, text.substr(end - size, size));
    out = cat(piece, out);
    end -= size;
  }
  return out;
}

// An empty bitset means all strings, which a LiteralSet writes as subset 0.
RegexId RegexArena::literal_set(uint32_t table, std::span<const uint64_t> subset, bool labelled) {
  LiteralSet s;
  s.table = table;
  s.hi = static_cast<uint32_t>(tables_.table(table).texts.size());
  s.subset = subset.empty() ? 0 : tables_.add_subset(subset);
  s.labelled = labelled;
  if (!tables_.normalise(s)) return empty();
  return literal_set_node(s);
}

RegexId RegexArena::restricted_set(RegexId set, std::span<const uint64_t> subset, bool labelled) {
  LiteralSet s = sets_of_literals_[nodes_[set.v].a];
  std::vector<uint64_t> both(subset.begin(), subset.end());
  for (uint32_t i = s.lo; i < s.hi; ++i)
    if (!tables_.any_allowed(s.subset, i, i + 1)) both[i >> 6] &= ~(1ull << (i & 63));
  s.subset = tables_.add_subset(both);
  s.labelled = labelled;
  return tables_.normalise(s) ? literal_set_node(s) : empty();
}

RegexId RegexArena::with_labels(RegexId set, std::span<const uint32_t> labels, bool labelled) {
  const LiteralSet& s = sets_of_literals_[nodes_[set.v].a];
  const LiteralTable& table = tables_.table(s.table);
  std::vector<uint64_t> bits((table.texts.size() + 63) / 64, 0);
  for (uint32_t i = s.lo; i < s.hi; ++i)
    if (std::ranges::binary_search(labels, table.labels[i])) bits[i >> 6] |= 1ull << (i & 63);
  return restricted_set(set, bits, labelled);
}

RegexId RegexArena::literal_set_node(const LiteralSet& s) {
  uint64_t h = mix(mix(mix(mix(mix(s.table, s.subset), s.lo), s.hi), s.depth), s.escape * 2ull + s.labelled);
  return RegexId{literals_index_.find_or_add(
      h, [&](uint32_t i) { return sets_of_literals_[nodes_[i].a] == s; },
      [&] {
        RegexNode n;
        n.kind = RegexKind::kLiteralSet;
        n.finite = true;
        n.labelled = s.labelled;
        n.a = sets_of_literals_.emplace_back(s);
        return append(n, {}, {});
      })};
}

// Returns the derivative of a literal set. At the end of a text of a labelled set the derivative is a kDone
// with the label.
RegexId RegexArena::derive_literal_set(RegexId r, uint8_t b) {
  LiteralSet s = sets_of_literals_[nodes_[r.v].a];
  bool done;
  if (!tables_.step(s, b, done)) return empty();
  if (!done) return literal_set_node(s);
  return s.labelled ? this->done(tables_.table(s.table).labels[s.lo]) : epsilon();
}

RegexId RegexArena::done(uint32_t label) {
  RegexNode n;
  n.kind = RegexKind::kDone;
  n.finite = true;
  n.nullable = true;
  n.labelled = true;
  n.min = label;
  return add(n, {}, {});
}

RegexId RegexArena::lazy(uint32_t definition, uint32_t state, bool nullable, bool maybe_empty, bool body,
                         bool labelled) {
  RegexNode n;
  n.kind = RegexKind::kLazy;
  n.nullable = nullable;
  n.boolean = true;
  n.lazy = maybe_empty;
  n.labelled = labelled;
  n.height = 1;
  n.a = definition;
  n.min = state;
  if (body) {
    n.inside = RegexNode::kBody;
    n.after = 0;
  }
  const RegexId r = add(n, {}, {});
  if (!maybe_empty) nodes_[r.v].emptiness = 2;
  return r;
}

// Returns "a, then b". The rules below see to it that two spellings of one language become one node.
RegexId RegexArena::cat(RegexId a, RegexId b) {
  check_depth();
  if (a == empty() || b == empty()) return empty();
  if (a == epsilon()) return b;
  if (b == epsilon()) return a;
  const RegexNode x = nodes_[a.v];
  // (xy)z becomes x(yz). It is a loop, because a recursion would be as deep as the text is long.
  if (x.kind == RegexKind::kCat) {
    std::vector<RegexId> spine;
    for (; nodes_[a.v].kind == RegexKind::kCat; a = RegexId{nodes_[a.v].b})
      spine.push_back(RegexId{nodes_[a.v].a});
    charge(1 + static_cast<int64_t>(spine.size() / 2));
    b = cat(a, b);
    while (!spine.empty()) {
      b = cat(spine.back(), b);
      spine.pop_back();
    }
    return b;
  }
  // x{m,n} x{p,q} t becomes x{m+p,n+q} t. The derivatives of x{2,5} x* then keep a single counter.
  const Counter front = counter(a), back = counter(b);
  if (front.element == back.element && (front.counted || back.counted))
    return cat(repeat(front.element, add_counts(front.min, back.min), add_counts(front.max, back.max)),
               back.tail);
  if (a == anything() && b == anything()) return a;
  // c{m,n} any* t becomes c{m} any* t for a character c, because any* also reads what c{m,n} reads beyond m.
  // Patterns that may match anywhere in a text have many such sequences.
  if (front.max > front.min && nodes_[front.element.v].character && back.star() &&
      back.element == any_character_)
    return cat(repeat(front.element, front.min, front.min), b);
  const RegexNode& y = nodes_[b.v];
  RegexNode n;
  n.kind = RegexKind::kCat;
  n.nullable = x.nullable && y.nullable;
  n.boolean = x.boolean || y.boolean;
  n.lazy = x.lazy || y.lazy;
  n.labelled = x.labelled || y.labelled;
  n.finite = x.finite && y.finite;
  n.height = static_cast<uint16_t>(1 + (x.nullable ? std::max(x.height, y.height) : x.height));
  n.a = a.v;
  n.b = b.v;
  return add(n, {}, {});
}

RegexId RegexArena::cat(std::span<const RegexId> parts) {
  RegexId out = epsilon();
  for (std::size_t i = parts.size(); i-- > 0;) out = cat(parts[i], out);
  return out;
}

RegexArena::Counter RegexArena::counter(RegexId r) const {
  Counter out;
  const RegexNode* n = &nodes_[r.v];
  if (n->kind == RegexKind::kCat) {
    out.tail = RegexId{n->b};
    r = RegexId{n->a};
    n = &nodes_[r.v];
  }
  out.element = r;
  out.counted = n->kind == RegexKind::kRepeat;
  if (!out.counted) return out;
  out.element = RegexId{n->a};
  out.min = n->min;
  out.max = n->max;
  return out;
}

// Joins kids that count the same element in adjacent or overlapping ranges: x{1,3}t | x{2,9}t becomes
// x{1,9}t. Without this rule the derivative of x{0,9}x{0,9} would grow with every character.
bool RegexArena::merge_repeats(std::vector<uint32_t>& kids) {
  struct Part {
    Counter of;
    uint32_t id;
    bool joins(const Part& o) const { return of.element == o.of.element && of.tail == o.of.tail; }
  };
  std::vector<Part> parts;
  for (uint32_t id : kids)
    if (const Counter c = counter(RegexId{id}); c.counted) parts.push_back({c, id});
  if (parts.size() < 2) return false;
  charge(1 + static_cast<int64_t>(parts.size()));
  std::sort(parts.begin(), parts.end(), [](const Part& x, const Part& y) {
    return std::tie(x.of.element, x.of.tail, x.of.min) < std::tie(y.of.element, y.of.tail, y.of.min);
  });
  std::vector<uint32_t> gone, made;
  for (std::size_t i = 0; i < parts.size();) {
    Counter joined = parts[i].of;
    std::size_t j = i + 1;
    for (; j < parts.size() && parts[j].joins(parts[i]) && parts[j].of.min <= add_counts(joined.max, 1); ++j)
      joined.max = std::max(joined.max, parts[j].of.max);
    if (j > i + 1) {
      for (std::size_t k = i; k < j; ++k) gone.push_back(parts[k].id);
      made.push_back(cat(repeat(joined.element, joined.min, joined.max), joined.tail).v);
    }
    i = j;
  }
  std::sort(gone.begin(), gone.end());
  std::erase_if(kids, [&](uint32_t k) { return std::binary_search(gone.begin(), gone.end(), k); });
  kids.insert(kids.end(), made.begin(), made.end());
  return !made.empty();
}

RegexId RegexArena::alt(RegexId a, RegexId b) {
  if (a == b || b == empty()) return a;
  if (a == empty()) return b;
  const std::array<RegexId, 2> parts{a, b};
  return alt(std::span<const RegexId>(parts));
}

// Returns the sorted kids of a union or an intersection of `parts`. Unions within unions, or intersections
// within intersections, are replaced by their kids. All sets of bytes become one set.
std::vector<uint32_t> RegexArena::flattened(RegexKind kind, std::span<const RegexId> parts) {
  const bool either = kind == RegexKind::kAlt;
  std::vector<uint32_t> kids;
  ByteSet set = either ? ByteSet{} : ByteSet::all();
  bool has_set = false, characters = true;
  const auto take = [&](uint32_t id) {
    const RegexNode& n = nodes_[id];
    if (n.kind == RegexKind::kBytes) {
      set = either ? set | sets_[n.a] : set & sets_[n.a];
      has_set = true;
      characters = characters && n.character;
    } else if (n.kind != (either ? RegexKind::kEmpty : RegexKind::kAnything)) {
      kids.push_back(id);
    }
  };
  for (RegexId p : parts) {
    const RegexNode& n = nodes_[p.v];
    if (n.kind == kind && !(either && n.character))
      for (uint32_t i = 0; i < n.n; ++i) take(n.kids[i]);
    else
      take(p.v);
  }
  if (has_set) kids.push_back(bytes(set, characters).v);
  charge(1 + static_cast<int64_t>(kids.size() / 2));  // sorted, looked at, hashed
  sort_unique(kids);
  return kids;
}

// Returns the union. Kids that a rule below shows to lie within another kid are dropped.
RegexId RegexArena::alt(std::span<const RegexId> parts) {
  check_depth();
  if (std::ranges::find(parts, anything()) != parts.end()) return anything();
  std::vector<uint32_t> kids = flattened(RegexKind::kAlt, parts);
  const auto nullable = [&](uint32_t k) { return nodes_[k].nullable && k != epsilon().v; };
  if (std::ranges::any_of(kids, nullable)) std::erase(kids, epsilon().v);
  // Beside a kid that has every text, kids that have only texts change nothing. A labelled kid stays, because
  // its label would be lost.
  if (const auto at = std::ranges::find_if(kids, [&](uint32_t k) { return all_bodies(RegexId{k}); });
      at != kids.end())
    std::erase_if(kids, [&, all = *at](uint32_t k) {
      return k != all && nodes_[k].body() == 1 && !nodes_[k].labelled;
    });
  if (kids.size() > 1 && merge_repeats(kids)) {
    std::vector<RegexId> again;
    for (uint32_t k : kids) again.push_back(RegexId{k});
    return alt(std::span<const RegexId>(again));
  }
  absorb(RegexKind::kAnd, kids);
  return nary(RegexKind::kAlt, kids);
}

// Drops each kid, of the given kind, that has another kid as its operand: x | (x & y) is x, and x & (x | y)
// is x. Without this rule the states of a look-ahead in a loop would nest without end.
void RegexArena::absorb(RegexKind kind, std::vector<uint32_t>& kids) {
  // Comparing takes quadratic time, so a longer list stays as it is.
  constexpr std::size_t kMost = 64;
  if (kids.size() < 2 || kids.size() > kMost) return;
  const auto held = [&](uint32_t k) {
    const RegexNode& n = nodes_[k];
    if (n.kind != kind) return false;
    for (uint32_t i = 0; i < n.n; ++i)
      if (std::binary_search(kids.begin(), kids.end(), n.kids[i])) return true;
    return false;
  };
  if (std::none_of(kids.begin(), kids.end(), held)) return;
  std::vector<uint32_t> kept;
  for (uint32_t k : kids)
    if (!held(k)) kept.push_back(k);
  kids = std::move(kept);
}

RegexId RegexArena::both(RegexId a, RegexId b) {
  if (a == b || b == anything()) return a;
  if (a == anything()) return b;
  const std::array<RegexId, 2> parts{a, b};
  return both(std::span<const RegexId>(parts));
}

// Returns the intersection. If a rule below shows that it is empty, this is empty(); in other cases
// is_empty() has to search.
RegexId RegexArena::both(std::span<const RegexId> parts) {
  if (std::ranges::find(parts, empty()) != parts.end()) return empty();
  std::vector<uint32_t> kids = flattened(RegexKind::kAnd, parts);
  for (uint32_t k : kids) {
    const RegexNode& n = nodes_[k];
    if (n.kind == RegexKind::kEmpty) return empty();
    if (n.kind == RegexKind::kNot && std::binary_search(kids.begin(), kids.end(), n.a)) return empty();
    // `~(any body)` and a language of bodies have no string in common. This arises when a schema denies
    // "contains x" and x has been read.
    if (n.kind == RegexKind::kNot && all_bodies(RegexId{n.a}) &&
        std::ranges::any_of(kids, [&](uint32_t other) { return nodes_[other].body() == 1; }))
      return empty();
    if (n.kind == RegexKind::kEpsilon) {
      for (uint32_t other : kids)
        if (!nodes_[other].nullable) return empty();
      return epsilon();
    }
  }
  if (!join_runs(kids)) return empty();
  absorb(RegexKind::kAlt, kids);
  if (const RegexId flat = distributed(kids); flat != poison()) return flat;
  return nary(RegexKind::kAnd, kids);
}

bool RegexArena::all_bodies(RegexId r) const {
  const Counter c = counter(r);
  return c.star() && c.element == any_character_ && end_ != empty() && c.tail == end_;
}

// Joins runs of characters: c{m,n} end & any{p,q} end becomes c{max(m,p),min(n,q)} end. All states share the
// row of one run as their mask (mask/runs.h). Returns false if no text is left.
bool RegexArena::join_runs(std::vector<uint32_t>& kids) {
  if (end_ == empty() || kids.size() < 2) return true;
  // This is done only if all kids are runs. Beside other kids the runs stay apart, because many intersections
  // share them.
  Counter out;
  for (std::size_t i = 0; i < kids.size(); ++i) {
    const Counter r = counter(RegexId{kids[i]});
    if (!r.counted || r.tail != end_ || !nodes_[r.element.v].character) return true;
    if (i == 0) {
      out = r;
      continue;
    }
    if (r.element != out.element && r.element != any_character_ && out.element != any_character_) return true;
    if (out.element == any_character_) out.element = r.element;
    out.min = std::max(out.min, r.min);
    out.max = std::min(out.max, r.max);
  }
  if (out.min > out.max) return false;
  kids = {cat(repeat(out.element, out.min, out.max), end_).v};
  return true;
}

// Multiplies x & (y | z) out to (x & y) | (x & z) if the union is lazy (it comes from look-aheads) and
// already deep. Otherwise each character would make it deeper, while flat terms are finitely many. Returns
// poison() if it changed nothing.
RegexId RegexArena::distributed(const std::vector<uint32_t>& kids) {
  check_depth();
  for (std::size_t i = 0; i < kids.size(); ++i) {
    const RegexNode n = nodes_[kids[i]];
    if (n.kind != RegexKind::kAlt || !n.lazy || !n.boolean || n.height < kNested) continue;
    std::vector<RegexId> terms;
    for (uint32_t k = 0; k < n.n; ++k) {
      std::vector<RegexId> term{RegexId{n.kids[k]}};
      for (std::size_t j = 0; j < kids.size(); ++j)
        if (j != i) term.push_back(RegexId{kids[j]});
      terms.push_back(both(std::span<const RegexId>(term)));
    }
    return alt(std::span<const RegexId>(terms));
  }
  return poison();
}

// Returns the union or intersection of kids in normal form, with flags that follow from the kids' flags.
RegexId RegexArena::nary(RegexKind kind, std::vector<uint32_t>& kids) {
  if (kids.empty()) return kind == RegexKind::kAlt ? empty() : anything();
  if (kids.size() == 1) return RegexId{kids[0]};
  if (kids.size() > kMaxKids) too_complex("a pattern has too many alternatives at one place");
  charge(static_cast<int64_t>(kids.size() / 4));
  RegexNode n;
  n.kind = kind;
  n.nullable = kind == RegexKind::kAnd;
  n.boolean = kind == RegexKind::kAnd;
  n.finite = kind == RegexKind::kAlt;
  for (uint32_t k : kids) {
    const RegexNode& c = nodes_[k];
    n.nullable = kind == RegexKind::kAlt ? n.nullable || c.nullable : n.nullable && c.nullable;
    n.boolean = n.boolean || c.boolean;
    n.lazy = n.lazy || c.lazy;
    n.labelled = n.labelled || c.labelled;
    n.finite = kind == RegexKind::kAlt ? n.finite && c.finite : n.finite || c.finite;
    n.height = std::max<uint16_t>(n.height, static_cast<uint16_t>(c.height + 1));
  }
  return add(n, kids, {});
}

RegexId RegexArena::negate(RegexId a) {
  if (a == empty()) return anything();
  if (a == anything()) return empty();
  const RegexNode x = nodes_[a.v];
  if (x.kind == RegexKind::kNot) return RegexId{x.a};
  if (x.negation) return RegexId{x.negation};
  RegexNode n;
  n.kind = RegexKind::kNot;
  n.nullable = !x.nullable;
  n.boolean = true;
  n.lazy = x.lazy;
  n.height = static_cast<uint16_t>(x.height + 1);
  n.a = a.v;
  return RegexId{nodes_[a.v].negation = append(n, {}, {})};
}

// Returns a{min,max}. If `a` matches the empty text, the minimum becomes 0. Repetitions of x* or x? become
// one star: (x*){2,5} and (x?)* are x*.
RegexId RegexArena::repeat(RegexId a, uint32_t min, uint32_t max) {
  check_depth();
  if (max == 0 || a == epsilon()) return epsilon();
  if (a == empty()) return min == 0 ? epsilon() : empty();
  if (min == 1 && max == 1) return a;
  const RegexNode x = nodes_[a.v];
  if (x.nullable) min = 0;
  if (a == anything()) return a;
  if (x.kind == RegexKind::kRepeat && x.min <= 1 && x.max == kUnbounded &&
      (x.min == 0 || min >= 1 || x.nullable))
    return repeat(RegexId{x.a}, x.min == 0 ? 0 : min, kUnbounded);
  if (x.kind == RegexKind::kRepeat && x.min == 0 && x.max == 1) return repeat(RegexId{x.a}, 0, max);
  RegexNode n;
  n.kind = RegexKind::kRepeat;
  n.nullable = min == 0;
  n.boolean = x.boolean;
  n.lazy = x.lazy;
  n.labelled = x.labelled;
  n.finite = x.finite && max != kUnbounded;
  n.height = static_cast<uint16_t>(x.height + 1);
  n.a = a.v;
  n.min = min;
  n.max = max;
  return add(n, {}, {});
}

// Computes the classes of a node from those of its kids. Two bytes share a class if every kid that can read
// the first byte treats them alike.
const ClassMap* RegexArena::compute_classes(RegexId r) {
  check_depth();
  const RegexNode& n = nodes_[r.v];
  switch (n.kind) {
    case RegexKind::kEmpty:
    case RegexKind::kEpsilon:
    case RegexKind::kAnything:
    case RegexKind::kPoison:
    case RegexKind::kDone: return class_maps_.one();
    case RegexKind::kBytes: return class_maps_.of_set(sets_[n.a]);
    case RegexKind::kLiteral: return class_maps_.of_byte(static_cast<uint8_t>(n.text[0]));
    case RegexKind::kLiteralSet: return class_maps_.each(first_bytes(r));
    case RegexKind::kLazy: return &classes(unfolded(r));
    case RegexKind::kNot:
    case RegexKind::kRepeat: return &classes(RegexId{n.a});
    case RegexKind::kCat: {
      const ClassMap* c = &classes(RegexId{n.a});
      return nodes_[n.a].nullable ? class_maps_.product(c, &classes(RegexId{n.b})) : c;
    }
    case RegexKind::kAlt:
    case RegexKind::kAnd: {
      const ClassMap* c = class_maps_.one();
      for (uint32_t i = 0; i < n.n; ++i) c = class_maps_.product(c, &classes(RegexId{n.kids[i]}));
      return c;
    }
  }
  return class_maps_.one();
}

const ClassMap& RegexArena::classes(RegexId r) {
  if (!nodes_[r.v].classes) {
    const ClassMap* c = compute_classes(r);
    nodes_[r.v].classes = c;
  }
  return *nodes_[r.v].classes;
}

RegexId RegexArena::unfolded(RegexId r) {
  const RegexNode& n = nodes_[r.v];
  return unfolded_.remember(r.v, [&] { return lazies_[n.a]->unfold(*this, n.min); });
}

}  // namespace structgen
