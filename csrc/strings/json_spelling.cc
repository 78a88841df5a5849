#include "strings/json_spelling.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>
#include <vector>

#include "base/bitset.h"
#include "regex/regex.h"
#include "strings/json_literals.h"

namespace structgen {

namespace {

// What follows the backslash: `u` and four hex digits. A character c above U+FFFF has two such escapes. The
// 20 bits of c - 0x10000 are split into a high surrogate (first byte D8 to DB) and a low one (DC to DF).
constexpr SpelledDigit kHexBmp[] = {{4, true, 0, "u"}, {4, true, 0, {}}, {4, true, 0, {}}, {4, true, 0, {}}};
constexpr SpelledDigit kHexAstral[] = {{2, true, 8, "uU"},    {4, true, 0, {}}, {4, true, 0, {}},
                                       {2, true, 12, "\\uU"}, {4, true, 0, {}}, {4, true, 0, {}}};
constexpr std::pair<uint8_t, char> kShortEscapes[] = {{'"', '"'},  {'\\', '\\'}, {'/', '/'},  {'\b', 'b'},
                                                      {'\f', 'f'}, {'\n', 'n'},  {'\r', 'r'}, {'\t', 't'}};

using Entity = std::pair<char, std::string_view>;
constexpr Entity kQuoted[] = {{'&', "&amp;"}, {'"', "&quot;"}};
constexpr Entity kMarkup[] = {{'&', "&amp;"}, {'"', "&quot;"}, {'<', "&lt;"}, {'>', "&gt;"}};

// Returns the escape \u00XX of a control character, without its backslash.
std::array<char, 5> code_of(uint32_t c) {
  return {'u', '0', '0', c < 0x10 ? '0' : '1', "0123456789abcdef"[c & 15]};
}

// Returns what JSON writers put behind a backslash for the characters of the set.
RegexId plain_escapes(RegexArena& arena, const CodepointSet& set) {
  ByteSet letters;
  std::vector<RegexId> parts;
  for (uint32_t c = 0; c <= '\\'; ++c) {
    const char letter = plain_escape(c);
    if (letter == 0 || !set.contains(c)) continue;
    if (letter != 'u') {
      letters.add(static_cast<uint8_t>(letter));
      continue;
    }
    const std::array<char, 5> code = code_of(c);
    parts.push_back(arena.literal({code.data(), code.size()}));
  }
  if (letters.any()) parts.push_back(arena.bytes(letters));
  return arena.alt(parts);
}

// Returns everything that may stand behind a backslash for a character of the set.
RegexId all_escapes(RegexArena& arena, const CodepointSet& set) {
  ByteSet letters;
  for (auto [c, letter] : kShortEscapes)
    if (set.contains(c)) letters.add(static_cast<uint8_t>(letter));
  std::vector<RegexId> parts;
  if (letters.any()) parts.push_back(arena.bytes(letters));
  const auto add = [&](std::span<const SpelledDigit> digits, const std::vector<CodepointRange>& ranges) {
    if (!ranges.empty()) parts.push_back(spell_digits(arena, digits, ranges));
  };
  add(kHexBmp, set.slice(0, 0xFFFF, 0));
  add(kHexAstral, set.slice(0x10000, kMaxCodepoint, 0x10000));
  return arena.alt(parts);
}

// Returns all spellings of a set's characters, marked as RegexNode::character. `escapes` is what may stand
// behind a backslash.
RegexId json_characters(RegexArena& arena, const CodepointSet& set, RegexId escapes) {
  if (set.empty()) return RegexArena::empty();
  static const CodepointSet raw{{0x20, 0x21}, {0x23, 0x5B}, {0x5D, kMaxCodepoint}};
  return arena.character(arena.alt(utf8_class(arena, set & raw), arena.cat(arena.byte('\\'), escapes)));
}

RegexId any_json(RegexArena& arena, const CodepointSet& set) {
  return json_characters(arena, set, all_escapes(arena, set));
}

RegexId plain_json(RegexArena& arena, const CodepointSet& set) {
  return json_characters(arena, set, plain_escapes(arena, set));
}

std::string write_json(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const char letter = plain_escape(static_cast<uint8_t>(c));
    if (letter == 0) {
      out += c;
      continue;
    }
    out += '\\';
    if (letter != 'u') {
      out += letter;
    } else {
      const std::array<char, 5> code = code_of(static_cast<uint8_t>(c));
      out.append(code.data(), code.size());
    }
  }
  return out;
}

// Returns the spellings of a set's characters: those of kMarks are entities, all others are UTF-8.
template <const auto& kMarks>
RegexId with_entities(RegexArena& arena, const CodepointSet& set) {
  std::vector<RegexId> parts;
  CodepointSet plain = set;
  for (const auto& [c, text] : kMarks)
    if (set.contains(static_cast<uint8_t>(c))) {
      plain = plain - CodepointSet::one(static_cast<uint8_t>(c));
      parts.push_back(arena.literal(text));
    }
  if (!plain.empty()) parts.push_back(utf8_class(arena, plain));
  return arena.alt(parts);
}

template <const auto& kMarks>
std::string write_entities(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto* at = std::ranges::find(kMarks, c, &Entity::first);
    out += at == std::end(kMarks) ? std::string_view(&c, 1) : at->second;
  }
  return out;
}

constexpr JsonLiterals kAllLiterals{false}, kPlainLiterals{true};

}  // namespace

const Spelling kJson{any_json, write_json, '"', &kAllLiterals};
const Spelling kPlainJson{plain_json, write_json, '"', &kPlainLiterals};
const Spelling kQuotedEntities{with_entities<kQuoted>, write_entities<kQuoted>};
const Spelling kMarkupEntities{with_entities<kMarkup>, write_entities<kMarkup>};

std::string json_body(std::string_view text) { return write_json(text) + '"'; }

// Undoes json_body(). It reads only what json_body() writes: short escapes, and \u00XX below U+0020.
std::string from_json_body(std::string_view body) {
  std::string out;
  body.remove_suffix(1);
  for (std::size_t i = 0; i < body.size(); ++i) {
    if (body[i] != '\\') {
      out += body[i];
    } else if (body[i + 1] == 'u') {
      out += static_cast<char>(std::stoi(std::string(body.substr(i + 4, 2)), nullptr, 16));
      i += 5;
    } else {
      constexpr std::string_view letters = "btnfr", meant = "\b\t\n\f\r";
      const std::size_t at = letters.find(body[++i]);
      out += at == std::string_view::npos ? body[i] : meant[at];
    }
  }
  return out;
}

}  // namespace structgen
