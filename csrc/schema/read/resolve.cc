// The positions of schemas, and the targets of references; see resolve.h.
//
// The problem. A reference is a URI, relative to the nearest `$id` above it, with a pointer or an
// anchor behind it. Drafts disagree about which keywords hold schemas, which keywords a `$ref` hides,
// and where a `$dynamicRef` leads. The report must name every keyword that constrains nothing. A
// malformed pattern must be an error before anything is generated.
//
// The idea. One pass over the schemas that the root reaches, with a list of those still to visit (scan).
// Each visit knows its parent, its resource and the way from the parent, so that a pointer is made only when
// an error or the report shows it. References wait until their own document was walked (resolve_pending). A
// target may lie in a document that was not read yet. This document is then parsed and walked, too.
//
//     {"$id": "http://x/a", "$defs": {"n": {"$id": "b", "$anchor": "here"}}, "$ref": "b#here"}
//     resources   http://x/a at the root; http://x/b at #/$defs/n, with the anchor `here`
//     reference   "b#here" relative to http://x/a: resource http://x/b, anchor `here`: that node
//
// The target of a dynamic reference depends on the way to its schema, so a Loc has a scope: the number of a
// list of resources. If no schema has a dynamic reference, all scopes are 0, so there are few Locs.
//
// Invariants.
// - A schema is visited once, however many references lead to it. The draft of its resource decides which
//   keywords the schema has.
// - Every keyword that constrains nothing has a note, and no other keyword has one.
// - A document comes from the caller, or it is unknown. Nothing is fetched.
//
// Costs. Linear in the schemas that are reached. A document that no reference reaches is not parsed.
//
// Rejected. A map from every URI to its node, made in advance: most entries would never be read, and the map
// would still lack pointers into the middle of a schema (`#/$defs/a/properties/b`).
#include "schema/read/resolve.h"

#include <algorithm>

#include "base/undo.h"
#include "numbers/decimal.h"
#include "regex/syntax.h"
#include "schema/read/loops.h"
#include "strings/format.h"
#include "strings/uri.h"

