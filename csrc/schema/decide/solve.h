// What a formula allows: restriction to a kind, derivation by one member, and whether any value exists.
//
// In: formulas. Out: typed formulas, cells (value formula, rest) and yes/no answers that are exact.
// nonempty() is a least fixpoint: a formula in progress counts as empty. A negative answer is stored only
// if no open ancestor was consulted ("taint"); positive answers always are. Cost: memoised; every search
// runs under one budget and ends in kSchemaTooComplex past it.
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
#include "schema/formula/formula.h"
#include "schema/lower/lower.h"
#include "schema/values/numbers.h"
#include "schema/values/texts.h"

namespace structgen {

// One way to go on: the member's value satisfies `value`, what remains is `rest`.
struct Cell {
  ValueId value;
  TypedId rest;
};

// Strings: those that satisfy `texts`, and the JSON texts of values that satisfy one of `values`.
struct Contents {
  TypedId texts = FormulaSpace::no();
  std::vector<ValueId> values;
};

class Objects;
class Unique;
struct ItemCell;

class Solver {
 public:
  Solver(Lowering& lowering, FormulaSpace& formulas, RegexArena& regexes, Texts& texts, Numbers& numbers);
  ~Solver();

  TypedId restrict(ValueId v, Kind k);
  bool nonempty(ValueId v);
  // Strings that satisfy v (body and closing quote). Throws where they hold JSON texts.
  RegexId strings(ValueId v);
  Contents contents(TypedId p);  // content.cc
  // A condition on strings that JSON texts meet by the way they are written.
  void write_without(TypedId texts) { written_free_ = texts; }
  RegexId numbers(ValueId v) { return numbers_.language(restrict(v, Kind::kNumber)); }
  bool closes(TypedId p) const;  // no further member is needed
  // f(), or `otherwise` where it is too much to tell, or a reference is found to lead nowhere, and the world
  // omits. For what may be omitted: an answer "no" here must never allow anything.
  template <class T, class F>
  T attempt(T otherwise, F&& f);

  // ---- arrays ----
  bool array_productive(TypedId p);
  std::vector<Cell> array_cells(TypedId p);     // of a formula without kUnique
  std::vector<ItemCell> item_cells(TypedId p);  // of any array formula

  // ---- shared with objects ----
  // Splits a derivative (which may contain kVal) into cells.
  using Judge = std::function<bool(TypedId)>;
  struct Judges {
    Judge productive;              // can what is left be completed?
    Judge possible;                // a cheaper question: false only where it cannot; see `exclusive`
    const bool* enough = nullptr;  // set by a caller who needs no more cells
    uint32_t* trial = nullptr;     // steps left before the caller turns to another way
    bool omits = false;            // cells that are too much to tell, see attempt(): not for a search
  };
  void split(TypedId derivative, ValueId value, const Judges& judges, std::vector<Cell>& out);
  // Alternatives of the first conjunct that is not yet met: each is p with one of its branches chosen.
  // Empty when p waits for a counting literal only; that literal is returned.
  bool branch(TypedId p, std::vector<TypedId>& branches, TypedId& literal, std::vector<TypedId>& others);
  // A derivative as "the value satisfies `value`, and `rest`". False where the two do not come apart.
  bool value_and_rest(TypedId f, ValueId& value, TypedId& rest);
  void spend(uint32_t steps = 1);
  void refill() { spent_ = 0; }
  // The first schema that a formula names, in so many levels of it: where an error of it is.
  std::optional<LocationId> schema_of(ValueId v, uint32_t levels) const;
  const Effort& effort() const { return regexes_.effort(); }
  void omit() { ++omitted_; }
  const uint64_t& omitted() const { return omitted_; }  // how often so far
  // True while the running search consulted an open ancestor: do not store a negative answer then, because
  // the ancestor may still turn out to have a value.
  bool tainted() const { return low_ != kClean; }

  Objects& objects() const { return *objects_; }
  std::size_t byte_size() const;  // of what is remembered of formulas, objects and arrays
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
  FlatMap<uint32_t, uint8_t> nonempty_;  // 1 no, 2 yes
  FlatMap<uint32_t, uint32_t> open_;     // formula -> depth
  FlatMap<uint32_t, uint8_t> array_productive_;
  TypedId written_free_ = FormulaSpace::yes();
  uint32_t depth_ = 0;
  uint32_t restrict_depth_ = 0;
  uint32_t low_ = kClean;  // smallest depth of an open formula consulted
  uint64_t spent_ = 0;
  uint64_t omitted_ = 0;
};

// Before an answer without an alternative is remembered: what was omitted since its making began may be all
// there is, and more work may tell.
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
