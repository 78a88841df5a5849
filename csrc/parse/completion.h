// Shortest completions: the shortest text that completes a text from a state.
//
// In: a parser, its productions, a state. Out: a text that completes the state, as short as this search can
// prove. Cost: proportional to the rules that a completion goes through; answers are kept. No completion is
// computed before a budget is asked for, because a completion expands rules that no text has reached. Lower
// bounds in bytes (floor) order the alternatives and end the search early. A rule in progress counts as
// endless, because a shortest derivation never contains itself (Knuth 1977).
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

// Finds and keeps the completions of one parser.
class Completion {
 public:
  // Among the shortest texts the first in the order of bytes is taken. So the rest of a completion is the
  // completion of the state behind its beginning, and every process finds the same completion, whatever was
  // asked before. Rules within rules go at most `recursion` deep; an object of n required keys has 3 n of
  // them.
  Completion(Parser& parser, Productions& productions, uint32_t recursion = kRecursion)
      : parser_(parser), productions_(productions), recursion_(recursion) {}
  // The default of `recursion`.
  static constexpr uint32_t kRecursion = 1'500;
  // Returns a shortest text that completes the state, which is empty for an accepting state. Throws
  // kBudgetExceeded if the limits of the search end it.
  const std::string& of(StateId s);
  // Returns the number of bytes of a shortest text of a rule or a regex, or kNone if none was found within
  // the limits.
  static constexpr uint32_t kNone = 0xFFFFFFFFu;
  uint32_t length(RuleId r);
  uint32_t length(RegexId r);
  // Returns true if of(s) met poison while it searched. With the captured text known there might be a shorter
  // completion.
  bool text_matters(StateId s) const { return tainted_states_.contains(s.v); }
  // Returns how many rules and stack entries were visited in all calls so far. Callers limit their own work
  // by this number.
  uint64_t work() const { return work_; }
  std::size_t byte_size() const {
    return bytes_ + floors_.byte_size() + stacks_.byte_size() + rules_.byte_size() +
           (unknown_.size() + tainted_states_.size()) * 64;
  }

 private:
  using Pending = Alive::Pending;
  // A shortest text for one pending behind it (parse/alive.h); without lexemes there is only one pending.
  // `capture` is the capture that is open behind the text.
  struct Way {
    Pending to;
    std::string text;
    CaptureId capture;
  };
  using Ways = std::vector<Way>;
  // A rule behind a pending: what is asked about.
  struct Key {
    // The rule, and the label that its reader is told. In stacks_ it is the number of the set of stacks.
    uint64_t rule;
    Pending from;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  // Stands in for a depth if no open rule hid an alternative.
  static constexpr uint32_t kClean = 0xFFFFFFFFu;
  // One search visits at most so many rules. Beyond them it takes the first text that it finds, and beyond
  // ten times as many it throws.
  static constexpr uint64_t kMaxSteps = 2'000;
  // A text that is searched for has at most so many bytes; longer ones are dropped.
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
  // A literal of a set, with its label and a lower bound of the bytes of the literal and of what its reader
  // reads.
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
  // Returns the bytes that a stored text takes. Texts may be long, and a mask under a budget stores one for
  // each token.
  static std::size_t size_of(const std::string& text) {
    return 80 + (text.capacity() > 15 ? text.capacity() + 17 : 0);
  }
  static std::size_t size_of(const Ways& ways);
  void keep(Ways& best, Pending to, std::string text, CaptureId c);
  void keep_all(Ways& best, Ways found);
  // The results that are stored until the epoch ends. They lie in one pool: as strings in a map they were a
  // million allocations, which took 100 ms to free.
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
      // True if the search met poison.
      bool poison;
    };
    // Returns the result for the key, or null if none is stored.
    const Entry* find(const Key& key) const;
    // Stores the result for the key, unless there is one already.
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
  // Hold the completions of states, and the shortest texts of regexes.
  std::unordered_map<uint32_t, std::string> states_, regexes_;
  // The regexes whose search was too large; shortest() throws for them at once.
  std::unordered_set<uint32_t> unknown_;
  // Holds the answers of floor(), by rule and label.
  FlatMap<uint64_t, uint32_t> floors_;
  // Hold the final ways of sets of stacks, and of rules.
  Kept stacks_, rules_;
  // Holds the states whose search met poison or failed.
  std::unordered_set<uint32_t> tainted_states_;
  // What a search found for a rule while an outer rule was open. The outer rule hid the alternatives that
  // lead through it, so the result holds only until that rule is closed; later searches may find shorter
  // texts.
  struct Partial {
    Ways ways;
    // The smallest depth of an open rule that hid an alternative; kClean if no rule did and only `room` ended
    // the search.
    uint32_t low;
    // `room`: the most bytes that the search could write. `cut`: a lower bound of the bytes of the texts that
    // the search gave up.
    uint32_t room, cut;
    bool exact() const { return cut == kNone; }
  };
  std::map<Key, Partial> found_;
  // until_[d] holds the keys of found_ whose answers are dropped when the open rule of depth d is closed.
  std::vector<std::vector<Key>> until_;
  void forget_from(uint32_t depth);
  // The rules in progress, with their depths.
  std::map<Key, uint32_t> open_;
  // The shortest texts of one rule in the fixpoint of settle(), which is computed if the search finds none: a
  // rule may need texts of itself further inside. Final texts stay.
  struct Settled {
    Ways ways;
    // The rules to visit again when `ways` grows.
    std::vector<Key> users;
    // True while the rule is on the work list.
    bool waiting = true;
  };
  Ways all(StateId s);
  Ways settled(const Key& key);
  void settle();
  // Holds the rules of the fixpoint, and the keys of those to visit.
  std::map<Key, Settled> settled_;
  std::vector<Key> todo_;
  // The rule that settle() is visiting.
  const Key* at_ = nullptr;
  // True while settle() runs; settled_poison_ is true if it met poison.
  bool settling_ = false;
  bool settled_poison_ = false;
  // How far the search for the current rule may go, and what it left out.
  struct Progress {
    // The bytes that the search may still write. A captured text may lead to a new rule without an end, so
    // readers of captured texts are not searched when no byte is left.
    uint32_t room = kNone;
    // A lower bound of the bytes of every text that was left out, counted from where the search began; kNone
    // if none was.
    uint32_t cut = kNone;
    // The smallest depth of an open rule that the search met; kClean if it met none.
    uint32_t low = kClean;
    bool poison = false;
  };
  // The search for the current rule; depth_ counts the rules in progress.
  Progress now_;
  uint32_t depth_ = 0;
  // True while tie() looks for a text that is as short as the best one.
  bool ties_ = false;
  // Counts the rules that the current search has visited, at most 10 * kMaxSteps; work_ is the answer of
  // work(), and bytes_ counts the bytes of kept texts.
  uint64_t steps_ = 0;
  uint64_t work_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace structgen
