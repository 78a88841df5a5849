// Limits on tokens: the tokens that keep a way out of the limited rules, and the way.
//
// In: a state of a grammar with marks (parse/limits.h), at the beginning of a token. Out: its mask less
// the tokens after which no way to the end is known, and that way. Cost: where many tokens are left
// only a copy of the mask, after one walk over the tokens of a state without its marks; where few are
// left, milliseconds at 131k tokens.
//
// A way is looked for along a shortest completion (parse/completion.h): its tokens are beginnings of
// that text, and after each token the shortest completion is asked for anew. So whether a way exists
// depends on the state alone, however the state was reached, and after the first token of a way there
// is again a way. The price: a text that is longer in bytes and shorter in tokens may be refused.
//
// All states that differ only in their marks have the same completions. So a token is looked at once,
// in the state without marks: if its way takes no more tokens than the smallest mark has left, the
// token is allowed. Where a bound in bytes tells that for every text of a limited rule, no token is
// looked at (unlimited()).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "mask/fill.h"
#include "mask/world.h"
#include "parse/completion.h"
#include "parse/lengths.h"
#include "parse/state.h"

namespace structgen {

// The three constants serve budgets as well (budget/budget.cc).
// A mask of at most so many tokens is walked token by token, a larger one down the trie.
constexpr std::size_t kWalkedSingly = 4'000;
// So many bytes suffice for the rest of a begun character and for what follows it.
constexpr std::size_t kSpareBytes = 16;
// No more tokens of one mask than this are stepped with their own text.
constexpr std::size_t kTrials = 2'000;

class Limits {
 public:
  static constexpr uint32_t kNever = 0xFFFFFFFFu;
  // The number of tokens to the end of the text, without the end token, and the first of them. kNever:
  // no way is known.
  struct Way {
    uint32_t tokens;
    TokenId next;
  };
  Limits(World& world, Parser& parser, MaskBuilder& masks, Completion& completion, Lengths& lengths)
      : world_(world), parser_(parser), masks_(masks), completion_(completion), lengths_(lengths) {}

  // All calls need the world's lock.
  Way way(StateId s);
  // The tokens of the way.
  std::vector<TokenId> tokens(StateId s) { return tokens(s, false); }
  // The way from s, for the next epoch to keep (keep()). A long way is not handed over: the next epoch
  // finds it again, unless a search for a completion runs out of work.
  std::vector<TokenId> known_way(StateId s) {
    const auto it = ways_.find(s.v);
    return it == ways_.end() || it->second.tokens > kRemembered ? std::vector<TokenId>{} : tokens(s, false);
  }
  void keep(StateId s, const std::vector<TokenId>& tokens) { follow(s, tokens); }
  // The state after the token; dead where the token is not allowed.
  StateId accept(StateId s, TokenId t);
  // Writes words() words. `room`: at most so many tokens may come after the next one; kNever: any
  // number. False: the text decides about more than kTrials tokens, and some of them were refused
  // untried.
  bool fill(StateId s, uint32_t* row, uint32_t room = kNever);
  // The state whose mask is the mask of s, where no mark can run out behind any token: s without its
  // marks. dead(): that is not certain. The vocabulary must have every byte.
  StateId unlimited(StateId s);
  // Of a state without marks: so many tokens suffice for any token of its mask and a way to the end
  // (State::loose).
  uint32_t loose(StateId plain);
  // Throws kGrammar where the rule that ends in this limit cannot be read from its beginning, as a rule
  // of `"abc" "def"` with a limit of 1 where no token holds all six letters.
  void check(StateId fresh, const std::string& name, uint32_t tokens, int64_t place);
  std::size_t byte_size() const {
    return bytes_ + (ways_.size() + hints_.size()) * 48 + unlimited_.byte_size();
  }

 private:
  static constexpr uint32_t kRemembered = 64;
  // Stands for the number of a token for which the captured text decides.
  static constexpr uint32_t kUnsure = kNever - 1;
  // For a state without marks: how many tokens the ways behind its tokens take.
  struct Base {
    // The largest number behind all tokens but those in `dear`.
    uint32_t common = 0;
    // False: some token counts as one without a way because nobody tried it.
    bool whole = true;
    // The tokens whose ways take more, sorted by that number.
    std::vector<std::pair<uint32_t, TokenId>> dear;
    uint32_t worst() const { return dear.empty() ? common : dear.back().first; }
  };
  // A row of fill(), and what fill() returns with it.
  struct Kept {
    std::vector<uint32_t> words;
    bool whole;
  };
  struct Frame {
    StateId state;
    // Sorted by the length of the tokens.
    std::vector<std::pair<TokenId, StateId>> next;
  };
  const Vocabulary& vocabulary() const { return *world_.vocabulary; }
  StateId looked_at(StateId s);
  StateId walk(StateId s, std::string_view bytes, bool blind = false);
  std::vector<TokenId> tokens(StateId s, bool blind);
  Frame frame(StateId s, bool blind);
  const Way* known(StateId s, bool blind);
  void search(StateId s, bool blind);
  Way found(StateId s, bool blind);
  bool follow(StateId s, const std::vector<TokenId>& tokens);
  uint32_t takes(StateId plain);
  const uint32_t* run(StateId plain, const Mask& mask, uint32_t sure);
  const Base& base(StateId plain, const Mask& mask, const uint32_t* run);
  uint32_t sure_of(StateId from, uint32_t room);
  bool allowed(StateId v, StateId plain, uint32_t sure, uint32_t room);
  template <class F>
  bool each(const std::vector<uint32_t>& asked, StateId from, StateId base, std::vector<TokenId>* unsure,
            F&& look);
  bool narrow(StateId s, const Mask* mask, const uint32_t* run, uint32_t* row, uint32_t room);

  World& world_;
  Parser& parser_;
  MaskBuilder& masks_;
  Completion& completion_;
  Lengths& lengths_;
  std::unordered_map<uint32_t, Way> ways_;
  // What unlimited() says, by state.
  FlatMap<uint32_t, uint32_t> unlimited_;
  // From a state to one with fewer marks whose way it can go.
  std::unordered_map<uint32_t, StateId> hints_;
  std::unordered_map<uint64_t, std::unique_ptr<Base>>
      // Keyed by state, and by whether tokens inside a run are left out.
      bases_;
  // Keyed by state: its mask, where few tokens are left.
  std::unordered_map<uint32_t, Kept> rows_;
  std::size_t bytes_ = 0;
};

}  // namespace structgen
