// Resolution of URI references (RFC 3986), as far as the identifiers of schemas need it.
//
// In: a base and a reference. Out: the resolved text. Cost: linear. Malformed texts are no error: they
// resolve to a text under which no schema is known.
#pragma once

#include <string>
#include <string_view>

namespace structgen {

// Resolves a reference (RFC 3986, section 5.2): "b#x" against "http://h/a" is "http://h/b#x".
std::string resolve_uri(std::string_view base, std::string_view reference);
// Replaces each %XX by the byte XX: %41 becomes `A`. A percent sign without two hex digits behind it stays.
std::string percent_decode(std::string_view text);
// Splits a URI at the first '#' into the text in front (`absolute`) and the text behind (`fragment`).
void split_fragment(std::string_view uri, std::string_view& absolute, std::string_view& fragment);

}  // namespace structgen
