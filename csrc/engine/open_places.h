// The places in a text at which a token could begin that goes beyond the text's end.
//
// In: a text, the state behind it, the vocabulary. Out: offsets in the text. Cost: for each place that is no
// further from the end than the longest token, a walk over the tokens that begin with the rest of the text,
// until a token is found that may go on. The caller holds the world's lock.
//
// Forced text is written as tokens only up to such a place: if `"name` is forced and the tokens `name` and
// `name":` exist, the model might have chosen the token `name":`.
#pragma once

#include <string_view>
#include <vector>

#include "mask/vocabulary.h"
#include "parse/state.h"

namespace structgen {

// Computes Matcher::open_places(); `s` is the state behind the text.
std::vector<std::size_t> open_places(const Vocabulary& vocabulary, Parser& parser, StateId s,
                                     std::string_view text);

}  // namespace structgen
