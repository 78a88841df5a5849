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
//     whole           everything else                a walk of the trie; subtrees whose bytes only lead round
//                                                    inside a few states are taken unread (mask/subtrees.h);
//                                                    if the regex may end in all of these, they are `open`
//
// difference() steps two regexes at once and goes down only where they differ. Where only literals are
// excluded, it matches those against the trie instead (less_literals, read_literals), and no regex is
// stepped.
//
// Invariants.
// - A mask depends on the regex and the vocabulary alone, so all grammars of a world share it.
// - `base` points to rows that are never freed before the world; trim() drops masks, not rows.
// - `exits` and `open`, or `left` say where the regex may end: at nodes of the trie, or at the exits of
//   a run except for tokens in `blocked`.
// - If a step was omitted (base/effort.h), the mask is `partial`, and each later use of it counts as an
//   omission, too.
//
// Costs. A run's mask: a look-up. A difference: at most kDifferenceBudget nodes. A whole walk: a
// millisecond or two at 131k tokens, less where it skips subtrees; once a regex and world.
//
// Rejected. A row of bits for each regex: 16 KB each, and an object of a hundred keys has a hundred
// regexes. Masks are lists against a shared row, up to kSparseLimit tokens.
#include "mask/slices.h"

#include <list>

#include "base/depth.h"
#include "base/error.h"

#include <algorithm>
#include <bit>

#include "base/work.h"
#include "mask/subtrees.h"
#include "mask/walk_table.h"

