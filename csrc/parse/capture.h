// Captured text as hash-consed lists: the bytes that were read since a capture began.
//
// In: start, or one more byte. Out: CaptureId (0: nothing is captured). Cost: one look-up per byte.
//
// Captures are part of a parse state only while a key or an item is read whose text the language depends on
// (duplicate keys, uniqueItems). Captures nest: the text of an inner capture belongs to the outer capture as
// well. While the key of `{"a": {"b` is read inside an item, there are two: `{"a": {"b` and `b`.
//
// One captured text on its way through the core. The schema asks for two items or more that differ:
// {"items": {"enum": [1, 12, "a"]}, "uniqueItems": true, "minItems": 2}. The text is `[12,`.
//
//     rule          An item is `capture`, the value, and a reader (schema/write/productions.cc).
//     parse state   While `12` is read, the state holds the capture `12`, so states differ by the text.
//     reader        Behind the item the reader is told `12` (Reading::kText). The reader gives the
//                   rest of the array, in which no item may be 12.
//     mask          A walk of 131,000 tokens would make a state for each text. So the mask's walk drops
//                   the text (blind states, mask/fill.h) and tells the reader kUnknown. The reader gives the
//                   alternatives that hold for every text, and poison for all others. A token that
//                   needs poison is read alone, with its text (MaskBuilder::accepts).
//     budget        Trials in budget/trial.cc do the same. A completion that was tried with one text
//                   may serve texts that do not occur in it (Trial::shareable()).
//     holes         A text with holes has no single captured text. If few texts are possible, each is
//                   tried; otherwise the reader is told that the text differs from all texts that it
//                   is compared with (Reading::kFresh, holes/facts.h).
//     lasting       Without minItems, and with items that never run out, nothing is captured: a table
//                   beside the state compares the items (schema/decide/lasting.cc, engine/distinct.h).
//
// Masks, budgets and holes rest on one assumption: a captured text matters only by being equal to other
// texts. A keyword that compares texts in another way, such as an order of items, would break this
// assumption.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "base/arena.h"
#include "base/ids.h"
#include "base/intern.h"

namespace structgen {

// All captured texts of one parser. Capture 0 means that no text is captured; capture 1 is unknown().
class CaptureArena {
 public:
  CaptureArena() {
    nodes_.emplace_back();
    nodes_.emplace_back();
  }
  // Returns the capture whose text is not known. In masks it stands for every text (mask/fill.h).
  static constexpr CaptureId unknown() { return CaptureId{1}; }
  // Returns a new capture, inside the capture `outer`, without text so far. Returns unknown() if `outer` is
  // unknown().
  CaptureId start(CaptureId outer) { return outer == unknown() ? outer : add(outer, kStart); }
  CaptureId append(CaptureId c, uint8_t byte) { return c.v <= 1 ? c : add(c, byte); }
  // Ends the innermost capture and returns its text. `outer` becomes the capture around it, to which this
  // text is appended.
  std::string finish(CaptureId c, CaptureId& outer) {
    std::string text;
    while (nodes_[c.v].byte != kStart) {
      text.push_back(static_cast<char>(nodes_[c.v].byte));
      c = CaptureId{nodes_[c.v].parent};
    }
    std::reverse(text.begin(), text.end());
    outer = CaptureId{nodes_[c.v].parent};
    if (outer.v != 0)
      for (char b : text) outer = append(outer, static_cast<uint8_t>(b));
    return text;
  }
  // Returns the text of the innermost capture. Sets `c` to the capture around it, as it was where the
  // innermost one began.
  std::string innermost(CaptureId& c) const {
    std::string text;
    for (; nodes_[c.v].byte != kStart; c = CaptureId{nodes_[c.v].parent})
      text.push_back(static_cast<char>(nodes_[c.v].byte));
    std::reverse(text.begin(), text.end());
    c = CaptureId{nodes_[c.v].parent};
    return text;
  }
  // Copies a capture of another CaptureArena into this one.
  CaptureId import(const CaptureArena& from, CaptureId c) {
    std::vector<uint32_t> bytes;
    for (; c.v > 1; c = CaptureId{from.nodes_[c.v].parent}) bytes.push_back(from.nodes_[c.v].byte);
    for (std::size_t i = bytes.size(); i-- > 0;) c = add(c, bytes[i]);
    return c;
  }
  std::size_t byte_size() const { return nodes_.byte_size() + index_.byte_size(); }

 private:
  // Stands in place of a byte where a capture begins.
  static constexpr uint32_t kStart = 256;
  // The last byte of a capture (or kStart where it begins), and the capture without this byte.
  struct Node {
    uint32_t parent = 0;
    uint32_t byte = 0;
  };
  CaptureId add(CaptureId parent, uint32_t byte) {
    return CaptureId{index_.find_or_add(
        mix(mix(3, parent.v), byte),
        [&](uint32_t i) { return nodes_[i].parent == parent.v && nodes_[i].byte == byte; },
        [&] { return nodes_.emplace_back(Node{parent.v, byte}); })};
  }
  StableVector<Node> nodes_;
  InternTable index_;
};

}  // namespace structgen
