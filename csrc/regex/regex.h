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

// A counter, a length or a range of indices that has this maximum has none.
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
  // The spellings of a set of texts, each with its terminator (regex/literals.h).
  kLiteralSet,
  // "Not decided here": live on every byte, never nullable (see mask/fill.h).
  kPoison,
  // A language that is unfolded on first use, possibly in terms of itself.
  kLazy,
  // The empty string, reached at the end of text `label` of a labelled kLiteralSet.
  kDone,
};

// A node. The fields that describe the language never change; `emptiness`, `classes`, `next` and `live`
// are computed when they are first asked for.
struct RegexNode {
  RegexKind kind = RegexKind::kEmpty;
  bool nullable = false;
  // True if the node contains & or ~. Then the structure does not tell whether the language is empty.
  bool boolean = false;
  // True if the node contains a kLazy that may be empty. Then only a search tells.
  bool lazy = false;
  // True if the node contains a labelled kLiteralSet or a kDone.
  bool labelled = false;
  // True if the structure shows that there are finitely many strings. False says nothing.
  bool finite = false;
  // All spellings of each character of a set; see RegexArena::character.
  bool character = false;
  // Facts that the structure shows about the strings in the spelling of the arena. kText: texts without
  // their terminator. kBody: texts with their terminator. kTail: continuation bytes of one character.
  // kOther: none of these is shown.
  enum Inside : uint8_t { kOther, kText, kBody, kTail } inside = kOther;
  // How many continuation bytes stand before the first character, if the language holds every spelling
  // of a text or none. kBroken: it may hold some spellings only. kEvery: any number of bytes may stand
  // in front. Of a kTail: its number of bytes.
  uint8_t after = kBroken;
  static constexpr uint8_t kEvery = 254, kBroken = 255;
  // For bodies that hold every spelling of a text or none: 1 if they begin at a character, k > 1 if k -
  // 1 continuation bytes come first. 0: the structure does not show it.
  uint8_t body() const {
    return inside == kBody && after < kEvery ? static_cast<uint8_t>(after + 1) : uint8_t{0};
  }
  // True if the empty string is the only one.
  bool only_ends() const { return kind == RegexKind::kEpsilon || kind == RegexKind::kDone; }
  // Of a kDone 1 + its label; 0 for every other node.
  uint32_t label() const { return kind == RegexKind::kDone ? min + 1 : 0; }
  // 0 unknown, 1 empty, 2 not empty, 3 too much to tell; used only where `boolean`.
  uint8_t emptiness = 0;
  // The depth of the recursion of next().
  uint16_t height = 0;
  // The length of some short string, as the structure shows it. The number guides searches and proves
  // nothing.
  uint32_t shortest = 0;
  uint32_t a = 0,
           b = 0;  // children; kBytes: index of the set; kLiteralSet: of the set; kLazy: of its definition
  // kRepeat: the numbers. kDone: min = the label. kLazy: min = the state.
  uint32_t min = 0, max = 0;
  // kAlt, kAnd: ids of the kids, sorted.
  const uint32_t* kids = nullptr;
  const char* text = nullptr;  // kLiteral
  uint32_t n = 0;              // number of kids, or length of the text
  uint32_t negation = 0;       // the kNot of this node, if there is one
  // Computed on first use: bytes of one class have one derivative.
  const ClassMap* classes = nullptr;
  // The derivative by each class, or kUnknownNext.
  uint32_t* next = nullptr;
  // Computed on first use; see RegexArena::live.
  const ByteSet* live = nullptr;
};

class RegexArena;

// The base of an object that a caller keeps with an arena; see RegexArena::cache.
class RegexCache {
 public:
  virtual ~RegexCache() = default;
  virtual std::size_t byte_size() const = 0;
};

