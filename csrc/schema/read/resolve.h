// Documents, resources and references: where a schema stands, and to which schema a `$ref` leads.
//
// In: the root document, and other documents by URI. Out: places of schemas (Loc), resolved references, and a
// report of every keyword that constrains nothing. Cost: one linear walk over the schemas that the root
// reaches. The walk also checks the syntax of every pattern and reference, so that a mistake is an error of
// the compile and not of a text. Formulas are made later (schema/lower). Nothing is fetched from the network.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/error.h"
#include "base/ids.h"
#include "schema/read/dialect.h"
#include "schema/read/json.h"

namespace structgen {

// A document. In `{"$defs": {"n": {"$id": "b"}}}` there is one document with two resources: the root, and
// `#/$defs/n`. A relative reference inside `n` is relative to `b`.
using DocumentId = Id<struct DocumentTag>;
// A resource: a schema with an `$id`, or the root of a document.
using ResourceId = Id<struct ResourceTag>;
// A dynamic scope: the resources that were entered on the way to a schema (push_scope). 0 is the empty scope,
// which is the only scope if no schema has a `$dynamicRef` or `$recursiveRef`.
using ScopeId = Id<struct ScopeTag>;

// The place of a schema: everything needed to read its keywords and to resolve its references. Two ways
// to one schema give equal Locs unless their dynamic scopes differ, so formulas are remembered by Loc.
struct Loc {
  DocumentId doc;
  JsonRef node = 0;
  ResourceId resource;
  ScopeId scope;
  friend bool operator==(const Loc&, const Loc&) = default;
};

// Returns a key for maps from the nodes of documents.
inline uint64_t key_of(DocumentId doc, JsonRef node) { return (static_cast<uint64_t>(doc.v) << 32) | node; }

// A keyword that is not enforced as it stands: the JSON Pointer of its schema, its name, and the reason.
struct ReportEntry {
  std::string pointer, keyword, reason;
};

// `draft` applies to a root without a `$schema`. If `enforce_formats` is false, `format` is an annotation.
struct SchemaOptions {
  Draft draft = Draft::k2020;
  // If true, `draft` also replaces a `$schema` of the root that names another draft.
  bool force_draft = false;
  bool enforce_formats = true;
};

// All schemas of one compile. The constructor reads everything that the root reaches. Afterwards lowering
// asks for the targets of references. A `SchemaSet` belongs to one grammar and one thread at a time.
class SchemaSet {
 public:
  using Documents = std::vector<std::pair<std::string, std::string>>;  // URI, JSON text

  // Throws kGrammar if the root, a document that a reference reaches, a pattern or a value is malformed, and
  // kUnsupportedSchema if a reference names a document that is not in `others`.
  SchemaSet(std::string_view root, const Documents& others, const SchemaOptions& options);

  const Json& json(const Loc& l) const { return *documents_[l.doc.v]; }
  Loc root() const { return root_; }
  // Adds a schema that the engine itself wrote, whose references all point into the schema. Tool calls
  // written as elements need it: the added schema says which strings hold no closing mark
  // (write/elements.cc).
  Loc add(std::string_view schema);
  // Returns true if some schema has `uniqueItems`.
  bool asks_distinct() const { return asks_distinct_; }
  bool added(const Loc& l) const { return l.doc.v >= added_; }
  // Returns the place of a schema that stands at `node`, somewhere inside the schema `parent`.
  Loc child(const Loc& parent, JsonRef node);
  Draft draft(const Loc& l) const { return resources_[l.resource.v].draft; }
  bool validates(const Loc& l) const { return resources_[l.resource.v].validates; }
  // Returns the schema to which a reference in the schema `from` leads. Throws kUnsupportedSchema if it leads
  // nowhere; the error names `keyword`.
  Loc resolve(const Loc& from, std::string_view reference, std::string_view keyword = "$ref");
  // Returns true if the document of the reference is known. Such a reference fails only because nothing
  // stands at its pointer or anchor, and its schema stays usable as long as no text needs the reference.
  bool dangling(const Loc& from, std::string_view reference);
  // Returns false for a `$ref` that leads nowhere or lies on a loop (schema/read/loops.h).
  bool resolves(const Loc& from, std::string_view reference);
  // Returns true if some reference leads nowhere, or leads back to its own schema without a step into the
  // value.
  bool any_broken() const { return !broken_.empty(); }
  // Returns the error for a broken reference; `text` is the place of the reference's text.
  Error broken(const Loc& text) const;
  // Returns the target of a `$dynamicRef`, which depends on the dynamic scope (resolve.cc).
  Loc resolve_dynamic(const Loc& from, std::string_view reference);
  // Returns the target of a `$recursiveRef` of 2019-09; its reference is always `#`.
  Loc resolve_recursive(const Loc& from);
  // Returns the JSON Pointer of a schema, for errors. Its time is linear in the schemas, because only errors
  // need it.
  std::string pointer(const Loc& l) const;
  const SchemaOptions& options() const { return options_; }
  std::vector<ReportEntry> report() const;
  // Returns an estimate of the bytes: a parsed document takes several times its text.
  std::size_t byte_size() const { return 8 * text_size_; }

