// The tokens of one mask that are in doubt: which of them leave enough of the budget.
//
// In: a state, and the tokens that its mask allows. Out: those of them after which the text can be completed
// in time (keep, taken), and the most that one of them needs. Cost: a completion for each state that the
// tokens lead to, at most kMaskStates; a walk over the trie, or nothing a token inside a run of characters.
//
// Tokens that lead to one state are looked at once (judged). judge_strings() does so for what stays inside a
// string, judge_one() for few tokens, judge_all() for what the trie holds.
//
// Inside a captured key or item every token would make states of its own, so the walk uses blind states
// (mask/fill.h). A completion from a blind state that meets no poison holds for every text. Where the text
// matters, a few tokens are tried with their own text. A completion that worked for one token serves every
// other token that writes nothing the completion holds, because texts matter only by being equal to a later
// one. (Where a text may have to equal an earlier one each token is tried by itself.) Tokens that are still
// undecided after kTrials are refused, and the mask is inexact; so are all where trials have filled their
// share of the world (mask/cache_policy.h).
#pragma once

#include <unordered_map>
#include <vector>

#include "budget/budget.h"

namespace structgen {

// Tokens of one mask that are looked at, and what becomes of them.
struct Budget::Trial {
  Budget& of;
  Trial(Budget& asking, std::size_t tokens) : of(asking), searches(asking.asked()), budget(tokens) {
    of.allow_outline(kMaskOutline);
  }
  Asked searches;
  const std::size_t budget;
  const uint32_t* open = nullptr;  // a row: tokens that are asked for; null: all that are shown
  std::vector<uint32_t> keep;      // a row, or
  std::vector<TokenId> taken;      // where tokens are shown one by one
  std::size_t most = 0;            // tokens that the worst of them needs, itself included
  bool tired = false;
  bool cut = false;     // some token was looked at in vain, because that was too much
  bool sought = false;  // some token was shown to fit by a search, which only masks near the end make
  uint64_t reach = kMaskReach;
  StateId last = Parser::unknown();
  std::size_t last_needed = 0;
  std::unordered_map<uint32_t, std::size_t> met;  // what a token into a state needs
  StateId run = Parser::dead();  // inside a string, and what a token into it needs; dead: none
  std::size_t run_needed = 0;
  std::unordered_map<uint32_t, std::vector<TokenId>>
      alike;  // by the state that they lead to without their text
  std::vector<TokenId> alone;
  std::vector<uint32_t> done;  // a row: tokens that were judged apart; empty: none
  bool asks(TokenId t) const { return !open || (word(static_cast<uint32_t>(t) >> 5) >> (t & 31) & 1); }
  uint32_t word(uint32_t w) const { return open[w] & (done.empty() ? ~0u : ~done[w]); }
  void take(TokenId t) {
    if (keep.empty())
      taken.push_back(t);
    else
      set_bit(keep.data(), t);
  }

  Reach::Answer few(StateId s, std::size_t left, std::vector<TokenId>* way);
  std::size_t judged(StateId s);
  std::size_t tokens_into(StateId s);
  std::size_t by_way_of_run(StateId s) const;
  bool matters(StateId s) const;
  void judge(std::span<const TokenId> tokens, StateId s, bool blind);
  bool judge_poison(StateId s, std::span<const TokenId> below);
  void judge_all(StateId from);
  void judge_one(TokenId t, StateId from);
  bool judge_strings(StateId from);
  void judge_texts();
};

}  // namespace structgen
