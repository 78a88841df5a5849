// Finishing within a budget: the tokens after which a text can still be completed in time.
//
// In: a matcher's state, tokens left. Out: its mask, less the tokens that leave too little. Cost: one
// comparison while the budget is larger than what any allowed token could make necessary
// (State::loose). State::loose is a bound in bytes, put together while the mask is made
// (parse/lengths.h, mask/fill.h), or the largest need that was found when the tokens were looked at.
// Otherwise the cost is a walk over the tokens in doubt and one completion for each state that the walk
// meets. A token that stays inside a run of characters costs nothing if some tokens are to spare.
//
// The problem. With 5 tokens left, a token that begins a long value is allowed by the grammar and must
// not be written. To decide this takes a completion for each of the states that the tokens lead to.
//
// The idea. The tokens that finish from a state are counted along its shortest completion, cut into as few
// tokens as it takes. After `{"a":` with 4 tokens left, a an integer, b a required boolean:
//
//     needed(s)     the shortest completion is `0,"b":true}`: say 4 tokens, and the end token makes 5. More
//                   than 4, so no text is known that ends in time
//     with 5 left   `1` leads to a state that needs 4: `,"b":true}` in 3 tokens, and the end. It is kept
//     judged()      `12` and `13` lead to one state, which is judged once
//     plan(s)       the tokens that needed() counted; the first of them is in every mask
//     planned()     the shortest completion of the next state may be cut into more tokens than are left. Then
//                   the plan of an earlier place, which the text has followed so far, is followed on
//
// The count is an upper bound: another text may be longer and take fewer tokens. So a mask is a part of
// what a search over all texts would allow. An example: behind a token, `ab` is the shortest rest and takes
// two tokens; the rest `xyz` takes one. With 3 tokens left the token is refused (itself, `a`, `b`, the end:
// 4), though `xyz` would fit. A search (budget/reach.h) looks for fewer tokens only where no token is known
// to fit, and where the vocabulary cannot spell the shortest text. The bytes that complete a state
// (parse/lengths.h) are a bound as well, at one token a byte, and most states need no other count.
//
// The same answer for the same text. needed() and plan() are functions of a state. planned() is a function
// of the text and the budget: it looks back for the last byte whose plan the text has followed since, and
// whose rest fits the budget (followed()), then searches from here. Only where this search does not tell,
// the answer depends on where the tokens of the text end: a search from an earlier place may have found a
// way. Searches have limits of work, and a search that took over what earlier searches found would find more.
// So an entry that an epoch keeps (Budgets) is a function of a state and carries the work that it takes in a
// new epoch. A search pays this work again, and remembers only within its call (budget/reach.h). So a second
// matcher, a draft that was rolled back and a replay get the same mask, exact or not.
//
// The searches. Each looks for tokens that complete a state. They differ in the question and in their work.
// kUnknown says that the work did not suffice; it never stands for a no.
//
//     find()             is there any way to the end? For a shortest text that cannot be spelled
//     within()           do `budget` tokens suffice? The work is the caller's
//     asked_within()     the same for tokens_needed(): without captured text, then with it
//     sought_within()    the same for a mask that would be empty, with the most work: also along
//                        descends(), and with each smaller budget
//     descends()         how many tokens has the way on which each token leaves the fewest bytes?
//
// What a mask gives up. Near the end of a budget, three kinds of tokens take most of the work and are
// nearly always refused:
//
//     none to spare    with needed(s) tokens left in a string, 127,000 tokens that stay there do not fit.
//                      Only pieces of the shortest text are judged: `"`, `",`, `","`
//     a pattern        in a string with a pattern, too, only pieces are judged, as long as the bound for the
//                      tokens that stay inside it is more than the budget
//     half characters  behind a token that ends within a character the bytes of the rest are counted; no text
//                      is looked for
//
// Each of these rules is a function of the state and the budget. mask_exact is False where one applies.
//
// budget/trial.h decides which tokens of a mask fit; it also tries tokens with their own text.
//
// Invariants. A mask under a budget is a subset of the plain mask. After any of its tokens the rest of
// the budget suffices. The mask is not empty where needed() was at most the budget, because the plan's
// token is always in it.
//
// Rejected. A shortest path in tokens for each state: exact, but it takes a search over the vocabulary at
// each step; reach.h searches where the answer decides a mask. Promises kept in the epoch (each state along a
// completion learns that it can be finished), and searches that take over what earlier searches found: both
// made a mask depend on earlier texts.
#include "budget/budget.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <unordered_map>
#include <utility>

#include "base/depth.h"
#include "base/error.h"
#include "base/sorted.h"
#include "base/told.h"
#include "base/undo.h"
#include "base/work.h"
#include "budget/trial.h"

