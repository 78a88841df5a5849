// Objects: states between two members, and whether any object satisfies a formula.
//
// In: typed object formulas. Out: states (what is left, which names are used, which free keys were written),
// each interned; the cells of a state for one name or one class of keys. Cost: a plan without a rest
// (schema/decide/plan.h; nearly every real schema) answers from bitsets; of other plans a name costs the
// conjuncts that speak of it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/intern.h"
#include "schema/decide/plan.h"
#include "schema/values/texts.h"

namespace structgen {

using ObjectId = Id<struct ObjectTag>;    // of an object being written
using BitsId = Id<struct BitsTag>;        // a bitset over a plan's names, or counts by class: Objects::bits_
using WrittenId = Id<struct WrittenTag>;  // a set of free keys: Objects::written_

struct ObjectState {
  PlanId plan;
  TypedId rest;              // of the plan's rest
  BitsId used;               // names written or passed over
  BitsId taken;              // the counts of keys written, by class; only where some class is limited
  WrittenId written;         // the free keys already written
  bool unknown_key = false;  // a free key was written whose text this state does not know
  friend bool operator==(const ObjectState&, const ObjectState&) = default;
};

struct Offers {
  Bits names;                       // names that may come next
  std::vector<KeyClassId> classes;  // classes that may come next
  bool close = false;
  bool any_key() const {
    return !classes.empty() || std::ranges::any_of(names, [](uint64_t w) { return w != 0; });
  }
};

// What is still asked of an object, in one plan with these keys gone: the key of what is remembered of it.
// Compared in full: a memo keyed by a hash alone once gave one plan's answer for another's.
struct Situation {
  PlanId plan;
  TypedId rest;
  BitsId used, taken;  // as of a state
  friend bool operator==(const Situation&, const Situation&) = default;
};
struct SituationHash {
  std::size_t operator()(const Situation& s) const {
    return mix(mix(mix(mix(7, s.plan.v), s.rest.v), s.used.v), s.taken.v);
  }
};

class Objects {
 public:
  explicit Objects(Solver& solver);

  bool productive(TypedId p);  // does any object satisfy p?
  TypedId without_order(TypedId p) { return plans_.without_order(p); }
  ObjectId start(TypedId p);  // the state after '{'
  const ObjectState& state(ObjectId s) const { return states_[s.v]; }
  const Plan& plan(PlanId p) { return plans_[p]; }
  const Offers& offers(ObjectId s);
  Plan& plan_of(ObjectId s) { return plans_[states_[s.v].plan]; }
  const Bits& used(ObjectId s) const { return bits_[states_[s.v].used.v]; }  // names written or passed over
  ValueId class_value(ObjectId s, KeyClassId cls) { return plans_.class_value(plan_of(s), cls); }
  // ---- nearest.cc: what the shortest completion goes by ----
  static constexpr uint32_t kFar = 0xFFFFFFFFu;
  // The least number of members after which the object may close, their order aside; kFar: not found cheaply.
  uint32_t members_needed(ObjectId s);
  // Of the offers, some that bring the object one member nearer to its end, a shortest way among them.
  Offers useful(ObjectId s);
  // Ways to write name `i` (or a key of class `c` with this text) next: (value, state after).
  struct Step {
    ValueId value;
    ObjectId next;
  };
  std::vector<Step> take_name(ObjectId s, PlanNameId name);
  // No text: one that is not known; `fresh`: one that no other key of the object has.
  std::vector<Step> take_free(ObjectId s, KeyClassId cls, const std::string* text, bool fresh = false);
  // Keys of the class that may still be written: known names and written keys excluded.
  RegexId free_language(ObjectId s, KeyClassId cls);
  // The same keys as they are, without a closing quote.
  RegexId free_texts(ObjectId s, KeyClassId cls, Texts& texts);
  // A lower bound of how many those are; kEndless: no end to them.
  uint64_t free_keys(ObjectId s, KeyClassId cls) const;
  std::size_t byte_size() const;

 private:
  // Keys that are gone: names written or passed over, and how many keys of each class.
  struct Gone {
    Bits names, taken;
  };
  // What a search starts from: parts of a conjunction that the last key left alone, and what became of the
  // others.
  struct Left {
    const Parts* parts;
    std::vector<PartId> touched;  // sorted
    TypedId changed;
  };
  Gone gone(const ObjectState& s) const { return {bits_[s.used.v], bits_[s.taken.v]}; }
  uint64_t remaining(const Plan& plan, KeyClassId cls, const Bits& taken) const;
  void take_one(const Plan& plan, KeyClassId cls, Bits& taken) const;
  Situation situation(PlanId plan, TypedId p, const Gone& gone) {
    return {plan, p, intern_bits(gone.names), intern_bits(gone.taken)};
  }
  TypedId demanded(const ObjectState& s);
  Offers wanted_offers(ObjectId s);
  void wanted(TypedId p, std::unordered_set<TypedId>& seen, std::vector<RegionId>& out);
  uint32_t least_members(TypedId p) const;
  uint32_t distance(PlanId plan, TypedId p, const Gone& gone);
  bool within(PlanId plan, TypedId p, const Gone& gone, uint32_t n);
  bool within_literal(PlanId plan, TypedId p, TypedId literal, const Gone& gone, uint32_t n);
  bool search(PlanId plan, TypedId p, Gone gone);
  bool decide(PlanId plan, TypedId p, const Gone& gone);
  bool take_forced(PlanId plan, TypedId& p, Gone& gone, bool& dead);
  bool take_alike(PlanId plan, TypedId& p, Gone& gone, TypedId literal, bool& dead);
  bool search_literal(PlanId plan, TypedId p, TypedId literal, const Gone& gone);
  bool some_member(PlanId plan, TypedId p, TypedId literal, const Gone& gone,
                   const std::function<bool(TypedId, const Gone&)>& then);
  bool possible(PlanId plan, const Left& left, const Gone& gone);
  Solver::Judges judges(PlanId plan_id, Solver::Judge productive);
  bool may_write(ObjectId s, const Parts& parts, PlanNameId name, const Bits& next);
  Bits after(const Plan& plan, const Bits& used, PlanNameId name) const;
  ObjectId intern(const ObjectState& s);
  BitsId intern_bits(const Bits& b);
  WrittenId write_key(WrittenId written, const std::string& text);
  const std::vector<Cell>& name_cells(ObjectId s, PlanNameId name);
  std::vector<Cell> split_name(ObjectId s, PlanNameId name, bool first);  // first: one cell or none will do
  bool has_cell(ObjectId s, PlanNameId name);
  const std::vector<Cell>& free_cells(ObjectId s, KeyClassId cls);

  Solver& solver_;
  FormulaSpace& formulas_;
  Plans plans_;
  StableVector<ObjectState> states_;
  InternTable state_index_;
  std::vector<std::unique_ptr<Offers>> offers_;
  std::deque<Bits> bits_;
  InternTable bits_index_;
  // Sets of written keys: literal tables of doubling sizes, so that n keys cost n log n in all.
  std::vector<std::vector<uint32_t>> written_{{}};
  InternTable written_index_;
  std::unordered_map<uint64_t, std::vector<Cell>> cells_;
  std::unordered_map<Situation, uint8_t, SituationHash> productive_;
  struct Known {
    uint32_t not_within = 0, within = kFar;  // fewer than the first never do, the second does
  };
  std::unordered_map<Situation, Known, SituationHash> within_;
  std::unordered_map<Situation, uint32_t, SituationHash> distance_;
  uint32_t nearest_steps_ = 0;
  uint32_t depth_ = 0;
};

}  // namespace structgen
