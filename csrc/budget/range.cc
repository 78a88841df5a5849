// A range of bytes for the whole text: the tokens behind which the text can still be completed with a number
// of bytes in the range.
//
// In: the state of a text, its number of bytes so far, the range. Out: a mask without the tokens behind which
// no completion has a number of bytes in the range. Cost: a copy for a row that is kept, otherwise a check of
// the tokens in doubt, as under a budget of tokens (budget/trial.h).
//
// The problem. `grammar & max_bytes(120)` asks for texts of at most 120 bytes. The product of the grammar and
// an automaton that counts bytes has a copy of the grammar for each byte of the bound; for an object with
// free keys each copy is too large.
//
// The idea. The bytes are counted beside the state. With u bytes behind a token and its state s:
//
//     shortest(s)   the bytes of a shortest completion (parse/completion.h)
//     growth(s)     s has a text of each length from some number on, or in a range (parse/growth.h); asked
//                   of the blind state, and of s itself if no completion holds for all captured texts
//     longest(s)    the bytes of the longest completion, where there is one and every text stays below `most`
//     allowed       least <= u + shortest(s) <= most, or a length of growth(s) is in the range, or
//                   least <= u + longest(s) <= most, or reaches(s, least - u, most - u): a search depth
//                   first found a text of those lengths
//
// Example: at most 13 bytes, the text `{"a":` (5 bytes) of an object that requires "b", and two tokens. The
// token `12` leads to u = 7, and the rest `,"b":1}` has 7 bytes: 14 > 13, refused. The token `1` leads to
// u = 6, and 6 + 7 = 13: allowed.
//
// Most rows need none of these sums. When a mask is made, two things are found out that hold behind every
// token of the mask: a bound of shortest(s) (State::loose), and lengths of which a text is left
// (State::grows). If these two show that every token fits the range, the row is the plain mask
// (RangedRow::sure_bytes). Tokens that stay in a run of characters need no check either (sure_tokens()). Only
// the other tokens are checked.
//
// The answers for a state change with u only where one of these sums meets a bound of the range. So a row is
// kept together with the interval of u for which the row is the same (holds()). Far from both bounds of the
// range, one row serves every u.
//
// Exactness. A refusal because of `most` is proved if the shortest completion is known; a refusal because of
// `least` is proved if the longest completion is known. Otherwise reaches() decides. If reaches() finds no
// text and has not seen all states, the token is refused and the row is not exact.
//
// Invariants. completable() is true behind each token of a row, or of the blind state that judged it
// (allowed_in_range()). Behind a beginning of a shortest completion the rest of this completion is left, so a
// text within `most` can always go on. Under a budget of tokens as well, one text has to keep both bounds:
// the shortest completion cut into tokens, a text of one byte a token, or the text of ranged_text().
// way_in_range() finds this text again behind each of its tokens.
//
// Rejected. The intersection (holes/intersection.h) for every grammar: it is exact, but has a rule for each
// byte of the bound, so it serves only if growth(s) is not known at the start. States that are pairs of a
// state and a number of bytes: each pair would have a mask of its own.
#include <algorithm>
#include <array>
#include <optional>

#include "base/error.h"
#include "base/told.h"
#include "base/undo.h"
#include "budget/budget.h"
#include "budget/trial.h"

