// The regex algebra over bytes, hash-consed, with memoised derivatives (a lazy DFA whose states are
// the nodes themselves).
//
// In: constructor calls. Out: RegexId; equal ids <=> structurally equal after normalisation, which depends on
// the call and not on what was made before it.
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

constexpr uint32_t kUnbounded = 0xFFFFFFFFu;

enum class RegexKind : uint8_t {
  kEmpty,       // no string
  kEpsilon,     // the empty string
  kAnything,    // every byte string
  kBytes,       // one byte of a set
  kLiteral,     // a byte string (at most kLiteralMax long)
  kCat,         // a b
  kAlt,         // a | b | ...
  kAnd,         // a & b & ...
  kNot,         // every byte string but a
  kRepeat,      // a{min,max}
  kLiteralSet,  // the spellings of a set of strings, each with what ends a text (regex/literals.h)
  kPoison,      // "not decided here": live on every byte, never nullable (see mask/fill.h)
  kLazy,        // a language unfolded on first use, possibly in terms of itself
  kDone,        // the empty string, reached by completing literal `label` of a labelled kLiteralSet
};

struct RegexNode {
  RegexKind kind = RegexKind::kEmpty;
  bool nullable = false;
  bool boolean = false;    // contains & or ~, so that emptiness is not plain from the structure
  bool lazy = false;       // contains a kLazy that may be empty: emptiness needs a search
  bool labelled = false;   // contains a labelled kLiteralSet or a kDone
  bool finite = false;     // plainly finitely many strings
  bool character = false;  // see RegexArena::character
  // What is plain of it in the arena's spelling: its texts are texts of the spelling without their end, or
  // bodies (with it), or continuation bytes of one character.
  enum Inside : uint8_t { kOther, kText, kBody, kTail } inside = kOther;
  // Continuation bytes before the first character, and of what else it has it holds every spelling or none;
  // kBroken: not so; kEvery: whatever stands in front. kTail: of how many it consists.
  uint8_t after = kBroken;
  static constexpr uint8_t kEvery = 254, kBroken = 255;
  // Bodies of which every spelling is there or none: 1 = at a character, k > 1 = k-1 continuation bytes
  // before one; 0: not plainly so.
  uint8_t body() const {
    return inside == kBody && after < kEvery ? static_cast<uint8_t>(after + 1) : uint8_t{0};
  }
  uint8_t emptiness = 0;  // 0 unknown, 1 empty, 2 not empty, 3 too much to tell (only where boolean)
  uint16_t height = 0;    // recursion depth of next()
  uint32_t shortest = 0;  // bytes of some short text, read off the structure; guides searches, proves nothing
  uint32_t a = 0,
           b = 0;  // children; kBytes: index of the set; kLiteralSet: of the set; kLazy: of its definition
  uint32_t min = 0, max = 0;          // kRepeat; kDone: min = label; kLazy: min = state
  const uint32_t* kids = nullptr;     // kAlt, kAnd: sorted child ids
  const char* text = nullptr;         // kLiteral
  uint32_t n = 0;                     // number of kids, or length of the text
  const ClassMap* classes = nullptr;  // computed on first use
  uint32_t* next = nullptr;           // per class; kUnknownNext where not computed yet
  const ByteSet* live = nullptr;      // computed on first use
};

class RegexArena;

