#include "holes/path.h"

#include "base/error.h"
#include "base/work.h"
#include "parse/productions.h"

namespace structgen {

namespace {
// Returns all bytes but the mark kEdge.
ByteSet made_text() {
  ByteSet out = ByteSet::all();
  out.remove(kEdge);
  return out;
}
}  // namespace

// The number of nodes is computed before any node is made, so that parts which are too long take no memory.
Path::Path(const std::vector<Part>& parts, const Vocabulary* vocabulary) : vocabulary_(vocabulary) {
  uint64_t size = 1;
  for (const Part& p : parts) {
    const uint64_t more = p.kind == Part::kText     ? p.text.size()
                          : p.kind == Part::kAny    ? 1
                          : p.kind == Part::kTokens ? p.lo
                          : p.hi == Part::kEndless  ? p.lo + 2
                                                    : p.hi;
    if (more > kMostNodes || (size += more) > kMostNodes)
      throw Error(ErrorKind::kValue, "the parts are too long: more than " + std::to_string(kMostNodes) +
                                         " bytes and slots together");
  }
  nodes_.reserve(size);
  const auto add = [&](uint64_t n, Node node) { nodes_.insert(nodes_.end(), n, node); };
  for (const Part& p : parts) {
    begins_.push_back(static_cast<Spot>(nodes_.size()));
    switch (p.kind) {
      case Part::kText:
        for (char c : p.text) nodes_.push_back({kByte, static_cast<uint8_t>(c)});
        break;
      case Part::kAny:
        if (!nodes_.empty()) add(1, {kEnter});
        add(1, {kLoop});
        break;
      case Part::kTokens: add(p.lo, {kSlot}); break;
      case Part::kBytes:
        add(p.lo, {kOne});
        if (p.hi == Part::kEndless) {
          if (!nodes_.empty()) add(1, {kEnter});
          add(1, {kLoop});
        } else if (p.hi > p.lo) {
          const Spot after = static_cast<Spot>(nodes_.size() + (p.hi - p.lo));
          add(p.hi - p.lo, {kMaybe, 0, after});
        }
        break;
    }
  }
  nodes_.push_back({kEnd});
  holes_.reserve(nodes_.size());
  uint32_t holes = 0;
  for (const Node& n : nodes_) {
    holes_.push_back(holes);
    holes += n.kind != kByte;
  }
}

// With `bordered`, a text of the path is a text of the regex, or such a text followed by one mark kEdge.
Path::Path(RegexArena& regexes, RegexId whole, bool bordered)
    : vocabulary_(nullptr), bordered_(bordered), regexes_(&regexes) {
  if (bordered)
    // kEdge is taken out of the texts of the regex, and may then follow each text once.
    whole = regexes.cat(regexes.both(whole, regexes.star(regexes.bytes(made_text()))),
                        regexes.optional(regexes.byte(kEdge)));
  nodes_.push_back({kState});
  states_.push_back(whole);
  index_.emplace(whole.v, 0);
}

ByteSet Path::bytes(Spot s) const {
  if (regexes_) return regexes_->live(states_[s]) & (bordered_ ? ByteSet::all() : made_text());
  if (s >= nodes_.size()) {
    const uint32_t node = inside_[s - nodes_.size()].node;
    return vocabulary_->trie().leaf(node) ? ByteSet{} : vocabulary_->trie().kids(node).set;
  }
  switch (nodes_[s].kind) {
    case kByte:
      return nodes_[s].byte == Vocabulary::kSpecialByte || nodes_[s].byte == kEdge
                 ? ByteSet{}
                 : ByteSet::of(nodes_[s].byte);
    case kLoop: return made_text();
    case kOne:
    case kMaybe: {
      ByteSet out = made_text();
      out.remove(Vocabulary::kSpecialByte);
      return out;
    }
    case kSlot: return vocabulary_->trie().kids(0).set;
    case kEnter:
    case kState:
    case kEnd: break;
  }
  return {};
}

// Returns the spot behind a byte: the next derivative of a regex, the child in the trie for a spot inside a
// token, the spot itself for a loop, otherwise the next node.
Path::Spot Path::next(Spot s, uint8_t b) {
  if (regexes_) {
    const RegexId to = regexes_->step(states_[s], b);
    return index_.remember(to.v, [&] {
      nodes_.push_back({kState});
      states_.push_back(to);
      return last();
    });
  }
  Spot slot = s;
  uint32_t node = 0;
  if (s >= nodes_.size()) {
    const Inside in = inside_[s - nodes_.size()];
    slot = in.slot;
    node = in.node;
  } else if (nodes_[s].kind != kSlot) {
    return nodes_[s].kind == kLoop ? s : s + 1;
  }
  const TokenTrie& trie = vocabulary_->trie();
  const uint32_t child = trie.child(trie.kids(node), b);
  return index_.remember(uint64_t{slot} << 32 | child, [&] {
    inside_.push_back({slot, child});
    return static_cast<Spot>(nodes_.size() + inside_.size() - 1);
  });
}

std::string Path::text(Spot u, Spot v) const {
  std::string out;
  for (; u < v; ++u) out.push_back(static_cast<char>(nodes_[u].byte));
  return out;
}

}  // namespace structgen
