// Decides which stacks can be read to their end, where a lexeme may forbid the bytes that follow it.
//
// In: a stack. Out: yes or no. Cost: nothing for grammars in which something can always follow, such as
// ignored blanks (GrammarTraits::restricted is false). Otherwise a look-up, after a fixpoint over the rules
// that occur.
//
// What may follow depends on the text in front only through a *pending*: the bytes that may not follow the
// last lexeme, and the context in which the next lexemes are read. Behind the keyword `if` no letter may
// follow, because `iffy` is a name. So a rule all of whose texts begin with a letter cannot follow `if`
// directly. For a symbol and the pending in front of it, out() is the set of pendings that are possible
// behind it; the set of a rule is the least solution over its alternatives. A stack is alive if some pending
// gets through all of its symbols. Source: summaries of pushdown systems (Reps, Horwitz, Sagiv 1995).
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

// Tells whether the stacks of one parser can be read to their end. Each answer is remembered.
class Alive {
 public:
  // A pending, by number: the bytes that may not follow the lexeme read last, and the context of the next
  // one.
  using Pending = uint32_t;
  static constexpr Pending kClear = 0;
  Alive(RegexArena& regexes, Productions& productions, StackArena& stacks);
  // Returns true if some text reads the stack to its end.
  bool stack(StackId s) { return !restricted_ || stack(s, kClear, 0); }
  // Returns the texts of r without those whose first byte is in `follow`, a set of bytes as a kBytes regex.
  RegexId restricted(RegexId r, RegexId follow);
  // One way to read a symbol that is no rule: a text of `regex` is read, and `to` is the pending behind this
  // text.
  struct Step {
    Pending to;
    RegexId regex;
  };
  void steps(Symbol s, Pending from, std::vector<Step>& out);
  // Returns true for a rule of a grammar with lexemes. The texts of such a rule depend on the pending; those
  // of any other rule do not.
  bool plain(RuleId r) const { return productions_.traits_of(r).plain; }
  // Returns the pending that keeps the context of p and lets any byte follow.
  Pending without_follow(Pending p) { return pending({RegexId{0}, pendings_[p].context}); }
  // Returns the bytes that may not follow, as a kBytes regex; empty() if any byte may.
  RegexId follow(Pending p) const { return pendings_[p].follow; }
  std::size_t byte_size() const { return stacks_known_.byte_size() + rules_.size() * 64; }

 private:
  // The value of a pending: the bytes that may not follow (a kBytes regex, or empty()), and the number of the
  // context.
  struct Value {
    RegexId follow;
    uint32_t context;
    friend auto operator<=>(const Value& x, const Value& y) {
      return std::pair(x.follow.v, x.context) <=> std::pair(y.follow.v, y.context);
    }
  };
  // No key of rules_; stands for "no rule".
  static constexpr uint64_t kNone = ~0ull;
  // What is known of a rule that begins with a given pending. `out` holds the pendings with which it may end.
  struct Rule {
    std::vector<Pending> out;
    // The keys of the rules that read `out`. These rules are visited again when `out` grows.
    std::vector<uint64_t> users;
    bool done = false;
    bool waiting = true;
  };
  // A set of pendings that is emptied in constant time: clear() raises `mark`, so no entry of `marks` equals
  // it.
  struct Set {
    std::vector<Pending> list;
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
  const bool restricted_;
  StackArena& stacks_;
  std::vector<Value> pendings_;
  std::map<Value, Pending> numbers_;
  // What is known of each rule, by 2^32 * rule + pending.
  std::unordered_map<uint64_t, Rule> rules_;
  // The keys of the rules whose `out` may still grow.
  std::vector<uint64_t> open_;
  std::vector<uint64_t> todo_;
  uint64_t at_ = kNone;
  Set now_, next_, found_;
  std::vector<Step> steps_;
  FlatMap<uint64_t, bool> stacks_known_;
};

}  // namespace structgen
