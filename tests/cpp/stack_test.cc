// parse/stack.h beside a set of stacks spelled out.
#include <doctest/doctest.h>

#include <map>
#include <set>
#include <vector>

#include "parse/stack.h"
#include "random.h"

using namespace structgen;
using structgen_tests::Random;
using structgen_tests::times;

namespace {

using Stack = std::vector<uint32_t>;  // the top first
using Stacks = std::set<Stack>;

Stacks spelled(const StackArena& arena, StackId of) {
  Stacks out;
  if (arena.has_end(of)) out.insert(Stack{});
  for (const StackEntry& e : arena.entries(of))
    for (const Stack& rest : spelled(arena, e.rest)) {
      Stack stack{e.top.v};
      stack.insert(stack.end(), rest.begin(), rest.end());
      out.insert(std::move(stack));
    }
  return out;
}

Stacks pushed(uint32_t top, const Stacks& rests) {
  Stacks out;
  for (Stack stack : rests) {
    stack.insert(stack.begin(), top);
    out.insert(std::move(stack));
  }
  return out;
}

}  // namespace

TEST_CASE("sets of stacks: pushes and unions = the sets spelled out; equal sets have one id") {
  for (uint32_t seed = 0; seed < times(60); ++seed) {
    Random random(seed);
    StackArena arena;
    std::vector<std::pair<StackId, Stacks>> known{{StackArena::none(), {}}, {StackArena::end(), {Stack{}}}};
    std::map<Stacks, uint32_t> ids{{Stacks{}, StackArena::none().v}, {{Stack{}}, StackArena::end().v}};
    for (int step = 0; step < 120; ++step) {
      const auto& [a, first] = known[random.below(static_cast<uint32_t>(known.size()))];
      const auto& [b, second] = known[random.below(static_cast<uint32_t>(known.size()))];
      StackId made;
      Stacks expected;
      if (random.chance(55) && !first.empty()) {
        const Symbol tops[] = {Symbol::terminal(RegexId{random.below(3)}),
                               Symbol::rule(RuleId{random.below(2)})};
        if (random.chance(30)) {
          made = arena.push(std::span<const Symbol>(tops), a);
          expected = pushed(tops[0].v, pushed(tops[1].v, first));
        } else {
          made = arena.push(tops[0], a);
          expected = pushed(tops[0].v, first);
        }
      } else {
        made = arena.unite(a, b);
        expected = first;
        expected.insert(second.begin(), second.end());
        REQUIRE(arena.unite(b, a) == made);
        REQUIRE(arena.unite(made, a) == made);
      }
      if (expected.size() > 200) continue;
      REQUIRE(spelled(arena, made) == expected);
      REQUIRE(ids.emplace(expected, made.v).first->second == made.v);
      known.emplace_back(made, std::move(expected));
    }
    for (const auto& [id, stacks] : known) REQUIRE(spelled(arena, id) == stacks);  // nothing changed later
  }
}

TEST_CASE("sets of stacks: deep ones that differ far down are united whole") {
  StackArena arena;
  const Symbol common = Symbol::rule(RuleId{9});
  Stacks expected;
  StackId all = StackArena::none();
  for (uint32_t bottom = 0; bottom < 5; ++bottom) {
    StackId stack = arena.push(Symbol::terminal(RegexId{bottom}), StackArena::end());
    Stack spelled_out{Symbol::terminal(RegexId{bottom}).v};
    for (int i = 0; i < 450; ++i) {
      stack = arena.push(common, stack);
      spelled_out.insert(spelled_out.begin(), common.v);
    }
    all = arena.unite(all, stack);
    expected.insert(spelled_out);
  }
  CHECK(spelled(arena, all) == expected);
}

TEST_CASE("sets of stacks: a hundred thousand deep") {
  StackArena arena;
  StackId a = StackArena::end(), b = arena.push(Symbol::rule(RuleId{1}), StackArena::end());
  for (int i = 0; i < 100'000; ++i) {
    a = arena.push(Symbol::rule(RuleId{0}), a);
    b = arena.push(Symbol::rule(RuleId{0}), b);
  }
  const StackId both = arena.unite(a, b);
  CHECK(both != a);
  CHECK(arena.unite(both, b) == both);
  CHECK(arena.unite(arena.unite(both, a), arena.unite(b, both)) == both);
}
