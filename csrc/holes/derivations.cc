#include "holes/derivations.h"

#include <algorithm>
#include <unordered_set>

namespace structgen {

namespace {
// A text has at most this many bytes, and a limited number of leaves; otherwise write() returns false.
constexpr std::size_t kMostBytes = 1u << 20;
// write() tries at most this many texts for one leaf.
constexpr std::size_t kMostVaried = 4096;
}  // namespace

RegexId Derivations::captured(Id d, Path::Spot from, Path::Spot to) const {
  if (d == kNone) return RegexArena::poison();
  const Node& last = nodes_[nodes_[d].right == kNone ? d : nodes_[d].right];
  const bool whole = last.captured && last.stretch.from == from && last.stretch.to == to;
  return whole ? last.stretch.regex : RegexArena::poison();
}

// Collects the leaves of a tree, depth first. Returns false if there are too many.
bool Derivations::collect(Id top, Leaves& out) const {
  std::vector<Id> todo;
  // An open item is complete once `todo` has shrunk to this size: all leaves of the item have then been
  // collected.
  std::vector<std::size_t> open;
  if (top != kNone) todo.push_back(top);
  while (!todo.empty()) {
    const Node& n = nodes_[todo.back()];
    if (n.is_item()) {
      if (open.empty()) out.items.emplace_back(out.all.size(), 0);
      open.push_back(todo.size() - 1);
      todo.back() = n.left;
    } else if (n.is_leaf()) {
      out.all.push_back(todo.back());
      todo.pop_back();
      if (out.all.size() > kMostBytes) return false;
      while (!open.empty() && open.back() == todo.size()) {
        open.pop_back();
        if (open.empty()) out.items.back().second = out.all.size();
      }
    } else {
      todo.back() = n.right;
      todo.push_back(n.left);
    }
  }
  return true;
}

bool Derivations::write(Id top, bool vary, std::string& out, std::vector<std::string>* items) {
  Leaves leaves;
  if (!collect(top, leaves)) return false;
  const Path& path = stretches_.path();
  std::unordered_set<std::string> used;
  // A fixed text of the path counts as used: a varied text must differ from the items that stand beside the
  // hole.
  for (Id l : leaves.all)
    if (const Stretch& s = nodes_[l].stretch; path.fixed(s.from, s.to)) used.insert(path.text(s.from, s.to));
  std::vector<std::size_t> ends{0};
  for (Id l : leaves.all) {
    const Stretch& s = nodes_[l].stretch;
    if (path.fixed(s.from, s.to)) {
      out += path.text(s.from, s.to);
    } else {
      const bool apart = vary || nodes_[l].captured;
      const std::string* text = &stretches_.shortest(s);
      std::vector<std::string> some;
      if (apart && used.contains(*text)) {
        stretches_.texts(s.regex, s.from, s.to, std::min(kMostVaried, used.size() + 2), some, s.label);
        for (const std::string& other : some) {
          text = &other;
          if (!used.contains(other)) break;
        }
      }
      if (text->empty()) return false;
      if (apart) used.insert(*text);
      out += *text;
    }
    if (out.size() > kMostBytes) return false;
    ends.push_back(out.size());
  }
  if (items)
    for (const auto& [first, last] : leaves.items)
      items->push_back(out.substr(ends[first], ends[last] - ends[first]));
  return true;
}

}  // namespace structgen
