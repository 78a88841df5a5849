// Keywords as formulas: the meaning of each keyword of a schema object.
//
// In: the position of a schema object (Loc). Out: a formula of any value, in which each subschema is a
// kSchema node that is not lowered yet. Cost: linear in the object's own members, once for each position.
// Specification: JSON Schema, drafts 4 to 2020-12. schema/formula/ops.h lists the atoms.
#pragma once

#include <set>
#include <vector>

#include "base/flat_map.h"
#include "base/intern.h"
#include "schema/formula/formula.h"
#include "schema/read/keywords.h"
#include "schema/read/resolve.h"

namespace structgen {

// The number of a list of names that gives the order of keys (Lowering::map_names).
using MapId = Id<struct MapTag>;

// The order in which keys are written. kSchema: the order of `properties`. kAny: any order.
enum class PropertyOrder : uint8_t { kSchema, kAny };

// Turns schemas into formulas when they are first asked for, and remembers them. A Lowering lives as long as
// its grammar's productions.
class Lowering {
 public:
  Lowering(SchemaSet& schemas, FormulaSpace& formulas, PropertyOrder order)
      : schemas_(schemas), formulas_(formulas), order_(order) {}

  ValueId root() { return reference(schemas_.root()); }
  ValueId lower(LocationId location);
  // Returns true for a kSchema node whose reference leads nowhere, or in a loop back to itself. Neither this
  // node nor its negation has a value, so an `anyOf` can still use its other branches.
  bool broken(LocationId location) const {
    return broken_.count(location) != 0 || looping_.count(location) != 0;
  }
  bool any_broken() const { return !broken_.empty() || !looping_.empty(); }
  // Throws the error of the broken reference at the location, or of some broken reference if there is none.
  [[noreturn]] void raise_broken(LocationId location);
  [[noreturn]] void raise_broken() { raise_broken(broken_.empty() ? *looping_.begin() : *broken_.begin()); }
  // Marks a location as broken because dynamic references lead from it back to it without a step into the
  // value. The scan of the schema (schema/read/loops.h) cannot see this, because it does not know where
  // dynamic references lead.
  void loops(LocationId location) { looping_.insert(location); }
  const Loc& location(LocationId location) const { return locs_[location.v]; }
  SchemaSet& schemas() { return schemas_; }
  const std::vector<NameId>& map_names(MapId map) const { return maps_[map.v]; }
  // Returns the formula of an `enum`: any of the values of a JSON array. This overload takes an array that
  // belongs to no document, such as one of captured values (schema/decide).
  ValueId values(const Json& json, JsonRef array) { return values(json, array, kNoDocument); }

  // Returns the formula of a schema. For a schema that is only a `$ref` it is that of the target; `true` and
  // `false` are constants; any other schema is a kSchema node, which lower() expands.
  ValueId reference(Loc l);
  // Returns the formula of the subschema that stands at `node` inside the schema `at`.
  ValueId sub(const Loc& at, JsonRef node) { return reference(schemas_.child(at, node)); }
  FormulaSpace& formulas() { return formulas_; }

 private:
  ValueId node_of(const Loc& l);
  ValueId broken_reference(Loc at, JsonRef text);
  ValueId lower_object(const Loc& at);
  // Each lower_... function below appends a conjunct for each keyword of its group that the schema has.
  using Conjuncts = SmallVector<ValueId, 32>;
  void lower_types(const Loc& at, const Keywords& o, Conjuncts& out);
  void lower_logic(const Loc& at, const Keywords& o, Conjuncts& out);
  void lower_numbers(const Loc& at, const Keywords& o, Conjuncts& out);
  void lower_strings(const Loc& at, const Keywords& o, Conjuncts& out);
  void lower_format(const Keywords& o, Conjuncts& out);
  void lower_objects(const Loc& at, const Keywords& o, Conjuncts& out);
  void lower_dependencies(const Loc& at, const Keywords& o, Conjuncts& out);
  void lower_arrays(const Loc& at, const Keywords& o, Conjuncts& out);
  // The document of values that belong to none. Their formulas are not remembered, because such values are
  // lowered once, and their keys have no order.
  static constexpr DocumentId kNoDocument{0xFFFFFFFFu};
  ValueId values(const Json& json, JsonRef array, DocumentId doc);
  MapId map_of(uint64_t key, const std::vector<NameId>& names);
  ValueId constant(const Json& json, JsonRef node, DocumentId doc);
  // absent() returns the formula of the objects that lack the member, present() that of the objects that have
  // it.
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
  // The formula of each location that was lowered.
  FlatMap<uint32_t, ValueId> lowered_;
  std::set<LocationId> broken_, looping_;
  std::vector<std::vector<NameId>> maps_;
  FlatMap<uint64_t, MapId> map_index_;
  // The formula of each constant, by key_of(document, node).
  FlatMap<uint64_t, ValueId> constants_;
  uint32_t constant_depth_ = 0;
};

}  // namespace structgen
