// A compiled grammar: productions, and the parse states and masks found so far.
//
// In: productions and a start rule. Out: an object shared by all its matchers. States and masks live in
// an epoch. When the epoch outgrows its share of the cache, a new epoch starts, and each matcher moves
// its own states over when it next holds the lock (Sequence::refresh). Users do not notice.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/work.h"
#include "budget/budget.h"
#include "holes/cloud.h"
#include "mask/fill.h"
#include "mask/world.h"
#include "parse/completion.h"
#include "parse/growth.h"
#include "parse/lengths.h"
#include "parse/productions.h"
#include "parse/state.h"
#include "regex/syntax.h"
#include "schema/read/resolve.h"

namespace structgen {

// Bytes in the account of a world, as they were last set. Those of a copy are counted, too.
class Counted {
 public:
  Counted() = default;
  Counted(const Counted& o) {
    if (o.world_) set(*o.world_, o.bytes_);
  }
  Counted& operator=(Counted o) noexcept {
    std::swap(world_, o.world_);
    std::swap(bytes_, o.bytes_);
    return *this;
  }
  ~Counted() {
    if (world_) set(*world_, 0);
  }
  std::size_t bytes() const { return bytes_; }
  void set(World& world, std::size_t bytes) {
    world_ = &world;
    // The unsigned difference wraps where the size shrank, and the sum is right again.
    world.grammars.fetch_add(bytes - std::exchange(bytes_, bytes), std::memory_order_relaxed);
  }

 private:
  World* world_ = nullptr;
  std::size_t bytes_ = 0;
};

// Recipe, eviction 2: who is dropped: an epoch, and what it holds.
struct Epoch {
  Epoch(World& of, Productions& productions, bool limited)
      : world(of),
        parser(world.regexes, productions),
        masks(parser, world.slices, *world.vocabulary),
        completion(parser, productions),
        lengths(parser, productions, completion, world.vocabulary->longest()),
        growth(parser, productions, completion, lengths),
        fast(world.cache && !limited && world.vocabulary->complete()),
        budgets(world, parser, productions, masks, completion, lengths, growth, limited, fast) {}
  std::size_t byte_size() const {
    return sizeof(Epoch) + parser.byte_size() + masks.byte_size() + completion.byte_size() +
           lengths.byte_size() + growth.byte_size() + budgets.byte_size() + numbers.byte_size();
  }
  // Needs the world's lock. Adds the bytes allocated since the last call to the world's account.
  std::size_t publish() {
    published.set(world, byte_size());
    return published.bytes();
  }
  World& world;
  // Tells the states of two epochs apart; no other epoch of the process has it.
  const uint64_t serial = next_serial();
  Counted published;
  Parser parser;
  MaskBuilder masks;
  Completion completion;
  Lengths lengths;
  Growth growth;
  // The mask of a state is the row of its matcher: masks are cached, no limits on tokens, every byte is
  // a token.
  const bool fast;
  Budgets budgets;
  // The size in bytes at which the next epoch starts.
  std::size_t limit = 0;
  // Needs the lock. The number of a state behind so many bytes, where the bytes of a text are counted.
  uint32_t number(StateId s, std::size_t bytes) {
    return numbers.emplace(uint64_t{s.v} << 32 | bytes, static_cast<uint32_t>(numbers.size())).first;
  }
  FlatMap<uint64_t, uint32_t> numbers;

 private:
  static uint64_t next_serial() {
    static std::atomic<uint64_t> last{0};
    return last.fetch_add(1, std::memory_order_relaxed);
  }
};

class Grammar : public std::enable_shared_from_this<Grammar> {
 public:
  // `report_of`: the schemas in the grammar. `mask_work`: units of work that one call of a matcher may
  // take. The world's lock must be held.
  Grammar(std::shared_ptr<World> world, std::shared_ptr<Productions> productions, RuleId start,
          std::vector<const SchemaSet*> report_of, int64_t mask_work, std::vector<std::string> warnings = {},
          std::vector<std::string> captures = {}, bool limited = false);
  // Those texts of a grammar whose bytes are in a range. The productions are shared, states and masks are
  // its own. The world's lock must be held.
  Grammar(std::shared_ptr<Grammar> of, const ByteRange& bytes);
  ~Grammar();

  World& world() const { return *world_; }
  const std::shared_ptr<World>& shared_world() const { return world_; }
  int64_t mask_work() const { return mask_work_; }
  // To be called before another thread has the grammar.
  void set_mask_work(int64_t units) { mask_work_ = units; }
  // Whether something may be omitted from the grammar (base/effort.h), and whether something was. The
  // second never becomes false again.
  bool omits() const { return world_->regexes.effort().omits(); }
  bool partial() const { return partial_.load(std::memory_order_relaxed); }
  void note_partial() { partial_.store(true, std::memory_order_relaxed); }
  // Needs the world's lock. `before`: the world's omissions before the work for this grammar began.
  void note_omissions(uint64_t before);

