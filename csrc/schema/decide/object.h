// Objects: the states between two members, and whether any object satisfies a formula.
//
// In: formulas of objects. Out: interned states (what is left to satisfy, which names are used, which free
// keys were written), and the cells of a state for one name or one class of keys. Cost: a plan without a rest
// (schema/decide/plan.h; nearly every real schema) is answered from bitsets. In a plan with a rest, a name
// costs a step for each conjunct that mentions this name.
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
#include "schema/decide/captured.h"
#include "schema/decide/plan.h"
#include "schema/values/texts.h"

namespace structgen {

// The number of the state of an object under way.
using ObjectId = Id<struct ObjectTag>;
// The number of a set of names of a plan, or of a list of counts, one for each class.
using BitsId = Id<struct BitsTag>;
using WrittenId = Id<struct WrittenTag>;

// The state of an object behind some of its members. Equal states have one number, so that parse states with
// them are equal, too.
struct ObjectState {
  PlanId plan;
  // The conditions on the members to come, except those that the plan keeps by name (Plan::required,
  // Plan::value).
  TypedId rest;
  // The names that were written, and the names that the order of keys now forbids because a later name was
  // written.
  BitsId used;
  // How many keys of each class were written; counted only if some class has finitely many keys.
  BitsId taken;
  // The free keys that were written and whose texts the state knows.
  WrittenId written;
  // True if a free key was written whose text is not known: masks walk through the keys of a class without
  // their texts (mask/fill.h).
  bool unknown_key = false;
  // The captured values from which the object must differ, without the members that were written
  // (schema/decide/captured.h).
  CapturedId outside;
  friend bool operator==(const ObjectState&, const ObjectState&) = default;
};

struct Offers {
  Bits names;
  std::vector<KeyClassId> classes;
  bool close = false;
  bool any_key() const {
    return !classes.empty() || std::ranges::any_of(names, [](uint64_t w) { return w != 0; });
  }
};

// The key of memos about objects: a plan, a formula still to be met, and the keys that can no longer be
// written. Situations are compared in full. A memo that compared hashes only once returned the answer of
// another plan.
struct Situation {
  PlanId plan;
  TypedId rest;
  BitsId used, taken;
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

  bool productive(TypedId p);
  TypedId without_order(TypedId p) { return plans_.without_order(p); }
  ObjectId start(TypedId p);
  const ObjectState& state(ObjectId s) const { return states_[s.v]; }
  const Plan& plan(PlanId p) { return plans_[p]; }
  // Returns the members that may come next: those behind which the object can still be completed.
  const Offers& offers(ObjectId s);
  Plan& plan_of(ObjectId s) { return plans_[states_[s.v].plan]; }
  const Bits& used(ObjectId s) const { return bits_[states_[s.v].used.v]; }
  ValueId class_value(ObjectId s, KeyClassId cls) { return plans_.class_value(plan_of(s), cls); }
  // The value of a distance that was not found. The functions from here to useful() serve the search for a
  // shortest completion (nearest.cc).
  static constexpr uint32_t kFar = 0xFFFFFFFFu;
  // Returns the least number of members behind which the object may close, whatever their order. Returns kFar
  // if the search takes too many steps.
  uint32_t members_needed(ObjectId s);
  // Returns some offers that bring the object one member nearer to its end. One of them begins a shortest
  // completion.
  Offers useful(ObjectId s);
  struct Step {
    ValueId value;
    ObjectId next;
    // True if the text of the value decides what may follow. The parser then captures it and passes it to
    // read().
    bool capture = false;
  };
  // Returns the state behind a member whose value was captured. `value` is its canonical text.
  ObjectId read(ObjectId s, std::string_view name, const std::string& value);
  // Returns the values that the member `name` has in those captured values from which the object must differ.
  CapturedId values_of(ObjectId s, std::string_view name);
  // Returns the state behind a member whose value no captured value has. The object then differs from all
  // captured values.
  ObjectId read_fresh(ObjectId s);
  std::vector<Step> take_name(ObjectId s, PlanNameId name);
  // Finds states that serve in place of `s` for the later names of a chain: behind a later name, these states
  // lead to the same states as `s` does. Removes these names from `names`, the names on offer, and returns
  // the states.
  std::vector<ObjectId> later(ObjectId s, Bits& names);
  // Returns the ways to write a member with a key of the class. `text` is the key, or null if it is not
  // known. `fresh` says that an unknown key differs from all others.
  std::vector<Step> take_free(ObjectId s, KeyClassId cls, const std::string* text, bool fresh = false);
  // Returns the keys of a class that may still be written, without the plan's names and the written keys.
  RegexId free_language(ObjectId s, KeyClassId cls);
  RegexId free_texts(ObjectId s, KeyClassId cls, Texts& texts);
  // Returns the greatest number of free keys in any object so far.
  std::size_t most_written() const { return most_written_; }
  // Returns a lower bound of the number of keys in free_language(); kEndless if there are infinitely many.
  uint64_t free_keys(ObjectId s, KeyClassId cls) const;
  std::size_t byte_size() const;

