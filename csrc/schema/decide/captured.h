// Captured values: the items of an array with uniqueItems that were read, from which later items must differ.
// This file has sets of captured values. It answers which values of a set an object or array that is being
// written can still equal, and makes the formula "none of the values of the set".
//
// In: canonical texts of values. Out: a number for each set, and formulas. Two sets have one number if they
// have the same values, read in the same order. Cost: a set of n values has log n chunks, and a value is
// merged into a larger chunk log n times.
//
// The problem. The next item must differ from every captured item. For strings and numbers this condition is
// a formula over constants. Objects and arrays are written part by part. A formula for them would have a
// branch for each captured value, and the number of cells (schema/decide/solve.h) of a member would grow with
// the square of the number of captured values.
//
// The idea. A captured value that differs from some written member no longer matters. So the state of an
// object holds only the captured values that agree with all written members, each without these members
// (`behind`). With {"a":1,"b":2} and {"a":3,"b":2} captured,
//
//     {               both matter
//     {"a":1,         behind("a", 1): {"b":2} is left of the first
//     {"a":1,"b":2    behind("b", 2): {} is left, so the object may not close
//
// A value of a member is refused before its first byte if every object that can follow it is a captured
// value. In the example only the closing bracket can come behind "b", so the only rest is {}. The value 2 of
// "b" is `covered`: with every possible rest it makes a captured value.
//
// Invariants.
// - Two values are equal in JSON exactly if canonical() gives them one text: keys sorted, numbers as
//   digits and exponent, strings in one spelling.
// - A set is a list of chunks whose sizes double. A chunk is a sorted list of numbers of values. A set also
//   names the smaller set from which it was made by adding one value (List::before). A question about a set
//   continues from the answer for the smaller set.
//
// Rejected. One formula over all values, as for strings: a token took 6 to 9 ms from the first objects on,
// and after 150 objects there was no answer.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/flat_map.h"
#include "base/intern.h"
#include "schema/formula/formula.h"
#include "schema/read/json.h"

namespace structgen {

class Lowering;

// The number of a set of captured values. Set 0 is empty.
using CapturedId = Id<struct CapturedTag>;

class Captured {
 public:
  // Stands for the first item of an array where a question names the member of an object.
  static constexpr std::string_view kFirstItem = "";

  Captured(FormulaSpace& formulas, Lowering& lowering) : formulas_(formulas), lowering_(lowering) {}

  // Returns the text that all spellings of a value have: {"a":"A","b":1e0} for {"b": 1.0, "a": "\u0041"}.
  static std::string canonical(std::string_view json);
  static std::string object(const std::map<std::string, std::string>& members);
  static std::string key(std::string_view name);

  CapturedId add(CapturedId set, const std::string& value);
  CapturedId join(CapturedId a, CapturedId b);
  bool contains(CapturedId set, const std::string& value) const;
  uint32_t size(CapturedId set) const;
  // Tells whether some object of the set has the member `part`; for kFirstItem, whether some array has an
  // item.
  bool has(CapturedId set, std::string_view part) const;
  // Returns the names of all members of the set's objects, and kFirstItem if some array has an item.
  std::vector<std::string> keys(CapturedId set) const;
  std::vector<std::string> first_items(CapturedId set) const;
  // Takes the values of the set whose member `part` is `value`, and returns them without this member. For
  // kFirstItem it takes arrays with this first item, and returns them without it.
  CapturedId behind(CapturedId set, std::string_view part, const std::string& value);
  std::vector<std::string> texts(CapturedId set) const;
  // Returns the values that the member `part` must not get, because every object with such a value would be a
  // captured value. Each text of `rests` is an object with all other members that may still be written. A
  // value v is returned if for every such object, adding `part`: v makes a value of the set. Without `rests`,
  // all values that `part` has in the set are returned.
  CapturedId covered(CapturedId set, std::string_view part, const std::vector<std::string>& rests);

  // member() is the formula "one of the set's values", outside() the formula "none of them".
  ValueId member(CapturedId set);
  ValueId outside(CapturedId set);
  std::size_t byte_size() const { return held_ + value_index_.byte_size() + list_index_.byte_size(); }

 private:
  using ValueNumber = Id<struct CapturedValueTag>;
  using ChunkId = Id<struct ChunkTag>;
  using Values = std::vector<ValueNumber>;
  struct Value {
    std::string text;
    // The members of an object; or the items of an array, each under the name kFirstItem.
    std::vector<std::pair<std::string, std::string>> parts;
  };
  struct Chunk {
    Values values;
    std::vector<std::string> parts;
    // The formula of those values that are strings, numbers or constants.
    ValueId simple;
    bool arrays = false, objects = false;
  };
  struct List {
    std::vector<ChunkId> chunks;
    // The set is the set `before` with the value `last` added.
    CapturedId before;
    ValueNumber last;
  };

  CapturedId add(CapturedId set, ValueNumber value);
  ChunkId chunk(Values values);
  bool contains(CapturedId set, ValueNumber value) const;
  ValueNumber intern(const std::string& text);
  bool find(const std::string& text, ValueNumber& out) const;
  static bool composite(const std::string& text) { return text[0] == '{' || text[0] == '['; }
  // Returns the value of an object's member `name`, or of an array's first item; null if there is none.
  const std::string* part(ValueNumber value, std::string_view name) const;
  // without() returns the value without the member `name`. with() returns the object `rest` with this member
  // added.
  std::string without(ValueNumber value, std::string_view name) const;
  std::string with(const std::string& rest, std::string_view name, const std::string& value) const;
  ValueId formula(const std::vector<std::string>& texts);

  FormulaSpace& formulas_;
  Lowering& lowering_;
  std::vector<Value> values_;
  InternTable value_index_;
  // Finds the values with a given member, by the member's name, a line break and its value.
  std::unordered_map<std::string, Values> having_;
  std::vector<Chunk> chunks_;
  InternTable chunk_index_;
  std::vector<List> lists_{1};
  InternTable list_index_;
  std::map<std::pair<CapturedId, std::string>, CapturedId> behind_, covered_;
  // An estimate of the bytes that the sets take.
  std::size_t held_ = 0;
};

}  // namespace structgen
