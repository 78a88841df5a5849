// Masks of regexes that count, or that are intersected with others, taken from a simpler regex.
//
// In: a regex. Out: its TerminalMask without a walk of the trie, or false. Cost: some hundred to some
// thousand pairs of regex states, whose answers are kept.
//
// The problem. "Contains foo and has at most 20 characters" becomes another regex after each character,
// because the count goes down. A walk of the trie takes a millisecond for each of these regexes, and nearly
// all their masks are the same.
//
// The idea. A simpler regex has the same mask, except for a few tokens, and only these tokens are checked.
// There are three such regexes:
//
// - contained(): a run of characters, if every run can be completed to a text of the regex.
//
//       regex           any{0,20}" & any* foo any*"
//       completes()     after any characters at most 3 more and the quote suffice; a product of automata.
//                       Beside any{12} it also tells what suffices if at least n more must be read
//       safe            20 - 3 = 17: tokens of up to 17 characters are inside, the run's row
//       18 to 20        each token is tried: does the regex step through it?
//       closing quote   only tokens that read it are looked at: the text must hold foo by then (meets_exits)
//
// - shorter(): the pattern without the bounds, while the largest length leaves more characters than the
//   pattern needs to end. The pattern `[a-z]*` with 5 to 500 characters has the mask of `[a-z]*`, without the
//   tokens that close the string too early, until few characters are left.
// - counted(): the regex without its counters, as far as no short text reads one to its end. The two masks
//   can differ only in long tokens; these are walked with both regexes:
//
//       regex           [a-z]{0,61}"          without counters: [a-z]*"
//       spare           1: after any letters the quote suffices
//       20 bytes        a token of at most 20 bytes is inside both or neither: with the quote it has 21
//       longer ones     `abcdefghijklmnopqrstuvwxyz` is compared
//
// - avoiding(): strings of any characters without words, as the condition `without` asks for. Their mask is
//   that of the strings with the words, less the tokens that read a word to its end. Those tokens are found
//   once for each state of the words, from the last byte of a word upwards.
//
// Invariants. A mask that is returned equals the mask that whole() would make; each function returns false
// where this is not certain. completes() keeps its answer for every pair of states that it met, even if it
// gave up because there were too many pairs: the next character of the text leads to one of these pairs.
//
// Costs. completes(): kPairBudget pairs, once a pattern. counted(): a walk of the trie once for all regexes
// that are the same without their counters, and a walk of the nodes below 20 bytes for each of them.
//
// Rejected. The run as the simpler regex of a regex with large counters (counts()): proving that every run
// can be completed would mean counting all groups, so contained() leaves such regexes to counted(). Two
// walks, of the regex with small counters and of the regex without counters: where both agree, every regex
// between them agrees, too; but the walk with counters makes many states and reads the whole trie.
#include <algorithm>
#include <bit>
#include <ranges>
#include <unordered_map>
#include <utility>

#include "base/depth.h"
#include "base/undo.h"
#include "mask/slices.h"
#include "mask/walk_table.h"

namespace structgen {

namespace {

// completes() gives up after this many pairs of states.
constexpr uint32_t kPairBudget = 4'000;
// The same for a call from covers() or shorter(), which saves no more than the walk of another regex.
constexpr uint32_t kFewPairs = 300;
constexpr uint32_t kNever = kUnbounded;
// completes() counts up to this many elements that a text still lacks.
constexpr uint32_t kMostPadded = 64;
// counted() serves a regex only if fewer than kSpare bytes complete every text inside it. spare() computes
// this number from at most kSpareStates states, for which at most kSpareNodes new regexes are made.
constexpr uint32_t kSpare = 12, kSpareStates = 200, kSpareNodes = 1'500;
// contained() and shorter() try at most this many tokens one by one: those of nearly the largest number of
// characters.
constexpr std::size_t kTriedTokens = 10'000;
// avoided() serves a regex with at most this many states.
constexpr std::size_t kWordStates = 64;

struct Edge {
  uint32_t from, to;
  // An edge adds 1 to the distances, or 0 if this is false.
  bool counts;
};

// Lowers distances that an edge makes shorter, until none is (Bellman-Ford). An edge that counts adds 1 to
// the distance of its target in `behind`, or in `distance` itself if `behind` is null. Most edges lead
// forward, so few rounds are needed.
void relax(std::vector<uint32_t>& distance, std::span<const Edge> edges,
           const std::vector<uint32_t>* behind) {
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t i = edges.size(); i-- > 0;) {
      const Edge& e = edges[i];
      const uint32_t to = e.counts && behind ? (*behind)[e.to] : distance[e.to];
      if (to == kNever || to + e.counts >= distance[e.from]) continue;
      distance[e.from] = to + e.counts;
      changed = true;
    }
  }
}

