#include "holes/leaps.h"

#include <algorithm>

#include "base/sorted.h"
#include "base/undo.h"
#include "base/work.h"

namespace structgen {

RegexSetId Leaps::set(std::vector<uint32_t>& regexes) {
  sort_unique(regexes);
  const std::size_t known = sets_.size();
  const RegexSetId out{set_index_.number(hash_words(regexes, 11), sets_, regexes)};
  if (sets_.size() > known) bytes_ += 32 + regexes.size() * 4;
  return out;
}

RegexSetId Leaps::set(RegexId r) {
  std::vector<uint32_t> one{r.v};
  return set(one);
}

// Adds a derivative to `left` if it can read a byte. If it may end, adds its label to `out`.
void Leaps::meet(RegexId to, std::vector<uint32_t>& left, Leap& out) const {
  const RegexNode& n = regexes_.node(to);
  if (!n.only_ends()) left.push_back(to.v);
  if (n.nullable && std::ranges::find(out.labels, n.label()) == out.labels.end())
    out.labels.push_back(n.label());
}

uint32_t Leaps::add(Leap leap, std::vector<uint32_t>& left) {
  leap.left = set(left);
  leaps_.push_back(std::move(leap));
  return static_cast<uint32_t>(leaps_.size() - 1);
}

const Leap& Leaps::byte(RegexSetId s, uint8_t b) {
  return leaps_[bytes_index_.remember(uint64_t{s.v} << 32 | b, [&] {
    Leap out;
    std::vector<uint32_t> left;
    charge(static_cast<int64_t>(sets_[s.v].size() / 4));
    for (uint32_t r : sets_[s.v])
      if (const RegexId d = regexes_.step(RegexId{r}, b); d != RegexArena::empty()) meet(d, left, out);
    return add(std::move(out), left);
  })];
}

const Leap& Leaps::tokens(RegexSetId s, NodeSetId from) {
  return leaps_[tokens_index_.remember(uint64_t{s.v} << 32 | from.v, [&] {
    Leap out;
    std::vector<uint32_t> left;
    // For each label, the sets of trie nodes at which tokens leave a regex with this label.
    std::map<uint32_t, std::vector<NodeSetId>> exits;
    for (uint32_t r : sets_[s.v]) {
      const Stride& one = strides_.stride(RegexId{r}, from);
      charge(static_cast<int64_t>(one.left.size()));
      for (const Stride::Left& l : one.left) meet(l.regex, left, out);
      for (const Stride::Exit& x : one.exits) exits[x.label].push_back(x.nodes);
    }
    for (auto& [label, sets] : exits) out.exits.push_back({label, united(sets)});
    bytes_ += sizeof(Leap) + 16 * out.exits.size();
    return add(std::move(out), left);
  })];
}

// Returns the union of sets of trie nodes. Unions are remembered, because many sets of regexes need the same
// one.
NodeSetId Leaps::united(std::vector<NodeSetId>& sets) {
  sort_unique(sets);
  return remember(unions_, sets, [&] { return strides_.sets().unite(sets); });
}

}  // namespace structgen
