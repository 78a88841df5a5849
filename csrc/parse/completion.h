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

class Completion {
 public:
  // Of several shortest texts the first in the order of bytes is taken. So a completion without its first
  // bytes is the completion of the state behind them, and every process finds the same completion, whatever
  // was asked before. Rules within rules go at most `recursion` deep; an object of n required keys needs 3 n.
  Completion(Parser& parser, Productions& productions, uint32_t recursion = kRecursion)
      : parser_(parser), productions_(productions), recursion_(recursion) {}
  static constexpr uint32_t kRecursion = 1'500;
  // Returns a shortest text that completes the state; it is empty for an accepting state. Throws
  // kBudgetExceeded if the search meets its limits.
  const std::string& of(StateId s);
  // Returns the number of bytes of a shortest text of a rule or a regex. Returns kNone if none was found
  // within the limits.
  static constexpr uint32_t kNone = 0xFFFFFFFFu;
  uint32_t length(RuleId r);
  uint32_t length(RegexId r);
  // Returns true if of(s) met poison while it searched. If the captured text were known, there might be a
  // shorter completion.
  bool text_matters(StateId s) const { return tainted_states_.contains(s.v); }
  // Returns how many rules and stack entries all calls so far have visited. Callers limit their work by this
  // number.
  uint64_t work() const { return work_; }
  std::size_t byte_size() const {
    return bytes_ + floors_.byte_size() + stacks_.byte_size() + rules_.byte_size() +
           (unknown_.size() + tainted_states_.size()) * 64;
  }

 private:
  using Pending = Alive::Pending;
  // A shortest text that ends with a given pending (parse/alive.h). Grammars without lexemes have only one
  // pending. `capture` is the capture that is open behind the text.
  struct ShortText {
    Pending to;
    std::string text;
    CaptureId capture;
  };
  using ShortTexts = std::vector<ShortText>;
  // The question for the shortest texts of a rule that begins with the pending `from`.
  struct Key {
    // The rule, together with the label that its reader is told. In stacks_ it is the number of a set of
    // stacks.
    uint64_t rule;
    Pending from;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  // Stands in place of a depth: no alternative was skipped because it leads back into an open rule.
  static constexpr uint32_t kClean = 0xFFFFFFFFu;
  // A search that has visited this many rules takes the first text that it finds. After ten times as many it
  // throws.
  static constexpr uint64_t kMaxSteps = 2'000;
  // A search drops texts of more bytes than this.
  static constexpr uint32_t kMaxText = 200'000;
  void begin_search();
  ShortTexts item(const Item& i);
  ShortTexts stack(StackId s, Pending from, CaptureId c);
  ShortTexts symbol(Symbol s, Pending from);
  ShortTexts rule(RuleId r, const Reading& reading, Pending from);
  std::optional<ShortTexts> known(const Key& key);
  ShortTexts within(RuleId r, const Reading& reading, Pending from);
  ShortTexts search(RuleId r, const Reading& reading, Pending from);
  void tie(uint64_t least, std::span<const Symbol> symbols, Pending from, ShortTexts& best);
  void note(const Key& key, uint32_t room, const ShortTexts& best);
  template <class F>
  ShortTexts behind(std::size_t bytes, F&& f);
  ShortTexts sequence(std::span<const Symbol> symbols, Pending from, CaptureId c);
  // A literal of a set, with its label. `least` is a lower bound of the bytes of the literal and of what its
  // reader reads behind it.
  struct Choice {
    std::string text;
    uint32_t label, least;
  };
  std::vector<Choice> choices(const LiteralSet& set, RuleId reader);
  ShortTexts labelled(RegexId r, RuleId reader);
  ShortTexts read(RuleId reader, CaptureId& c, Pending from);
  void capture(CaptureId& c, std::string_view text);
  const std::string& shortest(RegexId r);
  uint32_t floor(RegexId r);
  uint32_t floor(std::span<const Symbol> symbols, uint32_t depth);
  uint64_t own_text(std::span<const Symbol> symbols);
  uint64_t floor_of_rules(std::span<const Symbol> symbols);
  uint32_t floor(RuleId r, const Reading& reading, uint32_t depth);
  // Returns the bytes that a remembered text takes in memory. Texts may be long, and a mask under a budget
  // remembers one for each token.
  static std::size_t size_of(const std::string& text) {
    return 80 + (text.capacity() > 15 ? text.capacity() + 17 : 0);
  }
  static std::size_t size_of(const ShortTexts& texts);
  void keep(ShortTexts& best, Pending to, std::string text, CaptureId c);
  void keep_all(ShortTexts& best, ShortTexts found);
  // Results that are kept until the epoch ends. They lie in one pool. As strings in a map they were a million
  // allocations, which took 100 ms to free.
  class Kept {
   public:
    struct KeptText {
      const char* text;
      uint32_t size;
      Pending to;
      CaptureId capture;
    };
    struct Entry {
      Key key;
      std::span<const KeptText> texts;
      // True if the search met poison.
      bool poison;
    };
    // Returns the result for the key, or null if none is stored.
    const Entry* find(const Key& key) const;
    // Stores the result for the key, unless there is one already.
    void add(const Key& key, const ShortTexts& texts, bool poison);
    static ShortTexts texts(const Entry& entry);
    std::size_t byte_size() const { return entries_.byte_size() + index_.byte_size() + pool_.byte_size(); }

