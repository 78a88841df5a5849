// The spellings of JSON strings and of attributes.
//
// In: texts. Out: the same texts as they stand in JSON, and back. Cost: linear. regex/spelling.h says
// what a spelling is.
//
// A lone surrogate escape (\uD800 without its partner) is no character, and is never accepted.
#pragma once

#include <string>
#include <string_view>

#include "regex/spelling.h"

namespace structgen {

// The inside of a JSON string, which its quote ends. kJson has every spelling of RFC 8259 (raw, short
// escape, \uXXXX, surrogate pairs). kPlainJson has the spellings of JSON writers, which escape only
// characters that must be escaped.
extern const Spelling kJson, kPlainJson;
// The inside of the quotes of an attribute: `&amp;` and `&quot;` for & and "; kMarkupEntities also has
// `&lt;` and `&gt;` for < and >.
extern const Spelling kQuotedEntities, kMarkupEntities;

// How JSON writers escape a character, behind the backslash: a letter (or the character itself), 'u'
// for \u00XX with digits in lower case, 0 if the character is written as it is.
constexpr char plain_escape(uint32_t c) {
  switch (c) {
    case '"':
    case '\\': return static_cast<char>(c);
    case 8: return 'b';
    case 9: return 't';
    case 10: return 'n';
    case 12: return 'f';
    case 13: return 'r';
    default: return c < 0x20 ? 'u' : 0;
  }
}

// A text as JSON writers write it, with its closing quote and without the opening one; and back.
std::string json_body(std::string_view text);
std::string from_json_body(std::string_view body);

}  // namespace structgen
