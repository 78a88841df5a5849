// The six sources of rows; row_source.h says which grammar has which.
//
// The matcher (engine/matcher.cc) asks a source for the row of its sequence. It asks known() first, because
// known() takes no lock. The same source then reads the token that was chosen.
//
// The problem. A row has to be made within a limit of work. Where the world omits (base/effort.h), this limit
// must not stop a text that was begun. Under a budget of tokens, each token of the row has to leave enough
// tokens to complete the text.
//
// The idea. Each source tries the dearest answer first and falls back on cheaper ones, every step in a
// scope of its own (LockedWork). Where the world omits, the steps share their work (Shares):
//
//     fill      1. the mask of the state, with the limit of one call (Limits(mask=...))
//               where the world omits:
//               2. some tokens of the mask; 3. the tokens of one of several ways to read on
//               4. some tokens of the mask, with more and more work up to ending_work()
//     within    1. the row of fill, less the tokens that leave too little (budget/budget.h)
//               2. the token of the promised way (keep_promise)
//               3. the tokens for which a bound in bytes shows an end (keep_bounded)
//               where the world omits:
//               4. 1. for one of several ways to read on; 5. 1. for a shortest completion as the only text
//               A lenient text (engine/lenient.h): the row of fill as long as a bound allows all of it. Then
//               1. to 3. by the states, or the pieces of one ending where the states take too long to make
//     read      1. the step of the parser
//               where the world omits, the row may have come from a later step of `fill`:
//               2. the step of one way; 3. the step with ending_work()
//               4. the step again, with undecided parts taken as the mask took them (vouches)
//
// Example. A schema of a thousand alternatives takes more than Limits(mask=...) in its first state. PlainRow
// throws kBudgetExceeded there. PartRow gives a row of the tokens that were found, with `exact` false.
//
// Invariants. A source reads each token of a row that it made. A row within a budget is a subset of the row
// without one. Where the world omits, it may also have the first token of a promised way, which the row
// without a budget may lack (keep_promise()).
//
// Rejected. One source with a flag for each kind of grammar: a plain mask would pay for the checks that other
// kinds of grammars need.
#include <algorithm>
#include <bit>
#include <mutex>
#include <vector>

#include "base/error.h"
#include "base/told.h"
#include "base/work.h"
#include "engine/row_source.h"

namespace structgen {

namespace {
// Returns true if Limits::unlimited() can judge for this text whether its grammar's limits on tokens matter.
bool asks_limits(const Sequence& s) {
  const Epoch& epoch = *s.epoch();
  return !epoch.parser.unproven() && epoch.world.cache && s.vocabulary().complete() && !s.grammar().omits() &&
         !s.grammar().partial() && !epoch.parser.edged();
}

// Returns the state that Limits::unlimited() found earlier; dead() if it found none or was not asked. Takes
// no lock.
StateId known_unlimited(const Sequence& s) {
  const Parser& parser = s.epoch()->parser;
  const StateId found{parser.state(s.current()).unmarked.load(std::memory_order_acquire)};
  return found == Parser::unknown() || !asks_limits(s) ? Parser::dead() : found;
}
}  // namespace

bool loose_within(Sequence& s, std::size_t budget) {
  const StateId at = s.epoch()->budgets.limits ? known_unlimited(s) : s.top();
  const uint32_t loose = s.epoch()->parser.state(at).loose.load(std::memory_order_acquire);
  if (at == Parser::dead() || !(s.epoch()->fast || s.epoch()->budgets.limits)) return false;
  if (loose == 0 || budget < loose + s.spare(loose) || s.grammar().partial()) return false;
  if (s.bytes() < s.grammar().bytes().least) return false;
  s.note_budget();
  return true;
}

namespace {
Budget budget_of(const Sequence& s) {
  return {s.epoch()->budgets, s.grammar().partial(), s.grammar().mask_work(), s.states(), s.tokens(),
          s.written()};
}

// Calls f with a Budget for the text, so that f changes the row, and notes whether the row is exact. The
// caller holds the world's lock.
template <class F>
bool by_budget(const Sequence& s, Row& row, const F& f) {
  Budget now = budget_of(s);
  const bool found = f(now);
  row.exact = row.exact && now.exact();
  return found;
}

// Leaves only one token in the row: the first token of the way that an earlier row of this text found
// (budget/budget.h). Returns false if this way does not fit the budget. Nothing is searched, because the way
// is known.
bool keep_promise(const Sequence& s, Row& row, std::size_t budget) {
  std::lock_guard hold(s.grammar().world().lock);
  return by_budget(s, row, [&](Budget& now) { return now.keep_promise(row.words, budget); });
}

// Leaves the tokens behind which bounds in bytes prove that the text can be completed within the budget. If
// every earlier token was allowed by such bounds, at least one token is left.
bool keep_bounded(const Sequence& s, std::span<const uint32_t> plain, Row& row, std::size_t budget,
                  Allowance limit) {
  const LockedWork work(s, Task::kBudget, limit);
  return by_budget(s, row, [&](Budget& now) { return now.keep_bounded(plain, row.words, budget); });
}

// Removes the tokens behind which `budget` tokens cannot complete the text. Returns false if it is proved
// that no token is left. `whole` says that the row is the whole mask of the state, so that remembered answers
// for this mask apply.
bool narrow(Sequence& s, Row& row, std::size_t budget, Allowance limit, bool whole) {
  const LockedWork work(s, Task::kBudget, limit);
  s.refresh();
  s.note_budget();
  return by_budget(s, row, [&](Budget& now) {
    return whole ? now.narrow_mask(row.words, budget) : now.narrow(row.words, budget);
  });
}

// Divides the work of a call that tries several answers in turn. The first answer may take as much work as a
// mask; all others together may take half as much.
class Shares {
 public:
  explicit Shares(const Sequence& s) : all_(s.grammar().mask_work()), left_(meter.left()) {}
  Allowance next() const {
    const int64_t rest = all_ / 2 * 3 - (left_ - meter.left());
    return std::clamp(rest / 4 * 3, std::min(all_, kLeast), all_);
  }

