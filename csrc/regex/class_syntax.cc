// How escapes and bracket classes are read; class_syntax.h has the interface.
//
// The problem. ECMA and Python agree on most escapes and differ on the others without an error: [] is empty
// in ECMA and not closed in Python, \p{L} is a property in ECMA and refused by Python. ECMA without the flag
// u also reads an escape that it does not know, such as \h, as the letter.
//
// The idea. read_escape() looks at the first character and tries one kind of escape after the other: sets
// (\d), letters with a meaning (\n, \x41, \u0041, \cJ), properties (\p{L}), digits (\101). A letter that is
// left is an error that names the form to write instead; punctuation that is left stands for itself. A class
// collects characters and sets: `[a-z\d]` adds the range a-z to `ranges` and the digits to `sets`, and the
// result is the union of both.
//
// The flag i. Characters that are written out get all characters that differ only in case, at the end of a
// class or where the pattern uses them. read_escape() decides about sets, because Python's \w, \d and \s stay
// as they are.
#include "regex/class_syntax.h"

#include <optional>
#include <utility>
#include <vector>

#include "base/depth.h"
#include "base/error.h"
#include "base/utf8.h"
#include "regex/unicode.h"

namespace structgen {

uint32_t PatternCursor::next_char() {
  uint32_t length;
  const uint32_t c = decode_utf8(text, at, length);
  // Half of a surrogate pair (`\ud83d`), which a schema can contain, stands here as three bytes. It is read
  // as one character, and that matches nothing.
  if (length == 0 && c >= 0xD800 && c <= 0xDFFF && text[at] == '\xED') length = 3;
  if (length == 0) fail("the pattern is not valid UTF-8");
  at += length;
  return c;
}

void PatternCursor::fail(std::string fact, std::size_t offset) const {
  throw Error(ErrorKind::kGrammar, std::move(fact)).at(static_cast<int64_t>(offset));
}

namespace {

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// Reads exactly `digits` hex digits. If there are fewer, reads nothing and returns no value.
std::optional<uint32_t> hex_digits(PatternCursor& in, std::size_t digits) {
  if (in.at + digits > in.text.size()) return std::nullopt;
  uint32_t value = 0;
  for (std::size_t i = 0; i < digits; ++i) {
    const int v = hex_value(in.text[in.at + i]);
    if (v < 0) return std::nullopt;
    value = value * 16 + static_cast<uint32_t>(v);
  }
  in.at += digits;
  return value;
}

// Reads the hex digits of \xHH or \UHHHHHHHH. The error says how many digits are missing.
uint32_t fixed_hex(PatternCursor& in, std::size_t start, std::size_t digits) {
  if (const auto value = hex_digits(in, digits)) {
    if (*value > kMaxCodepoint) in.fail("the escape is above U+10FFFF", start);
    return *value;
  }
  in.fail("the escape needs " + std::to_string(digits) + " hex digits", start);
}

// Reads what follows the `u` of \u. In ECMA, \u{1F600} is one character, and so are two escapes that form a
// surrogate pair.
uint32_t unicode_escape(PatternCursor& in, std::size_t start) {
  if (in.flavor == Flavor::kEcma && in.eat("{")) {
    uint32_t value = 0;
    bool any = false;
    for (; !in.done() && in.peek() != '}'; ++in.at, any = true) {
      const int v = hex_value(in.peek());
      if (v < 0) in.fail("\\u{...} holds hex digits only", in.at);
      value = value * 16 + static_cast<uint32_t>(v);
      if (value > kMaxCodepoint) in.fail("the escape is above U+10FFFF", start);
    }
    if (!any || !in.eat("}")) in.fail("\\u{ needs hex digits and a closing brace", start);
    return value;
  }
  const uint32_t high = fixed_hex(in, start, 4);
  if (in.flavor == Flavor::kPython || high < 0xD800 || high > 0xDBFF || !in.looking_at("\\u")) return high;
  const std::size_t back = in.at;
  in.at += 2;
  const auto low = hex_digits(in, 4);
  if (low && *low >= 0xDC00 && *low <= 0xDFFF) return 0x10000 + ((high - 0xD800) << 10) + (*low - 0xDC00);
  in.at = back;
  return high;
}

// Reads what follows the letter of \p or \P. POSIX names and script names without `Script=` are refused,
// because engines differ in their meaning; the error tells what to write instead.
CodepointSet property(PatternCursor& in, std::size_t start) {
  std::string_view body;
  if (in.eat("{")) {
    const std::size_t end = in.text.find('}', in.at);
    if (end == std::string_view::npos) in.fail("\\p{ is not closed", start);
    body = in.text.substr(in.at, end - in.at);
    in.at = end + 1;
  } else if (!in.done()) {
    // Perl and Rust write a property of one letter without braces: \pL.
    body = in.text.substr(in.at++, 1);
  }
  bool negated = !body.empty() && body[0] == '^';
  if (negated) body.remove_prefix(1);
  const std::size_t equals = body.find('=');
  std::string_view value = equals == std::string_view::npos ? std::string_view() : body.substr(equals + 1);
  if (auto set = unicode_property(body.substr(0, equals), value)) return negated ? set->complement() : *set;
  static constexpr std::pair<std::string_view, const char*> kPosix[] = {
      {"Alnum", "[0-9A-Za-z]"}, {"Blank", "[ \\t]"},      {"Cntrl", "[\\x00-\\x1f\\x7f]"}, {"Digit", "[0-9]"},
      {"Graph", "[!-~]"},       {"Print", "[ -~]"},       {"Punct", "[!-\\/:-@\\[-`{-~]"}, {"Space", "\\s"},
      {"Word", "\\w"},          {"XDigit", "[0-9A-Fa-f]"}};
  for (const auto& [name, ecma] : kPosix)
    if (body == name)
      in.fail("\\p{" + std::string(body) + "} is Java's and Perl's, of ASCII or of Unicode; write " + ecma +
                  " or a Unicode property",
              start);
  if (value.empty() &&
      // Perl and PCRE take a script name without `Script=`, and different versions read it differently.
      unicode_property("Script", body))
    in.fail("'" + std::string(body) + "' is a script; write \\p{Script=" + std::string(body) + "}", start);
  in.fail("unknown Unicode property '" + std::string(body) +
              "'; write a category (L, Nd), Script=Name or a binary property (Alphabetic)",
          start);
}

// Returns the set of \d, \w or \s, or of their complements \D, \W or \S; no value for any other letter.
std::optional<CodepointSet> shorthand(const PatternCursor& in, char letter) {
  check_depth();
  const bool unicode = in.flavor == Flavor::kPython && !in.flags.ascii;
  switch (letter) {
    case 'd': return unicode ? python_digit() : ascii_digit();
    case 'w':  // with the flag i, ECMA's also takes what folds to a letter of it; Python's does not
      if (in.flavor == Flavor::kEcma && in.flags.ignore_case) return case_closure(ascii_word());
      return unicode ? python_word() : ascii_word();
    case 's':
      if (in.flavor == Flavor::kEcma) return ecma_space();
      return unicode ? python_space() : ascii_space();
    case 'D': return shorthand(in, 'd')->complement();
    case 'W': return shorthand(in, 'w')->complement();
    case 'S': return shorthand(in, 's')->complement();
    default: return std::nullopt;
  }
}

// Reads an octal escape: \0, \012 and \123 in Python, only \0 in ECMA. Returns false if the digits are a
// back-reference.
bool octal(PatternCursor& in, std::size_t start, char first, bool in_brackets, uint32_t& c) {
  const auto digit = [&](std::size_t i) {
    return in.at + i < in.text.size() && in.text[in.at + i] >= '0' && in.text[in.at + i] <= '7';
  };
  if (in.flavor == Flavor::kEcma) {
    c = 0;
    if (first == '0' && digit(0)) in.fail("octal escapes are not ECMA; write \\xHH", start);
    return first == '0';
  }
  const bool three = first <= '7' && digit(0) && digit(1);
  if (first != '0' && !three && !in_brackets) return false;
  if (first > '7') in.fail("bad octal escape", start);
  c = static_cast<uint32_t>(first - '0');
  for (int i = 0; i < 2 && digit(0); ++i) c = c * 8 + static_cast<uint32_t>(in.text[in.at++] - '0');
  if (c > 0377) in.fail("octal escape above \\377", start);
  return true;
}

// Reads \cX, the control character X mod 32 (\cJ is a line feed). Python has no such escape and gets an
// error.
uint32_t control_escape(PatternCursor& in, std::size_t start) {
  const char c = in.peek();
  const char lower = static_cast<char>(c | 0x20);
  if (in.flavor == Flavor::kPython || lower < 'a' || lower > 'z')
    in.fail("\\c needs a letter; write \\xHH for a control character", start);
  ++in.at;
  return static_cast<uint32_t>(c) & 31;
}

// Refuses an escape that only other dialects have; the error says what to write instead. Some engines read it
// as a letter, which would silently change the meaning.
[[noreturn]] void unknown_escape(const PatternCursor& in, std::size_t start, char c) {
  const std::string name = std::string("\\") + c;
  switch (c) {
    case 'A': in.fail("\\A is an anchor and no character", start);  // in brackets
    case 'Z':
    case 'z':
      in.fail(name + (in.flavor == Flavor::kEcma ? " is an anchor and no character"
                                                 : " is not Python; write \\Z"),
              start);
    case 'N': in.fail("named characters \\N{...} are not supported; write \\uHHHH", start);
    case 'G':
    case 'K':
    case 'R':
    case 'X':
    case 'Q':
    case 'E':
    case 'h':
    case 'H':
    case 'V': in.fail(name + " (PCRE) is not supported", start);
    default:
      in.fail("unknown escape " + name + "; write " + std::string(1, c) + " for the letter itself", start);
  }
}

}  // namespace

EscapeResult read_escape(PatternCursor& in, std::size_t start, bool in_brackets) {
  if (in.done()) in.fail("the pattern ends in a backslash; write \\\\ for a backslash", start);
  const auto character = [](uint32_t c) { return EscapeResult{false, c, {}}; };
  const uint32_t code = in.next_char();
  if (code >= 0x80) return character(code);
  const char c = static_cast<char>(code);
  if (auto set = shorthand(in, c)) return {true, 0, std::move(*set)};
  switch (c) {
    case 't': return character('\t');
    case 'n': return character('\n');
    case 'r': return character('\r');
    case 'f': return character('\f');
    case 'v': return character('\v');
    case 'x': return character(fixed_hex(in, start, 2));
    case 'u': return character(unicode_escape(in, start));
    case 'c': return character(control_escape(in, start));
    case 'p':
    case 'P': {
      if (in.flavor == Flavor::kPython) in.fail("\\p is not Python's re", start);
      CodepointSet set = property(in, start);
      if (c == 'P') set = set.complement();
      return {true, 0, with_cases(in, std::move(set))};
    }
    default: break;
  }
  if (in.flavor == Flavor::kPython && c == 'a') return character(7);
  if (in.flavor == Flavor::kPython && c == 'U') return character(fixed_hex(in, start, 8));
  if (in_brackets && c == 'b') return character(8);
  if (c >= '0' && c <= '9') {
    uint32_t value;
    if (octal(in, start, c, in_brackets, value)) return character(value);
    in.fail("back-references are not regular and cannot be enforced; write the repeated part out", start);
  }
  if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) unknown_escape(in, start, c);
  // A backslash before punctuation changes nothing: \- \_ \@ \/ are the characters - _ @ /.
  return character(code);
}

