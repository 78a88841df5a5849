// The values of the keywords of one schema object, by keyword.
//
// In: the position of a schema object (Loc). Out: a table with one entry for every keyword. Lowering asks for
// about forty keywords, and an object has about five members, so one pass over the members is cheaper than
// forty calls of Json::find. Cost: linear in the members. The table lives on the caller's stack.
//
// The table lacks keywords that the draft does not have (`prefixItems` in draft 7), and in drafts 4 to 7 all
// keywords beside a `$ref`: in these drafts `{"$ref": "#/definitions/a", "minimum": 3}` has only the `$ref`.
#pragma once

#include "schema/read/dialect.h"
#include "schema/read/json.h"
#include "schema/read/resolve.h"

namespace structgen {

// The keywords of one schema object. `string`, `number` and the other questions answer false if the keyword
// is missing or its value has another type. Such a keyword constrains nothing; the scan has named it in the
// report (SchemaSet::scan_word).
struct Keywords {
  const Json& json;
  // The value of each keyword, by Word; kContentAnnotation is the last Word.
  JsonRef values[static_cast<std::size_t>(Word::kContentAnnotation) + 1];
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
