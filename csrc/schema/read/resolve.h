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
#include "schema/read/dialect.h"
#include "schema/read/json.h"

namespace structgen {

struct Loc {
  uint32_t doc = 0;
  JsonRef node = 0;
  uint32_t resource = 0;
  uint32_t scope = 0;  // index of the dynamic scope; 0 where no schema asks for it
  friend bool operator==(const Loc&, const Loc&) = default;
};

// A node of a document as a key of maps.
inline uint64_t key_of(uint32_t doc, JsonRef node) { return (static_cast<uint64_t>(doc) << 32) | node; }

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

  const Json& json(const Loc& l) const { return *documents_[l.doc]; }
  Loc root() const { return root_; }
  // A schema of the engine's own beside the document, with references into itself only.
  Loc add(std::string_view schema);
  bool added(const Loc& l) const { return l.doc >= added_; }
  Loc child(const Loc& parent, JsonRef node);
  Draft draft(const Loc& l) const { return resources_[l.resource].draft; }
  bool validates(const Loc& l) const { return resources_[l.resource].validates; }
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
  static constexpr uint32_t kNoVisit = 0xFFFFFFFFu, kNoIndex = 0xFFFFFFFFu;
  struct Resource {
    std::string uri;
    uint32_t doc;
    JsonRef node;
    Draft draft;
    bool validates = true;  // its dialect has the validation vocabulary
    bool recursive_anchor = false;
    std::unordered_map<std::string, JsonRef> anchors;
    std::unordered_map<std::string, JsonRef> dynamic_anchors;
  };
  struct Visit {
    uint32_t doc;
    JsonRef node;
    uint32_t resource;
    uint32_t parent;           // visit; kNoVisit for a document's root or a reference's target
    std::string_view keyword;  // path from the parent: keyword, then a member name or an index
    std::string_view member;
    uint32_t index = kNoIndex;
  };
  struct Note {
    uint32_t visit;
    std::string_view keyword;
    std::string reason;
  };
  struct Pending {
    uint32_t visit;
    std::string_view reference;
    Word word;
    uint32_t target = kNoVisit;  // a visit, where the reference leads to a schema
  };
  struct Broken {
    uint32_t visit;  // of the schema that holds the reference
    const char* keyword;
    bool loops;  // or leads nowhere
  };
  uint32_t add_document(const std::string& uri, Json json);
  void scan(uint32_t doc, JsonRef node, uint32_t resource, uint32_t parent, std::string_view keyword);
  void scan_schema(uint32_t visit, std::vector<Visit>& todo);
  void scan_word(uint32_t visit, const WordInfo& w, std::string_view key, JsonRef value,
                 std::vector<Visit>& todo);
  uint32_t enter_resource(Visit& v);
  void note_misshapen_parts(uint32_t visit, Word w, std::string_view key, JsonRef value);
  void check_value(uint32_t visit, const WordInfo& w, std::string_view key, JsonRef value);
  void check_pattern(uint32_t visit, std::string_view keyword, std::string_view text);
  void resolve_pending();
  void find_loops();
  bool in_place(const Visit& v) const;
  bool find_resource(const std::string& uri, uint32_t& out);
  bool find_pointer(uint32_t& resource, uint32_t doc, JsonRef& node, std::string_view pointer) const;
  Draft dialect_of(uint32_t doc, JsonRef node, Draft inherited, bool& validates);
  uint32_t push_scope(uint32_t scope, uint32_t resource);
  std::string visit_pointer(uint32_t visit) const;

  SchemaOptions options_;
  const Documents* others_ = nullptr;
  std::vector<std::unique_ptr<Json>> documents_;
  std::size_t added_ = static_cast<std::size_t>(-1);  // documents from here on were added
  std::vector<Resource> resources_;
  std::unordered_map<std::string, uint32_t> by_uri_;
  std::unordered_map<uint64_t, uint32_t> resource_roots_;  // (doc, node) -> resource, but document roots
  std::vector<std::vector<uint32_t>> scanned_;             // [document][node]: its visit + 1, or 0
  std::vector<Visit> visits_;
  std::vector<Note> notes_;
  std::vector<Pending> pending_;
  std::vector<Broken> broken_;
  std::unordered_set<uint64_t> looping_;  // (doc, node) of schemas whose `$ref` is on a loop
  std::vector<std::pair<uint32_t, uint32_t>> scopes_{{0, 0}};  // (parent scope, resource)
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> scope_index_;
  bool dynamic_ = false;  // some schema uses $dynamicRef or $recursiveRef
  std::size_t text_size_ = 0;
  Loc root_;
};

}  // namespace structgen
