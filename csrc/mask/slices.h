// Masks that belong to a regex and a vocabulary, shared by all grammars of a world: the slices.
//
// In: regexes. Out: a TerminalMask: tokens that stay inside the regex and the trie nodes where it may end,
// stored against a run (mask/runs.h) where that is close; tokens against a table of literals. Cost: a walk of
// the trie at worst, a millisecond or two at 131k tokens, once a world; after that a mask is a copy. Not
// thread-safe: the owner serialises.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/ids.h"
#include "mask/runs.h"
#include "mask/vocabulary.h"
#include "regex/regex.h"

namespace structgen {

struct TerminalMask {
  const Words* base = nullptr;     // shared; null = nothing
  std::vector<TokenId> added;      // beyond base
  std::vector<TokenId> removed;    // from base
  std::vector<uint32_t> exits;     // inner trie nodes at which the regex may end, or:
  const RunExits* left = nullptr;  // it ends where a run is left, but for
  std::vector<TokenId> blocked;    // these tokens (sorted)
  static constexpr uint32_t kUnknown = 0xFFFFFFFFu;
  uint32_t slack = kUnknown;  // bytes that complete every text inside it, at most
  bool partial = false;       // something was omitted from it (base/effort.h)
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

// What tokens hold behind a place where a JSON string is open: after `"`, after `, "`, after `{"`.
struct Opened {
  std::vector<Suffixes::Entry> inside;  // tokens that stay inside the string's characters
  Suffixes beyond;                      // what the others hold
};

class Slices {
 public:
  Slices(RegexArena& regexes, const Vocabulary& vocabulary) : regexes_(regexes), vocabulary_(vocabulary) {}
  // Null where E cannot be run.
  RunClass* run(RegexId element);
  const TerminalMask& terminal(RegexId regex);
  // Whether all tokens made of JSON string characters lie inside the regex.
  bool covers(RegexId regex);
  // Of a regex whose texts are bodies of JSON strings: what ends with the closing quote or after it; the
  // tokens inside are left out. Null where it is none of those.
  const TerminalMask* leaving(RegexId regex);
  const TableMask& table(uint32_t table);
  // Behind a node of the vocabulary's trie; a step of the string for each byte of the tokens below, once.
  const Opened& opened(uint32_t node);
  // Behind a node of a trie of suffixes that is `lasting`; behind kStart: of all of them.
  const Opened& opened(const Suffixes& suffixes, uint32_t node);
  static constexpr uint32_t kStart = 0xFFFFFFFFu;
  // The same from any state of a set, kept nowhere; its subset is observed, so that every range is exact.
  void read_literals(const LiteralSet& start, TableMask& out) const;
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
  const TerminalMask* leave(RegexId regex);
  bool run_terminal(RegexId regex, TerminalMask& out);
  bool difference(RegexId regex, uint32_t budget, TerminalMask& out);
  bool less_literals(const RegexNode& n, std::span<const RegexId> kept, const TerminalMask& from,
                     TerminalMask& out);
  void whole(RegexId regex, TerminalMask& out);
  const Opened& parted(std::unique_ptr<Opened>& slot, std::span<const SuffixText> texts);
  RegexArena& regexes_;
  const Vocabulary& vocabulary_;
  struct Held {
    std::shared_ptr<RunClass> run;
    std::size_t seen = 0;  // its bytes, as last counted
  };
  std::unordered_map<uint32_t, Held> runs_;  // by element
  std::unordered_map<uint32_t, std::unique_ptr<TerminalMask>> terminals_;
  std::unordered_map<uint32_t, std::unique_ptr<TerminalMask>> leaving_;
  std::unordered_map<uint32_t, std::unique_ptr<TableMask>> tables_;
  std::unordered_map<uint32_t, std::unique_ptr<Opened>> opened_;  // by node
  std::unordered_map<const Suffixes*, std::unordered_map<uint32_t, std::unique_ptr<Opened>>> opened_in_;
  std::unordered_map<uint64_t, uint32_t> completes_;  // by (regex, element)
  std::unordered_map<uint64_t, std::unique_ptr<TerminalMask>>
      counted_;                                       // by (lower, upper); null: they differ
  std::unordered_map<uint32_t, uint32_t> slacks_;     // by regex
  std::unordered_map<uint32_t, uint32_t> uncounted_;  // by upper: asked for and not computed
  std::vector<std::unique_ptr<Words>> owned_;
  std::size_t bytes_ = 0;
  std::size_t terminal_bytes_ = 0;
};

// Reads r as E{min,max} tail with a counted or starred E. False: it has another form.
bool as_run(const RegexArena& regexes, RegexId r, RegexId& element, uint32_t& min, uint32_t& max,
            RegexId& tail);

}  // namespace structgen
