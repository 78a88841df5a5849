// How few tokens complete a text, and which tokens of a mask leave enough of a budget for that.
//
//     called by     engine/rows.cc (rows, and accepted tokens) and engine/matcher.cc (tokens_needed)
//     with          Budgets, which an epoch of a grammar keeps; the states and tokens of one text; a budget
//     hands back    bounds in tokens for the last state; a row without the tokens that leave too little
//     asks          the headers below, Completion for shortest texts, Lengths for bounds in bytes
//
// In: a state and a number of tokens left. Out: a row or a number of tokens, the end token included. Cost:
// one comparison while the budget is large (State::loose), else one completion for each state behind a token;
// budget.cc explains the method. A caller holds the world's lock and a scope of work (base/work.h).
//
// Other folders of csrc include this header only. Behind it:
//     limits.h      ways out of what a grammar limits in tokens
//     spellable.h   what a vocabulary without all bytes can spell
//     reach.h       searches for fewer tokens than a shortest text takes, in token_graph.h
//     targets.h     the states that one token inside a string leads to
//     trial.h       the tokens of one mask that are in doubt
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "budget/limits.h"
#include "budget/reach.h"
#include "budget/spellable.h"
#include "budget/targets.h"
#include "mask/fill.h"
#include "mask/world.h"
#include "parse/completion.h"
#include "parse/growth.h"
#include "parse/lengths.h"
#include "parse/productions.h"
#include "parse/state.h"

namespace structgen {

// Bounds of the number of tokens that complete a text, end token included: fewer than `least` tokens never
// complete it, and `enough` tokens suffice.
struct TokenBounds {
  std::size_t least, enough;
};

// The ending of a text, counted in tokens.
struct Finish {
  enum From : uint8_t {
    // The tokens spell the shortest completion of the state.
    kOwn,
    // The tokens spell the shortest completion of the blind state.
    kBlind,
    // The number is an upper bound of the bytes that complete the state (parse/lengths.h), with one token for
    // each byte. No text was made.
    kBytes,
    // A search found the tokens, because the vocabulary cannot spell the shortest text.
    kFound,
    // No ending is known; `tokens` is Budget::kFar.
    kNone,
  };
  // The number of tokens of the ending, the end token included.
  std::size_t tokens;
  From from;
  // The first token of the ending. It is -1 if this is the end token, or if no token is known (kBytes,
  // kNone).
  TokenId next = -1;
};

// The range that a user sets for the length of a whole text: at least `least` and at most `most` bytes. A
// `most` of kAny is no upper bound.
struct ByteRange {
  static constexpr std::size_t kAny = static_cast<std::size_t>(-1);
  std::size_t least = 0, most = kAny;
  bool has(std::size_t n) const { return least <= n && n <= most; }
};

// A text that is being written: it has `bytes` bytes so far, and when it is whole, its length must be in the
// range `whole`.
struct ByteCount {
  ByteRange whole;
  std::size_t bytes = 0;
  // Returns true if no text that may follow can miss the range: at least `least` bytes are written, and there
  // is no upper bound.
  bool any() const { return whole.least <= bytes && whole.most == ByteRange::kAny; }
};

// The answers about budgets that one epoch remembers. An entry is a function of its key: a state, or a state
// and a number of tokens. So a kept entry makes later answers quicker, and never changes them.
struct Budgets {
  Budgets(World& of, Parser& states, Productions& rules, MaskBuilder& builder, Completion& shortest,
          Lengths& bounds_in_bytes, Growth& growing, bool limited, bool fast_rows)
      : world(of),
        parser(states),
        productions(rules),
        masks(builder),
        completion(shortest),
        lengths(bounds_in_bytes),
        growth(growing),
        fast(fast_rows),
        cutter(world.vocabulary->trie()),
        targets(parser, masks, world.slices, *world.vocabulary),
        graph(parser, masks, targets, *world.vocabulary, limited, false, world.policy.reach()),
        exact_graph(parser, masks, targets, *world.vocabulary, limited, true, world.policy.reach()) {
    if (limited)
      limits = std::make_unique<Limits>(world, parser, masks, completion, lengths);
    else if (!world.vocabulary->complete())
      spelling = std::make_unique<Spellable>(world, parser, productions, masks, completion, cutter, graph,
                                             exact_graph);
  }
  std::size_t byte_size() const {
    return graph.byte_size() + exact_graph.byte_size() + cutter.byte_size() + shortest.size() * 56 +
           (found.size() + sought.size()) * 200 + bounds.size() * 56 + ranged_bytes + kept_bytes +
           read.text.capacity() + read.at.capacity() * sizeof(StateId) + (limits ? limits->byte_size() : 0) +
           (spelling ? spelling->byte_size() : 0);
  }
  // The result of one search. `cost` is the work that the search takes in a new epoch, in trie nodes
  // (SearchCost). If the answer is kYes, `tokens` complete the state, without the end token.
  struct Search {
    Reach::Answer answer = Reach::Answer::kUnknown;
    uint64_t cost = 0;
    std::vector<TokenId> tokens;
  };

