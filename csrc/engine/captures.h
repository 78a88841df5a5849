// The named parts of the text that one sequence has read.
//
// In: the text with the ends of its steps, the grammar, and a parser's epoch where the grammar has
// rules. Out: the parts in bytes, tokens and text. Cost: see parse/spans.h and regex/groups.h; linear
// for the rest. Special tokens stand in the text as their paths in the trie: they count as steps and
// not as bytes.
//
// Example: the regex (?P<year>[0-9]+)-(?P<month>[0-9]+), read as the tokens `20`, `24-`, `05`: year is
// bytes 0 to 4 and tokens 0 to 2, month is bytes 5 to 7 and tokens 2 to 3.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/grammar.h"
#include "parse/spans.h"

namespace structgen {

// A special token has no text. It is read as a sequence of bytes that no text contains (its path).
// kSpecialMark is the first byte of this path.
constexpr char kSpecialMark = static_cast<char>(0xFF);

struct Capture {
  std::string name;
  // The span in bytes of the text; `end` is the offset behind the last byte.
  std::size_t begin, end;
  // The span in steps of the sequence; `last_token` is the first step behind the span.
  std::size_t first_token, last_token;
  std::string text;
};

class Captures {
 public:
  // `ends` holds the offset in `text` at which each step ended, and `tokens` the token of each step, -1 for
  // bytes. Both must outlive the object.
  Captures(const Grammar& grammar, std::string_view text, std::span<const std::size_t> ends,
           std::span<const TokenId> tokens, bool complete)
      : grammar_(grammar), text_(text), ends_(ends), tokens_(tokens), complete_(complete) {}

  // Returns the number of bytes that spans() will parse. If the text fills a hole, they include the prefix
  // and the suffix.
  std::size_t length() const;
  // Returns true if spans() reads the states of the grammar's epoch. The caller must then hold the world's
  // lock and pass the epoch.
  bool needs_epoch() const { return !grammar_.around() && !grammar_.groups(); }
  std::vector<Span> spans(Epoch* epoch) const;
  std::vector<Capture> of(std::span<const Span> spans) const;

 private:
  std::vector<Span> around(const Grammar::Around& around) const;
  std::vector<Span> parsed(Epoch& epoch) const;

  const Grammar& grammar_;
  const std::string_view text_;
  const std::span<const std::size_t> ends_;
  const std::span<const TokenId> tokens_;
  const bool complete_;
};

}  // namespace structgen
