// Terminal masks: the tokens that stay inside a regex, and the trie nodes at which it may end.
//
// The problem. The first mask inside a regex must decide about each of 131k tokens. Real schemas hold
// thousands of different string regexes (any key but these, a pattern, a maximum length), and most of
// them differ from "any string" in a few hundred tokens.
//
// The idea. terminal() tries the cheap descriptions first, and walks the whole trie only if none fits:
//
//     run_terminal    any*"                          the run's row; it is left at the quote
//     difference      any*" & ~("a"|"b")             that row, less the tokens that complete a or b
//     contained       any{0,20}" & any* foo any*"    bounds.cc
//     shorter, counted                               bounds.cc
//     whole           everything else                a walk of the trie, beside a regex walked before
//
// Most walks step two regexes at once (compare()). The mask of one of them is known, and the walk goes down
// only where the two regexes differ. difference() compares `any*" & ~("a")` with `any*"`. whole() compares
// the regex with one of the regexes that were walked last, or reads the trie by the regex alone (read_all()).
// If the bytes of a subtree lead only from one of a few states to another, the subtree is not read
// (mask/subtrees.h); if the regex may end in all these states, the subtree is `open`. If only literals are
// excluded, difference() matches the literals against the trie (less_literals(), read_literals()), and no
// regex is stepped.
//
// Invariants.
// - A mask depends on the regex and the vocabulary alone, so all grammars of a world share it.
// - `base` points to rows that are never freed before the world; trim() drops masks, not rows.
// - If a step was omitted (base/effort.h), the mask is `partial`, and each later use of it counts as an
//   omission, too.
//
// Costs. A run's mask: a look-up. A difference: at most kDifferenceBudget nodes. A whole walk that compares
// with a similar regex: some hundred nodes. A whole walk by the regex alone: half a millisecond at 131k
// tokens, less if subtrees are skipped. Each cost arises once for each regex and world.
//
// Rejected. A row of bits for each regex: 16 KB each, and an object of a hundred keys has a hundred
// regexes. Masks are lists against a shared row, up to kMostListed tokens.
#include "mask/slices.h"

#include <list>

#include "base/depth.h"
#include "base/error.h"

#include <algorithm>
#include <bit>
#include <iterator>

#include "base/work.h"
#include "mask/subtrees.h"
#include "mask/walk_table.h"

