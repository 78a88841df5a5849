#include "engine/matcher.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "base/undo.h"
#include "base/work.h"
#include "engine/captures.h"
#include "engine/open_places.h"

namespace structgen {

namespace {
// Notes in a grammar that something was left out of it meanwhile. Under the world's lock.
class Narrowing {
 public:
  explicit Narrowing(Grammar& g) : grammar_(g), before_(g.world().regexes.left_out()) {}
  ~Narrowing() { grammar_.note_narrowing(before_); }
  Narrowing(const Narrowing&) = delete;
  Narrowing& operator=(const Narrowing&) = delete;

 private:
  Grammar& grammar_;
  const uint64_t before_;
};
}  // namespace

Matcher::Matcher(std::shared_ptr<Grammar> grammar, Request request)
    : grammar_(std::move(grammar)),
      request_tokens_(request.tokens),
      goes_on_after_end_(request.goes_on_after_end) {
  if (!request.ends.empty())
    own_ends_ = std::make_shared<const Ends>(grammar_->vocabulary(), std::move(request.ends));
  std::lock_guard hold(grammar_->world().lock);
  epoch_ = grammar_->epoch();
  history_.push_back(grammar_->start());
}

void Matcher::migrate() {
  const std::shared_ptr<Epoch> next = grammar_->epoch();
  if (next == epoch_) return;
  std::vector<TokenId> way;
  if (epoch_->limits && !is_terminated()) way = epoch_->limits->known_way(current());
  if (epoch_->spelling && !is_terminated()) way = epoch_->spelling->way(current());
  std::unordered_map<uint32_t, StateId> moved;
  Parser::ImportMemo stacks;
  const auto take = [&](StateId& s) {
    auto [it, fresh] = moved.try_emplace(s.v);
    if (fresh) it->second = next->parser.import(epoch_->parser, s, stacks);
    s = it->second;
  };
  std::vector<StateId> history = history_;
  history.reserve(history_.capacity());
  for (StateId& s : history) take(s);
  std::vector<Undone> undone = undone_;
  for (Undone& u : undone) {
    take(u.before);
    take(u.after);
  }
  const std::shared_ptr<Epoch> before = std::exchange(epoch_, next);
  history_.swap(history);
  undone_.swap(undone);
  Undo back([&] {  // what is promised is taken along, or nothing
    epoch_ = before;
    history_.swap(history);
    undone_.swap(undone);
  });
  if (!way.empty() && next->limits) next->limits->keep(current(), way);
  if (!way.empty() && next->spelling) next->spelling->keep(current(), way);
  next->limit = std::max(next->limit, 2 * next->byte_size());
  back.keep();
}

void Matcher::refresh() {
  if (!stays_) {
    grammar_->rotate_if_full();
    migrate();
  }
  World& world = grammar_->world();
  world.slices.trim(world.policy.slices());
  const std::size_t most = world.policy.most();
  if (epoch_->limits && epoch_->published > most)
    throw Error(ErrorKind::kBudgetExceeded,
                "a text with limits on tokens nests too deeply; raise Limits(memory=...)");
  grammar_->look_at_size(*epoch_);
}

StateId Matcher::step(StateId s, uint8_t byte) {
  if (s == Parser::dead()) return s;
  const StateId known = epoch_->parser.peek(s, byte);
  if (known != Parser::unknown()) return known;
  std::lock_guard hold(grammar_->world().lock);
  const Narrowing watch(*grammar_);
  const GrammarWork scope(*grammar_, &epoch_, Task::kAccept, grammar_->mask_work());
  return epoch_->parser.step(s, byte);
}

// To read what a mask may have allowed: under "subset" masks may take more, too.
Allowance Matcher::allowed_work() const {
  return grammar_->subset() ? ending_work() : Allowance(grammar_->mask_work());
}

// Long texts take more than a mask does.
int64_t Matcher::reading_work(std::size_t bytes) const {
  constexpr int64_t kByte = 200;
  return std::min(Meter::kEndless, grammar_->mask_work() + kByte * static_cast<int64_t>(bytes));
}

// Of a text it is not known where its tokens begin. Under "subset" it does not stop for work.
StateId Matcher::walk_text(StateId s, std::string_view bytes) {
  Parser& parser = epoch_->parser;
  const auto locked = [&](Allowance work) {
    std::lock_guard hold(grammar_->world().lock);
    const Narrowing watch(*grammar_);
    const GrammarWork scope(*grammar_, &epoch_, Task::kAccept, work);
    StateId at = s;
    for (char b : bytes) {
      at = parser.step(parser.at_edge(at), static_cast<uint8_t>(b));
      if (at == Parser::dead()) break;
    }
    return at;
  };
  try {
    return parser.edged() ? locked(reading_work(bytes.size())) : walk(s, bytes);
  } catch (const Error& e) {
    if (!e.is_limit() || !grammar_->subset()) throw;
    return locked(ending_work());
  }
}

// walk() from here. Where that is too much, a mask may have allowed the bytes still: by one way to read on,
// or with more work.
StateId Matcher::walk_on(std::string_view bytes) {
  try {
    return walk(current(), bytes);
  } catch (const Error& e) {
    if (!e.is_limit() || !grammar_->subset()) throw;
    std::vector<StateId> known;
    if (takes_part()) {
      std::lock_guard hold(grammar_->world().lock);
      const GrammarWork scope(*grammar_, &epoch_, Task::kAccept, ending_work());
      known = ways();
    }
    StateId to = Parser::dead();
    const StateId all = current();  // other tokens of the mask may go other ways, after a rollback
    const bool taken = take_way(known, [&](StateId one) {
      try {
        return (to = walk(one, bytes)) != Parser::dead();
      } catch (const Error& again) {
        if (!again.is_limit()) throw;
        return false;
      }
    });
    if (taken) {
      history_.back() = all;
      return to;
    }
    // A text that was begun does not stop for it.
    std::lock_guard hold(grammar_->world().lock);
    const Narrowing watch(*grammar_);
    const GrammarWork scope(*grammar_, &epoch_, Task::kAccept, ending_work());
    to = current();
    for (char b : bytes)
      if (to != Parser::dead()) to = epoch_->parser.step(to, static_cast<uint8_t>(b));
    return to;
  }
}

// Whether the mask has a token that leads nowhere. It was put together from parts of regexes, of which more
// was known than of what the token leaves of the whole.
bool Matcher::vouched(TokenId t) const {
  if (!takes_part() || !grammar_->narrowed() || by_text()) return false;
  const Mask* m = epoch_->masks.peek(current());
  return m && allows(*m, grammar_->vocabulary(), t);
}

StateId Matcher::walk_vouched(std::string_view bytes) {
  std::lock_guard hold(grammar_->world().lock);
  const GrammarWork scope(*grammar_, &epoch_, Task::kAccept, ending_work());
  StateId s = current();
  for (char b : bytes) s = epoch_->parser.vouched_step(s, static_cast<uint8_t>(b));
  return s;
}

StateId Matcher::walk(StateId s, std::string_view bytes) {
  for (char b : bytes) {
    s = step(s, static_cast<uint8_t>(b));
    if (s == Parser::dead()) break;
  }
  return s;
}

StateId Matcher::accept_limited(TokenId t) {
  std::lock_guard hold(grammar_->world().lock);
  const GrammarWork scope(*grammar_, &epoch_, Task::kAccept, allowed_work());
  refresh();
  return epoch_->limits->accept(current(), t);
}

bool Matcher::spellable(StateId s) {
  std::lock_guard hold(grammar_->world().lock);
  const GrammarWork scope(*grammar_, &epoch_, Task::kAccept, allowed_work());
  return epoch_->spelling->possible(s);
}

bool Matcher::completable(StateId s) {
  if (!epoch_->limits) return true;
  std::lock_guard hold(grammar_->world().lock);
  const GrammarWork scope(*grammar_, &epoch_, Task::kAccept, grammar_->mask_work());
  return epoch_->limits->way(s).tokens != Limits::kNever;
}

// The room is made first: what throws changes nothing.
void Matcher::push(StateId s, TokenId t, std::string_view text) {
  const auto room = [](auto& list) {
    if (list.size() == list.capacity()) list.reserve(2 * list.size() + 8);
  };
  room(history_);
  room(tokens_);
  if (!grammar_->captures().empty()) {
    room(ends_);
    text_.reserve(text_.size() + text.size());
    text_ += text;
    ends_.push_back(text_.size());
  }
  history_.push_back(s);
  tokens_.push_back(t);
}

bool Matcher::walks(StateId& s, std::string_view bytes) const {
  for (char b : bytes) {
    if (s == Parser::dead()) break;
    s = epoch_->parser.peek(s, static_cast<uint8_t>(b));
    if (s == Parser::unknown()) return false;
  }
  return true;
}

bool Matcher::known(std::span<const TokenId> tokens) const {
  if (epoch_->limits) return false;
  const Vocabulary& v = grammar_->vocabulary();
  StateId s = current();
  for (TokenId t : tokens) {
    if (t < 0 || static_cast<uint32_t>(t) >= v.size() || is_terminated() || ends(t)) break;
    if (!walks(s, v.bytes(t))) return false;
    if (s == Parser::dead()) break;
  }
  return true;
}

bool Matcher::known(std::string_view bytes) const {
  if (is_terminated()) return true;
  StateId s = current();
  return !epoch_->limits && !epoch_->parser.edged() && walks(s, bytes);
}

bool Matcher::accept_token(TokenId t) {
  const Vocabulary& v = grammar_->vocabulary();
  if (t < 0 || static_cast<uint32_t>(t) >= v.size()) return false;
  if (is_terminated()) {
    // Padding ids carry no text.
    if (!goes_on_after_end_ && !ends(t) && !v.is_special(t) && !v.bytes(t).empty()) return false;
    push(current(), t, {});
    ++terminated_;
    return true;
  }
  if (ends(t)) {
    if (!is_accepting()) return false;
    push(current(), t, {});
    ++terminated_;
    return true;
  }
  const std::string_view bytes = v.bytes(t);
  if (bytes.empty()) return false;
  if (!undone_.empty() && undone_.back().token == t && undone_.back().before == current()) {
    const StateId again = undone_.back().after;
    push(again, t, bytes);
    undone_.pop_back();
    return true;
  }
  StateId s = epoch_->limits ? accept_limited(t) : walk_on(bytes);
  if (s == Parser::dead() && vouched(t)) s = walk_vouched(bytes);
  if (s == Parser::dead() || (epoch_->spelling && !spellable(s))) return false;
  push(s, t, bytes);
  undone_.clear();
  return true;
}

namespace {
// Takes back what was accepted since, unless it is to stay.
class Attempt {
 public:
  explicit Attempt(Matcher& m) : matcher_(m), before_(m.history()) {}
  ~Attempt() {
    if (!kept_) matcher_.rollback(matcher_.history() - before_);
  }
  Attempt(const Attempt&) = delete;
  Attempt& operator=(const Attempt&) = delete;
  void keep() { kept_ = true; }

