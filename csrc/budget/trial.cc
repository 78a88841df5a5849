#include "budget/trial.h"

#include <algorithm>
#include <bitset>
#include <optional>
#include <string>
#include <utility>

#include "base/undo.h"
#include "base/work.h"

namespace structgen {

namespace {
// tokens_through() computes at most this many states for one mask.
constexpr std::size_t kMaskStates = 20'000;
// A group is given up when this many of its tokens were tried without success.
constexpr std::size_t kAttempts = 3;
// A token whose completion takes n tokens counts as 1 + n * n / kSmallRest trials.
constexpr std::size_t kSmallRest = 128;

// The strings of a text, for the question whether a token occurs in one of them. The question is asked of a
// hundred thousand tokens, so a table holds all pairs of neighbouring bytes of the text: most tokens have a
// pair that the text lacks.
class Strings {
 public:
  explicit Strings(const std::string& text) : text_(text), escaped_(text.find('\\') != std::string::npos) {
    for (std::size_t i = 1; i < text.size(); ++i) pairs_.set(pair(text, i));
  }
  // A token writes a part of some string. Returns true if this string surely differs from every string of the
  // text. That is so if the part has a character beyond ASCII or a letter other than `e` (numbers have an
  // `e`), if the text does not contain the part, and if neither the text nor the part has an escape.
  //     token `nam`, text `b":2}`    true
  //     token `b`, text `b":2}`      false
  bool lack(std::string_view token) const {
    if (escaped_ || token.find('\\') != std::string_view::npos) return false;
    const std::string_view piece = token.substr(0, token.find('"'));
    if (piece.size() + 1 < token.size()) return false;
    const bool letters = std::ranges::any_of(piece, [](char c) {
      const uint8_t b = static_cast<uint8_t>(c);
      return b >= 0x80 || ((b | 32) >= 'a' && (b | 32) <= 'z' && (b | 32) != 'e');
    });
    if (!letters) return false;
    for (std::size_t i = 1; i < piece.size(); ++i)
      if (!pairs_.test(pair(piece, i))) return true;
    charge(1 + static_cast<int64_t>(text_.size() / 1024));
    return text_.find(piece) == std::string::npos;
  }

