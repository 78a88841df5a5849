// Decisions about a formula: its restriction to a kind, its derivative by one member, and whether any
// value exists.
//
// In: formulas. Out: typed formulas, cells (a formula of the value, and the rest), and exact answers
// yes or no. nonempty() is a least fixpoint: a formula that is being decided counts as empty. A "no" is
// stored only if no formula that is still being decided was asked on the way. A "yes" is always stored.
// Cost: all is remembered; a search has a limit of steps, beyond which it throws kSchemaTooComplex.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/effort.h"
#include "base/error.h"
#include "base/flat_map.h"
#include "base/told.h"
#include "base/work.h"
#include "schema/decide/captured.h"
#include "schema/formula/formula.h"
#include "schema/lower/lower.h"
#include "schema/values/numbers.h"
#include "schema/values/texts.h"

namespace structgen {

// One way to go on after a key or a comma: the value satisfies `value`, and the members or items behind
// it satisfy `rest`.
struct Cell {
  ValueId value;
  TypedId rest;
};

// The condition of a formula on strings: the string satisfies `texts`, or is the JSON text of a value
// that satisfies one of `values`.
struct Contents {
  TypedId texts = FormulaSpace::no();
  std::vector<ValueId> values;
};

using ObjectId = Id<struct ObjectTag>;

// A formula of objects or arrays without the condition that they are none of the captured values `set`.
struct Outside {
  TypedId rest;
  CapturedId set;
};

class Objects;
class Unique;
struct ItemCell;

// Decides formulas for one grammar. It owns the deciders of objects (Objects) and of arrays with
// uniqueItems (Unique). productions.cc asks it for the next member or item; nothing here depends on how
// values are written.
class Solver {
 public:
  Solver(Lowering& lowering, FormulaSpace& formulas, RegexArena& regexes, Texts& texts, Numbers& numbers);
  ~Solver();

  // The condition of v on values of kind k. {"type": "string", "minimum": 3} allows no number, so its
  // restriction to numbers is no().
  TypedId restrict(ValueId v, Kind k);
  // True if some value satisfies v.
  bool nonempty(ValueId v);
  // The strings that satisfy v: body and closing quote. Throws if strings among them hold JSON texts.
  RegexId strings(ValueId v);
  // Separates the conditions of a formula on strings (content.cc).
  Contents contents(TypedId p);
  // Tells that every string must satisfy `texts` because of how strings are written here: no string of
  // an element holds the mark that closes it. Where strings hold JSON text, the grammar of that text
  // already keeps the condition (content.cc).
  void write_without(TypedId texts) { written_free_ = texts; }
  RegexId numbers(ValueId v) { return numbers_.language(restrict(v, Kind::kNumber)); }
  // True if the empty object or array satisfies p, so that no further member or item is needed.
  bool closes(TypedId p) const;
  // f(), or `otherwise` where it is too much to tell or where a reference leads nowhere, if the world
  // omits such parts (base/effort.h). Only for parts that may be omitted: `otherwise` must never allow
  // a text that f() might refuse.
  template <class T, class F>
  T attempt(T otherwise, F&& f);

  // ---- arrays ----

  // True if some array satisfies p.
  bool array_productive(TypedId p);
  // The ways to write the next item; p has no kUnique.
  std::vector<Cell> array_cells(TypedId p);
  // The ways to write the next item of any array formula.
  std::vector<ItemCell> item_cells(TypedId p);

  // ---- captured values that are left out (Unique answers) ----
  Captured& captured() const;
  Outside outside_of(TypedId p);
  // True if some object or array satisfies `p` and is not in the set.
  bool some_outside(Kind kind, TypedId p, CapturedId set);
  // The condition on the value of a member so that the object is outside of the set, if the members
  // behind it are those of the object `next`.
  ValueId apart(CapturedId set, std::string_view key, ObjectId next);

