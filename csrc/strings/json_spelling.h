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

// The inside of a JSON string up to its closing quote. kJson has every spelling of RFC 8259 (raw, short
// escapes, \uXXXX, surrogate pairs). kPlainJson has the spellings of JSON writers, which escape only what
// must be escaped.
extern const Spelling kJson, kPlainJson;
// The inside of a quoted attribute of XML, where & and " are written `&amp;` and `&quot;`. kMarkupEntities
// also writes < and > as `&lt;` and `&gt;`.
extern const Spelling kQuotedEntities, kMarkupEntities;

// Returns how JSON writers escape a character: the byte behind the backslash, which is a letter, the
// character itself, or 'u' for \u00XX with digits in lower case. Returns 0 for a character that they do not
// escape.
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

// json_body() returns a text as JSON writers write it, without the opening quote but with the closing one.
// from_json_body() undoes it.
std::string json_body(std::string_view text);
std::string from_json_body(std::string_view body);

}  // namespace structgen