// The definition of kLazy nodes: right-linear equations, or an automaton given by its states.
class LazyLanguage {
 public:
  virtual ~LazyLanguage() = default;
  // The language of a state. It may contain kLazy nodes of the same definition, but only where at least
  // one byte has been read before (guarded); this keeps derivatives finite. The arena asks once for each
  // state and remembers the answer.
  virtual RegexId unfold(RegexArena& arena, uint32_t state) = 0;
  // A shortest text of a state, if the definition knows one without a search. False: look for one.
  virtual bool shortest(uint32_t state, std::string& text) const {
    (void)state, (void)text;
    return false;
  }
  // Its number in the arena, for RegexArena::lazy(); define() sets it.
  uint32_t definition = 0;
};

// Owns all regexes of a world and answers questions about them. All ids belong to one arena.
class RegexArena {
 public:
  // `spelling`: that of literal sets. Languages of texts in this spelling have a normal form of their
  // own. The object must outlive the arena. An arena has one spelling, so that all strings of a world
  // share their nodes. `omits`: step() leaves out languages whose emptiness is too much to tell
  // (base/effort.h).
  explicit RegexArena(const Spelling& spelling = kUtf8, bool omits = false);
  const Spelling& spelling() const { return spelling_; }
  Effort& effort() { return effort_; }
  const Effort& effort() const { return effort_; }
  RegexArena(const RegexArena&) = delete;
  RegexArena& operator=(const RegexArena&) = delete;

  // ---- constructors ----
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
  // The parts of an intersection but those that say "none of these words" (complements of finite
  // languages). Of any other regex: none.
  std::vector<RegexId> without_words(RegexId r) const;
  // The literals among these words. False: an intersection also excludes words that are no literals.
  bool excluded_literals(RegexId r, std::vector<LiteralSet>& out) const;
  RegexId repeat(RegexId a, uint32_t min, uint32_t max);
  RegexId optional(RegexId a) { return repeat(a, 0, 1); }
  RegexId star(RegexId a) { return repeat(a, 0, kUnbounded); }
  // The spellings of the strings of a table, each with its terminator. `subset` is a bitset over the
  // table's indices; empty means all. If `labelled`, string i ends in done(label of i) and not in
  // epsilon(), so that the reader learns which string it was.
  RegexId literal_set(uint32_t table, std::span<const uint64_t> subset, bool labelled);
  // The empty string with a label.
  RegexId done(uint32_t label);
  // Of a state of a literal set: only those texts that are in `subset`, too.
  RegexId restricted_set(RegexId set, std::span<const uint64_t> subset, bool labelled);
  // Of a labelled set: the literals with some labels, which are ascending.
  RegexId with_labels(RegexId set, std::span<const uint32_t> labels, bool labelled);
  // Lazy nodes. The arena keeps the definition alive. `nullable` says whether the state may end.
  // `maybe_empty` false promises that no state has an empty language, which saves searches. `body` promises
  // that RegexNode::body() is 1. `labelled`: its texts end in labels.
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
  // The node r, marked as "every spelling of each character of a set and nothing else". It is another
  // node than r, because the same bytes may be something else in another place.
  RegexId character(RegexId r);
  bool is_character(RegexId r) const { return nodes_[r.v].character; }
  // Every character in the arena's spelling, and the terminator of its texts; empty() if texts have no
  // terminator.
  RegexId any_character() const { return any_character_; }
  RegexId end() const { return end_; }
  // An object that a caller keeps for all regexes of the arena: one for each type T, made when first
  // asked for. It lives and dies with the arena, and its size counts to the arena's.
  template <class T, class... Args>
  T& cache(Args&&... args) {
    const auto known = caches_.find(typeid(T));
    if (known != caches_.end()) return static_cast<T&>(*known->second);
    return static_cast<T&>(
        *caches_.emplace(typeid(T), std::make_unique<T>(std::forward<Args>(args)...)).first->second);
  }

  // r without the maxima of counters that no text of fewer than `reach` bytes reads to their end. So r and
  // the result hold the same texts of fewer than `reach` bytes. Nothing below a complement changes.
  //
  //     [a-z]{0,61}     reach 32    [a-z]*
  //     ([a-z]-){0,20}  reach 32    ([a-z]-)*, as an element has two bytes
  RegexId lifted(RegexId r, uint32_t reach);

