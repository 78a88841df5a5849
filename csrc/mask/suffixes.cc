#include "mask/suffixes.h"

#include <algorithm>

namespace structgen {

namespace {

bool before(const SuffixText& x, const SuffixText& y) {
  if (const int c = x.text.compare(y.text)) return c < 0;
  return x.entry.token < y.entry.token;
}

// Sorts by text and token. The endings of one subtree of the vocabulary's trie come in order, and often
// one subtree holds most of them, so parts that are in order are merged, as in a natural merge sort.
void sort_parts(std::vector<SuffixText>& texts) {
  // Ends of the parts that are in order.
  std::vector<std::size_t> ends;
  for (std::size_t i = 1; i <= texts.size(); ++i)
    if (i == texts.size() || before(texts[i], texts[i - 1])) ends.push_back(i);
  // If parts are shorter on average, merging is no help, and the texts are sorted.
  constexpr std::size_t kLong = 8;
  if (ends.size() * kLong > texts.size()) return std::sort(texts.begin(), texts.end(), before);
  const auto at = [&](std::size_t i) { return texts.begin() + static_cast<std::ptrdiff_t>(i); };
  while (ends.size() > 1) {
    std::vector<std::size_t> merged;
    for (std::size_t k = 0; k < ends.size(); k += 2) {
      if (k + 1 < ends.size())
        std::inplace_merge(at(k ? ends[k - 1] : 0), at(ends[k]), at(ends[k + 1]), before);
      merged.push_back(ends[std::min(k + 1, ends.size() - 1)]);
    }
    ends = std::move(merged);
  }
}

std::size_t shared(std::string_view x, std::string_view y) {
  return static_cast<std::size_t>(std::mismatch(x.begin(), x.end(), y.begin(), y.end()).first - x.begin());
}

}  // namespace

// Texts come sorted, so `path` holds the nodes of the text before, and each text closes the nodes that
// it does not share with that one.
void build_suffixes(std::vector<SuffixText> texts, Suffixes& out) {
  sort_parts(texts);
  std::size_t nodes = 1;
  for (std::size_t i = 0; i < texts.size(); ++i)
    nodes += texts[i].text.size() - (i ? shared(texts[i - 1].text, texts[i].text) : 0);
  out.nodes.reserve(nodes);
  out.entries.reserve(texts.size());
  std::vector<uint32_t> path;  // node at depth 1, 2, ...
  std::string_view last;
  const auto close_to = [&](std::size_t depth) {
    for (; path.size() > depth; path.pop_back())
      out.nodes[path.back()].end = static_cast<uint32_t>(out.nodes.size());
  };
  for (const auto& [text, entry] : texts) {
    close_to(shared(last, text));
    while (path.size() < text.size()) {
      Suffixes::Node n;
      n.byte = static_cast<uint8_t>(text[path.size()]);
      n.depth = static_cast<uint32_t>(path.size() + 1);
      n.first = static_cast<uint32_t>(out.entries.size());
      out.depth = std::max(out.depth, n.depth);
      path.push_back(static_cast<uint32_t>(out.nodes.size()));
      out.nodes.push_back(n);
    }
    out.entries.push_back(entry);
    last = text;
  }
  close_to(0);
  Suffixes::Node sentinel;
  sentinel.first = static_cast<uint32_t>(out.entries.size());
  out.nodes.push_back(sentinel);
}

}  // namespace structgen
