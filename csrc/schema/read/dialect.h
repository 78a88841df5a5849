// The drafts of JSON Schema as data: the keywords of each draft, the type that a keyword's value must
// have, and where schemas stand in it.
//
// In: keyword text, a $schema URI. Out: table rows. Cost: one hash look-up.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace structgen {

enum class Draft : uint8_t { k4 = 4, k6 = 6, k7 = 7, k2019 = 19, k2020 = 20 };

// Recipe, keyword 1: its name.
// Keywords with one meaning share a name: `$defs` and `definitions` are both kDefs.
enum class Word : uint8_t {
  kUnknown,
  kAnnotation,  // says nothing about validity and is listed by no report: title, default, ...
  kType,
  kEnum,
  kConst,
  kAllOf,
  kAnyOf,
  kOneOf,
  kNot,
  kIf,
  kThen,
  kElse,
  kRef,
  kDynamicRef,
  kRecursiveRef,
  kId,
  kLegacyId,
  kAnchor,
  kDynamicAnchor,
  kRecursiveAnchor,
  kSchemaUri,
  kVocabulary,
  kDefs,
  kMinimum,
  kMaximum,
  kExclusiveMinimum,
  kExclusiveMaximum,
  kMultipleOf,
  kMinLength,
  kMaxLength,
  kPattern,
  kFormat,
  kItems,
  kPrefixItems,
  kAdditionalItems,
  kUnevaluatedItems,
  kContains,
  kMinContains,
  kMaxContains,
  kMinItems,
  kMaxItems,
  kUniqueItems,
  kProperties,
  kPatternProperties,
  kAdditionalProperties,
  kUnevaluatedProperties,
  kPropertyNames,
  kRequired,
  kMinProperties,
  kMaxProperties,
  kDependentRequired,
  kDependentSchemas,
  kDependencies,
  kJsonContent,
  kContentAnnotation,  // contentEncoding, contentMediaType, contentSchema: annotations that a report names
};

// The type that the value of a keyword must have. If the value has another type, the keyword constrains
// nothing.
enum class Form : uint8_t {
  kAny,
  kString,
  kBoolean,
  kNumber,
  kLimit,  // a number; in draft 4 a boolean
  kCount,  // a number, read as a whole one of 0 or more: `min...` rounds up, any other name down
  kTypes,  // a string or an array
  kArray,
  kNames,  // an array of strings
  kObject,
  kSchema,  // from here on schemas stand below
  kList,    // an array of schemas
  kSome,    // an array of schemas that is not empty
  kMap,     // an object of schemas
  kEither,  // a schema or an array of schemas (items)
  kMixed,   // an object of schemas or arrays of names (dependencies)
};

// The kind of values that a keyword restricts; values of other kinds satisfy the keyword. Integers are
// numbers here.
enum class About : uint8_t { kAny, kNumber, kString, kArray, kObject };

struct WordInfo {
  std::string_view text;
  Word word;
  Form form;
  About about;
  Draft first, last;
};

// Returns a row for each keyword of each draft.
std::span<const WordInfo> all_words();
std::string_view name_of(About about);
// Returns where schemas stand in a value of this form: "schema" (the value is one), "list", "map", "either"
// (a schema or a list), "mixed" (a map of schemas and of lists of names), or "" (nowhere).
std::string_view schemas_in(Form form);
// Returns true if the keyword can make a value invalid, perhaps with another one beside it, as `then` and
// `minContains` need.
bool asserts(const WordInfo& w);
// Returns the row of a keyword; null for a text that no draft knows.
const WordInfo* find_word(std::string_view text);
inline bool holds_schemas(const WordInfo& w) { return w.form >= Form::kSchema; }
inline bool in_draft(const WordInfo& w, Draft d) { return w.first <= d && d <= w.last; }
// Sets `out` to the draft whose metaschema has this URI. Returns false if no known metaschema has it.
bool draft_of_uri(std::string_view uri, Draft& out);

}  // namespace structgen
