// Masks of regexes that count, or that are intersected with others, taken from a simpler regex.
//
// In: a regex. Out: its TerminalMask without a walk of the trie, or false. Cost: some hundred to some
// thousand pairs of regex states, whose answers are kept.
//
// The problem. "Contains foo and has at most 20 characters" is another regex after each character,
// because the count goes down. A walk of the trie takes a millisecond for each, and the masks are
// nearly all the same.
//
// The idea. Find out that a simpler regex has the same mask, and look only at the tokens where the two
// may differ. There are three such regexes:
//
// - contained(): a run of characters, if every run can be completed to a text of the regex.
//
//       regex           any{0,20}" & any* foo any*"
//       completes()     after any characters at most 3 more and the quote suffice; a product of automata
//       safe            20 - 3 = 17: tokens of up to 17 characters are inside, the run's row
//       18 to 20        each token is tried: does the regex step through it?
//       closing quote   only tokens that read it are looked at: the text must hold foo by then (meets_exits)
//
// - shorter(): the pattern without the bound, while the bound is further away than the pattern needs to
//   end. The pattern `[a-z]*` with at most 500 characters has the mask of `[a-z]*` until few characters
//   are left.
// - counted(): the regex without its counters, as far as no short text reads one to its end. Only long tokens
//   may be allowed by the one and not by the other; these are walked with both:
//
//       regex           [a-z]{0,61}"          without counters: [a-z]*"
//       spare           1: after any letters the quote suffices
//       20 bytes        a token of at most 20 bytes is inside both or neither: with the quote it has 21
//       longer ones     `abcdefghijklmnopqrstuvwxyz` is compared
//
// - avoiding(): strings of any characters without words, as the condition `without` asks for. Their mask is
//   that of the strings with the words, less the tokens that read a word to its end. Those tokens are found
//   once for each state of the words.
//
// Invariants. A mask that is returned equals the mask that whole() would make; each function returns
// false where it is not sure. completes() keeps its answer for every pair of states that it met, also
// where it gave up because they were too many: the next character leads to one of them.
//
// Costs. completes(): kPairBudget pairs, once a pattern. counted(): a walk of the trie once for all regexes
// that are the same without their counters, and a walk of the nodes below 20 bytes for each of them.
//
// Rejected. A run where the regex has large counters (counts()): to tell that every run fits would mean to
// count all groups, so contained() leaves these regexes to counted(). Two walks, of the regex
// with its counters cut and with its counters lifted: where both agree, so does every regex between them; but
// the first walk counts, and it reads the whole trie.
#include <algorithm>
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
// The same for a call from covers(), which saves no more than the walk of another regex.
constexpr uint32_t kCoverBudget = 300;
constexpr uint32_t kNever = TerminalMask::kUnknown;
// counted() serves a regex only if fewer than kSpare bytes complete every text inside it. spare() computes
// this number from at most kSpareStates states, for which at most kSpareNodes new regexes are made.
constexpr uint32_t kSpare = 12, kSpareStates = 200, kSpareNodes = 1'500;
// shorter() tries at most kTriedTokens tokens one by one: those of nearly the largest number of characters.
// It serves a regex only if this number exceeds, by kLeastRoom or more, what completes a text.
constexpr std::size_t kTriedTokens = 4'000;
constexpr uint32_t kLeastRoom = 8;
// avoided() serves a regex with at most this many states.
constexpr std::size_t kWordStates = 64;

struct Edge {
  uint32_t from, to;
  // An edge adds 1 to the distance that farthest() computes, or 0 if this is false.
  bool counts;
};

// Returns the largest distance from a state to its nearest end, or kNever if a state reaches no end.
// Distances spread backwards from the ends until nothing changes (Bellman-Ford); most edges lead forward, so
// few rounds are needed.
template <class Ends>
uint32_t farthest(std::size_t states, std::span<const Edge> edges, Ends&& ends) {
  std::vector<uint32_t> distance(states, kNever);
  for (std::size_t i = 0; i < states; ++i)
    if (ends(i)) distance[i] = 0;
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t i = edges.size(); i-- > 0;) {
      const Edge& e = edges[i];
      if (distance[e.to] == kNever || distance[e.to] + e.counts >= distance[e.from]) continue;
      distance[e.from] = distance[e.to] + e.counts;
      changed = true;
    }
  }
  return *std::max_element(distance.begin(), distance.end());
}

}  // namespace