 private:
  using VisitId = Id<struct VisitTag>;  // a schema that the scan came to: visits_
  static constexpr VisitId kNoVisit{0xFFFFFFFFu};
  static constexpr uint32_t kNoIndex = 0xFFFFFFFFu;
  // A resource and the names inside of it. Each entry of `dynamic_anchors` is also one of `anchors`, because
  // a plain `$ref` may use a dynamic anchor.
  struct Resource {
    std::string uri;
    DocumentId doc;
    JsonRef node;
    Draft draft;
    // False if the metaschema's `$vocabulary` lacks the validation vocabulary. `minimum`, `type` and the like
    // then constrain nothing; `properties` and other applicators still count.
    bool validates = true;
    bool recursive_anchor = false;
    std::unordered_map<std::string, JsonRef> anchors;
    std::unordered_map<std::string, JsonRef> dynamic_anchors;
  };
  // A schema that the scan has met, and its place relative to its parent. A pointer is put together from
  // visits only when it is shown (visit_pointer).
  struct Visit {
    DocumentId doc;
    JsonRef node;
    ResourceId resource;
    // The visit of the schema around this one; kNoVisit for the root of a document. For the target of a
    // reference it is the schema with the reference.
    VisitId parent;
    // The way from the parent: a keyword, then the name of a member or an index, if the keyword has
    // several schemas.
    std::string_view keyword;
    std::string_view member;
    uint32_t index = kNoIndex;
  };
  // A line of the report without its pointer, which report() makes.
  struct Note {
    VisitId visit;
    std::string_view keyword;
    std::string reason;
  };
  // A reference that waits until its own document has been scanned.
  struct Pending {
    VisitId visit;
    std::string_view reference;
    Word word;
    // The schema to which the reference leads; kNoVisit until it is resolved, and for good if it leads
    // nowhere.
    VisitId target = kNoVisit;
  };
  struct Broken {
    // The schema that holds the reference.
    VisitId visit;
    const char* keyword;
    // True if the reference lies on a loop, false if it leads nowhere.
    bool loops;
  };
  DocumentId add_document(const std::string& uri, Json json);
  void scan(DocumentId doc, JsonRef node, ResourceId resource, VisitId parent, std::string_view keyword);
  void scan_schema(VisitId visit, std::vector<Visit>& todo);
  void scan_word(VisitId visit, const WordInfo& w, std::string_view key, JsonRef value,
                 std::vector<Visit>& todo);
  void push_schemas(VisitId visit, Form form, std::string_view key, JsonRef value,
                    std::vector<Visit>& todo) const;
  ResourceId enter_resource(Visit& v);
  void note_misshapen_parts(VisitId visit, Word w, std::string_view key, JsonRef value);
  void check_value(VisitId visit, const WordInfo& w, std::string_view key, JsonRef value);
  void check_pattern(VisitId visit, std::string_view keyword, std::string_view text);
  void resolve_pending();
  void find_loops();
  bool in_place(const Visit& v) const;
  bool find_resource(const std::string& uri, ResourceId& out);
  bool find_pointer(ResourceId& resource, DocumentId doc, JsonRef& node, std::string_view pointer) const;
  Draft dialect_of(DocumentId doc, JsonRef node, Draft inherited, bool& validates);
  ScopeId push_scope(ScopeId scope, ResourceId resource);
  std::string visit_pointer(VisitId visit) const;

  SchemaOptions options_;
  const Documents* others_ = nullptr;
  std::vector<std::unique_ptr<Json>> documents_;
  // The index of the first document that add() added.
  std::size_t added_ = static_cast<std::size_t>(-1);
  std::vector<Resource> resources_;
  std::unordered_map<std::string, ResourceId> by_uri_;
  // The resource whose root is a node, by key_of(document, node).
  std::unordered_map<uint64_t, ResourceId> resource_roots_;
  // scanned_[document][node] is the visit of the schema at the node, or kNoVisit.
  std::vector<std::vector<VisitId>> scanned_;
  std::vector<Visit> visits_;
  std::vector<Note> notes_;
  std::vector<Pending> pending_;
  std::vector<Broken> broken_;
  // The schemas whose `$ref` lies on a loop, by key_of(document, node).
  std::unordered_set<uint64_t> looping_;
  // For each scope: the scope without its last resource, and that resource.
  std::vector<std::pair<ScopeId, ResourceId>> scopes_{{}};
  std::map<std::pair<ScopeId, ResourceId>, ScopeId> scope_index_;
  // True if some schema has a `$dynamicRef` or `$recursiveRef`. Otherwise no Loc needs a scope.
  bool dynamic_ = false;
  // True if some schema has `uniqueItems`.
  bool asks_distinct_ = false;
  std::size_t text_size_ = 0;
  Loc root_;
};

}  // namespace structgen
