// Undo: an action on the way out of a scope if something throws.
//
// In: a function that throws nothing. Out: it is called at the end of the scope, unless keep() was
// called. Cost: none. It is for marks of work under way that would be believed later: an open search, a
// half-made row. numbered(): a list with an index, which grow together. remember(): a value that is kept once
// it is made.
#pragma once

#include <cstdint>
#include <utility>

namespace structgen {

template <class F>
class Undo {
 public:
  explicit Undo(F undo) : undo_(std::move(undo)) {}
  ~Undo() {
    if (!kept_) undo_();
  }
  Undo(const Undo&) = delete;
  Undo& operator=(const Undo&) = delete;
  void keep() { kept_ = true; }

 private:
  F undo_;
  bool kept_ = false;
};

// Returns the value of a key. For a new key make() computes it, and may add other entries. If make() throws,
// no entry is added.
template <class Map, class Make>
const typename Map::mapped_type& remember(Map& map, const typename Map::key_type& key, Make&& make) {
  if (const auto it = map.find(key); it != map.end()) return it->second;
  return map.emplace(key, make()).first->second;
}

// Returns the index of a value in `list`. `index` finds it by its key. A new value is added to both; if this
// throws, to neither.
template <class Index, class List, class Value>
auto numbered(Index& index, List& list, const typename Index::key_type& key, Value&& value) {
  if (const auto it = index.find(key); it != index.end()) return it->second;
  const typename Index::mapped_type number{static_cast<uint32_t>(list.size())};
  list.push_back(std::forward<Value>(value));
  Undo undo([&] { list.pop_back(); });
  index.emplace(key, number);
  undo.keep();
  return number;
}

}  // namespace structgen
