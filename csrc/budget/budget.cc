// Finishing within a budget: the tokens that complete a text, and the way that keeps a budget.
//
// In: a matcher's state, the number of tokens left. Out: a number of tokens that completes the text, and
// these tokens. Cost: one completion for each state (parse/completion.h), which is kept. A search is made
// only if no shortest text fits.
//
// The problem. With 5 tokens left, the grammar allows a token that begins a long value, and a mask must
// refuse that token. So a completion is needed for each state to which a token leads.
//
// The idea. The tokens that complete a state are counted along its shortest completion. This text is cut into
// the fewest tokens that spell it. Behind `{"a":` with 4 tokens left, where `a` is an integer and `b` a
// required boolean:
//
//     needed(s)     the shortest completion is `0,"b":true}`: say 4 tokens, and the end token makes 5. More
//                   than 4, so no text is known that ends in time
//     with 5 left   `1` leads to a state that needs 4: `,"b":true}` in 3 tokens, and the end. It is kept
//     Trial         `12` and `13` lead to one state, which is judged once
//     way_from(s)   the tokens that needed() counted; the first of them is in the mask if needed(s) or
//                   more tokens are left
//     find_way()    the shortest completion of the next state may be cut into more tokens than are left. Then
//                   the way from an earlier place, which the text has followed so far, is followed on
//
// The files. All of them define members of Budget:
//
//     budget.cc      how many tokens does a state need, and which are they?
//     searches.cc    do fewer tokens suffice, along another text?
//     rows.cc        which tokens of a mask leave enough? trial.cc judges them
//     range.cc       the same for a text with a range of bytes
//
// The questions, each a function of its arguments:
//
//     question                 asks                                    cost                          kept
//     finish_without_search()  the tokens of a state's shortest text,  completions of the blind      shortest
//                              or a bound of its bytes                 state and its own
//     tokens_without_search()  their number; kTooMany for an error     the same                      -
//     tokens_by_bytes()        a bound of the number, without a text   a bound (parse/lengths.h)     -
//     finish()                 the same, and searches where no text    finish_without_search(), or a found
//                              can be spelled                          search
//     needed()                 the number alone                        finish(), or limits           -
//     way_from()               the tokens                              finish(), and spells its text -
//     known_to_fit()           does a kept answer suffice?             two look-ups                  -
//     followed_way()           the rest of a way that the text has     way_from() at each of the      -
//                              followed so far                         last kLookBack bytes
//     earlier_way()            the rest of a way that a search from    searches                      sought
//                              an earlier place finds
//     find_way()               tokens for a budget below needed()      followed_way(), a search from sought
//                                                                      here, earlier_way()
//     any_way()                any tokens, however many                searches (searches.cc)        -
//
// The count is an upper bound, because another text may have more bytes and take fewer tokens. So a mask
// under a budget is a subset of the mask that a search over all texts would give. Example: behind a token,
// `ab` is the shortest rest and takes two tokens; the rest `xyz` takes one. With 3 tokens left the token is
// refused: the token itself, `a`, `b` and the end token are 4. Yet the token, `xyz` and the end token would
// fit. A search (searches.cc) looks for fewer tokens only if no token is known to fit, and if the vocabulary
// cannot spell the shortest text. For most states an upper bound in bytes (parse/lengths.h) is enough: with
// one token for each byte the budget suffices, and no completion is made.
//
// The same answer for the same text. needed() and way_from() are functions of a state. find_way() is a
// function of the text and the budget. followed_way() looks back for the last point of the text such that the
// text has followed the way from this point and the rest of the way fits the budget. If there is no such
// point, find_way() searches from the last state, unless the grammar omits. So a second matcher, a draft that
// was rolled back and a replay get the same mask, whether the mask is exact or not. An entry that an epoch
// keeps (Budgets) is a function of a state, and also holds the work that computing the entry takes in a new
// epoch. A search that uses a kept entry is charged this work again, and a search remembers only what its own
// call has found (budget/reach.h). The reason: searches have limits of work, so a search that took over what
// earlier searches found would find more than the same search in a new epoch.
//
// The promise. If a mask was made within a budget, some tokens complete the text within the rest of the
// budget, and the next mask is not empty. needed() judged each token of the mask, except the first token of
// find_way(). A token that ends a captured text was judged without this text (judged_by()), and
// followed_way() also tries the way of the state that judged it. So if needed() exceeds the budget behind a
// token of the text, find_way() chose a token at an earlier place: the token began a known way, which
// followed_way() finds again, or a way that a search found. Mostly a search from the last state finds the
// rest of this way, because fewer states lie ahead of the last state. In two cases the search does not find
// the rest. First, the search from the last state may end with kUnknown although the search from the earlier
// place succeeded: it spends its limit of work on the states in another order, and descends() may return to a
// state that the text has passed. Second, a grammar that omits keeps no searches, because a search from each
// place would take too much work. In both cases earlier_way() searches from earlier places, the first place
// first, and follows the ways that the text has followed. In these cases, and in the cases that
// followed_way() names, the answer depends on how the text is cut into tokens.
//
// Invariants. needed() is kTooMany, or the number of some tokens that complete the state. way_from() returns
// these tokens. way_from() returns no tokens if needed() counted a bound in bytes. No answer depends on
// earlier questions.
//
// Rejected. A shortest path in tokens for each state is exact, but takes a search over the vocabulary at each
// step; reach.h searches where the answer decides a mask. Promises kept in the epoch (each state along a
// completion learns that it can be finished) and searches that take over earlier results made a mask depend
// on earlier texts.
#include "budget/budget.h"

