// A text with holes as a graph: what is fixed is a chain of bytes, a hole is a loop, a chain or a walk of the
// trie.
//
// In: parts, each a fixed text, any text, so many bytes, or so many tokens; or a regex that all of the text
// matches, whose derivatives are the spots. Out: spots, numbered from 0, and
// the bytes that lead from one to another. Cost: a node a byte of fixed text and a byte or token of a bounded
// hole; the spots inside tokens are made as a search reaches them.
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

enum class Verdict : int8_t { kNo = 0, kYes = 1, kUnknown = -1 };

struct Part {
  enum Kind : uint8_t { kText, kAny, kBytes, kTokens } kind = kText;
  std::string text;  // kText
  uint64_t lo = 0;   // kBytes: at least; kTokens: exactly
  uint64_t hi = 0;   // kBytes: at most; kEndless: any number
  static constexpr uint64_t kEndless = ~uint64_t{0};
};

class Path {
 public:
  using Spot = uint32_t;
  // Throws kValue where the parts are too long. `vocabulary`: of the tokens.
  Path(const std::vector<Part>& parts, const Vocabulary* vocabulary);
  // `bordered`: kEdge may stand where the regex ends (Productions::bordered()); else nowhere.
  Path(RegexArena& regexes, RegexId whole, bool bordered);
  static constexpr std::size_t kMostNodes = 4u << 20;
  // Of a regex: the derivative that a spot is.
  RegexId state(Spot s) const { return states_[s]; }

  Spot first() const { return 0; }
  // The spot before byte `at` of fixed text `part`.
  Spot of_text(std::size_t part, std::size_t at) const { return begins_[part] + static_cast<Spot>(at); }
  Spot last() const { return static_cast<Spot>(nodes_.size() - 1); }
  // f(to) for every spot that is reached without a byte, the spot itself first.
  template <class F>
  void for_each_here(Spot s, F&& f) {
    for (;;) {
      f(s);
      if (s >= nodes_.size()) {  // inside a token: the next slot, where a token ends here
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
  bool ends(Spot s) {
    if (regexes_) return regexes_->nullable(states_[s]);
    bool out = false;
    for_each_here(s, [&](Spot at) { out = out || at == last(); });
    return out;
  }
  // Bytes that lead on from exactly this spot; where each leads.
  ByteSet bytes(Spot s) const;
  Spot next(Spot s, uint8_t b);
  bool single(Spot s) const { return s < nodes_.size() && nodes_[s].kind == kByte; }
  uint8_t byte(Spot s) const { return nodes_[s].byte; }
  bool loops(Spot s) const { return s < nodes_.size() && nodes_[s].kind == kLoop; }
  // Bytes that lead on alike in a regex and from the spot; null: each may lead elsewhere.
  const ClassMap* alike(RegexArena& arena, RegexId r, Spot s) const {
    if (regexes_) return &arena.classes(r, states_[s]);
    return s < nodes_.size() && nodes_[s].kind < kSlot ? &arena.classes(r) : nullptr;
  }
  // Whether fixed text, of one byte or more, is all that stands behind the spot.
  bool text_behind(Spot s) const { return s + 1 < last() && holes_[s + 1] == holes_[last()]; }
  // Whether one text alone leads from u to v.
  bool fixed(Spot u, Spot v) const {
    return !regexes_ && u <= v && v < nodes_.size() && holes_[u] == holes_[v] && !loops(v);
  }
  std::string text(Spot u, Spot v) const;
  uint32_t nodes() const { return static_cast<uint32_t>(nodes_.size()); }
  std::size_t byte_size() const { return nodes_.size() * 16 + inside_.size() * 8 + index_.byte_size(); }

 private:
  enum Kind : uint8_t {
    kByte,   // one byte
    kOne,    // any one byte
    kEnter,  // nothing: what ends here ends before the loop
    kLoop,   // any bytes
    kMaybe,  // any one byte, or on to `to`
    kSlot,   // a token
    kState,  // bytes that a regex reads
    kEnd,
  };
  struct Node {
    Kind kind;
    uint8_t byte = 0;
    Spot to = 0;
  };
  struct Inside {
    Spot slot;
    uint32_t node;  // of the trie
  };
  const Vocabulary* vocabulary_;
  const bool bordered_ = false;
  std::vector<Node> nodes_;
  std::vector<uint32_t> holes_;  // nodes of holes before each
  std::vector<Spot> begins_;     // of each part
  std::vector<Inside> inside_;
  FlatMap<uint64_t, uint32_t> index_;
  RegexArena* regexes_ = nullptr;
  std::vector<RegexId> states_;  // by spot
};

}  // namespace structgen
