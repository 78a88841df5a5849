// A text in which items and keys that differ are compared beside the states: engine/distinct.h says why.
//
// In: bytes, and the parser of the lenient language. Out: the state behind each step, or that a token ends
// an item that is a member, or leaves nothing but items that are. Cost: that of Distinct and of the parser's
// steps; a row asks for each of its tokens that may end an item.
//
// Budgets. A completion of the lenient state may end an item that is a member: after `[7,8,` comes `0]`, and
// after `[0,1,2,3,4,5,6,7,8,9,` comes no item of one digit. How much longer is the shortest ending of the
// text? Each item that ends, of the arrays around the place and of those that must still be written, has to
// avoid n members at most. Values multiply (Unique::lasting), so log(n) bytes suffice, or one more item of an
// array that is an item itself, or one more key. spare() is this number of bytes. With State::loose and
// spare() tokens left no token is refused.
//
// Nearer the end the states of the grammar answer, where the text is short enough to be read again
// (engine/rows.cc). A long text ends by the bytes of ending(): a lenient completion, in which other bytes
// stand for those that end a member. It is a function of the text, and that of the text with its first byte
// is its rest. So a row of nothing but its pieces keeps every promise; such a row is not exact.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/distinct.h"
#include "engine/grammar.h"

namespace structgen {

class Lenient {
 public:
  // What is known behind a step: the state, the size of the text, the mode of its last byte.
  struct Place {
    StateId state;
    uint32_t size : 30 = 0;
    Distinct::Mode mode : 2 = Distinct::kBetween;
  };
  // What becomes of a text. kLives: it can go on. kDies: it cannot. kLock: the world's lock is needed to
  // tell. kStates: the states of the exact grammar are.
  enum class Fate : uint8_t { kLives, kDies, kLock, kStates };

  // places[0] is the start, places[i] is behind step i; empty if the text is not lenient. A vector would
  // double as it grows, and the process would keep the memory of the old one.
  std::deque<Place> places;

  bool on() const { return !places.empty(); }
  std::string_view step(std::size_t i) const {
    return std::string_view(distinct_.text()).substr(places[i - 1].size, places[i].size - places[i - 1].size);
  }
  // Returns true if `bytes` more bytes would make the text too long for Place::size.
  bool full(std::size_t bytes) const { return distinct_.text().size() + bytes >= kMostText; }
  // Tells what becomes of the text if these bytes follow, and sets `at` to the state behind them.
  Fate read(Grammar& grammar, Epoch& epoch, std::string_view bytes, bool locked, StateId& at);
  // Reports the text to the account of the world at every 64 kB. Throws out_of_memory() if the world is too
  // large.
  void count(World& world);
  // Appends the step that read() has judged; with `text` false, a step to s without bytes. A call that throws
  // changes nothing.
  void push(StateId s, bool text);
  // Takes steps back until `places` has so many elements.
  void cut(std::size_t places_left);
  // Removes from the row of the last state the tokens that end an item that repeats another one, and those
  // behind which the begun item can only repeat one.
  Fate keep(Grammar& grammar, Epoch& epoch, uint32_t* row, bool locked);
  // Returns true if an array or object has so many items that their states take long to make.
  bool crowded() const { return distinct_.most() >= kCrowd; }
  // `bound` bytes complete the text if items may repeat. Returns how many more suffice if items must differ.
  std::size_t spare(std::size_t bound) const;
  // Returns a text that completes the text, or no value if the search finds none. The caller holds the
  // world's lock.
  std::optional<std::string> ending(Grammar& grammar, Epoch& epoch);
  // Drops all answers about states, when the sequence moves to another epoch: states get other numbers there.
  void forget() {
    opens_ = {};
    one_value_ = {};
  }

 private:
  // What a bracket opens: an array or object whose items or keys must differ (kDistinct), may repeat (kAny),
  // or must differ in some readings of the text only (kMixed).
  enum Kind : uint8_t { kUnknown, kAny, kDistinct, kMixed };
  struct Opens {
    Kind kind = kUnknown;
    // This many bytes suffice for one more item of the container.
    uint32_t more = 0;
    // The number of the list of its items in distinct_; 0 for none.
    uint32_t list = 0;
  };
  Opens opens(const Grammar& grammar, Epoch& epoch, StateId s, char bracket, bool locked);
  Fate fate(Parser& parser, StateId s, bool locked);
  Fate fate_in_list(Parser& parser, StateId s);
  // Reads the bytes from the state `at` on, sets `at` to the state behind them, and judges the text.
  Fate fate(Grammar& grammar, Epoch& epoch, std::string_view bytes, bool locked, StateId& at);
  bool one_value(Parser& parser, StateId s, bool nonzero, bool exponent);
  bool powers_left(std::string_view word, std::size_t digits);
  void cut() { distinct_.cut(places.back().size, places.back().mode); }

  static constexpr std::size_t kMostText = 1u << 30, kCrowd = 256;
  Counted counted_;
  // The text up to places.back(). A call may leave more bytes, which cut() removes.
  Distinct distinct_;
  std::unordered_map<uint32_t, Opens> opens_;
  std::unordered_map<uint32_t, bool> one_value_;
  // The tokens that may end an item, by ItemEnds::Place; null until asked.
  std::array<const ItemEnds::Bits*, ItemEnds::kPlaces> ends_ = {};
  const std::vector<ItemEnds::Quote>* quotes_ = nullptr;
};

}  // namespace structgen
