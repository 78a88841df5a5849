// Searches for tokens that complete a state, made where the shortest text of the state does not fit or cannot
// be spelled. budget.cc says who asks for a search.
//
// In: a state, a number of tokens, a limit on work. Out: kYes, with tokens that the parser has read from the
// state, captured text included; kNo, which is proved; or kUnknown if the work did not suffice. Cost: at most
// the limit on work, counted on the graph of tokens (budget/token_graph.h).
//
//     question           asks                                                          work
//     any_way()          do any tokens complete the state? For a state whose           the caller's
//                        shortest text cannot be spelled
//     within()           do at most `budget` tokens complete the state?                the caller's
//     asked_within()     the same for tokens_needed(): without captured text, then     kAskedReach,
//                        with it                                                       kTextReach
//     sought_within()    the same for a mask that would be empty; also by descends(),  limits of a mask; the
//                        and with each smaller budget                                  answer is kept
//     descends()         how many tokens has the way on which each token leaves the    the caller's
//                        fewest bytes?
//     bounds()           how many tokens are needed at least, and how many suffice?    the caller's
//
// Example: `""}` takes 3 tokens, and `"x"}` is one token. within() for 2 tokens goes down the graph, meets
// the token `"x"}`, and the end token is the second.
#include <algorithm>
#include <utility>

#include "base/told.h"
#include "base/work.h"
#include "budget/budget.h"

namespace structgen {

namespace {
// The work, in trie nodes, of a search that the user asked for: about a tenth of a second.
constexpr uint64_t kAskedReach = 20'000'000;
// The work, in trie nodes, of such a search if it keeps captured text.
constexpr uint64_t kTextReach = 100'000;
// sought_within() may take this many times the work of one mask (at most kMostSought units): kSoughtHere
// from the last state, kSoughtBefore from an earlier one.
constexpr int64_t kSoughtHere = 2, kSoughtBefore = 4, kMostSought = 50'000'000;
}  // namespace

Reach Budget::search(TokenGraph& graph) {
  return Reach(
      graph, [this](StateId s) { return fewest(s); }, [this](StateId s) { return tokens_without_search(s); });
}

Budget::Asked Budget::asked() { return {search(all_.graph), search(all_.exact_graph)}; }

// For a state whose shortest text the vocabulary cannot spell: looks for any tokens that complete the state.
// After kYes these tokens are in `out`.
Reach::Answer Budget::any_way(TokenGraph& graph, StateId s, uint64_t& work, std::vector<TokenId>& out) {
  const auto ends = [&](StateId at) {
    Told<Finish> text = told([&] { return finish_without_search(at); });
    return text && text->tokens < kTooMany && text->from != Finish::kBytes;
  };
  StateId at = graph.begin(s);
  const Reach::Answer found = search(graph).find(at, ends, out, work);
  if (found != Reach::Answer::kYes) return found;
  const std::vector<TokenId> rest = way_from(at);
  out.insert(out.end(), rest.begin(), rest.end());
  return follow(s, out) ? found : Reach::Answer::kUnknown;
}

// Returns a lower bound of the tokens that complete s, end token included: the bytes of the completion
// divided by those of the longest token. A string of at least 2,000 characters and tokens of at most 20 bytes
// give 101.
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

// Tells whether at most `budget` tokens complete s. After kYes, `way` has these tokens; the parser has read
// them with the captured text.
Reach::Answer Budget::within(Reach& search, TokenGraph& graph, StateId s, std::size_t budget, uint64_t& work,
                             std::vector<TokenId>* way) {
  if (tokens_without_search(s) <= budget) {
    if (way) *way = way_from(s);
    return Reach::Answer::kYes;
  }
  StateId at = graph.begin(s);
  if (search.least(at) > budget || fewest(s) > budget) return Reach::Answer::kNo;
  if (budget > kLongWay) return Reach::Answer::kUnknown;
  const Reach::Answer out = search.within(at, budget, work);
  // With unproven productions, an answer that ignores captured text may be right for some texts only.
  if (out != Reach::Answer::kYes || (at == s && !way && !parser().unproven())) return out;
  std::vector<TokenId> tokens = search.way(at);
  const std::vector<TokenId> rest = way_from(at);
  tokens.insert(tokens.end(), rest.begin(), rest.end());
  // The tokens were found without the captured text, and the captured text forbids them.
  if (!follow(s, tokens)) return Reach::Answer::kUnknown;
  if (way) *way = std::move(tokens);
  return out;
}

// Answers the question of within(), with the limits on work of a call that the user makes.
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
  // The tokens were found without the captured text, and the captured text forbids them.
  return needed(s) > budget ? Reach::Answer::kUnknown : found;
}

