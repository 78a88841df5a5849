// A text whose items and keys must differ and are compared beside the states. engine/distinct.h says why the
// states do not hold them.
//
// In: bytes, and the parser of the lenient language. Out: the state behind each step, or a refusal: the token
// ends a repeated item, or the item that has begun can only become a repeated item. Cost: the steps of
// Distinct and of the parser; for a row, these steps for each token that may end an item.
//
// Budgets. A completion of the lenient state may repeat an item: after `[7,8,` the completion `0]` is fine,
// but after `[0,1,2,3,4,5,6,7,8,9,` every item of one digit is a repeated item. So the shortest ending of the
// text may be longer than the completion of the lenient state. Each item that still ends, in the arrays
// around this place or in arrays that must still be written, has to differ from at most n items. In a lasting
// array the number of values grows exponentially with their length (Unique::lasting), so about log(n) more
// bytes suffice for an item, or one more item inside an item that is an array, or one more key. spare() is
// the sum of these bytes. If State::loose + spare() tokens are left, no token is refused.
//
// With fewer tokens left, the exact states of the grammar answer, if the text is short enough to be read
// again (engine/rows.cc). A long text is ended by the bytes of ending(): a lenient completion, except that
// other bytes replace those that would end a repeated item. ending() depends on the text alone, and behind
// the first byte of an ending the ending is the rest. So a row that has only tokens with which ending()
// begins never leads into a dead end; such a row is not exact.
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
  // What is known at a point between two steps: the state, the size of the text, and what its last byte
  // belongs to.
  struct Place {
    StateId state;
    uint32_t size : 30 = 0;
    Distinct::Mode mode : 2 = Distinct::kBetween;
  };
  // What becomes of a text. kLives: it can be completed. kDies: it cannot. kLock: the answer needs the
  // world's lock. kStates: the answer needs states of the exact grammar.
  enum class Fate : uint8_t { kLives, kDies, kLock, kStates };

  // Element 0 is the start, and element i is the point behind step i; the list is empty if the text is not
  // lenient. It is a deque, because a vector copies itself when it grows, and the process would keep the
  // memory of the old copy.
  std::deque<Place> places;

  bool on() const { return !places.empty(); }
  std::string_view step(std::size_t i) const {
    return std::string_view(distinct_.text()).substr(places[i - 1].size, places[i].size - places[i - 1].size);
  }
  // Returns true if `bytes` more bytes would make the text too long for Place::size.
  bool full(std::size_t bytes) const { return distinct_.text().size() + bytes >= kMostText; }
  // Tells what becomes of the text if these bytes follow, and sets `at` to the state behind them.
  Fate read(Grammar& grammar, Epoch& epoch, std::string_view bytes, bool locked, StateId& at);
  void count(World& world);
  // Appends the step that read() has just judged. A step with `text` false has no bytes and leads to s. A
  // call that throws changes nothing.
  void push(StateId s, bool text);
  // Takes back the last steps, so that `places` has `places_left` elements.
  void cut(std::size_t places_left);
  // Removes from the row of the last state the tokens that end a repeated item, and the tokens behind which
  // the item that has begun can only become a repeated item.
  Fate keep(Grammar& grammar, Epoch& epoch, uint32_t* row, bool locked);
  // Returns true if an array has so many items, or an object so many keys, that exact states for them take
  // long to make.
  bool crowded() const { return distinct_.most() >= kCrowd; }
  // Returns how many bytes longer a completion may get because items must differ: if `bound` bytes complete
  // the text with repeated items, bound + spare(bound) bytes complete it without a repeated item.
  std::size_t spare(std::size_t bound) const;
  // Returns a text that completes the text read so far, or no value if the search found none. The caller
  // holds the world's lock.
  std::optional<std::string> ending(Grammar& grammar, Epoch& epoch);
  // Drops all answers about states. Called when the states move to another epoch, because they get other
  // numbers there.
  void forget() {
    opens_ = {};
    one_value_ = {};
  }

 private:
  // What a bracket opens: a container whose items or keys may repeat (kAny), must differ (kDistinct), or must
  // differ in some readings of the text and not in others (kMixed).
  enum Kind : uint8_t { kUnknown, kAny, kDistinct, kMixed };
  struct Opens {
    Kind kind = kUnknown;
    // The number of bytes that suffice for one more item of the container.
    uint32_t more = 0;
    uint32_t list = 0;
  };
  Opens opens(const Grammar& grammar, Epoch& epoch, StateId s, char bracket, bool locked);
  Fate fate(Parser& parser, StateId s, bool locked);
  Fate fate_in_list(Parser& parser, StateId s);
  // Reads the bytes from the state `at` on, sets `at` to the state behind them, and tells what becomes of the
  // text.
  Fate fate(Grammar& grammar, Epoch& epoch, std::string_view bytes, bool locked, StateId& at);
  bool one_value(Parser& parser, StateId s, bool nonzero, bool exponent);
  bool powers_left(std::string_view word, std::size_t digits);
  void cut() { distinct_.cut(places.back().size, places.back().mode); }

  static constexpr std::size_t kMostText = 1u << 30, kCrowd = 256;
  Counted counted_;
  // The text up to the last element of `places`. A call may leave bytes behind it; cut() removes them.
  Distinct distinct_;
  std::unordered_map<uint32_t, Opens> opens_;
  std::unordered_map<uint32_t, bool> one_value_;
  // The tokens that may end an item, by ItemEnds::Place; null where they were not asked for yet.
  std::array<const ItemEnds::Bits*, ItemEnds::kPlaces> ends_ = {};
  const std::vector<ItemEnds::Quote>* quotes_ = nullptr;
};

}  // namespace structgen
