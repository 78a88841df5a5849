// Host names as patterns: RFC 1123, and RFC 5890 to 5893 for internationalised ones.
//
// In: nothing. Out: the text of an ECMA pattern of the whole name. Cost: building a text of some
// kilobytes. Three rules are not enforced, because their automata would be too large: the text that an
// A-label ("xn--...") decodes to, normal form C, and the exact length of a label's A-label. Of an
// A-label only two facts are checked that every valid one has: the form of the first code point that
// Punycode inserts (never below U+00B7), and a last digit that ends a number. So each format is a
// superset of the RFCs', at the Unicode version of idna_tables.inc.
#pragma once

#include <string>

namespace structgen {

// Returns the pattern of one label of a host name by RFC 1123. The rules of labels that begin with "xn--" are
// not part of it.
std::string hostname_label();
std::string hostname_pattern();
// Returns the pattern of an internationalised host name. `dot` is the inside of a character class: the
// characters that separate labels.
std::string idn_hostname_pattern(const std::string& dot);

}  // namespace structgen