  // ---- questions ----
  // A regex as element{min,max} and a tail behind it. Of any other regex x: x{1,1}, not `counted`.
  struct Counter {
    RegexId element, tail = epsilon();
    uint32_t min = 1, max = 1;
    bool counted = false;
    bool star() const { return counted && min == 0 && max == kUnbounded; }
  };
  Counter counter(RegexId r) const;
  const RegexNode& node(RegexId r) const { return nodes_[r.v]; }
  bool nullable(RegexId r) const { return nodes_[r.v].nullable; }
  // The derivative: the texts that may follow the byte b in r. It is empty() exactly if no text may
  // follow. An arena that omits may also answer with a regex that is undecided(): under a complement,
  // empty() would allow too much.
  RegexId next(RegexId r, uint8_t b);
  // The derivative for a text that is read. If its emptiness is too much to tell, an arena that omits gives
  // empty(). Every other result has a further byte or can end.
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
  // True if it is too much to tell whether r has a string: then is_empty() throws each time it is
  // asked.
  bool undecided(RegexId r) const { return nodes_[r.v].emptiness == kUndecided; }
  // is_empty(). In an arena that omits, false where it is too much to tell; then r is undecided().
  bool judged_empty(RegexId r);
  // The derivatives by all bytes of a text, by next() or by step().
  RegexId run(RegexId r, std::string_view text);
  RegexId walk(RegexId r, std::string_view text);  // by step()
  // The same for a set of literals, or for a run without some, within which the text ends nothing; it makes
  // no derivative on the way. No value: the regex is no such one.
  //
  //     {name, number} by `nam`         {e}
  //     any*" & ~{name"} by `nam`       any*" & ~{e"}
  std::optional<RegexId> past(RegexId r, std::string_view text);
  bool matches(RegexId r, std::string_view text) { return nullable(run(r, text)); }
  // Throws kSchemaTooComplex if too many nodes would have to be visited.
  bool is_empty(RegexId r);
  const ClassMap& classes(RegexId r);
  // Bytes of one class lead to one derivative of each of the two.
  const ClassMap& classes(RegexId r, RegexId other) {
    return *class_maps_.product(&classes(r), &classes(other));
  }
  // The bytes b such that next(r, b) is not empty.
  const ByteSet& live(RegexId r);
  // The bytes b such that step(r, b) is not empty.
  ByteSet steps(RegexId r);
  ClassMaps& class_maps() { return class_maps_; }
  // Appends every string of the language. False if there are more than `limit`, or infinitely many.
  bool enumerate(RegexId r, uint32_t limit, std::vector<std::string>& out);
  // The number of strings; 2^64 - 1 stands for 2^40 or more and for infinitely many. If more than
  // `nodes` nodes would have to be visited, the result is a lower bound and `exact` is false.
  uint64_t count(RegexId r, uint32_t nodes, bool& exact);
  // Writes a shortest string of the language to `out`, or a short one if the search for a shortest is
  // too large. False if the language is empty.
  bool witness(RegexId r, std::string& out);
  // A lower bound on the bytes of every string of the language, by the structure.
  uint32_t least_length(RegexId r);
  const ByteSet& byte_set(uint32_t index) const { return sets_[index]; }
  uint32_t size() const { return nodes_.size(); }
  std::size_t byte_size() const;
  // The bytes of the nodes without the tables around them. They never become fewer.
  std::size_t node_bytes() const { return nodes_.size() * sizeof(RegexNode) + pool_.byte_size(); }
  // The limit of the bytes of this arena, and of the states of parsers that read with it. Beyond it new
  // nodes throw out_of_memory().
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
  // The number of searches for emptiness that are under way; one may begin within another.
  uint32_t searches_ = 0;
  bool needs_escape(RegexId r);
  // True if r is every text of the spelling, with its end.
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
  // The answers of needs_escape().
  FlatMap<uint32_t, bool> escapes_;
  std::unordered_map<std::type_index, std::unique_ptr<RegexCache>> caches_;
  std::size_t most_ = static_cast<std::size_t>(-1);
  // At this number of nodes the arena counts its bytes again.
  uint32_t next_look_ = 0;
  FlatMap<uint64_t, RegexId> lifted_;  // by regex and reach
};

}  // namespace structgen
