// Parse states: hash-consed sets of pairs (regex, set of stacks), stepped byte by byte.
//
// In: productions, and a start rule. Out: StateIds. Each state remembers its successor for each class of
// bytes. Cost: a known step is two loads. A new step costs a derivative for each item and one look-up;
// together they take about half a microsecond. Invariant: every state but the dead state can be completed; in
// a grammar that is `unproven` (GrammarTraits), some other states may have no completion either.
// Threads: peek() and state() may run while one other thread, which holds the owner's lock, steps.
#pragma once

#include <atomic>
#include <compare>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "base/arena.h"
#include "base/bitset.h"
#include "base/flat_map.h"
#include "base/ids.h"
#include "base/intern.h"
#include "base/small_vector.h"
#include "parse/alive.h"
#include "parse/capture.h"
#include "parse/limits.h"
#include "parse/productions.h"
#include "parse/stack.h"
#include "regex/regex.h"

namespace structgen {

// One way to read on: the rest of a terminal, the stacks behind it, and the open capture.
struct Item {
  RegexId regex;
  StackId stack;
  CaptureId capture;
  friend bool operator==(const Item&, const Item&) = default;
  friend bool operator<(const Item& x, const Item& y) {
    if (x.regex != y.regex) return x.regex < y.regex;
    if (x.stack != y.stack) return x.stack < y.stack;
    return x.capture < y.capture;
  }
};

// A step over several bytes at once; the states in between were never made (Parser::advance).
struct Jump {
  const Jump* next;
  std::string_view text;
  StateId to;
};

// A state. Its items never change. Other threads may read a state, so fields that are computed later are
// atomic.
struct State {
  const Item* items = nullptr;
  uint32_t n = 0;
  bool accepting = false;
  // True if some item captures text. Each byte changes the captured text, so each byte leads to a state of
  // its own, and bytes are not divided into classes.
  bool capturing = false;
  bool poisoned = false;
  // For grammars that limit tokens (Limits::unlimited). If the next token cannot use up a limit, `begun` is
  // the state after this token has begun, and `unmarked` is the state `begun` without its marks. If the next
  // token can use up a limit, `unmarked` is unknown(). Both are 0 until unlimited() is asked.
  std::atomic<uint32_t> begun{0}, unmarked{0};
  // The other end of the range that begins with `grows`.
  std::atomic<uint32_t> grows_to{0};
  // The classes of bytes that index `next`. The first step sets both.
  const ClassMap* classes = nullptr;
  // The successor for each class of bytes, or unknown(). The table is made by the first step.
  std::atomic<std::atomic<uint32_t>*> next{nullptr};
  std::atomic<const Jump*> jumps{nullptr};
  // The bytes that may follow; null until Parser::live() is asked.
  const ByteSet* live = nullptr;
  // The mask of the state, which the MaskBuilder of the epoch owns (mask/fill.h).
  std::atomic<const void*> mask{nullptr};
  // A budget of this many tokens or more refuses no token of the mask. 0 until it is computed
  // (budget/rows.cc).
  std::atomic<uint32_t> loose{0};
  // Whichever token of the mask comes next, behind it there is a completion of each length from `grows` - 1
  // to `grows_to` bytes (Growth::LengthRange). `grows` is 0 until both are computed.
  std::atomic<uint32_t> grows{0};
};

// Makes and steps the states of one grammar. Its caller holds the world's lock, except for peek() and
// state().
class Parser {
 public:
  // dead() is the state that reads nothing. unknown() is no state: a table has it where no successor was
  // computed.
  static constexpr StateId dead() { return StateId{0}; }
  static constexpr StateId unknown() { return StateId{0xFFFFFFFFu}; }
  // A state remembers at most this many jumps. Other texts are read byte by byte.
  static constexpr std::size_t kMostJumps = 64;

  // `regexes` and `productions` must live longer than the parser.
  Parser(RegexArena& regexes, Productions& productions);
  StateId start(RuleId rule);
  // Returns the state that reads exactly these symbols.
  StateId before(std::span<const Symbol> symbols) {
    return continuation(stacks_.push(symbols, StackArena::end()), CaptureId{0});
  }
  const State& state(StateId s) const { return states_[s.v]; }
  State& state(StateId s) { return states_[s.v]; }
  std::span<const Item> items(StateId s) const { return {states_[s.v].items, states_[s.v].n}; }

