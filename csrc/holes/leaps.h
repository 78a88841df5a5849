// Leaps: what a byte, or any token, does to all regexes of a set.
//
// In: a set of regexes; a byte, or a set of nodes of the trie at which tokens go on. Out: the set of
// derivatives that are left, the labels of the regexes that may end, and the exits of tokens. Cost: a pass
// over the set, once for each byte and each set of nodes; a stride (holes/strides.h) for each regex of the
// set.
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

// What one byte, or any one token, does to a set of regexes. `left` are the derivatives that can read more
// bytes. `exits` are the trie nodes at which a regex ends while the token has more bytes.
struct Leap {
  RegexSetId left;
  // The labels of the regexes that may end exactly behind the byte or token; 0 stands for "no label".
  std::vector<uint32_t> labels;
  std::vector<Stride::Exit> exits;
};

class Leaps {
 public:
  Leaps(RegexArena& regexes, Strides& strides) : regexes_(regexes), strides_(strides) {}
  // Return the number of a set of regexes. The list that is passed gets sorted.
  RegexSetId set(std::vector<uint32_t>& regexes);
  RegexSetId set(RegexId r);
  const std::vector<uint32_t>& regexes(RegexSetId s) const { return sets_[s.v]; }
  // byte() returns what the byte b does to a set. tokens() returns what any token does that continues below
  // the trie nodes `from`.
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
  // The index in leaps_ of each leap: by set and byte, and by set and set of trie nodes.
  FlatMap<uint64_t, uint32_t> bytes_index_, tokens_index_;
  std::deque<Leap> leaps_;
  // The union of each list of sets of trie nodes that was asked for.
  std::map<std::vector<NodeSetId>, NodeSetId> unions_;
  std::size_t bytes_ = 0;
};

}  // namespace structgen
