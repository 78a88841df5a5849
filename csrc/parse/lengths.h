// Upper bounds of shortest completions, in bytes: they tell at once that a budget cannot bind.
//
// In: a state without captured text, a rule, or a regex. Out: a number of bytes that suffices to
// complete it, whatever text was captured; kFar if none is known without effort. Cost: a look-up for
// what is known. A new bound is put together from its parts, each of which is computed once per
// grammar. No text is made, and a state costs one addition per item.
//
// A bound is not the shortest length, for which a search is needed (parse/completion.h). It is the
// length of one alternative of all parts that must be written, and of the longest member of an object
// (Productions::bound).
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

// What holds of a stack by what holds of its entries: join(entry, value of the rest, value so far). Down the
// stack while each level has one entry, and up again; recursion is only used where stacks join. `last`: the
// entries of a stack that may end do not count.
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

// The bounds of one parser.
class Lengths {
 public:
  // No bound is known.
  static constexpr uint32_t kFar = 1u << 30;
  // A sum that stops there.
  static uint32_t sum(uint64_t a, uint64_t b) {
    return static_cast<uint32_t>(std::min<uint64_t>(a + b, kFar));
  }
  // `reach`: bytes of the longest token.
  Lengths(Parser& parser, Productions& productions, Completion& completion, uint32_t reach)
      : parser_(parser), productions_(productions), completion_(completion), reach_(reach) {}
  // A bound for the state s.
  uint32_t of(StateId s);
  // regex(): a bound for r. begun(): a bound for the rest of r after any one token of r.
  uint32_t regex(RegexId r);
  uint32_t begun(RegexId r);
  // A bound for the rest of r after any token of whole characters that does not end the string. r has
  // to stand between two characters of a string. kFar: not known, or r stands elsewhere.
  uint32_t characters(RegexId r);
  // A bound for a symbol, and for a stack.
  uint32_t symbol(Symbol s);
  uint32_t stack(StackId s);
  // regex() of an intersection that has a text of each length from there on, if its characters have one
  // of one byte. kFar: it is another regex.
  uint32_t endless(RegexId r) { return boolean(r, false, true); }
  // The index of the entry of the stack with the least bound; the stack must have entries.
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
  uint32_t longest_denied(RegexId r);
  uint32_t longest_of(const LiteralSet& set) const;

  Parser& parser_;
  Productions& productions_;
  Completion& completion_;
  const uint32_t reach_;
  FlatMap<uint32_t, uint32_t> states_, stacks_, rules_, regexes_, begun_, left_;
  // How often a rule was asked for that was in progress or given up.
  uint32_t met_open_ = 0;
  uint32_t depth_ = 0, steps_ = 0;
};

}  // namespace structgen
