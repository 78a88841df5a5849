#include "mask/slices.h"

#include "base/error.h"

#include <algorithm>
#include <bit>

#include "mask/subtrees.h"
#include "mask/suffixes.h"
#include "mask/walk_table.h"

namespace structgen {

namespace {

void set_bit(Words& w, TokenId t) { w[static_cast<uint32_t>(t) >> 5] |= 1u << (t & 31); }
bool get_bit(const Words& w, TokenId t) { return (w[static_cast<uint32_t>(t) >> 5] >> (t & 31)) & 1; }

constexpr uint32_t kPairBudget = 4'000;        // pairs looked at by one containment test
constexpr uint32_t kCoverBudget = 300;         // where it would only save the walk of another regex
constexpr uint32_t kLoop = 1;                  // trie nodes below one from which it is asked whether all of them loop
constexpr uint32_t kNever = 0xFFFFFFFFu;
// Limits of counters that tokens stay below: of words, of groups of punctuation; of characters, beyond the longest
// token, for what completes the text.
constexpr uint32_t kCounts[] = {4, 16}, kSpare = 8;
// Trie nodes of a difference: first a few, where only names are excluded; many, before the whole walk.
constexpr uint32_t kDifferenceBudget[] = {1'500, 5'000};
// Tokens tried one by one near the limit of a run; characters below which that is not worth it.
constexpr std::size_t kTried = 4'000;
constexpr uint32_t kNear = 8;
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

NodeIndex::NodeIndex(const TokenTrie& trie) : nodes_(trie.size()), parents_(trie.size(), 0) {
  for (uint32_t i = 1; i < trie.size(); ++i) ++first_[trie.node(i).byte + 1];
  for (int b = 0; b < 256; ++b) first_[b + 1] += first_[b];
  uint32_t next[256];
  std::copy(first_, first_ + 256, next);
  std::vector<uint32_t> path{0};  // node at each depth
  for (uint32_t i = 1; i < trie.size(); ++i) {
    const TokenTrie::Node& n = trie.node(i);
    path.resize(n.depth);
    parents_[i] = path.back();
    path.push_back(i);
    nodes_[next[n.byte]++] = i;
  }
}

RunClass::RunClass(RegexArena& regexes, const Vocabulary& vocabulary, const NodeIndex& index, RegexId element,
                   std::size_t& account)
    : account_(account), element_(element), vocabulary_(vocabulary), index_(index),
      boundary_(vocabulary.trie().size(), kNone) {
  ok_ = vocabulary.longest() < kNone;
  if (ok_) walk(regexes, element);
  account_ += sizeof(RunClass) + boundary_.capacity() * sizeof(uint16_t);
  for (const auto& b : buckets_) account_ += sizeof(b) + b.capacity() * sizeof(TokenId);
}

void RunClass::walk(RegexArena& regexes, RegexId element) {
  if (regexes.nullable(element)) {
    ok_ = false;
    return;
  }
  const TokenTrie& trie = vocabulary_.trie();
  WalkTable table(regexes);
  const uint32_t start = table.state(element);
  const uint32_t done = table.state(RegexArena::epsilon());  // an element just ended
  std::vector<uint32_t> at(vocabulary_.longest() + 1), count(vocabulary_.longest() + 1);
  at[0] = start;
  boundary_[0] = 0;
  for (uint32_t i = 1; i < trie.size();) {
    const TokenTrie::Node& n = trie.node(i);
    const uint32_t from = at[n.depth - 1];
    uint32_t to = table.next(from, static_cast<uint8_t>(n.byte));
    if (to == WalkTable::kDead) {
      i = n.end;
      continue;
    }
    count[n.depth] = count[n.depth - 1] + (from == start);
    if (to == done) {
      to = start;
      boundary_[i] = static_cast<uint16_t>(count[n.depth]);
    } else if (regexes.nullable(table.regex(to))) {
      ok_ = false;  // not a prefix code
      return;
    }
    at[n.depth] = to;
    for (TokenId t : trie.tokens(i)) {
      if (buckets_.size() < count[n.depth]) buckets_.resize(count[n.depth]);
      buckets_[count[n.depth] - 1].push_back(t);
    }
    ++i;
  }
}

const Words& RunClass::up_to(uint32_t k) {
  k = std::min<uint32_t>(k, longest());
  if (cumulative_.size() <= k) cumulative_.resize(k + 1);
  if (!cumulative_[k]) {
    auto w = std::make_unique<Words>(vocabulary_.words());
    for (uint32_t i = 0; i < k; ++i)
      for (TokenId t : buckets_[i]) set_bit(*w, t);
    account_ += w->size() * 4;
    cumulative_[k] = std::move(w);
  }
  return *cumulative_[k];
}

std::size_t RunClass::tokens_between(uint32_t low, uint32_t high) const {
  std::size_t n = 0;
  for (uint32_t k = low; k < std::min(high, longest()); ++k) n += buckets_[k].size();
  return n;
}

const std::vector<TokenId>* RunClass::list_up_to(uint32_t k) {
  if (tokens_ == 0)
    for (const auto& b : buckets_) tokens_ += b.size();
  if (tokens_ > kSparseLimit) return nullptr;
  k = std::min<uint32_t>(k, longest());
  if (lists_.size() <= k) lists_.resize(k + 1);
  if (!lists_[k]) {
    lists_[k] = std::make_unique<std::vector<TokenId>>();
    for (uint32_t i = 0; i < k; ++i) lists_[k]->insert(lists_[k]->end(), buckets_[i].begin(), buckets_[i].end());
    account_ += lists_[k]->capacity() * sizeof(TokenId);
  }
  return lists_[k].get();
}

const RunExits& RunClass::exits(uint8_t byte) {
  std::unique_ptr<RunExits>& slot = exits_[byte];
  if (slot) return *slot;
  slot = std::make_unique<RunExits>();
  const TokenTrie& trie = vocabulary_.trie();
  slot->unbounded = up_to(kUnbounded);
  for (uint32_t child : index_.of(byte)) {
    const uint16_t count = boundary_[index_.parent(child)];
    if (count == kNone) continue;
    slot->children.push_back({child, count});
    slot->longest = std::max<uint32_t>(slot->longest, count);
    for (TokenId t : trie.tokens(child)) {
      set_bit(slot->unbounded, t);
      slot->ends.push_back({t, count});
    }
  }
  std::vector<SuffixText> endings;
  for (const Exit& e : slot->children)
    for (TokenId t : trie.subtree_tokens(e.node).subspan(trie.tokens(e.node).size())) {
      const std::string_view text = vocabulary_.bytes(t).substr(trie.node(e.node).depth);
      endings.push_back({text, {t, e.count}});
    }
  build_suffixes(std::move(endings), slot->suffixes);
  account_ += sizeof(RunExits) + slot->unbounded.size() * 4 + slot->children.capacity() * sizeof(Exit) +
              slot->ends.capacity() * sizeof(slot->ends[0]) +
              slot->suffixes.nodes.capacity() * sizeof(Suffixes::Node) +
              slot->suffixes.entries.capacity() * sizeof(Suffixes::Entry);
  return *slot;
}

RunClass* Slices::run(RegexId element) {
  std::unique_ptr<RunClass>& slot = runs_[element.v];
  if (!slot) {
    if (!index_) {
      index_ = std::make_unique<NodeIndex>(vocabulary_.trie());
      bytes_ += index_->byte_size();
    }
    slot = std::make_unique<RunClass>(regexes_, vocabulary_, *index_, element, bytes_);
  }
  return slot->ok() ? slot.get() : nullptr;
}

// ---- terminals ----

const TerminalMask& Slices::terminal(RegexId regex) {
  if (const auto known = terminals_.find(regex.v); known != terminals_.end()) return *known->second;
  auto mask = std::make_unique<TerminalMask>();
  if (!run_terminal(regex, *mask) && !difference(regex, kDifferenceBudget[0], *mask) && !contained(regex, *mask) &&
      !shorter(regex, *mask) && !counted(regex, *mask) && !difference(regex, kDifferenceBudget[1], *mask))
    whole(regex, *mask);
  const std::size_t size =
      sizeof(TerminalMask) +
      4 * (mask->added.capacity() + mask->removed.capacity() + mask->exits.capacity() + mask->blocked.capacity());
  bytes_ += size;
  terminal_bytes_ += size;
  return *(terminals_[regex.v] = std::move(mask));
}

void Slices::trim(std::size_t limit) {
  if (terminal_bytes_ <= limit) return;
  terminals_.clear();
  leaving_.clear();
  counted_.clear();
  bytes_ -= terminal_bytes_;
  terminal_bytes_ = 0;
}

// regex = base & not(a few literals): walks both and goes down only where they differ. `base` is a run, or
// any terminal whose mask is known or worth knowing: keys already written are taken from it one by one.
bool Slices::difference(RegexId regex, uint32_t budget, TerminalMask& out) {
  const RegexNode n = regexes_.node(regex);
  if (n.kind != RegexKind::kAnd) return false;
  std::vector<RegexId> kept;
  for (uint32_t i = 0; i < n.n; ++i) {
    const RegexNode& k = regexes_.node(RegexId{n.kids[i]});
    if (k.kind != RegexKind::kNot || !regexes_.node(RegexId{k.a}).finite) kept.push_back(RegexId{n.kids[i]});
  }
  if (kept.empty()) return false;
  RegexId base = regexes_.both(std::span<const RegexId>(kept));
  TerminalMask from;
  if (run_terminal(base, from)) {
    if (base != regex && less_literals(n, kept, from, out)) return true;
  } else {
    if (base == regex) {  // nothing is excluded: look for a run among the parts
      bool found = false;
      for (std::size_t i = 0; i < kept.size() && !found; ++i) found = run_terminal(base = kept[i], from);
      if (!found) return false;
    } else {
      from = terminal(base);
    }
  }
  const TokenTrie& trie = vocabulary_.trie();
  struct Frame {
    uint32_t node;
    RegexId r, b;
  };
  std::vector<Frame> todo{{0, regex, base}};
  std::vector<std::pair<uint32_t, uint32_t>> cut;  // node ranges below which the regex does not end
  std::vector<TokenId> lost;
  uint32_t visited = 0;
  while (!todo.empty()) {
    const Frame f = todo.back();
    todo.pop_back();
    if (trie.leaf(f.node)) continue;
    const TokenTrie::Kids& kids = trie.kids(f.node);
    const ClassMap* c = regexes_.class_maps().product(&regexes_.classes(f.r), &regexes_.classes(f.b));
    bool differs[256];
    for (uint16_t k = 0; k < c->n; ++k) differs[k] = regexes_.next(f.r, c->rep[k]) != regexes_.next(f.b, c->rep[k]);
    ByteSet bytes;
    kids.set.for_each([&](uint8_t b) {
      if (differs[c->of[b]]) bytes.add(b);
    });
    bytes.for_each([&](uint8_t b) {
      const uint32_t child = trie.child(kids, b);
      const RegexId r = regexes_.next(f.r, b), base_next = regexes_.next(f.b, b);
      if (r == RegexArena::empty()) {
        const auto below = trie.subtree_tokens(child);
        lost.insert(lost.end(), below.begin(), below.end());
        cut.emplace_back(child, trie.node(child).end);
      } else {
        if (regexes_.nullable(base_next) && !regexes_.nullable(r)) cut.emplace_back(child, child + 1);
        todo.push_back({child, r, base_next});
      }
    });
    visited += static_cast<uint32_t>(bytes.count()) + 1;
    if (visited > budget || lost.size() > kSparseLimit) return false;
  }
  std::sort(cut.begin(), cut.end());
  std::sort(lost.begin(), lost.end());
  out = from;
  std::erase_if(out.added, [&](TokenId t) { return std::binary_search(lost.begin(), lost.end(), t); });
  if (out.base)
    for (TokenId t : lost)
      if (get_bit(*out.base, t)) out.removed.push_back(t);
  std::erase_if(out.exits, [&](uint32_t node) {
    auto after = std::upper_bound(cut.begin(), cut.end(), std::pair{node, 0xFFFFFFFFu});
    return after != cut.begin() && node < std::prev(after)->second;
  });
  if (out.left)
    for (const auto& [first, end] : cut) {
      const auto start = std::lower_bound(out.left->children.begin(), out.left->children.end(), first,
                                          [](const Exit& e, uint32_t node) { return e.node < node; });
      for (auto e = start; e != out.left->children.end() && e->node < end; ++e) block(e->node, out);
    }
  std::sort(out.blocked.begin(), out.blocked.end());
  return true;
}

// The same where the base is a run and all that is excluded are literals. A run goes on for ever, so no token
// inside it is lost; what is lost is to complete a literal.
bool Slices::less_literals(const RegexNode& n, std::span<const RegexId> kept, const TerminalMask& from,
                           TerminalMask& out) {
  std::vector<RegexId> sets;
  for (uint32_t i = 0; i < n.n; ++i) {
    const RegexId kid{n.kids[i]};
    if (std::find(kept.begin(), kept.end(), kid) != kept.end()) continue;
    const RegexNode& inner = regexes_.node(RegexId{regexes_.node(kid).a});
    if (inner.kind == RegexKind::kAlt)
      for (uint32_t k = 0; k < inner.n; ++k) sets.push_back(RegexId{inner.kids[k]});
    else
      sets.push_back(RegexId{regexes_.node(kid).a});
  }
  for (RegexId r : sets)
    if (regexes_.node(r).kind != RegexKind::kJsonSet) return false;
  const TokenTrie& trie = vocabulary_.trie();
  const LiteralTables& tables = regexes_.tables();
  out = from;
  for (RegexId r : sets) {
    const JsonSet set = regexes_.json_set_of(r);
    const auto lose = [&](uint32_t node, uint32_t index) {
      if (index < set.lo || index >= set.hi || !tables.any_allowed(set.subset, index, index + 1)) return;
      const auto tokens = trie.tokens(node);
      out.removed.insert(out.removed.end(), tokens.begin(), tokens.end());
      block(node, out);
    };
    if (set.depth == 0 && set.escape == 0) {
      for (const TableMask::Done& d : table(set.table).done) lose(d.node, d.index);
      continue;
    }
    TableMask rest;
    read_literals(set, rest);
    for (const TableMask::Done& d : rest.done) lose(d.node, d.index);
  }
  std::sort(out.blocked.begin(), out.blocked.end());
  return true;
}

// E* closed by one byte that E does not contain: its mask is the run's.
bool Slices::run_terminal(RegexId regex, TerminalMask& out) {
  RegexId element, tail;
  uint32_t min, max;
  if (!as_run(regexes_, regex, element, min, max, tail) || min != 0 || max != kUnbounded) return false;
  const RegexNode& t = regexes_.node(tail);
  if (t.kind != RegexKind::kBytes || regexes_.byte_set(t.a).count() != 1) return false;
  const uint8_t close = static_cast<uint8_t>(regexes_.byte_set(t.a).first());
  if (regexes_.live(element).has(close)) return false;
  RunClass* run = this->run(element);
  if (!run) return false;
  const RunExits& exits = run->exits(close);
  out.base = &exits.unbounded;
  out.left = &exits;
  out.slack = 1;  // an element begun counts as read
  return true;
}

// The regex does not end at this exit of the run: tokens that go on below it are blocked.
void Slices::block(uint32_t node, TerminalMask& out) {
  const TokenTrie& trie = vocabulary_.trie();
  const auto below = trie.subtree_tokens(node).subspan(trie.tokens(node).size());
  out.blocked.insert(out.blocked.end(), below.begin(), below.end());
}

void Slices::whole(RegexId regex, TerminalMask& out) {
  const TokenTrie& trie = vocabulary_.trie();
  WalkTable table(regexes_);
  std::vector<uint32_t> at(vocabulary_.longest() + 1);
  at[0] = table.state(regex);
  Loops loops(trie, table);
  const auto may_end = [&](uint32_t s) { return regexes_.nullable(table.regex(s)); };
  auto row = std::make_unique<Words>(vocabulary_.words());
  std::size_t count = 0;
  const auto take = [&](std::span<const TokenId> tokens) {
    for (TokenId t : tokens) set_bit(*row, t);
    count += tokens.size();
  };
  for (uint32_t i = 1; i < trie.size();) {
    const TokenTrie::Node& n = trie.node(i);
    const uint32_t from = at[n.depth - 1];
    const uint32_t to = table.next(from, static_cast<uint8_t>(n.byte));
    if (to == WalkTable::kDead) {
      i = n.end;
      continue;
    }
    if (n.end > i + kLoop && loops.seen(from, to) && !may_end(to) && loops.cover(i, to, 0, may_end)) {
      take(trie.subtree_tokens(i));
      i = n.end;
      continue;
    }
    at[n.depth] = to;
    take(trie.tokens(i));
    if (n.kids && regexes_.nullable(table.regex(to))) out.exits.push_back(i);
    ++i;
  }
  out.slack = 0;
  for (uint32_t i = 1; i < table.size() && out.slack != kNever; ++i) out.slack = std::max(out.slack, slack(table.regex(i)));
  if (count <= kSparseLimit) {
    for (uint32_t w = 0; w < row->size(); ++w)
      for (uint32_t bits = (*row)[w]; bits; bits &= bits - 1)
        out.added.push_back(static_cast<TokenId>(32 * w + static_cast<uint32_t>(std::countr_zero(bits))));
    return;
  }
  bytes_ += row->size() * 4;
  owned_.push_back(std::move(row));
  out.base = owned_.back().get();
}

// Whether it counts words or the like, to many: no run can be told to fit without counting them all.
bool Slices::counts_groups(RegexId regex) { return regexes_.limited(regex, kNever, kCounts[1], true) != regex; }

// Bytes of a text of the regex, a short one; kNever where that cannot be read off it. Twice as many levels as a
// pattern has are never needed.
uint32_t Slices::slack(RegexId regex) {
  const RegexNode n = regexes_.node(regex);
  if (n.boolean || n.lazy || n.labelled) return kNever;
  switch (n.kind) {
    case RegexKind::kEpsilon: return 0;
    case RegexKind::kBytes:
    case RegexKind::kLiteral: return n.shortest;
    case RegexKind::kCat:
    case RegexKind::kAlt:
    case RegexKind::kRepeat: break;
    default: return kNever;
  }
  const auto [it, fresh] = slacks_.try_emplace(regex.v, kNever);
  if (!fresh) return it->second;
  uint64_t out = kNever;
  if (n.kind == RegexKind::kCat) {
    out = std::min<uint64_t>(kNever, static_cast<uint64_t>(slack(RegexId{n.a})) + slack(RegexId{n.b}));
  } else if (n.kind == RegexKind::kRepeat) {
    out = n.min == 0 ? 0 : std::min<uint64_t>(kNever, static_cast<uint64_t>(slack(RegexId{n.a})) * n.min);
  } else {
    for (uint32_t i = 0; i < n.n; ++i) out = std::min<uint64_t>(out, slack(RegexId{n.kids[i]}));
  }
  bytes_ += 40;
  return slacks_[regex.v] = static_cast<uint32_t>(out);
}

// regex = E{0,max} and a quote, and a pattern P whose texts inside are completed by few characters more: while max is
// far, the mask is P's. What remains is tokens that come near max, which are tried one by one.
bool Slices::shorter(RegexId regex, TerminalMask& out) {
  const RegexNode n = regexes_.node(regex);
  const RegexId any = regexes_.remembered(1);
  if (n.kind != RegexKind::kAnd || any == RegexArena::empty()) return false;
  uint32_t min = 0, max = kUnbounded;
  RegexId pattern = RegexArena::empty();
  for (uint32_t i = 0; i < n.n; ++i) {
    const RegexId kid{n.kids[i]};
    RegexId element, tail;
    uint32_t from, to;
    if (as_run(regexes_, kid, element, from, to, tail) && element == any && tail == regexes_.byte('"')) {
      min = std::max(min, from);
      max = std::min(max, to);
    } else if (pattern == RegexArena::empty() && regexes_.node(kid).body) {
      pattern = kid;
    } else {
      return false;
    }
  }
  if (pattern == RegexArena::empty() || max == kUnbounded || min > 1) return false;
  const TerminalMask& of = terminal(pattern);
  if (of.slack == kNever || (of.left && !of.blocked.empty()) || max < of.slack + kNear) return false;
  RunClass* run = this->run(any);
  const uint32_t safe = max - of.slack;
  if (!run || run->tokens_between(safe, run->longest()) > kTried) return false;
  out = of;
  out.slack = kNever;
  const TokenTrie& trie = vocabulary_.trie();
  const auto lose = [&](TokenId t) {
    if (out.base && get_bit(*out.base, t)) out.removed.push_back(t);
    std::erase(out.added, t);
  };
  const auto holds = [&](TokenId t) {
    return (out.base && get_bit(*out.base, t)) || std::find(out.added.begin(), out.added.end(), t) != out.added.end();
  };
  run->for_each_between(safe, run->longest(), [&](TokenId t) {
    if (holds(t) && regexes_.run(regex, vocabulary_.bytes(t)) == RegexArena::empty()) lose(t);
  });
  // Where the pattern ends: too soon or too late for the count, or where tokens end with the quote.
  if (min == 1 || safe < run->longest()) {
    const auto ends = [&](uint32_t node) { return regexes_.nullable(regexes_.run(regex, path(node))); };
    std::erase_if(out.exits, [&](uint32_t node) { return !ends(node); });
    for (const Exit& e : run->exits('"').children) {
      if ((e.count >= min && e.count <= safe) || ends(e.node)) continue;
      for (TokenId t : trie.tokens(e.node)) lose(t);
      if (out.left) block(e.node, out);
    }
    std::sort(out.blocked.begin(), out.blocked.end());
  }
  return true;
}

// Counters that no token reads to their end. A text of at most 5000 characters and 100 words has a state of its own
// after every character, and their masks are the same until few words are left. L(lower) <= L(regex) <= L(upper),
// where the counters' limits are cut or lifted: if those two have the same mask, so has every regex between them.
bool Slices::counted(RegexId regex, TerminalMask& out) {
  if (regexes_.node(regex).labelled) return false;
  const uint32_t characters = vocabulary_.longest() + kSpare;
  for (uint32_t others : kCounts) {
    const RegexId lower = regexes_.limited(regex, characters, others, false);
    const RegexId upper = regexes_.limited(regex, characters, others, true);
    if (lower == upper) return false;
    const uint64_t key = (static_cast<uint64_t>(lower.v) << 32) | upper.v;
    auto known = counted_.find(key);
    if (known == counted_.end()) {
      if (++uncounted_[upper.v] == 1) return false;  // met once: it may be all there is
      known = counted_.emplace(key, between(lower, upper)).first;
    }
    if (!known->second) continue;
    out = *known->second;
    return true;
  }
  return false;
}

// The mask of both; null where they differ.
std::unique_ptr<TerminalMask> Slices::between(RegexId lower, RegexId upper) {
  try {
    if (regexes_.is_empty(lower)) return nullptr;
  } catch (const Error&) {  // too large to tell
    return nullptr;
  }
  auto mask = std::make_unique<TerminalMask>();
  TerminalMask less;
  whole(upper, *mask);
  const std::size_t rows = owned_.size();
  whole(lower, less);
  const bool same = less.exits == mask->exits && less.added == mask->added && !less.base == !mask->base &&
                    (!less.base || *less.base == *mask->base);
  mask->slack = less.slack;
  while (owned_.size() > rows - (same || !mask->base ? 0 : 1)) {
    bytes_ -= owned_.back()->size() * 4;
    owned_.pop_back();
  }
  const std::size_t size = 64 + (same ? sizeof(TerminalMask) + 4 * (mask->added.capacity() + mask->exits.capacity()) : 0);
  bytes_ += size;
  terminal_bytes_ += size;
  return same ? std::move(mask) : nullptr;
}

// Whether every text made of elements can be completed to a text of the regex, and then by how many elements
// and a quote at most: kNever where some text cannot. If it can, all tokens of a run are inside, and only those
// that read a closing quote have to be looked at.
uint32_t Slices::completes(RegexId regex, RegexId element, uint32_t budget) {
  const auto key = [](RegexId r, RegexId e) { return (static_cast<uint64_t>(r.v) << 32) | e.v; };
  if (const auto it = completes_.find(key(regex, element)); it != completes_.end()) return it->second;
  struct Edge {
    uint32_t from, to;
    bool counts;  // an element ends
  };
  std::vector<std::pair<RegexId, RegexId>> pairs{{regex, element}};
  std::unordered_map<uint64_t, uint32_t> seen{{key(regex, element), 0}};
  std::vector<Edge> edges;
  uint32_t result = 0;
  bool too_many = false;
  for (uint32_t i = 0; i < pairs.size() && result != kNever; ++i) {
    const auto [r, e] = pairs[i];
    const ClassMap* c = regexes_.class_maps().product(&regexes_.classes(r), &regexes_.classes(e));
    for (uint16_t k = 0; k < c->n; ++k) {
      RegexId e2 = regexes_.next(e, c->rep[k]);
      if (e2 == RegexArena::empty()) continue;
      const RegexId r2 = regexes_.next(r, c->rep[k]);
      const bool ends = e2 == RegexArena::epsilon();
      if (ends) e2 = element;
      // Where the regex may end inside the run, its exits are not those of the run.
      if (r2 == RegexArena::empty() || regexes_.nullable(r2) || pairs.size() > budget) {
        result = kNever;
        too_many = pairs.size() > budget;
        break;
      }
      const auto [it, fresh] = seen.emplace(key(r2, e2), static_cast<uint32_t>(pairs.size()));
      if (fresh) pairs.emplace_back(r2, e2);
      edges.push_back({i, it->second, ends});
    }
  }
  constexpr std::size_t kEntry = 40;  // a hash node and its share of the buckets
  if (result == kNever) {
    // Where it was too many, it is so from those that were met as well: not to be counted again after every character.
    if (!too_many) seen = {{key(regex, element), 0}};
    for (const auto& [k, unused] : seen) completes_.try_emplace(k, kNever);
    bytes_ += seen.size() * kEntry;
    return kNever;
  }
  // Elements to the nearest end, backwards from where a quote may follow.
  std::vector<uint32_t> distance(pairs.size(), kNever);
  for (uint32_t i = 0; i < pairs.size(); ++i)
    if (pairs[i].second == element && regexes_.nullable(regexes_.next(pairs[i].first, '"'))) distance[i] = 0;
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t i = edges.size(); i-- > 0;) {
      const Edge& e = edges[i];
      if (distance[e.to] == kNever || distance[e.to] + e.counts >= distance[e.from]) continue;
      distance[e.from] = distance[e.to] + e.counts;
      changed = true;
    }
  }
  result = *std::max_element(distance.begin(), distance.end());
  const std::size_t before = completes_.size();
  for (const auto& [k, unused] : seen) completes_[k] = result;
  bytes_ += (completes_.size() - before) * kEntry;
  return result;
}

