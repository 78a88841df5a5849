// Domains: the list of all values of a formula, where a formula has few values.
//
// In: a formula of values, or a state of an object. Out: the values as canonical texts (captured.h), or the
// fact that there are at least `cap` values (`abundant`). A list of values is asked for only where values can
// run out; an item with more values than the array can use always finds a value. Cost: an enumeration for
// each formula and cap, whose result is kept. The cap is rounded up to a power of two, so that the domains of
// an array of n items are made log n times.
//
//     {"enum": [1, 2]}        1, 2
//     {"type": "integer"}     abundant: the values 0, 1, 2 ... reach every cap
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/flat_map.h"
#include "schema/decide/captured.h"
#include "schema/decide/solve.h"
#include "schema/formula/formula.h"

namespace structgen {

struct Domain {
  // True if there are at least `cap` values; `values` is then empty.
  bool abundant = false;
  uint32_t cap = 0;
  // The canonical texts of all values, sorted.
  std::vector<std::string> values;
};

class Domains {
 public:
  explicit Domains(Solver& solver) : solver_(solver), captured_(solver.captured()) {}

  // Returns the values of a formula. The reference is valid up to the next question.
  const Domain& of(ValueId value, uint32_t cap);
  const Domain& arrays(TypedId p, uint32_t cap) { return of(only(Kind::kArray, p), cap); }
  // Returns what may still be written of an object: each possible set of further members, written as an
  // object.
  const Domain& left(ObjectId state, uint32_t cap);
  // Tells whether some value of the formula is not in the set.
  bool some_outside(ValueId value, CapturedId set);
  bool some_outside(Kind kind, TypedId p, CapturedId set);
  // Returns the condition on the value of the member `key` under which the object can still become an object
  // outside the set. `next` is the state behind the member.
  ValueId apart(CapturedId set, std::string_view key, ObjectId next);
  // Writes every value of a formula. Returns false if there are `most` values or more, or if counting them
  // takes too much work.
  bool few(ValueId value, uint32_t most, std::vector<std::string>& out);
  std::size_t byte_size() const { return held_; }

 private:
  template <class Index, class F>
  const Domain& listed(Index& index, typename Index::key_type key, uint32_t cap, F&& enumerate);
  void enumerate(ValueId value, uint32_t cap, Domain& out);
  void enumerate_array(TypedId p, uint32_t cap, Domain& out);
  void enumerate_object(ObjectId start, uint32_t cap, Domain& out);
  ValueId only(Kind kind, TypedId p);
  RegexId plain_numbers();

  Solver& solver_;
  Captured& captured_;
  std::unordered_map<ValueId, Domain> domains_;
  std::unordered_map<ObjectId, Domain> left_;
  // The formulas whose values are being listed.
  FlatMap<uint32_t, bool> open_;
  RegexId plain_numbers_{};
  // An estimate of the bytes that the values take.
  std::size_t held_ = 0;
};

}  // namespace structgen