// Returns the distance from each state to its nearest end; kNever for a state that reaches no end.
template <class Ends>
std::vector<uint32_t> distances(std::size_t states, std::span<const Edge> edges, Ends&& ends) {
  std::vector<uint32_t> out(states, kNever);
  for (std::size_t i = 0; i < states; ++i)
    if (ends(i)) out[i] = 0;
  relax(out, edges, nullptr);
  return out;
}
}  // namespace

// E is the element of a run. Returns how many more elements the texts of elements need before the closing
// quote to be texts of the regex, for all minima from 0 to `least`. With `all`, the search stops as soon as
// some text of elements is not inside the regex.
//     regex any* foo any*", E any    more = 3, 3, 3, 3, 4: after `x`, `foo"` suffices; of four, `foox"`
//     regex ([a-z]{2})*", E any      more = 1, 2, 3, 4, 5: after `a`, 1, 3 or 5; after `ab`, 0, 2 or 4
// It visits pairs of a state of the regex and a state of the automaton of E, with one byte for each class of
// bytes that both treat alike. From the pairs behind which a quote may come it counts elements backwards.
const Slices::Completions& Slices::completes(RegexId regex, RegexId element, uint32_t least, bool all,
                                             uint32_t budget) {
  const auto key = [](RegexId r, RegexId e) { return (static_cast<uint64_t>(r.v) << 32) | e.v; };
  least = std::min(least, kMostPadded);
  auto& numbers = completes_[all];
  if (const auto known = numbers.find(key(regex, element)); known != numbers.end())
    if (const Completions& c = completions_[known->second]; c.none || c.more.size() > least) return c;
  std::vector<std::pair<RegexId, RegexId>> pairs{{regex, element}};
  std::unordered_map<uint64_t, uint32_t> seen{{key(regex, element), 0}};
  std::vector<Edge> edges;
  Completions out;
  bool too_many = false;
  for (uint32_t i = 0; i < pairs.size() && !out.none && !(all && out.leaves); ++i) {
    const auto [r, e] = pairs[i];
    const ClassMap* c = regexes_.class_maps().product(&regexes_.classes(r), &regexes_.classes(e));
    for (uint16_t k = 0; k < c->n; ++k) {
      RegexId e2 = regexes_.step(e, c->rep[k]);
      if (e2 == RegexArena::empty()) continue;
      const RegexId r2 = regexes_.step(r, c->rep[k]);
      out.leaves = out.leaves || r2 == RegexArena::empty();
      if (r2 == RegexArena::empty()) continue;
      const bool ends = e2 == RegexArena::epsilon();
      if (ends) e2 = element;
      // If the regex may end inside the run, it has exits that the run lacks.
      too_many = pairs.size() > budget;
      if (regexes_.nullable(r2) || too_many) {
        out.none = true;
        break;
      }
      const auto [it, fresh] = seen.emplace(key(r2, e2), static_cast<uint32_t>(pairs.size()));
      if (fresh) pairs.emplace_back(r2, e2);
      edges.push_back({i, it->second, ends});
    }
  }
  out.none = out.none || (all && out.leaves);
  if (!out.none) {
    std::vector<uint32_t> nearest = distances(pairs.size(), edges, [&](std::size_t i) {
      return pairs[i].second == element && regexes_.nullable(regexes_.step(pairs[i].first, '"'));
    });
    out.more.push_back(std::ranges::max(nearest));
    out.none = out.more[0] == kNever;
    while (!out.none && out.more.size() <= least) {
      std::vector<uint32_t> further(pairs.size(), kNever);
      relax(further, edges, &nearest);
      nearest = std::move(further);
      out.more.push_back(std::ranges::max(nearest));
    }
  } else if (!too_many) {
    // What is known holds for the start only.
    seen = {{key(regex, element), 0}};
  }
  // If too many pairs were met, a search from any of them would meet too many, too, so all of them get this
  // answer, and the next character of the text starts no search.
  constexpr std::size_t kEntry = 40;  // a hash node and its share of the buckets
  const uint32_t number = static_cast<uint32_t>(completions_.size());
  const std::size_t before = numbers.size();
  for (const auto& [k, unused] : seen) numbers[k] = number;
  bytes_ += (numbers.size() - before) * kEntry + sizeof(Completions) + 4 * out.more.capacity();
  return completions_.emplace_back(std::move(out));
}

