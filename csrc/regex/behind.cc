#include "regex/behind.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/depth.h"
#include "base/error.h"

namespace structgen {

namespace {

// A look-behind is split into at most this many alternatives; a pattern that needs more is refused.
constexpr std::size_t kMaxEndings = 64;
constexpr uint32_t kMaxDepth = 2'000;

uint32_t plus(uint32_t a, uint32_t b) { return a > kNoMaximum - b ? kNoMaximum : a + b; }

// Rewrites one pattern, from the inside out. It appends nodes and changes none, because groups refer to
// nodes.
class Outside {
 public:
  explicit Outside(Pattern& p) : p_(p) {}

  // Returns a copy of the node with every look-behind in it rewritten, or `node` itself if it has none to
  // rewrite.
  uint32_t rewrite(uint32_t node) {
    check_depth();
    const PatternNode n = p_.nodes[node];
    if (!n.asserts) return node;
    const Deeper level = deeper();
    switch (n.kind) {
      case PatternKind::kCat:
      case PatternKind::kAlt: {
        std::vector<uint32_t> kids(p_.kids_of(n).begin(), p_.kids_of(n).end());
        const std::vector<uint32_t> before = kids;
        for (uint32_t& k : kids) k = rewrite(k);
        if (kids == before) return node;
        return n.kind == PatternKind::kCat ? p_.add_cat(kids) : p_.add_alt(kids);
      }
      case PatternKind::kRepeat: {
        const uint32_t kid = rewrite(n.a);
        return kid == n.a ? node : p_.add_repeat(kid, n.min, n.max);
      }
      case PatternKind::kLookahead: {
        const uint32_t kid = rewrite(n.a);
        return kid == n.a ? node : p_.add_look(n.kind, kid, n.negated);
      }
      case PatternKind::kLookbehind: return behind(node, n);
      default: return node;
    }
  }

 private:
  // One way for a look-behind to end, after the split: it reads `body`, and at its end the assertions
  // `outside` must hold. `(?<=a$)` has the body `a` and the assertion `$` outside.
  struct Ending {
    uint32_t body;
    std::vector<uint32_t> outside;
  };
  Deeper deeper() { return Deeper(depth_, kMaxDepth, ErrorKind::kGrammar, "the pattern nests too deeply"); }

  // Rewrites a look-behind with an alternative for each Ending: `(?<=a$|b)` becomes `(?<=a)$|(?<=b)`. A
  // negated look-behind becomes a negated look-ahead of these alternatives, which reads no character, either.
  uint32_t behind(uint32_t node, const PatternNode& n) {
    const uint32_t body = rewrite(n.a);
    const std::vector<Ending> endings = split(body, 0, 0);
    if (std::ranges::all_of(endings, [](const Ending& e) { return e.outside.empty(); }))
      return body == n.a ? node : p_.add_look(n.kind, body, n.negated);
    std::vector<uint32_t> either;
    for (const Ending& e : endings) {
      std::vector<uint32_t> all{p_.add_look(PatternKind::kLookbehind, e.body, false)};
      all.insert(all.end(), e.outside.begin(), e.outside.end());
      either.push_back(p_.add_cat(all));
    }
    const uint32_t found = p_.add_alt(either);
    return n.negated ? p_.add_look(PatternKind::kLookahead, found, true) : found;
  }

  // Returns how many characters a node may look at, counted from where it begins; its look-aheads count, too.
  uint32_t reach(uint32_t node) {
    check_depth();
    const Deeper level = deeper();
    const PatternNode& n = p_.nodes[node];
    switch (n.kind) {
      case PatternKind::kEnd:
      case PatternKind::kBoundary: return 1;
      case PatternKind::kLookahead: return reach(n.a);
      case PatternKind::kAlt: {
        uint32_t out = 0;
        for (uint32_t k : p_.kids_of(n)) out = std::max(out, reach(k));
        return out;
      }
      case PatternKind::kCat: {
        uint32_t out = 0, before = 0;
        for (uint32_t k : p_.kids_of(n)) {
          out = std::max(out, plus(before, reach(k)));
          before = plus(before, p_.nodes[k].longest);
        }
        return out;
      }
      case PatternKind::kRepeat: return n.asserts ? plus(n.longest, reach(n.a)) : n.longest;
      default: return n.longest;
    }
  }

  // Splits a node into endings. Between the node and the end of the look-behind stand at least `least` and at
  // most `most` characters. An assertion that looks at most `least` characters ahead stays inside. If `most`
  // is 0 the assertion stands at the end and can be moved out. Any other assertion is refused.
  std::vector<Ending> split(uint32_t node, uint32_t least, uint32_t most) {
    check_depth();
    const PatternNode n = p_.nodes[node];
    if (!n.asserts || n.kind == PatternKind::kLookbehind || n.kind == PatternKind::kStart)
      return {{node, {}}};
    const Deeper level = deeper();
    switch (n.kind) {
      case PatternKind::kAlt: {
        std::vector<Ending> out;
        const std::vector<uint32_t> kids(p_.kids_of(n).begin(), p_.kids_of(n).end());
        for (uint32_t k : kids)
          for (Ending& e : split(k, least, most)) out.push_back(std::move(e));
        return checked(node, std::move(out));
      }
      case PatternKind::kCat: {
        const std::vector<uint32_t> kids(p_.kids_of(n).begin(), p_.kids_of(n).end());
        // Kids are split from right to left, because `least` and `most` of a kid depend on the kids behind
        // it. Each of its endings is joined with each ending of those behind it.
        std::vector<Ending> out{{p_.add_empty(), {}}};
        for (std::size_t i = kids.size(); i-- > 0;) {
          std::vector<Ending> next;
          for (const Ending& one : split(kids[i], least, most))
            for (const Ending& two : out) {
              const uint32_t parts[] = {one.body, two.body};
              std::vector<uint32_t> outside = one.outside;
              outside.insert(outside.end(), two.outside.begin(), two.outside.end());
              next.push_back({p_.add_cat(parts), std::move(outside)});
            }
          if (next.size() > kMaxEndings) unsupported();
          out = std::move(next);
          least = plus(least, p_.nodes[kids[i]].shortest);
          most = plus(most, p_.nodes[kids[i]].longest);
        }
        return checked(node, std::move(out));
      }
      case PatternKind::kRepeat:
        if (n.min == 0 && n.max == 1) {
          std::vector<Ending> out = split(n.a, least, most);
          out.push_back({p_.add_empty(), {}});
          return checked(node, std::move(out));
        }
        // In a loop the distance of an assertion to the end of the look-behind differs from iteration to
        // iteration, so the assertion must not look past the end.
        split(n.a, least, kNoMaximum);
        return {{node, {}}};
      default: break;
    }
    if (reach(node) <= least) return {{node, {}}};
    if (most > 0) unsupported();
    return {{p_.add_empty(), {node}}};
  }

  // Returns `endings`. If no ending has an assertion to move out, the whole node is returned as the only
  // ending.
  std::vector<Ending> checked(uint32_t node, std::vector<Ending> endings) {
    if (endings.size() > kMaxEndings) unsupported();
    if (std::ranges::all_of(endings, [](const Ending& e) { return e.outside.empty(); })) return {{node, {}}};
    return endings;
  }

  [[noreturn]] static void unsupported() {
    throw Error(ErrorKind::kUnsupportedSchema, "a look-behind looks ahead past its end");
  }

  Pattern& p_;
  uint32_t depth_ = 0;
};

}  // namespace

void look_ahead_outside(Pattern& pattern) { pattern.root = Outside(pattern).rewrite(pattern.root); }

}  // namespace structgen
