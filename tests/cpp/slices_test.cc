// Masks of regexes (mask/slices.h) beside the algebra: a token is allowed exactly if the regex steps through
// it, and a regex may end at a node exactly if it is nullable there.
//
// The regexes of one run share loops and letters, so that most of them are compared with one that was walked
// before. They are asked for in a random order.
#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/work.h"
#include "mask/slices.h"
#include "mask/subtrees.h"
#include "random.h"
#include "strings/json_spelling.h"

using namespace structgen;
using structgen_tests::Random;
using structgen_tests::times;

namespace {

std::shared_ptr<const Vocabulary> drawn_vocabulary(Random& random) {
  static const std::vector<std::string> kPieces{
      "a",       "a",    "b",   "b",    "c",    "x",  "1",  " ",      "\"",           "\"",
      "\\",      "\n",   "\\n", "\\\"", "/",    "-",  "ab", "\\u006", "\\u0061",      "\xc3\xa9",
      "\xc3",    "\xa9", ",",   "]",    "\xff", "cc", "aa", "bb",     "\xe2\x80\xa8", "\xf0\x9f\x98\x80",
      "\xf0\x9f"};
  std::set<std::string> tokens;
  const uint32_t missing = random.chance(20) ? random.below(256) : 256;
  for (uint32_t b = 0; b < 256; ++b)
    if (b != missing) tokens.emplace(1, static_cast<char>(b));
  const uint32_t n = random.chance(30) ? 3'000 + random.below(3'000) : 20 + random.below(400);
  // Tokens without a quote may be much shorter than those with one, and some are longer than any counter that
  // is read to its end.
  const uint32_t plain = n < 420 && random.chance(25) ? 20 + random.below(60) : 1 + random.below(6);
  const uint32_t quoted = 1 + random.below(24);
  for (uint32_t i = 0; i < n; ++i) {
    std::string t;
    const uint32_t most = random.chance(80) ? plain : quoted;
    const bool dull = random.chance(30);
    for (uint32_t k = 1 + random.below(most); k > 0; --k)
      t += dull ? "a" : kPieces[random.below(static_cast<uint32_t>(kPieces.size()))];
    if (most == quoted) t += '"';
    if (random.chance(10)) t += kPieces[random.below(static_cast<uint32_t>(kPieces.size()))];
    tokens.insert(t);
  }
  std::vector<std::string_view> views{""};
  views.insert(views.end(), tokens.begin(), tokens.end());
  if (random.chance(30)) views.emplace_back(*tokens.rbegin());
  return std::make_shared<Vocabulary>(views, std::vector<TokenId>{0}, std::vector<TokenId>{});
}

class Draw {
 public:
  Draw(Random& random, RegexArena& arena) : random_(random), arena_(arena) {
    for (int i = 0; i < 3; ++i) loops_.push_back(arena.star(letters()));
    loops_.push_back(arena.star(arena.any_character()));
  }

  RegexId regex() {
    if (random_.chance(25)) return parts();
    std::vector<RegexId> out{arena_.cat(parts(), arena_.end())};
    if (random_.chance(50)) {
      const uint32_t least = random_.below(3);
      const uint32_t most = random_.chance(30) ? kUnbounded : least + far(40);
      out.push_back(arena_.cat(arena_.repeat(arena_.any_character(), least, most), arena_.end()));
    }
    if (random_.chance(25)) out.push_back(arena_.negate(words()));
    if (random_.chance(12)) out.push_back(arena_.negate(arena_.cat(parts(), arena_.end())));
    if (random_.chance(12)) out.push_back(arena_.cat(parts(), arena_.end()));
    const RegexId all = arena_.both(std::span<const RegexId>(out));
    return random_.chance(15) ? arena_.alt(all, words()) : all;
  }

 private:
  // What a counter adds to its least number.
  uint32_t far(uint32_t most) { return random_.chance(25) ? 30 + random_.below(90) : random_.below(most); }
  RegexId letters() {
    const uint32_t kind = random_.below(12);
    if (kind == 0) return arena_.any_character();
    CodepointSet set = CodepointSet::one('a');
    for (const uint32_t c : {0x62u, 0x63u, 0x20u, 0x31u, 0xE9u, 0x1F600u, 0x2028u})
      if (random_.chance(25)) set = set | CodepointSet::one(c);
    if (kind < 4) set = CodepointSet::all() - set;
    if (kind < 10) return arena_.spelling().characters(arena_, set);
    return random_.chance(50) ? arena_.range('a', 'c') : arena_.range(random_.chance(50) ? 0x20 : 0, 0x7E);
  }
  RegexId words() {
    std::vector<std::string> texts{"a", "ab", "b\n", "\u00e9", "aab"};
    texts.resize(1 + random_.below(5));
    return arena_.literal_set(arena_.tables().add(std::move(texts)), {}, false);
  }
  RegexId parts() {
    std::vector<RegexId> out;
    for (uint32_t i = random_.below(4); i > 0; --i) {
      RegexId part = random_.chance(45) ? loops_[random_.below(4)] : letters();
      if (random_.chance(35)) {
        const uint32_t least = random_.below(4);
        part = arena_.repeat(part, least, random_.chance(40) ? kUnbounded : least + far(30));
      }
      out.push_back(part);
    }
    const RegexId one = arena_.cat(std::span<const RegexId>(out));
    return random_.chance(20) ? arena_.alt(one, parts()) : one;
  }
  Random& random_;
  RegexArena& arena_;
  std::vector<RegexId> loops_;
};

