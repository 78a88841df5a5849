#include "parse/alive.h"

#include <algorithm>

#include "base/depth.h"
#include "base/undo.h"
#include "base/work.h"
#include "regex/regex.h"

namespace structgen {

namespace {
constexpr uint32_t kNoContext = 0xFFFFFFFFu;
// A stack deeper than this counts as readable without a search. The parser asks about a stack when it pushes
// a symbol, so it has already asked about the stack below this symbol.
constexpr uint32_t kMaxAskedDepth = 2'000;
uint64_t key(uint32_t a, uint32_t b) { return (static_cast<uint64_t>(a) << 32) | b; }
}  // namespace

Alive::Alive(RegexArena& regexes, Productions& productions, StackArena& stacks)
    : regexes_(regexes),
      productions_(productions),
      restricted_(productions.traits().restricted),
      stacks_(stacks) {
  pending({RegexArena::empty(), kNoContext});
}

Alive::Pending Alive::pending(Value v) { return numbered(numbers_, pendings_, v, v); }

// If every text of one byte or more is lost, returns epsilon() or empty(); if no text is lost, returns r
// itself. The parser compares numbers of regexes, so equal languages must get one number.
RegexId Alive::restricted(RegexId r, RegexId follow) {
  if (follow == RegexArena::empty() || r == RegexArena::poison()) return r;
  const ByteSet& set = regexes_.byte_set(regexes_.node(follow).a);
  const ByteSet live = regexes_.live(r);
  if ((live & set).none()) return r;
  if ((live & ~set).none()) return regexes_.nullable(r) ? RegexArena::epsilon() : RegexArena::empty();
  return regexes_.both(r, regexes_.optional(regexes_.cat(regexes_.bytes(~set), RegexArena::anything())));
}

// A terminal whose text has a byte ends the pending; a terminal with the empty text keeps the pending. A
// lexeme begins a new pending: the bytes that may not follow this lexeme. For a reader the step has the regex
// poison(), which callers take for "any text".
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
        follow = regexes_.bytes(regexes_.byte_set(regexes_.node(follow).a) |
                                regexes_.byte_set(regexes_.node(v.follow).a));
      return out.push_back({pending({follow, v.context}), RegexArena::epsilon()});
    }
    case Symbol::kAfter: return out.push_back({pending({v.follow, s.number()}), RegexArena::epsilon()});
    case Symbol::kNote:
    case Symbol::kLimit:
    case Symbol::kCapture: return out.push_back({from, RegexArena::epsilon()});
    default: return out.push_back({kClear, RegexArena::poison()});
  }
}

void Alive::Set::add(Pending p) {
  if (marks.size() <= p) marks.resize(p + 1, 0);
  if (marks[p] == mark) return;
  marks[p] = mark;
  list.push_back(p);
}

// Adds to `to` every pending that is possible behind the symbol if `from` is the pending in front of it.
void Alive::out(Symbol s, Pending from, Set& to) {
  if (s.kind() == Symbol::kRule && productions_.traits_of(s.rule_id()).plain) {
    for (Pending p : rule(s.rule_id(), from).out) to.add(p);
    return;
  }
  steps_.clear();
  steps(s, from, steps_);
  for (const Step& step : steps_) to.add(step.to);
}

// Returns the entry of a rule that is read with the pending `from`. A new entry goes on the work list. The
// rule that is being solved (at_) is noted as a user of the entry: it is solved again when the entry grows.
Alive::Rule& Alive::rule(RuleId r, Pending from) {
  const uint64_t at = key(r.v, from);
  auto it = rules_.find(at);
  if (it == rules_.end()) {
    open_.push_back(at);
    todo_.push_back(at);
    it = rules_.try_emplace(at).first;
  }
  Rule& out = it->second;
  if (!out.done && at_ != kNone && (out.users.empty() || out.users.back() != at_)) out.users.push_back(at_);
  return out;
}

// Computes the least fixpoint. A rule is visited again when the `out` of a rule that it uses has grown. The
// work list is a stack, so most rules are complete before their users are visited again.
void Alive::solve() {
  settle();
  for (uint64_t at : open_) {
    Rule& rule = rules_[at];
    rule.done = true;
    rule.users = {};
  }
  open_.clear();
}

void Alive::settle() {
  Alternatives alternatives;
  while (!todo_.empty()) {
    charge(4);
    at_ = todo_.back();
    todo_.pop_back();
    rules_[at_].waiting = false;
    const RuleId r{static_cast<uint32_t>(at_ >> 32)};
    const Pending from = static_cast<Pending>(at_);
    alternatives.symbols.clear();
    alternatives.ends.clear();
    productions_.expand(r, Reading{}, alternatives);
    found_.clear();
    for (const std::span<const Symbol> symbols : alternatives.each()) {
      now_.clear();
      now_.add(from);
      for (std::size_t k = 0; k < symbols.size() && !now_.list.empty(); ++k) {
        charge();
        next_.clear();
        for (Pending p : now_.list) out(symbols[k], p, next_);
        std::swap(now_, next_);
      }
      for (Pending p : now_.list) found_.add(p);
    }
    Rule& rule = rules_[at_];
    if (found_.list.size() == rule.out.size()) continue;
    rule.out = found_.list;
    for (uint64_t user : rule.users) {
      Rule& u = rules_[user];
      if (u.waiting) continue;
      u.waiting = true;
      todo_.push_back(user);
    }
  }
  at_ = kNone;
}

bool Alive::stack(StackId s, Pending from, uint32_t depth) {
  check_depth();
  if (stacks_.has_end(s) || depth > kMaxAskedDepth) return true;
  if (const bool* known = stacks_known_.find(key(s.v, from))) return *known;
  bool found = false;
  for (const StackEntry& e : stacks_.entries(s)) {
    // `after` is a copy, because the calls below overwrite next_.
    std::vector<Pending> after;
    if (e.top.kind() == Symbol::kRule && productions_.traits_of(e.top.rule_id()).plain) {
      // An exception leaves rules half solved. Such rules are erased here, and a later call solves them anew.
      Undo forget([&] {
        for (uint64_t at : open_) rules_.erase(at);
        open_.clear();
        todo_.clear();
        at_ = kNone;
      });
      if (!rule(e.top.rule_id(), from).done) solve();
      after = rule(e.top.rule_id(), from).out;
      forget.keep();
    } else {
      next_.clear();
      out(e.top, from, next_);
      after = next_.list;
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
