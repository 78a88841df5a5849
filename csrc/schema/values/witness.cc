// Recognizes formulas that some text or number surely satisfies. Such a formula needs no automaton.
//
// Most formulas in schemas are one condition (`"pattern"`, `"minLength"`) or a number between two bounds, so
// this file decides nearly all formulas. False means that an automaton has to decide.
#include "schema/values/witness.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>

#include "base/depth.h"
#include "base/utf8.h"
#include "strings/format.h"

namespace structgen {

namespace {
// Returns true if some number satisfies the condition whatever its constant is. An operator missing here
// costs an automaton, but makes no answer wrong.
bool some_number(Op op) {
  return op == Op::kInteger || op == Op::kMultiple || op == Op::kAtLeast || op == Op::kAtMost ||
         op == Op::kEqual;
}

// Returns true if the atoms show whether 0 satisfies p, and the answer is `truth`.
bool zero_satisfies(FormulaSpace& formulas, TypedId p, bool truth) {
  check_depth();
  const Formula& f = formulas[p];
  const auto holds = [&](TypedId k) { return zero_satisfies(formulas, k, truth); };
  switch (f.op) {
    case Op::kInteger:
    case Op::kMultiple: return truth;
    case Op::kAtLeast:
    case Op::kAtMost: {
      const Decimal& bound = formulas.decimal(f.text());
      return (bound.zero() ? f.b == 0 : bound.negative == (f.op == Op::kAtLeast)) == truth;
    }
    case Op::kEqual: return formulas.decimal(f.text()).zero() == truth;
    case Op::kNot: return zero_satisfies(formulas, formulas.kids(p)[0], !truth);
    case Op::kAnd:
    case Op::kOr: {
      const auto kids = formulas.kids(p);
      return (f.op == Op::kAnd) == truth ? std::ranges::all_of(kids, holds)
                                         : std::ranges::any_of(kids, holds);
    }
    default: return false;
  }
}

// Returns the bytes of a text as a JSON string; every byte that is not ASCII counts as an escape.
uint64_t quoted_bytes(std::string_view text) {
  uint64_t out = 2;
  for (const char c : text) out += c == '"' || c == '\\' ? 2 : c < 0x20 || c > 0x7E ? 6 : 1;
  return out;
}
}  // namespace

uint64_t plain_bytes(FormulaSpace& formulas, TypedId p) {
  const Formula& f = formulas[p];
  if (formulas.row(p).about == Kind::kNumber || f.op == Op::kAnd || f.op == Op::kOr || f.op == Op::kNot)
    return zero_satisfies(formulas, p, true) ? 1 : 0;
  uint64_t out = 0;
  if (f.op == Op::kLength && f.a <= f.b) out = 2 + uint64_t{f.a};
  if (f.op == Op::kFormat) out = 2 + uint64_t{find_format(formulas.text(f.text()))->least};
  if (f.op == Op::kStrings)
    for (const std::string& t : formulas.string_set(f.string_set()))
      if (valid_utf8(t)) out = out == 0 ? quoted_bytes(t) : std::min(out, quoted_bytes(t));
  return out;
}

bool plainly_nonempty(FormulaSpace& formulas, TypedId p) {
  check_depth();
  const Formula& f = formulas[p];
  if (some_number(f.op) || f.op == Op::kFormat) return true;
  if (f.op == Op::kStrings)
    return std::ranges::any_of(formulas.string_set(f.string_set()),
                               [](const std::string& t) { return valid_utf8(t); });
  if (f.op == Op::kLength) return f.a <= f.b;
  if (f.op == Op::kOr)
    return std::ranges::any_of(formulas.kids(p), [&](TypedId k) { return plainly_nonempty(formulas, k); });
  // The negation of finitely many texts, or of a bound, leaves some value. For that of `integer` or a divisor
  // an automaton decides.
  if (f.op == Op::kNot) {
    const Op denied = formulas[formulas.kids(p)[0]].op;
    return denied == Op::kStrings || denied == Op::kAtLeast || denied == Op::kAtMost || denied == Op::kEqual;
  }
  if (f.op != Op::kAnd) return false;
  // Some number meets the bounds and a single divisor if the bounds are further apart than the divisor. The
  // bounds are doubles, whose last digits may be wrong, so the test asks for a little more.
  double low = -1e18, high = 1e18, step = 0;
  for (TypedId k : formulas.kids(p)) {
    const Formula& g = formulas[k];
    if (!some_number(g.op) || g.op == Op::kEqual) return false;
    const double x = g.op == Op::kInteger ? 1 : formulas.decimal(g.text()).approximate();
    if (!(std::abs(x) < 1e15)) return false;
    if (g.op == Op::kAtLeast) {
      low = std::max(low, x);
    } else if (g.op == Op::kAtMost) {
      high = std::min(high, x);
    } else {
      // There is a second divisor. Their least common multiple may lie beyond both bounds.
      if (step != 0) return false;
      step = x;
    }
  }
  return high - low > 1.01 * step + 1e-9 * (std::abs(low) + std::abs(high));
}

bool asks_whole(FormulaSpace& formulas, TypedId p) {
  const Formula& f = formulas[p];
  if (f.op == Op::kInteger) return true;
  if (f.op == Op::kEqual) return formulas.decimal(f.text()).integer();
  return f.op == Op::kOr && f.n > 0 && std::ranges::all_of(formulas.kids(p), [&](TypedId k) {
           return formulas[k].op == Op::kEqual && asks_whole(formulas, k);
         });
}

bool names_fractions(FormulaSpace& formulas, TypedId p) {
  return std::ranges::any_of(
      formulas.kids(p), [&](TypedId k) { return formulas[k].op == Op::kEqual && !asks_whole(formulas, k); });
}

}  // namespace structgen
