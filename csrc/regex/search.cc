// Questions about a whole language: is it empty, a witness, all its strings, how many.
//
// In: a regex. Out: the answer, found by walking derivatives. Cost: none where the structure tells, else the
// nodes visited, under a budget; what a search found out about the nodes on its way is kept in them.
//
// The problem. The constructors turn every regex without a text into the node empty(), if it has no & and
// no ~. A & B and ~A have to be searched, and `[a-z]{1,30} & .*x.*` has more derivatives than a search
// should visit.
//
// The idea. These steps, each only if the earlier ones do not tell:
//
//     structure           nullable, finite, a union with a part that is known, an infinite language without a
//                         finite one
//     a known text        a lazy part may have its next text at hand (has_lazy_text()); short texts of the
//                         parts are read by the whole (has_short_text()); most conjunctions in schemas are
//                         decided by one of the two
//     search_empty()      best-first over derivatives: those that seem nearest to an end first, by structure
//                         and by what was read
//     lifted()            a search that grows: without the maxima of counters, `[a-z]{1,1000} & ~([a-z]*)` is
//                         empty after a few nodes
//     undecided           the limit is reached: is_empty() throws or, in a world that omits, says that it is
//                         not known
//
// witness() is A* (Hart, Nilsson and Raphael 1968) over distinct nodes, so a date is found digit by
// digit. enumerate() and count() go depth-first over live bytes: a node that is met again on its own
// path means that there are infinitely many strings.
//
// Invariants.
// - A path that was found is marked non-empty, node by node. If nothing is found, everything that was
//   visited is empty. So no question is searched twice.
// - An undecided question is never stored as an answer (base/effort.h).
//
// Rejected. Depth-first search: it would count a counter down to its end. Breadth-first search: it would try
// every escape of every character. Determinising and minimising: the automaton may be exponential, and one
// string is enough to answer.
#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <queue>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "base/depth.h"
#include "base/error.h"
#include "base/told.h"
#include "base/undo.h"
#include "base/work.h"
#include "regex/regex.h"