namespace structgen {

namespace {
// Appends a step of a JSON Pointer: `a/b` becomes `/a~1b` (RFC 6901).
void append_segment(std::string& out, std::string_view segment) {
  out += '/';
  for (char c : segment) {
    if (c == '~')
      out += "~0";
    else if (c == '/')
      out += "~1";
    else
      out += c;
  }
}

// Returns null if the value has the type that the keyword needs; otherwise what is wrong, for the report. A
// keyword with a value of the wrong type (`"minLength": "3"`) constrains nothing and is no error, as in
// common validators.
const char* misshapen(const Json& j, Form form, JsonRef v, Draft draft) {
  const auto unless = [](bool fits, const char* why) { return fits ? nullptr : why; };
  const bool schema = j.is_object(v) || j.is_bool(v);
  switch (form) {
    case Form::kAny: return nullptr;
    case Form::kString: return unless(j.is_string(v), "not a string");
    case Form::kBoolean: return unless(j.is_bool(v), "not a boolean");
    case Form::kLimit:
      if (draft == Draft::k4) return unless(j.is_bool(v), "not a boolean, as draft 4 has it");
      [[fallthrough]];
    case Form::kNumber:
    case Form::kCount: return unless(j.is_number(v), "not a number");
    case Form::kTypes: return unless(j.is_string(v) || j.is_array(v), "not a string or an array");
    case Form::kArray: return unless(j.is_array(v), "not an array");
    case Form::kNames: return unless(j.is_array(v), "not an array of names");
    case Form::kSchema: return unless(schema, "not a schema");
    case Form::kEither: return unless(schema || j.is_array(v), "not a schema");
    case Form::kSome:
      if (j.is_array(v) && j.size(v) == 0) return "an empty array";
      [[fallthrough]];
    case Form::kList: return unless(j.is_array(v), "not an array of schemas");
    case Form::kObject:
    case Form::kMap:
    case Form::kMixed: return unless(j.is_object(v), "not an object");
  }
  return nullptr;
}

std::string draft_name(Draft d) {
  if (d == Draft::k2020) return "2020-12";
  return d == Draft::k2019 ? "2019-09" : std::to_string(static_cast<int>(d));
}

constexpr std::string_view kTypes[] = {"null", "boolean", "string", "array", "object", "number", "integer"};

}  // namespace

SchemaSet::SchemaSet(std::string_view root, const Documents& others, const SchemaOptions& options)
    : options_(options), others_(&others) {
  text_size_ = root.size();
  for (const auto& [uri, text] : others) text_size_ += uri.size() + text.size();
  const DocumentId doc = add_document("", Json::parse(root));
  const Json& j = *documents_[doc.v];
  if (!j.is_object(0) && !j.is_bool(0))
    throw Error(ErrorKind::kGrammar, "a schema is an object or a boolean").in("");
  scan(doc, 0, {}, kNoVisit, {});
  resolve_pending();
  root_ = Loc{doc, 0, resource_roots_.at(key_of(doc, 0)), {}};
  if (dynamic_) root_.scope = push_scope({}, root_.resource);
  others_ = nullptr;
}

// Adds a document. Its root is a resource even without an `$id`; the resource then has the URI that the
// caller gave.
DocumentId SchemaSet::add_document(const std::string& uri, Json json) {
  const DocumentId doc{static_cast<uint32_t>(documents_.size())};
  documents_.push_back(std::make_unique<Json>(std::move(json)));
  Resource r;
  r.uri = uri;
  r.doc = doc;
  r.node = 0;
  r.draft = options_.draft;
  const ResourceId id{static_cast<uint32_t>(resources_.size())};
  resources_.push_back(std::move(r));
  if (!uri.empty()) by_uri_.emplace(uri, id);
  resource_roots_[key_of(doc, 0)] = id;
  return doc;
}

// Adds a schema that the engine wrote. The scan meets all targets of its references by itself, so they need
// no resolve_pending() and no search for loops.
Loc SchemaSet::add(std::string_view schema) {
  added_ = std::min(added_, documents_.size());
  const DocumentId doc = add_document("", Json::parse(schema));
  const ResourceId resource = resource_roots_.at(key_of(doc, 0));
  resources_[resource.v].draft = Draft::k2020;
  text_size_ += schema.size();
  const std::size_t known = pending_.size();
  scan(doc, 0, resource, kNoVisit, {});
  pending_.resize(known);  // the references lead to what this scan has seen
  return Loc{doc, 0, resource, dynamic_ ? push_scope({}, resource) : ScopeId{}};
}

// Returns the draft that `$schema` names, or `inherited` if it names none that is known. Sets `validates` to
// false if the metaschema turns the validation vocabulary off.
Draft SchemaSet::dialect_of(DocumentId doc, JsonRef node, Draft inherited, bool& validates) {
  const Json& j = *documents_[doc.v];
  const bool forced = doc == DocumentId{} && node == 0 && options_.force_draft;
  const JsonRef s = j.find(node, "$schema");
  if (s == kNoJson || !j.is_string(s)) return forced ? options_.draft : inherited;
  Draft d = inherited;
  if (draft_of_uri(j.text(s), d)) return forced ? options_.draft : d;
  // The `$schema` may name a metaschema that the caller passed. Then the metaschema's own `$schema` gives the
  // draft, and its `$vocabulary` says whether validation keywords count.
  if (!others_) return forced ? options_.draft : inherited;
  for (const auto& [uri, text] : *others_) {
    if (uri != j.text(s)) continue;
    const Json meta = Json::parse(text);
    const JsonRef own = meta.find(0, "$schema");
    if (own != kNoJson && meta.is_string(own)) draft_of_uri(meta.text(own), d);
    const JsonRef vocabulary = meta.find(0, "$vocabulary");
    if (vocabulary != kNoJson && meta.is_object(vocabulary)) {
      validates = false;
      for (uint32_t i = 0; i < meta.size(vocabulary); ++i)
        if (meta.key(vocabulary, i).ends_with("/vocab/validation")) validates = true;
    }
  }
  return forced ? options_.draft : d;
}

// Visits the schema at `node` and all schemas inside of it, unless it was visited before. `keyword` and
// `parent` say how it was reached; pointers need this.
void SchemaSet::scan(DocumentId doc, JsonRef node, ResourceId resource, VisitId parent,
                     std::string_view keyword) {
  if (scanned_.size() <= doc.v) scanned_.resize(doc.v + 1);
  scanned_[doc.v].resize(documents_[doc.v]->node_count(), kNoVisit);
  std::vector<Visit> todo;
  todo.reserve(32);
  visits_.reserve(32);
  todo.push_back({doc, node, resource, parent, keyword, {}, kNoIndex});
  while (!todo.empty()) {
    Visit v = todo.back();
    todo.pop_back();
    VisitId& id = scanned_[v.doc.v][v.node];
    if (id != kNoVisit) continue;
    id = VisitId{static_cast<uint32_t>(visits_.size())};
    v.resource = enter_resource(v);
    visits_.push_back(v);
    scan_schema(id, todo);
  }
}

// Returns the resource to which the schema belongs. Makes the resource if the schema has an `$id` of its own,
// or is the root of a document. In drafts 4 to 7, `"$id": "#name"` is the old spelling of an anchor and
// starts no resource.
ResourceId SchemaSet::enter_resource(Visit& v) {
  const Json& j = *documents_[v.doc.v];
  if (!j.is_object(v.node)) return v.resource;
  const bool is_root = v.node == 0;
  // At the root of a document the constructor or add() has set the draft. Any other schema inherits that of
  // its resource, unless it has an identifier and a `$schema`.
  Draft draft =
      is_root ? resources_[resource_roots_.at(key_of(v.doc, 0)).v].draft : resources_[v.resource.v].draft;
  bool validates = is_root || resources_[v.resource.v].validates;
  const JsonRef id_new = j.find(v.node, "$id"), id_old = j.find(v.node, "id");
  if (is_root || id_new != kNoJson || id_old != kNoJson) draft = dialect_of(v.doc, v.node, draft, validates);
  const JsonRef id = draft == Draft::k4 ? id_old : id_new;
  // In drafts up to 7 a `$ref` hides its siblings, so an `$id` beside it names nothing.
  const bool hidden = draft <= Draft::k7 && j.find(v.node, "$ref") != kNoJson;
  const bool has_id = id != kNoJson && j.is_string(id) && !hidden;
  ResourceId resource = v.resource;
  if (is_root) resource = resource_roots_.at(key_of(v.doc, 0));
  if (is_root) {
    resources_[resource.v].draft = draft;
    resources_[resource.v].validates = validates;
  }
  if (!has_id) return resource;
  const std::string full = resolve_uri(resources_[resource.v].uri, j.text(id));
  std::string_view absolute, fragment;
  split_fragment(full, absolute, fragment);
  if (!fragment.empty() && draft <= Draft::k7) resources_[resource.v].anchors[std::string(fragment)] = v.node;
  if (j.text(id).starts_with('#')) return resource;
  if (is_root) {
    resources_[resource.v].uri = absolute;
  } else {
    Resource r;
    r.uri = absolute;
    r.doc = v.doc;
    r.node = v.node;
    r.draft = draft;
    r.validates = validates;
    resource = ResourceId{static_cast<uint32_t>(resources_.size())};
    resources_.push_back(std::move(r));
    resource_roots_[key_of(v.doc, v.node)] = resource;
  }
  by_uri_.emplace(std::string(absolute), resource);
  return resource;
}

// Looks at every keyword of one schema, and appends the schemas inside of it to `todo`.
void SchemaSet::scan_schema(VisitId visit, std::vector<Visit>& todo) {
  const Visit v = visits_[visit.v];
  const Json& j = *documents_[v.doc.v];
  if (!j.is_object(v.node)) {
    // In `{"properties": {"a": 5}}` the value of `a` is no schema. The report names the parent's keyword, and
    // `a` is left unconstrained.
    if (!j.is_bool(v.node) && v.parent != kNoVisit) {
      const std::string which =
          v.index != kNoIndex ? std::to_string(v.index) : "'" + std::string(v.member) + "'";
      notes_.push_back({v.parent, v.keyword, "ignored in part: " + which + " is not a schema"});
    }
    return;
  }
  const Draft draft = resources_[v.resource.v].draft;
  const bool hidden = draft <= Draft::k7 && j.find(v.node, "$ref") != kNoJson;
  for (uint32_t i = 0; i < j.size(v.node); ++i) {
    const std::string_view key = j.key(v.node, i);
    const JsonRef value = j.item(v.node, i);
    const WordInfo* w = find_word(key);
    if (!w || (!in_draft(*w, draft) && w->word != Word::kId && w->word != Word::kLegacyId)) {
      notes_.push_back({visit, key, w ? "not a keyword of this draft" : "unknown keyword"});
      continue;
    }
    // If a `$ref` hides its siblings, only schemas among them are visited, because a reference may point into
    // them, usually into `definitions`.
    if (hidden && w->word != Word::kRef && w->word != Word::kDefs && !holds_schemas(*w)) continue;
    scan_word(visit, *w, key, value, todo);
  }
}

// Appends the schemas inside a keyword's value to `todo`. They are visited even if the keyword has no effect
// (`then` without `if`), because references may lead to them.
void SchemaSet::push_schemas(VisitId visit, Form form, std::string_view key, JsonRef value,
                             std::vector<Visit>& todo) const {
  const Visit& v = visits_[visit.v];
  const Json& j = *documents_[v.doc.v];
  const auto push = [&](JsonRef node, std::string_view member, uint32_t index) {
    todo.push_back({v.doc, node, v.resource, visit, key, member, index});
  };
  switch (form) {
    case Form::kSchema: push(value, {}, kNoIndex); break;
    case Form::kEither:
      if (!j.is_array(value)) push(value, {}, kNoIndex);
      [[fallthrough]];
    case Form::kList:
    case Form::kSome:
      if (j.is_array(value))
        for (uint32_t i = 0; i < j.size(value); ++i) push(j.item(value, i), {}, i);
      break;
    case Form::kMap:
    case Form::kMixed:
      for (uint32_t i = 0; i < j.size(value); ++i)
        if (form == Form::kMap || !j.is_array(j.item(value, i)))
          push(j.item(value, i), j.key(value, i), kNoIndex);
      break;
    default: break;
  }
}

// Checks the value of one keyword, and appends the schemas inside of it to `todo`. Its references, anchors
// and notes for the report are stored for later steps.
void SchemaSet::scan_word(VisitId visit, const WordInfo& w, std::string_view key, JsonRef value,
                          std::vector<Visit>& todo) {
  const Visit v = visits_[visit.v];
  const Json& j = *documents_[v.doc.v];
  if (const char* why = misshapen(j, w.form, value, resources_[v.resource.v].draft)) {
    notes_.push_back({visit, key, std::string("ignored: ") + why});
    return;
  }
  note_misshapen_parts(visit, w.word, key, value);
  asks_distinct_ = asks_distinct_ || w.word == Word::kUniqueItems;
  if (resources_[v.resource.v].validates) check_value(visit, w, key, value);
  push_schemas(visit, w.form, key, value, todo);
  switch (w.word) {
    case Word::kRef: pending_.push_back({visit, j.text(value), w.word}); break;
    case Word::kDynamicRef:
      dynamic_ = true;
      pending_.push_back({visit, j.text(value), w.word});
      break;
    case Word::kRecursiveRef: dynamic_ = true; break;
    case Word::kSchemaUri: {
      Draft d = Draft::k2020;
      const auto given = [&](const auto& document) { return document.first == j.text(value); };
      // An unknown `$schema` matters only at the root, from which all other schemas inherit the draft.
      if (v.node != 0 || options_.force_draft) break;
      if (!j.is_string(value) || (!draft_of_uri(j.text(value), d) && std::ranges::none_of(*others_, given)))
        notes_.push_back(
            {visit, key,
             "names no known draft: read as draft " + draft_name(resources_[v.resource.v].draft)});
      break;
    }
    case Word::kAnchor:
      if (j.is_string(value)) resources_[v.resource.v].anchors[std::string(j.text(value))] = v.node;
      break;
    case Word::kDynamicAnchor:
      if (j.is_string(value)) {
        resources_[v.resource.v].anchors[std::string(j.text(value))] = v.node;
        resources_[v.resource.v].dynamic_anchors[std::string(j.text(value))] = v.node;
      }
      break;
    case Word::kRecursiveAnchor:
      if (v.node == resources_[v.resource.v].node)
        resources_[v.resource.v].recursive_anchor = j.type(value) == JsonType::kTrue;
      break;
    case Word::kPattern: check_pattern(visit, key, j.text(value)); break;
    case Word::kPatternProperties:
      for (uint32_t i = 0; i < j.size(value); ++i) check_pattern(visit, key, j.key(value, i));
      break;
    case Word::kFormat:
      if (!options_.enforce_formats)
        notes_.push_back({visit, key, "formats are annotations here"});
      else if (const FormatInfo* f = find_format(j.text(value)); !f)
        notes_.push_back({visit, key, "unknown format '" + std::string(j.text(value)) + "'"});
      else if (!f->exact)
        notes_.push_back(
            {visit, key, "format '" + std::string(j.text(value)) + "' is enforced by a superset"});
      break;
    case Word::kContentAnnotation: notes_.push_back({visit, key, "annotation"}); break;
    default: break;
  }
}

// Notes the elements of a keyword's value that have the wrong type and constrain nothing, such as the `5` in
// `"required": ["a", 5]`.
void SchemaSet::note_misshapen_parts(VisitId visit, Word w, std::string_view key, JsonRef value) {
  const Json& j = *documents_[visits_[visit.v].doc.v];
  const auto names = [&](JsonRef list) {
    for (uint32_t i = 0; i < j.size(list); ++i)
      if (!j.is_string(j.item(list, i))) return false;
    return true;
  };
  if (w == Word::kType && j.is_array(value) && !names(value))
    notes_.push_back({visit, key, "ignored in part: an item is not the name of a type"});
  if (w == Word::kRequired && !names(value))
    notes_.push_back({visit, key, "ignored in part: an item is not a name"});
  if (w != Word::kDependentRequired && w != Word::kDependencies) return;
  for (uint32_t i = 0; i < j.size(value); ++i) {
    const JsonRef then = j.item(value, i);
    const bool list = j.is_array(then);
    if (list ? names(then) : w == Word::kDependencies) continue;
    notes_.push_back({visit, key,
                      "ignored in part: '" + std::string(j.key(value, i)) +
                          (list ? "' has an item that is not a name" : "' is not an array of names")});
  }
}

// Refuses values of the right type that no draft permits: `"type": "strnig"`, `"multipleOf": 0`. The scan
// does so for every schema. A text may never need this one, because the member is optional, and with
// `on_limit="subset"` a mask would omit it silently.
void SchemaSet::check_value(VisitId visit, const WordInfo& w, std::string_view key, JsonRef value) {
  const Json& j = *documents_[visits_[visit.v].doc.v];
  const auto refuse = [&](const std::string& what) {
    throw Error(ErrorKind::kGrammar, what).in(visit_pointer(visit), std::string(key));
  };
  const auto check_type = [&](JsonRef name) {
    if (!j.is_string(name)) return;
    const std::string_view t = j.text(name);
    if (std::ranges::find(kTypes, t) != std::end(kTypes)) return;
    if (t == "any") {
      notes_.push_back({visit, key, "'any' is draft 3's: read as every type"});
      return;
    }
    refuse("unknown type '" + std::string(t.substr(0, 80)) + "'");
  };
  switch (w.word) {
    case Word::kType:
      if (!j.is_array(value)) return check_type(value);
      if (j.size(value) == 0) notes_.push_back({visit, key, "an empty list: no value has a type of it"});
      for (uint32_t i = 0; i < j.size(value); ++i) check_type(j.item(value, i));
      return;
    case Word::kMultipleOf: {
      const Decimal d = Decimal::parse_any(j.text(value));
      if (d.zero() || d.negative) refuse("multipleOf must be greater than 0");
      return;
    }
    default: break;
  }
  // A malformed count is noted in the report and rounded: `"minItems": -1` is read as 0, `"minItems": 2.5` as
  // 3, `"maxItems": 2.5` as 2.
  if (w.form != Form::kCount) return;
  const Decimal d = Decimal::parse_any(j.text(value));
  if (d.negative) {
    notes_.push_back({visit, key, "below 0: read as 0"});
  } else if (!d.integer()) {
    const std::string way = key.starts_with("min") ? "up" : "down";
    notes_.push_back({visit, key, "not a whole number: rounded " + way});
  }
}

// Checks the syntax only. The regex is made when the pattern is lowered.
void SchemaSet::check_pattern(VisitId visit, std::string_view keyword, std::string_view text) {
  try {
    parse_pattern(text);
  } catch (Error& e) {
    throw Error(e.kind(), std::string(e.what()) + " in pattern '" + std::string(text.substr(0, 80)) + "'")
        .at(e.offset())
        .in(visit_pointer(visit), std::string(keyword));
  }
}

// Resolves the references of all documents, and scans their targets. A reference without a target is only
// noted as broken: an `anyOf` with a broken branch has other branches.
void SchemaSet::resolve_pending() {
  for (std::size_t i = 0; i < pending_.size(); ++i) {  // grows: a target may be new to the scan
    const Pending p = pending_[i];
    const Visit v = visits_[p.visit.v];
    const char* const keyword = p.word == Word::kDynamicRef ? "$dynamicRef" : "$ref";
    Loc target;
    try {
      target = resolve(Loc{v.doc, v.node, v.resource, {}}, p.reference, keyword);
    } catch (const Error& e) {
      // The reference has no target. Only schemas that need the reference are refused.
      if (e.kind() != ErrorKind::kUnsupportedSchema ||
          !dangling(Loc{v.doc, v.node, v.resource, {}}, p.reference))
        throw;
      broken_.push_back({p.visit, keyword, false});
      notes_.push_back({p.visit, keyword, std::string(e.what()) + "; values that need it are refused"});
      continue;
    }
    const JsonType t = documents_[target.doc.v]->type(target.node);
    if (t != JsonType::kObject && t != JsonType::kTrue && t != JsonType::kFalse)
      throw Error(ErrorKind::kGrammar,
                  "reference '" + std::string(p.reference) + "' does not lead to a schema")
          .in(visit_pointer(p.visit), std::string(keyword));
    scan(target.doc, target.node, target.resource, p.visit, "$ref");
    pending_[i].target = scanned_[target.doc.v][target.node];
  }
  find_loops();
}

// Returns true if the schema applies to the same value as its parent, as in `allOf` or `not`, but not in
// `properties`. An `if` without `then` and `else` is not lowered, so no loop leads through it.
bool SchemaSet::in_place(const Visit& v) const {
  if (v.parent == kNoVisit || v.keyword == "$ref") return false;
  const WordInfo* w = find_word(v.keyword);
  const Visit& above = visits_[v.parent.v];
  const Json& j = *documents_[above.doc.v];
  const auto has = [&](std::string_view key) { return j.find(above.node, key) != kNoJson; };
  // In drafts 4 to 7 a `$ref` hides its siblings.
  if (resources_[above.resource.v].draft <= Draft::k7 && has("$ref")) return false;
  switch (w->word) {
    case Word::kAllOf:
    case Word::kAnyOf:
    case Word::kOneOf:
    case Word::kNot:
    case Word::kDependentSchemas:
    case Word::kDependencies: return true;
    case Word::kIf: return has("then") || has("else");
    case Word::kThen:
    case Word::kElse: return has("if");
    default: return false;
  }
}

// Finds the references that lie on a loop and notes them as broken. It leaves out `$dynamicRef`, whose target
// depends on a scope that the scan does not know; Solver::restrict finds those loops.
void SchemaSet::find_loops() {
  std::vector<std::pair<uint32_t, uint32_t>> references;
  for (const Pending& p : pending_)
    if (p.word == Word::kRef && p.target != kNoVisit) references.emplace_back(p.visit.v, p.target.v);
  if (references.empty()) return;
  std::vector<uint32_t> above(visits_.size());
  for (uint32_t i = 0; i < visits_.size(); ++i)
    above[i] = in_place(visits_[i]) ? visits_[i].parent.v : kNotInPlace;
  for (uint32_t i : looping_references(above, references)) {
    const VisitId visit{references[i].first};
    broken_.push_back({visit, "$ref", true});
    looping_.insert(key_of(visits_[visit.v].doc, visits_[visit.v].node));
    notes_.push_back(
        {visit, "$ref",
         "leads back to its own schema without consuming anything; values that need it are refused"});
  }
}

// Finds a resource by its absolute URI. If the caller passed a document with this URI, it is read and scanned
// on first use.
bool SchemaSet::find_resource(const std::string& uri, ResourceId& out) {
  if (const auto it = by_uri_.find(uri); it != by_uri_.end()) {
    out = it->second;
    return true;
  }
  if (!others_) return false;
  for (const auto& [name, text] : *others_) {
    std::string_view absolute, fragment;
    split_fragment(name, absolute, fragment);
    if (absolute != uri) continue;
    const DocumentId doc = add_document(uri, Json::parse(text));
    out = resource_roots_.at(key_of(doc, 0));
    scan(doc, 0, out, kNoVisit, {});
    return true;
  }
  return false;
}

// Follows a JSON Pointer from `node`. Returns false if it leads nowhere. `resource` becomes the innermost
// resource on the path: `#/$defs/n/items` ends in the resource of `n` if `n` has an `$id`.
bool SchemaSet::find_pointer(ResourceId& resource, DocumentId doc, JsonRef& node,
                             std::string_view pointer) const {
  const Json& j = *documents_[doc.v];
  // The pointer's indices have at most nine digits and nothing but digits, so `std::stoul` cannot fail below.
  while (!pointer.empty()) {
    if (pointer[0] != '/') return false;
    pointer.remove_prefix(1);
    const std::string_view raw = pointer.substr(0, pointer.find('/'));
    pointer.remove_prefix(raw.size());
    std::string segment;
    for (std::size_t i = 0; i < raw.size(); ++i) {
      if (raw[i] == '~' && i + 1 < raw.size() && (raw[i + 1] == '0' || raw[i + 1] == '1'))
        segment += raw[++i] == '0' ? '~' : '/';
      else
        segment += raw[i];
    }
    JsonRef next = kNoJson;
    if (j.is_object(node)) {
      next = j.find(node, segment);
    } else if (j.is_array(node) && !segment.empty() && segment.size() < 9 &&
               segment.find_first_not_of("0123456789") == std::string::npos) {
      const uint32_t i = static_cast<uint32_t>(std::stoul(segment));
      if (i < j.size(node)) next = j.item(node, i);
    }
    if (next == kNoJson) return false;
    node = next;
    if (const auto it = resource_roots_.find(key_of(doc, node)); it != resource_roots_.end())
      resource = it->second;
  }
  return true;
}

// Returns false if the scan has noted the reference as broken. The scan resolved every reference, so if none
// is broken, nothing is resolved here.
bool SchemaSet::resolves(const Loc& from, std::string_view reference) {
  if (broken_.empty()) return true;
  if (looping_.count(key_of(from.doc, from.node))) return false;
  try {
    resolve(from, reference);
    return true;
  } catch (const Error&) {
    return false;
  }
}

Error SchemaSet::broken(const Loc& text) const {
  const Json& j = json(text);
  const std::string reference = "reference '" + std::string(j.text(text.node)) + "' ";
  for (const Broken& b : broken_) {
    const Visit& v = visits_[b.visit.v];
    if (v.doc != text.doc || j.find(v.node, b.keyword) != text.node) continue;
    if (b.loops)
      return Error(ErrorKind::kGrammar,
                   reference +
                       "leads back to its own schema without consuming anything: no value is allowed by it")
          .in(visit_pointer(b.visit), b.keyword);
    return Error(ErrorKind::kUnsupportedSchema, reference + "cannot be resolved: nothing stands there")
        .in(visit_pointer(b.visit), b.keyword);
  }
  return Error(ErrorKind::kUnsupportedSchema, reference + "cannot be resolved").in("", "$ref");
}

bool SchemaSet::dangling(const Loc& from, std::string_view reference) {
  std::string_view absolute, fragment;
  const std::string full = resolve_uri(resources_[from.resource.v].uri, reference);
  split_fragment(full, absolute, fragment);
  ResourceId resource;
  return reference.starts_with('#') || absolute == resources_[from.resource.v].uri ||
         find_resource(std::string(absolute), resource);
}

// Resolves a reference: `#/a/b` or `#name` in the same resource, or a URI, perhaps with such a fragment.
// Relative URIs are resolved by RFC 3986 (strings/uri.h). The fragment is percent-decoded first.
Loc SchemaSet::resolve(const Loc& from, std::string_view reference, std::string_view keyword) {
  const auto fail = [&](const std::string& why) -> Error {
    return Error(ErrorKind::kUnsupportedSchema,
                 "reference '" + std::string(reference) + "' cannot be resolved: " + why)
        .in(pointer(from), std::string(keyword));
  };
  ResourceId resource = from.resource;
  std::string_view absolute, fragment;
  std::string full;
  if (reference.starts_with('#')) {
    fragment = reference.substr(1);
  } else {
    full = resolve_uri(resources_[from.resource.v].uri, reference);
    split_fragment(full, absolute, fragment);
    if (absolute != resources_[resource.v].uri && !find_resource(std::string(absolute), resource))
      throw fail("no document has that name; pass it in `registry`");
  }
  const std::string decoded = percent_decode(fragment);
  DocumentId doc = resources_[resource.v].doc;
  JsonRef node = resources_[resource.v].node;
  if (decoded.empty() || decoded[0] == '/') {
    if (!find_pointer(resource, doc, node, decoded)) throw fail("nothing stands there");
  } else {
    const auto it = resources_[resource.v].anchors.find(decoded);
    if (it == resources_[resource.v].anchors.end()) throw fail("no such anchor");
    node = it->second;
  }
  Loc out{doc, node, resource, from.scope};
  if (dynamic_) out.scope = push_scope(from.scope, resource);
  return out;
}

// A `$dynamicRef` is first resolved like a `$ref`. If this leads to a `$dynamicAnchor`, the target is
// replaced by the same dynamic anchor of the outermost resource of the dynamic scope that has it.
//
//     tree    {"$id": "tree", "$dynamicAnchor": "node",
//              "properties": {"kids": {"items": {"$dynamicRef": "#node"}}}}
//     strict  {"$id": "strict", "$dynamicAnchor": "node",
//              "$ref": "tree", "unevaluatedProperties": false}
//
// Reached from `strict`, the items of `kids` are `strict` again; reached from `tree`, they are `tree`.
Loc SchemaSet::resolve_dynamic(const Loc& from, std::string_view reference) {
  Loc target = resolve(from, reference, "$dynamicRef");
  std::string_view absolute, fragment;
  split_fragment(reference, absolute, fragment);
  const std::string name = percent_decode(fragment);
  if (name.empty() || name[0] == '/' || !resources_[target.resource.v].dynamic_anchors.count(name))
    return target;
  // The loop goes from the innermost resource to the outermost, so the outermost match is the last one and
  // stays.
  for (ScopeId s = from.scope; s != ScopeId{}; s = scopes_[s.v].first) {
    const Resource& r = resources_[scopes_[s.v].second.v];
    const auto it = r.dynamic_anchors.find(name);
    if (it != r.dynamic_anchors.end()) {
      target.doc = r.doc;
      target.node = it->second;
      target.resource = scopes_[s.v].second;
    }
  }
  target.scope = push_scope(from.scope, target.resource);
  return target;
}

// Returns the schema to which `$recursiveRef` of 2019-09 leads, as resolve_dynamic() does for `$dynamicRef`.
// Its anchor is `$recursiveAnchor: true` at the root of a resource.
Loc SchemaSet::resolve_recursive(const Loc& from) {
  Loc target = resolve(from, "#", "$recursiveRef");
  if (!resources_[target.resource.v].recursive_anchor) return target;
  for (ScopeId s = from.scope; s != ScopeId{}; s = scopes_[s.v].first) {
    const Resource& r = resources_[scopes_[s.v].second.v];
    if (!r.recursive_anchor) continue;
    target.doc = r.doc;
    target.node = r.node;
    target.resource = scopes_[s.v].second;
  }
  target.scope = push_scope(from.scope, target.resource);
  return target;
}

// Returns the scope inside `resource`; equal scopes have one number. A scope that has the resource already
// stays as it is, because a look-up takes the outermost match and a second entry does not change that. So a
// recursive schema has finitely many scopes.
ScopeId SchemaSet::push_scope(ScopeId scope, ResourceId resource) {
  for (ScopeId s = scope; s != ScopeId{}; s = scopes_[s.v].first)
    if (scopes_[s.v].second == resource) return scope;
  return numbered(scope_index_, scopes_, {scope, resource}, std::pair(scope, resource));
}

Loc SchemaSet::child(const Loc& parent, JsonRef node) {
  Loc out{parent.doc, node, parent.resource, parent.scope};
  if (resource_roots_.size() > 1 || dynamic_) {
    // resource_roots_ has an entry for the root of each document. If it has no more entries, no schema inside
    // a document begins a resource.
    const auto it = resource_roots_.find(key_of(parent.doc, node));
    if (it != resource_roots_.end()) {
      out.resource = it->second;
      if (dynamic_) out.scope = push_scope(parent.scope, out.resource);
    }
  }
  return out;
}

// Makes a pointer from a visit and the visits above it. A `$ref` may lead to a schema below an unknown
// keyword, which the scan reaches by this reference alone. The pointer then begins there, with `/$ref`.
std::string SchemaSet::visit_pointer(VisitId visit) const {
  std::vector<const Visit*> path;
  for (VisitId at = visit; at != kNoVisit; at = visits_[at.v].parent) {
    path.push_back(&visits_[at.v]);
    if (visits_[at.v].keyword == "$ref") break;  // a target in no known position: the reference is the place
  }
  std::string out;
  for (std::size_t i = path.size(); i-- > 0;) {
    const Visit& v = *path[i];
    if (v.keyword.empty()) continue;
    append_segment(out, v.keyword);
    if (v.member.data()) append_segment(out, v.member);
    if (v.index != kNoIndex) append_segment(out, std::to_string(v.index));
  }
  return out;
}

std::string SchemaSet::pointer(const Loc& l) const {
  for (VisitId i; i.v < visits_.size(); ++i.v)
    if (visits_[i.v].doc == l.doc && visits_[i.v].node == l.node) return visit_pointer(i);
  return "";
}

std::vector<ReportEntry> SchemaSet::report() const {
  std::vector<ReportEntry> out;
  for (const Note& n : notes_) out.push_back({visit_pointer(n.visit), std::string(n.keyword), n.reason});
  return out;
}

}  // namespace structgen
