// The analysis of a context-free grammar before it is parsed; cfg.h lists the results.
//
// analyse() takes the rules from grammar/lower.cc and does this, in this order:
//
//     split_empty()      a terminal that matches the empty text becomes `nothing | the rest of it`
//     fixpoint()         finds the rules that have a text at all (productive); alternatives without one are
//                        removed, with a warning
//     drop_unreached()   rules that only those alternatives called are removed, too
//     Contexts           puts behind each lexeme the set of lexemes that may begin there
//     group()            finds rules that are left-recursive through each other; grammar/productions.h
//                        transforms those
//     to_automata()      makes minimal automata over symbols of the other rules (grammar/automata.h)
//     unroll()           writes counted rules out that are left-recursive
//
// An example: `e: e "+" e | NUM` with ignored blanks. Behind NUM a context is given: `+`, a blank, or
// nothing. It decides whether `12` may be cut into `1` and `2`: NUM may not follow NUM there, so a
// digit continues the number. Rule e calls itself on the left, so it is a group of one.
//
// A context is the set of lexemes that the rest of an alternative may begin with. If that rest can be
// empty, the lexemes that may follow the rule belong to it, too: the follow sets of SLR (DeRemer 1971).
// They are larger than the sets of lexemes that really follow. So at worst a lexeme is kept apart from
// another one that could not come. The contextual lexer of Lark's LALR parser decides by the same sets.
//
// Invariants.
// - Behind analyse() every rule that is reached has a text, and so has every alternative.
// - The flags of rules are least fixpoints, each linear: an alternative counts the symbols that it
//   waits for.
// - A context stands behind something that was read, never behind the empty text.
//
// Costs. Linear except for first and follow sets, which are linear in practice; their work is charged.
#include "grammar/cfg.h"

#include <algorithm>
#include <map>

#include "base/components.h"
#include "base/error.h"
#include "base/sorted.h"
#include "base/work.h"
#include "grammar/automata.h"
#include "regex/regex.h"

