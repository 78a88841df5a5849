#include "regex/choice.h"

#include <algorithm>
#include <span>
#include <string_view>

#include "base/sorted.h"

namespace structgen {

namespace {
// At most this many texts are a union of literals, all of which a derivative visits. More texts become a
// tree.
constexpr std::size_t kFewTexts = 64;
// tree() calls itself for each branching node on the way down. Below this many of them it writes what is left
// as a union.
constexpr uint32_t kMostBranches = 200;

// Returns the regex of sorted, distinct texts without their first `depth` bytes, which are equal. `branches`
// is the number of branching nodes above this one.
RegexId tree(RegexArena& r, std::span<const std::string> texts, std::size_t depth, uint32_t branches) {
  std::vector<RegexId> parts;
  if (texts.size() <= kFewTexts || branches > kMostBranches) {
    for (const std::string& t : texts) parts.push_back(r.literal(std::string_view(t).substr(depth)));
    return r.alt(std::span<const RegexId>(parts));
  }
  // The texts are sorted, so what the first and the last begin with, all begin with.
  std::size_t same = depth;
  while (same < texts.front().size() && texts.front()[same] == texts.back()[same]) ++same;
  std::size_t begin = 0;
  while (begin < texts.size() && texts[begin].size() == same) ++begin;
  if (begin > 0) parts.push_back(RegexArena::epsilon());
  while (begin < texts.size()) {
    std::size_t end = begin;
    while (end < texts.size() && texts[end][same] == texts[begin][same]) ++end;
    const RegexId rest = tree(r, texts.subspan(begin, end - begin), same + 1, branches + 1);
    parts.push_back(r.cat(r.literal(std::string_view(texts[begin]).substr(same, 1)), rest));
    begin = end;
  }
  const RegexId branch = r.alt(std::span<const RegexId>(parts));
  return r.cat(r.literal(std::string_view(texts.front()).substr(depth, same - depth)), branch);
}
}  // namespace

RegexId one_of(RegexArena& regexes, std::vector<std::string> texts) {
  sort_unique(texts);
  return tree(regexes, texts, 0, 0);
}

}  // namespace structgen