 private:
  static constexpr int64_t kLeast = 10'000;
  const int64_t all_, left_;
};

std::vector<uint32_t> copy_of(const Sequence& s, const Row& row) {
  return {row.words, row.words + s.vocabulary().words()};
}

// Makes the rows of a grammar in a world that omits nothing.
class PlainRow : public RowSource {
 public:
  bool known(const Sequence& s, Row& row) const override {
    if (!s.epoch()->fast || by_text(s)) return false;
    const Mask* m = s.epoch()->masks.peek(s.current());
    if (!m) return false;
    write_row(*m, s.vocabulary(), row.words);
    return !unproven(s) || !empty(s, row);  // make() throws the reason if the row is empty
  }

  void fill(Sequence& s, Row& row) const override {
    if (!known(s, row)) make(s, row, s.grammar().mask_work(), false);
  }

  // Removes the tokens behind which it finds no completion within the budget, with at most ending_work()
  // units of work. If this work does not suffice, within() tries the promised way, then bounds in bytes.
  bool within(Sequence& s, Row& row, std::size_t budget) const override {
    Told<bool> made = told([&] { mask(s, row); });
    if (!made) return keep_promise(s, row, budget) || std::move(made).value();
    if (loose_within(s, budget)) return true;
    Told<bool> found = told([&] { return narrow(s, row, budget, s.grammar().ending_work(), true); });
    if (found) return *found;
    if (keep_promise(s, row, budget)) return true;
    mask(s, row);
    return keep_bounded(s, copy_of(s, row), row, budget, s.grammar().mask_work()) || std::move(found).value();
  }

  StateId read(Sequence& s, TokenId t) const override {
    return s.behind(s.current(), s.vocabulary().bytes(t));
  }

