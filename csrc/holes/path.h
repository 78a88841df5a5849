// A text with holes as a graph: fixed text is a chain of bytes, and a hole is a loop, a chain or a walk down
// the trie.
//
// In: parts, each a fixed text, any text, a range of bytes, or a number of tokens; or a regex that the whole
// text matches. Out: spots, numbered from 0, and the bytes that lead from one spot to another. Cost: a node
// for each byte of fixed text, and for each byte or token of a bounded hole. Spots inside tokens are made
// when a search reaches them.
//
//     of parts      spots are nodes in the order of the text. Behind them come those inside tokens, as they
//                   are met: a slot with a node of the trie. A byte leads to the next node or round a loop
//     of a regex    spots are derivatives of the regex, in the order in which they are met. fixed(), single()
//                   and loops() return false, so searches remember each pair that they meet
//
// Example, `ab` HOLE `c`: nodes 0 (byte a), 1 (byte b), 2 (enter: the hole may be empty), 3 (loop), 4
// (byte c), 5 (end).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/bitset.h"
#include "base/flat_map.h"
#include "mask/vocabulary.h"
#include "regex/regex.h"

namespace structgen {

// The answer to a question about texts with holes. kUnknown means that deciding took too much work, or that
// the answer depends on captured text.
enum class Verdict : int8_t { kNo = 0, kYes = 1, kUnknown = -1 };

struct Part {
  enum PartKind : uint8_t { kText, kAny, kBytes, kTokens } kind = kText;
  std::string text;
  // A hole kBytes has at least `lo` bytes; a hole kTokens has exactly `lo` tokens.
  uint64_t lo = 0;
  // A hole kBytes has at most `hi` bytes; kEndless stands for any number.
  uint64_t hi = 0;
  static constexpr uint64_t kEndless = ~uint64_t{0};
};

// A text with holes as a graph, whose nodes are called spots.
class Path {
 public:
  using Spot = uint32_t;
  // Throws kValue if the parts are too long. Holes of tokens need `vocabulary`.
  Path(const std::vector<Part>& parts, const Vocabulary* vocabulary);
  // With `bordered` the byte kEdge may stand where the regex ends, because the text of another grammar
  // follows there (GrammarTraits::bordered). Without `bordered` no byte kEdge can be read.
  Path(RegexArena& regexes, RegexId whole, bool bordered);
  // A path of parts has at most this many nodes; otherwise the constructor throws kValue.
  static constexpr std::size_t kMostNodes = 4u << 20;
  // Tells whether this is a path of a regex. Then state() returns the derivative for which a spot stands.
  bool of_regex() const { return regexes_ != nullptr; }
  RegexId state(Spot s) const { return states_[s]; }

  Spot first() const { return 0; }
  // Returns the spot in front of byte `at` of the part number `part`, which must be fixed text.
  Spot of_text(std::size_t part, std::size_t at) const { return begins_[part] + static_cast<Spot>(at); }
  Spot last() const { return static_cast<Spot>(nodes_.size() - 1); }
  // Calls f with the spot s, and with every spot that s reaches without a byte.
  template <class F>
  void for_each_here(Spot s, F&& f) const {
    for (;;) {
      f(s);
      // The spot lies inside a token. If some token ends at its trie node, the next slot may begin here.
      if (s >= nodes_.size()) {
        const Inside in = inside_[s - nodes_.size()];
        if (vocabulary_->trie().tokens(in.node).empty()) return;
        s = in.slot + 1;
        continue;
      }
      if (nodes_[s].kind == kLoop || nodes_[s].kind == kEnter)
        ++s;
      else if (nodes_[s].kind == kMaybe)
        s = nodes_[s].to;
      else
        return;
    }
  }
  // Tells whether the whole text may end at the spot.
  bool ends(Spot s) const {
    if (regexes_) return regexes_->nullable(states_[s]);
    bool out = false;
    for_each_here(s, [&](Spot at) { out = out || at == last(); });
    return out;
  }
  // Returns the bytes that may be read at this spot; next() tells where each leads.
  ByteSet bytes(Spot s) const;
  // Returns the spot behind byte b, which must be one of bytes(s).
  Spot next(Spot s, uint8_t b);
  // single() tells whether only one byte can be read at the spot; byte() returns this byte. loops() tells
  // whether every byte can be read and leads back to the spot.
  bool single(Spot s) const { return s < nodes_.size() && nodes_[s].kind == kByte; }
  uint8_t byte(Spot s) const { return nodes_[s].byte; }
  bool loops(Spot s) const { return s < nodes_.size() && nodes_[s].kind == kLoop; }
  // Returns a partition of the bytes: the bytes of a class all lead to one derivative of r and to one spot.
  // Returns null if each byte may lead to another spot.
  const ClassMap* alike(RegexArena& arena, RegexId r, Spot s) const {
    if (regexes_) return &arena.classes(r, states_[s]);
    return s < nodes_.size() && nodes_[s].kind < kSlot ? &arena.classes(r) : nullptr;
  }
  // Tells whether only fixed text follows the spot, at least one byte of it.
  bool text_behind(Spot s) const { return s + 1 < last() && holes_[s + 1] == holes_[last()]; }
  bool fixed(Spot u, Spot v) const {
    return !regexes_ && u <= v && v < nodes_.size() && holes_[u] == holes_[v] && !loops(v);
  }
  // Returns the one text that leads from u to v; fixed(u, v) must be true.
  std::string text(Spot u, Spot v) const;
  uint32_t nodes() const { return static_cast<uint32_t>(nodes_.size()); }
  std::size_t byte_size() const { return nodes_.size() * 16 + inside_.size() * 8 + index_.byte_size(); }

 private:
  enum NodeKind : uint8_t {
    kByte,  // reads one fixed byte
    kOne,   // reads any one byte
    // Stands before a loop: a text that ends here has not entered the loop.
    kEnter,
    kLoop,  // reads any bytes
    // Reads any one byte, or reads nothing and goes on to the spot `to`.
    kMaybe,
    kSlot,   // reads a token
    kState,  // reads what a derivative of a regex reads
    kEnd,
  };
  struct Node {
    NodeKind kind;
    uint8_t byte = 0;
    Spot to = 0;
  };
  struct Inside {
    Spot slot;
    uint32_t node;  // a node of the trie of the vocabulary
  };
  // The tokens of holes kTokens; null if there are no such holes.
  const Vocabulary* vocabulary_;
  // On a path of a regex: true if the mark kEdge may stand where the regex ends.
  const bool bordered_ = false;
  std::vector<Node> nodes_;
  // holes_[n] counts the nodes before node n that belong to a hole.
  std::vector<uint32_t> holes_;
  std::vector<Spot> begins_;
  // The spots inside tokens. They are numbered behind the nodes.
  std::vector<Inside> inside_;
  // Finds spots by what they stand for: inside tokens by slot and trie node, on a path of a regex by
  // derivative.
  FlatMap<uint64_t, uint32_t> index_;
  // The arena of the regex; null on a path of parts.
  RegexArena* regexes_ = nullptr;
  std::vector<RegexId> states_;
};

}  // namespace structgen
