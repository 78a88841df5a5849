// Makes formulas of keywords; see lower.h.
//
// The problem. Keywords of one schema object depend on each other: `additionalProperties` on `properties`,
// `then` on `if`, `unevaluatedItems` on every keyword beside it. Schemas refer to each other in circles. A
// text may need a hundredth of a document of ten megabytes.
//
// The idea. A subschema becomes an atom kSchema with its location, and is lowered when the solver asks
// for it (lower()). Each keyword becomes a conjunct that also holds for every value of another kind, so
// no keyword needs to look at `type`:
//
//     {"type": "object", "properties": {"a": A}, "additionalProperties": false}
//     types(object)  and  all({a}, schema(A))  and  all(not {a}, no)
//     {"if": I, "then": T}      (not schema(I)) or schema(T)
//
// Invariants.
// - A JSON value satisfies a formula exactly if the value satisfies the keywords in their draft.
// - A schema that is only a reference has the formula of its target. A reference that leads nowhere is an
//   atom whose location is broken(): no value satisfies the atom or its negation. A schema that works without
//   the reference stays usable.
// - A condition that is plainly false forbids its kind and not every value (FormulaSpace::literal).
//
// Rejected: lowering the whole document at once. Often one schema of a bundle is used, and a circle of
// references would need a second representation.
#include "schema/lower/lower.h"

#include "base/depth.h"
#include "base/error.h"
#include "base/undo.h"
#include "numbers/decimal.h"
#include "schema/lower/unevaluated.h"
#include "strings/format.h"

