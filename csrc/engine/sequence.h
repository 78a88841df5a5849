// The states after every token of one text, in the epoch that its grammar is in.
//
// In: bytes. Out: states. Cost: a known step is a load (about 0.1 us for a token), a new one is made under
// the world's lock. A sequence belongs to one thread at a time. What throws leaves it as it was.
//
// Rollback truncates and a fork copies. A grammar whose epoch has outgrown its share opens another one
// (engine/grammar.h); a sequence takes its states along when it next holds the lock (refresh()).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/grammar.h"

namespace structgen {

class Sequence {
 public:
  explicit Sequence(std::shared_ptr<Grammar> of);

  Grammar& grammar() const { return *grammar_; }
  const std::shared_ptr<Epoch>& epoch() const { return epoch_; }
  const Vocabulary& vocabulary() const { return grammar_->vocabulary(); }
  StateId current() const { return states_.back(); }
  std::size_t size() const { return tokens_.size(); }
  std::span<const StateId> states() const { return states_; }  // [0] = the start, then one a step
  std::span<const TokenId> tokens() const { return tokens_; }  // of each step; -1: bytes

  // The room for a step is made first, so that push() changes all or nothing.
  void push(StateId s, TokenId t);
  // Takes the last n steps back, of which the last `ends` read no text.
  void pop(std::size_t n, std::size_t ends);
  // A step that was taken back leads where it led. What may follow depends on the work that there was where
  // languages are partial. False: the last one taken back was another one.
  bool redo(TokenId t);
  void forget_undone() { undone_.clear(); }

  // The state behind bytes; each step that is not known takes the lock by itself. Dead: they are not read.
  StateId walk(StateId s, std::string_view bytes);
  // By known steps alone, without the lock. False: one is not known.
  bool walks(StateId& s, std::string_view bytes) const;
  // Under the lock; nothing is charged to a scope of its own.
  StateId steps(StateId s, std::string_view bytes);

  // Under the lock: into the grammar's current epoch. Throws what look_at_size() throws.
  void refresh();

  // Several ways to read on from here, one state each; under the lock. An ambiguous grammar can have so many
  // that no step of them all is within a limit. Under a budget these are the ways that end soonest by the
  // bounds that told of it, the soonest first: what is taken must end in time, too.
  std::vector<StateId> ways();
  // Takes the first way of which f(state) is true, and no other from here on; the grammar is partial then.
  bool take_way(const std::vector<StateId>& ways, const std::function<bool(StateId)>& f);
  // Leads on from here as before take_way(): other tokens of the mask may go other ways, after a rollback.
  void take_all_ways(StateId all) { states_.back() = all; }
  void note_budget() { budgeted_ = true; }

 private:
  void migrate();
  StateId step(StateId s, uint8_t byte);

  std::shared_ptr<Grammar> grammar_;
  std::shared_ptr<Epoch> epoch_;
  std::vector<StateId> states_;
  std::vector<TokenId> tokens_;
  struct Undone {
    TokenId token;
    StateId before, after;
  };
  std::vector<Undone> undone_;  // the next one to be read is the last
  bool stays_ = false;          // states are held by number: they are not moved to another epoch meanwhile
  bool budgeted_ = false;       // a budget was asked for; see ways()
};

// The world's lock, and what may be done under it.
class LockedWork {
 public:
  LockedWork(const Sequence& of, Task task, Allowance limit)
      : hold_(of.grammar().world().lock), work_(of.grammar(), &of.epoch(), task, limit) {}
  // Tells the grammar already now whether something was omitted; else that is told at the end.
  void note() const { work_.note(); }

 private:
  std::lock_guard<Mutex> hold_;
  const GrammarWork work_;
};

}  // namespace structgen
