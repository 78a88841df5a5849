// Runs of an element class E (a prefix code such as "one JSON string character"), told once a vocabulary.
//
// In: E as a regex. Out: which tokens are made of at most k elements, for every k, and where a run can be
// left on a given byte. They serve every E{m,n} followed by anything: plain strings, maxLength, patterns.
// Cost: a class is one walk of the trie, about two milliseconds at 131k tokens; what is asked of it later is
// made once and kept. All compilers over one vocabulary share its classes, told apart by the automaton of E,
// and a saved vocabulary brings its own (mask/artefact.h). Thread-safe; what was handed out stays where it
// is.
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

constexpr std::size_t kSparseLimit = 1'500;  // tokens kept as a list rather than a row

struct Exit {
  uint32_t node;   // trie node where the run stands at an element boundary, or the child after it
  uint32_t count;  // elements read to get there
};

// Where runs of E meet byte b: children of boundary nodes.
struct RunExits {
  std::vector<Exit> children;         // sorted by node
  std::vector<Suffixes::Entry> ends;  // the tokens at the children: they end right after b
  Suffixes suffixes;                  // what comes after b
  uint32_t longest = 0;               // elements before b, at most
  Words unbounded;                    // tokens of any run, and tokens that end right after b
};

// The tokens of any run, by what is left of their last element.
struct RunCuts {
  Words whole;  // those that end with an element
  struct Part {
    std::string begun;  // bytes of the element in which they end
    std::vector<TokenId> tokens;
  };
  std::vector<Part> parts;
};

// The same tokens by how many elements they hold in full as well: for runs that count.
struct RunCounts {
  struct Whole {
    uint32_t count;
    std::vector<TokenId> tokens;  // where they are few, or
    Words row;                    // where they are many
  };
  struct Part {
    uint32_t count;
    std::string begun;
    std::vector<TokenId> tokens;
  };
  std::vector<Whole> wholes;  // by count, from 1
  std::vector<Part> parts;
};

// Trie nodes by their last byte, and the parent of each: where a run can be left on a byte is then a look at
// the nodes of that byte, not at every place where an element ends. Two numbers a node.
class NodeIndex {
 public:
  explicit NodeIndex(const TokenTrie& trie);
  std::span<const uint32_t> of(uint8_t byte) const {
    return {nodes_.data() + first_[byte], nodes_.data() + first_[byte + 1]};
  }
  uint32_t parent(uint32_t node) const { return parents_[node]; }
  std::size_t byte_size() const { return (nodes_.size() + parents_.size()) * 4; }

 private:
  uint32_t first_[257] = {};
  std::vector<uint32_t> nodes_;  // ascending for each byte
  std::vector<uint32_t> parents_;
};

class Runs;

class RunClass {
 public:
  // E must be non-nullable and a prefix code; ok() tells whether it was.
  RunClass(RegexArena& regexes, const Vocabulary& vocabulary, Runs& runs, RegexId element);
  // What write() wrote; not ok() where that does not fit the vocabulary.
  RunClass(std::string_view saved, const Vocabulary& vocabulary, Runs& runs);
  void write(std::string& out) const;
  bool ok() const { return ok_; }
  // Tokens of at most k elements (the last may be incomplete).
  const Words& up_to(uint32_t k);
  const RunExits& exits(uint8_t byte);
  bool has_exits(uint8_t byte) const { return exits_[byte].load(std::memory_order_acquire) != nullptr; }
  const RunCuts& cuts();
  const RunCounts& counts();
  // Whether an element ends at a trie node.
  bool boundary(uint32_t node) const { return boundary_[node] != kNone; }
  // The same tokens as up_to(), as a list, where they are few; null otherwise.
  const std::vector<TokenId>* list_up_to(uint32_t k);
  // Tokens of more than `low` and at most `high` elements.
  std::size_t tokens_between(uint32_t low, uint32_t high) const;
  template <class F>
  void for_each_between(uint32_t low, uint32_t high, F&& f) const {
    for (uint32_t k = low; k < std::min(high, longest()); ++k)
      for (TokenId t : buckets_[k]) f(t);
  }
  uint32_t longest() const { return static_cast<uint32_t>(buckets_.size()); }
  std::size_t byte_size() const { return bytes_.load(std::memory_order_relaxed); }

 private:
  // A row or list made when it is first asked for, read without the lock.
  template <class T>
  struct Slot {
    std::atomic<const T*> made{nullptr};
    Slot() = default;
    Slot(const Slot&) = delete;
    Slot& operator=(const Slot&) = delete;
    ~Slot() { delete made.load(std::memory_order_relaxed); }
  };
  static constexpr uint16_t kNone = 0xFFFF;
  void walk(RegexArena& regexes, RegexId element);
  void settle();
  void add(uint8_t byte, std::unique_ptr<RunExits> exits);
  const Words& row(uint32_t k);  // under the lock
  template <class F>
  void for_each_cut(F&& f);  // f(token, elements read in full, what is begun of the next); under the lock
  const Vocabulary& vocabulary_;
  Runs& runs_;
  bool ok_ = true;
  std::vector<std::vector<TokenId>> buckets_;  // [k]: tokens of exactly k+1 elements
  std::vector<uint16_t> boundary_;             // by node: elements read where one ends there, kNone elsewhere
  std::size_t tokens_ = 0;
  Mutex lock_;
  std::unique_ptr<Slot<Words>[]> rows_;                  // by k
  std::unique_ptr<Slot<std::vector<TokenId>>[]> lists_;  // by k
  Slot<RunCuts> cuts_;
  Slot<RunCounts> counts_;
  std::atomic<const RunExits*> exits_[256] = {};
  std::vector<std::unique_ptr<RunExits>> owned_;
  std::atomic<std::size_t> bytes_{0};
};

class Runs {
 public:
  explicit Runs(const Vocabulary& vocabulary) : vocabulary_(vocabulary) {}
  // The class of an element. Null where E cannot be run.
  std::shared_ptr<RunClass> of(RegexArena& regexes, RegexId element);
  // Makes what the first mask inside a JSON string asks for.
  void prepare();
  // All classes at hand, in a form for view().
  std::string write();
  // Classes that were written before, in memory that outlives this; each is read when it is first asked for.
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
  std::list<Known> known_;                                        // the one used last in front
  std::unordered_map<std::string_view, std::string_view> saved_;  // by key
  Mutex index_lock_;
  std::unique_ptr<NodeIndex> index_;  // made with the first exits
};

}  // namespace structgen
