// Clouds: everything that a parser may still read after some tokens of which not all are known.
//
// In: productions, a parse state, tokens or "any token". Out: clouds, interned: regexes, each with the
// set of stacks below it. Cost: a known step is a look-up, a new one a pass over the cloud's regexes.
// The effect of unknown tokens is computed once for a set of regexes, and once a world for one regex
// (holes/strides.h).
//
// A cloud is no parse state. A state unites all regexes above equal stacks to one regex, and behind a few
// unknown tokens every slot would have new unions. In a cloud each terminal keeps its own regex, so there are
// as many regexes as terminals have derivatives, and the stacks below each regex are united. A union of sets
// of stacks holds exactly the stacks of both, so a cloud holds exactly what some tokens lead to, with one
// exception: captured text is not kept. The readers of captured text are told that the text differs from all
// other texts (Reading::kFresh); some text does, if enough texts are possible. Behind such a reader a cloud
// is `blind`: it may hold more than can be read, and never holds less.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/flat_map.h"
#include "base/intern.h"
#include "holes/strides.h"
#include "mask/vocabulary.h"
#include "parse/completion.h"
#include "parse/state.h"

namespace structgen {

class Clouds {
 public:
  using Id = uint32_t;
  // The cloud in which nothing can be read and the text cannot end.
  static constexpr Id kNone = 0;
  struct Entry {
    RegexId regex;
    StackId stack;
    friend bool operator==(const Entry&, const Entry&) = default;
  };
  // The regexes that stand above one set of stacks. In practice a few hundred regexes share a dozen sets.
  struct Group {
    uint32_t set;
    StackId stack;
    friend bool operator==(const Group&, const Group&) = default;
  };
  struct Cloud {
    // No regex is in two groups.
    std::vector<Group> groups;
    bool accepting = false;
    // True if some captured text was assumed to differ from all others.
    bool blind = false;
    // True if a reader could not tell what follows a text that differs from all others. Then anything may
    // follow.
    bool open = false;
  };

  // `strides`: the most bytes of the arena's table of strides.
  Clouds(RegexArena& regexes, Productions& productions, const Vocabulary& vocabulary, std::size_t strides);
  Parser& parser() { return parser_; }
  const Cloud& cloud(Id c) const { return clouds_[c]; }
  // The cloud of a parse state.
  Id of(StateId s);
  // The cloud after token t.
  Id token(Id c, TokenId t);
  // The cloud after any one token.
  Id any(Id c);
  // The part of a cloud whose stacks have at most `symbols` symbols. Unknown tokens lead to new clouds with
  // ever deeper stacks, and there are few such parts.
  Id shallow(Id c, uint32_t symbols);
  // For each group the number of symbols of its smallest stack; the largest of these numbers.
  uint32_t depth(Id c);
  // Whether some text can be read from the cloud to an end.
  bool alive(Id c);
  // Whether everything that can be read from `part` can be read from c.
  bool holds(Id c, Id part);
  // The tokens of a short text that completes the cloud, which must have few entries; null: none was found.
  const std::vector<TokenId>* ending(Id c);
  // The cloud of one entry, and of what follows if the regex of the entry may end.
  Id closed(Entry e);
  // Calls f(cloud, regex, places, left) for every way on: the tokens of number `left` in the stride of
  // (regex, places) lead to the cloud. It stops when f returns false.
  using Way = std::function<bool(Id, RegexId, uint32_t, std::size_t)>;
  bool ways(Id c, const Way& f);
  // Whether the last call of ways() met an open cloud, whose ways are not known.
  bool lost_ways() const { return lost_; }
  Strides& strides() { return strides_; }
  // Whether some cloud was blind. If so, a yes has to be shown by a text.
  bool seen_blind() const { return seen_blind_; }
  std::size_t byte_size() const;

 private:
  static constexpr uint32_t kManyEntries = 100'000;
  using Set = uint32_t;
  struct Gathered {
    std::vector<Group> groups;
    bool accepting = false, blind = false, open = false;
    void add(const Cloud& c) {
      groups.insert(groups.end(), c.groups.begin(), c.groups.end());
      accepting = accepting || c.accepting;
      blind = blind || c.blind;
      open = open || c.open;
    }
  };
  // The effect of a byte, or of the tokens below some places of the trie, on all regexes of a set.
  struct Leap {
    Set left = 0;
    // Labels of the regexes that may end.
    std::vector<uint32_t> labels;
    std::vector<Stride::Exit> exits;
  };
  Id intern(Gathered& g);
  Id enter(StackId s, uint32_t label);
  void enter(StackId s, Alive::Pending pending, uint32_t label, Gathered& out);
  void read(Symbol top, StackId rest, Alive::Pending pending, uint32_t label, Gathered& out);
  Set set(std::vector<uint32_t>& regexes);
  Set set_of(RegexId r);
  void add(RegexId r, StackId s, Gathered& out) { out.groups.push_back({set_of(r), s}); }
  const Leap& byte(Set s, uint8_t b);
  const Leap& leap(Set s, uint32_t places);
  void meet(RegexId to, std::vector<uint32_t>& left, std::vector<uint32_t>& labels);
  void follow(const Leap& l, StackId s, Gathered& out);
  const Alternatives& expand(RuleId rule, Symbol::Kind kind, uint32_t label);
  Id leave(StackId s, uint32_t label, uint32_t places);
  std::vector<Entry> entries(Id c) const;
  bool ways(const Entry& e, uint32_t places, const Way& f);
  StackId shallow(StackId s, uint32_t symbols);
  uint32_t depth(StackId s);
  bool ends_at_edge(const std::vector<Group>& groups, uint32_t depth);

  RegexArena& regexes_;
  Productions& productions_;
  const Vocabulary& vocabulary_;
  Parser parser_;
  Completion completion_;
  Strides& strides_;
  std::vector<Cloud> clouds_;
  InternTable index_;
  std::size_t bytes_ = 0;
  bool seen_blind_ = false, lost_ = false;
  std::vector<std::vector<uint32_t>> sets_;
  InternTable set_index_;
  FlatMap<uint64_t, uint32_t> byte_index_, leap_index_;
  std::deque<Leap> leaps_;
  // Keyed by numbers of sets of places: the number of their union.
  std::map<std::vector<uint32_t>, uint32_t> unions_;
  FlatMap<uint32_t, uint32_t> ending_index_;
  std::deque<std::vector<TokenId>> endings_;
  // Keyed by stacks and label.
  FlatMap<uint64_t, Id> entered_;
  // Keyed by regex and stacks.
  FlatMap<uint64_t, Id> closed_;
  // Keyed by cloud and token.
  FlatMap<uint64_t, Id> tokens_;
  FlatMap<uint32_t, Id> any_, of_;
  FlatMap<uint32_t, bool> alive_;
  // Keyed by stacks and number of symbols.
  FlatMap<uint64_t, StackId> shallow_stacks_;
  // Keyed by cloud and number of symbols.
  FlatMap<uint64_t, Id> shallow_;
  // Keyed by stacks.
  FlatMap<uint32_t, uint32_t> depths_;
  // Keyed by stacks and label, then by places.
  std::unordered_map<uint64_t, FlatMap<uint32_t, Id>> left_;
  std::unordered_map<uint64_t, Alternatives> expansions_;
  // The stacks that enter() has entered, with what was pending.
  FlatMap<uint64_t, bool> visited_;
};

}  // namespace structgen