 private:
  Matcher& matcher_;
  const std::size_t before_;
  bool kept_ = false;
};
}  // namespace

bool Matcher::accept_tokens(std::span<const TokenId> tokens) {
  Attempt attempt(*this);
  for (TokenId t : tokens)
    if (!accept_token(t)) return false;
  attempt.keep();
  return true;
}

bool Matcher::accept_bytes(std::string_view bytes) {
  if (is_terminated()) return bytes.empty();
  if (bytes.find(kSpecialMark) != std::string_view::npos) return false;
  if (epoch_->parser.marked() && bytes.find(static_cast<char>(kEdge)) != std::string_view::npos) return false;
  const StateId s = walk_text(current(), bytes);
  if (s == Parser::dead() || !completable(s)) return false;
  push(s, -1, bytes);
  undone_.clear();
  return true;
}

std::size_t Matcher::validate_tokens(std::span<const TokenId> tokens) {
  const Attempt attempt(*this);
  std::size_t n = 0;
  while (n < tokens.size() && accept_token(tokens[n])) ++n;
  return n;
}

std::size_t Matcher::validate_bytes(std::string_view bytes) {
  if (is_terminated()) return 0;
  StateId s = current();
  std::size_t n = 0;
  std::vector<StateId> on;  // behind each byte, where not every state can be completed
  for (; n < bytes.size() && bytes[n] != kSpecialMark; ++n) {
    if (static_cast<uint8_t>(bytes[n]) == kEdge) break;
    s = walk_text(s, bytes.substr(n, 1));
    if (s == Parser::dead()) break;
    if (epoch_->limits) on.push_back(s);
  }
  while (n > 0 && !on.empty() && !completable(on[n - 1])) --n;
  return n;
}

void Matcher::rollback(std::size_t n) {
  if (n > history())
    throw Error(ErrorKind::kValue, "cannot roll back " + std::to_string(n) + " steps, only " +
                                       std::to_string(history()) + " were accepted");
  if (grammar_->subset()) {
    try {                                              // a rollback never fails, it ends calls that do
      for (std::size_t i = terminated_; i < n; ++i) {  // an end is no step
        const std::size_t at = history() - 1 - i;
        undone_.push_back({tokens_[at], history_[at], history_[at + 1]});
      }
    } catch (const std::bad_alloc&) {
      undone_.clear();
    }
  }
  history_.resize(history_.size() - n);
  tokens_.resize(history());
  if (!ends_.empty()) {
    ends_.resize(history());
    text_.resize(ends_.empty() ? 0 : ends_.back());
  }
  terminated_ -= std::min(terminated_, n);
}

std::vector<Capture> Matcher::captures() {
  if (grammar_->captures().empty()) return {};
  const Captures captures(*grammar_, text_, ends_, tokens_, is_terminated() || is_accepting());
  const WorkScope scope(Task::kCaptures,
                        10 * std::min(Meter::kEndless / 10, reading_work(captures.length())));
  if (!captures.needs_epoch()) return captures.of(captures.spans(nullptr));
  std::vector<Span> spans;
  {
    std::lock_guard hold(grammar_->world().lock);
    refresh();
    spans = captures.spans(epoch_.get());
  }
  return captures.of(spans);
}

void Matcher::reset() { rollback(history()); }

bool Matcher::is_accepting() const { return epoch_->parser.state(current()).accepting; }

bool Matcher::fill_row_fast(uint32_t* row) {
  if (request_tokens_ != Request::kAny && !is_terminated() && !loose_within(left())) return false;
  if (!plain_row_fast(row)) return false;
  if (own_ends_) own_ends_->relabel(row);
  return true;
}

void Matcher::fill_row(uint32_t* row) {
  if (request_tokens_ != Request::kAny && !is_terminated()) {
    if (fill_row_within(row, left())) return;
    throw Error(ErrorKind::kUnsatisfiableBudget,
                "the text cannot be completed within the " + std::to_string(left()) +
                    " tokens that are left of max_tokens=" + std::to_string(request_tokens_));
  }
  plain_row(row);
  if (own_ends_) own_ends_->relabel(row);
}

bool Matcher::plain_row_fast(uint32_t* row) {
  const Vocabulary& v = grammar_->vocabulary();
  if (is_terminated()) {
    std::memset(row, 0, v.words() * 4ull);
    for (TokenId t : v.eos()) row[static_cast<uint32_t>(t) >> 5] |= 1u << (t & 31);
    return true;
  }
  exact_ = true;
  if (!epoch_->fast) return false;
  const Mask* m = epoch_->masks.peek(current());
  if (!m || by_text()) return false;
  write_row(*m, v, row);
  return !starved(row);
}

// Whether the mask has to be looked at token by token: what was too much to tell of a captured text is left
// out where that text is read, and a mask is made for all texts.
bool Matcher::by_text() const {
  return takes_part() && grammar_->narrowed() && epoch_->parser.state(current()).capturing;
}

// Takes tokens out of a row that read behind a captured text what was left out for it.
void Matcher::keep_read(uint32_t* row) {
  const Vocabulary& v = grammar_->vocabulary();
  const auto reads = [&](std::string_view bytes) {
    try {
      StateId s = current();
      for (char b : bytes) s = epoch_->parser.step(s, static_cast<uint8_t>(b));
      return s != Parser::dead();
    } catch (const Error& e) {
      if (!e.is_limit()) throw;
      return false;
    }
  };
  std::lock_guard hold(grammar_->world().lock);
  for (uint32_t w = 0; w < v.words(); ++w)
    for (uint32_t bits = row[w]; bits; bits &= bits - 1) {
      const uint32_t t = w * 32 + static_cast<uint32_t>(std::countr_zero(bits));
      const std::string_view bytes = v.bytes(static_cast<TokenId>(t));
      if (bytes.find_first_of("\",]}") == std::string_view::npos || reads(bytes)) continue;
      row[w] &= ~(1u << (t & 31));
      exact_ = false;
    }
}

// Whether nothing is left of a mask from which something was left out. That is no answer: some() finds a
// token.
bool Matcher::starved(const uint32_t* row) const {
  if (!takes_part() || !grammar_->narrowed()) return false;
  return std::all_of(row, row + grammar_->vocabulary().words(), [](uint32_t word) { return word == 0; });
}

void Matcher::plain_row(uint32_t* row) {
  if (plain_row_fast(row)) return;
  exact_ = true;
  try {
    const GrammarWork scope(*grammar_, &epoch_, Task::kMask, grammar_->mask_work());
    if (!epoch_->spelling) return row_by_bytes(row);
    std::lock_guard hold(grammar_->world().lock);
    refresh();
    epoch_->spelling->fill(current(), row);
  } catch (const Error& e) {
    if (!e.is_limit() || !grammar_->subset()) throw;
    if (takes_part()) return part_of_row(row);
    // What was judged is kept, and a text that was begun does not stop for the rest.
    std::lock_guard hold(grammar_->world().lock);
    const GrammarWork scope(*grammar_, &epoch_, Task::kMask, ending_work());
    refresh();
    if (epoch_->limits)
      epoch_->limits->fill(current(), row);
    else
      epoch_->spelling->fill(current(), row);
  }
}

// Whether a mask that is too much may be a part of it.
bool Matcher::takes_part() const { return grammar_->subset() && !epoch_->limits && !epoch_->spelling; }

// Some tokens of a mask that was too much: with as much work again, by one way of several to read on, and
// with more work where that finds none.
void Matcher::part_of_row(uint32_t* row) {
  exact_ = false;
  std::lock_guard hold(grammar_->world().lock);
  const Narrowing watch(*grammar_);
  const auto some = [&](StateId s) {
    try {
      const GrammarWork scope(*grammar_, &epoch_, Task::kMask, grammar_->mask_work());
      epoch_->masks.some(s, row);
      return true;
    } catch (const Error& e) {
      if (!e.is_limit()) throw;
      return false;
    }
  };
  if (some(current()) || take_way(ways(), some)) return;
  const GrammarWork scope(*grammar_, &epoch_, Task::kMask, ending_work());
  epoch_->masks.some(current(), row);
}

void Matcher::some_of_row(StateId s, uint32_t* row) {
  std::lock_guard hold(grammar_->world().lock);
  const GrammarWork scope(*grammar_, &epoch_, Task::kMask, grammar_->mask_work());
  epoch_->masks.some(s, row);
}

// The ways to read on from here, one state each; under the lock. An ambiguous grammar can have so many that
// no step of them all is within a limit. Under a budget the ways are those that end soonest by the bounds
// that told of it, the soonest first: what is taken must end in time, too.
std::vector<StateId> Matcher::ways() {
  constexpr std::size_t kWays = 8;
  std::vector<std::pair<uint32_t, StateId>> found;
  const bool soon = budgeted_ && epoch_->fast;
  // f(); 0 where it was too much.
  const auto bounded = [&](auto&& f) {
    if (!soon) return decltype(f()){0};
    try {
      const GrammarWork scope(*grammar_, &epoch_, Task::kBudget, grammar_->mask_work());
      return f();
    } catch (const Error& e) {
      if (!e.is_limit()) throw;
      return decltype(f()){0};
    }
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

// Takes the first of which f(state) is true, and no other from here on.
bool Matcher::take_way(const std::vector<StateId>& ways, const std::function<bool(StateId)>& f) {
  const Undo moves([this, before = std::exchange(stays_, true)] { stays_ = before; });
  for (const StateId one : ways) {
    Undo back([this, all = current()] { history_.back() = all; });
    history_.back() = one;
    if (!f(one)) continue;
    grammar_->narrow();
    back.keep();
    return true;
  }
  return false;
}

void Matcher::row_by_bytes(uint32_t* row) {
  const Vocabulary& v = grammar_->vocabulary();
  std::unique_lock hold(grammar_->world().lock);
  refresh();
  if (epoch_->limits) return epoch_->limits->fill(current(), row);
  if (grammar_->world().cache) {
    const Mask* m = nullptr;
    {
      const Narrowing watch(*grammar_);
      m = epoch_->masks.mask(current());
    }
    hold.unlock();
    write_row(*m, v, row);
  } else {
    Mask m;
    std::vector<TokenId> scratch;
    epoch_->masks.uncached(current(), scratch, m);
    write_row(m, v, row);
    hold.unlock();
  }
  if (by_text()) keep_read(row);
  if (starved(row)) throw Error(ErrorKind::kBudgetExceeded, "this mask takes too much work to tell");
}

ByteSet Matcher::live(bool inside) {
  if (is_terminated()) return {};
  std::lock_guard hold(grammar_->world().lock);
  const GrammarWork scope(*grammar_, &epoch_, Task::kForced, grammar_->mask_work());
  ByteSet live = epoch_->parser.live(epoch_->limits && !inside ? epoch_->parser.begin_token(current())
                                                               : epoch_->parser.at_edge(current()));
  live.remove(static_cast<uint8_t>(kSpecialMark));
  live.remove(kEdge);
  return live;
}

std::string Matcher::forced_bytes(std::size_t limit) {
  std::string out;
  // Where an edge may be, what has to come depends on how the text is cut.
  if (is_terminated() || epoch_->parser.edged()) return out;
  std::lock_guard hold(grammar_->world().lock);
  const GrammarWork scope(*grammar_, &epoch_, Task::kForced, grammar_->mask_work());
  StateId s = epoch_->limits ? epoch_->parser.begin_token(current()) : current();
  while (out.size() < limit && !epoch_->parser.state(s).accepting) {
    const ByteSet live = epoch_->parser.live(s);
    if (live.count() != 1 || live.has(static_cast<uint8_t>(kSpecialMark))) break;
    const uint8_t b = static_cast<uint8_t>(live.first());
    out.push_back(static_cast<char>(b));
    s = epoch_->parser.step(s, b);
  }
  return out;
}

std::vector<TokenId> Matcher::tail(std::size_t most) const {
  std::size_t n = 0;
  const Vocabulary& v = grammar_->vocabulary();
  while (n < most && n < tokens_.size()) {
    const TokenId t = tokens_[tokens_.size() - 1 - n];
    if (t < 0 || v.is_special(t) || v.is_eos(t)) break;
    ++n;
  }
  return {tokens_.end() - static_cast<std::ptrdiff_t>(n), tokens_.end()};
}

std::vector<std::size_t> Matcher::open_places(std::string_view text, std::string_view forced) {
  std::lock_guard hold(grammar_->world().lock);
  const GrammarWork scope(*grammar_, &epoch_, Task::kForced, grammar_->mask_work());
  refresh();
  StateId s = current();
  for (char b : forced) s = epoch_->parser.step(s, static_cast<uint8_t>(b));
  return structgen::open_places(grammar_->vocabulary(), epoch_->parser, s, text);
}

// ---- budgets: what of them needs the lock and no step of this sequence is in engine/budget.cc ----

// The object of one call; under the lock.
Budget Matcher::budget() {
  refresh();
  budgeted_ = true;
  return Budget(*grammar_, *epoch_, history_, tokens_);
}

Matcher::Bounds Matcher::tokens_needed(bool search) {
  if (is_terminated()) return {0, 0};
  std::lock_guard hold(grammar_->world().lock);
  const GrammarWork scope(*grammar_, &epoch_, Task::kBudget, ending_work());
  return budget().bounds(search);
}

std::optional<bool> Matcher::fits(std::size_t tokens) {
  if (is_terminated()) return true;
  std::lock_guard hold(grammar_->world().lock);
  const GrammarWork scope(*grammar_, &epoch_, Task::kBudget, ending_work());
  return budget().fits(tokens);
}

std::string Matcher::shortest_completion() {
  if (is_terminated()) return {};
  std::lock_guard hold(grammar_->world().lock);
  const GrammarWork scope(*grammar_, &epoch_, Task::kCompletion, completion_work());
  refresh();
  if (!epoch_->limits) return epoch_->completion.of(current());
  std::string out;
  for (TokenId t : epoch_->limits->tokens(current())) out += grammar_->vocabulary().bytes(t);
  return out;
}

// Runs f(Budget), which makes a row; under the lock.
template <class F>
bool Matcher::budgeted(const F& f) {
  std::lock_guard hold(grammar_->world().lock);
  Budget now(*grammar_, *epoch_, history_, tokens_);
  const bool found = f(now);
  if (!now.exact()) exact_ = false;
  return found;
}

bool Matcher::keep_promise(uint32_t* row, std::size_t tokens) {
  return budgeted([&](Budget& now) { return now.keep_promise(row, tokens); });
}

// A text that could go on like this was told by bounds that it may.
bool Matcher::bounded_row(std::span<const uint32_t> plain, uint32_t* row, std::size_t tokens) {
  return budgeted([&](Budget& now) { return now.bound(plain, row, tokens); });
}

bool Matcher::narrow_row(uint32_t* row, std::size_t tokens, Allowance work) {
  std::lock_guard hold(grammar_->world().lock);
  const GrammarWork scope(*grammar_, &epoch_, Task::kBudget, work);
  Budget now = budget();
  const bool found = now.narrow(row, tokens, grammar_->subset() && grammar_->narrowed());
  if (!now.exact()) exact_ = false;
  return found;
}

bool Matcher::fill_row_within(uint32_t* row, std::size_t budget) {
  const std::size_t most = request_tokens_ == Request::kAny ? budget : std::min(budget, left());
  if (!row_within(row, most)) return false;
  if (own_ends_) own_ends_->relabel(row);
  return true;
}

bool Matcher::loose_within(std::size_t budget) {
  const uint32_t loose = epoch_->parser.state(current()).loose.load(std::memory_order_acquire);
  if (!epoch_->fast || loose == 0 || budget < loose || grammar_->narrowed()) return false;
  budgeted_ = true;
  return true;
}

// Masks that are made from here on come with what their tokens need, at most.
void Matcher::measure() {
  if (!epoch_->fast) return;
  std::lock_guard hold(grammar_->world().lock);
  refresh();
  epoch_->masks.measure_with(&epoch_->lengths);
}

// With the vocabulary's end tokens.
bool Matcher::row_within(uint32_t* row, std::size_t budget) {
  budgeted_ = true;
  if (epoch_->limits && !is_terminated()) {
    std::lock_guard hold(grammar_->world().lock);
    const GrammarWork scope(*grammar_, &epoch_, Task::kBudget, ending_work());
    refresh();
    return Budget(*grammar_, *epoch_, history_, tokens_).fill_limited(row, budget);
  }
  exact_ = true;
  try {
    const GrammarWork scope(*grammar_, &epoch_, Task::kMask, grammar_->mask_work());
    if (!plain_row_fast(row)) {
      measure();
      row_by_bytes(row);
    }
  } catch (const Error& e) {
    if (!e.is_limit()) throw;
    if (keep_promise(row, budget)) return true;
    if (!grammar_->subset()) throw;
    if (takes_part()) {
      part_of_row(row);
    } else {  // a text that was begun does not stop for it
      const GrammarWork scope(*grammar_, &epoch_, Task::kMask, ending_work());
      row_by_bytes(row);
    }
  }
  if (is_terminated() || loose_within(budget)) return true;
  // What is not judged in time is refused: a subset.
  const std::vector<uint32_t> plain(row, row + grammar_->vocabulary().words());
  if (!grammar_->subset()) {
    try {
      return narrow_row(row, budget, ending_work());
    } catch (const Error& e) {
      if (!e.is_limit() || !(keep_promise(row, budget) || bounded_row(plain, row, budget))) throw;
    }
    return true;
  }
  try {
    return narrow_row(row, budget, grammar_->mask_work());
  } catch (const Error& e) {
    if (!e.is_limit()) throw;
    if (keep_promise(row, budget)) return true;
  }
  const auto within = [&](StateId way) {
    try {
      some_of_row(way, row);
      return narrow_row(row, budget, grammar_->mask_work());
    } catch (const Error& e) {
      if (!e.is_limit()) throw;
      return false;
    }
  };
  std::vector<StateId> known;
  {
    std::lock_guard hold(grammar_->world().lock);
    known = ways();
  }
  if (take_way(known, within)) {
    exact_ = false;
    return true;
  }
  if (bounded_row(plain, row, budget)) return true;
  std::copy(plain.begin(), plain.end(), row);
  return narrow_row(row, budget, ending_work());
}

// The first completion of a grammar may take much more than a mask; what is learnt on the way stays. A text
// that was begun must not stop for it, however small the limit is.
Allowance Matcher::ending_work() const {
  constexpr int64_t kTimes = 50, kLeast = 10'000'000;
  const int64_t set = std::min(grammar_->mask_work(), Meter::kEndless / kTimes);
  return {grammar_->subset() ? std::max(kTimes * set, kLeast) : kTimes * set, set};
}

// A completion that is asked for: a second, however often that the limit would allow, or the limit.
Allowance Matcher::completion_work() const {
  constexpr int64_t kMost = 10'000'000;
  const int64_t set = grammar_->mask_work();
  if (set >= kMost) return set;
  return {std::min(ending_work().units, kMost), set};
}

}  // namespace structgen
