#include "parse/growth.h"

#include <algorithm>
#include <vector>

#include "base/depth.h"
#include "base/told.h"
#include "base/undo.h"
#include "base/work.h"

namespace structgen {

namespace {
// One question looks at no more rules than this, and no deeper.
constexpr uint32_t kRules = 2'000;
constexpr uint32_t kLevels = 200;
// A longest text is looked for among so many states.
constexpr std::size_t kStates = 4'000;
// Beside a completion, states of at most so many bytes are looked at.
constexpr int kBeside = 8;
}  // namespace

Growth::Part Growth::then(Part a, Part b) {
  return {Lengths::sum(a.least, b.least),
          std::min(Lengths::sum(a.all, b.least), Lengths::sum(a.least, b.all))};
}

// Whether the regex has a text of one byte, as is plain to see.
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

uint32_t Growth::regex(RegexId r) {
  check_depth();
  if (const uint32_t* known = regexes_.find(r.v)) return *known;
  charge();
  const RegexNode n = parser_.regexes().node(r);
  const auto part = [&](RegexId of) -> Part { return {lengths_.regex(of), regex(of)}; };
  uint32_t out = kFar;
  switch (n.kind) {
    case RegexKind::kAnything: out = 0; break;
    case RegexKind::kCat: out = then(part(RegexId{n.a}), part(RegexId{n.b})).all; break;
    case RegexKind::kAlt:
      for (uint32_t i = 0; i < n.n; ++i) out = std::min(out, regex(RegexId{n.kids[i]}));
      break;
    case RegexKind::kRepeat:
      if (n.max == kUnbounded && unit(RegexId{n.a}))
        out = lengths_.regex(r);
      else if (n.max > 0)
        out = Lengths::sum(
            regex(RegexId{n.a}),
            n.min < 2 ? 0 : std::min<uint64_t>(kFar, uint64_t{n.min - 1} * lengths_.regex(RegexId{n.a})));
      break;
    case RegexKind::kAnd: out = unit(parser_.regexes().any_character()) ? lengths_.endless(r) : kFar; break;
    default: break;
  }
  regexes_.emplace(r.v, out);
  return out;
}

Growth::Part Growth::symbol(Symbol s) {
  switch (s.kind()) {
    case Symbol::kTerminal: return {lengths_.regex(s.regex()), regex(s.regex())};
    case Symbol::kRule:
    case Symbol::kReader: return {lengths_.symbol(s), rule(s.rule_id(), s.kind() == Symbol::kReader)};
    default: return {lengths_.symbol(s), kFar};
  }
}

Growth::Part Growth::sequence(std::span<const Symbol> symbols) {
  Part out{0, kFar};
  for (const Symbol s : symbols) {
    out = then(out, symbol(s));
    if (out.least >= kFar) return {kFar, kFar};
  }
  return out;
}

// A rule in progress is kFar; an answer that this made larger holds all the same.
uint32_t Growth::rule(RuleId r, bool reader) {
  if (const uint32_t* known = rules_.find(r.v)) return *known;
  if (depth_ == 0) steps_ = 0;
  if (productions_.plain(r) || depth_ > kLevels || ++steps_ > kRules) return kFar;
  charge(5);
  rules_.emplace(r.v, kFar);
  ++depth_;
  Undo forget([&] { rules_.erase(r.v); });
  const Undo up([&] { --depth_; });
  uint32_t out = kFar;
  Bound b;
  if (productions_.bound(r, b)) {
    // Which symbol of `any` comes is not known, so each of them has to grow, or a symbol of `all`.
    Part any{0, b.any.empty() ? kFar : 0};
    for (const Symbol s : b.any) {
      const Part p = symbol(s);
      any = {std::max(any.least, p.least), std::max(any.all, p.all)};
    }
    const auto bytes = static_cast<uint32_t>(std::min<uint64_t>(b.bytes, kFar));
    out = then(then({bytes, kFar}, any), sequence(b.all)).all;
  }
  if (out >= kFar && !reader) {
    Alternatives alts;
    productions_.expand(r, Reading{}, alts);
    uint32_t begin = 0;
    for (const uint32_t end : alts.ends) {
      out = std::min(out, sequence({alts.symbols.data() + begin, end - begin}).all);
      begin = end;
    }
  }
  forget.keep();
  rules_[r.v] = out;
  return out;
}

// Down the stack while each level has one entry, as in Lengths::stack().
uint32_t Growth::stack(StackId s) {
  check_depth();
  std::vector<StackId> path;
  uint32_t out = kFar;
  for (;;) {
    if (const uint32_t* known = stacks_.find(s.v)) {
      out = *known;
      break;
    }
    const auto entries = parser_.stacks().entries(s);
    if (entries.size() != 1) {
      charge(1 + static_cast<int64_t>(entries.size()));
      for (const StackEntry& e : entries)
        out = std::min(out, then(symbol(e.top), {lengths_.stack(e.rest), stack(e.rest)}).all);
      stacks_.emplace(s.v, out);
      break;
    }
    path.push_back(s);
    s = entries[0].rest;
  }
  for (; !path.empty(); path.pop_back()) {
    charge();
    const StackEntry e = parser_.stacks().entries(path.back())[0];
    out = then(symbol(e.top), {lengths_.stack(e.rest), out}).all;
    stacks_.emplace(path.back().v, out);
  }
  return out;
}

uint32_t Growth::by_parts(StateId s) {
  if (const uint32_t* known = parts_.find(s.v)) return *known;
  uint32_t out = kFar;
  for (const Item& i : parser_.items(s))
    if (i.regex != RegexArena::poison())
      out = std::min(
          out,
          then({lengths_.regex(i.regex), regex(i.regex)}, {lengths_.stack(i.stack), stack(i.stack)}).all);
  parts_.emplace(s.v, out);
  return out;
}

// The least sum of the bytes to a state on or beside a shortest completion and its growth by parts. Behind
// `"UP"` in an object of enums, the completion is `}`, and the `,` beside it leads to keys, which grow.
uint32_t Growth::on_the_way(StateId s) {
  const std::string& text = completion_.of(s);
  uint32_t out = by_parts(s);
  for (uint32_t n = 0; s != Parser::dead() && n <= text.size() && n < out; ++n) {
    const auto look = [&](uint8_t b) {
      if (const StateId to = parser_.step(s, b); to != Parser::dead())
        out = std::min(out, Lengths::sum(n + 1, by_parts(to)));
    };
    if (const ByteSet bytes = parser_.live(s); bytes.count() <= kBeside) bytes.for_each(look);
    if (n == text.size()) break;
    const auto b = static_cast<uint8_t>(text[n]);
    look(b);
    s = parser_.step(s, b);
  }
  return out;
}

uint32_t Growth::of(StateId s) {
  const uint32_t grown = by_parts(s);
  return grown < kFar ? grown : closer(s);
}

uint32_t Growth::closer(StateId s) {
  if (const uint32_t* known = states_.find(s.v)) return *known;
  Told<uint32_t> found = told([&] { return on_the_way(s); });
  if (!found && meter.exhausted()) std::move(found).value();
  const uint32_t out = found ? *found : by_parts(s);
  states_.emplace(s.v, out);
  return out;
}

// Depth first. The states of a finite language have no cycle, so each of them is looked at once; a state that
// grows, or that comes again on the path, shows that there is no longest text.
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
    if (by_parts(at) < kFar) {
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
  // Of "not known" only the first state is sure; all states on the path have texts beyond any length.
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
