// Shortest completions: what would finish a text from a state.
//
// In: a parser, its productions, a state. Out: a text that completes it, as short as this search proves.
// Cost: proportional to the rules a completion goes through, memoised; computed only when a budget is asked
// for, because it defeats laziness. Lower bounds (floor) order the alternatives and end the search early; a
// search that found nothing is remembered. A rule in progress counts as endless: a shortest derivation never
// contains itself (Knuth 1977).
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/flat_map.h"
#include "parse/state.h"

namespace structgen {

class Completion {
 public:
  // Of several shortest texts this is the first in the order of their bytes. So the rest of a completion is
  // that of the state behind its beginning, and a completion is the same in every process, whatever was asked
  // before.
  Completion(Parser& parser, Productions& productions) : parser_(parser), productions_(productions) {}
  // Empty for an accepting state. Throws kBudgetExceeded where none was found within the search's limits.
  const std::string& of(StateId s);
  // Bytes of a shortest text of a rule, of a regex; kNone: not found within the limits.
  static constexpr uint32_t kNone = 0xFFFFFFFFu;
  uint32_t length(RuleId r);
  uint32_t length(RegexId r);
  // Whether the search from a state that of() was asked for met poison: with the captured text known, a
  // shorter completion may exist.
  bool text_matters(StateId s) const { return tainted_states_.contains(s.v); }
  // Rules and stack entries looked at, ever: what a caller bounds its own work by.
  uint64_t work() const { return work_; }
  std::size_t byte_size() const {
    return bytes_ + floors_.byte_size() +
           (unknown_.size() + tainted_states_.size() + tainted_stacks_.size() + tainted_rules_.size()) * 64;
  }

 private:
  using Pending = Alive::Pending;
  // Completions, the shortest found for each pending that they leave behind (parse/alive.h); grammars without
  // lexemes know one pending only. `capture`: what is open where the text ends.
  struct Way {
    Pending to;
    std::string text;
    CaptureId capture;
  };
  using Ways = std::vector<Way>;
  void begin_search();
  Ways item(const Item& i);
  Ways stack(StackId s, Pending from, CaptureId c);
  Ways symbol(Symbol s, Pending from);
  Ways rule(RuleId r, const Reading& reading, Pending from);
  Ways sequence(std::span<const Symbol> symbols, Pending from, CaptureId c);
  Ways labelled(RegexId r, RuleId reader);
  Ways read(RuleId reader, CaptureId& c, Pending from);
  void capture(CaptureId& c, std::string_view text);
  const std::string& shortest(RegexId r);
  uint32_t floor(RegexId r);
  uint32_t floor(std::span<const Symbol> symbols, uint32_t depth);
  uint64_t floor_of_rules(std::span<const Symbol> symbols);
  uint32_t floor(RuleId r, const Reading& reading, uint32_t depth);
  // Memory of what is remembered: texts may be long, and a mask under a budget asks for one a token.
  static std::size_t size_of(const std::string& text) {
    return 80 + (text.capacity() > 15 ? text.capacity() + 17 : 0);
  }
  static std::size_t size_of(const Ways& ways);
  void keep(Ways& best, Pending to, std::string text, CaptureId c);
  struct Key {
    uint64_t rule;  // and label
    Pending from;
    friend auto operator<=>(const Key&, const Key&) = default;
  };

  Parser& parser_;
  Productions& productions_;
  std::unordered_map<uint32_t, std::string> states_, regexes_;
  std::unordered_set<uint32_t> unknown_;  // regexes of which a search was too large
  FlatMap<uint64_t, uint32_t> floors_;    // by rule and label
  std::map<std::pair<uint32_t, Pending>, Ways> stacks_;
  std::map<Key, Ways> rules_;
  // Of these, the ones in which poison was met; of states also such for which nothing was found.
  std::unordered_set<uint32_t> tainted_states_;
  std::set<std::pair<uint32_t, Pending>> tainted_stacks_;
  std::set<Key> tainted_rules_;
  // While one state is looked at. What was found of a rule without what an open rule has, if anything, holds
  // until that one is closed: then a shorter text may be found.
  struct Partial {
    Ways ways;
    uint32_t low;  // depth of the open rule
  };
  std::map<Key, Partial> found_;
  std::map<Key, uint32_t> open_;  // rules in progress -> depth
  // What a rule leaves behind may be what only another occurrence of it inside it leaves behind, so where the
  // search finds nothing, rules with pendings are looked at again until nothing changes. These stay.
  struct Settled {
    Ways ways;
    std::vector<Key> users;  // rules that asked for it
    bool waiting = true;     // to be looked at, again
  };
  Ways all(StateId s);
  Ways settled(const Key& key);
  void settle();
  std::map<Key, Settled> settled_;
  std::vector<Key> todo_;
  const Key* at_ = nullptr;  // the rule that is looked at
  bool settling_ = false;
  bool settled_poison_ = false;
  uint32_t low_ = 0xFFFFFFFFu;  // smallest depth of an open rule that was met
  uint32_t depth_ = 0;
  bool poison_ = false;  // met since it was last put back
  uint64_t steps_ = 0;
  uint64_t work_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace structgen
