// Parse states: hash-consed sets of pairs (regex, set of stacks), stepped byte by byte.
//
// In: productions, and a start rule. Out: StateIds. step() is remembered per state and class of bytes.
// Cost: a known step is two loads. A new one costs a derivative per item and one look-up, about half a
// microsecond. Invariant: every state but the dead one can be completed. Threads: peek() and state()
// may run while one other thread, which holds the owner's lock, steps.
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

// One way to read on: the rest of a terminal, the stacks behind it, and the text that is being
// captured.
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

// The state behind several bytes, which was made without the states between (Parser::leap).
struct Jump {
  const Jump* next;
  std::string_view text;
  StateId to;
};

// A state. Its items never change. Other threads may read the fields that are computed later, so those
// are atomic.
struct State {
  const Item* items = nullptr;
  uint32_t n = 0;
  bool accepting = false;
  // True if some item captures text. Then a transition is kept for each byte, because each byte makes another
  // text.
  bool capturing = false;
  // True if some item is RegexArena::poison().
  bool poisoned = false;
  bool live_known = false;
  // Of a grammar that limits tokens, where no mark can run out behind the next token: the state after that
  // token has begun, and the same state without its marks (Limits::unlimited). `unmarked` is unknown() where
  // a mark can run out, and 0 until unlimited() was asked.
  std::atomic<uint32_t> begun{0}, unmarked{0};
  const ClassMap* classes = nullptr;
  // Per class: the successor, or unknown(). Made with the first step.
  std::atomic<std::atomic<uint32_t>*> next{nullptr};
  // At most Parser::kMostJumps.
  std::atomic<const Jump*> jumps{nullptr};
  // The bytes that may follow. Valid if live_known is set.
  ByteSet live;
  // Owned by the MaskBuilder of the epoch (mask/fill.h).
  std::atomic<const void*> mask{nullptr};
  // The number of tokens left from which on a budget refuses no token of the mask; 0: not known
  // (budget/rows.cc).
  std::atomic<uint32_t> loose{0};
};

// Makes and steps the states of one grammar. Everything but peek() and state() needs the owner's lock.
class Parser {
 public:
  // The state that reads nothing. unknown() is no state: it says that a step was not computed yet.
  static constexpr StateId dead() { return StateId{0}; }
  static constexpr StateId unknown() { return StateId{0xFFFFFFFFu}; }
  // A state that has more successors by several bytes makes them byte by byte.
  static constexpr std::size_t kMostJumps = 64;

  Parser(RegexArena& regexes, Productions& productions);
  // The state before a text of the rule.
  StateId start(RuleId rule);
  // The state before exactly these symbols.
  StateId before(std::span<const Symbol> symbols) {
    return continuation(stacks_.push(symbols, StackArena::end()), CaptureId{0});
  }
  const State& state(StateId s) const { return states_[s.v]; }
  State& state(StateId s) { return states_[s.v]; }
  std::span<const Item> items(StateId s) const { return {states_[s.v].items, states_[s.v].n}; }

  // The successor if it is known, else unknown(). Takes no lock.
  StateId peek(StateId s, uint8_t byte) const {
    const State& st = states_[s.v];
    const std::atomic<uint32_t>* const next = st.next.load(std::memory_order_acquire);
    if (!next) return unknown();
    return StateId{next[st.classes->of[byte]].load(std::memory_order_acquire)};
  }
  // The same for a text that is not empty: a successor by its first bytes, the number of which is `read`.
  StateId peek(StateId s, std::string_view text, std::size_t& read) const {
    for (const Jump* j = states_[s.v].jumps.load(std::memory_order_acquire); j; j = j->next)
      if (text.starts_with(j->text)) {
        read = j->text.size();
        return j->to;
      }
    read = 1;
    return peek(s, static_cast<uint8_t>(text[0]));
  }
  // The successor by one byte; dead() if the byte may not follow.
  StateId step(StateId s, uint8_t byte);
  // A successor by the first bytes of a text that is not empty. Within literals, such as the keys of an
  // object, it goes past several bytes.
  StateId advance(StateId s, std::string_view text, std::size_t& read);
  // The same, and if step() leads nowhere it is taken again, because its way may have been omitted.
  // LookAgain asks undecided questions again; Trust is for a byte that a mask allows.
  template <class Effort>
  StateId step_with(StateId s, uint8_t byte);
  // The bytes that may follow.
  const ByteSet& live(StateId s);

  // The state of these items, and of the items behind their nullable terminals.
  StateId make(std::span<const Item> items, bool accepting);
  // The state of one item. It is remembered if the item captures no text, or an unknown one.
  StateId make(const Item& item);
  // The state of exactly these items, which come from a state: no item is added behind nullable terminals.
  StateId of_items(std::vector<Item> items, bool accepting);
  // One way to read on: one item of s, above one stack of its set. `choose(stack)` names the entry to
  // follow at each level. The result allows a part of what s allows; it is used where s has too many
  // ways. dead() if this way cannot be completed.
  StateId one_way(StateId s, std::size_t item, const std::function<std::size_t(StackId)>& choose);
  // The state behind a terminal that has just ended above `stack`.
  StateId continuation(StackId stack, CaptureId capture);
  // The items of that state where no text is captured. Makes no state.
  std::span<const Item> begins(StackId stack) {
    const KnownFrontier& known = frontier(stack);
    omitted_ += known.starved;
    return known.items;
  }

