// How the tokens of a vocabulary are sorted by the number of elements that they consist of, and how this is
// kept; runs.h lists the questions that a class answers.
//
// The problem. Most states of JSON stand in a string, and nearly every token may follow there. A walk of the
// trie for each such state takes two milliseconds at 131k tokens, and `"maxLength": 20` has 20 such states.
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
// So the mask of E{m,n} followed by anything is made of a row and the exits, whatever m and n are and
// whatever follows.
//
// Sharing. A class belongs to the vocabulary. of() finds it by the automaton of E, whose states are numbered
// in the order of their discovery, so that equal automata of different arenas have equal keys. A saved
// vocabulary brings its classes (write(), the constructor from bytes). The saved bytes are not trusted: ids,
// nodes and depths are checked, and a class that does not fit is made anew.
//
// Similar classes. Elements often differ in few characters: `[^/]` lacks one character of `.`. So a new class
// begins as a copy of a known one. If the two elements go on alike behind a byte, both read the subtree of
// this byte alike. So only those subtrees are read anew that begin, behind whole elements, with a byte behind
// which the elements differ:
//
//     known: the class of `.`        new: `[^/]`        other bytes: `/`, and the backslash (`\u002f`)
//     copied: all tokens, all nodes at which an element ends
//     read anew: `/`, `a/b`, `\n`    `/` and all below it leave the class, `\n` stays
//
// Invariants.
// - A row, list, cut or exit that was handed out stays where it is and as it is. A slot is published
//   once, with release order, and read without a lock.
// - boundary() is true for a trie node whose text consists of whole characters: for the root, and on a path
//   for one node a character.
// - E is finite and never empty, and no text of E begins another. Otherwise ok() is false, and masks are made
//   without the class. The regex [^,]* shows why E must be finite: behind each byte its automaton is at its
//   start again, although no element has ended.
//
// Costs. One walk of the trie a class, or a copy (V/8 bytes, and a bit for each node; V: tokens) and a walk
// of the differences. Rows are made as they are asked for, V/8 bytes each. The numbers of elements (buckets)
// take another walk, and are made where a regex counts. Classes that no world holds are dropped beyond kKept
// bytes.
//
// Rejected. A row for each state: a counter up to n would have n rows. Counting in the walk (mask/fill.cc).
#include "mask/runs.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <map>

#include "mask/vocabulary.h"
#include "mask/walk_table.h"
#include "regex/regex.h"
#include "strings/json_spelling.h"

