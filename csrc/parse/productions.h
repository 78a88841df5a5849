// The interface between grammars and the parser: the alternatives of a nonterminal, on demand.
//
// In: a RuleId and, for a reader, the text or label that was just completed. Out: alternatives; each is
// a sequence of symbols. Cost: that of the provider. The parser asks once per rule and remembers the
// answer. Contract: every alternative is productive, which means that some finite text completes it. So
// no parse state is a dead end. Rules must not be left-recursive.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <ranges>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.h"

namespace structgen {

// The meaning of a note: a named part begins or ends here. In a left-recursive rule, a part that begins
// with the rule itself is only known after its first part was read. Then the part began where the rule
// was entered, and an empty part ended there, too (kOpened, kClosed; see grammar/productions.h). A gap
// is the text between two lexemes: a part that ends behind a gap ends in front of it.
enum class NoteKind : uint32_t { kOpen, kClose, kOpened, kClosed, kEnter, kLeave, kGap, kGapEnd };
inline uint32_t note_number(NoteKind kind, uint32_t name) { return name * 8 + static_cast<uint32_t>(kind); }
inline NoteKind note_kind(uint32_t number) { return static_cast<NoteKind>(number % 8); }
inline uint32_t note_name(uint32_t number) { return number / 8; }

// A byte that stands in a terminal where one token ends and another begins. No text and no token
// contains it.
constexpr uint8_t kEdge = 0xFE;

// The largest number that a symbol can hold.
constexpr uint32_t kMaxNumber = (1u << 28) - 1;

// A symbol of a stack: the next thing to read.
struct Symbol {
  enum Kind : uint32_t {
    kTerminal = 0,  // a regex
    kRule = 1,      // a nonterminal
    // Reads nothing: text is captured from here on.
    kCapture = 2,
    // A nonterminal whose alternatives depend on the label or the captured text that was completed
    // before it.
    kReader = 3,
    // A terminal whose end depends on the other lexemes that could be read there; see
    // Productions::lexeme.
    kLexeme = 4,
    // Reads nothing: the next byte must not be in a set (a kBytes regex).
    kFollow = 5,
    // Reads nothing: a place that is looked for when captures are asked for; see parse/spans.h.
    kNote = 6,
    // Reads nothing: the lexemes that come next are read in a context.
    kAfter = 7,
    // Reads nothing: so many tokens may still begin above it; see parse/limits.h.
    kLimit = 8,
  };
  uint32_t v = 0;
  static Symbol terminal(RegexId r) { return {(r.v << 4) | kTerminal}; }
  static Symbol rule(RuleId r) { return {(r.v << 4) | kRule}; }
  static Symbol reader(RuleId r) { return {(r.v << 4) | kReader}; }
  static Symbol capture() { return {kCapture}; }
  static Symbol lexeme(uint32_t number) { return {(number << 4) | kLexeme}; }
  static Symbol follow(RegexId bytes) { return {(bytes.v << 4) | kFollow}; }
  static Symbol note(uint32_t number) { return {(number << 4) | kNote}; }
  static Symbol after(uint32_t context) { return {(context << 4) | kAfter}; }
  static Symbol limit(uint32_t left) { return {(left << 4) | kLimit}; }
  Kind kind() const { return static_cast<Kind>(v & 15); }
  RegexId regex() const { return RegexId{v >> 4}; }
  RuleId rule_id() const { return RuleId{v >> 4}; }
  uint32_t number() const { return v >> 4; }
  friend bool operator==(Symbol a, Symbol b) { return a.v == b.v; }
  friend bool operator<(Symbol a, Symbol b) { return a.v < b.v; }
};

// Alternatives that are stored elsewhere; `symbols` and `ends` are those of Alternatives.
struct AlternativeList {
  std::span<const Symbol> symbols;
  std::span<const uint32_t> ends;
  std::span<const Symbol> operator[](std::size_t i) const {
    const uint32_t begin = i == 0 ? 0 : ends[i - 1];
    return symbols.subspan(begin, ends[i] - begin);
  }
  // All of them, one after the other.
  auto each() const {
    return std::views::iota(std::size_t{0}, ends.size()) |
           std::views::transform([all = *this](std::size_t i) { return all[i]; });
  }
};

// The alternatives of a rule in one flat buffer: alternative i is symbols[ends[i-1] .. ends[i]).
struct Alternatives {
  std::vector<Symbol> symbols;
  std::vector<uint32_t> ends;
  // Of a reader that was told kFresh: the numbers of alternatives that hold for some texts only.
  std::vector<uint32_t> assumed;
  void add(std::span<const Symbol> sequence) {
    symbols.insert(symbols.end(), sequence.begin(), sequence.end());
    ends.push_back(static_cast<uint32_t>(symbols.size()));
  }
  void add(std::initializer_list<Symbol> sequence) { add({sequence.begin(), sequence.size()}); }
  AlternativeList list() const { return {symbols, ends}; }
  std::span<const Symbol> operator[](std::size_t i) const { return list()[i]; }
  auto each() const { return list().each(); }
};

// The alternatives with their costs, by cost; of equal costs in their own order.
template <class Cost>
auto by_cost(const Alternatives& all, Cost&& cost) {
  using Priced = std::pair<decltype(cost(all[0])), std::span<const Symbol>>;
  std::vector<Priced> out;
  for (const std::span<const Symbol> symbols : all.each()) out.emplace_back(cost(symbols), symbols);
  std::ranges::stable_sort(out, {}, &Priced::first);
  return out;
}

// What a reader is told about the text in front of it.
struct Reading {
  enum Kind : uint8_t {
    kNone,
    // A labelled literal was completed.
    kLabel,
    // The captured text.
    kText,
    // A text was captured, but the caller (a mask) does not say which; see RegexKind::kPoison.
    kUnknown,
    // Some text that differs from every other one. The alternatives are those that hold for each such
    // text; those that hold for some are marked as assumed, because a text in question is told by
    // itself.
    kFresh,
  } kind = kNone;
  uint32_t label = 0;
  std::string text;
  static Reading of_label(uint32_t label) { return {kLabel, label, {}}; }
  static Reading of_text(std::string text) { return {kText, 0, std::move(text)}; }
  static Reading unknown() { return {kUnknown, 0, {}}; }
  static Reading fresh() { return {kFresh, 0, {}}; }
};

// One way to read a lexeme: texts, and the bytes that must not follow them.
struct LexemePart {
  RegexId regex;
  // A set that is kBytes, or empty(): any byte may follow.
  RegexId follow;
};

// An upper bound: so many bytes, all symbols of `all`, and the longest symbol of `any`.
struct Bound {
  uint64_t bytes = 0;
  std::vector<Symbol> all, any;
};

// A grammar, as the parser sees it.
class Productions {
 public:
  virtual ~Productions() = default;
  // Appends the alternatives of a rule to `out`.
  virtual void expand(RuleId rule, const Reading& reading, Alternatives& out) = 0;
  // The bytes of everything that it remembers.
  virtual std::size_t byte_size() const { return 0; }
  // A search for a shortest completion begins. All calls until the next search share one limit of steps.
  virtual void start_search() {}
  // Alternatives among which there is a shortest one. A provider that knows more leaves out the others.
  virtual void expand_shortest(RuleId rule, const Reading& reading, Alternatives& out) {
    expand(rule, reading, out);
  }
  // Alternatives with the texts of the rule, in which a rule stands for texts that another rule has, too. A
  // search through all rules then meets each of them once. False: there are none but those of expand().
  virtual bool expand_shared(RuleId /*rule*/, Alternatives& /*out*/) { return false; }
  // An upper bound of the rule's shortest text, found without a search; for a reader it must hold
  // whatever was read. False: not known.
  virtual bool bound(RuleId /*rule*/, Bound& /*out*/) { return false; }
  // The ways to read a lexeme in a context; empty if it cannot be read there.
  virtual std::span<const LexemePart> lexeme(uint32_t /*lexeme*/, uint32_t /*context*/) { return {}; }
  // True if the bytes that may not follow a lexeme can be all bytes that could follow; see
  // parse/alive.h.
  virtual bool restricted() const { return false; }
  // True for a grammar with lexemes and nothing else: no expansion depends on the text before it, and
  // one live byte shows that the text can go on.
  virtual bool context_free() const { return false; }
  // True if some terminals contain kEdge: a token must begin there. Such a grammar also limits tokens.
  virtual bool edged() const { return false; }
  // How often something was omitted because it was too much to tell; see base/effort.h.
  virtual uint64_t omitted() const { return 0; }
  // True if a text may also end where the next terminal takes kEdge, which is then no edge of tokens;
  // see holes/quotient.h.
  virtual bool bordered() const { return false; }
  // True if a text may have no other continuation than poison, and then none at all. Else every text of
  // a terminal has a continuation.
  virtual bool unproven() const { return false; }
  // True if a reader may refuse some text that it is told, although its answer to an unknown text is not
  // poison. Else that answer holds for every text, except behind poison.
  virtual bool tries_texts() const { return false; }
  // A lower bound of the bytes that stand behind a text of the rule in every whole text.
  virtual uint64_t needed_behind(RuleId) const { return 0; }
  // True if readers compare the texts of the rule with each other (items under uniqueItems).
  virtual bool compared(RuleId /*rule*/) const { return false; }
  // True if the reader compares the text that it is told with others.
  virtual bool compares(RuleId /*reader*/) const { return false; }
  // The texts that a comparing reader answers in a way of their own. To every other text it gives one and the
  // same answer. False: there are `most` texts or more.
  virtual bool compared_with(RuleId /*reader*/, std::size_t /*most*/, std::vector<std::string>& /*out*/) {
    return true;
  }
  // True if some reader may ask that a text equals an earlier one. Otherwise no reader refuses a text that
  // differs from all others.
  virtual bool asks_alike() const { return false; }
  // A rule with the texts of `start`, and with texts in which items or keys repeat that must differ: those of
  // arrays and objects in which some other one is always left (engine/distinct.h). `start` itself where the
  // language has no such rule.
  virtual RuleId lenient(RuleId start) { return start; }
  // Whether some array asks that its items differ.
  virtual bool asks_distinct() const { return false; }
  // The most keys that a rule of an object holds.
  virtual std::size_t most_keys() const { return 0; }
  // What a rule reads: no array and no object, one behind its bracket, or one whose items or keys must differ
  // although the rule does not compare them.
  enum class Items : uint8_t { kNone, kAny, kDistinct };
  virtual Items items(RuleId /*rule*/) const { return Items::kNone; }
  // Finds a rule for some texts of a compared rule: those that equal one of `texts` or are texts of one
  // of `rules`, or with `others` all other texts. `out` is the rule itself if these are all of its
  // texts. `any`: whether there are any. False: not known.
  struct Choice {
    std::span<const std::string> texts;
    std::span<const RuleId> rules;
    bool others = false;
  };
  virtual bool narrow(RuleId /*rule*/, const Choice& /*choice*/, RuleId& /*out*/, bool& /*any*/) {
    return false;
  }
  // One text for each value of a compared rule. False: there are `most` or more, or it is too much to
  // tell.
  virtual bool values(RuleId /*rule*/, uint32_t /*most*/, std::vector<std::string>& /*out*/) { return false; }
  // True if something was left out because it was too much to tell, and the regex arena does not know
  // about it.
  virtual bool inexact() const { return false; }
  // True for a rule of a grammar with lexemes, whose expansions do not depend on the text before it.
  virtual bool plain(RuleId) const { return false; }
  // Whether tokens may be limited in a text of a rule (parse/limits.h).
  virtual bool limits(RuleId) const { return true; }
};

}  // namespace structgen
