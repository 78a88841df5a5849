// How few tokens complete a text, and the tokens of a mask that leave enough of a budget.
//
// In: a grammar's epoch and the state that a matcher is in. Out: bounds of the tokens that complete it, and
// rows. Cost: see budget.cc, whose opening explains the method. One object a call; all under the world's
// lock, within a scope of work. What is learnt stays in the epoch (`Epoch::needed`), and not here: it makes
// later answers quicker, and no answer another one.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/grammar.h"

namespace structgen {

class Budget {
 public:
  static constexpr std::size_t kFar = Reach::kFar;
  using Bounds = TokenBounds;
  // `past`: the states of the text, of which the last is asked about; `tokens`: the steps between them, -1
  // where one was bytes.
  Budget(Grammar& grammar, Epoch& epoch, std::span<const StateId> past, std::span<const TokenId> tokens)
      : grammar_(grammar), epoch_(epoch), past_(past), tokens_(tokens) {}

  // An upper bound on the tokens that complete s, the end token included; kFar: none is known.
  std::size_t needed(StateId s);
  // See Matcher::tokens_needed() and fits().
  Bounds bounds(bool search);
  std::optional<bool> fits(std::size_t budget);

  // Each returns false where nothing is left within `budget` tokens, and throws kBudgetExceeded where nothing
  // is found and nothing ruled out. Rows have the vocabulary's end tokens.
  //
  // Takes out of a row the tokens that leave too little. `by_text`: something was left out of the grammar, so
  // each token that writes a captured text is looked at with that text.
  bool narrow(uint32_t* row, std::size_t budget, bool by_text);
  bool fill_limited(uint32_t* row, std::size_t budget);  // where the grammar limits tokens
  // Where the work of narrow() ran out: the token that needed() counted, or those that a bound in bytes
  // allows.
  bool keep_promise(uint32_t* row, std::size_t budget);
  bool bound(std::span<const uint32_t> plain, uint32_t* row, std::size_t budget);
  // Of the rows made here: false where tokens may be missing, because it was too much to tell of some.
  bool exact() const { return exact_; }

 private:
  struct Trial;
  StateId here() const { return past_.back(); }
  Parser& parser() const { return epoch_.parser; }
  void allow_outline(uint64_t work);
  bool any_text(StateId s);
  bool leaving(StateId s, std::size_t budget, std::vector<TokenId>& out);
  Finish cut(std::string_view text, Finish::From from) const;
  bool completes(StateId s, std::string_view text);
  Finish spelled(StateId s);
  std::string bytes_of(std::span<const TokenId> tokens) const;
  std::vector<TokenId> plan(StateId s);
  Reach::Answer planned(std::size_t budget, TokenId& next);
  bool known_within(std::size_t at, std::size_t budget) const;
  void set_only(uint32_t* row, TokenId t) const;
  bool follow(StateId s, std::span<const TokenId> tokens);
  Reach::Answer find(StateId s, bool asked);
  Reach::Answer within(StateId s, std::size_t budget, uint64_t& work, std::vector<TokenId>* way);
  bool first_way(Reach& search, StateId s, std::size_t k, std::vector<TokenId>& out, uint64_t& work);
  TokenId nearest();
  std::vector<TokenId> met_way(Reach& search, StateId s);
  Reach::Answer asked_within(StateId s, std::size_t budget, std::vector<TokenId>* way);
  Reach::Answer sought_within(StateId s, std::size_t budget, std::vector<TokenId>* way);
  std::size_t least(StateId s) const;
  std::size_t descends(StateId s, std::size_t budget, uint64_t& work, std::vector<TokenId>* way,
                       bool to_the_end);
  Reach::Answer few(StateId s, std::size_t budget, uint64_t& work);
  std::size_t staying(StateId s);
  void keep_finished(uint32_t* row, std::size_t budget);
  void set_loose(StateId blind, const uint32_t* row, std::size_t most);

  Grammar& grammar_;
  Epoch& epoch_;
  const std::span<const StateId> past_;
  const std::span<const TokenId> tokens_;
  // Work left for states whose shortest text cannot be spelled.
  uint64_t spelling_ = 2'000'000;
  bool exact_ = true;
  bool unproved_ = false;  // of some state no tokens that finish were found, and none ruled out
};

}  // namespace structgen
