// What is known once of an object formula: names, their order, key classes, values, and derivation by a key.
//
// In: typed object formulas. Out: plans, interned. A formula is taken apart into its *static* part ("every
// key of this region satisfies V", "this name is required" where nothing else counts the name), which bitsets
// and one value formula a name answer for, and the *rest*, which is derived key by key. Nearly every real
// schema has no rest. Cost: a plan is linear in the formula; derivation by a name touches only the conjuncts
// that speak of the name.
#pragma once

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
using PlanNameId = Id<struct PlanNameTag>;  // a name of a plan: Plan::names
using KeyClassId = Id<struct KeyClassTag>;  // a class of a plan: Plan::classes
using ChainId = Id<struct ChainTag>;        // a chain of a plan: Plan::chains
using PartId = Id<struct PartTag>;          // a part of a conjunction: Parts::kids

using Bits = std::vector<uint64_t>;
inline bool has_bit(const Bits& b, PlanNameId i) { return (b[i.v >> 6] >> (i.v & 63)) & 1; }
inline void add_bit(Bits& b, PlanNameId i) { b[i.v >> 6] |= 1ull << (i.v & 63); }

constexpr PlanNameId kNoName{0xFFFFFFFFu};
constexpr ChainId kNoChain{0xFFFFFFFFu};
constexpr uint64_t kEndless = ~0ull;

// Keys outside the known names that no region tells apart.
struct KeyClass {
  RegexId language;          // body and closing quote; known names not yet excluded
  std::vector<bool> in;      // by language leaf
  uint64_t keys = kEndless;  // how many, known names excluded
  bool exact = true;         // else `keys` is a lower bound
};

struct Plan {
  TypedId formula;            // without kOrder
  TypedId rest;               // what is derived
  std::vector<NameId> names;  // sorted by text, as the literal table is
  std::vector<std::string> texts;
  uint32_t table = 0;                           // literal table of the names, label = index
  std::vector<std::vector<PlanNameId>> chains;  // names whose mutual order is fixed
  std::vector<ChainId> chain_of;                // per name; kNoChain
  std::vector<uint32_t> position;               // per name, in its chain
  std::vector<ValueId> leaves;                  // of the regions that are languages
  std::vector<KeyClass> classes;
  bool classes_known = false;
  bool limited = false;        // some class has finitely many keys
  Bits required;               // by the static part
  std::vector<ValueId> value;  // per name, by the static part
  std::vector<uint8_t> ok;     // per name: 0 unknown, 1 no, 2 yes
  std::vector<ValueId> class_value;

  bool pure() const { return rest == FormulaSpace::yes(); }
  std::size_t words() const { return (names.size() + 63) / 64 + 1; }  // of a bitset over the names
  PlanNameId find(std::string_view text) const;                       // kNoName when unknown
};

// A conjunction of a plan by what its parts speak of.
struct Parts {
  std::vector<TypedId> kids;
  std::vector<PartId> open;                                     // kids that do not close yet
  std::vector<PartId> wide;                                     // kids with a region that is no list of names
  std::unordered_map<PlanNameId, std::vector<PartId>> by_name;  // name -> kids with a list that holds it
  std::vector<PartId> touched(PlanNameId name) const;           // kids that may change by the name, sorted
};

class Plans {
 public:
  explicit Plans(Solver& solver) : solver_(solver), formulas_(solver.formulas()) {}

  PlanId plan_of(TypedId p);
  TypedId without_order(TypedId p);
  Plan& operator[](PlanId id) { return *plans_[id.v]; }
  const Plan& operator[](PlanId id) const { return *plans_[id.v]; }
  std::size_t size() const { return plans_.size(); }

  void find_classes(Plan& plan);  // before anything is asked of a class
  ValueId class_value(Plan& plan, KeyClassId cls);
  bool name_ok(Plan& plan, PlanNameId name);
  // Does a region hold a name, or (name = kNoName) the keys of a class?
  bool hits(const Plan& plan, RegionId r, PlanNameId name, KeyClassId cls);
  TypedId derive(const Plan& plan, TypedId p, PlanNameId name, KeyClassId cls);
  // Names that can no longer be written leave every finite region.
  TypedId forget(const Plan& plan, TypedId p, const Bits& gone);
  std::shared_ptr<const Parts> parts(PlanId plan, TypedId p);
  // The known names that the lists of a formula hold; `wide`: other regions occur too.
  void names_of(const Plan& plan, TypedId p, std::vector<PlanNameId>& names, bool& wide);

 private:
  using Memo = FlatMap<uint32_t, TypedId>;
  TypedId derive(const Plan& plan, TypedId p, PlanNameId name, KeyClassId cls, Memo& memo);
  TypedId forget(const Plan& plan, TypedId p, const Bits& gone, Memo& memo);
  void collect(TypedId f, Plan& plan, std::vector<MapId>& maps, FlatMap<uint32_t, bool>& seen);
  void collect_region(RegionId r, std::vector<NameId>& names, std::vector<ValueId>& leaves);
  void walk_names(const Plan& plan, TypedId p, std::vector<PlanNameId>& names, bool& wide,
                  FlatMap<uint32_t, bool>& seen);
  TypedId strip_order(TypedId f, Memo& memo);
  void order_names(Plan& plan, const std::vector<MapId>& maps);
  void expand_finite(Plan& plan);
  void count_keys(Plan& plan);
  void take_apart(Plan& plan);
  bool limits_members(TypedId p, FlatMap<uint32_t, bool>& seen);

  Solver& solver_;
  FormulaSpace& formulas_;
  std::vector<std::unique_ptr<Plan>> plans_;
  FlatMap<uint32_t, PlanId> plan_index_;
  FlatMap<uint64_t, bool> region_names_;
  std::unordered_map<uint64_t, std::shared_ptr<const Parts>> parts_;  // the latest
};

}  // namespace structgen
