// Decides questions about formulas: the restriction of a formula to one kind of value, its derivative by one
// member, and whether any value satisfies it.
//
// In: formulas. Out: typed formulas, exact answers yes or no, and cells. A cell is one case of the next
// member or item: a formula of its value, and the rest, which is the formula of all members or items behind
// it. nonempty() is a least fixpoint: a formula that is being decided counts as empty. A "no" is stored only
// if no formula that is still being decided was asked on the way. A "yes" is always stored. Cost: every
// answer is remembered. A search throws kSchemaTooComplex beyond a limit of steps.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
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

// A way to go on behind a key or a comma: the next value satisfies `value`, and the members or items behind
// it satisfy `rest`.
struct Cell {
  ValueId value;
  TypedId rest;
};

struct ItemCell {
  ValueId value;
  TypedId rest;
  // True if the text of the item is captured and passed to Solver::extend.
  bool capture = false;
};

// A number of items that must exist, and the formula that each of them satisfies.
struct ItemRange {
  ValueId value;
  uint32_t count;
};

// The strings that satisfy a formula: their text satisfies `texts`, or it is the JSON text of a value that
// satisfies one of `values`.
struct Contents {
  TypedId texts = FormulaSpace::no();
  std::vector<ValueId> values;
};

using ObjectId = Id<struct ObjectTag>;

// A formula of objects or arrays in two parts: the value satisfies `rest`, and the value is none of the
// captured values `set`.
struct Outside {
  TypedId rest;
  CapturedId set;
};

class Domains;
class Objects;
class Unique;

// Decides formulas for one grammar. A Solver owns Objects, which decides about objects, and Unique, which
// decides about arrays with uniqueItems. write/productions.cc asks a Solver for the next member or item. How
// values are written is not known here.
class Solver {
 public:
  Solver(Lowering& lowering, FormulaSpace& formulas, RegexArena& regexes, Texts& texts, Numbers& numbers);
  ~Solver();

  // Returns the condition of v on values of kind k. {"type": "string", "minimum": 3} allows no number, so its
  // restriction to numbers is no().
  TypedId restrict(ValueId v, Kind k);
  bool nonempty(ValueId v);
  // Returns the strings that satisfy v, each as a body with its closing quote. Throws if v asks that some of
  // them are JSON texts.
  RegexId strings(ValueId v);
  // Separates the conditions on the text of a string from those on the JSON value that the text spells
  // (content.cc).
  Contents contents(TypedId p);
  // Notes that the layout can write only strings that satisfy `texts`: a string in an XML-like element must
  // not hold the mark that closes the element. A string that holds JSON text needs no such check, because the
  // grammar of this text excludes the mark (content.cc).
  void write_without(TypedId texts) { written_free_ = texts; }
  RegexId numbers(ValueId v) { return numbers_.language(restrict(v, Kind::kNumber)); }
  // Tells whether the empty object or array satisfies p, so that no further member or item is needed.
  bool closes(TypedId p) const;
  // Returns f(). In a world that omits (base/effort.h), attempt() returns `otherwise` if f() takes too much
  // work or meets a reference that leads nowhere. `otherwise` must allow no text that f() might refuse.
  template <class T, class F>
  T attempt(T otherwise, F&& f);

  bool array_productive(TypedId p);
  // Returns the cells of the next item; p must not contain the atom kUnique.
  std::vector<Cell> array_cells(TypedId p);
  // Returns the cells of the next item for any p. If p contains the atom kUnique, a cell also says whether
  // the text of the item has to be captured.
  std::vector<ItemCell> item_cells(TypedId p);
  // Returns the rest of an array behind an item of this cell with the JSON text `text`.
  TypedId extend(const ItemCell& cell, std::string_view text);

  // If p is a conjunction of "every item in a range satisfies V" and "item i exists and satisfies V", returns
  // the ranges of items that must exist, by index. For any other formula it returns nothing.
  std::optional<std::vector<ItemRange>> item_ranges(TypedId p);

  // ---- excluded captured values ----
  // Splits p into the captured values that it excludes and its other conjuncts.
  Outside outside_of(TypedId p);
  // Returns p with each atom "none of the captured values" written out as the negation of these values.
  TypedId spell_out(TypedId p, FlatMap<uint32_t, TypedId>& memo);