   private:
    StableVector<Entry> entries_;
    InternTable index_;
    BumpPool pool_;
  };

  Parser& parser_;
  Productions& productions_;
  const uint32_t recursion_;
  // The completions of states, and the shortest texts of regexes.
  std::unordered_map<uint32_t, std::string> states_, regexes_;
  // The regexes whose search was too large: shortest() throws for them at once.
  std::unordered_set<uint32_t> unknown_;
  FlatMap<uint64_t, uint32_t> floors_;
  // The shortest texts of sets of stacks and of rules that no later search can change.
  Kept stacks_, rules_;
  // The states whose search met poison or failed.
  std::unordered_set<uint32_t> tainted_states_;
  // What a search found for a rule while an outer rule was open. Alternatives that lead back into the outer
  // rule were skipped. So the result holds only until that rule is closed; later searches may find shorter
  // texts.
  struct Partial {
    ShortTexts texts;
    // The least depth of an open rule because of which an alternative was skipped. It is kClean if no rule
    // was, and only `room` limited the search.
    uint32_t low;
    // `room` is the most bytes that the search could write. `cut` is a lower bound of the bytes of the texts
    // that it gave up.
    uint32_t room, cut;
    bool exact() const { return cut == kNone; }
  };
  std::map<Key, Partial> found_;
  // until_[d]: the keys of those results in found_ that are dropped when the open rule of depth d is closed.
  std::vector<std::vector<Key>> until_;
  void forget_from(uint32_t depth);
  // The rules that are being searched, with their depths.
  std::map<Key, uint32_t> open_;
  // The shortest texts of a rule that settle() knows so far. It computes a fixpoint if the search finds no
  // text, as where rules need shorter texts of themselves. Texts of a finished fixpoint stay.
  struct Settled {
    ShortTexts texts;
    // The rules that read `texts`. They are visited again when a text is added.
    std::vector<Key> users;
    // True while the rule waits in the work list.
    bool waiting = true;
  };
  ShortTexts all(StateId s);
  ShortTexts settled(const Key& key);
  void settle();
  // The rules of the fixpoint, and the keys of those to visit next.
  std::map<Key, Settled> settled_;
  std::vector<Key> todo_;
  // The rule that settle() is visiting.
  const Key* at_ = nullptr;
  // True while settle() runs. settled_poison_ is true if settle() met poison.
  bool settling_ = false;
  bool settled_poison_ = false;
  // How far the search for a rule may go, and what it dropped.
  struct Progress {
    // The bytes that the search may still write. If none is left, readers of captured texts are not searched,
    // because captured texts may lead to new rules without an end.
    uint32_t room = kNone;
    // A lower bound of the bytes of every text that was left out, counted from the search's beginning; kNone
    // if none was left out.
    uint32_t cut = kNone;
    // The smallest depth of an open rule that the search met again; kClean if it met none.
    uint32_t low = kClean;
    bool poison = false;
  };
  // The progress for the rule that is searched now; depth_ is the number of open rules.
  Progress now_;
  uint32_t depth_ = 0;
  // True while tie() looks for a text that is as short as the best one.
  bool ties_ = false;
  // steps_ is the number of rules that the current search has visited, at most 10 * kMaxSteps. work_ is the
  // answer of work(). bytes_ is the memory of remembered texts.
  uint64_t steps_ = 0;
  uint64_t work_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace structgen
