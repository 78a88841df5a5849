#include "grammar/substring.h"

#include <map>
#include <memory>
#include <unordered_map>

#include "base/error.h"
#include "regex/regex.h"

namespace structgen {

namespace {

constexpr std::size_t kMaxUnits = 2'000'000;

// The suffix automaton of the units, as a lazy language. Every state accepts, because a text may end behind
// any unit.
class SuffixAutomaton : public LazyLanguage {
 public:
  explicit SuffixAutomaton(const std::vector<std::string>& units) {
    std::unordered_map<std::string, uint32_t> numbers;
    states_.emplace_back();
    states_[0].link = kNone;
    uint32_t last = 0;
    for (const std::string& unit : units) {
      const auto [it, fresh] = numbers.try_emplace(unit, static_cast<uint32_t>(texts_.size()));
      if (fresh) texts_.push_back(unit);
      last = extend(last, it->second);
    }
  }

  RegexId unfold(RegexArena& arena, uint32_t s) override { return arena.optional(first(arena, s)); }
  // Returns the non-empty texts that can be read from state s.
  RegexId first(RegexArena& arena, uint32_t s) {
    std::vector<RegexId> parts;
    for (const auto& [unit, to] : states_[s].next)
      parts.push_back(arena.cat(arena.literal(texts_[unit]), arena.lazy(definition, to, true, false)));
    return arena.alt(std::span<const RegexId>(parts));
  }

 private:
  static constexpr uint32_t kNone = 0xFFFFFFFFu;
  // `link` is the state of the longest suffix that also occurs elsewhere. `length` counts the units of the
  // longest text that leads to this state.
  struct State {
    std::map<uint32_t, uint32_t> next;
    uint32_t link = 0, length = 0;
  };
  // Adds one unit, in amortised constant time. As in any suffix automaton, a state is copied if its longest
  // text no longer occurs wherever its shorter texts do.
  uint32_t extend(uint32_t last, uint32_t unit) {
    const uint32_t me = static_cast<uint32_t>(states_.size());
    states_.emplace_back();
    states_[me].length = states_[last].length + 1;
    uint32_t p = last;
    for (; p != kNone && !states_[p].next.count(unit); p = states_[p].link) states_[p].next[unit] = me;
    if (p == kNone) return me;
    const uint32_t q = states_[p].next[unit];
    if (states_[p].length + 1 == states_[q].length) {
      states_[me].link = q;
      return me;
    }
    const uint32_t copy = static_cast<uint32_t>(states_.size());
    states_.push_back(states_[q]);
    states_[copy].length = states_[p].length + 1;
    for (; p != kNone && states_[p].next.count(unit) && states_[p].next[unit] == q; p = states_[p].link)
      states_[p].next[unit] = copy;
    states_[q].link = states_[me].link = copy;
    return me;
  }
  std::vector<std::string> texts_;
  std::vector<State> states_;
};

}  // namespace

RegexId substring(RegexArena& regexes, const std::vector<std::string>& units, uint32_t least) {
  if (units.size() > kMaxUnits) throw Error(ErrorKind::kSchemaTooComplex, "the text has too many units");
  const RegexId some = regexes.define<SuffixAutomaton>(units).first(regexes, 0);
  return least == 0 ? regexes.optional(some) : some;
}

}  // namespace structgen
