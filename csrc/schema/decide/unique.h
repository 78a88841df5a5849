// uniqueItems: arrays whose next items depend on the values that were written.
//
// In: formulas of arrays. Out: the cells of the next item (a formula of the value, and the rest), and whether
// any array satisfies a formula. All uniqueItems of one array capture the same items, so a formula has at
// most one atom kUnique. A formula is kept as "unique(C) and Q" or "not unique(C) and Q", where Q does not
// have the atom and C is the set of the values so far:
//
//     unique(C):      the next item is outside of C (one formula says so), and joins C
//     not unique(C):  the next item is in C and nothing more is asked, or it joins C
//
// A captured value can make the array impossible to complete if later items have few values. So later items
// are matched with their values (Kuhn's algorithm); a value without which no matching exists may not be
// written now. Items with more values than the array can use need no matching. Cost: one node for each of the
// log n chunks of captured strings and numbers; O(n) per item if captured values are arrays or objects; a
// matching if some item has few values. An array all of whose items have infinitely many values, or are texts
// of one list, is read without the atom kUnique, and its items are compared beside the states (lasting()).
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/flat_map.h"
#include "schema/decide/captured.h"
#include "schema/decide/domain.h"
#include "schema/decide/matching.h"
#include "schema/decide/solve.h"
#include "schema/formula/formula.h"

namespace structgen {

class Unique {
 public:
  explicit Unique(Solver& solver);

  bool productive(TypedId p);
  std::vector<ItemCell> cells(TypedId p);
  // Returns the rest of an array behind an item that was captured and whose JSON text is `text`.
  TypedId extend(TypedId rest, std::string_view text);
  // Tells whether another item may follow whatever the text of the last item was. If the answer is no, this
  // text decides whether another item may follow.
  bool surely_more(TypedId rest);
  // Tells whether `rest` asks of the last item only to differ from others. Then an item that differs from all
  // other items changes nothing for later items.
  bool asks_apart(TypedId rest) { return parts(solver_.outside_of(rest).rest).mode != kRepeat; }
  // Tells whether the items of the arrays of p must differ, and nothing else depends on their values. Every
  // beginning of an item must be able to become infinitely many values (lasting.cc). Three beginnings are
  // exempt, because the reader of the text (engine/distinct.h) decides about them: a number behind which
  // digits no longer count, a word such as `tru`, and a text of a list (listed()).
  bool lasting(TypedId p);
  // If all items of q are texts of one list, and an array of q may close behind each item, returns the list
  // as a literal set; otherwise empty(). q must not have the atom kUnique.
  RegexId listed(TypedId q);
  // Tells whether every beginning of a key of this language (KeyClass::language) can become infinitely many
  // of its keys. A written key then forbids one byte only: the closing quote that would repeat it.
  bool lasting(RegexId keys);
  bool asked_alike() const { return asked_alike_; }
  std::size_t byte_size() const { return held_; }
  // Returns the rest behind an item that differs from all other items. With `any`, later items may repeat one
  // another.
  TypedId behind_fresh(TypedId rest, bool any) {
    const TypedId q = solver_.outside_of(rest).rest;
    return any ? parts(q).rest : q;
  }

  // ---- excluded values ----
  // Returns the first items of the arrays that p excludes.
  CapturedId first_items(TypedId p) {
    return captured_.covered(solver_.outside_of(p).set, Captured::kFirstItem, {});
  }
  // Returns the cell without the values that the excluded arrays have as this item. An item of the new cell
  // makes the array differ from all excluded arrays, so the item need not be captured.
  ItemCell fresh(const ItemCell& cell);

 private:
  // What a formula says of equal items. kPlain: nothing. kDistinct: unique(list), so later items differ from
  // the list and from each other. kRepeat: its negation.
  enum Mode : uint8_t { kPlain, kDistinct, kRepeat };
  struct Parts {
    Mode mode = kPlain;
    CapturedId list;
    TypedId rest;
  };
  using Values = std::vector<std::string>;

  TypedId find_atom(TypedId f) const;
  TypedId assume(TypedId f, bool truth, FlatMap<uint32_t, TypedId>& memo);
  void polarity(TypedId f, bool sign, bool& positive, bool& negative, FlatMap<uint64_t, bool>& seen) const;
  std::vector<TypedId> branches(TypedId p);
  Parts parts(TypedId p) const;
  TypedId join(Mode mode, CapturedId list, TypedId rest);
  void add_outside(CapturedId set, ItemCell cell, std::vector<ItemCell>& out);

  bool distinct(CapturedId list, TypedId q);
  std::optional<Matching> match(CapturedId list, const std::vector<ItemRange>& ranges);
  bool search(CapturedId list, TypedId q, Values& used);
  bool search(TypedId q, CapturedId list, uint32_t bound, Values& used, std::vector<TypedId>& path);
  std::optional<CapturedId> refused(CapturedId list, TypedId rest, ValueId value);
  std::vector<TypedId> reachable(TypedId q);
  std::vector<Cell> plain_cells(TypedId q);
  // Tells whether f holds for each cell of q, and for each cell behind any number of items of q.
  template <class F>
  bool all_cells(TypedId q, F&& f) {
    return std::ranges::all_of(reachable(q),
                               [&](TypedId s) { return std::ranges::all_of(plain_cells(s), f); });
  }

  template <class F>
  bool decided(F&& f);
  bool lasts(TypedId p);
  bool endless(ValueId value);
  bool endless_numbers(TypedId p);
  // How many strings begin alike in a language. `multiplies`: every beginning can become many strings, as the
  // constants of lasting.cc define it. `dense`: the shortest string begins with a choice, and each choice is
  // followed by the next choice one byte later. `bytes`: the length of the shortest string.
  struct Spread {
    bool multiplies = false, dense = false;
    uint32_t bytes = 0;
  };
  Spread spread(RegexId language);
  bool dense(ValueId value);
  bool endless_array(TypedId p);

  ValueId repeats(TypedId q);
  bool repeat_productive(CapturedId list, TypedId q);

  Solver& solver_;
  FormulaSpace& formulas_;
  Captured& captured_;
  Domains& domains_;
  std::unordered_map<TypedId, std::vector<Cell>> plain_cells_;
  std::unordered_map<TypedId, std::vector<TypedId>> reachable_;
  FlatMap<uint32_t, ValueId> repeats_;
  FlatMap<uint32_t, bool> lasting_;
  FlatMap<uint32_t, Spread> spreads_;
  // The answers of endless_array(). While an array is being decided, its answer is "no".
  FlatMap<uint32_t, bool> endless_arrays_;
  mutable bool asked_alike_ = false;
  // An estimate of the bytes that lists and cells take.
  std::size_t held_ = 0;
};

}  // namespace structgen
