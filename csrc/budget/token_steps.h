// Steps along many tokens: what a walk knows behind each byte of a token.
//
// In: what is known in front of the tokens, the tokens one after the other, a function that takes a byte.
// Out: what is known behind each token. Cost: a step for each byte with which the token before did not begin;
// so tokens are best taken in the order of the trie.
//
// Example: of the tokens `ab` and `ac` the byte `a` is stepped once.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <iterator>
#include <span>
#include <string_view>
#include <vector>

#include "mask/fill.h"
#include "mask/token_trie.h"
#include "mask/vocabulary.h"
#include "parse/state.h"

namespace structgen {

template <class Behind>
class TokenSteps {
 public:
  explicit TokenSteps(const Behind& first) : behind_{first} {}
  // step(behind, byte) is what is known behind one byte more. Where stops(behind) is true, the rest of the
  // token is not read.
  template <class Step, class Stops>
  const Behind& walk(std::string_view token, Step&& step, Stops&& stops) {
    const auto differ = std::mismatch(token.begin(), token.end(), last_.begin(), last_.end());
    const auto same = static_cast<std::size_t>(differ.first - token.begin());
    behind_.erase(behind_.begin() + static_cast<std::ptrdiff_t>(std::min(same + 1, behind_.size())),
                  behind_.end());
    last_ = token;
    while (behind_.size() <= token.size() && (behind_.size() == 1 || !stops(behind_.back())))
      behind_.push_back(step(behind_.back(), static_cast<uint8_t>(token[behind_.size() - 1])));
    return behind_.back();
  }

 private:
  std::string_view last_;
  // In front of last_, and behind each of its bytes.
  std::vector<Behind> behind_;
};

// The state behind a text; dead() where it cannot be read.
inline StateId read_text(Parser& parser, StateId s, std::string_view text) {
  for (std::size_t i = 0; i < text.size() && s != Parser::dead(); ++i)
    s = parser.step(s, static_cast<uint8_t>(text[i]));
  return s;
}

// Whether a row has more than n tokens.
inline bool more_than(std::span<const uint32_t> row, std::size_t n) {
  std::size_t found = 0;
  for (std::size_t w = 0; w < row.size() && found <= n; ++w)
    if (row[w]) found += static_cast<std::size_t>(std::popcount(row[w]));
  return found > n;
}

// The tokens of a row in the order of the trie.
inline std::vector<TokenId> in_order(const TokenTrie& trie, const uint32_t* row) {
  std::vector<TokenId> out;
  std::ranges::copy_if(trie.parts().order, std::back_inserter(out),
                       [&](TokenId t) { return has_bit(row, t); });
  return out;
}

// Whether the captured text of a state decides everything that follows.
inline bool decided_by_text(const State& s) { return s.poisoned && s.n == 1 && !s.accepting; }

// TokenSteps from a state over its blind states (MaskBuilder::blind), which lack the captured text.
class BlindSteps {
 public:
  // `blind`: the state lacks some captured text.
  struct Behind {
    StateId state;
    bool blind;
  };
  BlindSteps(Parser& parser, MaskBuilder& masks, StateId from)
      : parser_(parser), masks_(masks), steps_({masks.blind(from), masks.blind(from) != from}) {}
  const Behind& walk(std::string_view token) {
    const auto step = [&](const Behind& at, uint8_t b) {
      const StateId next = parser_.step(at.state, b), to = masks_.blind(next);
      return Behind{to, at.blind || to != next};
    };
    return steps_.walk(token, step, [&](const Behind& at) { return stops(at.state); });
  }
  // Whether no token is read beyond the state.
  bool stops(StateId s) const { return s == Parser::dead() || decided_by_text(parser_.state(s)); }

 private:
  Parser& parser_;
  MaskBuilder& masks_;
  TokenSteps<Behind> steps_;
};

}  // namespace structgen
