// Masks that belong to a regex and a vocabulary, shared by all grammars: the slices.
//
// In: regexes. Out:
//  - Runs of an element class E (a prefix code such as "one JSON string character"): which tokens are
//    made of at most k elements, for every k, and where a run can be left on a given byte. They serve
//    every E{m,n} followed by anything: plain strings, maxLength, patterns.
//  - TerminalMask of any other regex: tokens that stay inside it and the trie nodes where it may end,
//    stored against a run where that is close.
// Cost: a class is one walk of the trie, about a millisecond at 131k tokens, once per process and
// vocabulary; after that a mask is a copy. Not thread-safe: the owner serialises.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/ids.h"
#include "mask/suffixes.h"
#include "mask/vocabulary.h"
#include "regex/regex.h"

namespace structgen {

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
  std::vector<Exit> children;  // sorted by node
  std::vector<Suffixes::Entry> ends;  // the tokens at the children: they end right after b
  Suffixes suffixes;           // what comes after b
  uint32_t longest = 0;        // elements before b, at most
  Words unbounded;             // tokens of any run, and tokens that end right after b
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

class RunClass {
 public:
  // E must be non-nullable and a prefix code; ok() tells whether it was. What is kept is added to `account`.
  RunClass(RegexArena& regexes, const Vocabulary& vocabulary, const NodeIndex& index, RegexId element,
           std::size_t& account);
  bool ok() const { return ok_; }
  RegexId element() const { return element_; }
  // Tokens of at most k elements (the last may be incomplete).
  const Words& up_to(uint32_t k);
  const RunExits& exits(uint8_t byte);
  bool has_exits(uint8_t byte) const { return exits_.count(byte) != 0; }
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

 private:
  void walk(RegexArena& regexes, RegexId element);
  static constexpr uint16_t kNone = 0xFFFF;
  std::size_t& account_;
  RegexId element_;
  const Vocabulary& vocabulary_;
  const NodeIndex& index_;
  bool ok_ = true;
  std::vector<std::vector<TokenId>> buckets_;  // [k]: tokens of exactly k+1 elements
  std::vector<uint16_t> boundary_;             // by node: elements read where one ends there, kNone elsewhere
  std::vector<std::unique_ptr<Words>> cumulative_;
  std::vector<std::unique_ptr<std::vector<TokenId>>> lists_;
  std::size_t tokens_ = 0;
  std::unordered_map<uint32_t, std::unique_ptr<RunExits>> exits_;
};

struct TerminalMask {
  const Words* base = nullptr;    // shared; null = nothing
  std::vector<TokenId> added;     // beyond base
  std::vector<TokenId> removed;   // from base
  std::vector<uint32_t> exits;    // inner trie nodes at which the regex may end, or:
  const RunExits* left = nullptr;      // it ends where a run is left, but for
  std::vector<TokenId> blocked;        // these tokens (sorted)
  static constexpr uint32_t kUnknown = 0xFFFFFFFFu;
  uint32_t slack = kUnknown;           // bytes that complete every text inside it, at most
};

// Tokens against a whole table of literals, read from the start: valid for every subset of the table.
struct TableMask {
  struct Inside {
    TokenId token;
    uint32_t lo, hi;  // strings the token is a proper beginning of
    bool exact;       // false: the range is a hull (inside an escape); decide by stepping
  };
  struct Done {
    uint32_t node;   // trie node right after the closing quote
    uint32_t index;  // the string completed there
  };
  std::vector<Inside> inside;
  std::vector<Done> done;
};

class Slices {
 public:
  Slices(RegexArena& regexes, const Vocabulary& vocabulary) : regexes_(regexes), vocabulary_(vocabulary) {}
  // Null where E cannot be run.
  RunClass* run(RegexId element);
  const TerminalMask& terminal(RegexId regex);
  // Whether all tokens made of JSON string characters lie inside the regex.
  bool covers(RegexId regex);
  // Of a regex whose texts are bodies of JSON strings: what ends with the closing quote or after it; the tokens inside
  // are left out. Null where it is none of those.
  const TerminalMask* leaving(RegexId regex);
  const TableMask& table(uint32_t table);
  // The same from any state of a set, kept nowhere; its subset is observed, so that every range is exact.
  void read_literals(const JsonSet& start, TableMask& out) const;
  std::size_t byte_size() const { return bytes_; }
  // Forgets terminal masks when all together exceed `limit`; rows, which masks point to, stay. No reference
  // from terminal() may be held.
  void trim(std::size_t limit);

 private:
  // ---- mask/bounds.cc ----
  bool contained(RegexId regex, TerminalMask& out);
  bool counted(RegexId regex, TerminalMask& out);
  bool counts_groups(RegexId regex);
  bool shorter(RegexId regex, TerminalMask& out);
  uint32_t slack(RegexId regex);
  std::unique_ptr<TerminalMask> between(RegexId lower, RegexId upper);
  bool meets_exits(RegexId regex, RegexId rest, RunClass& run, uint32_t min, uint32_t max, uint32_t safe,
                   TerminalMask& out);
  uint32_t completes(RegexId regex, RegexId element, uint32_t budget);
  // ---- mask/slices.cc ----
  void block(uint32_t node, TerminalMask& out);
  std::string path(uint32_t node) const;
  bool run_terminal(RegexId regex, TerminalMask& out);
  bool difference(RegexId regex, uint32_t budget, TerminalMask& out);
  bool less_literals(const RegexNode& n, std::span<const RegexId> kept, const TerminalMask& from, TerminalMask& out);
  void whole(RegexId regex, TerminalMask& out);
  RegexArena& regexes_;
  const Vocabulary& vocabulary_;
  std::unique_ptr<NodeIndex> index_;  // made with the first run
  std::unordered_map<uint32_t, std::unique_ptr<RunClass>> runs_;
  std::unordered_map<uint32_t, std::unique_ptr<TerminalMask>> terminals_;
  std::unordered_map<uint32_t, std::unique_ptr<TerminalMask>> leaving_;
  std::unordered_map<uint32_t, std::unique_ptr<TableMask>> tables_;
  std::unordered_map<uint64_t, uint32_t> completes_;  // by (regex, element)
  std::unordered_map<uint64_t, std::unique_ptr<TerminalMask>> counted_;  // by (lower, upper); null: they differ
  std::unordered_map<uint32_t, uint32_t> slacks_;  // by regex
  std::unordered_map<uint32_t, uint32_t> uncounted_;  // by upper: asked for and not computed
  std::vector<std::unique_ptr<Words>> owned_;
  std::size_t bytes_ = 0;
  std::size_t terminal_bytes_ = 0;
};

// Reads r as E{min,max} tail with a counted or starred E. False: it has another form.
bool as_run(const RegexArena& regexes, RegexId r, RegexId& element, uint32_t& min, uint32_t& max, RegexId& tail);

}  // namespace structgen
