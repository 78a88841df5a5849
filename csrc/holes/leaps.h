// Leaps: what a byte, or any token, does to all regexes of a set.
//
// In: a set of regexes; a byte, or a set of nodes of the trie at which tokens go on. Out: the set of regexes
// that are left, the labels of those that may end, and the exits of tokens. Cost: a pass over the set, once
// for each byte and each set of nodes; a stride (holes/strides.h) for each of its regexes.
//
// Example, the set {`ab`, `a`} and the byte `a`: `b` is left, and a regex without a label may end.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "base/flat_map.h"
#include "base/ids.h"
#include "base/intern.h"
#include "holes/strides.h"
#include "regex/regex.h"

namespace structgen {

using RegexSetId = Id<struct RegexSetTag>;

struct Leap {
  RegexSetId left;
  // The labels of the regexes that may end.
  std::vector<uint32_t> labels;
  std::vector<Stride::Exit> exits;
};

class Leaps {
 public:
  Leaps(RegexArena& regexes, Strides& strides) : regexes_(regexes), strides_(strides) {}
  RegexSetId set(std::vector<uint32_t>& regexes);
  RegexSetId set(RegexId r);
  // Returns the regexes of a set, in ascending order.
  const std::vector<uint32_t>& regexes(RegexSetId s) const { return sets_[s.v]; }
  const Leap& byte(RegexSetId s, uint8_t b);
  const Leap& tokens(RegexSetId s, NodeSetId from);
  std::size_t byte_size() const { return bytes_; }

 private:
  void meet(RegexId to, std::vector<uint32_t>& left, Leap& out) const;
  NodeSetId united(std::vector<NodeSetId>& sets);
  uint32_t add(Leap leap, std::vector<uint32_t>& left);

  RegexArena& regexes_;
  Strides& strides_;
  std::vector<std::vector<uint32_t>> sets_;
  InternTable set_index_;
  // The indices in leaps_, by set and byte, and by set and set of nodes.
  FlatMap<uint64_t, uint32_t> bytes_index_, tokens_index_;
  std::deque<Leap> leaps_;
  // The union of sets of nodes.
  std::map<std::vector<NodeSetId>, NodeSetId> unions_;
  std::size_t bytes_ = 0;
};

}  // namespace structgen