// regex = E{min,max} and a quote, and something in which every run of E can be completed: the tokens of few
// enough elements are inside, those near the limit are tried one by one.
bool Slices::contained(RegexId regex, TerminalMask& out) {
  const RegexNode n = regexes_.node(regex);
  // The widest runs are those of any JSON character and any UTF-8 character.
  for (uint32_t slot : {1u, 3u}) {
    const RegexId any = regexes_.remembered(slot);
    if (any == RegexArena::empty() || regexes_.nullable(regex)) continue;
    uint32_t min = 0, max = kUnbounded;
    RegexId rest = regex;
    if (n.kind == RegexKind::kAnd && slot == 1) {
      std::vector<RegexId> others;
      bool plain = true;
      for (uint32_t i = 0; i < n.n; ++i) {
        plain = plain && regexes_.node(RegexId{n.kids[i]}).kind != RegexKind::kNot;
        RegexId element, tail;
        uint32_t from, to;
        if (as_run(regexes_, RegexId{n.kids[i]}, element, from, to, tail) && element == any &&
            tail == regexes_.byte('"')) {
          min = std::max(min, from);
          max = std::min(max, to);
        } else {
          others.push_back(RegexId{n.kids[i]});
        }
      }
      if (others.empty()) continue;
      // What is left must still be a language of string bodies.
      if (!plain) others.push_back(regexes_.cat(regexes_.star(any), regexes_.byte('"')));
      rest = regexes_.both(std::span<const RegexId>(others));
    }
    if (!(regexes_.live(any) & ~regexes_.live(rest)).none() || counts_groups(rest)) continue;
    const uint32_t more = completes(rest, any, kPairBudget);
    if (more == kNever) continue;
    RunClass* run = this->run(any);
    if (!run) continue;
    if (slot == 3) {  // plain text is left on no byte of its own
      out.base = &run->up_to(kUnbounded);
      return true;
    }
    if (max != kUnbounded && min + more > max) continue;
    const uint32_t safe = max == kUnbounded ? kUnbounded : max - more;
    if (run->tokens_between(safe, max) > kSparseLimit) continue;
    if (meets_exits(regex, rest, *run, min, max, safe, out)) return true;
    out = TerminalMask{};
  }
  return false;
}

