// The interface between grammars and the parser: the alternatives of a nonterminal, on demand.
//
// In: a RuleId and, for a reader, the text or label that was just completed. Out: alternatives; each
// alternative is a sequence of symbols. Cost: what the grammar's own code takes, once for each rule, because
// the parser keeps the answer. Contract: some finite text completes every alternative, so no parse state is a
// dead end. The exception is a grammar that is `unproven` (GrammarTraits). Rules must not be left-recursive.
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

// What a note says. kOpen and kClose: a capture begins or ends here. In a left-recursive rule, it is known
// only after the first text of the rule that a capture has begun with the rule itself: kOpened then says that
// this capture began where the rule was entered, and kClosed says that an empty capture also ended there
// (grammar/productions.h). kEnter and kLeave stand before and behind such a rule. kGap and kGapEnd stand
// before and behind the text between two lexemes. A capture that ends behind a gap is moved to end in front
// of it.
enum class NoteKind : uint32_t { kOpen, kClose, kOpened, kClosed, kEnter, kLeave, kGap, kGapEnd };
inline uint32_t note_number(NoteKind kind, uint32_t name) { return name * 8 + static_cast<uint32_t>(kind); }
inline NoteKind note_kind(uint32_t number) { return static_cast<NoteKind>(number % 8); }
inline uint32_t note_name(uint32_t number) { return number / 8; }

// A terminal has this byte where one token must end and another token must begin. No text and no token
// contains it.
constexpr uint8_t kEdge = 0xFE;

constexpr uint32_t kMaxNumber = (1u << 28) - 1;

// A symbol of an alternative or a stack: it says what is read next.
struct Symbol {
  enum Kind : uint32_t {
    kTerminal = 0,  // a regex
    kRule = 1,      // a nonterminal
    // Reads nothing. Text is captured from here on.
    kCapture = 2,
    // A nonterminal that is told the label or the captured text before it; its alternatives depend on this
    // text or label.
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
    // Reads nothing. Carries a number: how many more tokens may begin in the text that the symbols above it
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

// Alternatives in memory that another object owns. Alternative i has the symbols ends[i-1] to ends[i] - 1.
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

// Alternatives in one list of symbols. Alternative i has the symbols ends[i-1] to ends[i] - 1.
struct Alternatives {
  std::vector<Symbol> symbols;
  std::vector<uint32_t> ends;
  // For a reader that was told kFresh: the numbers of those alternatives that hold for some fresh texts only.
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
    // The reader is not told the captured text, because one mask must hold for many captured texts. In its
    // answer a terminal with the regex poison() stands for all that depends on the text.
    kUnknown,
    // The reader is told only that the text is fresh: it differs from all texts with which the reader
    // compares it. An alternative that holds for some fresh texts only is listed in Alternatives::assumed.
    kFresh,
  } kind = kNone;
  uint32_t label = 0;
  std::string text;
  static Reading of_label(uint32_t label) { return {kLabel, label, {}}; }
  static Reading of_text(std::string text) { return {kText, 0, std::move(text)}; }
  static Reading unknown() { return {kUnknown, 0, {}}; }
  static Reading fresh() { return {kFresh, 0, {}}; }
};

// A part of a lexeme's texts: those of `regex`, and the bytes that may not follow them.
struct LexemePart {
  RegexId regex;
  // The bytes that must not follow, as a kBytes regex; empty() if any byte may follow.
  RegexId follow;
};

// An upper bound of the bytes of a shortest text, as a sum: `bytes`, the bounds of all symbols in `all`, and
// the largest bound of the symbols in `any`.
struct Bound {
  uint64_t bytes = 0;
  std::vector<Symbol> all, any;
};

struct GrammarTraits {
  // True if a lexeme may forbid every byte that could follow it. Then some stacks cannot be read to their end
  // (parse/alive.h).
  bool restricted = false;
  // True if the grammar consists of lexemes only. Its alternatives do not depend on the text in front, and
  // every text that some byte may follow can be completed.
  bool context_free = false;
  // True if terminals contain kEdge where one token must end and another begin. The grammar may then also
  // limit tokens.
  bool edged = false;
  // True if kEdge stands only where a text may end. Such a byte does not force a token to begin
  // (holes/quotient.h).
  bool bordered = false;
  // True if a text that a terminal reads may have no completion: behind it only poison follows, and once the
  // captured text is known, it may turn out that nothing can follow.
  bool unproven = false;
  // True if some reader may refuse a captured text although its answer for an unknown text is not poison. If
  // false, the answer for an unknown text holds for every text, apart from what stands behind poison.
  bool tries_texts = false;
  // True if some reader may demand that a captured text equals an earlier text. If false, every reader takes
  // each text that differs from all earlier texts.
  bool asks_alike = false;
  // True if some array asks that its items differ.
  bool asks_distinct = false;
};

struct RuleTraits {
  // What the texts of the rule are. kAny: each text is the rest of an array or object, from behind its
  // opening bracket. kDistinct: the same, and the items or keys must differ; a reader behind each item or key
  // compares it, not the rule itself. kNone: the texts are anything else.
  enum class Items : uint8_t { kNone, kAny, kDistinct };
  Items items = Items::kNone;
  // True if the texts of the rule are compared with each other, as the items of an array with uniqueItems
  // are.
  bool compared = false;
  // True if the rule is a reader that compares the text that it is told with other texts.
  bool compares = false;
  // True if the rule belongs to a grammar of lexemes, so that its alternatives do not depend on the text in
  // front.
  bool plain = false;
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
  // Returns the parts of a lexeme in a context. The list is empty if the lexeme cannot begin in this context.
  virtual std::span<const LexemePart> lexeme(uint32_t /*lexeme*/, uint32_t /*context*/) { return {}; }
  // Appends alternatives in which another rule stands for texts that several rules share. A search through
  // all rules then meets these texts once. Returns false if expand() gives the only alternatives.
  virtual bool expand_shared(RuleId /*rule*/, Alternatives& /*out*/) { return false; }

