#include "parse/alive.h"

#include <algorithm>

#include "regex/regex.h"

namespace structgen {

namespace {
constexpr uint32_t kNoContext = 0xFFFFFFFFu;
constexpr uint32_t kMaxDepth = 2'000;  // stacks this deep below a new one were asked about while they grew
uint64_t key(uint32_t a, uint32_t b) { return (static_cast<uint64_t>(a) << 32) | b; }
void add(std::vector<Alive::Pending>& to, Alive::Pending p) {
  if (std::find(to.begin(), to.end(), p) == to.end()) to.push_back(p);
}
}  // namespace

Alive::Alive(RegexArena& regexes, Productions& productions, StackArena& stacks)
    : regexes_(regexes), productions_(productions), stacks_(stacks) {
  pending({RegexArena::empty(), kNoContext});
}

Alive::Pending Alive::pending(Value v) {
  const auto [it, fresh] = numbers_.try_emplace(v, static_cast<Pending>(pendings_.size()));
  if (fresh) pendings_.push_back(v);
  return it->second;
}

RegexId Alive::restricted(RegexId r, RegexId follow) {
  if (follow == RegexArena::empty() || r == RegexArena::poison()) return r;
  const ByteSet& set = regexes_.byte_set(regexes_.node(follow).a);
  const ByteSet live = regexes_.live(r);
  if ((live & set).none()) return r;
  if ((live & ~set).none()) return regexes_.nullable(r) ? RegexArena::epsilon() : RegexArena::empty();
  return regexes_.both(r, regexes_.optional(regexes_.cat(regexes_.bytes(~set), RegexArena::anything())));
}

void Alive::steps(Symbol s, Pending from, std::vector<Step>& out) {
  const Value v = pendings_[from];
  switch (s.kind()) {
    case Symbol::kTerminal: {
      const RegexId r = restricted(s.regex(), v.follow);
      if (r == RegexArena::poison()) return;
      if (regexes_.live(r).any()) out.push_back({kClear, r});
      if (regexes_.nullable(r)) out.push_back({from, RegexArena::epsilon()});
      return;
    }
    case Symbol::kLexeme:
      if (v.context == kNoContext) return out.push_back({kClear, RegexArena::poison()});
      for (const LexemePart& part : productions_.lexeme(s.number(), v.context)) {
        const RegexId r = restricted(part.regex, v.follow);
        if (regexes_.live(r).any()) out.push_back({pending({part.follow, kNoContext}), r});
      }
      return;
    case Symbol::kFollow: {
      RegexId follow = s.regex();
      if (v.follow != RegexArena::empty())
        follow = regexes_.bytes(regexes_.byte_set(regexes_.node(follow).a) | regexes_.byte_set(regexes_.node(v.follow).a));
      return out.push_back({pending({follow, v.context}), RegexArena::epsilon()});
    }
    case Symbol::kAfter: return out.push_back({pending({v.follow, s.number()}), RegexArena::epsilon()});
    case Symbol::kNote:
    case Symbol::kCapture: return out.push_back({from, RegexArena::epsilon()});
    default: return out.push_back({kClear, RegexArena::poison()});
  }
}

void Alive::out(Symbol s, Pending from, std::vector<Pending>& to) {
  if (s.kind() == Symbol::kRule && productions_.plain(s.rule_id())) {
    for (Pending p : rule(s.rule_id(), from).out) add(to, p);
    return;
  }
  std::vector<Step> found;
  steps(s, from, found);
  for (const Step& step : found) add(to, step.to);
}

Alive::Rule& Alive::rule(RuleId r, Pending from) {
  const auto [it, fresh] = rules_.try_emplace(key(r.v, from));
  if (fresh) open_.push_back(it->first);
  return it->second;
}

// All rules asked for, again and again until nothing is added.
void Alive::solve() {
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t i = 0; i < open_.size(); ++i) {
      const uint64_t at = open_[i];
      const RuleId r{static_cast<uint32_t>(at >> 32)};
      const Pending from = static_cast<Pending>(at);
      Alternatives alternatives;
      productions_.expand(r, Reading{}, alternatives);
      uint32_t begin = 0;
      std::vector<Pending> found, now, next;
      for (uint32_t end : alternatives.ends) {
        now.assign(1, from);
        for (uint32_t k = begin; k < end && !now.empty(); ++k) {
          next.clear();
          for (Pending p : now) out(alternatives.symbols[k], p, next);
          now.swap(next);
        }
        for (Pending p : now) add(found, p);
        begin = end;
      }
      Rule& rule = rules_[at];
      if (found.size() != rule.out.size()) {
        rule.out = std::move(found);
        changed = true;
      }
    }
  }
  for (uint64_t at : open_) rules_[at].done = true;
  open_.clear();
}

bool Alive::stack(StackId s, Pending from, uint32_t depth) {
  if (stacks_.has_end(s) || depth > kMaxDepth) return true;
  const auto known = stacks_known_.find(key(s.v, from));
  if (known != stacks_known_.end()) return known->second;
  bool found = false;
  for (const StackEntry& e : stacks_.entries(s)) {
    std::vector<Pending> after;
    if (e.top.kind() == Symbol::kRule && productions_.plain(e.top.rule_id())) {
      if (!rule(e.top.rule_id(), from).done) solve();
      after = rule(e.top.rule_id(), from).out;
    } else {
      out(e.top, from, after);
    }
    for (Pending p : after)
      if (stack(e.rest, p, depth + 1)) {
        found = true;
        break;
      }
    if (found) break;
  }
  stacks_known_.emplace(key(s.v, from), found);
  return found;
}

}  // namespace structgen
