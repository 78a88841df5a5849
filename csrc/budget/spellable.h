// Whether tokens can finish a text if the vocabulary lacks tokens of single bytes.
//
//     called by     engine/rows.cc (rows and accepted tokens), engine/sequence.cc (a way to a new epoch)
//     with          a state; the masks of the grammar
//     hands back    whether some tokens end the text from the state; the mask without the tokens behind
//                   which no tokens do
//     asks          Cutter for the pieces of shortest texts, Reach where captured text decides
//
// In: a state. Out: a verdict or a row. Cost: nothing if every byte is a token (mask/vocabulary.h). Else a
// completion for each state to which a token leads, and a walk over the tokens of each new mask: about a
// millisecond at 30,000 tokens.
//
// A question that is open after its share of work counts as a no: a mask may then lack tokens, and never
// leads into a dead end. spellable.cc has the four ways to decide, with an example. Source: summaries of
// pushdown systems (Reps, Horwitz, Sagiv 1995), with the trie as the regular side of the product (Bar-Hillel,
// Perles, Shamir 1961).
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

// One token of a cut text.
struct Piece {
  // The offset in the text at which the token ends.
  std::size_t end;
  TokenId token;
};
// Cuts texts into the fewest tokens. The cut of the last text is remembered: the completions of neighbouring
// states have their last bytes in common, and only the bytes in front are cut anew.
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
  // Appends each token that begins the text, if at most `most` tokens spell the rest.
  void begins(std::string_view text, std::size_t most, std::vector<TokenId>& out);
  // Writes the tokens of the text to `out`. Returns false if the vocabulary cannot spell it.
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
  // best_[n]: the best cut of the last n bytes of text_.
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
  // Writes the row of s, Vocabulary::words() words. Returns false if the work did not suffice to check all
  // tokens. Throws kVocabulary if no tokens complete the text, and kBudgetExceeded if none were found.
  bool fill(StateId s, uint32_t* row);
  // Returns tokens that are known to complete the text from s, without the end token; none if none are known.
  // keep() hands them to another epoch.
  std::vector<TokenId> way(StateId s);
  void keep(StateId s, const std::vector<TokenId>& tokens);
  std::size_t byte_size() const { return bytes_ + known_.size() * 56 + next_.size() * 48; }

 private:
  // A point between two symbols of a rule: the label that was read, what may not follow (pending), and the
  // trie node of a token that has begun, 0 if none has.
  struct Junction {
    // 1 + the label, or 0.
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
  // The summary of a rule that begins at one junction: `out` has the junctions at which it may end.
  struct Rule {
    std::set<Junction> out;
    // The rules that read `out`. settle() looks at them again when it grows.
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
  // By state: the first of some tokens that complete the text.
  std::unordered_map<uint32_t, TokenId> next_;
  // A row of fill(), and what fill() returned with it.
  struct Row {
    std::vector<uint32_t> words;
    bool whole;
  };
  std::unordered_map<uint32_t, Row> rows_;
  std::map<std::pair<uint32_t, uint32_t>, std::vector<Junction>> terminals_;
  // The answers of expand(), by rule and label.
  std::map<std::pair<uint32_t, uint32_t>, Alternatives> expansions_;
  // The summaries, and those that settle() must look at.
  std::map<Key, Rule> rules_;
  std::vector<Key> todo_;
  // The rule that settle() is looking at.
  const Key* at_ = nullptr;
  // True once captured text was met; no "no" can then be proved.
  bool open_ = false;
  // The steps that are left for the summaries of one state (kStateWork at first).
  uint64_t work_ = 0;
  // The steps that are left for all states of one mask (kMaskWork at first).
  uint64_t mask_work_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace structgen
