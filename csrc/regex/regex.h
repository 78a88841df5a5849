// The regex algebra over bytes: hash-consed nodes with remembered derivatives. The nodes are the states
// of a lazy DFA.
//
// In: calls of constructors. Out: RegexId. Two ids are equal if and only if the regexes are
// structurally equal after normalisation; normalisation depends on the call alone and not on what was
// made before it. Cost: a constructor is one look-up in a hash table; next() is one read of an array
// once it is known. A counter {m,n} is one node and is never unrolled. Languages are sets of byte
// strings. Not thread-safe: the owner serialises calls (a parse state keeps its own transitions, see
// parse/state.h). Sources: Brzozowski 1964; Owens, Reppy, Turon 2009.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <typeindex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/arena.h"
#include "base/bitset.h"
#include "base/effort.h"
#include "base/flat_map.h"
#include "base/ids.h"
#include "base/intern.h"
#include "base/work.h"
#include "regex/classes.h"
#include "regex/literals.h"
#include "regex/spelling.h"

namespace structgen {

// The maximum of a counter, of a length or of a range of indices that has no maximum.
constexpr uint32_t kUnbounded = 0xFFFFFFFFu;

enum class RegexKind : uint8_t {
  kEmpty,     // no string
  kEpsilon,   // the empty string
  kAnything,  // every byte string
  kBytes,     // one byte of a set
  kLiteral,   // a byte string (at most kLiteralMax long)
  kCat,       // a b
  kAlt,       // a | b | ...
  kAnd,       // a & b & ...
  kNot,       // every byte string but a
  kRepeat,    // a{min,max}
  kLiteralSet,
  // A language that depends on captured text (mask/fill.h). Every byte may follow, and the text may not end.
  kPoison,
  // A language given by a definition, a LazyLanguage, which is asked on first use. It may refer to itself.
  kLazy,
  // The empty string with a label: what a labelled kLiteralSet leaves behind the text with this label.
  kDone,
};

// A node of the algebra. The fields that describe its language never change; `emptiness`, `classes`, `next`
// and `live` are computed on first use.
struct RegexNode {
  RegexKind kind = RegexKind::kEmpty;
  bool nullable = false;
  // True if the node contains & or ~, so that only a search tells whether the language is empty.
  bool boolean = false;
  // True if the node contains a kLazy whose language may be empty, so that only a search tells.
  bool lazy = false;
  // True if the node contains a labelled kLiteralSet or a kDone.
  bool labelled = false;
  // True if the structure shows that the language is finite; false says nothing.
  bool finite = false;
  // True if the language is all spellings of each character of a set, and nothing else
  // (RegexArena::character).
  bool character = false;
  // What the structure shows of all strings of the language. kText: spelled texts without a terminator.
  // kBody: texts with a terminator. kTail: continuation bytes of one character. kOther: none of these.
  enum Inside : uint8_t { kOther, kText, kBody, kTail } inside = kOther;
  // How many continuation bytes stand before the first character. In a kText or kBody it also says that the
  // language has all spellings of each of its texts. kEvery: any number of bytes. kBroken: the language may
  // have only some spellings of a text. In a kTail it is the number of bytes.
  uint8_t after = kBroken;
  static constexpr uint8_t kEvery = 254, kBroken = 255;
  // If the structure shows bodies, with all spellings of each text, returns 1 plus the number of continuation
  // bytes before the first character; otherwise 0.
  uint8_t body() const {
    return inside == kBody && after < kEvery ? static_cast<uint8_t>(after + 1) : uint8_t{0};
  }
  bool only_ends() const { return kind == RegexKind::kEpsilon || kind == RegexKind::kDone; }
  // Returns 1 + the label of a kDone, and 0 for every other node.
  uint32_t label() const { return kind == RegexKind::kDone ? min + 1 : 0; }
  // Whether the language is empty: 0 unknown, 1 empty, 2 not empty, 3 too much to tell. Only nodes with
  // `boolean` use it.
  uint8_t emptiness = 0;
  // The depth of the recursion of next() from this node.
  uint16_t height = 0;
  // The length of some string, estimated from the structure, for searches. Shorter strings may exist.
  uint32_t shortest = 0;
  uint32_t a = 0,
           b = 0;  // children; kBytes: index of the set; kLiteralSet: of the set; kLazy: of its definition
  // The bounds of a kRepeat. `min` is also the label of a kDone, and the state of a kLazy.
  uint32_t min = 0, max = 0;
  // The ids of the kids of a kAlt or kAnd, sorted.
  const uint32_t* kids = nullptr;
  const char* text = nullptr;  // kLiteral
  uint32_t n = 0;              // number of kids, or length of the text
  uint32_t negation = 0;       // the kNot of this node, if there is one
  const ClassMap* classes = nullptr;
  // The derivative of each class of bytes, kUnknownNext before its first use.
  uint32_t* next = nullptr;
  const ByteSet* live = nullptr;
};

class RegexArena;

// The base class of what a caller stores in an arena; see RegexArena::cache.
class RegexCache {
 public:
  virtual ~RegexCache() = default;
  virtual std::size_t byte_size() const = 0;
};

// Defines the languages of kLazy nodes, one language for each state, as an automaton does.
class LazyLanguage {
 public:
  virtual ~LazyLanguage() = default;
  // Returns the language of a state. It may refer to states of the same definition, but only behind at least
  // one byte, which keeps the derivatives finite. The arena asks once for each state.
  virtual RegexId unfold(RegexArena& arena, uint32_t state) = 0;
  // If the definition knows a shortest text of a state without a search, writes it and returns true.
  virtual bool shortest(uint32_t state, std::string& text) const {
    (void)state, (void)text;
    return false;
  }
  // The number of this definition for RegexArena::lazy(); set by define().
  uint32_t definition = 0;
};

// Owns all regexes of a world, and answers questions about them. A RegexId belongs to one arena.
class RegexArena {
 public:
  // `spelling` says how the characters of literal sets are written; the object must outlive the arena. All
  // strings of a world have one spelling, so they share nodes. With `omits`, step() treats a language as
  // empty if it takes too much work to tell (base/effort.h).
  explicit RegexArena(const Spelling& spelling = kUtf8, bool omits = false);
  const Spelling& spelling() const { return spelling_; }
  Effort& effort() { return effort_; }
  const Effort& effort() const { return effort_; }
  RegexArena(const RegexArena&) = delete;
  RegexArena& operator=(const RegexArena&) = delete;