bool Slices::meets_exits(RegexId regex, RegexId rest, RunClass& run, uint32_t min, uint32_t max, uint32_t safe,
                         TerminalMask& out) {
  const TokenTrie& trie = vocabulary_.trie();
  const RunExits& exits = run.exits('"');
  out.left = &exits;
  out.base = safe >= run.longest() ? &exits.unbounded : &run.up_to(safe);
  for (const Exit& e : exits.children) {
    const RegexId to = regexes_.run(rest, path(e.node));
    // Something that goes on after the quote is not a string body.
    if (to != RegexArena::empty() && to != RegexArena::epsilon()) return false;
    const bool ends = to == RegexArena::epsilon() && e.count >= min && e.count <= max;
    const auto tokens = trie.tokens(e.node);
    if (!ends) block(e.node, out);
    if (out.base == &exits.unbounded ? !ends : ends) {
      auto& list = ends ? out.added : out.removed;
      list.insert(list.end(), tokens.begin(), tokens.end());
    }
  }
  std::sort(out.blocked.begin(), out.blocked.end());
  if (safe < run.longest())
    run.for_each_between(safe, max, [&](TokenId t) {
      if (regexes_.run(regex, vocabulary_.bytes(t)) != RegexArena::empty()) out.added.push_back(t);
    });
  return true;
}

