#include "budget/trial.h"

#include <algorithm>
#include <bitset>
#include <optional>
#include <string>
#include <utility>

#include "base/work.h"

namespace structgen {

namespace {
// judged() computes the result of at most this many states for one mask.
constexpr std::size_t kMaskStates = 20'000;
// If this many tokens of a group were tried without success, the group is given up.
constexpr std::size_t kAttempts = 3;
// Trying a token whose completion takes n tokens counts as 1 + n * n / kSmallRest trials.
constexpr std::size_t kSmallRest = 128;

// The strings of a text. lack() is asked of a hundred thousand tokens, so the pairs of bytes of the text
// stand in a table: most tokens have a pair that the text lacks.
class Strings {
 public:
  explicit Strings(const std::string& text) : text_(text), escaped_(text.find('\\') != std::string::npos) {
    for (std::size_t i = 1; i < text.size(); ++i) pairs_.set(pair(text, i));
  }
  // A token writes a piece of a string. Returns true if this string certainly differs from every string in
  // the text. It says so if three conditions hold: the piece has a letter (other than the `e` of numbers) or
  // a character beyond ASCII; the piece does not occur in the text; neither of the two has an escape.
  //
  //     token `nam`, text `b":2}`    true            token `b`, text `b":2}`    false
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
    if (!judge_poison(s, {&t, 1})) judge({&t, 1}, s, blind);
  };
  if (aim == kList)
    std::ranges::for_each(list, one);
  else if (more_than(open, kFewTokens) && judge_strings(from))
    return;
  else if (!more_than(open, kWalkedSingly))
    for_each_token(open, one);
  else
    judge_all(from);
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

// Returns how many tokens are needed by a token that leads to s, itself and the end token included. The last
// answer is kept apart, because neighbours in the trie often lead to the same state.
std::size_t Budget::Trial::judged(StateId s) {
  if (s != last) {
    last = s;
    const auto known = met.find(s.v);
    if (known != met.end()) {
      last_needed = known->second;
    } else if (met.size() < kMaskStates) {
      last_needed = met[s.v] = tokens_into(s);
    } else {
      tired = true;
      last_needed = kTooMany;
    }
  }
  most = std::max(most, last_needed);
  return last_needed;
}

// Returns an upper bound of the tokens that are needed by a token that leads to s, itself and the end token
// included. The bound in bytes is tried first, because it is cheaper than a completion.
std::size_t Budget::Trial::tokens_into(StateId s) {
  Budgets& epoch = of.all_;
  if (epoch.parser.state(s).accepting) return 2;
  if (budget == 2) return kTooMany;
  if (epoch.fast && !of.partial_)
    if (const std::size_t bytes = epoch.lengths.of(s); bytes + 2 <= budget) return bytes + 2;
  return of.needed(s) + 1;
}

bool Budget::Trial::fits(StateId s, TokenId t) {
  if (!ranged) return judged(s) <= budget;
  return of.completable(s, of.vocabulary().bytes(t).size(), budget == kEndless ? budget : budget - 1);
}

// Returns true if fewer tokens may suffice for some captured text. With a budget of 2 only the end may follow
// the token. Then the text matters only if it decides whether the text may end.
bool Budget::Trial::matters(StateId s) const {
  if (budget == 2 && !ranged) return of.all_.parser.state(s).poisoned;
  return of.all_.completion.text_matters(s);
}

// Checks tokens that lead to s. `blind` says that s lacks their captured text.
void Budget::Trial::judge(std::span<const TokenId> tokens, StateId s, bool blind) {
  for (TokenId t : tokens) {
    if (!asks(t)) continue;
    if (fits(s, t))
      take(t);
    else if (blind && matters(s))
      alike[s.v].push_back(t);
    else if (!ranged)
      return;
  }
}

// Returns true if the captured text decides everything that follows s. The tokens `below` then go to the list
// `alone`, to be read with their text.
bool Budget::Trial::judge_poison(StateId s, std::span<const TokenId> below) {
  if (!decided_by_text(of.all_.parser.state(s))) return false;
  for (TokenId t : below)
    if (asks(t)) alone.push_back(t);
  return true;
}

// Walks down the trie in depth-first order and keeps the state of each depth. It numbers the states that it
// meets, and keeps their steps and results in tables. So a known step is one load, and so is a known result.
void Budget::Trial::judge_all(StateId from) {
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
      met.push_back({s, blind, judge_poison(s, {}) ? kPoison : kAsk});
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
      judge_poison(now.state, trie.subtree_tokens(i));
      i = node.end;
      continue;
    }
    at[node.depth] = to;
    if (const auto tokens = trie.tokens(i); !tokens.empty()) {
      if (now.verdict == kTake) {
        for (TokenId t : tokens)
          if (asks(t)) take(t);
      } else if (now.verdict == kAsk) {
        judge(tokens, now.state, now.blind);
        if (!ranged && last_needed <= budget)
          met[to].verdict = kTake;
        else if (!ranged && !now.blind)
          met[to].verdict = kRefuse;
      }
    }
    ++i;
  }
}

