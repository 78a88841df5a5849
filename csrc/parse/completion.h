// Shortest completions: the shortest text that completes a text from a state.
//
// In: a parser, its productions, a state. Out: a text that completes the state, as short as this search
// can prove. Cost: proportional to the rules that a completion goes through, remembered. It is only
// computed when a budget is asked for, because it expands rules that no text has reached. Lower bounds
// (floor) order the alternatives and end the search early. A rule in progress counts as endless: a
// shortest derivation never contains itself (Knuth 1977).
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/arena.h"
#include "base/flat_map.h"
#include "base/intern.h"
#include "parse/state.h"

namespace structgen {

class Completion {
 public:
  // Among several shortest texts the result is the first in the order of bytes. So the rest of a
  // completion is the completion of the state behind its beginning, and a completion is the same in
  // every process, whatever was asked before.
  // `recursion`: rules within rules; an object of n required keys is 3 n of them.
  Completion(Parser& parser, Productions& productions, uint32_t recursion = kRecursion)
      : parser_(parser), productions_(productions), recursion_(recursion) {}
  static constexpr uint32_t kRecursion = 1'500;
  // A shortest text that completes the state; empty for an accepting state. Throws kBudgetExceeded if
  // none was found within the limits of the search.
  const std::string& of(StateId s);
  // The number of bytes of a shortest text of a rule, or of a regex. kNone: no text was found within the
  // limits.
  static constexpr uint32_t kNone = 0xFFFFFFFFu;
  uint32_t length(RuleId r);
  uint32_t length(RegexId r);
  // True if the search of of(s) met poison. A search that knows the captured text may find a shorter
  // completion.
  bool text_matters(StateId s) const { return tainted_states_.contains(s.v); }
  // Rules and stack entries that were ever looked at. Callers limit their own work by it.
  uint64_t work() const { return work_; }
  std::size_t byte_size() const {
    return bytes_ + floors_.byte_size() + stacks_.byte_size() + rules_.byte_size() +
           (unknown_.size() + tainted_states_.size()) * 64;
  }

 private:
  using Pending = Alive::Pending;
  // A completion, and the pending that it leaves behind (parse/alive.h). The shortest for each pending
  // is kept; grammars without lexemes have one pending only. `capture`: the captures that are open
  // where the text ends.
  struct Way {
    Pending to;
    std::string text;
    CaptureId capture;
  };
  using Ways = std::vector<Way>;
  // A rule behind a pending. A reader also has the label that it is told.
  struct Key {
    // The rule, and the label that its reader is told; in stacks_ the set of stacks.
    uint64_t rule;
    Pending from;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  static constexpr uint32_t kClean = 0xFFFFFFFFu;
  // The most rules of one search. Beyond them the search takes the first way that it finds. At ten times as
  // many it fails.
  static constexpr uint64_t kMaxSteps = 2'000;
  // The most bytes of one text.
  static constexpr uint32_t kMaxText = 200'000;
  void begin_search();
  Ways item(const Item& i);
  Ways stack(StackId s, Pending from, CaptureId c);
  Ways symbol(Symbol s, Pending from);
  Ways rule(RuleId r, const Reading& reading, Pending from);
  std::optional<Ways> known(const Key& key);
  Ways within(RuleId r, const Reading& reading, Pending from);
  Ways search(RuleId r, const Reading& reading, Pending from);
  void tie(uint64_t least, std::span<const Symbol> symbols, Pending from, Ways& best);
  void note(const Key& key, uint32_t room, const Ways& best);
  template <class F>
  Ways behind(std::size_t bytes, F&& f);
  Ways sequence(std::span<const Symbol> symbols, Pending from, CaptureId c);
  struct Choice {
    std::string text;
    uint32_t label, least;
  };
  std::vector<Choice> choices(const LiteralSet& set, RuleId reader);
  Ways labelled(RegexId r, RuleId reader);
  Ways read(RuleId reader, CaptureId& c, Pending from);
  void capture(CaptureId& c, std::string_view text);
  const std::string& shortest(RegexId r);
  uint32_t floor(RegexId r);
  uint32_t floor(std::span<const Symbol> symbols, uint32_t depth);
  uint64_t own_text(std::span<const Symbol> symbols);
  uint64_t floor_of_rules(std::span<const Symbol> symbols);
  uint32_t floor(RuleId r, const Reading& reading, uint32_t depth);
  // The bytes of a text that is remembered. Texts may be long, and a mask under a budget asks for one for
  // each token.
  static std::size_t size_of(const std::string& text) {
    return 80 + (text.capacity() > 15 ? text.capacity() + 17 : 0);
  }
  static std::size_t size_of(const Ways& ways);
  void keep(Ways& best, Pending to, std::string text, CaptureId c);
  void keep_all(Ways& best, Ways found);
  // Ways that are kept as long as the epoch. They lie in one pool: as strings in the nodes of a map they were
  // a million pieces of memory, and an epoch's end was a pause of 100 ms.
  class Kept {
   public:
    struct KeptWay {
      const char* text;
      uint32_t size;
      Pending to;
      CaptureId capture;
    };
    struct Entry {
      Key key;
      std::span<const KeptWay> ways;
      // Poison was met in the search.
      bool poison;
    };
    // Null: nothing is kept for the key.
    const Entry* find(const Key& key) const;
    // Does nothing where ways are kept for the key.
    void add(const Key& key, const Ways& ways, bool poison);
    static Ways ways(const Entry& entry);
    std::size_t byte_size() const { return entries_.byte_size() + index_.byte_size() + pool_.byte_size(); }