  // The work of a call that reads a token which a row has allowed. Where the world omits, making the
  // row may have taken more than mask_work(), so reading may take as much.
  Allowance allowed_work() const { return omits() ? ending_work() : Allowance(mask_work_); }
  // The work of reading a text: mask_work() and 200 units for each byte.
  int64_t reading_work(std::size_t bytes) const;
  // The work of a call without which a begun text would stop. The first completion of a grammar may
  // take much more than a mask; the facts that it learns stay. So this limit is a multiple of
  // mask_work(), and where the world omits it is never small.
  Allowance ending_work() const;
  // The work of a completion that the user asks for (shortest_completion). A mask has to be quick, and a
  // completion may take about a second, which is ten million units. A limit of masks of ten million or more
  // holds for completions too. A smaller one is taken five times: at least a million units, and no more
  // than the smaller of ten million and ending_work().
  Allowance completion_work() const;
  const Vocabulary& vocabulary() const { return *world_->vocabulary; }
  std::vector<ReportEntry> report() const;
  const std::vector<std::string>& warnings() const { return warnings_; }
  // The names of captures; "" is a gap in the numbering.
  const std::vector<std::string>& captures() const { return captures_; }
  // For a regex whose named groups are its captures; called before anyone else has the grammar.
  void set_groups(Pattern pattern) {
    captures_ = pattern.names;
    groups_ = std::make_unique<const Pattern>(std::move(pattern));
  }
  const Pattern* groups() const { return groups_.get(); }
  // For a grammar whose texts are middles of texts of another grammar (holes); called before anyone
  // else has it.
  struct Around {
    std::shared_ptr<Grammar> grammar;
    std::string prefix, suffix;
  };
  void set_around(Around around) { around_ = std::make_unique<const Around>(std::move(around)); }
  const Around* around() const { return around_.get(); }
  // The bytes that a whole text may have (engine/rows.cc counts them), and the grammar without that
  // range; null: any number of bytes.
  const ByteRange& bytes() const { return bytes_; }
  const std::shared_ptr<Grammar>& of_any_length() const { return of_any_length_; }
  // True if some rule limits tokens.
  bool limited() const { return limited_; }
  StateId start() const { return start_; }
  // The start of the lenient language (engine/lenient.h); dead(): each text begins in the states. Needs the
  // lock.
  StateId lenient_start() const { return lenient_start_; }
  // The rule of the lenient language; start_rule(): there is none.
  RuleId lenient_rule() const { return lenient_rule_; }
  // Whether some object has so many keys that they are better kept beside the states. Needs the lock.
  bool crowded() const {
    constexpr std::size_t kKeys = 256;
    return productions_->most_keys() >= kKeys;
  }
  RuleId start_rule() const { return start_rule_; }
  // Needs the world's lock.
  Productions& productions() const { return *productions_; }

  // These need the world's lock:
  // The clouds of the grammar's canvases (engine/canvas.h); null: no canvas was made yet.
  std::shared_ptr<Clouds>& clouds() { return clouds_; }
  std::shared_ptr<Epoch> epoch() const { return epoch_; }
  // Opens a new epoch.
  void rotate();
  void rotate_if_full();
  std::size_t byte_size() const { return epoch_->byte_size() + own_byte_size(); }
  // Needs no lock. The grammar is no longer kept for its text. Returns how many grammars of its world
  // still are.
  std::size_t retire();
  // byte_size() as it was last published. Needs no lock.
  std::size_t published() const { return published_all_.load(std::memory_order_relaxed); }
  // Needs no lock. Whether the grammar or its world is so large that a new grammar should be made.
  bool is_full() const {
    const std::size_t own = published_all_.load(std::memory_order_relaxed);
    const std::size_t now = world_->published.load(std::memory_order_relaxed) + own;
    // A grammar that was this large from the first would be as large again, so making it anew is of no
    // use.
    return now > std::max(world_->policy.renewed(), 2 * fresh_);
  }
  uint32_t states() const { return epoch_->parser.size(); }
  // Needs the world's lock. Publishes the grammar's size, and throws out_of_memory() if it is too much,
  // together with the epoch that a matcher is in and `more` bytes of the running call.
  void look_at_size(const Epoch& epoch, std::size_t more = 0);

 private:
  // The bytes of its productions and clouds.
  std::size_t own_byte_size() const {
    return (of_any_length_ ? 0 : productions_->byte_size()) + (clouds_ ? clouds_->byte_size() : 0);
  }
  void open(std::size_t least);
  // Adds the bytes allocated since the last call to the world's account.
  void publish();
  std::shared_ptr<World> world_;
  // Null for a grammar without a range of bytes.
  const std::shared_ptr<Grammar> of_any_length_;
  const ByteRange bytes_;
  std::shared_ptr<Productions> productions_;
  RuleId start_rule_, lenient_rule_;
  std::vector<const SchemaSet*> report_of_;
  std::vector<std::string> warnings_;
  std::vector<std::string> captures_;
  const bool limited_;
  int64_t mask_work_;
  // Null for a grammar without named groups of a regex.
  std::unique_ptr<const Pattern> groups_;
  // Null for a grammar that is no middle of another one.
  std::unique_ptr<const Around> around_;
  // The bytes of the productions and clouds.
  Counted published_;
  std::atomic<std::size_t> published_all_{0};
  // Bytes of the world and the grammar when it was made.
  std::size_t fresh_ = 0;
  std::atomic<bool> retired_{false};
  std::atomic<bool> partial_{false};
  std::shared_ptr<Epoch> epoch_;
  std::shared_ptr<Clouds> clouds_;
  StateId start_, lenient_start_ = Parser::dead();
};

// The scope of a call whose work is done under the world's lock: units of work, and a look at the
// memory at every checkpoint. At its end the grammar is told whether something was omitted. `epoch`:
// the matcher's; null: the grammar's.
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
