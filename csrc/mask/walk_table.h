// The transitions that one walk of the trie needs, as plain tables.
//
// In: regexes. Out: numbers of states and their successors, made as the walk asks for them. Cost: a word
// for each class of bytes of a state. A step of a regex costs a call, a step in the table three loads, and
// a walk takes up to a quarter of a million steps.
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
      : regexes_(regexes),
        states_{{RegexArena::empty(), regexes.class_maps().one(), kToDead, false}},
        successors_{kDead, kUnknown} {}
  uint32_t state(RegexId r) {
    if (r == RegexArena::empty()) return kDead;
    const auto [it, fresh] = index_.try_emplace(r.v, size());
    // Many states make no step. The table's row for a state is made at its first step.
    if (fresh) states_.push_back({r, regexes_.class_maps().one(), kNoRow, regexes_.nullable(r)});
    return it->second;
  }
  uint32_t next(uint32_t s, uint8_t b) {
    const State& from = states_[s];
    const uint32_t known = successors_[from.first + from.classes->of[b]];
    return known != kUnknown ? known : make(s, b);
  }
  RegexId regex(uint32_t s) const { return states_[s].regex; }
  bool ends(uint32_t s) const { return states_[s].ends; }
  const ClassMap& classes(uint32_t s) { return regexes_.classes(states_[s].regex); }
  uint32_t size() const { return static_cast<uint32_t>(states_.size()); }

 private:
  // Two rows of successors_ are shared: dead states have the row at kToDead, and states without a row of
  // their own have the row at kNoRow.
  static constexpr uint32_t kToDead = 0, kNoRow = 1;
  struct State {
    RegexId regex;
    const ClassMap* classes;
    // The index in successors_ of this state's successor by class 0; those by classes 1, 2, ... follow it.
    uint32_t first;
    bool ends;
  };
  // Kept out of next(), so that next() becomes three loads of the walk.
  [[gnu::noinline]] uint32_t make(uint32_t s, uint8_t b) {
    if (states_[s].first == kNoRow) {
      const ClassMap& classes = this->classes(s);
      states_[s].classes = &classes;
      states_[s].first = static_cast<uint32_t>(successors_.size());
      successors_.resize(successors_.size() + classes.n, kUnknown);
    }
    charge(kNewStep);
    const uint32_t to = state(regexes_.step(states_[s].regex, b));
    return successors_[states_[s].first + states_[s].classes->of[b]] = to;
  }
  RegexArena& regexes_;
  std::vector<State> states_;
  std::vector<uint32_t> successors_;
  std::unordered_map<uint32_t, uint32_t> index_;
};

}  // namespace structgen
