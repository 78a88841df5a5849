#include "budget/targets.h"

#include <bit>

namespace structgen {

namespace {
// A run gets a class of its own (mask/runs.h) if its element may begin with at least kFirstBytes different
// bytes.
constexpr int kFirstBytes = 24;
// A run may be left by at most this many different bytes, because each costs a list of exits.
constexpr int kExits = 4;
}  // namespace

TokenId Targets::first(const Words& row) {
  std::size_t w = 0;
  while (row[w] == 0) ++w;
  return static_cast<TokenId>(w * 32 + static_cast<uint32_t>(std::countr_zero(row[w])));
}

// Returns true if all items of s read the same run, without a minimum or maximum, and then a quote. The state
// behind the opening quote of a string of any text is such a state, even if several alternatives allow the
// string.
bool Targets::endless(StateId s, Run& out) {
  RegexArena& regexes = parser_.regexes();
  if (s == Parser::dead() || parser_.state(s).accepting) return false;
  RegexId element = RegexArena::empty();
  for (const Item& i : parser_.items(s)) {
    const RegexArena::Counter c = regexes.counter(i.regex);
    if (!c.star() || c.tail != regexes.byte('"') || (element != RegexArena::empty() && c.element != element))
      return false;
    element = c.element;
  }
  if (element == RegexArena::empty() || regexes.live(element).count() < kFirstBytes ||
      regexes.live(element).has('"'))
    return false;
  out.of = slices_.run(element);
  out.element = element;
  out.inside = s;
  if (const StateId left = step(s, '"'); left != Parser::dead()) out.left = {{'"', left}};
  return out.of != nullptr;
}

// Looks for a run at `from`. A string may restrict its first character or exclude some names, so a run is
// also looked for behind one character. The characters that are tried are ones with which few names begin;
// `n` may also follow a backslash.
bool Targets::run_behind(StateId from, Run& out) {
  if (endless(from, out)) return true;
  for (const char b : {'~', 'z', 'Q', '0', 'n'})
    if (endless(step(from, static_cast<uint8_t>(b)), out)) return true;
  return false;
}

// The state must have one item, because two counters would need pairs of numbers. What follows the run must
// begin with few bytes that begin no element, so that a token can leave the run at one point only. If more
// elements are still required than the longest token has bytes, no token leaves the run.
bool Targets::counts(StateId s, bool strings, Run& out) {
  RegexArena& regexes = parser_.regexes();
  const State& st = parser_.state(s);
  if (st.n != 1 || st.accepting) return false;
  const Item& item = st.items[0];
  const RegexArena::Counter c = regexes.counter(item.regex);
  const RegexId element = c.element, tail = c.tail;
  if (!c.counted || c.star() || regexes.live(element).count() < kFirstBytes ||
      (tail != regexes.byte('"') && (strings || parser_.context_free() || parser_.marked())))
    return false;
  out.min = c.min;
  out.max = c.max;
  if (out.min < vocabulary_.longest()) {
    const StateId behind = parser_.make(Item{tail, item.stack, item.capture});
    if (behind == Parser::dead() || parser_.state(behind).poisoned) return false;
    const ByteSet live = parser_.live(behind);
    if (live.count() > kExits || (live & regexes.live(element)).any()) return false;
    live.for_each([&](uint8_t b) {
      if (const StateId left = step(behind, b); left != Parser::dead()) out.left.emplace_back(b, left);
    });
  }
  out.of = slices_.run(element);
  out.element = element;
  out.inside = s;
  return out.of != nullptr;
}

}  // namespace structgen
