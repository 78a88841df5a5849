#include "parse/growth.h"

#include <algorithm>
#include <vector>

#include "base/depth.h"
#include "base/told.h"
#include "base/undo.h"
#include "base/work.h"

namespace structgen {

namespace {
// One question visits at most kRules rules, which nest at most kLevels deep. Further rules count as rules of
// one length.
constexpr uint32_t kRules = 2'000;
constexpr uint32_t kLevels = 200;
// longest() visits at most this many states; then it returns kUnknown.
constexpr std::size_t kStates = 4'000;
// on_the_way() looks beside the completion only at states in which at most this many bytes may follow.
constexpr int kBeside = 8;

// Returns the span of two parts, one behind the other, with the spans `a` and `b`.
uint32_t together(uint32_t a, uint32_t b) {
  return std::max(a, b) == Lengths::kFar ? Lengths::kFar : std::min(a + b, Lengths::kFar - 1);
}
}  // namespace

// Joins two parts that follow each other. Its range is that of one part while the other has its shortest
// text, or the sum of both ranges.
Growth::Part Growth::then(const Part& a, const Part& b) {
  Part out{Lengths::sum(a.least, b.least), {}};
  for (const LengthRange& s :
       {LengthRange{Lengths::sum(a.some.from, b.least), a.some.span},
        LengthRange{Lengths::sum(a.least, b.some.from), b.some.span},
        LengthRange{Lengths::sum(a.some.from, b.some.from), together(a.some.span, b.some.span)}})
    if (s.from < kFar && s.better(out.some)) out.some = s;
  return out;
}

// Returns true if the structure of the regex shows a text of one byte.
bool Growth::unit(RegexId r) const {
  check_depth();
  const RegexNode n = parser_.regexes().node(r);
  switch (n.kind) {
    case RegexKind::kBytes: return true;
    case RegexKind::kLiteral: return n.n == 1;
    case RegexKind::kRepeat: return n.min <= 1 && unit(RegexId{n.a});
    case RegexKind::kAlt:
      for (uint32_t i = 0; i < n.n; ++i)
        if (unit(RegexId{n.kids[i]})) return true;
      return false;
    default: return false;
  }
}

Growth::Part Growth::regex(RegexId r) {
  const uint32_t least = lengths_.regex(r);
  if (const LengthRange* known = regexes_.find(r.v)) return {least, *known};
  LengthRange out = grown(r);
  if (out.from >= kFar) out = {least, 0};
  regexes_.emplace(r.v, out);
  return {least, out};
}

Growth::LengthRange Growth::grown(RegexId r) {
  check_depth();
  charge();
  const RegexNode n = parser_.regexes().node(r);
  LengthRange out;
  switch (n.kind) {
    case RegexKind::kAnything: return {0, kFar};
    case RegexKind::kCat: return then(regex(RegexId{n.a}), regex(RegexId{n.b})).some;
    case RegexKind::kAlt:
      for (uint32_t i = 0; i < n.n; ++i)
        if (const LengthRange s = regex(RegexId{n.kids[i]}).some; s.better(out)) out = s;
      return out;
    case RegexKind::kRepeat: {
      if (unit(RegexId{n.a}))
        out = {lengths_.regex(r), n.max == kUnbounded ? kFar : std::min(n.max - n.min, kFar - 1)};
      if (n.max == 0 || out.endless()) return out;
      const Part one = regex(RegexId{n.a});
      const uint64_t rest = n.min < 2 ? 0 : uint64_t{n.min - 1} * one.least;
      const LengthRange inside{Lengths::sum(one.some.from, std::min<uint64_t>(rest, kFar)), one.some.span};
      return inside.better(out) ? inside : out;
    }
    case RegexKind::kAnd:
      return unit(parser_.regexes().any_character()) ? LengthRange{lengths_.endless(r), kFar} : out;
    default: return out;
  }
}

Growth::Part Growth::symbol(Symbol s) {
  switch (s.kind()) {
    case Symbol::kTerminal: return regex(s.regex());
    case Symbol::kRule:
    case Symbol::kReader: return rule(s);
    default: return {lengths_.symbol(s), {lengths_.symbol(s), 0}};
  }
}

Growth::Part Growth::sequence(std::span<const Symbol> symbols) {
  Part out{0, {0, 0}};
  for (const Symbol s : symbols) {
    out = then(out, symbol(s));
    if (out.least >= kFar) return {kFar, {}};
  }
  return out;
}

// A rule inside of itself counts as a rule of one length. This may make the range smaller than it is, which
// is allowed.
Growth::Part Growth::rule(Symbol s) {
  const RuleId r = s.rule_id();
  const uint32_t least = lengths_.symbol(s);
  if (const LengthRange* known = rules_.find(r.v)) return {least, *known};
  if (depth_ == 0) steps_ = 0;
  LengthRange out{least, 0};
  if (productions_.traits_of(r).plain || depth_ > kLevels || ++steps_ > kRules) return {least, out};
  charge(5);
  rules_.emplace(r.v, out);
  ++depth_;
  Undo forget([&] { rules_.erase(r.v); });
  const Undo up([&] { --depth_; });
  Bound b;
  if (productions_.bound(r, b)) {
    // Only one symbol of `any` will come, and it is not known which. So the part's length can grow only if
    // that of every symbol of `any` can, or that of some symbol of `all`.
    Part any{0, {0, b.any.empty() ? 0 : kFar}};
    for (const Symbol a : b.any) {
      const Part p = symbol(a);
      any = {std::max(any.least, p.least),
             {std::max(any.some.from, p.some.from), std::min(any.some.span, p.some.span)}};
    }
    const auto bytes = static_cast<uint32_t>(std::min<uint64_t>(b.bytes, kFar));
    const LengthRange some = then(then({bytes, {bytes, 0}}, any), sequence(b.all)).some;
    if (some.better(out)) out = some;
  }
  if (!out.endless() && s.kind() == Symbol::kRule) {
    Alternatives alts;
    productions_.expand(r, Reading{}, alts);
    for (const std::span<const Symbol> symbols : alts.each())
      if (const LengthRange some = sequence(symbols).some; some.better(out)) out = some;
  }
  forget.keep();
  rules_[r.v] = out;
  return {least, out};
}

Growth::Part Growth::stack(StackId s) {
  const LengthRange none{}, end{0, 0};
  return {lengths_.stack(s), along(parser_.stacks(), stacks_, s, none, end, false,
                                   [&](const StackEntry& e, const LengthRange& rest, LengthRange& out) {
                                     const LengthRange some =
                                         then(symbol(e.top), {lengths_.stack(e.rest), rest}).some;
                                     if (some.better(out)) out = some;
                                   })};
}

Growth::LengthRange Growth::parts(StateId s) {
  if (const LengthRange* known = parts_.find(s.v)) return *known;
  LengthRange out;
  for (const Item& i : parser_.items(s))
    if (i.regex != RegexArena::poison())
      if (const LengthRange some = then(regex(i.regex), stack(i.stack)).some; some.better(out)) out = some;
  parts_.emplace(s.v, out);
  return out;
}

// Returns the best range of lengths that begins on a shortest completion of a state or one byte beside it.
// The bytes up to there are added. After `"UP"` in an object of enums the completion is `}`; the `,` beside
// it leads to keys, which may have any length.
Growth::LengthRange Growth::on_the_way(StateId s) {
  const std::string& text = completion_.of(s);
  LengthRange out = parts(s);
  for (uint32_t n = 0; s != Parser::dead() && n <= text.size() && !(out.endless() && n >= out.from); ++n) {
    const auto look = [&](uint8_t b) {
      const StateId to = parser_.step(s, b);
      if (to == Parser::dead()) return;
      const LengthRange behind = parts(to), some{Lengths::sum(n + 1, behind.from), behind.span};
      if (some.better(out)) out = some;
    };
    if (const ByteSet bytes = parser_.live(s); bytes.count() <= kBeside) bytes.for_each(look);
    if (n == text.size()) break;
    const auto b = static_cast<uint8_t>(text[n]);
    look(b);
    s = parser_.step(s, b);
  }
  return out;
}

Growth::LengthRange Growth::of(StateId s) {
  const LengthRange grown = parts(s);
  return grown.endless() ? grown : closer(s);
}

Growth::LengthRange Growth::closer(StateId s) {
  if (const LengthRange* known = states_.find(s.v)) return *known;
  Told<LengthRange> found = told_with_work_left([&] { return on_the_way(s); });
  const LengthRange out = found ? *found : parts(s);
  states_.emplace(s.v, out);
  return out;
}

// Searches depth first. A finite language has no cycle of states, so each state is visited once. There is no
// longest text if a state has a range without an end, or is met again on its own path.
uint32_t Growth::longest(StateId s) {
  if (const uint32_t* known = longest_.find(s.v)) return *known;
  struct Open {
    StateId state;
    uint32_t most;
    std::vector<StateId> next;
  };
  constexpr uint32_t kOnPath = kUnknown + 1;
  std::vector<Open> path;
  std::size_t looked = 0;
  uint32_t stop = 0;
  const auto open = [&](StateId at) {
    charge(10);
    if (parts(at).endless()) {
      stop = kFar;
    } else if (++looked > kStates || parser_.state(at).poisoned) {
      stop = kUnknown;
    } else {
      Open now{at, 0, {}};
      parser_.live(at).for_each([&](uint8_t b) {
        const StateId to = parser_.step(at, b);
        if (to != Parser::dead() && (now.next.empty() || now.next.back() != to)) now.next.push_back(to);
      });
      charge(static_cast<int64_t>(now.next.size()));
      longest_[at.v] = kOnPath;
      path.push_back(std::move(now));
    }
  };
  const Undo forget([&] {
    for (const Open& o : path) longest_.erase(o.state.v);
  });
  open(s);
  while (stop == 0 && !path.empty()) {
    Open& now = path.back();
    if (now.next.empty()) {
      longest_[now.state.v] = now.most;
      const uint32_t behind = now.most + 1;
      path.pop_back();
      if (!path.empty()) path.back().most = std::max(path.back().most, behind);
      continue;
    }
    const StateId to = now.next.back();
    now.next.pop_back();
    const uint32_t* known = longest_.find(to.v);
    if (known && *known < kFar)
      now.most = std::max(now.most, *known + 1);
    else if (known)
      stop = *known == kUnknown ? kUnknown : kFar;
    else
      open(to);
  }
  if (stop == 0) return *longest_.find(s.v);
  // kUnknown is remembered only for the first state, kFar for every state on the path.
  for (const Open& o : path) {
    if (stop == kFar)
      longest_[o.state.v] = kFar;
    else
      longest_.erase(o.state.v);
  }
  path.clear();
  return longest_[s.v] = stop;
}

}  // namespace structgen
