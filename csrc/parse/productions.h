// The interface between grammars and the parser: the alternatives of a nonterminal, on demand.
//
// In: a RuleId and, for a reader, the text or label that was just completed. Out: alternatives; each
// alternative is a sequence of symbols. Cost: that of the provider, once a rule, because the parser keeps the
// answer. Contract: some finite text completes every alternative, so no parse state is a dead end. Rules must
// not be left-recursive.
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

// What a note says: a named part begins (kOpen) or ends (kClose) here. In a left-recursive rule, a part that
// begins with the rule itself is known only after its first part was read; then the part began where the rule
// was entered (kOpened), and an empty part ended there, too (kClosed; see grammar/productions.h). kEnter and
// kLeave stand around such a rule. kGap and kGapEnd stand around the text between two lexemes: a part that
// ends behind a gap ends in front of it.
enum class NoteKind : uint32_t { kOpen, kClose, kOpened, kClosed, kEnter, kLeave, kGap, kGapEnd };
inline uint32_t note_number(NoteKind kind, uint32_t name) { return name * 8 + static_cast<uint32_t>(kind); }
inline NoteKind note_kind(uint32_t number) { return static_cast<NoteKind>(number % 8); }
inline uint32_t note_name(uint32_t number) { return number / 8; }

// This byte stands in a terminal where one token must end and another begin. No text and no token contains
// it.
constexpr uint8_t kEdge = 0xFE;

// A symbol holds a number of at most this value.
constexpr uint32_t kMaxNumber = (1u << 28) - 1;

// A symbol of an alternative or a stack: what is read next.
struct Symbol {
  enum Kind : uint32_t {
    kTerminal = 0,  // a regex
    kRule = 1,      // a nonterminal
    // Reads nothing; from here on text is captured.
    kCapture = 2,
    // A nonterminal that is told the label or the captured text before it; its alternatives depend on that.
    kReader = 3,
    // A terminal of a grammar with a lexer. Which other lexemes could be read decides where it ends; see
    // Productions::lexeme.
    kLexeme = 4,
    // Reads nothing; the next byte must not be in a set (a kBytes regex).
    kFollow = 5,
    // Reads nothing; marks a place that find_spans() reports (parse/spans.h).
    kNote = 6,
    // Reads nothing; says in which context the next lexemes are read.
    kAfter = 7,
    // Reads nothing; in the text that the symbols above it read, so many tokens may still begin
    // (parse/limits.h).
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

// A view of alternatives that another object stores; alternative i is symbols[ends[i-1] .. ends[i]).
struct AlternativeList {
  std::span<const Symbol> symbols;
  std::span<const uint32_t> ends;
  std::span<const Symbol> operator[](std::size_t i) const {
    const uint32_t begin = i == 0 ? 0 : ends[i - 1];
    return symbols.subspan(begin, ends[i] - begin);
  }
  // Iterates over the alternatives, each a sequence of symbols.
  auto each() const {
    return std::views::iota(std::size_t{0}, ends.size()) |
           std::views::transform([all = *this](std::size_t i) { return all[i]; });
  }
};

// The alternatives of a rule in one flat buffer: alternative i is symbols[ends[i-1] .. ends[i]).
struct Alternatives {
  std::vector<Symbol> symbols;
  std::vector<uint32_t> ends;
  // For a reader that was told kFresh: the numbers of the alternatives that hold for some fresh texts only.
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

// Returns the alternatives in the order of their costs, with the cost of each; equal costs keep their order.
template <class Cost>
auto by_cost(const Alternatives& all, Cost&& cost) {
  using Priced = std::pair<decltype(cost(all[0])), std::span<const Symbol>>;
  std::vector<Priced> out;
  for (const std::span<const Symbol> symbols : all.each()) out.emplace_back(cost(symbols), symbols);
  std::ranges::stable_sort(out, {}, &Priced::first);
  return out;
}

// What a reader is told about the text before it.
struct Reading {
  enum Kind : uint8_t {
    kNone,
    // The reader is told the label of the literal that was read, in `label`.
    kLabel,
    // The reader is told the captured text, in `text`.
    kText,
    // A text was captured, but the caller (a mask) keeps it secret; see RegexKind::kPoison.
    kUnknown,
    // The reader is told only that the text differs from all texts with which the reader compares it. The
    // alternatives hold for every such text; an alternative that holds for some of them only is listed in
    // `assumed`.
    kFresh,
  } kind = kNone;
  uint32_t label = 0;
  std::string text;
  static Reading of_label(uint32_t label) { return {kLabel, label, {}}; }
  static Reading of_text(std::string text) { return {kText, 0, std::move(text)}; }
  static Reading unknown() { return {kUnknown, 0, {}}; }
  static Reading fresh() { return {kFresh, 0, {}}; }
};

// One way to read a lexeme: a regex, and the bytes that must not follow its text.
struct LexemePart {
  RegexId regex;
  // The bytes that must not follow, as a kBytes regex; empty() if any byte may.
  RegexId follow;
};

// An upper bound of a text: `bytes` bytes, plus all symbols of `all`, plus the longest symbol of `any`.
struct Bound {
  uint64_t bytes = 0;
  std::vector<Symbol> all, any;
};

// What holds of a whole grammar.
struct GrammarTraits {
  // Some lexeme may forbid every byte that could follow it, so stacks may be unreadable (parse/alive.h).
  bool restricted = false;
  // The grammar consists of lexemes: no expansion depends on the text before it, and one live byte shows that
  // the text can go on.
  bool context_free = false;
  // Terminals contain kEdge, which stands where a token must begin. Such a grammar may also limit tokens.
  bool edged = false;
  // kEdge stands only where a text may end, and marks no edge of tokens (holes/quotient.h).
  bool bordered = false;
  // Some text of a terminal may have no continuation: only poison follows, and poison may turn out to be
  // nothing.
  bool unproven = false;
  // A reader may refuse a text although its answer to an unknown text is not poison. If false, the answer to
  // an unknown text holds for every text, except behind poison.
  bool tries_texts = false;
  // Some reader may ask that a text equals an earlier one. If false, no reader refuses a text that differs
  // from all earlier ones.
  bool asks_alike = false;
  // Some array asks that its items differ.
  bool asks_distinct = false;
};

// What holds of one rule.
struct RuleTraits {
  // Whether the items or keys of an array or object must differ although the rule itself does not compare
  // them (kDistinct). kAny: the rule reads an array or object from behind its bracket, whose items may be
  // alike. kNone: the rule reads no array and no object.
  enum class Items : uint8_t { kNone, kAny, kDistinct };
  Items items = Items::kNone;
  // Readers compare the texts of the rule with each other (items under uniqueItems).
  bool compared = false;
  // The rule is a reader that compares the text that it is told with other texts.
  bool compares = false;
  // The rule belongs to a grammar with lexemes, so its expansions do not depend on the text before it.
  bool plain = false;
  // Tokens may be limited within a text of the rule (parse/limits.h).
  bool limits = true;
  // At least so many bytes stand behind a text of the rule in every whole text.
  uint64_t needed_behind = 0;
};

// A grammar, as the parser sees it: rules whose alternatives are asked for one rule at a time.
class Productions {
 public:
  virtual ~Productions() = default;
  virtual GrammarTraits traits() const { return {}; }
  virtual RuleTraits traits_of(RuleId /*rule*/) const { return {}; }

