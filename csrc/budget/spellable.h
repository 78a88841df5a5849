// Whether tokens can finish a text if the vocabulary lacks tokens of single bytes.
//
//     called by     engine/rows.cc (rows and accepted tokens), engine/sequence.cc (a way that moves to a new
//     epoch) with          a state; the masks of the grammar hands back    whether some tokens end the text
//     from the state; the mask without the tokens behind which
//                   no tokens do
//     asks          Cutter for the pieces of shortest texts, Reach where captured text decides
//
// In: a state. Out: a verdict or a row. Cost: nothing if the vocabulary is complete (mask/vocabulary.h): then
// every byte can be written, and every state of the parser can be finished. Else a completion for each state
// to which a token leads, and a walk over the tokens of each new mask: about a millisecond at 30,000 tokens.
// Four ways decide, the cheapest first. If the shortest completion can be cut into tokens, the answer is yes.
// If a completion can be cut into tokens a few tokens further on, the answer is yes; if the tokens lead to
// few places in all and none has such a completion, it is no. Summaries of rules decide whether a
// context-free language and the texts that tokens spell have a text in common: yes or no, even with
// infinitely many states. (A summary leads from what is pending and the node of the trie before a rule to the
// same behind it.) Where captured text decides, the states to which tokens lead are searched
// (budget/reach.h). A question that is open after its share of work counts as a no: a mask may then lack
// tokens, and never leads into a dead end. Source: summaries of pushdown systems (Reps, Horwitz, Sagiv 1995),
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

// One token of a text that is cut into tokens.
struct Piece {
  // The offset in the text at which the token ends.
  std::size_t end;
  TokenId token;
};
// Cuts texts into the fewest tokens. The completions of neighbouring states have their last bytes in common.
// So the cut of the last text is remembered, and only the bytes in front of the common end are cut anew.
class Cutter {
 public:
  explicit Cutter(const TokenTrie& trie) : trie_(trie) {}
  // The number of tokens of a text, and the first of them; -1 if the text is empty.
  struct Cut {
    uint32_t tokens;
    TokenId first;
  };
  static constexpr uint32_t kNever = 0xFFFFFFFFu;
  // Cuts the text. `tokens` is kNever if the vocabulary cannot spell it.
  Cut cut(std::string_view text);
  // Appends to `out` each token that begins the text, if at most `most` tokens spell what is left of it.
  void begins(std::string_view text, std::size_t most, std::vector<TokenId>& out);
  // Writes the pieces of the cut text to `out`. Returns false if the vocabulary cannot spell the text.
  bool spell(std::string_view text, std::vector<Piece>& out);
  std::size_t byte_size() const { return text_.capacity() + best_.capacity() * sizeof(Best); }

 private:
  // The best cut of the last bytes of a text: its number of tokens, the first of them, and the bytes of that
  // one.
  struct Best {
    uint32_t tokens, bytes;
    TokenId token;
  };
  const TokenTrie& trie_;
  std::string text_;
  // best_[n] is the best cut of the last n bytes of text_.
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

  // The caller of each function holds the world's lock.
  //
  // Tells whether some tokens complete the text from s. kUnknown: the work did not suffice to tell.
  Reach::Answer judge(StateId s);
  bool possible(StateId s) { return judge(s) == Reach::Answer::kYes; }
  // Writes the row of s, Vocabulary::words() words. Returns false if tokens may be missing, because the work
  // did not suffice to check them. Throws kVocabulary if no tokens complete the text, and kBudgetExceeded if
  // none were found.
  bool fill(StateId s, uint32_t* row);
  // Returns tokens that are known to complete the text from s, without the end token; none if none are known.
  // keep() hands them to another epoch.
  std::vector<TokenId> way(StateId s);
  void keep(StateId s, const std::vector<TokenId>& tokens);
  std::size_t byte_size() const { return bytes_ + known_.size() * 56 + next_.size() * 48; }

 private:
  // A point between two symbols of a rule: the label that was read last, the pending (parse/alive.h), and the
  // trie node of the token that has begun (0 between two tokens).
  struct Junction {
    // The label plus one, or 0 if no label was read.
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
  // What is known of a rule that begins at one junction (its summary): `out` holds the junctions at which it
  // may end, as far as they are known.
  struct Rule {
    std::set<Junction> out;
    // The rules that use this summary. settle() looks at them again when `out` grows.
    std::vector<Key> users;
    // True while the rule waits in todo_.
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
  // Holds the first of some tokens that complete the text, keyed by state.
  std::unordered_map<uint32_t, TokenId> next_;
  // A row of fill(), and what fill() returned with it.
  struct Row {
    std::vector<uint32_t> words;
    bool whole;
  };
  std::unordered_map<uint32_t, Row> rows_;
  std::map<std::pair<uint32_t, uint32_t>, std::vector<Junction>> terminals_;
  // Holds the answers of expand(), keyed by rule and label.
  std::map<std::pair<uint32_t, uint32_t>, Alternatives> expansions_;
  // The summaries, and those that settle() must look at.
  std::map<Key, Rule> rules_;
  std::vector<Key> todo_;
  // The rule that settle() is looking at; null outside of settle().
  const Key* at_ = nullptr;
  // True once the search has met captured text; it can then no longer prove a no.
  bool open_ = false;
  // The steps that are left for the summaries of one state (kStateWork at first).
  uint64_t work_ = 0;
  // The steps that are left for all states of one mask (kMaskWork at first).
  uint64_t mask_work_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace structgen
