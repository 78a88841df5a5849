// The states after every token of one text, in the epoch that its grammar is in.
//
// In: bytes. Out: states. Cost: a known step is a load (about 0.1 us for a token); a new step is made
// under the world's lock. A sequence belongs to one thread at a time. A call that throws leaves it as
// it was.
//
// In a lenient text (engine/lenient.h) the states are those of another language, and the states of the
// grammar are made when they are asked for (settle()).
//
// Rollback truncates and a fork copies. A grammar whose epoch has outgrown its share opens another
// epoch (engine/grammar.h); a sequence moves its states there when it next holds the lock (refresh()).
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
  // True while items are compared beside the states (engine/lenient.h). Then current() and states() may lag
  // behind the text, and top() has the state.
  bool lenient() const { return lenient_.on(); }
  StateId top() const { return lenient() ? lenient_.places.back().state : current(); }
  // Makes states() what it is for the whole text; takes the lock. leave(): from here on the states alone
  // read.
  void settle();
  void leave();
  // The lenient state behind the bytes; dead where they are not read. Takes the lock where a step is new.
  StateId read(std::string_view bytes);
  // Takes out of the row of top() what Lenient::keep() says. Any other fate than kLives: nothing is known.
  Lenient::Fate keep_distinct(uint32_t* row, bool locked) const {
    return lenient_.keep(*grammar_, *epoch_, row, locked);
  }
  std::size_t size() const { return tokens_.size(); }
  // [0] is the start; then one state for each step.
  std::span<const StateId> states() const { return states_; }
  // The token of each step; -1: bytes.
  std::span<const TokenId> tokens() const { return tokens_; }

  // The bytes of the text; 0 where the grammar allows any number of them.
  std::size_t bytes() const { return bytes_.empty() ? 0 : bytes_.back(); }
  // The same with the range that the whole text must keep.
  ByteCount written() const { return {grammar_->bytes(), bytes()}; }

  // Takes a step of so many bytes. Room for it is made first, so that push() changes everything or
  // nothing.
  void push(StateId s, TokenId t, std::size_t bytes);
  // Takes the last n steps back; the last `ends` of them read no text.
  void pop(std::size_t n, std::size_t ends);
  // Takes a step again that was taken back; it leads where it led. Where languages are partial, a new
  // step could lead elsewhere, because the states that may follow depend on the work that was left.
  // False: the step taken back last had another token.
  bool redo(TokenId t);
  void forget_undone() { undone_.clear(); }

  // The state behind the bytes; each step that is not known takes the lock by itself. Dead: the bytes
  // are not read.
  StateId walk(StateId s, std::string_view bytes);
  // Walks by known steps alone, without the lock. False: one step is not known.
  bool walks(StateId& s, std::string_view bytes) const;
  // Walks with the lock held; the caller's scope is charged.
  StateId steps(StateId s, std::string_view bytes);

  // Needs the lock. Moves into the grammar's current epoch. Throws the errors of look_at_size().
  void refresh();

  // Several ways to read on from here, one state each; needs the lock. An ambiguous grammar can have so
  // many ways that no step of them all is within a limit. Under a budget the ways that end soonest by
  // their bounds come first, because the way that is taken must end in time, too.
  std::vector<StateId> ways();
  // Takes the first way for which f(state) is true, and no other from here on. The grammar is partial
  // then.
  bool take_way(const std::vector<StateId>& ways, const std::function<bool(StateId)>& f);
  // Makes the sequence stand on all ways again, as before take_way(): after a rollback, other tokens of
  // the mask may go other ways.
  void take_all_ways(StateId all) { states_.back() = all; }
  void note_budget() { budgeted_ = true; }

 private:
  void migrate();
  StateId step(StateId s, uint8_t byte);

  std::shared_ptr<Grammar> grammar_;
  std::shared_ptr<Epoch> epoch_;
  std::vector<StateId> states_;
  std::vector<TokenId> tokens_;
  // Questions about what may follow read on, and take it back.
  mutable Lenient lenient_;
  // The bytes of the text after each step; kept only where the grammar has a range of them.
  std::vector<std::size_t> bytes_;
  struct Undone {
    TokenId token;
    StateId before, after;
  };
  // The steps that were taken back. redo() takes the last one first.
  std::vector<Undone> undone_;
  // States are held by number, so they must not be moved to another epoch meanwhile.
  bool stays_ = false;
  // True if a budget was asked for; see ways().
  bool budgeted_ = false;
};

// The world's lock, and the scope of the work that is done under it.
class LockedWork {
 public:
  LockedWork(const Sequence& of, Task task, Allowance limit)
      : hold_(of.grammar().world().lock), work_(of.grammar(), &of.epoch(), task, limit) {}
  // Tells the grammar now whether something was omitted. Without this call the destructor tells it.
  void note() const { work_.note(); }

 private:
  std::lock_guard<Mutex> hold_;
  const GrammarWork work_;
};

}  // namespace structgen
