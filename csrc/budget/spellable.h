// Whether tokens can finish a text if the vocabulary lacks tokens of single bytes.
//
// In: a state, and the masks of the grammar. Out: whether some sequence of tokens ends the text from the
// state, and the mask less the tokens after which no sequence does. Cost: nothing if the vocabulary is
// complete (mask/vocabulary.h), because then every byte can be written and every state of the parser
// can be finished. Else a completion for every state to which a token leads, and a walk over the tokens
// of every new mask: about a millisecond at 30,000 tokens.
//
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

// A piece of a text that one token writes.
struct Piece {
  // The offset in the text behind the token.
  std::size_t end;
  TokenId token;
};
// Cuts texts into the fewest tokens. Completions of neighbouring states have a common end, so the cut of the
// last text is kept, and a new text is cut down to the end that both share.
class Cutter {
 public:
  explicit Cutter(const TokenTrie& trie) : trie_(trie) {}
  // The number of tokens of a text, and the first of them; -1: the text is empty.
  struct Cut {
    uint32_t tokens;
    TokenId first;
  };
  static constexpr uint32_t kNever = 0xFFFFFFFFu;
  // kNever tokens where the vocabulary cannot spell the text.
  Cut cut(std::string_view text);
  // The tokens that begin the text and leave at most `most` tokens for its rest.
  void begins(std::string_view text, std::size_t most, std::vector<TokenId>& out);
  // Cuts the text into pieces; false if the vocabulary cannot spell it.
  bool spell(std::string_view text, std::vector<Piece>& out);
  std::size_t byte_size() const { return text_.capacity() + best_.capacity() * sizeof(Best); }

 private:
  // The fewest tokens that spell an end of the text, and the first of these tokens with its number of bytes.
  struct Best {
    uint32_t tokens, bytes;
    TokenId token;
  };
  const TokenTrie& trie_;
  std::string text_;
  // Indexed by the number of bytes of the end.
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

  // All calls need the world's lock.
  Reach::Answer judge(StateId s);
  bool possible(StateId s) { return judge(s) == Reach::Answer::kYes; }
  // Writes words() words. False: tokens may be missing, because the work did not suffice to judge them.
  // Throws kVocabulary where no tokens end the text, kBudgetExceeded where none were found.
  bool fill(StateId s, uint32_t* row);
  // The tokens that were found to end the text from s, for another epoch to keep; may be empty.
  std::vector<TokenId> way(StateId s);
  void keep(StateId s, const std::vector<TokenId>& tokens);
  std::size_t byte_size() const { return bytes_ + known_.size() * 56 + next_.size() * 48; }

 private:
  // A point between two symbols: the label that was read last, what is pending (parse/alive.h), and the
  // node of the trie at which the begun token stands.
  struct Junction {
    // The label plus one; 0: no label was read.
    uint32_t label = 0;
    Alive::Pending pending = Alive::kClear;
    uint32_t node = 0;
    friend auto operator<=>(const Junction&, const Junction&) = default;
  };
  // A rule and the junction before it.
  struct Key {
    uint32_t rule;
    Junction from;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  // The summary of a rule: the junctions behind it, as far as they are known.
  struct Rule {
    std::set<Junction> out;
    // The rules that use this summary; they are looked at again when `out` grows.
    std::vector<Key> users;
    // True: the rule is in todo_.
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
  // Keyed by state: the first token of a way.
  std::unordered_map<uint32_t, TokenId> next_;
  struct Row {
    std::vector<uint32_t> words;
    bool whole;
  };
  // Keyed by state: the answers of fill().
  std::unordered_map<uint32_t, Row> rows_;
  std::map<std::pair<uint32_t, uint32_t>, std::vector<Junction>> terminals_;
  std::map<std::pair<uint32_t, uint32_t>, Alternatives> expansions_;
  std::map<Key, Rule> rules_;
  std::vector<Key> todo_;
  // The rule that is being looked at.
  const Key* at_ = nullptr;
  // True: the search has met captured text, and can no longer prove a no.
  bool open_ = false;
  // Work left for one state.
  uint64_t work_ = 0;
  // Work left for the states of one mask.
  uint64_t mask_work_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace structgen
