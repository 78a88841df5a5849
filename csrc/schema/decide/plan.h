// Plans: what is computed once for a formula of objects. A plan has the names that the formula mentions and
// their order, the classes of all other keys, and the condition on the value of each name and class.
//
// In: formulas of objects. Out: plans, interned. A formula is taken apart into a *static* part ("every key of
// this region satisfies V", "this name is required" where nothing else counts the name) and a *rest*.
// Questions about the static part are answered by bitsets and one value formula for each name. The rest is
// replaced by its derivative for every key that is written. Nearly every real schema has no rest. Cost: a
// plan is linear in the formula; the derivative by a name touches only the conjuncts that mention the name.
#pragma once

#include <bit>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/flat_map.h"
#include "base/intern.h"
#include "schema/decide/solve.h"

namespace structgen {

using PlanId = Id<struct PlanTag>;
using PlanNameId = Id<struct PlanNameTag>;
using KeyClassId = Id<struct KeyClassTag>;
// The number of a chain of a plan: a list of names in a fixed order.
using ChainId = Id<struct ChainTag>;
using PartId = Id<struct PartTag>;

// A set of names of a plan, as bits; or a list of counts, one word for each class.
using Bits = std::vector<uint64_t>;
inline bool has_bit(const Bits& b, PlanNameId i) { return (b[i.v >> 6] >> (i.v & 63)) & 1; }
inline void add_bit(Bits& b, PlanNameId i) { b[i.v >> 6] |= 1ull << (i.v & 63); }
inline void take_bit(Bits& b, PlanNameId i) { b[i.v >> 6] &= ~(1ull << (i.v & 63)); }
inline std::vector<PlanNameId> names_in(const Bits& b) {
  std::vector<PlanNameId> out;
  for (uint32_t i = 0; i < b.size(); ++i)
    for (uint64_t left = b[i]; left != 0; left &= left - 1)
      out.push_back(PlanNameId{64 * i + static_cast<uint32_t>(std::countr_zero(left))});
  return out;
}
inline std::vector<PlanNameId> names_without(Bits b, const Bits& other) {
  for (std::size_t i = 0; i < b.size(); ++i) b[i] &= ~other[i];
  return names_in(b);
}

constexpr PlanNameId kNoName{0xFFFFFFFFu};
constexpr ChainId kNoChain{0xFFFFFFFFu};
// The number of keys of a class with infinitely many keys.
constexpr uint64_t kEndless = ~0ull;

// A class of free keys. A key is free if it is no name of the plan. Two free keys are in one class if no
// region of the plan tells them apart: for "patternProperties": {"^x": ...} the free keys with x in front are
// one class, all others another.
struct KeyClass {
  // The keys, each with its closing quote. Names of the plan may be among them.
  RegexId language;
  // in[i] tells whether the keys match pattern i (Plan::leaves).
  std::vector<bool> in;
  // The number of keys, names of the plan not counted.
  uint64_t keys = kEndless;
  // True if `keys` is their exact number, and not only a lower bound.
  bool exact = true;
};

// What a formula of objects says before any key is written. `classes`, and what is computed from them, is
// filled when it is first needed (Plans::find_classes).
struct Plan {
  // The formula without kOrder; `chains` holds the order of keys.
  TypedId formula;
  // The conjuncts that are neither in `required` nor in `value`. Each written key changes them (derive()).
  TypedId rest;
  // The names, sorted by text, as in their literal table.
  std::vector<NameId> names;
  std::vector<std::string> texts;
  // The literal table of the names; a label of the table is an index of `names`.
  uint32_t table = 0;
  // Lists of names. The names of a chain must be written in its order.
  std::vector<std::vector<PlanNameId>> chains;
  // The chain of each name; kNoChain if it has none.
  std::vector<ChainId> chain_of;
  std::vector<uint32_t> position;
  // The languages of the schema's patterns, as formulas. KeyClass::in has an element for each of them.
  std::vector<ValueId> leaves;
  std::vector<KeyClass> classes;
  bool classes_known = false;
  // Tells whether some class has finitely many keys.
  bool finite = false;
  // The names that `formula` requires whatever else is written. `rest` no longer asks for these names.
  Bits required;
  // By name: the condition on its value that `formula` states whatever else is written.
  std::vector<ValueId> value;
  // By name: whether a value meets value[i]; 0 for not known, 1 for no, 2 for yes.
  std::vector<uint8_t> ok;
  std::vector<ValueId> class_value;

