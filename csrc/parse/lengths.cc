// How upper bounds of shortest completions are put together; lengths.h says what a bound is.
//
// The problem. A mask within a budget has to know of each token whether the rest fits behind that token. A
// shortest completion would tell, but takes a search for each state. For most tokens the budget is far larger
// than needed. For such a token a bound that is a little too large decides as well, and costs one look-up.
//
// The idea. The bytes of all parts that must be written are added up. A rule with several alternatives counts
// as the cheapest alternative whose bytes are known without a search. Behind `{"name":"Ada",`, in an object
// that still requires `"age"`, an integer:
//
//     regex(`"age":`)      6 bytes, a literal
//     regex(number)        1 byte: an alternative of one digit
//     stack                `}`: 1 byte
//     of(state)            8 bytes, hence at most 8 tokens and the end token, whatever text was captured
//
// For objects and arrays of JSON, Productions::bound gives the bound as a sum: some bytes, the bounds of
// symbols that must all come, and the largest bound of symbols of which one may come. For any other rule the
// symbols of each alternative are added up, and the smallest sum counts; alternatives with little text of
// their own are tried first.
//
// Four questions about a regex r, each answered by an upper bound in bytes:
//   regex(r)        of the shortest text of r
//   begun(r)        of what is left if a token has ended anywhere in r, even within an escape or a literal
//   left(r)         of what is left if a token has ended with a whole character of r
//   characters(r)   as left(r), for a pattern beside a maximum of characters that rules out no text yet
//
// Invariants.
// - A bound is never below the shortest completion. kFar says that no bound is known, never that no
//   completion exists.
// - A bound holds whatever text was captured. A part that depends on captured text has the bound kFar.
// - A rule whose bound is being computed counts as kFar for the rules that refer to it. A bound that is found
//   meanwhile is kept. "No bound" is kept only if no such rule was met (met_open_).
//
// Rejected. Lengths in tokens: such a length depends on how a text is cut into tokens. A bound in bytes is
// also a bound in tokens, because a token has at least one byte. Exact lengths: parse/completion.h finds
// them, at a thousand times the cost.
#include "parse/lengths.h"

#include <algorithm>
#include <cmath>

#include "base/depth.h"
#include "base/error.h"
#include "base/told.h"
#include "base/undo.h"
#include "base/work.h"

