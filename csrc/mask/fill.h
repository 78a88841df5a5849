// From a parse state to its mask.
//
// In: a parser, a state, the slices of the vocabulary. Out: a Mask, kept with the state. Cost: a known
// mask is one copy of V/8 bytes (V: tokens of the vocabulary). A new mask walks the trie where few
// tokens are allowed. Where many are allowed, it takes a shared row and walks only the tokens that
// leave the terminal: a few microseconds.
//
// Reasoning: a token is allowed if and only if one item of the state allows it, so a mask is a union over
// items. A wide item (regex r above stack s) allows the tokens inside r, which do not depend on s, and the
// tokens that leave r and go on through s. The tokens inside r are slices; only the tokens that leave r are
// walked. fill.cc has an example. Where r's text is captured, the walk goes on with an *unknown* text: where
// the text would matter, productions answer with poison(), and the few tokens that lead there are stepped one
// by one.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/arena.h"
#include "base/flat_map.h"
#include "mask/lexeme_slices.h"
#include "mask/slices.h"
#include "mask/vocabulary.h"
#include "parse/growth.h"
#include "parse/lengths.h"
#include "parse/state.h"

namespace structgen {

// The mask of a state. It allows the tokens of the row `dense` (if not null) without `removed`, those of
// `added` and `shared`, and the EOS ids if the text may end. `dense` and `shared` belong to slices and
// endings, so a mask owns only two lists. All pointers stay valid as long as the grammar's epoch and its
// world live, except that a mask of uncached() points to the caller's `scratch`.
struct Mask {
  const uint32_t* dense = nullptr;
  const TokenId* added = nullptr;
  const TokenId* removed = nullptr;
  const TokenId* shared = nullptr;
  uint32_t n_added = 0;
  uint32_t n_removed = 0;
  uint32_t n_shared = 0;
  bool accepting = false;
  // True if each token of `dense` stays inside one run of characters, or ends this run by its closing byte. A
  // search under a budget then looks at none of these tokens on its own.
  bool inside_run = false;
};

// Writes the mask as a row of Vocabulary::words() words.
void write_row(const Mask& mask, const Vocabulary& vocabulary, uint32_t* row);
// Tells whether the mask allows the token. allows() writes a whole row, so only tests and single questions
// use it.
bool allows(const Mask& mask, const Vocabulary& vocabulary, TokenId t);

// Makes the masks of one epoch of a grammar. The caller holds the world's lock, except for peek().
class MaskBuilder {
 public:
  MaskBuilder(Parser& parser, Slices& slices, const Vocabulary& vocabulary)
      : parser_(parser),
        slices_(slices),
        vocabulary_(vocabulary),
        lexemes_(parser.regexes(), vocabulary),
        context_free_(parser.context_free()) {}

  // Returns the mask of the state if it is known; otherwise null. Takes no lock.
  const Mask* peek(StateId s) const {
    return static_cast<const Mask*>(parser_.state(s).mask.load(std::memory_order_acquire));
  }
  const Mask* mask(StateId s);
  // From now on every new mask also sets State::loose. State::loose is an upper bound of the number of tokens
  // that complete the text, counting the next token, whichever token of the mask it is. A budget of so many
  // tokens refuses no token of the mask, so no search is needed (engine/rows.cc).
  void measure_with(Lengths* lengths) { lengths_ = lengths; }
  // From now on State::grows is set wherever State::loose is.
  void measure_growth_with(Growth* growth) { growth_ = growth; }
  // Sets State::loose and State::grows of a state whose mask is known.
  void measure(StateId s);
  // Makes the mask by a plain walk that shares nothing, for tests to compare with mask(). The mask is not
  // kept; its list lies in `scratch`.
  void uncached(StateId s, std::vector<TokenId>& scratch, Mask& out);
  // Writes some allowed tokens, shortest first, where the whole mask takes too much work. Steps that take too
  // much work are left out. The search stops when the work is used up, but not before it has found a token.
  // If it finds no token, it throws the error that stopped it.
  void some(StateId s, uint32_t* row);
  // Returns the run of all characters of JSON strings. Returns null if this grammar has no JSON strings, or
  // if their characters cannot form a run.
  RunClass* characters() {
    const RegexId any = parser_.regexes().any_character();
    return any == RegexArena::empty() ? nullptr : slices_.run(any);
  }
  // Returns a row of the tokens that stay inside the run, for a state whose mask has `inside_run`. The mask's
  // `dense` may have the tokens that end the run as well.
  const Words& inside_run(StateId s) {
    RunClass& run = *slices_.run(parser_.regexes().counter(parser_.items(s)[0].regex).element);
    return run.up_to(run.longest());
  }
  // Returns the state with each captured text replaced by unknown(). If walks kept captured text, each byte
  // of each token would make a state of its own.
  StateId blind(StateId s);
  std::size_t byte_size() const {
    return pool_.byte_size() + bytes_ + lexemes_.byte_size() + blind_.byte_size() + lists_.byte_size() +
           list_index_.byte_size();
  }

