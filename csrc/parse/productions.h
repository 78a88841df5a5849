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

// What a note says. kOpen, kClose: a capture begins or ends here. In a left-recursive rule, a capture that
// begins with the rule itself is known only after the rule's first text was read. kOpened then says that it
// began where the rule was entered, and kClosed that an empty capture also ended there
// (grammar/productions.h). kEnter and kLeave stand before and behind such a rule. kGap and kGapEnd stand
// before and behind the text between two lexemes: a capture that ends behind a gap ends in front of it
// instead.
enum class NoteKind : uint32_t { kOpen, kClose, kOpened, kClosed, kEnter, kLeave, kGap, kGapEnd };
inline uint32_t note_number(NoteKind kind, uint32_t name) { return name * 8 + static_cast<uint32_t>(kind); }
inline NoteKind note_kind(uint32_t number) { return static_cast<NoteKind>(number % 8); }
inline uint32_t note_name(uint32_t number) { return number / 8; }

// A terminal reads this byte where one token must end and another begin. No text and no token contains it.
constexpr uint8_t kEdge = 0xFE;

constexpr uint32_t kMaxNumber = (1u << 28) - 1;

// A symbol of an alternative or a stack: it says what is read next.
struct Symbol {
  enum Kind : uint32_t {
    kTerminal = 0,  // a regex
    kRule = 1,      // a nonterminal
    // Reads nothing. Text is captured from here on.
    kCapture = 2,
    // A nonterminal that is told the label or the captured text before it; its alternatives depend on this.
    kReader = 3,
    // A terminal of a grammar with a lexer. Where it ends depends on the lexemes that compete with it
    // (Productions::lexeme).
    kLexeme = 4,
    // Reads nothing. The next byte must not be in a set, a kBytes regex.
    kFollow = 5,
    // Reads nothing; marks where a capture begins or ends, for find_spans() (parse/spans.h).
    kNote = 6,
    // Reads nothing; sets the context for the lexemes that follow.
    kAfter = 7,
    // Reads nothing. It holds a number: this many more tokens may begin in the text that the symbols above it
    // read (parse/limits.h).
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

// Alternatives whose memory belongs to another object. Alternative i has the symbols from ends[i-1] to
// ends[i] - 1.
struct AlternativeList {
  std::span<const Symbol> symbols;
  std::span<const uint32_t> ends;
  std::span<const Symbol> operator[](std::size_t i) const {
    const uint32_t begin = i == 0 ? 0 : ends[i - 1];
    return symbols.subspan(begin, ends[i] - begin);
  }
  auto each() const {
    return std::views::iota(std::size_t{0}, ends.size()) |
           std::views::transform([all = *this](std::size_t i) { return all[i]; });
  }
};

// The alternatives of a rule in one list. Alternative i has the symbols from ends[i-1] to ends[i] - 1.
struct Alternatives {
  std::vector<Symbol> symbols;
  std::vector<uint32_t> ends;
  // For a reader that was told kFresh: the numbers of the alternatives that do not hold for all fresh texts.
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

// Returns the alternatives with their costs, sorted by cost; equal costs keep their order.
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
    // The reader is not told the captured text, because a mask must hold for many texts. RegexKind::kPoison
    // stands for what depends on it.
    kUnknown,
    // Only this is told: the text differs from all texts with which the reader compares it. The alternatives
    // hold for every such text. An alternative that holds only for some of them is listed in
    // Alternatives::assumed.
    kFresh,
  } kind = kNone;
  uint32_t label = 0;
  std::string text;
  static Reading of_label(uint32_t label) { return {kLabel, label, {}}; }
  static Reading of_text(std::string text) { return {kText, 0, std::move(text)}; }
  static Reading unknown() { return {kUnknown, 0, {}}; }
  static Reading fresh() { return {kFresh, 0, {}}; }
};

// One part of a lexeme's texts: a regex, and the bytes that must not follow these texts.
struct LexemePart {
  RegexId regex;
  // The bytes that must not follow, as a kBytes regex; empty() if any byte may follow.
  RegexId follow;
};

// An upper bound of a shortest text: `bytes` bytes, the bounds of all symbols in `all`, and that of the
// longest symbol in `any`.
struct Bound {
  uint64_t bytes = 0;
  std::vector<Symbol> all, any;
};

struct GrammarTraits {
  // Some lexeme may forbid every byte that could follow. Then there are stacks that no text reads to their
  // end (parse/alive.h).
  bool restricted = false;
  // The grammar consists of lexemes only. Alternatives do not depend on the text in front, and if some byte
  // may follow, the text can be completed.
  bool context_free = false;
  // Terminals read kEdge where one token must end and another begin, and tokens may be limited.
  bool edged = false;
  // kEdge stands only where a text may end, and not where a token must begin (holes/quotient.h).
  bool bordered = false;
  // A text that a terminal reads may have no completion: only poison follows it, and poison may turn out to
  // be nothing.
  bool unproven = false;
  // Some reader may refuse a text although its answer for an unknown text is not poison. If false, the answer
  // for an unknown text holds for every text, except behind poison.
  bool tries_texts = false;
  // Some reader may demand that a text equals an earlier one. If false, every reader takes a text that
  // differs from all earlier ones.
  bool asks_alike = false;
  // Some array asks that its items differ.
  bool asks_distinct = false;
};

struct RuleTraits {
  // What the rule reads. kNone: neither an array nor an object. kAny: an array or object, from behind its
  // opening bracket. kDistinct: the same, but its items or keys must differ and the rule itself does not
  // compare them.
  enum class Items : uint8_t { kNone, kAny, kDistinct };
  Items items = Items::kNone;
  // The texts of the rule are compared with each other, as items under uniqueItems.
  bool compared = false;
  // The rule is a reader that compares the text that it is told with other texts.
  bool compares = false;
  // The rule belongs to a grammar with lexemes, so its alternatives do not depend on the text in front.
  bool plain = false;
  // A text of the rule may contain a limit on tokens (parse/limits.h).
  bool limits = true;
  // At least this many bytes follow a text of the rule in every whole text.
  uint64_t needed_behind = 0;
};

// A grammar as the parser sees it. The parser asks for the alternatives of one rule at a time.
class Productions {
 public:
  virtual ~Productions() = default;
  virtual GrammarTraits traits() const { return {}; }
  virtual RuleTraits traits_of(RuleId /*rule*/) const { return {}; }