  // A text that completes a state, and the states along this text: at[i] is the state in front of byte i, and
  // the last entry is the state behind the text.
  struct Read {
    std::string text;
    std::vector<StateId> at;
  };

  // A row of narrow_mask(). Most rows of a single text are asked for once, those of a batch more often. So
  // the first call only sets `seen`, and the second call stores `words`. `exact` is false if the row may lack
  // tokens because checking them took too much work.
  struct Kept {
    std::vector<uint32_t> words;
    bool seen = false, exact = true;
  };

  World& world;
  Parser& parser;
  Productions& productions;
  MaskBuilder& masks;
  Completion& completion;
  Lengths& lengths;
  Growth& growth;
  const bool fast;
  Cutter cutter;
  // The last text of at least kLongRead bytes that completes() has read. At first it is empty.
  Read read{"", {Parser::dead()}};
  std::unordered_map<uint32_t, Finish> shortest;
  // The answers of any_way() by state, for states whose shortest text the vocabulary cannot spell.
  std::unordered_map<uint32_t, Search> found;
  // The answers of sought_within(), by 2^32 * state + budget.
  std::unordered_map<uint64_t, Search> sought;
  std::unordered_map<uint32_t, TokenBounds> bounds;
  // A row of keep_range() for a state. It is right for every text of `from` to `to` bytes so far. `exact` is
  // false if the row may lack tokens because checking them took too much work.
  struct Ranged {
    std::size_t from, to;
    bool exact;
    std::vector<uint32_t> row;
  };
  // The rows of keep_range() by state. ranged_bytes counts the bytes of all rows.
  std::unordered_map<uint32_t, std::vector<Ranged>> ranged;
  std::size_t ranged_bytes = 0;
  // The rows of narrow_mask(), by 2^32 * state + budget. If they take more than CachePolicy::rows() bytes
  // (kept_bytes), all are dropped.
  std::unordered_map<uint64_t, Kept> kept;
  std::size_t kept_bytes = 0;
  Targets targets;
  // Graphs for searches: nodes are states, edges are tokens. The states of `graph` have no captured text; the
  // states of `exact_graph` keep their captured text.
  TokenGraph graph, exact_graph;
  // Finds tokens that complete a state within the grammar's limits on tokens; null if it has none.
  std::unique_ptr<Limits> limits;
  // Tells which states tokens can complete. `spelling` is null if every byte is a token, and in grammars that
  // limit tokens.
  std::unique_ptr<Spellable> spelling;
};

// Answers one call of a matcher. Each call has a Budget of its own, so that the work which one call takes
// changes no answer of another call.
class Budget {
 public:
  static constexpr std::size_t kFar = Reach::kFar;
  using Bounds = TokenBounds;
  // `partial` says that alternatives of the grammar were omitted (base/effort.h). `past` are the states of
  // the text; questions are about the last one. `tokens` are the tokens between these states, with -1 for
  // bytes that came without a token. `mask_work` is the work of one mask, in units. `written` is the number
  // of bytes of the text, if it has a range of bytes.
  Budget(Budgets& of, bool partial, int64_t mask_work, std::span<const StateId> past,
         std::span<const TokenId> tokens, const ByteCount& written = {})
      : all_(of), partial_(partial), mask_work_(mask_work), past_(past), tokens_(tokens), written_(written) {
    all_.graph.trim();
    all_.exact_graph.trim();
  }
  Budget(const Budget&) = delete;
  Budget& operator=(const Budget&) = delete;

  // Returns the number of tokens of the ending that finish(s) returns, end token included; kFar if no ending
  // is known. Another ending may need fewer tokens.
  std::size_t needed(StateId s);
  // Returns true if a row within a budget may have allowed the token t, which leads to `to`, only because an
  // ending was known before this token: the ending of the last state or of an earlier state, or an ending
  // that holds for all captured texts.
  bool promised(TokenId t, StateId to);
  // Searches for tokens that complete s, if the vocabulary cannot spell the shortest text of s.
  Reach::Answer any_way(StateId s, std::vector<TokenId>& out);
  // Returns a lower and an upper bound of the number of tokens that complete the last state, end token
  // included. With `search`, at most `work` units of work go into looking for fewer tokens than needed()
  // counts.
  Bounds bounds(bool search, int64_t work);
  // Returns true if the mask in front of the last token, under a budget of budget + 1 tokens, allowed this
  // token. Returns nothing if only making this mask could tell.
  std::optional<bool> last_token_fits(std::size_t budget);