namespace structgen {

namespace {
// The work that a search may take if the user asked for it: about a tenth of a second.
constexpr uint64_t kAskedReach = 20'000'000;
// The work that such a search may take with captured text.
constexpr uint64_t kTextReach = 100'000;
// The work that the search for one state may take, if its shortest text cannot be spelled.
constexpr uint64_t kSpellReach = 200'000;
// An entry of Budgets::kept without its words, in bytes. Rows of more tokens than kKeptBudget are not kept.
constexpr std::size_t kEntry = 96, kKeptBudget = 1'000;
// The bytes that followed() goes back.
constexpr std::size_t kLookBack = 256;
// The work of trying the tokens of one mask with their own text, where something was omitted from the
// grammar: 5 milliseconds.
constexpr int64_t kTextWork = 50'000;

void set_ends(const Vocabulary& v, uint32_t* row) {
  for (TokenId t : v.eos()) set_bit(row, t);
}

// Whether a row has more than n tokens.
bool more_than(std::span<const uint32_t> row, std::size_t n) {
  std::size_t found = 0;
  for (std::size_t w = 0; w < row.size() && found <= n; ++w)
    if (row[w]) found += static_cast<std::size_t>(std::popcount(row[w]));
  return found > n;
}

// Whether a search found a way. Throws if it found no way and ruled none out.
bool certain(Reach::Answer found, std::size_t budget) {
  if (found != Reach::Answer::kUnknown) return found == Reach::Answer::kYes;
  throw Error(ErrorKind::kBudgetExceeded, "no way to complete the text within " + std::to_string(budget) +
                                              " tokens was found, and none was ruled out; tokens_needed() "
                                              "tokens are known to suffice");
}
}  // namespace

// The tokens of a text that completes a state: `"}` as one token and the end token count 2. kTooMany
// where the vocabulary cannot spell the text.
Finish Budget::cut(std::string_view text, Finish::From from) {
  const Cutter::Cut cut = all_.cutter.cut(text);
  if (cut.tokens == Cutter::kNever) return {kTooMany, Finish::kNone};
  return {cut.tokens + std::size_t{1}, from, cut.first};
}

// Whether the text leads from s to a state where the whole text may end.
bool Budget::completes(StateId s, std::string_view text) {
  for (char b : text)
    if (s != Parser::dead()) s = all_.parser.step(s, static_cast<uint8_t>(b));
  return s != Parser::dead() && parser().state(s).accepting;
}

// Whether the completion of s, a state without its captured text, is as short as the completion with
// any text.
bool Budget::any_text(StateId s) {
  return told([&] { all_.completion.of(s); }) && !all_.completion.text_matters(s);
}

// The tokens of a shortest completion of s. The completion of the state without captured text is tried first,
// because all keys that a user may write share it; it counts if it completes s as well.
Finish Budget::spelled(StateId s) {
  check_depth();
  Finish best{kTooMany, Finish::kNone};
  if (const StateId blind = all_.masks.blind(s); blind != s) {
    Told<Finish> any = told([&] { return by_text(blind); });
    if (!any && meter.exhausted()) std::move(any).value();
    if (any && any->tokens < kTooMany && any->from != Finish::kBytes) {
      // A completion that met no poison fits every captured text.
      const bool fits_all = !omits() && any_text(blind);
      if ((fits_all && !parser().unproven()) || completes(s, all_.completion.of(blind)))
        best = {any->tokens, Finish::kBlind, any->next};
      if (fits_all && best.tokens < kTooMany) return best;
    }
  }
  Told<bool> own = told([&] {
    const std::string& text = all_.completion.of(s);
    // What was omitted differs from captured text to captured text, so the completion is checked.
    if (omits() && !completes(s, text)) return;
    // If the whole text has a range of bytes, the completion with the fewest bytes counts.
    if (const Finish found = cut(text, Finish::kOwn);
        found.tokens < best.tokens || written_.whole.most < kEndless)
      best = found;
  });
  if (!own && best.tokens == kTooMany) std::move(own).value();
  return best;
}

// The tokens that suffice from s, found without a search: the tokens of its shortest text, else a bound of
// its bytes. Throws if the text takes too much work to find and no bound is known.
Finish Budget::by_text(StateId s) {
  if (parser().state(s).accepting) return {1, Finish::kOwn};
  return remember(all_.shortest, s.v, [&] {
    FirstLimit none;
    Finish best = none.otherwise(Finish{kTooMany, Finish::kNone}, [&] { return spelled(s); });
    if (best.tokens == kTooMany && all_.fast && !partial_)
      if (const uint32_t bytes = all_.lengths.of(all_.masks.blind(s)); bytes < Lengths::kFar)
        best = {bytes + std::size_t{1}, Finish::kBytes};
    if (best.tokens == kTooMany) none.rethrow();
    return best;
  });
}

// by_text() for searches: kTooMany where by_text() throws, so that a search goes on.
std::size_t Budget::shortest(StateId s) {
  if (all_.limits) return kTooMany;
  Told<Finish> text = told([&] { return by_text(s); });
  if (!text && meter.exhausted()) std::move(text).value();
  return text ? text->tokens : kTooMany;
}

// Whether a kept answer says that the budget suffices. Nothing is computed.
bool Budget::sure(StateId s, std::size_t budget) const {
  if (const auto text = all_.shortest.find(s.v); text != all_.shortest.end() && text->second.tokens <= budget)
    return true;
  const auto found = all_.found.find(s.v);
  return found != all_.found.end() && found->second.answer == Reach::Answer::kYes &&
         found->second.tokens.size() < budget;
}

// The tokens that suffice from s. If no text can be spelled, a search finds them. A search is paid from
// spelling_ with the work that it takes in a new epoch, so a kept answer is used only if this call could have
// found it.
Finish Budget::finish(StateId s) {
  const Finish none{kTooMany, Finish::kNone};
  Told<Finish> text = told([&] { return by_text(s); });
  if (!text) {
    if (s == here() || meter.exhausted()) std::move(text).value();
    unproved_ = true;
    return none;
  }
  if (text->tokens < kTooMany) return *text;
  auto known = all_.found.find(s.v);
  if (known == all_.found.end()) {
    Budgets::Search search;
    const uint64_t most = std::min(kSpellReach, spelling_);
    uint64_t work = most;
    search.answer = find(all_.graph, s, work, search.tokens);
    search.cost = most - work;
    if (search.answer == Reach::Answer::kUnknown && most < kSpellReach) {
      spelling_ = 0;
      unproved_ = true;
      return none;
    }
    known = all_.found.emplace(s.v, std::move(search)).first;
  }
  const Budgets::Search& found = known->second;
  // A search with the work that is left in spelling_ would not have found the answer.
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

// The tokens that needed() counted, without the end token. The list is empty if needed() counted bytes.
std::vector<TokenId> Budget::plan(StateId s) {
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

// Whether the tokens complete s.
bool Budget::follow(StateId s, std::span<const TokenId> tokens) {
  for (const TokenId t : tokens)
    for (char b : vocabulary().bytes(t))
      if (s != Parser::dead()) s = all_.parser.step(s, static_cast<uint8_t>(b));
  return s != Parser::dead() && parser().state(s).accepting;
}

// A search for a state whose shortest text fits the rest of the budget.
Reach Budget::search(TokenGraph& graph) {
  return Reach(graph, [this](StateId s) { return fewest(s); }, [this](StateId s) { return shortest(s); });
}

Budget::Asked Budget::asked() { return {search(all_.graph), search(all_.exact_graph)}; }

// Whether any tokens can be found that complete s, a state whose shortest text cannot be spelled. `out`
// takes the tokens.
Reach::Answer Budget::find(TokenGraph& graph, StateId s, uint64_t& work, std::vector<TokenId>& out) {
  const auto ends = [&](StateId at) {
    Told<Finish> text = told([&] { return by_text(at); });
    return text && text->tokens < kTooMany && text->from != Finish::kBytes;
  };
  StateId at = graph.begin(s);
  const Reach::Answer found = search(graph).find(at, ends, out, work);
  if (found != Reach::Answer::kYes) return found;
  const std::vector<TokenId> rest = plan(at);
  out.insert(out.end(), rest.begin(), rest.end());
  return follow(s, out) ? found : Reach::Answer::kUnknown;
}

// A lower bound of the tokens that complete s, the end token included: each is as long as the longest one.
// For a string of at least 2,000 characters and tokens of at most 20 bytes it is 101.
std::size_t Budget::fewest(StateId s) const {
  if (all_.parser.marked() || all_.parser.state(s).accepting) return 1;
  std::size_t least = kTooMany;
  for (const Item& i : all_.parser.items(s))
    least = i.regex == RegexArena::poison()
                ? 0
                : std::min<std::size_t>(least, all_.parser.regexes().least_length(i.regex));
  const std::size_t longest = std::max<std::size_t>(vocabulary().longest(), 1);
  return least == kTooMany ? 1 : 1 + (least + longest - 1) / longest;
}

// Whether `budget` tokens can complete s. `way` takes the tokens after a yes. The tokens are followed
// with the real text before a yes is given.
Reach::Answer Budget::within(Reach& search, TokenGraph& graph, StateId s, std::size_t budget, uint64_t& work,
                             std::vector<TokenId>* way) {
  if (shortest(s) <= budget) {
    if (way) *way = plan(s);
    return Reach::Answer::kYes;
  }
  StateId at = graph.begin(s);
  if (search.least(at) > budget || fewest(s) > budget) return Reach::Answer::kNo;
  if (budget > kLongWay) return Reach::Answer::kUnknown;
  const Reach::Answer out = search.within(at, budget, work);
  // Behind unproven productions an answer without captured text may hold for some texts only.
  if (out != Reach::Answer::kYes || (at == s && !way && !parser().unproven())) return out;
  std::vector<TokenId> tokens = search.way(at);
  const std::vector<TokenId> rest = plan(at);
  tokens.insert(tokens.end(), rest.begin(), rest.end());
  // The captured text forbids the tokens that were found without it.
  if (!follow(s, tokens)) return Reach::Answer::kUnknown;
  if (way) *way = std::move(tokens);
  return out;
}

// within() for a user's call, which may take more work than a mask.
Reach::Answer Budget::asked_within(Asked& search, StateId s, std::size_t budget, std::vector<TokenId>* way) {
  uint64_t work = kAskedReach, exact_work = kTextReach;
  if (!all_.limits) {
    const Reach::Answer found = within(search.reach, all_.graph, s, budget, work, way);
    if (found != Reach::Answer::kUnknown || work == 0 || budget > kLongWay) return found;
    return within(search.exact_reach, all_.exact_graph, s, budget, exact_work, way);
  }
  if (budget > kLongWay) return Reach::Answer::kUnknown;
  StateId at = all_.graph.begin(s);
  const Reach::Answer found = search.reach.within(at, budget, work);
  if (found != Reach::Answer::kYes) return found;
  all_.limits->keep(s, search.reach.way(at));
  // The search without captured text found tokens, and the captured text forbids them.
  return needed(s) > budget ? Reach::Answer::kUnknown : found;
}

// asked_within() with still more work. A search for fewer tokens takes less work, so smaller budgets are
// tried as well: their answer is a yes for this budget.
Reach::Answer Budget::sought_within(StateId s, std::size_t budget, std::vector<TokenId>* way) {
  const bool keeps = !all_.limits && budget <= kLongWay && !omits();
  const uint64_t key = uint64_t{256} * s.v + budget;
  if (const auto known = all_.sought.find(key); keeps && known != all_.sought.end()) {
    if (way) *way = known->second.tokens;
    return known->second.answer;
  }
  Asked search = asked();
  Budgets::Search made;
  const auto seek = [&] {
    const Reach::Answer found = asked_within(search, s, budget, &made.tokens);
    if (found != Reach::Answer::kUnknown) return found;
    if (uint64_t work = kAskedReach; descends(s, budget, work, &made.tokens, false) < kTooMany)
      return Reach::Answer::kYes;
    // The numbers that bounds() tries, with what it learns on the way.
    Asked rising = asked();
    for (std::size_t k = 2; k <= std::min(budget, kLongWay); ++k) {
      const Reach::Answer fewer = asked_within(rising, s, k, &made.tokens);
      if (fewer != Reach::Answer::kNo) return fewer;
    }
    return Reach::Answer::kUnknown;
  };
  made.answer = seek();
  if (way) *way = made.tokens;
  const Reach::Answer out = made.answer;
  if (keeps) all_.sought.emplace(key, std::move(made));
  return out;
}

// The number of tokens of one way to complete s, at most `budget`, taking at each state the token that
// leaves the fewest bytes; kTooMany if that way is too long. With `to_the_end` the way goes on to the
// end of the text; else only until needed() fits. For a string of at least 1000 characters, needed()
// counts a thousand one-byte tokens, and this way takes the longest tokens there are.
std::size_t Budget::descends(StateId s, std::size_t budget, uint64_t& work, std::vector<TokenId>* way,
                             bool to_the_end) {
  if (!all_.fast || all_.limits) return kTooMany;
  const auto bytes = [&](StateId to) { return all_.lengths.of(to); };
  const auto rest = [&](StateId to) {
    return to_the_end ? (parser().state(to).accepting ? 1 : kTooMany) : needed(to);
  };
  const auto next = [&](StateId from) -> TokenId {
    return told([&] { return all_.cutter.cut(all_.completion.of(from)).first; }).value_or(-1);
  };
  std::vector<TokenId> tokens;
  StateId to = all_.masks.blind(s);
  Reach down = search(all_.graph);
  if (down.descend(to, budget, bytes, rest, next, tokens, work) != Reach::Answer::kYes) return kTooMany;
  const std::vector<TokenId> last = plan(to);
  tokens.insert(tokens.end(), last.begin(), last.end());
  if (!follow(s, tokens)) return kTooMany;
  const std::size_t out = tokens.size() + 1;
  if (way) *way = std::move(tokens);
  return out;
}

// A bound of the bytes that complete the text behind a token; kFar if the token leads to the state itself or
// nowhere.
uint32_t Budget::bytes_behind(TokenId t) {
  StateId s = here();
  for (char b : vocabulary().bytes(t)) s = all_.parser.step(s, static_cast<uint8_t>(b));
  return s == Parser::dead() || s == here() ? Lengths::kFar : all_.lengths.of(all_.masks.blind(s));
}

// Of a mask with few tokens, the token behind which the bound of the bytes is smallest; -1 if the mask has
// many tokens. The bound may rise behind a token (inside a name it counts the longest value that any name
// allows), so tokens are compared with each other and not with the state.
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

// Whether the text followed the plan of an earlier place whose rest fits the budget; `rest` takes the tokens.
// A place stands behind each byte, so the answer does not depend on where the tokens of the text end.
bool Budget::followed(std::size_t budget, std::vector<TokenId>& rest) {
  std::string since;
  for (std::size_t n = past_.size() - 1; n > 0 && since.size() < kLookBack; --n) {
    if (tokens_[n - 1] < 0 || vocabulary().is_eos(tokens_[n - 1])) return false;
    const std::string_view token = vocabulary().bytes(tokens_[n - 1]);
    std::vector<StateId> at{past_[n - 1]};
    for (char b : token) at.push_back(all_.parser.step(at.back(), static_cast<uint8_t>(b)));
    for (std::size_t k = token.size(); k-- > 0;) {
      since.insert(since.begin(), token[k]);
      // A search for a place inside a token would take the work of those that stand between tokens.
      if (at[k] == Parser::dead() || (k > 0 && all_.spelling && shortest(at[k]) == kTooMany)) continue;
      const Finish counted = finish(at[k]);
      if (counted.from == Finish::kBytes && counted.tokens <= budget + since.size()) {
        if (const TokenId next = nearest(); next >= 0) rest.assign(1, next);
        return !rest.empty();
      }
      const std::string text = bytes_of(plan(at[k]));
      std::vector<Piece> pieces;
      if (text.size() <= since.size() || !text.starts_with(since) ||
          !all_.cutter.spell(std::string_view(text).substr(since.size()), pieces) || pieces.size() >= budget)
        continue;
      for (const Piece& p : pieces) rest.push_back(p.token);
      return true;
    }
  }
  return false;
}

// Finds tokens behind which the text can be completed within `budget` tokens, where needed() is more than the
// budget; `rest` takes the rest of the plan. Where the text followed no plan and a search from here does not
// tell, an earlier search may have found a way that the text followed. The opening of this file explains why.
Reach::Answer Budget::planned(std::size_t budget, std::vector<TokenId>& rest) {
  rest.clear();
  if (followed(budget, rest)) return Reach::Answer::kYes;
  const Reach::Answer behind = sought_within(here(), budget, &rest);
  const std::size_t n = past_.size() - 1;
  const auto left = [&](std::size_t i) { return budget + (n - i); };
  const auto goes_back = [&](std::size_t i) {
    return i > 0 && n - i < kLongWay && tokens_[i - 1] >= 0 && !vocabulary().is_eos(tokens_[i - 1]);
  };
  if (behind != Reach::Answer::kUnknown || !goes_back(n)) return behind;
  std::size_t from = n;
  while (goes_back(from) && needed(past_[from - 1]) > left(from - 1)) --from;
  std::vector<TokenId> way;
  if (goes_back(from))
    way = plan(past_[--from]);
  else
    sought_within(past_[from], left(from), &way);
  for (std::size_t k = from;; ++k) {
    const bool on = k - from < way.size();
    if (k == n && on) {
      rest.assign(way.begin() + static_cast<std::ptrdiff_t>(k - from), way.end());
      return Reach::Answer::kYes;
    }
    if (on && tokens_[k] == way[k - from]) continue;
    // The way ends here, and the text does not, or the text left the way.
    if (k + 1 >= n) return Reach::Answer::kUnknown;
    from = k + 1;
    way.clear();
    sought_within(past_[from], left(from), &way);
    k = from - 1;
  }
}

// Without `search`: the count of needed() and a trivial lower bound. With `search`, numbers from the lower
// bound up are tried until a number suffices or is undecided, or the work is used up.
Budget::Bounds Budget::bounds(bool search, int64_t work) {
  const StateId s = here();
  // A search is made only if the text has no range of bytes: the text with the fewest tokens may have more
  // bytes than the shortest text.
  if (!written_.any())
    return {parser().state(s).accepting && written_.whole.has(written_.bytes) ? std::size_t{1} : 2,
            ranged_finish().tokens};
  const auto known = all_.bounds.find(s.v);
  if (search && known != all_.bounds.end() && !omits()) return known->second;
  std::size_t enough = needed(s);
  if (enough == kTooMany && !all_.limits) {
    std::vector<TokenId> tokens;
    uint64_t any_work = kAskedReach, exact_work = kTextReach;
    Reach::Answer any = find(all_.graph, s, any_work, tokens);
    if (any == Reach::Answer::kUnknown) any = find(all_.exact_graph, s, exact_work, tokens);
    if (any == Reach::Answer::kNo) return {kFar, kFar};
    if (any == Reach::Answer::kYes) enough = tokens.size() + 1;
  }
  std::size_t least = 1 + !parser().state(s).accepting;
  const auto seek = [&] {
    const WorkScope part(Task::kBudget, work);
    if (uint64_t down = kAskedReach; enough > kLongWay)
      enough = std::min(enough, descends(s, enough - 1, down, nullptr, true));
    Asked searches = asked();
    for (; least < std::min(enough, kLongWay); ++least) {
      const Reach::Answer found = asked_within(searches, s, least, nullptr);
      if (found == Reach::Answer::kUnknown) break;
      if (found == Reach::Answer::kYes) enough = least;
    }
  };
  const bool sought = search && told(seek);
  const Bounds out{std::min(least, enough), enough};
  if (sought) all_.bounds[s.v] = out;
  return out;
}

// Whether the mask of the state before would have held the token that leads here. The mask is not made; no
// value: only the mask could tell.
std::optional<bool> Budget::fits(std::size_t budget) {
  if (!written_.any()) return std::nullopt;
  const std::size_t n = past_.size() - 1;
  if (n > 0 && !all_.limits) {
    if (tokens_[n - 1] < 0) return std::nullopt;
    StateId s = past_[n - 1];
    const uint32_t loose = parser().state(all_.masks.blind(s)).loose.load(std::memory_order_relaxed);
    if (all_.fast && loose != 0 && budget + 1 >= loose && !partial_) return true;
    // Of tokens that lead to one state with different captured texts, a mask tries only a few, so this
    // function cannot tell.
    bool captured = all_.masks.blind(s) != s;
    for (char b : vocabulary().bytes(tokens_[n - 1])) {
      s = all_.parser.step(s, static_cast<uint8_t>(b));
      captured = captured || all_.masks.blind(s) != s;
    }
    // A large mask does not look at all of its tokens (judge(), Trial::judge_begun()), and this function does
    // not know at which.
    if (captured || needed(here()) <= budget) return std::nullopt;
  }
  if (needed(here()) <= budget) return true;
  // planned() may have allowed the token.
  if (n > 0 && needed(past_[n - 1]) > budget + 1) return std::nullopt;
  return false;
}

void Budget::set_only(uint32_t* row, TokenId t) const {
  std::fill(row, row + vocabulary().words(), 0u);
  set_bit(row, t);
}

// Leaves only the token that needed() counted, for a call in which the other tokens take too much work.
// False: no token is known, or its count is more than the budget.
bool Budget::keep_promise(uint32_t* row, std::size_t budget) {
  if (all_.parser.state(here()).accepting && budget > 0) {
    exact_ = false;
    std::fill(row, row + vocabulary().words(), 0u);
    set_ends(vocabulary(), row);
    return true;
  }
  if (!sure(here(), budget)) {
    const std::size_t n = past_.size() - 1;
    if (n == 0 || tokens_[n - 1] < 0 || !sure(past_[n - 1], budget + 1)) return false;
    const std::vector<TokenId> way = plan(past_[n - 1]);
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

// Leaves the tokens after which a bound in bytes shows that the budget suffices. The bound needs no search,
// but it refuses tokens that a search would allow. If bounds allowed every token up to this state, they allow
// some token here. False: no token is left.
bool Budget::bound(std::span<const uint32_t> plain, uint32_t* row, std::size_t budget) {
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

// The row of a grammar that limits tokens: the tokens of a completion are counted on the ways that leave its
// limits (budget/limits.h).
bool Budget::fill_limited(uint32_t* row, std::size_t budget) {
  if (needed(here()) > budget) {
    const Reach::Answer found = sought_within(here(), budget, nullptr);
    return certain(found == Reach::Answer::kNo ? found : Reach::Answer::kUnknown, budget);
  }
  const Vocabulary& v = vocabulary();
  if (budget == 1) {
    std::fill(row, row + v.words(), 0u);
    set_ends(v, row);
  } else {
    const std::size_t room = std::min<std::size_t>(budget - 2, Limits::kNever - 1);
    exact_ = all_.limits->fill(here(), row, static_cast<uint32_t>(room)) && exact_;
    // A refused token may have another completion, longer in bytes and shorter in tokens. So the row counts
    // as exact only if the budget refused no token that the limits allow.
    std::vector<uint32_t> any(v.words());
    exact_ = all_.limits->fill(here(), any.data()) && std::equal(any.begin(), any.end(), row) && exact_;
  }
  return true;
}

// Notes that no token of the current row needs more than `most` tokens. If the blind state allows the same
// tokens, the note holds for all captured texts that lead to it.
void Budget::set_loose(StateId blind, const uint32_t* row, std::size_t most) {
  // For a range of bytes State::loose stays a bound in bytes.
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

// For a state inside a string, between two characters: the number of tokens that suffices if the next token
// consists of whole characters of the string, this token included. The count takes one token for each byte up
// to the quote, and then the completion behind the quote. kTooMany: the state is no such state, or no number
// is known.
std::size_t Budget::staying(StateId s) {
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

// Whether the string that is being written may end after one more character. If many bytes must come before
// its end, long tokens are looked for, whatever text they hold.
bool Budget::ends_soon(StateId s) {
  return std::ranges::any_of(all_.parser.items(s), [&](const Item& i) {
    return i.regex != RegexArena::poison() && all_.parser.regexes().least_length(i.regex) <= 2;
  });
}

// The tokens that write a beginning of the text that needed() counted, if enough tokens are left for the rest
// of this text. False: needed() counted no text.
bool Budget::pieces_of_plan(std::size_t budget, std::vector<TokenId>& out) {
  const Finish::From from = finish(here()).from;
  if (from != Finish::kOwn && from != Finish::kBlind) return false;
  all_.cutter.begins(all_.completion.of(from == Finish::kOwn ? here() : all_.masks.blind(here())), budget - 2,
                     out);
  return true;
}

// Takes out the tokens that leave too little if their captured text counts. Where something was omitted from
// the grammar for a captured text, a completion of the blind state may not complete the state with that text.
// If no text is being captured, only tokens that begin to capture are tried.
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

// The entry of this state and budget in Budgets::kept.
Budgets::Kept* Budget::kept(std::size_t budget) {
  if (all_.kept_bytes > all_.world.policy.rows()) {
    all_.kept.clear();
    all_.kept_bytes = 0;
  }
  const auto [at, fresh] = all_.kept.try_emplace(uint64_t{here().v} << 32 | budget);
  if (fresh) all_.kept_bytes += kEntry;
  return &at->second;
}

// Whether the budget suffices after every token of the mask. A mask that was not measured yet is measured.
bool Budget::binds_nothing(std::size_t budget) {
  const StateId from = all_.masks.blind(here());
  const std::atomic<uint32_t>& loose = all_.parser.state(from).loose;
  if (all_.fast && loose.load(std::memory_order_relaxed) == 0) {
    all_.masks.measure_with(&all_.lengths);
    const WorkScope part(Task::kBudget, share_of_work());
    // To measure the mask takes too much work, so its tokens are judged one by one.
    if (!told([&] { all_.masks.measure(from); }))
      all_.parser.state(from).loose.store(Lengths::kFar, std::memory_order_relaxed);
  }
  const uint32_t most = loose.load(std::memory_order_relaxed);
  if (most == 0 || budget < most || partial_) return false;
  all_.parser.state(here()).loose.store(most, std::memory_order_release);
  return true;
}

// A row that is a function of the state and the budget is kept.
bool Budget::narrow_mask(uint32_t* row, std::size_t budget) {
  if (budget <= 1 || binds_nothing(budget)) return narrow(row, budget);
  Budgets::Kept* const known =
      !partial_ && !parser().unproven() && budget <= kKeptBudget ? kept(budget) : nullptr;
  if (known && !known->words.empty()) {
    std::ranges::copy(known->words, row);
    exact_ = exact_ && known->exact;
    return true;
  }
  const std::optional<bool> by_state = judge(row, budget);
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

// Leaves the tokens of a mask after which enough of the budget is left.
bool Budget::narrow(uint32_t* row, std::size_t budget) {
  if (budget == 0) return false;
  if (budget == 1 && all_.parser.state(here()).accepting) {
    std::fill(row, row + vocabulary().words(), 0u);
    set_ends(vocabulary(), row);
    return true;
  }
  return binds_nothing(budget) || judge(row, budget).has_value();
}

// The tokens of a mask that stay inside a string and leave enough. With tokens to spare they are not judged
// one by one: behind such a token the rest of the text is as before, whatever was captured, and a character
// that is begun takes at most kSpareBytes more bytes.
Budget::Staying Budget::stay(const Mask* m, StateId from, std::size_t budget) {
  if (!m || !m->dense) return {};
  if (m->inside_run && !all_.spelling && budget > needed(from) + kSpareBytes)
    return {m->dense, needed(from) + kSpareBytes + 1};
  // In a string with a pattern the rest changes behind such a token, but one bound holds for all of them.
  RunClass* const characters = all_.masks.characters();
  const std::size_t suffice = characters ? staying(from) : kTooMany;
  if (suffice + kSpareBytes <= budget)
    return {characters->up_to(characters->longest()).data(), suffice + kSpareBytes};
  if (suffice <= budget) return {characters->cuts().whole.data(), suffice};
  return {nullptr, 0, suffice < kTooMany};
}

// Leaves the tokens of a mask after which enough of the budget is left. No value: no token is left. True: the
// row is a function of the state and the budget, and may be kept. False: the row depends on the text as well.
//
// Where the mask is large, no token is to spare and a string may end at once, only the tokens that write a
// beginning of the shortest text are judged: to judge a hundred thousand tokens would find few others.
std::optional<bool> Budget::judge(uint32_t* row, std::size_t budget) {
  const Vocabulary& v = vocabulary();
  const StateId from = all_.masks.blind(here());
  // The token of the plan, which leaves enough.
  TokenId next = -1;
  std::vector<TokenId> rest;
  const bool enough = needed(here()) <= budget;
  if (enough) {
    next = finish(here()).next;
  } else if (!certain(planned(budget, rest), budget)) {
    return std::nullopt;
  } else {
    next = rest[0];
  }
  const bool plain = all_.world.cache && all_.fast && !partial_;
  // An epoch that has just begun lacks the mask that the caller made in the one before.
  if (plain && !all_.masks.peek(here())) told([&] { all_.masks.mask(here()); });
  const Mask* const made = all_.world.cache ? all_.masks.peek(here()) : nullptr;
  const Mask* const m = plain ? made : nullptr;
  const Staying stays = stay(made, from, budget);
  std::vector<TokenId> tokens;
  const bool none_to_spare = stays.too_near || (budget > 2 && needed(here()) == budget && ends_soon(here()));
  const bool pieces = m && m->dense && enough && none_to_spare && pieces_of_plan(budget, tokens);
  // A mask that is stored as a list is judged token by token.
  const bool listed = pieces || (m && !m->dense);
  std::vector<uint32_t> open;
  Trial trial(*this, budget);
  if (listed && !pieces) {
    tokens.assign(m->added, m->added + m->n_added);
    tokens.insert(tokens.end(), m->shared, m->shared + m->n_shared);
    // What is learnt from one token helps to judge the next, so the tokens are always judged in one order.
    sort_unique(tokens);
  } else if (!listed) {
    open.assign(row, row + v.words());
    for (TokenId t : v.eos()) clear_bit(open.data(), t);
    if (stays.row)
      for (uint32_t w = 0; w < v.words(); ++w) open[w] &= ~stays.row[w];
    trial.open = open.data();
    trial.keep.assign(v.words(), 0);
  }
  const auto look = [&] {
    if (listed) {
      for (const TokenId t : tokens) trial.judge_one(t, from);
    } else if (more_than(open, kWalkedSingly)) {
      if (!trial.judge_strings(from)) trial.judge_all(from);
    } else {
      for_each_token(open, [&](TokenId t) { trial.judge_one(t, from); });
    }
    if (!trial.by_state()) {
      trial.judge_texts();
    } else if (const std::size_t most = std::max(trial.most, stays.most);
               !pieces && !trial.tired && most < kTooMany) {
      // For every budget from here on, no token needs more than the worst of these.
      set_loose(from, row, most);
    }
    // A token that was not found in time is refused.
    if (trial.tired || unproved_) exact_ = false;
  };
  // A token that was not judged yet is refused.
  const bool judged = static_cast<bool>(told(look));
  if (!judged) exact_ = false;
  bool refused = pieces;
  if (listed) {
    refused = refused || trial.taken.size() < tokens.size();
    std::fill(row, row + v.words(), 0u);
    for (const TokenId t : trial.taken) set_bit(row, t);
    if (m->accepting) set_ends(v, row);
  } else {
    uint32_t lost = 0;
    for (uint32_t w = 0; w < v.words(); ++w) {
      lost |= open[w] & ~trial.keep[w];
      row[w] = (row[w] & ~open[w]) | trial.keep[w];
    }
    refused = lost != 0;
  }
  // With two tokens left a token fits exactly where the text may end behind it.
  if (refused && (pieces || budget > 2)) exact_ = false;
  if (omits() && partial_) keep_finished(row, budget);
  if (next < 0 && std::all_of(row, row + v.words(), [](uint32_t word) { return word == 0; })) {
    if (finish(here()).from == Finish::kBytes) next = nearest();
    if (next < 0) {
      if (!certain(planned(budget, rest), budget)) return std::nullopt;
      next = rest[0];
    }
  }
  // The plan's token is set, whatever part of the row was judged.
  if (next >= 0) set_bit(row, next);
  return enough && judged && !trial.tired && !unproved_ && trial.by_state();
}

}  // namespace structgen
