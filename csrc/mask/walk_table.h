// The transitions that one walk of the trie needs, as a plain table.
//
// In: regexes. Out: numbers of states and their successors by byte, made as the walk asks for them. Cost: a
// kilobyte a state. A step of a regex costs a call, a step in the table one load, and a walk takes up to a
// quarter of a million steps, each of which waits for the one before.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "base/work.h"
#include "regex/regex.h"

namespace structgen {

// The transitions of one walk as a table: its states are regexes, by number, and state 0 is dead.
class WalkTable {
 public:
  static constexpr uint32_t kDead = 0, kUnknown = 0xFFFFFFFFu;
  // The units of work that a new step costs, in addition to its derivative.
  static constexpr int64_t kNewStep = 12;
  explicit WalkTable(RegexArena& regexes)
      : regexes_(regexes), states_{{RegexArena::empty(), false}}, successors_(kBytes, kDead) {}
  uint32_t state(RegexId r) {
    if (r == RegexArena::empty()) return kDead;
    const auto [it, fresh] = index_.try_emplace(r.v, size());
    if (fresh) {
      states_.push_back({r, regexes_.nullable(r)});
      if (it->second < kRows) successors_.resize(successors_.size() + kBytes, kUnknown);
    }
    return it->second;
  }
  uint32_t next(uint32_t s, uint8_t b) {
    const uint32_t known = s < kRows ? successors_[s * kBytes + b] : kUnknown;
    return known != kUnknown ? known : make(s, b);
  }
  RegexId regex(uint32_t s) const { return states_[s].regex; }
  bool ends(uint32_t s) const { return states_[s].ends; }
  const ClassMap& classes(uint32_t s) { return regexes_.classes(states_[s].regex); }
  uint32_t size() const { return static_cast<uint32_t>(states_.size()); }

 private:
  static constexpr std::size_t kBytes = 256;
  // Later states have no row: their steps are asked of the regexes each time.
  static constexpr std::size_t kRows = 4'096;
  struct State {
    RegexId regex;
    bool ends;
  };
  // Asks for a successor, and notes it for all bytes that the state treats alike. Kept out of next(), so that
  // a step of a walk is one load.
  [[gnu::noinline]] uint32_t make(uint32_t s, uint8_t b) {
    const ClassMap& alike = classes(s);
    const uint32_t before = size();
    const uint32_t to = state(regexes_.step(states_[s].regex, b));
    if (s < kRows || size() > before) charge(kNewStep);
    for (std::size_t i = 0; i < kBytes && s < kRows; ++i)
      if (alike.of[i] == alike.of[b]) successors_[s * kBytes + i] = to;
    return to;
  }
  RegexArena& regexes_;
  std::vector<State> states_;
  std::vector<uint32_t> successors_;
  std::unordered_map<uint32_t, uint32_t> index_;
};

}  // namespace structgen