namespace structgen {

namespace {

// difference() gives up after this many trie nodes. A regex that only excludes names needs fewer nodes.
constexpr uint32_t kDifferenceBudget = 1'500;
// whole() stops comparing the regex with an earlier one after this many trie nodes.
constexpr uint32_t kBesideBudget = 4'000;
// A byte is frequent() if more tokens than this begin with it.
constexpr std::size_t kFrequent = 6'000;
// sought() looks at one in this many nodes, at most.
constexpr std::size_t kSoughtShare = 8;
// whole() compares a regex with this many of the regexes walked last.
constexpr std::size_t kWalked = 8;

}  // namespace

Slices::Slices(RegexArena& regexes, const Vocabulary& vocabulary)
    : regexes_(regexes), vocabulary_(vocabulary), walks_(std::in_place, regexes, vocabulary.trie()) {
  const TokenTrie& trie = vocabulary.trie();
  trie.kids(0).set.for_each([&](uint8_t b) {
    tokens_by_byte_[b] = trie.subtree_tokens(trie.child(trie.kids(0), b)).size();
    if (tokens_by_byte_[b] > kFrequent) frequent_.add(b);
  });
}

RunClass* Slices::run(RegexId element) {
  Held& held = runs_[element.v];
  if (!held.run) held.run = vocabulary_.runs().of(regexes_, element);
  const std::size_t now = held.run->byte_size();
  bytes_ += now - held.seen;
  held.seen = now;
  return held.run->ok() ? held.run.get() : nullptr;
}

const TerminalMask& Slices::terminal(RegexId regex) {
  check_depth();
  if (const auto known = terminals_.find(regex.v); known != terminals_.end()) {
    if (known->second->partial) regexes_.effort().omit();
    return *known->second;
  }
  auto mask = std::make_unique<TerminalMask>();
  const uint64_t before = regexes_.effort().omitted();
  const bool described = run_terminal(regex, *mask) || avoiding(regex, *mask) || difference(regex, *mask) ||
                         contained(regex, *mask) || shorter(regex, *mask) || counted(regex, *mask);
  if (!described) whole(regex, *mask);
  mask->partial = regexes_.effort().omitted() != before;
  mask->exit_set = walks_->nodes(mask->exits);
  const std::size_t size =
      sizeof(TerminalMask) + 4 * (mask->added.capacity() + mask->removed.capacity() + mask->exits.capacity() +
                                  mask->blocked.capacity() + 2 * mask->open.capacity());
  bytes_ += size;
  terminal_bytes_ += size;
  const TerminalMask& out = *(terminals_[regex.v] = std::move(mask));
  // For few tokens a walk is faster than joining the masks of the kids.
  if (!described && !out.partial && out.base) {
    if (walked_.size() == kWalked) walked_.erase(walked_.begin());
    walked_.emplace_back(regex, first_steps(regex));
  }
  return out;
}

void Slices::trim(std::size_t limit) {
  if (terminal_bytes_ + walks_->byte_size() <= limit) return;
  walks_.emplace(regexes_, vocabulary_.trie());
  terminals_.clear();
  walked_.clear();
  leaving_.clear();
  bytes_ -= terminal_bytes_;
  terminal_bytes_ = 0;
}

// Makes the mask of base & not(a few literals) by a walk that goes down only where both regexes differ.
// `base` is a run, or a terminal whose mask is known or will be needed again: with each key of an object the
// literals change, and the base does not. Returns false if the regex has another form, or differs from the
// base at too many nodes.
bool Slices::difference(RegexId regex, TerminalMask& out) {
  check_depth();
  const std::vector<RegexId> kept = regexes_.without_words(regex);
  if (kept.empty()) return false;
  RegexId base = regexes_.both(std::span<const RegexId>(kept));
  TerminalMask from;
  if (run_terminal(base, from)) {
    std::vector<LiteralSet> sets;
    if (base != regex && regexes_.excluded_literals(regex, sets)) {
      less_literals(sets, from, out);
      return true;
    }
  } else {
    // The regex excludes no literals. A kid that is a run may still be the base.
    if (base == regex) {
      bool found = false;
      for (std::size_t i = 0; i < kept.size() && !found; ++i) found = run_terminal(base = kept[i], from);
      if (!found) return false;
    } else {
      from = terminal(base);
    }
  }
  Changes changes;
  if (!compare(regex, base, {kDifferenceBudget, kMostListed}, changes)) return false;
  change(from, changes, out);
  return true;
}

// Makes the mask of a run without some literals. No text of a run ends without its closing byte, so all
// tokens inside stay; only tokens that complete a literal are removed.
void Slices::less_literals(std::span<const LiteralSet> sets, const TerminalMask& from, TerminalMask& out) {
  out = from;
  for (const LiteralSet& set : sets)
    for (const TableMask::Done& d : completed(set)) {
      const auto tokens = vocabulary_.trie().tokens(d.node);
      out.removed.insert(out.removed.end(), tokens.begin(), tokens.end());
      block(d.node, out);
    }
  std::sort(out.blocked.begin(), out.blocked.end());
}

RegexId Slices::visible(RegexId regex) {
  const std::vector<RegexId> kept = regexes_.without_words(regex);
  std::vector<LiteralSet> sets;
  if (kept.empty() || kept.size() == regexes_.node(regex).n || !regexes_.excluded_literals(regex, sets))
    return regex;
  const RegexId base = regexes_.both(std::span<const RegexId>(kept));
  if (!exits(base)) return regex;
  for (const LiteralSet& set : sets)
    if (!completed(set).empty()) return regex;
  return base;
}

const RunExits* Slices::exits(RegexId regex) {
  const RegexArena::Counter c = regexes_.counter(regex);
  if (!c.star()) return nullptr;
  const RegexNode& t = regexes_.node(c.tail);
  if (t.kind != RegexKind::kBytes || regexes_.byte_set(t.a).count() != 1) return nullptr;
  const uint8_t close = static_cast<uint8_t>(regexes_.byte_set(t.a).first());
  if (regexes_.live(c.element).has(close)) return nullptr;
  RunClass* run = this->run(c.element);
  return run ? &run->exits(close) : nullptr;
}

// Makes the mask of E* closed by one byte that E does not contain, from the run of E. Returns false if the
// regex has another form.
bool Slices::run_terminal(RegexId regex, TerminalMask& out) {
  const RunExits* const exits = this->exits(regex);
  if (!exits) return false;
  out.base = &exits->unbounded;
  out.left = exits;
  return true;
}

// Adds to `blocked` the tokens that go on below an exit of the run at which the regex does not end.
void Slices::block(uint32_t node, TerminalMask& out) {
  const TokenTrie& trie = vocabulary_.trie();
  const auto below = trie.subtree_tokens(node).subspan(trie.tokens(node).size());
  out.blocked.insert(out.blocked.end(), below.begin(), below.end());
}

// Finds where a regex differs from a known one, whose mask is known, by a walk of the trie that steps both.
// The walk does not go below a node at which both regexes are in one state, or below which both move only
// within a few states (subtrees.h). Returns false if the walk meets more nodes, or more different tokens,
// than `limits` allows. Returns false, too, if a step was omitted, because then both regexes look dead where
// the known mask may have tokens. With `among`, only these nodes are visited; `among` is sorted and contains
// the parents of all its nodes. Eight nodes cost a unit of work.
bool Slices::compare(RegexId regex, RegexId known, Limits limits, Changes& out,
                     std::span<const uint32_t> among) {
  const TokenTrie& trie = vocabulary_.trie();
  const uint64_t omitted = regexes_.effort().omitted();
  WalkTable table(regexes_);
  struct Pair {
    uint32_t regex, known;
  };
  std::vector<Pair> at(vocabulary_.longest() + 1);
  at[0] = {table.state(regex), table.state(known)};
  Loops loops(trie, table, false);
  const auto goes_round = [&](uint32_t i, uint32_t state) {
    return loops.worth(i, state) && loops.cover(i, state, 0);
  };
  // Notes what differs at a node. Returns true if the nodes below it need no visit: they do not differ, or
  // their differences are noted as well.
  const auto note = [&](uint32_t i, Pair to) {
    const TokenTrie::Node& n = trie.node(i);
    if (to.regex == to.known) return true;
    if (to.regex == WalkTable::kDead) {
      const auto tokens = trie.subtree_tokens(i);
      out.lost.insert(out.lost.end(), tokens.begin(), tokens.end());
      out.cut.emplace_back(i, n.end);
      return true;
    }
    const bool dead = to.known == WalkTable::kDead;
    const bool all = n.end > i + kLoopsBelow && goes_round(i, to.regex) && (dead || goes_round(i, to.known));
    if (dead) out.gain(all ? trie.subtree_tokens(i) : trie.tokens(i), vocabulary_);
    const bool ends = table.ends(to.regex);
    if (!n.kids || ends == table.ends(to.known)) return all;
    if (!ends)
      out.cut.emplace_back(i, all ? n.end : i + 1);
    else if (all)
      out.open.emplace_back(i, n.end);
    else
      out.exits.push_back(i);
    return all;
  };
  // Returns the first node from `i` on that the walk has to visit.
  auto looked_at = [&, rest = among](uint32_t i) mutable -> uint32_t {
    if (among.empty()) return i;
    rest = rest.subspan(std::lower_bound(rest.begin(), rest.end(), i) - rest.begin());
    return rest.empty() ? trie.size() : rest.front();
  };
  uint32_t visited = 0;
  for (uint32_t i = looked_at(1); i < trie.size();) {
    const TokenTrie::Node& n = trie.node(i);
    if (i % 8 == 0) charge();
    const Pair from = at[n.depth - 1];
    const uint8_t byte = static_cast<uint8_t>(n.byte);
    at[n.depth] = {table.next(from.regex, byte),
                   from.known == WalkTable::kDead ? WalkTable::kDead : table.next(from.known, byte)};
    i = looked_at(note(i, at[n.depth]) ? n.end : i + 1);
    if (++visited > limits.nodes || out.gained + out.lost.size() > limits.tokens) return false;
  }
  return known == RegexArena::empty() || regexes_.effort().omitted() == omitted;
}

void Slices::Changes::gain(std::span<const TokenId> tokens, const Vocabulary& vocabulary) {
  gained += tokens.size();
  if (!row && gained <= kMostListed) {
    added.insert(added.end(), tokens.begin(), tokens.end());
    return;
  }
  if (!row) {
    row = std::make_unique<Words>(vocabulary.words());
    for (TokenId t : added) set_bit(*row, t);
    added.clear();
  }
  for (TokenId t : tokens) set_bit(*row, t);
}

// Makes the mask of a regex from a known mask and the differences that compare() found.
void Slices::change(const TerminalMask& from, Changes& changes, TerminalMask& out) {
  out = from;
  std::vector<TokenId>& lost = changes.lost;
  std::vector<TokenId>& gained = changes.added;
  std::sort(lost.begin(), lost.end());
  std::sort(gained.begin(), gained.end());
  const auto without = [](std::vector<TokenId>& list, const std::vector<TokenId>& those) {
    if (!those.empty())
      std::erase_if(list, [&](TokenId t) { return std::binary_search(those.begin(), those.end(), t); });
  };
  without(out.added, lost);
  without(out.removed, lost);
  without(out.removed, gained);
  if (out.base)
    for (TokenId t : lost)
      if (get_bit(*out.base, t)) out.removed.push_back(t);
  for (TokenId t : gained)
    if (!out.base || !get_bit(*out.base, t)) out.added.push_back(t);
  if (changes.row || out.added.size() + out.removed.size() > kMostListed) {
    auto row = out.base ? std::make_unique<Words>(*out.base) : std::make_unique<Words>(vocabulary_.words());
    for (TokenId t : out.removed) (*row)[static_cast<uint32_t>(t) >> 5] &= ~(1u << (t & 31));
    for (TokenId t : out.added) set_bit(*row, t);
    for (std::size_t i = 0; changes.row && i < row->size(); ++i) (*row)[i] |= (*changes.row)[i];
    out.added.clear();
    out.removed.clear();
    bytes_ += row->size() * 4;
    owned_.push_back(std::move(row));
    out.base = owned_.back().get();
  }
  std::sort(out.added.begin(), out.added.end());
  std::sort(out.removed.begin(), out.removed.end());
  if (!changes.cut.empty()) {
    list_open(out);
    std::erase_if(out.exits, [&](uint32_t node) {
      auto after = std::upper_bound(changes.cut.begin(), changes.cut.end(), std::pair{node, 0xFFFFFFFFu});
      return after != changes.cut.begin() && node < std::prev(after)->second;
    });
  }
  const auto merge = [](auto& list, const auto& more) {
    const auto middle = list.insert(list.end(), more.begin(), more.end());
    std::inplace_merge(list.begin(), middle, list.end());
  };
  merge(out.exits, changes.exits);
  merge(out.open, changes.open);
  if (!out.left) return;
  for (const auto& [first, end] : changes.cut) {
    const auto start = std::lower_bound(out.left->children.begin(), out.left->children.end(), first,
                                        [](const Exit& e, uint32_t node) { return e.node < node; });
    for (auto e = start; e != out.left->children.end() && e->node < end; ++e) block(e->node, out);
  }
  std::sort(out.blocked.begin(), out.blocked.end());
}

// Makes the mask of E* and a tail that begins with few bytes, such as `.*foo`. While a token has no byte that
// begins the tail, each character leads back to the regex: such tokens of the run of E are inside, and the
// regex does not end. So only the subtrees whose first byte begins the tail behind whole characters are
// walked (`f`, `(f`, ...). Returns false if the regex has another form, or the subtrees are many.
bool Slices::sought(RegexId regex, TerminalMask& out) {
  const TokenTrie& trie = vocabulary_.trie();
  const RegexArena::Counter c = regexes_.counter(regex);
  if (!c.star() || regexes_.nullable(c.tail)) return false;
  const ByteSet begins = regexes_.live(c.tail);
  const NodeIndex& index = vocabulary_.runs().index();
  std::size_t many = 0;
  begins.for_each([&](uint8_t b) { many += index.of(b).size(); });
  RunClass* const run = many * kSoughtShare < trie.size() ? this->run(c.element) : nullptr;
  if (!run || run->tokens() <= kMostListed) return false;
  std::vector<uint32_t> nodes;
  begins.for_each([&](uint8_t b) {
    const auto middle = static_cast<std::ptrdiff_t>(nodes.size());
    std::ranges::copy_if(index.of(b), std::back_inserter(nodes),
                         [&](uint32_t node) { return run->boundary(index.parent(node)); });
    std::inplace_merge(nodes.begin(), nodes.begin() + middle, nodes.end());
  });
  // No node of the list lies below another one.
  uint32_t behind = 0;
  std::erase_if(nodes, [&](uint32_t node) {
    if (node < behind) return true;
    behind = trie.node(node).end;
    return false;
  });
  for (const uint32_t node : nodes) many += trie.node(node).end - node;
  if (many * kSoughtShare >= trie.size()) return false;
  TerminalMask from;
  from.base = &run->up_to(run->longest());
  Changes changes;
  WalkTable table(regexes_);
  for (const uint32_t first : nodes)
    read_nodes(table, VocabularyTrie{trie}, first, trie.node(first).end, table.state(regex),
               [&](uint32_t i, uint32_t, uint32_t to) {
                 if (to == WalkTable::kDead) {
                   const auto tokens = trie.subtree_tokens(i);
                   changes.lost.insert(changes.lost.end(), tokens.begin(), tokens.end());
                   return false;
                 }
                 for (TokenId t : trie.tokens(i))
                   if (!get_bit(*from.base, t)) changes.gain({&t, 1}, vocabulary_);
                 if (!trie.leaf(i) && table.ends(to)) changes.exits.push_back(i);
                 return true;
               });
  change(from, changes, out);
  return true;
}

// Makes the mask by a walk of the trie. If an earlier regex is similar, the walk visits only the few nodes
// where both regexes differ; otherwise it visits all nodes.
//     any* `_SL1`" beside any*"      differs at `_`, and below it at `_S`, `_SL` and `_SL1`
void Slices::whole(RegexId regex, TerminalMask& out) {
  if (sought(regex, out)) return;
  const TerminalMask* from = nullptr;
  RegexId known;
  // The distance of the most similar regex so far: the number of tokens that begin with a byte by which both
  // have different derivatives. A regex at a distance of half of all tokens is not compared at all.
  std::size_t nearest = vocabulary_.trie().subtree_tokens(0).size() / 2;
  const FirstSteps steps = first_steps(regex);
  for (const auto& [other, to] : walked_) {
    std::size_t apart = 0;
    for (int b = 0; b < 256; ++b)
      if (steps[b] != to[b]) apart += tokens_by_byte_[b];
    if (apart >= nearest) continue;
    nearest = apart;
    known = other;
    from = terminals_.at(other.v).get();
  }
  Changes changes;
  if (!from || !compare(regex, known, {kBesideBudget, kMostListed}, changes)) {
    from = nullptr;
    changes = read_all(regex);
  }
  change(from ? *from : TerminalMask{}, changes, out);
}

// Reads the whole trie. The tokens are collected in a row, because most regexes that get here have many.
Slices::Changes Slices::read_all(RegexId regex) {
  const TokenTrie& trie = vocabulary_.trie();
  Changes out;
  WalkTable table(regexes_);
  Loops loops(trie, table, false);
  auto row = std::make_unique<Words>(vocabulary_.words());
  read_nodes(table, VocabularyTrie{trie}, 1, trie.size(), table.state(regex),
             [&](uint32_t i, uint32_t, uint32_t to) {
               if (to == WalkTable::kDead) return false;
               const uint32_t end = trie.node(i).end;
               const bool all = end > i + kLoopsBelow && loops.worth(i, to) && loops.cover(i, to, 0);
               const auto tokens = all ? trie.subtree_tokens(i) : trie.tokens(i);
               for (TokenId t : tokens) set_bit(*row, t);
               out.gained += tokens.size();
               if (all && table.ends(to))
                 out.open.emplace_back(i, end);
               else if (!trie.leaf(i) && table.ends(to))
                 out.exits.push_back(i);
               return !all;
             });
  if (out.gained > kMostListed)
    out.row = std::move(row);
  else
    for_each_token(*row, [&](TokenId t) { out.added.push_back(t); });
  return out;
}

Slices::FirstSteps Slices::first_steps(RegexId regex) {
  FirstSteps out;
  const ClassMap& classes = regexes_.classes(regex);
  RegexId by_class[256];
  for (uint16_t k = 0; k < classes.n; ++k) by_class[k] = regexes_.step(regex, classes.rep[k]);
  for (int b = 0; b < 256; ++b) out[b] = by_class[classes.of[b]];
  return out;
}

// Adds all nodes of the subtrees in `open` to `exits`, for callers that need every node.
void Slices::list_open(TerminalMask& out) const {
  if (out.open.empty()) return;
  const TokenTrie& trie = vocabulary_.trie();
  for (const auto& [first, end] : out.open)
    for (uint32_t i = first; i < end; ++i)
      if (!trie.leaf(i) && !(trie.below(i) & kMalformed)) out.exits.push_back(i);
  out.open.clear();
  std::sort(out.exits.begin(), out.exits.end());
}

// Returns how the vocabulary's tokens read the literal table `id`, from the start of every literal.
const TableMask& Slices::table(uint32_t id) {
  std::unique_ptr<TableMask>& slot = tables_[id];
  if (slot) return *slot;
  auto made = std::make_unique<TableMask>();
  LiteralSet start;
  start.table = id;
  start.hi = static_cast<uint32_t>(regexes_.tables().table(id).texts.size());
  if (start.hi > 0) read_literals(start, *made);
  slot = std::move(made);
  bytes_ += slot->inside.size() * sizeof(TableMask::Inside) + slot->done.size() * sizeof(TableMask::Done);
  return *slot;
}

// Goes down the trie along spellings of the literals only. A spelling may have escapes (`a` as `\u0061`), so
// a node may stand inside an escape.
void Slices::read_literals(const LiteralSet& start, TableMask& out) const {
  const TokenTrie& trie = vocabulary_.trie();
  std::vector<std::pair<uint32_t, LiteralSet>> todo{{0, start}};
  while (!todo.empty()) {
    const auto [at, from] = todo.back();
    todo.pop_back();
    read_byte(at, from, trie.kids(at).set, out.done, [&](uint32_t child, const LiteralSet& s) {
      for (TokenId t : trie.tokens(child)) out.inside.push_back({t, s.lo, s.hi, s.escape == 0});
      if (!trie.leaf(child)) todo.emplace_back(child, s);
    });
  }
}

// Returns what read_literals() writes to `done`. read_literals() visits only nodes that lead to a quote.
std::vector<TableMask::Done> Slices::completed(const LiteralSet& start) {
  const auto& ways = ways_to_quote();
  std::vector<TableMask::Done> done;
  std::vector<std::pair<uint32_t, LiteralSet>> todo{{0, start}};
  while (!todo.empty()) {
    const auto [at, from] = todo.back();
    todo.pop_back();
    const auto way = ways.find(at);
    if (way == ways.end()) continue;
    read_byte(at, from, way->second, done,
              [&](uint32_t child, const LiteralSet& s) { todo.emplace_back(child, s); });
  }
  return done;
}

// Reads each of `bytes` from a node. If literals go on behind a byte, calls inside(child, rest). If a byte
// completes a literal, adds the literal to `done`.
template <class F>
void Slices::read_byte(uint32_t at, const LiteralSet& from, const ByteSet& bytes,
                       std::vector<TableMask::Done>& done, F&& inside) const {
  const TokenTrie& trie = vocabulary_.trie();
  const LiteralTables& tables = regexes_.tables();
  charge();
  const TokenTrie::Kids& kids = trie.kids(at);
  (bytes & tables.first_bytes(from)).for_each([&](uint8_t b) {
    LiteralSet s = from;
    bool ends;
    if (!tables.step(s, b, ends)) return;
    const uint32_t child = trie.child(kids, b);
    if (ends)
      done.push_back({child, s.lo});
    else
      inside(child, s);
  });
}

// Returns for each node the bytes that lead to a quote, if there are any. A quote ends a run of string
// characters, so the exits of this run give the nodes. If the spelling has no such run, each byte of the trie
// counts as one that may lead to a quote.
const std::unordered_map<uint32_t, ByteSet>& Slices::ways_to_quote() {
  if (!ways_.empty()) return ways_;
  const TokenTrie& trie = vocabulary_.trie();
  const RegexId any = regexes_.any_character();
  RunClass* const run = any == RegexArena::empty() ? nullptr : this->run(any);
  if (run) {
    const NodeIndex& index = vocabulary_.runs().index();
    for (const Exit& e : run->exits('"').children)
      for (uint32_t node = e.node; node != 0; node = index.parent(node)) {
        ByteSet& bytes = ways_[index.parent(node)];
        const uint8_t byte = static_cast<uint8_t>(trie.node(node).byte);
        if (bytes.has(byte)) break;
        bytes.add(byte);
      }
    ways_.try_emplace(0);
  } else {
    for (uint32_t node = 0; node < trie.size(); ++node)
      if (!trie.leaf(node)) ways_.emplace(node, trie.kids(node).set);
  }
  bytes_ += ways_.size() * 60;
  return ways_;
}

std::string Slices::path(uint32_t node) const {
  // There is a token below every node, and the node's bytes are its first bytes.
  const TokenTrie& trie = vocabulary_.trie();
  return std::string(vocabulary_.bytes(trie.subtree_tokens(node).front()).substr(0, trie.node(node).depth));
}

}  // namespace structgen
