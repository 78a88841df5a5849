// Keywords -> formulas: what each keyword of a schema object means.
//
// In: a Loc. Out: a value formula (subschemas stay unresolved kSchema nodes). Cost: linear in the
// object's own members, once a location; nothing below is touched.
// Specification: JSON Schema drafts 4 to 2020-12; the literals are those of schema/formula/formula.h.
#pragma once

#include <set>
#include <vector>

#include "base/flat_map.h"
#include "base/intern.h"
#include "schema/formula/formula.h"
#include "schema/read/keywords.h"
#include "schema/read/resolve.h"

namespace structgen {

using MapId = Id<struct MapTag>;  // a properties map, which orders its names: Lowering::map_names

enum class PropertyOrder : uint8_t { kSchema, kAny };

class Lowering {
 public:
  Lowering(SchemaSet& schemas, FormulaSpace& formulas, PropertyOrder order)
      : schemas_(schemas), formulas_(formulas), order_(order) {}

  ValueId root() { return reference(schemas_.root()); }
  // The formula of a kSchema node's location.
  ValueId lower(LocationId location);
  // A kSchema node whose reference leads nowhere: neither it nor its negation has a value.
  bool broken(LocationId location) const {
    return broken_.count(location) != 0 || looping_.count(location) != 0;
  }
  bool any_broken() const { return !broken_.empty() || !looping_.empty(); }
  [[noreturn]] void raise_broken(LocationId location);
  [[noreturn]] void raise_broken() { raise_broken(broken_.empty() ? *looping_.begin() : *broken_.begin()); }
  // A kSchema node that dynamic references lead back to without consuming anything: the scan of a schema
  // (schema/read/loops.h) does not see where those lead. From here on it is broken.
  void loops(LocationId location) { looping_.insert(location); }
  const Loc& location(LocationId location) const { return locs_[location.v]; }
  SchemaSet& schemas() { return schemas_; }
  // Its names, in their order.
  const std::vector<NameId>& map_names(MapId map) const { return maps_[map.v]; }
  // A formula that holds for exactly the values of a JSON array.
  ValueId values(const Json& json, JsonRef array) { return values(json, array, kNoDocument); }

  ValueId reference(Loc l);  // a kSchema node, or the target of a bare $ref, or true/false
  ValueId sub(const Loc& at, JsonRef node) { return reference(schemas_.child(at, node)); }
  FormulaSpace& formulas() { return formulas_; }

 private:
  ValueId node_of(const Loc& l);
  ValueId broken_reference(Loc at, JsonRef text);
  using Conjuncts = SmallVector<ValueId, 32>;
  ValueId lower_object(const Loc& at);
  void lower_types(const Loc& at, const Keywords& o, Conjuncts& out);
  void lower_logic(const Loc& at, const Keywords& o, Conjuncts& out);
  void lower_numbers(const Loc& at, const Keywords& o, Conjuncts& out);
  void lower_strings(const Loc& at, const Keywords& o, Conjuncts& out);
  void lower_format(const Keywords& o, Conjuncts& out);
  void lower_objects(const Loc& at, const Keywords& o, Conjuncts& out);
  void lower_dependencies(const Loc& at, const Keywords& o, Conjuncts& out);
  void lower_arrays(const Loc& at, const Keywords& o, Conjuncts& out);
  // Of values from a text: nothing to remember, no order.
  static constexpr DocumentId kNoDocument{0xFFFFFFFFu};
  ValueId values(const Json& json, JsonRef array, DocumentId doc);
  MapId map_of(uint64_t key, const std::vector<NameId>& names);
  ValueId constant(const Json& json, JsonRef node, DocumentId doc);
  ValueId absent(NameId name) {
    return formulas_.literal(Kind::kObject, formulas_.all(formulas_.name(name), FormulaSpace::no()));
  }
  ValueId present(NameId name) {
    return formulas_.literal(Kind::kObject, formulas_.some(formulas_.name(name), FormulaSpace::yes(), 1));
  }
  NameId name_of(std::string_view text) { return formulas_.intern_name(text); }
  uint32_t count(const Loc& at, JsonRef number, bool round_up);

  SchemaSet& schemas_;
  FormulaSpace& formulas_;
  PropertyOrder order_;
  std::vector<Loc> locs_;
  InternTable loc_index_;
  FlatMap<uint32_t, ValueId> lowered_;  // by location
  std::set<LocationId> broken_, looping_;
  std::vector<std::vector<NameId>> maps_;
  FlatMap<uint64_t, MapId> map_index_;
  FlatMap<uint64_t, ValueId> constants_;
  uint32_t constant_depth_ = 0;
};

}  // namespace structgen
