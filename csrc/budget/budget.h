// How few tokens complete a text, and the tokens of a mask that leave enough of a budget.
//
// In: what an epoch of a grammar keeps for budgets (Budgets), and the states that a matcher was in.
// Out: bounds of the tokens that complete the text from the last state, and rows of masks. Cost: see
// budget.cc, whose opening explains the method. All calls hold the world's lock and run within a scope
// of work.
//
// Other folders of csrc include this header only. Behind it:
//
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

// At least `least` tokens are needed to complete the text, and `enough` tokens suffice. The end token
// counts as one.
struct TokenBounds {
  std::size_t least, enough;
};

// A number of tokens that finishes a text, the end token included, and where the number comes from.
struct Finish {
  enum From : uint8_t {
    kOwn,  // the state's shortest completion
    // The shortest completion of the state without its captured text.
    kBlind,
    // A bound in bytes (parse/lengths.h), with one token for each byte. No text was found.
    kBytes,
    // Tokens that a search found.
    kFound,
    // No number is known.
    kNone,
  };
  std::size_t tokens;
  From from;
  // The first of the tokens; -1 if it is the end token or no tokens are known.
  TokenId next = -1;
};

// How many bytes a whole text may have.
struct ByteRange {
  static constexpr std::size_t kAny = static_cast<std::size_t>(-1);
  std::size_t least = 0, most = kAny;
  bool has(std::size_t n) const { return least <= n && n <= most; }
};

// A text that is being written: the range of the whole, and the bytes so far.
struct ByteCount {
  ByteRange whole;
  std::size_t bytes = 0;
  bool any() const { return whole.least <= bytes && whole.most == ByteRange::kAny; }
};

// What an epoch keeps for all budgets. Every entry is a function of a state, or of a state and a number
// of tokens. So the entries make later answers quicker and never change one.
struct Budgets {
  // `fast`: a matcher's row is the mask of its state, because masks are cached, the grammar limits no
  // tokens, and every byte is a token.
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
  // The tokens that a search found, and the work that it took.
  struct Search {
    Reach::Answer answer = Reach::Answer::kUnknown;
    uint64_t cost = 0;
    std::vector<TokenId> tokens;
  };

  // A text that completes a state, and the states in front of each of its bytes and behind the last one.
  struct Read {
    std::string text;
    std::vector<StateId> at;
  };

  // A row of narrow_mask(). Its words are kept when the row is made for the second time, as by the texts of a
  // batch. Most rows of a single text are asked for once.
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
  // The long text that was read last; empty at first.
  Read read{"", {Parser::dead()}};
  // Keyed by state: the answers of by_text().
  std::unordered_map<uint32_t, Finish> shortest;
  // Keyed by state: tokens that complete the state. Kept only where its shortest text cannot be spelled.
  std::unordered_map<uint32_t, Search> found;
  // Keyed by 2^32 * state + tokens: whether this number of tokens suffices.
  std::unordered_map<uint64_t, Search> sought;
  // Keyed by state: the answers of bounds(true).
  std::unordered_map<uint32_t, TokenBounds> bounds;
  // A row within a range of bytes, and the numbers of bytes so far for which it is the same.
  struct Ranged {
    std::size_t from, to;
    bool exact;
    std::vector<uint32_t> row;
  };
  // Keyed by state. ranged_bytes counts the bytes of all rows.
  std::unordered_map<uint32_t, std::vector<Ranged>> ranged;
  std::size_t ranged_bytes = 0;
  // Keyed by 2^32 * state + tokens. If the rows take more than their share of memory, all are dropped.
  std::unordered_map<uint64_t, Kept> kept;
  std::size_t kept_bytes = 0;
  Targets targets;
  // The steps of tokens between states: without captured text, and with it.
  TokenGraph graph, exact_graph;
  // Null where the grammar limits no tokens.
  std::unique_ptr<Limits> limits;
  // Null where the vocabulary has every byte as a token.
  std::unique_ptr<Spellable> spelling;
};

