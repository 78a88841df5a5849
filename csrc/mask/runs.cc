// How a vocabulary's tokens fall into runs of one class of characters; runs.h lists the questions it
// answers.
//
// The problem. Most states of JSON stand in a string, and nearly every token may follow there. A walk
// of the trie for each of them takes two milliseconds at 131k tokens, and `"maxLength": 20` has 20 such
// states.
//
// The idea. Let E be one character of a string. E is a prefix code, so a token is cut into characters
// in one way, and whether it stays inside depends on its number of characters alone. For the tokens
// `a`, `ab`, `é`, `b"`, `"`:
//
//     buckets       one character: a, é     two: ab
//     up_to(k)      the row of the buckets up to k: the mask inside E{0,k}, but for tokens that leave
//     exits(`"`)    where a token goes on with a quote behind whole characters: `"` after 0, `b"` after 1,
//                   each with its number of characters, and what follows the quote as one tree of suffixes
//     cuts()        tokens that end within a character, by the bytes that are begun
//
// So E{m,n} followed by anything takes a row and the exits, whatever m and n are and whatever follows.
//
// Sharing. A class belongs to the vocabulary. of() finds it by the automaton of E, whose states are
// numbered in the order of their discovery, so that equal automata of different arenas have equal keys.
// A saved vocabulary brings its classes (write(), the constructor from bytes). Those bytes are not
// trusted: ids, nodes and depths are checked, and a class that does not fit is made anew.
//
// Invariants.
// - A row, list, cut or exit that was handed out stays where it is and as it is. A slot is published
//   once, with release order, and read without a lock.
// - boundary() holds for a trie node whose text consists of whole characters: for the root, and for one node
// a
//   character on the path to it.
// - E is never empty, and no text of E begins another. Otherwise ok() is false, and masks are made
//   without the class.
//
// Costs. One walk of the trie a class. Rows are made as they are asked for, V/8 bytes each (V: tokens).
// Classes that no world holds are dropped beyond kKept bytes.
//
// Rejected. A row for each state, which would be as many as a counter's limit; and counting in the walk
// (mask/fill.cc).
#include "mask/runs.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "mask/vocabulary.h"
#include "mask/walk_table.h"
#include "regex/regex.h"
#include "strings/json_spelling.h"

namespace structgen {

namespace {

// If no world uses some classes, a vocabulary keeps up to this many bytes of them.
constexpr std::size_t kKept = 24u << 20;
// automaton() gives up on an element with more states than this. Such an element has no key, so its class is
// not kept.
constexpr std::size_t kKeyStates = 32;
// automaton() also gives up after this many new regexes, because nested counters make more and more of them.
constexpr uint32_t kKeyNodes = 1'000;

// Returns the automaton of a regex as a string, which serves as its key in all arenas. It is empty if the
// automaton is too large or the regex is no finite class of characters. States are numbered in the order of
// their discovery. A state is `E` (it ends) or `I`, then a pair (first byte, successor) for each range of
// bytes with the same successor. The successor 255 is dead.
std::string automaton(RegexArena& regexes, RegexId element) {
  const RegexKind kind = regexes.node(element).kind;
  if (!regexes.node(element).finite || (kind != RegexKind::kBytes && kind != RegexKind::kAlt)) return {};
  const uint32_t nodes = regexes.size() + kKeyNodes;
  std::vector<RegexId> states{element};
  std::string out;
  for (std::size_t i = 0; i < states.size(); ++i) {
    if (states.size() > kKeyStates || regexes.size() > nodes) return {};
    const ClassMap& classes = regexes.classes(states[i]);
    out.push_back(regexes.nullable(states[i]) ? 'E' : 'I');
    for (int b = 0; b < 256; ++b) {
      if (b > 0 && classes.of[b] == classes.of[b - 1]) continue;
      const RegexId to = regexes.step(states[i], static_cast<uint8_t>(b));
      if (to != RegexArena::empty() && regexes.node(to).labelled) return {};
      std::size_t number = 255;
      if (to != RegexArena::empty()) {
        number = static_cast<std::size_t>(std::find(states.begin(), states.end(), to) - states.begin());
        if (number == states.size()) states.push_back(to);
      }
      out.push_back(static_cast<char>(b));
      out.push_back(static_cast<char>(number));
    }
  }
  return out;
}

void put(std::string& out, uint32_t value) { out.append(reinterpret_cast<const char*>(&value), 4); }

template <class T>
void put_all(std::string& out, const std::vector<T>& values) {
  put(out, static_cast<uint32_t>(values.size()));
  out.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
  out.resize((out.size() + 3) / 4 * 4);
}

// Reads what put() and put_all() wrote. Once a number does not fit, ok() is false and every read returns
// zeros. So callers may check once, after several reads.
class Source {
 public:
  explicit Source(std::string_view from) : from_(from) {}
  bool ok() const { return ok_; }
  uint32_t number() {
    uint32_t out = 0;
    read(&out, 4);
    return out;
  }
  template <class T>
  void all(std::vector<T>& out) {
    const uint32_t n = number();
    if (n > from_.size() / sizeof(T)) ok_ = false;
    if (!ok_) return;
    out.resize(n);
    read(out.data(), n * sizeof(T));
    from_.remove_prefix(std::min<std::size_t>(from_.size(), (4 - n * sizeof(T) % 4) % 4));
  }
  std::string_view bytes(std::size_t n) {
    if (n > from_.size()) ok_ = false;
    if (!ok_) return {};
    const std::string_view out = from_.substr(0, n);
    from_.remove_prefix(n);
    return out;
  }