 protected:
  // Makes the row. With `measured` it also computes the budget from which on no token of the mask is refused,
  // and stores it with the state (State::loose).
  void make(Sequence& s, Row& row, Allowance limit, bool measured) const {
    const LockedWork work(s, Task::kMask, limit);
    s.refresh();
    Epoch& epoch = *s.epoch();
    if (measured && epoch.fast) measure(s, epoch);
    if (s.grammar().world().cache) {
      write_row(*epoch.masks.mask(s.current()), s.vocabulary(), row.words);
      if (measured && epoch.fast && !bounded(s)) epoch.masks.measure(s.current());
    } else {
      Mask m;
      std::vector<TokenId> scratch;
      epoch.masks.uncached(s.current(), scratch, m);
      write_row(m, s.vocabulary(), row.words);
    }
    work.note();
    judge(s, row);
  }
  // Has each new mask get the bounds of its tokens. bounded() tells whether the state has them already.
  virtual void measure(const Sequence& /*s*/, Epoch& epoch) const {
    epoch.masks.measure_with(&epoch.lengths);
  }
  virtual bool bounded(const Sequence& /*s*/) const { return true; }
  // Removes the tokens of a new mask behind which no text is left. Throws if no token is left. The work
  // counts as work for the mask.
  virtual void judge(const Sequence& s, Row& row) const {
    if (!unproven(s)) return;
    if (by_text(s)) keep_read(s, row);
    if (empty(s, row))
      throw Error(
          ErrorKind::kBudgetExceeded,
          "no text is left that ends from here: the condition leaves too few keys or items that differ");
  }
  // Returns true if each token that may end an item must be read with the captured text before it is allowed
  // (keep_read()). One mask serves all captured texts. A condition, or a world that omits, may exclude a
  // token for one captured text only. Such a token is found only by reading it: behind `[1,` in an array
  // whose items differ, the mask has `1`, and the parser refuses it.
  static bool by_text(const Sequence& s) {
    return (s.grammar().partial() || s.epoch()->parser.tries_texts()) &&
           s.epoch()->parser.state(s.current()).capturing;
  }
  static bool unproven(const Sequence& s) { return s.epoch()->parser.unproven(); }
  static bool empty(const Sequence& s, const Row& row) {
    return std::all_of(row.words, row.words + s.vocabulary().words(),
                       [](uint32_t word) { return word == 0; });
  }
  // Removes the tokens that the parser does not read with this captured text. If judging a token takes too
  // much work, a row that may be partial loses the token; for any other row an error is thrown.
  static void keep_read(const Sequence& s, Row& row) {
    const Vocabulary& v = s.vocabulary();
    const auto reads = [&](TokenId t) {
      StateId at = s.current();
      for (char b : v.bytes(t)) at = s.epoch()->parser.step(at, static_cast<uint8_t>(b));
      return at != Parser::dead();
    };
    const Words& ends = s.grammar().world().ends_of_items();
    if (s.grammar().partial())
      keep_tokens(row.words, ends, reads);
    else
      for_each_token(ends, [&](TokenId t) {
        if (has_bit(row.words, t) && !reads(t)) clear_bit(row.words, t);
      });
  }

  void mask(Sequence& s, Row& row, Allowance limit) const {
    if (!known(s, row)) make(s, row, limit, true);
  }
  void mask(Sequence& s, Row& row) const { mask(s, row, s.grammar().mask_work()); }
};

// Makes the rows of a JSON grammar in a world that omits nothing. Items and keys may be compared beside the
// states (engine/distinct.h).
class DistinctRow final : public PlainRow {
 public:
  bool known(const Sequence& s, Row& row) const override {
    if (!s.lenient()) return PlainRow::known(s, row);
    const Mask* m = s.epoch()->masks.peek(s.top());
    if (!m) return false;
    write_row(*m, s.vocabulary(), row.words);
    return s.keep_distinct(row.words, false) == Lenient::Fate::kLives;
  }

  void fill(Sequence& s, Row& row) const override {
    if (!known(s, row) && !beside(s, row, false)) PlainRow::fill(s, row);
  }

  // A large budget refuses no token, so the row stays as it is. Under a small budget, the text is read again
  // with exact states, which then judge the tokens. If the text has too many items for that, only the tokens
  // stay with which one known ending begins.
  bool within(Sequence& s, Row& row, std::size_t budget) const override {
    if (!s.lenient() && !s.crowds(!loose_within(s, budget))) return PlainRow::within(s, row, budget);
    if (!(loose_within(s, budget) && known(s, row)) && !beside(s, row, true))
      return PlainRow::within(s, row, budget);
    if (loose_within(s, budget)) return true;
    if (s.crowded() && told([&] { return ends(s, row, budget); }).value_or(false)) return true;
    s.settle();
    return PlainRow::within(s, row, budget);
  }

