// The regex algebra over bytes, hash-consed, with memoised derivatives (a lazy DFA whose states are
// the nodes themselves).
//
// In: constructor calls. Out: RegexId; equal ids <=> structurally equal after normalisation.
// Cost: a constructor is one hash look-up; next() is an array read once known. Counters are nodes
// ({m,n} is never unrolled). Languages are sets of byte strings.
// Not thread-safe: the owner serialises calls (a state keeps its own transitions, see parse/state.h).
// Sources: Brzozowski 1964; Owens, Reppy, Turon 2009.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/arena.h"
#include "base/bitset.h"
#include "base/flat_map.h"
#include "base/ids.h"
#include "base/intern.h"
#include "base/work.h"
#include "regex/classes.h"
#include "regex/literals.h"

namespace structgen {

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
  kJsonSet,   // the JSON spellings of a set of strings, each with its closing quote
  kPoison,    // "not decided here": live on every byte, never nullable (see mask/fill.h)
  kLazy,      // a language unfolded on first use, possibly in terms of itself
  kDone,      // the empty string, reached by completing literal `label` of a labelled kJsonSet
};

struct RegexNode {
  RegexKind kind = RegexKind::kEmpty;
  bool nullable = false;
  bool boolean = false;    // contains & or ~, so that emptiness is not plain from the structure
  bool lazy = false;       // contains a kLazy that may be empty: emptiness needs a search
  bool labelled = false;   // contains a labelled kJsonSet or a kDone
  bool finite = false;     // plainly finitely many strings
  bool character = false;  // see mark_character
  uint8_t body = 0;        // see mark_body: 1 = at a character, k > 1 = k-1 continuation bytes before one
  uint8_t emptiness = 0;   // 0 unknown, 1 empty, 2 not empty, 3 too much to tell (only where boolean)
  uint16_t height = 0;     // recursion depth of next()
  uint32_t shortest = 0;  // bytes of some short text, read off the structure; guides searches, proves nothing
  uint32_t a = 0,
           b = 0;  // children; kBytes: index of the set; kJsonSet: of the set node; kLazy: of its definition
  uint32_t min = 0, max = 0;          // kRepeat; kDone: min = label; kLazy: min = state
  const uint32_t* kids = nullptr;     // kAlt, kAnd: sorted child ids
  const char* text = nullptr;         // kLiteral
  uint32_t n = 0;                     // number of kids, or length of the text
  const ClassMap* classes = nullptr;  // computed on first use
  uint32_t* next = nullptr;           // per class; kUnknownNext where not computed yet
  const ByteSet* live = nullptr;      // computed on first use
};

class RegexArena;

// Definitions of kLazy nodes: right-linear equations, or an automaton given by its states.
class LazyLanguage {
 public:
  virtual ~LazyLanguage() = default;
  // The language of a state. Lazy nodes of the same definition may occur in it where at least one byte
  // has been read before (guarded), which keeps derivatives finite. Called again and again: memoise.
  virtual RegexId unfold(RegexArena& arena, uint32_t state) = 0;
  // A shortest text of a state, for who knows it without a search. False: look for one.
  virtual bool shortest(uint32_t state, std::string& text) const {
    (void)state, (void)text;
    return false;
  }
};