// Returns the largest n such that every text of at most n elements inside the regex becomes a text of min to
// max elements; nothing if not even the empty text does.
std::optional<uint32_t> Slices::Completions::safe(uint32_t min, uint32_t max) const {
  if (none) return std::nullopt;
  const auto fits = [&](uint32_t n, uint32_t added) {
    return added != kNever && (max == kUnbounded || uint64_t{n} + added <= max);
  };
  // Texts that lack more elements than `more` tells take any elements first.
  const uint32_t told = static_cast<uint32_t>(std::min<std::size_t>(min, more.size() - 1));
  if (told < min && (leaves || !fits(min, more[0]))) return std::nullopt;
  for (uint32_t n = min - told; n <= min; ++n)
    if (!fits(n, more[min - n])) return n == 0 ? std::nullopt : std::optional(n - 1);
  return max == kUnbounded ? kUnbounded : max - more[0];
}

// Makes the mask of a regex E{min,max}" & rest where every text of elements E can still become a text of
// `rest`. Tokens of few elements are inside. Tokens of nearly max elements are tried one by one. Returns
// false if the regex has another form.
bool Slices::contained(RegexId regex, TerminalMask& out) {
  const RegexNode n = regexes_.node(regex);
  const RegexId any = regexes_.any_character();
  if (any == RegexArena::empty() || regexes_.nullable(regex)) return false;
  uint32_t min = 0, max = kUnbounded;
  std::vector<RegexId> others;
  bool plain = true, body = false;
  const bool several = n.kind == RegexKind::kAnd;
  for (uint32_t i = 0; i < (several ? n.n : 1); ++i) {
    const RegexId kid = several ? RegexId{n.kids[i]} : regex;
    plain = plain && regexes_.node(kid).body();
    // A kid E{from,to}" only counts elements, so it narrows min and max. `rest` is all other kids.
    const RegexArena::Counter c = regexes_.counter(kid);
    if (c.counted && c.element == any && c.tail == regexes_.byte('"')) {
      min = std::max(min, c.min);
      max = std::min(max, c.max);
      body = true;
    } else {
      others.push_back(kid);
    }
  }
  // Some kid refuses a character of strings, as "any integer but 1e500000" does. Such a kid is no pattern of
  // strings, and its intersection with the other kids may take too much work.
  for (RegexId r : others)
    if (regexes_.node(r).kind != RegexKind::kNot && (regexes_.live(any) & ~regexes_.live(r)).any())
      return false;
  // A complement, or a condition on the whole text, also has texts that are no bodies of strings. So `any*"`
  // takes the place of the kids that count elements.
  if (body && (!plain || others.empty()))
    others.push_back(regexes_.cat(regexes_.star(any), regexes_.byte('"')));
  const RegexId rest = regexes_.both(std::span<const RegexId>(others));
  if ((regexes_.live(any) & ~regexes_.live(rest)).any() || counts(rest)) return false;
  const std::optional<uint32_t> safe = completes(rest, any, min, true, kPairBudget).safe(min, max);
  RunClass* run = safe ? this->run(any) : nullptr;
  if (!run || run->tokens_between(*safe, max) > kTriedTokens) return false;
  if (meets_exits(regex, rest, *run, min, max, *safe, out)) return true;
  out = TerminalMask{};
  return false;
}