  StateId read(Sequence& s, TokenId t) const override {
    return s.lenient() ? s.read(s.vocabulary().bytes(t)) : PlainRow::read(s, t);
  }

 private:
  // Makes the row of a lenient text. If only exact states can make the row, the text stops being lenient, and
  // the result is false.
  static bool beside(Sequence& s, Row& row, bool measured) {
    if (!s.lenient() && !s.crowds()) return false;
    {
      const LockedWork work(s, Task::kMask, s.grammar().mask_work());
      s.refresh();
      MaskBuilder& masks = s.epoch()->masks;
      if (measured) masks.measure_with(&s.epoch()->lengths);
      write_row(*masks.mask(s.top()), s.vocabulary(), row.words);
      if (measured && s.epoch()->parser.state(s.top()).loose.load(std::memory_order_relaxed) == 0)
        masks.measure(s.top());
      if (s.keep_distinct(row.words, true) == Lenient::Fate::kLives) return true;
    }
    s.leave();
    return false;
  }

  // Leaves only the tokens with which one known ending of the text begins. Returns false if no ending is
  // known, or if this ending takes too many tokens.
  static bool ends(Sequence& s, Row& row, std::size_t budget) {
    const LockedWork work(s, Task::kBudget, s.grammar().ending_work());
    const std::optional<std::string> ending = s.ending();
    Cutter& cutter = s.epoch()->budgets.cutter;
    if (!ending || cutter.cut(*ending).tokens >= budget) return false;
    std::fill(row.words, row.words + s.vocabulary().words(), 0u);
    std::vector<TokenId> tokens = ending->empty() ? s.vocabulary().eos() : std::vector<TokenId>();
    if (!ending->empty()) cutter.begins(*ending, budget - 2, tokens);
    for (const TokenId t : tokens) set_bit(row.words, t);
    row.exact = false;
    return true;
  }
};

// Makes the rows of texts whose number of bytes lies in a range. Every byte is a token, and the world omits
// nothing (budget/range.cc).
class RangedRow final : public PlainRow {
 public:
  bool known(const Sequence& s, Row& row) const override {
    return sure_bytes(s) == kAll && PlainRow::known(s, row) && keep_ends(s, row);
  }

  void fill(Sequence& s, Row& row) const override {
    if (known(s, row)) return;
    mask(s, row);
    const std::size_t sure = sure_bytes(s);
    if (sure == kAll && keep_ends(s, row)) return;
    keep_in_range(s, row, sure, Budget::kEndless);
    if (empty(s, row))
      throw Error(ErrorKind::kBudgetExceeded, "no text within the range of bytes was found from here");
  }

  bool within(Sequence& s, Row& row, std::size_t budget) const override {
    if (s.written().any()) return PlainRow::within(s, row, budget);
    if (budget == 0) return false;
    mask(s, row);
    std::size_t sure = sure_bytes(s);
    if (loose_within(s, budget)) {
      if (sure == kAll) return true;
    } else {
      sure = 0;
    }
    const std::vector<uint32_t> plain = copy_of(s, row);
    keep_in_range(s, row, sure, budget);
    if (!empty(s, row)) return true;
    std::copy(plain.begin(), plain.end(), row.words);
    if (!narrow(s, row, budget, s.grammar().ending_work(), false)) return false;
    throw Error(ErrorKind::kBudgetExceeded, "no text within " + std::to_string(budget) +
                                                " tokens and the range of bytes was found from here");
  }

  StateId read(Sequence& s, TokenId t) const override {
    const StateId to = PlainRow::read(s, t);
    if (to == Parser::dead() || s.vocabulary().bytes(t).size() <= sure_bytes(s)) return to;
    const LockedWork work(s, Task::kAccept, s.grammar().ending_work());
    return budget_of(s).allowed_in_range(t, to) ? to : Parser::dead();
  }

  bool completable(Sequence& s, StateId to, std::size_t bytes) const override {
    const LockedWork work(s, Task::kAccept, s.grammar().ending_work());
    return budget_of(s).completable(to, bytes);
  }
  bool mortal() const override { return true; }

