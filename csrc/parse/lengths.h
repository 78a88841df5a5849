// Upper bounds in bytes of shortest completions. Such a bound often shows at once that a budget is large
// enough for every token of a mask.
//
// In: a state without captured text, a symbol, a set of stacks, or a regex. Out: a bound n: some text of at
// most n bytes completes what was given, whatever text was captured; kFar if no such n is found with little
// work. Cost: a look-up for a known bound; a new bound is put together from its parts, each of which is
// computed once a grammar. No text is made, and a state costs one addition for each item.
//
// Example: behind `{"name":"Ada",` in an object that still requires `"age"`, an integer, the bound is 8
// bytes: `"age":` (6), one digit (1), `}` (1). One token a byte and the end token are at most 9 tokens.
//
// A bound need not be the exact length, for which a search is needed (parse/completion.h). For each part that
// must be written, the bound counts the length of one alternative; for the members of an object it counts the
// longest member (Productions::bound).
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/depth.h"
#include "base/flat_map.h"
#include "base/work.h"
#include "parse/completion.h"
#include "parse/productions.h"
#include "parse/state.h"

namespace structgen {

// Computes a value for a set of stacks from the values of the sets below. The value starts from `none`, or
// from `end` if the set has the empty stack. join(entry, value of the stacks below the entry, value so far)
// adds an entry. With `last`, the value of a set that has the empty stack is `end`, whatever its entries are.
// Sets with one entry are followed in a loop, so that deep stacks need no recursion. `memo` keeps the values.
template <class Value, class Join>
Value along(const StackArena& stacks, FlatMap<uint32_t, Value>& memo, StackId s, Value none, Value end,
            bool last, const Join& join) {
  check_depth();
  std::vector<StackId> path;
  Value out = none;
  for (;;) {
    const bool ends = stacks.has_end(s);
    if (ends && last) {
      out = end;
      break;
    }
    if (const Value* known = memo.find(s.v)) {
      out = *known;
      break;
    }
    const auto entries = stacks.entries(s);
    if (ends || entries.size() != 1) {
      if (ends) out = end;
      charge(4 + 2 * static_cast<int64_t>(entries.size()));
      for (const StackEntry& e : entries) join(e, along(stacks, memo, e.rest, none, end, last, join), out);
      memo.emplace(s.v, out);
      break;
    }
    path.push_back(s);
    s = entries[0].rest;
  }
  for (; !path.empty(); path.pop_back()) {
    if (path.size() % 8 == 0) charge();
    const Value rest = std::exchange(out, none);
    join(stacks.entries(path.back())[0], rest, out);
    memo.emplace(path.back().v, out);
  }
  return out;
}

class Lengths {
 public:
  // No bound is known. Known bounds are numbers of bytes and smaller.
  static constexpr uint32_t kFar = 1u << 30;
  static uint32_t sum(uint64_t a, uint64_t b) {
    return static_cast<uint32_t>(std::min<uint64_t>(a + b, kFar));
  }
  // `reach` is the length in bytes of the longest token.
  Lengths(Parser& parser, Productions& productions, Completion& completion, uint32_t reach)
      : parser_(parser), productions_(productions), completion_(completion), reach_(reach) {}
  // Returns an upper bound of the bytes that complete the state s.
  uint32_t of(StateId s);
  // regex() returns an upper bound of the bytes of r's shortest text. begun() returns an upper bound of the
  // bytes that complete a text of r behind a token, whatever beginning of the text the token read.
  uint32_t regex(RegexId r);
  uint32_t begun(RegexId r);
  // Returns an upper bound of the bytes that complete r behind a token of whole characters which does not end
  // the string. Returns kFar if none is known, or if r does not stand between two characters of a string.
  uint32_t characters(RegexId r);
  // Return an upper bound of the bytes of the shortest text of a symbol, or of a set of stacks.
  uint32_t symbol(Symbol s);
  uint32_t stack(StackId s);
  // Returns regex(r) if r is an intersection that has a text of every length from regex(r) bytes on. An
  // intersection has such texts if it may go on with characters of one byte. Returns kFar for every other
  // regex.
  uint32_t endless(RegexId r) { return boolean(r, false, true); }
  // Returns the index of the set's entry with the smallest bound; the set must have entries.
  std::size_t nearest(StackId s);
  std::size_t byte_size() const {
    return states_.byte_size() + stacks_.byte_size() + rules_.byte_size() + regexes_.byte_size() +
           begun_.byte_size() + left_.byte_size();
  }

 private:
  uint32_t rule(RuleId r, bool reader);
  uint32_t search(RuleId r, bool& hard);
  template <class Id>
  uint32_t searched(Id of);
  uint32_t boolean(RegexId r, bool begun, bool endless = false);
  uint32_t behind_any(RegexId r);
  uint32_t left(RegexId r);
  bool is_run(RegexId r) const;
  bool is_length(RegexId r) const;
  uint32_t longest(RegexId r);
  // Upper bounds for finitely many texts. `longest` bounds the characters of each text. 2^`bits` bounds the
  // number of those texts that consist of characters of one byte.
  struct Denied {
    uint32_t longest = 0;
    double bits = 0;
  };
  Denied denied(RegexId r);
  double bits(RegexId r) const;
  ByteSet singles(RegexId r) const;
  uint32_t longest_of(const LiteralSet& set) const;

  Parser& parser_;
  Productions& productions_;
  Completion& completion_;
  const uint32_t reach_;
  FlatMap<uint32_t, uint32_t> states_, stacks_, rules_, regexes_, begun_, left_;
  // Counts the bounds that came out as kFar only because a rule was still being computed, or because of
  // kSteps.
  uint32_t met_open_ = 0;
  uint32_t depth_ = 0, steps_ = 0;
};

}  // namespace structgen