// Compares the ends of the regex with the exits of the run, which are the trie nodes right behind a closing
// quote, and writes the differences to `out`. The regex ends at an exit if `rest` ends there and the number
// of elements is from min to max. If `out.base` is `exits.unbounded`, it already has the tokens that end with
// a quote; otherwise these are added.
bool Slices::meets_exits(RegexId regex, RegexId rest, RunClass& run, uint32_t min, uint32_t max,
                         uint32_t safe, TerminalMask& out) {
  const TokenTrie& trie = vocabulary_.trie();
  const RunExits& exits = run.exits('"');
  out.left = &exits;
  if (safe >= run.longest()) {
    out.base = &exits.unbounded;
  } else {
    run.for_each_between(safe, max, [&](TokenId t) {
      const bool inside = regexes_.steps(regex, vocabulary_.bytes(t)) != RegexArena::empty();
      (inside ? out.added : out.removed).push_back(t);
    });
    const bool most = out.removed.size() < out.added.size();
    (most ? out.added : out.removed).clear();
    out.base = &run.up_to(most ? max : safe);
  }
  for (const Exit& e : exits.children) {
    const RegexId to = regexes_.steps(rest, path(e.node));
    // If something may follow the quote, the regex is no pattern of strings, and this form does not apply.
    if (to != RegexArena::empty() && to != RegexArena::epsilon()) return false;
    const bool ends = to == RegexArena::epsilon() && e.count >= min && e.count <= max;
    const auto tokens = trie.tokens(e.node);
    if (!ends) block(e.node, out);
    if (out.base == &exits.unbounded ? !ends : ends) {
      auto& list = ends ? out.added : out.removed;
      list.insert(list.end(), tokens.begin(), tokens.end());
    }
  }
  std::sort(out.blocked.begin(), out.blocked.end());
  return true;
}

// Tells whether the regex is the complement of infinitely many texts, as those with a word are.
bool Slices::words(RegexId regex) const {
  const RegexNode& n = regexes_.node(regex);
  return n.kind == RegexKind::kNot && !regexes_.node(RegexId{n.a}).finite;
}

// Returns the Avoided of a regex W. `closes` says that W may end wherever it is alive, and that bytes which
// no state of W forbids end each begun character of a string, make a character, and close the string. So no
// text inside both W and a string of any characters is a dead end.
Slices::Avoided& Slices::avoided(RegexId regex) {
  std::unique_ptr<Avoided>& known = avoided_[regex.v];
  if (known) return *known;
  auto out = std::make_unique<Avoided>();
  const uint64_t omitted = regexes_.effort().omitted();
  const RegexId any = regexes_.any_character();
  std::vector<RegexId> states{regex}, parts{any};
  ByteSet safe = ByteSet::all();
  const auto reach = [&](std::vector<RegexId>& all, RegexId to) {
    if (to != RegexArena::empty() && std::ranges::find(all, to) == all.end()) all.push_back(to);
  };
  bool ok = any != RegexArena::empty();
  for (std::size_t i = 0; ok && i < states.size(); ++i) {
    ok = regexes_.nullable(states[i]) && states.size() <= kWordStates;
    safe = safe & regexes_.live(states[i]);
    const ClassMap c = regexes_.classes(states[i]);
    for (uint16_t k = 0; ok && k < c.n; ++k) reach(states, regexes_.step(states[i], c.rep[k]));
  }
  ok = ok && safe.has('"');
  for (std::size_t i = 0; ok && i < parts.size(); ++i) {
    const ClassMap c = regexes_.classes(parts[i]);
    for (uint16_t k = 0; k < c.n; ++k) reach(parts, regexes_.step(parts[i], c.rep[k]));
  }
  // The parts of a character from which bytes that are safe in every state of W lead to its end.
  std::vector<RegexId> closed{RegexArena::epsilon()};
  for (bool more = ok; std::exchange(more, false);)
    for (RegexId part : parts) {
      const auto leads = [&](int b) {
        return safe.has(static_cast<uint8_t>(b)) &&
               std::ranges::find(closed, regexes_.step(part, static_cast<uint8_t>(b))) != closed.end();
      };
      if (std::ranges::find(closed, part) != closed.end() ||
          !std::ranges::any_of(std::views::iota(0, 256), leads))
        continue;
      closed.push_back(part);
      more = true;
    }
  for (RegexId part : parts) ok = ok && std::ranges::find(closed, part) != closed.end();
  if (ok) find_deaths(states, out->changes);
  out->closes = ok && regexes_.effort().omitted() == omitted;
  bytes_ += sizeof(Avoided) + 4 * out->changes.lost.capacity() + 8 * out->changes.cut.capacity();
  known = std::move(out);
  return *known;
}

