// Grammars in the form in which the front ends hand them over (GrammarSource), written as bytes. A program
// that has the engine and no front end reads them.
//
// In: a GrammarSource with its schemas. Out: bytes, and from them the same source again. Cost: linear.
// The bytes are not trusted: everything that Compiler::grammar relies on is checked, and kGrammar says
// what is wrong.
//
// The form: "structgenG", one byte of version, the payload, its FNV-1a hash as 8 bytes. Numbers are
// LEB128; a text is a length and bytes. Children stand before parents. A grammar that names tokens by
// id holds a hash of their texts, so that it is refused with another vocabulary (kVocabulary). Other
// grammars fit every vocabulary.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/compile.h"
#include "grammar/source.h"

namespace structgen {

struct WrittenGrammar {
  GrammarSource source;
  std::vector<JsonPart> schemas;
  uint32_t start = 0;
};

std::string write_grammar(const GrammarSource& source, const std::vector<JsonPart>& schemas, uint32_t start,
                          const Vocabulary& vocabulary);
WrittenGrammar read_grammar(std::string_view bytes, const Vocabulary& vocabulary);
// Appends the rules of `part` to another grammar. Returns the new number of the first of them.
uint32_t include_grammar(GrammarSource& source, std::vector<JsonPart>& schemas, WrittenGrammar part);

}  // namespace structgen
