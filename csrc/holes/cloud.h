// Clouds: everything that a parser may still read behind some tokens, if not all of these tokens are known.
//
// In: productions, a parse state, tokens or "any token". Out: clouds, interned: regexes, each with the set of
// stacks below it. Cost: a step that was taken before is a look-up; a new step is a pass over the cloud's
// regexes. The effect of unknown tokens is computed once for a set of regexes, and once a world for one regex
// (holes/strides.h).
//
// A cloud is no parse state. A state unites all regexes above equal stacks to one regex, and behind a few
// unknown tokens every slot would have new unions. In a cloud each terminal keeps its own regex, so there are
// as many regexes as terminals have derivatives, and the stacks below each regex are united. A union of two
// sets of stacks holds exactly the stacks of both sets, so a cloud holds exactly what some tokens lead to.
// Captured text is the exception, because a cloud does not keep it. The readers of captured text are told
// that the text differs from all other captured texts (Reading::kFresh); if enough texts are possible, some
// text does differ. Behind such a reader a cloud is `blind`: it holds everything that can be read, and maybe
// more.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
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
  // A set of regexes above one set of stacks. A cloud of a few hundred regexes usually has a dozen groups.
  struct Group {
    RegexSetId set;
    StackId stack;
    friend auto operator<=>(const Group&, const Group&) = default;
  };
  // Before unite() a regex may stand in several groups; behind it each regex stands in one.
  std::vector<Group> groups = {};
  bool accepting = false;
  // True if some reader was told only that its captured text differs from all others. A real text may fail
  // there, so the cloud may hold too many texts.
  bool blind = false;
  // True if some reader could not say what follows a captured text that differs from all others. Any text may
  // then follow.
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
  static constexpr CloudId kNone{0};
  struct Entry {
    RegexId regex;
    StackId stack;
  };
  // A link out of a cloud: tokens that all lead to the cloud `to`. From the trie nodes `from` on, each reads
  // `regex` and leaves the derivative number `left` of their Stride.
  struct Link {
    CloudId to;
    RegexId regex;
    NodeSetId from;
    std::size_t left;
  };

  // `strides` is the most bytes that the arena's table of strides may take.
  Clouds(RegexArena& regexes, Productions& productions, const Vocabulary& vocabulary, std::size_t strides);
  Parser& parser() { return parser_; }
  const Cloud& cloud(CloudId c) const { return clouds_[c.v]; }
  CloudId of(StateId s);
  CloudId token(CloudId c, TokenId t);
  // Returns the cloud behind any one token, without the stacks of more than `symbols` symbols. Unknown tokens
  // lead to ever new clouds with deeper stacks, and few texts need them.
  static constexpr uint32_t kDeepest = 1u << 20;
  CloudId any(CloudId c, uint32_t symbols = kDeepest);
  // Returns the smallest number n such that every group has a stack of at most n symbols.
  uint32_t depth(CloudId c);
  // Tells whether some text leads from the cloud to an end.
  bool alive(CloudId c);
  bool holds(CloudId c, CloudId part);
  // Returns the tokens of a short text that completes the cloud. Returns null if none was found, or if the
  // cloud has more than a few entries.
  const std::vector<TokenId>* ending(CloudId c);
  // Tells whether a cloud has this entry. The end of the text is the entry kEnd.
  static constexpr Entry kEnd{RegexArena::empty(), StackArena::end()};
  bool has(CloudId c, Entry e);
  // Returns some entry of a cloud, above one stack; kEnd if the cloud has none.
  Entry some(CloudId c);
  // Returns an entry of the cloud, above one stack, from which the token leads to the entry `goal`. If t is
  // negative, it stands for some token. Returns nothing if no such entry is found. Each turn tries the
  // entries in another order.
  std::optional<Entry> source(CloudId c, TokenId t, Entry goal, std::size_t turn);
  // Calls f for each link out of a cloud, or out of an entry, until f returns false. Returns false if f did.
  using EachLink = std::function<bool(const Link&)>;
  bool links(CloudId c, const EachLink& f);
  bool links(const Entry& e, const EachLink& f) { return links(e, Strides::kRoot, f); }
  // Tells whether the last call of links() met an open cloud. If so, links() may have missed links, because
  // anything may follow.
  bool lost_ways() const { return lost_; }
  const std::vector<TokenId>& tokens(const Link& w) { return strides_.tokens(w.regex, w.from, w.left); }
  const std::vector<TokenId>& examples(const Link& w) {
    return strides_.stride(w.regex, w.from).left[w.left].examples;
  }
  // Returns some tokens that lead from a parse state to different states: at most kFew, one of a link.
  struct Next {
    TokenId token;
    StateId state;
  };
  static constexpr std::size_t kFew = 16;
  const std::vector<Next>& few(StateId s);
  // Tells whether some cloud was blind. If so, a "yes" of the clouds needs a filling that the parser has
  // read.
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
  CloudId closed(Entry e);
  std::vector<Entry> entries(CloudId c) const;
  bool links(const Entry& e, NodeSetId from, const EachLink& f);
  bool includes(StackId s, StackId one);
  bool reaches(Group g, TokenId t, Entry goal);
  StackId narrow(StackId s, StackId below, const std::function<bool(StackId)>& leads);
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
  std::size_t bytes_ = 0;
  bool seen_blind_ = false, lost_ = false;
  FlatMap<uint32_t, uint32_t> ending_index_;
  std::deque<std::vector<TokenId>> endings_;
  FlatMap<uint64_t, CloudId> entered_;
  FlatMap<uint64_t, CloudId> closed_;
  FlatMap<uint64_t, CloudId> tokens_, any_;
  FlatMap<uint32_t, CloudId> of_;
  std::unordered_map<uint32_t, std::vector<Next>> few_;
  FlatMap<uint32_t, bool> alive_;
  FlatMap<uint64_t, StackId> shallow_stacks_;
  FlatMap<uint32_t, uint32_t> depths_;
  std::unordered_map<uint64_t, FlatMap<uint32_t, CloudId>> left_;
  // Holds the answers of expand(), by rule and by what a reader is told: 1 + a label, or 0 for nothing.
  std::unordered_map<uint64_t, Alternatives> expansions_;
  // The pairs that the running call of enter() has visited: a set of stacks, and what may not follow the
  // lexeme in front (pending).
  FlatMap<uint64_t, bool> visited_;
};

}  // namespace structgen