 private:
  // Bounds that hold behind each of several tokens. At most `bytes` bytes complete the text. Some text of
  // each length from `from` to `to` bytes completes it; a `to` of kFar has no end.
  struct Worst {
    uint32_t bytes = 0, from = 0, to = Lengths::kFar;
    void add(const Worst& o) {
      bytes = std::max(bytes, o.bytes);
      from = std::max(from, o.from);
      to = std::min(to, o.to);
    }
  };
  // The tokens that one wide item allows, for every captured text.
  struct Part {
    const Words* base = nullptr;
    const std::vector<TokenId>* shared = nullptr;
    std::vector<TokenId> added, removed;
    // The list to which `shared` points, unless this is the list of a slice or of an ending.
    std::vector<TokenId> left;
    // Tokens that only some captured texts allow. accepts() decides about them.
    std::vector<TokenId> unsure;
    // The bounds behind the tokens that leave the item.
    Worst worst = kUnmeasured;
  };
  struct Collected {
    std::vector<TokenId> sure, unsure;
    // The bounds behind all tokens, if lengths are measured.
    Worst worst{};
    // Gets the tokens that slices of lexemes allow; the lists then have only the other tokens. If null, the
    // lists have all tokens.
    Words* row = nullptr;
    bool row_used = false;
    // True if the walk must not use slices, runs or endings, as for uncached().
    bool plain = false;
  };
  // The tokens that leave a run and are then read from one state. All runs behind which this state stands
  // share the walk. The counts are for runs with a minimum or maximum: how many elements of the run each
  // token has read.
  struct Ending : Collected {
    std::vector<uint32_t> sure_counts, unsure_counts;
  };
  // If at least this many tokens lie below a trie node, a walk takes slices of lexemes there (gather()).
  // Elsewhere it steps byte by byte.
  static constexpr std::size_t kShared = 64;
  static constexpr uint32_t kNotMeasured = 0xFFFFFFFFu;
  static constexpr Worst kUnmeasured{kNotMeasured, kNotMeasured, 0},
      kNoBound{Lengths::kFar, Lengths::kFar, 0};
  bool measured(const Worst& worst) const {
    return !lengths_ || (worst.bytes != kNotMeasured && (!growth_ || worst.from != kNotMeasured));
  }
  // Returns the bounds that were measured, and leaves the others unmeasured.
  Worst as_measured(const Worst& worst) const {
    return {lengths_ ? worst.bytes : kNotMeasured, lengths_ && growth_ ? worst.from : kNotMeasured, worst.to};
  }
  // Returns true if further tokens may change the bounds.
  bool measures(const Worst& worst) const {
    return lengths_ && (worst.bytes < Lengths::kFar || (growth_ && worst.from < Lengths::kFar));
  }
  void note(StateId s, Worst& worst) {
    if (!measures(worst)) return;
    const Growth::LengthRange some = growth_ ? growth_->parts(s).widest : Growth::LengthRange{};
    worst.add({lengths_->of(s), some.from, some.to()});
  }
  void note(const Item& item, Worst& worst);
  const Mask* make(StateId s, bool keep);
  bool wide(RegexId r);
  bool opens(RegexId r);
  void split(const Item& item, std::vector<Item>& narrow, std::vector<Item>& wide_items);
  // Returns the part of an item. `covered` says that another item allows all tokens of JSON string
  // characters. This part then needs only the tokens that leave its regex.
  const Part& part(const Item& item, bool covered, Part& scratch);
  // The union of the rows of a mask's parts. While only one part has a row, the union is `base` without
  // `removed`; from the second row on the union is `joined`.
  struct Union {
    const Words* base = nullptr;
    std::vector<TokenId> removed;
    uint32_t* joined = nullptr;
    const std::vector<TokenId>* shared = nullptr;
  };
  void add_row(const Part& p, Union& all);
  void try_out(StateId s, std::span<const TokenId> unsure, std::vector<TokenId>& sure);
  bool string_part(const Item& item, Part& out);
  void run_part(const Item& item, RunClass& run, uint32_t min, uint32_t max, RegexId tail, Part& out);
  bool few_exits(const RunClass& run, RegexId element, const Item& item, RegexId tail);
  void terminal_part(const Item& item, const TerminalMask& t, Part& out);
  const Item* cover(const std::vector<Item>& wide_items);
  bool plain_string(RegexId r) const;
  // For each token of Collected::sure and Collected::unsure: the number of elements that it reads before it
  // leaves the run.
  struct Counts {
    std::vector<uint32_t>&sure, &unsure;
  };
  void walk_suffixes(const Suffixes& suffixes, StateId from, Collected& out, const Counts& counts);
  bool by_terminals(std::span<const Item> items, NodeSetId from, Collected& out, const Counts* counts);
  // What follows the end of a terminal. `any`: some text can follow. `is_sure`: some text can follow whatever
  // was captured.
  struct Behind {
    std::span<const Item> items;
    bool any, is_sure;
  };
  Behind behind(const Item& end);
  bool told_apart(const Item& end) const;
  bool read_from(std::span<const Item> items, NodeSetId from, Collected& out, const Counts* counts);
  void walk(uint32_t node, std::span<const Item> items, Collected& out);
  void walk(uint32_t node, StateId from, Collected& out);
  void walk_states(uint32_t node, StateId from, Collected& out);
  void read_on(uint32_t child, StateId state, uint8_t byte, Collected& out);
  void finish_walk(std::size_t floor, Collected& out);
  void leave_open(const TerminalMask& t, StateId left, Collected& out);
  bool lexed(StateId s);
  bool any_wide(StateId s);
  RegexId forbidden(StackId stack, StateId left);
  void gather(uint32_t node, StateId s, Collected& out);
  bool without_wide(Item& item, NodeSetId& from, Collected& out);
  void add(uint32_t node, RegexId regex, StackId stack, Collected& out);
  const Mask* gathered(StateId s);
  const Ending& ending(const Suffixes& suffixes, StateId from);
  bool sure(StateId s) const;
  void set_part(const Item& item, bool covered, Part& out);
  bool accepts(StateId s, std::string_view bytes);
  RegexId clamp(RegexId r);
  const Mask* finish(StateId s, const Words* base, const std::vector<TokenId>* shared,
                     std::vector<TokenId>& removed, std::vector<TokenId>& added, bool runs);
  const Mask* publish(StateId s, Mask mask);
  void set_loose(StateId s, const Worst& worst);
  const TokenId* keep(std::vector<TokenId>& tokens, uint32_t& n);

