// Derivations: how a place was reached, as a tree whose leaves are stretches; and the text of such a tree.
//
// In: stretches (holes/stretches.h), and pairs of derivations that stand one behind the other. Out: a number
// for each tree, and the text along its leaves. Cost: a node for each join; write() goes once over the
// leaves.
// Example: `[1,` HOLE `]` in a grammar of arrays. One tree joins the leaves `[`, `1`, `,`, a number in the
// hole, and `]`; its text is `[1,0]`.
//
// A grammar may ask that parts of a text differ: keys of an object, or items of uniqueItems. So the leaf of a
// captured text is written differently from all other leaves; with `vary` every leaf in a hole is, as long as
// it has further texts. Two items may be equal nevertheless, so a parser reads the result.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "holes/stretches.h"

namespace structgen {

class Derivations {
 public:
  using Id = uint32_t;
  // The derivation of the empty text. Where a function may fail, it means "no derivation".
  static constexpr Id kNone = 0xFFFFFFFFu;

  explicit Derivations(Stretches& stretches) : stretches_(stretches) {}
  // Returns a derivation of one stretch. `captured` says that the stretch is the whole text of a capture.
  Id leaf(const Stretch& s, bool captured) { return add({kNone, kNone, s.length, captured, s}); }
  Id joined(Id a, Id b) {
    if (a == kNone || b == kNone) return a == kNone ? b : a;
    return add({a, b, length(a) + length(b), false, {}});
  }
  // Returns the derivation `of`, marked as an item that is compared with other items.
  Id item(Id of) { return add({of, kNone, length(of), false, {}}); }
  // Returns the number of bytes of the derivation's text. If a part of the text lies in a hole, the number is
  // a lower bound.
  uint32_t length(Id d) const { return d == kNone ? 0 : nodes_[d].length; }
  // If the last leaf is a captured text from `from` to `to`, returns the leaf's regex; otherwise poison.
  RegexId captured(Id d, Path::Spot from, Path::Spot to) const;
  // Appends the text of a derivation to `out`. Appends to `items` the texts of those items that lie in no
  // other item. With `vary`, each leaf in a hole gets another text where it has several, so that items
  // differ. Returns false if the text is too long.
  bool write(Id top, bool vary, std::string& out, std::vector<std::string>* items);
  std::size_t byte_size() const { return nodes_.capacity() * sizeof(Node); }

 private:
  // A leaf (`left` and `right` are kNone), an item around `left` (`right` is kNone), or `left` followed by
  // `right`.
  struct Node {
    Id left, right;
    uint32_t length;
    bool captured;
    Stretch stretch;
    bool is_leaf() const { return left == kNone; }
    bool is_item() const { return left != kNone && right == kNone; }
  };
  // The leaves of a derivation from left to right. A pair of numbers for each outermost item says which of
  // them are its own.
  struct Leaves {
    std::vector<Id> all;
    std::vector<std::pair<std::size_t, std::size_t>> items;
  };
  Id add(const Node& n) {
    nodes_.push_back(n);
    return static_cast<Id>(nodes_.size() - 1);
  }
  bool collect(Id top, Leaves& out) const;

  Stretches& stretches_;
  std::vector<Node> nodes_;
};

}  // namespace structgen
