// The named parts of what one sequence has read.
//
// In: the text with the borders of its steps, the grammar, and a parser's epoch where the grammar has rules.
// Out: parts in bytes, tokens and text. Cost: see parse/spans.h and regex/groups.h; linear for the rest.
// Special tokens stand in the text as their paths in the trie: they count as steps and not as bytes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/grammar.h"
#include "parse/spans.h"

namespace structgen {

constexpr char kSpecialMark =
    static_cast<char>(0xFF);  // begins the paths of special tokens, which are no text

struct Capture {
  std::string name;
  std::size_t begin, end;               // bytes
  std::size_t first_token, last_token;  // behind the last one
  std::string text;
};

// What a sequence has read; the text is complete or may go on.
class Captures {
 public:
  // `ends`: where each step ended in `text`; `tokens`: those of the steps, -1 for bytes. They are not copied.
  Captures(const Grammar& grammar, std::string_view text, std::span<const std::size_t> ends,
           std::span<const TokenId> tokens, bool complete)
      : grammar_(grammar), text_(text), ends_(ends), tokens_(tokens), complete_(complete) {}

  std::size_t length() const;  // bytes that are parsed: of a middle, with what stands around it
  // Whether spans() reads the grammar's own states: under the world's lock, of an epoch made ready.
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
