// Whether tokens can finish a text if the vocabulary lacks tokens of single bytes.
//
//     called by     engine/rows.cc (rows and accepted tokens) and engine/sequence.cc (a new epoch takes
//                   over the tokens of a state)
//     with          a state; the masks of the grammar
//     hands back    whether some tokens end the text from the state; the mask without the tokens behind
//                   which no tokens end the text
//     asks          Cutter for the pieces of shortest texts, Reach where captured text decides
//
// In: a state. Out: a verdict or a row. Cost: nothing if the vocabulary is complete (mask/vocabulary.h),
// because then every byte can be written and every state of the parser can be finished. Otherwise a
// completion for each state to which a token leads, and a walk over the tokens of each new mask: about a
// millisecond at 30,000 tokens. Four methods decide; the cheapest is tried first. (1) If the shortest
// completion can be cut into tokens, the answer is yes. (2) If, a few tokens further on, a completion can be
// cut into tokens, the answer is yes; if tokens lead to few states in all, and no completion of these states
// can be cut into tokens, the answer is no. (3) Summaries of rules decide whether the language of the grammar
// and the texts that tokens spell have a text in common: yes or no, even with infinitely many states. A
// summary says of a rule: from this pending and this trie node in front of the rule, its texts lead to these
// pendings and trie nodes. (4) Where captured text decides, the states to which tokens lead are searched
// (budget/reach.h). A question that is still open after its share of work counts as a no: a mask may then
// lack tokens, but leads into no dead end. Source: summaries of pushdown systems (Reps, Horwitz, Sagiv 1995),
// with the trie as the regular side of the product (Bar-Hillel, Perles, Shamir 1961).
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "budget/reach.h"
#include "mask/fill.h"
#include "mask/world.h"
#include "parse/completion.h"
#include "parse/state.h"

namespace structgen {

struct Piece {
  // The offset in the text at which the token ends.
  std::size_t end;
  TokenId token;
};
// Cuts texts into the fewest tokens. The completions of neighbouring states have a common end, so the last
// cut is remembered, and only the bytes in front of the common end are cut anew.
class Cutter {
 public:
  explicit Cutter(const TokenTrie& trie) : trie_(trie) {}
  // The number of tokens of a cut text, and the first of them (-1 if the text is empty).
  struct Cut {
    uint32_t tokens;
    TokenId first;
  };
  static constexpr uint32_t kNever = 0xFFFFFFFFu;
  // Cuts a text. If the vocabulary cannot spell it, `tokens` is kNever.
  Cut cut(std::string_view text);
  // Appends each token that begins the text and leaves a rest of at most `most` tokens.
  void begins(std::string_view text, std::size_t most, std::vector<TokenId>& out);
  // Writes the pieces of the cut text to `out`. Returns false if the vocabulary cannot spell the text.
  bool spell(std::string_view text, std::vector<Piece>& out);
  std::size_t byte_size() const { return text_.capacity() + best_.capacity() * sizeof(Best); }

 private:
  // The best cut of the last bytes of a text: its number of tokens, its first token, and the bytes of that
  // token.
  struct Best {
    uint32_t tokens, bytes;
    TokenId token;
  };
  const TokenTrie& trie_;
  std::string text_;
  std::vector<Best> best_{{0, 0, -1}};
};

class Spellable {
 public:
  Spellable(World& world, Parser& parser, Productions& productions, MaskBuilder& masks,
            Completion& completion, Cutter& cutter, TokenGraph& graph, TokenGraph& exact_graph)
      : world_(world),
        parser_(parser),
        productions_(productions),
        masks_(masks),
        completion_(completion),
        cutter_(cutter),
        graph_(graph),
        exact_graph_(exact_graph) {}

  // The caller of each function holds the world's lock. Tells whether some tokens complete the text from s.
  // kUnknown means that deciding takes too much work.
  Reach::Answer judge(StateId s);
  bool possible(StateId s) { return judge(s) == Reach::Answer::kYes; }
  // Writes the row of s, Vocabulary::words() words. Returns false if tokens may be missing that took too much
  // work to check. Throws kVocabulary if it is proved that no tokens complete the text, and kBudgetExceeded
  // if no such tokens were found and nothing is proved.
  bool fill(StateId s, uint32_t* row);
  // Returns tokens that complete the text from s, without the end token, if some are known; otherwise none.
  // keep() hands them to another epoch.
  std::vector<TokenId> way(StateId s);
  void keep(StateId s, const std::vector<TokenId>& tokens);
  std::size_t byte_size() const { return bytes_ + known_.size() * 56 + next_.size() * 48; }

 private:
  // A point between two symbols of a rule. `label` is 1 + the label that the next reader is told, or 0.
  // `pending` says what may not follow here (parse/alive.h). `node` is the trie node of the bytes of the
  // token that has begun, or 0 between two tokens.
  struct Junction {
    uint32_t label = 0;
    Alive::Pending pending = Alive::kClear;
    uint32_t node = 0;
    friend auto operator<=>(const Junction&, const Junction&) = default;
  };
  struct Key {
    uint32_t rule;
    Junction from;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  // The summary of a rule that begins at one junction: `out` holds the junctions at which the rule may end,
  // as far as they are known.
  struct Rule {
    std::set<Junction> out;
    // The rules that use this summary, which settle() evaluates again when `out` grows.
    std::vector<Key> users;
    bool waiting = true;
  };
  void spend(uint64_t n = 1);
  const std::vector<Junction>& terminal(RegexId r, uint32_t node);
  void through(Symbol s, Junction from, std::vector<Junction>& to);
  const Rule& rule(RuleId r, Junction from);
  const Alternatives& expand(RuleId r, uint32_t label);
  void settle();
  void forget();
  Reach::Answer summarised(StateId s);
  bool spelled(StateId s);
  Reach::Answer near(StateId s);
  Reach::Answer searched(StateId s);

  World& world_;
  Parser& parser_;
  Productions& productions_;
  MaskBuilder& masks_;
  Completion& completion_;
  Cutter& cutter_;
  TokenGraph &graph_, &exact_graph_;
  std::unordered_map<uint32_t, Reach::Answer> known_;
  // By state: the first of some tokens that complete the text from it.
  std::unordered_map<uint32_t, TokenId> next_;
  // A row of fill(), and what fill() returned with it.
  struct Row {
    std::vector<uint32_t> words;
    bool whole;
  };
  std::unordered_map<uint32_t, Row> rows_;
  std::map<std::pair<uint32_t, uint32_t>, std::vector<Junction>> terminals_;
  std::map<std::pair<uint32_t, uint32_t>, Alternatives> expansions_;
  // The summaries, and the keys of those that settle() must evaluate.
  std::map<Key, Rule> rules_;
  std::vector<Key> todo_;
  // The rule that settle() is evaluating, or null.
  const Key* at_ = nullptr;
  // True once the search has met captured text. Then the search cannot prove a no.
  bool open_ = false;
  // The steps left for the summaries of one state, from kStateWork down.
  uint64_t work_ = 0;
  // The steps left for all states of one mask, from kMaskWork down.
  uint64_t mask_work_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace structgen
