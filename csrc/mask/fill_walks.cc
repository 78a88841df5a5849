// The tokens that go on from items: from terminal to terminal, or from state to state.
//
// In: items or a state, and nodes of the vocabulary's trie or a trie of endings. Out: the tokens below these
// nodes that are allowed, and those that have to be stepped with their captured text. Cost: a look-up for
// each terminal on the way, where its walk is known (mask/terminal_walks.h).
//
// The problem. Most states of a text are new, and the few tokens that leave a string, a number or a gap have
// to be walked for each of them.
//
// The idea. For the state behind the value of `"a"` in an object, read_from() goes this way; what each step
// reads is kept by (regex, nodes), and only what follows on the stack is asked of the parser:
//
//     gap below {root}       tokens of blanks; it ends at their nodes B
//     comma below {root}, B  the tokens `,` and `_,`; it ends at C
//     gap below C            tokens such as `,_`; it ends at D
//     quote below C, D       the token `,"`. No token goes on behind it, so the key is not asked for
//
// Invariants.
// - The walk from terminal to terminal and the walk from state to state list the same tokens; a token may be
//   listed twice.
// - During a walk captured text is unknown (blind(), behind()). A token that leads to poison is `unsure`.
// - If the walk from terminal to terminal (by_terminals()) gives up, the walk from state to state decides.
//
// Rejected. Keeping endings by the terminals with which a state begins: finding this key takes the very walk
// that it would save.
#include <algorithm>

#include "base/depth.h"
#include "base/small_vector.h"
#include "base/undo.h"
#include "base/work.h"
#include "mask/fill.h"

