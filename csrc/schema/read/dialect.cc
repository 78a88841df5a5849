#include "schema/read/dialect.h"

#include <array>
#include <iterator>

namespace structgen {

namespace {

constexpr Draft k4 = Draft::k4, k6 = Draft::k6, k7 = Draft::k7, k19 = Draft::k2019, k20 = Draft::k2020;

constexpr WordInfo kWords[] = {
    {"type", Word::kType, Form::kTypes, k4, k20},
    {"enum", Word::kEnum, Form::kArray, k4, k20},
    {"const", Word::kConst, Form::kAny, k6, k20},
    {"allOf", Word::kAllOf, Form::kSome, k4, k20},
    {"anyOf", Word::kAnyOf, Form::kSome, k4, k20},
    {"oneOf", Word::kOneOf, Form::kSome, k4, k20},
    {"not", Word::kNot, Form::kSchema, k4, k20},
    {"if", Word::kIf, Form::kSchema, k7, k20},
    {"then", Word::kThen, Form::kSchema, k7, k20},
    {"else", Word::kElse, Form::kSchema, k7, k20},
    {"$ref", Word::kRef, Form::kString, k4, k20},
    {"$dynamicRef", Word::kDynamicRef, Form::kString, k20, k20},
    {"$recursiveRef", Word::kRecursiveRef, Form::kString, k19, k19},
    {"$id", Word::kId, Form::kAny, k6, k20},
    {"id", Word::kLegacyId, Form::kAny, k4, k4},
    {"$anchor", Word::kAnchor, Form::kAny, k19, k20},
    {"$dynamicAnchor", Word::kDynamicAnchor, Form::kAny, k20, k20},
    {"$recursiveAnchor", Word::kRecursiveAnchor, Form::kAny, k19, k19},
    {"$schema", Word::kSchemaUri, Form::kAny, k4, k20},
    {"$vocabulary", Word::kVocabulary, Form::kAny, k19, k20},
    {"$defs", Word::kDefs, Form::kMap, k4, k20},  // read in every draft: only $ref reaches it
    {"definitions", Word::kDefs, Form::kMap, k4, k20},
    {"minimum", Word::kMinimum, Form::kNumber, k4, k20},
    {"maximum", Word::kMaximum, Form::kNumber, k4, k20},
    {"exclusiveMinimum", Word::kExclusiveMinimum, Form::kLimit, k4, k20},
    {"exclusiveMaximum", Word::kExclusiveMaximum, Form::kLimit, k4, k20},
    {"multipleOf", Word::kMultipleOf, Form::kNumber, k4, k20},
    {"minLength", Word::kMinLength, Form::kCount, k4, k20},
    {"maxLength", Word::kMaxLength, Form::kCount, k4, k20},
    {"pattern", Word::kPattern, Form::kString, k4, k20},
    {"format", Word::kFormat, Form::kString, k4, k20},
    {"items", Word::kItems, Form::kEither, k4, k20},
    {"prefixItems", Word::kPrefixItems, Form::kList, k20, k20},
    {"additionalItems", Word::kAdditionalItems, Form::kSchema, k4, k19},
    {"unevaluatedItems", Word::kUnevaluatedItems, Form::kSchema, k19, k20},
    {"contains", Word::kContains, Form::kSchema, k6, k20},
    {"minContains", Word::kMinContains, Form::kCount, k19, k20},
    {"maxContains", Word::kMaxContains, Form::kCount, k19, k20},
    {"minItems", Word::kMinItems, Form::kCount, k4, k20},
    {"maxItems", Word::kMaxItems, Form::kCount, k4, k20},
    {"uniqueItems", Word::kUniqueItems, Form::kBoolean, k4, k20},
    {"properties", Word::kProperties, Form::kMap, k4, k20},
    {"patternProperties", Word::kPatternProperties, Form::kMap, k4, k20},
    {"additionalProperties", Word::kAdditionalProperties, Form::kSchema, k4, k20},
    {"unevaluatedProperties", Word::kUnevaluatedProperties, Form::kSchema, k19, k20},
    {"propertyNames", Word::kPropertyNames, Form::kSchema, k6, k20},
    {"required", Word::kRequired, Form::kNames, k4, k20},
    {"minProperties", Word::kMinProperties, Form::kCount, k4, k20},
    {"maxProperties", Word::kMaxProperties, Form::kCount, k4, k20},
    {"dependentRequired", Word::kDependentRequired, Form::kObject, k19, k20},
    {"dependentSchemas", Word::kDependentSchemas, Form::kMap, k19, k20},
    // Gone from 2019-09 on, but the suite's optional tests and real schemas keep its meaning.
    {"dependencies", Word::kDependencies, Form::kMixed, k4, k20},
    {"title", Word::kAnnotation, Form::kAny, k4, k20},
    {"description", Word::kAnnotation, Form::kAny, k4, k20},
    {"default", Word::kAnnotation, Form::kAny, k4, k20},
    {"examples", Word::kAnnotation, Form::kAny, k4, k20},
    {"$comment", Word::kAnnotation, Form::kAny, k4, k20},
    {"readOnly", Word::kAnnotation, Form::kAny, k4, k20},
    {"writeOnly", Word::kAnnotation, Form::kAny, k4, k20},
    {"deprecated", Word::kAnnotation, Form::kAny, k4, k20},
    {"contentEncoding", Word::kContent, Form::kAny, k7, k20},
    {"contentMediaType", Word::kContent, Form::kAny, k7, k20},
    {"contentSchema", Word::kContent, Form::kAny, k19, k20},
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