// Checks tokens that end inside a character. `rest` reads its missing bytes and leads to the state `to`. Each
// missing byte counts as a token, so that the hundred begun characters need no completions of their own. If
// the budget is too small for this, the tokens are refused, although one token might write the missing bytes
// and more. Returns false if the tokens have to be checked in another way.
bool Budget::Trial::judge_begun(StateId to, RegexId rest, std::span<const TokenId> tokens) {
  if (ranged || !of.all_.fast || of.partial_) return false;
  const uint32_t bytes = of.all_.lengths.regex(rest);
  if (bytes >= Lengths::kFar || judged(to) >= kTooMany || matters(to)) return false;
  std::size_t needs = judged(to) + bytes;
  if (needs > budget) needs = of.needed(to) + 1 + bytes;
  most = std::max(most, needs);
  if (needs <= budget)
    for (const TokenId t : tokens)
      if (asks(t)) take(t);
  return true;
}

// Checks the tokens of a state in a string. Returns false if `from` is no such state. Nearly all tokens end
// inside the string: those that end with a whole character lead to one state, the others to a few dozen
// states (Targets).
bool Budget::Trial::judge_strings(StateId from) {
  struct Judge {
    Trial& trial;
    void reach(StateId to, std::span<const TokenId> tokens) { trial.judge(tokens, to, true); }
    bool begun(StateId to, RegexId rest, std::span<const TokenId> tokens) {
      return trial.judge_begun(to, rest, tokens);
    }
    bool takes(StateId to) { return !trial.ranged && trial.judged(to) <= trial.budget; }
    void take(const Words& tokens) {
      const std::size_t words = tokens.size();
      const uint32_t* const open = trial.open.data();
      uint32_t* const keep = trial.keep.data();
      if (trial.done.empty())
        for (std::size_t w = 0; w < words; ++w) keep[w] |= open[w] & tokens[w];
      else
        for (std::size_t w = 0; w < words; ++w) keep[w] |= open[w] & ~trial.done[w] & tokens[w];
    }
    bool stops(StateId at) { return trial.judge_poison(at, {}); }
    void stopped(std::span<const TokenId> tokens) {
      for (TokenId t : tokens)
        if (trial.asks(t)) trial.alone.push_back(t);
    }
    void done(Words tokens) { trial.done = std::move(tokens); }
    bool whole(StateId inside, const Words& row) {
      if (trial.ranged) {
        trial.whole_run(inside, row);
        return false;
      }
      if (trial.judged(inside) <= trial.budget) return true;
      if (trial.matters(inside))
        for_each_token(row, [&](TokenId t) {
          if (trial.word(static_cast<uint32_t>(t) >> 5) >> (t & 31) & 1) trial.alike[inside.v].push_back(t);
        });
      return false;
    }
  } judge{*this};
  return of.all_.targets.visit(from, false, judge);
}

