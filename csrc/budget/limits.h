// Limits on tokens: which tokens keep a way out of what is limited, and the way.
//
// In: a state of a grammar with marks (parse/limits.h), at the beginning of a token. Out: its mask less the
// tokens after which no way to the end is known, and that way. Cost: where many tokens are left nothing but a
// copy of the mask, after one walk over the tokens of a state without its marks; where few are, milliseconds
// at 131k tokens.
//
// A way is looked for along a shortest completion (parse/completion.h): its tokens are beginnings of that
// text, and after each the shortest completion is asked for anew. So a way exists or not by the state alone,
// whichever way the state was reached, and after the first token of a way there is one again. What a text
// that is longer in bytes and shorter in tokens would allow is refused.
//
// All states that differ in their marks alone have the same completions. So a token is looked at once in the
// state without marks: where its way takes no more tokens than the smallest mark has left, it is allowed.
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
#include "parse/state.h"

namespace structgen {

// Shared with budgets (budget/budget.cc).
constexpr std::size_t kFew = 4'000;     // tokens up to which each is walked by itself
constexpr std::size_t kSpare = 16;      // bytes that a character begun takes at most, and what follows it
constexpr std::size_t kTrials = 2'000;  // tokens of one mask that are stepped with their own text

class Limits {
 public:
  static constexpr uint32_t kNever = 0xFFFFFFFFu;
  // Tokens to the end of the text, without the end-of-sequence token (kNever: none known), and the first of
  // them.
  struct Way {
    uint32_t tokens;
    TokenId next;
  };
  Limits(World& world, Parser& parser, MaskBuilder& masks, Completion& completion)
      : world_(world), parser_(parser), masks_(masks), completion_(completion) {}

  // All under the world's lock.
  Way way(StateId s);
  std::vector<TokenId> tokens(StateId s) { return tokens(s, false); }  // of the way
  // The way from s, to be kept by the next epoch (keep()). A long one is not handed over: the next epoch
  // finds it again, unless a search for a completion ran out of work.
  std::vector<TokenId> known_way(StateId s) {
    const auto it = ways_.find(s.v);
    return it == ways_.end() || it->second.tokens > kRemembered ? std::vector<TokenId>{} : tokens(s, false);
  }
  void keep(StateId s, const std::vector<TokenId>& tokens) { follow(s, tokens); }
  StateId accept(StateId s, TokenId t);  // dead where it is not allowed
  // words() words. `room`: at most so many tokens after the one to come; kNever: any number.
  void fill(StateId s, uint32_t* row, uint32_t room = kNever);
  // Throws kGrammar where the rule that ends in this limit cannot be read from its beginning.
  void check(StateId fresh, const std::string& name, uint32_t tokens, int64_t place);
  std::size_t byte_size() const { return bytes_ + (ways_.size() + hints_.size()) * 48; }

 private:
  static constexpr uint32_t kRemembered = 64;
  static constexpr uint32_t kUnsure = kNever - 1;  // captured text decides
  struct Base {           // what the ways behind the tokens of a state without marks take
    uint32_t common = 0;  // at most, behind all but these
    std::vector<std::pair<uint32_t, TokenId>> dear;  // by what they take
    uint32_t worst() const { return dear.empty() ? common : dear.back().first; }
  };
  struct Frame {
    StateId state;
    std::vector<std::pair<TokenId, StateId>> next;  // by length
  };
  const Vocabulary& vocabulary() const { return *world_.vocabulary; }
  StateId walk(StateId s, std::string_view bytes, bool blind = false);
  std::vector<TokenId> tokens(StateId s, bool blind);
  Frame frame(StateId s, bool blind);
  const Way* known(StateId s, bool blind);
  void search(StateId s, bool blind);
  bool follow(StateId s, const std::vector<TokenId>& tokens);
  uint32_t takes(StateId plain);
  const uint32_t* run(StateId plain, const Mask& mask, uint32_t sure);
  const Base& base(StateId plain, const Mask& mask, const uint32_t* run);
  uint32_t sure_of(StateId from, uint32_t room);
  bool allowed(StateId v, StateId plain, uint32_t sure, uint32_t room);
  template <class F>
  void each(const std::vector<uint32_t>& asked, StateId from, StateId base, std::vector<TokenId>* unsure,
            F&& look);
  void narrow(StateId s, const Mask* mask, const uint32_t* run, uint32_t* row, uint32_t room);

  World& world_;
  Parser& parser_;
  MaskBuilder& masks_;
  Completion& completion_;
  std::unordered_map<uint32_t, Way> ways_;
  std::unordered_map<uint32_t, StateId> hints_;  // state -> one with fewer marks whose way it can go
  std::unordered_map<uint64_t, std::unique_ptr<Base>>
      bases_;  // by state and whether tokens inside a run are left out
  std::unordered_map<uint32_t, std::vector<uint32_t>> rows_;  // where few tokens are left
  std::size_t bytes_ = 0;
};

}  // namespace structgen
