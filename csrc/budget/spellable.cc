// How it is decided whether tokens can finish a text; spellable.h says when the question comes up, and
// names the sources.
//
// The problem. A vocabulary may lack bytes: there is a token `"}` and none for `"`. The parser finds a text
// that completes a state, and no tokens may spell it. A token that leads to such a state leads into a dead
// end.
//
// The idea. judge() has four ways to answer, and tries the cheapest first. Let the tokens be `a`, `ab`,
// `b"`, and let the state stand behind the opening `"` of a string that ends the text:
//
//     spelled()      the shortest completion is `"`, which no tokens write
//     near()         a search breadth first: behind `a` the completion is `"` again; the token `b"` ends
//                    the text. The answer is yes, by the token `b"`
//     summarised()   where near() would go on without end. A junction is (label that was read, pending,
//                    trie node of the token that has begun). From a junction a rule leads to a set of
//                    junctions, which is the least fixpoint over all rules that are met. The stacks are
//                    then walked with junctions in place of texts
//     searched()     where captured text decides, states are searched one by one (budget/reach.h)
//
// Summaries are needed because a token may read on from one symbol into the next: a junction keeps the trie
// node, so that the next symbol goes on inside the token.
//
// Masks. fill() takes the parser's mask and clears the tokens after which possible() is false. The trie
// is walked once, tokens that lead to the same state share the answer, and tokens whose captured text
// matters are stepped alone.
//
// Invariants.
// - A yes is proved by tokens: way() writes these tokens, and each of them is in the mask of the state in
//   front of it.
// - A no is proved, unless its share of work ran out. A no without a proof makes a mask smaller than it
//   should be, never larger.
// - Summaries are dropped when a search breaks off (forget()), because the sets of some rules are then
//   not complete.
//
// Costs. Nothing where every byte is a token. Otherwise a mask costs one completion for each state to which
// its tokens lead; kStateWork and kMaskWork bound the summaries, `CachePolicy::spelling()` bounds their
// memory.
//
// Rejected. A parser over tokens in place of bytes: each grammar would have all tokens of the vocabulary as
// its terminals.
#include "budget/spellable.h"

#include <algorithm>

#include "base/error.h"
#include "base/sorted.h"
#include "base/told.h"
#include "base/undo.h"
#include "base/work.h"
#include "budget/token_steps.h"

