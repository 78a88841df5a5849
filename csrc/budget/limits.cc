// How ways to the end of limited rules are found, and which tokens leave such a way.
//
// The problem. A rule with max_tokens may hold at most n tokens of its text. While it is read, a token
// is allowed only if the rule can still end in time, and so can every other limited rule around it.
//
// The idea. A limit is a mark on the stack that counts down (parse/limits.h); a state with a mark that
// is used up does not exist. A way of a state is a list of tokens to the end of the text on which no
// mark runs out. In this example `name` has at most 3 tokens and is [a-z]+ followed by ";":
//
//     s0: mark 3      frame(): the shortest completion is `a;`; `a` begins it, and `a;` if that is a token
//     search()        depth first, the longest token first; behind it the next shortest completion
//     way(s0)         {2, `a`}: `a`, then `;`
//     token `ab`      leaves a mark of 2; without marks its way takes 1 token, and 1 <= 2: allowed
//     mark 1          only tokens that end the rule have a way: `;` is allowed and `a` is not
//
// States that differ in their marks alone have the same completions. So each token is judged once from the
// state without marks (base()), and a mask under marks compares numbers. A token whose way takes more than
// the smallest mark is judged again with its own marks (narrow()).
//
// Invariants.
// - Whether a way exists depends on the state alone. So accept() and fill() agree, whatever text led to the
//   state.
// - After the first token of a way there is a way again, so no mask is empty behind a token of a mask.
// - ways_ holds {kNever, -1} for states on the path of a running search. If the search throws, these entries
//   are taken back.
// - A mark may stand right below a terminal that can always be ended within n bytes, such as the text of
//   thoughts. If the mark allows at least n more tokens, a completion with one token for each byte passes the
//   mark in time (unlimited()). Then the plain mask serves, and no way is searched for.
//
// Costs. If many tokens are left, a mask is a copy of the plain mask, after one walk for the state without
// marks. If few are left, up to kTrials tokens are stepped with their captured text, which takes
// milliseconds. A search ends after kSearchedStates states with "no way known".
//
// Rejected. A search over the vocabulary for the fewest tokens to the end of the rule. For each state this
// search costs more than trying the beginnings of one shortest text. The price of the rejection: a text with
// more bytes and fewer tokens is refused.
#include "budget/limits.h"

#include <algorithm>
#include <bit>
#include <map>
#include <utility>

#include "base/depth.h"
#include "base/error.h"
#include "base/told.h"
#include "base/undo.h"
#include "base/work.h"
#include "budget/token_steps.h"

