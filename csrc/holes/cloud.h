// Clouds: all that a parser may still read once some tokens were read of which not all are known.
//
// In: productions, a parse state, tokens or "any token". Out: clouds, interned: a regex with the set of
// stacks below it, for each regex. Cost: a known step is a look-up; a new one a pass over the cloud's
// regexes; what tokens do to a set of regexes is told once, and to one regex once a world (holes/strides.h).
//
// A cloud is no parse state: a state makes one regex of all that stand above equal stacks, and after a few
// unknown tokens those would be new in every slot. Here each terminal keeps its own, so there are as many
// regexes as terminals have derivatives, and the stacks are united below each. A union of sets of stacks
// holds exactly the stacks of both, so a cloud holds exactly what some tokens lead to, but for one thing:
// captured text is not kept. Its readers are told that it differs from all others (Reading::kFresh), which
// holds of some text where there are enough of them; a cloud that came by such a reader says so (`blind`),
// and holds more than can be read, never less.
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
  static constexpr Id kNone = 0;  // nothing can be read, and the text cannot end
  struct Entry {
    RegexId regex;
    StackId stack;
    friend bool operator==(const Entry&, const Entry&) = default;
  };
  // Regexes above the same stacks: a few hundred of them share a dozen sets of stacks.
  struct Group {
    uint32_t set;
    StackId stack;
    friend bool operator==(const Group&, const Group&) = default;
  };
  struct Cloud {
    std::vector<Group> groups;  // no regex is in two of them
    bool accepting = false;
    bool blind = false;  // some captured text was taken to differ from all others
    bool open = false;   // not even that was enough to tell: anything may follow
  };

  // `strides`: bytes that the arena's table of strides may take.
  Clouds(RegexArena& regexes, Productions& productions, const Vocabulary& vocabulary, std::size_t strides);
  Parser& parser() { return parser_; }
  const Cloud& cloud(Id c) const { return clouds_[c]; }
  Id of(StateId s);
  Id token(Id c, TokenId t);
  Id any(Id c);
  // What of a cloud has stacks of at most so many symbols: a part of it. Clouds after ever more unknown
  // tokens are ever new ones, these are few.
  Id shallow(Id c, uint32_t symbols);
  // Symbols of the least of its stacks.
  uint32_t depth(Id c);
  // Whether some text goes on from here.
  bool alive(Id c);
  // Whether everything that can be read from `part` can be read from c.
  bool holds(Id c, Id part);
  // Tokens of some short text that ends here, of a cloud of few entries; null: none was found.
  const std::vector<TokenId>* ending(Id c);
  // One entry and what it may end in: the tokens of a walk lead to clouds of these.
  Id closed(Entry e);
  // f(cloud, regex, places, left) for every way on: the cloud that tokens `left` of a stride lead to. Until f
  // says no.
  using Way = std::function<bool(Id, RegexId, uint32_t, std::size_t)>;
  bool ways(Id c, const Way& f);
  bool lost_ways() const { return lost_; }  // the last time: there were more, of which nothing can be told
  Strides& strides() { return strides_; }
  // Whether some cloud was blind: then what a cloud allows is to be shown by a text.
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
  // What a byte, or the tokens from some places of the trie, do to all regexes of a set.
  struct Leap {
    Set left = 0;
    std::vector<uint32_t> labels;  // of those that may end
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
  std::map<std::vector<uint32_t>, uint32_t> unions_;  // of sets of places
  FlatMap<uint32_t, uint32_t> ending_index_;
  std::deque<std::vector<TokenId>> endings_;
  FlatMap<uint64_t, Id> entered_;  // by stacks and label
  FlatMap<uint64_t, Id> closed_;   // by regex and stacks
  FlatMap<uint64_t, Id> tokens_;   // by cloud and token
  FlatMap<uint32_t, Id> any_, of_;
  FlatMap<uint32_t, bool> alive_;
  FlatMap<uint64_t, StackId> shallow_stacks_;                 // by stacks and symbols
  FlatMap<uint64_t, Id> shallow_;                             // by cloud and symbols
  FlatMap<uint32_t, uint32_t> depths_;                        // of stacks
  std::unordered_map<uint64_t, FlatMap<uint32_t, Id>> left_;  // by stacks and label, then places
  std::unordered_map<uint64_t, Alternatives> expansions_;
  FlatMap<uint64_t, bool> visited_;  // while stacks are entered
};

}  // namespace structgen