// Checks the tokens of a run that lead back into the run. With a range of bytes their results depend only on
// their lengths. So one question is asked for each length, and neighbouring lengths with the same answer are
// treated together.
void Budget::Trial::whole_run(StateId inside, const Words& row) {
  const std::size_t longest = of.vocabulary().longest(), left = budget == kEndless ? budget : budget - 1;
  for (std::size_t n = 1, end; n <= longest; n = end) {
    const bool all = of.completable(inside, n, left);
    for (end = n + 1; end <= longest && of.completable(inside, end, left) == all;) ++end;
    if (!all && !matters(inside)) continue;
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

// Checks the tokens whose captured text decides. Each is read with its text, or takes over the completion
// that served another token of its group. After kTrials trials the others are refused; a trial with a long
// completion counts as many trials.
void Budget::Trial::judge_texts() {
  // Counts the bytes of regexes that trials make. They stay as long as the grammar's world, which must not
  // fill with texts that nobody wrote.
  struct Tried {
    World& world;
    const std::size_t before = world.regexes.node_bytes();
    ~Tried() { world.tried += world.regexes.node_bytes() - before; }
  } tried{of.all_.world};
  const bool alike_asked = of.all_.productions.traits().asks_alike;
  std::size_t trials = tried.world.tried > tried.world.policy.tried() ? kTrials : 0;
  // The work of a trial grows as the square of the completion: behind 210 keys that must differ it takes 15
  // ms.
  const std::size_t rest = ranged ? 0 : of.needed(of.here());
  const std::size_t each = rest >= kTooMany ? 1 : 1 + rest * rest / kSmallRest;
  // The completion behind the last token that fitted and, with a range of bytes, the length of this token.
  std::vector<TokenId> way;
  std::size_t bytes = 0;
  const auto fits = [&](TokenId t) {
    if (trials >= kTrials) {
      of.exact_ = false;
      return false;
    }
    trials += each;
    const StateId s = of.all_.parser.read(of.here(), of.vocabulary().bytes(t));
    if (s == Parser::dead()) return false;
    way.clear();
    if (ranged) {
      if (!this->fits(s, t)) return false;
      bytes = of.vocabulary().bytes(t).size();
    } else if (budget == 2) {
      return of.parser().state(s).accepting;
    } else if (of.needed(s) + 1 > budget) {
      return false;
    }
    way = of.plan(s);
    return true;
  };
  // Returns the completion of a blind state if it fits the budget behind `t`, a token that leads to it.
  const auto shared = [&](StateId blind, TokenId t) -> std::optional<std::string> {
    Told<Finish> any = told([&] { return of.by_text(blind); });
    if (!any || any->tokens + 1 > budget || any->from == Finish::kBytes) return std::nullopt;
    const StateId s = of.all_.parser.read(of.here(), of.vocabulary().bytes(t));
    const std::string& text = of.all_.completion.of(blind);
    return of.completes(s, text) ? std::optional(text) : std::nullopt;
  };
  // The groups are tried in the order of their first tokens. The numbers of states would give another order
  // after other masks.
  std::vector<std::pair<StateId, const std::vector<TokenId>*>> groups;
  for (const auto& [state, tokens] : alike) groups.emplace_back(StateId{state}, &tokens);
  std::ranges::sort(groups, {}, [](const auto& group) { return group.second->front(); });
  for (const auto& [blind, tokens] : groups) {
    std::size_t i = 0;
    bool any = false;
    for (; i < tokens->size() && !any && i < kAttempts; ++i) any = fits((*tokens)[i]);
    if (!any) continue;
    const TokenId tried = (*tokens)[i - 1];
    take(tried);
    if (i == tokens->size()) continue;
    std::optional<std::string> text;
    if (!alike_asked) {
      text = of.bytes_of(way);
      // A shortest completion of any other token is no longer than this text, and takes at most one token for
      // each byte. If the budget may not have room for these, only the blind state's completion is shared.
      const bool room = text->size() + 2 <= budget && !of.all_.spelling;
      if (!ranged && budget != 2 && !room) text = shared(blind, tried);
      // A text of another token may be shorter, and then too short for the range.
      if (ranged && (of.written_.bytes + bytes < of.written_.whole.least || !room)) text.reset();
    }
    std::optional<Strings> strings;
    if (text) strings.emplace(*text);
    for (; i < tokens->size(); ++i) {
      const TokenId t = (*tokens)[i];
      const bool as_long = !ranged || of.vocabulary().bytes(t).size() == bytes;
      if ((strings && as_long && strings->lack(of.vocabulary().bytes(t))) || fits(t)) take(t);
    }
  }
  for (TokenId t : alone)
    if (fits(t)) take(t);
}

}  // namespace structgen