  static constexpr RegexId empty() { return RegexId{0}; }
  static constexpr RegexId epsilon() { return RegexId{1}; }
  static constexpr RegexId anything() { return RegexId{2}; }
  static constexpr RegexId poison() { return RegexId{3}; }
  RegexId bytes(const ByteSet& set);
  RegexId byte(uint8_t b) {
    RegexId& known = byte_[b];
    return known == empty() ? known = bytes(ByteSet::of(b)) : known;
  }
  RegexId range(uint8_t lo, uint8_t hi) { return bytes(ByteSet::range(lo, hi)); }
  RegexId literal(std::string_view text);
  RegexId cat(RegexId a, RegexId b);
  RegexId cat(std::span<const RegexId> parts);
  RegexId alt(RegexId a, RegexId b);
  RegexId alt(std::span<const RegexId> parts);
  RegexId both(RegexId a, RegexId b);
  RegexId both(std::span<const RegexId> parts);
  RegexId negate(RegexId a);
  RegexId minus(RegexId a, RegexId b) { return both(a, negate(b)); }
  // Returns the kids of an intersection, except those that only exclude words (complements of finite
  // languages). For any other regex it returns none.
  std::vector<RegexId> without_words(RegexId r) const;
  // Appends the literal sets among the words that r excludes. Returns false if r excludes other words as
  // well.
  bool excluded_literals(RegexId r, std::vector<LiteralSet>& out) const;
  RegexId repeat(RegexId a, uint32_t min, uint32_t max);
  RegexId optional(RegexId a) { return repeat(a, 0, 1); }
  RegexId star(RegexId a) { return repeat(a, 0, kUnbounded); }
  // Returns the strings of a table in the arena's spelling, each with its terminator. `subset` is a bitset of
  // the table's strings; an empty one means all. With `labelled`, a string ends in done(its label), which
  // tells the reader which string was read; otherwise it ends in epsilon().
  RegexId literal_set(uint32_t table, std::span<const uint64_t> subset, bool labelled);
  RegexId done(uint32_t label);
  // `set` is a node of a literal set. Returns those of its texts that are also in the bitset `subset`.
  RegexId restricted_set(RegexId set, std::span<const uint64_t> subset, bool labelled);
  // Returns the texts of the labelled set whose labels are in `labels`, in ascending order.
  RegexId with_labels(RegexId set, std::span<const uint32_t> labels, bool labelled);
  // define() makes a definition, which the arena keeps alive; lazy() makes the node of one of its states.
  // `nullable`: the language has the empty text. `maybe_empty` false: no state's language is empty, which
  // saves searches. `body`: RegexNode::body() is 1. `labelled`: the texts end in labels.
  template <class T, class... Args>
  T& define(Args&&... args) {
    auto made = std::make_unique<T>(std::forward<Args>(args)...);
    T& out = *made;
    out.definition = static_cast<uint32_t>(lazies_.size());
    lazies_.push_back(std::move(made));
    return out;
  }
  RegexId lazy(uint32_t definition, uint32_t state, bool nullable, bool maybe_empty, bool body = false,
               bool labelled = false);
  const LiteralSet& literal_set_of(RegexId r) const { return sets_of_literals_[nodes_[r.v].a]; }
  LiteralTables& tables() { return tables_; }
  // Returns a node with the language of r, marked as RegexNode::character. The mark makes it another node,
  // because elsewhere the same bytes may mean something else.
  RegexId character(RegexId r);
  bool is_character(RegexId r) const { return nodes_[r.v].character; }
  // any_character() returns every character in the arena's spelling. end() returns the terminator of texts,
  // or empty() if the spelling has none.
  RegexId any_character() const { return any_character_; }
  RegexId end() const { return end_; }
  // Returns the object of type T that belongs to this arena, and makes it on first use. The arena owns it and
  // counts its bytes.
  template <class T, class... Args>
  T& cache(Args&&... args) {
    const auto known = caches_.find(typeid(T));
    if (known != caches_.end()) return static_cast<T&>(*known->second);
    return static_cast<T&>(
        *caches_.emplace(typeid(T), std::make_unique<T>(std::forward<Args>(args)...)).first->second);
  }

