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
// The idea. In most arrays some other value is always left (Unique::lasting). In such an array the earlier
// values decide only whether the item that ends now is new. So the parser reads a language in which such
// items may repeat (Productions::lenient): its states are few and do not depend on the values. Beside the
// state stands the set of the values of all items, and a token is refused if it ends an item whose value is
// in this set. After `[7,70,7` of an array of integers:
//
//     mask of the state     digits, `.`, `e`, `,`, `]`
//     `,` and `]`           end the item 7, which is a member: refused
//     `0`                   goes on; `0,` ends the item 70, a member: refused
//     `.`                   goes on to `7.5e1`, which is 75: allowed
//     `0.`                  only zeros can follow, and 70 is a member: refused (Lenient::fate)
//
// The keys of an object are kept in such a set, too: if the key k7 was written before, the quote that ends
// `"k7"` is refused. As parts of the state, the keys would need a regex "any key but these": 4 to 11 kB and 5
// us a token. Below, "item" also means such a key, and "array" also means its object.
//
// If the items come from a list of strings, the strings may run out: with the list ["a", "ab"], once "a" was
// an item, `"a` may only go on to "ab". So each text of a list is marked when it is an item. At each byte of
// an item, and behind a comma, some text that can still be read must be unmarked (left()).
//
// Invariants.
// - All spellings of a value have one weight (weight()). A long item is written out as a canonical text only
//   if an item of equal weight stands in the array. So a token costs no more in a long item than in a short
//   item.
// - Values are compared as canonical texts (Captured::canonical); hashes only choose which items are
//   compared.
// - cut() takes bytes back in the order in which they came. The table is probed linearly. No other entry was
//   placed behind the entry that came last, so clearing its slot removes this entry.
// - A copy is independent of its original: forks copy.
//
// Rejected. A persistent set that forks share: its nodes would outlive the texts, or a lock would have to
// guard their reference counts.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "mask/item_ends.h"
#include "regex/literals.h"

namespace structgen {

class Distinct {
 public:
  // What the last byte that was read belongs to.
  enum Mode : uint8_t { kBetween, kString, kEscape, kWord };
  // kDistinct: the items of the array, or the keys of the object, must differ. kPlain: they need not.
  enum Kind : uint8_t { kPlain, kDistinct };

  // The texts that the items of an array may be: those of `table` whose bits are set in `allowed`, or all if
  // `allowed` is empty.
  struct List {
    const LiteralTable* table;
    std::span<const uint64_t> allowed;
  };

  // Reads a byte. Returns false if the byte ends an item that repeats another item; the byte counts as read
  // nevertheless. The other arguments matter for an opening bracket only: `kind` says whether the container's
  // items must differ, `more` how many bytes suffice for one more item in it, `list` which list its items
  // come from (0 for none).
  bool read(char byte, Kind kind = kPlain, uint32_t more = 0, uint32_t list = 0);
  uint32_t number(const List& list);
  // Returns the list of the items of the innermost container, or null.
  const List* list() const {
    return inner() == kNone || arrays_[inner()].list == 0 ? nullptr : &lists_[arrays_[inner()].list - 1];
  }
  // Returns true if an item has begun, or must begin because a comma was read. The innermost container must
  // be an array with a list.
  bool lacks_item() const { return mode_ != kBetween || text_[text_.find_last_not_of(" \t\n\r")] == ','; }
  // Returns true if list() has a text that is no item yet and for whose number, from `lo` to hi - 1, f is
  // true.
  template <class F>
  bool left(uint32_t lo, uint32_t hi, F&& f) {
    mark();
    const std::span<const uint64_t> allowed = list()->allowed;
    for (uint32_t w = lo / 64; 64 * w < hi; ++w) {
      uint64_t bits = ~marked_[w] & (allowed.empty() ? ~uint64_t{0} : allowed[w]);
      if (64 * w < lo) bits &= ~uint64_t{0} << (lo % 64);
      if (hi - 64 * w < 64) bits &= ~(~uint64_t{0} << (hi % 64));
      for (; bits != 0; bits &= bits - 1)
        if (f(64 * w + static_cast<uint32_t>(std::countr_zero(bits)))) return true;
    }
    return false;
  }
  void cut(std::size_t size, Mode mode);
  Mode mode() const { return mode_; }
  std::size_t byte_size() const {
    return text_.capacity() + items_.size() * sizeof(Item) + slots_.capacity() * sizeof(uint32_t) +
           arrays_.capacity() * sizeof(Array) + open_.capacity() * sizeof(Container) +
           closed_.capacity() * sizeof(Closed) + alike_.size() * 4 * sizeof(uint64_t) +
           lists_.capacity() * sizeof(List) + marked_.capacity() * sizeof(uint64_t);
  }
  const std::string& text() const { return text_; }
  // Returns the number or word (`tru`) that is being read, if it is an item. Otherwise returns an empty text.
  std::string_view word() const;
  // Returns true if no item of the innermost array has this value. The items of this array must differ.
  bool fresh(std::string_view json);
  // Returns true if the innermost array compares items and has some already.
  bool compares() const;
  // Returns true if some container that is still open compares its items.
  bool open() const { return distinct_ > 0; }
  // depth() is the number of open containers that compare their items, items() the number of items read so
  // far. more() is the most bytes that one more item of some open container needs.
  std::size_t depth() const { return distinct_; }
  std::size_t items() const { return items_.size(); }
  std::size_t most() const {
    uint32_t out = 0;
    for (const Array& a : arrays_) out = std::max<uint32_t>(out, a.items);
    return out;
  }
  std::size_t more() const { return open_.empty() ? 0 : open_.back().more; }
  // Returns the facts by which ItemEnds tells which tokens may end an item here.
  ItemEnds::Place stands() const {
    const bool compared = inner() != kNone, listed = list() != nullptr;
    return {mode_ == kString || mode_ == kEscape, mode_ == kWord,       open(),
            compared && !in_object() && !listed,  distinct_ > compared, listed};
  }
  // Returns true if the string that is being read is an item that is compared. It also returns true behind a
  // backslash: the token's first byte belongs to the escape, so ItemEnds cannot tell where the string ends.
  bool in_item_string() const {
    return mode_ == kEscape || (mode_ == kString && compares() && arrays_[inner()].begin != kNone);
  }
  // Returns true if the string that is being read may repeat an item once these bytes and a quote follow. The
  // answer may be true for a new string, but it is never false for a repeated one.
  bool may_repeat(std::string_view bytes);

