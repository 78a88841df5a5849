#include "mask/lexeme_slices.h"

#include <algorithm>
#include <bit>

#include "base/depth.h"
#include "mask/node_sets.h"
#include "mask/subtrees.h"
#include "mask/walk_table.h"

namespace structgen {

namespace {
// A regex is wide if at least this many bytes may follow in it.
constexpr int kWideLexeme = 40;
// If at least this many bytes may follow, a regex is wide if one of them leads to a regex in which as many
// may follow again, as in names and hexadecimal numbers.
constexpr int kOpenBytes = 20;
// A slice with more tokens inside than this keeps them as a row, otherwise as a list.
constexpr std::size_t kListed = 500;
// difference() gives up after this many trie nodes.
constexpr uint32_t kDifference = 3'000;
}  // namespace

bool LexemeSlices::wide(RegexId regex) {
  if (const auto it = wide_.find(regex.v); it != wide_.end()) return it->second;
  const RegexNode n = regexes_.node(regex);
  if (n.kind == RegexKind::kLiteralSet || n.labelled || regex == RegexArena::poison()) return false;
  const int live = regexes_.live(regex).count();
  bool found = live >= kWideLexeme;
  if (!found && live >= kOpenBytes) {
    const ClassMap& classes = regexes_.classes(regex);
    for (uint16_t k = 0; k < classes.n && !found; ++k)
      found = regexes_.live(regexes_.step(regex, classes.rep[k])).count() >= kOpenBytes;
  }
  wide_.emplace(regex.v, found);
  return found;
}

const LexemeSlice& LexemeSlices::slice(RegexId regex, uint32_t node, RegexId forbidden) {
  check_depth();
  std::unique_ptr<LexemeSlice>& slot = slices_[{regex.v, node, forbidden.v}];
  if (slot) return *slot;
  auto out = std::make_unique<LexemeSlice>();
  if (!difference(regex, node, forbidden, *out)) whole(regex, node, forbidden, *out);
  bytes_ += 200 + 4 * (out->few.capacity() + out->lost.capacity()) + 8 * out->blocked.capacity();
  slot = std::move(out);
  return *slot;
}

// Makes a slice by a walk below the node. Where the regex may end, a token leaves it by each byte of `open`,
// the bytes that may follow it: `a+b` leaves a name at `+`, and `ab` would leave it at `b` if `b` were not
// forbidden. If the regex reads a whole subtree without leaving a few states, the subtree is taken as a whole
// (subtrees.h).
void LexemeSlices::whole(RegexId regex, uint32_t node, RegexId forbidden, LexemeSlice& out) {
  const TokenTrie& trie = vocabulary_.trie();
  ByteSet open = ByteSet::all();
  if (forbidden != RegexArena::empty()) open = ~regexes_.byte_set(regexes_.node(forbidden).a);
  WalkTable table(regexes_);
  const uint32_t top = trie.node(node).depth;
  Loops loops(trie, table, true);
  Categories open_categories = 0;
  open.for_each([&](uint8_t b) { open_categories |= category(b); });
  // A list would take half a megabyte of new memory for a comment, so the tokens are collected in a row.
  auto inside = std::make_shared<LexemeSlice::Words>(vocabulary_.words());
  std::size_t count = 0;
  std::vector<SuffixStart> left;
  read_nodes(table, VocabularyTrie{trie}, node + 1, trie.node(node).end, table.state(regex),
             [&](uint32_t i, uint32_t from, uint32_t to) {
               const TokenTrie::Node& n = trie.node(i);
               // At the start node the lexeme is still empty. What follows an empty lexeme is read by another
               // item of the state.
               if (n.depth > top + 1 && open.has(static_cast<uint8_t>(n.byte)) && table.ends(from))
                 left.push_back({i, n.depth - 1u});
               if (to == WalkTable::kDead) return false;
               const bool all =
                   n.end > i + kLoopsBelow && loops.worth(i, to) && loops.cover(i, to, open_categories);
               const auto tokens = all ? trie.subtree_tokens(i) : trie.tokens(i);
               for (TokenId t : tokens) set_bit(*inside, t);
               count += tokens.size();
               return !all;
             });
  out.exits = std::make_shared<Suffixes>();
  build_suffixes(trie, std::move(left), *out.exits);
  bytes_ += out.exits->nodes.capacity() * sizeof(Suffixes::Node) +
            out.exits->entries.capacity() * sizeof(Suffixes::Entry);
  if (count > kListed) {
    out.inside = std::move(inside);
    bytes_ += 4ull * vocabulary_.words();
    return;
  }
  for_each_token(*inside, [&](TokenId t) { out.few.push_back(t); });
}

// Makes the slice of base & not(some words), such as a name that is no keyword, from the slice of `base`. The
// walk steps both regexes and goes down only where they differ: along the letters of the words. Returns false
// if the regex has another form, or differs from `base` at many nodes.
bool LexemeSlices::difference(RegexId regex, uint32_t node, RegexId forbidden, LexemeSlice& out) {
  const std::vector<RegexId> kept = regexes_.without_words(regex);
  if (kept.empty()) return false;
  const RegexId base = regexes_.both(std::span<const RegexId>(kept));
  if (base == regex) return false;
  const TokenTrie& trie = vocabulary_.trie();
  struct Frame {
    uint32_t node;
    RegexId r, b;
  };
  std::vector<Frame> todo{{node, regex, base}};
  std::vector<TokenId> lost;
  std::vector<std::pair<TokenId, uint32_t>> blocked;
  uint32_t visited = 0;
  while (!todo.empty()) {
    const Frame f = todo.back();
    todo.pop_back();
    const TokenTrie::Kids& kids = trie.kids(f.node);
    bool fits = true;
    kids.set.for_each([&](uint8_t b) {
      if (!fits) return;
      const RegexId r = regexes_.step(f.r, b), to = regexes_.step(f.b, b);
      if (r == to) return;
      const uint32_t child = trie.child(kids, b);
      // The base reads on where the regex does not, so more than words is excluded, and the walk would be
      // long.
      if (r == RegexArena::empty() && regexes_.live(to).any()) {
        fits = false;
        return;
      }
      const uint32_t depth = trie.node(child).depth;
      const auto tokens = trie.tokens(child);
      if (r == RegexArena::empty()) lost.insert(lost.end(), tokens.begin(), tokens.end());
      if (regexes_.nullable(to) && !regexes_.nullable(r))
        for (TokenId t : trie.subtree_tokens(child).subspan(tokens.size())) blocked.emplace_back(t, depth);
      if (r != RegexArena::empty() && !trie.leaf(child)) todo.push_back({child, r, to});
    });
    visited += static_cast<uint32_t>(kids.set.count()) + 1;
    if (!fits || visited > kDifference) return false;
  }
  const LexemeSlice& from = slice(base, node, forbidden);
  out = from;
  std::sort(lost.begin(), lost.end());
  std::sort(blocked.begin(), blocked.end());
  std::erase_if(out.few, [&](TokenId t) { return std::binary_search(lost.begin(), lost.end(), t); });
  if (out.inside) {
    out.lost.insert(out.lost.end(), lost.begin(), lost.end());
    std::sort(out.lost.begin(), out.lost.end());
  }
  out.blocked.insert(out.blocked.end(), blocked.begin(), blocked.end());
  std::sort(out.blocked.begin(), out.blocked.end());
  return true;
}

}  // namespace structgen