namespace structgen {

namespace {

// A vocabulary keeps up to this many bytes of classes that no world uses.
constexpr std::size_t kKept = 24u << 20;
// automaton() gives up on an element with more states than this. The class of such an element has no key and
// is not kept.
constexpr std::size_t kKeyStates = 32;
// A new class is compared with this many other classes. The new class is copied from another class if at most
// one in kReadAgain of its nodes has to be read again.
constexpr std::size_t kCompared = 32, kReadAgain = 3;
// automaton() also gives up after this many new regexes, because nested counters may make ever more regexes.
constexpr uint32_t kKeyNodes = 1'000;

// Returns the automaton of a regex as a string, which serves as its key in all arenas. It is empty if the
// automaton is too large. States are numbered in the order of their discovery. A state is `E` (it ends) or
// `I`, then a pair (first byte, successor) for each range of bytes with the same successor. The successor 255
// is dead.
std::string automaton(RegexArena& regexes, RegexId regex) {
  const uint32_t nodes = regexes.size() + kKeyNodes;
  std::vector<RegexId> states{regex};
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

// Splits an element by its first byte. The automaton of the element is not too large, so no automaton of what
// may follow its first byte is too large.
RunElement split(RegexArena& regexes, RegexId regex) {
  RunElement out;
  std::vector<std::pair<RegexId, uint8_t>> known{{RegexArena::empty(), uint8_t{0}}};
  for (std::size_t b = 0; b < 256; ++b) {
    const RegexId to = regexes.step(regex, static_cast<uint8_t>(b));
    auto at = std::ranges::find(known, to, &std::pair<RegexId, uint8_t>::first);
    if (at == known.end()) {
      const std::string language = automaton(regexes, to);
      const auto same = std::ranges::find(out.languages, language);
      known.emplace_back(to, static_cast<uint8_t>(same - out.languages.begin()));
      if (same == out.languages.end()) out.languages.push_back(language);
      at = known.end() - 1;
    }
    out.behind[b] = at->second;
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

// Reads what put() and put_all() wrote. Once a number does not fit, ok() is false and all reads return zeros,
// so a caller may check once after several reads.
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
      // `path` holds the nodes above this node. Nodes that were added for an earlier deep node are skipped.
      for (const uint32_t above : path)
        if (above != 0 && (deep_.empty() || above > deep_.back())) deep_.push_back(above);
    if (n.depth > kDeep) deep_.push_back(i);
    parents_[i] = path.back();
    path.push_back(i);
    nodes_[next[n.byte]++] = i;
  }
}

ByteSet RunElement::differences(const RunElement& other) const {
  std::vector<std::size_t> same;  // the number in the other element
  for (const std::string& language : languages)
    same.push_back(
        static_cast<std::size_t>(std::ranges::find(other.languages, language) - other.languages.begin()));
  ByteSet out;
  for (std::size_t b = 0; b < 256; ++b)
    if (same[behind[b]] != other.behind[b]) out.add(static_cast<uint8_t>(b));
  return out;
}

// Reads subtrees of the trie with the automaton of an element, which begins again behind each element. It
// marks the nodes at which an element ends, and adds the tokens that it reads to the class.
class RunClass::Reader {
 public:
  Reader(RunClass& run, RegexArena& regexes, RegexId element)
      : run_(run),
        trie_(run.vocabulary_.trie()),
        table_(regexes),
        start_(table_.state(element)),
        done_(table_.state(RegexArena::epsilon())),
        at_(run.vocabulary_.longest() + 1) {
    begin_.fill(WalkTable::kUnknown);
  }
  // Reads the nodes from `first` up to `end`. Their parent is a node at which an element ends, behind
  // `elements` elements. Returns false if a text of E begins another text of E, so that a token could be
  // split into elements in two ways.
  bool read(uint32_t first, uint32_t end, uint32_t elements) {
    at_[trie_.node(first).depth - 1] = {start_, elements};
    for (uint32_t i = first; i < end;) {
      const TokenTrie::Node& n = trie_.node(i);
      const uint8_t byte = static_cast<uint8_t>(n.byte);
      At to = at_[n.depth - 1];
      if (to.state == start_) {
        if (begin_[byte] == WalkTable::kUnknown) begin_[byte] = next(start_, byte);
        to = {begin_[byte], to.elements + 1};
      } else {
        to.state = next(to.state, byte);
      }
      if (to.state == WalkTable::kDead) {
        i = n.end;
        continue;
      }
      if (to.state == start_)
        run_.boundary_[i / 64] |= uint64_t{1} << (i % 64);
      else if (table_.ends(to.state))
        return false;
      at_[n.depth] = to;
      for (TokenId t : trie_.tokens(i)) {
        set_bit(run_.all_, t);
        run_.longest_ = std::max(run_.longest_, to.elements);
      }
      ++i;
    }
    return true;
  }

 private:
  struct At {
    uint32_t state, elements;
  };
  // Returns the state behind a byte. Behind a whole element the automaton is at its start again.
  uint32_t next(uint32_t state, uint8_t byte) {
    const uint32_t to = table_.next(state, byte);
    return to == done_ ? start_ : to;
  }
  RunClass& run_;
  const TokenTrie& trie_;
  WalkTable table_;
  const uint32_t start_, done_;
  std::vector<At> at_;  // by depth
  std::array<uint32_t, 256> begin_;
};

RunClass::RunClass(RegexArena& regexes, const Vocabulary& vocabulary, Runs& runs, RegexId element)
    : vocabulary_(vocabulary),
      runs_(runs),
      ok_(!regexes.nullable(element) && regexes.node(element).finite),
      begins_(regexes.live(element)),
      all_(vocabulary.words()),
      boundary_(vocabulary.trie().size() / 64 + 1) {
  boundary_[0] = 1;
  ok_ = ok_ && Reader(*this, regexes, element).read(1, vocabulary.trie().size(), 0);
  settle();
}

RunClass::RunClass(RegexArena& regexes, RunClass& like, RegexId element, const ByteSet& other_bytes)
    : vocabulary_(like.vocabulary_),
      runs_(like.runs_),
      begins_(regexes.live(element)),
      all_(like.all_),
      boundary_(like.boundary_),
      longest_(like.longest_) {
  const TokenTrie& trie = vocabulary_.trie();
  const NodeIndex& index = runs_.index();
  Reader reader(*this, regexes, element);
  std::vector<uint64_t> done(boundary_.size());
  other_bytes.for_each([&](uint8_t b) {
    for (const uint32_t node : index.of(b)) {
      // A subtree that is read anew may contain subtrees that were read anew before; these are read twice.
      if (!ok_ || !like.boundary(index.parent(node)) || done[node / 64] >> (node % 64) & 1) continue;
      const uint32_t end = trie.node(node).end;
      for (uint32_t i = node; i < end; ++i) {
        boundary_[i / 64] &= ~(uint64_t{1} << (i % 64));
        done[i / 64] |= uint64_t{1} << (i % 64);
      }
      for (TokenId t : trie.subtree_tokens(node)) all_[static_cast<uint32_t>(t) >> 5] &= ~(1u << (t & 31));
      if (begins_.has(b)) ok_ = reader.read(node, end, like.elements(index.parent(node), index));
    }
  });
  settle();
}

// Makes the slots and counts the memory, once the tokens are known.
void RunClass::settle() {
  for (const uint32_t word : all_) tokens_ += static_cast<std::size_t>(std::popcount(word));
  rows_ = std::make_unique<Slot<Words>[]>(longest_ + 1);
  lists_ = std::make_unique<Slot<std::vector<TokenId>>[]>(longest_ + 1);
  bytes_ += sizeof(RunClass) + boundary_.capacity() * sizeof(uint64_t) + all_.capacity() * sizeof(uint32_t) +
            2 * sizeof(void*) * (longest_ + 1);
}

uint32_t RunClass::elements(uint32_t node, const NodeIndex& index) const {
  uint32_t out = 0;
  for (; node != 0; node = index.parent(node)) out += boundary(node);
  return out;
}

RunClass::Buckets RunClass::make_buckets() {
  Buckets out(longest_);
  for_each_cut([&](TokenId t, uint32_t elements, std::string_view begun) {
    out[elements + !begun.empty() - 1].push_back(t);
  });
  for (const auto& b : out) bytes_ += sizeof(b) + b.capacity() * sizeof(TokenId);
  return out;
}

const Words& RunClass::up_to(uint32_t k) {
  if (k >= longest_) return all_;
  const Buckets& buckets = this->buckets();
  return rows_[k].get(lock_, [&] {
    Words out(vocabulary_.words());
    for (uint32_t i = 0; i < k; ++i)
      for (TokenId t : buckets[i]) set_bit(out, t);
    bytes_ += out.size() * 4;
    return out;
  });
}

// Calls f for the tokens that consist of elements, in the order of the trie. `ends` has, for each depth of
// the path, where the last whole element ends.
template <class F>
void RunClass::for_each_cut(F&& f) {
  const TokenTrie& trie = vocabulary_.trie();
  std::string path(vocabulary_.longest(), '\0');
  struct End {
    uint32_t bytes, elements;
  };
  std::vector<End> ends(vocabulary_.longest() + 1, End{0, 0});  // by depth: where the last element ended
  for (uint32_t i = 1; i < trie.size();) {
    const TokenTrie::Node& node = trie.node(i);
    const End before = ends[node.depth - 1];
    const End end = ends[node.depth] = boundary(i) ? End{node.depth, before.elements + 1} : before;
    // No element begins with this byte, so no token at or below the node consists of elements.
    if (end.bytes + 1 == node.depth && !begins_.has(static_cast<uint8_t>(node.byte))) {
      i = node.end;
      continue;
    }
    path[node.depth - 1] = static_cast<char>(node.byte);
    const std::string_view begun(path.data() + end.bytes, node.depth - end.bytes);
    // Callers index arrays of longest_ + 1 elements with these counts, and a forged file may give too small a
    // longest_.
    if (end.elements + !begun.empty() <= longest_)
      for (TokenId t : trie.tokens(i))
        if (get_bit(all_, t)) f(t, end.elements, begun);
    ++i;
  }
}

const RunCuts& RunClass::cuts() {
  return cuts_.get(lock_, [&] {
    RunCuts out;
    out.whole.resize(all_.size());
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
  // The tokens that end with a whole element, by their number of elements. Nearly all tokens of elements end
  // with a whole element.
  std::vector<std::vector<TokenId>> ends(longest() + 1);
  std::map<std::pair<uint32_t, std::string>, std::vector<TokenId>> cut;
  for_each_cut([&](TokenId t, uint32_t count, std::string_view begun) {
    (begun.empty() ? ends[count] : cut[{count, std::string(begun)}]).push_back(t);
  });
  RunCounts out;
  const std::size_t words = all_.size();
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
    bytes_ += 96 + (tokens.size() > kMostListed ? words : tokens.size()) * 4;
    RunCounts::Whole whole{count, {}, {}};
    if (tokens.size() > kMostListed) {
      whole.row.resize(words);
      for (TokenId t : tokens) set_bit(whole.row, t);
    } else {
      whole.tokens = std::move(tokens);
    }
    out.wholes.push_back(std::move(whole));
  }
  return out;
}

std::size_t RunClass::tokens_between(uint32_t low, uint32_t high) {
  if (low >= longest_) return 0;
  if (low == 0 && high >= longest_) return tokens_;
  const Buckets& buckets = this->buckets();
  std::size_t n = 0;
  for (uint32_t k = low; k < std::min(high, longest_); ++k) n += buckets[k].size();
  return n;
}

const std::vector<TokenId>* RunClass::list_up_to(uint32_t k) {
  if (tokens_ > kMostListed) return nullptr;
  k = std::min(k, longest_);
  const Words& row = up_to(k);
  return &lists_[k].get(lock_, [&] {
    std::vector<TokenId> list;
    for_each_token(row, [&](TokenId t) { list.push_back(t); });
    bytes_ += list.capacity() * sizeof(TokenId);
    return list;
  });
}

// Publishes the exits by a byte. Their size is counted first, so that byte_size() is never too small.
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
  made->unbounded = all_;
  for (uint32_t child : index.of(byte)) {
    const uint32_t parent = index.parent(child);
    if (!boundary(parent)) continue;
    const uint32_t count = elements(parent, index);
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
  put_all(out, std::vector<uint64_t>(begins_.w.begin(), begins_.w.end()));
  put(out, longest_);
  put_all(out, all_);
  put_all(out, boundary_);
  const Buckets* const buckets = buckets_.made();
  put(out, buckets != nullptr);
  if (buckets)
    for (const auto& b : *buckets) put_all(out, b);
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

// Reads a saved class and checks what later code relies on: token ids and node indices are in range, and in
// the trie of endings subtrees nest and depths rise by at most one. A forged file may give wrong masks, but
// no access outside the arrays.
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
  std::vector<uint64_t> begins;
  from.all(begins);
  longest_ = from.number();
  from.all(all_);
  from.all(boundary_);
  sound = sound && from.ok() && begins.size() == begins_.w.size() && longest_ <= vocabulary.longest() &&
          all_.size() == vocabulary.words() && boundary_.size() == trie.size() / 64 + 1;
  if (sound) std::ranges::copy(begins, begins_.w.begin());
  // No bit stands for a token beyond the last one.
  if (sound && vocabulary.size() % 32 != 0) sound = all_.back() >> vocabulary.size() % 32 == 0;
  if (from.number() == 1 && sound)
    buckets_.get(lock_, [&] {
      Buckets out(longest_);
      for (auto& b : out) {
        from.all(b);
        sound = sound && tokens_fit(b, std::identity());
        bytes_ += sizeof(b) + b.capacity() * sizeof(TokenId);
      }
      return out;
    });
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
  if (!ok_) {
    all_.clear();
    longest_ = 0;
  }
  settle();
}

const NodeIndex& Runs::index() {
  const std::lock_guard hold(index_lock_);
  if (!index_) index_ = std::make_unique<NodeIndex>(vocabulary_.trie());
  return *index_;
}

void Runs::prepare() {
  // Only the class is kept. The arena goes when this function ends.
  RegexArena regexes(kJson);
  const auto strings = of(regexes, regexes.any_character());
  if (!strings->ok()) return;
  strings->exits(static_cast<uint8_t>(kJson.end));
  strings->tokens_between(1, strings->longest());
  index();
}

// The lock is held while a class is made, so that two compilers do not both make it.
std::shared_ptr<RunClass> Runs::of(RegexArena& regexes, RegexId element) {
  // Only a finite class of characters gets a key.
  const RegexKind kind = regexes.node(element).kind;
  const bool keyed = regexes.node(element).finite && !regexes.nullable(element) &&
                     (kind == RegexKind::kBytes || kind == RegexKind::kAlt);
  const std::string key = keyed ? automaton(regexes, element) : std::string();
  std::unique_lock hold(lock_, std::defer_lock);
  if (!key.empty()) {
    hold.lock();
    for (auto it = known_.begin(); it != known_.end(); ++it)
      if (it->key == key) {
        known_.splice(known_.begin(), known_, it);
        return it->run;
      }
  }
  if (key.empty()) return std::make_shared<RunClass>(regexes, vocabulary_, *this, element);
  const RunElement parts = split(regexes, element);
  std::shared_ptr<RunClass> made;
  if (const auto saved = saved_.find(key); saved != saved_.end()) {
    made = std::make_shared<RunClass>(saved->second, vocabulary_, *this);
    if (!made->ok()) made = nullptr;
  }
  if (!made) made = make(regexes, element, parts);
  known_.push_front({key, parts, made});
  // Counts the bytes of classes that no world uses; only these can be freed.
  std::size_t idle = 0;
  for (auto it = known_.begin(); it != known_.end();) {
    if (it->run.use_count() == 1) idle += it->run->byte_size();
    it = it->run.use_count() == 1 && idle > kKept ? known_.erase(it) : std::next(it);
  }
  return made;
}

// Looks for the most similar class among the last kCompared classes. Reading a subtree anew costs more than
// reading it for the first time, so a class is copied only if a small part of the nodes has to be read again.
std::shared_ptr<RunClass> Runs::make(RegexArena& regexes, RegexId regex, const RunElement& element) {
  const NodeIndex& index = this->index();
  std::size_t most = 0;
  for (int b = 0; b < 256; ++b)
    if (element.behind[b] != 0) most += index.of(static_cast<uint8_t>(b)).size();
  most /= kReadAgain;
  RunClass* like = nullptr;
  ByteSet other;
  std::size_t tried = 0;
  for (const Known& k : known_) {
    if (++tried > kCompared) break;
    if (!k.run->ok() || k.run->tokens() <= kMostListed) continue;
    const ByteSet differ = element.differences(k.element);
    std::size_t nodes = 0;
    differ.for_each([&](uint8_t b) { nodes += index.of(b).size(); });
    if (nodes >= most) continue;
    most = nodes;
    like = k.run.get();
    other = differ;
  }
  if (like) return std::make_shared<RunClass>(regexes, *like, regex, other);
  return std::make_shared<RunClass>(regexes, vocabulary_, *this, regex);
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
  std::lock_guard hold(lock_), hold_index(index_lock_);
  std::size_t sum = index_ ? index_->byte_size() : 0;
  for (const Known& k : known_) sum += k.run->byte_size();
  return sum;
}

}  // namespace structgen