#include <algorithm>
#include <utility>

#include "base/depth.h"
#include "base/told.h"
#include "base/undo.h"
#include "base/work.h"
#include "budget/trial.h"

namespace structgen {

namespace {
// The limit of work, in trie nodes, of a search from a state whose shortest text the vocabulary cannot spell.
constexpr uint64_t kSpellReach = 200'000;
// completes() remembers the states along a text of at least this many bytes.
constexpr std::size_t kLongRead = 32;
}  // namespace

// Returns the tokens that spell a completion, counting the end token: if `"}` is one token, the text `"}`
// counts 2. The number is kTooMany if the vocabulary cannot spell the text.
Finish Budget::cut(std::string_view text, Finish::From from) {
  const Cutter::Cut cut = all_.cutter.cut(text);
  if (cut.tokens == Cutter::kNever) return {kTooMany, Finish::kNone};
  return {cut.tokens + std::size_t{1}, from, cut.first};
}

// Returns true if the text leads from s to a state in which the whole text may end. The states along a long
// text are remembered. The states behind s are mostly asked next, with ends of the same text: `[a-z]{400}` is
// completed by 399 letters behind the first one, then by 398.
bool Budget::completes(StateId s, std::string_view text) {
  Budgets::Read& last = all_.read;
  if (text.size() <= last.text.size() && last.at[last.text.size() - text.size()] == s &&
      last.text.ends_with(text))
    return true;
  std::vector<StateId> at{s};
  for (const char b : text) {
    s = all_.parser.step(s, static_cast<uint8_t>(b));
    if (s == Parser::dead()) return false;
    at.push_back(s);
  }
  if (!parser().state(s).accepting) return false;
  if (text.size() >= kLongRead) last = {std::string(text), std::move(at)};
  return true;
}

// Returns true if the completion of the blind state s is a shortest one whatever was captured.
bool Budget::completes_any_text(StateId s) {
  return told([&] { all_.completion.of(s); }) && !all_.completion.text_matters(s);
}

// Returns the tokens of a shortest completion of s. It first tries the completion of the blind state, because
// all keys that a text may contain share one blind state. The completion of the blind state must complete s
// as well.
Finish Budget::spelled(StateId s) {
  check_depth();
  Finish best{kTooMany, Finish::kNone};
  if (const StateId blind = all_.masks.blind(s); blind != s) {
    Told<Finish> any = told_with_work_left([&] { return finish_without_search(blind); });
    if (any && any->tokens < kTooMany && any->from != Finish::kBytes) {
      // If the search met no poison, the blind state's completion completes the state whatever was captured.
      const bool fits_all = !omits() && completes_any_text(blind);
      if ((fits_all && !parser().unproven()) || completes(s, all_.completion.of(blind)))
        best = {any->tokens, Finish::kBlind, any->next};
      if (fits_all && best.tokens < kTooMany) return best;
    }
  }
  Told<bool> own = told([&] {
    const std::string& text = all_.completion.of(s);
    // In a grammar that omits, what is omitted depends on the captured text. So the text is read from s to
    // make sure that it completes s.
    if (omits() && !completes(s, text)) return;
    // Within a range of bytes the shortest text of s is taken, even if the blind state's completion has fewer
    // tokens.
    if (const Finish found = cut(text, Finish::kOwn);
        found.tokens < best.tokens || written_.whole.most < kEndless)
      best = found;
  });
  if (!own && best.tokens == kTooMany) std::move(own).value();
  return best;
}

// Returns a number of tokens that suffices from s: the number of the shortest text's tokens, otherwise an
// upper bound in bytes. No search for other tokens is made. The function throws if finding the shortest text
// takes too much work and no bound is known.
Finish Budget::finish_without_search(StateId s) {
  if (parser().state(s).accepting) return {1, Finish::kOwn};
  return remember(all_.shortest, s.v, [&] {
    FirstLimit none;
    Finish best = none.otherwise(Finish{kTooMany, Finish::kNone}, [&] { return spelled(s); });
    if (best.tokens == kTooMany)
      if (const std::size_t bound = tokens_by_bytes(all_.masks.blind(s)); bound < kTooMany)
        best = {bound, Finish::kBytes};
    if (best.tokens == kTooMany) none.rethrow();
    return best;
  });
}

// Returns an upper bound of the tokens that complete a blind state, end token included: one token for each
// byte of an upper bound in bytes. Returns kTooMany if no bound in bytes is known. No text is made.
std::size_t Budget::tokens_by_bytes(StateId s) {
  const std::size_t bytes = all_.fast && !partial_ ? all_.lengths.of(s) : Lengths::kFar;
  return bytes < Lengths::kFar ? bytes + 1 : kTooMany;
}

// Returns the number of tokens of finish_without_search(). If finish_without_search() throws, it returns
// kTooMany, so that the caller's search can go on.
std::size_t Budget::tokens_without_search(StateId s) {
  if (all_.limits) return kTooMany;
  Told<Finish> text = told_with_work_left([&] { return finish_without_search(s); });
  return text ? text->tokens : kTooMany;
}

// Returns true if a remembered answer shows that the budget suffices. Nothing is computed.
bool Budget::known_to_fit(StateId s, std::size_t budget) const {
  if (const auto text = all_.shortest.find(s.v); text != all_.shortest.end() && text->second.tokens <= budget)
    return true;
  const auto found = all_.found.find(s.v);
  return found != all_.found.end() && found->second.answer == Reach::Answer::kYes &&
         found->second.tokens.size() < budget;
}

// Returns the best ending of s that is known. If the vocabulary cannot spell the shortest text, finish()
// searches for an ending, and subtracts from spelling_ the work of this search in a new epoch. A remembered
// ending subtracts the same work, so that a call finds the same endings in an old epoch and in a new epoch.
Finish Budget::finish(StateId s) {
  const Finish none{kTooMany, Finish::kNone};
  Told<Finish> text = told_with_work_left([&] { return finish_without_search(s); });
  if (!text) {
    if (s == here()) std::move(text).value();
    unproved_ = true;
    return none;
  }
  if (text->tokens < kTooMany) return *text;
  auto known = all_.found.find(s.v);
  if (known == all_.found.end()) {
    Budgets::Search search;
    const uint64_t most = std::min(kSpellReach, spelling_);
    uint64_t work = most;
    search.answer = any_way(all_.graph, s, work, search.tokens);
    search.cost = most - work;
    if (search.answer == Reach::Answer::kUnknown && most < kSpellReach) {
      spelling_ = 0;
      unproved_ = true;
      return none;
    }
    known = all_.found.emplace(s.v, std::move(search)).first;
  }
  const Budgets::Search& found = known->second;
  // In a new epoch, this call could not have paid for finding the remembered answer.
  if (!paid_.contains(s.v) && found.cost > spelling_) {
    spelling_ = 0;
    unproved_ = true;
    return none;
  }
  if (paid_.insert(s.v).second) spelling_ -= found.cost;
  if (found.answer == Reach::Answer::kYes) return {found.tokens.size() + 1, Finish::kFound, found.tokens[0]};
  unproved_ = unproved_ || found.answer == Reach::Answer::kUnknown;
  return none;
}

std::size_t Budget::needed(StateId s) {
  if (all_.limits) {
    const uint32_t tokens = all_.limits->way(s).tokens;
    return tokens == Limits::kNever ? kTooMany : tokens + 1;
  }
  return finish(s).tokens;
}

// Returns the tokens that needed() counted, without the end token; none if needed() counted bytes.
std::vector<TokenId> Budget::way_from(StateId s) {
  std::vector<TokenId> out;
  if (parser().state(s).accepting) return out;
  const Finish counted = finish(s);
  if (counted.from == Finish::kFound) return all_.found.at(s.v).tokens;
  if (counted.tokens == kTooMany || counted.from == Finish::kBytes) return out;
  std::vector<Piece> pieces;
  all_.cutter.spell(all_.completion.of(counted.from == Finish::kBlind ? all_.masks.blind(s) : s), pieces);
  for (const Piece& p : pieces) out.push_back(p.token);
  return out;
}

std::string Budget::bytes_of(std::span<const TokenId> tokens) const {
  std::string out;
  for (const TokenId t : tokens) out += vocabulary().bytes(t);
  return out;
}

bool Budget::follow(StateId s, std::span<const TokenId> tokens) { return completes(s, bytes_of(tokens)); }

// Returns an upper bound of the bytes that complete the text behind a token. Returns kFar if the token leads
// nowhere, or back to the same state.
uint32_t Budget::bytes_behind(TokenId t) {
  const StateId s = all_.parser.read(here(), vocabulary().bytes(t));
  return s == Parser::dead() || s == here() ? Lengths::kFar : all_.lengths.of(all_.masks.blind(s));
}

// Returns the token of the mask with the smallest bytes_behind(); -1 if the mask has more than kWalkedSingly
// tokens. The tokens' bounds are compared with each other, not with the bound of the state, because a bound
// may rise with a token: inside a name it counts the longest value that any name allows.
TokenId Budget::nearest() {
  const Vocabulary& v = vocabulary();
  std::vector<uint32_t> row(v.words());
  write_row(*all_.masks.mask(here()), v, row.data());
  if (more_than(row, kWalkedSingly)) return -1;
  TokenId out = -1;
  uint32_t least = Lengths::kFar;
  for_each_token(row, [&](TokenId t) {
    if (const uint32_t bytes = bytes_behind(t); bytes < least) {
      least = bytes;
      out = t;
    }
  });
  return out;
}

// Returns the state by which a mask of `from` judges a token: the state behind the token, with captured text
// dropped at each byte.
StateId Budget::judged_by(StateId from, std::string_view token) {
  StateId s = all_.masks.blind(from);
  for (const char b : token)
    if (s != Parser::dead()) s = all_.masks.blind(all_.parser.step(s, static_cast<uint8_t>(b)));
  return s;
}

bool Budget::promised(TokenId t, StateId to) {
  if (const std::vector<TokenId> way = way_from(here()); !way.empty() && way[0] == t) return true;
  if (std::vector<TokenId> rest; followed_way(kTooMany, rest) && rest[0] == t) return true;
  const StateId any = judged_by(here(), vocabulary().bytes(t));
  return any != Parser::dead() && any != to && needed(any) < kTooMany && follow(to, way_from(any));
}

// Looks for an earlier point of the text such that the text has since followed the way from this point
// (way_from()), and the rest of the way fits the budget. If there is such a point, `rest` gets the tokens of
// the rest and the result is true. Points between two bytes are tried, back to the token that makes
// kLookBack bytes full, or to bytes that came without a token. So the answer depends on how the text was cut
// into tokens by three things: where this walk ends; which states judged the tokens (judged_by()); and, if
// the vocabulary lacks bytes, which points are between tokens.
bool Budget::followed_way(std::size_t budget, std::vector<TokenId>& rest) {
  std::string since;
  // Returns true if the text has followed the way from s: the text of this way starts with the bytes `since`,
  // which were written behind s, and what is left of the way fits the budget.
  const auto goes_on = [&](StateId s) {
    const std::string text = bytes_of(way_from(s));
    std::vector<Piece> pieces;
    if (text.size() <= since.size() || !text.starts_with(since) ||
        !written_.whole.has(written_.bytes + text.size() - since.size()) ||
        !all_.cutter.spell(std::string_view(text).substr(since.size()), pieces) || pieces.size() >= budget)
      return false;
    for (const Piece& p : pieces) rest.push_back(p.token);
    return true;
  };
  for (std::size_t n = past_.size() - 1; n > 0 && since.size() < kLookBack; --n) {
    if (!writes(tokens_[n - 1])) return false;
    const std::string_view token = vocabulary().bytes(tokens_[n - 1]);
    std::vector<StateId> at{past_[n - 1]};
    for (char b : token) at.push_back(all_.parser.step(at.back(), static_cast<uint8_t>(b)));
    // The row judged the token by this state, without the captured text. The way of this state may have more
    // tokens, or bytes, than the way of the state with the captured text.
    if (const StateId any = judged_by(at[0], token); any != at.back() && needed(any) < kTooMany) {
      if (goes_on(any) && follow(here(), rest)) return true;
      rest.clear();
    }
    for (std::size_t k = token.size(); k-- > 0;) {
      since.insert(since.begin(), token[k]);
      // Inside a token, a point whose way needs a search is skipped. Its search would use up the work of the
      // points between tokens.
      if (at[k] == Parser::dead() || (k > 0 && all_.spelling && tokens_without_search(at[k]) == kTooMany))
        continue;
      const Finish counted = finish(at[k]);
      if (counted.from == Finish::kBytes && counted.tokens <= budget + since.size()) {
        if (const TokenId next = nearest(); next >= 0) rest.assign(1, next);
        return !rest.empty();
      }
      if (counted.tokens < kTooMany && goes_on(at[k])) return true;
    }
  }
  return false;
}

// Called if needed() exceeds the budget. Finds other tokens that lead to an end within it and writes them to
// `rest`: those of a followed way, otherwise those of a search from the last state. If it finds none, the
// text may have followed tokens that a search from an earlier point found; earlier_way() makes this search
// again. A grammar that omits keeps no searches, so there earlier_way() makes all of them (see the top of
// this file).
Reach::Answer Budget::find_way(std::size_t budget, std::vector<TokenId>& rest) {
  rest.clear();
  if (followed_way(budget, rest)) return Reach::Answer::kYes;
  const Reach::Answer found = omits() ? Reach::Answer::kUnknown : sought_within(here(), budget, &rest);
  return found == Reach::Answer::kUnknown ? earlier_way(budget, rest) : found;
}

// Makes find_way()'s searches from earlier points of the text: from the last point whose way fits the budget,
// or from the first point. Where the text leaves the tokens that a search found, it searches anew.
Reach::Answer Budget::earlier_way(std::size_t budget, std::vector<TokenId>& rest) {
  const std::size_t n = past_.size() - 1;
  const auto left = [&](std::size_t i) { return budget + (n - i); };
  const auto goes_back = [&](std::size_t i) { return i > 0 && n - i < kLongWay && writes(tokens_[i - 1]); };
  std::size_t from = n;
  while (goes_back(from) && needed(past_[from - 1]) > left(from - 1)) --from;
  std::vector<TokenId> way;
  if (goes_back(from))
    way = way_from(past_[--from]);
  else if (from == n && !omits())
    return Reach::Answer::kUnknown;  // find_way() searched from here
  else if (const Reach::Answer found = sought_within(past_[from], left(from), &way);
           found != Reach::Answer::kYes && from == n)
    return found;
  for (std::size_t k = from;; ++k) {
    const bool on = k - from < way.size();
    if (k == n && on) {
      rest.assign(way.begin() + static_cast<std::ptrdiff_t>(k - from), way.end());
      return Reach::Answer::kYes;
    }
    if (on && tokens_[k] == way[k - from]) continue;
    // The tokens that were found end here, but the text may not.
    if (k == n) return Reach::Answer::kUnknown;
    // Here the text goes on with another token than the search found.
    from = k + 1;
    way.clear();
    const Reach::Answer found = sought_within(past_[from], left(from), &way);
    if (found != Reach::Answer::kYes && from == n) return found;
    k = from - 1;
  }
}

}  // namespace structgen