namespace structgen {

namespace {
// One search for emptiness visits at most this many nodes.
constexpr uint32_t kEmptinessBudget = 60'000;
// One search for a shortest text visits at most this many nodes.
constexpr uint32_t kWitnessBudget = 4'000;
// Testing whether a text is in a regex visits at most this many kids. A kid is visited once for each path to
// it, and there may be exponentially many paths.
constexpr uint32_t kParts = 500;
// The same for a search that meets lazy nodes, which cost more.
constexpr uint32_t kLazyBudget = 10'000;
// After kLiftedVisits nodes, a search for emptiness asks whether the language is empty even without the
// maxima of its large counters: those that only texts of kLiftedReach bytes or more exceed.
constexpr uint32_t kLiftedVisits = 256, kLiftedReach = 32;
constexpr uint64_t kManyStrings = ~0ull, kEnoughStrings = 1ull << 40;
constexpr const char* kTooLarge = "an intersection of patterns is too large to decide";

}  // namespace

// Decides emptiness by the structure where it can: a sequence is empty if a kid is empty, a union if all kids
// are.
bool RegexArena::is_empty(RegexId r) {
  check_depth();
  const RegexNode& n = nodes_[r.v];
  if (n.nullable) return false;
  if (!n.boolean) return r == empty();
  if (n.emptiness == 1 || n.emptiness == 2) return n.emptiness == 1;
  if (has_known_text(r)) {
    nodes_[r.v].emptiness = 2;
    return false;
  }
  if (n.emptiness == kUndecided && !effort_.again()) too_complex(kTooLarge);
  if (n.lazy) return search_empty(r);
  bool result = false;
  switch (n.kind) {
    case RegexKind::kCat: result = is_empty(RegexId{n.a}) || is_empty(RegexId{n.b}); break;
    case RegexKind::kAlt: {
      // A kid with a text decides the union, even if it is too much to tell of an earlier kid.
      FirstLimit unsure;
      result = true;
      for (uint32_t i = 0; i < n.n && result; ++i)
        result = unsure.otherwise(true, [&] { return is_empty(RegexId{n.kids[i]}); });
      if (result) unsure.rethrow();
      break;
    }
    case RegexKind::kRepeat: result = n.min > 0 && is_empty(RegexId{n.a}); break;
    default:
      if (infinite_part(r) == empty() && !has_short_text(r) && !has_lazy_text(r)) return search_empty(r);
  }
  nodes_[r.v].emptiness = result ? 1 : 2;
  return result;
}

// Returns true if some kid of a union is known to have a text. The mask of a union is joined from its kids'
// masks. So the parser must read the union wherever it can read one kid, even if it is too much to tell of
// others.
bool RegexArena::has_known_text(RegexId r) const {
  const RegexNode& n = nodes_[r.v];
  if (n.kind != RegexKind::kAlt) return false;
  for (uint32_t i = 0; i < n.n; ++i) {
    const RegexNode& k = nodes_[n.kids[i]];
    if (k.nullable || !k.boolean || k.emptiness == 2) return true;
  }
  return false;
}

// Returns true if a lazy kid of an intersection knows a text of its own that is in all other kids. The
// multiples of a number of nine digits know their next multiple; a search would look for it among a billion
// texts.
bool RegexArena::has_lazy_text(RegexId r) {
  const RegexNode n = nodes_[r.v];
  if (n.kind != RegexKind::kAnd) return false;
  for (uint32_t i = 0; i < n.n; ++i) {
    const RegexNode kid = nodes_[n.kids[i]];
    std::string text;
    if (kid.kind != RegexKind::kLazy || !lazies_[kid.a]->shortest(kid.min, text)) continue;
    RegexId at = r;
    for (char c : text) at = derive(at, static_cast<uint8_t>(c));
    if (nodes_[at.v].nullable && promise(r, text)) return true;
  }
  return false;
}

bool RegexArena::judged_empty(RegexId r) {
  if (!effort_.omits()) return is_empty(r);
  if (undecided(r) && !effort_.again() && !has_known_text(r)) return false;
  const WorkScope part(meter.task(), effort_.share());
  Told<bool> answer = told([&] { return is_empty(r); });
  if (!answer && nodes_[r.v].emptiness == 0) nodes_[r.v].emptiness = kUndecided;
  return std::move(answer).value_or(false);
}

// Decides an undecided node again, with the work that is left now. Returns false if the node stays undecided.
bool RegexArena::settled_empty(RegexId r) {
  nodes_[r.v].emptiness = 0;
  const bool empty = judged_empty(r);
  if (empty) nodes_[r.v].emptiness = 1;
  return empty;
}

// Marks all derivatives along `text`, a text of r, as not empty, so that step() follows them. If one of them
// was omitted it stays so; then nothing is marked and the result is false.
bool RegexArena::promise(RegexId r, std::string_view text) {
  std::vector<RegexId> way;
  for (char c : text) {
    r = derive(r, static_cast<uint8_t>(c));
    if (undecided(r)) return false;
    way.push_back(r);
  }
  for (RegexId d : way)
    if (nodes_[d.v].boolean && !nodes_[d.v].nullable && nodes_[d.v].emptiness != 1) nodes_[d.v].emptiness = 2;
  return true;
}

// If r is an infinite language L without finitely many strings, as "any key but these" is, returns L;
// otherwise empty(). A search of r would look at each of a thousand excluded keys.
RegexId RegexArena::infinite_part(RegexId r) {
  const RegexNode n = nodes_[r.v];
  if (n.kind != RegexKind::kAnd) return empty();
  std::vector<RegexId> rest;
  for (uint32_t i = 0; i < n.n; ++i) {
    const RegexNode& k = nodes_[n.kids[i]];
    if (k.kind == RegexKind::kNot ? !nodes_[k.a].finite : k.boolean || k.finite) return empty();
    if (k.kind != RegexKind::kNot) rest.push_back(RegexId{n.kids[i]});
  }
  const RegexId out = both(std::span<const RegexId>(rest));
  return out != r && infinite(out) ? out : empty();
}

// Returns true if some derivative of r has a text and leads back to itself: r is then infinite. It visits at
// most kMost derivatives, so false proves nothing.
bool RegexArena::infinite(RegexId r) {
  constexpr std::size_t kMost = 256;
  if (const RegexNode& n = nodes_[r.v]; !n.boolean)
    return r != empty() && !n.finite && !n.lazy && !n.labelled;
  enum : uint8_t { kOpen, kDone };
  std::unordered_map<uint32_t, uint8_t> seen;
  const std::function<bool(RegexId)> loops = [&](RegexId at) {
    check_depth();
    charge();
    const auto [it, fresh] = seen.emplace(at.v, kOpen);
    if (!fresh) return it->second == kOpen;
    if (seen.size() > kMost) return false;
    const ClassMap& c = classes(at);
    for (uint16_t i = 0; i < c.n; ++i) {
      const RegexId d = derive(at, c.rep[i]);
      if (d != empty() && !undecided(d) && !is_empty(d) && loops(d)) return true;
    }
    seen[at.v] = kDone;
    return false;
  };
  return infinite_.remember(r.v, [&] { return !is_empty(r) && loops(r); });
}

// Returns true if some short text of a kid is a text of r. The kids' derivatives are mostly known; a search
// would have to make those of the intersection.
bool RegexArena::has_short_text(RegexId r) {
  uint32_t left = kParts;
  std::vector<std::string> texts;
  short_texts(r, left, texts);
  const auto found = std::ranges::find_if(texts, [&](const std::string& text) {
    left = kParts;
    return holds(r, text, left) == Holds::kYes;
  });
  if (found == texts.end()) return false;
  return !effort_.omits() || promise(r, *found);
}

// Appends short texts of those kids of r that have neither & nor ~. Of an intersection it takes the kid with
// the largest `shortest` alone; of ~(... & ~x) it takes x.
void RegexArena::short_texts(RegexId r, uint32_t& left, std::vector<std::string>& out) {
  check_depth();
  constexpr std::size_t kTexts = 64, kSteps = 64;
  const RegexNode& n = nodes_[r.v];
  if (n.lazy || out.size() == kTexts || left == 0) return;
  --left;
  if (n.boolean) {
    if (n.kind == RegexKind::kNot && nodes_[n.a].kind == RegexKind::kAnd) {
      for (const uint32_t k : std::span(nodes_[n.a].kids, nodes_[n.a].n))
        if (nodes_[k].kind == RegexKind::kNot) short_texts(RegexId{nodes_[k].a}, left, out);
      return;
    }
    if (n.kind != RegexKind::kAnd && n.kind != RegexKind::kAlt) return;
    RegexId longest = empty();
    for (uint32_t i = 0; i < n.n; ++i) {
      const RegexId k{n.kids[i]};
      if (nodes_[k.v].boolean || n.kind == RegexKind::kAlt)
        short_texts(k, left, out);
      else if (longest == empty() || nodes_[k.v].shortest > nodes_[longest.v].shortest)
        longest = k;
    }
    if (longest != empty()) short_texts(longest, left, out);
    return;
  }
  std::string text;
  // Each step takes the byte whose derivative has the smallest `shortest`.
  for (RegexId at = r; !nodes_[at.v].nullable;) {
    if (text.size() == kSteps) return;
    const ClassMap& c = classes(at);
    RegexId best = empty();
    uint8_t by = 0;
    for (uint16_t i = 0; i < c.n; ++i) {
      const uint8_t b = c.search_order()[i];
      const RegexId to = next(at, b);
      if (to == empty() || (best != empty() && nodes_[to.v].shortest >= nodes_[best.v].shortest)) continue;
      best = to;
      by = b;
    }
    if (best == empty() || (!nodes_[best.v].nullable && nodes_[best.v].shortest >= nodes_[at.v].shortest))
      return;
    at = best;
    text.push_back(static_cast<char>(by));
  }
  out.push_back(std::move(text));
}

// Tells from the kids whether the text is in r. Returns kUnknown if a kid is lazy, or kParts kids were
// visited.
RegexArena::Holds RegexArena::holds(RegexId r, std::string_view text, uint32_t& left) {
  check_depth();
  const RegexNode& n = nodes_[r.v];
  if (n.lazy || left == 0) return Holds::kUnknown;
  --left;
  if (!n.boolean) return nodes_[run(r, text).v].nullable ? Holds::kYes : Holds::kNo;
  if (n.kind == RegexKind::kNot) {
    const Holds inner = holds(RegexId{n.a}, text, left);
    return inner == Holds::kUnknown ? inner : inner == Holds::kYes ? Holds::kNo : Holds::kYes;
  }
  if (n.kind != RegexKind::kAnd && n.kind != RegexKind::kAlt) return Holds::kUnknown;
  const Holds deciding = n.kind == RegexKind::kAnd ? Holds::kNo : Holds::kYes;
  Holds out = n.kind == RegexKind::kAnd ? Holds::kYes : Holds::kNo;
  for (const uint32_t k : std::span(n.kids, n.n)) {
    const Holds part = holds(RegexId{k}, text, left);
    if (part == deciding) return part;
    if (part == Holds::kUnknown) out = part;
  }
  return out;
}

namespace {
// Where a search stands within a spelled character of a JSON string. It tries only one spelling of each
// character.
enum Spelled : uint8_t {
  // The language is no body of a JSON string, so the search tries all bytes.
  kAnywhere = 0,
  // A character begins here. 2, 3 and 4 say that a character lacks one, two or three continuation bytes.
  kCharacter = 1,
  // A backslash was read. Only characters that need an escape are tried.
  kEscape = 5,
  // \u was read. 7, 8 and 9 say that \u0, \u00, and \u000 or \u001 was read.
  kEscapeU = 6,
};

// Returns where the search stands behind byte b, in these numbers.
uint8_t spelled_after(uint8_t at, uint8_t b) {
  if (at == kAnywhere) return kAnywhere;
  if (at > kCharacter && at <= 4) return static_cast<uint8_t>(at - 1);
  if (at == kCharacter) {
    if (b == '\\') return kEscape;
    return b < 0xC0 ? uint8_t{kCharacter} : b < 0xE0 ? uint8_t{2} : b < 0xF0 ? uint8_t{3} : uint8_t{4};
  }
  if (at == kEscape) return b == 'u' ? uint8_t{kEscapeU} : uint8_t{kCharacter};
  return at == 9 ? uint8_t{kCharacter} : static_cast<uint8_t>(at + 1);
}

// Returns the bytes that the search tries inside an escape. It needs single bytes, because a class may hold
// other bytes, too.
std::string_view spelled_bytes(uint8_t at) {
  switch (at) {
    case kEscape: return "\"\\bfnrtu";
    case kEscapeU:
    case 7: return "0";
    case 8: return "01";
    default: return "0123456789abcdef";
  }
}
}  // namespace

// Returns true if some text of a body may begin with a character that needs an escape (a quote, a control
// character). Of an intersection the kids are asked: their derivatives are mostly known, and its own would be
// new.
bool RegexArena::needs_escape(RegexId r) {
  const RegexNode n = nodes_[r.v];
  if (n.kind == RegexKind::kAnd)
    return std::ranges::all_of(std::span(n.kids, n.n), [&](uint32_t k) { return needs_escape(RegexId{k}); });
  // The structure does not tell, so the cautious answer is given.
  if (n.lazy || n.kind == RegexKind::kNot) return true;
  // derive() may return a node that is not empty() although its language is. The answer is then "may need an
  // escape", which is cautious, too.
  return escapes_.remember(r.v, [&] {
    const RegexId begun = derive(r, '\\');
    for (const char c : {'"', '\\', 'b', 'f', 'n', 'r', 't'})
      if (derive(begun, static_cast<uint8_t>(c)) != empty()) return true;
    const RegexId code = derive(derive(derive(begun, 'u'), '0'), '0');
    return derive(code, '0') != empty() || derive(code, '1') != empty();
  });
}

// A best-first search for a node that matches the empty text. The distance of a node is the structure's
// estimate of the bytes to come, plus half of the bytes read. Other orders fail: depth-first search would
// count a counter down to its end, breadth-first search would try every escape, and the estimate alone would
// try every ASCII text before a character of several bytes.
//
// If such a node is found, no node on the path to it is empty. If none is found, every visited node is empty.
// Within a body only the visited nodes at the beginning of a character are known to be empty.
bool RegexArena::search_empty(RegexId start) {
  const uint32_t budget = nodes_[start.v].lazy ? kLazyBudget : kEmptinessBudget;
  ++searches_;
  const Undo done([&] { --searches_; });
  struct Visit {
    uint32_t id, parent, depth;
    uint8_t spelled;
  };
  std::vector<Visit> visits;
  std::unordered_set<uint64_t> seen;
  // Twice the distance, and the index of the visited node.
  using Entry = std::pair<uint64_t, uint32_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> open;
  const auto push = [&](uint32_t id, uint8_t spelled, uint32_t parent) {
    if (!seen.insert((static_cast<uint64_t>(id) << 8) | spelled).second) return;
    const uint32_t at = static_cast<uint32_t>(visits.size());
    visits.push_back({id, parent, at == 0 ? 0 : visits[parent].depth + 1, spelled});
    open.emplace(2ull * nodes_[id].shortest + visits[at].depth, at);
  };
  const auto found = [&](uint32_t at) {
    for (;; at = visits[at].parent) {
      nodes_[visits[at].id].emptiness = 2;
      if (at == visits[at].parent) return false;
    }
  };
  push(start.v, nodes_[start.v].body(), 0);
  // True once the search met a node of which nobody knows whether it is empty. No path leads through it, and
  // nodes that lead to it are not marked as empty.
  bool unsure = false;
  bool asked = false;
  while (!open.empty()) {
    const uint32_t at = open.top().second;
    open.pop();
    const Visit v = visits[at];
    charge(2);
    const ClassMap& c = classes(RegexId{v.id});
    const std::string_view bytes =
        v.spelled >= kEscape ? spelled_bytes(v.spelled)
                             : std::string_view(reinterpret_cast<const char*>(c.search_order()), c.n);
    for (char ch : bytes) {
      const uint8_t b = static_cast<uint8_t>(ch);
      if (v.spelled == kCharacter && b == '\\' && !needs_escape(RegexId{v.id})) continue;
      const RegexId d = derive(RegexId{v.id}, b);
      const RegexNode& n = nodes_[d.v];
      if (n.nullable || (!n.boolean && d != empty()) || n.emptiness == 2) return found(at);
      if (d == empty() || n.emptiness == 1) continue;
      if (has_known_text(d) || has_lazy_text(d)) return found(at);
      if (n.emptiness == kUndecided && !effort_.again()) {
        unsure = true;
        continue;
      }
      // Without & and ~, and if it is not lazy, a node is decided by its kids: is_empty() needs no search.
      if (n.kind != RegexKind::kAnd && n.kind != RegexKind::kNot && !n.lazy) {
        if (!is_empty(d)) return found(at);
        continue;
      }
      push(d.v, spelled_after(v.spelled, b), at);
    }
    if (!asked && visits.size() > kLiftedVisits) {
      asked = true;
      const RegexId more = lifted(start, kLiftedReach);
      if (more != start && told([&] { return is_empty(more); }).value_or(false)) {
        unsure = false;
        break;
      }
    }
    if (visits.size() > budget) too_complex(kTooLarge);
  }
  if (unsure) too_complex(kTooLarge);
  for (const Visit& v : visits)
    if (v.spelled <= kCharacter) nodes_[v.id].emptiness = 1;
  return true;
}

// Returns true if there are surely more strings than `limit`. It counts beginnings, because different
// beginnings begin different strings: those along one short text, and those of a few levels of derivatives.
// It writes no string, and does not search for emptiness.
bool RegexArena::plenty(RegexId r, uint64_t limit) {
  constexpr uint32_t kDerivatives = 500;
  const auto sizes = [](const ClassMap& c) {
    std::array<uint16_t, 256> out{};
    for (int b = 0; b < 256; ++b) ++out[c.of[b]];
    return out;
  };
  uint32_t left = kParts;
  std::vector<std::string> shorts;
  short_texts(r, left, shorts);
  for (const std::string& text : shorts) {
    uint64_t alike = 1;
    RegexId at = r;
    for (const char ch : text) {
      const ClassMap& c = classes(at);
      const uint8_t kind = c.of[static_cast<uint8_t>(ch)];
      alike = std::min(alike * sizes(c)[kind], limit + 1);
      if ((at = derive(at, c.rep[kind])) == empty()) break;
    }
    if (nodes_[at.v].nullable && alike > limit) return true;
  }
  uint32_t made = 0;
  uint64_t texts = nodes_[r.v].nullable;
  std::vector<std::pair<uint32_t, uint64_t>> level{{r.v, 1}};
  std::unordered_map<uint32_t, uint64_t> longer;
  while (!level.empty()) {
    longer.clear();
    for (const auto& [id, ways] : level) {
      const ClassMap& c = classes(RegexId{id});
      if ((made += c.n) > kDerivatives) return false;
      const std::array<uint16_t, 256> of_class = sizes(c);
      for (uint16_t i = 0; i < c.n; ++i) {
        const RegexId d = derive(RegexId{id}, c.rep[i]);
        if (d == empty()) continue;
        const uint64_t more = std::min(ways * of_class[i], limit + 1);
        if (nodes_[d.v].nullable && (texts += more) > limit) return true;
        longer[d.v] = std::min(longer[d.v] + more, limit + 1);
      }
    }
    level.assign(longer.begin(), longer.end());
  }
  return false;
}

bool RegexArena::enumerate(RegexId r, uint32_t limit, std::vector<std::string>& out) {
  // A depth-first search over bytes that may come next. Each node on its path has a string. So if a node
  // occurs twice on the path, there are infinitely many strings.
  struct Frame {
    RegexId id;
    int byte;
  };
  out.clear();
  if (nodes_[r.v].boolean && plenty(r, limit)) return false;
  if (is_empty(r)) return true;
  std::vector<Frame> path{{r, -1}};
  std::vector<uint32_t> on_path{r.v};
  std::string text;
  uint32_t steps = 0;
  if (nullable(r)) out.push_back(text);
  while (!path.empty()) {
    Frame& f = path.back();
    charge();
    int b = f.byte + 1;
    const ByteSet& l = live(f.id);
    while (b < 256 && !l.has(static_cast<uint8_t>(b))) ++b;
    if (b == 256) {
      path.pop_back();
      on_path.pop_back();
      if (!text.empty()) text.pop_back();
      continue;
    }
    f.byte = b;
    const RegexId d = next(f.id, static_cast<uint8_t>(b));
    if (undecided(d)) {
      if (effort_.again() && settled_empty(d)) continue;
      if (undecided(d)) too_complex(kTooLarge);
    }
    if (d == empty()) continue;
    if (++steps > limit * 64 + 4096 || std::find(on_path.begin(), on_path.end(), d.v) != on_path.end())
      return false;
    text.push_back(static_cast<char>(b));
    if (nullable(d)) {
      if (out.size() == limit) return false;
      out.push_back(text);
    }
    path.push_back({d, -1});
    on_path.push_back(d.v);
  }
  return true;
}

// Counts the beginnings of each length; different beginnings begin different strings. Returns nothing if a
// few lengths do not decide the number.
std::optional<uint64_t> RegexArena::count_levels(RegexId start, uint32_t nodes, bool& exact) {
  constexpr int kLevels = 48;
  std::unordered_map<uint32_t, uint64_t> level{{start.v, 1}};
  uint64_t shorter = 0;
  // The number of bytes in each class, by partition. The states of one regex have few partitions.
  std::unordered_map<const ClassMap*, std::array<uint16_t, 256>> sizes;
  const auto sizes_of = [&](const ClassMap& c) -> const std::array<uint16_t, 256>& {
    const auto [slot, fresh] = sizes.try_emplace(&c);
    if (fresh)
      for (const uint8_t k : c.of) ++slot->second[k];
    return slot->second;
  };
  for (int k = 0; k < kLevels && level.size() <= nodes / kLevels; ++k) {
    std::unordered_map<uint32_t, uint64_t> longer;
    uint64_t paths = 0;
    charge(static_cast<int64_t>(4 * level.size()));
    for (const auto& [id, n] : level) {
      if (nodes_[id].nullable) shorter += n;
      const ByteSet bytes = live(RegexId{id});
      const ClassMap& c = classes(RegexId{id});
      const std::array<uint16_t, 256>& of_class = sizes_of(c);
      for (uint16_t i = 0; i < c.n; ++i)
        if (bytes.has(c.rep[i])) {
          const RegexId d = next(RegexId{id}, c.rep[i]);
          if (undecided(d)) {
            exact = false;
            continue;
          }
          // live() was computed before this derivative was found to be empty.
          if (d == empty()) continue;
          longer[d.v] += n * of_class[i];
          paths += n * of_class[i];
        }
    }
    if (shorter + paths >= kEnoughStrings) return kManyStrings;
    if (longer.empty()) return shorter;
    level = std::move(longer);
  }
  return {};
}

// Counts by length first, which soon shows if there are too many strings. Otherwise counts depth first, and
// remembers the number of each node.
uint64_t RegexArena::count(RegexId start, uint32_t nodes, bool& exact) {
  exact = true;
  if (is_empty(start)) return 0;
  if (const std::optional<uint64_t> out = count_levels(start, nodes, exact)) return *out;
  struct Frame {
    uint32_t id;
    int byte;
    uint64_t sum;
  };
  const auto add = [](uint64_t& sum, uint64_t more) { sum = sum + more < sum ? kManyStrings : sum + more; };
  std::unordered_map<uint32_t, uint64_t> known;
  std::unordered_set<uint32_t> on_path{start.v};
  std::vector<Frame> path{{start.v, -1, nullable(start)}};
  while (true) {
    Frame& f = path.back();
    charge();
    const ByteSet& bytes = live(RegexId{f.id});
    int b = f.byte + 1;
    while (b < 256 && !bytes.has(static_cast<uint8_t>(b))) ++b;
    f.byte = b;
    if (b == 256) {
      const uint64_t sum = f.sum;
      known.emplace(f.id, sum);
      on_path.erase(f.id);
      path.pop_back();
      if (path.empty()) return sum;
      add(path.back().sum, sum);
      continue;
    }
    const RegexId d = next(RegexId{f.id}, static_cast<uint8_t>(b));
    if (undecided(d)) {
      exact = false;
      continue;
    }
    if (d == empty()) continue;
    if (on_path.count(d.v)) return kManyStrings;
    if (const auto it = known.find(d.v); it != known.end()) {
      add(f.sum, it->second);
      continue;
    }
    if (known.size() + path.size() > nodes) {
      exact = false;
      // The bound on nodes is met. What was counted for the nodes on the path is a lower bound.
      uint64_t sum = 0;
      for (const Frame& g : path) add(sum, g.sum);
      return sum;
    }
    on_path.insert(d.v);
    path.push_back({d.v, -1, nullable(d)});
  }
}

// Returns a lower bound of the length of every string. RegexNode::shortest would not do: it is an estimate
// and may be too large.
uint32_t RegexArena::least_length(RegexId r) {
  check_depth();
  constexpr uint64_t kMost = 1u << 20;
  const RegexNode n = nodes_[r.v];
  if (n.nullable) return 0;
  if (n.kind == RegexKind::kBytes) return 1;
  if (n.kind == RegexKind::kLiteral) return n.n;
  return least_lengths_.remember(r.v, [&] {
    uint64_t out = 1;
    switch (n.kind) {
      case RegexKind::kCat: out = uint64_t{least_length(RegexId{n.a})} + least_length(RegexId{n.b}); break;
      case RegexKind::kRepeat: out = uint64_t{least_length(RegexId{n.a})} * n.min; break;
      case RegexKind::kAlt:
        out = kMost;
        for (uint32_t i = 0; i < n.n; ++i) out = std::min<uint64_t>(out, least_length(RegexId{n.kids[i]}));
        break;
      case RegexKind::kAnd:
        for (uint32_t i = 0; i < n.n; ++i) out = std::max<uint64_t>(out, least_length(RegexId{n.kids[i]}));
        break;
      default: break;
    }
    return static_cast<uint32_t>(std::min(out, kMost));
  });
}

// The search is A* (Hart, Nilsson and Raphael 1968) over distinct nodes. The cost is the bytes read plus a
// lower bound of the bytes to come; of equal costs the deepest node comes first. If the structure tells the
// length of the texts (dates, identifiers), the search goes straight to the end of one text, where
// breadth-first search would visit all beginnings. If a lazy node knows how a text ends, this end is taken.
bool RegexArena::witness(RegexId r, std::string& out) {
  out.clear();
  if (!undecided(r) && is_empty(r)) return false;
  struct Reached {
    uint32_t depth, parent;
    uint8_t by;
  };
  struct Open {
    uint64_t length;
    uint32_t depth, order, id;
    bool operator<(const Open& o) const {
      if (length != o.length) return length > o.length;
      return depth != o.depth ? depth < o.depth : order > o.order;
    }
  };
  std::unordered_map<uint32_t, Reached> reached{{r.v, {0, r.v, 0}}};
  std::priority_queue<Open> open;
  // By node: the ends of texts that lazy nodes know.
  std::unordered_map<uint32_t, std::string> rests;
  uint32_t order = 0;
  const auto visit = [&](uint32_t id, uint32_t depth) {
    const RegexNode& n = nodes_[id];
    uint64_t left = 0;
    if (!n.nullable && n.kind == RegexKind::kLazy) {
      std::string known;
      if (!rests.contains(id) && lazies_[n.a]->shortest(n.min, known)) rests.emplace(id, std::move(known));
    }
    if (const auto it = rests.find(id); it != rests.end())
      left = it->second.size();
    else
      left = least_length(RegexId{id});
    open.push({depth + left, depth, order++, id});
  };
  visit(r.v, 0);
  while (!open.empty()) {
    const Open at = open.top();
    open.pop();
    if (reached.at(at.id).depth < at.depth) continue;
    const auto rest = rests.find(at.id);
    if (nodes_[at.id].nullable || rest != rests.end()) {
      for (uint32_t i = at.id; i != r.v; i = reached.at(i).parent)
        out.push_back(static_cast<char>(reached.at(i).by));
      std::reverse(out.begin(), out.end());
      if (!nodes_[at.id].nullable) out += rest->second;
      return true;
    }
    if (reached.size() > (effort_.omits() ? kWitnessBudget : kEmptinessBudget)) return near_witness(r, out);
    const ClassMap& c = classes(RegexId{at.id});
    charge(1 + c.n / 4);
    for (uint16_t k = 0; k < c.n; ++k) {
      const RegexId d = step(RegexId{at.id}, c.rep[k]);
      if (d == empty()) continue;
      const Reached way{at.depth + 1, at.id, c.rep[k]};
      const auto [it, fresh] = reached.emplace(d.v, way);
      if (!fresh && it->second.depth <= way.depth) continue;
      it->second = way;
      visit(d.v, way.depth);
    }
  }
  return false;
}

// A best-first search by RegexNode::shortest; it does not prove that its text is shortest. witness() calls it
// if too many short beginnings lead nowhere.
bool RegexArena::near_witness(RegexId r, std::string& out) {
  struct Visit {
    uint32_t id, parent, depth;
    uint8_t by;
  };
  std::vector<Visit> visits{{r.v, 0, 0, 0}};
  std::unordered_set<uint32_t> seen{r.v};
  using Entry = std::pair<uint64_t, uint32_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> open;
  open.emplace(0, 0);
  while (!open.empty()) {
    const uint32_t at = open.top().second;
    open.pop();
    const Visit v = visits[at];
    if (nodes_[v.id].nullable) {
      for (uint32_t i = at; i != 0; i = visits[i].parent) out.push_back(static_cast<char>(visits[i].by));
      std::reverse(out.begin(), out.end());
      return true;
    }
    if (visits.size() > kEmptinessBudget) too_complex("a pattern is too large to find a witness");
    const ClassMap& c = classes(RegexId{v.id});
    charge(1 + c.n / 4);
    for (uint16_t k = 0; k < c.n; ++k) {
      const RegexId d = step(RegexId{v.id}, c.rep[k]);
      if (d == empty() || !seen.insert(d.v).second) continue;
      open.emplace(2ull * nodes_[d.v].shortest + v.depth + 1, static_cast<uint32_t>(visits.size()));
      visits.push_back({d.v, at, v.depth + 1, c.rep[k]});
    }
  }
  return false;
}

std::vector<RegexId> RegexArena::without_words(RegexId r) const {
  std::vector<RegexId> kept;
  const RegexNode& n = nodes_[r.v];
  for (uint32_t i = 0; n.kind == RegexKind::kAnd && i < n.n; ++i) {
    const RegexNode& k = nodes_[n.kids[i]];
    if (k.kind != RegexKind::kNot || !nodes_[k.a].finite) kept.push_back(RegexId{n.kids[i]});
  }
  return kept;
}

bool RegexArena::excluded_literals(RegexId r, std::vector<LiteralSet>& out) const {
  const auto take = [&](RegexId words) {
    if (nodes_[words.v].kind != RegexKind::kLiteralSet) return false;
    out.push_back(literal_set_of(words));
    return true;
  };
  const RegexNode& n = nodes_[r.v];
  for (uint32_t i = 0; i < n.n; ++i) {
    const RegexNode& k = nodes_[n.kids[i]];
    if (k.kind != RegexKind::kNot || !nodes_[k.a].finite) continue;
    const RegexNode& words = nodes_[k.a];
    if (words.kind != RegexKind::kAlt) {
      if (!take(RegexId{k.a})) return false;
      continue;
    }
    for (uint32_t w = 0; w < words.n; ++w)
      if (!take(RegexId{words.kids[w]})) return false;
  }
  return true;
}

}  // namespace structgen
