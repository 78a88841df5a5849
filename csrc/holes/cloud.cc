// How clouds are stepped by a token, by any token, and by a part of a token; cloud.h defines clouds.
//
// The problem. A slot that may hold any token leads to all states that some token leads to. These are
// thousands, and a hundred slots in a row would have new ones in each.
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
// is kept (Leap).
//
// Uniting stacks below one regex loses nothing, because a set of stacks holds exactly the stacks of
// both. Captured text is lost on purpose: its readers are told that it differs from all others, and the
// cloud is `blind`.
//
// Invariants.
// - A cloud holds all that can be read; without `blind` it holds nothing else.
// - Clouds are interned, so a row of unknown slots soon meets a cloud that it knows.
// - A cloud that takes too much work is `open`: anything may follow, and the answer is "not known".
//
// Costs. A known step is a look-up. A new one is a pass over the groups, and one over the regexes of a
// set that is new. A cloud of more than kManyEntries regexes is refused with an error.
//
// Rejected. Parse states: normalise() unites all regexes above one stack, so each slot would make new
// ones. Sets of tokens for a pair of states: the vocabulary squared.
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
// The most marks that ends_at_edge() goes through.
constexpr uint32_t kMostEdges = 64;
constexpr uint64_t pair_key(uint32_t a, uint32_t b) { return (static_cast<uint64_t>(a) << 32) | b; }
}  // namespace

Clouds::Clouds(RegexArena& regexes, Productions& productions, const Vocabulary& vocabulary,
               std::size_t strides)
    : regexes_(regexes),
      productions_(productions),
      vocabulary_(vocabulary),
      parser_(regexes, productions),
      completion_(parser_, productions),
      strides_(Strides::of(regexes, vocabulary, strides)) {
  clouds_.emplace_back();
}

std::size_t Clouds::byte_size() const {
  return parser_.byte_size() + bytes_ + index_.byte_size() + entered_.byte_size() + closed_.byte_size() +
         tokens_.byte_size() + any_.byte_size() + left_.size() * 120 + expansions_.size() * 120;
}

Clouds::Set Clouds::set(std::vector<uint32_t>& regexes) {
  sort_unique(regexes);
  return set_index_.find_or_add(
      hash_words(regexes, 11), [&](uint32_t i) { return sets_[i] == regexes; },
      [&] {
        sets_.push_back(regexes);
        bytes_ += 32 + regexes.size() * 4;
        return static_cast<Set>(sets_.size() - 1);
      });
}

Clouds::Set Clouds::set_of(RegexId r) {
  std::vector<uint32_t> one{r.v};
  return set(one);
}