  // Limits on tokens (parse/limits.h). begin_token() gives the state after a token has begun; it is accepting
  // if s is. without_limits() takes the marks out of s. least_limit() tells the smallest mark.
  StateId begin_token(StateId s) { return limited(at_edge(s), true); }
  // s with the items behind edges (kEdge) beside its own, for a place where a token may begin.
  StateId at_edge(StateId s);
  bool edged() const { return edged_; }
  // True for the regex that stands where a text may end and reads no byte of it
  // (Productions::bordered).
  bool marks(RegexId r) { return marked_ && !edged_ && r == regexes_.byte(kEdge); }
  // kEdge is read at edges, or where a text may end.
  bool marked() const { return marked_; }
  // How often the alternatives of a rule were omitted (base/effort.h).
  uint64_t omitted() const { return omitted_; }
  StateId without_limits(StateId s) { return limited(s, false); }
  uint32_t least_limit(StateId s);
  // Whether a mark counts here, or behind some text that may follow.
  bool may_limit(StateId s);
  bool may_limit(StackId s) { return limits_.possible(s, productions_); }
  StackLimits& limits() { return limits_; }

  RegexArena& regexes() { return regexes_; }
  StackArena& stacks() { return stacks_; }
  CaptureArena& captures() { return captures_; }
  uint32_t size() const { return states_.size(); }
  std::size_t byte_size() const;

  // The texts of r that begin with none of the bytes of `follow`.
  RegexId restricted(RegexId r, RegexId follow) { return alive_.restricted(r, follow); }
  Alive& alive() { return alive_; }
  bool context_free() const { return productions_.context_free(); }
  bool unproven() const { return productions_.unproven(); }
  bool tries_texts() const { return productions_.tries_texts(); }

  // Copies a state of another parser with the same regexes and rule ids into this one. A `memo` belongs
  // to one source, because stack ids of two sources mean different stacks.
  using ImportMemo = FlatMap<uint32_t, uint32_t>;
  StateId import(Parser& from, StateId s, ImportMemo& memo);

 private:
  // A lexeme that may begin here. How far it reaches is known when a context is given.
  struct Pending {
    uint32_t lexeme;
    StackId stack;
    friend bool operator==(const Pending&, const Pending&) = default;
    friend auto operator<=>(const Pending& x, const Pending& y) {
      return std::tie(x.lexeme, x.stack.v) <=> std::tie(y.lexeme, y.stack.v);
    }
  };
  // The items of a stack whose top may be read; nullable terminals have been followed. While it is made.
  struct Frontier {
    std::vector<Item> items;
    std::vector<Pending> lexemes;
    bool accepting = false;
    bool empty() const { return items.empty() && lexemes.empty() && !accepting; }
  };
  // A frontier as it is kept. Its lists lie in pool_, as those of expansions_ do: an epoch has a hundred
  // thousand of them, and as vectors they made the end of an epoch a pause of 100 ms.
  struct KnownFrontier {
    std::span<const Item> items;
    std::span<const Pending> lexemes;
    bool accepting;
    // True if the frontier is empty because something was omitted; see fed().
    bool starved;
    bool empty() const { return items.empty() && lexemes.empty() && !accepting; }
  };
  Frontier borrow();
  std::optional<StateId> past(StateId s, std::string_view text);
  const KnownFrontier& frontier(StackId stack);
  const KnownFrontier* known_frontier(StackId stack) const {
    const uint32_t* at = frontier_index_.find(stack.v);
    return at ? &frontiers_[*at] : nullptr;
  }
  bool build_frontier(StackId stack, Frontier& out, StackId& missing);
  void merge(const KnownFrontier& from, Frontier& out);
  template <class F>
  StateId fed(F&& make);
  void forget_starved();
  // No value: all that may follow was omitted.
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
  StateId intern(std::span<const Item> items, bool accepting);
  // Throws if the arena has more bytes than it may (RegexArena::most()).
  void look_at_size();
  std::atomic<uint32_t>* make_row(StateId s);
  StateId step_uncached(StateId s, uint8_t byte);
  StateId limited(StateId s, bool begin);
  bool ends_at_edge(std::span<const Item> items, uint32_t depth);
  StackId import_stack(Parser& from, StackId s, ImportMemo& memo);

  RegexArena& regexes_;
  Productions& productions_;
  const bool edged_;
  // A text may end with kEdge.
  const bool marked_;
  StackArena stacks_;
  Alive alive_;
  StackLimits limits_;
  CaptureArena captures_;
  StableVector<State> states_;
  uint32_t next_look_ = 0;
  InternTable index_;
  BumpPool pool_;
  StableVector<AlternativeList> expansions_;
  FlatMap<uint32_t, uint32_t> expansion_index_;
  StableVector<KnownFrontier> frontiers_;
  FlatMap<uint32_t, uint32_t> frontier_index_;
  std::vector<Frontier> spare_;
  FlatMap<uint64_t, uint32_t> capture_steps_;
  // Keyed by regex and stack; of items with an unknown text, and of those that capture none.
  FlatMap<uint64_t, StateId> singles_[2];
  // The results of limited(), by state and `begin`.
  FlatMap<uint64_t, uint32_t> limited_;
  FlatMap<uint32_t, uint32_t> edges_;
  // While a frontier is built: the stack below the symbol at hand, whether that stack was reached, and
  // which stacks were visited.
  StackId base_ = StackArena::none();
  bool reached_ = false;
  std::vector<uint32_t> visited_;
  uint32_t visit_ = 0;
  uint32_t depth_ = 0;
  // The number of frontiers that are being built.
  uint32_t nested_ = 0;
  // The number of rules and stacks behind which everything was omitted.
  uint64_t omitted_ = 0;
  std::vector<StackId> starved_;
};

}  // namespace structgen
