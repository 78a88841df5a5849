// The beginnings of a regex's texts, as a language that unfolds a byte at a time.
//
// In: a regex, and an aim: a condition on the derivative that is left behind a beginning. Out: the regex of
// all beginnings whose derivative meets the aim. Cost: one state for each pair of a derivative and an aim
// that a text reaches.
//
// An Aim is a value with an order, and met(arena, regex) tells whether a derivative meets it. Of `abc` the
// beginnings behind which `c` is a whole text are `ab`.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "base/undo.h"
#include "base/work.h"
#include "regex/regex.h"

namespace structgen {

// Lazy languages of beginnings of texts. A text belongs to the language of (regex, aim) if the derivative of
// the regex by the text meets the aim.
template <class Aim>
class Leading : public LazyLanguage {
 public:
  using State = std::pair<RegexId, Aim>;
  RegexId make(RegexArena& arena, RegexId from, const Aim& aim) {
    if (from == RegexArena::empty()) return from;
    const State state(from, aim);
    return arena.lazy(definition, numbered(index_, states_, state, state), aim.met(arena, from), true);
  }
  const State& state(uint32_t n) const { return states_[n]; }
  std::size_t byte_size() const { return states_.size() * (2 * sizeof(State) + 80); }
  RegexId unfold(RegexArena& arena, uint32_t n) override {
    const auto [from, aim] = states_[n];
    std::vector<RegexId> parts;
    if (aim.met(arena, from)) parts.push_back(RegexArena::epsilon());
    const ClassMap& classes = arena.classes(from);
    std::vector<ByteSet> sets(classes.n);
    arena.steps(from).for_each([&](uint8_t b) { sets[classes.of[b]].add(b); });
    for (const ByteSet& set : sets) {
      if (set.none()) continue;
      charge();
      const RegexId after = arena.step(from, static_cast<uint8_t>(set.first()));
      parts.push_back(arena.cat(arena.bytes(set), make(arena, after, aim)));
    }
    return arena.alt(std::span<const RegexId>(parts));
  }

 private:
  std::vector<State> states_;
  std::map<State, uint32_t> index_;
};

}  // namespace structgen
