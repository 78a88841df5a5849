// The one interface between grammars and the parser: what a nonterminal expands to, on demand.
//
// In: a RuleId (and, for a reader, the text or label just completed). Out: alternatives, each a
// sequence of symbols. Cost: the provider's; the parser asks once per rule and remembers.
// Contract: every alternative returned is productive (some finite text completes it), which is what
// makes every parse state live. Rules must not be left-recursive.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/ids.h"

namespace structgen {

// A pending symbol of a stack.
struct Symbol {
  enum Kind : uint32_t {
    kTerminal = 0,  // a regex
    kRule = 1,      // a nonterminal
    kCapture = 2,   // nothing to read: text is captured from here on
    kReader = 3,    // a nonterminal whose expansion depends on the completed label or captured text
  };
  uint32_t v = 0;
  static Symbol terminal(RegexId r) { return {(r.v << 2) | kTerminal}; }
  static Symbol rule(RuleId r) { return {(r.v << 2) | kRule}; }
  static Symbol reader(RuleId r) { return {(r.v << 2) | kReader}; }
  static Symbol capture() { return {kCapture}; }
  Kind kind() const { return static_cast<Kind>(v & 3); }
  RegexId regex() const { return RegexId{v >> 2}; }
  RuleId rule_id() const { return RuleId{v >> 2}; }
  friend bool operator==(Symbol a, Symbol b) { return a.v == b.v; }
  friend bool operator<(Symbol a, Symbol b) { return a.v < b.v; }
};

// Alternatives in one flat buffer: alternative i is symbols[ends[i-1] .. ends[i]).
struct Alternatives {
  std::vector<Symbol> symbols;
  std::vector<uint32_t> ends;
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
  } kind = kNone;
  uint32_t label = 0;
  std::string text;
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
  virtual void expand_shortest(RuleId rule, const Reading& reading, Alternatives& out) { expand(rule, reading, out); }
};

}  // namespace structgen