   private:
    StableVector<Entry> entries_;
    InternTable index_;
    BumpPool pool_;
  };

  Parser& parser_;
  Productions& productions_;
  const uint32_t recursion_;
  std::unordered_map<uint32_t, std::string> states_, regexes_;
  // Regexes whose search was too large.
  std::unordered_set<uint32_t> unknown_;
  // Keyed by rule and label.
  FlatMap<uint64_t, uint32_t> floors_;
  Kept stacks_, rules_;
  // Entries of states_ in whose search poison was met; also states without an answer.
  std::unordered_set<uint32_t> tainted_states_;
  // Kept only while one state is looked at: the result for a rule without the alternatives that lead
  // through an open rule. It holds until that rule is closed; then a shorter text may be found.
  struct Partial {
    Ways ways;
    // The depth of the open rule; kClean: none was met, but the search was cut.
    uint32_t low;
    // The bytes that the search had, and where it was cut.
    uint32_t room, cut;
    bool exact() const { return cut == kNone; }
  };
  std::map<Key, Partial> found_;
  // By the depth of an open rule, the keys whose answers end with that rule.
  std::vector<std::vector<Key>> until_;
  void forget_from(uint32_t depth);
  // Rules in progress, with their depths.
  std::map<Key, uint32_t> open_;
  // The ways of a rule may need those of another occurrence of itself. So if the search finds nothing,
  // rules with pendings are looked at again until nothing changes. These answers are final and stay.
  struct Settled {
    Ways ways;
    // Rules that asked for this one.
    std::vector<Key> users;
    // True: it is on the list of rules to look at.
    bool waiting = true;
  };
  Ways all(StateId s);
  Ways settled(const Key& key);
  void settle();
  std::map<Key, Settled> settled_;
  std::vector<Key> todo_;
  // The rule that is being looked at.
  const Key* at_ = nullptr;
  bool settling_ = false;
  bool settled_poison_ = false;
  // What the search for the rule at hand may write, and what it missed.
  struct Progress {
    // The bytes that are left. Behind captured text there may be a new rule for each text, without an end. So
    // the search cuts readers of captured text that no byte is left for.
    uint32_t room = kNone;
    // Each text that was missed has so many bytes at least, from the place of the search; kNone: none was
    // missed.
    uint32_t cut = kNone;
    // The smallest depth of an open rule that was met; kClean: none.
    uint32_t low = kClean;
    bool poison = false;
  };
  Progress now_;
  uint32_t depth_ = 0;
  // True while a text as short as the best one is looked for.
  bool ties_ = false;
  uint64_t steps_ = 0;
  uint64_t work_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace structgen