// What a mask says, against the derivatives of the regex. Where the arena omits, of some derivatives it is
// not known whether they have a text, and the mask is a part.
void check(RegexArena& arena, const Vocabulary& vocabulary, RegexId regex, const TerminalMask& mask) {
  const TokenTrie& trie = vocabulary.trie();
  std::vector<RegexId> at(trie.size(), RegexArena::empty());
  std::vector<uint32_t> parents{0};
  at[0] = regex;
  std::set<TokenId> inside, beyond;
  std::set<uint32_t> ends;
  for (uint32_t i = 1; i < trie.size(); ++i) {
    const TokenTrie::Node& n = trie.node(i);
    parents.resize(n.depth);
    const RegexId above = at[parents.back()];
    parents.push_back(i);
    at[i] = above == RegexArena::empty() ? above : arena.next(above, static_cast<uint8_t>(n.byte));
    if (at[i] == RegexArena::empty()) continue;
    inside.insert(trie.tokens(i).begin(), trie.tokens(i).end());
    if (trie.leaf(i) || !arena.nullable(at[i])) continue;
    ends.insert(i);
    const auto below = trie.subtree_tokens(i).subspan(trie.tokens(i).size());
    beyond.insert(below.begin(), below.end());
  }
  std::set<TokenId> allowed(mask.added.begin(), mask.added.end());
  for (TokenId t = 1; mask.base && static_cast<uint32_t>(t) < vocabulary.size(); ++t)
    if (get_bit(*mask.base, t) && std::ranges::find(mask.removed, t) == mask.removed.end()) allowed.insert(t);
  if (arena.effort().omits()) {
    REQUIRE(std::ranges::includes(inside, allowed));
    return;
  }
  REQUIRE(allowed == inside);
  if (mask.left) {
    std::set<TokenId> found;
    for (const Exit& e : mask.left->children) {
      const auto below = trie.subtree_tokens(e.node).subspan(trie.tokens(e.node).size());
      for (const TokenId t : below)
        if (!std::ranges::binary_search(mask.blocked, t)) found.insert(t);
    }
    REQUIRE(found == beyond);
    return;
  }
  std::vector<uint32_t> found = mask.exits;
  for (const auto& [first, end] : mask.open)
    for (uint32_t i = first; i < end; ++i)
      if (!trie.leaf(i) && !(trie.below(i) & kMalformed)) found.push_back(i);
  std::ranges::sort(found);
  REQUIRE(found == std::vector<uint32_t>(ends.begin(), ends.end()));
  CHECK(std::ranges::is_sorted(mask.exits));
  CHECK(std::ranges::is_sorted(mask.open));
}

}  // namespace