// Gives every regex one entry above the union of its stacks, puts regexes above equal stacks into one group,
// and interns the result.
Clouds::Id Clouds::intern(Gathered& g) {
  // There is one open cloud, because nothing is known of what it holds.
  if (g.open) g = {{}, true, true, true};
  if (g.groups.size() > 1) {
    std::sort(g.groups.begin(), g.groups.end(), [](const Group& x, const Group& y) {
      return std::pair(x.set, x.stack.v) < std::pair(y.set, y.stack.v);
    });
    g.groups.erase(std::unique(g.groups.begin(), g.groups.end()), g.groups.end());
    std::size_t n = 0;
    for (const Group& e : g.groups)
      if (n > 0 && g.groups[n - 1].set == e.set)
        g.groups[n - 1].stack = parser_.stacks().unite(g.groups[n - 1].stack, e.stack);
      else
        g.groups[n++] = e;
    g.groups.resize(n);
  }
  if (g.groups.size() > 1) {
    // A regex may stand in several groups. It gets one entry above the union of their stacks.
    FlatMap<uint32_t, StackId> below;
    std::vector<uint32_t> all;
    for (const Group& e : g.groups) {
      charge(static_cast<int64_t>(sets_[e.set].size() / 4));
      for (uint32_t r : sets_[e.set]) {
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
    std::map<uint32_t, std::vector<uint32_t>> by_stack;
    for (uint32_t r : all) by_stack[below.find(r)->v].push_back(r);
    g.groups.clear();
    for (auto& [s, regexes] : by_stack) g.groups.push_back({set(regexes), StackId{s}});
  }
  if (g.groups.empty() && !g.accepting) return kNone;
  if (parser_.marked() && !g.accepting) g.accepting = ends_at_edge(g.groups, 0);
  seen_blind_ = seen_blind_ || g.blind;
  uint64_t h = 4u * g.open + 2u * g.blind + g.accepting;
  for (const Group& e : g.groups) h = mix(mix(h, e.set), e.stack.v);
  return index_.find_or_add(
      h,
      [&](uint32_t i) {
        const Cloud& c = clouds_[i];
        return c.accepting == g.accepting && c.blind == g.blind && c.open == g.open && c.groups == g.groups;
      },
      [&] {
        clouds_.push_back({g.groups, g.accepting, g.blind, g.open});
        bytes_ += sizeof(Cloud) + g.groups.size() * sizeof(Group);
        return static_cast<Id>(clouds_.size() - 1);
      });
}

// Adds a derivative to `left` if it has bytes left to read, and its labels to `labels` if it may end.
void Clouds::meet(RegexId to, std::vector<uint32_t>& left, std::vector<uint32_t>& labels) {
  const RegexNode& n = regexes_.node(to);
  if (!n.only_ends()) left.push_back(to.v);
  if (!n.nullable) return;
  const uint32_t label = n.label();
  if (std::find(labels.begin(), labels.end(), label) == labels.end()) labels.push_back(label);
}

// The effect of one byte on a set of regexes.
const Clouds::Leap& Clouds::byte(Set s, uint8_t b) {
  const uint64_t at = pair_key(s, b);
  if (const uint32_t* known = byte_index_.find(at)) return leaps_[*known];
  Leap out;
  std::vector<uint32_t> left;
  const std::vector<uint32_t> regexes = sets_[s];
  charge(static_cast<int64_t>(regexes.size() / 4));
  for (uint32_t r : regexes) {
    const RegexId d = regexes_.step(RegexId{r}, b);
    if (d != RegexArena::empty()) meet(d, left, out.labels);
  }
  out.left = set(left);
  leaps_.push_back(std::move(out));
  byte_index_.emplace(at, static_cast<uint32_t>(leaps_.size() - 1));
  return leaps_.back();
}

// The effect of all tokens that begin at the places: the derivatives that are left, and for each label the
// places at which a regex ended inside a token. Unions of places are kept, because many regexes share them.
const Clouds::Leap& Clouds::leap(Set s, uint32_t places) {
  const uint64_t at = pair_key(s, places);
  if (const uint32_t* known = leap_index_.find(at)) return leaps_[*known];
  Leap out;
  std::vector<uint32_t> left;
  std::map<uint32_t, std::vector<uint32_t>> exits;
  const std::vector<uint32_t> regexes = sets_[s];
  for (uint32_t r : regexes) {
    const Stride& one = strides_.stride(RegexId{r}, places);
    charge(static_cast<int64_t>(one.left.size()));
    for (const Stride::Left& l : one.left) meet(l.regex, left, out.labels);
    for (const Stride::Exit& x : one.exits) {
      exits[x.label].push_back(x.places);
    }
  }
  out.left = set(left);
  for (auto& [label, sets] : exits) {
    sort_unique(sets);
    uint32_t whole = sets[0];
    if (sets.size() > 1) {
      auto known = unions_.find(sets);
      if (known == unions_.end()) {
        std::vector<uint32_t> all;
        for (uint32_t one : sets) {
          const std::vector<uint32_t>& more = strides_.places(one);
          all.insert(all.end(), more.begin(), more.end());
        }
        charge(static_cast<int64_t>(all.size() / 8));
        known = unions_.emplace(sets, strides_.intern(all)).first;
      }
      whole = known->second;
    }
    out.exits.push_back({label, whole});
  }
  bytes_ += sizeof(Leap) + 16 * out.exits.size();
  leaps_.push_back(std::move(out));
  leap_index_.emplace(at, static_cast<uint32_t>(leaps_.size() - 1));
  return leaps_.back();
}

// Adds the result of a leap above the stacks s to `out`: the regexes that are left, and what follows where a
// regex ended.
void Clouds::follow(const Leap& l, StackId s, Gathered& out) {
  charge();
  if (!sets_[l.left].empty()) out.groups.push_back({l.left, s});
  for (uint32_t label : l.labels) out.add(clouds_[enter(s, label)]);
  for (const Stride::Exit& x : l.exits) out.add(clouds_[leave(s, x.label, x.places)]);
}

// The counterpart of Parser::ends_at_edge: where a suffix follows, a text also ends where a terminal
// reads the mark kEdge.
bool Clouds::ends_at_edge(const std::vector<Group>& groups, uint32_t depth) {
  check_depth();
  if (depth == kMostEdges) return false;
  for (const Group& e : groups) {
    if (byte(e.set, kEdge).labels.empty()) continue;
    const Id below = enter(e.stack, 0);
    if (clouds_[below].accepting) return true;
    const std::vector<Group> deeper = clouds_[below].groups;
    if (ends_at_edge(deeper, depth + 1)) return true;
  }
  return false;
}

const Alternatives& Clouds::expand(RuleId rule, Symbol::Kind kind, uint32_t label) {
  const uint64_t at = pair_key(rule.v, kind == Symbol::kRule ? 0 : label + 1);
  const auto known = expansions_.find(at);
  if (known != expansions_.end()) return known->second;
  Reading reading;
  if (kind == Symbol::kReader) reading.kind = label ? Reading::kLabel : Reading::kFresh;
  if (label) reading.label = label - 1;
  Alternatives all;
  productions_.expand(rule, reading, all);
  charge(4 + static_cast<int64_t>(all.symbols.size()));
  return expansions_.emplace(at, std::move(all)).first->second;
}

// The cloud of the symbols on top of the stacks: rules are expanded until terminals are on top. `label`
// is told to the first reader.
Clouds::Id Clouds::enter(StackId s, uint32_t label) {
  const uint64_t at = pair_key(s.v, label);
  if (const Id* known = entered_.find(at)) return *known;
  FlatMap<uint64_t, bool> visited;
  std::swap(visited, visited_);
  Undo restore([&] { std::swap(visited, visited_); });
  Gathered out;
  enter(s, Alive::kClear, label, out);
  const Id made = intern(out);
  entered_.emplace(at, made);
  return made;
}

void Clouds::enter(StackId s, Alive::Pending pending, uint32_t label, Gathered& out) {
  check_depth();
  charge();
  // Left recursion comes back to the same stacks, which are entered once. With a label the reader on top
  // decides what follows, so such an entry is not noted.
  if (label == 0 && !visited_.emplace(pair_key(s.v, pending), true).second) return;
  if (parser_.stacks().has_end(s)) out.accepting = true;
  const std::span<const StackEntry> entries = parser_.stacks().entries(s);
  for (const StackEntry& e : entries) read(e.top, e.rest, pending, label, out);
}

// Adds what can be read of the symbol `top` above the stacks `rest`.
void Clouds::read(Symbol top, StackId rest, Alive::Pending pending, uint32_t label, Gathered& out) {
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
        // A lexeme that restricts the next byte leaves the restriction on the stack, as a kFollow
        // symbol.
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

Clouds::Id Clouds::closed(Entry e) {
  const uint64_t at = pair_key(e.regex.v, e.stack.v);
  if (const Id* known = closed_.find(at)) return *known;
  Gathered out;
  const RegexNode& n = regexes_.node(e.regex);
  if (!n.only_ends()) add(e.regex, e.stack, out);
  if (n.nullable) out.add(clouds_[enter(e.stack, n.label())]);
  const Id made = intern(out);
  closed_.emplace(at, made);
  return made;
}

// A state that captures text gives a blind cloud, because the text is dropped.
Clouds::Id Clouds::of(StateId s) {
  if (const Id* known = of_.find(s.v)) return *known;
  Gathered out;
  const State& state = parser_.state(s);
  out.accepting = state.accepting;
  for (const Item& i : parser_.items(s)) {
    if (i.regex == RegexArena::poison())
      out.open = true;
    else
      add(i.regex, i.stack, out);
    if (i.capture.v != 0) out.blind = true;
  }
  const Id made = intern(out);
  of_.emplace(s.v, made);
  return made;
}

Clouds::Id Clouds::token(Id c, TokenId t) {
  if (c == kNone || clouds_[c].open) return c;
  const uint64_t at = pair_key(c, static_cast<uint32_t>(t));
  if (const Id* known = tokens_.find(at)) return *known;
  Gathered now;
  now.groups = clouds_[c].groups;
  now.blind = clouds_[c].blind;
  const std::string_view bytes = vocabulary_.bytes(t);
  for (std::size_t i = 0; i < bytes.size() && !now.open && !now.groups.empty(); ++i) {
    Gathered next;
    next.blind = now.blind;
    for (const Group& e : now.groups) {
      charge();
      const Leap& l = byte(e.set, static_cast<uint8_t>(bytes[i]));
      if (!sets_[l.left].empty()) next.groups.push_back({l.left, e.stack});
      for (uint32_t label : l.labels) next.add(clouds_[enter(e.stack, label)]);
    }
    std::sort(next.groups.begin(), next.groups.end(), [](const Group& x, const Group& y) {
      return std::pair(x.set, x.stack.v) < std::pair(y.set, y.stack.v);
    });
    next.groups.erase(std::unique(next.groups.begin(), next.groups.end()), next.groups.end());
    // If the text ends inside the token, the token is not read.
    if (next.groups.empty() && i + 1 < bytes.size()) next.accepting = false;
    now = std::move(next);
  }
  const Id made = bytes.empty() ? kNone : intern(now);
  tokens_.emplace(at, made);
  return made;
}

// The cloud behind the tokens that have just left a terminal above the stacks s and have their rest below the
// places of the trie.
Clouds::Id Clouds::leave(StackId s, uint32_t label, uint32_t places) {
  check_depth();
  const uint64_t at = pair_key(s.v, label);
  if (const auto known = left_.find(at); known != left_.end())
    if (const Id* id = known->second.find(places)) return *id;
  Gathered out;
  const Id entered = enter(s, label);
  // The regexes behind the terminal are those of the cloud that enter() gives. Whether that cloud accepts
  // does not count, because all tokens here have bytes left.
  out.blind = clouds_[entered].blind;
  out.open = clouds_[entered].open;
  const std::vector<Group> groups = clouds_[entered].groups;
  for (const Group& e : groups) follow(leap(e.set, places), e.stack, out);
  const Id made = intern(out);
  left_[at].emplace(places, made);
  return made;
}

Clouds::Id Clouds::any(Id c) {
  if (c == kNone || clouds_[c].open) return c;
  if (const Id* known = any_.find(c)) return *known;
  Gathered out;
  out.blind = clouds_[c].blind;
  const std::vector<Group> groups = clouds_[c].groups;
  for (const Group& e : groups) follow(leap(e.set, Strides::kRoot), e.stack, out);
  const Id made = intern(out);
  any_.emplace(c, made);
  return made;
}

// The stacks of s that have at most `symbols` symbols.
StackId Clouds::shallow(StackId s, uint32_t symbols) {
  check_depth();
  const StackArena& stacks = parser_.stacks();
  if (s == StackArena::none() || symbols == 0)
    return stacks.has_end(s) ? StackArena::end() : StackArena::none();
  if (s == StackArena::end()) return s;
  const uint64_t at = pair_key(s.v, symbols);
  if (const StackId* known = shallow_stacks_.find(at)) return *known;
  charge();
  std::vector<StackId> kept;
  if (stacks.has_end(s)) kept.push_back(StackArena::end());
  const std::vector<StackEntry> entries(stacks.entries(s).begin(), stacks.entries(s).end());
  for (const StackEntry& e : entries)
    if (const StackId rest = shallow(e.rest, symbols - 1); rest != StackArena::none())
      kept.push_back(parser_.stacks().push(e.top, rest));
  const StackId out = kept.empty() ? StackArena::none() : parser_.stacks().unite(std::span(kept));
  shallow_stacks_.emplace(at, out);
  return out;
}

Clouds::Id Clouds::shallow(Id c, uint32_t symbols) {
  if (c == kNone || clouds_[c].open) return c;
  const uint64_t at = pair_key(c, symbols);
  if (const Id* known = shallow_.find(at)) return *known;
  Gathered out;
  out.accepting = clouds_[c].accepting;
  out.blind = clouds_[c].blind;
  const std::vector<Group> groups = clouds_[c].groups;
  for (const Group& e : groups)
    if (const StackId s = shallow(e.stack, symbols); s != StackArena::none())
      out.groups.push_back({e.set, s});
  const Id made = intern(out);
  shallow_.emplace(at, made);
  return made;
}

uint32_t Clouds::depth(StackId s) {
  check_depth();
  if (parser_.stacks().has_end(s)) return 0;
  if (const uint32_t* known = depths_.find(s.v)) return *known;
  uint32_t out = 1u << 20;
  const std::vector<StackEntry> entries(parser_.stacks().entries(s).begin(),
                                        parser_.stacks().entries(s).end());
  for (const StackEntry& e : entries) out = std::min(out, depth(e.rest) + 1);
  depths_.emplace(s.v, out);
  return out;
}

uint32_t Clouds::depth(Id c) {
  uint32_t out = 0;
  for (const Group& e : clouds_[c].groups) out = std::max(out, depth(e.stack));
  return out;
}

// Each regex of the part must be in the cloud, above at least the same stacks.
bool Clouds::holds(Id c, Id part) {
  if (c == part) return true;
  const Cloud &whole = clouds_[c], &some = clouds_[part];
  if (whole.open) return true;
  if (some.open || (some.accepting && !whole.accepting)) return false;
  for (const Group& p : some.groups)
    for (uint32_t r : sets_[p.set]) {
      charge();
      const auto in = std::find_if(whole.groups.begin(), whole.groups.end(), [&](const Group& e) {
        return std::binary_search(sets_[e.set].begin(), sets_[e.set].end(), r);
      });
      // Stacks are interned: if the union is the larger set itself, the smaller one is contained in it.
      if (in == whole.groups.end() || parser_.stacks().unite(in->stack, p.stack) != in->stack) return false;
    }
  return true;
}

// Takes the shortest completion of the cloud's entries, cuts it into tokens from the left, the longest
// first, and checks by stepping that the cloud ends there.
const std::vector<TokenId>* Clouds::ending(Id c) {
  constexpr std::size_t kFew = 12;
  constexpr uint32_t kNothing = 0xFFFFFFFFu;
  if (const uint32_t* known = ending_index_.find(c)) return *known == kNothing ? nullptr : &endings_[*known];
  const std::vector<Entry> all = clouds_[c].open ? std::vector<Entry>{} : entries(c);
  std::string text;
  bool found = false;
  // The completion is that of a parse state without captured text. text_matters() tells whether it holds for
  // every captured text.
  if (!all.empty() && all.size() <= kFew) {
    std::vector<Item> items;
    for (const Entry& e : all) items.push_back({e.regex, e.stack, CaptureId{0}});
    found = told([&] {
              const StateId s = parser_.make(items, false);
              text = completion_.of(s);
              return !completion_.text_matters(s);
            }).value_or(false);
  }
  std::vector<TokenId> tokens;
  const TokenTrie& trie = vocabulary_.trie();
  for (std::size_t at = 0; found && at < text.size();) {
    std::size_t longest = 0;
    TokenId best = 0;
    uint32_t node = 0;
    for (std::size_t i = at; i < text.size() && !trie.leaf(node); ++i) {
      const TokenTrie::Kids& kids = trie.kids(node);
      if (!kids.set.has(static_cast<uint8_t>(text[i]))) break;
      node = trie.child(kids, static_cast<uint8_t>(text[i]));
      if (trie.tokens(node).empty()) continue;
      longest = i + 1 - at;
      best = trie.tokens(node)[0];
    }
    found = longest > 0;
    at += longest;
    tokens.push_back(best);
  }
  Id end = c;
  for (std::size_t i = 0; found && i < tokens.size(); ++i) end = token(end, tokens[i]);
  found = found && clouds_[end].accepting && !clouds_[end].open;
  if (found) endings_.push_back(std::move(tokens));
  ending_index_.emplace(c, found ? static_cast<uint32_t>(endings_.size() - 1) : kNothing);
  return found ? &endings_.back() : nullptr;
}

bool Clouds::alive(Id c) {
  if (c == kNone) return false;
  const Cloud& of = clouds_[c];
  if (of.accepting || of.open) return true;
  if (const bool* known = alive_.find(c)) return *known;
  const std::vector<Group> groups = of.groups;
  bool out = false;
  for (const Group& e : groups)
    if ((out = parser_.alive().stack(e.stack))) break;
  alive_.emplace(c, out);
  return out;
}

bool Clouds::ways(const Entry& e, uint32_t places, const Way& f) {
  check_depth();
  const Stride& s = strides_.stride(e.regex, places);
  charge(static_cast<int64_t>(s.left.size()));
  for (std::size_t i = 0; i < s.left.size(); ++i)
    if (!f(closed({s.left[i].regex, e.stack}), e.regex, places, i)) return false;
  for (const Stride::Exit& x : s.exits) {
    const Id entered = enter(e.stack, x.label);
    lost_ = lost_ || clouds_[entered].open;
    for (const Entry& next : entries(entered))
      if (!ways(next, x.places, f)) return false;
  }
  return true;
}

bool Clouds::ways(Id c, const Way& f) {
  lost_ = clouds_[c].open;
  for (const Entry& e : entries(c))
    if (!ways(e, Strides::kRoot, f)) return false;
  return true;
}

std::vector<Clouds::Entry> Clouds::entries(Id c) const {
  std::vector<Entry> out;
  for (const Group& g : clouds_[c].groups)
    for (uint32_t r : sets_[g.set]) out.push_back({RegexId{r}, g.stack});
  return out;
}

}  // namespace structgen
