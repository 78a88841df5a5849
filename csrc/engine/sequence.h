// The states after every token of one text, in the epoch that its grammar is in.
//
// In: bytes. Out: states. Cost: a known step is a load (about 0.1 us for a token); a new step is made
// under the world's lock. A sequence belongs to one thread at a time. A call that throws leaves it as
// it was.
//
// In a lenient text (engine/lenient.h) the states are those of another language, and the states of the
// grammar are made when they are asked for (settle()). A text is lenient from the start where items must
// differ, and from the time on at which its objects crowd the states with keys (crowds()).
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
  // Makes the text lenient if its objects have so many keys that the states of each key cost more than a
  // reading of the whole text. True: it is lenient now. Takes the lock. It looks once in kCrowd steps, or
  // `now`.
  bool crowds(bool now = false);
  // Whether so many items stand beside the states of a lenient text that these are not read again. A fact of
  // the text.
  bool crowded() const { return lenient_.crowded(); }
  // settle() brings states() up to the end of the text; it takes the lock. leave() does the same, and from
  // then on the text is read by the states alone.
  void settle();
  void leave();
  // The lenient state behind the bytes; dead where they are not read. Takes the lock where a step is new.
  StateId read(std::string_view bytes);
  // Takes the tokens out of the row of top() that Lenient::keep() refuses. With any other fate than kLives
  // the row is not finished.
  Lenient::Fate keep_distinct(uint32_t* row, bool locked) const {
    return lenient_.keep(*grammar_, *epoch_, row, locked);
  }
  // See Lenient; 0 and no value where the text is not lenient.
  std::size_t spare(std::size_t bound) const { return lenient() ? lenient_.spare(bound) : 0; }
  std::optional<std::string> ending() {
    return lenient() ? lenient_.ending(*grammar_, *epoch_) : std::nullopt;
  }
  std::size_t size() const { return tokens_.size(); }
  // The state at the start, then the state behind each step.
  std::span<const StateId> states() const { return states_; }
  // The token of each step; -1: bytes.
  std::span<const TokenId> tokens() const { return tokens_; }

  // The bytes of the text; 0 where the grammar allows any number of them.
  std::size_t bytes() const { return bytes_.empty() ? 0 : bytes_.back(); }
  // The bytes of the text, with the range in which the whole text must end.
  ByteCount written() const { return {grammar_->bytes(), bytes()}; }

  // Takes a step of so many bytes. Memory is allocated first, so that push() changes everything or
  // nothing.
  void push(StateId s, TokenId t, std::size_t bytes);
  // Takes the last n steps back. The last `ends` of these steps read no text.
  void pop(std::size_t n, std::size_t ends);
  // Takes the step again that was taken back last, to the state to which it led before. In a partial
  // language a new step could lead elsewhere, because its state depends on the work that is left. False:
  // that step had another token.
  bool redo(TokenId t);
  void forget_undone() { undone_.clear(); }

  // The state behind the bytes; dead if the bytes are not read. Each new step takes the lock by itself.
  StateId walk(StateId s, std::string_view bytes);
  // Walks by known steps alone, without the lock. False: a step is new.
  bool walks(StateId& s, std::string_view bytes) const;
  // Walks with the lock held; the caller's scope is charged.
  StateId steps(StateId s, std::string_view bytes);

  // Needs the lock. Moves into the grammar's current epoch. Throws the errors of look_at_size().
  void refresh();

  // Several ways to read on from here, one state each; needs the lock. An ambiguous grammar can have so
  // many ways that a step of all ways together exceeds the limit of work. Under a budget the ways with the
  // smallest bounds of their ends come first, because the chosen way must end in time.
  std::vector<StateId> ways();
  // Takes the first way for which f(state) is true, and drops the other ways. From then on the grammar is
  // partial.
  bool take_way(const std::vector<StateId>& ways, const std::function<bool(StateId)>& f);
  // Undoes take_way(): the sequence stands on all ways again. After a rollback other tokens of the mask may
  // take other ways.
  void take_all_ways(StateId all) { states_.back() = all; }
  void note_budget() { budgeted_ = true; }

 private:
  void migrate();
  // What becomes of a lenient text that goes on with these bytes: it lives in the state `at`, it dies, or
  // only the states of the grammar can tell. Takes the lock where a step is new.
  Lenient::Fate fate(std::string_view bytes, StateId& at);

  std::shared_ptr<Grammar> grammar_;
  std::shared_ptr<Epoch> epoch_;
  std::vector<StateId> states_;
  std::vector<TokenId> tokens_;
  // `mutable`: a question about what may follow reads bytes and takes them back.
  mutable Lenient lenient_;
  // The bytes of the text after each step; kept only where the grammar has a range of them.
  std::vector<std::size_t> bytes_;
  struct Undone {
    TokenId token;
    StateId before, after;
  };
  // The steps that were taken back. redo() takes the last one first.
  std::vector<Undone> undone_;
  // True while a caller holds numbers of states. The states then stay in their epoch.
  bool stays_ = false;
  // True if a budget was asked for; see ways().
  bool budgeted_ = false;
  // The size at which crowds() looks next.
  std::size_t look_at_ = kCrowd;
  static constexpr std::size_t kCrowd = 1024, kNever = ~std::size_t{0};
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
