// Runs of an element class E (a prefix code such as "one JSON string character"), computed once a
// vocabulary.
//
// In: E as a regex. Out: the tokens that are made of at most k elements, for every k, and the places where a
// run can be left on a given byte. These tokens and places serve every regex E{m,n} followed by anything:
// plain strings, maxLength, patterns such as `[a-z]{2,8}`. runs.cc explains with an example. Cost: a class is
// one walk of the trie, up to a millisecond at 131k tokens, or a copy of a similar class with its
// differences. Rows, exits and numbers of elements are made when they are first asked for, and kept. All
// compilers over one vocabulary share its classes; the automaton of E is the key of a class. A saved
// vocabulary brings its own classes (mask/artefact.h). Thread-safe; whatever was handed out stays where it
// is.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/bitset.h"
#include "base/fork.h"
#include "base/ids.h"
#include "mask/suffixes.h"
#include "mask/token_trie.h"
#include "regex/regex.h"

namespace structgen {

class Vocabulary;

using Words = std::vector<uint32_t>;
inline void set_bit(Words& w, TokenId t) { w[static_cast<uint32_t>(t) >> 5] |= 1u << (t & 31); }
inline bool get_bit(const Words& w, TokenId t) { return (w[static_cast<uint32_t>(t) >> 5] >> (t & 31)) & 1; }

// A set of more tokens than this is kept as a row, a smaller one as a list.
constexpr std::size_t kMostListed = 1'500;

struct Exit {
  // The trie node at which an element ends, or its child by the byte that leaves the run.
  uint32_t node;
  uint32_t count;
};

// The exits of a run of E by the byte b. `children` are children, by b, of the trie nodes at which an element
// ends.
struct RunExits {
  std::vector<Exit> children;  // sorted by node
  // The tokens that consist of elements and one b behind them.
  std::vector<Suffixes::Entry> ends;
  // What tokens hold behind b, as a trie.
  Suffixes suffixes;
  // The largest number of elements that a token holds before b.
  uint32_t longest = 0;
  // A row of all tokens that consist of elements, and of those that also end with b behind them.
  Words unbounded;
};

// The tokens that consist of elements, grouped by how they end: with a whole element, or with the first bytes
// of an element. If E is one UTF-8 character, the token `a` is whole, and tokens that end with the byte C3
// are the group "C3".
struct RunCuts {
  Words whole;
  struct Part {
    // The first bytes of an element with which these tokens end.
    std::string begun;
    std::vector<TokenId> tokens;
  };
  std::vector<Part> parts;
};

// The groups of RunCuts, divided by the number of whole elements, for regexes that count elements.
struct RunCounts {
  struct Whole {
    uint32_t count;
    // The tokens of `count` whole elements, if they are few; otherwise `row` has them.
    std::vector<TokenId> tokens;
    Words row;
  };
  struct Part {
    uint32_t count;
    std::string begun;
    std::vector<TokenId> tokens;
  };
  // The tokens that end with a whole element: wholes[i] has those of i + 1 elements.
  std::vector<Whole> wholes;
  Words whole;
  std::vector<Part> parts;
};

// The trie nodes listed by their last byte, and the parent of each node; this takes two numbers for each
// node. To find the exits by a byte, only the nodes with this byte are visited, and not every node at which
// an element ends.
class NodeIndex {
 public:
  explicit NodeIndex(const TokenTrie& trie);
  std::span<const uint32_t> of(uint8_t byte) const {
    return {nodes_.data() + first_[byte], nodes_.data() + first_[byte + 1]};
  }
  uint32_t parent(uint32_t node) const { return parents_[node]; }
  // deep() returns the nodes more than kDeep bytes below the root, and all nodes above them, in ascending
  // order.
  static constexpr uint32_t kDeep = 20;
  std::span<const uint32_t> deep() const { return deep_; }
  std::size_t byte_size() const { return (nodes_.size() + parents_.size() + deep_.size()) * 4; }

 private:
  uint32_t first_[257] = {};
  std::vector<uint32_t> nodes_;  // ascending for each byte
  std::vector<uint32_t> parents_;
  std::vector<uint32_t> deep_;
};

class Runs;

// An element E, split by its first byte: `behind[b]` is the number of the language that may follow b, and
// `languages` holds the automata of these languages as strings. The number 0 stands for the empty language:
// b begins no element.
struct RunElement {
  std::array<uint8_t, 256> behind{};
  std::vector<std::string> languages{{}};
  // Returns the bytes behind which two elements go on differently.
  ByteSet differences(const RunElement& other) const;
};

// The run of one element E in one vocabulary: the tokens that consist of elements, and the exits by which
// tokens leave.
class RunClass {
 public:
  // Makes the class of E by a walk of the trie. ok() tells whether E is a finite prefix code (no text of E
  // begins another) without the empty text.
  RunClass(RegexArena& regexes, const Vocabulary& vocabulary, Runs& runs, RegexId element);
  // Makes the class of E from the class of another element. The constructor copies the class `like` and reads
  // anew the subtrees that begin with a byte of `other_bytes`: the bytes behind which the two elements go on
  // differently.
  RunClass(RegexArena& regexes, RunClass& like, RegexId element, const ByteSet& other_bytes);
  // Reads what write() wrote. ok() is false if the bytes do not fit the vocabulary.
  RunClass(std::string_view saved, const Vocabulary& vocabulary, Runs& runs);
  void write(std::string& out) const;
  bool ok() const { return ok_; }
  // Returns a row of the tokens of at most k elements. An unfinished last element counts.
  const Words& up_to(uint32_t k);
  const RunExits& exits(uint8_t byte);
  bool has_exits(uint8_t byte) const { return exits_[byte].load(std::memory_order_acquire) != nullptr; }
  const RunCuts& cuts();
  const RunCounts& counts();
  // Tells whether an element ends at the trie node.
  bool boundary(uint32_t node) const { return boundary_[node / 64] >> (node % 64) & 1; }
  // Returns the tokens of up_to(k) as a list, or null if more than kMostListed tokens consist of elements.
  const std::vector<TokenId>* list_up_to(uint32_t k);
  // Returns the number of tokens of more than `low` and at most `high` elements.
  std::size_t tokens_between(uint32_t low, uint32_t high);
  template <class F>
  void for_each_between(uint32_t low, uint32_t high, F&& f) {
    if (low >= std::min(high, longest())) return;
    const Buckets& buckets = this->buckets();
    for (uint32_t k = low; k < std::min(high, longest()); ++k)
      for (TokenId t : buckets[k]) f(t);
  }
  // No token has more elements than this.
  uint32_t longest() const { return longest_; }
  // Returns the number of tokens that consist of elements.
  std::size_t tokens() const { return tokens_; }
  std::size_t byte_size() const { return bytes_.load(std::memory_order_relaxed); }

