#include "schema/values/raw.h"

#include "base/depth.h"
#include "base/utf8.h"
#include "strings/format.h"

namespace structgen {

RegexId RawStrings::all() {
  if (all_ == RegexArena::empty()) all_ = any_text(regexes_, spelling_);
  return all_;
}

RegexId RawStrings::any_of(const std::vector<std::string>& texts) {
  std::vector<RegexId> parts;
  for (const std::string& t : texts)
    if (valid_utf8(t)) parts.push_back(one(t));
  return regexes_.alt(std::span<const RegexId>(parts));
}

RegexId RawStrings::texts(FormulaId p) {
  check_depth();
  if (p == FormulaSpace::no()) return RegexArena::empty();
  if (p == FormulaSpace::yes()) return all();
  if (const RegexId* known = memo_.find(p.v)) return *known;
  const Formula f = formulas_[p];
  RegexId out;
  std::vector<std::string> listed;
  if (scalars_.constants(p, listed)) {
    out = any_of(listed);
  } else if (f.op == Op::kAnd || f.op == Op::kOr) {
    std::vector<RegexId> parts;
    for (FormulaId k : formulas_.kids(p)) parts.push_back(texts(k));
    const std::span<const RegexId> all(parts);
    out = f.op == Op::kAnd ? regexes_.both(all) : regexes_.alt(all);
  } else if (f.op == Op::kOne) {
    // At most one so far, and exactly one so far, kid by kid.
    RegexId none = all(), found = RegexArena::empty();
    for (FormulaId k : formulas_.kids(p)) {
      const RegexId r = texts(k);
      found = regexes_.alt(regexes_.minus(found, r), regexes_.both(none, r));
      none = regexes_.minus(none, r);
    }
    out = found;
  } else if (f.op == Op::kNot) {
    out = regexes_.minus(all(), texts(f.kids[0]));
  } else {
    out = atom(f);
  }
  memo_.emplace(p.v, out);
  return out;
}

RegexId RawStrings::atom(const Formula& f) {
  switch (f.op) {
    case Op::kPattern: return lower(regexes_, parse_pattern(formulas_.text(f.a)), Match::kSearch, spelling_);
    case Op::kFormat: return lower(regexes_, *find_format(formulas_.text(f.a)), spelling_);
    case Op::kLength:
      if (f.a > f.b) return RegexArena::empty();
      return regexes_.repeat(any_character(regexes_, spelling_), f.a, f.b);
    default: unknown_operator(f.op);
  }
}

RegexId within_newlines(RegexArena& regexes, RegexId r) {
  const RegexId newline = regexes.byte('\n');
  const RegexId begins = regexes.cat(newline, RegexArena::anything());
  const RegexId ends = regexes.cat(RegexArena::anything(), newline);
  const RegexId no_front = regexes.minus(r, begins), no_back = regexes.minus(r, ends);
  const RegexId parts[] = {regexes.minus(no_front, ends), regexes.cat(newline, no_back),
                           regexes.cat(no_front, newline), regexes.cat(newline, regexes.cat(r, newline))};
  return regexes.alt(std::span<const RegexId>(parts));
}

}  // namespace structgen
