// unevaluatedProperties and unevaluatedItems, eliminated into counting literals.
//
// In: a schema object that has one of them. Out: the formula that says the same without annotations.
// The in-place applicators below the object are collected as pairs (condition c_i, keys L_i evaluated where
// c_i holds). Keys are then grouped by the set I of conditions that evaluate them; a group K_I says
//     all(K_I, U)  or  OR(c_i, i in I)
// Cost: groups of names are at most as many as names; patterns under n different conditions give 2^n groups,
// and so do n conditional `contains`; past kMaxGroups that is kSchemaTooComplex.
// Specification: JSON Schema 2019-09 core 9.3, 2020-12 core 11; the elimination is this project's.
#pragma once

#include <vector>

#include "schema/formula/formula.h"
#include "schema/read/keywords.h"

namespace structgen {

class Lowering;

class Unevaluated {
 public:
  Unevaluated(Lowering& lowering, const Loc& at) : lowering_(lowering), at_(at) {}
  ValueId properties(ValueId rest);  // `rest`: what unevaluated members must satisfy
  ValueId items(ValueId rest);

 private:
  struct Keys {
    ValueId condition;
    RegionId region;
  };
  struct Items {
    ValueId condition;
    uint32_t end;  // items before it are evaluated
  };
  struct Contains {
    ValueId condition;
    ValueId value;  // items that satisfy it are evaluated
  };
  void collect(const Loc& at, ValueId condition, bool top);
  void collect_keys(const Loc& at, const Keywords& o, ValueId condition, bool top);
  void collect_items(const Loc& at, const Keywords& o, ValueId condition, bool top);
  void collect_kid(const Loc& at, JsonRef node, ValueId condition, bool conditional);
  ValueId any_condition(const std::vector<bool>& in) const;

  Lowering& lowering_;
  Loc at_;
  std::vector<Keys> keys_;
  std::vector<Items> items_;
  std::vector<Contains> contains_;
  std::vector<ValueId> conditions_;
  std::vector<Loc> path_;
};

}  // namespace structgen
