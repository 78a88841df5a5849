// How few tokens complete a text, and the tokens of a mask that leave enough of a budget.
//
// In: a grammar's epoch and the state that a matcher is in. Out: bounds of the tokens that complete it, and
// rows. Cost: see budget.cc, whose opening explains the method. One object a call; all under the world's
// lock, within a scope of work. What is learnt stays in the epoch (`Epoch::needed`, `likely`), and not here.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "engine/grammar.h"

namespace structgen {

class Budget {
 public:
  static constexpr std::size_t kFar = Reach::kFar;
  struct Bounds {
    std::size_t least, enough;
  };
  Budget(Grammar& grammar, Epoch& epoch, StateId here) : grammar_(grammar), epoch_(epoch), here_(here) {}

  // An upper bound on the tokens that complete s, the end token included; kFar: none is known.
  std::size_t needed(StateId s);
  // The text that keeps what is promised to s, and a promise from a text that is said to complete s: the
  // tokens that it takes, or kFar where it does not.
  std::string promised(StateId s);
  std::size_t promise(StateId s, std::string_view text);
  // See Matcher::tokens_needed() and fits().
  Bounds bounds(bool search);
  bool fits(std::size_t budget);

  // Each returns false where nothing is left within `budget` tokens, and throws kBudgetExceeded where nothing
  // is found and nothing ruled out. Rows have the vocabulary's end tokens.
  //
  // Takes out of a row the tokens that leave too little. `by_text`: something was left out of the grammar, so
  // each token that writes a captured text is looked at with that text.
  bool narrow(uint32_t* row, std::size_t budget, bool by_text);
  bool fill_limited(uint32_t* row, std::size_t budget);  // where the grammar limits tokens
  // Where the work of narrow() ran out: the token that was promised, or those that a bound in bytes allows.
  bool keep_promise(uint32_t* row, std::size_t budget);
  bool bound(std::span<const uint32_t> plain, uint32_t* row, std::size_t budget);
  // Of the rows made here: false where tokens may be missing, because it was too much to tell of some.
  bool exact() const { return exact_; }

 private:
  struct Trial;
  void allow_outline(uint64_t work);
  bool any_text(StateId s);
  bool leaving(StateId s, std::size_t budget, std::vector<TokenId>& out);
  bool follow(StateId s, StateId blind);
  Reach::Answer find(StateId s, bool asked);
  Reach::Answer within(StateId s, std::size_t budget, uint64_t& work);
  Reach::Answer asked_within(std::size_t budget);
  Reach::Answer sought_within(std::size_t budget);
  bool descends(StateId s, std::size_t budget, uint64_t& work);
  Reach::Answer few(StateId s, std::size_t budget, uint64_t& work);
  std::size_t staying(StateId s);
  void keep_finished(uint32_t* row, std::size_t budget);
  void set_loose(StateId blind, const uint32_t* row, std::size_t most);

  Grammar& grammar_;
  Epoch& epoch_;
  const StateId here_;
  // Work left for states whose shortest text cannot be spelled.
  uint64_t spelling_ = 2'000'000;
  bool exact_ = true;
  bool unproved_ = false;  // of some state no tokens that finish were found, and none ruled out
};

}  // namespace structgen
