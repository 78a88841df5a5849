// RFC 3986: reference resolution, as far as schema identifiers need it.
//
// In: base and reference texts. Out: the resolved text. Cost: linear.
#pragma once

#include <string>
#include <string_view>

namespace structgen {

std::string resolve_uri(std::string_view base, std::string_view reference);  // section 5.2
std::string percent_decode(std::string_view text);
// Splits at the first '#'; `fragment` is without it.
void split_fragment(std::string_view uri, std::string_view& absolute, std::string_view& fragment);

}  // namespace structgen