namespace structgen {

namespace {
// by_terminals() may always take this many steps from terminal to terminal. Of 2,500 schemas of MaskBench,
// most walks take fewer than 16 steps and all fewer than 128. Walks of the C grammar take 450 at the median.
constexpr uint32_t kFewestWays = 32;
}  // namespace

// Lists tokens by a walk from terminal to terminal. In two cases it returns false and lists nothing, and a
// walk from state to state is needed. First, something was omitted (base/effort.h): then the omission must be
// noted for the state behind each byte, because such a state may be asked again. Second, the walk takes too
// many steps: in an ambiguous grammar the ways to read a token may double with each byte, while one state
// holds them all.
//     x -> a x b | a x c | aa x d | a    `aaaaaaaa` is read on 34 paths of a and aa, each with other stacks
bool MaskBuilder::by_terminals(std::span<const Item> items, NodeSetId from, Collected& out,
                               const Counts* counts) {
  if (out.plain) return false;
  const Effort& effort = parser_.regexes().effort();
  const uint64_t omitted = effort.omitted() + parser_.omitted();
  const std::size_t n_sure = out.sure.size(), n_unsure = out.unsure.size();
  const Worst worst = out.worst;
  const bool read = read_from(items, from, out, counts);
  if (!read) most_ways_ = std::max(most_ways_ / 2, kFewestWays);
  if (read && effort.omitted() + parser_.omitted() == omitted) return true;
  out.sure.resize(n_sure);
  out.unsure.resize(n_unsure);
  out.worst = worst;
  if (counts) {
    counts->sure.resize(n_sure);
    counts->unsure.resize(n_unsure);
  }
  return false;
}

// Tells whether what may follow this terminal's end depends on the text that was read.
bool MaskBuilder::told_apart(const Item& end) const {
  return end.capture.v != 0 || end.regex != RegexArena::epsilon() || parser_.unproven() ||
         parser_.regexes().effort().omits();
}

MaskBuilder::Behind MaskBuilder::behind(const Item& end) {
  if (end.capture.v == 0 && end.regex == RegexArena::epsilon() && !parser_.unproven())
    return {parser_.begins(end.stack), true, true};
  const StateId s = parser_.make(end);
  return {parser_.items(s), s != Parser::dead(), sure(s)};
}

// Lists the tokens that begin at one of a set of trie nodes and can be read from one of the items
// (mask/terminal_walks.h). Where a terminal ends, the walk goes on with the items of its stack. Returns false
// if this takes more than `most_ways_` steps.
bool MaskBuilder::read_from(std::span<const Item> items, NodeSetId from, Collected& out,
                            const Counts* counts) {
  struct At {
    Item item;
    NodeSetId from;
  };
  const auto list = [&](std::span<const Suffixes::Entry> entries, bool is_sure) {
    for (const Suffixes::Entry& e : entries) {
      (is_sure ? out.sure : out.unsure).push_back(e.token);
      if (counts) (is_sure ? counts->sure : counts->unsure).push_back(e.count);
    }
  };
  if (from == TerminalWalks::none()) return true;
  TerminalWalks& walks = slices_.walks();
  SmallVector<At, 16> todo;
  FlatMap<uint64_t, bool> met;
  std::vector<Suffixes::Entry> below;
  for (const Item& i : items) todo.push_back({i, from});
  for (uint32_t ways = 0; !todo.empty(); ++ways) {
    if (ways == most_ways_) return false;
    At at = todo.back();
    todo.pop_back();
    charge(2);
    if (at.item.regex == RegexArena::poison()) {
      below.clear();
      walks.tokens_below(at.from, below);
      list(below, false);
      if (!below.empty()) out.worst = kNoBound;
      continue;
    }
    if (at.item.capture.v > 1) at.item.capture = CaptureArena::unknown();
    if (out.row && !without_wide(at.item, at.from, out)) continue;
    const TerminalWalk& walk = walks.walk(at.item.regex, at.from);
    if (!out.row && !(walk.inside.empty() && walk.ends.empty())) note(at.item, out.worst);
    for (const auto& part : walk.inside) list(part, true);
    for (const TerminalWalk::End& end : walk.ends) {
      const RegexId done = end.label == 0 ? RegexArena::epsilon() : parser_.regexes().done(end.label - 1);
      const Item ended{done, at.item.stack, at.item.capture};
      if (end.next == TerminalWalks::none() && !told_apart(ended)) {
        list(end.tokens, true);
        continue;
      }
      const Behind next = behind(ended);
      if (!next.any) continue;
      list(end.tokens, next.is_sure);
      if (end.next == TerminalWalks::none()) continue;
      // If two terminals end at the same nodes above the same stack, one walk is enough for both.
      if (!told_apart(ended) &&
          !met.emplace(static_cast<uint64_t>(ended.stack.v) << 32 | end.next.v, true).second)
        continue;
      const ByteSet& bytes = walks.bytes(end.next);
      for (const Item& i : next.items)
        if (i.regex == RegexArena::poison() || (parser_.regexes().live(i.regex) & bytes).any())
          todo.push_back({i, end.next});
    }
  }
  return true;
}

// Lists the tokens below a node of the trie that the items, or the state, allow.
void MaskBuilder::walk(uint32_t node, std::span<const Item> items, Collected& out) {
  if (!by_terminals(items, slices_.walks().nodes({&node, 1}), out, nullptr))
    walk_states(node, parser_.of_items({items.begin(), items.end()}, false), out);
}

void MaskBuilder::walk(uint32_t node, StateId from, Collected& out) {
  if (!by_terminals(parser_.items(from), slices_.walks().nodes({&node, 1}), out, nullptr))
    walk_states(node, from, out);
}

// Lists tokens by a walk that makes a state for each byte. A walk inside another walk (gather()) uses the
// same stack `todo_`, and touches only the entries that it pushed itself.
void MaskBuilder::walk_states(uint32_t node, StateId from, Collected& out) {
  check_depth();
  const std::size_t floor = todo_.size();
  const Undo rest([&] { todo_.resize(floor); });
  todo_.emplace_back(node, from);
  finish_walk(floor, out);
}

void MaskBuilder::finish_walk(std::size_t floor, Collected& out) {
  const TokenTrie& trie = vocabulary_.trie();
  while (todo_.size() > floor) {
    const auto [at, state] = todo_.back();
    todo_.pop_back();
    charge();
    const State& st = parser_.state(state);
    // All items are poison, so every longer token depends on captured text.
    if (st.poisoned && st.n == 1) {
      const auto below = trie.subtree_tokens(at).subspan(trie.tokens(at).size());
      out.unsure.insert(out.unsure.end(), below.begin(), below.end());
      if (!below.empty()) out.worst = kNoBound;
      continue;
    }
    trie.each_child(at, parser_.live(state),
                    [&, from = state](uint32_t child, uint8_t b) { read_on(child, from, b, out); });
  }
}

// Moves a walk to a child node, by the child's byte, and lists the tokens that end there. finish_walk()
// visits the nodes below.
void MaskBuilder::read_on(uint32_t child, StateId state, uint8_t byte, Collected& out) {
  const TokenTrie& trie = vocabulary_.trie();
  const auto tokens = trie.tokens(child);
  if (!out.plain && context_free_ && trie.leaf(child)) {
    // The byte may follow and no node lies below it, so the state behind it need not be made.
    out.sure.insert(out.sure.end(), tokens.begin(), tokens.end());
    out.worst = kNoBound;
    return;
  }
  const StateId next = blind(parser_.step(state, byte));
  if (next == Parser::dead()) return;
  if (!tokens.empty()) {
    std::vector<TokenId>& list = sure(next) ? out.sure : out.unsure;
    list.insert(list.end(), tokens.begin(), tokens.end());
    note(next, out.worst);
  }
  if (trie.leaf(child)) return;
  const std::size_t below = trie.subtree_tokens(child).size();
  if (below >= kShared && out.row && any_wide(next))
    gather(child, next, out);
  else
    todo_.emplace_back(child, next);
}

// Lists the tokens that leave a regex inside open subtrees (TerminalMask::open). For each byte that may
// follow the regex, leave_open() visits the nodes with this byte. A regex ends between characters only, so
// continuation bytes of UTF-8 are left out.
void MaskBuilder::leave_open(const TerminalMask& t, StateId left, Collected& out) {
  const std::size_t floor = todo_.size();
  const Undo rest([&] { todo_.resize(floor); });
  parser_.live(left).for_each([&](uint8_t b) {
    if ((b & 0xC0) == 0x80) return;
    auto subtree = t.open.begin();
    for (const uint32_t node : vocabulary_.runs().index().of(b)) {
      while (subtree != t.open.end() && subtree->second <= node) ++subtree;
      if (subtree == t.open.end()) return;
      // The regex ends at the first node of a subtree. That node's own byte leads into the subtree, not out
      // of the regex.
      if (subtree->first < node) read_on(node, left, b, out);
    }
  });
  finish_walk(floor, out);
}

StateId MaskBuilder::blind(StateId s) {
  if (!parser_.state(s).capturing) return s;
  if (const auto* known = blind_.find(s.v)) return *known;
  std::vector<Item> items;
  for (Item i : parser_.items(s)) {
    if (i.capture.v > 1) i.capture = CaptureArena::unknown();
    items.push_back(i);
  }
  const StateId out = parser_.of_items(std::move(items), parser_.state(s).accepting);
  blind_.emplace(s.v, out);
  return out;
}

// Tells whether a token that leads to this state is allowed for every captured text: some item is not poison,
// or the text may end.
bool MaskBuilder::sure(StateId s) const {
  const State& st = parser_.state(s);
  return !st.poisoned || st.n > 1 || st.accepting;
}

// Returns the tokens of a trie of endings that can be read from a state; they are remembered by trie and
// state. If the bounds were not measured when the lists were made, the walk is made again. Only the bounds of
// the second walk are kept, because masks point to the lists of the first.
const MaskBuilder::Ending& MaskBuilder::ending(const Suffixes& suffixes, StateId from) {
  std::unique_ptr<Ending>& slot = endings_[&suffixes][from.v];
  if (slot && measured(slot->worst)) return *slot;
  auto out = std::make_unique<Ending>();
  const Counts counts{out->sure_counts, out->unsure_counts};
  if (!suffixes.lasting || !by_terminals(parser_.items(from), slices_.walks().root(suffixes), *out, &counts))
    walk_suffixes(suffixes, from, *out, counts);
  out->worst = as_measured(out->worst);
  if (slot) {  // masks point to it
    slot->worst = out->worst;
    return *slot;
  }
  bytes_ += 170 + 8 * (out->sure.capacity() + out->unsure.capacity());
  slot = std::move(out);
  return *slot;
}

// Walks a trie of endings depth first, in time linear in its nodes. suffix_states_[d] is the state at depth d
// of the path.
void MaskBuilder::walk_suffixes(const Suffixes& suffixes, StateId from, Collected& out,
                                const Counts& counts) {
  const std::size_t base = suffix_states_.size();
  const Undo rest([&] { suffix_states_.resize(base); });
  suffix_states_.resize(base + suffixes.depth + 1);
  suffix_states_[base] = from;
  const uint32_t n = static_cast<uint32_t>(suffixes.nodes.size()) - 1;
  for (uint32_t i = 0; i < n;) {
    const Suffixes::Node& node = suffixes.nodes[i];
    charge();
    const StateId above = suffix_states_[base + node.depth - 1];
    if (!parser_.live(above).has(node.byte)) {
      i = node.end;
      continue;
    }
    const std::span<const Suffixes::Entry> here{suffixes.entries.data() + node.first,
                                                suffixes.entries.data() + suffixes.nodes[i + 1].first};
    const auto take = [&](bool is_sure) {
      for (const Suffixes::Entry& e : here) {
        (is_sure ? out.sure : out.unsure).push_back(e.token);
        (is_sure ? counts.sure : counts.unsure).push_back(e.count);
      }
    };
    if (node.end == i + 1 && context_free_) {
      take(true);
      out.worst = kNoBound;
      ++i;
      continue;
    }
    const StateId next = blind(parser_.step(above, node.byte));
    if (next == Parser::dead()) {
      i = node.end;
      continue;
    }
    suffix_states_[base + node.depth] = next;
    if (!here.empty()) note(next, out.worst);
    take(sure(next));
    ++i;
  }
}

// Tells whether the parser can read the bytes. accepts() is exact but slow, so it is called only for tokens
// that a walk left unsure.
bool MaskBuilder::accepts(StateId s, std::string_view bytes) {
  charge(1 + static_cast<int64_t>(bytes.size() / 4));
  return parser_.read(s, bytes) != Parser::dead();
}

}  // namespace structgen