namespace structgen {

namespace {

// `difference` visits at most so many trie nodes: few in the first try, which serves regexes that
// exclude only names; many in the second try, the last before the whole trie is walked.
constexpr uint32_t kDifferenceBudget[] = {1'500, 5'000};

}  // namespace

RunClass* Slices::run(RegexId element) {
  Held& held = runs_[element.v];
  if (!held.run) held.run = vocabulary_.runs().of(regexes_, element);
  const std::size_t now = held.run->byte_size();
  bytes_ += now - held.seen;
  held.seen = now;
  return held.run->ok() ? held.run.get() : nullptr;
}

// ---- terminals ----

const TerminalMask& Slices::terminal(RegexId regex) {
  check_depth();
  if (const auto known = terminals_.find(regex.v); known != terminals_.end()) {
    if (known->second->partial) regexes_.effort().omit();
    return *known->second;
  }
  auto mask = std::make_unique<TerminalMask>();
  const uint64_t before = regexes_.effort().omitted();
  if (!run_terminal(regex, *mask) && !difference(regex, kDifferenceBudget[0], *mask) &&
      !contained(regex, *mask) && !shorter(regex, *mask) && !counted(regex, *mask) &&
      !difference(regex, kDifferenceBudget[1], *mask))
    whole(regex, *mask);
  mask->partial = regexes_.effort().omitted() != before;
  mask->exit_set = walks_->nodes(mask->exits);
  const std::size_t size =
      sizeof(TerminalMask) + 4 * (mask->added.capacity() + mask->removed.capacity() + mask->exits.capacity() +
                                  mask->blocked.capacity() + 2 * mask->open.capacity());
  bytes_ += size;
  terminal_bytes_ += size;
  return *(terminals_[regex.v] = std::move(mask));
}

void Slices::trim(std::size_t limit) {
  if (terminal_bytes_ + walks_->byte_size() <= limit) return;
  walks_.emplace(regexes_, vocabulary_.trie());
  terminals_.clear();
  leaving_.clear();
  counted_.clear();
  bytes_ -= terminal_bytes_;
  terminal_bytes_ = 0;
}

// For regex = base & not(a few literals). It walks both regexes and goes down only where they differ. `base`
// is a run, or any terminal whose mask is known or worth knowing: of an object's keys, each further key
// that is written is taken from the same base.
bool Slices::difference(RegexId regex, uint32_t budget, TerminalMask& out) {
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
    // Nothing is excluded, so a run is looked for among the parts.
    if (base == regex) {
      bool found = false;
      for (std::size_t i = 0; i < kept.size() && !found; ++i) found = run_terminal(base = kept[i], from);
      if (!found) return false;
    } else {
      from = terminal(base);
    }
  }
  const TokenTrie& trie = vocabulary_.trie();
  struct Frame {
    uint32_t node;
    RegexId r, b;
  };
  std::vector<Frame> todo{{0, regex, base}};
  // Ranges of nodes at which the base may end and the regex may not.
  std::vector<std::pair<uint32_t, uint32_t>> cut;
  std::vector<TokenId> lost;
  uint32_t visited = 0;
  while (!todo.empty()) {
    const Frame f = todo.back();
    todo.pop_back();
    charge(2);
    if (trie.leaf(f.node)) continue;
    const TokenTrie::Kids& kids = trie.kids(f.node);
    const ClassMap* c = regexes_.class_maps().product(&regexes_.classes(f.r), &regexes_.classes(f.b));
    bool differs[256];
    // One comparison for each class of bytes that both treat alike.
    for (uint16_t k = 0; k < c->n; ++k)
      differs[k] = regexes_.step(f.r, c->rep[k]) != regexes_.step(f.b, c->rep[k]);
    ByteSet bytes;
    kids.set.for_each([&](uint8_t b) {
      if (differs[c->of[b]]) bytes.add(b);
    });
    bytes.for_each([&](uint8_t b) {
      const uint32_t child = trie.child(kids, b);
      const RegexId r = regexes_.step(f.r, b), base_next = regexes_.step(f.b, b);
      if (r == RegexArena::empty()) {
        const auto below = trie.subtree_tokens(child);
        lost.insert(lost.end(), below.begin(), below.end());
        cut.emplace_back(child, trie.node(child).end);
      } else {
        if (regexes_.nullable(base_next) && !regexes_.nullable(r)) cut.emplace_back(child, child + 1);
        todo.push_back({child, r, base_next});
      }
    });
    visited += static_cast<uint32_t>(bytes.count()) + 1;
    if (visited > budget || lost.size() > kSparseLimit) return false;
  }
  std::sort(cut.begin(), cut.end());
  std::sort(lost.begin(), lost.end());
  out = from;
  list_open(out);
  std::erase_if(out.added, [&](TokenId t) { return std::binary_search(lost.begin(), lost.end(), t); });
  if (out.base)
    for (TokenId t : lost)
      if (get_bit(*out.base, t)) out.removed.push_back(t);
  std::erase_if(out.exits, [&](uint32_t node) {
    auto after = std::upper_bound(cut.begin(), cut.end(), std::pair{node, 0xFFFFFFFFu});
    return after != cut.begin() && node < std::prev(after)->second;
  });
  if (out.left)
    for (const auto& [first, end] : cut) {
      const auto start = std::lower_bound(out.left->children.begin(), out.left->children.end(), first,
                                          [](const Exit& e, uint32_t node) { return e.node < node; });
      for (auto e = start; e != out.left->children.end() && e->node < end; ++e) block(e->node, out);
    }
  std::sort(out.blocked.begin(), out.blocked.end());
  return true;
}

// The mask of a run without some literals. A run goes on for ever, so no token inside it is lost; only
// tokens that complete a literal are.
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

// If the regex is E* closed by one byte that E does not contain, its mask is the run's.
bool Slices::run_terminal(RegexId regex, TerminalMask& out) {
  const RunExits* const exits = this->exits(regex);
  if (!exits) return false;
  out.base = &exits->unbounded;
  out.left = exits;
  // This is the closing byte. An element that is begun needs no more bytes counted: up_to(k) counts an
  // element as soon as it begins.
  out.slack = 1;
  return true;
}

// The regex does not end at this exit of the run, so tokens that go on below it are blocked.
void Slices::block(uint32_t node, TerminalMask& out) {
  const TokenTrie& trie = vocabulary_.trie();
  const auto below = trie.subtree_tokens(node).subspan(trie.tokens(node).size());
  out.blocked.insert(out.blocked.end(), below.begin(), below.end());
}

