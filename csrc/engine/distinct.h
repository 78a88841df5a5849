// The items of arrays with uniqueItems and the keys of objects, kept beside the state of one text.
//
// In: the bytes of a JSON text, and which of its arrays and objects ask for items or keys that differ. Out:
// whether an item repeats an earlier item of its array, or a key an earlier key of its object. Cost: some
// nanoseconds a byte; behind an item its canonical text and one look-up in a hash table. A byte of text takes
// one byte, an item about 35.
//
// The problem. "All items differ" is no regular language. With the values in the formula
// (schema/decide/unique.h) each item makes new formulas, automata and states: 13 to 27 kB and 60 us a token.
//
// The idea. In most arrays some other value is always left (Unique::lasting). There the values decide nothing
// but whether the item that ends now is new. So the parser reads a language in which such items may repeat
// (Productions::lenient): its states are few and do not depend on the values. Beside it stands the set of the
// values, and a token is refused if it ends an item whose value is a member. After `[7,70,7` of an array of
// integers:
//
//     mask of the state     digits, `.`, `e`, `,`, `]`
//     `,` and `]`           end the item 7, which is a member: refused
//     `0`                   goes on; `0,` ends the item 70, a member: refused
//     `.`                   goes on to `7.5e1`, which is 75: allowed
//     `0.`                  only zeros can follow, and 70 is a member: refused (Lenient::fate)
//
// The keys of an object are a set of the same kind: `"k7"` ends in a quote that is refused where k7 was
// written. As parts of the state they make a regex of "any key but these": 4 to 11 kB and 5 us a token.
// Below, "item" means such a key too, and "array" its object.
//
// The text is JSON, so where its items end is read off the bytes, whatever the parser's readings are.
//
// Invariants.
// - All spellings of a value have one weight (weight()). A long item is written out as a canonical text only
//   where an item of its weight stands in the array, so a token costs the same in a long item.
// - Values are compared as canonical texts (Captured::canonical); hashes only choose whom to compare.
// - cut() takes bytes back in the order in which they came. The table is probed linearly, so the entry that
//   came last is in nobody's way, and clearing its slot removes it.
// - A copy is independent of its original: forks copy.
//
// Rejected. A persistent set that forks share: its nodes would outlive the texts, or be counted under a lock.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "mask/item_ends.h"

namespace structgen {

class Distinct {
 public:
  // Where a byte stands.
  enum Mode : uint8_t { kBetween, kString, kEscape, kWord };
  // The kind of a container. kDistinct: the items of the array differ, or the keys of the object.
  enum Kind : uint8_t { kPlain, kDistinct };

  // Reads a byte; `kind`: the container that a bracket opens; `more`: the bytes that suffice for one more
  // item or member in it. False: an item ended that repeats another one. The byte is read in either case.
  bool read(char byte, Kind kind = kPlain, uint32_t more = 0);
  // Takes back all bytes but the first `size`, behind which the mode was `mode`.
  void cut(std::size_t size, Mode mode);
  Mode mode() const { return mode_; }
  std::size_t byte_size() const {
    return text_.capacity() + items_.size() * sizeof(Item) + slots_.capacity() * sizeof(uint32_t) +
           arrays_.capacity() * sizeof(Array) + open_.capacity() * sizeof(Container) +
           closed_.capacity() * sizeof(Closed) + alike_.size() * 4 * sizeof(uint64_t);
  }
  const std::string& text() const { return text_; }
  // The text of the number or word that is an item and may go on; empty: none is being read.
  std::string_view word() const;
  // Whether the value is none of the items of the innermost array. The array asks for items that differ.
  bool fresh(std::string_view json);
  // Whether the innermost array has items that the next one must differ from.
  bool compares() const;
  // Whether any array around the place asks for items that differ.
  bool open() const { return distinct_ > 0; }
  // How many arrays around the place do, how many items the text has, and the most bytes that one more item
  // of a container around the place needs.
  std::size_t depth() const { return distinct_; }
  std::size_t items() const { return items_.size(); }
  // The most items of one array.
  std::size_t most() const {
    uint32_t out = 0;
    for (const Array& a : arrays_) out = std::max<uint32_t>(out, a.items);
    return out;
  }
  std::size_t more() const { return open_.empty() ? 0 : open_.back().more; }
  // Where a token begins that may end an item.
  ItemEnds::Place stands() const {
    const bool compared = inner() != kNone;
    return {mode_ == kString || mode_ == kEscape, mode_ == kWord, open(), compared && !in_object(),
            distinct_ > compared};
  }
  // Whether the string that is being read is an item that is compared. Yes behind a backslash, too: there the
  // first byte of a token belongs to the escape, so ItemEnds does not tell where the string ends.
  bool in_item_string() const {
    return mode_ == kEscape || (mode_ == kString && compares() && arrays_[inner()].begin != kNone);
  }
  // Whether this string may be a member if these bytes and a quote follow. It says yes more often than it
  // must.
  bool may_repeat(std::string_view bytes);

 private:
  static constexpr uint32_t kNone = 0xFFFFFFFFu;
  // An array whose items differ, or an object, whose items here are its keys.
  struct Array {
    // Where the item begins that is being read; kNone: no item is being read.
    uint32_t begin;
    // The weight of the text in front of that item.
    uint32_t weight;
    // The number of its items.
    uint32_t items : 31;
    uint32_t object : 1;
  };
  struct Item {
    uint32_t array, begin;
    // The size of the text with the byte that ended the item.
    uint32_t at;
    // The weight of the text in front of the item, and of the item.
    uint32_t before, weight;
    uint32_t hash;
  };
  struct Container {
    // The size of the text with its bracket.
    uint32_t at;
    // An index of arrays_; kNone: its items are not compared.
    uint32_t array;
    // The most bytes of one more item, of this container or one around it.
    uint32_t more;
  };
  struct Closed {
    // The size of the text with the closing bracket.
    uint32_t at;
    Container container;
  };
  void begin();
  bool end(std::size_t at, uint32_t weight);
  bool at_key() const;
  // Whether the innermost container is an object whose keys are compared. Words are no keys.
  bool in_object() const { return inner() != kNone && arrays_[inner()].object; }
  uint32_t inner() const { return open_.empty() ? kNone : open_.back().array; }
  std::string_view json(const Item& item) const;
  std::size_t slot(uint32_t array, uint32_t hash) const;
  template <class Same>
  bool member(uint32_t array, uint32_t hash, Same&& same);
  void place();

  std::string text_;
  Mode mode_ = kBetween;
  std::vector<Array> arrays_;
  std::vector<Container> open_;
  std::vector<Closed> closed_;
  std::deque<Item> items_;
  // Indices of items_ plus 1; 0 is free.
  std::vector<uint32_t> slots_;
  // The number of items in slots_.
  uint32_t placed_ = 0;
  // The number of heavy items of an array that have one weight.
  std::unordered_map<uint64_t, uint32_t> alike_;
  uint32_t weight_ = 0;
  // The number of open containers whose items are compared.
  uint32_t distinct_ = 0;
  // Of a string that is begun: where it begins, how far it was hashed, and the hash of that part.
  uint32_t hashed_from_ = kNone, hashed_ = 0;
  uint64_t hash_ = 0;
  // Whether the hashed part has an escape.
  bool escaped_ = false;
  // The size behind the last cut(). Many tokens end an item there, whose answer is kept: where it ends, and
  // whether it is fresh.
  std::size_t cut_ = 0, judged_ = kNone;
  bool judged_fresh_ = false;
};

}  // namespace structgen
