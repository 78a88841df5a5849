// Matches groups of items with different values (Kuhn's algorithm; a group asks for several values).
//
// In: groups: a number of items, and the values that each of these items may have. Out: whether all items can
// get different values, and the values that every matching uses. Cost: a greedy pass, then for each item that
// is left over one search for an augmenting path, which is linear in the lists of values.
//
//     one item of {1, 2}, one item of {1}     greedy gives 1 to the first item; the second item asks for 1,
//                                             and the path moves the first item to 2
//                                             every matching uses 1 and 2: as many items as values
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.h"

namespace structgen {

class Matching {
 public:
  // The search pays for its steps by calling `spend`, which may throw.
  explicit Matching(std::function<void(uint32_t)> spend) : spend_(std::move(spend)) {}
  // Adds a group of `count` items. Each item takes one of `values`, and no two items of all groups take the
  // same value. Returns false if there are fewer values than items.
  bool add(uint32_t count, const std::vector<std::string>& values);
  // Matches all groups. Returns false if there is no matching.
  bool complete();
  // Returns the values that every matching uses, after complete() has returned true.
  std::vector<std::string> needed() const;

 private:
  using GroupId = Id<struct GroupTag>;
  using ScarceId = Id<struct ScarceTag>;
  static constexpr GroupId kFree{0xFFFFFFFFu};
  struct Group {
    uint32_t count;
    std::vector<ScarceId> values;
  };
  bool augment(GroupId start);

  std::function<void(uint32_t)> spend_;
  std::vector<Group> groups_;
  std::vector<std::string> texts_;
  std::map<std::string, ScarceId> index_;
  std::vector<GroupId> owner_;
  std::vector<uint32_t> seen_;
  uint32_t round_ = 0;
};

}  // namespace structgen
