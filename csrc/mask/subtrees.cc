// How the categories below each node of the trie are computed, and how a set of regex states is closed
// under them; subtrees.h has the idea and an example.
//
// Three parts. A reader of UTF-8 sorts characters beyond ASCII into blanks and others, and marks nodes
// from which a malformed text leads on. categories_below() collects the categories upwards through the
// trie, in one pass. Loops finds, for a state of a walk, a few states and the categories that lead from
// each of them back into the set: first by ASCII bytes (close), and by other characters only where a node
// has some (wide).
//
// Invariants. A node without kMalformed stands between two characters and has only well-formed text below it.
// `Closed::ascii` has no category that is wrong for some state of the set. It may lack categories: then the
// walk goes down and reads the subtree, and no mask is wrong.
#include "mask/subtrees.h"

#include <algorithm>
#include <array>

#include "base/work.h"
#include "mask/walk_table.h"

namespace structgen {

namespace {

// The states of a reader of UTF-8 (RFC 3629), named by what must still come: kBetween stands between
// characters, kTwo needs two more bytes. Behind E0, ED, F0 and F4 some continuation bytes are not valid, so
// each of these has a state.
enum Reader : uint8_t { kBetween, kLast, kTwo, kThree, kAfterE0, kAfterED, kAfterF0, kAfterF4, kBad };

// Returns the state behind a byte: é (C3 A9) goes from kBetween to kLast and back.
Reader read(Reader r, uint8_t b) {
  const auto within = [&](uint8_t low, uint8_t high, Reader next) {
    return b >= low && b <= high ? next : kBad;
  };
  switch (r) {
    case kBetween:
      if (b < 0x80) return kBetween;
      if (b < 0xC2 || b > 0xF4) return kBad;
      if (b < 0xE0) return kLast;
      if (b == 0xE0) return kAfterE0;
      if (b == 0xED) return kAfterED;
      if (b < 0xF0) return kTwo;
      if (b == 0xF0) return kAfterF0;
      return b == 0xF4 ? kAfterF4 : kThree;
    case kLast: return within(0x80, 0xBF, kBetween);
    case kTwo: return within(0x80, 0xBF, kLast);
    case kThree: return within(0x80, 0xBF, kTwo);
    case kAfterE0: return within(0xA0, 0xBF, kLast);
    case kAfterED: return within(0x80, 0x9F, kLast);
    case kAfterF0: return within(0x90, 0xBF, kTwo);
    case kAfterF4: return within(0x80, 0x8F, kTwo);
    case kBad: break;
  }
  return kBad;
}

// Tells whether a character beyond ASCII is white space: ECMA-262's WhiteSpace and LineTerminator, and what
// Python adds. Its UTF-8 bytes are one number: U+00A0 is 0xC2A0.
bool blank(uint32_t bytes) {
  switch (bytes) {
    case 0xC285:
    case 0xC2A0:
    case 0xE19A80:
    case 0xE280A8:
    case 0xE280A9:
    case 0xE280AF:
    case 0xE2819F:
    case 0xE38080:
    case 0xEFBBBF: return true;
    default: return bytes >= 0xE28080 && bytes <= 0xE2808A;
  }
}

// Tells whether the bytes are a proper beginning of a character of blank().
bool begins_blank(uint32_t bytes) {
  switch (bytes) {
    case 0xC2:
    case 0xE1:
    case 0xE19A:
    case 0xE2:
    case 0xE280:
    case 0xE281:
    case 0xE3:
    case 0xE380:
    case 0xEF:
    case 0xEFBB: return true;
    default: return false;
  }
}

// Groups of bytes that patterns tend to tell apart. Each group is a category, and all other ASCII bytes form
// one more category. A category helps only if all its bytes stay within a set of states. Quotes, the
// backslash and brackets often leave the set, so they are groups of their own.
constexpr const char* kCategoryGroups[] = {"\t\r",
                                           "\n",
                                           " ",
                                           "\"",
                                           "'",
                                           "\\",
                                           "/",
                                           "*",
                                           "-",
                                           ".",
                                           "_",
                                           "0123456789",
                                           "abcdef",
                                           "ABCDEF",
                                           "ghijklmnopqrstuvwxyz",
                                           "GHIJKLMNOPQRSTUVWXYZ",
                                           "<",
                                           ">",
                                           "()",
                                           "[]",
                                           "{}",
                                           ",",
                                           ":",
                                           ";",
                                           "@",
                                           "#",
                                           "$",
                                           "+="};

constexpr std::array<Categories, 256> categories() {
  std::array<Categories, 256> out{};
  uint32_t n = 0;
  for (const char* group : kCategoryGroups) {
    for (const char* c = group; *c; ++c) out[static_cast<uint8_t>(*c)] = 1u << n;
    ++n;
  }
  for (int b = 0; b < 128; ++b)
    if (!out[b]) out[b] = 1u << n;
  for (int b = 128; b < 256; ++b) out[b] = kWideCharacter | kBlank;
  return out;
}
static_assert(std::size(kCategoryGroups) < 29);
// Marks the bytes from 128 on that read() or blank() treats unlike the byte in front of them. wide() tries
// only these bytes and the bytes at which the regex's classes change.
constexpr std::array<bool, 128> apart() {
  std::array<bool, 128> out{};
  for (int first : {0x80, 0x90, 0xA0, 0xC0, 0xC2, 0xE0, 0xED, 0xF0, 0xF4})
    out[first - 128] = out[first + 1 - 128] = true;
  out[0xEE - 128] = out[0xF5 - 128] = true;
  for (int one :
       {0x81, 0x85, 0x8A, 0x9A, 0x9F, 0xA0, 0xA8, 0xA9, 0xAF, 0xBB, 0xBF, 0xC2, 0xE1, 0xE2, 0xE3, 0xEF}) {
    out[one - 128] = true;
    if (one < 255) out[one + 1 - 128] = true;
  }
  return out;
}
constexpr std::array<bool, 128> kApart = apart();
constexpr std::array<Categories, 256> kCategories = categories();

}  // namespace

Categories category(uint8_t byte) { return kCategories[byte]; }

std::vector<Categories> categories_below(const TokenTrie& trie) {
  std::vector<Categories> out(trie.size(), 0);
  std::vector<uint32_t> parents(trie.size(), 0), path{0};  // node at each depth
  std::vector<Reader> reader(trie.size(), kBetween);
  // By node: the bytes of the character that is unfinished there, or has just ended.
  std::vector<uint32_t> begun(trie.size(), 0);
  std::vector<Categories> own(trie.size(), 0);
  for (uint32_t i = 1; i < trie.size(); ++i) {
    charge();
    const TokenTrie::Node& n = trie.node(i);
    path.resize(n.depth);
    const uint32_t parent = parents[i] = path.back();
    path.push_back(i);
    const uint8_t byte = static_cast<uint8_t>(n.byte);
    reader[i] = read(reader[parent], byte);
    begun[i] = reader[parent] == kBetween ? byte : begun[parent] << 8 | byte;
    if (byte < 0x80)
      own[i] = kCategories[byte];
    else if (reader[i] == kBetween)
      own[i] = blank(begun[i]) ? kBlank : kWideCharacter;
    else if (!trie.tokens(i).empty())
      // A token ends inside a character here. The character may still become a character that is no blank, so
      // the node counts as such a character.
      own[i] = kWideCharacter;
  }
  // From the leaves upwards. A node inside a character becomes kMalformed, so that no walk begins there.
  // Above bytes that are not UTF-8 every node becomes kMalformed, too.
  std::vector<bool> bad(trie.size(), false);
  for (uint32_t i = trie.size(); i-- > 1;) {
    bad[i] = bad[i] || reader[i] == kBad;
    if (bad[i]) bad[parents[i]] = true;
    out[parents[i]] |= own[i] | (out[i] & ~kMalformed);
    if (bad[i] || reader[i] != kBetween) out[i] |= kMalformed;
  }
  if (bad[0]) out[0] |= kMalformed;
  return out;
}

// Tells whether a walk must stop at `state`: it is dead, or the regex may end in only one of `from` and
// `state`. The second condition is not checked if the caller handles ends (pass_).
bool Loops::stops(uint32_t from, uint32_t state) const {
  return state == WalkTable::kDead || (!pass_ && table_.ends(state) != table_.ends(from));
}

// Returns the categories of which every byte may follow in the state.
Categories Loops::alive(uint32_t state) {
  if (alive_.size() <= state) alive_.resize(state + 1, kUnknown);
  if (alive_[state] != kUnknown) return alive_[state];
  Categories out = kUnknown & ~(kMalformed | kWideCharacter | kBlank);
  const ClassMap& classes = table_.classes(state);
  std::array<int8_t, 256> stopped;
  stopped.fill(-1);
  for (int b = 0; b < 128; ++b) {
    int8_t& known = stopped[classes.of[b] & 255];
    if (known < 0) known = stops(state, table_.next(state, static_cast<uint8_t>(b)));
    if (known) out &= ~kCategories[b];
  }
  alive_[state] = out;
  return out;
}

// Returns the categories of which every byte leads from the state back to it.
Categories Loops::loop(uint32_t state) {
  Categories out = kUnknown & ~(kMalformed | kWideCharacter | kBlank);
  for (int b = 0; b < 128; ++b)
    if (table_.next(state, static_cast<uint8_t>(b)) != state) out &= ~kCategories[b];
  return out;
}

// Collects the states that the first state reaches by the categories that stay: all their bytes may follow in
// every state of the set. A category is left out if it leads to a state in which the bytes of another
// category may not follow. Example: a backslash in a string leads to a state in which hardly any byte may
// follow. Returns false if there are too many states.
bool Loops::close(Closed& c) {
  c.ascii = alive(c.states[0]);
  for (std::size_t i = 0; i < c.states.size(); ++i) {
    const uint32_t from = c.states[i];
    const ClassMap& classes = table_.classes(from);
    // The class of the byte in front, if that byte stays in the set.
    uint32_t last = kUnknown;
    for (int b = 0; b < 128; ++b) {
      if (!(c.ascii & kCategories[b]) || last == classes.of[b]) continue;
      const uint32_t to = table_.next(from, static_cast<uint8_t>(b));
      if (std::find(c.states.begin(), c.states.end(), to) == c.states.end()) {
        if (c.ascii & ~alive(to)) {
          c.ascii &= ~kCategories[b];
          continue;
        }
        if (c.states.size() == kStates) return false;
        c.states.push_back(to);
      }
      last = classes.of[b];
    }
  }
  return true;
}

// Finds the set of a state. Other states of this set get it, too, without a search, if the same categories
// may follow in them.
void Loops::ask(uint32_t state) {
  Closed c;
  c.states = {state};
  if (large_ || !close(c)) {
    large_ = true;
    c.states = {state};
    c.ascii = loop(state);
  }
  if (!c.ascii) {
    of_[state] = kNothing;
    return;
  }
  for (uint32_t s : c.states) c.ends = c.ends || table_.ends(s);
  if (of_.size() < table_.size()) of_.resize(table_.size(), kUnknown);
  for (uint32_t s : c.states)
    if (s == state || (of_[s] == kUnknown && alive(s) == c.ascii))
      of_[s] = static_cast<uint32_t>(closed_.size());
  closed_.push_back(std::move(c));
}

// Finds out whether all blanks beyond ASCII stay in the set, and whether all other characters beyond ASCII
// do. It steps the reader of UTF-8 and the regex together, by one byte of each range.
void Loops::wide(Closed& closed) {
  struct Pair {
    Reader reader;
    // `at` is the state of the regex. `begun` are the bytes of the begun character while it may become a
    // blank; otherwise 0.
    uint32_t at, begun;
    bool operator==(const Pair&) const = default;
  };
  std::vector<Pair> todo, seen;
  for (uint32_t s : closed.states) todo.push_back({kBetween, s, 0});
  closed.wide_known = true;
  closed.wide = kWideCharacter | kBlank;
  while (!todo.empty() && closed.wide) {
    const Pair p = todo.back();
    todo.pop_back();
    const ClassMap& classes = table_.classes(p.at);
    for (int b = 128; b < 256; ++b) {
      // The byte behaves like the byte before it.
      if (b > 128 && !kApart[b - 128] && classes.of[b] == classes.of[b - 1]) continue;
      const Reader next = read(p.reader, static_cast<uint8_t>(b));
      if (next == kBad) continue;
      const uint32_t to = table_.next(p.at, static_cast<uint8_t>(b));
      const uint32_t bytes = p.reader == kBetween ? static_cast<uint32_t>(b)
                             : p.begun            ? p.begun << 8 | static_cast<uint32_t>(b)
                                                  : 0;
      if (next == kBetween) {
        if (std::find(closed.states.begin(), closed.states.end(), to) == closed.states.end())
          closed.wide &= ~(blank(bytes) ? kBlank : kWideCharacter);
        continue;
      }
      const bool may = begins_blank(bytes);
      if (to == WalkTable::kDead || table_.ends(to)) {
        closed.wide &= may ? 0 : ~kWideCharacter;
        continue;
      }
      const Pair pair{next, to, may ? bytes : 0};
      if (std::find(seen.begin(), seen.end(), pair) != seen.end()) continue;
      seen.push_back(pair);
      todo.push_back(pair);
    }
  }
}

}  // namespace structgen