  // ---- shared with objects ----
  // Takes a derivative (which may contain kVal) apart into cells, and appends them.
  using Judge = std::function<bool(TypedId)>;
  // The questions of split() about a rest.
  struct Judges {
    // Can the rest be completed?
    Judge productive;
    // A cheaper question: false only if the rest cannot be completed. Used by exclusive().
    Judge possible;
    // The caller sets it to true when it needs no more cells.
    const bool* enough = nullptr;
    // The steps that a trial has left. When they are used up, the caller takes another way.
    uint32_t* trial = nullptr;
    // Cells that are too much to tell are omitted, see attempt(). Not for a search, whose "no" must be
    // exact.
    bool omits = false;
  };
  void split(TypedId derivative, ValueId value, const Judges& judges, std::vector<Cell>& out);
  // Takes the first conjunct of p that is not met yet. If it is a union (Or, One), `branches` are the
  // ways to choose from it, each with all other conjuncts, and the result is true. If p waits for
  // counts alone, `literal` is one of them, `others` are the other conjuncts, and the result is false.
  bool branch(TypedId p, std::vector<TypedId>& branches, TypedId& literal, std::vector<TypedId>& others);
  // Takes f apart as "the value satisfies `value`, and `rest`". False if f is no such conjunction.
  bool value_and_rest(TypedId f, ValueId& value, TypedId& rest);
  // Pays for steps of a search; throws kSchemaTooComplex beyond the limit between two calls of
  // refill().
  void spend(uint32_t steps = 1);
  void refill() { spent_ = 0; }
  // The first schema that the formula names, at most `levels` connectives deep. Errors name this schema.
  std::optional<LocationId> schema_of(ValueId v, uint32_t levels) const;
  const Effort& effort() const { return regexes_.effort(); }
  void omit() { ++omitted_; }
  // How many parts were omitted so far.
  const uint64_t& omitted() const { return omitted_; }
  // True if the running search has asked a formula that is still being decided. A "no" must not be
  // stored then, because that formula may turn out to have a value.
  bool tainted() const { return low_ != kClean; }

  Objects& objects() const { return *objects_; }
  // The bytes of the answers about formulas, objects and arrays.
  std::size_t byte_size() const;
  Unique& unique() const { return *unique_; }
  FormulaSpace& formulas() { return formulas_; }
  RegexArena& regexes() { return regexes_; }
  Texts& texts() { return texts_; }
  Lowering& lowering() { return lowering_; }

 private:
  TypedId restrict_once(ValueId v, Kind k);
  static constexpr uint32_t kClean = 0xFFFFFFFFu;
  bool compute_nonempty(ValueId v);
  bool plainly_nonempty(ValueId v);  // witness.cc
  bool plain_object(ValueId v);
  int holds(RegionId region, NameId name) const;
  bool unknown(ValueId v);
  void take_contents(TypedId p, Contents& out);
  bool holds_value(const std::string& text, ValueId v);
  bool kind_nonempty(ValueId v, Kind k);
  TypedId shift(TypedId p, FlatMap<uint32_t, TypedId>& memo);
  bool simple_array(TypedId p, bool& result);
  bool search_array(TypedId p);
  TypedId substitute(TypedId f, ValueId value, bool truth, FlatMap<uint32_t, TypedId>& memo);
  std::optional<ValueId> denied_val(TypedId p) const;
  ValueId first_val(TypedId f) const;
  void split_by_truth(TypedId d, ValueId value, const Judges& judges, std::vector<Cell>& out);
  void add_cell(Cell cell, std::vector<Cell>& out);
  bool exclusive(TypedId d, ValueId value, const Judges& judges, std::vector<Cell>& out);
  class Branches;

  Lowering& lowering_;
  FormulaSpace& formulas_;
  RegexArena& regexes_;
  Texts& texts_;
  Numbers& numbers_;
  std::unique_ptr<Objects> objects_;
  std::unique_ptr<Unique> unique_;
  FlatMap<uint64_t, TypedId> restricted_;
  FlatMap<uint64_t, bool> restricting_;
  FlatMap<uint32_t, bool> unknown_;
  // Keyed by formula: 1 no, 2 yes.
  FlatMap<uint32_t, uint8_t> nonempty_;
  // Formulas that are being decided, with their depths.
  FlatMap<uint32_t, uint32_t> open_;
  FlatMap<uint32_t, uint8_t> array_productive_;
  TypedId written_free_ = FormulaSpace::yes();
  uint32_t depth_ = 0;
  uint32_t restrict_depth_ = 0;
  // The smallest depth of an open formula that was asked; kClean: none was.
  uint32_t low_ = kClean;
  uint64_t spent_ = 0;
  uint64_t omitted_ = 0;
};

// Call it before an answer without alternatives is remembered. If parts were omitted while the
// answer was made, they may be all alternatives there are, and more work may find them: then the answer
// is not remembered.
inline void refuse_starved(bool empty, const Omissions& omissions) {
  if (empty && omissions.any())
    throw Error(ErrorKind::kBudgetExceeded, "what may follow takes too much work to tell");
}

template <class T, class F>
T Solver::attempt(T otherwise, F&& f) {
  if (!effort().omits()) return f();
  const uint64_t spent = std::exchange(spent_, 0);
  const uint32_t depth = depth_, restricting = restrict_depth_, low = low_;
  const WorkScope part(meter.task(), effort().share());
  Told<T> answer = told([&]() -> T { return f(); },
                        [](const Error& e) {
                          return e.kind() == ErrorKind::kGrammar || e.kind() == ErrorKind::kUnsupportedSchema;
                        });
  spent_ = spent;
  if (answer) return std::move(*answer);
  depth_ = depth;
  restrict_depth_ = restricting;
  low_ = low;
  omit();
  return otherwise;
}

}  // namespace structgen