 private:
  // The keys that can no longer be written: a bit for each name, and for each class the count of its written
  // keys.
  struct Gone {
    Bits names, taken;
  };
  // The conditions on the members behind a written key. The conjuncts of `parts` that are not in `touched`
  // stay as they are, because the key does not concern them. `changed` is the conjunction of the derivatives
  // of all conjuncts in `touched`.
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
  bool repeats(const Plan& plan, TypedId p, KeyClassId cls, ValueId start, ValueId value, TypedId fewer);
  bool names_alike(const Plan& plan, const Parts& parts, PlanNameId name, std::vector<ValueId>& values);
  bool take_alike(PlanId plan, TypedId& p, Gone& gone, TypedId literal, bool& dead);
  bool search_literal(PlanId plan, TypedId p, TypedId literal, const Gone& gone);
  bool some_member(PlanId plan, TypedId p, TypedId literal, const Gone& gone,
                   const std::function<bool(TypedId, const Gone&)>& then);
  bool possible(PlanId plan, const Left& left, const Gone& gone);
  Solver::Judges judges(PlanId plan_id, Solver::Judge productive);
  bool may_write(ObjectId s, const Parts& parts, PlanNameId name, const Bits& next);
  Bits after(const Plan& plan, const Bits& used, PlanNameId name) const;
  ObjectId intern(const ObjectState& s);
  ObjectId with_outside(ObjectId s, CapturedId set);
  std::vector<Step> apart(CapturedId set, std::string_view name, std::vector<Step> steps);
  std::vector<std::string> refused_keys(ObjectId s, KeyClassId cls);
  BitsId intern_bits(const Bits& b);
  WrittenId write_key(WrittenId written, const std::string& text);
  const std::vector<Cell>& name_cells(ObjectId s, PlanNameId name);
  // Returns the cells of a name; with `first`, at most one cell.
  std::vector<Cell> split_name(ObjectId s, PlanNameId name, bool first);
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
  // The literal tables of each set of written keys. The sizes of the tables double from the last table to the
  // first, so that all sets of a text with n keys take n log n memory.
  std::vector<std::vector<uint32_t>> written_{{}};
  InternTable written_index_;
  std::size_t most_written_ = 0;
  std::unordered_map<uint64_t, std::vector<Cell>> cells_;
  std::unordered_map<Situation, uint8_t, SituationHash> productive_;
  struct Known {
    // What searches have proved: an object needs at least `not_within` members, and `within` members suffice.
    uint32_t not_within = 0, within = kFar;
  };
  std::unordered_map<Situation, Known, SituationHash> within_;
  std::unordered_map<Situation, uint32_t, SituationHash> distance_;
  uint32_t nearest_steps_ = 0;
  uint32_t depth_ = 0;
};

}  // namespace structgen