 private:
  static std::size_t pair(std::string_view s, std::size_t i) {
    return static_cast<uint8_t>(s[i - 1]) << 8 | static_cast<uint8_t>(s[i]);
  }
  const std::string text_;
  const bool escaped_;
  std::bitset<65536> pairs_;
};
}  // namespace

void Budget::Trial::ask(const uint32_t* row, const uint32_t* sure) {
  const Vocabulary& v = of.vocabulary();
  open.assign(row, row + v.words());
  keep.assign(v.words(), 0);
  for (const TokenId t : v.eos()) clear_bit(open.data(), t);
  if (sure)
    for (uint32_t w = 0; w < v.words(); ++w) open[w] &= ~sure[w];
}

void Budget::Trial::judge_asked(StateId from) {
  const BlindWalk step{of.all_.parser, of.all_.masks};
  const auto one = [&](TokenId t) {
    const auto [s, blind] = behind(of.vocabulary().bytes(t), step.first(of.here()), step,
                                   [&](const BlindState& at) { return step.stops(at); });
    if (!put_off(s, {&t, 1})) judge_state({&t, 1}, s, blind);
  };
  if (aim == kList)
    std::ranges::for_each(list, one);
  else if (more_than(open, kFewTokens) && judge_in_string(from))
    return;
  else if (!more_than(open, kWalkedSingly))
    for_each_token(open, one);
  else
    judge_by_trie(from);
}

bool Budget::Trial::take_out(uint32_t* row, bool ends) const {
  if (aim == kList) {
    std::fill(row, row + of.vocabulary().words(), 0u);
    for (const TokenId t : taken) set_bit(row, t);
    if (ends) set_ends(of.vocabulary(), row);
    return taken.size() < list.size();
  }
  uint32_t lost = 0;
  for (std::size_t w = 0; w < open.size(); ++w) {
    lost |= open[w] & ~keep[w];
    row[w] = (row[w] & ~open[w]) | keep[w];
  }
  return lost != 0;
}

// Returns how many tokens complete the text if the next token leads to s; this token and the end token count.
// Each answer is kept, up to kMaskStates answers. The last answer is kept, because neighbours in the trie
// often lead to one state.
std::size_t Budget::Trial::tokens_through(StateId s) {
  if (s != last) {
    last = s;
    const auto known = met.find(s.v);
    if (known != met.end()) {
      last_needed = known->second;
    } else if (met.size() < kMaskStates) {
      last_needed = met[s.v] = count_through(s);
    } else {
      tired = true;
      last_needed = kTooMany;
    }
  }
  most = std::max(most, last_needed);
  return last_needed;
}

// Returns an upper bound of tokens_through(). The bound in bytes is tried first, because it costs less than a
// completion.
std::size_t Budget::Trial::count_through(StateId s) {
  if (of.parser().state(s).accepting) return 2;
  if (budget == 2) return kTooMany;
  const std::size_t bound = of.tokens_by_bytes(s) + 1;
  return bound <= budget ? bound : of.needed(s) + 1;
}

bool Budget::Trial::fits(StateId s, TokenId t) {
  if (!ranged) return tokens_through(s) <= budget;
  return of.completable(s, of.vocabulary().bytes(t).size(), budget == kEndless ? budget : budget - 1);
}

// Returns true if fewer tokens may suffice for some captured text. With a budget of 2 only the end token fits
// behind the token, so captured text matters only if the text may end for some captured text.
bool Budget::Trial::text_matters(StateId s) const {
  if (budget == 2 && !ranged) return of.all_.parser.state(s).poisoned;
  return of.all_.completion.text_matters(s);
}

// Checks tokens that lead to s. `blind` says that s lacks their captured text. Returns whether each token
// that leads to s fits; nothing if a range of bytes tells them apart, or if no token had to be checked.
std::optional<bool> Budget::Trial::judge_state(std::span<const TokenId> tokens, StateId s, bool blind) {
  std::optional<bool> all;
  for (TokenId t : tokens) {
    if (!asks(t)) continue;
    all = fits(s, t);
    if (*all)
      take(t);
    else if (blind && text_matters(s))
      alike[s.v].push_back(t);
    else if (!ranged)
      break;
  }
  return ranged ? std::nullopt : all;
}

// Returns true if captured text decides everything behind s. The tokens `below` are then put on the list
// `alone`; judge_texts() reads each token of this list with its own captured text.
bool Budget::Trial::put_off(StateId s, std::span<const TokenId> below) {
  if (!decided_by_text(of.all_.parser.state(s))) return false;
  for (TokenId t : below)
    if (asks(t)) alone.push_back(t);
  return true;
}

// Walks down the trie, depth first, with the state of each depth. The states are numbered, and their steps
// and results stand in tables, so that a known step or result is one load.
void Budget::Trial::judge_by_trie(StateId from) {
  enum Verdict : uint8_t { kAsk, kTake, kRefuse, kPoison };
  struct Met {
    StateId state;
    bool blind;
    Verdict verdict;
  };
  constexpr uint32_t kDead = 0, kUnknown = 0xFFFFFFFFu;
  const TokenTrie& trie = of.vocabulary().trie();
  std::vector<Met> met{{Parser::dead(), false, kAsk}};
  std::vector<uint32_t> rows(256, kDead);
  FlatMap<uint64_t, uint32_t> numbers;
  const auto number = [&](StateId s, bool blind) {
    if (s == Parser::dead()) return kDead;
    const uint64_t key = static_cast<uint64_t>(s.v) * 2 + blind;
    const auto [slot, fresh] = numbers.emplace(key, static_cast<uint32_t>(met.size()));
    if (fresh) {
      met.push_back({s, blind, put_off(s, {}) ? kPoison : kAsk});
      rows.resize(rows.size() + 256, kUnknown);
    }
    return slot;
  };
  std::vector<uint32_t> at(of.vocabulary().longest() + 2);
  at[0] = number(from, from != of.here());
  for (uint32_t i = 1; i < trie.size();) {
    if (i % 8 == 0) charge();
    const TokenTrie::Node& node = trie.node(i);
    const uint32_t before = at[node.depth - 1];
    uint32_t to = rows[before * std::size_t{256} + static_cast<uint8_t>(node.byte)];
    if (to == kUnknown) {
      const StateId next = of.all_.parser.step(met[before].state, static_cast<uint8_t>(node.byte));
      const StateId into = next == Parser::dead() ? next : of.all_.masks.blind(next);
      to = number(into, met[before].blind || into != next);
      rows[before * std::size_t{256} + static_cast<uint8_t>(node.byte)] = to;
    }
    if (to == kDead) {
      i = node.end;
      continue;
    }
    const Met now = met[to];
    if (now.verdict == kPoison) {
      put_off(now.state, trie.subtree_tokens(i));
      i = node.end;
      continue;
    }
    at[node.depth] = to;
    if (const auto tokens = trie.tokens(i); !tokens.empty()) {
      if (now.verdict == kTake) {
        for (TokenId t : tokens)
          if (asks(t)) take(t);
      } else if (now.verdict == kAsk) {
        const std::optional<bool> all = judge_state(tokens, now.state, now.blind);
        if (all && (*all || !now.blind)) met[to].verdict = *all ? kTake : kRefuse;
      }
    }
    ++i;
  }
}

// Checks tokens that end inside a character, whose missing bytes `rest` reads up to the state `to`. Each
// missing byte counts as a token, so that a hundred begun characters need no completions of their own. If the
// budget is smaller than this count, the tokens are refused, although one token might write the missing bytes
// and more. Returns false if the tokens must be checked in another way.
bool Budget::Trial::judge_half_characters(StateId to, RegexId rest, std::span<const TokenId> tokens) {
  if (ranged || !of.all_.fast || of.partial_) return false;
  const uint32_t bytes = of.all_.lengths.regex(rest);
  if (bytes >= Lengths::kFar || tokens_through(to) >= kTooMany || text_matters(to)) return false;
  std::size_t needs = tokens_through(to) + bytes;
  if (needs > budget) needs = of.needed(to) + 1 + bytes;
  most = std::max(most, needs);
  if (needs <= budget)
    for (const TokenId t : tokens)
      if (asks(t)) take(t);
  return true;
}

// Checks the tokens of a state in a string. Returns false if `from` is not such a state. Nearly all its
// tokens end inside the string: those that end with a whole character lead to one state, the others to a few
// dozen (Targets).
bool Budget::Trial::judge_in_string(StateId from) {
  struct Judge {
    Trial& trial;
    void reach(StateId to, std::span<const TokenId> tokens) { trial.judge_state(tokens, to, true); }
    bool begun(StateId to, RegexId rest, std::span<const TokenId> tokens) {
      return trial.judge_half_characters(to, rest, tokens);
    }
    bool takes(StateId to) { return !trial.ranged && trial.tokens_through(to) <= trial.budget; }
    void take(const Words& tokens) {
      const std::size_t words = tokens.size();
      const uint32_t* const open = trial.open.data();
      uint32_t* const keep = trial.keep.data();
      if (trial.done.empty())
        for (std::size_t w = 0; w < words; ++w) keep[w] |= open[w] & tokens[w];
      else
        for (std::size_t w = 0; w < words; ++w) keep[w] |= open[w] & ~trial.done[w] & tokens[w];
    }
    bool stops(StateId at) { return trial.put_off(at, {}); }
    void stopped(std::span<const TokenId> tokens) {
      for (TokenId t : tokens)
        if (trial.asks(t)) trial.alone.push_back(t);
    }
    void done(Words tokens) { trial.done = std::move(tokens); }
    bool whole(StateId inside, const Words& row) {
      if (trial.ranged) {
        trial.judge_run(inside, row);
        return false;
      }
      if (trial.tokens_through(inside) <= trial.budget) return true;
      if (trial.text_matters(inside))
        for_each_token(row, [&](TokenId t) {
          if (trial.word(static_cast<uint32_t>(t) >> 5) >> (t & 31) & 1) trial.alike[inside.v].push_back(t);
        });
      return false;
    }
  } judge{*this};
  return of.all_.targets.visit(from, false, judge);
}

// Checks the tokens that stay in a run. With a range of bytes their results depend on their lengths alone, so
// one question is asked for each length. Neighbouring lengths with equal answers are treated together.
void Budget::Trial::judge_run(StateId inside, const Words& row) {
  const std::size_t longest = of.vocabulary().longest(), left = budget == kEndless ? budget : budget - 1;
  for (std::size_t n = 1, end; n <= longest; n = end) {
    const bool all = of.completable(inside, n, left);
    for (end = n + 1; end <= longest && of.completable(inside, end, left) == all;) ++end;
    if (!all && !text_matters(inside)) continue;
    Words some = row;
    const Words& upto = of.all_.world.at_most(end - 1);
    for (uint32_t w = 0; w < row.size(); ++w) some[w] &= word(w) & upto[w];
    if (n > 1) {
      const Words& below = of.all_.world.at_most(n - 1);
      for (uint32_t w = 0; w < row.size(); ++w) some[w] &= ~below[w];
    }
    if (all)
      for (uint32_t w = 0; w < row.size(); ++w) keep[w] |= some[w];
    else
      for_each_token(some, [&](TokenId t) { alike[inside.v].push_back(t); });
  }
}

// Reads a token with its captured text. Returns the completion behind the token; nothing if it does not fit.
std::optional<std::string> Budget::Trial::completion_alone(TokenId t) {
  if (trials >= kTrials) {
    of.exact_ = false;
    return std::nullopt;
  }
  trials += each;
  const StateId s = of.parser().read(of.here(), of.vocabulary().bytes(t));
  if (s == Parser::dead()) return std::nullopt;
  const bool accepting = of.parser().state(s).accepting;
  if (!(ranged ? fits(s, t) : budget == 2 ? accepting : of.needed(s) + 1 <= budget)) return std::nullopt;
  return of.bytes_of(of.way_from(s));
}

// `text` is the completion behind a token. Returns the completion that other tokens of the token's group may
// take over: `text`, the completion of the blind state, or nothing.
std::optional<std::string> Budget::Trial::shareable(StateId blind, std::string_view token, std::string text) {
  if (of.all_.productions.traits().asks_alike) return std::nullopt;
  const bool room = text.size() + 2 <= budget && !of.all_.spelling;
  // For a shorter token the whole text could be too short for the range.
  if (ranged && (of.written_.bytes + token.size() < of.written_.whole.least || !room)) return std::nullopt;
  // `text` also completes every token that takes it over, so no such token has a shortest completion of more
  // bytes. If the budget has room for one token for each byte of `text`, `text` is shared, and with a budget
  // of 2, where it is empty. Otherwise only the blind state's completion is shared.
  if (ranged || budget == 2 || room) return text;
  Told<Finish> any = told([&] { return of.finish_without_search(blind); });
  if (!any || any->tokens + 1 > budget || any->from == Finish::kBytes) return std::nullopt;
  const StateId s = of.parser().read(of.here(), token);
  return of.completes(s, of.all_.completion.of(blind)) ? std::optional(of.all_.completion.of(blind))
                                                       : std::nullopt;
}

void Budget::Trial::judge_group(StateId blind, std::span<const TokenId> tokens) {
  const auto tried = tokens.first(std::min(tokens.size(), kAttempts));
  std::optional<std::string> own;
  const auto one = std::ranges::find_if(tried, [&](TokenId t) { return bool(own = completion_alone(t)); });
  if (one == tried.end()) return;
  take(*one);
  const auto others = tokens.subspan(static_cast<std::size_t>(one - tried.begin()) + 1);
  if (others.empty()) return;
  std::string_view last_fit = of.vocabulary().bytes(*one);
  const std::optional<std::string> text = shareable(blind, last_fit, std::move(*own));
  const std::optional<Strings> strings = text ? std::optional<Strings>(*text) : std::nullopt;
  for (const TokenId t : others) {
    const std::string_view token = of.vocabulary().bytes(t);
    // In a range of bytes a token takes over the completion if it is as long as the last token that fitted.
    const bool shares = strings && (!ranged || token.size() == last_fit.size()) && strings->lack(token);
    if (!shares && !completion_alone(t)) continue;
    last_fit = token;
    take(t);
  }
}

// Checks the tokens for which captured text decides. A token is read with its text, or takes over the
// completion of another token of its group. After kTrials trials all other tokens are refused.
void Budget::Trial::judge_texts() {
  // Counts the bytes of regexes that trials make. Regexes live as long as the world. Without this count,
  // trials would fill the world with regexes of texts that no matcher has written.
  World& world = of.all_.world;
  const Undo tried(
      [&, before = world.regexes.node_bytes()] { world.tried += world.regexes.node_bytes() - before; });
  trials = world.tried > world.policy.tried() ? kTrials : 0;
  const std::size_t rest = ranged ? 0 : of.needed(of.here());
  each = rest >= kTooMany ? 1 : 1 + rest * rest / kSmallRest;
  // Groups are tried in the order of their first tokens. The order of states would depend on earlier masks.
  std::vector<std::pair<StateId, const std::vector<TokenId>*>> groups;
  for (const auto& [state, tokens] : alike) groups.emplace_back(StateId{state}, &tokens);
  std::ranges::sort(groups, {}, [](const auto& group) { return group.second->front(); });
  for (const auto& [blind, tokens] : groups) judge_group(blind, *tokens);
  for (TokenId t : alone)
    if (completion_alone(t)) take(t);
}

}  // namespace structgen
