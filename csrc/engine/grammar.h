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

// The bytes that one object last reported to the account of its world. Copying a Counted adds these bytes
// once more.
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
    // The numbers are unsigned. If the object shrank, the difference wraps around, and so does the sum, back
    // to the right number.
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
  // Adds the bytes allocated since the last call to the world's account. The caller holds the world's lock.
  std::size_t publish() {
    published.set(world, byte_size());
    return published.bytes();
  }
  World& world;
  // A number that no other epoch of the process has, so that states of two epochs can be told apart.
  const uint64_t serial = next_serial();
  Counted published;
  Parser parser;
  MaskBuilder masks;
  Completion completion;
  Lengths lengths;
  Growth growth;
  // True if the row of each state is its mask: masks are cached, no rule limits tokens, and every byte is a
  // token.
  const bool fast;
  Budgets budgets;
  // The bytes from which on the grammar opens a new epoch.
  std::size_t limit = 0;
  // Returns a number for the pair (state, bytes of the text), for grammars that count bytes. The caller holds
  // the world's lock.
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
  // `report_of` are the schemas of the grammar, for reports. `mask_work` is the most work of one call of a
  // matcher. The caller holds the world's lock.
  Grammar(std::shared_ptr<World> world, std::shared_ptr<Productions> productions, RuleId start,
          std::vector<const SchemaSet*> report_of, int64_t mask_work, std::vector<std::string> warnings = {},
          std::vector<std::string> captures = {}, bool limited = false);
  // Makes the grammar of the texts of `of` whose number of bytes lies in the range. Both share productions,
  // but neither states nor masks. The caller holds the world's lock.
  Grammar(std::shared_ptr<Grammar> of, const ByteRange& bytes);
  ~Grammar();

  World& world() const { return *world_; }
  const std::shared_ptr<World>& shared_world() const { return world_; }
  int64_t mask_work() const { return mask_work_; }
  void set_mask_work(int64_t units) { mask_work_ = units; }
  // omits() is true if texts may be left out of the grammar (base/effort.h). partial() is true once some text
  // was left out; it never becomes false again.
  bool omits() const { return world_->regexes.effort().omits(); }
  bool partial() const { return partial_.load(std::memory_order_relaxed); }
  void note_partial() { partial_.store(true, std::memory_order_relaxed); }
  // Marks the grammar as partial if the world's count of omissions has changed since it was `before`. The
  // caller holds the world's lock.
  void note_omissions(uint64_t before);

  // Returns the work for reading a token that a row has allowed. In a world that omits, the row may have
  // taken more than mask_work(), so reading may, too.
  Allowance allowed_work() const { return omits() ? ending_work() : Allowance(mask_work_); }
  // Returns the work of reading a text: mask_work(), and 200 units for each byte.
  int64_t reading_work(std::size_t bytes) const;
  // Returns the work of a call without which a begun text could not go on: a multiple of mask_work(), and in
  // a world that omits at least one second's work. The first completion of a grammar may take much more work
  // than a mask, but everything that it finds is kept.
  Allowance ending_work() const;
  // Returns the work of a completion that a user asks for. If a mask may take ten million units (a second) or
  // more, a completion may take as many. Otherwise it may take five times as many, but at least one million
  // and at most ten million units, and no more than ending_work().
  Allowance completion_work() const;
  const Vocabulary& vocabulary() const { return *world_->vocabulary; }
  std::vector<ReportEntry> report() const;
  const std::vector<std::string>& warnings() const { return warnings_; }
  // The names of captures, by number; "" where a number is not used.
  const std::vector<std::string>& captures() const { return captures_; }
  // Sets the regex whose named groups are the captures. No other thread may have the grammar yet.
  void set_groups(Pattern pattern) {
    captures_ = pattern.names;
    groups_ = std::make_unique<const Pattern>(std::move(pattern));
  }
  const Pattern* groups() const { return groups_.get(); }
  // For a grammar of the texts that fill a hole: the grammar of the whole texts, and the texts on both sides
  // of the hole.
  struct Around {
    std::shared_ptr<Grammar> grammar;
    std::string prefix, suffix;
  };
  void set_around(Around around) { around_ = std::make_unique<const Around>(std::move(around)); }
  const Around* around() const { return around_.get(); }
  // bytes() is the range in which the number of bytes of a whole text must lie; engine/rows.cc counts them.
  // of_any_length() is the grammar without this range, or null if there is none.
  const ByteRange& bytes() const { return bytes_; }
  const std::shared_ptr<Grammar>& of_any_length() const { return of_any_length_; }
  bool limited() const { return limited_; }
  StateId start() const { return start_; }
  // Returns the start state of the lenient language (engine/lenient.h); dead() if there is none. The caller
  // holds the world's lock.
  StateId lenient_start() const { return lenient_start_; }
  // Returns the start rule of the lenient language, or start_rule() if there is none.
  RuleId lenient_rule() const { return lenient_rule_; }
  // Returns true if some object has hundreds of keys. Keys that were written are then cheaper beside the
  // states than in them (Sequence::crowds). The caller holds the world's lock.
  bool crowded() const {
    constexpr std::size_t kKeys = 256;
    return productions_->most_keys() >= kKeys;
  }
  RuleId start_rule() const { return start_rule_; }
  // The caller holds the world's lock.
  Productions& productions() const { return *productions_; }

  // The caller of each function from here to look_at_size() holds the world's lock, unless its comment says
  // otherwise. clouds() are the clouds of the grammar's canvases (engine/canvas.h); null before the first
  // canvas.
  std::shared_ptr<Clouds>& clouds() { return clouds_; }
  std::shared_ptr<Epoch> epoch() const { return epoch_; }
  // Replaces the epoch by a new one, in which states and masks are made anew.
  void rotate();
  void rotate_if_full();
  std::size_t byte_size() const { return epoch_->byte_size() + own_byte_size(); }
  // Notes that the compiler no longer keeps the grammar. Returns how many grammars of the world the compiler
  // still keeps. Takes no lock.
  std::size_t retire();
  std::size_t published() const { return published_all_.load(std::memory_order_relaxed); }
  // Returns true if the caller should compile the grammar anew, because it or its world has become too large.
  // Takes no lock.
  bool is_full() const {
    const std::size_t own = published_all_.load(std::memory_order_relaxed);
    const std::size_t now = world_->published.load(std::memory_order_relaxed) + own;
    // If the grammar was already half as large when it was made, a new grammar would soon be as large as this
    // one, so this grammar stays.
    return now > std::max(world_->policy.renewed(), 2 * fresh_);
  }
  uint32_t states() const { return epoch_->parser.size(); }
  // Publishes the grammar's size. Throws out_of_memory() if this size, the matcher's `epoch` and `more` bytes
  // of the running call are together too much. The caller holds the world's lock.
  void look_at_size(const Epoch& epoch, std::size_t more = 0);

 private:
  std::size_t own_byte_size() const {
    return (of_any_length_ ? 0 : productions_->byte_size()) + (clouds_ ? clouds_->byte_size() : 0);
  }
  void open(std::size_t least);
  void publish();
  std::shared_ptr<World> world_;
  const std::shared_ptr<Grammar> of_any_length_;
  const ByteRange bytes_;
  std::shared_ptr<Productions> productions_;
  RuleId start_rule_, lenient_rule_;
  std::vector<const SchemaSet*> report_of_;
  std::vector<std::string> warnings_;
  std::vector<std::string> captures_;
  const bool limited_;
  int64_t mask_work_;
  // The regex whose named groups are captures; null for every other grammar.
  std::unique_ptr<const Pattern> groups_;
  // The text around a hole, for a grammar of the texts that fill this hole; null for any other grammar.
  std::unique_ptr<const Around> around_;
  Counted published_;
  std::atomic<std::size_t> published_all_{0};
  std::size_t fresh_ = 0;
  std::atomic<bool> retired_{false};
  std::atomic<bool> partial_{false};
  std::shared_ptr<Epoch> epoch_;
  std::shared_ptr<Clouds> clouds_;
  StateId start_, lenient_start_ = Parser::dead();
};

// Bounds the work of a call under the world's lock, and checks the memory at every checkpoint. When the call
// ends, the grammar is marked as partial if something was omitted. `epoch` is the matcher's epoch; null
// stands for the grammar's epoch.
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