// The questions of one call; each call makes a Budget of its own.
class Budget {
 public:
  static constexpr std::size_t kFar = Reach::kFar;
  using Bounds = TokenBounds;
  // `partial`: something was omitted from the grammar (base/effort.h). `past`: the states of the text; the
  // questions are about the last state. `tokens`: the tokens between these states, -1 for a step of bytes.
  // `mask_work`: the limit of a mask. `written`: the bytes of the text, if the grammar counts bytes.
  Budget(Budgets& of, bool partial, int64_t mask_work, std::span<const StateId> past,
         std::span<const TokenId> tokens, const ByteCount& written = {})
      : all_(of), partial_(partial), mask_work_(mask_work), past_(past), tokens_(tokens), written_(written) {
    all_.graph.trim();
    all_.exact_graph.trim();
  }
  Budget(const Budget&) = delete;
  Budget& operator=(const Budget&) = delete;

  // An upper bound of the tokens that complete s, the end token included; kFar if no bound is known. The
  // bound is a function of s as long as the work in spelling_ suffices.
  std::size_t needed(StateId s);
  // See Matcher::tokens_needed() and fits(). `work` is the limit of the search.
  Bounds bounds(bool search, int64_t work);
  std::optional<bool> fits(std::size_t budget);

  // narrow_mask(), narrow(), fill_limited(), keep_promise() and bound() return false where no token of the
  // row leads to an end within `budget` tokens. They throw kBudgetExceeded where no such token was found and
  // none was ruled out. Rows hold the vocabulary's end tokens as well.
  //
  // narrow_mask() takes the tokens that leave too little out of the mask of the state, narrow() out of
  // another row.
  bool narrow_mask(uint32_t* row, std::size_t budget);
  bool narrow(uint32_t* row, std::size_t budget);
  // The row of a grammar that limits tokens.
  bool fill_limited(uint32_t* row, std::size_t budget);
  // For a call in which the work of narrow() ran out. keep_promise() leaves only the token that needed()
  // counted. bound() leaves the tokens for which a bound in bytes shows that the budget suffices.
  bool keep_promise(uint32_t* row, std::size_t budget);
  bool bound(std::span<const uint32_t> plain, uint32_t* row, std::size_t budget);
  // Whether the text can be completed from s within its range of bytes and within `tokens` tokens, the end
  // token included. s stands `bytes` bytes behind the last state. False: there is no completion, or none was
  // found; exact() tells which.
  bool completable(StateId s, std::size_t bytes, std::size_t tokens = kEndless);
  // Takes the tokens out of a row behind which completable() is false. Tokens of at most `free` bytes stay
  // without a look. `work` is the limit of judging the others; a token that is not judged within it is taken
  // out. If the row is empty afterwards, no token is known to lead to an end.
  void keep_range(uint32_t* row, std::size_t free, int64_t work, std::size_t tokens = kEndless);
  // A text that completes the last state within the range of bytes. If a shortest text has enough bytes, it
  // is that text; else bytes are added one by one. Throws kBudgetExceeded where no text is found.
  std::string ranged_text();
  static constexpr std::size_t kEndless = static_cast<std::size_t>(-1);
  // False if tokens may be missing from the rows made here, because it took too much work to judge some
  // of them.
  bool exact() const { return exact_; }

