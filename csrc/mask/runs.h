// Runs of an element class E (a prefix code such as "one JSON string character"), computed once a
// vocabulary.
//
// In: E as a regex. Out: the tokens that are made of at most k elements, for every k, and the places
// where a run can be left on a given byte. They serve every E{m,n} followed by anything: plain strings,
// maxLength, patterns such as `[a-z]{2,8}`. runs.cc explains with an example. Cost: a class is one walk
// of the trie, about two milliseconds at 131k tokens. Rows and exits are made when they are first asked
// for, and kept. All compilers over one vocabulary share its classes, which are told apart by the
// automaton of E. A saved vocabulary brings its own classes (mask/artefact.h). Thread-safe; whatever
// was handed out stays where it is.
#pragma once

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

// A set of at most so many tokens is kept as a list, a larger one as a row.
constexpr std::size_t kSparseLimit = 1'500;

struct Exit {
  // A trie node at which an element ends, or the child of such a node by the byte on which the run is
  // left.
  uint32_t node;
  // The number of elements before the exit.
  uint32_t count;
};

// The places where runs of E meet byte b: the children, by b, of nodes at which an element ends.
struct RunExits {
  std::vector<Exit> children;  // sorted by node
  // The tokens at the children; they end right after b.
  std::vector<Suffixes::Entry> ends;
  // The bytes after b, as a trie.
  Suffixes suffixes;
  // The largest number of elements before b.
  uint32_t longest = 0;
  // A row of the tokens of any run, and of the tokens that end right after b.
  Words unbounded;
};

// The tokens of any run, grouped by how they end: with a whole element, or with the first bytes of one. If E
// is one UTF-8 character, the token `a` is whole, and a token that ends with the byte C3 is in the group
// "C3".
struct RunCuts {
  // Tokens that end with an element.
  Words whole;
  struct Part {
    // Bytes of the element in which the tokens end.
    std::string begun;
    std::vector<TokenId> tokens;
  };
  std::vector<Part> parts;
};

// The same tokens, grouped by their number of whole elements as well, for runs that count.
struct RunCounts {
  struct Whole {
    uint32_t count;
    // The tokens, where they are few.
    std::vector<TokenId> tokens;
    // The tokens, where they are many.
    Words row;
  };
  struct Part {
    uint32_t count;
    std::string begun;
    std::vector<TokenId> tokens;
  };
  // Sorted by count, from 1.
  std::vector<Whole> wholes;
  // The tokens of all of them, as a row.
  Words whole;
  std::vector<Part> parts;
};

// Trie nodes by their last byte, and the parent of each. With this index, the exits on a byte are found
// by looking at the nodes of that byte, not at every place where an element ends. Memory: two numbers a
// node.
class NodeIndex {
 public:
  explicit NodeIndex(const TokenTrie& trie);
  std::span<const uint32_t> of(uint8_t byte) const {
    return {nodes_.data() + first_[byte], nodes_.data() + first_[byte + 1]};
  }
  uint32_t parent(uint32_t node) const { return parents_[node]; }
  // The nodes more than kDeep bytes below the root, and the nodes above them; sorted.
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

// The run of one element class over one vocabulary.
class RunClass {
 public:
  // E must be non-empty and a prefix code (no text of E begins another); ok() tells whether it is one.
  RunClass(RegexArena& regexes, const Vocabulary& vocabulary, Runs& runs, RegexId element);
  // Takes what write() wrote; ok() is false where the bytes do not fit the vocabulary.
  RunClass(std::string_view saved, const Vocabulary& vocabulary, Runs& runs);
  void write(std::string& out) const;
  bool ok() const { return ok_; }
  // A row of the tokens of at most k elements; the last element may be incomplete, and it counts.
  const Words& up_to(uint32_t k);
  // The exits on a byte; made at the first call for it.
  const RunExits& exits(uint8_t byte);
  // Whether exits(byte) would be a look-up.
  bool has_exits(uint8_t byte) const { return exits_[byte].load(std::memory_order_acquire) != nullptr; }
  const RunCuts& cuts();
  const RunCounts& counts();
  // Whether an element ends at a trie node.
  bool boundary(uint32_t node) const { return boundary_[node] != kNone; }
  // The tokens of up_to(k) as a list, if the tokens of all runs are few; null otherwise.
  const std::vector<TokenId>* list_up_to(uint32_t k);
  // The number of tokens of more than `low` and at most `high` elements.
  std::size_t tokens_between(uint32_t low, uint32_t high) const;
  template <class F>
  void for_each_between(uint32_t low, uint32_t high, F&& f) const {
    for (uint32_t k = low; k < std::min(high, longest()); ++k)
      for (TokenId t : buckets_[k]) f(t);
  }
  uint32_t longest() const { return static_cast<uint32_t>(buckets_.size()); }
  std::size_t byte_size() const { return bytes_.load(std::memory_order_relaxed); }

 private:
  // A row or list that is made when it is first asked for, and read without the lock.
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
    // The same for a caller that holds the lock.
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
  static constexpr uint16_t kNone = 0xFFFF;
  void walk(RegexArena& regexes, RegexId element);
  void settle();
  void add(uint8_t byte, std::unique_ptr<RunExits> exits);
  Words make_row(uint32_t k);
  RunCounts make_counts();
  // Needs the lock.
  const Words& row(uint32_t k) {
    return rows_[k].held([&] { return make_row(k); });
  }
  template <class F>
  // Calls f(token, elements read in full, begun bytes of the next element); needs the lock.
  void for_each_cut(F&& f);
  const Vocabulary& vocabulary_;
  Runs& runs_;
  bool ok_ = true;
  // buckets_[k]: the tokens of exactly k + 1 elements.
  std::vector<std::vector<TokenId>> buckets_;
  // Indexed by node: the number of elements read where one ends there, kNone elsewhere.
  std::vector<uint16_t> boundary_;
  std::size_t tokens_ = 0;
  Mutex lock_;
  // By the most elements of a token: the answers of up_to().
  std::unique_ptr<Slot<Words>[]> rows_;
  // By the same number: the answers of list_up_to().
  std::unique_ptr<Slot<std::vector<TokenId>>[]> lists_;
  Slot<RunCuts> cuts_;
  Slot<RunCounts> counts_;
  std::atomic<const RunExits*> exits_[256] = {};
  std::vector<std::unique_ptr<RunExits>> owned_;
  std::atomic<std::size_t> bytes_{0};
};

// All run classes of one vocabulary.
class Runs {
 public:
  explicit Runs(const Vocabulary& vocabulary) : vocabulary_(vocabulary) {}
  // The class of an element, new or known. ok() of the class is false where E cannot be run.
  std::shared_ptr<RunClass> of(RegexArena& regexes, RegexId element);
  // Makes what the first mask inside a JSON string asks for, so that the first request does not wait
  // for it.
  void prepare();
  // All classes at hand, in the form that view() takes.
  std::string write();
  // Takes classes that were written before, in memory that outlives this object. Each is read when it
  // is first asked for.
  void view(std::string_view saved);
  const NodeIndex& index();
  std::size_t byte_size();

 private:
  struct Known {
    std::string key;
    std::shared_ptr<RunClass> run;
  };
  const Vocabulary& vocabulary_;
  Mutex lock_;
  // The class used last stands in front.
  std::list<Known> known_;
  // Keyed by the key of a class; the values are views into the mapped file.
  std::unordered_map<std::string_view, std::string_view> saved_;
  Mutex index_lock_;
  // Made with the first exits.
  std::unique_ptr<NodeIndex> index_;
};

}  // namespace structgen