class RegexArena {
 public:
  // plain_strings: JSON strings are spelled as JSON writers do, which escape what must be and nothing else.
  // Else every spelling of RFC 8259 is meant. One choice an arena, so that all its strings share their nodes.
  // subset: a language whose emptiness is too much to tell is no error: step() leaves it out.
  explicit RegexArena(bool plain_strings = false, bool subset = false);
  bool plain_strings() const { return plain_strings_; }
  bool subset() const { return subset_; }
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
  RegexId repeat(RegexId a, uint32_t min, uint32_t max);
  RegexId optional(RegexId a) { return repeat(a, 0, 1); }
  RegexId star(RegexId a) { return repeat(a, 0, kUnbounded); }
  // JSON spellings (raw or escaped) of the table's strings, without the opening and with the closing
  // quote. `subset`: bitset over the table's indices, empty = all. When `labelled`, completing string
  // i ends in done(label of i) instead of epsilon().
  RegexId json_set(uint32_t table, std::span<const uint64_t> subset, bool labelled);
  RegexId done(uint32_t label);
  // Of a state of such a set, those texts that are in `subset`, too.
  RegexId narrowed_set(RegexId set, std::span<const uint64_t> subset, bool labelled);
  // The arena keeps the definition alive. `nullable` is the state's; `maybe_empty` false promises that
  // no state's language is empty, which saves searches.
  uint32_t define(std::unique_ptr<LazyLanguage> language);
  RegexId lazy(uint32_t definition, uint32_t state, bool nullable, bool maybe_empty);
  const JsonSet& json_set_of(RegexId r) const { return json_sets_[nodes_[r.v].a]; }  // of a kJsonSet node
  LiteralTables& tables() { return tables_; }
  // Marks r as the spellings of one character of a set: every text of r is exactly one code point.
  RegexId mark_character(RegexId r) {
    nodes_[r.v].character = true;
    return r;
  }
  // Marks r as a language of JSON string bodies that holds every spelling of a text or none. Searches then
  // look at one spelling only; derivatives inherit the mark.
  RegexId mark_body(RegexId r) {
    if (!nodes_[r.v].body && r.v > 3) nodes_[r.v].body = 1;
    return r;
  }
  // The marked regex that holds every other marked one.
  void mark_any_character(RegexId r) { any_character_ = r; }
  bool is_any_character(RegexId r) const { return r == any_character_ && r != empty(); }
  bool is_character(RegexId r) const { return nodes_[r.v].character; }
  // A regex remembered under a small key of the caller's choice; empty() until set.
  RegexId& remembered(uint32_t key) { return remembered_[key]; }
  // The same for what a caller builds of many regexes; one type a key.
  template <class T, class Make>
  T& attached(uint32_t key, Make&& make) {
    Attached& known = attached_[key];
    if (!known.of) {
      known.of = make();
      if constexpr (requires(const T& t) { t.byte_size(); })
        known.bytes = [](const void* t) { return static_cast<const T*>(t)->byte_size(); };
    }
    return *static_cast<T*>(known.of.get());
  }

  // r with other maxima of its counters, where those are at or above a limit: `characters` for counters of
  // characters, `others` for the rest. lift = false: a subset of r, the maxima are lowered to the limit.
  // lift = true: a superset of r, they become unbounded. Nothing below a complement is changed.
  RegexId limited(RegexId r, uint32_t characters, uint32_t others, bool lift);

  // ---- questions ----
  const RegexNode& node(RegexId r) const { return nodes_[r.v]; }
  bool nullable(RegexId r) const { return nodes_[r.v].nullable; }
  // The derivative; empty() exactly where no continuation exists. In an arena of subsets also what is
  // undecided(), because under a complement less would be more.
  RegexId next(RegexId r, uint8_t b);
  // The same, and empty() where it is too much to tell: for what a text goes on with. What step() leads to
  // has a byte to step on, or can end.
  RegexId step(RegexId r, uint8_t b) {
    const RegexId d = next(r, b);
    if (!subset_) return d;
    if (!undecided(d) || has_known_text(d)) return d;
    if (vouched_ || insists_) {
      const bool none = settled_empty(d);
      if (!none && (vouched_ || !undecided(d))) return d;
    }
    leave_out();
    return empty();
  }
  // Meanwhile step() leads on where a mask said that it does: what is undecided is looked at again with the
  // work at hand, and taken at the mask's word where that is too little. Returns what it was before.
  bool vouch(bool on) { return std::exchange(vouched_, on); }
  // Meanwhile what was too much to tell is looked at again, and a part may take most of the work that is
  // left: for a text that could not go on otherwise. Returns what it was before.
  bool insist(bool on) { return std::exchange(insists_, on); }
  bool insists() const { return insists_; }
  // What one of several decisions may take; see share_of_work().
  int64_t share() const { return insists_ ? most_of_work() : share_of_work(); }
  // How often something was left out so far, by step() or whoever remembers that it was.
  uint64_t left_out() const { return left_out_; }
  void leave_out() { ++left_out_; }
  // Too much to tell: is_empty() throws, again and again.
  bool undecided(RegexId r) const { return nodes_[r.v].emptiness == kUndecided; }
  // is_empty(), but false and undecided() where it is too much to tell in an arena of subsets.
  bool judged_empty(RegexId r);
  RegexId run(RegexId r, std::string_view text);
  RegexId walk(RegexId r, std::string_view text);  // by step()
  bool matches(RegexId r, std::string_view text) { return nullable(run(r, text)); }
  bool is_empty(RegexId r);  // throws kSchemaTooComplex past the node budget
  const ClassMap& classes(RegexId r);
  const ByteSet& live(RegexId r);  // bytes b with next(r, b) not empty
  ByteSet steps(RegexId r);        // bytes b with step(r, b) not empty
  ClassMaps& class_maps() { return class_maps_; }
  // Every string of the language when it is finite and has at most `limit` strings; false otherwise.
  bool enumerate(RegexId r, uint32_t limit, std::vector<std::string>& out);
  // The number of strings; 2^64 - 1: 2^40 or more, or infinitely many. Where more than so many nodes would
  // have to be visited, a lower bound, and `exact` is false.
  uint64_t count(RegexId r, uint32_t nodes, bool& exact);
  // A shortest string of the language, or a short one where the search for it would be too large.
  bool witness(RegexId r, std::string& out);
  // A lower bound on the bytes of every string of the language, read off the structure of the regex.
  uint32_t least_length(RegexId r);
  const ByteSet& byte_set(uint32_t index) const { return sets_[index]; }
  uint32_t size() const { return nodes_.size(); }
  std::size_t byte_size() const;
  // More bytes than that, or states of parsers that read by this arena: out_of_memory().
  void set_most(std::size_t bytes) { most_ = bytes; }
  std::size_t most() const { return most_; }

