// Least numbers of tokens: whether some tokens, and not only those of a text that is shortest in bytes, end a
// text in time.
//
// In: a state, a number of tokens, a limit on work. Out: yes, with the tokens; no, proved; or unknown. Cost:
// one walk over the trie for each state that is met (a millisecond at 131k tokens where any may stand,
// microseconds where few may), kept; then a pass over the states that one token leads to, once for each
// number asked for.
//
// States are numbers and few tokens lead to different ones, so what is searched is a graph: an edge for each
// state that one token leads to. `within` goes down it to a depth and remembers for each state the number of
// tokens that is proved to be too few, so that no pair of state and depth is searched twice. `find` goes
// through it in breadth, for states whose shortest text the vocabulary cannot spell.
//
// Text that is captured is left out (mask/fill.h). A way that is found then is one whatever the text is; that
// there is none is not proved where the text would have mattered. An exact search keeps the text: every text
// is states of its own then, and they stay.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "budget/outline.h"
#include "budget/targets.h"
#include "mask/fill.h"
#include "mask/vocabulary.h"
#include "parse/state.h"

namespace structgen {

// How many tokens are known to finish a text, EOS included, and which text was counted (budget/budget.cc).
struct Finish {
  enum From : uint8_t {
    kOwn,       // the state's shortest completion
    kBlind,     // that of the state without its captured text
    kFound,     // tokens that Reach::find() found
    kBytes,     // no text: a bound of its bytes (parse/lengths.h), a token each
    kNone,      // none: nothing completes it
    kUnproved,  // none is known, and some may
  };
  std::size_t tokens;
  From from;
  TokenId next = -1;  // the first of them; -1: EOS, or there are none
};

class Reach {
 public:
  enum class Answer : uint8_t { kNo, kYes, kUnknown };
  // `needed`: what is known to suffice, by state: it spares searches.
  // `limited`: the grammar limits tokens (parse/limits.h). `exact`: captured text is kept. `outline`: what
  // proves that tokens are too few at less cost; null: nothing does. `most`: bytes of all edges kept; beyond
  // it nothing new is looked at.
  Reach(Parser& parser, MaskBuilder& masks, Targets& targets, const Vocabulary& vocabulary,
        const std::unordered_map<uint32_t, Finish>& needed, bool limited, bool exact, Outline* outline,
        std::size_t most)
      : parser_(parser),
        masks_(masks),
        targets_(targets),
        vocabulary_(vocabulary),
        needed_(needed),
        limited_(limited),
        exact_(exact),
        outline_(outline),
        most_(most) {}

  // What a search begins at.
  StateId begin(StateId s) const { return exact_ ? s : masks_.blind(s); }

  // Both from a state that begin() gave.
  // Whether k tokens, the end-of-sequence token included, can complete s. `work` is what may be spent (nodes
  // of the trie and edges), and what is left of it.
  Answer within(StateId s, std::size_t k, uint64_t& work);
  // Whether any tokens can. After a yes `out` leads from s to a state of which `ends` says so, which s
  // becomes: the nearest, and of those the first in the order of edges.
  Answer find(StateId& s, const std::function<bool(StateId)>& ends, std::vector<TokenId>& out,
              uint64_t& work);
  // Whether `most` tokens complete s: at each state the one that leaves the fewest bytes by `bytes` (an upper
  // bound of the bytes that complete a state), and where none leaves fewer, `next`, the first of the shortest
  // text (-1: there is none), until `rest` tokens are few enough. Yes or unknown: one way is tried. For long
  // values, where within() would have to look at every length. Puts the tokens into `out`; s becomes the
  // state that they lead to.
  Answer descend(StateId& s, std::size_t most, const std::function<uint32_t(StateId)>& bytes,
                 const std::function<std::size_t(StateId)>& rest, const std::function<TokenId(StateId)>& next,
                 std::vector<TokenId>& out, uint64_t& work);
  // Distinct states that one token leads to, each with such a token, the same whatever was asked before.
  // Null: too much work.
  const std::vector<std::pair<StateId, TokenId>>* next(StateId s, uint64_t& work) {
    const Edges* e = edges(s, work);
    return e ? &e->to : nullptr;
  }
  // Takes tokens that complete s, which begin() gave, as known to every state along them: searches end there.
  void learn(StateId s, std::span<const TokenId> tokens);
  // Whether some tokens are known to complete s.
  bool finished(StateId s) const { return known(s) < kFar; }
  // Tokens to the end after a yes of within(), up to a state of which `needed` knows the rest, which s
  // becomes. Which of several ways it is depends on what was searched before.
  std::vector<TokenId> way(StateId& s);
  // No fewer tokens can complete s; kFar: none can.
  static constexpr std::size_t kFar = static_cast<std::size_t>(-1) / 2;
  std::size_t least(StateId s) const;
  std::size_t byte_size() const {
    return bytes_ + found_.size() * 56 + least_.byte_size() + too_little_.byte_size() +
           undecided_.byte_size();
  }

 private:
  struct Edges {
    std::vector<std::pair<StateId, TokenId>> to;  // distinct states, and a token that leads there
    bool all = true;  // not where captured text matters, nor where there are too many
  };
  const Edges* edges(StateId s, uint64_t& work);
  bool edges_of_run(StateId s, Edges& out, uint64_t& spent);
  bool edges_by_walk(StateId s, Edges& out, uint64_t& spent, uint64_t work);
  bool ends_in_text(StateId s, Edges& out) const;
  bool leave(StateId s, std::size_t k, uint64_t& work, Answer& out);
  std::size_t known(StateId s) const;  // tokens that suffice; kFar
  bool take(StateId s, StateId to, TokenId token);
  void raise(StateId s, std::size_t least);

  Parser& parser_;
  MaskBuilder& masks_;
  Targets& targets_;
  const Vocabulary& vocabulary_;
  const std::unordered_map<uint32_t, Finish>& needed_;
  const bool limited_, exact_;
  Outline* const outline_;
  const std::size_t most_;
  struct Step {
    std::size_t tokens;
    TokenId next;
  };
  std::unordered_map<uint32_t, Step> found_;
  std::unordered_map<uint32_t, Edges> edges_;
  FlatMap<uint32_t, std::size_t> least_;
  // A search for so many tokens, with so much work, told nothing: a search for no more tells no more.
  struct Undecided {
    std::size_t tokens = 0;
    uint64_t work = 0;
  };
  FlatMap<uint32_t, Undecided> undecided_;
  FlatMap<uint32_t, uint64_t> too_little_;  // work that was not enough for the edges of a state
  std::size_t bytes_ = 0;
};

}  // namespace structgen