  using Judge = std::function<bool(TypedId)>;
  // The questions that split() asks about a rest.
  struct Judges {
    // Tells whether the rest can be completed.
    Judge productive;
    // A cheaper question, for exclusive(): a "no" means that the rest cannot be completed; a "yes" proves
    // nothing.
    Judge possible;
    // split() may stop as soon as `*enough` is true.
    const bool* enough = nullptr;
    // The steps that split() may still take; null for any number. At 0 split() gives up, and the caller
    // splits in another way.
    uint32_t* trial = nullptr;
    // True if a cell that takes too much work to decide may be left out (attempt()). `omits` is false in
    // searches, because the "no" of a search must be exact.
    bool omits = false;
  };
  // Splits the derivative into cells and appends them to `out`. The kVal atoms of the derivative are
  // conditions on the member's value; every cell's value also satisfies `value`.
  void split(TypedId derivative, ValueId value, const Judges& judges, std::vector<Cell>& out);
  // Chooses a conjunct of p that the empty object or array does not meet: a count if there is one, otherwise
  // a union (Or, One, not One). For a count it returns false, with the count as `literal` and the other
  // conjuncts as `others`. For a union it returns true, with each of its alternatives, joined with the other
  // conjuncts, in `branches`.
  bool branch(TypedId p, std::vector<TypedId>& branches, TypedId& literal, std::vector<TypedId>& others);
  // Splits f into a condition on the value and a condition on the rest. Returns false if f is not a
  // conjunction of two such conditions.
  bool value_and_rest(TypedId f, ValueId& value, TypedId& rest);
  // Counts steps of a search. Throws kSchemaTooComplex if too many steps were counted since the last
  // refill().
  void spend(uint32_t steps = 1);
  void refill() { spent_ = 0; }
  // Returns the first schema in the formula, at most `levels` connectives down. Errors name it.
  std::optional<LocationId> schema_of(ValueId v, uint32_t levels) const;
  const Effort& effort() const { return regexes_.effort(); }
  void omit() { ++omitted_; }
  const uint64_t& omitted() const { return omitted_; }
  // Tells whether the search under way has used the answer about a formula that is still being decided. A
  // "no" must then not be stored, because the formula that is still being decided may turn out to have a
  // value.
  bool tainted() const { return low_ != kClean; }

  Objects& objects() const { return *objects_; }
  std::size_t byte_size() const;
  Captured& captured() { return captured_; }
  const Captured& captured() const { return captured_; }
  Domains& domains() const { return *domains_; }
  Unique& unique() const { return *unique_; }
  FormulaSpace& formulas() { return formulas_; }
  RegexArena& regexes() { return regexes_; }
  Texts& texts() { return texts_; }
  Lowering& lowering() { return lowering_; }

 private:
  TypedId restrict_once(ValueId v, Kind k);
  static constexpr uint32_t kClean = 0xFFFFFFFFu;
  bool compute_nonempty(ValueId v);
  bool plainly_nonempty(ValueId v);
  bool unknown(ValueId v);
  void take_contents(TypedId p, Contents& out);
  bool holds_value(const std::string& text, ValueId v);
  bool kind_nonempty(ValueId v, Kind k);
  TypedId shift(TypedId p, FlatMap<uint32_t, TypedId>& memo);
  std::optional<bool> simple_array(TypedId p);
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
  Captured captured_;
  std::unique_ptr<Domains> domains_;
  std::unique_ptr<Objects> objects_;
  std::unique_ptr<Unique> unique_;
  FlatMap<uint64_t, TypedId> restricted_;
  FlatMap<uint64_t, bool> restricting_;
  FlatMap<uint32_t, bool> unknown_;
  // The answers of nonempty() by formula: 1 for no, 2 for yes.
  FlatMap<uint32_t, uint8_t> nonempty_;
  // The formulas that are being decided; the value is the depth of the call.
  FlatMap<uint32_t, uint32_t> open_;
  FlatMap<uint32_t, uint8_t> array_productive_;
  TypedId written_free_ = FormulaSpace::yes();
  uint32_t depth_ = 0;
  uint32_t restrict_depth_ = 0;
  // The least depth of an open formula that was asked about since the running decision began; kClean if none
  // was.
  uint32_t low_ = kClean;
  uint64_t spent_ = 0;
  uint64_t omitted_ = 0;
};

// Throws if an answer without alternatives must not be stored. The alternatives that were omitted while the
// answer was made may be its only alternatives, and more work may find them.
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
