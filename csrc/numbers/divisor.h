// What the automata of multipleOf share: the divisor, and a language of digits that is unfolded as they
// are read.
//
// In: an exact decimal. Out: c / 10^s in whole numbers; s is negative if c * 10^-s has more than 18
// digits. Of 0.75 c is 75 and s is 2. Cost: linear in its digits. A state of the automaton costs 11
// steps when it is unfolded, and a node for each state that they lead to.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "base/intern.h"
#include "base/work.h"
#include "numbers/fixed.h"
#include "numbers/number.h"
#include "regex/regex.h"

namespace structgen {

struct NumberLanguage::Divisor {
  // The divisor is c / 10^s. `odd` is c without its factors 2 and 5. If a number ends with enough zeros,
  // `odd` alone must still divide it.
  uint64_t c = 1, odd = 1;
  int64_t s = 0;
  // The smallest t such that 10^t is a multiple of c / odd.
  int64_t twos = 0;

  // Throws kSchemaTooComplex for the divisors that NumberLanguage::multiple_of() refuses.
  explicit Divisor(const Decimal& d);
};

// A set of plain unsigned decimals: those of the value M / 10^s where c divides M and first <= M <= last. c
// divides `first` and `last`, too. For the multiples of 0.75 between 1 and 3, c is 75, s is 2, and M is 150,
// 225 or 300.
struct Multiples {
  uint64_t c;
  uint32_t s = 0;
  Wide first = 0, last = 0;
  // If false, M has no largest value, and `last` means nothing.
  bool ends = false;
  // The most digits before the point, or kUnlimited. It applies only if `ends` is false.
  uint32_t most_whole = NumberLanguage::kUnlimited;
  // A fraction of at most this many digits may end in zeros.
  uint32_t zeros_until = 0;
  // If false, the number has neither point nor fraction.
  bool point = true;
  // If true, the number has one digit before the point, which is not 0, and a fraction.
  bool mantissa = false;
};

// An automaton that reads digits and a point, as a lazy language. Its states are the values of State; State{}
// is the first.
template <class State>
class DigitAutomaton : public LazyLanguage {
 public:
  RegexId start(RegexArena& arena) { return node(arena, State{}); }
  RegexId unfold(RegexArena& arena, uint32_t index) override {
    constexpr std::string_view kBytes = "0123456789.";
    charge(kUnfolding);
    const State state = states_[index];
    RegexId nodes[kBytes.size()];
    for (std::size_t i = 0; i < kBytes.size(); ++i) {
      State to = state;
      nodes[i] = step(to, kBytes[i]) ? node(arena, to) : RegexArena::empty();
    }
    std::vector<RegexId> parts;
    for (std::size_t i = 0; i < kBytes.size(); ++i) {
      if (nodes[i] == RegexArena::empty() || std::find(nodes, nodes + i, nodes[i]) != nodes + i) continue;
      ByteSet bytes;
      for (std::size_t j = i; j < kBytes.size(); ++j)
        if (nodes[j] == nodes[i]) bytes.add(static_cast<uint8_t>(kBytes[j]));
      parts.push_back(arena.cat(arena.bytes(bytes), nodes[i]));
    }
    if (accepts(state)) parts.push_back(RegexArena::epsilon());
    return arena.alt(parts);
  }
  bool shortest(uint32_t index, std::string& text) const override {
    text.clear();
    return accepts(states_[index]) || completed(states_[index], text);
  }

 protected:
  virtual bool step(State& state, char c) const = 0;
  virtual bool accepts(const State& state) const = 0;
  // Returns true if the state accepts, or some continuation of it does.
  virtual bool alive(const State& state) const = 0;
  // If a shortest continuation that is accepted is known without a search, writes it and returns true.
  virtual bool completed(const State&, std::string&) const { return false; }
  // Returns true if both states have one language. They are then one node.
  virtual bool same(const State& x, const State& y) const = 0;
  // Returns a hash, which is equal for states that are same().
  virtual uint64_t hash(const State& state) const = 0;

 private:
  // Unfolding a state costs this many units of work, beside the work for its nodes.
  static constexpr int64_t kUnfolding = 600;
  RegexId node(RegexArena& arena, const State& state) {
    if (!alive(state)) return RegexArena::empty();
    const uint32_t n = index_.find_or_add(
        hash(state), [&](uint32_t i) { return same(states_[i], state); },
        [&] {
          states_.push_back(state);
          return static_cast<uint32_t>(states_.size() - 1);
        });
    return arena.lazy(definition, n, accepts(state), false);
  }
  std::vector<State> states_;
  InternTable index_;
};

// A way to complete a begun decimal: `whole` more digits before the point, then `fraction` digits behind it.
// `point` says that the point is still to be written if there is a fraction.
struct Completing {
  uint32_t whole, fraction;
  bool point;

  uint32_t digits() const { return whole + fraction; }
  std::string text(Wide y) const {
    std::string out(digits(), '0');
    for (std::size_t i = out.size(); i > 0; --i, y /= 10) out[i - 1] = static_cast<char>('0' + y % 10);
    if (point && fraction > 0) out.insert(whole, 1, '.');
    return out;
  }
};

// Calls `take` with each Completing, by the length of the text, until it returns true. `grows` says that more
// digits may come before the point, `point` that a point was read already.
template <class Take>
bool complete(bool grows, bool point, Take&& take) {
  // Longer texts are not tried: a Wide holds 38 digits, and a few of them are needed for the divisor.
  constexpr uint32_t kLongest = 36;
  for (uint32_t length = 1; length <= kLongest; ++length) {
    if (point) {
      if (take(Completing{0, length, false})) return true;
      continue;
    }
    if (grows && take(Completing{length, 0, true})) return true;
    for (uint32_t fraction = 1; fraction < length; ++fraction)
      if ((grows || fraction + 1 == length) && take(Completing{length - fraction - 1, fraction, true}))
        return true;
  }
  return false;
}

// Finds the least y of `digits` digits such that c divides (r * 10^digits + y) * 10^zeros. With `nonzero`,
// the last digit of y must not be 0. Returns false if there is no such y.
inline bool least_digits(uint64_t r, uint32_t digits, uint32_t zeros, uint64_t c, bool nonzero, Wide& y) {
  for (; zeros > 0 && std::gcd<uint64_t>(c, 10) > 1; --zeros) c /= std::gcd<uint64_t>(c, 10);
  const Wide size = power_of_ten(digits);
  y = (c - r % c * (size % c) % c) % c;
  for (int tries = 0; tries < 10 && y < size; ++tries, y += c)
    // y grows by c in each step. After ten steps its last digits repeat.
    if (!nonzero || y % 10 != 0) return true;
  return false;
}

}  // namespace structgen