  // ---- the texts of a rule ----
  //
  // Appends the alternatives of a rule to `out`.
  virtual void expand(RuleId rule, const Reading& reading, Alternatives& out) = 0;
  // Returns the ways to read a lexeme in a context; none if the lexeme cannot be read there.
  virtual std::span<const LexemePart> lexeme(uint32_t /*lexeme*/, uint32_t /*context*/) { return {}; }
  // Appends alternatives for the texts of the rule in which another rule stands for the texts that both rules
  // share, so that a search through all rules meets these texts once. Returns false if there are none but
  // those of expand().
  virtual bool expand_shared(RuleId /*rule*/, Alternatives& /*out*/) { return false; }

  // ---- shortest texts ----
  //
  // The parser calls this before each search for a shortest completion. All calls until the next search share
  // one limit of steps.
  virtual void start_search() {}
  // Appends alternatives, one of which has a shortest text of the rule. A provider that knows more leaves out
  // others.
  virtual void expand_shortest(RuleId rule, const Reading& reading, Alternatives& out) {
    expand(rule, reading, out);
  }
  // Sets an upper bound of the rule's shortest text, without a search. The bound of a reader must hold
  // whatever it is told. Returns false if no bound is known.
  virtual bool bound(RuleId /*rule*/, Bound& /*out*/) { return false; }

  // ---- texts that are compared ----
  //
  // Appends the texts that a comparing reader treats differently from all others. Returns false if there are
  // `most` such texts or more.
  virtual bool compared_with(RuleId /*reader*/, std::size_t /*most*/, std::vector<std::string>& /*out*/) {
    return true;
  }
  // narrow() finds a rule for a part of the texts of a compared rule: those that equal one of `texts`, those
  // of one of `rules`, and with `others` all remaining ones. `out` is the rule itself if these are all of its
  // texts; `any` says whether there is such a text. Returns false if that is not known.
  struct Choice {
    std::span<const std::string> texts;
    std::span<const RuleId> rules;
    bool others = false;
  };
  virtual bool narrow(RuleId /*rule*/, const Choice& /*choice*/, RuleId& /*out*/, bool& /*any*/) {
    return false;
  }
  // Appends one text for each value of a compared rule. Returns false if there are `most` values or more, or
  // if counting them takes too much work.
  virtual bool values(RuleId /*rule*/, uint32_t /*most*/, std::vector<std::string>& /*out*/) { return false; }
  // Returns a rule with the texts of `start` and, beside them, texts in which items or keys repeat though
  // they must differ: in arrays and objects where some other item or key is always left (engine/distinct.h).
  // Returns `start` if there is no such rule.
  virtual RuleId lenient(RuleId start) { return start; }
  // Returns the literal set of which each item of a kDistinct rule is a text; empty() if there is none.
  virtual RegexId choices(RuleId /*rule*/) { return {}; }

  // ---- numbers that grow as rules are expanded ----
  //
  // Returns how often something was omitted because it was too much to tell (base/effort.h).
  virtual uint64_t omitted() const { return 0; }
  // Returns true if alternatives were omitted for lack of work, and the regex arena does not know of that.
  virtual bool inexact() const { return false; }
  // Returns the number of keys of the largest object among the rules.
  virtual std::size_t most_keys() const { return 0; }
  // Returns the bytes of all that the object stores.
  virtual std::size_t byte_size() const { return 0; }
};

}  // namespace structgen
