// Documents, resources and references: where a schema stands, and to which schema a `$ref` leads.
//
// In: the root document, and other documents by URI. Out: positions of schemas (Loc), resolved references,
// and a report of every keyword that constrains nothing. Cost: one linear pass over the schemas that the root
// reaches. It also checks the syntax of every pattern and reference, so that a mistake is an error of
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

// The number of a document: the root, or a file that a reference names. A document may have several
// resources: `{"$defs": {"n": {"$id": "b"}}}` has the root and `#/$defs/n`, and a relative reference inside
// of `n` is relative to `b`.
using DocumentId = Id<struct DocumentTag>;
// The number of a resource: a schema with an `$id`, or the root of a document.
using ResourceId = Id<struct ResourceTag>;
// The number of a dynamic scope: the resources that were entered on the path to a schema (push_scope). 0 is
// the empty scope. Without a `$dynamicRef` or `$recursiveRef` there is no other scope.
using ScopeId = Id<struct ScopeTag>;

// Where a schema stands: what it takes to read its keywords and to resolve its references. Two paths to one
// schema give equal Locs, unless their dynamic scopes differ. So formulas are remembered by Loc.
struct Loc {
  DocumentId doc;
  JsonRef node = 0;
  ResourceId resource;
  ScopeId scope;
  friend bool operator==(const Loc&, const Loc&) = default;
};

// Returns a number for the node of a document, as a key of maps.
inline uint64_t key_of(DocumentId doc, JsonRef node) { return (static_cast<uint64_t>(doc.v) << 32) | node; }

// A keyword that is not enforced as it is written: the JSON Pointer of its schema, its name, and the reason.
struct ReportEntry {
  std::string pointer, keyword, reason;
};

// `draft` is the draft of a root that has no `$schema`. If `enforce_formats` is false, `format` constrains
// nothing.
struct SchemaOptions {
  Draft draft = Draft::k2020;
  // If true, `draft` applies even if the `$schema` of the root names another draft.
  bool force_draft = false;
  bool enforce_formats = true;
};

// All schemas of one compile. The constructor reads all that the root and its references lead to. Later,
// lowering asks where references lead. A `SchemaSet` belongs to one grammar and one thread at a time.
class SchemaSet {
 public:
  using Documents = std::vector<std::pair<std::string, std::string>>;  // URI, JSON text

  // Throws kGrammar if something is malformed: the root, another document, a pattern or a value. Throws
  // kUnsupportedSchema if a reference names a document that is not in `others`.
  SchemaSet(std::string_view root, const Documents& others, const SchemaOptions& options);

  const Json& json(const Loc& l) const { return *documents_[l.doc.v]; }
  Loc root() const { return root_; }
  // Adds a schema that the engine itself wrote; its references must point into itself. Layouts of elements
  // need it: this schema says which strings contain no closing mark (write/elements.cc).
  Loc add(std::string_view schema);
  bool asks_distinct() const { return asks_distinct_; }
  bool added(const Loc& l) const { return l.doc.v >= added_; }
  // Returns the Loc of a schema that stands at `node`, inside of the schema `parent`.
  Loc child(const Loc& parent, JsonRef node);
  Draft draft(const Loc& l) const { return resources_[l.resource.v].draft; }
  bool validates(const Loc& l) const { return resources_[l.resource.v].validates; }
  // Returns the schema to which a reference in the schema `from` leads. Throws kUnsupportedSchema if it leads
  // nowhere; the error names `keyword`.
  Loc resolve(const Loc& from, std::string_view reference, std::string_view keyword = "$ref");
  // Returns true if the document of the reference is known, so that only its pointer or anchor can lead
  // nowhere. The schema with such a reference stays usable as long as no text needs the reference.
  bool dangling(const Loc& from, std::string_view reference);
  // Returns false for a `$ref` that leads nowhere or lies on a loop (schema/read/loops.h).
  bool resolves(const Loc& from, std::string_view reference);
  // Returns true if some reference leads nowhere, or in a loop back to its own schema without a step into the
  // value.
  bool any_broken() const { return !broken_.empty(); }
  // Returns the error for a broken reference; `text` is the Loc of the reference's text.
  Error broken(const Loc& text) const;
  // Returns the target of a `$dynamicRef`, which depends on the dynamic scope (resolve.cc).
  Loc resolve_dynamic(const Loc& from, std::string_view reference);
  // Returns the target of a `$recursiveRef` of 2019-09; its reference is always `#`.
  Loc resolve_recursive(const Loc& from);
  // Returns the JSON Pointer of a schema, for errors. It visits all schemas, which is fast enough for errors.
  std::string pointer(const Loc& l) const;
  const SchemaOptions& options() const { return options_; }
  std::vector<ReportEntry> report() const;
  std::size_t byte_size() const { return 8 * text_size_; }

 private:
  using VisitId = Id<struct VisitTag>;  // a schema that the scan came to: visits_
  static constexpr VisitId kNoVisit{0xFFFFFFFFu};
  static constexpr uint32_t kNoIndex = 0xFFFFFFFFu;
  // A resource and the anchors inside of it. `anchors` also has all `dynamic_anchors`, because a plain `$ref`
  // may name a dynamic anchor.
  struct Resource {
    std::string uri;
    DocumentId doc;
    JsonRef node;
    Draft draft;
    // False if the `$vocabulary` of the metaschema lacks the validation vocabulary. Then `minimum`, `type`
    // and their like constrain nothing, while `properties` and other applicators do.
    bool validates = true;
    bool recursive_anchor = false;
    std::unordered_map<std::string, JsonRef> anchors;
    std::unordered_map<std::string, JsonRef> dynamic_anchors;
  };
  // A schema that the scan has met, and how it was reached from its parent. visit_pointer() makes a JSON
  // Pointer of visits when one is shown.
  struct Visit {
    DocumentId doc;
    JsonRef node;
    ResourceId resource;
    // The visit of the schema around this one; kNoVisit for the root of a document. If a reference led here,
    // it is that of the schema with the reference.
    VisitId parent;
    // The step from the parent: a keyword and, if the keyword has several schemas, the name of a member or an
    // index.
    std::string_view keyword;
    std::string_view member;
    uint32_t index = kNoIndex;
  };
  // A line of the report, as the scan notes it; report() adds its pointer.
  struct Note {
    VisitId visit;
    std::string_view keyword;
    std::string reason;
  };
  // A reference, which is resolved when its own document has been scanned.
  struct Pending {
    VisitId visit;
    std::string_view reference;
    Word word;
    // The schema to which the reference leads. kNoVisit before it is resolved, and if it leads nowhere.
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
  // The resource that begins at a node, by key_of(document, node).
  std::unordered_map<uint64_t, ResourceId> resource_roots_;
  // scanned_[document][node] is the visit of the schema at the node, or kNoVisit.
  std::vector<std::vector<VisitId>> scanned_;
  std::vector<Visit> visits_;
  std::vector<Note> notes_;
  std::vector<Pending> pending_;
  std::vector<Broken> broken_;
  // By key_of(document, node): the schemas whose `$ref` lies on a loop.
  std::unordered_set<uint64_t> looping_;
  // scopes_[s] is scope s as a pair: the scope without its last resource, and this resource.
  std::vector<std::pair<ScopeId, ResourceId>> scopes_{{}};
  std::map<std::pair<ScopeId, ResourceId>, ScopeId> scope_index_;
  // True if some schema has a `$dynamicRef` or `$recursiveRef`. Otherwise no Loc needs a scope.
  bool dynamic_ = false;
  bool asks_distinct_ = false;
  std::size_t text_size_ = 0;
  Loc root_;
};

}  // namespace structgen