// See RegexArena::cache.
class RegexCache {
 public:
  virtual ~RegexCache() = default;
  virtual std::size_t byte_size() const = 0;
};

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
  // `spelling`: of its literal sets; languages of texts in it have a normal form of their own. The program
  // keeps it. One an arena, so that all strings share their nodes.
  // `omits`: where the emptiness of a language is too much to tell, step() omits it (base/effort.h).
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
  RegexId repeat(RegexId a, uint32_t min, uint32_t max);
  RegexId optional(RegexId a) { return repeat(a, 0, 1); }
  RegexId star(RegexId a) { return repeat(a, 0, kUnbounded); }
  // The spellings of the table's strings, with what ends a text. `subset`: bitset over the table's indices,
  // empty = all. When `labelled`, completing string i ends in done(label of i) instead of epsilon().
  RegexId literal_set(uint32_t table, std::span<const uint64_t> subset, bool labelled);
  RegexId done(uint32_t label);
  // Of a state of such a set, those texts that are in `subset`, too.
  RegexId restricted_set(RegexId set, std::span<const uint64_t> subset, bool labelled);
  // The arena keeps the definition alive. `nullable` is the state's; `maybe_empty` false promises that
  // no state's language is empty, which saves searches; `body` promises RegexNode::body() 1; `labelled`: its
  // texts end in labels.
  uint32_t define(std::unique_ptr<LazyLanguage> language);
  RegexId lazy(uint32_t definition, uint32_t state, bool nullable, bool maybe_empty, bool body = false,
               bool labelled = false);
  const LiteralSet& literal_set_of(RegexId r) const { return sets_of_literals_[nodes_[r.v].a]; }
  LiteralTables& tables() { return tables_; }
  // r as every spelling of each character of a set, and nothing else: another node than r, which may be
  // something else elsewhere.
  RegexId character(RegexId r);
  bool is_character(RegexId r) const { return nodes_[r.v].character; }
  // Every character of the arena's spelling, and what ends its texts. empty(): texts have no end in it.
  RegexId any_character() const { return any_character_; }
  RegexId end() const { return end_; }
  // What a caller keeps of many regexes: one object of each type an arena, made when first asked for.
  template <class T, class... Args>
  T& cache(Args&&... args) {
    const auto known = caches_.find(typeid(T));
    if (known != caches_.end()) return static_cast<T&>(*known->second);
    return static_cast<T&>(
        *caches_.emplace(typeid(T), std::make_unique<T>(std::forward<Args>(args)...)).first->second);
  }

  // r with other maxima of its counters, where those are at or above a limit: `characters` for counters of
  // characters, `others` for the rest. lift = false: a subset of r, the maxima are lowered to the limit.
  // lift = true: a superset of r, they become unbounded. Nothing below a complement is changed.
  RegexId limited(RegexId r, uint32_t characters, uint32_t others, bool lift);

  // ---- questions ----
  const RegexNode& node(RegexId r) const { return nodes_[r.v]; }
  bool nullable(RegexId r) const { return nodes_[r.v].nullable; }
  // The derivative; empty() exactly where no continuation exists. An arena that omits answers with what is
  // undecided(), too: under a complement less would be more.
  RegexId next(RegexId r, uint8_t b);
  // The same, and empty() where it is too much to tell: for what a text goes on with. What step() leads to
  // has a byte to step on, or can end.
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
  // It is too much to tell whether r has a text: is_empty() throws, again and again.
  bool undecided(RegexId r) const { return nodes_[r.v].emptiness == kUndecided; }
  // is_empty(), but false and undecided() where it is too much to tell in an arena that omits.
  bool judged_empty(RegexId r);
  RegexId run(RegexId r, std::string_view text);
  RegexId walk(RegexId r, std::string_view text);  // by step()
  bool matches(RegexId r, std::string_view text) { return nullable(run(r, text)); }
  bool is_empty(RegexId r);  // throws kSchemaTooComplex past the node budget
  const ClassMap& classes(RegexId r);
  // Bytes in one class lead on alike in both.
  const ClassMap& classes(RegexId r, RegexId other) {
    return *class_maps_.product(&classes(r), &classes(other));
  }
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
  bool plenty(RegexId r, uint64_t limit);
  bool near_witness(RegexId r, std::string& out);
  bool promise(RegexId r, std::string_view text);
  uint32_t searches_ = 0;  // searches for emptiness under way, within each other
  bool needs_escape(RegexId r);
  bool all_bodies(RegexId r) const;  // every text of the spelling, with its end
  bool has_short_text(RegexId r);
  void short_texts(RegexId r, uint32_t& left, std::vector<std::string>& out);
  enum class Holds : uint8_t { kNo, kYes, kUnknown };
  Holds holds(RegexId r, std::string_view text, uint32_t& left);
  bool plainly_infinite(RegexId r) const;

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
  ClassMaps class_maps_;
  std::array<RegexId, 256> byte_{};
  RegexId any_character_{}, end_{};
  FlatMap<uint32_t, uint32_t> least_lengths_;
  FlatMap<uint32_t, uint8_t> escapes_;  // see needs_escape
  std::unordered_map<std::type_index, std::unique_ptr<RegexCache>> caches_;
  std::size_t most_ = static_cast<std::size_t>(-1);
  uint32_t next_look_ = 0;  // nodes at which the size is looked at again
  struct LimitedHash {
    std::size_t operator()(const std::array<uint32_t, 3>& key) const { return hash_words(key, 3); }
  };
  std::unordered_map<std::array<uint32_t, 3>, RegexId, LimitedHash> limited_;
};

}  // namespace structgen