// Writes the topmost trie nodes at which no state is left of states[0], and the tokens below them. `states`
// are all its derivatives, at most kWordStates. At such a node stands a byte that leads some state to none.
// The search goes up from these nodes with the set of states that die there; it ends where the set is empty.
//     words `foo`    of the nodes of the byte `o`, those behind `fo` are left
void Slices::find_deaths(std::span<const RegexId> states, Changes& out) {
  const TokenTrie& trie = vocabulary_.trie();
  const NodeIndex& index = vocabulary_.runs().index();
  // Sets of states as bits. before[b * states.size() + s] are those that byte b leads to state s; dying[b]
  // are those that it leads to none.
  std::vector<uint64_t> before(256 * states.size()), dying(256);
  for (std::size_t i = 0; i < states.size(); ++i) {
    const FirstSteps to = first_steps(states[i]);
    for (std::size_t b = 0; b < 256; ++b) {
      const auto at = static_cast<std::size_t>(std::ranges::find(states, to[b]) - states.begin());
      (at == states.size() ? dying[b] : before[b * states.size() + at]) |= uint64_t{1} << i;
    }
  }
  std::vector<uint32_t> nodes;
  for (std::size_t b = 0; b < 256; ++b) {
    if (dying[b] == 0) continue;
    const std::span<const uint32_t> here = index.of(static_cast<uint8_t>(b));
    charge(static_cast<int64_t>(here.size() / 8));
    for (const uint32_t node : here) {
      uint64_t set = dying[b];
      for (uint32_t up = index.parent(node); set != 0 && up != 0; up = index.parent(up)) {
        const uint64_t* const from = &before[static_cast<uint8_t>(trie.node(up).byte) * states.size()];
        uint64_t next = 0;
        for (; set != 0; set &= set - 1) next |= from[std::countr_zero(set)];
        set = next;
      }
      if (set & 1) nodes.push_back(node);
    }
  }
  std::ranges::sort(nodes);
  for (const uint32_t node : nodes) {
    if (!out.cut.empty() && node < out.cut.back().second) continue;
    out.cut.emplace_back(node, trie.node(node).end);
    const auto tokens = trie.subtree_tokens(node);
    out.lost.insert(out.lost.end(), tokens.begin(), tokens.end());
  }
}

// Makes the mask of strings of any characters that avoid words, from the mask of the same strings without
// this condition: the new mask lacks the tokens that read a word to its end. The strings may have bounds or
// exclude literals. Returns false if the regex has another form.
//     any*" & ~("a") & ~(any_byte* lamps any_byte*)     the mask of any*" & ~("a") without ` lamps`, `lamps"`
bool Slices::avoiding(RegexId regex, TerminalMask& out) {
  const RegexNode n = regexes_.node(regex);
  if (n.kind != RegexKind::kAnd) return false;
  RegexId less = RegexArena::empty();
  std::vector<RegexId> others;
  bool bounded = false, literals = false, body = false;
  for (uint32_t i = 0; i < n.n; ++i) {
    const RegexId kid{n.kids[i]};
    const RegexNode& k = regexes_.node(kid);
    const RegexArena::Counter c = regexes_.counter(kid);
    if (words(kid)) {
      if (less != RegexArena::empty()) return false;
      less = kid;
      continue;
    }
    others.push_back(kid);
    if (k.kind == RegexKind::kNot) {
      literals = true;
    } else {
      if (!c.counted || c.element != regexes_.any_character() || c.tail != regexes_.byte('"')) return false;
      body = true;
      bounded = bounded || c.max != kUnbounded;
    }
  }
  // Strings of bounded length may be too short to leave the excluded literals behind.
  if (less == RegexArena::empty() || !body || (bounded && literals) || !avoided(less).closes) return false;
  change(terminal(regexes_.both(std::span<const RegexId>(others))), avoided(less).changes, out);
  return true;
}

