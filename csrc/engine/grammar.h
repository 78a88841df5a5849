// A compiled grammar: productions, and the parse states and masks found so far.
//
// In: productions and a start rule. Out: an object shared by all its matchers. States and masks live in an
// epoch; when it outgrows its budget a new epoch starts, and each matcher takes its own states over when it
// next needs the lock. Nobody else notices.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "base/work.h"
#include "budget/budget.h"
#include "holes/cloud.h"
#include "mask/fill.h"
#include "mask/world.h"
#include "parse/completion.h"
#include "parse/lengths.h"
#include "parse/productions.h"
#include "parse/state.h"
#include "regex/syntax.h"
#include "schema/read/resolve.h"

namespace structgen {

// Recipe, eviction 2: who is dropped: an epoch, and what it holds.
struct Epoch {
  Epoch(World& of, Productions& productions, bool limited)
      : world(of),
        parser(world.regexes, productions),
        masks(parser, world.slices, *world.vocabulary),
        completion(parser, productions),
        lengths(parser, productions, completion, world.vocabulary->longest()),
        fast(world.cache && !limited && world.vocabulary->complete()),
        budgets(world, parser, productions, masks, completion, lengths, limited, fast) {}
  ~Epoch() { world.grammars.fetch_sub(published, std::memory_order_relaxed); }
  std::size_t byte_size() const {
    return sizeof(Epoch) + parser.byte_size() + masks.byte_size() + completion.byte_size() +
           lengths.byte_size() + budgets.byte_size();
  }
  // Under the world's lock: adds what was allocated since to the world's account.
  std::size_t publish() {
    const std::size_t now = byte_size();
    world.grammars.fetch_add(now - published, std::memory_order_relaxed);  // wraps where it shrank
    return published = now;
  }
  World& world;
  std::size_t published = 0;
  Parser parser;
  MaskBuilder masks;
  Completion completion;
  Lengths lengths;
  const bool fast;  // a state's mask is the row of its matcher
  Budgets budgets;
  std::size_t limit = 0;  // size at which the next epoch starts
};

class Grammar : public std::enable_shared_from_this<Grammar> {
 public:
  // `report_of`: the schemas in it; `mask_work`: units that one call of a matcher may take. The world's lock
  // must be held.
  Grammar(std::shared_ptr<World> world, std::unique_ptr<Productions> productions, RuleId start,
          std::vector<const SchemaSet*> report_of, int64_t mask_work, std::vector<std::string> warnings = {},
          std::vector<std::string> captures = {}, bool limited = false);
  ~Grammar();

  World& world() const { return *world_; }
  const std::shared_ptr<World>& shared_world() const { return world_; }
  int64_t mask_work() const { return mask_work_; }
  void set_mask_work(int64_t units) { mask_work_ = units; }  // before anyone else has the grammar
  // See base/effort.h. Whether something may be omitted from it, and whether something was, which sticks.
  bool omits() const { return world_->regexes.effort().omits(); }
  bool partial() const { return partial_.load(std::memory_order_relaxed); }
  void note_partial() { partial_.store(true, std::memory_order_relaxed); }
  // Under the world's lock. `before`: the world's omissions before what was done for this grammar.
  void note_omissions(uint64_t before);

  // What the calls of a matcher may take beside mask_work(). To read what a row may have allowed: where the
  // world omits, making the row may have taken more, too.
  Allowance allowed_work() const { return omits() ? ending_work() : Allowance(mask_work_); }
  // A long text takes more than a mask does.
  int64_t reading_work(std::size_t bytes) const;
  // The first completion of a grammar may take much more than a mask; what is learnt on the way stays. A text
  // that was begun must not stop for it, however small the limit is.
  Allowance ending_work() const;
  // A completion that is asked for: a second, however often that the limit would allow, or the limit.
  Allowance completion_work() const;
  const Vocabulary& vocabulary() const { return *world_->vocabulary; }
  std::vector<ReportEntry> report() const;
  const std::vector<std::string>& warnings() const { return warnings_; }
  const std::vector<std::string>& captures() const { return captures_; }  // names; "" is a gap
  // A regex whose named groups are its captures; before anyone else has the grammar.
  void set_groups(Pattern pattern) {
    captures_ = pattern.names;
    groups_ = std::make_unique<const Pattern>(std::move(pattern));
  }
  const Pattern* groups() const { return groups_.get(); }
  // Where its texts are middles of texts of another grammar; before anyone else has the grammar.
  struct Around {
    std::shared_ptr<Grammar> grammar;
    std::string prefix, suffix;
  };
  void set_around(Around around) { around_ = std::make_unique<const Around>(std::move(around)); }
  const Around* around() const { return around_.get(); }
  bool limited() const { return limited_; }  // some rule limits tokens
  StateId start() const { return start_; }
  RuleId start_rule() const { return start_rule_; }
  Productions& productions() const { return *productions_; }  // under the world's lock

