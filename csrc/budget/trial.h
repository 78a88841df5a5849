// The tokens of one mask that are in doubt: which of them leave enough of the budget.
//
//     called by     Budget::judge() (rows.cc) and Budget::keep_range() (range.cc)
//     with          a state, a budget in tokens or a range of bytes, and the tokens to judge
//     hands back    the tokens behind which the text can be completed in time (keep, taken), and the largest
//                   number of tokens that one of them needs (most)
//     asks          Budget::needed() or completable() for each state behind a token
//
// In: see above. Cost: a completion for each state behind the tokens, at most kMaskStates, and a walk down
// the trie. Tokens that lead to one state, and those that stay inside a run of characters, are judged
// together.
//
// Captured text. A captured key or item would give every token states of its own, so the walk uses blind
// states (mask/fill.h). A completion from a blind state that meets no poison holds for every text. Elsewhere
// a few tokens are tried with their own text. A captured text matters only if a later one equals it, so what
// completes one token serves every token whose text does not occur in it: after `{"a": 1, "`, the completion
// `":2}` of the token `b` serves the token `c`. (Where texts must be equal, each token is tried.) Near the
// end of a budget only the blind state's completion serves others, because the next row looks for that one
// first. Tokens that are open after kTrials trials are refused, and the mask is inexact; so are all of them
// once trials have filled their share of the world (mask/cache_policy.h).
#pragma once

#include <span>
#include <unordered_map>
#include <vector>

#include "budget/budget.h"
#include "budget/token_steps.h"

namespace structgen {

inline void set_ends(const Vocabulary& v, uint32_t* row) {
  for (TokenId t : v.eos()) set_bit(row, t);
}

// The tokens of a mask that are checked against a budget, and the results.
struct Budget::Trial {
  Budget& of;
  // `tokens` is the budget, the checked token and the end token included. `in_range`: the text has a range of
  // bytes. Then tokens that lead to one state may have different results, because a longer token uses more of
  // the range.
  Trial(Budget& asking, std::size_t tokens, bool in_range = false)
      : of(asking), budget(tokens), ranged(in_range) {}
  const std::size_t budget;
  const bool ranged;
  // kRow: the row `open` has the tokens to check, and the row `keep` gets those that fit. kList: `list` has
  // the tokens to check, and `taken` gets those that fit.
  enum Aim : uint8_t { kRow, kList } aim = kRow;
  std::vector<uint32_t> open, keep;
  std::vector<TokenId> list, taken;
  // No checked token needs more tokens than this, itself and the end token included.
  std::size_t most = 0;
  // True once kMaskStates states were met. Tokens to further states are refused.
  bool tired = false;
  // The last question of judged(), and its answer.
  StateId last = Parser::unknown();
  std::size_t last_needed = 0;
  std::unordered_map<uint32_t, std::size_t> met;
  std::unordered_map<uint32_t, std::vector<TokenId>>
      // The tokens whose captured text matters, by the blind state behind them.
      alike;
  // Tokens at which a walk without captured text stops; judge_texts() reads each with its text.
  std::vector<TokenId> alone;
  std::vector<uint32_t> done;
  // asks(): the token has to be checked and has no result yet. word(w): word w of the row of such tokens.
  // take(): notes that a token fits.
  bool asks(TokenId t) const { return aim == kList || (word(static_cast<uint32_t>(t) >> 5) >> (t & 31) & 1); }
  uint32_t word(uint32_t w) const { return open[w] & (done.empty() ? ~0u : ~done[w]); }
  void take(TokenId t) {
    if (aim == kList)
      taken.push_back(t);
    else
      set_bit(keep.data(), t);
  }

  // Returns true if no result depends on captured text.
  bool by_state() const { return alike.empty() && alone.empty(); }
  // Sets the tokens to check: those of a row that are neither end tokens nor in `sure`, which may be null.
  void ask(const uint32_t* row, const uint32_t* sure);
  // Checks the tokens that ask() has set, without captured text.
  void judge_asked(StateId from);
  // Removes the refused tokens from the row. With kList, end tokens stay if `ends` is true. Returns true if a
  // token was refused.
  bool take_out(uint32_t* row, bool ends) const;
  std::size_t judged(StateId s);
  bool fits(StateId s, TokenId t);
  void whole_run(StateId inside, const Words& row);
  std::size_t tokens_into(StateId s);
  bool matters(StateId s) const;
  void judge(std::span<const TokenId> tokens, StateId s, bool blind);
  bool judge_poison(StateId s, std::span<const TokenId> below);
  void judge_all(StateId from);
  bool judge_begun(StateId to, RegexId rest, std::span<const TokenId> tokens);
  bool judge_strings(StateId from);
  void judge_texts();
};

}  // namespace structgen