  bool pure() const { return rest == FormulaSpace::yes(); }
  std::size_t words() const { return (names.size() + 63) / 64 + 1; }
  PlanNameId find(std::string_view text) const;
};

// The conjuncts of a formula, found by the names that they mention. Of a thousand conjuncts, few mention a
// given name.
struct Parts {
  std::vector<TypedId> kids;
  // The conjuncts that the empty object does not meet.
  std::vector<PartId> open;
  // The conjuncts with a region that is no list of names. Any written key may change them.
  std::vector<PartId> wide;
  // By name: the conjuncts with a list of names that contains it.
  std::unordered_map<PlanNameId, std::vector<PartId>> by_name;
  // Returns the conjuncts that may change when the name is written, sorted.
  std::vector<PartId> touched(PlanNameId name) const;
};

// The plans of a grammar, with the questions about them that need the solver.
class Plans {
 public:
  explicit Plans(Solver& solver) : solver_(solver), formulas_(solver.formulas()) {}

  PlanId plan_of(TypedId p);
  TypedId without_order(TypedId p);
  Plan& operator[](PlanId id) { return *plans_[id.v]; }
  const Plan& operator[](PlanId id) const { return *plans_[id.v]; }
  std::size_t size() const { return plans_.size(); }

  // Makes the classes of a plan. It must be called before any question about a class.
  void find_classes(Plan& plan);
  // Returns the condition on the values of a class's keys that Plan::formula states whatever else is written.
  ValueId class_value(Plan& plan, KeyClassId cls);
  bool name_ok(Plan& plan, PlanNameId name);
  // Tells whether the region contains the name; or, if `name` is kNoName, the keys of the class.
  bool hits(const Plan& plan, RegionId r, PlanNameId name, KeyClassId cls);
  // Returns the derivative of p by a key, which is the condition on the members behind it. The kVal atoms of
  // the derivative are the condition on the key's own value.
  TypedId derive(const Plan& plan, TypedId p, PlanNameId name, KeyClassId cls);
  // Removes the names in `gone`, which can no longer be written, from each list of names in p: when a and b
  // are gone, a count over {a, b, c} becomes a count over {c}.
  TypedId forget(const Plan& plan, TypedId p, const Bits& gone);
  std::shared_ptr<const Parts> parts(PlanId plan, TypedId p);
  // Writes the names that p lists: those of its regions of the kind kNames. Sets `wide` if p has a region of
  // another kind.
  void names_of(const Plan& plan, TypedId p, std::vector<PlanNameId>& names, bool& wide);

 private:
  using Memo = FlatMap<uint32_t, TypedId>;
  TypedId derive(const Plan& plan, TypedId p, PlanNameId name, KeyClassId cls, Memo& memo);
  TypedId forget(const Plan& plan, TypedId p, const Bits& gone, Memo& memo);
  void collect(TypedId f, Plan& plan, std::vector<MapId>& maps, FlatMap<uint32_t, bool>& seen);
  void collect_region(RegionId r, std::vector<NameId>& names, std::vector<ValueId>& leaves);
  void collect_names(const Plan& plan, TypedId p, std::vector<PlanNameId>& names, bool& wide,
                     FlatMap<uint32_t, bool>& seen);
  TypedId strip_order(TypedId f, Memo& memo);
  void order_names(Plan& plan, const std::vector<MapId>& maps);
  void expand_finite(Plan& plan);
  void count_keys(Plan& plan);
  void take_apart(Plan& plan);
  bool restricts_members(TypedId p, FlatMap<uint32_t, bool>& seen);

  Solver& solver_;
  FormulaSpace& formulas_;
  std::vector<std::unique_ptr<Plan>> plans_;
  FlatMap<uint32_t, PlanId> plan_index_;
  FlatMap<uint64_t, bool> region_names_;
  std::unordered_map<uint64_t, std::shared_ptr<const Parts>> parts_;
};

}  // namespace structgen
