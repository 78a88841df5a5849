// Sorted lists without duplicates: the form in which the core keeps small sets.
//
// In: any list. Out: the list, sorted, each value once. Cost: n log n comparisons, n - 1 if the
// list is in order already.
#pragma once

#include <algorithm>
#include <vector>

namespace structgen {

template <class T>
void sort_unique(std::vector<T>& list) {
  const auto out_of_order = [](const T& x, const T& y) { return !(x < y); };
  if (std::adjacent_find(list.begin(), list.end(), out_of_order) == list.end()) return;
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
}

}  // namespace structgen