  // Each of the next five functions reduces a row. A token stays if at most `budget` tokens, this token
  // included, complete the text; the vocabulary's end tokens stay if the text may end. The result is false if
  // it is proved that no token stays. kBudgetExceeded is thrown if no token was found that stays, but that is
  // not proved either. narrow_mask() takes the mask of the state, narrow() any other row.
  bool narrow_mask(uint32_t* row, std::size_t budget);
  bool narrow(uint32_t* row, std::size_t budget);
  // Writes the row of a grammar that limits tokens.
  bool fill_limited(uint32_t* row, std::size_t budget);
  // The next two functions serve when narrow() has no work left. keep_promise() leaves only the first token
  // of the ending that needed() counted. keep_bounded() leaves the tokens behind which an upper bound in
  // bytes fits the budget.
  bool keep_promise(uint32_t* row, std::size_t budget);
  bool keep_bounded(std::span<const uint32_t> plain, uint32_t* row, std::size_t budget);
  // Returns true if the text can be completed from s within its range of bytes and `tokens` tokens, end token
  // included. s is `bytes` bytes behind the last state. Returns false if there is no completion, or if no
  // completion was found; exact() tells these two cases apart.
  bool completable(StateId s, std::size_t bytes, std::size_t tokens = kEndless);
  // Returns true if a row within the range of bytes may have allowed the token t, which leads to `to`.
  bool allowed_in_range(TokenId t, StateId to);
  // Removes the tokens of the row behind which completable() is false. Tokens of at most `free` bytes stay
  // unchecked. The checks together take at most the work of one mask; tokens that were not reached are
  // removed. If the row ends up empty, no token is known to lead to an end.
  void keep_range(uint32_t* row, std::size_t free, std::size_t tokens = kEndless);
  // Returns a text that completes the last state within the range of bytes: a shortest completion or, if this
  // completion is too short, a longer text that is made byte by byte. Throws kBudgetExceeded if it finds no
  // such text.
  std::string ranged_text();
  static constexpr std::size_t kEndless = static_cast<std::size_t>(-1);
  // Returns false if a row made by this object may lack tokens, because some tokens took too much work to
  // check.
  bool exact() const { return exact_; }

