// What a matcher adds to its sequence: the limit and the end tokens of the request, the text for captures,
// bytes that come without tokens, and the promise that an error changes nothing.
//
//     accept_token()     an end token, padding behind the end, or text: the row source reads it
//                        (engine/row_source.h), the sequence keeps the state (engine/sequence.h)
//     accept_bytes()     text whose tokens are not known: behind_text() steps byte by byte, and each byte may
//                        be the edge between two tokens
//     fill_row()         the row source's mask; with a limit of the request, its mask within what is left
//     captures()         the grammar's notes, read afterwards from the text that was kept (parse/spans.h)
//
// The hot path is fill_row_fast() and known(): a mask or a step that is known takes no lock. A part of a call
// that makes states or masks holds the lock of the grammar's world, and has a limit of work, which depends on
// the kind of call (LockedWork). A call may take the lock several times.
//
// Invariants.
// - A call that throws leaves the matcher as it was: room is made before anything is taken (take()).
// - One entry of the history is one token, one accept_bytes() or one token behind the end; rollback()
//   takes back entries of any kind.
// - The row source is chosen once a grammar, so no call asks for the grammar's features.
//
// Costs. A known step takes about 0.1 us; a known mask takes a copy of V/8 bytes.
#include "engine/matcher.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "base/told.h"
#include "base/work.h"
#include "engine/captures.h"
#include "engine/open_places.h"