// The mask by a walk of the whole trie, with the state of each depth at hand. charge() counts one unit
// of work for every 8 nodes.
void Slices::whole(RegexId regex, TerminalMask& out) {
  const TokenTrie& trie = vocabulary_.trie();
  WalkTable table(regexes_);
  std::vector<uint32_t> at(vocabulary_.longest() + 1);
  at[0] = table.state(regex);
  Loops loops(trie, table, false);
  auto row = std::make_unique<Words>(vocabulary_.words());
  std::size_t count = 0;
  const auto take = [&](std::span<const TokenId> tokens) {
    for (TokenId t : tokens) set_bit(*row, t);
    count += tokens.size();
  };
  for (uint32_t i = 1; i < trie.size();) {
    const TokenTrie::Node& n = trie.node(i);
    const uint32_t from = at[n.depth - 1];
    if (i % 8 == 0) charge();
    const uint32_t to = table.next(from, static_cast<uint8_t>(n.byte));
    if (to == WalkTable::kDead) {
      i = n.end;
      continue;
    }
    if (n.end > i + kLoopsBelow && loops.worth(i, to) && loops.cover(i, to, 0)) {
      take(trie.subtree_tokens(i));
      if (table.ends(to)) out.open.emplace_back(i, n.end);
      i = n.end;
      continue;
    }
    at[n.depth] = to;
    take(trie.tokens(i));
    if (n.kids && table.ends(to)) out.exits.push_back(i);
    ++i;
  }
  out.slack = 0;
  for (uint32_t i = 1; i < table.size() && out.slack != TerminalMask::kUnknown; ++i)
    out.slack = std::max(out.slack, slack(table.regex(i)));
  if (count <= kSparseLimit) {
    for_each_token(*row, [&](TokenId t) { out.added.push_back(t); });
    return;
  }
  bytes_ += row->size() * 4;
  owned_.push_back(std::move(row));
  out.base = owned_.back().get();
}

// Writes `open` as `exits`, for those who compare or change them.
void Slices::list_open(TerminalMask& out) const {
  if (out.open.empty()) return;
  const TokenTrie& trie = vocabulary_.trie();
  for (const auto& [first, end] : out.open)
    for (uint32_t i = first; i < end; ++i)
      if (!trie.leaf(i) && !(trie.below(i) & kMalformed)) out.exits.push_back(i);
  out.open.clear();
  std::sort(out.exits.begin(), out.exits.end());
}

const std::vector<uint32_t>& Slices::led_by(uint8_t byte) {
  const auto [slot, fresh] = led_by_.try_emplace(byte);
  if (fresh) {
    const TokenTrie& trie = vocabulary_.trie();
    for (uint32_t i = 1; i < trie.size(); ++i)
      if (trie.node(i).byte == byte) slot->second.push_back(i);
    bytes_ += 60 + 4 * slot->second.capacity();
  }
  return slot->second;
}

// The table of literals `id` against the vocabulary, read from the start of every literal.
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

// Goes down the trie only where some spelling of a literal goes. One string may be spelled with escapes
// (`a` as `\u0061`), so a node may be inside an escape.
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

// As read_literals(), but only along the nodes that lead to a quote.
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

// Reads one byte of `bytes` from a node: calls inside(child, rest) where literals go on, and lists the
// literals that the byte completes.
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

// A string ends where a run of its characters is left. Where the spelling has no such run, each byte of the
// trie may lead to an end.
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

// The bytes from the root to the node.
std::string Slices::path(uint32_t node) const {
  // Some token lies below every node, and it begins with these bytes.
  const TokenTrie& trie = vocabulary_.trie();
  return std::string(vocabulary_.bytes(trie.subtree_tokens(node).front()).substr(0, trie.node(node).depth));
}

}  // namespace structgen
