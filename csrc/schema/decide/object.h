// Objects: the states between two members, and whether any object satisfies a formula.
//
// In: formulas of objects. Out: interned states (what is left to satisfy, which names are used, which free
// keys were written), and the cells of a state for one name or one class of keys. Cost: a plan without a rest
// (schema/decide/plan.h; nearly every real schema) is answered from bitsets. In other plans a name costs a
// step for each conjunct that mentions the name.
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

// The number of the state of an object that is being written: an index of Objects::states_.
using ObjectId = Id<struct ObjectTag>;
// The number of a set of names of a plan, or of a count for each class: an index of Objects::bits_.
using BitsId = Id<struct BitsTag>;
using WrittenId = Id<struct WrittenTag>;

// An object behind some of its members. Equal states have one id, so equal parse states stay equal.
struct ObjectState {
  PlanId plan;
  // The conditions on the members to come, without those that the plan keeps by name (Plan::required,
  // Plan::value).
  TypedId rest;
  // The names that were written, or passed over because of the order of keys.
  BitsId used;
  // The number of written keys of each class; counted only if some class has finitely many keys.
  BitsId taken;
  // The free keys that were written and whose texts the state knows.
  WrittenId written;
  // Tells that a free key was written whose text is not known here. Masks are made so: they walk through the
  // keys of a class without their texts (mask/fill.h).
  bool unknown_key = false;
  // The captured values that the object must differ from, each without the members that were written
  // (schema/decide/captured.h).
  CapturedId outside;
  friend bool operator==(const ObjectState&, const ObjectState&) = default;
};

struct Offers {
  Bits names;
  // The classes with a key that may come next.
  std::vector<KeyClassId> classes;
  bool close = false;
  bool any_key() const {
    return !classes.empty() || std::ranges::any_of(names, [](uint64_t w) { return w != 0; });
  }
};

// The key of the memos about objects: a plan, a formula that is still to be met, and the keys that can no
// longer be written. Keys are compared in full, because a memo keyed by a hash alone once gave one plan the
// answer of another.
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
  // Returns the members that may come next. Only keys with which the object can still be completed are
  // offered.
  const Offers& offers(ObjectId s);
  Plan& plan_of(ObjectId s) { return plans_[states_[s.v].plan]; }
  const Bits& used(ObjectId s) const { return bits_[states_[s.v].used.v]; }
  ValueId class_value(ObjectId s, KeyClassId cls) { return plans_.class_value(plan_of(s), cls); }
  // Stands for a distance (a number of members to the end) that was not found. The functions from here to
  // useful() serve the search for a shortest completion (nearest.cc).
  static constexpr uint32_t kFar = 0xFFFFFFFFu;
  // Returns the least number of members behind which the object may close, whatever their order, or kFar if
  // the limit of steps does not suffice to find it.
  uint32_t members_needed(ObjectId s);
  // Returns some of the offers that bring the object one member nearer to its end, and among them one that
  // begins a shortest completion.
  Offers useful(ObjectId s);
  // A way to write a name or a key of a class: the formula of the value, and the state behind the member.
  struct Step {
    ValueId value;
    ObjectId next;
    // Tells that the text of the value decides what may follow, so that the parser captures the text and
    // passes it to read().
    bool capture = false;
  };
  // Returns the state behind a member whose value was captured; `value` is the canonical text of the value.
  ObjectId read(ObjectId s, std::string_view name, const std::string& value);
  // Returns the values that the member `name` has in the captured values that the object must not equal.
  CapturedId values_of(ObjectId s, std::string_view name);
  // Returns the state behind a member with a value that no captured value has, so that the object differs
  // from all of them.
  ObjectId read_fresh(ObjectId s);
  std::vector<Step> take_name(ObjectId s, PlanNameId name);
  // Finds states that can stand for `s` once some name on offer was passed over: behind the later names of
  // its chain they lead where `s` leads. Removes these later names from `names`, the names on offer, and
  // returns the states.
  std::vector<ObjectId> later(ObjectId s, Bits& names);
  // Returns the ways to write a key of a class. `text` is null if the key is not known. `fresh` says that an
  // unknown key differs from every other key.
  std::vector<Step> take_free(ObjectId s, KeyClassId cls, const std::string* text, bool fresh = false);
  // Returns the keys of a class that may still be written: without the names of the plan and the written
  // keys.
  RegexId free_language(ObjectId s, KeyClassId cls);
  // Returns the keys of free_language() as plain texts, without a closing quote.
  RegexId free_texts(ObjectId s, KeyClassId cls, Texts& texts);
  // Returns the largest number of free keys that a state of any object holds.
  std::size_t most_written() const { return most_written_; }
  // Returns a lower bound of the number of keys in free_language(); kEndless if they are infinitely many.
  uint64_t free_keys(ObjectId s, KeyClassId cls) const;
  std::size_t byte_size() const;

 private:
  // The keys that can no longer be written: a bit for each name, a count of written keys for each class.
  struct Gone {
    Bits names, taken;
  };
  // The conditions behind one written key. The conjuncts `parts` without `touched` do not depend on the key
  // and stay as they are. `changed` is the conjunction of what the touched conjuncts became.
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
  // Returns the cells of a name; with `first`, at most one of them.
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
  // The literal tables of each set of written keys. Their sizes double, so n keys take n log n memory in all.
  std::vector<std::vector<uint32_t>> written_{{}};
  InternTable written_index_;
  std::size_t most_written_ = 0;
  std::unordered_map<uint64_t, std::vector<Cell>> cells_;
  std::unordered_map<Situation, uint8_t, SituationHash> productive_;
  struct Known {
    // What searches have proved about the number of members that an object needs: fewer than `not_within` do
    // not suffice, and `within` suffice.
    uint32_t not_within = 0, within = kFar;
  };
  std::unordered_map<Situation, Known, SituationHash> within_;
  std::unordered_map<Situation, uint32_t, SituationHash> distance_;
  uint32_t nearest_steps_ = 0;
  uint32_t depth_ = 0;
};

}  // namespace structgen
