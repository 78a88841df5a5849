#include "mask/suffixes.h"

#include <algorithm>

namespace structgen {

namespace {
struct Ending {
  uint64_t head;  // its first eight bytes, so that most comparisons look no further
  std::string_view text;
  Suffixes::Entry entry;
};

uint64_t head_of(std::string_view text) {
  uint64_t out = 0;
  for (std::size_t i = 0; i < 8; ++i) out = (out << 8) | (i < text.size() ? static_cast<uint8_t>(text[i]) : 0);
  return out;
}

}  // namespace

void build_suffixes(const std::vector<SuffixText>& texts, Suffixes& out) {
  std::vector<Ending> endings;
  endings.reserve(texts.size());
  for (const SuffixText& t : texts) endings.push_back({head_of(t.text), t.text, t.entry});
  std::sort(endings.begin(), endings.end(), [](const Ending& x, const Ending& y) {
    if (x.head != y.head) return x.head < y.head;
    if (const int c = x.text.compare(y.text)) return c < 0;
    return x.entry.token < y.entry.token;
  });
  std::vector<uint32_t> path;  // node at depth 1, 2, ...
  std::string_view last;
  const auto close_to = [&](std::size_t depth) {
    for (; path.size() > depth; path.pop_back()) out.nodes[path.back()].end = static_cast<uint32_t>(out.nodes.size());
  };
  for (const auto& [head, text, entry] : endings) {
    const std::size_t shared = static_cast<std::size_t>(
        std::mismatch(last.begin(), last.end(), text.begin(), text.end()).first - last.begin());
    close_to(shared);
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