 protected:
  void measure(const Sequence& s, Epoch& epoch) const override {
    PlainRow::measure(s, epoch);
    if (s.grammar().bytes().least > 0) epoch.masks.measure_growth_with(&epoch.growth);
  }
  bool bounded(const Sequence& s) const override {
    const State& at = s.epoch()->parser.state(s.current());
    return at.loose.load(std::memory_order_relaxed) != 0 &&
           (s.grammar().bytes().least == 0 || at.grows.load(std::memory_order_relaxed) != 0);
  }

 private:
  static constexpr std::size_t kAll = ByteRange::kAny;
  // If the text is too short to end, removes the end tokens. Returns false if this leaves no token.
  static bool keep_ends(const Sequence& s, Row& row) {
    if (s.bytes() >= s.grammar().bytes().least || !s.epoch()->parser.state(s.current()).accepting)
      return true;
    for (const TokenId t : s.vocabulary().eos()) clear_bit(row.words, t);
    return !empty(s, row);
  }
  // Returns n such that each token of at most n bytes can be followed by a rest that makes a text of the
  // range; kAll if each token of the mask can. Takes no lock.
  static std::size_t sure_bytes(const Sequence& s) {
    const ByteCount now = s.written();
    const bool any = now.whole.most == ByteRange::kAny, grow = now.bytes < now.whole.least;
    if (any && !grow) return kAll;
    if (!s.epoch()->fast || s.grammar().partial()) return 0;
    // `grows` stores its bound plus 1, `loose` its bound plus 2, so that 0 means "not known".
    const State& at = s.epoch()->parser.state(s.current());
    const uint32_t bound = (grow ? at.grows : at.loose).load(std::memory_order_acquire);
    if (bound == 0 || bound > Lengths::kFar) return 0;
    const std::size_t need = grow ? std::max<std::size_t>(bound - 1, now.whole.least - now.bytes) : bound - 2;
    if (grow && need > at.grows_to.load(std::memory_order_relaxed)) return 0;
    if (any) return kAll;
    const std::size_t room = now.whole.most - now.bytes;
    if (room <= need) return 0;
    return room - need >= s.vocabulary().longest() ? kAll : room - need;
  }
  // Removes the tokens behind which no text of the range is left, and the tokens for which the work of a mask
  // did not suffice. If no token remains, more work is spent on finding the first token of the promised way.
  static void keep_in_range(Sequence& s, Row& row, std::size_t sure, std::size_t tokens) {
    const LockedWork work(s, Task::kBudget, s.grammar().ending_work());
    s.refresh();
    by_budget(s, row, [&](Budget& now) {
      now.keep_range(row.words, sure, tokens);
      return true;
    });
  }
};

// Makes the rows in a world that omits. A mask that takes too much work becomes a row with some of its
// tokens.
class PartRow : public PlainRow {
 public:
  bool known(const Sequence& s, Row& row) const override {
    return PlainRow::known(s, row) && !starved(s, row);
  }

  void fill(Sequence& s, Row& row) const override {
    const Shares work(s);
    if (!known(s, row) && !told([&] { make(s, row, work.next(), false); })) some(s, row, work);
  }

  bool within(Sequence& s, Row& row, std::size_t budget) const override {
    const Shares work(s);
    const bool whole = static_cast<bool>(told([&] { mask(s, row, work.next()); }));
    if (!whole) {
      if (keep_promise(s, row, budget)) return true;
      some(s, row, work);
    }
    if (loose_within(s, budget)) return true;
    const std::vector<uint32_t> plain = copy_of(s, row);
    if (Told<bool> found = told([&] { return narrow(s, row, budget, work.next(), whole); })) return *found;
    if (keep_promise(s, row, budget) || keep_bounded(s, plain, row, budget, work.next())) return true;
    const auto by_one_way = [&](StateId way) {
      const auto part = [&] {
        fill_some(s, way, row, work.next());
        const std::vector<uint32_t> of_way = copy_of(s, row);
        return narrow(s, row, budget, work.next(), false) && intersect(row, of_way);
      };
      return told(part).value_or(false);
    };
    if (s.take_way(locked_ways(s), by_one_way)) {
      row.exact = false;
      return true;
    }
    std::copy(plain.begin(), plain.end(), row.words);
    // find_way_out() finds one completion. Once this completion is known, narrow() may succeed with another
    // share of work.
    if (told([&] { find_way_out(s); })) {
      if (Told<bool> found = told([&] { return narrow(s, row, budget, work.next(), whole); })) return *found;
      if (keep_promise(s, row, budget)) return true;
    }
    // Where many readings are possible, even reading the known completion may take too much work. The state
    // is then replaced by a state that reads this completion alone.
    const auto by_one_text = [&](StateId) {
      const auto part = [&] {
        mask(s, row);
        return narrow(s, row, budget, s.grammar().mask_work(), true);
      };
      return told(part).value_or(false);
    };
    if (s.take_way(one_text(s), by_one_text)) {
      row.exact = false;
      return true;
    }
    std::copy(plain.begin(), plain.end(), row.words);
    return narrow(s, row, budget, s.grammar().completion_work(), whole);
  }