  // ---- shortest texts ---- The parser calls start_search() before each search for a shortest completion.
  // All questions of one search together may take a limited number of steps.
  virtual void start_search() {}
  // Appends alternatives of the rule. One of them leads to a shortest text; others may be left out.
  virtual void expand_shortest(RuleId rule, const Reading& reading, Alternatives& out) {
    expand(rule, reading, out);
  }
  // Gives an upper bound of the bytes of the rule's shortest text without a search. For a reader the bound
  // must hold whatever the reader is told. Returns false if no bound is known.
  virtual bool bound(RuleId /*rule*/, Bound& /*out*/) { return false; }

  // ---- texts that are compared ----
  //
  // Appends the texts that a comparing reader treats unlike all other texts. Returns false if there are
  // `most` such texts or more.
  virtual bool compared_with(RuleId /*reader*/, std::size_t /*most*/, std::vector<std::string>& /*out*/) {
    return true;
  }
  // narrow() makes a rule that has some chosen texts of a compared rule: the texts equal to one of `texts`,
  // the texts of each of `rules`, and with `others` all remaining texts. If all texts are chosen, `out` is
  // the rule itself. `any` becomes true if some text is chosen. Returns false if this cannot be decided.
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
  // Returns a lenient rule: it has the texts of `start`, and also texts in which items or keys repeat that
  // must differ. Items or keys may repeat only where some other item or key is always left
  // (engine/distinct.h). If there is no such array or object, it returns `start`.
  virtual RuleId lenient(RuleId start) { return start; }
  // Returns a literal set with all items of a kDistinct rule, or empty() if its items are not finitely many
  // literals.
  virtual RegexId choices(RuleId /*rule*/) { return {}; }

  // ---- numbers that grow as rules are expanded ----
  //
  // Returns how often something was omitted because it was too much to tell (base/effort.h).
  virtual uint64_t omitted() const { return 0; }
  // Returns true if alternatives were omitted because finding them took too much work, apart from the
  // omissions that the regex arena counts.
  virtual bool inexact() const { return false; }
  // Returns the number of keys of the largest object among the rules.
  virtual std::size_t most_keys() const { return 0; }
  virtual std::size_t byte_size() const { return 0; }
};

}  // namespace structgen
