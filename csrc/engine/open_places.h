// Where in a text a token could begin that goes beyond its end.
//
// In: a text, the state behind it, the vocabulary. Out: places in the text. Cost: from each place within the
// longest token, a walk over the tokens that begin with the rest, until one is found that may go on. The
// world's lock is held.
#pragma once

#include <string_view>
#include <vector>

#include "mask/vocabulary.h"
#include "parse/state.h"

namespace structgen {

// `s`: what may follow the text.
std::vector<std::size_t> open_places(const Vocabulary& vocabulary, Parser& parser, StateId s,
                                     std::string_view text);

}  // namespace structgen
