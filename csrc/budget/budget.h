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

// Bounds for the tokens that complete a text, the end token included: fewer than `least` never do, `enough`
// do.
struct TokenBounds {
  std::size_t least, enough;
};

// An ending of a text in tokens.
struct Finish {
  enum From : uint8_t {
    // The tokens spell the shortest completion of the state.
    kOwn,
    // The tokens spell the shortest completion of the blind state.
    kBlind,
    // The number is an upper bound in bytes (parse/lengths.h), at one token a byte. No text was made.
    kBytes,
    // A search found the tokens, because the vocabulary cannot spell the shortest text.
    kFound,
    // No ending is known; `tokens` is Budget::kFar.
    kNone,
  };
  // The number of tokens, the end token included.
  std::size_t tokens;
  From from;
  // The first token; -1 if the end token comes first, or if no token is known (kBytes, kNone).
  TokenId next = -1;
};

// The length that a user sets for a whole text, in bytes: from `least` to `most`; kAny is no upper limit.
struct ByteRange {
  static constexpr std::size_t kAny = static_cast<std::size_t>(-1);
  std::size_t least = 0, most = kAny;
  bool has(std::size_t n) const { return least <= n && n <= most; }
};

// How far a text with such a range has come: `bytes` bytes are written, and the whole text must be in
// `whole`.
struct ByteCount {
  ByteRange whole;
  std::size_t bytes = 0;
  // Returns true if every text that may follow has a length in the range.
  bool any() const { return whole.least <= bytes && whole.most == ByteRange::kAny; }
};

// What one epoch remembers about budgets. An entry depends only on its key: a state, or a state and a number
// of tokens. So entries make later answers quicker and never change them.
struct Budgets {
  // `limited` says that the grammar limits tokens, `fast` that every row is the mask of its state
  // (Epoch::fast).
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
  // The result of a search. `cost` is what the search costs in a new epoch (SearchCost). After kYes, `tokens`
  // complete the state, without the end token.
  struct Search {
    Reach::Answer answer = Reach::Answer::kUnknown;
    uint64_t cost = 0;
    std::vector<TokenId> tokens;
  };

  // A text that completes a state. at[i] is the state in front of byte i, and at.back() the state behind the
  // text.
  struct Read {
    std::string text;
    std::vector<StateId> at;
  };

  // A row of narrow_mask(). Most rows are asked for once. So the first call only sets `seen`, and the second
  // one stores the row in `words`. `exact` says that no token is missing for lack of work.
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
  // The text that completes() read last, if it has at least kLongRead bytes.
  Read read{"", {Parser::dead()}};
  std::unordered_map<uint32_t, Finish> shortest;
  // The answers of find(), by state. A state is here only if the vocabulary cannot spell its shortest text.
  std::unordered_map<uint32_t, Search> found;
  // The answers of sought_within(), by 2^32 * state + budget in tokens.
  std::unordered_map<uint64_t, Search> sought;
  std::unordered_map<uint32_t, TokenBounds> bounds;
  // A row of keep_range(). It serves each text in its state of which `from` to `to` bytes are written.
  // `exact` says that no token is missing for lack of work.
  struct Ranged {
    std::size_t from, to;
    bool exact;
    std::vector<uint32_t> row;
  };
  // The rows of keep_range(), by state, and their bytes.
  std::unordered_map<uint32_t, std::vector<Ranged>> ranged;
  std::size_t ranged_bytes = 0;
  // The rows of narrow_mask(), by 2^32 * state + budget in tokens, and their bytes. All rows are dropped when
  // they take more than CachePolicy::rows() bytes.
  std::unordered_map<uint64_t, Kept> kept;
  std::size_t kept_bytes = 0;
  Targets targets;
  // For searches: graphs of states whose edges are tokens, without captured text and with it.
  TokenGraph graph, exact_graph;
  // Finds tokens that end a text within the limits; null in a grammar without limits.
  std::unique_ptr<Limits> limits;
  // Tells which states can be completed in tokens; null if every byte is a token, and in a grammar with
  // limits.
  std::unique_ptr<Spellable> spelling;
};

// Answers one call of a matcher. Work that one call spends changes no answer of another call.
class Budget {
 public:
  static constexpr std::size_t kFar = Reach::kFar;
  using Bounds = TokenBounds;
  // `partial`: alternatives of the grammar were omitted (base/effort.h). `past` has the states of the text;
  // questions are about its last one. `tokens` has the token between each two of them; -1 where bytes were
  // accepted without a token. `mask_work` is the work for one mask, in units. `written` is for a text with a
  // range of bytes.
  Budget(Budgets& of, bool partial, int64_t mask_work, std::span<const StateId> past,
         std::span<const TokenId> tokens, const ByteCount& written = {})
      : all_(of), partial_(partial), mask_work_(mask_work), past_(past), tokens_(tokens), written_(written) {
    all_.graph.trim();
    all_.exact_graph.trim();
  }
  Budget(const Budget&) = delete;
  Budget& operator=(const Budget&) = delete;