  static constexpr uint32_t kLiteralMax = 64;

 private:
  RegexId add(RegexNode node, std::span<const uint32_t> kids, std::string_view text);
  RegexId distributed(const std::vector<uint32_t>& kids);
  bool join_runs(std::vector<uint32_t>& kids);
  void absorb(RegexKind kind, std::vector<uint32_t>& kids);
  RegexId nary(RegexKind kind, std::vector<uint32_t>& kids);
  bool merge_repeats(std::vector<uint32_t>& kids);
  bool split_repeat(uint32_t id, uint32_t& element, uint32_t& min, uint32_t& max, uint32_t& tail) const;
  RegexId derive(RegexId r, uint8_t b);
  RegexId json_set_node(const JsonSet& set);
  RegexId derive_json_set(RegexId r, uint8_t b);
  const ClassMap* compute_classes(RegexId r);
  ByteSet first_bytes(RegexId r);
  ByteSet derived_bytes(RegexId r);
  uint32_t structural_length(const RegexNode& n, std::span<const uint32_t> kids, std::size_t text) const;
  static constexpr uint8_t kEmpty = 1, kUndecided = 3;
  bool search_empty(RegexId r);
  bool has_known_text(RegexId r) const;
  bool has_lazy_text(RegexId r);
  bool settled_empty(RegexId r);
  RegexId derived(RegexId r, uint8_t b);
  bool plenty(RegexId r, uint64_t limit);
  bool near_witness(RegexId r, std::string& out);
  bool promise(RegexId r, std::string_view text);
  uint32_t searches_ = 0;  // searches for emptiness under way, within each other
  static uint8_t body_after(uint8_t body, uint8_t b);
  bool needs_escape(RegexId r);
  bool all_bodies(RegexId r) const;  // every string, its closing quote included
  bool has_short_text(RegexId r);
  void short_texts(RegexId r, uint32_t& left, std::vector<std::string>& out);
  enum class Told : uint8_t { kNo, kYes, kUnknown };
  Told holds(RegexId r, std::string_view text, uint32_t& left);
  bool plainly_infinite(RegexId r) const;

  StableVector<RegexNode, 10> nodes_;
  InternTable index_{12};
  BumpPool pool_;
  StableVector<ByteSet> sets_;
  InternTable set_index_;
  StableVector<JsonSet> json_sets_;
  InternTable json_set_index_;
  const bool plain_strings_, subset_;
  bool vouched_ = false, insists_ = false;
  uint64_t left_out_ = 0;
  LiteralTables tables_;
  std::vector<std::unique_ptr<LazyLanguage>> lazies_;
  ClassMaps class_maps_;
  std::array<RegexId, 256> byte_{};
  RegexId any_character_{};
  FlatMap<uint32_t, uint32_t> least_lengths_;
  FlatMap<uint32_t, RegexId> remembered_;
  FlatMap<uint32_t, uint8_t> escapes_;  // see needs_escape
  struct Attached {
    std::shared_ptr<void> of;
    std::size_t (*bytes)(const void*) = nullptr;
  };
  std::unordered_map<uint32_t, Attached> attached_;
  std::size_t most_ = static_cast<std::size_t>(-1);
  uint32_t next_look_ = 0;  // nodes at which the size is looked at again
  struct LimitedHash {
    std::size_t operator()(const std::array<uint32_t, 3>& key) const { return hash_words(key, 3); }
  };
  std::unordered_map<std::array<uint32_t, 3>, RegexId, LimitedHash> limited_;
};

}  // namespace structgen
