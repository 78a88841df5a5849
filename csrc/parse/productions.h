// The one interface between grammars and the parser: what a nonterminal expands to, on demand.
//
// In: a RuleId (and, for a reader, the text or label just completed). Out: alternatives, each a
// sequence of symbols. Cost: the provider's; the parser asks once per rule and remembers.
// Contract: every alternative returned is productive (some finite text completes it), which is what
// makes every parse state live. Rules must not be left-recursive.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/ids.h"

namespace structgen {

// What a note says: a named part begins or ends here. In a left-recursive rule a part that begins with the
// rule itself is known only once its first part was read: then it began (and an empty one ended) where the
// rule was entered; see grammar/productions.h. A gap is what stands between lexemes: a part that ends behind
// one ends in front of it.
enum class NoteKind : uint32_t { kOpen, kClose, kOpened, kClosed, kEnter, kLeave, kGap, kGapEnd };
inline uint32_t note_number(NoteKind kind, uint32_t name) { return name * 8 + static_cast<uint32_t>(kind); }
inline NoteKind note_kind(uint32_t number) { return static_cast<NoteKind>(number % 8); }
inline uint32_t note_name(uint32_t number) { return number / 8; }

// Stands in a terminal where one token ends and another begins; no text and no token has this byte.
constexpr uint8_t kEdge = 0xFE;

constexpr uint32_t kMaxNumber = (1u << 28) - 1;  // of anything that a symbol names

// A pending symbol of a stack.
struct Symbol {
  enum Kind : uint32_t {
    kTerminal = 0,  // a regex
    kRule = 1,      // a nonterminal
    kCapture = 2,   // nothing to read: text is captured from here on
    kReader = 3,    // a nonterminal whose expansion depends on the completed label or captured text
    kLexeme = 4,    // a terminal whose end depends on what else could be read there; see Productions::lexeme
    kFollow = 5,    // nothing to read: the next byte is none of a set (a kBytes regex)
    kNote = 6,   // nothing to read: a place that is looked for when captures are asked for; see parse/spans.h
    kAfter = 7,  // nothing to read: lexemes that come next are read in a context
    kLimit = 8,  // nothing to read: so many tokens may still begin above it; see parse/limits.h
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

// Alternatives in one flat buffer: alternative i is symbols[ends[i-1] .. ends[i]).
struct Alternatives {
  std::vector<Symbol> symbols;
  std::vector<uint32_t> ends;
  std::vector<uint32_t> assumed;  // numbers of those that need not hold, of a reader that was told kFresh
  void add(std::initializer_list<Symbol> sequence) {
    symbols.insert(symbols.end(), sequence);
    ends.push_back(static_cast<uint32_t>(symbols.size()));
  }
  void add(const std::vector<Symbol>& sequence) {
    symbols.insert(symbols.end(), sequence.begin(), sequence.end());
    ends.push_back(static_cast<uint32_t>(symbols.size()));
  }
};

// What a reader is told.
struct Reading {
  enum Kind : uint8_t {
    kNone,
    kLabel,    // a labelled literal was completed
    kText,     // captured text
    kUnknown,  // a text was captured, but the caller (a mask) does not say which; see kPoison below
    kFresh,    // some text that differs from every other. Of items that are compared, what holds for every
               // text, and marked as assumed what may hold for some: a text in question is told by itself
  } kind = kNone;
  uint32_t label = 0;
  std::string text;
};

// One way to read a lexeme: texts after which the next byte must not be one of a set.
struct LexemePart {
  RegexId regex;
  RegexId follow;  // a kBytes regex, or empty(): anything may follow
};

// So many bytes, each of `all` and one of `any`, the longest.
struct Bound {
  uint64_t bytes = 0;
  std::vector<Symbol> all, any;
};

class Productions {
 public:
  virtual ~Productions() = default;
  virtual void expand(RuleId rule, const Reading& reading, Alternatives& out) = 0;
  // What it remembers, in bytes.
  virtual std::size_t byte_size() const { return 0; }
  // A search for a shortest completion begins; everything it asks for is one budget.
  virtual void start_search() {}
  // Alternatives among which a shortest one is; a provider that knows leaves out the rest.
  virtual void expand_shortest(RuleId rule, const Reading& reading, Alternatives& out) {
    expand(rule, reading, out);
  }
  // An upper bound of a shortest text of the rule, told without a search; of a reader, whatever was read.
  // False: not known.
  virtual bool bound(RuleId /*rule*/, Bound& /*out*/) { return false; }
  // How a lexeme is read in a context; empty where it cannot be read there.
  virtual std::span<const LexemePart> lexeme(uint32_t /*lexeme*/, uint32_t /*context*/) { return {}; }
  // Whether what may not follow a lexeme can leave nothing that may; see parse/alive.h.
  virtual bool restricted() const { return false; }
  // Whether this is a grammar with lexemes and nothing else: no expansion depends on what was read, and a
  // live byte is all it takes to go on.
  virtual bool context_free() const { return false; }
  // Whether some terminals hold kEdge: a token has to begin there. Such a grammar limits tokens, too.
  virtual bool edged() const { return false; }
  // How often something was omitted because it was too much to tell; see base/effort.h.
  virtual uint64_t omitted() const { return 0; }
  // Whether a text also ends where a terminal that is read next takes kEdge, without being an edge of tokens;
  // see holes/quotient.h.
  virtual bool bordered() const { return false; }
  // Whether poison may be all that there is behind a text which then may have no continuation: else every
  // text of a terminal has one.
  virtual bool unproven() const { return false; }
  // Bytes at least that stand behind a text of the rule in every whole text.
  virtual uint64_t needed_behind(RuleId) const { return 0; }
  // Whether readers compare the texts of a rule with each other.
  virtual bool compared(RuleId /*rule*/) const { return false; }
  // Whether a reader compares the text that it is told with others.
  virtual bool compares(RuleId /*reader*/) const { return false; }
  // Whether a reader may have asked a text to equal an earlier one. Else one that differs is in nobody's way.
  virtual bool asks_alike() const { return false; }
  // A rule whose texts are compared, with some of its texts: those that are equal to one of `texts` or are of
  // one of `rules`, or all others. `rule` itself if that is all of them. `any`: whether there are some.
  // False: that is not known.
  struct Choice {
    std::span<const std::string> texts;
    std::span<const RuleId> rules;
    bool others = false;
  };
  virtual bool narrow(RuleId /*rule*/, const Choice& /*choice*/, RuleId& /*out*/, bool& /*any*/) {
    return false;
  }
  // A text for each value of such a rule. False: there are `most` or more, or they are too much to tell.
  virtual bool values(RuleId /*rule*/, uint32_t /*most*/, std::vector<std::string>& /*out*/) { return false; }
  // Whether something that there is was left out because it was too much to tell, without the arena knowing.
  virtual bool inexact() const { return false; }
  // Whether a rule is one of a grammar with lexemes, whose expansions do not depend on what was read.
  virtual bool plain(RuleId) const { return false; }
};

}  // namespace structgen
