// How clouds are stepped by a token, by any token, and by a part of a token; cloud.h defines clouds.
//
// The problem. An empty slot may hold any token, so behind it stands every state to which some token leads.
// There are thousands of such states, and in a row of a hundred empty slots each slot would bring new ones.
//
// The idea. The effect of unknown tokens on a regex does not depend on the stacks below it, so it is
// computed once for each regex (holes/strides.h): the regexes that are left, and the places inside
// tokens at which the regex ended. For strings of JSON above a stack K and one unknown token:
//
//     inside            the string goes on: (any character* and a quote, K)
//     exits             tokens with a quote, by what is left of the token behind it: ``, `,`, `}`, `":`, ...
//     leave(K, ...)     what K reads of those rests; its regexes and stacks are added
//
// The result is a set of regexes, each above all stacks that it may stand above. Regexes above equal
// stacks form a group. A set of regexes is interned, and the effect of a byte or a token on a whole set
// is kept (holes/leaps.h).
//
// Uniting the sets of stacks below one regex loses nothing, because the union holds exactly the stacks of
// both sets. Captured text is dropped on purpose: its readers are told that the text differs from all other
// captured texts, and the cloud is `blind`.
//
// Invariants.
// - A cloud holds all that can be read; without `blind` it holds nothing else.
// - Clouds are interned, so a row of unknown slots soon meets a cloud that it knows.
// - A cloud that takes too much work is `open`: anything may follow, and the answer is "not known".
//
// Costs. A step that was taken before is a look-up. A new step is a pass over the groups of the cloud, and
// for each set of regexes that is new a pass over its regexes. A cloud of more than kManyEntries regexes is
// refused with an error.
//
// Rejected. Parse states in place of clouds: normalise() unites all regexes above one stack to one regex, so
// each slot would make new regexes. Tables of the tokens that lead from one state to another: such tables
// grow with the square of the vocabulary.
#include "holes/cloud.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/depth.h"
#include "base/error.h"
#include "base/sorted.h"
#include "base/told.h"
#include "base/undo.h"
#include "base/work.h"

