// Upper bounds of shortest completions, in bytes: what tells at once that a budget cannot bind.
//
// In: a state without captured text, a rule, a regex. Out: so many bytes complete it, whatever text was
// captured; kFar where that is not cheaply known. Cost: a look-up for what is known; what is not is put
// together from its parts, each computed once a grammar. No text is made, and a state costs one addition an
// item.
//
// A bound is not the shortest length, which a search would have to find (parse/completion.h): it takes one
// alternative of what is written anyway and the dearest member of an object (Productions::bound).
#pragma once

#include <cstdint>

#include "base/flat_map.h"
#include "parse/completion.h"
#include "parse/productions.h"
#include "parse/state.h"

namespace structgen {

class Lengths {
 public:
  static constexpr uint32_t kFar = 1u << 30;
  // `reach`: bytes of the longest token.
  Lengths(Parser& parser, Productions& productions, Completion& completion, uint32_t reach)
      : parser_(parser), productions_(productions), completion_(completion), reach_(reach) {}
  // Of some text that completes s.
  uint32_t of(StateId s);
  // Of some text of r; of one that completes a text of r of which any one token was read.
  uint32_t regex(RegexId r);
  uint32_t begun(RegexId r);
  // Of r between characters of a string of which any token of whole characters was read that does not end
  // it: some text that completes it. kFar: not told, or not between characters.
  uint32_t characters(RegexId r);
  // Of some text that finishes a stack.
  uint32_t stack(StackId s);
  // Which entry of a stack that has not ended has the least bound.
  std::size_t nearest(StackId s);
  std::size_t byte_size() const {
    return states_.byte_size() + stacks_.byte_size() + rules_.byte_size() + regexes_.byte_size() +
           begun_.byte_size() + left_.byte_size();
  }

 private:
  uint32_t symbol(Symbol s);
  uint32_t rule(RuleId r, bool reader);
  uint32_t search(RuleId r, bool& hard);
  template <class Id>
  uint32_t searched(Id of);
  uint32_t boolean(RegexId r, bool begun);
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
  uint32_t met_open_ = 0;  // rules in progress that were asked for, and those that were given up
  uint32_t depth_ = 0, steps_ = 0;
};

}  // namespace structgen