namespace structgen {

namespace {
// The remembered rows of all ranges of one grammar take at most this many bytes. Other rows are made each
// time.
constexpr std::size_t kRangedBytes = 16 << 20;
// One search of reaches() visits at most this many states.
constexpr std::size_t kReachSteps = 4'000;
// reaches() follows no text that has this many bytes more than it needs.
constexpr std::size_t kReachBeyond = 64;
// A call remembers the answers of reaches() for at most this many states.
constexpr std::size_t kReachedKept = 50'000;
// Of states behind as many bytes that differ by captured text alone, reaches() visits at most this many.
constexpr uint32_t kSameButText = 4;
// The work of a step of reaches(). Most steps make a state: in a key, each character does.
constexpr int64_t kReachWork = 2;

std::size_t less(std::size_t a, std::size_t b) { return a > b ? a - b : 0; }
}  // namespace

// Notes that the last answer is the same for every text in this state that has `from` to `to` bytes.
void Budget::holds(std::size_t from, std::size_t to) {
  from_ = std::max(from_, std::min(from, written_.bytes));
  to_ = std::min(to_, std::max(to, written_.bytes));
}

// Returns what is known of the shortest completion of s. The blind state is asked first, because all keys
// share it. If no text is found within the work, the length is an upper bound (parse/lengths.h). With
// unproven productions, a completion whose search met poison may be right for some captured texts only.
Budget::Shortest Budget::shortest_bytes(StateId s) {
  if (parser().state(s).accepting) return {0, true};
  const StateId blind = all_.masks.blind(s);
  std::size_t best = Lengths::kFar;
  const auto look = [&](StateId at) {
    Told<std::size_t> found = told_with_work_left([&] { return all_.completion.of(at).size(); });
    if (found) best = std::min(best, *found);
    return static_cast<bool>(found);
  };
  const bool any = look(blind);
  if (any && !all_.completion.text_matters(blind)) return {best, true};
  if (blind == s) {
    const std::span<const Item> items = parser().items(s);
    const bool open = std::ranges::any_of(items, [](Item i) { return i.capture == CaptureArena::unknown(); });
    if (!any) best = all_.lengths.of(s);
    return {best, any, open && (any ? parser().unproven() : best >= Lengths::kFar)};
  }
  if (any && parser().unproven() && !completes(s, all_.completion.of(blind))) best = Lengths::kFar;
  const std::size_t shared = best;
  if (look(s)) return {best, true, false, shared};
  return {std::min<std::size_t>(best, all_.lengths.of(blind)), false, false, shared};
}

// Looks for a text of `least` to `most` bytes depth first, letters before other bytes. Where parts of a text
// may be long, the first path is long. From the byte on where the shortest completion may be long enough, it
// is asked for: it ends the text, or shows that every text behind this byte is too long. Where no text is
// endless, the longest completion shows the same of texts that are too short. So a text is found in about a
// step for each of its bytes, in however many ways the grammar goes on. A state is visited once for each
// number of bytes in front of it, and no later search of the call visits a state that surely has no text.
// States that differ by captured text alone go on alike, so at most kSameButText of them are visited. With
// `blind`, captured text is dropped at each byte; there is no answer where the text would decide.
const Budget::Reached& Budget::reaches(StateId s, std::size_t least, std::size_t most, bool blind) {
  const auto key = [&](StateId at, std::size_t n) {
    return std::tuple(at.v, less(least, n), most - n, blind);
  };
  const auto [known, fresh] = reached_.try_emplace(key(s, 0));
  Reached& out = known->second;
  if (!fresh) return out;
  const std::size_t limit = std::min(most, least + kReachBeyond);
  struct Open {
    StateId state, last;
    ByteSet bytes;
    uint32_t tried;
  };
  std::vector<Open> path;
  FlatMap<uint64_t, bool> met;
  FlatMap<uint64_t, uint32_t> alike;
  bool unsure = false;
  // The completion behind the last state of the path.
  std::string_view end;
  const bool finite =
      least > 0 && !parser().unproven() && all_.growth.longest(all_.masks.blind(s)) < Growth::kFar;
  // The last answer of shortest_bytes(), and the last length that it knew.
  Shortest rest = shortest_bytes(s);
  std::size_t ahead = rest.bytes;
  const auto text_matters = [&](StateId at) {
    return at == all_.masks.blind(at) && all_.completion.text_matters(at);
  };
  // Asks for the shortest completion of a state behind the path, unless the last known one would be too short
  // here. Returns true if the state's completion is too long, or if every completion depends on captured text
  // that was dropped.
  const auto too_long = [&](StateId at) {
    const std::size_t n = path.size();
    rest.bytes = Lengths::kFar;
    if (n + ahead < least) return false;
    rest = shortest_bytes(at);
    if (rest.bytes >= Lengths::kFar) return text_matters(at);
    ahead = rest.bytes;
    return n + ahead > most;
  };
  const auto open = [&](StateId at) {
    const std::size_t n = path.size();
    const auto same = reached_.find(key(at, n));
    if (n > 0 && same != reached_.end() && same->second.some == false) return;
    if (!met.emplace(uint64_t{at.v} << 32 | n, true).second) return;
    charge(blind ? 30 : 10);
    const State& state = parser().state(at);
    const StateId any = all_.masks.blind(at);
    ByteSet bytes = parser().live(at);
    unsure = unsure || state.poisoned || (n == limit && limit < most && bytes.any());
    if (n >= least && state.accepting) {
      out.some = true;
    } else if (finite && n + all_.growth.longest(at) < least) {
      bytes = {};
    } else if (too_long(at)) {
      unsure = unsure || !rest.proved || text_matters(at);
      bytes = {};
    } else if (n + rest.bytes >= least && rest.bytes < Lengths::kFar && !rest.some_texts &&
               (rest.proved || (at != any && rest.blind == rest.bytes))) {
      out.some = true;
      end = all_.completion.of(rest.blind == rest.bytes ? any : at);
    }
    path.push_back({at, Parser::dead(), n < limit ? bytes : ByteSet{}, 0});
  };
  open(s);
  while (!out.some && !path.empty()) {
    Open& at = path.back();
    while (at.tried < 256 && !at.bytes.has(static_cast<uint8_t>('a' + at.tried))) ++at.tried;
    if (at.tried == 256) {
      if (!unsure && reached_.size() < kReachedKept) reached_[key(at.state, path.size() - 1)].some = false;
      path.pop_back();
      continue;
    }
    const auto b = static_cast<uint8_t>('a' + at.tried++);
    const StateId any = all_.masks.blind(at.state);
    StateId to = parser().step(any, b);
    if (to != Parser::dead() && (blind || any != at.state)) to = all_.masks.blind(to);
    if (any != at.state) {
      if (to != Parser::dead() && too_long(to) && rest.proved && !text_matters(to)) continue;
      if (++alike[uint64_t{to.v} << 32 | path.size()] > kSameButText) {
        unsure = true;
        continue;
      }
      to = parser().step(at.state, b);
    }
    if (to == Parser::dead() || to == at.last) continue;
    at.last = to;
    charge(kReachWork);
    if (met.size() >= kReachSteps) return out;
    open(to);
  }
  if (!out.some && !unsure) out.some = false;
  for (std::size_t i = 0; i + 1 < path.size(); ++i)
    out.text.push_back(static_cast<char>('a' + path[i].tried - 1));
  out.text += end;
  return out;
}

// Returns true if the longest completion is in the range. Returns nothing if the length of the longest
// completion is not known, or is too large for the range.
std::optional<bool> Budget::longest_fits(StateId blind, const Ahead& at) {
  const std::size_t longest = all_.growth.longest(blind);
  if (longest == Growth::kFar && written_.whole.most == ByteRange::kAny && at.tokens == kEndless) {
    holds(0, kEndless);
    return true;
  }
  if (longest > at.room || longest >= Growth::kFar || (at.missing <= longest && !at.by_bytes(longest)))
    return std::nullopt;
  const std::size_t least = written_.whole.least, behind = at.bytes + longest;
  const bool enough = at.missing <= longest;
  holds(enough ? less(least, behind) : 0,
        enough ? at.last(written_.whole, longest) : less(least, behind + 1));
  return enough;
}

// Asks reaches() of the blind state first, because all keys share it.
const Budget::Reached& Budget::reaches(StateId s, std::size_t least, std::size_t most) {
  if (!parser().unproven())
    if (const Reached& any = reaches(all_.masks.blind(s), least, most, true); any.some) return any;
  return reaches(s, least, most, false);
}

// Decides by reaches(), with one token for each byte.
bool Budget::reaches_range(StateId s, const Ahead& at) {
  const std::size_t most = std::min(at.room, less(at.tokens, 1));
  const Reached& found = reaches(s, at.missing, most);
  holds(written_.bytes, 0);
  exact_ = exact_ && found.some && (*found.some || most == at.room);
  if (found.some.value_or(false)) text_ = &found.text;
  return text_ != nullptr;
}

bool Budget::completable(StateId s, std::size_t bytes, std::size_t tokens) {
  const ByteRange& whole = written_.whole;
  const std::size_t now = written_.bytes + bytes;
  text_ = nullptr;
  if (tokens == 0) return false;
  if (now > whole.most) {
    holds(less(whole.most + 1, bytes), kEndless);
    return false;
  }
  const Ahead at{bytes, whole.most - now, less(whole.least, now), tokens};
  const StateId blind = all_.masks.blind(s);
  if (at.missing == 0) {
    if (const std::size_t n = all_.lengths.of(blind); n < Lengths::kFar && at.by_bytes(n)) {
      holds(less(whole.least, bytes), at.last(whole, n));
      return true;
    }
  }
  // The range says: for some n up to `from`, every length from n on has a text. n is at least the length of
  // the shortest text.
  const auto grows = [&](const Growth::LengthRanges& ranges, std::size_t shortest) {
    return std::ranges::any_of(std::array{ranges.earliest, ranges.widest}, [&](const Growth::LengthRange& r) {
      const std::size_t to = r.endless() ? kEndless : shortest + r.span;
      if (r.from >= Growth::kFar || at.missing > to || r.from > to ||
          !at.by_bytes(std::max<std::size_t>(r.from, at.missing)))
        return false;
      holds(r.endless() ? 0 : less(whole.least, bytes + to), at.last(whole, r.from));
      return true;
    });
  };
  // The parts of the state may have a range; then no text needs to be found.
  if (at.missing != 0 && grows(all_.growth.parts(blind), 0)) return true;
  const auto [n, proved, some_texts, shared] = shortest_bytes(s);
  const bool too_long = n < Lengths::kFar && n > at.room;
  const auto fits = [&](StateId of, std::size_t length) {
    if (length >= Lengths::kFar || some_texts || at.missing > length || length > at.room ||
        (tokens != kEndless && needed(of) > tokens))
      return false;
    holds(less(whole.least, bytes + length), at.last(whole, length));
    return true;
  };
  if (fits(s, n) || (shared != n && fits(blind, shared))) return true;
  const std::size_t shortest = proved ? n : 0, all = shared < Lengths::kFar ? shared : shortest;
  if (at.missing != 0 && (grows(all_.growth.of(blind), all) || grows(all_.growth.closer(blind), all)))
    return true;
  // Where the blind state's completion would meet poison, that of the state with its captured text goes on.
  if (at.missing != 0 && s != blind && !parser().unproven() && grows(all_.growth.closer(s), shortest))
    return true;
  if (at.missing != 0 && !parser().unproven() && !too_long)
    if (const std::optional<bool> fits = longest_fits(blind, at)) return *fits;
  if (too_long) {
    holds(less(whole.most + 1, bytes + n), kEndless);
    exact_ = exact_ && proved;
    return false;
  }
  // The answer depends on captured text. judge_texts() asks again with it.
  if (some_texts) {
    holds(written_.bytes, 0);
    return false;
  }
  return reaches_range(s, at);
}

// Returns the tokens that need no check: those of at most `free` bytes, and those that stay inside a run of
// characters. Behind a token that stays inside the run the text still needs what it needs in front of the
// token, and at most kSpareBytes bytes that end a begun character. While bytes are missing, a token that ends
// the run needs a check, because fewer bytes may follow it. An empty row stands for "no token".
Words Budget::sure_tokens(std::size_t free, std::size_t tokens) {
  const ByteRange& whole = written_.whole;
  const std::size_t now = written_.bytes, longest = vocabulary().longest(), missing = less(whole.least, now);
  Words out;
  const auto add = [&](std::size_t bytes, const uint32_t* among) {
    const Words& some = all_.world.at_most(bytes);
    out.resize(some.size());
    for (uint32_t w = 0; w < some.size(); ++w) out[w] |= among ? some[w] & among[w] : some[w];
    holds(missing == 0 ? whole.least : now,
          whole.most == ByteRange::kAny ? kEndless : now + less(bytes, longest));
  };
  if (free > 0) add(free, nullptr);
  const Mask* const mask =
      all_.world.cache && tokens == kEndless && !partial_ ? all_.masks.peek(here()) : nullptr;
  if (!mask || !mask->inside_run) return out;
  const StateId from = all_.masks.blind(here());
  const Growth::LengthRange some = all_.growth.parts(from).widest;
  const std::size_t n = std::max<std::size_t>(missing == 0 ? all_.lengths.of(from) : some.from, missing);
  // In a run that has a longest text, a token uses up as much of its length as it has bytes.
  const bool long_enough = missing == 0 || some.endless() || n + longest <= some.to();
  const std::size_t room = less(less(whole.most, now), n + kSpareBytes);
  if (n < Lengths::kFar && long_enough && room > 0)
    add(room, missing == 0 ? mask->dense : all_.masks.inside_run(here()).data());
  return out;
}

void Budget::keep_range(uint32_t* row, std::size_t free, std::size_t tokens) {
  const Vocabulary& v = vocabulary();
  const ByteRange& whole = written_.whole;
  const std::size_t now = written_.bytes;
  std::vector<Budgets::Ranged>& kept = all_.ranged[here().v];
  for (const Budgets::Ranged& k : kept)
    if (tokens == kEndless && k.from <= now && now <= k.to) {
      std::copy(k.row.begin(), k.row.end(), row);
      exact_ = exact_ && k.exact;
      return;
    }
  from_ = 0;
  to_ = kEndless;
  if (parser().state(here()).accepting) {
    if (!whole.has(now))
      for (const TokenId t : v.eos()) clear_bit(row, t);
    holds(now < whole.least ? 0 : whole.least, now < whole.least ? whole.least - 1 : kEndless);
  }
  Trial trial(*this, tokens, true);
  const Words sure = sure_tokens(free, tokens);
  trial.ask(row, sure.empty() ? nullptr : sure.data());
  if (none(trial.open.data())) return;
  // Returns the first token of some text in the range.
  const auto first = [&]() -> TokenId {
    const Undo kept([this, exact = exact_] { exact_ = exact; });
    Told<Finish> text = told([&] {
      const WorkScope part(Task::kBudget, judging_work());
      return ranged_finish();
    });
    return text && text->tokens <= tokens ? text->next : -1;
  };
  const bool judged = static_cast<bool>(told([&] {
    const WorkScope part(Task::kBudget, mask_work_);
    trial.judge_asked(all_.masks.blind(here()));
    if (!trial.by_state()) trial.judge_texts();
  }));
  exact_ = exact_ && judged;
  trial.take_out(row, false);
  // If the work ended before any token was found to fit, one token is looked for on purpose.
  if (!exact_ && none(row)) {
    TokenId next = first();
    if (next < 0)
      if (const std::vector<TokenId> rest = way_in_range(tokens); !rest.empty()) next = rest[0];
    if (next >= 0) set_bit(row, next);
    holds(now, 0);
  }
  if (tokens != kEndless || !judged || all_.ranged_bytes > kRangedBytes) return;
  if (free > 0 && from_ == to_) return;
  kept.push_back({from_, to_, exact_, {row, row + v.words()}});
  all_.ranged_bytes += v.words() * 4 + 100;
}

// A row judges a token that ends a captured text without this text (judged_by()). Then a completion may fit
// that does not show with the captured text, because another completion is the shortest. Such a token is
// accepted as well, and way_in_range() leads to an end.
bool Budget::allowed_in_range(TokenId t, StateId to) {
  const std::string_view token = vocabulary().bytes(t);
  if (completable(to, token.size())) return true;
  const StateId any = judged_by(here(), token);
  if (any != Parser::dead() && any != all_.masks.blind(to) && completable(any, token.size())) return true;
  const std::vector<TokenId> rest = way_in_range(kEndless);
  return !rest.empty() && rest[0] == t;
}

// If the text has followed a known way whose end lies in the range, returns the rest of its tokens; otherwise
// none. An earlier row may rest on the ranged_text() of its point, or of the state that judged the token
// behind it, so these texts are tried first: another shortest text may take more tokens. Without a budget of
// tokens, a way is looked for only where the last state shows no end.
std::vector<TokenId> Budget::way_in_range(std::size_t tokens) {
  std::vector<TokenId> rest;
  if (tokens == kEndless && completable(here(), 0)) return rest;
  const auto goes_on = [&] {
    const WorkScope part(Task::kBudget, judging_work());
    std::string since;
    const auto from = [&](StateId s) {
      Budget earlier(all_, partial_, mask_work_, {&s, 1}, {},
                     {written_.whole, written_.bytes - since.size()});
      Told<std::string> text = told([&] { return earlier.ranged_text(); });
      std::vector<Piece> pieces;
      if (!text || text->size() <= since.size() || !text->starts_with(since) ||
          !all_.cutter.spell(std::string_view(*text).substr(since.size()), pieces) || pieces.size() >= tokens)
        return false;
      for (const Piece& p : pieces) rest.push_back(p.token);
      return true;
    };
    for (std::size_t n = past_.size() - 1; n > 0 && writes(tokens_[n - 1]) && since.size() < kLookBack; --n) {
      const std::string_view token = vocabulary().bytes(tokens_[n - 1]);
      const StateId any = judged_by(past_[n - 1], token);
      if (any != Parser::dead() && any != all_.masks.blind(past_[n]) && from(any)) {
        if (follow(here(), rest)) return true;
        rest.clear();
      }
      since.insert(0, token);
      if (from(past_[n - 1])) return true;
    }
    return false;
  };
  if (told(goes_on).value_or(false) || tokens == kEndless) return rest;
  Told<Reach::Answer> found = told_with_work_left([&] { return find_way(tokens, rest); });
  if (!found || *found != Reach::Answer::kYes || !follow(here(), rest) ||
      !written_.whole.has(written_.bytes + bytes_of(rest).size()))
    rest.clear();
  return rest;
}

Finish Budget::ranged_finish() {
  if (written_.whole.has(written_.bytes + shortest_bytes(here()).bytes)) return finish(here());
  return cut(ranged_text(), Finish::kOwn);
}

std::string Budget::ranged_text() {
  std::string out;
  StateId s = here();
  Growth::LengthRange best;
  uint8_t by = 0;
  for (;;) {
    charge(10);
    const std::size_t now = written_.bytes + out.size();
    const std::size_t missing = less(written_.whole.least, now);
    const Shortest known = shortest_bytes(s);
    if (missing == 0 || known.bytes >= missing) {
      out += all_.completion.of(s);
      break;
    }
    if (known.blind >= missing && written_.whole.has(now + known.blind)) {
      out += all_.completion.of(all_.masks.blind(s));
      break;
    }
    if (completable(s, out.size()) && text_) {
      out += *text_;
      break;
    }
    StateId next = Parser::dead();
    const Growth::LengthRange before = best;
    best = {};
    const auto look = [&](uint8_t b) {
      const StateId to = parser().step(s, b);
      if (to == Parser::dead() || !completable(to, out.size() + 1)) return;
      const Growth::LengthRange some = all_.growth.of(all_.masks.blind(to)).widest;
      // Of equally good bytes, a printable one is taken before a control character.
      if (next != Parser::dead() && (best.better(some) || (!some.better(best) && (by >= 0x20 || b < 0x20))))
        return;
      best = some;
      next = to;
      by = b;
    };
    // If a range is known only for the completion with the captured text, its first byte is the one to take.
    if (known.proved && all_.growth.of(all_.masks.blind(s)).widest.from >= Growth::kFar)
      look(static_cast<uint8_t>(all_.completion.of(s)[0]));
    // The last byte is taken again while no length is lost by it. In a key, each character leads to a new
    // state, so trying all bytes at each would make many states.
    if (next == Parser::dead()) {
      if (before.endless()) look(by);
      if (next == Parser::dead() || before.better(best)) parser().live(s).for_each(look);
    }
    if (next == Parser::dead()) break;
    // If the byte leads back to the same state, all missing bytes are added at once.
    out.append(next == s ? less(missing, shortest_bytes(s).bytes) : 1, static_cast<char>(by));
    s = next;
  }
  if (written_.whole.has(written_.bytes + out.size())) return out;
  const std::size_t now = written_.bytes;
  if (const Reached& found = reaches(here(), less(written_.whole.least, now), less(written_.whole.most, now));
      found.some.value_or(false))
    return found.text;
  throw Error(ErrorKind::kBudgetExceeded, "no text within the range of bytes was found");
}

}  // namespace structgen