  StateId read(Sequence& s, TokenId t) const override {
    const StateId to = read_on(s, t);
    if (to != Parser::dead() || !s.grammar().partial()) return to;
    if (vouches(s, t)) return read_with<Trust>(s, t);
    // The token may come from a mask that another matcher made with more work, for example before a
    // preemption. So undecided questions are asked again.
    return told([&] { return read_with<LookAgain>(s, t); }).value_or(Parser::dead());
  }

 protected:
  void judge(const Sequence& s, Row& row) const override {
    if (by_text(s)) keep_read(s, row);
    if (starved(s, row))
      throw Error(ErrorKind::kBudgetExceeded,
                  "this mask takes more work than its limit; raise Limits(mask=...)");
  }

  // Removes the tokens that are not in `words`. Returns false if no token is left. The row may hold the first
  // token of a way that was promised earlier, and the mask may lack this token.
  static bool intersect(Row& row, std::span<const uint32_t> words) {
    uint32_t any = 0;
    for (std::size_t w = 0; w < words.size(); ++w) any |= row.words[w] &= words[w];
    return any != 0;
  }

  // Finds some tokens of a mask that took too much work. some() tries the items of the state one by one
  // (Sequence::ways), each with a share of the work that is left, then all items with ever more work.
  virtual void some(Sequence& s, Row& row, const Shares& work) const {
    constexpr int64_t kFirstEnding = 40'000;
    row.exact = false;
    const auto part = [&](StateId at) {
      return static_cast<bool>(told([&] { fill_some(s, at, row, work.next()); }));
    };
    if (part(s.current())) return;
    if (std::ranges::any_of(locked_ways(s), part)) {
      s.grammar().note_partial();
      return;
    }
    // Each attempt has four times the work of the last one, whose findings are kept.
    const Allowance most = s.grammar().ending_work();
    for (int64_t units = kFirstEnding; units < most.units; units *= 4)
      if (told([&] { fill_some(s, s.current(), row, units); })) return;
    fill_some(s, s.current(), row, most);
  }

  // Reads a token. If a step of all items of the state takes too much work, one item alone is stepped. If
  // this step fails, too, all items are stepped with more work, because a begun text must go on.
  virtual StateId read_on(Sequence& s, TokenId t) const {
    const std::string_view bytes = s.vocabulary().bytes(t);
    if (Told<StateId> to = told([&] { return s.behind(s.current(), bytes); })) return *to;
    StateId to = Parser::dead();
    const StateId all = s.current();
    const auto by_one_way = [&](StateId one) {
      to = told([&] { return s.behind(one, bytes); }).value_or(Parser::dead());
      return to != Parser::dead();
    };
    if (s.take_way(locked_ways(s), by_one_way)) {
      s.take_all_ways(all);
      return to;
    }
    return read_slowly(s, bytes);
  }

  static StateId read_slowly(Sequence& s, std::string_view bytes) {
    const LockedWork work(s, Task::kAccept, s.grammar().ending_work());
    return s.steps(s.current(), bytes);
  }

 private:
  // Looks for a shortest completion, with as much work as one more mask.
  static void find_way_out(Sequence& s) {
    const LockedWork ending(s, Task::kBudget, s.grammar().mask_work());
    s.refresh();
    budget_of(s).needed(s.current());
  }