  // Under the world's lock:
  std::shared_ptr<Clouds>& clouds() { return clouds_; }  // of its canvases (engine/canvas.h); null: none yet
  std::shared_ptr<Epoch> epoch() const { return epoch_; }
  void rotate();  // opens a new epoch
  void rotate_if_full();
  std::size_t byte_size() const {
    return epoch_->byte_size() + productions_->byte_size() + (clouds_ ? clouds_->byte_size() : 0);
  }
  // Without the lock: it is no longer kept for its text. Returns how many grammars of its world still are.
  std::size_t retire();
  // Without the lock: byte_size(), as last published.
  std::size_t published() const { return published_all_.load(std::memory_order_relaxed); }
  // Without the lock: its world, or what is its own, is so large that a new one is to be made.
  bool is_full() const {
    const std::size_t own = published_all_.load(std::memory_order_relaxed);
    const std::size_t now = world_->published.load(std::memory_order_relaxed) + own;
    return now > std::max(world_->policy.renewed(), 2 * fresh_);  // large from the first: no use
  }
  uint32_t states() const { return epoch_->parser.size(); }
  // Under the world's lock: tells others what it takes, and throws out_of_memory() where that is too much
  // with the epoch that a matcher is in and `more` bytes of the call.
  void look_at_size(const Epoch& epoch, std::size_t more = 0);

 private:
  void open(std::size_t least);
  void publish();  // what was allocated since, to the world's account
  std::shared_ptr<World> world_;
  std::unique_ptr<Productions> productions_;
  RuleId start_rule_;
  std::vector<const SchemaSet*> report_of_;
  std::vector<std::string> warnings_;
  std::vector<std::string> captures_;
  const bool limited_;
  int64_t mask_work_;
  std::unique_ptr<const Pattern> groups_;  // or null
  std::unique_ptr<const Around> around_;   // or null
  std::size_t published_ = 0;              // bytes of the productions
  std::atomic<std::size_t> published_all_{0};
  std::size_t fresh_ = 0;  // bytes of its world and itself when it was made
  std::atomic<bool> retired_{false};
  std::atomic<bool> partial_{false};
  std::shared_ptr<Epoch> epoch_;
  std::shared_ptr<Clouds> clouds_;
  StateId start_;
};

// What a call may take whose work is done under the world's lock: units, and at every checkpoint of those the
// memory. At its end the grammar is told whether something was omitted. `epoch`: the matcher's; null: the
// grammar's.
class GrammarWork {
 public:
  GrammarWork(Grammar& g, const std::shared_ptr<Epoch>* epoch, Task task, Allowance limit)
      : grammar_(g),
        epoch_(epoch),
        omitted_(g.world().regexes.effort().omitted()),
        scope_(task, limit, &look, this) {}
  ~GrammarWork() { note(); }
  void note() const { grammar_.note_omissions(omitted_); }
  GrammarWork(const GrammarWork&) = delete;
  GrammarWork& operator=(const GrammarWork&) = delete;

 private:
  static void look(void* of) {
    const GrammarWork& w = *static_cast<GrammarWork*>(of);
    w.grammar_.look_at_size(w.epoch_ ? **w.epoch_ : *w.grammar_.epoch());
  }
  Grammar& grammar_;
  const std::shared_ptr<Epoch>* const epoch_;
  const uint64_t omitted_;
  const WorkScope scope_;
};

}  // namespace structgen
