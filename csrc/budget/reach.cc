#include "budget/reach.h"

#include <algorithm>
#include <bit>
#include <unordered_set>

#include "base/depth.h"
#include "base/work.h"

namespace structgen {

namespace {
constexpr std::size_t kAlike = 4'096;  // states that one token may lead to
constexpr std::size_t kMet = 20'000;   // that one search in breadth meets
}  // namespace

// From a state in a string, without a walk over its tokens. The mask tells which of the run's tokens may
// stand.
bool Reach::edges_of_run(StateId s, Edges& out, uint64_t& spent) {
  if (limited_ || exact_) return false;
  struct Add {
    Reach& search;
    StateId from;
    Edges& out;
    std::vector<uint32_t> row;
    std::unordered_set<uint32_t> seen;
    void add(StateId to, TokenId t) {
      if (seen.insert(to.v).second) out.to.emplace_back(to, t);
    }
    void mask() {
      if (!row.empty()) return;
      row.resize(search.vocabulary_.words());
      write_row(*search.masks_.mask(from), search.vocabulary_, row.data());
    }
    void reach(StateId to, std::span<const TokenId> tokens) {
      mask();
      if (seen.contains(to.v)) return;
      for (TokenId t : tokens)
        if (row[static_cast<uint32_t>(t) >> 5] >> (t & 31) & 1) return add(to, t);
    }
    void whole(StateId to, const Words& tokens) {
      mask();
      for (uint32_t w = 0; w < tokens.size(); ++w)
        if (const uint32_t bits = tokens[w] & row[w])
          return add(to, static_cast<TokenId>(w * 32 + static_cast<uint32_t>(std::countr_zero(bits))));
    }
    bool stops(StateId at) { return search.ends_in_text(at, out); }
    void stopped(std::span<const TokenId>) {}
    void done(const Words& tokens) {
      mask();
      for (uint32_t w = 0; w < tokens.size(); ++w) row[w] &= ~tokens[w];
    }
  } add{*this, s, out, {}, {}};
  const int64_t before = meter.left();
  const bool out_of_run = targets_.visit(s, add);
  spent += SearchCost::kUnit * static_cast<uint64_t>(std::max<int64_t>(0, before - meter.left()));
  return out_of_run;
}

// Whether the captured text of a state decides everything that follows. Notes where it decides anything.
bool Reach::ends_in_text(StateId s, Edges& out) const {
  const State& st = parser_.state(s);
  if (!st.poisoned) return false;
  out.all = false;
  return st.n == 1 && !st.accepting;
}

const Reach::Edges* Reach::edges(StateId s, uint64_t& work) {
  if (const auto it = edges_.find(s.v); it != edges_.end()) return &it->second;
  if (bytes_ > most_) return nullptr;
  const uint64_t* tried = too_little_.find(s.v);
  if (work < SearchCost::kLeast || (tried && work <= *tried)) return nullptr;
  Edges out;
  uint64_t spent = 0;
  if (!edges_of_run(s, out, spent) && !edges_by_walk(s, out, spent, work)) {
    too_little_.emplace(s.v, work).first = work;
    work = 0;
    return nullptr;
  }
  work -= std::min(work, spent);
  out.to.shrink_to_fit();
  bytes_ += sizeof(Edges) + 64 + out.to.capacity() * sizeof(out.to[0]);
  return &edges_.emplace(s.v, std::move(out)).first->second;
}

// False: it takes more than `work`.
bool Reach::edges_by_walk(StateId s, Edges& out, uint64_t& spent, uint64_t work) {
  const TokenTrie& trie = vocabulary_.trie();
  std::unordered_set<uint32_t> seen;
  const StateId from = limited_ ? parser_.begin_token(s) : s;
  StateId last = Parser::unknown();
  bool many = false;
  return SearchCost::walk(parser_, trie, from == Parser::dead() ? from : begin(from), work, spent,
                          [&](uint32_t node, StateId before, StateId next) {
                            if (many) return Parser::dead();
                            if (next != before) next = begin(next);
                            if (ends_in_text(next, out)) return Parser::dead();
                            if (next != last && !trie.tokens(node).empty()) {
                              last = next;
                              if (seen.insert(next.v).second) {
                                if (out.to.size() == kAlike) {
                                  out.all = false;
                                  many = true;
                                  return Parser::dead();
                                }
                                out.to.emplace_back(next, trie.tokens(node)[0]);
                              }
                            }
                            return next;
                          });
}

std::size_t Reach::known(StateId s) const {
  if (parser_.state(s).accepting) return 1;
  const auto it = needed_.find(s.v);
  const auto found = found_.find(s.v);
  return std::min(it == needed_.end() ? kFar : it->second.tokens,
                  found == found_.end() ? kFar : found->second.tokens);
}

std::size_t Reach::least(StateId s) const {
  if (parser_.state(s).accepting) return 1;
  const std::size_t* found = least_.find(s.v);
  return found ? *found : 2;
}

void Reach::raise(StateId s, std::size_t least) {
  std::size_t& slot = least_.emplace(s.v, least).first;
  slot = std::max(slot, least);
}

// Notes that s is completed by a token into `to`; whether that is news.
bool Reach::take(StateId s, StateId to, TokenId token) {
  const std::size_t tokens = known(to) + 1;
  if (known(s) <= tokens) return false;
  found_[s.v] = {tokens, token};
  return true;
}

void Reach::learn(StateId s, std::span<const TokenId> tokens) {
  for (std::size_t i = 0; i < tokens.size() && s != Parser::dead(); ++i) {
    Step& slot = found_.try_emplace(s.v, Step{kFar, -1}).first->second;
    if (tokens.size() - i + 1 < slot.tokens) slot = {tokens.size() - i + 1, tokens[i]};
    for (char b : vocabulary_.bytes(tokens[i])) s = begin(parser_.step(s, static_cast<uint8_t>(b)));
  }
}

// Every step leaves a token less: what `needed` knows of a state is followed where it is less, and a way that
// grows is none.
std::vector<TokenId> Reach::way(StateId& s) {
  std::vector<TokenId> out;
  for (std::size_t left = known(s); left < kFar && known(s) <= left && !parser_.state(s).accepting; --left) {
    const auto found = found_.find(s.v);
    const auto it = needed_.find(s.v);
    if (found == found_.end() || (it != needed_.end() && it->second.tokens <= found->second.tokens)) break;
    out.push_back(found->second.next);
    if (limited_) s = parser_.begin_token(s);
    for (char b : vocabulary_.bytes(found->second.next)) s = begin(parser_.step(s, static_cast<uint8_t>(b)));
  }
  return out;
}

// The same of a state inside a string, where only the tokens that leave it can do. False: it is not told.
bool Reach::leave(StateId s, std::size_t k, uint64_t& work, Answer& out) {
  std::vector<TokenId> tokens;
  if (!outline_->leaving(s, k, tokens)) return false;
  out = Answer::kNo;
  const ByteSet live = parser_.live(s);
  work -= std::min<uint64_t>(work, tokens.size());
  charge(static_cast<int64_t>(tokens.size() / 8));
  std::unordered_set<uint32_t> seen;
  for (const TokenId t : tokens) {
    const std::string_view bytes = vocabulary_.bytes(t);
    if (!live.has(static_cast<uint8_t>(bytes[0]))) continue;
    StateId to = s;
    for (char b : bytes)
      if (to != Parser::dead()) to = begin(parser_.step(to, static_cast<uint8_t>(b)));
    if (to == Parser::dead() || !seen.insert(to.v).second) continue;
    const Answer a = within(to, k - 1, work);
    if (a == Answer::kYes) {
      take(s, to, t);
      out = a;
      return true;
    }
    if (a == Answer::kUnknown) out = a;
  }
  if (out == Answer::kNo) raise(s, k + 1);
  return true;
}

Reach::Answer Reach::within(StateId s, std::size_t k, uint64_t& work) {
  check_depth();
  if (known(s) <= k) return Answer::kYes;
  if (least(s) > k) return Answer::kNo;
  if (outline_ && outline_->too_few(s, k)) {
    raise(s, k + 1);
    return Answer::kNo;
  }
  const uint64_t before = work;
  if (const Undecided* met = undecided_.find(s.v); met && k <= met->tokens && before <= met->work)
    return Answer::kUnknown;
  if (Answer told; outline_ && leave(s, k, work, told)) return told;
  const Edges* e = edges(s, work);
  if (!e) return Answer::kUnknown;
  work -= std::min<uint64_t>(work, 4 * e->to.size());
  // What is known already comes first: it needs no search.
  for (const auto& [to, token] : e->to)
    if (known(to) < k) {
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
    if (work > 0) undecided_.emplace(s.v, {}).first = {k, before};
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
    const Edges* e = edges(s, work);
    if (!e || work < e->to.size()) return Answer::kUnknown;
    work -= e->to.size();
    charge(4 * static_cast<int64_t>(e->to.size()));
    StateId best = Parser::dead();
    TokenId by = -1;
    uint32_t left = bytes(s);
    for (const auto& [to, token] : e->to)
      if (const uint32_t after = bytes(to); after < left && !seen.contains(to.v)) {
        best = to;
        by = token;
        left = after;
      }
    if (by < 0) {  // between values, where bounds do not compare well
      by = next(s);
      if (by < 0) return Answer::kUnknown;
      best = s;
      for (char b : vocabulary_.bytes(by)) best = begin(parser_.step(best, static_cast<uint8_t>(b)));
      if (best == Parser::dead() || seen.contains(best.v)) return Answer::kUnknown;
    }
    out.push_back(by);
    s = best;
    seen.insert(s.v);
  }
  return Answer::kYes;
}

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
    if (parser_.state(met[i].state).accepting || (i > 0 && ends(met[i].state))) {
      for (std::size_t at = i; at > 0; at = met[at].from) out.insert(out.begin(), met[at].token);
      s = met[i].state;
      return Answer::kYes;
    }
    const Edges* e = edges(met[i].state, work);
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