namespace structgen {

namespace {
// How deep the search for a completion that a user asks for may nest rules, if the stack allows it. An object
// with 5,000 required keys needs this depth.
constexpr uint32_t kDeepRecursion = 15'000;
}  // namespace

Matcher::Matcher(std::shared_ptr<Grammar> grammar, Request request)
    : grammar_(std::move(grammar)),
      rows_(&row_source(*grammar_)),
      sequence_(grammar_),
      request_tokens_(request.tokens),
      goes_on_after_end_(request.goes_on_after_end) {
  if (!request.ends.empty())
    own_ends_ = std::make_shared<const Ends>(grammar_->vocabulary(), std::move(request.ends));
}

// Reads bytes that come without tokens. A token may end behind each byte. If reading takes too much work in a
// world that omits, the bytes are read again with more work, because a begun text must go on.
StateId Matcher::behind_text(StateId s, std::string_view bytes) {
  const auto locked = [&](Allowance limit) {
    const LockedWork work(sequence_, Task::kAccept, limit);
    Parser& parser = epoch().parser;
    StateId at = s;
    for (char b : bytes) {
      at = parser.step(parser.at_edge(at), static_cast<uint8_t>(b));
      if (at == Parser::dead()) break;
    }
    return at;
  };
  Told<StateId> to = told([&] {
    return epoch().parser.edged() ? locked(grammar_->reading_work(bytes.size())) : sequence_.behind(s, bytes);
  });
  return to || !grammar_->omits() ? std::move(to).value() : locked(grammar_->ending_work());
}

bool Matcher::known(std::span<const TokenId> tokens) const {
  if (rows_->mortal() || sequence_.lenient()) return false;
  const Vocabulary& v = grammar_->vocabulary();
  StateId s = current();
  for (TokenId t : tokens) {
    if (t < 0 || static_cast<uint32_t>(t) >= v.size() || is_terminated() || ends(t)) break;
    if (!sequence_.moves(s, v.bytes(t))) return false;
    if (s == Parser::dead()) break;
  }
  return true;
}

bool Matcher::known(std::string_view bytes) const {
  if (is_terminated()) return true;
  if (sequence_.lenient()) return false;
  StateId s = current();
  return !rows_->mortal() && !epoch().parser.edged() && sequence_.moves(s, bytes);
}

// Calls `push`, which takes a step or returns false. If it took one and the grammar has captures, `text` is
// kept for them. Memory for `text` is reserved first, so that an error changes nothing.
template <class F>
bool Matcher::take(std::string_view text, const F& push) {
  const bool keeps = !grammar_->captures().empty();
  if (keeps) {
    if (ends_.size() == ends_.capacity()) ends_.reserve(2 * ends_.size() + 8);
    text_.reserve(text_.size() + text.size());
  }
  if (!push()) return false;
  if (keeps) {
    text_ += text;
    ends_.push_back(text_.size());
  }
  return true;
}

bool Matcher::take(StateId s, TokenId t, std::string_view text) {
  return take(text, [&] {
    sequence_.push(s, t, text.size());
    return true;
  });
}

bool Matcher::accept_token(TokenId t) {
  const Vocabulary& v = grammar_->vocabulary();
  if (t < 0 || static_cast<uint32_t>(t) >= v.size()) return false;
  if (is_terminated() || ends(t)) {
    // Behind the end, tokens without text are accepted as padding.

    if (is_terminated() ? !goes_on_after_end_ && !ends(t) && !v.is_special(t) && !v.bytes(t).empty()
                        : !is_accepting())
      return false;
    take(sequence_.top(), t, {});
    ++terminated_;
    return true;
  }
  const std::string_view bytes = v.bytes(t);
  if (bytes.empty()) return false;
  // If this is the token that was just rolled back, the step leads to its old state again. A new step could
  // run out of work.
  if (take(bytes, [&] { return sequence_.redo(t); })) return true;
  const StateId s = rows_->read(sequence_, t);
  if (s == Parser::dead()) return false;
  take(s, t, bytes);
  sequence_.forget_undone();
  return true;
}

namespace {
// When an Attempt is destroyed, it takes back all steps that were made since it was made, unless keep() was
// called.
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
  // The bytes of a special token's path would be read as this token. Only the token itself may be read so.
  if (bytes.find(kSpecialMark) != std::string_view::npos) return false;
  if (epoch().parser.marked() && bytes.find(static_cast<char>(kEdge)) != std::string_view::npos) return false;
  const StateId s = sequence_.lenient() ? sequence_.read(bytes) : behind_text(current(), bytes);
  if (s == Parser::dead() || !rows_->completable(sequence_, s, bytes.size())) return false;
  take(s, -1, bytes);
  sequence_.forget_undone();
  return true;
}

// Accepts a token of a draft, unless the mask within the budget forbids it. fits() often decides this without
// the mask.
bool Matcher::accept_in_time(TokenId t) {
  if (!has_budget() || is_terminated() || loose_within(sequence_, left())) return accept_token(t);
  const std::size_t most = left();
  if (most == 0 || !accept_token(t)) return false;
  if (is_terminated()) return true;
  // fits() would read a lenient text again as a whole, so the mask is made instead.
  const std::optional<bool> fit =
      sequence_.lenient() ? std::nullopt : told([&] { return fits(most - 1); }).value_or(std::nullopt);
  if (fit == true) return true;
  rollback(1);
  if (fit) return false;
  std::vector<uint32_t> row(grammar_->vocabulary().words());
  const bool exact = std::exchange(exact_, true);
  const bool made = static_cast<bool>(told([&] { fill_row(row.data()); }));
  exact_ = exact;
  return made && (row[static_cast<uint32_t>(t) >> 5] >> (t & 31) & 1) && accept_token(t);
}

std::size_t Matcher::validate_tokens(std::span<const TokenId> tokens) {
  const Attempt attempt(*this);
  std::size_t n = 0;
  while (n < tokens.size() && accept_in_time(tokens[n])) ++n;
  return n;
}

std::size_t Matcher::validate_bytes(std::string_view bytes) {
  if (is_terminated()) return 0;
  sequence_.settle();
  StateId s = current();
  std::size_t n = 0;
  // The states behind the bytes. With unproven productions, some of them may have no completion.
  std::vector<StateId> on;
  for (; n < bytes.size() && bytes[n] != kSpecialMark; ++n) {
    if (static_cast<uint8_t>(bytes[n]) == kEdge) break;
    s = behind_text(s, bytes.substr(n, 1));
    if (s == Parser::dead()) break;
    if (rows_->mortal()) on.push_back(s);
  }
  while (n > 0 && !on.empty() && !rows_->completable(sequence_, on[n - 1], n)) --n;
  return n;
}

void Matcher::rollback(std::size_t n) {
  if (n > history())
    throw Error(ErrorKind::kValue, "cannot roll back " + std::to_string(n) + " steps, only " +
                                       std::to_string(history()) + " were accepted");
  sequence_.pop(n, std::min(terminated_, n));
  if (!ends_.empty()) {
    ends_.resize(history());
    text_.resize(ends_.empty() ? 0 : ends_.back());
  }
  terminated_ -= std::min(terminated_, n);
}

std::vector<Capture> Matcher::captures() {
  if (grammar_->captures().empty()) return {};
  const Captures captures(*grammar_, text_, ends_, sequence_.tokens(), is_terminated() || is_accepting());
  const WorkScope scope(Task::kCaptures,
                        10 * std::min(Meter::kEndless / 10, grammar_->reading_work(captures.length())));
  if (!captures.needs_epoch()) return captures.of(captures.spans(nullptr));
  std::vector<Span> spans;
  {
    std::lock_guard hold(grammar_->world().lock);
    sequence_.refresh();
    spans = captures.spans(sequence_.epoch().get());
  }
  return captures.of(spans);
}

void Matcher::reset() { rollback(history()); }

bool Matcher::is_accepting() const {
  return epoch().parser.state(sequence_.top()).accepting && grammar_->bytes().has(sequence_.bytes());
}

void Matcher::ended_row(uint32_t* row) const {
  const Vocabulary& v = grammar_->vocabulary();
  std::memset(row, 0, v.words() * 4ull);
  for (TokenId t : v.eos()) set_bit(row, t);
}

bool Matcher::fill_row_fast(uint32_t* row, std::size_t budget) {
  if (is_terminated()) {
    ended_row(row);
  } else {
    const std::size_t most = request_tokens_ == Request::kAny ? budget : std::min(budget, left());
    if (most != Request::kAny && !loose_within(sequence_, most)) return false;
    Row made{row};
    if (!rows_->known(sequence_, made)) return false;
    exact_ = true;
  }
  if (own_ends_) own_ends_->relabel(row);
  return true;
}

void Matcher::fill_row(uint32_t* row) {
  if (is_terminated()) {
    ended_row(row);
  } else if (request_tokens_ != Request::kAny) {
    if (fill_row_within(row, left())) return;
    // In a partial grammar a shorter text may have been omitted, so a bound proves nothing.
    const bool partial = grammar_->partial();
    throw Error(partial ? ErrorKind::kBudgetExceeded : ErrorKind::kUnsatisfiableBudget,
                "the text cannot be completed within the " + std::to_string(left()) +
                    " tokens that are left of max_tokens=" + std::to_string(request_tokens_) +
                    (partial ? " by what is in the subset; raise Limits(mask=...)" : ""));
  } else {
    Row made{row};
    rows_->fill(sequence_, made);
    exact_ = made.exact;
  }
  if (own_ends_) own_ends_->relabel(row);
}

bool Matcher::fill_row_within(uint32_t* row, std::size_t budget) {
  sequence_.note_budget();
  if (is_terminated()) {
    ended_row(row);
  } else {
    Row made{row};
    const std::size_t most = request_tokens_ == Request::kAny ? budget : std::min(budget, left());
    if (!rows_->within(sequence_, made, most)) return false;
    exact_ = made.exact;
  }
  if (own_ends_) own_ends_->relabel(row);
  return true;
}

Matcher::Replay Matcher::replay(std::span<const TokenId> tokens, std::size_t most) {
  const std::size_t words = grammar_->vocabulary().words();
  sequence_.leave();
  Replay out;
  out.of.reserve(tokens.size());
  // The index of the row of each state met so far. A row is used again where the state alone decides the
  // mask.
  std::unordered_map<uint32_t, int32_t> rows_of_states;
  std::shared_ptr<Epoch> since = sequence_.epoch();
  std::unordered_multimap<std::size_t, int32_t> rows_by_hash;
  std::vector<uint32_t> row(words);
  const std::string_view bytes(reinterpret_cast<const char*>(row.data()), words * 4);

  const auto place = [&] {
    const std::size_t hash = std::hash<std::string_view>{}(bytes);
    const auto [first, last] = rows_by_hash.equal_range(hash);
    for (auto it = first; it != last; ++it)
      if (std::memcmp(&out.rows[static_cast<std::size_t>(it->second) * words], row.data(), bytes.size()) == 0)
        return it->second;
    if ((out.rows.size() + words) * 4 > most)
      throw Error(ErrorKind::kBudgetExceeded,
                  "the distinct masks of the text take more than " + std::to_string(most) + " bytes");
    const int32_t made = static_cast<int32_t>(out.rows.size() / words);
    out.rows.insert(out.rows.end(), row.begin(), row.end());
    rows_by_hash.emplace(hash, made);
    return made;
  };
  const auto by_state = [&] {
    return !is_terminated() && request_tokens_ == Request::kAny && !rows_->mortal() && !grammar_->partial();
  };
  for (TokenId t : tokens) {
    if (since != sequence_.epoch()) {
      since = sequence_.epoch();
      rows_of_states.clear();
    }
    const auto seen = by_state() ? rows_of_states.find(current().v) : rows_of_states.end();
    int32_t at;
    if (seen != rows_of_states.end()) {
      at = seen->second;
    } else {
      const bool known = fill_row_fast(row.data());
      if (!known) fill_row(row.data());
      at = place();
      // Making a row may move the sequence to another epoch, in which states have other numbers.
      if (known && by_state()) rows_of_states.emplace(current().v, at);
    }
    // The replay stops in front of a token that the mask forbids, even if the parser could read it.
    if (t < 0 || static_cast<std::size_t>(t) / 32 >= words ||
        !(out.rows[static_cast<std::size_t>(at) * words + static_cast<std::size_t>(t) / 32] >> (t % 32) &
          1) ||
        !accept_token(t))
      break;
    out.of.push_back(at);
  }
  return out;
}

// Returns the bytes that may follow the state s, which stands `bytes` bytes behind the text. The caller holds
// the world's lock.
ByteSet Matcher::live_at(StateId s, std::size_t bytes) {
  ByteSet live = epoch().parser.live(s);
  live.remove(static_cast<uint8_t>(kSpecialMark));
  live.remove(kEdge);
  if (!grammar_->of_any_length()) return live;
  Budget now = budget();
  ByteSet out;
  live.for_each([&](uint8_t b) {
    const StateId to = epoch().parser.step(s, b);
    if (to != Parser::dead() && now.completable(to, bytes + 1)) out.add(b);
  });
  return out;
}

uint64_t Matcher::number(StateId s, std::size_t bytes) {
  const ByteRange& range = grammar_->bytes();
  if (range.most == ByteRange::kAny) bytes = std::min(bytes, range.least);
  return epoch().serial << 32 | (grammar_->of_any_length() ? epoch().number(s, bytes) : s.v);
}

uint64_t Matcher::state() {
  sequence_.settle();
  if (!grammar_->of_any_length()) return number(current(), 0);
  std::lock_guard hold(grammar_->world().lock);
  return number(current(), sequence_.bytes());
}

ByteSet Matcher::live(bool inside) {
  if (is_terminated()) return {};
  sequence_.settle();
  const LockedWork work(sequence_, Task::kForced, grammar_->mask_work());
  return live_at(epoch().budgets.limits && !inside ? epoch().parser.begin_token(current())
                                                   : epoch().parser.at_edge(current()),
                 0);
}

std::vector<std::pair<std::string, uint64_t>> Matcher::successors() {
  std::vector<std::pair<std::string, uint64_t>> out;
  if (epoch().budgets.limits || epoch().parser.edged())
    throw Error(ErrorKind::kGrammar,
                "the texts behind a byte depend on tokens: the grammar limits tokens (max_tokens)");
  if (is_terminated()) return out;
  sequence_.settle();
  const LockedWork work(sequence_, Task::kForced, grammar_->mask_work());
  sequence_.refresh();
  Parser& parser = epoch().parser;
  const StateId from = current();
  std::unordered_map<uint32_t, std::size_t> places;
  live_at(from, 0).for_each([&](uint8_t b) {
    const StateId to = parser.step(from, b);
    if (to == Parser::dead()) return;
    const auto [place, added] = places.try_emplace(to.v, out.size());
    if (added) out.emplace_back(std::string(), number(to, sequence_.bytes() + 1));
    out[place->second].first.push_back(static_cast<char>(b));
  });
  return out;
}

std::string Matcher::forced_bytes(std::size_t limit) {
  std::string out;
  // In a grammar with edges the forced bytes depend on where tokens end.
  if (is_terminated() || epoch().parser.edged()) return out;
  sequence_.settle();
  const LockedWork work(sequence_, Task::kForced, grammar_->mask_work());
  StateId s = epoch().budgets.limits ? epoch().parser.begin_token(current()) : current();
  while (out.size() < limit) {
    if (epoch().parser.state(s).accepting && grammar_->bytes().has(sequence_.bytes() + out.size())) break;
    const ByteSet any = epoch().parser.live(s);
    if (any.has(static_cast<uint8_t>(kSpecialMark)) || any.has(kEdge)) break;
    const ByteSet live = grammar_->of_any_length() ? live_at(s, out.size()) : any;
    if (live.count() != 1) break;
    const uint8_t b = static_cast<uint8_t>(live.first());
    out.push_back(static_cast<char>(b));
    s = epoch().parser.step(s, b);
  }
  return out;
}

std::vector<TokenId> Matcher::tail(std::size_t most) const {
  std::size_t n = 0;
  const Vocabulary& v = grammar_->vocabulary();
  while (n < most && n < sequence_.tokens().size()) {
    const TokenId t = sequence_.tokens()[sequence_.tokens().size() - 1 - n];
    if (t < 0 || v.is_special(t) || v.is_eos(t)) break;
    ++n;
  }
  return {sequence_.tokens().end() - static_cast<std::ptrdiff_t>(n), sequence_.tokens().end()};
}

std::vector<std::size_t> Matcher::open_places(std::string_view text, std::string_view forced) {
  sequence_.settle();
  const LockedWork work(sequence_, Task::kForced, grammar_->mask_work());
  sequence_.refresh();
  const StateId s = epoch().parser.read(current(), forced);
  return structgen::open_places(grammar_->vocabulary(), epoch().parser, s, text);
}

Budget Matcher::budget() {
  sequence_.refresh();
  sequence_.note_budget();
  return {epoch().budgets,    grammar_->partial(), grammar_->mask_work(),
          sequence_.states(), sequence_.tokens(),  sequence_.written()};
}

Matcher::Bounds Matcher::tokens_needed(bool search) {
  if (is_terminated()) return {0, 0};
  sequence_.settle();
  const LockedWork work(sequence_, Task::kBudget, grammar_->ending_work());
  return budget().bounds(search, grammar_->mask_work());
}

std::optional<bool> Matcher::fits(std::size_t tokens) {
  if (is_terminated()) return true;
  sequence_.settle();
  const LockedWork work(sequence_, Task::kBudget, grammar_->ending_work());
  return budget().last_token_fits(tokens);
}

std::string Matcher::shortest_completion() {
  if (is_terminated()) return {};
  sequence_.settle();
  const LockedWork work(sequence_, Task::kCompletion, grammar_->completion_work());
  sequence_.refresh();
  if (sequence_.bytes() < grammar_->bytes().least) return budget().ranged_text();
  if (!epoch().budgets.limits) {
    Told<std::string> text = told_with_work_left([&] { return epoch().completion.of(current()); });
    if (text) return *text;
    // A user who asks for the completion itself gets a deeper search. The results of this search are dropped,
    // because masks under a budget must not depend on earlier questions.
    Completion deeper(epoch().parser, epoch().budgets.productions, kDeepRecursion);
    Told<std::string> found = told([&] { return deeper.of(current()); });
    return found ? std::move(found).value() : std::move(text).value();
  }
  std::string out;
  for (TokenId t : epoch().budgets.limits->tokens(current())) out += grammar_->vocabulary().bytes(t);
  return out;
}

}  // namespace structgen
