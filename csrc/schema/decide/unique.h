// uniqueItems: arrays whose next items depend on the values written so far.
//
// In: typed array formulas. Out: their items (value formula, rest) and whether any array satisfies them.
// An array formula holds at most one kUnique atom (every uniqueItems of an array captures the same items),
// so it is kept as "unique(C) and Q" or "not unique(C) and Q" with Q free of the atom:
//     unique(C):      an item is in no captured value, which is one formula, and joins C
//     not unique(C):  an item is in C and nothing more is asked, or it joins C
// What a captured value can spoil: later items that have few values. They are matched with values (Kuhn);
// a value without which the matching fails is refused here and now. Items with more values than the array
// can use are never in the way.
// Cost: one node for each chunk of strings or numbers, log n chunks; O(n) an item where captured values are
// arrays or objects; the matching, where few-valued items exist.
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
  bool capture = false;  // the rest takes the item's text: see Unique::extend
};

class Unique {
 public:
  explicit Unique(Solver& solver);

  bool productive(TypedId p);
  std::vector<ItemCell> cells(TypedId p);
  // What is left of an array once the item written in `text` is captured.
  TypedId extend(TypedId rest, std::string_view text);
  // Whether another item may follow, whatever the last one was. False: it depends on the text.
  bool surely_more(TypedId rest);
  // Whether the items have to differ. Then one that differs from all others is in nobody's way.
  bool asks_apart(TypedId rest) const { return parts(rest).mode == kUnique; }
  // Whether some array was asked to have two items that are equal.
  bool asked_alike() const { return asked_alike_; }
  std::size_t byte_size() const {
    return held_ + chunk_of_.byte_size() + list_index_.byte_size() + repeats_.byte_size();
  }
  // Without asking whether items differ.
  TypedId unconditioned(TypedId rest) const { return parts(rest).rest; }
  // Every value of a formula, as a text. False: there are `most` or more, or they are too much to tell.
  bool few(ValueId value, uint32_t most, std::vector<std::string>& out);

 private:
  using ChunkId = Id<struct ChunkTag>;  // captured values, sorted: chunks_
  using ListId = Id<struct ListTag>;    // all captured values of an array, in chunks: lists_
  enum Mode : uint8_t { kPlain, kUnique, kRepeat };
  struct Parts {
    Mode mode = kPlain;
    ListId list;
    TypedId rest;
  };
  struct Domain {           // the values of a formula, as canonical texts
    bool abundant = false;  // more than were asked for; `values` is then of no use
    uint32_t cap = 0;
    std::vector<std::string> values;
  };
  struct Chunk {
    std::vector<std::string> values;  // sorted
    ValueId member;
  };
  using GroupId = Id<struct GroupTag>;    // of one matching: items of equal formula
  using ScarceId = Id<struct ScarceTag>;  // of one matching: a value that several items may need
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
  FlatMap<uint32_t, ChunkId> chunk_of_;  // by member
  std::vector<std::vector<ChunkId>> lists_{{}};
  InternTable list_index_;
  std::unordered_map<ValueId, Domain> domains_;
  FlatMap<uint32_t, bool> open_domains_;
  std::unordered_map<TypedId, std::vector<struct Cell>> plain_cells_;
  std::unordered_map<TypedId, std::vector<TypedId>> reachable_;
  FlatMap<uint32_t, ValueId> repeats_;
  RegexId plain_numbers_{};  // one lexeme a number; empty(): not made yet
  mutable bool asked_alike_ = false;
  std::size_t held_ = 0;  // bytes of values, lists and cells, about
};

}  // namespace structgen
