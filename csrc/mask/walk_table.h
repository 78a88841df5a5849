// The transitions that one walk of the trie needs, as plain tables.
//
// In: regexes. Out: numbers of states and their successors, made as the walk asks for them. Cost: 1 kB
// a state. A step of a regex costs a call, a step in the table a load, and a walk takes a quarter of a
// million steps.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "base/work.h"
#include "regex/regex.h"

namespace structgen {

// State 0 is the dead one. A table lives for one walk.
class WalkTable {
 public:
  static constexpr uint32_t kDead = 0, kUnknown = 0xFFFFFFFFu;
  // Units of work for a step that is made for the first time, beside those of the derivative.
  static constexpr int64_t kNewStep = 12;
  explicit WalkTable(RegexArena& regexes) : regexes_(regexes), ids_{RegexArena::empty()}, rows_(256, kDead) {}
  // The number of a regex, new or known.
  uint32_t state(RegexId r) {
    if (r == RegexArena::empty()) return kDead;
    const auto [it, fresh] = index_.try_emplace(r.v, static_cast<uint32_t>(ids_.size()));
    if (fresh) {
      ids_.push_back(r);
      ends_.push_back(regexes_.nullable(r));
      rows_.resize(rows_.size() + 256, kUnknown);
    }
    return it->second;
  }
  uint32_t next(uint32_t s, uint8_t b) {
    const uint32_t known = rows_[s * 256ull + b];
    if (known != kUnknown) return known;
    charge(kNewStep);
    const uint32_t to = state(regexes_.step(ids_[s], b));
    rows_[s * 256ull + b] = to;
    return to;
  }
  RegexId regex(uint32_t s) const { return ids_[s]; }
  bool ends(uint32_t s) const { return ends_[s]; }
  // Bytes of one class lead to the same state.
  const ClassMap& classes(uint32_t s) { return regexes_.classes(ids_[s]); }
  uint32_t size() const { return static_cast<uint32_t>(ids_.size()); }

 private:
  RegexArena& regexes_;
  std::vector<RegexId> ids_;
  std::vector<char> ends_{false};
  std::vector<uint32_t> rows_;
  std::unordered_map<uint32_t, uint32_t> index_;
};

}  // namespace structgen