  // ---- the texts of a rule ----
  //
  // Appends the alternatives of a rule to `out`.
  virtual void expand(RuleId rule, const Reading& reading, Alternatives& out) = 0;
  // Returns the parts of a lexeme in a context; none if the lexeme cannot begin there.
  virtual std::span<const LexemePart> lexeme(uint32_t /*lexeme*/, uint32_t /*context*/) { return {}; }
  // Several rules may share texts. Appends alternatives of the rule in which another rule stands for the
  // shared texts, so that a search through all rules meets these texts once. Returns false if expand()
  // already gives the only alternatives.
  virtual bool expand_shared(RuleId /*rule*/, Alternatives& /*out*/) { return false; }

  // ---- shortest texts ----
  //
  // The parser calls start_search() before each search for a shortest completion. Calls up to the next search
  // share one limit of steps.
  virtual void start_search() {}
  // Appends alternatives of the rule, one of which has a shortest text of the rule. Other alternatives may be
  // left out.
  virtual void expand_shortest(RuleId rule, const Reading& reading, Alternatives& out) {
    expand(rule, reading, out);
  }
  // Sets an upper bound of the rule's shortest text without a search. The bound of a reader must hold
  // whatever the reader is told. Returns false if no bound is known.
  virtual bool bound(RuleId /*rule*/, Bound& /*out*/) { return false; }

  // ---- texts that are compared ----
  //
  // Appends the texts that a comparing reader treats unlike all other texts. Returns false if there are
  // `most` such texts or more.
  virtual bool compared_with(RuleId /*reader*/, std::size_t /*most*/, std::vector<std::string>& /*out*/) {
    return true;
  }
  // narrow() looks for a rule that has some texts of a compared rule: those that equal one of `texts`, those
  // of one of `rules`, and with `others` all that are neither. If these are all texts, `out` is the rule
  // itself. `any` says whether there is such a text. Returns false if this is not known.
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
  // Returns a lenient rule: it has the texts of `start`, and also texts in which items or keys repeat
  // although they must differ. It is lenient only in arrays and objects where some other item or key is
  // always left (engine/distinct.h). Returns `start` if there is no such array or object.
  virtual RuleId lenient(RuleId start) { return start; }
  // Returns a literal set with all items of a kDistinct rule; empty() if there is no such set.
  virtual RegexId choices(RuleId /*rule*/) { return {}; }

  // ---- numbers that grow as rules are expanded ----
  //
  // Returns how often something was omitted because it was too much to tell (base/effort.h).
  virtual uint64_t omitted() const { return 0; }
  // Returns true if alternatives were omitted for lack of work, apart from those that the regex arena counts.
  virtual bool inexact() const { return false; }
  // Returns the number of keys of the largest object among the rules.
  virtual std::size_t most_keys() const { return 0; }
  virtual std::size_t byte_size() const { return 0; }
};

}  // namespace structgen
