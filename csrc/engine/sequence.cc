#include "engine/sequence.h"

#include <algorithm>
#include <bit>
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
// A call frees an epoch of at most so many bytes by itself, in less than a millisecond.
constexpr std::size_t kFreedHere = 256 << 10;
}  // namespace

Sequence::Sequence(std::shared_ptr<Grammar> of) : grammar_(std::move(of)) {
  std::lock_guard hold(grammar_->world().lock);
  epoch_ = grammar_->epoch();
  states_.push_back(grammar_->start());
  if (grammar_->lenient_start() != Parser::dead()) lenient_.push_back({grammar_->lenient_start()});
}

// Moves all states into the grammar's current epoch, with the way out that was promised from the last
// of them. If that fails, nothing is moved.
void Sequence::migrate() {
  const std::shared_ptr<Epoch> next = grammar_->epoch();
  if (next == epoch_) return;
  std::vector<TokenId> way;
  // The new epoch takes over the way out that the old one found for the last state. It shows that the
  // text can be completed.
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
  std::vector<Place> lenient = lenient_;
  lenient.reserve(lenient_.capacity());
  for (Place& p : lenient) take(p.state);
  std::vector<Undone> undone = undone_;
  for (Undone& u : undone) {
    take(u.before);
    take(u.after);
  }
  std::shared_ptr<Epoch> before = std::exchange(epoch_, next);
  states_.swap(states);
  lenient_.swap(lenient);
  undone_.swap(undone);
  // A promise is taken along, or nothing is.
  Undo back([&] {
    epoch_ = before;
    states_.swap(states);
    lenient_.swap(lenient);
    undone_.swap(undone);
  });
  if (!way.empty() && next->budgets.limits) next->budgets.limits->keep(current(), way);
  if (!way.empty() && next->budgets.spelling) next->budgets.spelling->keep(current(), way);
  next->limit = std::max(next->limit, 2 * next->byte_size());
  back.keep();
  opens_ = {};
  one_value_ = {};
  // The epoch goes before its world. A small one is freed here.
  if (before->published > kFreedHere)
    Reaper::get().take({std::make_shared<std::pair<std::shared_ptr<World>, std::shared_ptr<Epoch>>>(
        grammar_->shared_world(), std::move(before))});
}

void Sequence::refresh() {
  if (!stays_) {
    grammar_->rotate_if_full();
    migrate();
  }
  World& world = grammar_->world();
  world.slices.trim(world.policy.slices());
  const std::size_t most = world.policy.most();
  // Each level of a limited rule makes states of its own, so a deep text is stopped with a message of
  // its own.
  if (epoch_->budgets.limits && epoch_->published > most)
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
    room(lenient_);
    // Behind a call that threw there may be more text.
    Place to = lenient_.back();
    if (bytes > 0) to = {s, static_cast<uint32_t>(distinct_.text().size()) % kMostText, distinct_.mode()};
    lenient_.push_back(to);
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
    // A rollback never fails, because it is used to end calls that did.
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
  if (lenient()) {
    lenient_.resize(size() + 1);
    distinct_.cut(lenient_.back().size, lenient_.back().mode);
  }
  bytes_.resize(bytes_.empty() ? 0 : size());
}

bool Sequence::redo(TokenId t) {
  if (undone_.empty() || undone_.back().token != t || undone_.back().before != current()) return false;
  push(undone_.back().after, t, vocabulary().bytes(t).size());
  undone_.pop_back();
  return true;
}

StateId Sequence::step(StateId s, uint8_t byte) {
  if (s == Parser::dead()) return s;
  const StateId known = epoch_->parser.peek(s, byte);
  if (known != Parser::unknown()) return known;
  // Each new step has a lock and a limit of work of its own.
  const LockedWork work(*this, Task::kAccept, grammar_->mask_work());
  return epoch_->parser.step(s, byte);
}

StateId Sequence::walk(StateId s, std::string_view bytes) {
  for (char b : bytes) {
    s = step(s, static_cast<uint8_t>(b));
    if (s == Parser::dead()) break;
  }
  return s;
}