namespace structgen {

bool nullable(const Cfg& cfg, RegexArena& regexes, CfgSymbol s) {
  switch (s.kind) {
    case CfgSymbol::kTerminal: return regexes.nullable(RegexId{s.id});
    case CfgSymbol::kRule: return cfg.rules[s.id].nullable;
    case CfgSymbol::kNote:
    case CfgSymbol::kLimit:
    case CfgSymbol::kGap:
    case CfgSymbol::kAfter: return true;
    default: return false;
  }
}

namespace {

// A counted repetition in a left recursion is written out as rules, at most this many in a grammar; otherwise
// the grammar is refused.
constexpr uint32_t kMaxUnrolled = 2'000;

// Sets `flag` of each rule with an alternative of which every symbol has a property. A rule has the property
// if its flag is set; for other symbols holds(symbol) says it. The result is the least fixpoint. The time is
// linear, because each alternative counts the rules for which it waits.
template <class Holds>
void fixpoint(Cfg& cfg, bool CfgRule::* flag, Holds&& holds) {
  struct Waiting {
    uint32_t rule, count;
  };
  std::vector<Waiting> alternatives;
  std::vector<std::vector<uint32_t>> waits(cfg.rules.size());
  std::vector<uint32_t> todo;
  const auto set = [&](uint32_t r) {
    if (cfg.rules[r].*flag) return;
    cfg.rules[r].*flag = true;
    todo.push_back(r);
  };
  for (uint32_t r = 0; r < cfg.rules.size(); ++r) {
    cfg.rules[r].*flag = false;
    for (const CfgSequence& sequence : cfg.rules[r].alternatives) {
      uint32_t count = 0;
      bool never = false;
      const uint32_t me = static_cast<uint32_t>(alternatives.size());
      for (CfgSymbol s : sequence) {
        if (s.kind != CfgSymbol::kRule) {
          never = never || !holds(s);
        } else {
          ++count;
          waits[s.id].push_back(me);
        }
      }
      alternatives.push_back({r, never ? 0xFFFFFFFFu : count});
    }
  }
  for (uint32_t i = 0; i < alternatives.size(); ++i)
    if (alternatives[i].count == 0) set(alternatives[i].rule);
  for (uint32_t r = 0; r < cfg.rules.size(); ++r)
    if (cfg.rules[r].counted && cfg.rules[r].min == 0) set(r);
  while (!todo.empty()) {
    const uint32_t r = todo.back();
    todo.pop_back();
    for (uint32_t i : waits[r])
      if (alternatives[i].count != 0xFFFFFFFFu && --alternatives[i].count == 0) set(alternatives[i].rule);
  }
}

// Calls f for each rule with which a text of `rule` may begin.
template <class F>
void left_calls(const Cfg& cfg, RegexArena& regexes, uint32_t rule, F&& f) {
  for (const CfgSequence& sequence : cfg.rules[rule].alternatives)
    for (CfgSymbol s : sequence) {
      if (s.kind == CfgSymbol::kRule) f(s.id);
      if (!nullable(cfg, regexes, s)) break;
    }
}

// Numbers the groups of left recursion: two rules are in one group if a text of each may begin with a text of
// the other.
void group(Cfg& cfg, RegexArena& regexes) {
  const uint32_t n = static_cast<uint32_t>(cfg.rules.size());
  std::vector<std::vector<uint32_t>> calls(n);
  for (uint32_t r = 0; r < n; ++r) {
    left_calls(cfg, regexes, r, [&](uint32_t to) { calls[r].push_back(to); });
    cfg.rules[r].group = 0;
  }
  cfg.groups = 0;
  components(calls, [&](std::span<const uint32_t> members, bool recursive) {
    if (!recursive) return;
    ++cfg.groups;
    for (uint32_t member : members) cfg.rules[member].group = cfg.groups;
  });
}

// Splits a terminal or lexeme x that matches the empty text into `nothing | x without the empty text`. This
// serves two ends. A context stands only behind text that was read, because an empty text changes no context.
// And rules that read nothing show in the rules, so that the parser does not loop in them. Each occurrence of
// x gets a rule of its own, because each has its own context behind it. A gap behind x moves into the second
// alternative.
void split_empty(Cfg& cfg, RegexArena& regexes) {
  const auto is_note = [](CfgSymbol s, bool gap) {
    if (s.kind != CfgSymbol::kNote) return false;
    const NoteKind kind = note_kind(s.id);
    return (kind == NoteKind::kGap || kind == NoteKind::kGapEnd) == gap;
  };
  const uint32_t n = static_cast<uint32_t>(cfg.rules.size());
  for (uint32_t r = 0; r < n; ++r)
    for (std::size_t a = 0; a < cfg.rules[r].alternatives.size(); ++a) {
      CfgSequence sequence = std::move(cfg.rules[r].alternatives[a]);
      for (std::size_t i = sequence.size(); i-- > 0;) {
        CfgSymbol some = sequence[i];
        const bool terminal = some.kind == CfgSymbol::kTerminal && regexes.nullable(RegexId{some.id});
        if (!terminal && (some.kind != CfgSymbol::kLexeme || !cfg.optional[some.id])) continue;
        if (terminal) some.id = regexes.minus(RegexId{some.id}, RegexArena::epsilon()).v;
        CfgSequence none, rest{some};
        std::size_t end = i + 1;
        while (end < sequence.size() && is_note(sequence[end], false)) ++end;
        none.assign(sequence.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                    sequence.begin() + static_cast<std::ptrdiff_t>(end));
        while (end < sequence.size() &&
               (sequence[end].kind == CfgSymbol::kGap || is_note(sequence[end], true)))
          ++end;
        rest.insert(rest.end(), sequence.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                    sequence.begin() + static_cast<std::ptrdiff_t>(end));
        sequence.erase(sequence.begin() + static_cast<std::ptrdiff_t>(i),
                       sequence.begin() + static_cast<std::ptrdiff_t>(end));
        CfgSequence put = none;
        if (!terminal || RegexId{some.id} != RegexArena::empty()) {
          put = {{CfgSymbol::kRule, static_cast<uint32_t>(cfg.rules.size())}};
          cfg.rules.emplace_back();
          cfg.rules.back().part = true;
          cfg.rules.back().alternatives = {std::move(none), std::move(rest)};
        }
        sequence.insert(sequence.begin() + static_cast<std::ptrdiff_t>(i), put.begin(), put.end());
      }
      cfg.rules[r].alternatives[a] = std::move(sequence);
    }
}

bool has_lexemes(const Cfg& cfg) {
  if (std::any_of(cfg.gaps.begin(), cfg.gaps.end(), [](const auto& gap) { return !gap.empty(); }))
    return true;
  for (const CfgRule& r : cfg.rules)
    for (const CfgSequence& sequence : r.alternatives)
      for (CfgSymbol s : sequence)
        if (s.kind == CfgSymbol::kLexeme) return true;
  return false;
}

// Puts a context behind each symbol that reads text: the set of lexemes that may begin there. These are the
// first lexemes of the symbols behind it in the alternative, and, if those symbols may be empty, the lexemes
// that may follow the rule (the follow sets of SLR, DeRemer 1971). A gap becomes a rule for each context,
// because ignored text does not change the context.
class Contexts {
 public:
  Contexts(Cfg& cfg, RegexArena& regexes)
      : cfg_(cfg),
        regexes_(regexes),
        rules_(static_cast<uint32_t>(cfg.rules.size())),
        lexemes_(count_lexemes(cfg)),
        first_(rules_, Set((lexemes_ + 63) / 64)),
        follow_(first_) {}

