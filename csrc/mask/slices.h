// Masks that belong to a regex and a vocabulary, shared by all grammars of a world: the slices.
//
// In: regexes. Out: a TerminalMask, with the tokens that stay inside the regex and the trie nodes where
// it may end, stored as a difference to a run (mask/runs.h) where that is short; and tokens against a
// table of literals. Cost: a walk of the trie at worst, a millisecond or two at 131k tokens, once a
// world; after that a mask is a copy. Not thread-safe: the caller holds the world's lock.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "mask/runs.h"
#include "mask/terminal_walks.h"
#include "mask/vocabulary.h"
#include "regex/regex.h"

namespace structgen {

// The mask of one regex: `base` plus `added` minus `removed` are the tokens that stay inside. For any
// character but `a`-strings, any*" & ~("a"): base is the row of all string tokens and of those that end
// with a quote, removed is `a"`, and blocked are tokens that go on behind `a"`, such as `a",`.
struct TerminalMask {
  // A shared row; null stands for no tokens.
  const Words* base = nullptr;
  // Tokens beyond `base`.
  std::vector<TokenId> added;
  // Tokens of `base` that are not allowed.
  std::vector<TokenId> removed;
  // Inner trie nodes at which the regex may end. Used where `left` is null.
  std::vector<uint32_t> exits;
  // The same nodes for TerminalWalks; set by Slices::terminal().
  NodeSetId exit_set = TerminalWalks::none();
  // Subtrees, as their first node and the one behind them: the regex may end at each node that is not
  // within a character. Free text ends nearly everywhere, and a list of all nodes would be long.
  std::vector<std::pair<uint32_t, uint32_t>> open;
  // The regex ends where a run is left, except for the tokens in `blocked` (sorted).
  const RunExits* left = nullptr;
  // The tokens at these exits do not leave the regex after all.
  std::vector<TokenId> blocked;
  static constexpr uint32_t kUnknown = 0xFFFFFFFFu;
  // An upper bound of the bytes that complete any text inside the regex.
  uint32_t slack = kUnknown;
  // Some step was omitted while the mask was made (base/effort.h), so it may lack tokens.
  bool partial = false;
};

// The vocabulary against a whole table of literals, read from the start; valid for every subset of the
// table.
struct TableMask {
  struct Inside {
    TokenId token;
    // The token is a proper beginning of the strings `lo` to `hi` - 1 of the sorted table.
    uint32_t lo, hi;
    // False: the range is only an outer bound (the token ends inside an escape), and the caller decides
    // by stepping.
    bool exact;
  };
  struct Done {
    // The trie node right after the closing quote.
    uint32_t node;
    // The index of the string that the closing quote completes.
    uint32_t index;
  };
  std::vector<Inside> inside;
  std::vector<Done> done;
};

class Slices {
 public:
  Slices(RegexArena& regexes, const Vocabulary& vocabulary);
  TerminalWalks& walks() { return *walks_; }
  // Null where E cannot be run.
  RunClass* run(RegexId element);
  // The exits of E* closed by one byte that E does not contain; null for any other regex.
  const RunExits* exits(RegexId regex);
  const TerminalMask& terminal(RegexId regex);
  // Whether all tokens made of JSON string characters lie inside the regex.
  bool covers(RegexId regex);
  // For a regex whose texts are bodies of JSON strings: the tokens that end with the closing quote or
  // after it, without the tokens inside. Null for any other regex.
  const TerminalMask* leaving(RegexId regex);
  const TableMask& table(uint32_t table);
  // The same as table(), but from any state of a set, and kept nowhere. It observes the state's subset,
  // so every range is exact.
  void read_literals(const LiteralSet& start, TableMask& out) const;
  // The tokens that complete a literal from a state of a set, with the trie nodes behind the closing quote.
  // Cost: a walk of the nodes that lead to a quote; most literals leave it at its first byte.
  std::vector<TableMask::Done> completed(const LiteralSet& start);
  // The regex without the excluded literals that no token completes: its mask and its exits are the same.
  //
  //     any*" & ~(`ame"` | `"`)    with a token `"`: as it is
  //     any*" & ~(`ame"`)          any*", unless some token reads `ame"`
  RegexId visible(RegexId regex);
  std::size_t byte_size() const { return bytes_ + walks_->byte_size(); }
  // Forgets terminal masks and walks when all together exceed `limit`. Rows stay, because masks point to
  // them. No reference from terminal() or walks() may be held, and no set of nodes.
  void trim(std::size_t limit);