  // Returns one state, which reads a shortest completion and nothing else. Returns no state if captured text
  // may forbid this completion.
  static std::vector<StateId> one_text(Sequence& s) {
    const LockedWork ending(s, Task::kCompletion, s.grammar().completion_work());
    s.refresh();
    Epoch& epoch = *s.epoch();
    const Symbol text = Symbol::terminal(epoch.parser.regexes().literal(epoch.completion.of(s.current())));
    if (unproven(s) && epoch.completion.text_matters(s.current())) return {};
    return {epoch.parser.before({&text, 1})};
  }

  static std::vector<StateId> locked_ways(Sequence& s) {
    const LockedWork work(s, Task::kAccept, s.grammar().ending_work());
    return s.ways();
  }

  static void fill_some(const Sequence& s, StateId at, Row& row, Allowance limit) {
    const LockedWork work(s, Task::kMask, limit);
    s.epoch()->masks.some(at, row.words);
  }

  // Returns true if the row is empty only because something was omitted. Then some() must find a token.
  static bool starved(const Sequence& s, const Row& row) { return s.grammar().partial() && empty(s, row); }

  // Returns true if the mask has the token t. The parser may have refused a token of the mask: parts of a
  // regex were known to have a text, which was enough for the mask, but for the whole regex behind the token
  // this is undecided.
  static bool vouches(const Sequence& s, TokenId t) {
    if (by_text(s)) return false;
    const Mask* m = s.epoch()->masks.peek(s.current());
    return m && allows(*m, s.vocabulary(), t);
  }

  // Reads a token that step() refuses. The right alternative may have been omitted, so the steps are made
  // again under this Effort (base/effort.h).
  template <class Effort>
  static StateId read_with(const Sequence& s, TokenId t) {
    const LockedWork work(s, Task::kAccept, s.grammar().ending_work());
    StateId at = s.current();
    for (char b : s.vocabulary().bytes(t))
      at = s.epoch()->parser.step_with<Effort>(at, static_cast<uint8_t>(b));
    return at;
  }
};

// Makes the rows over a vocabulary that lacks some bytes.
class SpelledRow final : public PartRow {
 public:
  bool known(const Sequence&, Row&) const override { return false; }

  void fill(Sequence& s, Row& row) const override {
    const auto spelled = [&](Allowance limit) {
      const LockedWork work(s, Task::kMask, limit);
      s.refresh();
      row.exact = s.epoch()->budgets.spelling->fill(s.current(), row.words) && row.exact;
    };
    Told<bool> filled = told([&] { spelled(s.grammar().mask_work()); });
    if (filled) return;
    if (!s.grammar().omits()) std::move(filled).value();
    // The first call ran out of work, but what it found out stays, and the second call goes on from there.
    spelled(s.grammar().ending_work());
  }

  bool within(Sequence& s, Row& row, std::size_t budget) const override {
    return s.grammar().omits() ? PartRow::within(s, row, budget) : PlainRow::within(s, row, budget);
  }

  StateId read(Sequence& s, TokenId t) const override {
    const StateId to = s.grammar().omits() ? read_on(s, t) : PlainRow::read(s, t);
    if (to == Parser::dead()) return to;
    Told<Reach::Answer> found = told([&] {
      const LockedWork work(s, Task::kAccept, s.grammar().allowed_work());
      return s.epoch()->budgets.spelling->judge(to);
    });
    if (found && *found != Reach::Answer::kUnknown)
      return *found == Reach::Answer::kYes ? to : Parser::dead();
    // A row within a budget judged this token by the searches below. These searches may find a completion
    // where judge() finds none.
    const auto ends = [&] {
      const LockedWork work(s, Task::kAccept, s.grammar().ending_work());
      Budget now = budget_of(s);
      std::vector<TokenId> way;
      return now.needed(to) < Budget::kFar || now.promised(t, to) ||
             now.any_way(to, way) == Reach::Answer::kYes;
    };
    if (told(ends).value_or(false)) return to;
    return std::move(found).value() == Reach::Answer::kYes ? to : Parser::dead();
  }

