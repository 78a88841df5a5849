// Shared by the bound classes: a grammar that is being built, and the options of JSON Schemas.
//
// In and out: see the .cc files. Cost: none.
#pragma once

#include <string>
#include <vector>

#include "engine/compile.h"
#include "grammar/source.h"

struct BoundGrammar {
  structgen::GrammarSource source;
  std::vector<structgen::JsonPart> schemas;
};

// Throws kValue (a ValueError in Python) for an unknown name.
structgen::NumberSpelling number_spelling(std::string_view name);
structgen::JsonOptions json_options(const std::string& whitespace, bool any_order, const std::string& numbers,
                                    bool plain_strings, bool enforce_formats, int draft);
