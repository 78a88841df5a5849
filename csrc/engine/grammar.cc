#include "engine/grammar.h"

namespace structgen {

Grammar::Grammar(std::shared_ptr<World> world, std::shared_ptr<Productions> productions, RuleId start,
                 std::vector<const SchemaSet*> report_of, int64_t mask_work,
                 std::vector<std::string> warnings, std::vector<std::string> captures, bool limited)
    : world_(std::move(world)),
      productions_(productions.get(),
                   // If a thread was changing the productions at a fork, they may be half changed in the
                   // child. The child never frees them.
                   [w = world_.get(), held = productions](Productions*) {
                     if (w->lock.lost()) new std::shared_ptr<Productions>(held);
                   }),
      start_rule_(start),
      lenient_rule_(start),
      report_of_(std::move(report_of)),
      warnings_(std::move(warnings)),
      captures_(std::move(captures)),
      limited_(limited),
      mask_work_(mask_work) {
  if (!limited && !omits()) lenient_rule_ = productions_->lenient(start);
  open(0);
  note_omissions(world_->regexes.effort().omitted());
  publish();
  fresh_ = world_->published + published_all_;
  world_->kept.fetch_add(1, std::memory_order_relaxed);
}

Grammar::Grammar(std::shared_ptr<Grammar> of, const ByteRange& bytes)
    : world_(of->world_),
      of_any_length_(std::move(of)),
      bytes_(bytes),
      productions_(of_any_length_, of_any_length_->productions_.get()),
      start_rule_(of_any_length_->start_rule_),
      lenient_rule_(start_rule_),
      report_of_(of_any_length_->report_of_),
      warnings_(of_any_length_->warnings_),
      captures_(of_any_length_->captures_),
      limited_(false),
      mask_work_(of_any_length_->mask_work_) {
  if (of_any_length_->groups_) set_groups(*of_any_length_->groups_);
  open(0);
  publish();
  fresh_ = world_->published + published_all_;
  world_->kept.fetch_add(1, std::memory_order_relaxed);
}

void Grammar::publish() {
  published_.set(*world_, own_byte_size());
  published_all_.store(published_.bytes() + epoch_->publish(), std::memory_order_relaxed);
  world_->publish();
}

void Grammar::note_omissions(uint64_t before) {
  if (partial()) return;
  if (productions_->inexact()) return note_partial();
  if (!omits()) return;
  if (world_->regexes.effort().omitted() != before || productions_->omitted() != 0 ||
      epoch_->parser.omitted() != 0)
    note_partial();
}

int64_t Grammar::reading_work(std::size_t bytes) const {
  constexpr int64_t kByte = 200;
  return std::min(Meter::kEndless, mask_work_ + kByte * static_cast<int64_t>(bytes));
}

// The work is 50 times that of a mask. If the world omits, it is at least about a second's.
Allowance Grammar::ending_work() const {
  constexpr int64_t kTimes = 50, kLeast = 10'000'000;
  const int64_t set = std::min(mask_work_, Meter::kEndless / kTimes);
  return {omits() ? std::max(kTimes * set, kLeast) : kTimes * set, set};
}

Allowance Grammar::completion_work() const {
  constexpr int64_t kMost = 10'000'000, kLeast = 1'000'000, kTimes = 5;
  if (mask_work_ >= kMost) return mask_work_;
  return {std::min(ending_work().units, std::clamp(kTimes * mask_work_, kLeast, kMost)), mask_work_};
}

Grammar::~Grammar() { retire(); }

std::size_t Grammar::retire() {
  if (retired_.exchange(true)) return world_->kept.load(std::memory_order_relaxed);
  return world_->kept.fetch_sub(1, std::memory_order_relaxed) - 1;
}

std::vector<ReportEntry> Grammar::report() const {
  std::vector<ReportEntry> out;
  for (const SchemaSet* schemas : report_of_) {
    std::vector<ReportEntry> entries = schemas->report();
    out.insert(out.end(), std::make_move_iterator(entries.begin()), std::make_move_iterator(entries.end()));
  }
  return out;
}

// If a thread was in the world at a fork, the child never frees its epoch.
void Grammar::open(std::size_t least) {
  std::shared_ptr<Epoch> next(new Epoch(*world_, *productions_, limited_), [](Epoch* e) {
    if (!e->world.lock.lost()) delete e;
  });
  start_ = next->parser.start(start_rule_);
  if (next->fast && lenient_rule_ != start_rule_ && productions_->traits().asks_distinct)
    lenient_start_ = next->parser.start(lenient_rule_);
  epoch_ = std::move(next);
  // A very long text keeps all its states for rollback, and they may exceed the usual size of an epoch.
  // Sequence::migrate then asks for `least` bytes. Otherwise every call would find the epoch full and open a
  // new one.
  epoch_->limit = std::max(world_->policy.epoch(), least);
}

void Grammar::rotate() { open(0); }

void Grammar::rotate_if_full() {
  publish();
  if (epoch_->published.bytes() > epoch_->limit) open(0);
}

void Grammar::look_at_size(const Epoch& epoch, std::size_t more) {
  publish();
  const std::size_t most = world_->policy.most();
  if (world_->byte_size() + published_.bytes() + epoch.byte_size() + more > most) out_of_memory(most);
}

}  // namespace structgen
