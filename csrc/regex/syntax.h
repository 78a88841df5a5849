// Patterns: from text to a syntax tree to a language of bytes.
//
// In: the text of an ECMA-262 pattern (flag `u`, read as leniently as validators do) or of a pattern of
// Python's `re`. Out: a Pattern (parse_pattern only checks the syntax, linear in the text), then a
// RegexId over UTF-8 or over the spellings of a JSON string. Errors: kGrammar with the byte offset for
// a text that is no pattern or not regular (back-references, atomic groups); kSchemaTooComplex for
// assertions that would need too many states; kUnsupportedSchema for a look-behind that looks ahead
// past its end (behind.h). Cost of lowering: one call of the arena per node. Counters stay counters.
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

// No maximum, of a counter or of the length of a match.
constexpr uint32_t kNoMaximum = 0xFFFFFFFFu;

// A node of the syntax tree. Only `lazy` may change after the node was made.
struct PatternNode {
  PatternKind kind = PatternKind::kEmpty;
  bool negated = false;
  bool asserts = false;
  // True for a lazy kRepeat, which prefers fewer iterations. Its language is the same; only groups.h needs
  // the flag.
  bool lazy = false;
  // By kind: a child, the number of a set, a code point, or the index of the first kid in Pattern::kids.
  uint32_t a = 0;
  uint32_t n = 0;  // number of kids
  // The bounds of a kRepeat; kNoMaximum as `max` means that there is no maximum.
  uint32_t min = 0, max = 0;
  // The least and the most code points of a match; kNoMaximum as `longest` means that there is no longest
  // match.
  uint32_t shortest = 0, longest = 0;
};

struct PatternGroup {
  uint32_t name, node;
};

// A syntax tree. A node is named by its index in `nodes`; children come before their parents.
struct Pattern {
  std::vector<PatternNode> nodes;  // children before parents
  std::vector<uint32_t> kids;
  std::vector<CodepointSet> sets;
  CodepointSet word;
  uint32_t root = 0;
  // The names of the groups; a name that several groups have stands here once.
  std::vector<std::string> names;
  // The named groups, inner ones before outer ones; groups.h reports them.
  std::vector<PatternGroup> groups;

  std::span<const uint32_t> kids_of(const PatternNode& n) const { return {kids.data() + n.a, n.n}; }

  // The functions down to add_look() return the index of a new node, or of an old one with the same meaning.
  uint32_t add_empty();
  uint32_t add_char(uint32_t c);
  uint32_t add_class(CodepointSet set);
  uint32_t add_cat(std::span<const uint32_t> parts);
  uint32_t add_alt(std::span<const uint32_t> parts);
  uint32_t add_repeat(uint32_t child, uint32_t min, uint32_t max);
  uint32_t add_anchor(PatternKind kind, bool negated = false);  // kStart, kEnd, kBoundary
  uint32_t add_look(PatternKind kind, uint32_t child, bool negated);

 private:
  uint32_t add_list(PatternKind kind, std::span<const uint32_t> parts);
};

// Parses a pattern. With `ascii`, \d, \w, \s and \b of a Python pattern match ASCII characters only, until
// (?u) changes this. In ECMA they always do.
Pattern parse_pattern(std::string_view text, Flavor flavor = Flavor::kEcma, bool ascii = false);

// Returns the texts in which the pattern matches, in `spelling`, each with the spelling's terminator.
RegexId lower(RegexArena& arena, const Pattern& pattern, Match match, const Spelling& spelling = kUtf8);

}  // namespace structgen
