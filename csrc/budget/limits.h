// Limits on tokens: the tokens that keep a way out of the limited rules, and the way.
//
// In: a state of a grammar with marks (parse/limits.h), at the beginning of a token. Out: a way, which is a
// list of tokens to the end of the text that keeps all limits; and the mask less the tokens after which no
// way is known. Cost: if many tokens are left, a copy of the mask, after one walk over the tokens of the
// state without its marks; if few are left, milliseconds at 131k tokens.
//
// A way is looked for along a shortest completion (parse/completion.h): its next token is a beginning of
// this text, and behind the token the shortest completion is asked for anew. So whether a way exists depends
// on the state alone, and behind the first token of a way there is again a way. The price: a text that is
// longer in bytes and shorter in tokens may be refused.
//
// States that differ in their marks alone have the same completions. So a token is judged once, in the state
// without marks: if its way takes no more tokens than the smallest mark has left, the token is allowed. If a
// bound in bytes shows this for every text of a limited rule, no token is judged (unlimited()).
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

// rows.cc and trial.cc use these three constants as well.
//
// The most tokens of a mask that is walked token by token. A larger mask is walked down the trie.
constexpr std::size_t kWalkedSingly = 4'000;
// A bound of the bytes that end a begun character, with a second escape that must follow it.
constexpr std::size_t kSpareBytes = 16;
// The most tokens of one mask that are stepped with their captured text.
constexpr std::size_t kTrials = 2'000;

class Limits {
 public:
  static constexpr uint32_t kNever = 0xFFFFFFFFu;
  // The number of tokens of a way, without the end token, and its first token. kNever: no way is known.
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
  // The way from s, which keep() hands to the next epoch. A long way is not handed over, because the next
  // epoch finds it again, unless a search for a completion runs out of work.
  std::vector<TokenId> known_way(StateId s) {
    const auto it = ways_.find(s.v);
    return it == ways_.end() || it->second.tokens > kRemembered ? std::vector<TokenId>{} : tokens(s, false);
  }
  void keep(StateId s, const std::vector<TokenId>& tokens) { follow(s, tokens); }
  // The state after the token; dead where the token is not allowed.
  StateId accept(StateId s, TokenId t);
  // Writes words() words. At most `room` tokens may come after the next token; kNever: any number. False: the
  // captured text decides about more than kTrials tokens, and some of these were refused without a trial.
  bool fill(StateId s, uint32_t* row, uint32_t room = kNever);
  // s without its marks, if no mark can run out behind any token; its mask is the mask of s. dead(): this is
  // not certain. The vocabulary must have every byte. The answer stays in State::unmarked and State::begun,
  // which other threads may read.
  StateId unlimited(StateId s);
  // For a state without marks: a number of tokens that suffices for any token of its mask and a way behind it
  // (State::loose).
  uint32_t loose(StateId plain);
  // Throws kGrammar if no text of the limited rule keeps its limit, as a rule `"abc" "def"` with a limit of 1
  // if no token holds all six letters. `fresh` is the state at the beginning of the rule.
  void check(StateId fresh, const std::string& name, uint32_t tokens, int64_t place);
  std::size_t byte_size() const { return bytes_ + (ways_.size() + hints_.size()) * 48; }

 private:
  static constexpr uint32_t kRemembered = 64;
  // Stands for the number of tokens where the captured text decides.
  static constexpr uint32_t kUnsure = kNever - 1;
  // For a state without marks: the numbers of tokens that the ways behind its tokens take.
  struct Base {
    // The largest number behind all tokens but those in `dear`.
    uint32_t common = 0;
    // False: some token counts as a token without a way, because it was not tried.
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
  // Keyed by state: a state with fewer marks, whose way is tried first.
  std::unordered_map<uint32_t, StateId> hints_;
  std::unordered_map<uint64_t, std::unique_ptr<Base>>
      // Keyed by state, and by whether tokens inside a run are left out.
      bases_;
  // Keyed by state: the row that fill() made.
  std::unordered_map<uint32_t, Kept> rows_;
  std::size_t bytes_ = 0;
};

}  // namespace structgen
