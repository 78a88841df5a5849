// Which stacks can still be read to their end, if some bytes may not follow a lexeme.
//
// In: a stack. Out: yes or no. Cost: nothing for grammars in which something can always follow, such as
// ignored blanks; the productions tell. Else a look-up, after a fixpoint over the rules that occur.
//
// The text in front matters to what follows only through a *pending*: the bytes that may not follow the last
// lexeme, and the context in which lexemes are read. Behind the keyword `if` no letter may follow, because
// `iffy` is a name; so a rule that begins with letters alone cannot go on there. For a symbol and the pending
// in front of it, out() is the set of pendings that are possible behind it; the set of a rule is the least
// solution over its alternatives. A stack is alive if some pending gets through all of its symbols. Source:
// summaries of pushdown systems (Reps, Horwitz, Sagiv 1995).
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "base/flat_map.h"
#include "base/ids.h"
#include "parse/productions.h"
#include "parse/stack.h"

namespace structgen {

class RegexArena;

// Tells for the stacks of one parser whether they can be read to their end. Each answer is stored.
class Alive {
 public:
  // A pending (what may not follow the lexeme read last) is known by its number.
  using Pending = uint32_t;
  // The pending without a restriction and without a context: any byte may follow.
  static constexpr Pending kClear = 0;
  Alive(RegexArena& regexes, Productions& productions, StackArena& stacks);
  // Returns true if the stack can be read to its end.
  bool stack(StackId s) { return !restricted_ || stack(s, kClear, 0); }
  // Returns the texts of r whose first byte is not in `follow` (a kBytes regex, or empty()).
  RegexId restricted(RegexId r, RegexId follow);
  // One way to pass a symbol that is no rule: a text of `regex` is read, and `to` is pending behind it.
  struct Step {
    Pending to;
    RegexId regex;
  };
  // Appends the ways to pass the symbol s behind the pending `from`.
  void steps(Symbol s, Pending from, std::vector<Step>& out);
  // Returns true for a rule of a grammar with lexemes. Pendings matter only in such rules
  // (RuleTraits::plain).
  bool plain(RuleId r) const { return productions_.traits_of(r).plain; }
  // Returns the pending that keeps the context of p and lets any byte follow.
  Pending without_follow(Pending p) { return pending({RegexId{0}, pendings_[p].context}); }
  // Returns the bytes that may not follow, as a kBytes regex; empty() if any byte may.
  RegexId follow(Pending p) const { return pendings_[p].follow; }
  std::size_t byte_size() const { return stacks_known_.byte_size() + rules_.size() * 64; }

 private:
  // What a pending means: the bytes that may not follow (a kBytes regex, or empty()), and the context of
  // lexemes.
  struct Value {
    RegexId follow;
    uint32_t context;
    friend auto operator<=>(const Value& x, const Value& y) {
      return std::pair(x.follow.v, x.context) <=> std::pair(y.follow.v, y.context);
    }
  };
  // The key of no rule.
  static constexpr uint64_t kNone = ~0ull;
  // The entry of a rule behind a pending; `out` holds the pendings behind the rule that are known so far.
  struct Rule {
    std::vector<Pending> out;
    // The rules to visit again when `out` grows.
    std::vector<uint64_t> users;
    bool done = false;
    // True while the rule is on the work list.
    bool waiting = true;
  };
  // A set of pendings. clear() takes constant time, because it only raises `mark`.
  struct Set {
    std::vector<Pending> list;
    // marks[p] equals `mark` if pending p is in the set.
    std::vector<uint32_t> marks;
    uint32_t mark = 1;
    void clear() {
      list.clear();
      ++mark;
    }
    void add(Pending p);
  };
  Pending pending(Value v);
  bool stack(StackId s, Pending from, uint32_t depth);
  void out(Symbol s, Pending from, Set& to);
  Rule& rule(RuleId r, Pending from);
  void solve();
  void settle();

  RegexArena& regexes_;
  Productions& productions_;
  // The answer of GrammarTraits::restricted.
  const bool restricted_;
  StackArena& stacks_;
  // pendings_[number] is what a pending means; numbers_ holds the numbers.
  std::vector<Value> pendings_;
  std::map<Value, Pending> numbers_;
  // Holds the entry of each rule behind a pending, keyed by 2^32 * rule + pending.
  std::unordered_map<uint64_t, Rule> rules_;
  // The rules whose set of pendings may still grow.
  std::vector<uint64_t> open_;
  // The work list: rules to visit.
  std::vector<uint64_t> todo_;
  // The rule that is being visited.
  uint64_t at_ = kNone;
  // Sets and lists that calls reuse, to save allocations.
  Set now_, next_, found_;
  std::vector<Step> steps_;
  // Holds the answers of stack(), keyed by 2^32 * stack + pending.
  FlatMap<uint64_t, bool> stacks_known_;
};

}  // namespace structgen