 private:
  struct Trial;
  static constexpr std::size_t kTooMany = Reach::kFar;
  // The searches of a question that may take long: without captured text, and with it.
  struct Asked {
    Reach reach, exact_reach;
  };
  StateId here() const { return past_.back(); }
  Parser& parser() const { return all_.parser; }
  const Vocabulary& vocabulary() const { return *all_.world.vocabulary; }
  bool omits() const { return all_.world.regexes.effort().omits(); }
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
  std::string bytes_of(std::span<const TokenId> tokens) const;
  std::vector<TokenId> plan(StateId s);
  // `rest`: the token that comes next, and those behind it where they are known.
  bool followed(std::size_t budget, std::vector<TokenId>& rest);
  Reach::Answer planned(std::size_t budget, std::vector<TokenId>& rest);
  Reach::Answer on_ways(std::size_t budget, std::vector<TokenId>& rest);
  std::vector<TokenId> planned_in_range(std::size_t tokens);
  // Whether the token wrote text: it is no end token, and no step of bytes.
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
  // A row of tokens that stay inside a string, and the number of tokens that the worst of them needs.
  // `too_near`: a bound for all these tokens is known, and the bound is more than the budget.
  struct Staying {
    const uint32_t* row = nullptr;
    std::size_t most = 0;
    bool too_near = false;
  };
  Staying stay(const Mask* m, StateId from, std::size_t budget);
  bool ends_soon(StateId s);
  bool pieces_of_plan(std::size_t budget, std::vector<TokenId>& out);
  bool binds_nothing(std::size_t budget);
  // The tokens of a row that are in doubt. `mask`: the mask that the row is; null: another row.
  struct Doubt {
    const Mask* mask;
    Staying stays;
    // Only tokens that write a beginning of the shortest text are judged. Where the mask is large, no token
    // is to spare and a string may end at once, few others fit among a hundred thousand.
    bool pieces = false;
  };
  Doubt in_doubt(const uint32_t* row, std::size_t budget, bool enough, Trial& trial);
  std::optional<bool> judge(uint32_t* row, std::size_t budget);
  void keep_finished(uint32_t* row, std::size_t budget);
  Budgets::Kept* kept(std::size_t budget);
  void set_loose(StateId blind, const uint32_t* row, std::size_t most);
  // The bytes of a shortest completion; kFar if no completion is known. `proved`: no shorter text completes
  // the state. `some_texts`: the state does not hold its captured text, and the completion fits some captured
  // texts and not others.
  struct Shortest {
    std::size_t bytes;
    bool proved;
    bool some_texts = false;
  };
  Shortest shortest_bytes(StateId s);
  // What may follow a state that stands `bytes` bytes behind the last one: at most `room` bytes, at least
  // `missing` bytes, at most `tokens` tokens with the end token.
  struct Ahead {
    std::size_t bytes, room, missing, tokens;
    // Whether n bytes of one token each may follow.
    bool by_bytes(std::size_t n) const { return n <= room && (tokens == kEndless || n < tokens); }
    // The largest number of bytes so far with which n bytes more stay within `whole`.
    std::size_t last(const ByteRange& whole, std::size_t n) const {
      return whole.most == ByteRange::kAny ? kEndless : whole.most - bytes - n;
    }
  };
  std::optional<bool> longest_fits(StateId blind, const Ahead& at);
  bool reaches_range(StateId s, const Ahead& at);
  // The tokens of ranged_text(). Throws the errors of ranged_text().
  Finish ranged_finish();
  void holds(std::size_t from, std::size_t to);
  // Whether some text that completes s has from `least` to `most` bytes. No value: the question takes too
  // many states.
  std::optional<bool> reaches(StateId s, std::size_t least, std::size_t most);

  Budgets& all_;
  const bool partial_;
  const int64_t mask_work_;
  const std::span<const StateId> past_;
  const std::span<const TokenId> tokens_;
  const ByteCount written_;
  // The numbers of bytes so far for which every answer of completable() is the same.
  std::size_t from_ = 0, to_ = kEndless;
  // The answers of reaches(), keyed by state, least and most.
  std::map<std::tuple<uint32_t, std::size_t, std::size_t>, std::optional<bool>> reached_;
  // The work that is left for states whose shortest text cannot be spelled, and the states whose searches
  // were paid from it.
  uint64_t spelling_ = 2'000'000;
  std::unordered_set<uint32_t> paid_;
  bool exact_ = true;
  // For some state no completion was found and none was ruled out.
  bool unproved_ = false;
};

}  // namespace structgen
