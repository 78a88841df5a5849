// Patterns: text -> syntax tree -> byte language.
//
// In: the text of an ECMA-262 pattern (flag `u`, read as leniently as validators do) or of a Python
// `re` pattern. Out: a Pattern (parse_pattern checks syntax only, linear in the text), then a RegexId
// over plain UTF-8 or over the spellings of a JSON string.
// Errors: kGrammar with the byte offset for text that is no pattern or is not regular
// (back-references, atomic groups); kSchemaTooComplex for assertions that would need too many states,
// kUnsupportedSchema for a look-behind that looks ahead past its end (behind.h).
// Cost of lowering: one arena call a node; counters stay counters.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "regex/spelling.h"

namespace structgen {

class RegexArena;

enum class Flavor : uint8_t { kEcma, kPython };
enum class Match : uint8_t {
  kSearch,  // somewhere in the text
  kFull,    // the whole text
};

// Recipe, regex feature 1: a kind of node, if no kind says it.
enum class PatternKind : uint8_t {
  kEmpty,       // nothing
  kChar,        // the code point a
  kClass,       // the set sets[a]
  kCat,         // kids
  kAlt,         // kids
  kRepeat,      // child a, {min,max}
  kStart,       // at the start of the text
  kEnd,         // at the end of the text
  kBoundary,    // \b; negated: \B
  kLookahead,   // child a matches from here on; negated: does not
  kLookbehind,  // child a matches up to here; negated: does not
};

constexpr uint32_t kNoLimit = 0xFFFFFFFFu;

struct PatternNode {
  PatternKind kind = PatternKind::kEmpty;
  bool negated = false;
  bool asserts = false;                // the subtree contains an assertion
  bool lazy = false;                   // kRepeat: fewer are preferred; the same language
  uint32_t a = 0;                      // child, set, code point, or first index into kids
  uint32_t n = 0;                      // number of kids
  uint32_t min = 0, max = 0;           // kRepeat; max kNoLimit = unbounded
  uint32_t shortest = 0, longest = 0;  // code points matched; longest kNoLimit = unbounded
};

struct PatternGroup {
  uint32_t name, node;
};

struct Pattern {
  std::vector<PatternNode> nodes;  // children before parents
  std::vector<uint32_t> kids;
  std::vector<CodepointSet> sets;
  CodepointSet word;  // what \b calls a word character
  uint32_t root = 0;
  std::vector<std::string> names;    // of groups, each once
  std::vector<PatternGroup> groups;  // inner ones before outer ones; see groups.h

  std::span<const uint32_t> kids_of(const PatternNode& n) const { return {kids.data() + n.a, n.n}; }

  uint32_t add_empty();
  uint32_t add_char(uint32_t c);
  uint32_t add_class(CodepointSet set);
  uint32_t add_cat(std::span<const uint32_t> parts);
  uint32_t add_alt(std::span<const uint32_t> parts);
  uint32_t add_repeat(uint32_t child, uint32_t min, uint32_t max);
  uint32_t add_anchor(PatternKind kind, bool negated = false);  // kStart, kEnd, kBoundary
  uint32_t add_look(PatternKind kind, uint32_t child, bool negated);
};

// `ascii`: \d, \w, \s and \b of Python's patterns are ASCII until (?u) says otherwise. ECMA's always are.
Pattern parse_pattern(std::string_view text, Flavor flavor = Flavor::kEcma, bool ascii = false);

// The texts in which the pattern matches, written in a spelling, each with what ends a text there.
RegexId lower(RegexArena& arena, const Pattern& pattern, Match match, const Spelling& spelling = kUtf8);

}  // namespace structgen