// Tells whether all tokens of JSON string characters are inside the regex. MaskBuilder::cover() then needs
// from all other items only the tokens that leave them.
bool Slices::covers(RegexId regex) {
  const RegexId any = regexes_.any_character();
  if (any == RegexArena::empty() || regexes_.nullable(regex)) return false;
  const RegexNode n = regexes_.node(regex);
  for (uint32_t i = 0; n.kind == RegexKind::kAnd && i < n.n; ++i)
    if (words(RegexId{n.kids[i]}) && !avoided(RegexId{n.kids[i]}).changes.lost.empty()) return false;
  if ((regexes_.live(any) & ~regexes_.live(regex)).any()) return false;
  return !completes(regex, any, 0, true, kFewPairs).none;
}

const TerminalMask* Slices::leaving(RegexId regex) {
  const auto [it, fresh] = leaving_.try_emplace(regex.v);
  if (!fresh) return it->second.get();
  Undo forget([&] { leaving_.erase(regex.v); });
  const TerminalMask* const out = leave(regex);
  forget.keep();
  return out;
}

// Returns a mask of the exits of a string pattern; the tokens inside are left out. `added` has the tokens
// that end with a closing quote at which the regex ends. `blocked` has the tokens that go on behind a closing
// quote at which the regex does not end.
const TerminalMask* Slices::leave(RegexId regex) {
  const RegexId any = regexes_.any_character();
  RunClass* run = any == RegexArena::empty() || regexes_.nullable(regex) ? nullptr : this->run(any);
  if (!run) return nullptr;
  auto out = std::make_unique<TerminalMask>();
  const RunExits& exits = run->exits('"');
  out->left = &exits;
  for (const Exit& e : exits.children) {
    const RegexId to = regexes_.steps(regex, path(e.node));
    if (to == RegexArena::epsilon()) {
      const auto tokens = vocabulary_.trie().tokens(e.node);
      out->added.insert(out->added.end(), tokens.begin(), tokens.end());
    } else if (to == RegexArena::empty()) {
      block(e.node, *out);
    } else {
      return nullptr;
    }
  }
  std::sort(out->blocked.begin(), out->blocked.end());
  const std::size_t size = sizeof(TerminalMask) + 4 * (out->added.capacity() + out->blocked.capacity());
  bytes_ += size;
  terminal_bytes_ += size;
  leaving_[regex.v] = std::move(out);
  return leaving_[regex.v].get();
}

// Makes the mask of a regex E{0,max}" & P, where every text inside the pattern P needs a few more characters
// only. While max is far away, the mask is that of P, except for tokens of nearly max characters, which are
// tried one by one. Returns false if the regex has another form.
bool Slices::shorter(RegexId regex, TerminalMask& out) {
  check_depth();
  const RegexNode n = regexes_.node(regex);
  const RegexId any = regexes_.any_character();
  if (n.kind != RegexKind::kAnd || any == RegexArena::empty()) return false;
  uint32_t min = 0, max = kUnbounded;
  RegexId pattern = RegexArena::empty();
  for (uint32_t i = 0; i < n.n; ++i) {
    const RegexId kid{n.kids[i]};
    const RegexArena::Counter c = regexes_.counter(kid);
    if (c.counted && c.element == any && c.tail == regexes_.byte('"')) {
      min = std::max(min, c.min);
      max = std::min(max, c.max);
    } else if (pattern == RegexArena::empty() && regexes_.node(kid).body()) {
      pattern = kid;
    } else {
      return false;
    }
  }
  if (pattern == RegexArena::empty()) return false;
  const std::optional<uint32_t> safe = completes(pattern, any, min, false, kFewPairs).safe(min, max);
  RunClass* run = safe ? this->run(any) : nullptr;
  if (!run || run->tokens_between(*safe, run->longest()) > kTriedTokens) return false;
  const TerminalMask& of = terminal(pattern);
  if (of.left && !of.blocked.empty()) return false;
  out = of;
  const TokenTrie& trie = vocabulary_.trie();
  std::sort(out.added.begin(), out.added.end());
  std::vector<TokenId> lost;
  const auto holds = [&](TokenId t) {
    return (out.base && get_bit(*out.base, t)) || std::binary_search(out.added.begin(), out.added.end(), t);
  };
  run->for_each_between(*safe, run->longest(), [&](TokenId t) {
    if (holds(t) && regexes_.steps(regex, vocabulary_.bytes(t)) == RegexArena::empty()) lost.push_back(t);
  });
  // At an exit of P the regex may not end: the text may have too few characters or too many. A token that
  // goes on behind the quote may have more characters than run->longest().
  const RunExits& exits = run->exits('"');
  if (min > 0 || *safe < std::max(run->longest(), exits.longest)) {
    const auto ends = [&](uint32_t node) { return regexes_.nullable(regexes_.steps(regex, path(node))); };
    list_open(out);
    std::erase_if(out.exits, [&](uint32_t node) { return !ends(node); });
    for (const Exit& e : exits.children) {
      if ((e.count >= min && e.count <= *safe) || ends(e.node)) continue;
      const auto tokens = trie.tokens(e.node);
      lost.insert(lost.end(), tokens.begin(), tokens.end());
      if (out.left) block(e.node, out);
    }
    std::sort(out.blocked.begin(), out.blocked.end());
  }
  std::sort(lost.begin(), lost.end());
  std::erase_if(out.added, [&](TokenId t) { return std::binary_search(lost.begin(), lost.end(), t); });
  for (TokenId t : lost)
    if (out.base && get_bit(*out.base, t)) out.removed.push_back(t);
  return true;
}