CodepointSet with_cases(const PatternCursor& in, CodepointSet set) {
  if (!in.flags.ignore_case) return set;
  if (in.flags.ascii_case) return ascii_case_closure(set);
  return in.flavor == Flavor::kPython ? python_case_closure(set) : case_closure(set);
}

CodepointSet dot_class(const PatternCursor& in) {
  if (in.flags.dot_all) return CodepointSet::all();
  static const CodepointSet ecma = CodepointSet{{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}}.complement();
  static const CodepointSet python = CodepointSet::one('\n').complement();
  return in.flavor == Flavor::kEcma ? ecma : python;
}

CodepointSet read_brackets(PatternCursor& in, std::size_t start) {
  const bool negated = in.eat("^");
  // `ranges` are the characters written out, `sets` those of escapes such as \d. Under the flag i only the
  // cases of `ranges` are added here, because read_escape() has added those of `sets`.
  std::vector<CodepointRange> ranges, sets;
  const auto item = [&]() -> EscapeResult {
    const std::size_t at = in.at;
    if (in.eat("\\")) return read_escape(in, at, true);
    return {false, in.next_char(), {}};
  };
  const auto take = [&](const EscapeResult& e) {
    if (e.is_set) {
      sets.insert(sets.end(), e.set.ranges().begin(), e.set.ranges().end());
    } else {
      ranges.push_back({e.c, e.c});
    }
  };
  // In Python a ']' right behind '[' is a member; in ECMA `[]` is the class without members.
  for (bool first = true;; first = false) {
    if (in.done()) in.fail("the class is not closed; add ']' or escape '['", start);
    if (in.peek() == ']' && !(first && in.flavor == Flavor::kPython)) break;
    const std::size_t at = in.at;
    const EscapeResult lo = item();
    const bool range = in.peek() == '-' && in.at + 1 < in.text.size() && in.text[in.at + 1] != ']';
    if (!range) {
      take(lo);
      continue;
    }
    ++in.at;
    const EscapeResult hi = item();
    // In [\w-.] the hyphen is a member of the class: the set \w cannot begin a range.
    if (lo.is_set || hi.is_set) {
      if (in.flavor == Flavor::kPython) in.fail("a class is no end of a range; escape the hyphen", at);
      take(lo);
      take(hi);
      ranges.push_back({'-', '-'});
      continue;
    }
    if (lo.c > hi.c) in.fail("the range is out of order; swap its ends or escape the hyphen", at);
    ranges.push_back({lo.c, hi.c});
  }
  ++in.at;
  CodepointSet set = with_cases(in, CodepointSet(std::move(ranges)));
  sets.insert(sets.end(), set.ranges().begin(), set.ranges().end());
  set = CodepointSet(std::move(sets));
  return negated ? set.complement() : set;
}

}  // namespace structgen
