#include "budget/targets.h"

#include <bit>

namespace structgen {

namespace {
constexpr int kWide = 24;  // first bytes of an element from which its run is worth a class (mask/runs.h)
}

TokenId Targets::first(const Words& row) {
  std::size_t w = 0;
  while (row[w] == 0) ++w;
  return static_cast<TokenId>(w * 32 + static_cast<uint32_t>(std::countr_zero(row[w])));
}

bool Targets::endless(StateId s, Run& out) {
  RegexArena& regexes = parser_.regexes();
  if (s == Parser::dead() || parser_.state(s).accepting) return false;
  RegexId element = RegexArena::empty();
  for (const Item& i : parser_.items(s)) {
    RegexId of, tail;
    uint32_t min, max;
    if (!as_run(regexes, i.regex, of, min, max, tail) || min != 0 || max != kUnbounded ||
        tail != regexes.byte('"') || (element != RegexArena::empty() && of != element))
      return false;
    element = of;
  }
  if (element == RegexArena::empty() || regexes.live(element).count() < kWide ||
      regexes.live(element).has('"'))
    return false;
  out.of = slices_.run(element);
  out.inside = s;
  out.left = step(s, '"');
  return out.of != nullptr;
}

bool Targets::run_behind(StateId from, Run& out) {
  if (endless(from, out)) return true;
  for (const char b : {'~', 'z', 'Q', '0'})
    if (endless(step(from, static_cast<uint8_t>(b)), out)) return true;
  return false;
}

bool Targets::counts(StateId s, Run& out) {
  RegexArena& regexes = parser_.regexes();
  const State& st = parser_.state(s);
  if (st.n != 1 || st.accepting) return false;
  const Item& item = st.items[0];
  RegexId element, tail;
  if (!as_run(regexes, item.regex, element, out.min, out.max, tail) || tail != regexes.byte('"') ||
      (out.min == 0 && out.max == kUnbounded) || regexes.live(element).count() < kWide ||
      regexes.live(element).has('"'))
    return false;
  out.of = slices_.run(element);
  out.inside = s;
  const Item after{tail, item.stack, item.capture};
  out.left = step(parser_.make({&after, 1}, false), '"');
  return out.of != nullptr;
}

}  // namespace structgen
