// The keyword values of one schema object, by keyword.
//
// In: a Loc. Out: one look-up table (lowering asks for forty words, the object has five). Words that the
// dialect does not know, or that a $ref hides in drafts 4 to 7, are absent. Cost: linear in the members.
#pragma once

#include "schema/read/dialect.h"
#include "schema/read/json.h"
#include "schema/read/resolve.h"

namespace structgen {

struct Keywords {
  const Json& json;
  JsonRef values[64];
  Draft draft;
  bool validates;

  Keywords(const SchemaSet& schemas, const Loc& at)
      : json(schemas.json(at)), draft(schemas.draft(at)), validates(schemas.validates(at)) {
    for (JsonRef& v : values) v = kNoJson;
    const bool hides = draft <= Draft::k7 && json.find(at.node, "$ref") != kNoJson &&
                       json.is_string(json.find(at.node, "$ref"));
    for (uint32_t i = 0; i < json.size(at.node); ++i) {
      const WordInfo* w = find_word(json.key(at.node, i));
      if (!w || !in_draft(*w, draft)) continue;
      if (hides && w->word != Word::kRef) continue;
      values[static_cast<std::size_t>(w->word)] = json.item(at.node, i);
    }
  }
  JsonRef operator[](Word w) const { return values[static_cast<std::size_t>(w)]; }
  bool has(Word w) const { return (*this)[w] != kNoJson; }
  bool string(Word w) const { return has(w) && json.is_string((*this)[w]); }
  bool number(Word w) const { return has(w) && json.is_number((*this)[w]); }
  bool array(Word w) const { return has(w) && json.is_array((*this)[w]); }
  bool object(Word w) const { return has(w) && json.is_object((*this)[w]); }
  bool schema(Word w) const { return has(w) && (json.is_object((*this)[w]) || json.is_bool((*this)[w])); }
  bool yes(Word w) const { return has(w) && json.type((*this)[w]) == JsonType::kTrue; }
};

}  // namespace structgen