  // Returns the number of tokens of the ending that finish(s) knows, the end token included. Other endings
  // may need fewer. Returns kFar if no ending is known.
  std::size_t needed(StateId s);
  // Returns true if a row within a budget may have had the token t, which leads to `to`, for the sake of a
  // known ending: that of the last state, of an earlier one, or of all captured texts.
  bool promised(TokenId t, StateId to);
  // Searches for tokens that complete s, if the vocabulary cannot spell the shortest text of s.
  Reach::Answer any_way(StateId s, std::vector<TokenId>& out);
  // Returns the bounds for the last state. With `search` it spends up to `work` units to look for fewer
  // tokens than needed() says.
  Bounds bounds(bool search, int64_t work);
  // Returns true if the mask in front of the last token, under a budget of budget + 1, held this token.
  // Returns no value if only that mask could tell.
  std::optional<bool> fits(std::size_t budget);

  // The next five functions write a row. A token stays if at most `budget` tokens, itself included, complete
  // the text; end tokens stay if the text may end. Each returns false if it is proved that no token stays. It
  // throws kBudgetExceeded if no token was found and nothing is proved.
  //
  // narrow_mask() takes the mask of the state, narrow() takes any other row.
  bool narrow_mask(uint32_t* row, std::size_t budget);
  bool narrow(uint32_t* row, std::size_t budget);
  // Writes the row of a grammar that limits tokens.
  bool fill_limited(uint32_t* row, std::size_t budget);
  // For a narrow() that has no work left. keep_promise() leaves only the first token of the ending that
  // needed() counted. bound() leaves the tokens for which an upper bound in bytes shows that the budget
  // suffices.
  bool keep_promise(uint32_t* row, std::size_t budget);
  bool bound(std::span<const uint32_t> plain, uint32_t* row, std::size_t budget);
  // Returns true if the text can be completed from s within its range of bytes and within `tokens` tokens,
  // the end token included. s is `bytes` bytes behind the last state. False means that no completion exists,
  // or if exact() is false that none was found.
  bool completable(StateId s, std::size_t bytes, std::size_t tokens = kEndless);
  // Removes each token from the row behind which completable() is false. Tokens of at most `free` bytes stay
  // without a check. The checks take at most the work of one mask; a token that was not checked is removed.
  // If the row is empty, no token is known to lead to an end.
  void keep_range(uint32_t* row, std::size_t free, std::size_t tokens = kEndless);
  // Returns a text that completes the last state within the range of bytes: a shortest completion, which is
  // lengthened byte by byte if it is too short. Throws kBudgetExceeded if no text is found.
  std::string ranged_text();
  static constexpr std::size_t kEndless = static_cast<std::size_t>(-1);
  // Returns false if a row may lack tokens because checking them took too much work.
  bool exact() const { return exact_; }