  // Returns the successor if it was computed, and unknown() otherwise. Takes no lock.
  StateId peek(StateId s, uint8_t byte) const {
    const State& st = states_[s.v];
    const std::atomic<uint32_t>* const next = st.next.load(std::memory_order_acquire);
    if (!next) return unknown();
    return StateId{next[st.classes->of[byte]].load(std::memory_order_acquire)};
  }
  // Returns the state behind a beginning of the text, if this state was computed before: the beginning is the
  // text of a jump, otherwise one byte. Sets `read` to the number of bytes of this beginning. Returns
  // unknown() if no such state was computed.
  StateId peek(StateId s, std::string_view text, std::size_t& read) const {
    for (const Jump* j = states_[s.v].jumps.load(std::memory_order_acquire); j; j = j->next)
      if (text.starts_with(j->text)) {
        read = j->text.size();
        return j->to;
      }
    read = 1;
    return peek(s, static_cast<uint8_t>(text[0]));
  }
  // Returns the successor by one byte; dead() if the byte may not follow.
  StateId step(StateId s, uint8_t byte);
  // Returns the state behind a beginning of the text: several bytes inside literals such as keys, one byte
  // elsewhere. Sets `read` to the number of bytes of this beginning.
  StateId advance(StateId s, std::string_view text, std::size_t& read);
  // Returns step(s, byte). If the result is dead(), alternatives may have been omitted, and the step is made
  // again under `Effort` (base/effort.h). With LookAgain, undecided questions are asked again; Trust is for a
  // byte that a mask allows.
  template <class Effort>
  StateId step_with(StateId s, uint8_t byte);
  const ByteSet& live(StateId s);

  // Returns the state that has the given items, and the items behind each one that may read nothing.
  StateId make(std::span<const Item> items, bool accepting);
  StateId make(const Item& item);
  // Returns the state that has exactly the given items, which come from another state. The other state
  // already had the items behind each item that may read nothing, so no items are added.
  StateId of_items(std::vector<Item> items, bool accepting);
  // For a state with too many items: returns a state that reads some texts of s, made of one item above one
  // stack. choose(stack) picks the entry at each depth of the stack. Returns dead() if this item and stack
  // have no completion.
  StateId one_way(StateId s, std::size_t item, const std::function<std::size_t(StackId)>& choose);
  StateId continuation(StackId stack, CaptureId capture);
  // Returns the state behind a text, by a step for each byte; dead() if the text cannot be read.
  StateId read(StateId s, std::string_view text) {
    for (std::size_t i = 0; i < text.size() && s != dead(); ++i) s = step(s, static_cast<uint8_t>(text[i]));
    return s;
  }
  // Returns the items of continuation(stack), where no text is captured. Makes no state.
  std::span<const Item> begins(StackId stack) {
    const KnownFrontier& known = frontier(stack);
    omitted_ += known.starved;
    return known.items();
  }

  // For limits on tokens (parse/limits.h). begin_token() returns the state after a token has begun; this
  // state accepts if s does. without_limits() returns s without its marks. least_limit() returns the smallest
  // mark of s.
  StateId begin_token(StateId s) { return limited(at_edge(s), true); }
  // Returns s with the items added that stand behind an edge (kEdge). This is the state at a point where a
  // token may begin.
  StateId at_edge(StateId s);
  bool edged() const { return edged_; }
  // Returns true for a regex that is only the mark of a possible end; no byte of a text is read by it
  // (GrammarTraits::bordered).
  bool marks(RegexId r) { return marked_ && !edged_ && r == regexes_.byte(kEdge); }
  bool marked() const { return marked_; }
  // Returns how often alternatives of rules were omitted (base/effort.h).
  uint64_t omitted() const { return omitted_; }
  StateId without_limits(StateId s) { return limited(s, false); }
  uint32_t least_limit(StateId s);
  // Returns true if the stacks have a mark, or some text that may follow pushes one.
  bool may_limit(StateId s);
  bool may_limit(StackId s) { return limits_.possible(s, productions_); }
  StackLimits& limits() { return limits_; }

  RegexArena& regexes() { return regexes_; }
  StackArena& stacks() { return stacks_; }
  CaptureArena& captures() { return captures_; }
  uint32_t size() const { return states_.size(); }
  std::size_t byte_size() const;

  RegexId restricted(RegexId r, RegexId follow) { return alive_.restricted(r, follow); }
  Alive& alive() { return alive_; }
  bool context_free() const { return productions_.traits().context_free; }
  bool unproven() const { return productions_.traits().unproven; }
  bool tries_texts() const { return productions_.traits().tries_texts; }

  // Copies a state of another parser with the same regexes and rules. Parsers number their stacks
  // differently, so each other parser needs a `memo` of its own.
  using ImportMemo = FlatMap<uint32_t, uint32_t>;
  StateId import(Parser& from, StateId s, ImportMemo& memo);

