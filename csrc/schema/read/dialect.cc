#include "schema/read/dialect.h"

#include <array>
#include <iterator>

namespace structgen {

namespace {

constexpr Draft k4 = Draft::k4, k6 = Draft::k6, k7 = Draft::k7, k19 = Draft::k2019, k20 = Draft::k2020;

// Recipe, keyword 2: its row: the form of its value, the kind of values that it is about, its drafts.
constexpr WordInfo kWords[] = {
    {"type", Word::kType, Form::kTypes, About::kAny, k4, k20},
    {"enum", Word::kEnum, Form::kArray, About::kAny, k4, k20},
    {"const", Word::kConst, Form::kAny, About::kAny, k6, k20},
    {"allOf", Word::kAllOf, Form::kSome, About::kAny, k4, k20},
    {"anyOf", Word::kAnyOf, Form::kSome, About::kAny, k4, k20},
    {"oneOf", Word::kOneOf, Form::kSome, About::kAny, k4, k20},
    {"not", Word::kNot, Form::kSchema, About::kAny, k4, k20},
    {"if", Word::kIf, Form::kSchema, About::kAny, k7, k20},
    {"then", Word::kThen, Form::kSchema, About::kAny, k7, k20},
    {"else", Word::kElse, Form::kSchema, About::kAny, k7, k20},
    {"$ref", Word::kRef, Form::kString, About::kAny, k4, k20},
    {"$dynamicRef", Word::kDynamicRef, Form::kString, About::kAny, k20, k20},
    {"$recursiveRef", Word::kRecursiveRef, Form::kString, About::kAny, k19, k19},
    {"$id", Word::kId, Form::kAny, About::kAny, k6, k20},
    {"id", Word::kLegacyId, Form::kAny, About::kAny, k4, k4},
    {"$anchor", Word::kAnchor, Form::kAny, About::kAny, k19, k20},
    {"$dynamicAnchor", Word::kDynamicAnchor, Form::kAny, About::kAny, k20, k20},
    {"$recursiveAnchor", Word::kRecursiveAnchor, Form::kAny, About::kAny, k19, k19},
    {"$schema", Word::kSchemaUri, Form::kAny, About::kAny, k4, k20},
    {"$vocabulary", Word::kVocabulary, Form::kAny, About::kAny, k19, k20},
    {"$defs", Word::kDefs, Form::kMap, About::kAny, k4, k20},  // read in every draft: only $ref reaches it
    {"definitions", Word::kDefs, Form::kMap, About::kAny, k4, k20},
    {"minimum", Word::kMinimum, Form::kNumber, About::kNumber, k4, k20},
    {"maximum", Word::kMaximum, Form::kNumber, About::kNumber, k4, k20},
    {"exclusiveMinimum", Word::kExclusiveMinimum, Form::kLimit, About::kNumber, k4, k20},
    {"exclusiveMaximum", Word::kExclusiveMaximum, Form::kLimit, About::kNumber, k4, k20},
    {"multipleOf", Word::kMultipleOf, Form::kNumber, About::kNumber, k4, k20},
    {"minLength", Word::kMinLength, Form::kCount, About::kString, k4, k20},
    {"maxLength", Word::kMaxLength, Form::kCount, About::kString, k4, k20},
    {"pattern", Word::kPattern, Form::kString, About::kString, k4, k20},
    {"format", Word::kFormat, Form::kString, About::kString, k4, k20},
    // A keyword of this engine: the string holds the JSON text of a value that satisfies the schema.
    {"x-structgen-content", Word::kJsonContent, Form::kSchema, About::kString, k4, k20},
    {"items", Word::kItems, Form::kEither, About::kArray, k4, k20},
    {"prefixItems", Word::kPrefixItems, Form::kList, About::kArray, k20, k20},
    {"additionalItems", Word::kAdditionalItems, Form::kSchema, About::kArray, k4, k19},
    {"unevaluatedItems", Word::kUnevaluatedItems, Form::kSchema, About::kArray, k19, k20},
    {"contains", Word::kContains, Form::kSchema, About::kArray, k6, k20},
    {"minContains", Word::kMinContains, Form::kCount, About::kArray, k19, k20},
    {"maxContains", Word::kMaxContains, Form::kCount, About::kArray, k19, k20},
    {"minItems", Word::kMinItems, Form::kCount, About::kArray, k4, k20},
    {"maxItems", Word::kMaxItems, Form::kCount, About::kArray, k4, k20},
    {"uniqueItems", Word::kUniqueItems, Form::kBoolean, About::kArray, k4, k20},
    {"properties", Word::kProperties, Form::kMap, About::kObject, k4, k20},
    {"patternProperties", Word::kPatternProperties, Form::kMap, About::kObject, k4, k20},
    {"additionalProperties", Word::kAdditionalProperties, Form::kSchema, About::kObject, k4, k20},
    {"unevaluatedProperties", Word::kUnevaluatedProperties, Form::kSchema, About::kObject, k19, k20},
    {"propertyNames", Word::kPropertyNames, Form::kSchema, About::kObject, k6, k20},
    {"required", Word::kRequired, Form::kNames, About::kObject, k4, k20},
    {"minProperties", Word::kMinProperties, Form::kCount, About::kObject, k4, k20},
    {"maxProperties", Word::kMaxProperties, Form::kCount, About::kObject, k4, k20},
    {"dependentRequired", Word::kDependentRequired, Form::kObject, About::kObject, k19, k20},
    {"dependentSchemas", Word::kDependentSchemas, Form::kMap, About::kObject, k19, k20},
    // 2019-09 dropped this keyword, but optional tests of the official suite and real schemas still use it.
    {"dependencies", Word::kDependencies, Form::kMixed, About::kObject, k4, k20},
    {"title", Word::kAnnotation, Form::kAny, About::kAny, k4, k20},
    {"description", Word::kAnnotation, Form::kAny, About::kAny, k4, k20},
    {"default", Word::kAnnotation, Form::kAny, About::kAny, k4, k20},
    {"examples", Word::kAnnotation, Form::kAny, About::kAny, k4, k20},
    {"$comment", Word::kAnnotation, Form::kAny, About::kAny, k4, k20},
    {"readOnly", Word::kAnnotation, Form::kAny, About::kAny, k4, k20},
    {"writeOnly", Word::kAnnotation, Form::kAny, About::kAny, k4, k20},
    {"deprecated", Word::kAnnotation, Form::kAny, About::kAny, k4, k20},
    {"contentEncoding", Word::kContentAnnotation, Form::kAny, About::kString, k7, k20},
    {"contentMediaType", Word::kContentAnnotation, Form::kAny, About::kString, k7, k20},
    {"contentSchema", Word::kContentAnnotation, Form::kAny, About::kString, k19, k20},
};

}  // namespace

// Looks a keyword up in a hash table with open addressing, which fits into four cache lines. Compiles make
// few look-ups, far apart, so each node of a std::map on the way would miss the cache.
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

std::span<const WordInfo> all_words() { return kWords; }

std::string_view name_of(About about) {
  switch (about) {
    case About::kAny: return "any";
    case About::kNumber: return "number";
    case About::kString: return "string";
    case About::kArray: return "array";
    case About::kObject: return "object";
  }
  return {};
}

std::string_view schemas_in(Form form) {
  switch (form) {
    case Form::kSchema: return "schema";
    case Form::kList:
    case Form::kSome: return "list";
    case Form::kMap: return "map";
    case Form::kMixed: return "mixed";
    case Form::kEither: return "either";
    case Form::kAny:
    case Form::kString:
    case Form::kBoolean:
    case Form::kNumber:
    case Form::kLimit:
    case Form::kCount:
    case Form::kTypes:
    case Form::kArray:
    case Form::kNames:
    case Form::kObject: return "";
  }
  return "";
}

bool asserts(const WordInfo& w) {
  switch (w.word) {
    case Word::kUnknown:
    case Word::kAnnotation:
    case Word::kContentAnnotation:
    case Word::kId:
    case Word::kLegacyId:
    case Word::kAnchor:
    case Word::kDynamicAnchor:
    case Word::kRecursiveAnchor:
    case Word::kSchemaUri:
    case Word::kVocabulary:
    case Word::kDefs: return false;
    default: return true;
  }
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