 protected:
  void judge(const Sequence&, Row&) const override {}
  void some(Sequence& s, Row& row, const Shares&) const override {
    make(s, row, s.grammar().ending_work(), true);
  }
  StateId read_on(Sequence& s, TokenId t) const override {
    const std::string_view bytes = s.vocabulary().bytes(t);
    const auto slowly = [&] { return read_slowly(s, bytes); };
    Told<StateId> to = told([&] { return s.behind(s.current(), bytes); });
    return to ? *to : slowly();
  }
};

// Makes the rows of a grammar that limits tokens.
class LimitedRow final : public RowSource {
 public:
  bool known(const Sequence& s, Row& row) const override {
    const StateId plain = known_unlimited(s);
    const Mask* m = plain == Parser::dead() ? nullptr : s.epoch()->masks.peek(plain);
    if (m) write_row(*m, s.vocabulary(), row.words);
    return m != nullptr;
  }

  void fill(Sequence& s, Row& row) const override {
    if (known(s, row)) return;
    if (counts_nothing(s)) return part().fill(s, row);
    const auto limited = [&](Allowance limit) {
      const LockedWork work(s, Task::kMask, limit);
      s.refresh();
      if (const StateId plain = unlimited(s); plain != Parser::dead())
        write_row(*s.epoch()->masks.mask(plain), s.vocabulary(), row.words);
      else
        row.exact = s.epoch()->budgets.limits->fill(s.current(), row.words) && row.exact;
    };
    Told<bool> filled = told([&] { limited(s.grammar().mask_work()); });
    if (filled) return;
    if (!s.grammar().omits()) std::move(filled).value();
    // The second try has more work, and uses what the first try found out.
    limited(s.grammar().ending_work());
  }

  bool within(Sequence& s, Row& row, std::size_t budget) const override {
    const LockedWork work(s, Task::kBudget, s.grammar().ending_work());
    s.refresh();
    const StateId plain = unlimited(s);
    if (plain != Parser::dead() && s.epoch()->budgets.limits->loose(plain) <= budget) {
      write_row(*s.epoch()->masks.mask(plain), s.vocabulary(), row.words);
      return true;
    }
    return by_budget(s, row, [&](Budget& now) { return now.fill_limited(row.words, budget); });
  }

  bool completable(Sequence& s, StateId to, std::size_t) const override {
    const LockedWork work(s, Task::kAccept, s.grammar().mask_work());
    return s.epoch()->budgets.limits->way(to).tokens != Limits::kNever;
  }
  bool mortal() const override { return true; }

  StateId read(Sequence& s, TokenId t) const override {
    if (known_unlimited(s) != Parser::dead())
      return s.behind(StateId{s.epoch()->parser.state(s.current()).begun.load(std::memory_order_relaxed)},
                      s.vocabulary().bytes(t));
    if (counts_nothing(s)) return part().read(s, t);
    const LockedWork work(s, Task::kAccept, s.grammar().allowed_work());
    s.refresh();
    if (unlimited(s) != Parser::dead())
      return s.steps(s.epoch()->parser.begin_token(s.current()), s.vocabulary().bytes(t));
    return s.epoch()->budgets.limits->accept(s.current(), t);
  }

 private:
  static const PartRow& part() {
    static const PartRow source;
    return source;
  }

  // Returns true if PartRow can make the row: the world omits, and no limit counts tokens in the rest of the
  // text.
  static bool counts_nothing(Sequence& s) {
    if (!s.grammar().omits()) return false;
    const LockedWork work(s, Task::kAccept, s.grammar().allowed_work());
    s.refresh();
    return !s.epoch()->parser.may_limit(s.current());
  }

  // Returns the state whose mask is the row, if no limit can refuse a token now: inside thoughts while many
  // tokens are left, or in the answer behind them. Returns dead() otherwise.
  static StateId unlimited(const Sequence& s) {
    return asks_limits(s) ? s.epoch()->budgets.limits->unlimited(s.current()) : Parser::dead();
  }
};
}  // namespace

const RowSource& row_source(const Grammar& grammar) {
  static const PlainRow plain;
  static const DistinctRow distinct;
  static const PartRow part;
  static const SpelledRow spelled;
  static const LimitedRow limited;
  static const RangedRow ranged;
  if (grammar.of_any_length()) return ranged;
  if (grammar.limited()) return limited;
  if (!grammar.vocabulary().complete()) return spelled;
  if (grammar.omits()) return part;
  if (grammar.lenient_rule() != grammar.start_rule()) return distinct;
  return plain;
}

}  // namespace structgen
