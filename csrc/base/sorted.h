// Sorted lists without duplicates: the form in which this tree keeps small sets.
//
// In: any list. Out: the list, sorted, each value once. Cost: n log n comparisons.
#pragma once

#include <algorithm>
#include <vector>

namespace structgen {

template <class T>
void sort_unique(std::vector<T>& list) {
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
}

}  // namespace structgen
