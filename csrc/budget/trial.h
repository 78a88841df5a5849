// The tokens of one mask that are in doubt: which of them leave enough of the budget.
//
//     called by     Budget::narrow_by_trial() (rows.cc) and Budget::keep_range() (range.cc)
//     with          a state, a budget in tokens or a range of bytes, and the tokens to judge
//     hands back    the tokens behind which the text can be completed in time (keep, taken), and the largest
//                   number of tokens that one of them needs (most)
//     asks          Budget::needed() or completable() for each state behind a token
//
// In and out: what the table says. Cost: a completion for each of at most kMaskStates states behind the
// tokens, and a walk down the trie. The questions:
//
//     question                   asks                                            cost
//     judge_asked()              which tokens fit, captured text apart?          one of the next three
//       judge_state()            the tokens into one state?                      one tokens_through()
//       judge_by_trie()          all tokens, by the state behind each node?      a step for each node
//       judge_in_string()        the tokens that stay in a run, and its ways     a few dozen states
//                                out?
//         judge_run()            those that stay, in a range of bytes?           a question for each length
//         judge_half_characters()  those that end within a character?            a bound of the missing bytes
//     tokens_through()           how many tokens if the next leads to a state?   kept, or count_through()
//       count_through()          the same, by a bound in bytes first             a completion at most
//     put_off()                  does captured text decide all behind a state?   a look at the state
//     judge_texts()              which tokens fit with their captured text?      at most kTrials trials
//       judge_group()            those that lead to one blind state?             kAttempts trials, or all
//         completion_alone()     the completion of one token with its text?      one trial
//         shareable()            may other tokens take it over?                  a completion at most
//
// Inside a captured key or item every token would make states of its own, so the walk uses blind states
// (mask/fill.h). A completion from a blind state that meets no poison holds for every text. Where the text
// matters, a few tokens are tried with their own text. A captured text matters only if a later text equals
// it. So a completion that fitted behind one token also serves every other token whose text does not occur in
// this completion: after `{"a": 1, "`, the completion `":2}` that worked for the token `b` serves the token
// `c` as well. (Where a text may have to equal an earlier text, each token is tried by itself.) Near the end
// of a budget only the completion of the blind state serves other tokens, because the next row looks for this
// completion first (Budget::spelled). The next row might not find a completion that was made for another
// captured text. Tokens that are undecided after kTrials trials are refused, and the mask is inexact. Once
// trials have filled their share of the world (mask/cache_policy.h), all such tokens are refused.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "budget/budget.h"
#include "budget/token_steps.h"

namespace structgen {

inline void set_ends(const Vocabulary& v, uint32_t* row) {
  for (TokenId t : v.eos()) set_bit(row, t);
}

// The check of a mask's tokens against the budget.
struct Budget::Trial {
  Budget& of;
  // `tokens` is the budget, with the checked token and the end token. `in_range` says that the text has a
  // range of bytes: then two tokens that lead to one state may differ, because the longer one uses more of
  // the range.
  Trial(Budget& asking, std::size_t tokens, bool in_range = false)
      : of(asking), budget(tokens), ranged(in_range) {}
  const std::size_t budget;
  const bool ranged;
  // kRow: the tokens to check are the row `open`, and the tokens that fit are set in the row `keep`. kList:
  // the tokens to check are `list`, and the tokens that fit are added to `taken`.
  enum Aim : uint8_t { kRow, kList } aim = kRow;
  std::vector<uint32_t> open, keep;
  std::vector<TokenId> list, taken;
  // The most tokens that a checked token needs, itself and the end token included.
  std::size_t most = 0;
  // True once tokens_through() met kMaskStates states. Tokens that lead to other states are refused from then
  // on.
  bool tired = false;
  // The state that tokens_through() was asked about last, and its answer.
  StateId last = Parser::unknown();
  std::size_t last_needed = 0;
  std::unordered_map<uint32_t, std::size_t> met;
  // The tokens whose captured text matters, by the blind state behind them.
  std::unordered_map<uint32_t, std::vector<TokenId>> alike;
  // The tokens at which a walk without captured text stops. judge_texts() reads each with its own text.
  std::vector<TokenId> alone;
  std::vector<uint32_t> done;
  // How many trials judge_texts() has made, and how many trials a token counts as. The work of a trial grows
  // with the square of its completion: behind 210 keys that must differ it takes 15 ms.
  std::size_t trials = 0, each = 1;
  // asks(): the token must be checked and has no result yet. word(w): word w of the row of such tokens.
  // take(): the token fits.
  bool asks(TokenId t) const { return aim == kList || (word(static_cast<uint32_t>(t) >> 5) >> (t & 31) & 1); }
  uint32_t word(uint32_t w) const { return open[w] & (done.empty() ? ~0u : ~done[w]); }
  void take(TokenId t) {
    if (aim == kList)
      taken.push_back(t);
    else
      set_bit(keep.data(), t);
  }

  // Returns true if captured text mattered for no token, so that the results depend on states alone.
  bool by_state() const { return alike.empty() && alone.empty(); }
  // Sets the tokens to check: those of `row`, less the end tokens, less the tokens of `sure`. `sure` may be
  // null.
  void ask(const uint32_t* row, const uint32_t* sure);
  // Checks the tokens that ask() has set, without captured text.
  void judge_asked(StateId from);
  // Removes the refused tokens from the row. With kList, end tokens stay if `ends` is true. Returns true if a
  // token was refused.
  bool take_out(uint32_t* row, bool ends) const;
  std::size_t tokens_through(StateId s);
  bool fits(StateId s, TokenId t);
  void judge_run(StateId inside, const Words& row);
  std::size_t count_through(StateId s);
  bool text_matters(StateId s) const;
  std::optional<bool> judge_state(std::span<const TokenId> tokens, StateId s, bool blind);
  bool put_off(StateId s, std::span<const TokenId> below);
  void judge_by_trie(StateId from);
  bool judge_half_characters(StateId to, RegexId rest, std::span<const TokenId> tokens);
  bool judge_in_string(StateId from);
  std::optional<std::string> completion_alone(TokenId t);
  std::optional<std::string> shareable(StateId blind, std::string_view token, std::string text);
  void judge_group(StateId blind, std::span<const TokenId> tokens);
  void judge_texts();
};

}  // namespace structgen