namespace structgen {

namespace {
// A chain of references to references (`a` is `$ref` b, b is `$ref` c, ...) has at most this many steps.
constexpr uint32_t kMaxReferenceChain = 1'000;
// A constant array or object nests at most this deep: its formula nests as deep, and derivatives recurse.
constexpr uint32_t kMaxConstantDepth = 500;
}  // namespace

// If a schema is only a `$ref`, its target takes its place, so that ten names of one schema share a node and
// its answers. In drafts 4 to 7 every schema with a `$ref` is such, because the `$ref` hides its siblings.
ValueId Lowering::reference(Loc l) {
  for (uint32_t hops = 0;; ++hops) {
    const Json& j = schemas_.json(l);
    if (j.type(l.node) == JsonType::kTrue) return FormulaSpace::yes();
    if (j.type(l.node) == JsonType::kFalse) return FormulaSpace::no();
    // A value that is no schema (`"items": 5`) constrains nothing; the report names it. An empty object
    // constrains nothing, either.
    if (!j.is_object(l.node) || j.size(l.node) == 0) return FormulaSpace::yes();
    const JsonRef ref = j.find(l.node, "$ref");
    const bool bare =
        ref != kNoJson && j.is_string(ref) && (j.size(l.node) == 1 || schemas_.draft(l) <= Draft::k7);
    if (!bare) break;
    if (hops > kMaxReferenceChain)
      throw Error(ErrorKind::kGrammar, "references form a loop that never reaches a schema")
          .in(schemas_.pointer(l), "$ref");
    if (!schemas_.resolves(l, j.text(ref))) return broken_reference(l, ref);
    l = schemas_.resolve(l, j.text(ref));
  }
  return node_of(l);
}

// Returns the kSchema node of a schema. Equal Locs have one node; a schema in two dynamic scopes has two.
ValueId Lowering::node_of(const Loc& l) {
  return formulas_.schema(LocationId{
      loc_index_.number(mix(mix(mix(mix(0, l.doc.v), l.node), l.resource.v), l.scope.v), locs_, l)});
}

// Returns the kSchema node of a broken reference. Its location is that of the reference's text:
// raise_broken() can then name the reference, and two broken references have two nodes.
ValueId Lowering::broken_reference(Loc at, JsonRef text) {
  at.node = text;
  const ValueId f = node_of(at);
  broken_.insert(formulas_[f].location());
  return f;
}

void Lowering::raise_broken(LocationId location) {
  if (looping_.count(location))
    throw Error(ErrorKind::kGrammar, "a schema refers to itself without consuming anything")
        .in(schemas_.pointer(locs_[location.v]), "$dynamicRef");
  throw schemas_.broken(locs_[location.v]);
}

ValueId Lowering::lower(LocationId location) {
  return lowered_.remember(location.v, [&] {
    const Loc at = locs_[location.v];
    return lower_object(at);
  });
}

ValueId Lowering::lower_object(const Loc& at) {
  const Keywords o(schemas_, at);
  Conjuncts parts;
  lower_logic(at, o, parts);
  if (o.validates) {
    lower_types(at, o, parts);
    lower_numbers(at, o, parts);
    lower_strings(at, o, parts);
  }
  lower_format(o, parts);
  lower_arrays(at, o, parts);
  lower_objects(at, o, parts);
  return formulas_.all_of(parts);
}

void Lowering::lower_types(const Loc& at, const Keywords& o, Conjuncts& out) {
  const Json& j = o.json;
  if (o.string(Word::kType) || o.array(Word::kType)) {
    uint32_t mask = 0;
    bool integer = false, number = false;
    const auto take = [&](JsonRef r) {
      if (!j.is_string(r)) return;
      const std::string_view t = j.text(r);
      if (t == "null")
        mask |= kind_bit(Kind::kNull);
      else if (t == "boolean")
        mask |= kind_bit(Kind::kTrue) | kind_bit(Kind::kFalse);
      else if (t == "string")
        mask |= kind_bit(Kind::kString);
      else if (t == "array")
        mask |= kind_bit(Kind::kArray);
      else if (t == "object")
        mask |= kind_bit(Kind::kObject);
      else if (t == "number")
        number = true;
      else if (t == "integer")
        integer = true;
      else if (t == "any")
        // Draft 3 has the type "any", which schemas still use. It allows every kind, and the report names it.
        mask |= kAllKinds;
    };
    const JsonRef t = o[Word::kType];
    if (j.is_array(t))
      for (uint32_t i = 0; i < j.size(t); ++i) take(j.item(t, i));
    else
      take(t);
    // A number is a kind of value, an integer a number with a condition. If the list of types has `number`,
    // `integer` adds nothing.
    if (number || integer) {
      if (integer && !number && !(mask & kind_bit(Kind::kNumber)))
        out.push_back(
            formulas_.literal(Kind::kNumber, formulas_.atom(Op::kInteger, 0, o.draft == Draft::k4)));
      mask |= kind_bit(Kind::kNumber);
    }
    out.push_back(formulas_.types(mask));
  }
  if (o.array(Word::kEnum)) out.push_back(values(j, o[Word::kEnum], at.doc));
  if (o.has(Word::kConst)) out.push_back(constant(j, o[Word::kConst], at.doc));
}

// Returns the formula of an `enum`. `"enum": ["a", "b", 1, null]` is "a string of the set {a, b}, or a number
// equal to 1, or null". A set of a thousand strings is one atom, and later one state. Each kind of value has
// a conjunct; one more conjunct says which kinds may occur.
ValueId Lowering::values(const Json& j, JsonRef array, DocumentId doc) {
  uint32_t mask = 0;
  std::vector<std::string> strings;
  std::vector<TypedId> numbers;
  std::vector<ValueId> arrays, objects;
  for (uint32_t i = 0; i < j.size(array); ++i) {
    const JsonRef v = j.item(array, i);
    switch (j.type(v)) {
      case JsonType::kNull: mask |= kind_bit(Kind::kNull); break;
      case JsonType::kTrue: mask |= kind_bit(Kind::kTrue); break;
      case JsonType::kFalse: mask |= kind_bit(Kind::kFalse); break;
      case JsonType::kString: strings.emplace_back(j.text(v)); break;
      case JsonType::kNumber:
        numbers.push_back(formulas_.atom(Op::kEqual, formulas_.intern_text(j.text(v))));
        break;
      case JsonType::kArray: arrays.push_back(constant(j, v, doc)); break;
      case JsonType::kObject: objects.push_back(constant(j, v, doc)); break;
    }
  }
  std::vector<ValueId> parts;
  const auto add = [&](Kind k, ValueId f) {
    mask |= kind_bit(k);
    parts.push_back(f);
  };
  if (!strings.empty())
    add(Kind::kString, formulas_.literal(Kind::kString, formulas_.strings(std::move(strings))));
  if (!numbers.empty()) add(Kind::kNumber, formulas_.literal(Kind::kNumber, formulas_.any_of(numbers)));
  // An atom about arrays says nothing of other kinds, so a union of them would refuse the strings of the same
  // enum. Each union therefore gets the alternative "a value of another kind".
  if (!arrays.empty())
    add(Kind::kArray,
        formulas_.either(formulas_.types(kAllKinds & ~kind_bit(Kind::kArray)), formulas_.any_of(arrays)));
  if (!objects.empty())
    add(Kind::kObject,
        formulas_.either(formulas_.types(kAllKinds & ~kind_bit(Kind::kObject)), formulas_.any_of(objects)));
  parts.push_back(formulas_.types(mask));
  return formulas_.all_of(parts);
}

// Returns the number of a list of names, whose order is that of keys. `key` is the list's node in its
// document.
MapId Lowering::map_of(uint64_t key, const std::vector<NameId>& names) {
  return map_index_.remember(key, [&] {
    maps_.push_back(names);
    return MapId{static_cast<uint32_t>(maps_.size() - 1)};
  });
}

// Returns the formula of one JSON value. That of `[1, 2]` is "an array; item 0 is 1; item 1 is 2; there is an
// item 1, and none behind it". That of an object says in the same way that it has just these names, in the
// schema's order.
ValueId Lowering::constant(const Json& j, JsonRef node, DocumentId doc) {
  check_depth();
  const uint64_t key = key_of(doc, node);
  if (doc != kNoDocument)
    if (const auto* known = constants_.find(key)) return *known;
  if (constant_depth_ >= kMaxConstantDepth)
    throw Error(ErrorKind::kSchemaTooComplex, "a constant nests too deeply");
  ++constant_depth_;
  const Undo leave([&] { --constant_depth_; });
  std::vector<ValueId> parts;
  const auto put = [&](Kind k, TypedId f) { parts.push_back(formulas_.literal(k, f)); };
  switch (j.type(node)) {
    case JsonType::kNull: parts.push_back(formulas_.types(kind_bit(Kind::kNull))); break;
    case JsonType::kTrue: parts.push_back(formulas_.types(kind_bit(Kind::kTrue))); break;
    case JsonType::kFalse: parts.push_back(formulas_.types(kind_bit(Kind::kFalse))); break;
    case JsonType::kString:
      parts.push_back(formulas_.types(kind_bit(Kind::kString)));
      put(Kind::kString, formulas_.strings({std::string(j.text(node))}));
      break;
    case JsonType::kNumber:
      parts.push_back(formulas_.types(kind_bit(Kind::kNumber)));
      put(Kind::kNumber, formulas_.atom(Op::kEqual, formulas_.intern_text(j.text(node))));
      break;
    case JsonType::kArray: {
      parts.push_back(formulas_.types(kind_bit(Kind::kArray)));
      const uint32_t n = j.size(node);
      for (uint32_t i = 0; i < n; ++i)
        put(Kind::kArray, formulas_.item_all(i, i + 1, constant(j, j.item(node, i), doc)));
      if (n > 0) put(Kind::kArray, formulas_.item_some(n - 1, n, FormulaSpace::yes(), 1));
      put(Kind::kArray, formulas_.item_all(n, kUnbounded, FormulaSpace::no()));
      break;
    }
    case JsonType::kObject: {
      parts.push_back(formulas_.types(kind_bit(Kind::kObject)));
      std::vector<NameId> names;
      for (uint32_t i = 0; i < j.size(node); ++i) {
        const NameId n = name_of(j.key(node, i));
        names.push_back(n);
        put(Kind::kObject, formulas_.all(formulas_.name(n), constant(j, j.item(node, i), doc)));
        parts.push_back(present(n));
      }
      if (order_ == PropertyOrder::kSchema && doc != kNoDocument && names.size() > 1) {
        put(Kind::kObject, formulas_.atom(Op::kOrder, map_of(key, names).v));
      }
      put(Kind::kObject, formulas_.all(formulas_.region_not(formulas_.names(names)), FormulaSpace::no()));
      break;
    }
  }
  const ValueId out = formulas_.all_of(parts);
  if (doc != kNoDocument) constants_.emplace(key, out);
  return out;
}

// Lowers references, `allOf`, `anyOf`, `oneOf`, `not` and `if`. An empty `anyOf`, which drafts forbid,
// constrains nothing; the report names it.
void Lowering::lower_logic(const Loc& at, const Keywords& o, Conjuncts& out) {
  const Json& j = o.json;
  for (Word w : {Word::kRef, Word::kDynamicRef}) {
    if (!o.string(w)) continue;
    const std::string_view ref = j.text(o[w]);
    if (!schemas_.resolves(at, ref))
      out.push_back(broken_reference(at, o[w]));
    else
      out.push_back(
          reference(w == Word::kRef ? schemas_.resolve(at, ref) : schemas_.resolve_dynamic(at, ref)));
  }
  if (o.string(Word::kRecursiveRef)) out.push_back(reference(schemas_.resolve_recursive(at)));
  const auto list = [&](Word w) {
    std::vector<ValueId> kids;
    for (uint32_t i = 0; i < j.size(o[w]); ++i) kids.push_back(sub(at, j.item(o[w], i)));
    return kids;
  };
  if (o.array(Word::kAllOf)) out.push_back(formulas_.all_of(list(Word::kAllOf)));
  if (o.array(Word::kAnyOf) && j.size(o[Word::kAnyOf]) > 0)
    out.push_back(formulas_.any_of(list(Word::kAnyOf)));
  if (o.array(Word::kOneOf) && j.size(o[Word::kOneOf]) > 0)
    out.push_back(formulas_.one_of(list(Word::kOneOf)));
  if (o.schema(Word::kNot)) out.push_back(formulas_.deny(sub(at, o[Word::kNot])));
  if (o.schema(Word::kIf) && (o.schema(Word::kThen) || o.schema(Word::kElse))) {
    const ValueId test = sub(at, o[Word::kIf]);
    const ValueId yes = o.schema(Word::kThen) ? sub(at, o[Word::kThen]) : FormulaSpace::yes();
    const ValueId no = o.schema(Word::kElse) ? sub(at, o[Word::kElse]) : FormulaSpace::yes();
    // `if I then T else E` is (I and T) or (not I and E). If T or E is missing, a disjunction that mentions I
    // once is enough, and its derivatives are smaller.
    if (yes == FormulaSpace::yes())
      out.push_back(formulas_.either(test, no));
    else if (no == FormulaSpace::yes())
      out.push_back(formulas_.either(formulas_.deny(test), yes));
    else
      out.push_back(formulas_.either(formulas_.both(test, yes), formulas_.both(formulas_.deny(test), no)));
  }
}

void Lowering::lower_numbers(const Loc&, const Keywords& o, Conjuncts& out) {
  const Json& j = o.json;
  const auto put = [&](TypedId f) { out.push_back(formulas_.literal(Kind::kNumber, f)); };
  const auto text = [&](Word w) { return formulas_.intern_text(j.text(o[w])); };
  const auto yes = [&](Word w) { return o.has(w) && j.type(o[w]) == JsonType::kTrue; };
  // Draft 4 has `"exclusiveMinimum": true` beside `minimum`; in later drafts `exclusiveMinimum` is a number.
  const bool old = o.draft == Draft::k4;
  // Recipe, keyword 3: its formula, in the lower_... of its kind.
  if (o.number(Word::kMinimum))
    put(formulas_.atom(Op::kAtLeast, text(Word::kMinimum), old && yes(Word::kExclusiveMinimum)));
  if (o.number(Word::kMaximum))
    put(formulas_.atom(Op::kAtMost, text(Word::kMaximum), old && yes(Word::kExclusiveMaximum)));
  if (!old && o.number(Word::kExclusiveMinimum))
    put(formulas_.atom(Op::kAtLeast, text(Word::kExclusiveMinimum), 1));
  if (!old && o.number(Word::kExclusiveMaximum))
    put(formulas_.atom(Op::kAtMost, text(Word::kExclusiveMaximum), 1));
  if (o.number(Word::kMultipleOf)) put(formulas_.atom(Op::kMultiple, text(Word::kMultipleOf)));
}

// Returns the value of a keyword such as `minItems` as a whole number. A count beyond 2^31, which no text
// reaches, becomes 2,000,000,000 (Decimal::count).
uint32_t Lowering::count(const Loc& at, JsonRef number, bool round_up) {
  return Decimal::parse_any(schemas_.json(at).text(number)).count(round_up);
}

void Lowering::lower_strings(const Loc& at, const Keywords& o, Conjuncts& out) {
  const Json& j = o.json;
  const auto put = [&](TypedId f) { out.push_back(formulas_.literal(Kind::kString, f)); };
  const uint32_t min = o.number(Word::kMinLength) ? count(at, o[Word::kMinLength], true) : 0;
  uint32_t max = kUnbounded;
  if (o.number(Word::kMaxLength)) {
    max = count(at, o[Word::kMaxLength], false);
    // No text reaches this maximum, so it is dropped. Otherwise each state of the string would have a
    // counter.
    if (max == 2'000'000'000) max = kUnbounded;
  }
  put(formulas_.length(min, max));
  if (o.string(Word::kPattern))
    put(formulas_.atom(Op::kPattern, formulas_.intern_text(j.text(o[Word::kPattern]))));
  if (o.schema(Word::kJsonContent)) put(formulas_.content(sub(at, o[Word::kJsonContent])));
}

// Lowers `format`. It is not in the validation vocabulary, so it counts even if this is turned off.
void Lowering::lower_format(const Keywords& o, Conjuncts& out) {
  const Json& j = o.json;
  if (o.string(Word::kFormat) && schemas_.options().enforce_formats && find_format(j.text(o[Word::kFormat])))
    out.push_back(formulas_.literal(
        Kind::kString, formulas_.atom(Op::kFormat, formulas_.intern_text(j.text(o[Word::kFormat])))));
}

// Lowers the keywords of objects. `properties` and `patternProperties` ask something of all members with
// given keys. `additionalProperties` asks it of all members with other keys. `propertyNames` forbids every
// member whose key is not in its language.
void Lowering::lower_objects(const Loc& at, const Keywords& o, Conjuncts& out) {
  const Json& j = o.json;
  const auto put = [&](TypedId f) { out.push_back(formulas_.literal(Kind::kObject, f)); };
  std::vector<NameId> names;
  std::vector<RegionId> evaluated;
  if (o.object(Word::kProperties)) {
    const JsonRef map = o[Word::kProperties];
    for (uint32_t i = 0; i < j.size(map); ++i) {
      const NameId n = name_of(j.key(map, i));
      names.push_back(n);
      put(formulas_.all(formulas_.name(n), sub(at, j.item(map, i))));
    }
    if (order_ == PropertyOrder::kSchema && names.size() > 1) {
      put(formulas_.atom(Op::kOrder, map_of(key_of(at.doc, map), names).v));
    }
  }
  if (!names.empty()) evaluated.push_back(formulas_.names(names));
  if (o.object(Word::kPatternProperties)) {
    const JsonRef map = o[Word::kPatternProperties];
    for (uint32_t i = 0; i < j.size(map); ++i) {
      const RegionId r = formulas_.pattern(j.key(map, i));
      evaluated.push_back(r);
      put(formulas_.all(r, sub(at, j.item(map, i))));
    }
  }
  if (o.schema(Word::kAdditionalProperties)) {
    std::vector<RegionId> rest;
    for (RegionId r : evaluated) rest.push_back(formulas_.region_not(r));
    put(formulas_.all(formulas_.region_and(std::move(rest)), sub(at, o[Word::kAdditionalProperties])));
  }
  if (o.schema(Word::kPropertyNames))
    put(formulas_.all(formulas_.region_not(formulas_.language(sub(at, o[Word::kPropertyNames]))),
                      FormulaSpace::no()));
  if (o.validates) {
    if (o.array(Word::kRequired))
      for (uint32_t i = 0; i < j.size(o[Word::kRequired]); ++i)
        if (const JsonRef n = j.item(o[Word::kRequired], i); j.is_string(n))
          out.push_back(present(name_of(j.text(n))));
    if (o.number(Word::kMinProperties))
      put(formulas_.some(formulas_.any_key(), FormulaSpace::yes(), count(at, o[Word::kMinProperties], true)));
    if (o.number(Word::kMaxProperties))
      put(formulas_.most(formulas_.any_key(), FormulaSpace::yes(),
                         count(at, o[Word::kMaxProperties], false)));
  }
  if (o.schema(Word::kUnevaluatedProperties))
    out.push_back(Unevaluated(*this, at).properties(sub(at, o[Word::kUnevaluatedProperties])));
  lower_dependencies(at, o, out);
}

// `{"dependentRequired": {"a": ["b"]}}` says: there is no `a`, or there is a `b`. `dependencies` is the older
// keyword, with a list of names or a schema.
void Lowering::lower_dependencies(const Loc& at, const Keywords& o, Conjuncts& out) {
  const Json& j = o.json;
  for (Word w : {Word::kDependentRequired, Word::kDependentSchemas, Word::kDependencies}) {
    if (!o.object(w) || (w == Word::kDependentRequired && !o.validates)) continue;
    const JsonRef map = o[w];
    for (uint32_t i = 0; i < j.size(map); ++i) {
      const NameId n = name_of(j.key(map, i));
      const JsonRef then = j.item(map, i);
      ValueId consequence = FormulaSpace::yes();
      if (j.is_array(then) && w != Word::kDependentSchemas) {
        std::vector<ValueId> names;
        for (uint32_t k = 0; k < j.size(then); ++k)
          if (j.is_string(j.item(then, k))) names.push_back(present(name_of(j.text(j.item(then, k)))));
        consequence = formulas_.all_of(names);
      } else if (j.is_string(then) && w == Word::kDependencies) {
        // In draft 3 the value is a single name, which real schemas still write.
        consequence = present(name_of(j.text(then)));
      } else if ((j.is_object(then) || j.is_bool(then)) && w != Word::kDependentRequired) {
        consequence = sub(at, then);
      }
      out.push_back(formulas_.either(absent(n), consequence));
    }
  }
}

// Lowers the keywords of arrays. Up to 2019-09 `items` may be a list of schemas, and `additionalItems` is for
// the items behind the list. Later the list is `prefixItems`, and `items` is for the items behind it.
// `minItems: 3` says "there is an item with index 2".
void Lowering::lower_arrays(const Loc& at, const Keywords& o, Conjuncts& out) {
  const Json& j = o.json;
  const auto put = [&](TypedId f) { out.push_back(formulas_.literal(Kind::kArray, f)); };
  const bool tuple_items = o.draft <= Draft::k2019 && o.array(Word::kItems);
  const Word tuple = o.array(Word::kPrefixItems) ? Word::kPrefixItems : Word::kItems;
  uint32_t n = 0;
  if (o.array(Word::kPrefixItems) || tuple_items) {
    n = j.size(o[tuple]);
    for (uint32_t i = 0; i < n; ++i) put(formulas_.item_all(i, i + 1, sub(at, j.item(o[tuple], i))));
  }
  if (o.schema(Word::kItems)) put(formulas_.item_all(n, kUnbounded, sub(at, o[Word::kItems])));
  if (tuple_items && o.schema(Word::kAdditionalItems))
    put(formulas_.item_all(n, kUnbounded, sub(at, o[Word::kAdditionalItems])));
  if (o.schema(Word::kContains)) {
    const ValueId v = sub(at, o[Word::kContains]);
    const uint32_t least =
        o.number(Word::kMinContains) && o.validates ? count(at, o[Word::kMinContains], true) : 1;
    put(formulas_.item_some(0, kUnbounded, v, least));
    if (o.number(Word::kMaxContains) && o.validates)
      put(formulas_.item_most(0, kUnbounded, v, count(at, o[Word::kMaxContains], false)));
  }
  if (o.schema(Word::kUnevaluatedItems))
    out.push_back(Unevaluated(*this, at).items(sub(at, o[Word::kUnevaluatedItems])));
  if (!o.validates) return;
  if (o.number(Word::kMinItems))
    if (const uint32_t least = count(at, o[Word::kMinItems], true); least > 0)
      put(formulas_.item_some(least - 1, least, FormulaSpace::yes(), 1));
  if (o.number(Word::kMaxItems))
    put(formulas_.item_all(count(at, o[Word::kMaxItems], false), kUnbounded, FormulaSpace::no()));
  // An array of at most one item has no two equal items. Without the atom kUnique, states need not keep
  // items.
  if (o.yes(Word::kUniqueItems) && !(o.number(Word::kMaxItems) && count(at, o[Word::kMaxItems], false) <= 1))
    put(formulas_.atom(Op::kUnique));
}

}  // namespace structgen
