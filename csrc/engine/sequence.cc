#include "engine/sequence.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <new>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "base/told.h"
#include "base/undo.h"
#include "base/work.h"
#include "engine/reaper.h"

namespace structgen {

namespace {
// The call itself frees an epoch of fewer bytes, which takes less than a millisecond. A larger epoch goes to
// the reaper.
constexpr std::size_t kFreedHere = 256 << 10;
}  // namespace

Sequence::Sequence(std::shared_ptr<Grammar> of) : grammar_(std::move(of)) {
  std::lock_guard hold(grammar_->world().lock);
  epoch_ = grammar_->epoch();
  states_.push_back(grammar_->start());
  if (grammar_->lenient_start() != Parser::dead()) lenient_.places.push_back({grammar_->lenient_start()});
}

// Makes all states again in the grammar's current epoch. The ending that was promised from the last state
// moves with them. After an error everything is as before.
void Sequence::migrate() {
  const std::shared_ptr<Epoch> next = grammar_->epoch();
  if (next == epoch_) return;
  std::vector<TokenId> way;
  // An ending from the last state was promised and is known to the old epoch. The new epoch takes it over.
  if (epoch_->budgets.limits) way = epoch_->budgets.limits->known_way(current());
  if (epoch_->budgets.spelling) way = epoch_->budgets.spelling->way(current());
  std::unordered_map<uint32_t, StateId> moved;
  Parser::ImportMemo stacks;
  const auto take = [&](StateId& s) {
    auto [it, fresh] = moved.try_emplace(s.v);
    if (fresh) it->second = next->parser.import(epoch_->parser, s, stacks);
    s = it->second;
  };
  std::vector<StateId> states = states_;
  states.reserve(states_.capacity());
  for (StateId& s : states) take(s);
  std::deque<Lenient::Place> places = lenient_.places;
  for (Lenient::Place& p : places) take(p.state);
  std::vector<Undone> undone = undone_;
  for (Undone& u : undone) {
    take(u.before);
    take(u.after);
  }
  std::shared_ptr<Epoch> before = std::exchange(epoch_, next);
  states_.swap(states);
  lenient_.places.swap(places);
  undone_.swap(undone);
  // Without the promised ending the states must stay in the old epoch.
  Undo back([&] {
    epoch_ = before;
    states_.swap(states);
    lenient_.places.swap(places);
    undone_.swap(undone);
  });
  if (!way.empty() && next->budgets.limits) next->budgets.limits->keep(current(), way);
  if (!way.empty() && next->budgets.spelling) next->budgets.spelling->keep(current(), way);
  next->limit = std::max(next->limit, 2 * next->byte_size());
  back.keep();
  lenient_.forget();
  if (before->published.bytes() <= kFreedHere) return;
  // The epoch must be freed before its world. An initialiser list would keep a second reference, and this
  // thread might free the epoch.
  std::vector<Reaper::Object> gone;
  gone.push_back(std::make_shared<std::pair<std::shared_ptr<World>, std::shared_ptr<Epoch>>>(
      grammar_->shared_world(), std::move(before)));
  Reaper::get().take(std::move(gone));
}

void Sequence::refresh() {
  if (!stays_) {
    grammar_->rotate_if_full();
    migrate();
  }
  World& world = grammar_->world();
  world.slices.trim(world.policy.slices());
  const std::size_t most = world.policy.most();
  // Each level of nesting of a limited rule has states of its own, so a deeply nested text can use up the
  // memory. So the error says that the text nests too deeply.
  if (epoch_->budgets.limits && epoch_->published.bytes() > most)
    throw Error(ErrorKind::kBudgetExceeded,
                "a text with limits on tokens nests too deeply; raise Limits(memory=...)");
  grammar_->look_at_size(*epoch_);
}

void Sequence::push(StateId s, TokenId t, std::size_t bytes) {
  const auto room = [](auto& list) {
    if (list.size() == list.capacity()) list.reserve(2 * list.size() + 8);
  };
  room(tokens_);
  if (lenient()) {
    lenient_.push(s, bytes > 0);
    tokens_.push_back(t);
    return;
  }
  room(states_);
  if (grammar_->of_any_length()) bytes_.push_back(this->bytes() + bytes);
  states_.push_back(s);
  tokens_.push_back(t);
}

void Sequence::pop(std::size_t n, std::size_t ends) {
  if (grammar_->omits()) {
    // A rollback undoes calls that failed, so it must not fail itself.
    try {
      for (std::size_t i = ends; i < n; ++i) {
        const std::size_t at = size() - 1 - i;
        undone_.push_back({tokens_[at], states_[at], states_[at + 1]});
      }
    } catch (const std::bad_alloc&) {
      undone_.clear();
    }
  }
  tokens_.resize(size() - n);
  states_.resize(std::min(states_.size(), size() + 1));
  if (lenient()) lenient_.cut(size() + 1);
  bytes_.resize(bytes_.empty() ? 0 : size());
}

bool Sequence::redo(TokenId t) {
  if (undone_.empty() || undone_.back().token != t || undone_.back().before != current()) return false;
  push(undone_.back().after, t, vocabulary().bytes(t).size());
  undone_.pop_back();
  return true;
}

StateId Sequence::behind(StateId s, std::string_view bytes) {
  std::size_t read = 0;
  for (; !bytes.empty() && s != Parser::dead(); bytes.remove_prefix(read)) {
    const StateId known = epoch_->parser.peek(s, bytes, read);
    if (known != Parser::unknown()) {
      s = known;
      continue;
    }
    const LockedWork work(*this, Task::kAccept, grammar_->mask_work());
    s = epoch_->parser.advance(s, bytes, read);
  }
  return s;
}

bool Sequence::moves(StateId& s, std::string_view bytes) const {
  std::size_t read = 0;
  for (; !bytes.empty() && s != Parser::dead(); bytes.remove_prefix(read))
    if (s = epoch_->parser.peek(s, bytes, read); s == Parser::unknown()) return false;
  return true;
}

StateId Sequence::steps(StateId s, std::string_view bytes) { return epoch_->parser.read(s, bytes); }

void Sequence::settle() {
  // Each time the text has this many more steps, settle() drops old states if they are too large.
  constexpr std::size_t kRefresh = 256;
  while (lenient() && states_.size() < lenient_.places.size()) {
    const std::size_t at = states_.size();
    if (at % kRefresh == 0) {
      std::lock_guard hold(grammar_->world().lock);
      refresh();
    }
    const StateId s = behind(current(), lenient_.step(at));
    if (s == Parser::dead())
      throw Error(ErrorKind::kBudgetExceeded, "the text takes too much work to be read again");
    states_.push_back(s);
  }
}

void Sequence::leave() {
  settle();
  lenient_ = {};
  look_at_ = kNever;
}

// Items are compared by their bytes. A text with a step whose bytes were not kept cannot become lenient.
bool Sequence::crowds(bool now) {
  if (lenient() || look_at_ == kNever || (size() < look_at_ && !now) || !epoch_->fast) return false;
  look_at_ = size() + kCrowd;
  {
    std::lock_guard hold(grammar_->world().lock);
    if (!grammar_->crowded()) return false;
    refresh();
    lenient_.places.push_back({epoch_->parser.start(grammar_->lenient_rule())});
  }
  look_at_ = kNever;
  Undo back([&] { lenient_ = {}; });
  for (const TokenId t : tokens_) {
    StateId at;
    if (t < 0 || fate(vocabulary().bytes(t), at) != Lenient::Fate::kLives) return false;
    lenient_.push(at, true);
  }
  back.keep();
  return true;
}

Lenient::Fate Sequence::fate(std::string_view bytes, StateId& at) {
  for (bool locked : {false, true}) {
    if (lenient_.full(bytes.size())) break;
    std::optional<LockedWork> work;
    if (locked) work.emplace(*this, Task::kAccept, grammar_->reading_work(bytes.size()));
    const Lenient::Fate found = lenient_.read(*grammar_, *epoch_, bytes, locked, at);
    if (found == Lenient::Fate::kLives) lenient_.count(grammar_->world());
    if (found != Lenient::Fate::kLock) return found;
  }
  return Lenient::Fate::kStates;
}

StateId Sequence::read(std::string_view bytes) {
  StateId at;
  const Lenient::Fate found = fate(bytes, at);
  if (found == Lenient::Fate::kLives) return at;
  if (found == Lenient::Fate::kDies) return Parser::dead();
  leave();
  return behind(current(), bytes);
}

// Returns a state for each of the first items of the current state, at most kWays.
std::vector<StateId> Sequence::ways() {
  constexpr std::size_t kWays = 8;
  std::vector<std::pair<uint32_t, StateId>> found;
  const bool soon = budgeted_ && epoch_->fast;
  const auto bounded = [&](auto&& f) {
    using T = decltype(f());
    if (!soon) return T{0};
    return told([&] {
             const GrammarWork scope(*grammar_, &epoch_, Task::kBudget, grammar_->mask_work());
             return f();
           })
        .value_or(T{0});
  };
  const std::size_t n = std::min(epoch_->parser.items(current()).size(), kWays);
  for (std::size_t i = 0; i < n; ++i) {
    const StateId one = epoch_->parser.one_way(
        current(), i, [&](StackId s) { return bounded([&] { return epoch_->lengths.nearest(s); }); });
    if (one != current() && one != Parser::dead())
      found.emplace_back(bounded([&] { return epoch_->lengths.of(one); }), one);
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& x, const auto& y) { return x.first < y.first; });
  std::vector<StateId> out;
  for (const auto& [bytes, one] : found) out.push_back(one);
  return out;
}

bool Sequence::take_way(const std::vector<StateId>& ways, const std::function<bool(StateId)>& f) {
  const Undo moves([this, before = std::exchange(stays_, true)] { stays_ = before; });
  for (const StateId one : ways) {
    Undo back([this, all = current()] { states_.back() = all; });
    states_.back() = one;
    if (!f(one)) continue;
    grammar_->note_partial();
    back.keep();
    return true;
  }
  return false;
}

}  // namespace structgen
