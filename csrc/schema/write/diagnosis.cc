// Finds the schema and the keyword that are wrong.
//
// The problem. "No value satisfies this schema" does not help with a schema of a thousand keywords: the user
// needs them. An error deep in a search knows at most the number of a schema.
//
// The idea. Go down from the root. The schemas that matter are those that every instance, or a part of every
// instance, must satisfy (`$ref`, `allOf`, required properties, items that must exist). Go on to the first
// such schema that has no instance of its own. In {"required": ["a"], "properties": {"a": {"minimum": 2,
// "maximum": 1}}} this schema is `/properties/a`. If two parts contradict each other, each of them has
// instances, and the schema that contains both is named.
//
// Rejected: a smallest contradictory set of keywords. `structgen lint` finds such a set, with many more
// questions.
#include "schema/write/diagnosis.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <utility>
#include <vector>

#include "base/told.h"
#include "numbers/decimal.h"
#include "schema/read/keywords.h"

namespace structgen {

namespace {
// Keywords that can make a question too hard to decide.
constexpr Word kHard[] = {Word::kPattern,         Word::kFormat,   Word::kMultipleOf,
                          Word::kUniqueItems,     Word::kContains, Word::kPatternProperties,
                          Word::kPropertyNames,   Word::kAllOf,    Word::kAnyOf,
                          Word::kOneOf,           Word::kNot,      Word::kIf,
                          Word::kDependentSchemas};

// Returns the schemas inside the one at `at` that every instance, or some value in every instance, must
// satisfy. `none(schema)` tells whether a schema has no instance.
std::vector<Loc> needed_by(SchemaSet& schemas, const Loc& at, const std::function<bool(const Loc&)>& none) {
  const Json& j = schemas.json(at);
  if (!j.is_object(at.node)) return {};
  const Keywords o(schemas, at);
  std::vector<Loc> inner;
  if (o.string(Word::kRef)) inner.push_back(schemas.resolve(at, j.text(o[Word::kRef])));
  if (o.array(Word::kAllOf))
    for (uint32_t i = 0; i < j.size(o[Word::kAllOf]); ++i)
      inner.push_back(schemas.child(at, j.item(o[Word::kAllOf], i)));
  if (o.array(Word::kRequired) && o.object(Word::kProperties))
    for (uint32_t i = 0; i < j.size(o[Word::kRequired]); ++i) {
      const JsonRef name = j.item(o[Word::kRequired], i);
      if (!j.is_string(name)) continue;
      const JsonRef property = j.find(o[Word::kProperties], j.text(name));
      if (property != kNoJson) inner.push_back(schemas.child(at, property));
    }
  // `minItems` asks for items of the tuple and, if it is larger than the tuple, for one item behind it.
  const auto count = [&](Word w, uint32_t otherwise) {
    return o.number(w) ? Decimal::parse_any(j.text(o[w])).count(true) : otherwise;
  };
  const uint32_t items = count(Word::kMinItems, 0);
  const Word tuple = o.array(Word::kPrefixItems) ? Word::kPrefixItems : Word::kItems;
  const uint32_t prefix = o.array(tuple) ? j.size(o[tuple]) : 0;
  for (uint32_t i = 0; i < prefix && i < items; ++i) inner.push_back(schemas.child(at, j.item(o[tuple], i)));
  const Word more = tuple == Word::kItems && prefix > 0 ? Word::kAdditionalItems : Word::kItems;
  if (items > prefix && o.schema(more)) inner.push_back(schemas.child(at, o[more]));
  if (o.schema(Word::kJsonContent) && o.string(Word::kType) && j.text(o[Word::kType]) == "string")
    inner.push_back(schemas.child(at, o[Word::kJsonContent]));
  if (o.schema(Word::kContains) && count(Word::kMinContains, 1) > 0)
    inner.push_back(schemas.child(at, o[Word::kContains]));
  // If no branch has an instance, the first branch is returned for all.
  for (Word w : {Word::kAnyOf, Word::kOneOf}) {
    bool empty = o.array(w) && j.size(o[w]) > 0;
    for (uint32_t i = 0; empty && i < j.size(o[w]); ++i) empty = none(schemas.child(at, j.item(o[w], i)));
    if (empty) inner.push_back(schemas.child(at, j.item(o[w], 0)));
  }
  return inner;
}
}  // namespace

void raise_unsatisfiable(SchemaSet& schemas, Lowering& lowering, Solver& solver) {
  Loc at = schemas.root();
  constexpr int kMaxSteps = 200;
  // Inside the whole schema, keywords around an inner schema may have made it easy to decide. Alone it may be
  // too hard; it then counts as one with instances.
  const auto none = [&](const Loc& part) {
    solver.refill();
    return told([&] { return !solver.nonempty(lowering.reference(part)); }).value_or(false);
  };
  for (int step = 0; step < kMaxSteps; ++step) {
    bool found = false;
    for (const Loc& l : needed_by(schemas, at, none)) {
      if (l == at || !none(l)) continue;
      at = l;
      found = true;
      break;
    }
    if (!found) break;
  }
  throw Error(ErrorKind::kUnsatisfiableSchema, "no value satisfies this schema").in(schemas.pointer(at));
}

// If the schema has several hard keywords, the cause is not known, so none is named.
void locate(Error& e, const SchemaSet& schemas, const Lowering& lowering) {
  if (!e.schema()) return;
  const Loc& at = lowering.location(*e.schema());
  std::string keyword;
  if (schemas.json(at).is_object(at.node)) {
    const Keywords o(schemas, at);
    int found = 0;
    for (const WordInfo& w : all_words())
      if (std::ranges::find(kHard, w.word) != std::end(kHard) && o[w.word] != kNoJson) {
        keyword = w.text;
        ++found;
      }
    if (found != 1) keyword.clear();
  }
  e.place(schemas.pointer(at), std::move(keyword));
}

}  // namespace structgen
