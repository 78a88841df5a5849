// uniqueItems: arrays whose next items depend on the values that were written.
//
// In: formulas of arrays. Out: their items (a formula of the value, and the rest), and whether any
// array satisfies them. All uniqueItems of one array capture the same items, so a formula has at most
// one atom kUnique. It is kept as "unique(C) and Q" or "not unique(C) and Q", with Q free of the atom
// and C the values so far:
//
//     unique(C):      the next item is outside of C (one formula says so), and joins C
//     not unique(C):  the next item is in C and nothing more is asked, or it joins C
//
// A captured value can make the array impossible to complete if later items have few values. So later
// items are matched with their values (Kuhn's algorithm); a value without which no matching exists may
// not be written now. Items with more values than the array can use never get in the way. Cost: one
// node for each chunk of strings or numbers, log n chunks; O(n) per item if captured values are arrays
// or objects; the matching, where items with few values exist.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/flat_map.h"
#include "base/intern.h"
#include "schema/formula/formula.h"
#include "schema/read/json.h"

namespace structgen {

class Solver;

// One way to write the next item.
struct ItemCell {
  ValueId value;
  TypedId rest;
  // True: the text of the item is captured and given to Unique::extend.
  bool capture = false;
};

// All that is asked about arrays with uniqueItems, for one grammar.
class Unique {
 public:
  explicit Unique(Solver& solver);

  // True if some array satisfies p.
  bool productive(TypedId p);
  // The ways to write the next item.
  std::vector<ItemCell> cells(TypedId p);
  // The rest of an array after the item whose JSON text is `text` was captured.
  TypedId extend(TypedId rest, std::string_view text);
  // True if another item may follow whatever the last item was. False: it depends on the item's text.
  bool surely_more(TypedId rest);
  // True if the items must differ. Then a captured item that differs from all others is in nobody's
  // way.
  bool asks_apart(TypedId rest) const { return parts(rest).mode == kUnique; }
  // True if some array was asked to have two equal items (`"not": {"uniqueItems": true}`).
  bool asked_alike() const { return asked_alike_; }
  std::size_t byte_size() const {
    return held_ + chunk_of_.byte_size() + list_index_.byte_size() + repeats_.byte_size();
  }
  // The rest, without the condition that items differ.
  TypedId unconditioned(TypedId rest) const { return parts(rest).rest; }
  // Every value of a formula, as canonical texts. False: there are `most` or more, or it is too much to
  // tell.
  bool few(ValueId value, uint32_t most, std::vector<std::string>& out);

 private:
  // A sorted set of captured values: an index of chunks_.
  using ChunkId = Id<struct ChunkTag>;
  // All captured values of an array, in chunks: an index of lists_.
  using ListId = Id<struct ListTag>;
  // kPlain: no atom. kUnique: unique(list). kRepeat: not unique(list).
  enum Mode : uint8_t { kPlain, kUnique, kRepeat };
  struct Parts {
    Mode mode = kPlain;
    ListId list;
    TypedId rest;
  };
  // The values of a formula as canonical texts, as far as they were enumerated: fewer than `cap`.
  struct Domain {
    // True: there are at least `cap` values. `values` is then empty.
    bool abundant = false;
    uint32_t cap = 0;
    std::vector<std::string> values;
  };
  struct Chunk {
    // Sorted. `member` is the formula that holds for exactly these values.
    std::vector<std::string> values;
    ValueId member;
  };
  // Of one matching: items with the same formula.
  using GroupId = Id<struct GroupTag>;
  // Of one matching: a value that is scarce, because an item with few values may need it.
  using ScarceId = Id<struct ScarceTag>;
  struct Group {
    uint32_t count;
    std::vector<ScarceId> values;
  };
  using Values = std::vector<std::string>;

  // ---- normal form ----
  TypedId find_atom(TypedId f) const;
  TypedId assume(TypedId f, bool truth, FlatMap<uint32_t, TypedId>& memo);
  void polarity(TypedId f, bool sign, bool& positive, bool& negative, FlatMap<uint64_t, bool>& seen) const;
  std::vector<TypedId> branches(TypedId p);
  Parts parts(TypedId p) const;
  TypedId join(Mode mode, ListId list, TypedId rest);

  // ---- captured values ----
  std::string canonical(const Json& json, JsonRef node) const;
  ListId add(ListId list, std::string text);
  bool contains(ListId list, const std::string& text) const;
  uint32_t size(ListId list) const;
  ValueId member(ListId list);
  ValueId formula_of(const Values& values);

  // ---- values of a formula ----
  const Domain& domain(ValueId value, uint32_t cap);
  void enumerate(ValueId value, uint32_t cap, Domain& out);
  void enumerate_array(TypedId p, uint32_t cap, Domain& out);
  void enumerate_object(TypedId p, uint32_t cap, Domain& out);
  bool some_outside(ValueId value, ListId list, const Values& more);

  // ---- unique(C) ----
  bool distinct(ListId list, TypedId q, const Values& more, Values& used);
  bool simple(TypedId q, uint32_t& need, std::vector<std::pair<ValueId, uint32_t>>& groups);
  bool match(ListId list, const std::vector<std::pair<ValueId, uint32_t>>& items, uint32_t need,
             const Values& more, Values& used, Values* needed);
  bool search(TypedId q, ListId list, uint32_t bound, Values& used, std::vector<TypedId>& path);
  bool spoilers(ListId list, TypedId rest, ValueId value, Values& out);
  const std::vector<TypedId>& reachable(TypedId q);
  const std::vector<struct Cell>& plain_cells(TypedId q);

  // ---- not unique(C) ----
  ValueId repeats(TypedId q);
  bool repeat_productive(ListId list, TypedId q);

  Solver& solver_;
  FormulaSpace& formulas_;
  std::vector<Chunk> chunks_;
  // Keyed by member.
  FlatMap<uint32_t, ChunkId> chunk_of_;
  std::vector<std::vector<ChunkId>> lists_{{}};
  InternTable list_index_;
  std::unordered_map<ValueId, Domain> domains_;
  FlatMap<uint32_t, bool> open_domains_;
  std::unordered_map<TypedId, std::vector<struct Cell>> plain_cells_;
  std::unordered_map<TypedId, std::vector<TypedId>> reachable_;
  FlatMap<uint32_t, ValueId> repeats_;
  // Numbers with one lexeme per value; empty(): not made yet.
  RegexId plain_numbers_{};
  mutable bool asked_alike_ = false;
  // Bytes of values, lists and cells, an estimate.
  std::size_t held_ = 0;
};

}  // namespace structgen