TEST_CASE("slices: the mask of a regex is what the regex reads, whatever was asked before") {
  uint32_t masks = 0, failed = 0;
  for (uint32_t seed = 0; seed < times(600); ++seed) {
    // The last one has an omitted step of two regexes, of which one was told from a third.
    Random random((seed + 1 == times(600) ? 10'001'908 : seed) + 500'000);
    INFO("seed ", seed);
    const auto vocabulary = drawn_vocabulary(random);
    const bool omits = random.chance(25), scarce = random.chance(omits ? 80 : 30);
    RegexArena arena(random.chance(70) ? kJson : kPlainJson, omits);
    Slices slices(arena, *vocabulary);
    std::vector<RegexId> regexes;
    try {
      Draw draw(random, arena);
      for (uint32_t i = 0; i < 12; ++i) {
        RegexId r = draw.regex();
        // The states on a way through it are asked for as well.
        for (uint32_t steps = 0; steps < 5 && !arena.is_empty(r) && r != RegexArena::epsilon(); ++steps) {
          regexes.push_back(r);
          const auto t = static_cast<TokenId>(random.below(vocabulary->size()));
          if (const RegexId to = arena.steps(r, vocabulary->bytes(t)); to != RegexArena::empty()) r = to;
        }
      }
    } catch (const Error&) {  // an intersection was too large to decide
    }
    for (uint32_t i = 0; i < regexes.size(); ++i) {
      std::swap(regexes[i], regexes[i + random.below(static_cast<uint32_t>(regexes.size()) - i)]);
      INFO("regex ", i);
      // A walk that ends in the middle leaves nothing behind.
      for (int64_t work = scarce ? 50 + random.below(3'000) : Meter::kEndless;; work = Meter::kEndless) {
        try {
          const TerminalMask* mask;
          {
            const WorkScope scope(Task::kMask, work);
            mask = &slices.terminal(regexes[i]);
          }
          check(arena, *vocabulary, regexes[i], *mask);
          ++masks;
          break;
        } catch (const Error&) {
          ++failed;
          if (work == Meter::kEndless) break;
        }
      }
      if (random.chance(2)) slices.trim(0);
    }
  }
  CHECK(masks > times(600) * 20);
  CHECK(failed > times(600));
}

TEST_CASE("runs: a class that was copied from a similar one is the class that a walk makes") {
  uint32_t copied = 0;
  for (uint32_t seed = 0; seed < times(60); ++seed) {
    Random random(seed + 700'000);
    INFO("seed ", seed);
    const auto draw = [&](Random from) {
      std::set<std::string> tokens;
      for (uint32_t i = 0; i < 4'000; ++i) {
        std::string t;
        for (uint32_t k = 1 + from.below(6); k > 0; --k)
          t += from.chance(90) ? std::string(1, static_cast<char>('a' + from.below(6)))
                               : std::vector<std::string>{"\\n",    "\"",      "\xc3\xa9", "\xc3",
                                                          "\\u006", "\\u0061", "q"}[from.below(7)];
        tokens.insert(t);
      }
      std::vector<std::string_view> views{""};
      views.insert(views.end(), tokens.begin(), tokens.end());
      return std::make_shared<Vocabulary>(views, std::vector<TokenId>{0}, std::vector<TokenId>{});
    };
    const auto together = draw(Random(seed));
    RegexArena arena(random.chance(80) ? kJson : kPlainJson, false);
    std::vector<std::shared_ptr<RunClass>> earlier;
    for (uint32_t i = 0; i < 6; ++i) {
      CodepointSet set = random.chance(70) ? CodepointSet::all() : CodepointSet::one('a');
      for (uint32_t c = 'a'; c < 'g'; ++c) {
        if (!random.chance(25)) continue;
        set = random.chance(60) ? set - CodepointSet::one(c) : set | CodepointSet::one(c);
      }
      if (random.chance(20)) set = set - CodepointSet::one(0xE9);
      const RegexId element = arena.spelling().characters(arena, set);
      if (arena.is_empty(element)) continue;
      const auto alone = draw(Random(seed));
      earlier.push_back(together->runs().of(arena, element));
      RunClass &one = *earlier.back(), &other = *alone->runs().of(arena, element);
      REQUIRE(one.ok() == other.ok());
      if (!one.ok()) continue;
      copied += i > 0 && one.tokens() > kMostListed;
      REQUIRE(one.tokens() == other.tokens());
      REQUIRE(one.longest() >= other.longest());
      for (uint32_t k = 0; k <= one.longest() + 1; ++k) {
        REQUIRE(one.up_to(k) == other.up_to(k));
        REQUIRE(one.tokens_between(k, one.longest()) == other.tokens_between(k, one.longest()));
      }
      for (uint32_t node = 0; node < alone->trie().size(); ++node)
        REQUIRE(one.boundary(node) == other.boundary(node));
      for (const char b : {'"', 'a'}) {
        const RunExits &left = one.exits(static_cast<uint8_t>(b)),
                       &right = other.exits(static_cast<uint8_t>(b));
        REQUIRE(left.unbounded == right.unbounded);
        REQUIRE(std::ranges::equal(left.children, right.children, [](const Exit& x, const Exit& y) {
          return x.node == y.node && x.count == y.count;
        }));
      }
      const RegexId tail = arena.cat(arena.literal(random.chance(50) ? "qab" : "q"),
                                     random.chance(50) ? arena.star(element) : arena.byte('b'));
      const RegexId sought =
          arena.cat(arena.star(element), random.chance(50) ? arena.alt(tail, arena.byte('"')) : tail);
      Slices slices(arena, *together);
      check(arena, *together, sought, slices.terminal(sought));
      REQUIRE(one.cuts().whole == other.cuts().whole);
      REQUIRE(one.counts().wholes.size() == other.counts().wholes.size());
    }
  }
  CHECK(copied > times(60));
}