  // Removes the maximum of each counter that only texts of `reach` bytes or more exceed. r and the result
  // have the same texts of fewer than `reach` bytes. Below a complement nothing changes.
  //     [a-z]{0,61}     reach 32    [a-z]*
  //     ([a-z]-){0,20}  reach 32    ([a-z]-)*, because an element has two bytes
  RegexId lifted(RegexId r, uint32_t reach);

  // ---- questions ----
  // A regex taken apart as element{min,max} and a tail. A regex x of another form is x{1,1}, and `counted` is
  // false.
  struct Counter {
    RegexId element, tail = epsilon();
    uint32_t min = 1, max = 1;
    bool counted = false;
    bool star() const { return counted && min == 0 && max == kUnbounded; }
  };
  Counter counter(RegexId r) const;
  const RegexNode& node(RegexId r) const { return nodes_[r.v]; }
  bool nullable(RegexId r) const { return nodes_[r.v].nullable; }
  // Returns the derivative: what may follow byte b in the texts of r. If nothing may follow, it is empty().
  // An arena that omits may return an undecided() node instead: in its place, empty() would allow too much
  // below a complement.
  RegexId next(RegexId r, uint8_t b);
  // Returns the derivative for a text that is being read; it has a next byte or may end, or it is empty(). If
  // it takes too much work to tell whether it is empty, an arena that omits returns empty().
  RegexId step(RegexId r, uint8_t b) {
    const RegexId d = next(r, b);
    if (!effort_.omits() || !undecided(d) || has_known_text(d)) return d;
    if (effort_.again() || effort_.trusts()) {
      const bool none = settled_empty(d);
      if (!none && (effort_.trusts() || !undecided(d))) return d;
    }
    effort_.omit();
    return empty();
  }
  // Returns true if a search could not tell whether r has a string. is_empty(r) then throws.
  bool undecided(RegexId r) const { return nodes_[r.v].emptiness == kUndecided; }
  // As is_empty(r). If it takes too much work, an arena that omits returns false, and r is undecided().
  bool judged_empty(RegexId r);
  // run() takes the derivatives by all bytes of a text, one after the other, by next(); steps() does so by
  // step().
  RegexId run(RegexId r, std::string_view text);
  RegexId steps(RegexId r, std::string_view text);  // by step()
  // Computes run(r, text) without the derivatives in between. r must be a set of literals, or a repetition
  // without some literals, and no text of r may end within `text`. Otherwise returns nothing.
  //     {name, number} by `nam`         {e}
  //     any*" & ~{name"} by `nam`       any*" & ~{e"}
  std::optional<RegexId> past(RegexId r, std::string_view text);
  bool matches(RegexId r, std::string_view text) { return nullable(run(r, text)); }
  // Returns true if r has no string. Throws kSchemaTooComplex if the search would visit too many nodes.
  bool is_empty(RegexId r);
  const ClassMap& classes(RegexId r);
  // Returns the partition in which bytes share a class if they have the same derivative of r and the same one
  // of `other`.
  const ClassMap& classes(RegexId r, RegexId other) {
    return *class_maps_.product(&classes(r), &classes(other));
  }
  const ByteSet& live(RegexId r);
  ByteSet steps(RegexId r);
  ClassMaps& class_maps() { return class_maps_; }
  // Appends every string of the language. Returns false if there are more than `limit` strings, perhaps
  // infinitely many.
  bool enumerate(RegexId r, uint32_t limit, std::vector<std::string>& out);
  // Returns the number of strings; 2^64 - 1 stands for 2^40 or more. Once it has visited `nodes` nodes, it
  // returns a lower bound and sets `exact` to false.
  uint64_t count(RegexId r, uint32_t nodes, bool& exact);
  // Writes a shortest string of the language; if the search for it grows too large, a short one. Returns
  // false if the language is empty.
  bool witness(RegexId r, std::string& out);
  // Returns a lower bound on the length in bytes of every string, from the structure.
  uint32_t least_length(RegexId r);
  const ByteSet& byte_set(uint32_t index) const { return sets_[index]; }
  uint32_t size() const { return nodes_.size(); }
  std::size_t byte_size() const;
  std::size_t node_bytes() const { return nodes_.size() * sizeof(RegexNode) + pool_.byte_size(); }
  // Sets the most bytes that this arena and the states of its parsers may take together. A new node beyond
  // them throws out_of_memory().
  void set_most(std::size_t bytes) { most_ = bytes; }
  std::size_t most() const { return most_; }

