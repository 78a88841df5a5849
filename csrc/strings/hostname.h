// Host names as patterns: RFC 1123, and RFC 5890 to 5893 for internationalised ones.
//
// In: nothing. Out: the text of an ECMA pattern of the whole name. Cost: building a text of some kilobytes.
// Not enforced, because the automata are too large to be of use: what an A-label ("xn--...") decodes to,
// normal form C, and the exact length of a label's A-label. A-labels take what every valid one has: the shape
// of the first code point that Punycode inserts (never below U+00B7), and a last digit that ends a number.
// Each format is therefore a superset of the RFCs', at the Unicode version of idna_tables.inc.
#pragma once

#include <string>

namespace structgen {

std::string hostname_label();  // RFC 1123, no rules of A-labels
std::string hostname_pattern();
// `dot`: a character class of what separates labels.
std::string idn_hostname_pattern(const std::string& dot);

}  // namespace structgen
