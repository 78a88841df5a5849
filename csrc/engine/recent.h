// Grammars in the order in which they were last asked for.
//
// In: grammars that are made and asked for. Out: the grammar that was asked for longest ago. Cost: a hash
// look-up. mask/cache_policy.h decides how many stay. The owner's lock must be held.
#pragma once

#include <list>
#include <memory>
#include <unordered_map>

namespace structgen {

class Grammar;

class Recent {
 public:
  std::size_t size() const { return order_.size(); }
  void add(std::shared_ptr<Grammar> grammar) {
    if (touch(*grammar)) return;
    order_.push_back(std::move(grammar));
    try {
      places_.emplace(order_.back().get(), std::prev(order_.end()));
    } catch (...) {
      order_.pop_back();
      throw;
    }
  }
  bool touch(const Grammar& grammar) {
    const auto found = places_.find(&grammar);
    if (found == places_.end()) return false;
    order_.splice(order_.end(), order_, found->second);
    return true;
  }
  const std::shared_ptr<Grammar>& oldest() const { return order_.front(); }
  void remove(const Grammar& grammar) {
    const auto found = places_.find(&grammar);
    if (found == places_.end()) return;
    const auto place = found->second;
    places_.erase(found);
    order_.erase(place);
  }

 private:
  // The grammars from the oldest to the newest. The oldest is dropped first.
  std::list<std::shared_ptr<Grammar>> order_;
  std::unordered_map<const Grammar*, std::list<std::shared_ptr<Grammar>>::iterator> places_;
};

}  // namespace structgen