 private:
  struct Trial;
  static constexpr std::size_t kTooMany = Reach::kFar;
  // The searches of asked_within(), without captured text and with it.
  struct Asked {
    Reach reach, exact_reach;
  };
  StateId here() const { return past_.back(); }
  Parser& parser() const { return all_.parser; }
  const Vocabulary& vocabulary() const { return *all_.world.vocabulary; }
  bool omits() const { return all_.world.regexes.effort().omits(); }
  int64_t judging_work() const { return 5 * std::min(mask_work_, Meter::kEndless / 5); }
  Reach search(TokenGraph& graph);
  Asked asked();
  bool completes_any_text(StateId s);
  Finish cut(std::string_view text, Finish::From from);
  bool completes(StateId s, std::string_view text);
  Finish spelled(StateId s);
  Finish finish_without_search(StateId s);
  std::size_t tokens_by_bytes(StateId s);
  std::size_t tokens_without_search(StateId s);
  Finish finish(StateId s);
  bool known_to_fit(StateId s, std::size_t budget) const;
  StateId judged_by(StateId from, std::string_view token);
  std::string bytes_of(std::span<const TokenId> tokens) const;
  std::vector<TokenId> way_from(StateId s);
  // Returns true if the text has followed a known way whose rest fits the budget; `rest` gets the tokens of
  // this rest.
  bool followed_way(std::size_t budget, std::vector<TokenId>& rest);
  Reach::Answer find_way(std::size_t budget, std::vector<TokenId>& rest);
  Reach::Answer earlier_way(std::size_t budget, std::vector<TokenId>& rest);
  std::vector<TokenId> way_in_range(std::size_t tokens);
  bool writes(TokenId t) const { return t >= 0 && !vocabulary().is_eos(t); }
  bool none(const uint32_t* row) const;
  void set_ends_only(uint32_t* row) const;
  void set_only(uint32_t* row, TokenId t) const;
  bool follow(StateId s, std::span<const TokenId> tokens);
  Reach::Answer any_way(TokenGraph& graph, StateId s, uint64_t& work, std::vector<TokenId>& out);
  std::size_t fewest(StateId s) const;
  Reach::Answer within(Reach& search, TokenGraph& graph, StateId s, std::size_t budget, uint64_t& work,
                       std::vector<TokenId>* way);
  uint32_t bytes_behind(TokenId t);
  TokenId nearest();
  Reach::Answer asked_within(Asked& search, StateId s, std::size_t budget, std::vector<TokenId>* way);
  Reach::Answer sought_within(StateId s, std::size_t budget, std::vector<TokenId>* way);
  std::size_t descends(StateId s, std::size_t budget, uint64_t& work, std::vector<TokenId>* way,
                       bool to_the_end);
  std::size_t needed_inside(StateId s);
  // The tokens of a mask that stay inside a string. The tokens of `row` surely leave enough of the budget.
  // `most` is the largest number of tokens that a token of `row` needs, itself and the end token included.
  // `too_near` is true if there is a bound that holds for all tokens inside the string, but this bound
  // exceeds the budget.
  struct Staying {
    const uint32_t* row = nullptr;
    std::size_t most = 0;
    bool too_near = false;
  };
  Staying staying(const Mask* m, StateId from, std::size_t budget);
  bool ends_soon(StateId s);
  bool pieces_of_way(std::size_t budget, std::vector<TokenId>& out);
  bool binds_nothing(std::size_t budget);
  // Which tokens of a row are to be checked. `mask` is the mask that the row copies; null if it copies none.
  // Tokens of `stays` need no check.
  struct Doubt {
    const Mask* mask;
    Staying stays;
    // True if only tokens that begin the shortest text are checked. This is for large masks in a string that
    // may end at once, when the budget has no token to spare. In this case hardly any other of the hundred
    // thousand tokens of such a mask fits.
    bool pieces = false;
  };
  Doubt in_doubt(const uint32_t* row, std::size_t budget, bool enough, Trial& trial);
  std::optional<bool> narrow_by_trial(uint32_t* row, std::size_t budget);
  void keep_finished(uint32_t* row, std::size_t budget);
  Budgets::Kept* kept(std::size_t budget);
  void set_loose(StateId blind, const uint32_t* row, std::size_t most);
  // What is known of the shortest completion of a state. `bytes` is its length, or Lengths::kFar if no
  // completion is known. `proved` is true if no shorter text completes the state. `some_texts` is true if the
  // state is blind and only some captured texts allow the completion. `blind` is the length of the blind
  // state's completion if this completion also completes the state; otherwise Lengths::kFar.
  struct Shortest {
    std::size_t bytes;
    bool proved;
    bool some_texts = false;
    std::size_t blind = bytes;
  };
  Shortest shortest_bytes(StateId s);
  // What may follow a state that stands `bytes` bytes behind the last state: between `missing` and `room`
  // bytes, and at most `tokens` tokens, end token included.
  struct Ahead {
    std::size_t bytes, room, missing, tokens;
    // Returns true if n more bytes surely fit: one token for each byte and the end token are within `tokens`.
    bool by_bytes(std::size_t n) const { return n <= room && (tokens == kEndless || n < tokens); }
    std::size_t last(const ByteRange& whole, std::size_t n) const {
      return whole.most == ByteRange::kAny ? kEndless : whole.most - bytes - n;
    }
  };
  Words sure_tokens(std::size_t free, std::size_t tokens);
  std::optional<bool> longest_fits(StateId blind, const Ahead& at);
  bool reaches_range(StateId s, const Ahead& at);
  // Returns the ending that ranged_text() finds, in tokens. Throws what ranged_text() throws.
  Finish ranged_finish();
  void holds(std::size_t from, std::size_t to);
  // Whether some text of `least` to `most` bytes completes a state, and such a text. `some` is empty if the
  // answer takes more than kReachSteps steps.
  struct Reached {
    std::optional<bool> some;
    std::string text;
  };
  const Reached& reaches(StateId s, std::size_t least, std::size_t most);
  const Reached& reaches(StateId s, std::size_t least, std::size_t most, bool blind);

  Budgets& all_;
  const bool partial_;
  const int64_t mask_work_;
  const std::span<const StateId> past_;
  const std::span<const TokenId> tokens_;
  const ByteCount written_;
  // The answers of completable() since the last reset hold for every text in this state with from_ to to_
  // bytes.
  std::size_t from_ = 0, to_ = kEndless;
  std::map<std::tuple<uint32_t, std::size_t, std::size_t, bool>, Reached> reached_;
  // The text that decided the last answer of completable(), if reaches() found it; otherwise null.
  const std::string* text_ = nullptr;
  // spelling_ is the work, in trie nodes, that this call may still spend on states whose shortest text cannot
  // be spelled. paid_ holds the states whose search this call has paid for.
  uint64_t spelling_ = 2'000'000;
  std::unordered_set<uint32_t> paid_;
  bool exact_ = true;
  // True if for some state no completion was found, but it was not proved that there is none.
  bool unproved_ = false;
};

}  // namespace structgen
