// Which stacks can still be read to their end, if some bytes may not follow a lexeme.
//
// In: a stack. Out: yes or no. Cost: nothing for grammars in which something can always follow (ignored
// blanks, say), which the productions tell. Else a look-up, after a fixpoint over the rules that occur.
//
// What was read last matters to what comes next only through a *pending*: the bytes that may not
// follow, and the context in which lexemes are read. Behind the keyword `if` no letter may follow,
// because `iffy` is a name; so a rule that can only go on with a letter is no way to go on. For a
// symbol and the pending before it, out() is the set of pendings that are possible behind it; that of a
// rule is the least solution over its alternatives. A stack is alive if some pending gets through all
// of its symbols. Source: summaries of pushdown systems (Reps, Horwitz, Sagiv 1995).
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

// Answers for one parser. Answers are remembered, so a stack is asked about once.
class Alive {
 public:
  // The number of a pending.
  using Pending = uint32_t;
  // Any byte may follow, and there is no context.
  static constexpr Pending kClear = 0;
  Alive(RegexArena& regexes, Productions& productions, StackArena& stacks);
  // True if the stack can be read to its end.
  bool stack(StackId s) { return !productions_.restricted() || stack(s, kClear, 0); }
  // The texts of r that begin with none of the bytes of `follow` (a kBytes regex, or empty()).
  RegexId restricted(RegexId r, RegexId follow);
  // A pending behind a symbol that is no rule; a text that leads to it is one of `regex`.
  struct Step {
    Pending to;
    RegexId regex;
  };
  void steps(Symbol s, Pending from, std::vector<Step>& out);
  // True for a rule of a grammar with lexemes: only there pendings matter (Productions::plain).
  bool plain(RuleId r) const { return productions_.plain(r); }
  // The same context, and any byte may follow.
  Pending without_follow(Pending p) { return pending({RegexId{0}, pendings_[p].context}); }
  RegexId follow(Pending p) const { return pendings_[p].follow; }
  std::size_t byte_size() const { return stacks_known_.byte_size() + rules_.size() * 64; }

 private:
  // A pending: the bytes that may not follow, as a kBytes regex or empty(), and the context of lexemes.
  struct Value {
    RegexId follow;
    uint32_t context;
    friend auto operator<=>(const Value& x, const Value& y) {
      return std::pair(x.follow.v, x.context) <=> std::pair(y.follow.v, y.context);
    }
  };
  static constexpr uint64_t kNone = ~0ull;
  // A rule with a pending before it: the pendings behind it that are known so far.
  struct Rule {
    std::vector<Pending> out;
    // Rules that asked for this one before it was done.
    std::vector<uint64_t> users;
    bool done = false;
    // True: it is on the list of rules to look at.
    bool waiting = true;
  };
  // A set of pendings that is cleared in constant time: a mark is valid if it equals `mark`.
  struct Set {
    std::vector<Pending> list;
    // Indexed by pending.
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
  StackArena& stacks_;
  std::vector<Value> pendings_;
  std::map<Value, Pending> numbers_;
  std::unordered_map<uint64_t, Rule> rules_;
  // Rules that were asked for and whose solution is not final.
  std::vector<uint64_t> open_;
  // Rules to look at.
  std::vector<uint64_t> todo_;
  // The rule that is being looked at.
  uint64_t at_ = kNone;
  Set now_, next_, found_;
  std::vector<Step> steps_;
  FlatMap<uint64_t, bool> stacks_known_;
};

}  // namespace structgen
