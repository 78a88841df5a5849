// Strings that hold JSON text: separates the conditions on the text of a string from the conditions on the
// value that the text denotes.
//
// In: a formula restricted to strings. Out: a formula of texts, which has no kContent, and formulas of
// values. A string satisfies the input if it satisfies the formula of texts, or is the JSON text of a value
// that satisfies one of the formulas of values. Cost: a step for each conjunct; a union with a condition on
// content is multiplied out.
//
// A text is the JSON text of one value only. So "the text of a V" and "the text of a W" is "the text of a V
// and W", and "not the text of a W" beside "the text of a V" is "the text of a V and not W". If such a
// condition stands beside a list of constants, each constant is parsed. Three combinations are
// kSchemaTooComplex: a pattern beside content would be a grammar and an automaton at once; "a string that is
// not the text of a V" is no grammar at all; and "exactly one" over contents asks for strings of the second
// form.
#include <algorithm>

#include "base/depth.h"
#include "base/told.h"
#include "schema/decide/solve.h"
#include "schema/read/json.h"

namespace structgen {

Contents Solver::contents(TypedId p) {
  Contents out;
  take_contents(p, out);
  return out;
}

RegexId Solver::strings(ValueId v) {
  const Contents held = contents(restrict(v, Kind::kString));
  if (std::ranges::any_of(held.values, [&](ValueId w) { return nonempty(w); })) content_too_complex();
  return texts_.decided(held.texts);
}

// Adds the strings that satisfy p to `out`. `plain` collects the conditions on the text of the string,
// `value` those on the JSON value that this text spells. If a conjunct is an Or, its alternatives are taken
// one by one.
void Solver::take_contents(TypedId p, Contents& out) {
  check_depth();
  if (!(formulas_[p].has & kHasContent)) {
    out.texts = formulas_.either(out.texts, p);
    return;
  }
  spend();
  const auto conjuncts = formulas_.conjuncts(p);
  const std::vector<TypedId> kids(conjuncts.begin(), conjuncts.end());
  const auto atom = [&](TypedId k) { return formulas_[k].op == Op::kNot ? formulas_.kids(k)[0] : k; };
  std::vector<TypedId> plain;
  ValueId value = FormulaSpace::yes();
  bool some = false;
  for (TypedId k : kids) {
    const Formula inner = formulas_[atom(k)];
    if (!(inner.has & kHasContent)) {
      plain.push_back(k);
    } else if (inner.op == Op::kContent) {
      value = formulas_.both(value, atom(k) == k ? inner.value() : formulas_.deny(inner.value()));
      some = some || atom(k) == k;
    } else {
      if (inner.op != Op::kOr) content_too_complex();
      std::vector<TypedId> rest = kids;
      std::erase(rest, k);
      const std::vector<TypedId> branches(formulas_.kids(k).begin(), formulas_.kids(k).end());
      for (TypedId branch : branches) {
        rest.push_back(branch);
        take_contents(formulas_.all_of(rest), out);
        rest.pop_back();
      }
      return;
    }
  }
  const TypedId beside = formulas_.all_of(plain);
  // written_free_ (write_without()) holds for every string that can be written, so as a condition on the text
  // it restricts nothing, so only the condition on the value remains.
  if (some && (beside == FormulaSpace::yes() || beside == written_free_)) return out.values.push_back(value);
  std::vector<std::string> kept;
  // A condition on the text and one on the value can be combined only if the text is one of some constants,
  // which are parsed one by one. If all conditions on the value are negated (`some` is false), a constant
  // that is no JSON text satisfies them, too.
  if (!texts_.constants(beside, kept)) content_too_complex();
  std::erase_if(kept, [&](const std::string& text) {
    return !holds_value(text, value) && (some || holds_value(text, FormulaSpace::yes()));
  });
  out.texts = formulas_.either(out.texts, formulas_.strings(std::move(kept)));
}

// Tells whether the text is JSON and its value satisfies v. The text is parsed between `[` and `]`: a JSON
// text gives a list of one value, while a text such as `1, 2` gives two values.
bool Solver::holds_value(const std::string& text, ValueId v) {
  auto list = told([&] { return Json::parse("[" + text + "]"); }, [](const Error&) { return true; });
  return list && list->size(0) == 1 && nonempty(formulas_.both(v, lowering_.values(*list, 0)));
}

}  // namespace structgen
