// Which stacks can still be read to their end, where some bytes may not follow a lexeme.
//
// In: a stack. Out: yes or no. Cost: nothing for grammars in which something can always follow (blanks that
// are ignored, say), which productions tell; else a look-up, after a fixpoint over the rules that are met.
//
// What was read last matters to what comes next only through a *pending*: the bytes that may not follow, and
// the context in which lexemes are read. For a symbol and the pending before it, out() is the set of pendings
// that there may be after it; a rule's is the least solution over its alternatives. A stack is alive if some
// pending gets through all its symbols.
// Source: summaries of pushdown systems (Reps, Horwitz, Sagiv 1995).
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

class Alive {
 public:
  using Pending = uint32_t;
  static constexpr Pending kClear = 0;  // any byte may follow; no context
  Alive(RegexArena& regexes, Productions& productions, StackArena& stacks);
  bool stack(StackId s) { return !productions_.restricted() || stack(s, kClear, 0); }
  // The texts of r that begin with none of the bytes of `follow` (a kBytes regex or empty()).
  RegexId restricted(RegexId r, RegexId follow);
  // Pendings after a symbol that is no rule; a text that gets there is one of `regex`.
  struct Step {
    Pending to;
    RegexId regex;
  };
  void steps(Symbol s, Pending from, std::vector<Step>& out);
  bool plain(RuleId r) const { return productions_.plain(r); }
  // The same context, and any byte may follow.
  Pending without_follow(Pending p) { return pending({RegexId{0}, pendings_[p].context}); }
  RegexId follow(Pending p) const { return pendings_[p].follow; }
  std::size_t byte_size() const { return stacks_known_.byte_size() + rules_.size() * 64; }

 private:
  struct Value {
    RegexId follow;
    uint32_t context;
    friend auto operator<=>(const Value& x, const Value& y) {
      return std::pair(x.follow.v, x.context) <=> std::pair(y.follow.v, y.context);
    }
  };
  static constexpr uint64_t kNone = ~0ull;
  struct Rule {
    std::vector<Pending> out;
    std::vector<uint64_t> users;  // rules that asked for it before it was done
    bool done = false;
    bool waiting = true;  // to be looked at, again
  };
  struct Set {
    std::vector<Pending> list;
    std::vector<uint32_t> marks;  // by pending
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
  std::vector<uint64_t> open_;  // rules asked for whose solution is not final
  std::vector<uint64_t> todo_;  // those to be looked at
  uint64_t at_ = kNone;         // the one looked at
  Set now_, next_, found_;
  std::vector<Step> steps_;
  FlatMap<uint64_t, bool> stacks_known_;
};

}  // namespace structgen