namespace structgen {

namespace {
// A cloud has at most this many regexes; otherwise an error is thrown.
constexpr std::size_t kManyEntries = 100'000;
// ends_at_edge() follows at most this many marks kEdge, one behind the other.
constexpr uint32_t kMostEdges = 64;
// In each turn source() begins at a group that stands this many groups further.
constexpr std::size_t kTurn = 5;
// ending() looks for a text only if the cloud has at most this many entries.
constexpr std::size_t kFewEntries = 12;
constexpr uint64_t pair_key(uint32_t a, uint32_t b) { return uint64_t{a} << 32 | b; }

// Splits a text into tokens from the left; each token is the longest one that the text continues with.
// Returns false where no token fits.
bool cut(const TokenTrie& trie, std::string_view text, std::vector<TokenId>& out) {
  while (!text.empty()) {
    std::size_t longest = 0;
    uint32_t node = 0;
    for (std::size_t i = 0; i < text.size() && !trie.leaf(node); ++i) {
      const TokenTrie::Kids& kids = trie.kids(node);
      const uint8_t b = static_cast<uint8_t>(text[i]);
      if (!kids.set.has(b)) break;
      node = trie.child(kids, b);
      if (trie.tokens(node).empty()) continue;
      if (longest > 0) out.pop_back();
      longest = i + 1;
      out.push_back(trie.tokens(node)[0]);
    }
    if (longest == 0) return false;
    text.remove_prefix(longest);
  }
  return true;
}
}  // namespace

Clouds::Clouds(RegexArena& regexes, Productions& productions, const Vocabulary& vocabulary,
               std::size_t strides)
    : regexes_(regexes),
      productions_(productions),
      vocabulary_(vocabulary),
      parser_(regexes, productions),
      completion_(parser_, productions),
      strides_(regexes.cache<Strides>(regexes, vocabulary.trie(), strides)),
      leaps_(regexes, strides_) {
  clouds_.emplace_back();
}

std::size_t Clouds::byte_size() const {
  return parser_.byte_size() + bytes_ + leaps_.byte_size() + index_.byte_size() + entered_.byte_size() +
         closed_.byte_size() + tokens_.byte_size() + any_.byte_size() + of_.byte_size() + alive_.byte_size() +
         shallow_stacks_.byte_size() + depths_.byte_size() + completion_.byte_size() +
         ending_index_.byte_size() + endings_.size() * 60 + left_.size() * 120 + expansions_.size() * 120 +
         few_.size() * (60 + kFew * sizeof(Next));
}

void Clouds::add(RegexId r, StackId s, Cloud& out) { out.groups.push_back({leaps_.set(r), s}); }

// Brings a cloud into normal form: each regex stands once, above the union of the stacks that it had, and
// regexes above equal sets of stacks form one group.
void Clouds::unite(Cloud& c) {
  sort_unique(c.groups);
  std::size_t n = 0;
  for (const Group& e : c.groups)
    if (n > 0 && c.groups[n - 1].set == e.set)
      c.groups[n - 1].stack = parser_.stacks().unite(c.groups[n - 1].stack, e.stack);
    else
      c.groups[n++] = e;
  c.groups.resize(n);
  if (n < 2) return;
  FlatMap<uint32_t, StackId> below;
  std::vector<uint32_t> all;
  for (const Group& e : c.groups) {
    charge(static_cast<int64_t>(leaps_.regexes(e.set).size() / 4));
    for (uint32_t r : leaps_.regexes(e.set)) {
      const auto [s, fresh] = below.emplace(r, e.stack);
      if (fresh)
        all.push_back(r);
      else if (s != e.stack)
        s = parser_.stacks().unite(s, e.stack);
    }
  }
  if (all.size() > kManyEntries)
    throw Error(ErrorKind::kBudgetExceeded,
                "the open slots have too many ways to go on; fill some of them, or simplify the grammar");
  std::map<StackId, std::vector<uint32_t>> by_stack;
  for (uint32_t r : all) by_stack[*below.find(r)].push_back(r);
  c.groups.clear();
  for (auto& [s, regexes] : by_stack) c.groups.push_back({leaps_.set(regexes), s});
}

CloudId Clouds::intern(Cloud& c) {
  // Anything may follow an open cloud, so all open clouds are made equal.
  if (c.open) c = {{}, true, true, true};
  if (c.groups.size() > 1) unite(c);
  if (c.groups.empty() && !c.accepting) return kNone;
  if (parser_.marked() && !c.accepting) c.accepting = ends_at_edge(c.groups, 0);
  seen_blind_ = seen_blind_ || c.blind;
  uint64_t h = 4u * c.open + 2u * c.blind + c.accepting;
  for (const Group& e : c.groups) h = mix(mix(h, e.set.v), e.stack.v);
  const std::size_t known = clouds_.size();
  const CloudId out{index_.number(h, clouds_, c)};
  if (clouds_.size() > known) bytes_ += sizeof(Cloud) + c.groups.size() * sizeof(Group);
  return out;
}

// Adds to `out` what a leap leaves above the stacks s: the regexes that are left, and what follows the
// regexes that ended.
void Clouds::follow(const Leap& l, StackId s, Cloud& out) {
  charge();
  if (!leaps_.regexes(l.left).empty()) out.groups.push_back({l.left, s});
  for (uint32_t label : l.labels) out.add(cloud(enter(s, label)));
  for (const Stride::Exit& x : l.exits) out.add(cloud(leave(s, x.label, x.nodes)));
}

// Tells whether the text may end in front of a suffix. A grammar writes such an end as the mark kEdge: some
// terminal must read it and lead to an end. Parser::ends_at_edge() decides the same for states.
bool Clouds::ends_at_edge(const std::vector<Group>& groups, uint32_t depth) {
  check_depth();
  if (depth == kMostEdges) return false;
  for (const Group& e : groups) {
    if (leaps_.byte(e.set, kEdge).labels.empty()) continue;
    const CloudId below = enter(e.stack, 0);
    if (clouds_[below.v].accepting) return true;
    const std::vector<Group> deeper = clouds_[below.v].groups;
    if (ends_at_edge(deeper, depth + 1)) return true;
  }
  return false;
}

const Alternatives& Clouds::expand(RuleId rule, Symbol::Kind kind, uint32_t label) {
  return remember(expansions_, pair_key(rule.v, kind == Symbol::kRule ? 0 : label + 1), [&] {
    Reading reading;
    if (kind == Symbol::kReader) reading.kind = label ? Reading::kLabel : Reading::kFresh;
    if (label) reading.label = label - 1;
    Alternatives all;
    productions_.expand(rule, reading, all);
    charge(4 + static_cast<int64_t>(all.symbols.size()));
    return all;
  });
}

// Returns the cloud of what can be read first in the stacks. Rules are expanded until terminals are on top,
// and the first reader is told `label`.
CloudId Clouds::enter(StackId s, uint32_t label) {
  return entered_.remember(pair_key(s.v, label), [&] {
    FlatMap<uint64_t, bool> visited;
    std::swap(visited, visited_);
    Undo restore([&] { std::swap(visited, visited_); });
    Cloud out;
    enter(s, Alive::kClear, label, out);
    return intern(out);
  });
}

void Clouds::enter(StackId s, Alive::Pending pending, uint32_t label, Cloud& out) {
  check_depth();
  charge();
  // Left recursion leads back to stacks that were expanded before, so they are noted in visited_. A label
  // changes what can be read, and visited_ does not tell labels apart: visits with a label are not noted.
  if (label == 0 && !visited_.emplace(pair_key(s.v, pending), true).second) return;
  if (parser_.stacks().has_end(s)) out.accepting = true;
  const std::span<const StackEntry> entries = parser_.stacks().entries(s);
  for (const StackEntry& e : entries) read(e.top, e.rest, pending, label, out);
}

// Adds to `out` what can be read first of the symbol `top` above the stacks `rest`.
void Clouds::read(Symbol top, StackId rest, Alive::Pending pending, uint32_t label, Cloud& out) {
  std::vector<Alive::Step> steps;
  switch (top.kind()) {
    case Symbol::kTerminal: {
      const RegexId r = parser_.alive().restricted(top.regex(), parser_.alive().follow(pending));
      if (r == RegexArena::poison()) {
        out.open = true;
        return;
      }
      const RegexNode& n = regexes_.node(r);
      const bool only_end = n.only_ends();
      if (r != RegexArena::empty() && !only_end) add(r, rest, out);
      if (regexes_.nullable(top.regex())) {
        const RegexNode& whole = regexes_.node(top.regex());
        enter(rest, pending, whole.label(), out);
      }
      return;
    }
    case Symbol::kLexeme:
      parser_.alive().steps(top, pending, steps);
      for (const Alive::Step& part : steps) {
        if (part.regex == RegexArena::poison()) {
          out.open = true;
          continue;
        }
        const RegexId follow = parser_.alive().follow(part.to);
        // The bytes that may not follow the lexeme are put on the stack as a kFollow symbol.
        const bool free = follow == RegexArena::empty();
        add(part.regex, free ? rest : parser_.stacks().push(Symbol::follow(follow), rest), out);
      }
      return;
    case Symbol::kFollow:
    case Symbol::kAfter:
      parser_.alive().steps(top, pending, steps);
      for (const Alive::Step& step : steps) enter(rest, step.to, 0, out);
      return;
    case Symbol::kNote:
    case Symbol::kCapture: return enter(rest, pending, 0, out);
    case Symbol::kLimit:
      throw Error(ErrorKind::kGrammar, "a text with holes cannot have limits on tokens (max_tokens)");
    case Symbol::kReader:
      if (label == 0) out.blind = true;
      [[fallthrough]];
    case Symbol::kRule: {
      const Alternatives& all = expand(top.rule_id(), top.kind(), label);
      uint32_t begin = 0;
      for (uint32_t stop : all.ends) {
        const std::span<const Symbol> symbols(all.symbols.data() + begin, stop - begin);
        enter(parser_.stacks().push(symbols, rest), pending, 0, out);
        begin = stop;
      }
      return;
    }
  }
}

CloudId Clouds::closed(Entry e) {
  return closed_.remember(pair_key(e.regex.v, e.stack.v), [&] {
    Cloud out;
    const RegexNode& n = regexes_.node(e.regex);
    if (!n.only_ends()) add(e.regex, e.stack, out);
    if (n.nullable) out.add(cloud(enter(e.stack, n.label())));
    return intern(out);
  });
}

// Returns the cloud of a parse state. If the state has captured text, the cloud is blind, because a cloud
// keeps no captured text.
CloudId Clouds::of(StateId s) {
  return of_.remember(s.v, [&] {
    Cloud out;
    out.accepting = parser_.state(s).accepting;
    for (const Item& i : parser_.items(s)) {
      if (i.regex == RegexArena::poison())
        out.open = true;
      else
        add(i.regex, i.stack, out);
      if (i.capture.v != 0) out.blind = true;
    }
    return intern(out);
  });
}

CloudId Clouds::token(CloudId c, TokenId t) {
  if (fixed(c)) return c;
  return tokens_.remember(pair_key(c.v, static_cast<uint32_t>(t)), [&] {
    const std::string_view bytes = vocabulary_.bytes(t);
    if (bytes.empty()) return kNone;
    Cloud now{cloud(c).groups, false, cloud(c).blind};
    for (std::size_t i = 0; i < bytes.size() && !now.open && !now.groups.empty(); ++i) {
      Cloud next;
      next.blind = now.blind;
      for (const Group& e : now.groups)
        follow(leaps_.byte(e.set, static_cast<uint8_t>(bytes[i])), e.stack, next);
      sort_unique(next.groups);
      // If the stacks are empty before the last byte of the token, the text has ended inside the token. Such
      // an end does not count.
      if (next.groups.empty() && i + 1 < bytes.size()) next.accepting = false;
      now = std::move(next);
    }
    return intern(now);
  });
}

// Returns the cloud behind tokens that have just left a terminal above the stacks s. The bytes that are left
// of these tokens stand below the given trie nodes and are read in the cloud enter(s). Each of these tokens
// has at least one more byte, so it does not matter whether the cloud enter(s) accepts.
CloudId Clouds::leave(StackId s, uint32_t label, NodeSetId from) {
  check_depth();
  return left_[pair_key(s.v, label)].remember(from.v, [&] {
    Cloud out, entered = cloud(enter(s, label));
    out.blind = entered.blind;
    out.open = entered.open;
    for (const Group& e : entered.groups) follow(leaps_.tokens(e.set, from), e.stack, out);
    return intern(out);
  });
}

CloudId Clouds::any(CloudId c, uint32_t symbols) {
  if (fixed(c)) return c;
  return any_.remember(pair_key(c.v, symbols), [&] {
    Cloud out, before = cloud(c);
    out.blind = before.blind;
    for (const Group& e : before.groups) follow(leaps_.tokens(e.set, Strides::kRoot), e.stack, out);
    if (symbols < kDeepest) {
      for (Group& e : out.groups) e.stack = shallow(e.stack, symbols);
      std::erase_if(out.groups, [](const Group& e) { return e.stack == StackArena::none(); });
    }
    return intern(out);
  });
}

// Returns the stacks of s that have at most `symbols` symbols.
StackId Clouds::shallow(StackId s, uint32_t symbols) {
  check_depth();
  StackArena& stacks = parser_.stacks();
  if (s == StackArena::none() || symbols == 0)
    return stacks.has_end(s) ? StackArena::end() : StackArena::none();
  if (s == StackArena::end()) return s;
  return shallow_stacks_.remember(pair_key(s.v, symbols), [&] {
    charge();
    std::vector<StackId> kept;
    if (stacks.has_end(s)) kept.push_back(StackArena::end());
    const std::vector<StackEntry> entries(stacks.entries(s).begin(), stacks.entries(s).end());
    for (const StackEntry& e : entries)
      if (const StackId rest = shallow(e.rest, symbols - 1); rest != StackArena::none())
        kept.push_back(stacks.push(e.top, rest));
    return kept.empty() ? StackArena::none() : stacks.unite(std::span(kept));
  });
}

uint32_t Clouds::depth(StackId s) {
  check_depth();
  if (parser_.stacks().has_end(s)) return 0;
  return depths_.remember(s.v, [&] {
    uint32_t out = kDeepest;
    for (const StackEntry& e : parser_.stacks().entries(s)) out = std::min(out, depth(e.rest) + 1);
    return out;
  });
}

uint32_t Clouds::depth(CloudId c) {
  uint32_t out = 0;
  for (const Group& e : cloud(c).groups) out = std::max(out, depth(e.stack));
  return out;
}

// Returns true if the cloud c is known to hold every text of `part`: each regex of `part` stands in c above a
// superset of the stacks that it stands above in `part`.
bool Clouds::holds(CloudId c, CloudId part) {
  if (c == part) return true;
  const Cloud &whole = clouds_[c.v], &some = clouds_[part.v];
  if (whole.open) return true;
  if (some.open || (some.accepting && !whole.accepting)) return false;
  for (const Group& p : some.groups)
    for (uint32_t r : leaps_.regexes(p.set)) {
      charge();
      const auto in = std::find_if(whole.groups.begin(), whole.groups.end(), [&](const Group& e) {
        return std::ranges::binary_search(leaps_.regexes(e.set), r);
      });
      // Equal sets of stacks have equal numbers. So `in->stack` contains the other set if their union has its
      // number.
      if (in == whole.groups.end() || parser_.stacks().unite(in->stack, p.stack) != in->stack) return false;
    }
  return true;
}

// Writes the tokens of the cloud's shortest completion. Returns false if the cloud may not end behind these
// tokens, or if there is no completion.
bool Clouds::completed(CloudId c, std::vector<TokenId>& out) {
  if (cloud(c).open) return false;
  std::vector<Item> items;
  for (const Entry& e : entries(c)) items.push_back({e.regex, e.stack, CaptureId{0}});
  if (items.empty() || items.size() > kFewEntries) return false;
  // Completion works on parse states, so a state is made of the cloud's entries, with no captured text.
  // text_matters() tells whether captured text might forbid this completion.
  std::string text;
  const bool found = told([&] {
                       const StateId s = parser_.make(items, false);
                       text = completion_.of(s);
                       return !completion_.text_matters(s);
                     }).value_or(false);
  if (!found || !cut(vocabulary_.trie(), text, out)) return false;
  for (TokenId t : out) c = token(c, t);
  return cloud(c).accepting && !cloud(c).open;
}

const std::vector<TokenId>* Clouds::ending(CloudId c) {
  const uint32_t n = ending_index_.remember(c.v, [&] {
    std::vector<TokenId> tokens;
    if (!completed(c, tokens)) return 0u;
    endings_.push_back(std::move(tokens));
    return static_cast<uint32_t>(endings_.size());
  });
  return n == 0 ? nullptr : &endings_[n - 1];
}

// Tells whether s has the stack `one`.
bool Clouds::includes(StackId s, StackId one) {
  const StackArena& stacks = parser_.stacks();
  for (; s != one; one = stacks.entries(one)[0].rest) {
    if (one == StackArena::end()) return stacks.has_end(s);
    const std::span<const StackEntry> entries = stacks.entries(s);
    const auto e = std::ranges::find(entries, stacks.entries(one)[0].top, &StackEntry::top);
    if (e == entries.end()) return false;
    s = e->rest;
  }
  return true;
}

bool Clouds::has(CloudId c, Entry e) {
  if (e.regex == kEnd.regex) return cloud(c).accepting;
  return std::ranges::any_of(cloud(c).groups, [&](const Group& g) {
    return std::ranges::binary_search(leaps_.regexes(g.set), e.regex.v) && includes(g.stack, e.stack);
  });
}

Clouds::Entry Clouds::some(CloudId c) {
  if (cloud(c).groups.empty()) return kEnd;
  const Group g = cloud(c).groups[0];
  std::vector<Symbol> symbols;
  for (StackId s = g.stack; !parser_.stacks().has_end(s); s = parser_.stacks().entries(s)[0].rest)
    symbols.push_back(parser_.stacks().entries(s)[0].top);
  return {RegexId{leaps_.regexes(g.set)[0]}, parser_.stacks().push(symbols, StackArena::end())};
}

// Tells whether token t, or some token, leads from the group to the goal.
bool Clouds::reaches(Group g, TokenId t, Entry goal) {
  charge();
  if (t >= 0) {
    Cloud one{{g}};
    return has(token(intern(one), t), goal);
  }
  const Leap& l = leaps_.tokens(g.set, Strides::kRoot);
  if (std::ranges::binary_search(leaps_.regexes(l.left), goal.regex.v) && includes(g.stack, goal.stack))
    return true;
  const auto behind = [&](uint32_t label) { return has(enter(g.stack, label), goal); };
  const auto beyond = [&](const Stride::Exit& x) { return has(leave(g.stack, x.label, x.nodes), goal); };
  return std::ranges::any_of(l.labels, behind) || std::ranges::any_of(l.exits, beyond);
}

// Returns a stack of s for which leads() returns true. A token replaces the top of a stack. So `below`, the
// part of the goal's stack below its first symbols, is tried first, then what lies below the top of `below`,
// and so on.
StackId Clouds::narrow(StackId s, StackId below, const std::function<bool(StackId)>& leads) {
  check_depth();
  StackArena& stacks = parser_.stacks();
  for (StackId one = below;; one = stacks.entries(one)[0].rest) {
    if (includes(s, one) && leads(one)) return one;
    if (one == StackArena::end()) break;
  }
  const std::vector<StackEntry> entries(stacks.entries(s).begin(), stacks.entries(s).end());
  for (const StackEntry& e : entries) {
    const auto under = [&](StackId rest) { return leads(stacks.push(e.top, rest)); };
    if (!under(e.rest)) continue;
    const StackId rest = narrow(e.rest, below, under);
    if (rest != StackArena::none()) return stacks.push(e.top, rest);
  }
  return StackArena::none();
}

std::optional<Clouds::Entry> Clouds::source(CloudId c, TokenId t, Entry goal, std::size_t turn) {
  const std::vector<Group> groups = cloud(c).groups;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const Group g = groups[(i + turn * kTurn) % groups.size()];
    if (!reaches(g, t, goal)) continue;
    const std::vector<uint32_t> regexes = leaps_.regexes(g.set);
    for (uint32_t r : regexes) {
      const RegexSetId one = leaps_.set(RegexId{r});
      const auto leads = [&](StackId s) { return reaches({one, s}, t, goal); };
      if (!leads(g.stack)) continue;
      const StackId s = narrow(g.stack, goal.stack, leads);
      if (s != StackArena::none()) return Entry{RegexId{r}, s};
    }
  }
  return std::nullopt;
}

