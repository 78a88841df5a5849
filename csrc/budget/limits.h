// Limits on tokens (max_tokens): which tokens leave a way to the end of every limited rule, and the tokens of
// this way.
//
//     called by     Budget, engine/rows.cc (rows and accepted tokens of a grammar that limits tokens),
//                   engine/compile.cc (check), engine/sequence.cc (a way that moves to a new epoch)
//     with          a state of a grammar with marks (parse/limits.h), at the beginning of a token
//     hands back    a way: tokens to the end of the text that keep all limits; or the mask without the tokens
//                   behind which no way is known
//     asks          Completion for shortest texts, Lengths for bounds in bytes
//
// In: a state, a token, or a number of tokens left. Out: what the table says. Cost: while many tokens are
// left, a copy of the mask, after one walk over the tokens of the state without marks; when few are left,
// milliseconds at 131k tokens.
//
// A way is looked for along a shortest completion (parse/completion.h): the next token of the way is a
// beginning of this text, and behind the token the shortest completion is asked for anew. So whether a way
// exists depends on the state alone, and behind the first token of a way there is again a way. The price is
// that a text with more bytes and fewer tokens may be refused.
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

// Ways from earlier points of a text (budget.cc) are looked for at most this many bytes back.
constexpr std::size_t kLookBack = 256;
// The four constants below also serve rows.cc and trial.cc. The tokens of a mask with at most this many
// tokens are checked one by one. The tokens of a larger mask are checked by a walk down the trie.
constexpr std::size_t kWalkedSingly = 4'000;
// If at most this many tokens are in doubt, each is walked on its own, even inside a string.
constexpr std::size_t kFewTokens = 500;
// At most this many bytes complete a begun character: the rest of `\u0041`, and the second escape of a
// surrogate pair.
constexpr std::size_t kSpareBytes = 16;
// At most this many tokens of a mask are read with their captured text; the others are refused.
constexpr std::size_t kTrials = 2'000;

class Limits {
 public:
  static constexpr uint32_t kNever = 0xFFFFFFFFu;
  // The way from a state to the end: its number of tokens, without the end token, and the first of them (-1
  // if there is none). `tokens` is kNever if no way is known.
  struct Way {
    uint32_t tokens;
    TokenId next;
  };
  Limits(World& world, Parser& parser, MaskBuilder& masks, Completion& completion, Lengths& lengths)
      : world_(world), parser_(parser), masks_(masks), completion_(completion), lengths_(lengths) {}

  // The caller of each function holds the world's lock.
  // Returns the way from s. It is a function of s alone; the text in front does not matter.
  Way way(StateId s);
  std::vector<TokenId> tokens(StateId s) { return tokens(s, false); }
  // Returns the tokens of the way from s if it is known and has at most kRemembered tokens. A new epoch takes
  // these tokens over by keep(); it has to search for longer ways again.
  std::vector<TokenId> known_way(StateId s) {
    const auto it = ways_.find(s.v);
    return it == ways_.end() || it->second.tokens > kRemembered ? std::vector<TokenId>{} : tokens(s, false);
  }
  void keep(StateId s, const std::vector<TokenId>& tokens) { follow(s, tokens); }
  StateId accept(StateId s, TokenId t);
  // Writes the row of s, Vocabulary::words() words. With `room`, a token stays only if at most `room` more
  // tokens complete the text behind it; kNever means any number. Returns false if tokens may be missing
  // because captured text mattered for more than kTrials of them.
  bool fill(StateId s, uint32_t* row, uint32_t room = kNever);
  // If it is certain that no token of the mask uses up a mark, returns s without its marks; this state has
  // the same mask. Otherwise returns dead(). Every byte must be a token. The answer is kept in
  // State::unmarked and State::begun, which other threads may read.
  StateId unlimited(StateId s);
  // Returns how many tokens suffice for any token of the mask and the way behind it (State::loose). The state
  // must have no marks.
  uint32_t loose(StateId plain);
  // Throws kGrammar if no text of the limited rule keeps its limit. For example the rule `"abc" "def"` with
  // the limit 1 is refused if no token is `abcdef`. `fresh` is the state at the beginning of the rule,
  // `tokens` the limit; `name` and `place` are for the message.
  void check(StateId fresh, const std::string& name, uint32_t tokens, int64_t place);
  std::size_t byte_size() const { return bytes_ + (ways_.size() + hints_.size()) * 48; }

 private:
  // known_way() returns only ways of at most this many tokens.
  static constexpr uint32_t kRemembered = 64;
  // A number of tokens that depends on the captured text.
  static constexpr uint32_t kUnsure = kNever - 1;
  // The ways behind the tokens of one mask, of a state without marks.
  struct Base {
    // A way of at most this many tokens stands behind every token that is not in `dear`.
    uint32_t common = 0;
    // False if some token was not tried. Such a token counts as one without a way.
    bool whole = true;
    // The tokens whose way is longer than `common`, each behind the length of its way; sorted by length.
    std::vector<std::pair<uint32_t, TokenId>> dear;
    // Returns the length of the longest way behind a token.
    uint32_t worst() const { return dear.empty() ? common : dear.back().first; }
  };
  // A row that fill() made, and the value that it returned.
  struct Kept {
    std::vector<uint32_t> words;
    bool whole;
  };
  // A state on the path of search().
  struct Frame {
    StateId state;
    // The tokens not tried yet, with the states behind them. The last one is tried next; the shortest comes
    // first.
    std::vector<std::pair<TokenId, StateId>> next;
  };
  const Vocabulary& vocabulary() const { return *world_.vocabulary; }
  StateId looked_at(StateId s);
  StateId read(StateId s, std::string_view bytes, bool blind = false);
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
  // Hints for way(), by state: another state with fewer marks, from which accept() knew a shorter way.
  std::unordered_map<uint32_t, StateId> hints_;
  std::unordered_map<uint64_t, std::unique_ptr<Base>>
      // The Base of each state, by 2 * state; plus 1 if the tokens inside a run are left out.
      bases_;
  // The rows that fill() made without a `room`, by state.
  std::unordered_map<uint32_t, Kept> rows_;
  std::size_t bytes_ = 0;
};

}  // namespace structgen
