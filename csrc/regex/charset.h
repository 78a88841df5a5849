// Sets of Unicode scalar values and their spellings as byte languages.
//
// In: ranges of code points. Out: a RegexId over bytes: plain UTF-8, the same with entities for & and ", or
// every spelling of one decoded character inside a JSON string (raw, short escape, \uXXXX, surrogate pair).
// Cost: set operations are linear in the ranges; lowering is one trie over the digits of the code
// points (UTF-8 bytes or hex digits), equal subtrees shared, so a small class costs a few nodes.
//
// The spellings are prefix codes of a character, and no byte string spells two texts, hence &, |, ~
// commute with them as long as a complement is taken inside any_text of the spelling.
// A lone surrogate escape (\uD800 without its partner) spells no scalar value: it is never accepted.
// Source of the range splitting: R. Cox, "Regular Expression Matching in the Wild" (2010), section
// on UTF-8.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"

namespace structgen {

class RegexArena;

struct CodepointRange {
  uint32_t lo, hi;  // inclusive
  friend bool operator==(const CodepointRange&, const CodepointRange&) = default;
};

constexpr uint32_t kMaxCodepoint = 0x10FFFF;

// Invariant: ranges sorted, lo <= hi, gaps of at least one between neighbours, no surrogates.
class CodepointSet {
 public:
  CodepointSet() = default;
  CodepointSet(std::initializer_list<CodepointRange> ranges) : CodepointSet(std::vector(ranges)) {}
  explicit CodepointSet(std::vector<CodepointRange> ranges);  // any order, overlaps allowed
  static CodepointSet all();
  static CodepointSet one(uint32_t c) { return CodepointSet{{c, c}}; }

  const std::vector<CodepointRange>& ranges() const { return ranges_; }
  bool empty() const { return ranges_.empty(); }
  bool contains(uint32_t c) const;
  uint64_t size() const;
  // The only member when there is exactly one; false otherwise.
  bool single(uint32_t& c) const;

  CodepointSet complement() const;
  friend CodepointSet operator|(const CodepointSet& a, const CodepointSet& b);
  friend CodepointSet operator&(const CodepointSet& a, const CodepointSet& b);
  friend CodepointSet operator-(const CodepointSet& a, const CodepointSet& b);
  friend bool operator==(const CodepointSet&, const CodepointSet&) = default;

 private:
  std::vector<CodepointRange> ranges_;
};

// The ways to spell a text in bytes. kAttribute: inside quotes of an element, `&amp;` and `&quot;` for & and
// ".
enum class Spelling : uint8_t { kUtf8, kJson, kAttribute };

RegexId utf8_class(RegexArena& arena, const CodepointSet& set);
RegexId json_class(RegexArena& arena, const CodepointSet& set);
RegexId spell_class(RegexArena& arena, const CodepointSet& set, Spelling spelling);

RegexId utf8_any_char(RegexArena& arena);
RegexId json_any_char(RegexArena& arena);

// Every text: utf8_any_char*, and json_any_char* without quotes.
RegexId utf8_text(RegexArena& arena);
RegexId json_text(RegexArena& arena);
RegexId any_text(RegexArena& arena, Spelling spelling);
// One text, as kUtf8 or kAttribute have it.
std::string spell(std::string_view text, Spelling spelling);

// The convention for string constraints: the language of a string *after* its opening quote, closing
// quote included. json_string_body is the one of "any string"; json_string adds the opening quote.
RegexId json_string_body(RegexArena& arena);
RegexId json_string(RegexArena& arena, RegexId body);

}  // namespace structgen