 private:
  // A lexeme that may begin here, and the stacks behind it. How far it reaches depends on the context, which
  // is not known yet.
  struct Pending {
    uint32_t lexeme;
    StackId stack;
    friend bool operator==(const Pending&, const Pending&) = default;
    friend auto operator<=>(const Pending& x, const Pending& y) {
      return std::tie(x.lexeme, x.stack.v) <=> std::tie(y.lexeme, y.stack.v);
    }
  };
  // What can be read first in a set of stacks, while build_frontier() collects it. If a terminal may read
  // nothing, the frontier also has what follows this terminal.
  struct Frontier {
    std::vector<Item> items;
    std::vector<Pending> lexemes;
    bool accepting = false;
    bool empty() const { return items.empty() && lexemes.empty() && !accepting; }
  };
  // A finished frontier. Its lists lie in pool_. An epoch has a hundred thousand such lists, and freeing them
  // as vectors took 100 ms.
  struct KnownFrontier {
    const Item* first_item;
    const Pending* first_lexeme;
    uint32_t n;
    uint32_t n_lexemes : 30;
    uint32_t accepting : 1;
    // True if the frontier is empty because alternatives were omitted. fed() then drops the frontier, so that
    // it is made again.
    uint32_t starved : 1;
    std::span<const Item> items() const { return {first_item, n}; }
    std::span<const Pending> lexemes() const { return {first_lexeme, n_lexemes}; }
    bool empty() const { return n == 0 && n_lexemes == 0 && !accepting; }
  };
  Frontier borrow();
  std::optional<StateId> past(StateId s, std::string_view text);
  const KnownFrontier& frontier(StackId stack);
  const KnownFrontier* known_frontier(StackId stack) const {
    const uint32_t at = stack.v < frontier_of_.size() ? frontier_of_[stack.v] : 0;
    return at == 0 ? nullptr : &frontiers_[at - 1];
  }
  bool build_frontier(StackId stack, Frontier& out, StackId& missing);
  void merge(const KnownFrontier& from, Frontier& out);
  template <class F>
  StateId fed(F&& make);
  void forget_starved();
  // Returns no value if everything that may follow was omitted.
  std::optional<StateId> continued(StackId stack, CaptureId capture);
  std::optional<StateId> stepped(StateId s, uint8_t byte);
  void merge_restricted(const KnownFrontier& from, RegexId follow, Frontier& out);
  void merge_in_context(const KnownFrontier& from, uint32_t context, Frontier& out);
  bool first_visit(StackId s);
  void close(StackId stack, CaptureId capture, const Reading& reading, Frontier& out);
  void follow(Symbol top, StackId rest, CaptureId capture, const Reading& reading, Frontier& out);
  void follow_alternatives(AlternativeList alts, StackId rest, CaptureId capture, Frontier& out);
  void add_item(RegexId regex, StackId stack, CaptureId capture, Frontier& out);
  AlternativeList expand(RuleId rule);
  void expand(RuleId rule, const Reading& reading, Alternatives& out);
  void normalise(std::vector<Item>& items);
  void normalise(std::vector<Pending>& lexemes);
  StateId intern(std::span<const Item> items, bool accepting, bool kept = false);
  void look_at_size();
  std::atomic<uint32_t>* make_row(StateId s);
  StateId step_uncached(StateId s, uint8_t byte);
  StateId limited(StateId s, bool begin);
  bool ends_at_edge(std::span<const Item> items, uint32_t depth);
  StackId import_stack(Parser& from, StackId s, ImportMemo& memo);

  RegexArena& regexes_;
  Productions& productions_;
  // True if terminals contain kEdge where a token must begin (GrammarTraits::edged).
  const bool edged_;
  // True if terminals contain kEdge: where a token must begin, or where a text may end.
  const bool marked_;
  StackArena stacks_;
  Alive alive_;
  StackLimits limits_;
  CaptureArena captures_;
  StableVector<State> states_;
  StableVector<ByteSet> lives_;
  InternTable live_index_;
  // The number of states and sets of stacks at which look_at_size() next checks the size.
  uint32_t next_look_ = 0;
  InternTable index_;
  BumpPool pool_;
  // The alternatives of rules that are told nothing; expansion_index_ finds them by rule.
  StableVector<AlternativeList> expansions_;
  FlatMap<uint32_t, uint32_t> expansion_index_;
  // The frontiers of sets of stacks. frontier_of_[s] is 1 more than the index of the frontier of s, or 0.
  StableVector<KnownFrontier> frontiers_;
  StableVector<uint32_t> frontier_of_;
  // Frontiers that are not in use. borrow() hands them out again for their memory.
  std::vector<Frontier> spare_;
  // The successors of states that capture text, by state and byte.
  FlatMap<uint64_t, uint32_t> capture_steps_;
  // The states of one item, by regex and stack: [0] for capture 0, [1] for an unknown capture.
  FlatMap<uint64_t, StateId> singles_[2];
  FlatMap<uint64_t, uint32_t> limited_;
  FlatMap<uint32_t, uint32_t> edges_;
  // The frontier under way: base_ is the set of stacks below the symbol that is being followed; reached_ says
  // that this symbol may read nothing.
  StackId base_ = StackArena::none();
  bool reached_ = false;
  std::vector<uint32_t> visited_;
  // visited_[s] equals visit_ if the stacks s were visited for the current symbol. depth_ is the number of
  // rules entered one inside the other.
  uint32_t visit_ = 0;
  uint32_t depth_ = 0;
  uint32_t nested_ = 0;
  // Counts how often everything that may follow a rule or a stack was omitted.
  uint64_t omitted_ = 0;
  // The sets of stacks whose frontiers are starved; forget_starved() drops these frontiers.
  std::vector<StackId> starved_;
};

}  // namespace structgen