namespace structgen {

namespace {
// The value in rules_ of a rule whose bound is being computed.
constexpr uint32_t kOpen = Lengths::kFar + 1;
// An escape such as `\u0041` has at most this many bytes.
constexpr uint32_t kEscaped = 6;
// A token may end inside of an escape. At most this many bytes of the escape are missing: those of a
// surrogate pair.
constexpr uint32_t kEscapePair = 12;
// One question visits at most this many rules; each further rule counts as kFar. An object has one rule for
// each property.
constexpr uint32_t kSteps = 5'000;
// behind_any() returns kFar for a regex with more derivatives than kDerivatives, or after kDerivativeWork
// units of work: a fifth of a millisecond. A regex with more parts than kManyParts mostly has more than
// kDerivatives derivatives, so it gets kFar at once.
constexpr std::size_t kDerivatives = 96;
constexpr std::size_t kManyParts = 200;
constexpr int64_t kDerivativeWork = 2'000;
// A search for a bound may take at least this many units of work, even if the caller has less work left.
constexpr int64_t kLeastWork = 1'000;

uint32_t times(uint64_t a, uint64_t n) {
  return n == 0 || a == 0 ? 0 : static_cast<uint32_t>(std::min<uint64_t>(a * n, Lengths::kFar));
}

// Returns true if the structure of the regex has more than kManyParts different nodes.
bool many_parts(const RegexArena& regexes, RegexId r) {
  FlatMap<uint32_t, bool> met;
  std::vector<uint32_t> open{r.v};
  while (!open.empty() && met.size() <= kManyParts) {
    const uint32_t at = open.back();
    open.pop_back();
    if (!met.emplace(at, true).second) continue;
    const RegexNode& n = regexes.node(RegexId{at});
    if (n.kind == RegexKind::kCat) open.push_back(n.b);
    if (n.kind == RegexKind::kCat || n.kind == RegexKind::kNot || n.kind == RegexKind::kRepeat)
      open.push_back(n.a);
    if (n.kind == RegexKind::kAlt || n.kind == RegexKind::kAnd) open.insert(open.end(), n.kids, n.kids + n.n);
  }
  return met.size() > kManyParts;
}
}  // namespace

// Returns an upper bound of the bytes of every text of r; kFar if there is no bound or none is known.
uint32_t Lengths::longest(RegexId r) {
  check_depth();
  const RegexNode n = parser_.regexes().node(r);
  uint32_t out = 0;
  switch (n.kind) {
    case RegexKind::kBytes: return 1;
    case RegexKind::kLiteral: return n.n;
    case RegexKind::kCat: return sum(longest(RegexId{n.a}), longest(RegexId{n.b}));
    case RegexKind::kAlt:
      for (uint32_t i = 0; i < n.n; ++i) out = std::max(out, longest(RegexId{n.kids[i]}));
      return out;
    case RegexKind::kRepeat: return n.max == kUnbounded ? kFar : times(longest(RegexId{n.a}), n.max);
    case RegexKind::kLiteralSet: return longest_of(parser_.regexes().literal_set_of(r));
    case RegexKind::kEmpty:
    case RegexKind::kEpsilon:
    case RegexKind::kDone: return 0;
    default: return kFar;
  }
}

// `longest` is kFar if no bound is known. A byte outside an escape counts as one character.
Lengths::Denied Lengths::denied(RegexId r) {
  check_depth();
  const RegexNode n = parser_.regexes().node(r);
  Denied out{0, bits(r)};
  if (n.kind == RegexKind::kAlt) {
    for (uint32_t i = 0; i < n.n; ++i)
      out.longest = std::max(out.longest, denied(RegexId{n.kids[i]}).longest);
    return out;
  }
  out.longest = longest(r);
  if (n.kind != RegexKind::kLiteralSet) return out;
  out.longest = 0;
  const LiteralSet set = parser_.regexes().literal_set_of(r);
  for (uint32_t i = set.lo; i < set.hi; ++i)
    out.longest = std::max(
        out.longest,
        static_cast<uint32_t>(parser_.regexes().tables().table(set.table).texts[i].size() - set.depth));
  ++out.longest;
  return out;
}

// Returns the one-byte texts of a character.
ByteSet Lengths::singles(RegexId r) const {
  check_depth();
  const RegexNode n = parser_.regexes().node(r);
  ByteSet out;
  if (n.kind == RegexKind::kBytes) return parser_.regexes().byte_set(n.a);
  if (n.kind == RegexKind::kLiteral && n.n == 1) return ByteSet::of(static_cast<uint8_t>(n.text[0]));
  for (uint32_t i = 0; n.kind == RegexKind::kAlt && i < n.n; ++i) out = out | singles(RegexId{n.kids[i]});
  return out;
}

// Returns the binary logarithm of a bound of the texts of r that consist of characters of one byte.
double Lengths::bits(RegexId r) const {
  check_depth();
  const RegexNode n = parser_.regexes().node(r);
  double out = 0;
  if (n.character) return std::log2(std::max(1, singles(r).count()));
  switch (n.kind) {
    case RegexKind::kEmpty:
    case RegexKind::kEpsilon:
    case RegexKind::kDone:
    case RegexKind::kLiteral: return 0;
    case RegexKind::kBytes: return std::log2(std::max(1, singles(r).count()));
    case RegexKind::kCat: return bits(RegexId{n.a}) + bits(RegexId{n.b});
    case RegexKind::kAlt:
      for (uint32_t i = 0; i < n.n; ++i) out = std::max(out, bits(RegexId{n.kids[i]}));
      return out + std::log2(n.n);
    case RegexKind::kLiteralSet: {
      const LiteralSet set = parser_.regexes().literal_set_of(r);
      return std::log2(std::max(1u, set.hi - set.lo));
    }
    default: return kFar;
  }
}

// Returns an upper bound of the bytes of the longest spelling of a string of the set, with the closing quote.
// Each character counts as an escape of kEscaped bytes.
uint32_t Lengths::longest_of(const LiteralSet& set) const {
  const LiteralTable& table = parser_.regexes().tables().table(set.table);
  std::size_t most = 0;
  for (uint32_t i = set.lo; i < set.hi; ++i) most = std::max(most, table.texts[i].size());
  return sum(times(most - std::min<std::size_t>(most, set.depth), kEscaped), kEscapePair);
}

// Returns an upper bound of the bytes of the shortest text for two forms of intersections, and kFar for all
// others. With `begun` the bound is that of begun().
// - Strings with finitely many exceptions. A string of one-byte characters that is longer than all exceptions
//   is in the language. Some string of n such characters is in the language, too, if there are more strings
//   of n such characters than exceptions.
// - A pattern and a maximum of characters. If the maximum is larger than what the pattern needs, every
//   shortest text of the pattern is in the language.
uint32_t Lengths::boolean(RegexId r, bool begun, bool endless) {
  RegexArena& regexes = parser_.regexes();
  const RegexNode n = regexes.node(r);
  if (n.kind != RegexKind::kAnd) return kFar;
  RegexId run = RegexArena::empty(), pattern = run;
  Denied but;
  uint32_t exceptions = 0;
  for (uint32_t i = 0; i < n.n; ++i) {
    const RegexId kid{n.kids[i]};
    const RegexNode& k = regexes.node(kid);
    if (k.kind == RegexKind::kNot && regexes.node(RegexId{k.a}).finite) {
      const Denied some = denied(RegexId{k.a});
      but = {std::max(but.longest, some.longest), std::max(but.bits, some.bits)};
      ++exceptions;
    } else if (k.boolean || k.lazy)
      return kFar;
    else if (is_run(kid) && (run == RegexArena::empty() || is_length(kid))) {
      if (run != RegexArena::empty() && pattern != RegexArena::empty()) return kFar;
      if (run != RegexArena::empty()) pattern = run;
      run = kid;
    } else if (pattern == RegexArena::empty() && (k.body() || is_run(kid)))
      pattern = kid;
    else
      return kFar;
  }
  // A pattern may stand only beside `any character{m,n}`. A counter of other characters may exclude the
  // pattern's shortest text.
  if (pattern != RegexArena::empty() && !(is_length(run) && regexes.node(pattern).body())) return kFar;
  if (run == RegexArena::empty() || but.longest >= kFar) return kFar;
  // In front of the counter stands the rest of a character, if some of its bytes were read.
  uint32_t out = 0;
  RegexArena::Counter repeat = regexes.counter(run);
  for (; !repeat.counted; repeat = regexes.counter(repeat.tail))
    out = sum(out, begun ? this->begun(repeat.element) : regex(repeat.element));
  if (endless && (pattern != RegexArena::empty() || repeat.max != kUnbounded)) return kFar;
  if (pattern != RegexArena::empty()) {
    const uint32_t bytes = begun ? this->begun(pattern) : regex(pattern);
    const uint32_t room = sum(bytes, begun ? reach_ : 0);
    return but.longest == 0 && repeat.min == 0 && repeat.max >= room && bytes < kFar ? bytes : kFar;
  }
  // With c characters of one byte there are c^n texts of n characters. If the counter has a maximum, the
  // token may have used it up, so begun() uses this number only for a counter without a maximum.
  const double each = std::log2(std::max(1, singles(repeat.element).count()));
  const double differing = exceptions == 0 ? 0 : (but.bits + std::log2(exceptions)) / each + 1 + 1e-6;
  uint32_t count = but.longest + 1;
  if (differing < count && (!begun || repeat.max == kUnbounded)) count = static_cast<uint32_t>(differing);
  count = std::max(repeat.min, count);
  if (count > repeat.max) return kFar;
  out = sum(out, begun ? this->begun(repeat.tail) : regex(repeat.tail));
  if (begun) out = sum(out, this->begun(repeat.element));
  return sum(out, times(regex(repeat.element), count));
}

// Returns true for `any character{m,n}` and the end of the string, which bounds the length and nothing else.
bool Lengths::is_length(RegexId r) const {
  const RegexArena& regexes = parser_.regexes();
  const RegexArena::Counter c = regexes.counter(r);
  return c.counted && c.element == regexes.any_character() && c.tail == regexes.end();
}

// Returns true if the regex begins with a counter of characters. The rest of a character may stand before the
// counter.
bool Lengths::is_run(RegexId r) const {
  const RegexArena& regexes = parser_.regexes();
  RegexArena::Counter c = regexes.counter(r);
  for (; !c.counted && regexes.node(r).kind == RegexKind::kCat; c = regexes.counter(r)) r = c.tail;
  return c.counted && regexes.is_character(c.element);
}

// Returns the length of a completion that a search finds. The search may take an eighth of the work that is
// left, because a bound that costs as much as the search of a shortest completion saves nothing.
template <class Id>
uint32_t Lengths::searched(Id of) {
  constexpr int64_t kMost = 50'000;
  const WorkScope part(meter.task(), std::clamp(meter.left() / 8, kLeastWork, kMost));
  return told([&] { return std::min(kFar, completion_.length(of)); }).value_or(kFar);
}

// Returns begun() for a regex with few derivatives: the greatest distance in bytes from a derivative to its
// nearest end. "Any text without `</think>`" has one derivative for each beginning of `</think>`, and a few
// more inside characters of several bytes.
uint32_t Lengths::behind_any(RegexId r) {
  RegexArena& regexes = parser_.regexes();
  if (many_parts(regexes, r)) return kFar;
  const WorkScope part(meter.task(), std::clamp(meter.left() / 8, kLeastWork, kDerivativeWork));
  return told([&] {
           std::vector<RegexId> found{r};
           std::vector<std::vector<uint32_t>> before(1);
           FlatMap<uint32_t, uint32_t> index;
           index.emplace(r.v, 0);
           for (uint32_t i = 0; i < found.size(); ++i) {
             const ClassMap& classes = regexes.classes(found[i]);
             for (uint32_t c = 0; c < classes.n; ++c) {
               charge();
               const RegexId to = regexes.next(found[i], classes.rep[c]);
               if (to == RegexArena::empty()) continue;
               const auto [slot, fresh] = index.emplace(to.v, static_cast<uint32_t>(found.size()));
               if (fresh) {
                 if (found.size() == kDerivatives) return kFar;
                 found.push_back(to);
                 before.emplace_back();
               }
               before[slot].push_back(i);
             }
           }
           // The search is breadth first and backwards, from the derivatives that may end.
           std::vector<uint32_t> distance(found.size(), kFar), order;
           for (uint32_t i = 0; i < found.size(); ++i)
             if (regexes.nullable(found[i])) {
               distance[i] = 0;
               order.push_back(i);
             }
           for (std::size_t at = 0; at < order.size(); ++at)
             for (const uint32_t i : before[order[at]])
               if (distance[i] == kFar) {
                 distance[i] = distance[order[at]] + 1;
                 order.push_back(i);
               }
           return *std::ranges::max_element(distance);
         })
      .value_or(kFar);
}

// Returns an upper bound by the structure of a regex; boolean() does the same for an intersection. If the
// structure gives no bound, a search looks for a shortest text.
uint32_t Lengths::regex(RegexId r) {
  check_depth();
  if (const uint32_t* known = regexes_.find(r.v)) return *known;
  const RegexNode n = parser_.regexes().node(r);
  uint32_t out = kFar;
  switch (n.kind) {
    case RegexKind::kEpsilon:
    case RegexKind::kAnything:
    case RegexKind::kDone: return 0;
    case RegexKind::kBytes: return 1;
    case RegexKind::kLiteral: return n.n;
    case RegexKind::kEmpty:
    case RegexKind::kPoison: return kFar;
    case RegexKind::kCat: out = sum(regex(RegexId{n.a}), regex(RegexId{n.b})); break;
    case RegexKind::kRepeat: out = n.min == 0 ? 0 : times(regex(RegexId{n.a}), n.min); break;
    case RegexKind::kAlt:
      // A boolean alternative may need a search, so it is asked only if no other alternative has a bound.
      for (const bool hard : {false, true})
        for (uint32_t i = 0; i < n.n && !(hard && out < kFar); ++i)
          if (const RegexNode& kid = parser_.regexes().node(RegexId{n.kids[i]});
              (kid.boolean || kid.lazy) == hard)
            out = std::min(out, regex(RegexId{n.kids[i]}));
      break;
    case RegexKind::kLiteralSet: out = longest(r); break;
    default: out = boolean(r, false);
  }
  if (out >= kFar && n.nullable) out = 0;
  if (out >= kFar && (n.boolean || n.lazy)) out = searched(r);
  regexes_.emplace(r.v, out);
  return out;
}

// In `a{3}` a token may end behind any `a`, or inside one. So behind the token at most two more `a` are
// missing, and the rest of the `a` in which the token ended.
uint32_t Lengths::begun(RegexId r) {
  check_depth();
  if (const uint32_t* known = begun_.find(r.v)) return *known;
  const RegexNode n = parser_.regexes().node(r);
  uint32_t out = 0;
  switch (n.kind) {
    case RegexKind::kEmpty:
    case RegexKind::kEpsilon:
    case RegexKind::kAnything:
    case RegexKind::kDone: return 0;
    case RegexKind::kBytes: return 1;
    case RegexKind::kLiteral: return n.n;
    case RegexKind::kCat:
      out = std::max(sum(begun(RegexId{n.a}), regex(RegexId{n.b})), begun(RegexId{n.b}));
      break;
    case RegexKind::kRepeat:
      out = sum(begun(RegexId{n.a}), n.min < 2 ? 0 : times(regex(RegexId{n.a}), n.min - 1));
      break;
    case RegexKind::kAlt:
      for (uint32_t i = 0; i < n.n && out < kFar; ++i) out = std::max(out, begun(RegexId{n.kids[i]}));
      break;
    case RegexKind::kLiteralSet: out = longest(r); break;
    default: out = boolean(r, true);
  }
  if (out >= kFar && (n.boolean || n.lazy)) out = behind_any(r);
  begun_.emplace(r.v, out);
  return out;
}

// Returns an upper bound of the bytes that complete r behind a token that ends with a whole character of r.
uint32_t Lengths::left(RegexId r) {
  check_depth();
  if (parser_.regexes().is_character(r)) return 0;
  if (const uint32_t* known = left_.find(r.v)) return *known;
  const RegexNode n = parser_.regexes().node(r);
  uint32_t out = 0;
  switch (n.kind) {
    case RegexKind::kCat:
      out = std::max(sum(left(RegexId{n.a}), regex(RegexId{n.b})), left(RegexId{n.b}));
      break;
    case RegexKind::kRepeat:
      out = sum(left(RegexId{n.a}), n.min < 2 ? 0 : times(regex(RegexId{n.a}), n.min - 1));
      break;
    case RegexKind::kAlt:
      for (uint32_t i = 0; i < n.n; ++i) out = std::max(out, left(RegexId{n.kids[i]}));
      break;
    default: return begun(r);
  }
  left_.emplace(r.v, out);
  return out;
}

// Only one form has a bound here: a pattern of strings beside a maximum of characters. If the maximum is at
// least the bytes of the longest token and of what completes the pattern behind it, the maximum excludes none
// of these completions, so the bound of the pattern holds.
uint32_t Lengths::characters(RegexId r) {
  const RegexArena& regexes = parser_.regexes();
  const RegexNode n = regexes.node(r);
  if (n.kind != RegexKind::kAnd || n.n != 2) return kFar;
  const RegexId a{n.kids[0]}, b{n.kids[1]};
  const RegexId count = is_length(a) ? a : b, pattern = is_length(a) ? b : a;
  const RegexNode p = regexes.node(pattern);
  if (!is_length(count) || !p.body() || p.boolean || p.lazy || p.labelled) return kFar;
  const RegexArena::Counter repeat = regexes.counter(count);
  const uint32_t bytes = left(pattern);
  return bytes < kFar && repeat.min == 0 && repeat.max >= sum(bytes, reach_) ? bytes : kFar;
}

// Returns an upper bound of the bytes of a symbol's shortest text. It is kFar for lexemes and for other
// symbols whose texts depend on the text in front.
uint32_t Lengths::symbol(Symbol s) {
  switch (s.kind()) {
    case Symbol::kTerminal: return regex(s.regex());
    case Symbol::kRule: return rule(s.rule_id(), false);
    case Symbol::kReader: return rule(s.rule_id(), true);
    case Symbol::kCapture:
    case Symbol::kNote: return 0;
    default: return kFar;
  }
}

// Returns an upper bound of the bytes of a rule's shortest text: the bound that the productions give,
// otherwise the smallest bound of its alternatives.
uint32_t Lengths::rule(RuleId r, bool reader) {
  check_depth();
  if (const uint32_t* known = rules_.find(r.v)) {
    met_open_ += *known == kOpen;
    return std::min(*known, kFar);
  }
  // A lexeme may forbid the first byte of the shortest text behind it. So in a grammar with lexemes the sum
  // of the parts' bounds is no bound.
  if (productions_.traits_of(r).plain) return kFar;
  if (depth_ == 0) steps_ = 0;
  if (++steps_ > kSteps) {
    ++met_open_;
    return kFar;
  }
  charge(5);
  ++depth_;
  const Undo up([&] { --depth_; });
  rules_.emplace(r.v, kOpen);
  const uint32_t before = met_open_;
  met_open_ = 0;
  Undo close([&] {
    rules_.erase(r.v);
    met_open_ = 0;
  });
  Told<uint32_t> bound = told([&] {
    Bound b;
    if (productions_.bound(r, b)) {
      uint32_t worst = 0;
      for (Symbol s : b.any) worst = std::max(worst, symbol(s));
      uint32_t bytes = sum(b.bytes, worst);
      for (Symbol s : b.all) bytes = sum(bytes, symbol(s));
      return bytes;
    }
    if (reader) return kFar;
    bool hard = false;
    const uint32_t bytes = search(r, hard);
    return bytes >= kFar && hard && met_open_ == 0 ? searched(r) : bytes;
  });
  close.keep();
  if (!bound) met_open_ = 0;
  const uint32_t out = std::move(bound).value_or(kFar);
  // A bound that was found while a rule around this rule was being computed is correct, so it is remembered.
  // kFar is not remembered in this case, because it may come from the unfinished rule.
  if (out < kFar || met_open_ == 0 || depth_ == 1)
    rules_[r.v] = out;
  else
    rules_.erase(r.v);
  met_open_ += before;
  return out;
}

// Returns the smallest bound of the rule's alternatives. Sets `hard` if some alternative contains a reader or
// a capture.
uint32_t Lengths::search(RuleId r, bool& hard) {
  Alternatives alts;
  productions_.expand_shortest(r, Reading{}, alts);
  uint32_t out = kFar;
  const auto plain_cost = [&](std::span<const Symbol> symbols) {
    uint32_t least = 0;
    for (Symbol s : symbols) {
      if (s.kind() == Symbol::kReader || s.kind() == Symbol::kCapture) hard = true;
      least = sum(least, s.kind() == Symbol::kTerminal ? regex(s.regex()) : s.kind() == Symbol::kRule);
    }
    return least;
  };
  for (const auto& [least, symbols] : by_cost(alts, plain_cost)) {
    if (least >= out) break;
    uint32_t bytes = 0;
    for (Symbol s : symbols) bytes = bytes < out ? sum(bytes, symbol(s)) : bytes;
    out = std::min(out, bytes);
  }
  return out;
}

uint32_t Lengths::stack(StackId s) {
  return along(parser_.stacks(), stacks_, s, kFar, 0u, true,
               [&](const StackEntry& e, uint32_t rest, uint32_t& out) {
                 out = std::min(out, sum(symbol(e.top), rest));
               });
}

std::size_t Lengths::nearest(StackId s) {
  const auto entries = parser_.stacks().entries(s);
  std::size_t best = 0;
  uint32_t least = kFar;
  for (std::size_t i = 0; entries.size() > 1 && i < entries.size(); ++i)
    if (const uint32_t bytes = sum(symbol(entries[i].top), stack(entries[i].rest)); bytes < least) {
      least = bytes;
      best = i;
    }
  return best;
}

uint32_t Lengths::of(StateId s) {
  const State& st = parser_.state(s);
  if (st.accepting) return 0;
  if (const uint32_t* known = states_.find(s.v)) return *known;
  uint32_t out = kFar;
  for (const Item& i : parser_.items(s))
    if (i.regex != RegexArena::poison()) out = std::min(out, sum(regex(i.regex), stack(i.stack)));
  states_.emplace(s.v, out);
  return out;
}

}  // namespace structgen