 private:
  static constexpr uint32_t kNone = 0xFFFFFFFFu;
  // An array or object whose items or keys are compared. Below, "item" stands for a key, too.
  struct Array {
    uint32_t begin;
    // The weight of the text in front of this item.
    uint32_t weight;
    uint32_t items : 31;
    uint32_t object : 1;
    // The number of the list of the items, or 0.
    uint32_t list;
  };
  struct Item {
    uint32_t array, begin;
    // The size of the text right after the byte that ended the item.
    uint32_t at;
    // The weight of the text in front of the item, and the weight of the item.
    uint32_t before, weight;
    uint32_t hash;
  };
  struct Container {
    // The size of the text right after the opening bracket.
    uint32_t at;
    // The index in arrays_; kNone if the items are not compared.
    uint32_t array;
    // The most bytes that one more item of this container, or of one around it, needs.
    uint32_t more;
  };
  struct Closed {
    uint32_t at;
    Container container;
  };
  std::size_t text_number(const Item& item) const;
  void mark();
  void begin();
  bool end(std::size_t at, uint32_t weight);
  bool at_key() const;
  // Returns true if the innermost container is an object with compared keys. A number or word in it is then a
  // value, not an item.
  bool in_object() const { return inner() != kNone && arrays_[inner()].object; }
  uint32_t inner() const { return open_.empty() ? kNone : open_.back().array; }
  std::string_view json(const Item& item) const;
  std::size_t slot(uint32_t array, uint32_t hash) const;
  template <class Same>
  bool member(uint32_t array, uint32_t hash, Same&& same);
  void enter();

  std::string text_;
  Mode mode_ = kBetween;
  std::vector<Array> arrays_;
  std::vector<Container> open_;
  std::vector<Closed> closed_;
  std::deque<Item> items_;
  // A hash table of the items: a slot holds 1 more than the item's index in items_, or 0 if it is free.
  std::vector<uint32_t> slots_;
  uint32_t entered_ = 0;
  // The number of items by array and weight, for weights of at least kHeavy.
  std::unordered_map<uint64_t, uint32_t> alike_;
  uint32_t weight_ = 0;
  // The number of open containers that compare their items.
  uint32_t distinct_ = 0;
  // The string that is being read is hashed while it grows. hash_ is the hash of its bytes from offset
  // hashed_from_ to offset hashed_.
  uint32_t hashed_from_ = kNone, hashed_ = 0;
  uint64_t hash_ = 0;
  bool escaped_ = false;
  std::vector<List> lists_;
  // A bit for each text of a list: set if the text is an item of the array number marked_of_. The first
  // marks_ elements of items_ have their bits.
  std::vector<uint64_t> marked_;
  uint32_t marked_of_ = kNone, marks_ = 0;
  // cut_ is the size of the text after the last cut(). Many tokens of one row end the item at the same byte,
  // so one answer is kept: for the byte at offset judged_, judged_fresh_ says whether the item is fresh.
  std::size_t cut_ = 0, judged_ = kNone;
  bool judged_fresh_ = false;
};

}  // namespace structgen
