// The rows of a budget: which tokens of a mask leave enough.
//
// In: the mask of a state, the number of tokens left. Out: the mask without the tokens that leave too little.
// Cost: one comparison while the budget exceeds what any allowed token could need. The largest such need is
// State::loose: a bound in bytes that is put together while the mask is made (parse/lengths.h, mask/fill.h),
// or the largest need that was found when the tokens were judged. With a smaller budget the cost is a walk
// over the tokens in doubt, and one completion for each state that the walk meets. A token that stays inside
// a run of characters costs nothing if some tokens are to spare.
//
// The steps of a row. In a string, where 9 tokens complete the text and the worst token of the mask needs 60:
//
//     kept()           was the row made for this state and budget before?
//     binds_nothing()  does every token of the mask leave enough? With 70 tokens left: 60 <= 70, so the mask
//                      is the row
//     in_doubt()       which tokens are judged? With 30 tokens left: 30 > 9 + kSpareBytes, so what stays in
//                      the string fits, and `"`, `",` and the others that leave it are judged
//     Trial            which of them fit (budget/trial.h)? Those into a state s with needed(s) + 1 <= 30
//     find_way()       with 8 tokens left: the row has the first token of another way, if there is one
//
// Near the end of a budget, three kinds of tokens take most of the work and nearly never fit. So they are
// refused without a check, and Matcher::mask_exact() is false:
//
//     none to spare    with needed(s) tokens left in a string, 127,000 tokens that stay in the string do not
//                      fit. Only pieces of the shortest text are judged: `"`, `",`, `","`
//     a pattern        in a string with a pattern, too, only pieces of the shortest text are judged while
//                      the bound for the tokens that stay in the string exceeds the budget
//     half characters  behind a token that ends within a character the missing bytes are counted; no text is
//                      looked for
//
// Which of these rules applies depends on the state and the budget alone.
//
// Invariants. A mask under a budget is a subset of the plain mask; where the world omits, the first token of
// the way may be missing in the plain mask. Behind each of its tokens the rest of the budget suffices. The
// mask is not empty if needed() was at most the budget, because the first token of the way always stays
// (budget.cc, the promise).
#include <algorithm>
#include <atomic>

#include "base/error.h"
#include "base/sorted.h"
#include "base/told.h"
#include "base/work.h"
#include "budget/budget.h"
#include "budget/trial.h"