bool Clouds::alive(CloudId c) {
  if (c == kNone) return false;
  if (cloud(c).accepting || cloud(c).open) return true;
  return alive_.remember(c.v, [&] {
    return std::ranges::any_of(cloud(c).groups,
                               [&](const Group& e) { return parser_.alive().stack(e.stack); });
  });
}

bool Clouds::links(const Entry& e, NodeSetId from, const EachLink& f) {
  check_depth();
  const Stride& s = strides_.stride(e.regex, from);
  charge(static_cast<int64_t>(s.left.size()));
  for (std::size_t i = 0; i < s.left.size(); ++i)
    if (!f({closed({s.left[i].regex, e.stack}), e.regex, from, i})) return false;
  for (const Stride::Exit& x : s.exits) {
    const CloudId entered = enter(e.stack, x.label);
    lost_ = lost_ || cloud(entered).open;
    for (const Entry& next : entries(entered))
      if (!links(next, x.nodes, f)) return false;
  }
  return true;
}

bool Clouds::links(CloudId c, const EachLink& f) {
  lost_ = cloud(c).open;
  for (const Entry& e : entries(c))
    if (!links(e, Strides::kRoot, f)) return false;
  return true;
}

const std::vector<Clouds::Next>& Clouds::few(StateId s) {
  return remember(few_, s.v, [&] {
    std::vector<Next> out;
    std::size_t asked = 0;
    links(of(s), [&](const Link& w) {
      const TokenId t = examples(w)[0];
      const StateId to = parser_.read(s, vocabulary_.bytes(t));
      if (to != Parser::dead() && std::ranges::find(out, to, &Next::state) == out.end())
        out.push_back({t, to});
      return out.size() < kFew && ++asked < 4 * kFew;
    });
    return out;
  });
}

std::vector<Clouds::Entry> Clouds::entries(CloudId c) const {
  std::vector<Entry> out;
  for (const Group& g : cloud(c).groups)
    for (uint32_t r : leaps_.regexes(g.set)) out.push_back({RegexId{r}, g.stack});
  return out;
}

}  // namespace structgen