// Makes the mask of a regex with large counters from the mask of the regex without them. A text of at most
// 5000 characters and 100 words is in another state behind every character; without the counters states
// repeat. `upper` is the regex without those counters that no text of fewer than `reach` bytes reads to their
// end, and `spare` bytes complete every text inside `upper`. So a token of n bytes with n + spare < reach is
// inside both regexes or inside neither. Returns false if the regex has another form.
bool Slices::counted(RegexId regex, TerminalMask& out) {
  check_depth();
  const RegexId upper = regexes_.lifted(regex, NodeIndex::kDeep + kSpare);
  if (regexes_.node(regex).labelled || upper == regex || spare(upper) >= kSpare) return false;
  Changes changes;
  // No token is long enough to tell the regex from `upper`, so both have the same mask.
  const bool far = regexes_.lifted(regex, vocabulary_.longest() + kSpare) == upper;
  if (!far && !compare(regex, upper, {}, changes, vocabulary_.runs().index().deep())) return false;
  change(terminal(upper), changes, out);
  return true;
}

// Tells whether the regex has a large counter, which counted() leaves out.
bool Slices::counts(RegexId regex) { return regexes_.lifted(regex, NodeIndex::kDeep + kSpare) != regex; }

// Returns how many bytes complete any text inside the regex, as a bound for all states of its automaton.
// Returns kNever if some text cannot be completed, or the automaton is too large. If too many states are
// found within a few bytes, a search from any of these states would find too many, too, so all of them get
// kNever. If the states form a long chain, only the start gets kNever, because nothing is known about the end
// of the chain.
uint32_t Slices::spare(RegexId regex) {
  if (const auto known = spares_.find(regex.v); known != spares_.end()) return known->second;
  const uint64_t omitted = regexes_.effort().omitted();
  WalkTable table(regexes_);
  table.state(regex);
  std::vector<Edge> edges;
  // depths[i] is the number of bytes that lead to state i.
  std::vector<uint32_t> depths{0, 0};
  const uint32_t nodes = regexes_.size();
  const auto too_large = [&] { return table.size() > kSpareStates || regexes_.size() > nodes + kSpareNodes; };
  for (uint32_t i = 1; i < table.size() && !too_large(); ++i) {
    const ClassMap& classes = table.classes(i);
    for (uint16_t k = 0; k < classes.n; ++k)
      if (const uint32_t to = table.next(i, classes.rep[k]); to != WalkTable::kDead)
        edges.push_back({i, to, true});
    depths.resize(table.size(), depths[i] + 1);
  }
  if (regexes_.effort().omitted() != omitted) return kNever;
  const bool too_many = too_large();
  const auto ends = [&](std::size_t i) { return i == 0 || table.ends(static_cast<uint32_t>(i)); };
  const uint32_t out = too_many ? kNever : std::ranges::max(distances(table.size(), edges, ends));
  const uint32_t told = too_many && depths.back() > kSpare ? 1 : table.size() - 1;
  const std::size_t before = spares_.size();
  for (uint32_t i = 1; i <= told; ++i) spares_.try_emplace(table.regex(i).v, out);
  bytes_ += (spares_.size() - before) * 40;
  return out;
}

}  // namespace structgen
