// The pattern parser: groups, quantifiers, assertions, flags; syntax.h has the two dialects.
//
// Recursive descent over the text, with one method for each construct. Nodes stand in one list. For
// `a(?i:b|c)*d`:
//
//     alternation()    sequence(), then `|`: there is none
//     sequence()       atom and quantifier, until `|`, `)` or the end
//     atom()           `a`: character(); `(`: group(), whose flags end with it; `*` behind it: quantified()
//     result           cat(a, repeat(alt(b, c), 0, no limit), d), where b and c carry the flag i
//
// Where the dialects differ, `in_.flavor` decides at the construct: `(?x)` and `{,n}` are Python's,
// `\u{...}` and `[^]` are ECMA's. The parser is as lenient as validators of JSON Schema are: a `{` that
// begins no quantifier is a character.
//
// An error has the byte offset of its construct, and says what is wrong and what to write instead.
// Depth is limited, so a pattern of a million brackets is an error.
//
// Costs. Linear in the text. Classes are sets of ranges (regex/class_syntax.h).
#include "regex/syntax.h"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/depth.h"
#include "base/error.h"
#include "regex/class_syntax.h"
#include "regex/unicode.h"

namespace structgen {

namespace {

// Groups nest at most this deep; a pattern with deeper groups is refused.
constexpr int kMaxGroups = 1000;
constexpr uint32_t kMaxCount = 1'000'000'000;

class Parser {
 public:
  Parser(std::string_view text, Flavor flavor, bool ascii) {
    in_.text = text;
    in_.flavor = flavor;
    in_.flags.ascii = ascii;
  }

  Pattern run() {
    const uint32_t root = alternation();
    if (!in_.done()) in_.fail("unmatched ')'; write \\) for a parenthesis");
    out_.root = root;
    const bool unicode = in_.flavor == Flavor::kPython && !in_.flags.ascii;
    out_.word = unicode ? python_word() : ascii_word();
    return std::move(out_);
  }

 private:
  // Each of these reads one construct at the cursor and returns its node. Errors name the offset `start`.
  uint32_t alternation();
  uint32_t sequence();
  bool atom(uint32_t& node);
  uint32_t group(std::size_t start);
  uint32_t group_body(std::size_t start);
  uint32_t extended_group(std::size_t start);
  uint32_t python_group(std::size_t start);
  uint32_t escape(std::size_t start);
  uint32_t look(PatternKind kind, bool negated, std::size_t start);
  uint32_t quantified(uint32_t node);
  bool counter(uint32_t& min, uint32_t& max);
  bool number(uint32_t& value);
  uint32_t named_group(char close, std::size_t start);
  bool inline_flags(std::size_t start, bool& scoped);
  void skip_verbose();
  uint32_t character(uint32_t c);
  uint32_t line_start();
  uint32_t line_end();

