// Documents, resources and references: where a schema stands and what a $ref means.
//
// In: the root document, other documents by URI. Out: Locs (document, node, resource, dynamic scope),
// resolved references, and the list of everything that is annotation only. Cost: one linear scan of the
// schemas reachable from the root (syntax of patterns and references is checked there, once); nothing is
// lowered. Nothing is ever fetched.
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

using DocumentId = Id<struct DocumentTag>;
using ResourceId = Id<struct ResourceTag>;  // a schema with an $id, or the root of a document
using ScopeId = Id<struct ScopeTag>;        // a dynamic scope; 0 where no schema asks for it

struct Loc {
  DocumentId doc;
  JsonRef node = 0;
  ResourceId resource;
  ScopeId scope;
  friend bool operator==(const Loc&, const Loc&) = default;
};

// A node of a document as a key of maps.
inline uint64_t key_of(DocumentId doc, JsonRef node) { return (static_cast<uint64_t>(doc.v) << 32) | node; }

struct ReportEntry {
  std::string pointer, keyword, reason;
};

struct SchemaOptions {
  Draft draft = Draft::k2020;
  bool force_draft = false;  // `draft` wins over the root's $schema
  bool enforce_formats = true;
};

class SchemaSet {
 public:
  using Documents = std::vector<std::pair<std::string, std::string>>;  // URI, JSON text

  SchemaSet(std::string_view root, const Documents& others, const SchemaOptions& options);

  const Json& json(const Loc& l) const { return *documents_[l.doc.v]; }
  Loc root() const { return root_; }
  // A schema of the engine's own beside the document, with references into itself only.
  Loc add(std::string_view schema);
  bool added(const Loc& l) const { return l.doc.v >= added_; }
  Loc child(const Loc& parent, JsonRef node);
  Draft draft(const Loc& l) const { return resources_[l.resource.v].draft; }
  bool validates(const Loc& l) const { return resources_[l.resource.v].validates; }
  // The schema a reference means; throws kUnsupportedSchema where nothing is known by that name.
  Loc resolve(const Loc& from, std::string_view reference, std::string_view keyword = "$ref");
  // Whether the document of a reference is known, so that it fails only because nothing stands there.
  bool dangling(const Loc& from, std::string_view reference);
  bool resolves(const Loc& from, std::string_view reference);
  // Some reference leads nowhere, or back to its own schema without a step into the value
  // (schema/read/loops.h).
  bool any_broken() const { return !broken_.empty(); }
  // Why the reference with this text is one of them.
  Error broken(const Loc& text) const;
  Loc resolve_dynamic(const Loc& from, std::string_view reference);
  Loc resolve_recursive(const Loc& from);
  std::string pointer(const Loc& l) const;
  const SchemaOptions& options() const { return options_; }
  std::vector<ReportEntry> report() const;
  // An estimate: parsed documents take several times their text.
  std::size_t byte_size() const { return 8 * text_size_; }

 private:
  using VisitId = Id<struct VisitTag>;  // a schema that the scan came to: visits_
  static constexpr VisitId kNoVisit{0xFFFFFFFFu};
  static constexpr uint32_t kNoIndex = 0xFFFFFFFFu;
  struct Resource {
    std::string uri;
    DocumentId doc;
    JsonRef node;
    Draft draft;
    bool validates = true;  // its dialect has the validation vocabulary
    bool recursive_anchor = false;
    std::unordered_map<std::string, JsonRef> anchors;
    std::unordered_map<std::string, JsonRef> dynamic_anchors;
  };
  struct Visit {
    DocumentId doc;
    JsonRef node;
    ResourceId resource;
    VisitId parent;            // kNoVisit for a document's root or a reference's target
    std::string_view keyword;  // path from the parent: keyword, then a member name or an index
    std::string_view member;
    uint32_t index = kNoIndex;
  };
  struct Note {
    VisitId visit;
    std::string_view keyword;
    std::string reason;
  };
  struct Pending {
    VisitId visit;
    std::string_view reference;
    Word word;
    VisitId target = kNoVisit;  // where the reference leads to a schema
  };
  struct Broken {
    VisitId visit;  // of the schema that holds the reference
    const char* keyword;
    bool loops;  // or leads nowhere
  };
  DocumentId add_document(const std::string& uri, Json json);
  void scan(DocumentId doc, JsonRef node, ResourceId resource, VisitId parent, std::string_view keyword);
  void scan_schema(VisitId visit, std::vector<Visit>& todo);
  void scan_word(VisitId visit, const WordInfo& w, std::string_view key, JsonRef value,
                 std::vector<Visit>& todo);
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
  std::size_t added_ = static_cast<std::size_t>(-1);  // documents from here on were added
  std::vector<Resource> resources_;
  std::unordered_map<std::string, ResourceId> by_uri_;
  std::unordered_map<uint64_t, ResourceId> resource_roots_;  // by (doc, node)
  std::vector<std::vector<VisitId>> scanned_;                // [document][node]; kNoVisit
  std::vector<Visit> visits_;
  std::vector<Note> notes_;
  std::vector<Pending> pending_;
  std::vector<Broken> broken_;
  std::unordered_set<uint64_t> looping_;  // (doc, node) of schemas whose `$ref` is on a loop
  std::vector<std::pair<ScopeId, ResourceId>> scopes_{{}};  // (parent scope, resource)
  std::map<std::pair<ScopeId, ResourceId>, ScopeId> scope_index_;
  bool dynamic_ = false;  // some schema uses $dynamicRef or $recursiveRef
  std::size_t text_size_ = 0;
  Loc root_;
};

}  // namespace structgen
