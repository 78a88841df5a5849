// `unevaluatedProperties` and `unevaluatedItems`, turned into counts.
//
// In: a schema object that has one of the two keywords. Out: a formula with the meaning of the keyword, which
// needs no annotations.
//
// A member is evaluated if its key is named by some subschema that applies to the same object (`allOf`, `if`,
// `$ref` ...) and that holds. So the subschemas are collected as pairs: a condition c_i, and the keys L_i
// that are evaluated where c_i holds. Keys are then grouped by the set I of conditions that evaluate them.
// With U for the schema of unevaluated members, a group K_I says
//
//     all(K_I, U)  or  OR(c_i, i in I)
//
//     {"anyOf": [{"properties": {"a": A}}, {"properties": {"b": B}}], "unevaluatedProperties": false}
//     c_1 = schema(anyOf/0), L_1 = {a};  c_2 = schema(anyOf/1), L_2 = {b}
//     (no member a, or c_1) and (no member b, or c_2) and no member outside of {a, b}
//
// Cost: there are at most as many groups of names as names. Patterns under n different conditions give 2^n
// groups, and so do n conditional `contains`. More than kMaxGroups groups throw kSchemaTooComplex.
// Specification: JSON Schema 2019-09 core 9.3, 2020-12 core 11; this way to eliminate the keywords is the
// project's.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "schema/formula/formula.h"
#include "schema/read/keywords.h"

namespace structgen {

class Lowering;

// Replaces the unevaluated keywords of one schema object by other conditions. Either properties() or items()
// is called, once.
class Unevaluated {
 public:
  Unevaluated(Lowering& lowering, const Loc& at) : lowering_(lowering), at_(at) {}
  // Returns the condition "every unevaluated member satisfies `rest`"; items() does the same for items.
  ValueId properties(ValueId rest);
  ValueId items(ValueId rest);

 private:
  // The keys of `region` are evaluated if `condition` holds.
  struct Keys {
    ValueId condition;
    RegionId region;
  };
  // The items with an index below `end` are evaluated if `condition` holds.
  struct Items {
    ValueId condition;
    uint32_t end;
  };
  // The items that satisfy `value` are evaluated if `condition` holds.
  struct Contains {
    ValueId condition;
    ValueId value;
  };
  // Several conditions, each of which suffices to evaluate some keys.
  using Conditions = std::set<ValueId>;
  // The keys of properties(), grouped by the set of conditions that evaluate them.
  struct KeyGroups {
    // The complements of the patterns whose keys are always evaluated. Each group keeps only keys that are in
    // all of these.
    std::vector<RegionId> open;
    // All names; the names that are always evaluated come first.
    std::vector<NameId> known;
    // The conditions that evaluate every key, such as `additionalProperties` in a branch. They are in every
    // group.
    Conditions everything;
    std::map<Conditions, std::vector<NameId>> names;
    std::map<Conditions, std::vector<RegionId>> patterns;
  };
  void collect(const Loc& at, ValueId condition, bool top);
  bool group_keys(KeyGroups& out);
  void collect_keys(const Loc& at, const Keywords& o, ValueId condition, bool top);
  void collect_items(const Loc& at, const Keywords& o, ValueId condition, bool top);
  void collect_kid(const Loc& at, JsonRef node, ValueId condition, bool conditional);

  Lowering& lowering_;
  Loc at_;
  std::vector<Keys> keys_;
  std::vector<Items> items_;
  std::vector<Contains> contains_;
  // The schemas from `at_` down to the one whose keywords are being collected.
  std::vector<Loc> path_;
};

}  // namespace structgen
