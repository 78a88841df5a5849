// How few tokens complete a text, and the tokens of a mask that leave enough of a budget.
//
// In: what an epoch of a grammar keeps for budgets (Budgets), and the states that a matcher was in. Out:
// bounds of the tokens that complete the last of them, and rows. Cost: see budget.cc, whose opening explains
// the method. All under the world's lock, within a scope of work.
//
// The one header of this room. Behind it:
//
//     limits.h      ways out of what a grammar limits in tokens
//     spellable.h   what a vocabulary without all bytes can spell
//     reach.h       searches for fewer tokens than a shortest text takes, in token_graph.h
//     outline.h     proofs that tokens are too few, in a smaller graph
//     targets.h     the states that one token inside a string leads to
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "budget/limits.h"
#include "budget/outline.h"
#include "budget/reach.h"
#include "budget/spellable.h"
#include "budget/targets.h"
#include "mask/fill.h"
#include "mask/world.h"
#include "parse/completion.h"
#include "parse/lengths.h"
#include "parse/productions.h"
#include "parse/state.h"

namespace structgen {

// No fewer than `least` tokens complete a text, and `enough` do; the end token is one of them.
struct TokenBounds {
  std::size_t least, enough;
};

// How many tokens are known to finish a text, the end token included, and which text was counted.
struct Finish {
  enum From : uint8_t {
    kOwn,    // the state's shortest completion
    kBlind,  // that of the state without its captured text
    kBytes,  // no text: a bound of its bytes (parse/lengths.h), a token each
    kFound,  // tokens that a search found
    kNone,   // none is known
  };
  std::size_t tokens;
  From from;
  TokenId next = -1;  // the first of them; -1: the end token, or there are none
};

// What an epoch keeps for all budgets. All of it are functions of a state, or of a state and a number of
// tokens: it makes later answers quicker, and no answer another one.
struct Budgets {
  // `fast`: the mask of a state is the row of its matcher.
  Budgets(World& of, Parser& states, Productions& rules, MaskBuilder& builder, Completion& shortest,
          Lengths& bounds_in_bytes, bool limited, bool fast_rows)
      : world(of),
        parser(states),
        productions(rules),
        masks(builder),
        completion(shortest),
        lengths(bounds_in_bytes),
        fast(fast_rows),
        targets(parser, masks, world.slices, *world.vocabulary),
        outline(world, parser, masks),
        graph(parser, masks, targets, *world.vocabulary, limited, false, world.policy.reach()),
        exact_graph(parser, masks, targets, *world.vocabulary, limited, true, world.policy.reach()) {
    if (limited)
      limits = std::make_unique<Limits>(world, parser, masks, completion);
    else if (!world.vocabulary->complete())
      spelling =
          std::make_unique<Spellable>(world, parser, productions, masks, completion, graph, exact_graph);
  }
  std::size_t byte_size() const {
    return outline.byte_size() + graph.byte_size() + exact_graph.byte_size() + shortest.size() * 56 +
           (found.size() + sought.size()) * 200 + bounds.size() * 56 + (limits ? limits->byte_size() : 0) +
           (spelling ? spelling->byte_size() : 0);
  }
  // Tokens that a search found, and what it took.
  struct Search {
    Reach::Answer answer = Reach::Answer::kUnknown;
    uint64_t cost = 0;
    std::vector<TokenId> tokens;
  };

  World& world;
  Parser& parser;
  Productions& productions;
  MaskBuilder& masks;
  Completion& completion;
  Lengths& lengths;
  const bool fast;
  std::unordered_map<uint32_t, Finish> shortest;     // by text or bytes
  std::unordered_map<uint32_t, Search> found;        // any tokens, where no shortest text can be spelled
  std::unordered_map<uint64_t, Search> sought;       // at most so many tokens, by 256 * state + tokens
  std::unordered_map<uint32_t, TokenBounds> bounds;  // that were asked for
  Targets targets;
  Outline outline;
  TokenGraph graph, exact_graph;        // the second keeps captured text
  std::unique_ptr<Limits> limits;       // where the grammar limits tokens; or null
  std::unique_ptr<Spellable> spelling;  // where the vocabulary may be unable to spell a text; or null
};

// One object a call.
class Budget {
 public:
  static constexpr std::size_t kFar = Reach::kFar;
  using Bounds = TokenBounds;
  // `partial`: something was omitted from the grammar (base/effort.h). `past`: the states of the text, of
  // which the last is asked about; `tokens`: the steps between them, -1 where one was bytes.
  Budget(Budgets& of, bool partial, std::span<const StateId> past, std::span<const TokenId> tokens)
      : all_(of), partial_(partial), past_(past), tokens_(tokens) {
    all_.graph.trim();
    all_.exact_graph.trim();
  }
  Budget(const Budget&) = delete;
  Budget& operator=(const Budget&) = delete;

