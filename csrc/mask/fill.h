// From a parse state to its mask.
//
// In: a parser, a state, the slices of the vocabulary. Out: a Mask, kept with the state.
// Cost: a known mask is one copy of V/8 bytes. A new one walks the trie where few tokens are allowed,
// and where many are takes a shared row and walks only what leaves the terminal: a few microseconds.
//
// Reasoning: a token is allowed iff one item of the state allows it, so a mask is a union over items.
// A wide item (regex r above stack s) allows the tokens inside r, which do not depend on s, and those
// that leave r and go on through s. The first are slices; only the second are walked.
// Where r's text is captured, the walk goes on with an *unknown* text: productions answer with poison()
// wherever the text would matter, and the few tokens that get there are stepped one by one.
#pragma once

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
#include "parse/lengths.h"
#include "parse/state.h"

namespace structgen {

// A row is `dense` (or nothing), minus `removed`, plus `added` and `shared`, plus the EOS ids where the text
// may end. Rows and shared lists belong to slices and endings, so that a mask costs what is its own.
struct Mask {
  const uint32_t* dense = nullptr;
  const TokenId* added = nullptr;
  const TokenId* removed = nullptr;
  const TokenId* shared = nullptr;
  uint32_t n_added = 0;
  uint32_t n_removed = 0;
  uint32_t n_shared = 0;
  bool accepting = false;
  bool inside_run = false;  // every token of `dense` stays inside one run of characters
};

void write_row(const Mask& mask, const Vocabulary& vocabulary, uint32_t* row);
bool allows(const Mask& mask, const Vocabulary& vocabulary, TokenId t);

class MaskBuilder {
 public:
  MaskBuilder(Parser& parser, Slices& slices, const Vocabulary& vocabulary)
      : parser_(parser),
        slices_(slices),
        vocabulary_(vocabulary),
        lexemes_(parser.regexes(), vocabulary),
        context_free_(parser.context_free()) {}

  // The mask if it is known; takes no lock.
  const Mask* peek(StateId s) const {
    return static_cast<const Mask*>(parser_.state(s).mask.load(std::memory_order_acquire));
  }
  const Mask* mask(StateId s);
  // From here on what is looked at for a mask is measured, too: how many bytes complete the text after the
  // worst of its tokens, at most (State::loose takes it).
  void measure_with(Lengths* lengths) { lengths_ = lengths; }
  // The same of a mask that is known.
  void measure(StateId s);
  // Computed by the plain walk, kept nowhere; `scratch` owns the storage.
  void uncached(StateId s, std::vector<TokenId>& scratch, Mask& out);
  // Tokens that are allowed, shortest first, until the scope of work around it is used up, and longer until
  // there is one: for a mask that was too much. A step that is too much is left out. Where no token was found
  // it throws what stopped it.
  void some(StateId s, uint32_t* row);
  // The run of all characters of JSON strings; null where no such strings were made.
  RunClass* characters() {
    const RegexId any = parser_.regexes().any_character();
    return any == RegexArena::empty() ? nullptr : slices_.run(any);
  }
  // A state reached inside a walk, without the text it captures: texts would make every step a new state.
  StateId blind(StateId s);
  std::size_t byte_size() const {
    return pool_.byte_size() + bytes_ + lexemes_.byte_size() + blind_.byte_size();
  }

 private:
  struct Part {  // the share of one wide item, independent of captured text
    const Words* base = nullptr;
    const std::vector<TokenId>* shared = nullptr;
    std::vector<TokenId> added, removed;
    std::vector<TokenId> unsure;   // decided by stepping the token
    uint32_t worst = kUnmeasured;  // of the tokens that leave the item
  };
  struct Collected {
    std::vector<TokenId> sure, unsure;
    uint32_t worst = 0;    // bytes that complete the text after one of them, at most; where they are measured
    Words* row = nullptr;  // takes what lexemes share, where there is one; the lists hold the rest
    bool row_used = false;
    bool plain = false;  // nothing shared is used
  };
  // Tokens that leave a run and go on from a state: one walk for all the runs that end in that state. The
  // counts say after how many elements each leaves, for the runs that are bounded.
  struct Ending : Collected {
    std::vector<uint32_t> sure_counts, unsure_counts;
  };
  static constexpr uint32_t kUnmeasured = 0xFFFFFFFFu;
  bool measured(uint32_t worst) const { return !lengths_ || worst != kUnmeasured; }
  void note(StateId s, Collected& out) {
    if (lengths_) out.worst = std::max(out.worst, lengths_->of(s));
  }
  void note(const Item& item, uint32_t& worst);
  const Mask* make(StateId s, bool keep);
  bool wide(RegexId r);
  void split(const Item& item, std::vector<Item>& narrow, std::vector<Item>& wide_items);
  // `covered`: another item allows all tokens of JSON string characters.
  const Part& part(const Item& item, bool covered);
  void run_part(const Item& item, RunClass& run, uint32_t min, uint32_t max, RegexId tail, Part& out);
  bool few_exits(const RunClass& run, RegexId element, const Item& item, RegexId tail);
  void terminal_part(const Item& item, const TerminalMask& t, Part& out);
  const Item* cover(const std::vector<Item>& wide_items);
  bool string_open(StateId s);
  struct Counts {  // elements before each token of the lists
    std::vector<uint32_t>&sure, &unsure;
  };
  void walk_suffixes(const Suffixes& suffixes, StateId from, bool looked, Collected& out,
                     const Counts* counts);
  void read_inside(const Opened& opened, StateId s, Collected& out, const Counts* counts);
  void walk(uint32_t node, StateId from, Collected& out);
  bool lexed(StateId s);
  bool any_wide(StateId s);
  RegexId forbidden(StackId stack, StateId left);
  void gather(uint32_t node, StateId s, Collected& out);
  void add(uint32_t node, RegexId regex, StackId stack, Collected& out);
  const Mask* gathered(StateId s);
  const Ending& ending(const Suffixes& suffixes, StateId from);
  bool sure(StateId s) const;
  bool goes_on(StateId s, uint8_t byte);
  void set_part(const Item& item, Part& out);
  bool accepts(StateId s, std::string_view bytes);
  RegexId clamp(RegexId r);
  const Mask* finish(StateId s, const Words* base, const std::vector<TokenId>* shared,
                     std::vector<TokenId>& removed, std::vector<TokenId>& added);
  void set_loose(StateId s, uint32_t worst);
  const TokenId* keep(std::vector<TokenId>& tokens, uint32_t& n);

  Parser& parser_;
  Slices& slices_;
  const Vocabulary& vocabulary_;
  LexemeSlices lexemes_;
  const bool context_free_;
  Lengths* lengths_ = nullptr;  // null: nothing is measured
  BumpPool pool_;
  std::size_t bytes_ = 0;                                         // of parts and endings
  std::unordered_map<uint64_t, std::unique_ptr<Part>> parts_[4];  // [capturing, covered]; key (regex, stack)
  std::unordered_map<const Suffixes*, std::unordered_map<uint32_t, std::unique_ptr<Ending>>>
      endings_;  // by state
  FlatMap<uint32_t, bool> any_wide_;
  FlatMap<uint32_t, uint32_t> clamped_;
  FlatMap<uint32_t, StateId> blind_;
  std::vector<std::pair<uint32_t, StateId>> todo_;
  std::vector<StateId> suffix_states_;
};

}  // namespace structgen