namespace structgen {

namespace {
// search() may visit this many states for one way. If that is too few, the state counts as one without a way.
constexpr uint32_t kSearchedStates = 20'000;
constexpr Limits::Way kEnd{0, -1};

}  // namespace

// Returns the state behind the bytes. With `blind`, captured text is dropped behind each of them.
StateId Limits::read(StateId s, std::string_view bytes, bool blind) {
  for (char b : bytes) {
    if (s == Parser::dead()) break;
    s = parser_.step(s, static_cast<uint8_t>(b));
    if (blind) s = masks_.blind(s);
  }
  return s;
}

// Returns the tokens that begin a shortest completion of s, with the states behind them. For the completion
// `a;` these are `a` and, if there is such a token, `a;`.
Limits::Frame Limits::frame(StateId s, bool blind) {
  Frame out{s, {}};
  StateId at = parser_.begin_token(s);
  if (at == Parser::dead()) return out;
  told([&] {
    const std::string& text = completion_.of(parser_.without_limits(at));
    const TokenTrie& trie = vocabulary().trie();
    uint32_t node = 0;
    for (char c : text) {
      const uint8_t b = static_cast<uint8_t>(c);
      if (trie.leaf(node) || !trie.kids(node).set.has(b)) break;
      node = trie.child(trie.kids(node), b);
      at = parser_.step(at, b);
      if (blind) at = masks_.blind(at);
      if (at == Parser::dead()) break;
      if (!trie.tokens(node).empty()) out.next.emplace_back(trie.tokens(node)[0], at);
    }
  });
  return out;
}

const Limits::Way* Limits::known(StateId s, bool blind) {
  check_depth();
  if (parser_.state(s).accepting) return &kEnd;
  if (const auto it = ways_.find(s.v); it != ways_.end()) return &it->second;
  if (blind) return nullptr;
  // If the blind state's way holds for every captured text, it is a way of s.
  const StateId any = masks_.blind(s);
  if (any == s) return nullptr;
  if (found(any, true).tokens == kNever || !follow(s, tokens(any, true))) return nullptr;
  return &ways_.find(s.v)->second;
}

// Finds a way from s and enters it into ways_. The search is depth first and tries long tokens first, so that
// it meets a way of few tokens first. A state on the current path counts as a state without a way; so the
// search ends where states form a cycle.
void Limits::search(StateId s, bool blind) {
  check_depth();
  std::vector<Frame> path;
  const auto open = [&](StateId at) {
    path.push_back({at, {}});
    ways_[at.v] = {kNever, -1};
    path.back() = frame(at, blind);
  };
  // An exception must leave no half-made entries, so those of the states on the path are erased.
  Undo forget([&] {
    for (const Frame& f : path) ways_.erase(f.state.v);
  });
  uint32_t looked = 0;
  open(s);
  while (!path.empty()) {
    charge(10);
    Frame& now = path.back();
    if (now.next.empty()) {
      path.pop_back();
      continue;
    }
    const auto [token, to] = now.next.back();
    const Way* found = known(to, blind);
    if (!found && ++looked > kSearchedStates) {
      for (const Frame& f : path)
        if (f.state != s) ways_.erase(f.state.v);
      forget.keep();
      return;
    }
    if (!found) {
      open(to);
    } else if (found->tokens == kNever) {
      now.next.pop_back();
    } else {
      ways_[now.state.v] = {found->tokens + 1, token};
      path.pop_back();
    }
  }
  forget.keep();
}

// Returns the way from s along shortest completions, which search() finds if it is not known.
Limits::Way Limits::found(StateId s, bool blind) {
  if (const Way* way = known(s, blind)) return *way;
  search(s, blind);
  return *known(s, blind);
}

// Returns true if the tokens complete s. The tokens then become the way of s, and each rest of the tokens
// becomes the way of the state in front of this rest. A known way that is as short stays.
bool Limits::follow(StateId s, const std::vector<TokenId>& tokens) {
  std::vector<StateId> on;
  for (TokenId t : tokens) {
    on.push_back(s);
    s = read(parser_.begin_token(s), vocabulary().bytes(t));
    if (s == Parser::dead()) return false;
  }
  if (!parser_.state(s).accepting) return false;
  for (std::size_t i = 0; i < on.size(); ++i) {
    if (parser_.state(on[i]).accepting) continue;
    const uint32_t left = static_cast<uint32_t>(on.size() - i);
    const auto [it, fresh] = ways_.try_emplace(on[i].v, Way{left, tokens[i]});
    if (!fresh && it->second.tokens > left) it->second = {left, tokens[i]};
  }
  return true;
}

// Returns the way from s. If accept() noted another state with fewer marks and a shorter way (hints_), the
// tokens of that way are tried first.
Limits::Way Limits::way(StateId s) {
  check_depth();
  if (s == Parser::dead()) return {kNever, -1};
  const Way own = found(s, false);
  if (own.tokens == 0) return own;
  // The shortest completion of s may be another text than the promised way, with more tokens.
  const auto hint = hints_.find(s.v);
  if (hint == hints_.end()) return own;
  const StateId from = std::exchange(hint->second, Parser::dead());
  Undo back([&] { hints_.find(s.v)->second = from; });
  if (way(from).tokens < own.tokens) follow(s, tokens(from));
  const Way better = found(s, false);
  back.keep();
  hints_.erase(s.v);
  return better;
}

// Returns the number of tokens of a way from s. The way of the blind state is tried first, because it serves
// all captured texts.
uint32_t Limits::takes(StateId s) {
  const StateId any = masks_.blind(s);
  if (any != s) {
    if (const uint32_t n = found(any, true).tokens; n != kNever) return n;
  }
  return way(s).tokens;
}

std::vector<TokenId> Limits::tokens(StateId s, bool blind) {
  check_depth();
  std::vector<TokenId> out;
  for (;;) {
    // follow() may have entered tokens that it read with captured text. Read without it, they may lead to a
    // state that has no entry yet; found() then searches.
    const Way w = blind ? found(s, true) : way(s);
    if (w.next < 0) return out;
    out.push_back(w.next);
    s = read(parser_.begin_token(s), vocabulary().bytes(w.next), blind);
  }
}

// No mark can be used up by the next token if no item has a mark. An item may also have one mark right below
// its terminal if the mark allows at least as many tokens as the rest of the terminal has bytes.
StateId Limits::unlimited(StateId s) {
  std::atomic<uint32_t>& known = parser_.state(s).unmarked;
  if (known.load(std::memory_order_relaxed) == 0) {
    const StateId plain = looked_at(s);
    known.store((plain == Parser::dead() ? Parser::unknown() : plain).v, std::memory_order_release);
  }
  const StateId found{known.load(std::memory_order_relaxed)};
  return found == Parser::unknown() ? Parser::dead() : found;
}

StateId Limits::looked_at(StateId s) {
  const StateId from = parser_.begin_token(s);
  for (const Item& item : parser_.items(from)) {
    StackId stack = item.stack;
    if (parser_.stacks().entries(stack).size() == 1 && !parser_.stacks().has_end(stack)) {
      const StackEntry top = parser_.stacks().entries(stack)[0];
      if (top.top.kind() == Symbol::kLimit && lengths_.begun(item.regex) <= top.top.number())
        stack = top.rest;
    }
    if (parser_.may_limit(stack)) return Parser::dead();
  }
  parser_.state(s).begun.store(from.v, std::memory_order_relaxed);
  return parser_.without_limits(from);
}

uint32_t Limits::loose(StateId plain) {
  const std::atomic<uint32_t>& known = parser_.state(plain).loose;
  if (known.load(std::memory_order_relaxed) == 0) {
    masks_.measure_with(&lengths_);
    told([&] { masks_.measure(plain); });
    masks_.measure_with(nullptr);
  }
  const uint32_t found = known.load(std::memory_order_relaxed);
  return found == 0 ? Lengths::kFar : found;
}

// Returns a number of tokens so small that a way of so many tokens uses up no mark of `from`. A token with
// such a way behind it is allowed. For a state without marks the number is kUnsure, because every token of
// its mask has a way. If the vocabulary lacks bytes, tokens may be unable to write a way; the number is then
// at most kUnsure - 1, so that tokens which depend on captured text are tried.
uint32_t Limits::sure_of(StateId from, uint32_t room) {
  return std::min({parser_.least_limit(from), room, vocabulary().complete() ? kUnsure : kUnsure - 1});
}

// Returns true if a token that leads to `v` is allowed. `plain` is `v` without its marks. A way of at most
// `sure` tokens uses up no mark, and at most `room` tokens may follow.
bool Limits::allowed(StateId v, StateId plain, uint32_t sure, uint32_t room) {
  const uint32_t n = takes(plain);
  if (n == kNever) return false;
  if (n <= sure) return true;
  const uint32_t own = way(v).tokens;
  return own != kNever && own <= room;
}

// Calls look(token, v, plain) for each of the tokens. `v` and `plain` are the blind states to which the token
// leads from `from` and from `base`. If look() returns false but captured text may matter, look() is called
// again with the states that keep the captured text. If `open_to` is given, such tokens are listed in
// `open_to` instead. At most kTrials tokens get a second call; if there are more, the result is false.
template <class F>
bool Limits::each(const std::vector<uint32_t>& asked, StateId from, StateId base,
                  std::vector<TokenId>* open_to, F&& look) {
  struct Behind {
    StateId v, plain;
    bool blind;
  };
  std::vector<TokenId> unsure;
  const auto step = [&](const Behind& at, uint8_t b) {
    const StateId next = parser_.step(at.plain, b), plain = masks_.blind(next);
    return Behind{at.v == at.plain ? plain : masks_.blind(parser_.step(at.v, b)), plain,
                  at.blind || plain != next};
  };
  const auto open = [&](StateId s) { return decided_by_text(parser_.state(s)); };
  const auto matters = [&](StateId s) { return completion_.text_matters(parser_.without_limits(s)); };
  const StateId first = masks_.blind(base);
  const Behind front{masks_.blind(from), first, open_to || first != base};
  const auto stops = [&](const Behind& at) { return at.plain == Parser::dead() || open(at.plain); };
  const auto take = [&](TokenId t, const Behind& at) {
    if (at.plain == Parser::dead()) return;
    if (open(at.plain) || (!look(t, at.v, at.plain) && at.blind && (matters(at.plain) || matters(at.v))))
      unsure.push_back(t);
  };
  if (more_than(asked, kWalkedSingly))
    each_behind(vocabulary(), asked.data(), front, step, stops, take);
  else
    for_each_token(asked, [&](TokenId t) { take(t, behind(vocabulary().bytes(t), front, step, stops)); });
  if (open_to) {
    *open_to = std::move(unsure);
    return true;
  }
  for (std::size_t i = 0; i < unsure.size() && i < kTrials; ++i) {
    const std::string_view bytes = vocabulary().bytes(unsure[i]);
    look(unsure[i], read(from, bytes), read(base, bytes));
  }
  return unsure.size() <= kTrials;
}

// Returns the row of the tokens that stay inside a run of characters, if all of them are allowed; otherwise
// null. Behind such a token the text still needs what it needs in front of the token, and at most kSpareBytes
// bytes that end a begun character. A vocabulary that lacks bytes may be unable to write these bytes.
const uint32_t* Limits::run(StateId plain, const Mask& mask, uint32_t sure) {
  if (!mask.inside_run || !vocabulary().complete()) return nullptr;
  const uint32_t rest = takes(plain);
  return rest < kUnsure / 4 && sure >= 2 * rest + kSpareBytes ? mask.dense : nullptr;
}

// Returns how many tokens a way takes behind each token of a state's mask. `plain` is the state, which has no
// marks. One Base serves all captured texts.
const Limits::Base& Limits::base(StateId plain, const Mask& mask, const uint32_t* run) {
  const StateId key = masks_.blind(plain);
  std::unique_ptr<Base>& slot = bases_[(static_cast<uint64_t>(key.v) << 1) | (run != nullptr)];
  if (slot) return *slot;
  auto made = std::make_unique<Base>();
  std::vector<uint32_t> asked(vocabulary().words(), 0xFFFFFFFFu);
  if (key == plain) write_row(mask, vocabulary(), asked.data());
  for (TokenId t : vocabulary().eos()) clear_bit(asked.data(), t);
  if (run)
    for (uint32_t w = 0; w < asked.size(); ++w) asked[w] &= ~run[w];
  std::vector<uint32_t> left = asked, refused(vocabulary().words());
  std::vector<TokenId> unsure;
  // The tokens, by the length of the way behind them.
  std::map<uint32_t, std::vector<TokenId>> by;
  made->whole = each(asked, key, key, key == plain ? nullptr : &unsure, [&](TokenId t, StateId, StateId at) {
    const uint32_t n = takes(at);
    if (n == kNever) {
      set_bit(refused.data(), t);
    } else {
      by[n].push_back(t);
      clear_bit(left.data(), t);
    }
    return n != kNever;
  });
  for (TokenId t : unsure) {
    by[kUnsure].push_back(t);
    clear_bit(refused.data(), t);
  }
  // The way behind nearly all tokens has the same length, so only tokens with a longer way are listed. Behind
  // `{"name": "` a token of letters is followed by a way of 1 token, `"}`.
  std::size_t most = 0;
  for (const auto& [n, tokens] : by)
    if (tokens.size() >= most && n < kUnsure) {
      most = tokens.size();
      made->common = n;
    }
  for (const auto& [n, tokens] : by)
    if (n > made->common)
      for (TokenId t : tokens) made->dear.emplace_back(n, t);
  for_each_token(key == plain ? left : refused, [&](TokenId t) { made->dear.emplace_back(kNever, t); });
  bytes_ += sizeof(Base) + 64 + made->dear.capacity() * 8;
  slot = std::move(made);
  return *slot;
}

// Removes the tokens from `row` behind which too few tokens are left. At first, `row` is the row of the state
// without its marks. Returns false if a token may have been refused without being tried.
bool Limits::narrow(StateId s, const Mask* mask, const uint32_t* run, uint32_t* row, uint32_t room) {
  const StateId from = parser_.begin_token(s), plain = parser_.without_limits(from);
  const uint32_t sure = sure_of(from, room);
  std::vector<uint32_t> asked;
  bool whole = true;
  if (mask) {
    const Base& b = base(plain, *mask, run);
    if (sure >= b.common) {
      whole = b.whole;
      asked.assign(vocabulary().words(), 0);
      for (auto it = std::upper_bound(b.dear.begin(), b.dear.end(),
                                      std::pair(sure, static_cast<TokenId>(0x7FFFFFFF)));
           it != b.dear.end(); ++it)
        if (has_bit(row, it->second)) {
          clear_bit(row, it->second);
          if (it->first != kNever) set_bit(asked.data(), it->second);
        }
    }
  }
  if (asked.empty()) {
    asked.assign(row, row + vocabulary().words());
    for (TokenId t : vocabulary().eos()) clear_bit(asked.data(), t);
    if (run)
      for (uint32_t w = 0; w < asked.size(); ++w) asked[w] &= ~run[w];
    for (uint32_t w = 0; w < asked.size(); ++w) row[w] &= ~asked[w];
  }
  const auto keep = [&](TokenId t, StateId v, StateId without) {
    const bool fits = allowed(v, without, sure, room);
    if (fits) set_bit(row, t);
    return fits;
  };
  whole = each(asked, from, plain, nullptr, keep) && whole;
  // accept() promised a way, so the first token of a known way must stay. If no token stays, a way is
  // searched for.
  const bool none = std::all_of(row, row + vocabulary().words(), [](uint32_t word) { return word == 0; });
  if (room != kNever || none || ways_.contains(s.v))
    if (const Way w = way(s); w.next >= 0 && w.tokens != kNever && (room == kNever || w.tokens <= room + 1))
      set_bit(row, w.next);
  return whole;
}

// If no mark is near, the row is the mask of the state without marks. A row with a `room` is made for this
// call only. Any other row is made once for each state.
bool Limits::fill(StateId s, uint32_t* row, uint32_t room) {
  const StateId from = parser_.begin_token(s), plain = parser_.without_limits(from);
  if (!world_.cache) {
    Mask m;
    std::vector<TokenId> scratch;
    masks_.uncached(from, scratch, m);
    write_row(m, vocabulary(), row);
    return narrow(s, nullptr, nullptr, row, room);
  }
  const Mask& mask = *masks_.mask(plain);
  const uint32_t sure = sure_of(from, room);
  const uint32_t* const inside = run(plain, mask, sure);
  if (base(plain, mask, inside).worst() <= sure) {
    write_row(mask, vocabulary(), row);
    return true;
  }
  if (room != kNever) {
    write_row(mask, vocabulary(), row);
    return narrow(s, &mask, inside, row, room);
  }
  auto it = rows_.find(from.v);
  if (it == rows_.end()) {
    Kept made{std::vector<uint32_t>(vocabulary().words()), true};
    write_row(mask, vocabulary(), made.words.data());
    made.whole = narrow(s, &mask, inside, made.words.data(), room);
    it = rows_.emplace(from.v, std::move(made)).first;
    bytes_ += 64 + it->second.words.size() * 4;
  }
  std::copy(it->second.words.begin(), it->second.words.end(), row);
  return it->second.whole;
}

StateId Limits::accept(StateId s, TokenId t) {
  const std::string_view bytes = vocabulary().bytes(t);
  const StateId from = parser_.begin_token(s), base = parser_.without_limits(from);
  const StateId v = read(from, bytes);
  if (v == Parser::dead()) return v;
  if (const auto it = ways_.find(s.v); it != ways_.end() && it->second.next == t) return v;
  const StateId plain = base == from ? v : read(base, bytes);
  if (!allowed(v, plain, sure_of(from, kNever), kNever)) return Parser::dead();
  if (plain != v && !parser_.state(v).accepting) {
    hints_.try_emplace(v.v, plain);
    const uint32_t n = takes(plain);
    if (const auto it = ways_.find(v.v); it != ways_.end() && it->second.tokens > n) way(v);
  }
  return v;
}

void Limits::check(StateId fresh, const std::string& name, uint32_t tokens, int64_t place) {
  if (way(fresh).tokens != kNever) return;
  const uint32_t takes = way(parser_.without_limits(fresh)).tokens;
  if (takes == kNever || takes <= tokens)
    // Either no way is known, or another limit inside the rule decides. So nothing is refused here; while a
    // text is written, its states are asked.
    return;
  throw Error(ErrorKind::kGrammar, "rule '" + name + "' takes at least " + std::to_string(takes) +
                                       " tokens and may take " + std::to_string(tokens))
      .at(place);
}

}  // namespace structgen
