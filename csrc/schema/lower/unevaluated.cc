#include "schema/lower/unevaluated.h"

#include <algorithm>

#include "base/depth.h"
#include "base/error.h"
#include "base/sorted.h"
#include "schema/lower/lower.h"

namespace structgen {

namespace {
// The keys, or the items, of one schema object form at most this many groups. Each group becomes a conjunct
// of the formula.
constexpr std::size_t kMaxGroups = 4'096;
// Subschemas that apply to the same value nest at most this deep.
constexpr std::size_t kMaxPath = 1'000;
}  // namespace

// Collects what a subschema evaluates where `condition` holds. A branch of `anyOf` or `oneOf` (`conditional`)
// evaluates only where it holds itself, too; a branch of `allOf` must hold anyway.
void Unevaluated::collect_kid(const Loc& at, JsonRef node, ValueId condition, bool conditional) {
  if (conditional) condition = lowering_.formulas().both(condition, lowering_.sub(at, node));
  if (condition == FormulaSpace::no()) return;
  collect(lowering_.schemas().child(at, node), condition, false);
}

// Collects the members or items that a schema evaluates, with those of the subschemas that apply to the same
// value. `top` says that the unevaluated keyword stands in this schema itself, where it does not count. In a
// subschema such a keyword evaluates everything.
void Unevaluated::collect(const Loc& at, ValueId condition, bool top) {
  check_depth();
  SchemaSet& schemas = lowering_.schemas();
  if (!schemas.json(at).is_object(at.node)) return;
  // The references form a loop. The scan reports it or, if the references are dynamic, the solver does.
  if (std::find(path_.begin(), path_.end(), at) != path_.end()) return;
  if (path_.size() > kMaxPath)
    throw Error(ErrorKind::kSchemaTooComplex, "subschemas nest too deeply").in(schemas.pointer(at_));
  path_.push_back(at);
  FormulaSpace& formulas = lowering_.formulas();
  const Keywords o(schemas, at);
  const Json& j = o.json;
  collect_keys(at, o, condition, top);
  collect_items(at, o, condition, top);
  if (o.string(Word::kRef) && schemas.resolves(at, j.text(o[Word::kRef])))
    collect(schemas.resolve(at, j.text(o[Word::kRef])), condition, false);
  if (o.string(Word::kDynamicRef) && schemas.resolves(at, j.text(o[Word::kDynamicRef])))
    collect(schemas.resolve_dynamic(at, j.text(o[Word::kDynamicRef])), condition, false);
  if (o.string(Word::kRecursiveRef)) collect(schemas.resolve_recursive(at), condition, false);
  for (Word w : {Word::kAllOf, Word::kAnyOf, Word::kOneOf})
    if (o.array(w))
      for (uint32_t i = 0; i < j.size(o[w]); ++i)
        collect_kid(at, j.item(o[w], i), condition, w != Word::kAllOf);
  if (o.schema(Word::kIf)) {
    const ValueId test = lowering_.sub(at, o[Word::kIf]);
    collect_kid(at, o[Word::kIf], condition, true);
    if (o.schema(Word::kThen)) collect_kid(at, o[Word::kThen], formulas.both(condition, test), false);
    if (o.schema(Word::kElse))
      collect_kid(at, o[Word::kElse], formulas.both(condition, formulas.deny(test)), false);
  }
  for (Word w : {Word::kDependentSchemas, Word::kDependencies})
    if (o.object(w))
      for (uint32_t i = 0; i < j.size(o[w]); ++i) {
        const JsonRef then = j.item(o[w], i);
        if (!j.is_object(then)) continue;
        const ValueId present = formulas.both(
            formulas.types(kind_bit(Kind::kObject)),
            formulas.literal(Kind::kObject, formulas.some(formulas.name(formulas.intern_name(j.key(o[w], i))),
                                                          FormulaSpace::yes(), 1)));
        collect_kid(at, then, formulas.both(condition, present), false);
      }
  path_.pop_back();
}

// Collects the keys that the keywords of one schema object evaluate. If it has `additionalProperties`, all
// keys are evaluated: by this keyword or by those beside it.
void Unevaluated::collect_keys(const Loc&, const Keywords& o, ValueId condition, bool top) {
  FormulaSpace& formulas = lowering_.formulas();
  const Json& j = o.json;
  if (o.schema(Word::kAdditionalProperties) || (!top && o.schema(Word::kUnevaluatedProperties)))
    keys_.push_back({condition, formulas.any_key()});
  if (o.object(Word::kProperties)) {
    std::vector<NameId> names;
    for (uint32_t i = 0; i < j.size(o[Word::kProperties]); ++i)
      names.push_back(formulas.intern_name(j.key(o[Word::kProperties], i)));
    if (!names.empty()) keys_.push_back({condition, formulas.names(std::move(names))});
  }
  if (o.object(Word::kPatternProperties))
    for (uint32_t i = 0; i < j.size(o[Word::kPatternProperties]); ++i)
      keys_.push_back({condition, formulas.pattern(j.key(o[Word::kPatternProperties], i))});
}

// Collects the items that the keywords of one schema object evaluate. From 2020-12 on `contains` evaluates
// the items that satisfy its schema; in earlier drafts it evaluates none.
void Unevaluated::collect_items(const Loc& at, const Keywords& o, ValueId condition, bool top) {
  const Json& j = o.json;
  const bool tuple = o.draft <= Draft::k2019 && o.array(Word::kItems);
  uint32_t end = 0;
  if (o.array(Word::kPrefixItems)) end = j.size(o[Word::kPrefixItems]);
  if (tuple) end = j.size(o[Word::kItems]);
  if (o.schema(Word::kItems) || (tuple && o.schema(Word::kAdditionalItems)) ||
      (!top && o.schema(Word::kUnevaluatedItems)))
    end = kUnbounded;
  if (end > 0) items_.push_back({condition, end});
  if (o.draft >= Draft::k2020 && o.schema(Word::kContains))
    contains_.push_back({condition, lowering_.sub(at, o[Word::kContains])});
}

// Groups the keys by the conditions that evaluate them. Returns false if every key is always evaluated.
bool Unevaluated::group_keys(KeyGroups& out) {
  FormulaSpace& formulas = lowering_.formulas();
  std::vector<NameId>& always = out.known;
  for (const Keys& k : keys_) {
    if (k.condition != FormulaSpace::yes()) continue;
    if (k.region == formulas.any_key()) return false;
    const Region& r = formulas.region(k.region);
    if (r.kind == Region::kNames)
      always.insert(always.end(), r.names.begin(), r.names.end());
    else
      out.open.push_back(formulas.region_not(k.region));
  }
  std::sort(always.begin(), always.end());
  std::map<NameId, Conditions> names;
  std::map<RegionId, Conditions> patterns;
  for (const Keys& k : keys_) {
    if (k.condition == FormulaSpace::yes()) continue;
    const Region& r = formulas.region(k.region);
    if (k.region == formulas.any_key()) {
      out.everything.insert(k.condition);
    } else if (r.kind == Region::kNames) {
      for (NameId n : r.names)
        if (!std::binary_search(always.begin(), always.end(), n)) names[n].insert(k.condition);
    } else {
      patterns[k.region].insert(k.condition);
    }
  }
  for (const auto& [name, in] : names) {
    out.names[in].push_back(name);
    out.known.push_back(name);
  }
  for (const auto& [region, in] : patterns) out.patterns[in].push_back(region);
  return true;
}

// Returns the condition on unevaluated members, with a conjunct for each group of keys.
ValueId Unevaluated::properties(ValueId rest) {
  if (rest == FormulaSpace::yes()) return rest;
  FormulaSpace& formulas = lowering_.formulas();
  collect(at_, FormulaSpace::yes(), true);
  KeyGroups groups;
  if (!group_keys(groups)) return FormulaSpace::yes();
  const std::size_t n = groups.patterns.size();
  if (n > 12 || (groups.names.size() + 1) << n > kMaxGroups)
    throw Error(ErrorKind::kSchemaTooComplex,
                "too many conditional patterns to say which keys are unevaluated")
        .in(lowering_.schemas().pointer(at_), "unevaluatedProperties");
  std::vector<ValueId> out;
  // Patterns with equal conditions are one set. A key may match several sets, so there is a group for each
  // choice of sets: the keys that match all chosen sets and no other one.
  for (std::size_t mask = 0; mask < (std::size_t{1} << n); ++mask) {
    std::vector<RegionId> inside = groups.open;
    Conditions evaluating = groups.everything;
    std::size_t bit = 0;
    for (const auto& [in, regions] : groups.patterns) {
      const RegionId language = formulas.region_or(regions);
      const bool hit = (mask >> bit++) & 1;
      inside.push_back(hit ? language : formulas.region_not(language));
      if (hit) evaluating.insert(in.begin(), in.end());
    }
    // Adds a group: those of `keys` that match just the chosen sets of patterns. The conditions `in`, and
    // those of the sets, evaluate them.
    const auto add = [&](RegionId keys, Conditions in) {
      std::vector<RegionId> where = inside;
      where.push_back(keys);
      in.insert(evaluating.begin(), evaluating.end());
      out.push_back(formulas.either(
          formulas.literal(Kind::kObject, formulas.all(formulas.region_and(std::move(where)), rest)),
          formulas.any_of(std::vector<ValueId>(in.begin(), in.end()))));
    };
    for (const auto& [in, members] : groups.names) add(formulas.names(members), in);
    add(formulas.region_not(formulas.names(groups.known)), {});
  }
  return formulas.all_of(out);
}

// Returns the condition on unevaluated items, with a conjunct for each range of indices. `ends` are the ends
// of the ranges. `contains` needs a way of its own, because the items themselves decide which of them it
// evaluates.
ValueId Unevaluated::items(ValueId rest) {
  if (rest == FormulaSpace::yes()) return rest;
  FormulaSpace& formulas = lowering_.formulas();
  collect(at_, FormulaSpace::yes(), true);
  // Items before this index are always evaluated.
  uint32_t first = 0;
  for (const Items& i : items_)
    if (i.condition == FormulaSpace::yes()) first = std::max(first, i.end);
  if (first == kUnbounded) return FormulaSpace::yes();
  // The conditions of `contains`, each of them once.
  std::vector<ValueId> conditional;
  for (const Contains& c : contains_) {
    if (c.condition == FormulaSpace::yes())
      rest = formulas.either(rest, c.value);
    else if (std::find(conditional.begin(), conditional.end(), c.condition) == conditional.end())
      conditional.push_back(c.condition);
  }
  std::vector<uint32_t> ends{kUnbounded};
  for (const Items& i : items_)
    if (i.end > first) ends.push_back(i.end);
  sort_unique(ends);
  if (conditional.size() > 12 || ends.size() << conditional.size() > kMaxGroups)
    throw Error(ErrorKind::kSchemaTooComplex,
                "too many conditional `contains` to say which items are unevaluated")
        .in(lowering_.schemas().pointer(at_), "unevaluatedItems");
  std::vector<ValueId> out;
  for (std::size_t mask = 0; mask < (std::size_t{1} << conditional.size()); ++mask) {
    // Let condition c_i evaluate the items that satisfy C_i, and let U be `rest`. The formula must say: each
    // item satisfies U, or a C_i whose c_i holds. It is written as a conjunction over all sets M of
    // conditions: some condition in M holds, or each item satisfies U or a C_i with i not in M. If M is the
    // set of the conditions that are false, the second half must hold, and this is the condition above.
    ValueId value = rest, escape = FormulaSpace::no();
    for (std::size_t c = 0; c < conditional.size(); ++c) {
      if ((mask >> c) & 1) {
        escape = formulas.either(escape, conditional[c]);
        continue;
      }
      for (const Contains& x : contains_)
        if (x.condition == conditional[c]) value = formulas.either(value, x.value);
    }
    uint32_t begin = first;
    for (uint32_t end : ends) {
      ValueId covered = escape;
      for (const Items& i : items_)
        if (i.condition != FormulaSpace::yes() && i.end >= end)
          covered = formulas.either(covered, i.condition);
      out.push_back(
          formulas.either(formulas.literal(Kind::kArray, formulas.item_all(begin, end, value)), covered));
      begin = end;
    }
  }
  return formulas.all_of(out);
}

}  // namespace structgen
