// Shortest completions: the shortest text that completes a state.
//
// In: a parser, its productions, a state. Out: a text that completes the state. The text is a shortest one,
// unless the search took so many steps that it settled for the first text that it found. Cost: proportional
// to the rules that a completion goes through; answers are kept. No completion is computed before a budget is
// asked for, because a completion expands rules that no text has reached. Lower bounds in bytes (floor())
// order the alternatives and end the search early. Inside the search for a rule, the same rule counts as a
// rule without texts, because a shortest derivation never contains itself (Knuth 1977).
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
  // Of several shortest texts the completion is the first in the order of bytes. So if `abc` is the
  // completion of a state, `bc` is the completion of the state behind `a`, and every process finds the same
  // completions, whatever was asked before. The search nests rules at most `recursion` deep; an object of n
  // required keys needs 3 n.
  Completion(Parser& parser, Productions& productions, uint32_t recursion = kRecursion)
      : parser_(parser), productions_(productions), recursion_(recursion) {}
  static constexpr uint32_t kRecursion = 1'500;
  // Returns a shortest text that completes the state; it is empty for an accepting state. Throws
  // kBudgetExceeded if the search takes too many steps or nests too deep.
  const std::string& of(StateId s);
  // length() returns the number of bytes of a shortest text of a rule or a regex. It returns kNone if no text
  // was found within the bounds of its search.
  static constexpr uint32_t kNone = 0xFFFFFFFFu;
  uint32_t length(RuleId r);
  uint32_t length(RegexId r);
  // Returns true if of(s) met poison. If the captured text were known, there might be a shorter completion.
  bool text_matters(StateId s) const { return tainted_states_.contains(s.v); }
  // The number of rules and stack entries that all calls so far have visited. Callers bound their own work by
  // this number.
  uint64_t work() const { return work_; }
  std::size_t byte_size() const {
    return bytes_ + floors_.byte_size() + stacks_.byte_size() + rules_.byte_size() +
           (unknown_.size() + tainted_states_.size()) * 64;
  }

 private:
  using Pending = Alive::Pending;
  // A shortest text among those that end with the pending `to` (parse/alive.h). In grammars without lexemes
  // there is one pending. `capture` is the capture that is open behind the text.
  struct ShortText {
    Pending to;
    std::string text;
    CaptureId capture;
  };
  using ShortTexts = std::vector<ShortText>;
  // What a search is asked: the shortest texts of `rule`, begun with the pending `from`.
  struct Key {
    // A rule with the label that it is told, as rule_key() packs them. In the table stacks_: the number of a
    // set of stacks.
    uint64_t rule;
    Pending from;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  // The value of `low` if no alternative was skipped because it leads back into an open rule.
  static constexpr uint32_t kClean = 0xFFFFFFFFu;
  // A search that has visited this many rules takes the first text that it finds. After ten times as many
  // rules the search throws.
  static constexpr uint64_t kMaxSteps = 2'000;
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
  // A literal of a set, and its label. `least` is a lower bound of the bytes of the literal and the value
  // behind it.
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
  // Returns the bytes of memory that a remembered text takes. Texts may be long, and a mask under a budget
  // remembers one for each token.
  static std::size_t size_of(const std::string& text) {
    return 80 + (text.capacity() > 15 ? text.capacity() + 17 : 0);
  }
  static std::size_t size_of(const ShortTexts& texts);
  void keep(ShortTexts& best, Pending to, std::string text, CaptureId c);
  void keep_all(ShortTexts& best, ShortTexts found);
  // Results that stay until the epoch ends. Their texts lie in one pool. In a map of strings they took a
  // million allocations, and freeing these took 100 ms.
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
      bool poison;
    };
    const Entry* find(const Key& key) const;
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
  // Final results: no later search can find other shortest texts of these sets of stacks and rules.
  Kept stacks_, rules_;
  // The states whose search met poison or failed.
  std::unordered_set<uint32_t> tainted_states_;
  // What a search found for a rule while another rule around it was open. The search skipped the alternatives
  // that lead back into the open rule. So the result holds only while this rule is open; a later search may
  // find shorter texts.
  struct Partial {
    ShortTexts texts;
    // The least depth of an open rule into which a skipped alternative leads; kClean if none was skipped, and
    // the result is partial only because of `room`.
    uint32_t low;
    // `room`: the number of bytes that the search was allowed to write. `cut`: a lower bound of the bytes of
    // each text that the search gave up because it had more bytes than `room`.
    uint32_t room, cut;
    bool exact() const { return cut == kNone; }
  };
  std::map<Key, Partial> found_;
  std::vector<std::vector<Key>> until_;
  void forget_from(uint32_t depth);
  std::map<Key, uint32_t> open_;
  // The shortest texts of a rule that settle() knows so far. settle() computes a fixpoint where the search
  // finds no text, because rules need texts of each other. The texts of a finished fixpoint stay known.
  struct Settled {
    ShortTexts texts;
    // The rules that read `texts`. These rules are visited again when a text is added.
    std::vector<Key> users;
    bool waiting = true;
  };
  ShortTexts all(StateId s);
  ShortTexts settled(const Key& key);
  void settle();
  std::map<Key, Settled> settled_;
  std::vector<Key> todo_;
  const Key* at_ = nullptr;
  // True while settle() runs. settled_poison_ is true if settle() met poison.
  bool settling_ = false;
  bool settled_poison_ = false;
  // What the search for one rule may still write, and what it left out.
  struct Progress {
    // The number of bytes that the search may still write. At 0, readers of captured texts are not searched,
    // because each captured text may lead to new rules, and these rules to further new rules without an end.
    uint32_t room = kNone;
    // A lower bound of the bytes of every text that was left out, counted from where this search began; kNone
    // if no text was left out.
    uint32_t cut = kNone;
    // An alternative that leads back into an open rule is skipped. `low` is the smallest depth of such a
    // rule; kClean if no alternative was skipped.
    uint32_t low = kClean;
    bool poison = false;
  };
  // The progress for the rule that is searched now; depth_ is the number of open rules.
  Progress now_;
  uint32_t depth_ = 0;
  bool ties_ = false;
  // steps_ is the number of rules that the current search has visited, at most 10 * kMaxSteps. work_ is the
  // answer of work(). bytes_ is the memory of remembered texts.
  uint64_t steps_ = 0;
  uint64_t work_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace structgen