 private:
  struct Trial;
  static constexpr std::size_t kTooMany = Reach::kFar;
  // The searches of asked_within(): without captured text, and with it.
  struct Asked {
    Reach reach, exact_reach;
  };
  StateId here() const { return past_.back(); }
  Parser& parser() const { return all_.parser; }
  const Vocabulary& vocabulary() const { return *all_.world.vocabulary; }
  bool omits() const { return all_.world.regexes.effort().omits(); }
  // Returns the work that judging the tokens of one mask may take.
  int64_t judging_work() const { return 5 * std::min(mask_work_, Meter::kEndless / 5); }
  Reach search(TokenGraph& graph);
  Asked asked();
  bool any_text(StateId s);
  Finish cut(std::string_view text, Finish::From from);
  bool completes(StateId s, std::string_view text);
  Finish spelled(StateId s);
  Finish by_text(StateId s);
  std::size_t shortest(StateId s);
  Finish finish(StateId s);
  bool sure(StateId s, std::size_t budget) const;
  StateId judged_by(StateId from, std::string_view token);
  std::string bytes_of(std::span<const TokenId> tokens) const;
  std::vector<TokenId> plan(StateId s);
  // Returns true if the text follows a plan; `rest` becomes the tokens that are left of it, the next one
  // first.
  bool followed(std::size_t budget, std::vector<TokenId>& rest);
  Reach::Answer planned(std::size_t budget, std::vector<TokenId>& rest);
  Reach::Answer on_ways(std::size_t budget, std::vector<TokenId>& rest);
  std::vector<TokenId> planned_in_range(std::size_t tokens);
  // Returns true for a token of text: no end token, and not the -1 of accepted bytes.
  bool writes(TokenId t) const { return t >= 0 && !vocabulary().is_eos(t); }
  bool none(const uint32_t* row) const;
  void set_ends_only(uint32_t* row) const;
  void set_only(uint32_t* row, TokenId t) const;
  bool follow(StateId s, std::span<const TokenId> tokens);
  Reach::Answer find(TokenGraph& graph, StateId s, uint64_t& work, std::vector<TokenId>& out);
  std::size_t fewest(StateId s) const;
  Reach::Answer within(Reach& search, TokenGraph& graph, StateId s, std::size_t budget, uint64_t& work,
                       std::vector<TokenId>* way);
  uint32_t bytes_behind(TokenId t);
  TokenId nearest();
  Reach::Answer asked_within(Asked& search, StateId s, std::size_t budget, std::vector<TokenId>* way);
  Reach::Answer sought_within(StateId s, std::size_t budget, std::vector<TokenId>* way);
  std::size_t descends(StateId s, std::size_t budget, uint64_t& work, std::vector<TokenId>* way,
                       bool to_the_end);
  std::size_t staying(StateId s);
  // Those tokens of a mask that stay inside a string. `row` has the tokens that surely leave enough of the
  // budget, and none of them needs more than `most` tokens, itself included. `too_near` says that a known
  // bound for all of them exceeds the budget.
  struct Staying {
    const uint32_t* row = nullptr;
    std::size_t most = 0;
    bool too_near = false;
  };
  Staying stay(const Mask* m, StateId from, std::size_t budget);
  bool ends_soon(StateId s);
  bool pieces_of_plan(std::size_t budget, std::vector<TokenId>& out);
  bool binds_nothing(std::size_t budget);
  // Which tokens of a row are checked. `mask` is the mask from which the row was copied; null for any other
  // row. The tokens in `stays` are not checked.
  struct Doubt {
    const Mask* mask;
    Staying stays;
    // True if only tokens that begin the shortest text are checked: in a large mask inside a string that may
    // end at once, if the budget has no token to spare. Hardly another token then fits.
    bool pieces = false;
  };
  Doubt in_doubt(const uint32_t* row, std::size_t budget, bool enough, Trial& trial);
  std::optional<bool> judge(uint32_t* row, std::size_t budget);
  void keep_finished(uint32_t* row, std::size_t budget);
  Budgets::Kept* kept(std::size_t budget);
  void set_loose(StateId blind, const uint32_t* row, std::size_t most);
  // A shortest completion. `bytes` is its number of bytes; Lengths::kFar if none is known. `proved` says that
  // no shorter text completes the state. `some_texts` says that the state is blind, and only some captured
  // texts allow the completion. `blind` is the number of bytes of the blind state's completion if this text
  // completes the state, too; Lengths::kFar otherwise.
  struct Shortest {
    std::size_t bytes;
    bool proved;
    bool some_texts = false;
    std::size_t blind = bytes;
  };
  Shortest shortest_bytes(StateId s);
  // What may follow a state `bytes` bytes behind the last one: from `missing` to `room` bytes, and at most
  // `tokens` tokens, the end token included.
  struct Ahead {
    std::size_t bytes, room, missing, tokens;
    // Returns true if n more bytes fit even at one token a byte.
    bool by_bytes(std::size_t n) const { return n <= room && (tokens == kEndless || n < tokens); }
    // Returns the most bytes that a text may have now so that n more bytes keep it within `whole`.
    std::size_t last(const ByteRange& whole, std::size_t n) const {
      return whole.most == ByteRange::kAny ? kEndless : whole.most - bytes - n;
    }
  };
  Words sure_tokens(std::size_t free, std::size_t tokens);
  std::optional<bool> longest_fits(StateId blind, const Ahead& at);
  bool reaches_range(StateId s, const Ahead& at);
  // Returns the tokens of ranged_text(), and throws what it throws.
  Finish ranged_finish();
  void holds(std::size_t from, std::size_t to);
  // Returns true if some text of `least` to `most` bytes completes s. Returns no value after kReachSteps
  // steps.
  std::optional<bool> reaches(StateId s, std::size_t least, std::size_t most, bool blind);

  Budgets& all_;
  const bool partial_;
  const int64_t mask_work_;
  const std::span<const StateId> past_;
  const std::span<const TokenId> tokens_;
  const ByteCount written_;
  // The answers of completable() hold for every text in this state of which from_ to to_ bytes are written.
  std::size_t from_ = 0, to_ = kEndless;
  std::map<std::tuple<uint32_t, std::size_t, std::size_t, bool>, std::optional<bool>> reached_;
  // spelling_: the work, as SearchCost counts it, that is left for searches from states whose shortest text
  // cannot be spelled. paid_: the states whose searches were charged.
  uint64_t spelling_ = 2'000'000;
  std::unordered_set<uint32_t> paid_;
  bool exact_ = true;
  // True if no completion of some state was found, and none was ruled out.
  bool unproved_ = false;
};

}  // namespace structgen
