#include "parse/growth.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/depth.h"
#include "base/told.h"
#include "base/undo.h"
#include "base/work.h"

namespace structgen {

namespace {
// One question visits at most kRules rules, nested at most kLevels deep. Each further rule counts as a rule
// whose texts all have one length.
constexpr uint32_t kRules = 2'000;
constexpr uint32_t kLevels = 200;
// longest() takes at most kLongestSteps steps between states, with at most kLongestWork units of work; then
// it returns kUnknown. In captured text, each byte leads to a state of its own.
constexpr std::size_t kLongestSteps = 6'000;
constexpr int64_t kLongestWork = 400'000;
// on_the_way() looks beside the completion only at states in which at most this many bytes may follow.
constexpr int kBeside = 8;
// on_the_way() follows at most this many turns off the completion.
constexpr std::size_t kOffWay = 8;

// Returns the span of two parts in a row: the first part has the span `a`, the second part the span `b`.
uint32_t together(uint32_t a, uint32_t b) {
  return std::max(a, b) == Lengths::kFar ? Lengths::kFar : std::min(a + b, Lengths::kFar - 1);
}
}  // namespace

// Joins two parts that stand in a row. The result has three kinds of ranges: those of `a` with the shortest
// text of `b`, those of `b` with the shortest text of `a`, and those in which both parts grow.
Growth::Part Growth::then(const Part& a, const Part& b) {
  Part out{Lengths::sum(a.least, b.least), {}};
  out.some.join(a.some, b.least);
  out.some.join(b.some, a.least);
  for (const LengthRange& x : {a.some.widest, a.some.earliest})
    for (const LengthRange& y : {b.some.widest, b.some.earliest})
      out.some.add({Lengths::sum(x.from, y.from), together(x.span, y.span)});
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
  if (const LengthRanges* known = regexes_.find(r.v)) return {least, *known};
  LengthRanges out = grown(r);
  if (out.widest.from >= kFar) out.add({least, 0});
  regexes_.emplace(r.v, out);
  return {least, out};
}

Growth::LengthRanges Growth::grown(RegexId r) {
  check_depth();
  charge();
  const RegexNode n = parser_.regexes().node(r);
  LengthRanges out;
  switch (n.kind) {
    case RegexKind::kAnything: out.add({0, kFar}); return out;
    case RegexKind::kCat: return then(regex(RegexId{n.a}), regex(RegexId{n.b})).some;
    case RegexKind::kAlt:
      for (uint32_t i = 0; i < n.n; ++i) out.join(regex(RegexId{n.kids[i]}).some);
      return out;
    case RegexKind::kRepeat: {
      if (unit(RegexId{n.a}))
        out.add({lengths_.regex(r), n.max == kUnbounded ? kFar : std::min(n.max - n.min, kFar - 1)});
      if (n.max == 0 || out.widest.endless()) return out;
      const Part one = regex(RegexId{n.a});
      const uint64_t rest = n.min < 2 ? 0 : uint64_t{n.min - 1} * one.least;
      out.join(one.some, static_cast<uint32_t>(std::min<uint64_t>(rest, kFar)));
      return out;
    }
    case RegexKind::kAnd:
      if (unit(parser_.regexes().any_character())) out.add({lengths_.endless(r), kFar});
      return out;
    default: return out;
  }
}

Growth::Part Growth::symbol(Symbol s) {
  switch (s.kind()) {
    case Symbol::kTerminal: return regex(s.regex());
    case Symbol::kRule:
    case Symbol::kReader: return rule(s);
    default: return {lengths_.symbol(s), {{lengths_.symbol(s), 0}, {}}};
  }
}

Growth::Part Growth::sequence(std::span<const Symbol> symbols) {
  Part out{0, {{0, 0}, {}}};
  for (const Symbol s : symbols) {
    out = then(out, symbol(s));
    if (out.least >= kFar) return {kFar, {}};
  }
  return out;
}

// Inside itself a rule counts as a rule whose texts all have one length. The range may come out too small,
// which callers allow.
Growth::Part Growth::rule(Symbol s) {
  const RuleId r = s.rule_id();
  const uint32_t least = lengths_.symbol(s);
  if (const LengthRanges* known = rules_.find(r.v)) return {least, *known};
  if (depth_ == 0) steps_ = 0;
  LengthRanges out{{least, 0}, {}};
  if (productions_.traits_of(r).plain || depth_ > kLevels || ++steps_ > kRules) return {least, out};
  charge(5);
  rules_.emplace(r.v, out);
  ++depth_;
  Undo forget([&] { rules_.erase(r.v); });
  const Undo up([&] { --depth_; });
  Bound b;
  if (productions_.bound(r, b)) {
    // One symbol of `any` comes, but it is not known which symbol. So for `any` only those lengths count that
    // each of its symbols can have. Every symbol of `all` comes.
    const LengthRange first{0, b.any.empty() ? 0 : kFar};
    Part any{0, {first, b.any.empty() ? LengthRange{} : first}};
    const auto both = [](LengthRange& x, const LengthRange& y) {
      x = {std::max(x.from, y.from), std::min(x.span, y.span)};
    };
    for (const Symbol a : b.any) {
      const Part p = symbol(a);
      any.least = std::max(any.least, p.least);
      both(any.some.widest, p.some.widest);
      both(any.some.earliest, p.some.earliest);
    }
    const auto bytes = static_cast<uint32_t>(std::min<uint64_t>(b.bytes, kFar));
    out.join(then(then({bytes, {{bytes, 0}, {}}}, any), sequence(b.all)).some);
  }
  if (!out.widest.endless() && s.kind() == Symbol::kRule) {
    Alternatives alts;
    productions_.expand(r, Reading{}, alts);
    for (const std::span<const Symbol> symbols : alts.each()) out.join(sequence(symbols).some);
  }
  forget.keep();
  rules_[r.v] = out;
  return {least, out};
}

Growth::Part Growth::stack(StackId s) {
  const LengthRanges none{}, end{{0, 0}, {}};
  return {lengths_.stack(s), along(parser_.stacks(), stacks_, s, none, end, false,
                                   [&](const StackEntry& e, const LengthRanges& rest, LengthRanges& out) {
                                     out.join(then(symbol(e.top), {lengths_.stack(e.rest), rest}).some);
                                   })};
}

Growth::LengthRanges Growth::parts(StateId s) {
  if (const LengthRanges* known = parts_.find(s.v)) return *known;
  LengthRanges out;
  for (const Item& i : parser_.items(s))
    if (i.regex != RegexArena::poison()) out.join(then(regex(i.regex), stack(i.stack)).some);
  parts_.emplace(s.v, out);
  return out;
}

// Returns the ranges of lengths of all states on a shortest completion of s and one byte beside it; each
// range counts the bytes up to its state. In an object of enums, the completion behind `"UP"` is `}`. The
// byte `,` leads beside this completion, to keys of any length. If `turns` is true and no range is endless so
// far, the completions of the states beside are followed, too: behind `[` the completion is `]`, and a value
// grows only behind `{"":`.
Growth::LengthRanges Growth::on_the_way(StateId s, bool turns) {
  const std::string& text = completion_.of(s);
  LengthRanges out = parts(s);
  std::vector<std::pair<StateId, uint32_t>> beside;
  for (uint32_t n = 0; s != Parser::dead() && n <= text.size(); ++n) {
    if (out.widest.endless() && n >= out.earliest.from) break;
    const auto look = [&](uint8_t b) {
      const StateId to = parser_.step(s, b);
      if (to == Parser::dead()) return;
      out.join(parts(to), n + 1);
      if (beside.size() < kOffWay && (n == text.size() || b != static_cast<uint8_t>(text[n])))
        beside.emplace_back(to, n + 1);
    };
    if (const ByteSet bytes = parser_.live(s); bytes.count() <= kBeside) bytes.for_each(look);
    if (n == text.size()) break;
    const auto b = static_cast<uint8_t>(text[n]);
    look(b);
    s = parser_.step(s, b);
  }
  for (std::size_t i = 0; turns && i < beside.size() && !out.widest.endless(); ++i)
    if (Told<LengthRanges> some = told_with_work_left([&] { return on_the_way(beside[i].first, false); }))
      out.join(*some, beside[i].second);
  return out;
}

Growth::LengthRanges Growth::of(StateId s) {
  const LengthRanges grown = parts(s);
  return grown.widest.endless() ? grown : closer(s);
}

Growth::LengthRanges Growth::closer(StateId s) {
  if (const LengthRanges* known = states_.find(s.v)) return *known;
  Told<LengthRanges> found = told_with_work_left([&] { return on_the_way(s, true); });
  const LengthRanges out = found ? *found : parts(s);
  states_.emplace(s.v, out);
  return out;
}

// Searches depth first. States of a finite language lie on no cycle, so each state is visited once. If a
// range has no end, or a state is met again on its own path, then no text is the longest.
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
  const int64_t least_left = meter.left() - kLongestWork;
  const auto open = [&](StateId at) {
    charge(10);
    if (parts(at).widest.endless()) {
      stop = kFar;
    } else if (looked > kLongestSteps || meter.left() < least_left || parser_.state(at).poisoned) {
      stop = kUnknown;
    } else {
      Open now{at, 0, {}};
      parser_.live(at).for_each([&](uint8_t b) {
        const StateId to = parser_.step(at, b);
        if (to != Parser::dead() && (now.next.empty() || now.next.back() != to)) now.next.push_back(to);
      });
      charge(static_cast<int64_t>(now.next.size()));
      looked += 1 + now.next.size();
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
  // If the search met a cycle, no state of the path has a longest text, so all states of the path get kFar.
  // kUnknown is remembered for the first state only.
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
