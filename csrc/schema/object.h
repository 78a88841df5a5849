// Objects: key classes of a formula, order of keys, states between two members.
//
// In: typed object formulas. Out: plans (what is known once per object: names, order, key classes) and
// states (what is left, which names are used, which free keys were written), each interned; the cells of a
// state for one name or one class of keys. Cost: a *pure* plan (a conjunction of "every member named k
// satisfies V" and "k is required", nearly every real schema) answers from bitsets; other plans derive the
// formula name by name.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/intern.h"
#include "schema/solve.h"

namespace structgen {

using Bits = std::vector<uint64_t>;
inline bool has_bit(const Bits& b, uint32_t i) { return (b[i >> 6] >> (i & 63)) & 1; }
inline void add_bit(Bits& b, uint32_t i) { b[i >> 6] |= 1ull << (i & 63); }

// Keys outside the known names that no region tells apart.
struct KeyClass {
  RegexId language;        // body and closing quote; known names not yet excluded
  std::vector<bool> in;    // by language leaf
  uint32_t keys = kUnbounded;  // at least so many: a mask need not know the last one while fewer were written
};

struct Plan {
  FormulaId formula;                 // without kOrder
  std::vector<NameId> names;         // sorted by text, as the literal table is
  std::vector<std::string> texts;
  uint32_t table = 0;                // literal table of the names, label = index
  std::vector<std::vector<uint32_t>> chains;  // names whose mutual order is fixed
  std::vector<uint32_t> chain_of;    // per name; kNoChain
  std::vector<uint32_t> position;    // per name, in its chain
  std::vector<uint32_t> leaves;      // value formulas of language regions
  std::vector<KeyClass> classes;
  bool classes_known = false;
  bool pure = false;
  // pure plans
  Bits required;
  std::vector<FormulaId> value;      // per name
  std::vector<uint8_t> ok;           // per name: 0 unknown, 1 no, 2 yes
  std::vector<FormulaId> class_value;
};
constexpr uint32_t kNoChain = 0xFFFFFFFFu;

struct ObjectState {
  uint32_t plan = 0;
  FormulaId rest;        // pure plans keep the start formula here
  uint32_t used = 0;     // index of a bitset over the plan's names: written or passed over
  uint32_t written = 0;  // index of a set of free keys already written
  bool unknown_key = false;  // a free key was written whose text this state does not know
  friend bool operator==(const ObjectState&, const ObjectState&) = default;
};

struct Offers {
  Bits names;                     // names that may come next
  std::vector<uint32_t> classes;  // classes that may come next
  bool close = false;
};

// What is still asked of an object, in one plan with these names used: the key of what is remembered of it. Compared
// in full: a memo keyed by a hash alone once gave one plan's answer for another's.
struct Situation {
  uint32_t plan = 0;
  FormulaId rest;
  uint32_t used = 0;  // index of a bitset over the plan's names
  friend bool operator==(const Situation&, const Situation&) = default;
};
struct SituationHash {
  std::size_t operator()(const Situation& s) const { return mix(mix(mix(7, s.plan), s.rest.v), s.used); }
};

class Objects {
 public:
  explicit Objects(Solver& solver);

  bool productive(FormulaId p);             // does any object satisfy p?
  uint32_t start(FormulaId p);              // the state after '{'
  const ObjectState& state(uint32_t s) const { return states_[s]; }
  const Plan& plan(uint32_t p) const { return *plans_[p]; }
  const Offers& offers(uint32_t s);
  // ---- nearest.cc: what the shortest completion goes by ----
  static constexpr uint32_t kFar = 0xFFFFFFFFu;
  // The least number of members after which the object may close, their order aside; kFar: not found cheaply.
  uint32_t members_needed(uint32_t s);
  // Of the offers, some that bring the object one member nearer to its end, a shortest way among them.
  Offers useful(uint32_t s);
  // Ways to write name `i` (or a key of class `c` with this text) next: (value, state after).
  struct Step {
    FormulaId value;
    uint32_t next;
  };
  std::vector<Step> take_name(uint32_t s, uint32_t name);
  std::vector<Step> take_free(uint32_t s, uint32_t cls, const std::string* text);
  // Whether the class has keys left whatever the next one is.
  bool surely_more(uint32_t s, uint32_t cls) const;
  // Keys of the class that may still be written: known names and written keys excluded.
  RegexId free_language(uint32_t s, uint32_t cls);
  std::size_t byte_size() const;

 private:
  uint32_t plan_of(FormulaId p);
  void collect(FormulaId f, std::vector<NameId>& names, std::vector<uint32_t>& maps, std::vector<uint32_t>& leaves,
               std::unordered_map<uint32_t, bool>& seen);
  void collect_region(RegionId r, std::vector<NameId>& names, std::vector<uint32_t>& leaves);
  FormulaId strip_order(FormulaId f);
  void order_names(Plan& plan, const std::vector<uint32_t>& maps);
  void find_classes(Plan& plan);
  void expand_finite(Plan& plan);
  bool make_pure(Plan& plan);
  FormulaId pure_value(const Plan& plan, uint32_t name, uint32_t cls);
  bool name_ok(Plan& plan, uint32_t name);
  bool hits(const Plan& plan, RegionId r, uint32_t name, uint32_t cls);
  FormulaId derive(const Plan& plan, FormulaId p, uint32_t name, uint32_t cls, std::unordered_map<uint64_t, FormulaId>& memo);
  FormulaId forget_names(const Plan& plan, FormulaId p, const Bits& gone, std::unordered_map<uint32_t, FormulaId>& memo);
  Offers wanted_offers(uint32_t s);
  void wanted(FormulaId p, std::unordered_set<uint32_t>& seen, std::vector<RegionId>& out);
  uint32_t least_members(FormulaId p) const;
  uint32_t distance(uint32_t plan, FormulaId p, const Bits& used);
  bool within(uint32_t plan, FormulaId p, const Bits& used, uint32_t n);
  bool within_literal(uint32_t plan, FormulaId p, FormulaId literal, const Bits& used, uint32_t n);
  bool search(uint32_t plan, FormulaId p, const Bits& used);
  bool search_literal(uint32_t plan, FormulaId p, FormulaId literal, const Bits& used);
  Bits after(const Plan& plan, const Bits& used, uint32_t name) const;
  uint32_t intern(const ObjectState& s);
  uint32_t intern_bits(const Bits& b);
  uint32_t write_key(uint32_t written, const std::string& text);
  const std::vector<Cell>& name_cells(uint32_t s, uint32_t name);

  Solver& solver_;
  FormulaSpace& formulas_;
  std::vector<std::unique_ptr<Plan>> plans_;
  std::unordered_map<uint32_t, uint32_t> plan_index_;
  StableVector<ObjectState> states_;
  InternTable state_index_;
  std::vector<std::unique_ptr<Offers>> offers_;
  std::vector<Bits> bits_;
  InternTable bits_index_;
  // Sets of written keys: literal tables of doubling sizes, so that n keys cost n log n in all.
  std::vector<std::vector<uint32_t>> written_{{}};
  InternTable written_index_;
  std::unordered_map<uint64_t, std::vector<Cell>> cells_;
  std::unordered_map<uint64_t, uint8_t> region_names_;
  std::unordered_map<Situation, uint8_t, SituationHash> productive_;
  struct Known {
    uint32_t not_within = 0, within = kFar;  // fewer than the first never do, the second does
  };
  std::unordered_map<Situation, Known, SituationHash> within_;
  std::unordered_map<Situation, uint32_t, SituationHash> distance_;
  uint32_t nearest_steps_ = 0;
};

}  // namespace structgen
