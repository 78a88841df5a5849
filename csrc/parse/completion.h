// Shortest completions: what would finish a text from a state.
//
// In: a parser, its productions, a state. Out: a text that completes it, as short as this search proves.
// Cost: proportional to the rules a completion goes through, memoised; computed only when a budget is asked
// for, because it defeats laziness. A rule in progress counts as endless: a shortest derivation never
// contains itself (Knuth 1977).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "parse/state.h"

namespace structgen {

class Completion {
 public:
  Completion(Parser& parser, Productions& productions) : parser_(parser), productions_(productions) {}
  // Empty for an accepting state. Throws kBudgetExceeded where none was found within the search's limits.
  const std::string& of(StateId s);
  std::size_t byte_size() const {  // short texts stand in their nodes
    return (states_.size() + regexes_.size() + stacks_.size() + rules_.size()) * 80;
  }

 private:
  using Text = std::optional<std::string>;
  Text item(const Item& i);
  Text stack(StackId s, CaptureId c);
  Text rule(RuleId r, const Reading& reading);
  Text sequence(std::span<const Symbol> symbols, CaptureId& c);
  Text read(RuleId reader, CaptureId& c);
  void capture(CaptureId& c, std::string_view text);
  Text labelled(RegexId r, RuleId reader);
  const std::string& shortest(RegexId r);
  static void keep(Text& best, Text candidate);

  Parser& parser_;
  Productions& productions_;
  std::unordered_map<uint32_t, std::string> states_, regexes_, stacks_;
  std::unordered_map<uint64_t, std::string> rules_;
  std::unordered_map<uint64_t, uint32_t> open_;  // rules in progress -> depth
  uint32_t low_ = 0xFFFFFFFFu;                   // smallest depth of an open rule that was met
  uint32_t depth_ = 0;
  uint64_t steps_ = 0;
};

}  // namespace structgen