// E is the element of a run, and a text of elements is what the run reads. Returns how many more elements, at
// most, a text of elements needs before the closing quote to be a text of the regex. Returns kNever if some
// text of elements cannot become one. If a number is returned, all tokens of elements are inside the regex,
// and only tokens with a closing quote need a look.
//     regex any* foo any*", element any    3: after `x` the completion is `foo"`
//     regex [a-z]*", element any           kNever: `A` cannot be completed
// It visits pairs of a state of the regex and a state of the element's automaton, with one byte for each
// class of bytes that both treat alike. From the pairs behind which a quote may come it counts elements
// backwards.
uint32_t Slices::completes(RegexId regex, RegexId element, uint32_t budget) {
  const auto key = [](RegexId r, RegexId e) { return (static_cast<uint64_t>(r.v) << 32) | e.v; };
  if (const auto it = completes_.find(key(regex, element)); it != completes_.end()) return it->second;
  std::vector<std::pair<RegexId, RegexId>> pairs{{regex, element}};
  std::unordered_map<uint64_t, uint32_t> seen{{key(regex, element), 0}};
  std::vector<Edge> edges;
  uint32_t result = 0;
  bool too_many = false;
  for (uint32_t i = 0; i < pairs.size() && result != kNever; ++i) {
    const auto [r, e] = pairs[i];
    const ClassMap* c = regexes_.class_maps().product(&regexes_.classes(r), &regexes_.classes(e));
    for (uint16_t k = 0; k < c->n; ++k) {
      RegexId e2 = regexes_.step(e, c->rep[k]);
      if (e2 == RegexArena::empty()) continue;
      const RegexId r2 = regexes_.step(r, c->rep[k]);
      const bool ends = e2 == RegexArena::epsilon();
      if (ends) e2 = element;
      // If the regex may end inside the run, it has exits that the run lacks.
      if (r2 == RegexArena::empty() || regexes_.nullable(r2) || pairs.size() > budget) {
        result = kNever;
        too_many = pairs.size() > budget;
        break;
      }
      const auto [it, fresh] = seen.emplace(key(r2, e2), static_cast<uint32_t>(pairs.size()));
      if (fresh) pairs.emplace_back(r2, e2);
      edges.push_back({i, it->second, ends});
    }
  }
  constexpr std::size_t kEntry = 40;  // a hash node and its share of the buckets
  if (result == kNever) {
    // If too many pairs were met, a search from any of them would meet too many, too, so all of them get this
    // answer, and the next character of the text starts no search. That some text cannot be completed is
    // known for the start only.
    if (!too_many) seen = {{key(regex, element), 0}};
    for (const auto& [k, unused] : seen) completes_.try_emplace(k, kNever);
    bytes_ += seen.size() * kEntry;
    return kNever;
  }
  result = farthest(pairs.size(), edges, [&](std::size_t i) {
    return pairs[i].second == element && regexes_.nullable(regexes_.step(pairs[i].first, '"'));
  });
  const std::size_t before = completes_.size();
  for (const auto& [k, unused] : seen) completes_[k] = result;
  bytes_ += (completes_.size() - before) * kEntry;
  return result;
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
    plain = plain && regexes_.node(kid).kind != RegexKind::kNot;
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
  // Some kid refuses a character of strings, as "any integer but 1e500000" does. It is no pattern of
  // strings, and its intersection with the other kids may take too much work.
  for (RegexId r : others)
    if (regexes_.node(r).kind != RegexKind::kNot && (regexes_.live(any) & ~regexes_.live(r)).any())
      return false;
  // A complement alone also has texts that are no bodies of strings. So `any*"` takes the place of the kids
  // that count elements.
  if (body && (!plain || others.empty()))
    others.push_back(regexes_.cat(regexes_.star(any), regexes_.byte('"')));
  const RegexId rest = regexes_.both(std::span<const RegexId>(others));
  if (!(regexes_.live(any) & ~regexes_.live(rest)).none() || counts(rest)) return false;
  const uint32_t more = completes(rest, any, kPairBudget);
  // A token behind which `more` elements are still allowed can be completed. So tokens of at most max - more
  // elements need no look.
  if (more == kNever || (max != kUnbounded && min + more > max)) return false;
  RunClass* run = this->run(any);
  const uint32_t safe = max == kUnbounded ? kUnbounded : max - more;
  if (!run || run->tokens_between(safe, max) > kMostListed) return false;
  if (meets_exits(regex, rest, *run, min, max, safe, out)) return true;
  out = TerminalMask{};
  return false;
}

// Compares the ends of the regex with the exits of the run: the trie nodes right behind a closing quote. It
// writes the differences. The regex ends at an exit if `rest` ends there and the number of elements is from
// min to max. If `out.base` is `exits.unbounded`, it already has the tokens that end with a quote; otherwise
// these are added.
bool Slices::meets_exits(RegexId regex, RegexId rest, RunClass& run, uint32_t min, uint32_t max,
                         uint32_t safe, TerminalMask& out) {
  const TokenTrie& trie = vocabulary_.trie();
  const RunExits& exits = run.exits('"');
  out.left = &exits;
  out.base = safe >= run.longest() ? &exits.unbounded : &run.up_to(safe);
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
  if (safe < run.longest())
    run.for_each_between(safe, max, [&](TokenId t) {
      if (regexes_.steps(regex, vocabulary_.bytes(t)) != RegexArena::empty()) out.added.push_back(t);
    });
  return true;
}

// Tells whether the regex is the complement of infinitely many texts, as those with a word are.
bool Slices::words(RegexId regex) const {
  const RegexNode& n = regexes_.node(regex);
  return n.kind == RegexKind::kNot && !regexes_.node(RegexId{n.a}).finite;
}