  void give() {
    if (lexemes_ == 0) return;
    until_stable([&](uint32_t r, const CfgSequence& sequence) { return begin(r, sequence); });
    until_stable([&](uint32_t r, const CfgSequence& sequence) {
      bool changed = false;
      backwards(r, sequence, [&](CfgSymbol s, const Set& now) {
        if (s.kind == CfgSymbol::kRule) changed = unite(follow_[s.id], now) || changed;
      });
      return changed;
    });
    for (uint32_t r = 0; r < rules_; ++r)
      for (std::size_t a = 0; a < cfg_.rules[r].alternatives.size(); ++a)
        cfg_.rules[r].alternatives[a] = with_contexts(r, CfgSequence(cfg_.rules[r].alternatives[a]));
    for (CfgLimit& limit : cfg_.limits) limit.context = number(first_[limit.rule]);
    const CfgSymbol context{CfgSymbol::kAfter, number(first_[cfg_.start])};
    const CfgSequence whole{context, {CfgSymbol::kRule, cfg_.start}};
    cfg_.start = add_rule();
    cfg_.rules.back().alternatives.push_back(whole);
  }

 private:
  // A set of lexemes as bits: lexeme l is bit l % 64 of word l / 64.
  using Set = std::vector<uint64_t>;

  static uint32_t count_lexemes(const Cfg& cfg) {
    uint32_t out = 0;
    const auto count = [&](uint32_t l) { out = std::max(out, l + 1); };
    for (const CfgRule& r : cfg.rules)
      for (const CfgSequence& sequence : r.alternatives)
        for (CfgSymbol s : sequence)
          if (s.kind == CfgSymbol::kLexeme) count(s.id);
    for (const auto& gap : cfg.gaps)
      for (uint32_t l : gap) count(l);
    return out;
  }

  static bool unite(Set& a, const Set& b) {
    bool grew = false;
    for (std::size_t i = 0; i < a.size(); ++i) {
      const uint64_t next = a[i] | b[i];
      grew = grew || next != a[i];
      a[i] = next;
    }
    return grew;
  }

  void add_first(CfgSymbol s, Set& out) const {
    const auto put = [&](uint32_t l) { out[l / 64] |= 1ull << (l % 64); };
    if (s.kind == CfgSymbol::kRule) unite(out, first_[s.id]);
    if (s.kind == CfgSymbol::kLexeme) put(s.id);
    if (s.kind == CfgSymbol::kGap)
      for (uint32_t l : cfg_.gaps[s.id]) put(l);
  }

  template <class Step>
  void until_stable(Step&& step) {
    for (bool changed = true; changed;) {
      changed = false;
      for (uint32_t r = 0; r < rules_; ++r)
        for (const CfgSequence& sequence : cfg_.rules[r].alternatives) {
          charge(static_cast<int64_t>(2 + sequence.size() * (1 + first_[r].size() / 8)));
          changed = step(r, sequence) || changed;
        }
    }
  }