bool Slices::covers(RegexId regex) {
  const RegexId any = regexes_.remembered(1);
  if (any == RegexArena::empty() || regexes_.nullable(regex)) return false;
  return (regexes_.live(any) & ~regexes_.live(regex)).none() && completes(regex, any, kCoverBudget) != kNever;
}

const TerminalMask* Slices::leaving(RegexId regex) {
  const auto [it, fresh] = leaving_.try_emplace(regex.v);
  if (!fresh) return it->second.get();
  const RegexId any = regexes_.remembered(1);
  RunClass* run = any == RegexArena::empty() || regexes_.nullable(regex) ? nullptr : this->run(any);
  if (!run) return nullptr;
  auto out = std::make_unique<TerminalMask>();
  const RunExits& exits = run->exits('"');
  out->left = &exits;
  for (const Exit& e : exits.children) {
    const RegexId to = regexes_.run(regex, path(e.node));
    if (to == RegexArena::epsilon()) {
      const auto tokens = vocabulary_.trie().tokens(e.node);
      out->added.insert(out->added.end(), tokens.begin(), tokens.end());
    } else if (to == RegexArena::empty()) {
      block(e.node, *out);
    } else {
      return nullptr;
    }
  }
  std::sort(out->blocked.begin(), out->blocked.end());
  const std::size_t size = sizeof(TerminalMask) + 4 * (out->added.capacity() + out->blocked.capacity());
  bytes_ += size;
  terminal_bytes_ += size;
  leaving_[regex.v] = std::move(out);
  return leaving_[regex.v].get();
}