namespace structgen {

namespace {
// kEntry is the size of an entry of Budgets::kept without its words, in bytes. Rows for budgets of more than
// kKeptBudget tokens are not remembered.
constexpr std::size_t kEntry = 96, kKeptBudget = 1'000;
// In a grammar that omits, the tokens of one mask may be read with their captured text for this many units of
// work (5 milliseconds). Tokens not reached by then are refused.
constexpr int64_t kTextWork = 50'000;

// Returns true if a search found tokens, and false if it proved that there are none. Throws otherwise.
bool certain(Reach::Answer found, std::size_t budget) {
  if (found != Reach::Answer::kUnknown) return found == Reach::Answer::kYes;
  throw Error(ErrorKind::kBudgetExceeded, "no way to complete the text within " + std::to_string(budget) +
                                              " tokens was found, and none was ruled out; tokens_needed() "
                                              "tokens are known to suffice");
}
}  // namespace

// Decides without the mask whether the mask in front of the last token would have allowed this token. Returns
// nothing where only the mask could tell.
std::optional<bool> Budget::last_token_fits(std::size_t budget) {
  if (!written_.any()) return std::nullopt;
  const std::size_t n = past_.size() - 1;
  if (n > 0 && !all_.limits) {
    if (tokens_[n - 1] < 0) return std::nullopt;
    StateId s = past_[n - 1];
    const uint32_t loose = parser().state(all_.masks.blind(s)).loose.load(std::memory_order_relaxed);
    if (all_.fast && loose != 0 && budget + 1 >= loose && !partial_) return true;
    // If several tokens lead to one state with different captured texts, a mask tries only a few of them, and
    // last_token_fits() does not know which.
    bool captured = all_.masks.blind(s) != s;
    for (char b : vocabulary().bytes(tokens_[n - 1])) {
      s = all_.parser.step(s, static_cast<uint8_t>(b));
      captured = captured || all_.masks.blind(s) != s;
    }
    // A large mask refuses some tokens unchecked (narrow_by_trial(), Trial::judge_half_characters()), and
    // last_token_fits() does not know which.
    if (captured || needed(here()) <= budget) return std::nullopt;
  }
  if (needed(here()) <= budget) return true;
  // find_way() may have allowed the token because of other tokens than those that needed() counts.
  if (n > 0 && needed(past_[n - 1]) > budget + 1) return std::nullopt;
  return false;
}

// Returns true if the budget suffices behind every token of the mask. State::loose tells this; if
// State::loose is not known, it is measured first.
bool Budget::binds_nothing(std::size_t budget) {
  const StateId from = all_.masks.blind(here());
  const std::atomic<uint32_t>& loose = all_.parser.state(from).loose;
  if (all_.fast && loose.load(std::memory_order_relaxed) == 0) {
    all_.masks.measure_with(&all_.lengths);
    const WorkScope part(Task::kBudget, share_of_work());
    // If measuring takes too much work, the state counts as one that needs its tokens checked.
    if (!told([&] { all_.masks.measure(from); }))
      all_.parser.state(from).loose.store(Lengths::kFar, std::memory_order_relaxed);
  }
  const uint32_t most = loose.load(std::memory_order_relaxed);
  if (most == 0 || budget < most || partial_) return false;
  all_.parser.state(here()).loose.store(most, std::memory_order_release);
  return true;
}

// For a state between two characters of a string, returns how many tokens suffice if the next token has whole
// characters only and stays in the string; the next token counts. The number counts one token for each byte
// up to the quote, and the tokens of the completion behind the quote. For any other state, or if no number is
// known, returns kTooMany.
std::size_t Budget::needed_inside(StateId s) {
  if (!all_.fast || partial_ || all_.spelling) return kTooMany;
  const State& st = all_.parser.state(s);
  if (st.n != 1 || st.accepting) return kTooMany;
  const Item item = all_.parser.items(s)[0];
  const uint32_t bytes = all_.lengths.characters(item.regex);
  if (bytes >= Lengths::kFar) return kTooMany;
  const StateId quote =
      all_.masks.blind(all_.parser.make(Item{all_.parser.regexes().byte('"'), item.stack, item.capture}));
  if (quote == Parser::dead() || all_.parser.state(quote).poisoned) return kTooMany;
  return std::min(kTooMany, needed(quote) + bytes);
}

// Returns the tokens of a mask that stay inside a string and need no check, because the budget is large
// enough for all of them. Behind such a token the text still needs what it needs in front of the token,
// whatever was captured, and at most kSpareBytes bytes that end a begun character.
Budget::Staying Budget::staying(const Mask* m, StateId from, std::size_t budget) {
  if (!m || !m->dense) return {};
  if (m->inside_run && !all_.spelling && budget > needed(from) + kSpareBytes)
    return {m->dense, needed(from) + kSpareBytes + 1};
  // In a string with a pattern, what must follow differs from token to token. needed_inside() is a bound for
  // all of them.
  RunClass* const characters = all_.masks.characters();
  const std::size_t suffice = characters ? needed_inside(from) : kTooMany;
  if (suffice + kSpareBytes <= budget)
    return {characters->up_to(characters->longest()).data(), suffice + kSpareBytes};
  if (suffice <= budget) return {characters->cuts().whole.data(), suffice};
  return {nullptr, 0, suffice < kTooMany};
}

// Returns true if the string that is being written may end behind one more character. If it must go on for
// many bytes, long tokens have to be checked, because they may be the only ones that fit.
bool Budget::ends_soon(StateId s) {
  return std::ranges::any_of(all_.parser.items(s), [&](const Item& i) {
    return i.regex != RegexArena::poison() && all_.parser.regexes().least_length(i.regex) <= 2;
  });
}

// Appends to `out` the tokens that begin the text that needed() counted, where the budget suffices for the
// rest of the text. Returns false if needed() counted no text.
bool Budget::pieces_of_way(std::size_t budget, std::vector<TokenId>& out) {
  const Finish::From from = finish(here()).from;
  if (from != Finish::kOwn && from != Finish::kBlind) return false;
  all_.cutter.begins(all_.completion.of(from == Finish::kOwn ? here() : all_.masks.blind(here())), budget - 2,
                     out);
  return true;
}

// Stores in State::loose that no token of the row needs more than `most` tokens. If the blind state allows
// the same tokens, its State::loose gets the same number, which then serves all captured texts.
void Budget::set_loose(StateId blind, const uint32_t* row, std::size_t most) {
  // With a range of bytes, State::loose is a bound in bytes, so it stays.
  if (written_.whole.most < kEndless) return;
  const uint32_t loose = static_cast<uint32_t>(std::min<std::size_t>(most, Lengths::kFar));
  all_.parser.state(here()).loose.store(loose, std::memory_order_release);
  if (blind == here() || !all_.world.cache || all_.spelling) return;
  const Vocabulary& v = vocabulary();
  std::vector<uint32_t> any(v.words());
  write_row(*all_.masks.mask(blind), v, any.data());
  if (std::equal(any.begin(), any.end(), row))
    all_.parser.state(blind).loose.store(loose, std::memory_order_release);
}

// Removes the tokens behind which no completion fits once their captured text is known. A grammar that omits
// may know a completion of the blind state that does not complete the state itself. If no text is being
// captured, only tokens that begin a capture are tried.
void Budget::keep_finished(uint32_t* row, std::size_t budget) {
  const Vocabulary& v = vocabulary();
  const bool capturing = all_.masks.blind(here()) != here();
  const Mask* m = all_.world.cache && !capturing ? all_.masks.peek(here()) : nullptr;
  std::vector<uint32_t> asked(row, row + v.words());
  for (TokenId t : v.eos()) clear_bit(asked.data(), t);
  if (m && m->inside_run && !all_.spelling)
    for (uint32_t w = 0; w < v.words(); ++w) asked[w] &= ~m->dense[w];
  const WorkScope part(Task::kBudget, std::min(kTextWork, share_of_work()));
  keep_tokens(row, asked, [&](TokenId t) {
    StateId s = here();
    bool text = capturing;
    for (char b : v.bytes(t)) {
      s = all_.parser.step(s, static_cast<uint8_t>(b));
      text = text || all_.masks.blind(s) != s;
    }
    return s != Parser::dead() && (!text || needed(s) + 1 <= budget);
  });
  for (uint32_t w = 0; w < v.words(); ++w) exact_ = exact_ && (asked[w] & ~row[w]) == 0;
}

Budget::Doubt Budget::in_doubt(const uint32_t* row, std::size_t budget, bool enough, Trial& trial) {
  // If an epoch has just begun, the caller made the mask in the epoch before, and the new epoch lacks this
  // mask.
  const bool plain = all_.world.cache && all_.fast && !partial_;
  if (plain && !all_.masks.peek(here())) told([&] { all_.masks.mask(here()); });
  const Mask* const made = all_.world.cache ? all_.masks.peek(here()) : nullptr;
  Doubt out{plain ? made : nullptr, staying(made, all_.masks.blind(here()), budget)};
  if (out.mask && out.mask->dense) {
    const bool none_to_spare =
        out.stays.too_near || (budget > 2 && needed(here()) == budget && ends_soon(here()));
    out.pieces = enough && none_to_spare && pieces_of_way(budget, trial.list);
  } else if (out.mask && out.mask->n_added + out.mask->n_shared <= kFewTokens) {
    trial.aim = Trial::kList;
    trial.list.assign(out.mask->added, out.mask->added + out.mask->n_added);
    trial.list.insert(trial.list.end(), out.mask->shared, out.mask->shared + out.mask->n_shared);
    // Tokens are checked in ascending order, because the result for one token helps with the next.
    sort_unique(trial.list);
  }
  if (out.pieces) trial.aim = Trial::kList;
  if (trial.aim == Trial::kRow) trial.ask(row, out.stays.row);
  return out;
}

// Leaves the tokens of a row behind which the budget suffices. Returns nothing if no token is left. Returns
// true if the row depends on the state and the budget alone, so that it may be remembered, and false if it
// depends on the text, too.
std::optional<bool> Budget::narrow_by_trial(uint32_t* row, std::size_t budget) {
  const StateId from = all_.masks.blind(here());
  std::vector<TokenId> rest;
  const bool near = tokens_by_bytes(from) <= budget, enough = near || needed(here()) <= budget;
  if (!enough && !certain(find_way(budget, rest), budget)) return std::nullopt;
  Trial trial(*this, budget);
  const Doubt doubt = in_doubt(row, budget, enough, trial);
  const auto look = [&] {
    const WorkScope part(Task::kBudget, judging_work());
    trial.judge_asked(from);
    if (!trial.by_state())
      trial.judge_texts();
    else if (const std::size_t most = std::max(trial.most, doubt.stays.most);
             !doubt.pieces && !trial.tired && most < kTooMany)
      set_loose(from, row, most);
    // Tokens that were not checked, because the work was used up, are refused. So the row may lack tokens.
    if (trial.tired || unproved_) exact_ = false;
  };
  // If the work ends, the tokens that were not checked are refused.
  const bool judged = static_cast<bool>(told(look));
  if (!judged) exact_ = false;
  const bool refused = trial.take_out(row, doubt.mask && doubt.mask->accepting) || doubt.pieces;
  // With a budget of two tokens nothing is lost: a token fits exactly if the text may end behind it.
  if (refused && (doubt.pieces || budget > 2)) exact_ = false;
  if (omits() && partial_) keep_finished(row, budget);
  // The first token of the way stays in any case, even if the work ended before it was checked.
  const bool checked = near && judged && !trial.tired && trial.by_state() && !none(row);
  TokenId next = checked ? -1 : enough ? finish(here()).next : rest[0];
  if (next < 0 && none(row)) {
    if (finish(here()).from == Finish::kBytes) next = nearest();
    if (next < 0) {
      if (!certain(find_way(budget, rest), budget)) return std::nullopt;
      next = rest[0];
    }
  }
  if (next >= 0) set_bit(row, next);
  return enough && judged && !trial.tired && !unproved_ && trial.by_state();
}

bool Budget::narrow(uint32_t* row, std::size_t budget) {
  if (budget == 0) return false;
  if (budget == 1 && all_.parser.state(here()).accepting) {
    set_ends_only(row);
    return true;
  }
  return binds_nothing(budget) || narrow_by_trial(row, budget).has_value();
}

Budgets::Kept* Budget::kept(std::size_t budget) {
  if (all_.kept_bytes > all_.world.policy.rows()) {
    all_.kept.clear();
    all_.kept_bytes = 0;
  }
  const auto [at, fresh] = all_.kept.try_emplace(uint64_t{here().v} << 32 | budget);
  if (fresh) all_.kept_bytes += kEntry;
  return &at->second;
}

bool Budget::narrow_mask(uint32_t* row, std::size_t budget) {
  if (budget <= 1 || binds_nothing(budget)) return narrow(row, budget);
  Budgets::Kept* const known =
      !partial_ && !parser().unproven() && budget <= kKeptBudget ? kept(budget) : nullptr;
  if (known && !known->words.empty()) {
    std::ranges::copy(known->words, row);
    exact_ = exact_ && known->exact;
    return true;
  }
  const std::optional<bool> by_state = narrow_by_trial(row, budget);
  if (!by_state) return false;
  if (!known || !*by_state) return true;
  if (known->seen) {
    known->words.assign(row, row + vocabulary().words());
    known->exact = exact_;
    all_.kept_bytes += vocabulary().words() * sizeof(uint32_t);
  }
  known->seen = true;
  return true;
}

bool Budget::none(const uint32_t* row) const {
  return std::all_of(row, row + vocabulary().words(), [](uint32_t word) { return word == 0; });
}

void Budget::set_ends_only(uint32_t* row) const {
  std::fill(row, row + vocabulary().words(), 0u);
  set_ends(vocabulary(), row);
}

void Budget::set_only(uint32_t* row, TokenId t) const {
  std::fill(row, row + vocabulary().words(), 0u);
  set_bit(row, t);
}

// Leaves only the first token of the ending that needed() counted, because judging the other tokens would
// take too much work. Returns false if no such token is known, or if the ending exceeds the budget.
bool Budget::keep_promise(uint32_t* row, std::size_t budget) {
  if (all_.parser.state(here()).accepting && budget > 0) {
    exact_ = false;
    set_ends_only(row);
    return true;
  }
  if (!known_to_fit(here(), budget)) {
    const std::size_t n = past_.size() - 1;
    if (n == 0 || tokens_[n - 1] < 0 || !known_to_fit(past_[n - 1], budget + 1)) return false;
    const std::vector<TokenId> way = way_from(past_[n - 1]);
    if (way.size() < 2 || way[0] != tokens_[n - 1]) return false;
    set_only(row, way[1]);
  } else if (const TokenId next = finish(here()).next; next >= 0) {
    set_only(row, next);
  } else {
    return false;
  }
  exact_ = false;
  return true;
}

// Leaves the tokens behind which an upper bound in bytes fits the budget. The bound needs no search, but
// refuses tokens that a search would allow. If all tokens of the text so far were allowed by the bound, some
// token is left. Returns false if no token is left.
bool Budget::keep_bounded(std::span<const uint32_t> plain, uint32_t* row, std::size_t budget) {
  if (!all_.fast) return false;
  const Vocabulary& v = vocabulary();
  exact_ = false;
  std::fill(row, row + v.words(), 0u);
  bool any = false;
  told([&] {
    for_each_token(plain, [&](TokenId t) {
      const std::size_t bytes = bytes_behind(t);
      if (bytes >= Lengths::kFar || bytes + 2 > budget) return;  // this token, the bytes, the end
      set_bit(row, t);
      any = true;
    });
  });
  return any;
}

// Writes the row of a grammar that limits tokens. Endings are counted along ways that keep the limits
// (budget/limits.h).
bool Budget::fill_limited(uint32_t* row, std::size_t budget) {
  if (needed(here()) > budget) {
    const Reach::Answer found = sought_within(here(), budget, nullptr);
    return certain(found == Reach::Answer::kNo ? found : Reach::Answer::kUnknown, budget);
  }
  const Vocabulary& v = vocabulary();
  if (budget == 1) {
    set_ends_only(row);
  } else {
    const std::size_t room = std::min<std::size_t>(budget - 2, Limits::kNever - 1);
    exact_ = all_.limits->fill(here(), row, static_cast<uint32_t>(room)) && exact_;
    // A refused token may have another completion, of more bytes and fewer tokens. The row counts as exact
    // only if the budget refuses no token that the limits allow.
    std::vector<uint32_t> any(v.words());
    exact_ = all_.limits->fill(here(), any.data()) && std::equal(any.begin(), any.end(), row) && exact_;
  }
  return true;
}

}  // namespace structgen