  Parser& parser_;
  Slices& slices_;
  const Vocabulary& vocabulary_;
  LexemeSlices lexemes_;
  const bool context_free_;
  // The steps from terminal to terminal after which by_terminals() gives up. The number is halved each time
  // by_terminals() gives up.
  uint32_t most_ways_ = 4096;
  // These two measure the bounds of masks. Both are null until measure_with() and measure_growth_with() are
  // called.
  Lengths* lengths_ = nullptr;
  Growth* growth_ = nullptr;
  BumpPool pool_;
  // The masks that are only a list; finish() looks for an equal one here.
  StableVector<const Mask*> lists_;
  InternTable list_index_;
  std::size_t bytes_ = 0;
  // The parts by regex and stack. Each of the four maps is for one pair of answers: does the item capture
  // text, and is it covered?
  std::unordered_map<uint64_t, std::unique_ptr<Part>> parts_[4];
  std::unordered_map<const Suffixes*, std::unordered_map<uint32_t, std::unique_ptr<Ending>>>
      endings_;  // by trie, then by state
  FlatMap<uint32_t, bool> any_wide_;
  FlatMap<uint32_t, uint32_t> clamped_;
  FlatMap<uint32_t, StateId> blind_;
  std::vector<std::pair<uint32_t, StateId>> todo_;
  std::vector<StateId> suffix_states_;
};

}  // namespace structgen
