// The states after every token of one text, in the epoch that its grammar is in.
//
// In: bytes. Out: states. Cost: a known step is a load (about 0.1 us for a token); a new step is made
// under the world's lock. A sequence belongs to one thread at a time. A call that throws leaves it as
// it was.
//
// In a lenient text (engine/lenient.h) the states belong to the lenient language, and the exact states of the
// grammar are made when they are asked for (settle()). A text is lenient from its start if some array asks
// for items that differ. Otherwise a text becomes lenient when its objects have so many keys that states for
// them cost too much (crowds()).
//
// Rollback truncates the list of states, and a fork copies this list. A grammar whose epoch has outgrown its
// share opens another epoch (engine/grammar.h); a sequence moves its states to the new epoch when it next
// holds the lock (refresh()).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/grammar.h"
#include "engine/lenient.h"

namespace structgen {

class Sequence {
 public:
  explicit Sequence(std::shared_ptr<Grammar> of);

  Grammar& grammar() const { return *grammar_; }
  const std::shared_ptr<Epoch>& epoch() const { return epoch_; }
  const Vocabulary& vocabulary() const { return grammar_->vocabulary(); }
  StateId current() const { return states_.back(); }
  // lenient() is true while items are compared beside the states (engine/lenient.h). top() is then the
  // lenient state at the end of the text; current() and states(), states of the exact grammar, may lag behind
  // the text.
  bool lenient() const { return lenient_.on(); }
  StateId top() const { return lenient() ? lenient_.places.back().state : current(); }
  // Makes the text lenient if its objects have so many keys that states for them cost more than reading the
  // whole text again. Returns true if the text is lenient now. crowds() looks once in kCrowd steps, or at
  // once if `now` is set. Takes the lock.
  bool crowds(bool now = false);
  // Returns true if a lenient text has so many items that reading it again with exact states would take too
  // long.
  bool crowded() const { return lenient_.crowded(); }
  // settle() makes the exact states up to the end of a lenient text. leave() makes them, too, and from then
  // on the text is no longer lenient. Both take the lock.
  void settle();
  void leave();
  // Returns the lenient state behind the bytes; dead() if they are refused. Takes the lock if a step is not
  // known.
  StateId read(std::string_view bytes);
  // Removes the tokens that Lenient::keep() refuses from the row of top(). The row is complete only if the
  // result is kLives.
  Lenient::Fate keep_distinct(uint32_t* row, bool locked) const {
    return lenient_.keep(*grammar_, *epoch_, row, locked);
  }
  // spare() is Lenient::spare(), or 0 for a text that is not lenient. ending() is Lenient::ending().
  std::size_t spare(std::size_t bound) const { return lenient() ? lenient_.spare(bound) : 0; }
  std::optional<std::string> ending() {
    return lenient() ? lenient_.ending(*grammar_, *epoch_) : std::nullopt;
  }
  std::size_t size() const { return tokens_.size(); }
  // The state at the start, and the states behind each step.
  std::span<const StateId> states() const { return states_; }
  // The token of each step; -1 for bytes.
  std::span<const TokenId> tokens() const { return tokens_; }

  std::size_t bytes() const { return bytes_.empty() ? 0 : bytes_.back(); }
  ByteCount written() const { return {grammar_->bytes(), bytes()}; }

  // Adds a step to the text: the token t of `bytes` bytes (-1 for bytes without a token), which leads to the
  // state s. Memory is reserved first, so that a call that throws changes nothing.
  void push(StateId s, TokenId t, std::size_t bytes);
  // Takes back the last n steps, of which the last `ends` are end tokens or padding.
  void pop(std::size_t n, std::size_t ends);
  // Repeats the step that was taken back last, to the same state as before. In a world that omits, a new step
  // might lead to another state, depending on the work that is left. Returns false if that step had another
  // token.
  bool redo(TokenId t);
  void forget_undone() { undone_.clear(); }

  // Returns the state behind the bytes; dead() if they are refused. Takes the lock for each new step.
  StateId behind(StateId s, std::string_view bytes);
  bool moves(StateId& s, std::string_view bytes) const;
  // Returns the state behind the bytes. The caller holds the lock and has a scope of work.
  StateId steps(StateId s, std::string_view bytes);

  // Moves into the grammar's current epoch. Throws the errors of look_at_size(). The caller holds the lock.
  void refresh();

  // Returns several states, each of which has one item of the current state. In an ambiguous grammar a step
  // of all items together may take too much work. Once a budget was asked for, the items with the smallest
  // bounds come first, because the text must end in time. The caller holds the lock.
  std::vector<StateId> ways();
  // Replaces the last state by the first state of `ways` for which f is true. The replacement loses texts, so
  // the grammar is partial from then on.
  bool take_way(const std::vector<StateId>& ways, const std::function<bool(StateId)>& f);
  // Undoes take_way(): `all`, the state with all items, is the last state again. Behind a rollback another
  // token of the mask may need another item.
  void take_all_ways(StateId all) { states_.back() = all; }
  void note_budget() { budgeted_ = true; }

 private:
  void migrate();
  // Tells what becomes of a lenient text if these bytes follow, and sets `at` to the state behind them. Takes
  // the lock if a step is not known.
  Lenient::Fate fate(std::string_view bytes, StateId& at);

  std::shared_ptr<Grammar> grammar_;
  std::shared_ptr<Epoch> epoch_;
  std::vector<StateId> states_;
  std::vector<TokenId> tokens_;
  // Mutable, because a question about the next bytes reads them into this object and then takes them back.
  mutable Lenient lenient_;
  std::vector<std::size_t> bytes_;
  struct Undone {
    TokenId token;
    StateId before, after;
  };
  // The steps that were taken back; the last one is the first that redo() repeats.
  std::vector<Undone> undone_;
  // True while a caller holds numbers of states. The states must then not move to another epoch.
  bool stays_ = false;
  // True if a budget was asked for; ways() then sorts the items by their bounds.
  bool budgeted_ = false;
  // crowds() looks again when the text has this many steps.
  std::size_t look_at_ = kCrowd;
  static constexpr std::size_t kCrowd = 1024, kNever = ~std::size_t{0};
};

// Holds the world's lock, and limits the work that is done under it.
class LockedWork {
 public:
  LockedWork(const Sequence& of, Task task, Allowance limit)
      : hold_(of.grammar().world().lock), work_(of.grammar(), &of.epoch(), task, limit) {}
  // Marks the grammar as partial now if something was omitted; otherwise the destructor does so.
  void note() const { work_.note(); }

 private:
  std::lock_guard<Mutex> hold_;
  const GrammarWork work_;
};

}  // namespace structgen