 private:
  // ---- mask/bounds.cc ----
  bool contained(RegexId regex, TerminalMask& out);
  bool counted(RegexId regex, TerminalMask& out);
  bool counts(RegexId regex);
  uint32_t spare(RegexId regex);
  bool shorter(RegexId regex, TerminalMask& out);
  uint32_t slack(RegexId regex);
  bool meets_exits(RegexId regex, RegexId rest, RunClass& run, uint32_t min, uint32_t max, uint32_t safe,
                   TerminalMask& out);
  uint32_t completes(RegexId regex, RegexId element, uint32_t budget);
  // ---- mask/slices.cc ----
  void block(uint32_t node, TerminalMask& out);
  std::string path(uint32_t node) const;
  const TerminalMask* leave(RegexId regex);
  bool run_terminal(RegexId regex, TerminalMask& out);
  bool difference(RegexId regex, TerminalMask& out);
  void less_literals(std::span<const LiteralSet> sets, const TerminalMask& from, TerminalMask& out);
  template <class F>
  void read_byte(uint32_t at, const LiteralSet& from, const ByteSet& bytes,
                 std::vector<TableMask::Done>& done, F&& inside) const;
  const std::unordered_map<uint32_t, ByteSet>& ways_to_quote();
  // What a walk finds that differs between a regex and one whose mask is known.
  struct Changes {
    // Tokens that only the regex allows: a list while they are few, then a row.
    std::vector<TokenId> added;
    std::unique_ptr<Words> row;
    std::size_t gained = 0;
    // Tokens below nodes that only the known regex reads. It may not allow all of them.
    std::vector<TokenId> lost;
    // Nodes at which only the regex may end, and subtrees where it may end at each of them.
    std::vector<uint32_t> exits;
    std::vector<std::pair<uint32_t, uint32_t>> open;
    // Ranges of nodes at which only the known regex may end; sorted.
    std::vector<std::pair<uint32_t, uint32_t>> cut;
    uint32_t slack = 0;
    void gain(std::span<const TokenId> tokens, const Vocabulary& vocabulary);
    bool none() const { return !gained && lost.empty() && exits.empty() && open.empty() && cut.empty(); }
  };
  struct Limits {
    uint32_t nodes = 0xFFFFFFFFu;
    std::size_t tokens = static_cast<std::size_t>(-1);
  };
  using FirstSteps = std::array<RegexId, 256>;
  FirstSteps first_steps(RegexId regex);
  bool compare(RegexId regex, RegexId known, Limits limits, Changes& out,
               std::span<const uint32_t> among = {});
  void change(const TerminalMask& from, Changes& changes, TerminalMask& out);
  void whole(RegexId regex, TerminalMask& out);
  void list_open(TerminalMask& out) const;
  RegexArena& regexes_;
  const Vocabulary& vocabulary_;
  // Never empty.
  std::optional<TerminalWalks> walks_;
  struct Held {
    std::shared_ptr<RunClass> run;
    // Bytes of the run when it was last counted.
    std::size_t seen = 0;
  };
  std::unordered_map<uint32_t, Held> runs_;  // by element
  std::unordered_map<uint32_t, std::unique_ptr<TerminalMask>> terminals_;
  // The regexes that were walked last, all in terminals_.
  std::vector<std::pair<RegexId, FirstSteps>> walked_;
  // The number of tokens that begin with each byte.
  std::array<std::size_t, 256> tokens_by_byte_{};
  std::unordered_map<uint32_t, std::unique_ptr<TerminalMask>> leaving_;
  std::unordered_map<uint32_t, std::unique_ptr<TableMask>> tables_;
  // Keyed by (regex, element).
  std::unordered_map<uint64_t, uint32_t> completes_;
  std::unordered_map<uint32_t, uint32_t> spares_;  // by regex
  std::unordered_map<uint32_t, uint32_t> slacks_;  // by regex
  // By node: the bytes that lead to the closing quote of a string. Empty until completed() was asked.
  std::unordered_map<uint32_t, ByteSet> ways_;
  std::vector<std::unique_ptr<Words>> owned_;
  std::size_t bytes_ = 0;
  std::size_t terminal_bytes_ = 0;
};

}  // namespace structgen