 private:
  void read(void* to, std::size_t n) {
    const std::string_view found = bytes(n);
    if (ok_ && n) std::memcpy(to, found.data(), n);
  }
  std::string_view from_;
  bool ok_ = true;
};

}  // namespace

NodeIndex::NodeIndex(const TokenTrie& trie) : nodes_(trie.size()), parents_(trie.size(), 0) {
  for (uint32_t i = 1; i < trie.size(); ++i) ++first_[trie.node(i).byte + 1];
  for (int b = 0; b < 256; ++b) first_[b + 1] += first_[b];
  uint32_t next[256];
  std::copy(first_, first_ + 256, next);
  std::vector<uint32_t> path{0};  // node at each depth
  for (uint32_t i = 1; i < trie.size(); ++i) {
    const TokenTrie::Node& n = trie.node(i);
    path.resize(n.depth);
    if (n.depth == kDeep + 1)
      // `path` holds the nodes above this one. Those that an earlier deep node has already added are skipped.
      for (const uint32_t above : path)
        if (above != 0 && (deep_.empty() || above > deep_.back())) deep_.push_back(above);
    if (n.depth > kDeep) deep_.push_back(i);
    parents_[i] = path.back();
    path.push_back(i);
    nodes_[next[n.byte]++] = i;
  }
}

RunClass::RunClass(RegexArena& regexes, const Vocabulary& vocabulary, Runs& runs, RegexId element)
    : vocabulary_(vocabulary), runs_(runs), boundary_(vocabulary.trie().size() / 64 + 1) {
  walk(regexes, element);
  settle();
}

// Makes the slots and counts the memory, once the buckets are known.
void RunClass::settle() {
  rows_ = std::make_unique<Slot<Words>[]>(buckets_.size() + 1);
  lists_ = std::make_unique<Slot<std::vector<TokenId>>[]>(buckets_.size() + 1);
  std::size_t bytes = sizeof(RunClass) + boundary_.capacity() * sizeof(uint64_t);
  for (const auto& b : buckets_) {
    tokens_ += b.size();
    bytes += sizeof(b) + 2 * sizeof(void*) + b.capacity() * sizeof(TokenId);
  }
  bytes_ += bytes;
}

// Walks the trie once with the element's automaton, which begins again behind each element. A node at which
// an element ends gets its number of elements, and a token goes into the bucket of its number, where an
// unfinished last one counts.
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
  mark(0);
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
      mark(i);
    } else if (table.ends(to)) {
      // A text of E begins another text of E, so a token could be split into elements in two ways.
      ok_ = false;
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

Words RunClass::make_row(uint32_t k) {
  Words out(vocabulary_.words());
  for (uint32_t i = 0; i < k; ++i)
    for (TokenId t : buckets_[i]) set_bit(out, t);
  bytes_ += out.size() * 4;
  return out;
}

const Words& RunClass::up_to(uint32_t k) {
  k = std::min<uint32_t>(k, longest());
  return rows_[k].get(lock_, [&] { return make_row(k); });
}

// Calls f for the tokens that consist of elements, in the order of the trie. `ends` holds, for each depth of
// the path, the end of the last whole element.
template <class F>
void RunClass::for_each_cut(F&& f) {
  const TokenTrie& trie = vocabulary_.trie();
  const Words& all = row(longest());
  std::string path(vocabulary_.longest(), '\0');
  struct End {
    uint32_t bytes, elements;
  };
  std::vector<End> ends(vocabulary_.longest() + 1, End{0, 0});  // by depth: where the last element ended
  const auto runs = [&](TokenId t) { return get_bit(all, t); };
  for (uint32_t i = 1; i < trie.size();) {
    const TokenTrie::Node& node = trie.node(i);
    const End before = ends[node.depth - 1];
    const End end = ends[node.depth] = boundary(i) ? End{node.depth, before.elements + 1} : before;
    // This byte begins an element, and no token at or below the node consists of elements.
    if (end.bytes + 1 == node.depth && std::ranges::none_of(trie.subtree_tokens(i), runs)) {
      i = node.end;
      continue;
    }
    path[node.depth - 1] = static_cast<char>(node.byte);
    const std::string_view begun(path.data() + end.bytes, node.depth - end.bytes);
    for (TokenId t : trie.tokens(i))
      if (runs(t)) f(t, end.elements, begun);
    ++i;
  }
}

const RunCuts& RunClass::cuts() {
  return cuts_.get(lock_, [&] {
    RunCuts out;
    out.whole.resize(row(longest()).size());
    std::unordered_map<std::string, std::size_t> known;
    for_each_cut([&](TokenId t, uint32_t, std::string_view begun) {
      if (begun.empty()) return set_bit(out.whole, t);
      const auto [it, fresh] = known.try_emplace(std::string(begun), out.parts.size());
      if (fresh) out.parts.push_back({it->first, {}});
      out.parts[it->second].tokens.push_back(t);
    });
    bytes_ += out.whole.size() * 4 + out.parts.size() * 96;
    return out;
  });
}

const RunCounts& RunClass::counts() {
  return counts_.get(lock_, [&] { return make_counts(); });
}

RunCounts RunClass::make_counts() {
  // The tokens that end with a whole element, by their number of elements: nearly all tokens that consist of
  // elements.
  std::vector<std::vector<TokenId>> ends(longest() + 1);
  std::map<std::pair<uint32_t, std::string>, std::vector<TokenId>> cut;
  for_each_cut([&](TokenId t, uint32_t count, std::string_view begun) {
    (begun.empty() ? ends[count] : cut[{count, std::string(begun)}]).push_back(t);
  });
  RunCounts out;
  const std::size_t words = row(longest()).size();
  out.whole.resize(words);
  bytes_ += words * 4;
  for (auto& [key, tokens] : cut) {
    bytes_ += 96 + tokens.size() * 4;
    out.parts.push_back({key.first, key.second, std::move(tokens)});
  }
  for (uint32_t count = 0; count < ends.size(); ++count) {
    std::vector<TokenId>& tokens = ends[count];
    if (tokens.empty()) continue;
    for (TokenId t : tokens) set_bit(out.whole, t);
    bytes_ += 96 + (tokens.size() > kSparseLimit ? words : tokens.size()) * 4;
    RunCounts::Whole whole{count, {}, {}};
    if (tokens.size() > kSparseLimit) {
      whole.row.resize(words);
      for (TokenId t : tokens) set_bit(whole.row, t);
    } else {
      whole.tokens = std::move(tokens);
    }
    out.wholes.push_back(std::move(whole));
  }
  return out;
}

std::size_t RunClass::tokens_between(uint32_t low, uint32_t high) const {
  std::size_t n = 0;
  for (uint32_t k = low; k < std::min(high, longest()); ++k) n += buckets_[k].size();
  return n;
}

const std::vector<TokenId>* RunClass::list_up_to(uint32_t k) {
  if (tokens_ > kSparseLimit) return nullptr;
  k = std::min<uint32_t>(k, longest());
  return &lists_[k].get(lock_, [&] {
    std::vector<TokenId> list;
    for (uint32_t i = 0; i < k; ++i) list.insert(list.end(), buckets_[i].begin(), buckets_[i].end());
    bytes_ += list.capacity() * sizeof(TokenId);
    return list;
  });
}

// Publishes the exits by a byte. Their size is added first, so that byte_size() is never too small.
void RunClass::add(uint8_t byte, std::unique_ptr<RunExits> exits) {
  bytes_ += sizeof(RunExits) + exits->unbounded.size() * 4 + exits->children.capacity() * sizeof(Exit) +
            exits->ends.capacity() * sizeof(exits->ends[0]) +
            exits->suffixes.nodes.capacity() * sizeof(Suffixes::Node) +
            exits->suffixes.entries.capacity() * sizeof(Suffixes::Entry);
  exits->suffixes.lasting = true;
  owned_.push_back(std::move(exits));
  exits_[byte].store(owned_.back().get(), std::memory_order_release);
}

const RunExits& RunClass::exits(uint8_t byte) {
  if (const RunExits* known = exits_[byte].load(std::memory_order_acquire)) return *known;
  const NodeIndex& index = runs_.index();
  std::lock_guard hold(lock_);
  if (const RunExits* known = exits_[byte].load(std::memory_order_relaxed)) return *known;
  auto made = std::make_unique<RunExits>();
  const TokenTrie& trie = vocabulary_.trie();
  made->unbounded = row(longest());
  for (uint32_t child : index.of(byte)) {
    const uint32_t parent = index.parent(child);
    if (!boundary(parent)) continue;
    uint32_t count = 0;
    for (uint32_t node = parent; node != 0; node = index.parent(node)) count += boundary(node);
    made->children.push_back({child, count});
    made->longest = std::max<uint32_t>(made->longest, count);
    for (TokenId t : trie.tokens(child)) {
      set_bit(made->unbounded, t);
      made->ends.push_back({t, count});
    }
  }
  std::vector<SuffixStart> endings;
  for (const Exit& e : made->children)
    trie.each_child(e.node, ByteSet::all(),
                    [&](uint32_t child, uint8_t) { endings.push_back({child, e.count}); });
  build_suffixes(trie, std::move(endings), made->suffixes);
  add(byte, std::move(made));
  return *exits_[byte].load(std::memory_order_relaxed);
}

void RunClass::write(std::string& out) const {
  put(out, ok_);
  put(out, static_cast<uint32_t>(buckets_.size()));
  for (const auto& b : buckets_) put_all(out, b);
  put_all(out, boundary_);
  for (uint32_t byte = 0; byte < 256; ++byte) {
    const RunExits* e = exits_[byte].load(std::memory_order_acquire);
    if (!e) continue;
    put(out, byte);
    put(out, e->longest);
    put_all(out, e->children);
    put_all(out, e->ends);
    put_all(out, e->suffixes.entries);
    put_all(out, e->unbounded);
    put(out, e->suffixes.depth);
    // The fields are written one by one, because the struct has padding, whose bytes are undefined.
    std::vector<uint32_t> nodes;
    for (const Suffixes::Node& n : e->suffixes.nodes)
      nodes.insert(nodes.end(), {n.end, n.first, n.depth, n.byte});
    put_all(out, nodes);
  }
  put(out, 256);
}

// Reads a saved class and checks what later code relies on: token ids and node indices are in range; in the
// trie of endings subtrees nest and depths rise by at most one. A file that was made by hand may give wrong
// masks, but no access outside the arrays.
RunClass::RunClass(std::string_view saved, const Vocabulary& vocabulary, Runs& runs)
    : vocabulary_(vocabulary), runs_(runs) {
  const TokenTrie& trie = vocabulary.trie();
  Source from(saved);
  const auto tokens_fit = [&](const auto& list, auto&& token) {
    for (const auto& x : list)
      if (static_cast<uint32_t>(token(x)) >= vocabulary.size()) return false;
    return true;
  };
  const auto entry = [](const Suffixes::Entry& e) { return e.token; };
  bool sound = from.number() == 1;
  const uint32_t n = from.number();
  sound = sound && from.ok() && n <= vocabulary.longest();
  if (sound) buckets_.resize(n);
  for (auto& b : buckets_) {
    from.all(b);
    sound = sound && tokens_fit(b, [](TokenId t) { return t; });
  }
  from.all(boundary_);
  sound = sound && from.ok() && boundary_.size() == trie.size() / 64 + 1;
  while (sound) {
    const uint32_t byte = from.number();
    if (byte == 256 || !from.ok()) break;
    auto e = std::make_unique<RunExits>();
    e->longest = from.number();
    from.all(e->children);
    from.all(e->ends);
    from.all(e->suffixes.entries);
    from.all(e->unbounded);
    e->suffixes.depth = from.number();
    std::vector<uint32_t> nodes;
    from.all(nodes);
    sound =
        from.ok() && byte < 256 && tokens_fit(e->ends, entry) && tokens_fit(e->suffixes.entries, entry) &&
        e->unbounded.size() == vocabulary.words() && nodes.size() % 4 == 0 && !nodes.empty() &&
        e->suffixes.depth <= vocabulary.longest() &&
        std::ranges::all_of(e->children, [&](const Exit& x) { return x.node > 0 && x.node < trie.size(); });
    const uint32_t count = static_cast<uint32_t>(nodes.size() / 4);
    uint32_t depth = 0;
    for (uint32_t i = 0; i < count && sound; ++i) {
      const Suffixes::Node node{nodes[4 * i], nodes[4 * i + 1], nodes[4 * i + 2],
                                static_cast<uint8_t>(nodes[4 * i + 3])};
      const bool last = i + 1 == count;
      sound = node.first <= (last ? e->suffixes.entries.size() : nodes[4 * i + 5]) &&
              (last ? node.first == e->suffixes.entries.size()
                    : node.end > i && node.end < count && node.depth >= 1 && node.depth <= depth + 1 &&
                          node.depth <= e->suffixes.depth);
      depth = node.depth;
      e->suffixes.nodes.push_back(node);
    }
    if (sound) add(static_cast<uint8_t>(byte), std::move(e));
  }
  ok_ = sound && from.ok();
  if (!ok_) buckets_.clear();
  settle();
}

const NodeIndex& Runs::index() {
  const std::lock_guard hold(index_lock_);
  if (!index_) index_ = std::make_unique<NodeIndex>(vocabulary_.trie());
  return *index_;
}

void Runs::prepare() {
  // Only the class is kept; the arena goes at the end of this function.
  RegexArena regexes(kJson);
  const auto strings = of(regexes, regexes.any_character());
  if (!strings->ok()) return;
  strings->exits(static_cast<uint8_t>(kJson.end));
  strings->up_to(strings->longest());
  index();
}

// The lock is held while a class is made, so that two compilers do not make the same class twice.
std::shared_ptr<RunClass> Runs::of(RegexArena& regexes, RegexId element) {
  const std::string key = automaton(regexes, element);
  std::unique_lock hold(lock_, std::defer_lock);
  if (!key.empty()) {
    hold.lock();
    for (auto it = known_.begin(); it != known_.end(); ++it)
      if (it->key == key) {
        known_.splice(known_.begin(), known_, it);
        return it->run;
      }
  }
  std::shared_ptr<RunClass> made;
  if (const auto saved = saved_.find(key); !key.empty() && saved != saved_.end()) {
    made = std::make_shared<RunClass>(saved->second, vocabulary_, *this);
    if (!made->ok()) made = nullptr;
  }
  if (!made) made = std::make_shared<RunClass>(regexes, vocabulary_, *this, element);
  if (key.empty()) return made;
  known_.push_front({key, made});
  // Counts the bytes of classes that no world uses; only these can be freed.
  std::size_t idle = 0;
  for (auto it = known_.begin(); it != known_.end();) {
    if (it->run.use_count() == 1) idle += it->run->byte_size();
    it = it->run.use_count() == 1 && idle > kKept ? known_.erase(it) : std::next(it);
  }
  return made;
}

std::string Runs::write() {
  std::lock_guard hold(lock_);
  std::string out;
  for (const Known& k : known_) {
    if (!k.run->ok()) continue;
    std::string body;
    k.run->write(body);
    put(out, static_cast<uint32_t>(k.key.size()));
    put(out, static_cast<uint32_t>(body.size()));
    out += k.key;
    out.resize((out.size() + 3) / 4 * 4);
    out += body;
  }
  return out;
}

void Runs::view(std::string_view saved) {
  std::lock_guard hold(lock_);
  Source from(saved);
  for (std::size_t left = saved.size(); left >= 8;) {
    const uint32_t key = from.number(), body = from.number();
    const std::size_t padded = (static_cast<std::size_t>(key) + 3) / 4 * 4;
    const std::string_view name = from.bytes(padded), text = from.bytes(body);
    if (!from.ok()) return;
    saved_.emplace(name.substr(0, key), text);
    left -= 8 + padded + body;
  }
}

std::size_t Runs::byte_size() {
  std::lock_guard hold(lock_);
  std::size_t sum = index_ ? index_->byte_size() : 0;
  for (const Known& k : known_) sum += k.run->byte_size();
  return sum;
}

}  // namespace structgen