// Returns what is known of a regex W. `closes` says that W may end wherever it is alive, and that bytes which
// no state of W forbids end each begun character of a string, make a character, and close the string. So no
// text inside both W and a string of any characters is a dead end.
Slices::Avoided& Slices::avoided(RegexId regex) {
  std::unique_ptr<Avoided>& known = avoided_[regex.v];
  if (known) return *known;
  auto out = std::make_unique<Avoided>();
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
  out->closes = ok && compare(regex, RegexArena::anything(), {}, out->changes);
  bytes_ += sizeof(Avoided) + 4 * out->changes.lost.capacity() + 8 * out->changes.cut.capacity();
  known = std::move(out);
  return *known;
}

// Makes the mask of strings of any characters that avoid words, from the mask of these strings with the
// words: it lacks the tokens that read a word to its end. The strings may have bounds or exclude literals.
// Returns false if the regex has another form.
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
  out.slack = kNever;
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
  return (regexes_.live(any) & ~regexes_.live(regex)).none() && completes(regex, any, kCoverBudget) != kNever;
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
// that end with a closing quote at which the regex ends. `blocked` has those that go on behind a closing
// quote at which it does not end.
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

// Returns the length in bytes of a short text of the regex, read off its structure; no shortest text is
// longer. Returns kNever where the structure does not tell, as for intersections. check_depth() bounds the
// recursion.
//     [a-z]{3}"        4 (three letters and the quote)
//     [a-z]{3}|[0-9]   1
//     A & B            kNever
uint32_t Slices::slack(RegexId regex) {
  check_depth();
  const RegexNode n = regexes_.node(regex);
  if (n.boolean || n.lazy || n.labelled) return kNever;
  switch (n.kind) {
    case RegexKind::kEpsilon: return 0;
    case RegexKind::kBytes:
    case RegexKind::kLiteral: return n.shortest;
    case RegexKind::kCat:
    case RegexKind::kAlt:
    case RegexKind::kRepeat: break;
    default: return kNever;
  }
  if (const auto it = slacks_.find(regex.v); it != slacks_.end()) return it->second;
  uint64_t out = kNever;
  if (n.kind == RegexKind::kCat) {
    out = std::min<uint64_t>(kNever, static_cast<uint64_t>(slack(RegexId{n.a})) + slack(RegexId{n.b}));
  } else if (n.kind == RegexKind::kRepeat) {
    out = n.min == 0 ? 0 : std::min<uint64_t>(kNever, static_cast<uint64_t>(slack(RegexId{n.a})) * n.min);
  } else {
    for (uint32_t i = 0; i < n.n; ++i) out = std::min<uint64_t>(out, slack(RegexId{n.kids[i]}));
  }
  bytes_ += 40;
  return slacks_[regex.v] = static_cast<uint32_t>(out);
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
  if (pattern == RegexArena::empty() || max == kUnbounded || min > 1) return false;
  const TerminalMask& of = terminal(pattern);
  // `of.slack` bytes complete every text inside P, so as many characters suffice, too: a character has at
  // least one byte.
  if (of.slack == kNever || (of.left && !of.blocked.empty()) || max < of.slack + kLeastRoom) return false;
  RunClass* run = this->run(any);
  const uint32_t safe = max - of.slack;
  if (!run || run->tokens_between(safe, run->longest()) > kTriedTokens) return false;
  out = of;
  out.slack = kNever;
  const TokenTrie& trie = vocabulary_.trie();
  std::sort(out.added.begin(), out.added.end());
  std::vector<TokenId> lost;
  const auto holds = [&](TokenId t) {
    return (out.base && get_bit(*out.base, t)) || std::binary_search(out.added.begin(), out.added.end(), t);
  };
  run->for_each_between(safe, run->longest(), [&](TokenId t) {
    if (holds(t) && regexes_.steps(regex, vocabulary_.bytes(t)) == RegexArena::empty()) lost.push_back(t);
  });
  // At an exit of P the regex may not end: if min is 1, the text may have too few characters; if the token
  // reaches max, it may have too many. A token that goes on behind the quote may have more characters than
  // run->longest().
  const RunExits& exits = run->exits('"');
  if (min == 1 || safe < std::max(run->longest(), exits.longest)) {
    const auto ends = [&](uint32_t node) { return regexes_.nullable(regexes_.steps(regex, path(node))); };
    list_open(out);
    std::erase_if(out.exits, [&](uint32_t node) { return !ends(node); });
    for (const Exit& e : exits.children) {
      if ((e.count >= min && e.count <= safe) || ends(e.node)) continue;
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
// found within a few bytes, a search from any of them would find too many, too, so all get kNever. If they
// are a long chain, only the start gets kNever, because nothing is known of the chain's end.
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
  const uint32_t out =
      too_many ? kNever : farthest(table.size(), edges, [&](uint32_t i) { return i == 0 || table.ends(i); });
  const uint32_t told = too_many && depths.back() > kSpare ? 1 : table.size() - 1;
  const std::size_t before = spares_.size();
  for (uint32_t i = 1; i <= told; ++i) spares_.try_emplace(table.regex(i).v, out);
  bytes_ += (spares_.size() - before) * 40;
  return out;
}

}  // namespace structgen