  bool begin(uint32_t r, const CfgSequence& sequence) {
    Set now(first_[r].size());
    for (CfgSymbol s : sequence) {
      add_first(s, now);
      if (!nullable(cfg_, regexes_, s)) break;
    }
    return unite(first_[r], now);
  }

  // Goes through an alternative from its end to its beginning. It calls f(symbol, set) with the lexemes that
  // may begin behind each symbol.
  template <class F>
  void backwards(uint32_t r, const CfgSequence& sequence, F&& f) {
    Set now = follow_[r];
    // Behind the body of a repetition, the body may come again.
    if (cfg_.rules[r].counted && cfg_.rules[r].max > 1) unite(now, first_[r]);
    for (std::size_t i = sequence.size(); i-- > 0;) {
      f(sequence[i], now);
      if (!nullable(cfg_, regexes_, sequence[i])) now.assign(now.size(), 0);
      add_first(sequence[i], now);
    }
  }

  // Returns the alternative with contexts (kAfter) added and with rules in place of gaps.
  CfgSequence with_contexts(uint32_t r, const CfgSequence& sequence) {
    CfgSequence reversed;
    backwards(r, sequence, [&](CfgSymbol s, const Set& now) {
      if (s.kind == CfgSymbol::kGap) {
        Set with = now;
        add_first(s, with);
        reversed.push_back({CfgSymbol::kRule, gap_rule(s.id, number(with))});
        return;
      }
      if (s.kind == CfgSymbol::kLexeme || s.kind == CfgSymbol::kPart || s.kind == CfgSymbol::kTerminal)
        reversed.push_back({CfgSymbol::kAfter, number(now)});
      reversed.push_back(s);
    });
    std::reverse(reversed.begin(), reversed.end());
    return reversed;
  }

  uint32_t number(const Set& set) {
    const auto [it, fresh] = numbers_.try_emplace(set, static_cast<uint32_t>(cfg_.contexts.size()));
    if (fresh) {
      cfg_.contexts.emplace_back();
      for (uint32_t l = 0; l < lexemes_; ++l)
        if (set[l / 64] >> (l % 64) & 1) cfg_.contexts.back().push_back(l);
    }
    return it->second;
  }

  uint32_t add_rule() {
    cfg_.rules.emplace_back().productive = true;
    return static_cast<uint32_t>(cfg_.rules.size() - 1);
  }

  uint32_t gap_rule(uint32_t gap, uint32_t context) {
    const auto [it, fresh] = gap_rules_.try_emplace({gap, context}, 0);
    if (!fresh) return it->second;
    const uint32_t rule = it->second = add_rule();
    std::vector<CfgSequence>& alternatives = cfg_.rules[rule].alternatives;
    alternatives.push_back({});
    for (uint32_t l : cfg_.gaps[gap])
      alternatives.push_back(
          {{CfgSymbol::kLexeme, l}, {CfgSymbol::kAfter, context}, {CfgSymbol::kRule, rule}});
    return rule;
  }

