// Slices: masks that depend on a regex and the vocabulary alone, so that all grammars of a world share them.
//
// In: regexes. Out: a TerminalMask, with the tokens that stay inside the regex and the trie nodes where
// it may end, stored as a difference to a run (mask/runs.h) where that is short; and tokens against a
// table of literals. Cost: a walk of the trie at worst, a millisecond or two at 131k tokens, once a
// world; after that a mask is a copy. Not thread-safe: the caller holds the world's lock.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
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

// The mask of a regex. The tokens of `base` and `added`, without `removed`, are inside the regex, which reads
// them whole. For any*" & ~("a"): `base` has all string tokens and those that end with a quote, `removed` has
// `a"`, and `blocked` has tokens that go on behind `a"`, such as `a",`.
struct TerminalMask {
  // A shared row; null stands for an empty one.
  const Words* base = nullptr;
  std::vector<TokenId> added;
  std::vector<TokenId> removed;
  // Trie nodes with children at which the regex may end. Not used if `left` is set.
  std::vector<uint32_t> exits;
  // The number of the node set `exits` for TerminalWalks; set by Slices::terminal().
  NodeSetId exit_set = TerminalWalks::none();
  // Subtrees, each as its first node and the node behind it. The regex may end at each of their nodes that is
  // not inside a character. Free text may end nearly everywhere, and a list of all nodes would be long.
  std::vector<std::pair<uint32_t, uint32_t>> open;
  // If not null, the exits of a run: the regex ends at each of them, except for the tokens in `blocked`.
  const RunExits* left = nullptr;
  // Tokens that leave by an exit of `left` at which the regex does not end; sorted.
  std::vector<TokenId> blocked;
  // True if something was omitted while the mask was made (base/effort.h). Tokens may then be missing.
  bool partial = false;
};

// How tokens read a table of literals from the beginning of its texts, for every subset of the table.
struct TableMask {
  struct Inside {
    TokenId token;
    // The token begins strings of the sorted table, whose numbers are `lo` to `hi` - 1, and is none of them.
    uint32_t lo, hi;
    // True if the token begins all these strings. False if the token ends inside an escape and begins only
    // some of these strings; the caller then steps to find out which strings.
    bool exact;
  };
  struct Done {
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
  // Returns the run of an element, or null if the element forms none.
  RunClass* run(RegexId element);
  // For E* closed by one byte that E does not contain, returns the exits by this byte; null for any other
  // regex.
  const RunExits* exits(RegexId regex);
  const TerminalMask& terminal(RegexId regex);
  // Returns the bytes with which many tokens begin, such as the blank.
  const ByteSet& frequent() const { return frequent_; }
  // Tells whether all tokens of JSON string characters are inside the regex.
  bool covers(RegexId regex);
  // For a pattern of JSON strings, returns a mask of the tokens with the closing quote; the tokens inside are
  // left out. Returns null for any other regex.
  const TerminalMask* leaving(RegexId regex);
  const TableMask& table(uint32_t table);
  // Writes how tokens read literals from a state of a set. Unlike table(), read_literals() remembers nothing,
  // and it uses the subset of this state, so every range is exact.
  void read_literals(const LiteralSet& start, TableMask& out) const;
  // Returns the trie nodes right behind the closing quotes of literals that are read from a state of a set.
  // Only nodes that lead to a quote are visited, and the spellings of most literals leave these nodes at
  // their first byte.
  std::vector<TableMask::Done> completed(const LiteralSet& start);
  // Returns the regex without those excluded literals that no token completes. Its mask and exits are those
  // of the whole regex.
  //     any*" & ~(`ame"` | `"`)    with a token `"`: as it is
  //     any*" & ~(`ame"`)          any*", unless some token reads `ame"`
  RegexId visible(RegexId regex);
  std::size_t byte_size() const { return bytes_ + walks_->byte_size(); }
  // Forgets all terminal masks and walks if they take more than `limit` bytes. Rows stay, because masks point
  // to them. The caller must hold no reference from terminal() or walks(), and no set of nodes.
  void trim(std::size_t limit);

