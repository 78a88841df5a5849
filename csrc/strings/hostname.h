// Host names as patterns: RFC 1123, and RFC 5890 to 5893 for internationalised ones.
//
// In: nothing. Out: the text of an ECMA pattern of the whole name. Cost: building a text of some
// kilobytes. Not enforced, because the automata would be too large: what an A-label ("xn--...") decodes
// to, normal form C, and the exact length of a label's A-label. Of A-labels only what every valid one
// has is checked: the form of the first code point that Punycode inserts (never below U+00B7), and a
// last digit that ends a number. So each format is a superset of the RFCs', at the Unicode version of
// idna_tables.inc.
#pragma once

#include <string>

namespace structgen {

// One label by RFC 1123, without the rules of A-labels.
std::string hostname_label();
std::string hostname_pattern();
// `dot`: a character class of what separates labels.
std::string idn_hostname_pattern(const std::string& dot);

}  // namespace structgen