bool Sequence::walks(StateId& s, std::string_view bytes) const {
  for (char b : bytes) {
    if (s == Parser::dead()) break;
    s = epoch_->parser.peek(s, static_cast<uint8_t>(b));
    if (s == Parser::unknown()) return false;
  }
  return true;
}

StateId Sequence::steps(StateId s, std::string_view bytes) {
  for (char b : bytes)
    if (s != Parser::dead()) s = epoch_->parser.step(s, static_cast<uint8_t>(b));
  return s;
}

// ---- items that are compared beside the states ----

void Sequence::settle() {
  // Old states may be dropped after so many steps.
  constexpr std::size_t kRefresh = 256;
  while (lenient() && states_.size() < lenient_.size()) {
    const std::size_t at = states_.size() - 1;
    if (at % kRefresh == kRefresh - 1) {
      std::lock_guard hold(grammar_->world().lock);
      refresh();
    }
    const std::size_t from = lenient_[at].size;
    const StateId s =
        walk(current(), std::string_view(distinct_.text()).substr(from, lenient_[at + 1].size - from));
    if (s == Parser::dead())
      throw Error(ErrorKind::kBudgetExceeded, "the text takes too much work to be read again");
    states_.push_back(s);
  }
}

void Sequence::leave() {
  settle();
  lenient_ = {};
  distinct_ = {};
}

Sequence::Opens Sequence::opens(StateId s, bool locked) const {
  if (const auto known = opens_.find(s.v); known != opens_.end()) return static_cast<Opens>(known->second);
  if (!locked) return kUnknown;
  Parser& parser = epoch_->parser;
  uint8_t out = 0;
  for (const Item& i : parser.items(s)) {
    if (parser.regexes().step(i.regex, '[') == RegexArena::empty()) continue;
    for (const StackEntry& e : parser.stacks().entries(i.stack)) {
      if (e.top.kind() != Symbol::kRule) continue;
      const Productions::Items items = grammar_->productions().items(e.top.rule_id());
      if (items != Productions::Items::kNone) out |= items == Productions::Items::kAny ? kAny : kDistinct;
    }
  }
  if (out == 0) out = kAny;
  opens_.emplace(s.v, out);
  return static_cast<Opens>(out);
}

// Whether the number that ends in s can only get zeros, so that it keeps its value. `nonzero`: it has a digit
// that counts; `exponent`: its exponent has begun. Needs the lock.
bool Sequence::one_value(StateId s, bool nonzero, bool exponent) const {
  constexpr std::size_t kMost = 64;
  const uint32_t key = 4 * s.v + 2 * nonzero + exponent;
  if (const auto known = one_value_.find(key); known != one_value_.end()) return known->second != 0;
  Parser& parser = epoch_->parser;
  std::vector<StateId> todo{s};
  const auto only_zeros = [&](StateId at) {
    const ByteSet& live = parser.live(at);
    if (!exponent || nonzero)
      for (char c = '1'; c <= '9'; ++c)
        if (live.has(static_cast<uint8_t>(c))) return false;
    if (nonzero && !exponent && (live.has('e') || live.has('E'))) return false;
    for (char c : {'0', '.', '+', '-'})
      if (const StateId to = parser.step(at, static_cast<uint8_t>(c));
          to != Parser::dead() && std::ranges::find(todo, to) == todo.end())
        todo.push_back(to);
    return true;
  };
  bool out = true;
  for (std::size_t i = 0; i < todo.size() && out; ++i) out = i < kMost && only_zeros(todo[i]);
  one_value_.emplace(key, out);
  return out;
}

