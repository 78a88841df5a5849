// Masks of states inside or before lexemes (names, numbers, comments of a programming language).
//
// In: a state whose items end where a lexeme ends. Out: its mask. Cost: a row of bits for each wide item, the
// endings of tokens that leave the item, and a short walk for all other tokens: operators, keywords, blanks.
//
// The token ` foo(` after `x =` in Python reads a blank, a name and a parenthesis. A walk from terminal to
// terminal reads the blank, and below the blank's node of the trie the name is a wide item again, which
// without_wide() takes from a slice. A walk from state to state takes the name at this node from the same
// slice (gather()).
#include <algorithm>

#include "base/sorted.h"
#include "mask/fill.h"

namespace structgen {

// Tells whether the state belongs to a grammar with lexemes. A kFollow on the stack shows it: behind a lexeme
// it forbids the bytes that would make the lexeme longer (no letter behind the name `x`).
bool MaskBuilder::lexed(StateId s) {
  if (context_free_) return true;
  if (parser_.state(s).capturing || parser_.state(s).poisoned) return false;
  for (const Item& i : parser_.items(s)) {
    if (i.capture.v != 0) return false;
    for (const StackEntry& e : parser_.stacks().entries(i.stack))
      if (e.top.kind() == Symbol::kFollow) return true;
  }
  return false;
}

// Tells whether some item, or some kid of a union, is a wide lexeme. Slices save work only for wide lexemes.
bool MaskBuilder::any_wide(StateId s) {
  if (const bool* known = any_wide_.find(s.v)) return *known;
  RegexArena& regexes = parser_.regexes();
  bool found = false;
  for (const Item& i : parser_.items(s)) {
    if (parser_.state(s).capturing) break;
    if (i.capture.v != 0) continue;
    const RegexNode n = regexes.node(i.regex);
    if (n.kind != RegexKind::kAlt) found = found || lexemes_.wide(i.regex);
    if (n.kind == RegexKind::kAlt && !n.labelled)
      for (uint32_t k = 0; k < n.n; ++k) found = found || lexemes_.wide(RegexId{n.kids[k]});
  }
  any_wide_.emplace(s.v, found);
  return found;
}

// Returns the bytes that each stack of the set forbids, as a key of slices: many states forbid the same
// bytes. The key leaves out bytes that cannot be read from `left`, because these differ from state to state.
RegexId MaskBuilder::forbidden(StackId stack, StateId left) {
  const auto entries = parser_.stacks().entries(stack);
  RegexArena& regexes = parser_.regexes();
  ByteSet out = ByteSet::all();
  for (const StackEntry& e : entries)
    out &= e.top.kind() == Symbol::kFollow ? regexes.byte_set(regexes.node(e.top.regex()).a) : ByteSet{};
  // kFollow forbids single bytes, but the first byte of a character above ASCII does not tell the character.
  // If none of these bytes can be read from `left`, all count as forbidden.
  constexpr ByteSet kBeyondAscii = ByteSet::range(0x80, 0xFF);
  if ((parser_.live(left) & kBeyondAscii).none()) out |= kBeyondAscii;
  return out.none() ? RegexArena::empty() : regexes.bytes(out);
}

// Adds the tokens of one wide lexeme. The tokens inside the lexeme come from the slice. The tokens that leave
// the lexeme come from the ending of the state behind it, without the tokens that the slice blocks.
void MaskBuilder::add(uint32_t node, RegexId regex, StackId stack, Collected& out) {
  const StateId left = parser_.continuation(stack, CaptureId{0});
  const LexemeSlice& slice = lexemes_.slice(regex, node, forbidden(stack, left));
  out.sure.insert(out.sure.end(), slice.few.begin(), slice.few.end());
  if (slice.inside) {
    Words& row = *out.row;
    const Words& from = *slice.inside;
    // The slice's row has tokens that this lexeme lacks (`lost`). These tokens are cleared afterwards, unless
    // the row had them before because of another item.
    std::vector<TokenId> absent;
    for (TokenId t : slice.lost)
      if (!((row[static_cast<uint32_t>(t) >> 5] >> (t & 31)) & 1)) absent.push_back(t);
    for (std::size_t i = 0; i < row.size(); ++i) row[i] |= from[i];
    for (TokenId t : absent) clear_bit(row.data(), t);
    out.row_used = true;
  }
  if (slice.exits->entries.empty() || left == Parser::dead()) return;
  const Ending& end = ending(*slice.exits, left);
  const auto take = [&](const std::vector<TokenId>& tokens, const std::vector<uint32_t>& depths,
                        std::vector<TokenId>& to) {
    if (slice.blocked.empty()) {
      to.insert(to.end(), tokens.begin(), tokens.end());
      return;
    }
    for (std::size_t i = 0; i < tokens.size(); ++i)
      if (!std::binary_search(slice.blocked.begin(), slice.blocked.end(), std::pair{tokens[i], depths[i]}))
        to.push_back(tokens[i]);
  };
  take(end.sure, end.sure_counts, out.sure);
  take(end.unsure, end.unsure_counts, out.unsure);
}

// Takes the wide lexemes out of an item. Below nodes with many tokens, slices add their tokens. `item` and
// `from` become what is still to be read; returns false if that is nothing.
bool MaskBuilder::without_wide(Item& item, NodeSetId& from, Collected& out) {
  RegexArena& regexes = parser_.regexes();
  const RegexNode n = regexes.node(item.regex);
  std::vector<RegexId> wide, rest;
  if (item.capture.v != 0 || n.labelled) return true;
  if (n.kind == RegexKind::kAlt) {
    for (uint32_t k = 0; k < n.n; ++k)
      (lexemes_.wide(RegexId{n.kids[k]}) ? wide : rest).push_back(RegexId{n.kids[k]});
  } else if (lexemes_.wide(item.regex)) {
    wide.push_back(item.regex);
  }
  if (wide.empty()) return true;
  const TokenTrie& trie = vocabulary_.trie();
  TerminalWalks& walks = slices_.walks();
  std::vector<uint32_t> small;
  const auto nodes = walks.nodes_of(from);
  for (uint32_t node : nodes) {
    if (trie.subtree_tokens(node).size() < kShared) {
      small.push_back(node);
      continue;
    }
    for (RegexId r : wide) add(node, r, item.stack, out);
    if (!rest.empty()) {
      const Item narrow{regexes.alt(std::span<const RegexId>(rest)), item.stack, item.capture};
      walk(node, {&narrow, 1}, out);
    }
  }
  from = walks.nodes(small);
  return from != TerminalWalks::none();
}

// Adds all tokens below the node that the state allows: those of wide lexemes from slices, the others by one
// walk.
void MaskBuilder::gather(uint32_t node, StateId s, Collected& out) {
  RegexArena& regexes = parser_.regexes();
  std::vector<Item> narrow;
  const std::vector<Item> items(parser_.items(s).begin(), parser_.items(s).end());
  for (const Item& i : items) {
    const RegexNode n = regexes.node(i.regex);
    if (i.capture.v != 0 || n.labelled) {
      narrow.push_back(i);
    } else if (n.kind == RegexKind::kAlt) {
      std::vector<RegexId> rest;
      const std::vector<uint32_t> kids(n.kids, n.kids + n.n);
      for (uint32_t k : kids)
        if (lexemes_.wide(RegexId{k}))
          add(node, RegexId{k}, i.stack, out);
        else
          rest.push_back(RegexId{k});
      if (!rest.empty()) narrow.push_back({regexes.alt(std::span<const RegexId>(rest)), i.stack, i.capture});
    } else if (lexemes_.wide(i.regex)) {
      add(node, i.regex, i.stack, out);
    } else {
      narrow.push_back(i);
    }
  }
  if (!narrow.empty()) walk(node, narrow, out);
}

// Makes the whole mask of a state of a grammar with lexemes. It is a list if no lexeme is wide, otherwise a
// row.
const Mask* MaskBuilder::gathered(StateId s) {
  Words row(vocabulary_.words());
  Collected found;
  found.row = &row;
  if (!vocabulary_.trie().leaf(0)) gather(0, s, found);
  for (TokenId t : found.unsure)
    if (accepts(s, vocabulary_.bytes(t))) found.sure.push_back(t);
  std::vector<TokenId> removed;
  if (!found.row_used) {
    sort_unique(found.sure);
    return finish(s, nullptr, nullptr, removed, found.sure, false);
  }
  for (TokenId t : found.sure) set_bit(row, t);
  return publish(s, {.dense = pool_.copy(std::span<const uint32_t>(row)).data()});
}

}  // namespace structgen