  // An upper bound on the tokens that complete s, the end token included; kFar: none is known. A function of
  // s, as long as spelling_ suffices.
  std::size_t needed(StateId s);
  // See Matcher::tokens_needed() and fits().
  Bounds bounds(bool search);
  std::optional<bool> fits(std::size_t budget);

  // Each returns false where nothing is left within `budget` tokens, and throws kBudgetExceeded where nothing
  // is found and nothing ruled out. Rows have the vocabulary's end tokens.
  //
  // Takes out of a row the tokens that leave too little.
  bool narrow(uint32_t* row, std::size_t budget);
  bool fill_limited(uint32_t* row, std::size_t budget);  // where the grammar limits tokens
  // Where the work of narrow() ran out: the token that needed() counted, or those that a bound in bytes
  // allows.
  bool keep_promise(uint32_t* row, std::size_t budget);
  bool bound(std::span<const uint32_t> plain, uint32_t* row, std::size_t budget);
  // Of the rows made here: false where tokens may be missing, because it was too much to tell of some.
  bool exact() const { return exact_; }

 private:
  struct Trial;
  static constexpr std::size_t kTooMany = Reach::kFar;
  static constexpr std::size_t kExact = 8;           // tokens left from which on a mask is exact
  static constexpr uint64_t kMaskReach = 100'000;    // work of one mask's searches, about a millisecond
  static constexpr uint64_t kMaskOutline = 100'000;  // and of what spares them (budget/outline.h)
  // Searches of one question that may take long.
  struct Asked {
    Reach reach, exact_reach;
  };
  StateId here() const { return past_.back(); }
  Parser& parser() const { return all_.parser; }
  const Vocabulary& vocabulary() const { return *all_.world.vocabulary; }
  bool omits() const { return all_.world.regexes.effort().omits(); }
  Reach search(TokenGraph& graph, bool outlined);
  Asked asked();
  void allow_outline(uint64_t work);
  bool any_text(StateId s);
  bool leaving(StateId s, std::size_t budget, std::vector<TokenId>& out);
  Finish cut(std::string_view text, Finish::From from) const;
  bool completes(StateId s, std::string_view text);
  Finish spelled(StateId s);
  Finish by_text(StateId s);
  std::size_t shortest(StateId s);
  Finish finish(StateId s);
  bool sure(StateId s, std::size_t budget) const;
  std::string bytes_of(std::span<const TokenId> tokens) const;
  std::vector<TokenId> plan(StateId s);
  Reach::Answer planned(std::size_t budget, TokenId& next);
  void set_only(uint32_t* row, TokenId t) const;
  bool follow(StateId s, std::span<const TokenId> tokens);
  Reach::Answer find(TokenGraph& graph, StateId s, uint64_t& work, std::vector<TokenId>& out);
  Reach::Answer within(Reach& search, TokenGraph& graph, StateId s, std::size_t budget, uint64_t& work,
                       std::vector<TokenId>* way);
  TokenId nearest();
  Reach::Answer asked_within(Asked& search, StateId s, std::size_t budget, std::vector<TokenId>* way);
  Reach::Answer sought_within(StateId s, std::size_t budget, std::vector<TokenId>* way);
  std::size_t descends(StateId s, std::size_t budget, uint64_t& work, std::vector<TokenId>* way,
                       bool to_the_end);
  std::size_t staying(StateId s);
  void keep_finished(uint32_t* row, std::size_t budget);
  void set_loose(StateId blind, const uint32_t* row, std::size_t most);

  Budgets& all_;
  const bool partial_;
  const std::span<const StateId> past_;
  const std::span<const TokenId> tokens_;
  // Work left for states whose shortest text cannot be spelled, and those that were paid from it.
  uint64_t spelling_ = 2'000'000;
  std::unordered_set<uint32_t> paid_;
  bool exact_ = true;
  bool unproved_ = false;  // of some state no tokens that finish were found, and none ruled out
};

}  // namespace structgen