// Whether the item that is being read can still become new. It cannot be told only of a word, and of a number
// that is a member and can only get zeros (Unique::lasting).
Sequence::Fate Sequence::fate(StateId s, bool locked) const {
  const std::string_view word = distinct_.word();
  if (word.empty() || !distinct_.compares()) return kLives;
  if (word[0] >= 'a')
    return distinct_.fresh(word[0] == 't' ? "true" : word[0] == 'f' ? "false" : "null") ? kLives : kDies;
  const std::size_t e = word.find_first_of("eE");
  const bool exponent = e != word.npos, nonzero = word.substr(0, e).find_first_of("123456789") != word.npos;
  if (nonzero && !exponent && word.find('.') == word.npos) return kLives;
  // Larger exponents are taken for kHugeExponent, which has 19 digits.
  const std::size_t power = exponent ? word.find_first_of("123456789", e) : word.npos;
  if (power == word.npos || word.size() - power < 19) {
    if (!locked && !one_value_.contains(4 * s.v + 2 * nonzero + exponent)) return kLock;
    if (!one_value(s, nonzero, exponent)) return kLives;
  }
  const bool whole = word.back() >= '0' && word.back() <= '9';
  return distinct_.fresh(std::string(word) + (whole ? "" : "0")) ? kLives : kDies;
}

// What becomes of a text that goes on with these bytes. It leaves them read in distinct_.
Sequence::Fate Sequence::fate(std::string_view bytes, StateId& at, bool locked) const {
  for (char b : bytes) {
    const auto byte = static_cast<uint8_t>(b);
    Opens kind = kAny;
    if (b == '[' && distinct_.mode() == Distinct::kBetween) kind = opens(at, locked);
    if (kind == kUnknown) return kLock;
    if (kind == kMixed) return kStates;
    at = locked ? epoch_->parser.step(at, byte) : epoch_->parser.peek(at, byte);
    if (at == Parser::unknown()) return kLock;
    if (at == Parser::dead() ||
        !distinct_.read(b, kind == kDistinct ? Distinct::kDistinct : Distinct::kPlain))
      return kDies;
  }
  return fate(at, locked);
}

StateId Sequence::read(std::string_view bytes) {
  const Place from = lenient_.back();
  if (distinct_.text().size() + bytes.size() >= kMostText) {
    leave();
    return walk(current(), bytes);
  }
  for (bool locked : {false, true}) {
    distinct_.cut(from.size, from.mode);
    StateId at = from.state;
    std::optional<LockedWork> work;
    if (locked) work.emplace(*this, Task::kAccept, grammar_->reading_work(bytes.size()));
    const Fate found = fate(bytes, at, locked);
    if (found == kLives) return at;
    if (found == kLock) continue;
    distinct_.cut(from.size, from.mode);
    work.reset();
    if (found == kDies) return Parser::dead();
    leave();
    return walk(current(), bytes);
  }
  return Parser::dead();
}

Sequence::Kept Sequence::keep_distinct(uint32_t* row, bool locked) const {
  const Place from = lenient_.back();
  distinct_.cut(from.size, from.mode);
  const bool string = from.mode == Distinct::kString || from.mode == Distinct::kEscape;
  const Words*& ends = ends_[2 * string + distinct_.open()];
  if (!ends && !locked) return Kept::kNeedsLock;
  if (!ends) ends = &grammar_->world().ends_of_items(string, distinct_.open());
  for (uint32_t w = 0; w < vocabulary().words(); ++w)
    for (uint32_t bits = row[w] & (*ends)[w]; bits != 0; bits &= bits - 1) {
      const auto t = static_cast<TokenId>(32 * w + static_cast<uint32_t>(std::countr_zero(bits)));
      const std::string_view bytes = vocabulary().bytes(t);
      if (bytes.empty() || distinct_.harmless(bytes)) continue;
      StateId at = from.state;
      const Fate found = fate(bytes, at, locked);
      distinct_.cut(from.size, from.mode);
      if (found == kLock) return Kept::kNeedsLock;
      if (found == kStates) return Kept::kNeedsStates;
      if (found == kDies) clear_bit(row, t);
    }
  return Kept::kDone;
}

// At most kWays ways: one for each of the first items of the state.
std::vector<StateId> Sequence::ways() {
  constexpr std::size_t kWays = 8;
  std::vector<std::pair<uint32_t, StateId>> found;
  const bool soon = budgeted_ && epoch_->fast;
  // Runs f() within the work of a mask; 0 where that was too much.
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