  PatternCursor in_;
  Pattern out_;
  std::unordered_map<std::string, uint32_t> names_;
  int depth_ = 0;
  // The offset behind groups such as (?i) that open the pattern. Python allows flags of the whole pattern
  // only there.
  std::size_t flags_end_ = 0;
};

uint32_t Parser::alternation() {
  check_depth();
  std::vector<uint32_t> branches{sequence()};
  while (in_.eat("|")) branches.push_back(sequence());
  return out_.add_alt(branches);
}

uint32_t Parser::sequence() {
  std::vector<uint32_t> parts;
  for (;;) {
    if (in_.flags.verbose) skip_verbose();
    if (in_.done() || in_.peek() == '|' || in_.peek() == ')') break;
    uint32_t node;
    if (atom(node)) parts.push_back(quantified(node));
  }
  return out_.add_cat(parts);
}

// Recipe, regex feature 2: where it is read; an escape is in class_syntax.cc.
// Reads one atom without its quantifier. Returns false if a group only set flags or was a comment.
bool Parser::atom(uint32_t& node) {
  const std::size_t start = in_.at;
  const char c = in_.peek();
  switch (c) {
    case '(': {
      ++in_.at;
      bool scoped = false;
      if (inline_flags(start, scoped)) return false;
      if (in_.flavor == Flavor::kPython && in_.eat("?#")) {
        const std::size_t end = in_.text.find(')', in_.at);
        if (end == std::string_view::npos) in_.fail("the comment is not closed", start);
        in_.at = end + 1;
        return false;
      }
      node = group(start);
      return true;
    }
    case '[':
      ++in_.at;
      node = out_.add_class(read_brackets(in_, start));
      return true;
    case '.':
      ++in_.at;
      node = out_.add_class(dot_class(in_));
      return true;
    case '^':
      ++in_.at;
      node = line_start();
      return true;
    case '$':
      ++in_.at;
      node = line_end();
      return true;
    case '\\':
      ++in_.at;
      node = escape(start);
      return true;
    case '*':
    case '+':
    case '?': in_.fail(std::string("nothing to repeat before '") + c + "'; escape it to mean the character");
    case '{': {
      uint32_t min, max;
      if (counter(min, max)) in_.fail("nothing to repeat before the counter; write \\{ for a brace", start);
      // A brace that opens no counter is an ordinary character.
      break;
    }
    default: break;
  }
  node = character(in_.next_char());
  return true;
}

// Returns the node of a character. A surrogate, which no text contains, becomes the empty class.
uint32_t Parser::character(uint32_t c) {
  if (in_.flags.ignore_case) return out_.add_class(with_cases(in_, CodepointSet::one(c)));
  if (c >= 0xD800 && c <= 0xDFFF) return out_.add_class({});
  return out_.add_char(c);
}

uint32_t Parser::escape(std::size_t start) {
  const char c = in_.peek();
  if (c == 'b' || c == 'B') {
    ++in_.at;
    return out_.add_anchor(PatternKind::kBoundary, c == 'B');
  }
  // ECMA without the flag `u` reads \A, \Z and \z as letters, which no author means. They are read as
  // Python's anchors instead.
  if (c == 'A' || c == 'Z' || (c == 'z' && in_.flavor == Flavor::kEcma)) {
    ++in_.at;
    return out_.add_anchor(c == 'A' ? PatternKind::kStart : PatternKind::kEnd);
  }
  if (c == 'k') in_.fail("back-references are not regular and cannot be enforced", start);
  EscapeResult e = read_escape(in_, start, false);
  if (!e.is_set) return character(e.c);
  return out_.add_class(std::move(e.set));
}

// Returns the node of `^`; under the flag m it is (?:^|(?<=\n)), which also matches behind a line
// break.
uint32_t Parser::line_start() {
  const uint32_t start = out_.add_anchor(PatternKind::kStart);
  if (!in_.flags.multi_line) return start;
  const CodepointSet breaks = in_.flavor == Flavor::kPython
                                  ? CodepointSet::one('\n')
                                  : CodepointSet{{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}};
  const uint32_t after = out_.add_look(PatternKind::kLookbehind, out_.add_class(breaks), false);
  const uint32_t both[] = {start, after};
  return out_.add_alt(both);
}

// Returns the node of `$`. Under the flag m it also matches in front of a line break, and in Python in front
// of a line break at the end of the text.
uint32_t Parser::line_end() {
  const uint32_t end = out_.add_anchor(PatternKind::kEnd);
  const bool python = in_.flavor == Flavor::kPython;
  if (!in_.flags.multi_line && !python) return end;
  if (in_.flags.multi_line) {
    const CodepointSet breaks =
        python ? CodepointSet::one('\n') : CodepointSet{{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}};
    const uint32_t before = out_.add_look(PatternKind::kLookahead, out_.add_class(breaks), false);
    const uint32_t both[] = {end, before};
    return out_.add_alt(both);
  }
  const uint32_t newline[] = {out_.add_char('\n'), out_.add_anchor(PatternKind::kEnd)};
  const uint32_t both[] = {end, out_.add_look(PatternKind::kLookahead, out_.add_cat(newline), false)};
  return out_.add_alt(both);
}

// Reads a group. Flags that are set inside of the group end with it.
uint32_t Parser::group(std::size_t start) {
  if (++depth_ > kMaxGroups)
    throw Error(ErrorKind::kSchemaTooComplex, "groups nest deeper than " + std::to_string(kMaxGroups))
        .at(static_cast<int64_t>(start));
  const PatternFlags outer = in_.flags;
  const uint32_t node = in_.eat("?") ? extended_group(start) : group_body(start);
  in_.flags = outer;
  --depth_;
  return node;
}

uint32_t Parser::group_body(std::size_t start) {
  const uint32_t node = alternation();
  if (!in_.eat(")")) in_.fail("the group is not closed; add ')' or escape '('", start);
  return node;
}

uint32_t Parser::look(PatternKind kind, bool negated, std::size_t start) {
  return out_.add_look(kind, group_body(start), negated);
}

uint32_t Parser::extended_group(std::size_t start) {
  if (in_.eat(":")) return group_body(start);
  if (in_.eat("=")) return look(PatternKind::kLookahead, false, start);
  if (in_.eat("!")) return look(PatternKind::kLookahead, true, start);
  if (in_.eat("<=")) return look(PatternKind::kLookbehind, false, start);
  if (in_.eat("<!")) return look(PatternKind::kLookbehind, true, start);
  if (in_.eat("<")) {
    if (in_.flavor == Flavor::kPython) in_.fail("(?< is not Python's re; write (?P<name>...)", start);
    return named_group('>', start);
  }
  if (in_.looking_at(">")) in_.fail("atomic groups are not supported; write (?:...)", start);
  if (in_.looking_at("(")) in_.fail("conditional groups are not regular", start);
  if (in_.eat("P")) return python_group(start);
  if (in_.looking_at("R") || in_.looking_at("&")) in_.fail("recursive groups are not regular", start);
  bool scoped = true;
  --in_.at;
  if (inline_flags(start, scoped)) return group_body(start);
  in_.fail("unknown group syntax after '(?'; write (?:...) for a plain group", start);
}

uint32_t Parser::python_group(std::size_t start) {
  if (in_.eat("<")) {  // (?P<name>...), which other engines share
    return named_group('>', start);
  }
  if (in_.looking_at("=")) in_.fail("back-references are not regular and cannot be enforced", start);
  in_.fail("unknown group syntax after '(?P'", start);
}

uint32_t Parser::named_group(char close, std::size_t start) {
  const std::size_t begin = in_.at;
  while (!in_.done() && in_.peek() != close && in_.peek() != ')') in_.next_char();
  if (in_.at == begin || in_.peek() != close) in_.fail("the group's name is not closed or empty", start);
  const std::string name(in_.text.substr(begin, in_.at - begin));
  ++in_.at;
  const uint32_t node = group_body(start);
  const auto [known, fresh] = names_.try_emplace(name, static_cast<uint32_t>(out_.names.size()));
  if (fresh) out_.names.push_back(name);
  out_.groups.push_back({known->second, node});
  return node;
}

// Reads (?i), or the beginning of (?i:...), which sets `scoped`. Returns false and reads nothing if other
// text stands here.
bool Parser::inline_flags(std::size_t start, bool& scoped) {
  const std::size_t back = in_.at;
  PatternFlags flags = in_.flags;
  if (!in_.eat("?")) return false;
  bool value = true, any = false;
  for (;; ++in_.at) {
    const char c = in_.peek();
    if (c == 'i')
      flags.ignore_case = value;
    else if (c == 's')
      flags.dot_all = value;
    else if (c == 'm')
      flags.multi_line = value;
    else if (c == 'x')
      flags.verbose = value;
    else if (c == 'a' && in_.flavor == Flavor::kPython)
      flags.ascii = flags.ascii_case = value;
    else if (c == 'u')
      flags.ascii = flags.ascii_case = !value;
    else if (c == '-' && value)
      value = false;
    else
      break;
    any = true;
  }
  if (any && in_.looking_at("L")) in_.fail("the locale flag is not supported", start);
  if (!any || !in_.eat(scoped ? ":" : ")")) {
    in_.at = back;
    return false;
  }
  if (!scoped && in_.flavor == Flavor::kPython && start != flags_end_)
    in_.fail("flags belong at the start of the pattern; write (?i:...) for a part", start);
  in_.flags = flags;
  if (!scoped) flags_end_ = in_.at;
  return true;
}

void Parser::skip_verbose() {
  for (;;) {
    const char c = in_.peek();
    if (!in_.done() && (c == ' ' || (c >= '\t' && c <= '\r'))) {
      ++in_.at;
    } else if (!in_.done() && c == '#') {
      while (!in_.done() && in_.peek() != '\n') ++in_.at;
    } else {
      return;
    }
  }
}

uint32_t Parser::quantified(uint32_t node) {
  if (in_.flags.verbose) skip_verbose();
  uint32_t min, max;
  if (in_.eat("*")) {
    min = 0, max = kNoMaximum;
  } else if (in_.eat("+")) {
    min = 1, max = kNoMaximum;
  } else if (in_.eat("?")) {
    min = 0, max = 1;
  } else if (!counter(min, max)) {
    return node;
  }
  if (in_.looking_at("+")) in_.fail("possessive quantifiers are not supported; drop the '+'");
  const bool lazy = in_.eat("?");
  const char c = in_.peek();
  uint32_t again_min, again_max;
  const std::size_t here = in_.at;
  if (c == '*' || c == '+' || c == '?' || counter(again_min, again_max))
    in_.fail("nothing to repeat: two quantifiers in a row; write (?:...) around the first", here);
  const PatternNode& n = out_.nodes[node];
  const bool assertion = n.asserts && n.longest == 0;
  // An assertion reads no character, so instead of being repeated it must hold; with a minimum of 0 it need
  // not.
  if (assertion && n.kind != PatternKind::kCat && n.kind != PatternKind::kAlt)
    return min == 0 ? out_.add_empty() : node;
  const uint32_t made = out_.add_repeat(node, min, max);
  if (made != node) out_.nodes[made].lazy = lazy;
  return made;
}

// Reads {n}, {n,}, {n,m}, or in Python {,m}. Returns false and reads nothing if other text stands here.
bool Parser::counter(uint32_t& min, uint32_t& max) {
  const std::size_t start = in_.at;
  if (!in_.eat("{")) return false;
  min = 0;
  const bool has_min = number(min);
  max = min;
  if (in_.eat(",")) {
    max = kNoMaximum;
    number(max);
    if (!has_min && in_.flavor == Flavor::kEcma) {
      in_.at = start;
      return false;
    }
  } else if (!has_min) {
    in_.at = start;
    return false;
  }
  if (!in_.eat("}")) {
    in_.at = start;
    return false;
  }
  if (min > kMaxCount)
    throw Error(ErrorKind::kSchemaTooComplex, "a counter above 1,000,000,000")
        .at(static_cast<int64_t>(start));
  if (max < min) in_.fail("the counter is out of order; swap its numbers", start);
  return true;
}

// Reads a number. One beyond kNoMaximum becomes kNoMaximum, which means "no maximum".
bool Parser::number(uint32_t& value) {
  const std::size_t begin = in_.at;
  uint64_t v = 0;
  for (; !in_.done() && in_.peek() >= '0' && in_.peek() <= '9'; ++in_.at)
    v = std::min<uint64_t>(kNoMaximum, v * 10 + static_cast<uint64_t>(in_.peek() - '0'));
  if (in_.at == begin) return false;
  value = static_cast<uint32_t>(v);
  return true;
}

}  // namespace

Pattern parse_pattern(std::string_view text, Flavor flavor, bool ascii) {
  return Parser(text, flavor, ascii).run();
}

}  // namespace structgen