  static constexpr uint32_t kLiteralMax = 64;

 private:
  RegexId add(RegexNode node, std::span<const uint32_t> kids, std::string_view text);
  uint32_t append(RegexNode& node, std::span<const uint32_t> kids, std::string_view text);
  RegexId distributed(const std::vector<uint32_t>& kids);
  bool join_runs(std::vector<uint32_t>& kids);
  void absorb(RegexKind kind, std::vector<uint32_t>& kids);
  std::vector<uint32_t> flattened(RegexKind kind, std::span<const RegexId> parts);
  RegexId nary(RegexKind kind, std::vector<uint32_t>& kids);
  bool merge_repeats(std::vector<uint32_t>& kids);
  RegexId derive(RegexId r, uint8_t b);
  RegexId unfolded(RegexId r);
  RegexId literal_set_node(const LiteralSet& set);
  RegexId derive_literal_set(RegexId r, uint8_t b);
  RegexId bytes(const ByteSet& set, bool character);
  void shape(RegexNode& n, std::span<const uint32_t> kids) const;
  const ClassMap* compute_classes(RegexId r);
  ByteSet first_bytes(RegexId r);
  ByteSet derived_bytes(RegexId r);
  uint32_t structural_length(const RegexNode& n, std::span<const uint32_t> kids, std::size_t text) const;
  static constexpr uint8_t kEmpty = 1, kUndecided = 3;
  bool search_empty(RegexId r);
  bool has_known_text(RegexId r) const;
  bool has_lazy_text(RegexId r);
  bool settled_empty(RegexId r);
  std::optional<uint64_t> count_levels(RegexId start, uint32_t nodes, bool& exact);
  bool plenty(RegexId r, uint64_t limit);
  bool near_witness(RegexId r, std::string& out);
  bool promise(RegexId r, std::string_view text);
  uint32_t searches_ = 0;
  bool needs_escape(RegexId r);
  // Returns true if r holds every text of the spelling, each with its terminator, and nothing else.
  bool all_bodies(RegexId r) const;
  bool has_short_text(RegexId r);
  void short_texts(RegexId r, uint32_t& left, std::vector<std::string>& out);
  enum class Holds : uint8_t { kNo, kYes, kUnknown };
  Holds holds(RegexId r, std::string_view text, uint32_t& left);
  RegexId infinite_part(RegexId r);
  bool infinite(RegexId r);

  StableVector<RegexNode, 10> nodes_;
  InternTable index_{12};
  BumpPool pool_;
  StableVector<ByteSet> sets_;
  InternTable set_index_;
  StableVector<LiteralSet> sets_of_literals_;
  InternTable literals_index_;
  const Spelling& spelling_;
  Effort effort_;
  LiteralTables tables_;
  std::vector<std::unique_ptr<LazyLanguage>> lazies_;
  FlatMap<uint32_t, RegexId> unfolded_;
  ClassMaps class_maps_;
  std::array<RegexId, 256> byte_{};
  RegexId any_character_{}, end_{};
  FlatMap<uint32_t, uint32_t> least_lengths_;
  FlatMap<uint32_t, bool> infinite_;
  FlatMap<uint32_t, bool> escapes_;
  std::unordered_map<std::type_index, std::unique_ptr<RegexCache>> caches_;
  std::size_t most_ = static_cast<std::size_t>(-1);
  // The arena counts its bytes again when it has this many nodes.
  uint32_t next_look_ = 0;
  FlatMap<uint64_t, RegexId> lifted_;  // by regex and reach
};

}  // namespace structgen