 private:
  // How many elements E complete the texts that consist of elements and are inside a regex.
  struct Completions {
    // more[j] is the largest number that some text needs, if it takes at least j elements.
    std::vector<uint32_t> more;
    // True if some text of elements is not inside the regex.
    bool leaves = false;
    // True if some text cannot be completed, or the search gave up.
    bool none = false;
    std::optional<uint32_t> safe(uint32_t min, uint32_t max) const;
  };
  bool contained(RegexId regex, TerminalMask& out);
  bool counted(RegexId regex, TerminalMask& out);
  bool words(RegexId regex) const;
  bool avoiding(RegexId regex, TerminalMask& out);
  bool counts(RegexId regex);
  uint32_t spare(RegexId regex);
  bool shorter(RegexId regex, TerminalMask& out);
  bool meets_exits(RegexId regex, RegexId rest, RunClass& run, uint32_t min, uint32_t max, uint32_t safe,
                   TerminalMask& out);
  const Completions& completes(RegexId regex, RegexId element, uint32_t least, bool all, uint32_t budget);
  void block(uint32_t node, TerminalMask& out);
  std::string path(uint32_t node) const;
  const TerminalMask* leave(RegexId regex);
  bool run_terminal(RegexId regex, TerminalMask& out);
  bool difference(RegexId regex, TerminalMask& out);
  bool sought(RegexId regex, TerminalMask& out);
  void less_literals(std::span<const LiteralSet> sets, const TerminalMask& from, TerminalMask& out);
  template <class F>
  void read_byte(uint32_t at, const LiteralSet& from, const ByteSet& bytes,
                 std::vector<TableMask::Done>& done, F&& inside) const;
  const std::unordered_map<uint32_t, ByteSet>& ways_to_quote();
  // Where a new regex differs from a known one, whose mask is known.
  struct Changes {
    // The tokens that only the new regex allows. If they become many, they move to `row`.
    std::vector<TokenId> added;
    std::unique_ptr<Words> row;
    std::size_t gained = 0;
    // The tokens below the nodes that only the known regex reads. The known mask may lack some of them.
    std::vector<TokenId> lost;
    // The nodes at which only the new regex may end.
    std::vector<uint32_t> exits;
    // Subtrees such that the new regex may end at all nodes of the subtree, and the known regex at none. Each
    // subtree is given by its first node and the node behind it.
    std::vector<std::pair<uint32_t, uint32_t>> open;
    // Sorted ranges of nodes at which only the known regex may end.
    std::vector<std::pair<uint32_t, uint32_t>> cut;
    void gain(std::span<const TokenId> tokens, const Vocabulary& vocabulary);
    bool none() const { return !gained && lost.empty() && exits.empty() && open.empty() && cut.empty(); }
  };
  struct Limits {
    uint32_t nodes = 0xFFFFFFFFu;
    std::size_t tokens = static_cast<std::size_t>(-1);
  };
  // A regex whose texts avoid words, such as the texts without `lamps`, beside strings of any characters.
  struct Avoided {
    // True if a string without the words can always be continued and closed without them.
    bool closes = false;
    // The tokens that read a word to its end, and the nodes below which they stand.
    Changes changes;
  };
  Avoided& avoided(RegexId regex);
  void find_deaths(std::span<const RegexId> states, Changes& out);
  using FirstSteps = std::array<RegexId, 256>;
  FirstSteps first_steps(RegexId regex);
  bool compare(RegexId regex, RegexId known, Limits limits, Changes& out,
               std::span<const uint32_t> among = {});
  Changes read_all(RegexId regex);
  void change(const TerminalMask& from, Changes& changes, TerminalMask& out);
  void whole(RegexId regex, TerminalMask& out);
  void list_open(TerminalMask& out) const;
  RegexArena& regexes_;
  const Vocabulary& vocabulary_;
  // The terminal walks made so far. trim() replaces them.
  std::optional<TerminalWalks> walks_;
  struct Held {
    std::shared_ptr<RunClass> run;
    // The bytes of the run when they were last counted.
    std::size_t seen = 0;
  };
  std::unordered_map<uint32_t, Held> runs_;  // by element
  std::unordered_map<uint32_t, std::unique_ptr<TerminalMask>> terminals_;
  // The regexes that were walked last, with their derivatives by each byte. Their masks are in terminals_.
  std::vector<std::pair<RegexId, FirstSteps>> walked_;
  // The number of tokens that begin with each byte.
  std::array<std::size_t, 256> tokens_by_byte_{};
  ByteSet frequent_;
  std::unordered_map<uint32_t, std::unique_ptr<TerminalMask>> leaving_;
  std::unordered_map<uint32_t, std::unique_ptr<TableMask>> tables_;
  // The number of what completes() found, by regex and state of the element; with `all` in completes_[1].
  std::array<std::unordered_map<uint64_t, uint32_t>, 2> completes_;
  std::deque<Completions> completions_;
  std::unordered_map<uint32_t, uint32_t> spares_;                   // by regex
  std::unordered_map<uint32_t, std::unique_ptr<Avoided>> avoided_;  // by regex
  // By trie node: the bytes that lead to the closing quote of a string. Empty until completed() is called.
  std::unordered_map<uint32_t, ByteSet> ways_;
  std::vector<std::unique_ptr<Words>> owned_;
  std::size_t bytes_ = 0;
  std::size_t terminal_bytes_ = 0;
};

}  // namespace structgen