namespace structgen {

namespace {
// near() gives up with kUnknown when it has visited this many pairs of a state and a trie node.
constexpr std::size_t kMaxPairs = 3'000;
// near() asks at most this many of the states that it visits for a shortest completion.
constexpr std::size_t kMaxAsked = 8;
// The steps that the summaries of one state may take: about a tenth of a second.
constexpr uint64_t kStateWork = 300'000;
// The steps that all summaries and searches of one mask may take.
constexpr uint64_t kMaskWork = 1'000'000;
// The work of searched() in one graph, in trie nodes (budget/reach.h).
constexpr uint64_t kReach = 200'000;
// At most this many tokens of a mask are read with their captured text; the others are refused.
constexpr std::size_t kMaxStepped = 2'000;
// Cutting a text costs this many units of work a byte, because each byte begins a path down the trie.
constexpr std::size_t kCutWork = 2;
// The label of a captured text that is not known.
constexpr uint32_t kUnknownLabel = 0xFFFFFFFFu;

[[noreturn]] void out_of_share() {
  throw Error(ErrorKind::kBudgetExceeded,
              "whether tokens can spell the text takes too much work; raise Limits(mask=...)");
}

}  // namespace

// Dynamic programming from the end of the text: best_[n] is the cut of the last n bytes into the fewest
// tokens. best_[n] does not depend on the bytes in front, so the entries of the end that this text shares
// with the last text are kept. The tokens that begin at a byte lie on one path of the trie. The cost is the
// number of new bytes times the longest token. Of equally good cuts, the one with the longest first token
// wins.
Cutter::Cut Cutter::cut(std::string_view text) {
  const std::size_t n = text.size();
  const auto differ = std::mismatch(text.rbegin(), text.rend(), text_.rbegin(), text_.rend());
  const std::size_t same = static_cast<std::size_t>(differ.first - text.rbegin());
  if (same < n) {
    charge(static_cast<int64_t>(kCutWork * (n - same)));
    // Both lists reserve their memory first, so that they have equal sizes even if memory runs out.
    if (best_.capacity() <= n) best_.reserve(2 * n + 1);
    text_.reserve(n);
    text_.assign(text);
    best_.resize(same + 1);
    best_.resize(n + 1, Best{kNever, 0, -1});
  }
  for (std::size_t left = same + 1; left <= n; ++left) {
    uint32_t node = 0;
    Best& best = best_[left];
    for (std::size_t rest = left; rest > 0 && !trie_.leaf(node);) {
      const TokenTrie::Kids& kids = trie_.kids(node);
      const uint8_t b = static_cast<uint8_t>(text[n - rest]);
      if (!kids.set.has(b)) break;
      node = trie_.child(kids, b);
      --rest;
      const auto tokens = trie_.tokens(node);
      if (!tokens.empty() && best_[rest].tokens != kNever && best_[rest].tokens + 1 <= best.tokens)
        best = {best_[rest].tokens + 1, static_cast<uint32_t>(left - rest), tokens[0]};
    }
  }
  return {best_[n].tokens, best_[n].token};
}

void Cutter::begins(std::string_view text, std::size_t most, std::vector<TokenId>& out) {
  cut(text);
  uint32_t node = 0;
  for (std::size_t n = 1; n <= text.size() && !trie_.leaf(node); ++n) {
    const TokenTrie::Kids& kids = trie_.kids(node);
    const uint8_t b = static_cast<uint8_t>(text[n - 1]);
    if (!kids.set.has(b)) break;
    node = trie_.child(kids, b);
    if (best_[text.size() - n].tokens <= most)
      out.insert(out.end(), trie_.tokens(node).begin(), trie_.tokens(node).end());
  }
}

bool Cutter::spell(std::string_view text, std::vector<Piece>& out) {
  out.clear();
  if (cut(text).tokens == kNever) return false;
  for (std::size_t left = text.size(); left > 0; left -= best_[left].bytes)
    out.push_back({text.size() - left + best_[left].bytes, best_[left].token});
  return true;
}

void Spellable::spend(uint64_t n) {
  charge(static_cast<int64_t>(2 * n));
  if (work_ < n) out_of_share();
  work_ -= n;
}

// A token has begun and stands at the trie node `node`. Returns the junctions behind those non-empty texts of
// a regex that tokens can write from this node on. Each junction has the label that was read, and the trie
// node of the token that has begun last (0 if a token ends where the text ends).
//     tokens `a`, `ab`, `b"`; regex [ab]*", node 0    behind `b"`: node 0. Behind `"` alone: no junction
const std::vector<Spellable::Junction>& Spellable::terminal(RegexId r, uint32_t node) {
  return remember(terminals_, {r.v, node}, [&] {
    RegexArena& regexes = parser_.regexes();
    const TokenTrie& trie = world_.vocabulary->trie();
    std::set<std::pair<uint32_t, uint32_t>> seen{{r.v, node}};
    std::vector<std::pair<RegexId, uint32_t>> todo{{r, node}};
    std::set<Junction> out;
    const auto reach = [&](RegexId to, uint32_t at) {
      const RegexNode& n = regexes.node(to);
      if (n.kind == RegexKind::kDone) {
        out.insert({n.min + 1, Alive::kClear, at});
        return;
      }
      if (n.nullable) out.insert({0, Alive::kClear, at});
      if (seen.insert({to.v, at}).second) todo.emplace_back(to, at);
    };
    while (!todo.empty()) {
      const auto [from, at] = todo.back();
      todo.pop_back();
      if (trie.leaf(at)) continue;
      const TokenTrie::Kids& kids = trie.kids(at);
      (kids.set & regexes.steps(from)).for_each([&](uint8_t b) {
        spend();
        const RegexId to = regexes.step(from, b);
        if (to == RegexArena::empty()) return;
        const uint32_t child = trie.child(kids, b);
        if (!trie.leaf(child)) reach(to, child);
        if (!trie.tokens(child).empty()) reach(to, 0);
      });
    }
    bytes_ += 120 + out.size() * sizeof(Junction);
    return std::vector<Junction>(out.begin(), out.end());
  });
}

// Returns the alternatives of a rule that is told a label, which is 1 + its number, or 0 for none.
// kUnknownLabel stands for captured text that is not known.
const Alternatives& Spellable::expand(RuleId r, uint32_t label) {
  return remember(expansions_, {r.v, label}, [&] {
    Reading reading;
    reading.kind = label == 0 ? Reading::kNone : label == kUnknownLabel ? Reading::kUnknown : Reading::kLabel;
    reading.label = label == 0 || label == kUnknownLabel ? 0 : label - 1;
    Alternatives all;
    productions_.expand(r, reading, all);
    bytes_ += 120 + all.symbols.capacity() * 4 + all.ends.capacity() * 4;
    return all;
  });
}

// Returns the summary of a rule as far as it is known. The rule that asks (at_) is noted as a user: settle()
// evaluates it again when the summary grows.
const Spellable::Rule& Spellable::rule(RuleId r, Junction from) {
  const auto [it, fresh] = rules_.try_emplace(Key{r.v, from});
  if (fresh) {
    spend(8);
    bytes_ += 200;
    todo_.push_back(it->first);
  }
  std::vector<Key>& users = it->second.users;
  if (at_ && std::find(users.begin(), users.end(), *at_) == users.end()) users.push_back(*at_);
  return it->second;
}

// Appends to `to` the junctions at which the symbol s may end if it begins at `from`.
void Spellable::through(Symbol s, Junction from, std::vector<Junction>& to) {
  spend();
  const bool rules = s.kind() == Symbol::kRule;
  if (rules || s.kind() == Symbol::kReader) {
    if (!rules && from.label == 0) from.label = kUnknownLabel;
    if (rules) from.label = 0;
    if (!rules || !parser_.alive().plain(s.rule_id())) {
      // Without lexemes, a rule does not depend on the bytes that are forbidden before it, so they are
      // dropped here. So `out` may contain junctions that cannot be reached, and a no would be no proof.
      if (from.pending != Alive::kClear && parser_.alive().follow(from.pending) != RegexArena::empty())
        open_ = true;
      from.pending = Alive::kClear;
    }
    const std::set<Junction>& out = rule(s.rule_id(), from).out;
    to.insert(to.end(), out.begin(), out.end());
    return;
  }
  if (s.kind() == Symbol::kTerminal && s.regex() == RegexArena::poison()) {
    open_ = true;
    return;
  }
  std::vector<Alive::Step> steps;
  parser_.alive().steps(s, from.pending, steps);
  for (const Alive::Step& step : steps) {
    if (step.regex == RegexArena::poison()) {
      open_ = true;
    } else if (step.regex == RegexArena::epsilon() || parser_.marks(step.regex)) {
      to.push_back({0, step.to, from.node});
    } else {
      for (Junction p : terminal(step.regex, from.node)) {
        p.pending = step.to;
        to.push_back(p);
      }
    }
  }
}

// Computes the least fixpoint over the rules that were asked for. A rule is evaluated with the summaries
// known so far, and when its own summary grows, its users are evaluated again. Summaries only grow and
// junctions are finitely many, so the loop ends.
void Spellable::settle() {
  std::vector<Junction> now, next;
  while (!todo_.empty()) {
    const Key key = todo_.back();
    todo_.pop_back();
    rules_[key].waiting = false;
    at_ = &key;
    const Alternatives& alternatives = expand(RuleId{key.rule}, key.from.label);
    std::set<Junction> found;
    for (const std::span<const Symbol> symbols : alternatives.each()) {
      now.assign(1, {0, key.from.pending, key.from.node});
      for (std::size_t k = 0; k < symbols.size() && !now.empty(); ++k) {
        next.clear();
        for (const Junction& p : now) through(symbols[k], p, next);
        sort_unique(next);
        std::swap(now, next);
      }
      found.insert(now.begin(), now.end());
    }
    at_ = nullptr;
    Rule& rule = rules_[key];
    if (found.size() == rule.out.size()) continue;
    bytes_ += (found.size() - rule.out.size()) * 48;
    rule.out = std::move(found);
    for (const Key& user : rule.users) {
      Rule& u = rules_[user];
      if (u.waiting) continue;
      u.waiting = true;
      todo_.push_back(user);
    }
  }
}

// Drops the summaries of a search that ended early. If all other tables take more than
// CachePolicy::spelling() bytes, drops these, too.
void Spellable::forget() {
  rules_.clear();
  todo_.clear();
  at_ = nullptr;
  if (bytes_ <= world_.policy.spelling()) return;
  terminals_.clear();
  expansions_.clear();
  bytes_ = 0;
  for (const auto& [state, row] : rows_) bytes_ += 64 + row.words.size() * 4;
}

// Walks down all stacks of the state at once and computes the junctions behind each terminal and rule.
// Returns kYes if a stack can end where a token ends.
Reach::Answer Spellable::summarised(StateId s) {
  work_ = std::min(kStateWork, mask_work_);
  const uint64_t before = work_;
  const bool was_open = std::exchange(open_, false);
  Reach::Answer answer = Reach::Answer::kUnknown;
  Undo back([&] { forget(); });
  const auto summarise = [&] {
    if (bytes_ > world_.policy.spelling()) out_of_share();
    std::set<std::pair<uint32_t, Junction>> seen;
    std::vector<std::pair<StackId, Junction>> todo;
    const auto at = [&](StackId stack, Junction p) {
      if (seen.insert({stack.v, p}).second) todo.emplace_back(stack, p);
    };
    for (const Item& i : parser_.items(s)) {
      if (i.regex == RegexArena::poison())
        open_ = true;
      else
        for (const Junction& p : terminal(i.regex, 0)) at(i.stack, p);
    }
    std::vector<Junction> to;
    while (!todo.empty() && answer != Reach::Answer::kYes) {
      const auto [stack, from] = todo.back();
      todo.pop_back();
      if (parser_.stacks().has_end(stack) && from.node == 0) answer = Reach::Answer::kYes;
      for (const StackEntry& e : parser_.stacks().entries(stack)) {
        to.clear();
        through(e.top, from, to);
        if (!todo_.empty()) {
          settle();
          to.clear();
          through(e.top, from, to);
        }
        for (const Junction& p : to) at(e.rest, p);
      }
    }
    if (answer != Reach::Answer::kYes && !open_ && !was_open) answer = Reach::Answer::kNo;
  };
  if (told_with_work_left(summarise)) back.keep();
  // A summary that is used again may come from a search that met captured text.
  open_ = open_ || was_open;
  mask_work_ -= std::min(mask_work_, before - work_);
  return answer;
}

// Notes for s, and for each state behind one of the tokens, that tokens complete it.
void Spellable::keep(StateId s, const std::vector<TokenId>& tokens) {
  std::vector<StateId> on;
  for (TokenId t : tokens) {
    on.push_back(s);
    s = parser_.read(s, world_.vocabulary->bytes(t));
    if (s == Parser::dead()) return;
  }
  if (!parser_.state(s).accepting) return;
  for (std::size_t i = 0; i < on.size(); ++i) {
    known_[on[i].v] = Reach::Answer::kYes;
    next_.try_emplace(on[i].v, tokens[i]);
  }
}

std::vector<TokenId> Spellable::way(StateId s) {
  std::vector<TokenId> out;
  while (!parser_.state(s).accepting) {
    const auto it = next_.find(s.v);
    if (it == next_.end() || out.size() > 4096) return {};
    out.push_back(it->second);
    s = parser_.read(s, world_.vocabulary->bytes(it->second));
  }
  return out;
}

bool Spellable::spelled(StateId s) {
  Told<bool> done = told_with_work_left([&] {
    std::vector<Piece> pieces;
    if (!cutter_.spell(completion_.of(s), pieces)) return false;
    std::vector<TokenId> tokens;
    for (const Piece& p : pieces) tokens.push_back(p.token);
    keep(s, tokens);
    return known_.contains(s.v);
  });
  return std::move(done).value_or(false);
}

// Searches breadth first along the bytes that tokens can write. The completion of a state inside an escape
// often cannot be spelled, while two bytes later stands a state whose completion can be spelled.
Reach::Answer Spellable::near(StateId s) {
  struct At {
    StateId state;
    uint32_t node, from;
    // The token that ends with this byte; -1 if none does.
    TokenId token;
  };
  const TokenTrie& trie = world_.vocabulary->trie();
  std::vector<At> met{{s, 0, 0, -1}};
  std::set<std::pair<uint32_t, uint32_t>> seen{{s.v, 0}};
  std::size_t asked = 0;
  bool all = true;
  for (std::size_t i = 0; i < met.size(); ++i) {
    const At at = met[i];
    charge(4);
    if (parser_.state(at.state).poisoned) all = false;
    if (trie.leaf(at.node)) continue;
    const TokenTrie::Kids& kids = trie.kids(at.node);
    const ByteSet bytes = kids.set & parser_.live(at.state);
    for (int b = bytes.first(); b < 256; ++b) {
      if (!bytes.has(static_cast<uint8_t>(b))) continue;
      const StateId to = parser_.step(at.state, static_cast<uint8_t>(b));
      if (to == Parser::dead()) continue;
      const uint32_t child = trie.child(kids, static_cast<uint8_t>(b));
      if (!trie.leaf(child) && seen.insert({to.v, child}).second)
        met.push_back({to, child, static_cast<uint32_t>(i), -1});
      if (trie.tokens(child).empty() || !seen.insert({to.v, 0}).second) continue;
      met.push_back({to, 0, static_cast<uint32_t>(i), trie.tokens(child)[0]});
      const auto known = known_.find(to.v);
      if (known != known_.end() && known->second == Reach::Answer::kNo) {
        met.pop_back();
        continue;
      }
      if (!parser_.state(to).accepting && (known == known_.end() || known->second != Reach::Answer::kYes) &&
          (asked >= kMaxAsked || (++asked, !spelled(to))))
        continue;
      std::vector<TokenId> tokens;
      for (std::size_t k = met.size() - 1; k > 0; k = met[k].from)
        if (met[k].token >= 0) tokens.insert(tokens.begin(), met[k].token);
      const std::vector<TokenId> rest = way(to);
      tokens.insert(tokens.end(), rest.begin(), rest.end());
      keep(s, tokens);
      return Reach::Answer::kYes;
    }
    if (met.size() > kMaxPairs) return Reach::Answer::kUnknown;
  }
  if (!all) return Reach::Answer::kUnknown;
  for (const At& at : met)
    if (at.node == 0) known_[at.state.v] = Reach::Answer::kNo;
  return Reach::Answer::kNo;
}

Reach::Answer Spellable::searched(StateId s) {
  Reach::Answer found = Reach::Answer::kUnknown;
  for (TokenGraph* graph : {&graph_, &exact_graph_}) {
    uint64_t work = std::min(kReach, mask_work_);
    const uint64_t before = work;
    StateId at = graph->begin(s);
    std::vector<TokenId> tokens;
    Reach search(*graph, [](StateId) { return std::size_t{1}; }, [](StateId) { return Reach::kFar; });
    found = search.find(at, [&](StateId end) { return spelled(end); }, tokens, work);
    mask_work_ -= std::min(mask_work_, 4 * (before - work));
    if (found == Reach::Answer::kYes) {
      const std::vector<TokenId> rest = way(at);
      tokens.insert(tokens.end(), rest.begin(), rest.end());
      keep(s, tokens);
      // The tokens are forbidden by the captured text of s; keep() stored nothing.
      if (!known_.contains(s.v)) found = Reach::Answer::kUnknown;
    }
    if (found != Reach::Answer::kUnknown) break;
  }
  return found;
}

Reach::Answer Spellable::judge(StateId s) {
  if (s == Parser::dead()) return Reach::Answer::kNo;
  if (parser_.state(s).accepting) return Reach::Answer::kYes;
  const auto known = known_.find(s.v);
  if (known != known_.end()) return known->second;
  if (mask_work_ == 0) mask_work_ = kMaskWork;
  // If the blind state's completion holds for every captured text, it completes s, too.
  const StateId any = masks_.blind(s);
  Reach::Answer answer = Reach::Answer::kUnknown;
  if (any != s && judge(any) == Reach::Answer::kYes) answer = Reach::Answer::kYes;
  if (answer == Reach::Answer::kUnknown && spelled(s)) answer = Reach::Answer::kYes;
  if (answer == Reach::Answer::kUnknown) answer = near(s);
  if (answer == Reach::Answer::kUnknown && any == s) answer = summarised(s);
  if (answer == Reach::Answer::kUnknown) answer = searched(s);
  known_.try_emplace(s.v, answer);
  return answer;
}

bool Spellable::fill(StateId s, uint32_t* row) {
  const Vocabulary& vocabulary = *world_.vocabulary;
  if (const auto it = rows_.find(s.v); it != rows_.end()) {
    std::ranges::copy(it->second.words, row);
    return it->second.whole;
  }
  bool whole = true;
  const auto refused = [&](StateId to) {
    const Reach::Answer answer = judge(to);
    whole = whole && answer != Reach::Answer::kUnknown;
    return answer != Reach::Answer::kYes;
  };
  mask_work_ = kMaskWork;
  if (world_.cache) {
    write_row(*masks_.mask(s), vocabulary, row);
  } else {
    Mask m;
    std::vector<TokenId> scratch;
    masks_.uncached(s, scratch, m);
    write_row(m, vocabulary, row);
  }
  const BlindWalk step{parser_, masks_};
  const auto stops = [&](const BlindState& at) { return step.stops(at); };
  // The tokens that a walk without captured text leaves undecided; each is read with its own text below.
  std::vector<TokenId> alone;
  const std::vector<uint32_t> mask(row, row + vocabulary.words());
  each_behind(vocabulary, mask.data(), step.first(s), step, stops, [&](TokenId t, const BlindState& at) {
    if (stops(at) || (judge(at.state) != Reach::Answer::kYes && at.blind))
      alone.push_back(t);
    else if (refused(at.state))
      clear_bit(row, t);
  });
  whole = whole && alone.size() <= kMaxStepped;
  for (std::size_t k = 0; k < alone.size(); ++k)
    if (k >= kMaxStepped || refused(parser_.read(s, vocabulary.bytes(alone[k])))) clear_bit(row, alone[k]);
  // An earlier mask promised a completion that begins with this token, so the token stays.
  if (const auto it = next_.find(s.v); it != next_.end())
    row[static_cast<uint32_t>(it->second) >> 5] |= 1u << (it->second & 31);
  if (std::all_of(row, row + vocabulary.words(), [](uint32_t word) { return word == 0; })) {
    if (judge(s) == Reach::Answer::kNo)
      throw Error(ErrorKind::kVocabulary,
                  "no tokens of the vocabulary spell a text that ends here; it lacks " +
                      vocabulary.missing() + " as tokens of their own");
    throw Error(ErrorKind::kBudgetExceeded, "no tokens were found that end the text; the vocabulary lacks " +
                                                vocabulary.missing() + " as tokens of their own");
  }
  rows_.emplace(s.v, Row{{row, row + vocabulary.words()}, whole});
  bytes_ += 64 + vocabulary.words() * 4ull;
  return whole;
}

}  // namespace structgen