  Cfg& cfg_;
  RegexArena& regexes_;
  // The number of rules before this class adds rules for gaps.
  const uint32_t rules_;
  const uint32_t lexemes_;
  std::vector<Set> first_, follow_;
  std::map<Set, uint32_t> numbers_;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> gap_rules_;
};

// Removes the rules that no useful alternative reaches. Their lexemes must not be part of contexts.
void drop_unreached(Cfg& cfg) {
  const std::vector<bool> kept = reached(cfg.rules.size(), {cfg.start}, [&](uint32_t r, auto&& go) {
    for (const CfgSequence& sequence : cfg.rules[r].alternatives)
      for (CfgSymbol s : sequence)
        if (s.kind == CfgSymbol::kRule) go(s.id);
  });
  for (uint32_t r = 0; r < cfg.rules.size(); ++r)
    if (!kept[r]) {
      cfg.rules[r].alternatives.clear();
      cfg.rules[r].counted = false;
      cfg.rules[r].productive = false;
    }
  std::erase_if(cfg.limits, [&](const CfgLimit& limit) { return !kept[limit.rule]; });
}

// Writes left-recursive counted rules out as rules with alternatives, because left recursion is removed from
// such rules only. r = x{1,2} becomes r -> x r1, r1 -> nothing | x r2, r2 -> nothing.
bool unroll(Cfg& cfg) {
  uint32_t made = 0;
  bool changed = false;
  const uint32_t n = static_cast<uint32_t>(cfg.rules.size());
  for (uint32_t r = 0; r < n; ++r) {
    if (!cfg.rules[r].counted || cfg.rules[r].group == 0) continue;
    changed = true;
    const CfgSequence body = cfg.rules[r].alternatives[0];
    const uint32_t min = cfg.rules[r].min, max = cfg.rules[r].max;
    const bool bounded = max != 0xFFFFFFFFu;
    const uint32_t last = bounded ? max : min;
    if (last > kMaxUnrolled || made + last > kMaxUnrolled)
      throw Error(ErrorKind::kGrammar, "a repetition with large bounds is left-recursive");
    uint32_t at = r;
    for (uint32_t i = 0; i <= last; ++i) {
      uint32_t next = at;
      if (i < last) {
        next = static_cast<uint32_t>(cfg.rules.size());
        cfg.rules.emplace_back();
        ++made;
      }
      CfgRule& rule = cfg.rules[at];
      rule.counted = false;
      rule.alternatives.clear();
      if (i >= min) rule.alternatives.push_back({});
      if (i < last || !bounded) {
        CfgSequence again = body;
        again.push_back({CfgSymbol::kRule, next});
        rule.alternatives.push_back(std::move(again));
      }
      at = next;
    }
  }
  return changed;
}

}  // namespace

void analyse(Cfg& cfg, RegexArena& regexes) {
  if (has_lexemes(cfg)) split_empty(cfg, regexes);
  fixpoint(cfg, &CfgRule::productive,
           [&](CfgSymbol s) { return s.kind != CfgSymbol::kTerminal || !regexes.is_empty(RegexId{s.id}); });
  if (!cfg.rules[cfg.start].productive) throw Error(ErrorKind::kGrammar, "no text matches this grammar");
  for (uint32_t r = 0; r < cfg.rules.size(); ++r) {
    CfgRule& rule = cfg.rules[r];
    if (!rule.productive && !rule.name.empty()) cfg.warnings.push_back(useless(rule.name));
    const auto useless = [&](const CfgSequence& sequence) {
      if (sequence.size() == 1 && sequence[0] == CfgSymbol{CfgSymbol::kRule, r}) return true;  // r: r
      return std::any_of(sequence.begin(), sequence.end(), [&](CfgSymbol s) {
        return s.kind == CfgSymbol::kRule ? !cfg.rules[s.id].productive
                                          : s.kind == CfgSymbol::kTerminal && regexes.is_empty(RegexId{s.id});
      });
    };
    if (rule.counted) {
      // If x matches no text, x{0,n} matches only the empty text.
      if (!rule.alternatives.empty() && useless(rule.alternatives[0])) {
        rule.counted = false;
        rule.alternatives.assign(rule.min == 0 ? 1 : 0, {});
      }
      continue;
    }
    std::erase_if(rule.alternatives, useless);
    sort_unique(rule.alternatives);
  }
  drop_unreached(cfg);
  fixpoint(cfg, &CfgRule::nullable, [&](CfgSymbol s) { return nullable(cfg, regexes, s); });
  Contexts(cfg, regexes).give();
  fixpoint(cfg, &CfgRule::nullable, [&](CfgSymbol s) { return nullable(cfg, regexes, s); });
  group(cfg, regexes);
  std::erase_if(cfg.limits, [&](const CfgLimit& limit) { return !cfg.rules[limit.rule].productive; });
  // The mark of a limit lies on the stack below the text that it counts. A left-recursive rule reads its
  // first text before anything of the rule is on the stack, so tokens of this text could not be counted. Such
  // a limit is refused.
  for (const CfgLimit& limit : cfg.limits)
    if (cfg.rules[limit.rule].group != 0)
      throw Error(ErrorKind::kGrammar,
                  "the tokens of rule '" + limit.name + "' are limited inside a left recursion");
  to_automata(cfg, regexes);
  do {
    fixpoint(cfg, &CfgRule::nullable, [&](CfgSymbol s) { return nullable(cfg, regexes, s); });
    group(cfg, regexes);
  } while (unroll(cfg));
}

}  // namespace structgen
