// Undo: an action on the way out of a scope if something throws.
//
// In: a function that throws nothing. Out: it is called at the end of the scope, unless keep() was
// called. Cost: none. It is for marks of work under way that would be believed later: an open search, a
// half-made row. numbered(): a list with an index, which grow together.
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

// The number of a value in a list, by its key in an index of the list. Both get a new entry, or
// neither.
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
