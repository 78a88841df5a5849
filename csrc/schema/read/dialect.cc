#include "schema/read/dialect.h"

#include <array>
#include <iterator>

namespace structgen {

namespace {

constexpr Draft k4 = Draft::k4, k6 = Draft::k6, k7 = Draft::k7, k19 = Draft::k2019, k20 = Draft::k2020;

constexpr WordInfo kWords[] = {
    {"type", Word::kType, Position::kNone, k4, k20},
    {"enum", Word::kEnum, Position::kNone, k4, k20},
    {"const", Word::kConst, Position::kNone, k6, k20},
    {"allOf", Word::kAllOf, Position::kList, k4, k20},
    {"anyOf", Word::kAnyOf, Position::kList, k4, k20},
    {"oneOf", Word::kOneOf, Position::kList, k4, k20},
    {"not", Word::kNot, Position::kSchema, k4, k20},
    {"if", Word::kIf, Position::kSchema, k7, k20},
    {"then", Word::kThen, Position::kSchema, k7, k20},
    {"else", Word::kElse, Position::kSchema, k7, k20},
    {"$ref", Word::kRef, Position::kNone, k4, k20},
    {"$dynamicRef", Word::kDynamicRef, Position::kNone, k20, k20},
    {"$recursiveRef", Word::kRecursiveRef, Position::kNone, k19, k19},
    {"$id", Word::kId, Position::kNone, k6, k20},
    {"id", Word::kLegacyId, Position::kNone, k4, k4},
    {"$anchor", Word::kAnchor, Position::kNone, k19, k20},
    {"$dynamicAnchor", Word::kDynamicAnchor, Position::kNone, k20, k20},
    {"$recursiveAnchor", Word::kRecursiveAnchor, Position::kNone, k19, k19},
    {"$schema", Word::kSchemaUri, Position::kNone, k4, k20},
    {"$vocabulary", Word::kVocabulary, Position::kNone, k19, k20},
    {"$defs", Word::kDefs, Position::kMap, k4, k20},  // read in every draft: only $ref reaches it
    {"definitions", Word::kDefs, Position::kMap, k4, k20},
    {"minimum", Word::kMinimum, Position::kNone, k4, k20},
    {"maximum", Word::kMaximum, Position::kNone, k4, k20},
    {"exclusiveMinimum", Word::kExclusiveMinimum, Position::kNone, k4, k20},
    {"exclusiveMaximum", Word::kExclusiveMaximum, Position::kNone, k4, k20},
    {"multipleOf", Word::kMultipleOf, Position::kNone, k4, k20},
    {"minLength", Word::kMinLength, Position::kNone, k4, k20},
    {"maxLength", Word::kMaxLength, Position::kNone, k4, k20},
    {"pattern", Word::kPattern, Position::kNone, k4, k20},
    {"format", Word::kFormat, Position::kNone, k4, k20},
    {"items", Word::kItems, Position::kEither, k4, k20},
    {"prefixItems", Word::kPrefixItems, Position::kList, k20, k20},
    {"additionalItems", Word::kAdditionalItems, Position::kSchema, k4, k19},
    {"unevaluatedItems", Word::kUnevaluatedItems, Position::kSchema, k19, k20},
    {"contains", Word::kContains, Position::kSchema, k6, k20},
    {"minContains", Word::kMinContains, Position::kNone, k19, k20},
    {"maxContains", Word::kMaxContains, Position::kNone, k19, k20},
    {"minItems", Word::kMinItems, Position::kNone, k4, k20},
    {"maxItems", Word::kMaxItems, Position::kNone, k4, k20},
    {"uniqueItems", Word::kUniqueItems, Position::kNone, k4, k20},
    {"properties", Word::kProperties, Position::kMap, k4, k20},
    {"patternProperties", Word::kPatternProperties, Position::kMap, k4, k20},
    {"additionalProperties", Word::kAdditionalProperties, Position::kSchema, k4, k20},
    {"unevaluatedProperties", Word::kUnevaluatedProperties, Position::kSchema, k19, k20},
    {"propertyNames", Word::kPropertyNames, Position::kSchema, k6, k20},
    {"required", Word::kRequired, Position::kNone, k4, k20},
    {"minProperties", Word::kMinProperties, Position::kNone, k4, k20},
    {"maxProperties", Word::kMaxProperties, Position::kNone, k4, k20},
    {"dependentRequired", Word::kDependentRequired, Position::kNone, k19, k20},
    {"dependentSchemas", Word::kDependentSchemas, Position::kMap, k19, k20},
    // Gone from 2019-09 on, but the suite's optional tests and real schemas keep its meaning.
    {"dependencies", Word::kDependencies, Position::kMixed, k4, k20},
    {"title", Word::kAnnotation, Position::kNone, k4, k20},
    {"description", Word::kAnnotation, Position::kNone, k4, k20},
    {"default", Word::kAnnotation, Position::kNone, k4, k20},
    {"examples", Word::kAnnotation, Position::kNone, k4, k20},
    {"$comment", Word::kAnnotation, Position::kNone, k4, k20},
    {"readOnly", Word::kAnnotation, Position::kNone, k4, k20},
    {"writeOnly", Word::kAnnotation, Position::kNone, k4, k20},
    {"deprecated", Word::kAnnotation, Position::kNone, k4, k20},
    {"contentEncoding", Word::kContent, Position::kNone, k7, k20},
    {"contentMediaType", Word::kContent, Position::kNone, k7, k20},
    {"contentSchema", Word::kContent, Position::kNone, k19, k20},
};

}  // namespace

// Open addressing in four cache lines: of a map's nodes every look-up of a schema's few would miss.
const WordInfo* find_word(std::string_view text) {
  constexpr uint8_t kNone = 0xFF;
  static_assert(std::size(kWords) < 128);
  const auto slot = [](std::string_view t) {
    return (t.size() * 37 + static_cast<uint8_t>(t.front()) * 5 + static_cast<uint8_t>(t.back()) * 11 +
            static_cast<uint8_t>(t[t.size() / 2]) * 3) %
           256;
  };
  static const auto table = [&] {
    std::array<uint8_t, 256> t;
    t.fill(kNone);
    for (uint8_t i = 0; i < std::size(kWords); ++i) {
      std::size_t at = slot(kWords[i].text);
      while (t[at] != kNone) at = (at + 1) % 256;
      t[at] = i;
    }
    return t;
  }();
  if (text.empty()) return nullptr;
  for (std::size_t at = slot(text); table[at] != kNone; at = (at + 1) % 256)
    if (kWords[table[at]].text == text) return &kWords[table[at]];
  return nullptr;
}

bool draft_of_uri(std::string_view uri, Draft& out) {
  if (uri.ends_with('#')) uri.remove_suffix(1);
  if (uri.starts_with("https://")) uri.remove_prefix(8);
  if (uri.starts_with("http://")) uri.remove_prefix(7);
  if (!uri.starts_with("json-schema.org/")) return false;
  uri.remove_prefix(16);
  if (uri == "draft-04/schema" || uri == "draft-03/schema")
    out = Draft::k4;
  else if (uri == "draft-06/schema" || uri == "draft-05/schema")
    out = Draft::k6;
  else if (uri == "draft-07/schema")
    out = Draft::k7;
  else if (uri == "draft/2019-09/schema")
    out = Draft::k2019;
  else if (uri == "draft/2020-12/schema" || uri == "schema")
    out = Draft::k2020;
  else
    return false;
  return true;
}

}  // namespace structgen
