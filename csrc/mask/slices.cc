#include "mask/slices.h"

#include <algorithm>

namespace structgen {

namespace {

void set_bit(Words& w, TokenId t) { w[static_cast<uint32_t>(t) >> 5] |= 1u << (t & 31); }
bool get_bit(const Words& w, TokenId t) { return (w[static_cast<uint32_t>(t) >> 5] >> (t & 31)) & 1; }

constexpr uint32_t kDifferenceBudget = 4'000;  // trie nodes; past it the whole walk is as cheap
constexpr std::size_t kSparseLimit = 1'500;    // tokens kept as a list rather than a row

}  // namespace

bool as_run(const RegexArena& regexes, RegexId r, RegexId& element, uint32_t& min, uint32_t& max, RegexId& tail) {
  const RegexNode* n = &regexes.node(r);
  tail = RegexArena::epsilon();
  if (n->kind == RegexKind::kCat) {
    tail = RegexId{n->b};
    n = &regexes.node(RegexId{n->a});
  }
  if (n->kind != RegexKind::kRepeat) return false;
  element = RegexId{n->a};
  min = n->min;
  max = n->max;
  return true;
}

// ---- runs ----

RunClass::RunClass(RegexArena& regexes, const Vocabulary& vocabulary, RegexId element) : vocabulary_(vocabulary) {
  walk(regexes, element);
}

void RunClass::walk(RegexArena& regexes, RegexId element) {
  if (regexes.nullable(element)) {
    ok_ = false;
    return;
  }
  const TokenTrie& trie = vocabulary_.trie();
  struct Frame {
    uint32_t node;
    RegexId at;      // what is left of the current element; epsilon() = at a boundary
    uint32_t count;  // elements begun
  };
  std::vector<Frame> todo{{0, RegexArena::epsilon(), 0}};
  while (!todo.empty()) {
    const Frame f = todo.back();
    todo.pop_back();
    const bool boundary = f.at == RegexArena::epsilon();
    if (f.count > 0)
      for (TokenId t : trie.tokens(f.node)) {
        if (buckets_.size() < f.count) buckets_.resize(f.count);
        buckets_[f.count - 1].push_back(t);
      }
    if (trie.leaf(f.node)) continue;
    if (boundary) boundaries_.push_back({f.node, f.count});
    const RegexId from = boundary ? element : f.at;
    const TokenTrie::Kids& kids = trie.kids(f.node);
    (kids.set & regexes.live(from)).for_each([&](uint8_t b) {
      const RegexId d = regexes.next(from, b);
      if (regexes.nullable(d) && d != RegexArena::epsilon()) ok_ = false;  // not a prefix code
      todo.push_back({trie.child(kids, b), d, f.count + (boundary ? 1 : 0)});
    });
    if (!ok_) return;
  }
  std::sort(boundaries_.begin(), boundaries_.end(), [](const Exit& x, const Exit& y) { return x.node < y.node; });
}

const Words& RunClass::up_to(uint32_t k) {
  k = std::min<uint32_t>(k, longest());
  if (cumulative_.size() <= k) cumulative_.resize(k + 1);
  if (!cumulative_[k]) {
    auto w = std::make_unique<Words>(vocabulary_.words());
    for (uint32_t i = 0; i < k; ++i)
      for (TokenId t : buckets_[i]) set_bit(*w, t);
    cumulative_[k] = std::move(w);
  }
  return *cumulative_[k];
}

const RunExits& RunClass::exits(uint8_t byte) {
  std::unique_ptr<RunExits>& slot = exits_[byte];
  if (!slot) {
    slot = std::make_unique<RunExits>();
    const TokenTrie& trie = vocabulary_.trie();
    slot->unbounded = up_to(kUnbounded);
    for (const Exit& e : boundaries_) {
      const TokenTrie::Kids& kids = trie.kids(e.node);
      if (!kids.set.has(byte)) continue;
      const uint32_t child = trie.child(kids, byte);
      (trie.leaf(child) ? slot->leaves : slot->inner).push_back({child, e.count});
      for (TokenId t : trie.tokens(child)) set_bit(slot->unbounded, t);
    }
    const auto by_node = [](const Exit& x, const Exit& y) { return x.node < y.node; };
    std::sort(slot->leaves.begin(), slot->leaves.end(), by_node);
    std::sort(slot->inner.begin(), slot->inner.end(), by_node);
  }
  return *slot;
}

std::size_t RunClass::byte_size() const {
  std::size_t rows = exits_.size();
  for (const auto& c : cumulative_) rows += c != nullptr;
  return rows * vocabulary_.words() * 4 + boundaries_.size() * sizeof(Exit) + vocabulary_.size() * 4;
}

RunClass* Slices::run(RegexId element) {
  std::unique_ptr<RunClass>& slot = runs_[element.v];
  if (!slot) {
    slot = std::make_unique<RunClass>(regexes_, vocabulary_, element);
    bytes_ += slot->byte_size();
  }
  return slot->ok() ? slot.get() : nullptr;
}

// ---- terminals ----

const TerminalMask& Slices::terminal(RegexId regex) {
  std::unique_ptr<TerminalMask>& slot = terminals_[regex.v];
  if (!slot) {
    auto mask = std::make_unique<TerminalMask>();
    if (!difference(regex, *mask)) {
      *mask = TerminalMask{};
      whole(regex, *mask);
    }
    bytes_ += sizeof(TerminalMask) + 4 * (mask->added.size() + mask->removed.size() + mask->exits.size());
    slot = std::move(mask);
  }
  return *slot;
}

// regex = run & ...: walks both and goes down only where they differ.
bool Slices::difference(RegexId regex, TerminalMask& out) {
  const RegexNode& n = regexes_.node(regex);
  if (n.kind != RegexKind::kAnd) return false;
  RegexId base, element, tail;
  uint32_t min, max;
  RunClass* run = nullptr;
  uint8_t close = 0;
  for (uint32_t i = 0; i < n.n && !run; ++i) {
    base = RegexId{n.kids[i]};
    if (!as_run(regexes_, base, element, min, max, tail) || min != 0 || max != kUnbounded) continue;
    const RegexNode& t = regexes_.node(tail);
    if (t.kind != RegexKind::kBytes || regexes_.byte_set(t.a).count() != 1) continue;
    close = static_cast<uint8_t>(regexes_.byte_set(t.a).first());
    if (regexes_.live(element).has(close)) continue;
    run = this->run(element);
  }
  if (!run) return false;
  const TokenTrie& trie = vocabulary_.trie();
  const RunExits& exits = run->exits(close);
  struct Frame {
    uint32_t node;
    RegexId r, b;
  };
  std::vector<Frame> todo{{0, regex, base}};
  std::vector<std::pair<uint32_t, uint32_t>> cut;  // node ranges that are no longer inside
  uint32_t visited = 0;
  while (!todo.empty()) {
    const Frame f = todo.back();
    todo.pop_back();
    if (trie.leaf(f.node)) continue;
    const TokenTrie::Kids& kids = trie.kids(f.node);
    const ClassMap* c = regexes_.class_maps().product(&regexes_.classes(f.r), &regexes_.classes(f.b));
    bool differs[256];
    for (uint16_t k = 0; k < c->n; ++k) differs[k] = regexes_.next(f.r, c->rep[k]) != regexes_.next(f.b, c->rep[k]);
    ByteSet todo_bytes;
    kids.set.for_each([&](uint8_t b) {
      if (differs[c->of[b]]) todo_bytes.add(b);
    });
    todo_bytes.for_each([&](uint8_t b) {
      const uint32_t child = trie.child(kids, b);
      const RegexId r = regexes_.next(f.r, b), base_next = regexes_.next(f.b, b);
      if (r == RegexArena::empty()) {
        for (TokenId t : trie.subtree_tokens(child))
          if (get_bit(exits.unbounded, t)) out.removed.push_back(t);
        cut.emplace_back(child, trie.node(child).end);
      } else {
        if (regexes_.nullable(base_next) && !regexes_.nullable(r)) cut.emplace_back(child, child + 1);
        todo.push_back({child, r, base_next});
      }
    });
    visited += static_cast<uint32_t>(todo_bytes.count()) + 1;
    if (visited > kDifferenceBudget) return false;
  }
  std::sort(cut.begin(), cut.end());
  std::size_t at = 0;
  for (const Exit& e : exits.inner) {
    while (at < cut.size() && cut[at].second <= e.node) ++at;
    if (at == cut.size() || e.node < cut[at].first) out.exits.push_back(e.node);
  }
  out.base = &exits.unbounded;
  return true;
}

void Slices::whole(RegexId regex, TerminalMask& out) {
  const TokenTrie& trie = vocabulary_.trie();
  std::vector<std::pair<uint32_t, RegexId>> todo{{0, regex}};
  std::vector<TokenId> inside;
  while (!todo.empty()) {
    const auto [node, r] = todo.back();
    todo.pop_back();
    if (trie.leaf(node)) continue;
    const TokenTrie::Kids& kids = trie.kids(node);
    (kids.set & regexes_.live(r)).for_each([&](uint8_t b) {
      const RegexId d = regexes_.next(r, b);
      const uint32_t child = trie.child(kids, b);
      for (TokenId t : trie.tokens(child)) inside.push_back(t);
      if (trie.leaf(child)) return;
      if (regexes_.nullable(d)) out.exits.push_back(child);
      if (d != RegexArena::epsilon()) todo.emplace_back(child, d);
    });
  }
  std::sort(out.exits.begin(), out.exits.end());
  if (inside.size() <= kSparseLimit) {
    out.added = std::move(inside);
    return;
  }
  auto row = std::make_unique<Words>(vocabulary_.words());
  for (TokenId t : inside) set_bit(*row, t);
  bytes_ += row->size() * 4;
  owned_.push_back(std::move(row));
  out.base = owned_.back().get();
}

}  // namespace structgen
