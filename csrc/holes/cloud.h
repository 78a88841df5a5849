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
#include <unordered_map>
#include <vector>

#include "base/flat_map.h"
#include "base/ids.h"
#include "base/intern.h"
#include "holes/leaps.h"
#include "holes/strides.h"
#include "mask/vocabulary.h"
#include "parse/alive.h"
#include "parse/completion.h"
#include "parse/state.h"

namespace structgen {

using CloudId = Id<struct CloudTag>;

struct Cloud {
  // The regexes that stand above one set of stacks. In practice a few hundred regexes share a dozen sets.
  struct Group {
    RegexSetId set;
    StackId stack;
    friend auto operator<=>(const Group&, const Group&) = default;
  };
  // No regex is in two groups of an interned cloud.
  std::vector<Group> groups = {};
  bool accepting = false;
  // True if some captured text was assumed to differ from all others.
  bool blind = false;
  // True if a reader could not tell what follows a text that differs from all others. Then anything may
  // follow.
  bool open = false;
  void add(const Cloud& c) {
    groups.insert(groups.end(), c.groups.begin(), c.groups.end());
    accepting = accepting || c.accepting;
    blind = blind || c.blind;
    open = open || c.open;
  }
  friend bool operator==(const Cloud&, const Cloud&) = default;
};

class Clouds {
 public:
  // The cloud in which nothing can be read and the text cannot end.
  static constexpr CloudId kNone{0};
  // One regex of a cloud, and the stacks below it.
  struct Entry {
    RegexId regex;
    StackId stack;
  };
  // A way on: the tokens of number `left` in the stride of (regex, from) lead to the cloud.
  struct Way {
    CloudId to;
    RegexId regex;
    NodeSetId from;
    std::size_t left;
  };

  // `strides`: the most bytes of the arena's table of strides.
  Clouds(RegexArena& regexes, Productions& productions, const Vocabulary& vocabulary, std::size_t strides);
  Parser& parser() { return parser_; }
  const Cloud& cloud(CloudId c) const { return clouds_[c.v]; }
  // The cloud of a parse state.
  CloudId of(StateId s);
  // The cloud after token t.
  CloudId token(CloudId c, TokenId t);
  // The cloud after any one token.
  CloudId any(CloudId c);
  // The part of a cloud whose stacks have at most `symbols` symbols. Unknown tokens lead to new clouds with
  // ever deeper stacks, and there are few such parts.
  CloudId shallow(CloudId c, uint32_t symbols);
  // For each group the number of symbols of its smallest stack; the largest of these numbers.
  uint32_t depth(CloudId c);
  // Whether some text can be read from the cloud to an end.
  bool alive(CloudId c);
  // Whether everything that can be read from `part` can be read from c.
  bool holds(CloudId c, CloudId part);
  // The tokens of a short text that completes the cloud, which must have few entries; null: none was found.
  const std::vector<TokenId>* ending(CloudId c);
  // Calls f for every way on, until f returns false.
  using EachWay = std::function<bool(const Way&)>;
  bool ways(CloudId c, const EachWay& f);
  // Whether the last call of ways() met an open cloud, whose ways are not known.
  bool lost_ways() const { return lost_; }
  // All tokens of a way, and some of them.
  const std::vector<TokenId>& tokens(const Way& w) { return strides_.tokens(w.regex, w.from, w.left); }
  const std::vector<TokenId>& examples(const Way& w) {
    return strides_.stride(w.regex, w.from).left[w.left].examples;
  }
  // Whether some cloud was blind. If so, a yes has to be shown by a text.
  bool seen_blind() const { return seen_blind_; }
  std::size_t byte_size() const;

 private:
  using Group = Cloud::Group;
  bool fixed(CloudId c) const { return c == kNone || clouds_[c.v].open; }
  CloudId intern(Cloud& c);
  void unite(Cloud& c);
  CloudId enter(StackId s, uint32_t label);
  void enter(StackId s, Alive::Pending pending, uint32_t label, Cloud& out);
  void read(Symbol top, StackId rest, Alive::Pending pending, uint32_t label, Cloud& out);
  void add(RegexId r, StackId s, Cloud& out);
  void follow(const Leap& l, StackId s, Cloud& out);
  const Alternatives& expand(RuleId rule, Symbol::Kind kind, uint32_t label);
  CloudId leave(StackId s, uint32_t label, NodeSetId from);
  // The cloud of one entry, and of what follows if the regex of the entry may end.
  CloudId closed(Entry e);
  std::vector<Entry> entries(CloudId c) const;
  bool ways(const Entry& e, NodeSetId from, const EachWay& f);
  StackId shallow(StackId s, uint32_t symbols);
  uint32_t depth(StackId s);
  bool ends_at_edge(const std::vector<Group>& groups, uint32_t depth);
  bool completed(CloudId c, std::vector<TokenId>& out);

  RegexArena& regexes_;
  Productions& productions_;
  const Vocabulary& vocabulary_;
  Parser parser_;
  Completion completion_;
  Strides& strides_;
  Leaps leaps_;
  std::vector<Cloud> clouds_;
  InternTable index_;
  // Of clouds_.
  std::size_t bytes_ = 0;
  bool seen_blind_ = false, lost_ = false;
  // Keyed by cloud: 1 + the index of its ending in endings_, or 0.
  FlatMap<uint32_t, uint32_t> ending_index_;
  std::deque<std::vector<TokenId>> endings_;
  // Keyed by stacks and label.
  FlatMap<uint64_t, CloudId> entered_;
  // Keyed by regex and stacks.
  FlatMap<uint64_t, CloudId> closed_;
  // Keyed by cloud and token.
  FlatMap<uint64_t, CloudId> tokens_;
  // Keyed by cloud, and by state.
  FlatMap<uint32_t, CloudId> any_, of_;
  FlatMap<uint32_t, bool> alive_;
  // Keyed by stacks and number of symbols.
  FlatMap<uint64_t, StackId> shallow_stacks_;
  // Keyed by cloud and number of symbols.
  FlatMap<uint64_t, CloudId> shallow_;
  // Keyed by stacks.
  FlatMap<uint32_t, uint32_t> depths_;
  // Keyed by stacks and label, then by set of nodes.
  std::unordered_map<uint64_t, FlatMap<uint32_t, CloudId>> left_;
  // Keyed by rule, and 0 or 1 + the label that a reader is told.
  std::unordered_map<uint64_t, Alternatives> expansions_;
  // The stacks that enter() has entered, with what was pending.
  FlatMap<uint64_t, bool> visited_;
};

}  // namespace structgen
