// The spellings of JSON strings and of attributes.
//
// In: texts. Out: the same as they stand in JSON, and back. Cost: linear. regex/spelling.h says what a
// spelling is.
//
// A lone surrogate escape (\uD800 without its partner) is no character: it is never accepted.
#pragma once

#include <string>
#include <string_view>

#include "regex/spelling.h"

namespace structgen {

// Inside a JSON string, which its quote ends. kJson: every spelling of RFC 8259 (raw, short escape, \uXXXX,
// pairs of surrogates). kPlainJson: as JSON writers do, which escape what must be and nothing else.
extern const Spelling kJson, kPlainJson;
// Inside the quotes of an element's attribute: `&amp;` and `&quot;` for & and "; in the second also `&lt;`
// and
// `&gt;` for < and >.
extern const Spelling kQuotedEntities, kMarkupEntities;

// How JSON writers escape a character, after the backslash: a letter (or the character itself), 'u' where it
// is \u00XX with small digits, 0 where it is written as it is.
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

// A text as JSON writers write it, closing quote included, opening quote not; and back.
std::string json_body(std::string_view text);
std::string from_json_body(std::string_view body);

}  // namespace structgen
