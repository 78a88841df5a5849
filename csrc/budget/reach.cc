#include "budget/reach.h"

#include <algorithm>
#include <utility>

#include "base/depth.h"
#include "base/work.h"

namespace structgen {

namespace {
// find() visits at most this many states; then its answer is kUnknown.
constexpr std::size_t kMet = 20'000;
// In within(), looking at one edge costs this much work.
constexpr uint64_t kPerEdge = 200;
}  // namespace

// Returns the edges of a state. A call pays for the edges of a state once. If they cost more than `work`,
// returns null and sets `work` to 0.
const TokenGraph::Edges* Reach::edges(StateId s, uint64_t& work) {
  if (paid_.contains(s.v)) return graph_.edges(s, ~uint64_t{0});
  const TokenGraph::Edges* e = graph_.edges(s, work);
  if (!e) {
    // In a new graph the search would have spent all its work on these edges. In this graph it gives up all
    // its work, too, so that both give the same answer.
    work = 0;
    return nullptr;
  }
  work -= e->cost;
  paid_.insert(s.v);
  return e;
}

std::size_t Reach::known(StateId s) const {
  if (graph_.parser().state(s).accepting) return 1;
  const auto found = found_.find(s.v);
  return std::min(shortest_(s), found == found_.end() ? kFar : found->second.tokens);
}

std::size_t Reach::least(StateId s) const {
  if (graph_.parser().state(s).accepting) return 1;
  const auto found = least_.find(s.v);
  return std::max(found == least_.end() ? 2 : found->second, fewest_(s));
}

void Reach::raise(StateId s, std::size_t least) {
  std::size_t& slot = least_.try_emplace(s.v, least).first->second;
  slot = std::max(slot, least);
}

// Notes the token from s to `to`, if it begins a way of fewer tokens than the one noted for s.
void Reach::take(StateId s, StateId to, TokenId token) {
  const std::size_t tokens = known(to) + 1;
  if (tokens < known(s)) found_[s.v] = {tokens, token};
}

// Follows the noted tokens until it reaches a state whose shortest text is the best ending that is known.
// Each state on the way needs fewer tokens than the state before, so the loop ends.
std::vector<TokenId> Reach::way(StateId& s) {
  std::vector<TokenId> out;
  for (auto found = found_.find(s.v); found != found_.end() && found->second.tokens < shortest_(s);
       found = found_.find(s.v)) {
    out.push_back(found->second.next);
    s = graph_.step(s, found->second.next);
  }
  return out;
}

// Searches to depth k. within() asks the known bounds first, then the earlier searches that ended with
// kUnknown, and follows edges last.
Reach::Answer Reach::within(StateId s, std::size_t k, uint64_t& work) {
  check_depth();
  if (least(s) > k) return Answer::kNo;
  if (known(s) <= k) return Answer::kYes;
  const uint64_t before = work;
  if (const auto met = tried_.find(s.v);
      met != tried_.end() && k <= met->second.tokens && before <= met->second.work)
    return Answer::kUnknown;
  const TokenGraph::Edges* e = edges(s, work);
  if (!e) return Answer::kUnknown;
  work -= std::min<uint64_t>(work, kPerEdge * e->to.size());
  charge(4 * static_cast<int64_t>(e->to.size()));
  // If a next state is known to be near enough to the end, there is nothing to search.
  for (const auto& [to, token] : e->to)
    if (least(to) < k && known(to) < k) {
      take(s, to, token);
      return Answer::kYes;
    }
  bool all = e->all;
  for (const auto& [to, token] : e->to) {
    const Answer a = within(to, k - 1, work);
    if (a == Answer::kYes) {
      take(s, to, token);
      return a;
    }
    if (a == Answer::kUnknown) {
      all = false;
      if (work == 0) break;
    }
  }
  if (!all) {
    if (work > 0) tried_[s.v] = {k, before};
    return Answer::kUnknown;
  }
  raise(s, k + 1);
  return Answer::kNo;
}

Reach::Answer Reach::descend(StateId& s, std::size_t most, const std::function<uint32_t(StateId)>& bytes,
                             const std::function<std::size_t(StateId)>& rest,
                             const std::function<TokenId(StateId)>& next, std::vector<TokenId>& out,
                             uint64_t& work) {
  std::unordered_set<uint32_t> seen{s.v};
  while (out.size() + rest(s) > most) {
    if (out.size() + 1 >= most) return Answer::kUnknown;
    const TokenGraph::Edges* e = edges(s, work);
    if (!e || work < e->to.size()) return Answer::kUnknown;
    work -= e->to.size();
    charge(static_cast<int64_t>(e->to.size()));
    StateId best = Parser::dead();
    TokenId by = -1;
    uint32_t left = bytes(s);
    for (const auto& [to, token] : e->to)
      if (const uint32_t after = bytes(to); after < left && !seen.contains(to.v)) {
        best = to;
        by = token;
        left = after;
      }
    // No token leaves fewer bytes. This case arises between two values, where the bounds come from two
    // different rules.
    if (by < 0) {
      by = next(s);
      if (by < 0) return Answer::kUnknown;
      best = graph_.step(s, by);
      if (best == Parser::dead() || seen.contains(best.v)) return Answer::kUnknown;
    }
    out.push_back(by);
    s = best;
    seen.insert(s.v);
  }
  return Answer::kYes;
}

// Searches breadth first, so that the nearest end is found first. If the search has followed all edges and
// has met no end, no tokens complete any of the states that it has met; least_ keeps this.
Reach::Answer Reach::find(StateId& s, const std::function<bool(StateId)>& ends, std::vector<TokenId>& out,
                          uint64_t& work) {
  out.clear();
  if (least(s) == kFar) return Answer::kNo;
  struct Met {
    StateId state;
    std::size_t from;
    TokenId token;
  };
  std::vector<Met> met{{s, 0, -1}};
  std::unordered_set<uint32_t> seen{s.v};
  bool all = true;
  for (std::size_t i = 0; i < met.size(); ++i) {
    if (graph_.parser().state(met[i].state).accepting || (i > 0 && ends(met[i].state))) {
      for (std::size_t at = i; at > 0; at = met[at].from) out.insert(out.begin(), met[at].token);
      s = met[i].state;
      return Answer::kYes;
    }
    const TokenGraph::Edges* e = edges(met[i].state, work);
    if (!e || met.size() > kMet) return Answer::kUnknown;
    all = all && e->all;
    work -= std::min<uint64_t>(work, e->to.size());
    for (const auto& [to, token] : e->to)
      if (least(to) < kFar && seen.insert(to.v).second) met.push_back({to, i, token});
  }
  if (!all) return Answer::kUnknown;
  for (const Met& m : met) raise(m.state, kFar);
  return Answer::kNo;
}

}  // namespace structgen