 private:
  // A row or list that the first reader makes under the lock. Later readers need no lock.
  template <class T>
  class Slot {
   public:
    Slot() = default;
    Slot(const Slot&) = delete;
    Slot& operator=(const Slot&) = delete;
    ~Slot() { delete made_.load(std::memory_order_relaxed); }
    template <class Make>
    const T& get(Mutex& lock, Make&& make) {
      if (const T* known = made_.load(std::memory_order_acquire)) return *known;
      std::lock_guard hold(lock);
      return held(make);
    }
    // Returns the value, or null if it is not made yet.
    const T* made() const { return made_.load(std::memory_order_acquire); }
    // Returns the value, and makes it first if necessary. The caller holds the lock.
    template <class Make>
    const T& held(Make&& make) {
      if (const T* known = made_.load(std::memory_order_relaxed)) return *known;
      auto out = std::make_unique<const T>(make());
      made_.store(out.get(), std::memory_order_release);
      return *out.release();
    }

   private:
    std::atomic<const T*> made_{nullptr};
  };
  // The entry k holds the tokens of exactly k + 1 elements, the last of which may be unfinished.
  using Buckets = std::vector<std::vector<TokenId>>;
  class Reader;
  void settle();
  // Returns the number of elements that end along the path to a trie node.
  uint32_t elements(uint32_t node, const NodeIndex& index) const;
  const Buckets& buckets() {
    return buckets_.get(lock_, [&] { return make_buckets(); });
  }
  Buckets make_buckets();
  void add(uint8_t byte, std::unique_ptr<RunExits> exits);
  RunCounts make_counts();
  // Calls f(token, number of whole elements, first bytes of the unfinished one) for the tokens that consist
  // of elements. The caller holds the lock.
  template <class F>
  void for_each_cut(F&& f);
  const Vocabulary& vocabulary_;
  Runs& runs_;
  bool ok_ = true;
  // The bytes that begin an element.
  ByteSet begins_;
  // A row of the tokens that consist of elements. A last element that is not finished counts.
  Words all_;
  // One bit for each trie node: whether an element ends there, or nothing was read.
  std::vector<uint64_t> boundary_;
  uint32_t longest_ = 0;
  std::size_t tokens_ = 0;
  Mutex lock_;
  Slot<Buckets> buckets_;
  std::unique_ptr<Slot<Words>[]> rows_;
  std::unique_ptr<Slot<std::vector<TokenId>>[]> lists_;
  Slot<RunCuts> cuts_;
  Slot<RunCounts> counts_;
  std::atomic<const RunExits*> exits_[256] = {};
  std::vector<std::unique_ptr<RunExits>> owned_;
  std::atomic<std::size_t> bytes_{0};
};

class Runs {
 public:
  explicit Runs(const Vocabulary& vocabulary) : vocabulary_(vocabulary) {}
  // Returns the class of an element; the first call makes it. If its ok() is false, the element forms no
  // runs.
  std::shared_ptr<RunClass> of(RegexArena& regexes, RegexId element);
  // Makes the classes that the first mask inside a JSON string needs, so that the first request does not wait
  // for them.
  void prepare();
  std::string write();
  // Takes classes from memory that must outlive this object. Each is read when of() is first asked for it.
  void view(std::string_view saved);
  const NodeIndex& index();
  std::size_t byte_size();

 private:
  struct Known {
    std::string key;
    RunElement element;
    std::shared_ptr<RunClass> run;
  };
  // Makes the class of an element. The caller holds the lock.
  std::shared_ptr<RunClass> make(RegexArena& regexes, RegexId regex, const RunElement& element);
  const Vocabulary& vocabulary_;
  Mutex lock_;
  // The classes in memory, the most recently used one first.
  std::list<Known> known_;
  // The saved bytes of classes, by the key of the class (automaton() in runs.cc); both point into the mapped
  // file.
  std::unordered_map<std::string_view, std::string_view> saved_;
  Mutex index_lock_;
  std::unique_ptr<NodeIndex> index_;
};

}  // namespace structgen