Reach::Answer Budget::any_way(StateId s, std::vector<TokenId>& out) {
  uint64_t work = kAskedReach, exact_work = kTextReach;
  const Reach::Answer found = any_way(all_.graph, s, work, out);
  return found == Reach::Answer::kUnknown ? any_way(all_.exact_graph, s, exact_work, out) : found;
}

// Answers the question of asked_within(), with more work. sought_within() also tries smaller budgets, from 2
// upwards: a search for fewer tokens takes less work, and if fewer tokens suffice, so does the budget. All
// these searches together may take the work of a few masks. A search from an earlier point of the text may
// take more work, so that a new epoch finds again what a row once promised.
Reach::Answer Budget::sought_within(StateId s, std::size_t budget, std::vector<TokenId>* way) {
  const bool keeps = !all_.limits && !omits() && budget <= UINT32_MAX;
  const uint64_t key = uint64_t{s.v} << 32 | budget;
  const int64_t most = (s == here() ? kSoughtHere : kSoughtBefore) * std::min(mask_work_, kMostSought);
  if (const auto known = all_.sought.find(key);
      keeps && known != all_.sought.end() &&
      (known->second.cost == 0 || static_cast<int64_t>(known->second.cost) >= most)) {
    if (way) *way = known->second.tokens;
    return known->second.answer;
  }
  Asked search = asked();
  Budgets::Search made;
  const auto seek = [&] {
    // If the shortest text cannot be spelled, any text counts, as in bounds().
    if (!all_.limits && needed(s) == kTooMany) {
      const Reach::Answer any = any_way(s, made.tokens);
      if (any == Reach::Answer::kNo || (any == Reach::Answer::kYes && made.tokens.size() < budget))
        return any;
    }
    const Reach::Answer found = asked_within(search, s, budget, &made.tokens);
    if (found != Reach::Answer::kUnknown) return found;
    const auto down = [&] {
      const WorkScope part(Task::kBudget, most / 2);
      uint64_t work = kAskedReach;
      return descends(s, budget, work, &made.tokens, false) < kTooMany;
    };
    if (told(down).value_or(false)) return Reach::Answer::kYes;
    // Smaller budgets, as in bounds().
    Asked rising = asked();
    for (std::size_t k = 2; k <= std::min(budget, kLongWay); ++k) {
      const Reach::Answer fewer = asked_within(rising, s, k, &made.tokens);
      if (fewer != Reach::Answer::kNo) return fewer;
    }
    return Reach::Answer::kUnknown;
  };
  Told<Reach::Answer> found = told_with_work_left([&] {
    const WorkScope part(Task::kBudget, most);
    return seek();
  });
  if (found)
    made.answer = *found;
  else
    made = {Reach::Answer::kUnknown, static_cast<uint64_t>(most), {}};
  if (way) *way = made.tokens;
  const Reach::Answer out = made.answer;
  if (keeps && made.tokens.size() <= kLongWay) all_.sought.insert_or_assign(key, std::move(made));
  return out;
}

// Follows one sequence of tokens that completes s, and returns its length, or kTooMany if it exceeds
// `budget`. At each state it takes the token that leaves the fewest bytes. With `to_the_end` it goes on to
// the end of the text, otherwise until needed() fits. In a string of at least 1000 characters, needed()
// counts a thousand one-byte tokens; this takes the longest tokens instead.
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
  const std::vector<TokenId> last = way_from(to);
  tokens.insert(tokens.end(), last.begin(), last.end());
  if (!follow(s, tokens)) return kTooMany;
  const std::size_t out = tokens.size() + 1;
  if (way) *way = std::move(tokens);
  return out;
}

// Without `search`, returns needed() and a simple lower bound. With `search`, asks for each number from the
// lower bound upwards whether so many tokens suffice, until the answer is yes or not known, or the work is
// used up.
Budget::Bounds Budget::bounds(bool search, int64_t work) {
  const StateId s = here();
  // With a range of bytes nothing is searched: the text of the fewest tokens may have too many bytes.
  if (!written_.any())
    return {parser().state(s).accepting && written_.whole.has(written_.bytes) ? std::size_t{1} : 2,
            ranged_finish().tokens};
  const auto known = all_.bounds.find(s.v);
  if (search && known != all_.bounds.end() && !omits()) return known->second;
  std::size_t enough = needed(s);
  if (enough == kTooMany && !all_.limits) {
    std::vector<TokenId> tokens;
    const Reach::Answer any = any_way(s, tokens);
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

}  // namespace structgen
