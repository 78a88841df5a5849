// Each place is followed down the trie to the end of the text; from there, longer() looks for a token
// that goes on. See open_places.h.
#include "engine/open_places.h"

#include "base/depth.h"
#include "mask/token_trie.h"

namespace structgen {

namespace {

// Returns true if a token begins with the text of this trie node and goes on with bytes that may follow the
// state s.
bool longer(const TokenTrie& trie, Parser& parser, uint32_t node, StateId s) {
  check_depth();
  if (trie.leaf(node) || s == Parser::dead()) return false;
  const TokenTrie::Kids& kids = trie.kids(node);
  const ByteSet next = kids.set & parser.live(s);
  bool found = false;
  next.for_each([&](uint8_t b) {
    if (found) return;
    const uint32_t child = trie.child(kids, b);
    found = !trie.tokens(child).empty() || longer(trie, parser, child, parser.step(s, b));
  });
  return found;
}

}  // namespace

std::vector<std::size_t> open_places(const Vocabulary& vocabulary, Parser& parser, StateId s,
                                     std::string_view text) {
  std::vector<std::size_t> out;
  const TokenTrie& trie = vocabulary.trie();
  const std::size_t longest = vocabulary.longest();
  for (std::size_t at = text.size() > longest ? text.size() - longest : 0; at < text.size(); ++at) {
    uint32_t node = 0;
    std::size_t end = at;
    while (end < text.size() && !trie.leaf(node)) {
      const TokenTrie::Kids& kids = trie.kids(node);
      const uint8_t b = static_cast<uint8_t>(text[end]);
      if (!kids.set.has(b)) break;
      node = trie.child(kids, b);
      ++end;
    }
    if (end == text.size() && longer(trie, parser, node, s)) out.push_back(at);
  }
  return out;
}

}  // namespace structgen