const TableMask& Slices::table(uint32_t id) {
  std::unique_ptr<TableMask>& slot = tables_[id];
  if (slot) return *slot;
  slot = std::make_unique<TableMask>();
  JsonSet start;
  start.table = id;
  start.hi = static_cast<uint32_t>(regexes_.tables().table(id).texts.size());
  if (start.hi > 0) read_literals(start, *slot);
  bytes_ += slot->inside.size() * sizeof(TableMask::Inside) + slot->done.size() * sizeof(TableMask::Done);
  return *slot;
}

// Goes down the trie only where some spelling of a literal does.
void Slices::read_literals(const JsonSet& start, TableMask& out) const {
  const TokenTrie& trie = vocabulary_.trie();
  const LiteralTables& tables = regexes_.tables();
  std::vector<std::pair<uint32_t, JsonSet>> todo{{0, start}};
  while (!todo.empty()) {
    const auto [at, from] = todo.back();
    todo.pop_back();
    const TokenTrie::Kids& kids = trie.kids(at);
    (kids.set & tables.first_bytes(from)).for_each([&](uint8_t b) {
      JsonSet s = from;
      bool done;
      if (!tables.step(s, b, done)) return;
      const uint32_t child = trie.child(kids, b);
      if (done) {
        out.done.push_back({child, s.lo});
        return;
      }
      for (TokenId t : trie.tokens(child)) out.inside.push_back({t, s.lo, s.hi, s.escape == 0});
      if (!trie.leaf(child)) todo.emplace_back(child, s);
    });
  }
}

std::string Slices::path(uint32_t node) const {
  // Some token lies below every node; its first bytes are the path.
  const TokenTrie& trie = vocabulary_.trie();
  return std::string(vocabulary_.bytes(trie.subtree_tokens(node).front()).substr(0, trie.node(node).depth));
}

}  // namespace structgen
