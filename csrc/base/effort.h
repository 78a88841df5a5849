// The choice of a world for questions that take too much work to decide: an error, or a part of the
// language.
//
// In: Limits(on_limit="error" or "subset"), and the share of its work that a question may take. Out:
// shares, and how often something was omitted. Cost: none. One thread at a time, like the world.
//
// The problem. A schema can ask for an intersection of patterns that takes minutes to decide. With
// "error" the call ends in BudgetExceeded or SchemaTooComplex. With "subset" the text goes on without
// what was not decided: every mask is a part of the exact one, and says so (Matcher::mask_exact).
//
// The words, from the algebra to the matcher:
//
//     undecided     a regex of which it is not known whether it has a text (RegexArena::undecided)
//     omitted       left out of a language because it is undecided: a byte of a step (RegexArena::step), an
//                   alternative of a rule (Parser::expand), a member or item (Solver::attempt)
//     omits         a world with on_limit="subset" (Effort::omits)
//     partial       a grammar from which something was omitted, and a row that may lack tokens for it
//     starved       a state, stack or cell behind which everything was omitted. It is no answer, because the
//                   text was promised an end: Parser::fed makes it again with `again`
//     again         undecided questions are asked once more, and one question may take nearly all work left
//     trusts        a mask allowed this token through parts of a union that were known to have a text. The
//                   step leads on, even if the whole is undecided (Parser::step_with)
//
// Example: `{"a": A, "b": B}` where B is undecided. The mask after `{` has `"a"` and omits `"b"`; the
// grammar is partial from now on. If A is undecided too, the state behind `{` is starved: both are
// asked again.
//
// Invariants. Under a complement a smaller language becomes a larger one, so omitting is only done
// where a text goes on (step(), not next()). A question that attempt() answers with "no" for
// lack of work only ever takes texts away. What is omitted is not remembered as empty.
#pragma once

#include <cstdint>
#include <utility>

#include "base/work.h"

namespace structgen {

// How one world treats questions that take too much work. It counts the parts that it has omitted.
class Effort {
 public:
  explicit Effort(bool omits) : omits_(omits) {}
  // Returns true if the world omits parts of the language that take too much work to decide. In other worlds
  // such a part is an error.
  bool omits() const { return omits_; }
  bool again() const { return again_; }
  bool trusts() const { return trusts_; }
  // Returns how much work one of several questions may take, so that a hard question leaves work to the
  // others.
  int64_t share() const { return again_ ? most_of_work() : share_of_work(); }
  void omit() { ++omitted_; }
  // Returns the number of parts omitted so far. A caller compares two such numbers to learn whether its
  // question omitted any.
  uint64_t omitted() const { return omitted_; }

 private:
  friend class LookAgain;
  friend class Trust;
  const bool omits_;
  bool again_ = false, trusts_ = false;
  uint64_t omitted_ = 0;
};

// While this object lives, undecided questions of the world are asked again.
class LookAgain {
 public:
  explicit LookAgain(Effort& e) : effort_(e), before_(std::exchange(e.again_, true)) {}
  ~LookAgain() { effort_.again_ = before_; }
  LookAgain(const LookAgain&) = delete;
  LookAgain& operator=(const LookAgain&) = delete;

 private:
  Effort& effort_;
  const bool before_;
};

// While this object lives, steps also lead through regexes of which nobody knows whether they are empty.
class Trust {
 public:
  explicit Trust(Effort& e) : effort_(e), before_(std::exchange(e.trusts_, true)) {}
  ~Trust() { effort_.trusts_ = before_; }
  Trust(const Trust&) = delete;
  Trust& operator=(const Trust&) = delete;

 private:
  Effort& effort_;
  const bool before_;
};

// any() tells whether something was omitted since this object was made.
class Omissions {
 public:
  explicit Omissions(const uint64_t& count) : count_(count), before_(count) {}
  bool any() const { return count_ != before_; }

 private:
  const uint64_t& count_;
  const uint64_t before_;
};

}  // namespace structgen
