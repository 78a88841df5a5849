// The bytes of every token id, the end-of-sequence ids, and the trie over them.
//
// In: one byte string per id (empty for an id that is never text, such as a hole in the numbering), EOS
// ids, ids of special tokens. Out: an immutable object that every grammar shares. Cost: a sort of the
// tokens; 131k tokens take about 60 ms.
//
// Duplicate byte strings are legal, and tokens may be partial UTF-8.
//
// A special token has a path in the trie that no text has: the byte 0xFF, which UTF-8 does not use, and
// the four bytes of its id. Only a grammar that names the token can read that path. A text token with
// that byte or 0xFE, which UTF-8 does not use either (kEdge), is never allowed. Very long tokens are
// never allowed either, because each walk of the trie would read them.
#pragma once

#include <bit>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/told.h"
#include "base/work.h"
#include "mask/token_trie.h"

namespace structgen {

// Tells whether a row of Vocabulary::words() words has the bit of the token.
inline bool has_bit(const uint32_t* row, TokenId t) {
  return row[static_cast<uint32_t>(t) >> 5] >> (t & 31) & 1;
}
inline void set_bit(uint32_t* row, TokenId t) { row[static_cast<uint32_t>(t) >> 5] |= 1u << (t & 31); }
inline void clear_bit(uint32_t* row, TokenId t) { row[static_cast<uint32_t>(t) >> 5] &= ~(1u << (t & 31)); }
// Calls f(token) for the tokens of a row, in ascending order. `f` may remove the token from the row.
template <class F>
void for_each_token(std::span<const uint32_t> row, F&& f) {
  for (uint32_t w = 0; w < row.size(); ++w)
    for (uint32_t bits = row[w]; bits; bits &= bits - 1)
      f(static_cast<TokenId>(w * 32 + static_cast<uint32_t>(std::countr_zero(bits))));
}
// Removes from `row` each token of `asked` for which fits(token) is false or takes too much work. Once the
// work of the call is used up, it removes all tokens that it has not looked at.
template <class F>
void keep_tokens(uint32_t* row, std::span<const uint32_t> asked, F&& fits) {
  bool tired = false;
  for_each_token(asked, [&](TokenId t) {
    if (!has_bit(row, t)) return;
    if (!tired) {
      Told<bool> answer = told([&] { return fits(t); });
      tired = !answer && meter.exhausted();
      if (std::move(answer).value_or(false)) return;
    }
    clear_bit(row, t);
  });
}

class Runs;

class Vocabulary {
 public:
  // Throws kVocabulary if there is no token, or if an EOS or special id is out of range.
  Vocabulary(const std::vector<std::string_view>& tokens, std::vector<TokenId> eos,
             std::vector<TokenId> special);

  // The arrays of a vocabulary, as they are written to a file or mapped from one.
  struct Parts {
    std::span<const char> text;
    std::span<const uint32_t> offsets;
    std::span<const TokenId> eos, special;
  };
  // Takes a vocabulary whose arrays lie in memory that `keep` holds. The caller must call sound() first.
  Vocabulary(const Parts& parts, const TokenTrie::Parts& trie, std::shared_ptr<const void> keep);
  ~Vocabulary();
  Parts parts() const { return {text_.all(), offsets_.all(), eos_, special_}; }
  bool sound() const;
  // Finds the tokens of one byte each. The caller must call sound() first.
  void look_for_bytes();

  uint32_t size() const { return static_cast<uint32_t>(offsets_.size() - 1); }
  uint32_t words() const { return (size() + 31) / 32; }  // int32 words of a bitmask row
  // Returns the bytes of a token, or the special_path() of a special one. A token that is never read, and an
  // id out of range, have none.
  std::string_view bytes(TokenId t) const {
    if (t < 0 || static_cast<uint32_t>(t) >= size()) return {};
    return {text_.data() + offsets_[t], offsets_[t + 1] - offsets_[t]};
  }
  // special_path() begins with this byte, which no text of UTF-8 contains.
  static constexpr uint8_t kSpecialByte = 0xFF;
  static std::string special_path(TokenId t);
  const std::vector<TokenId>& eos() const { return eos_; }
  const std::vector<TokenId>& special() const { return special_; }
  bool is_eos(TokenId t) const;
  bool is_special(TokenId t) const;
  uint32_t longest() const { return longest_; }
  // A token of more bytes than this is never read. Real tokens have up to 128 bytes, and a mask walks a token
  // at 0.7 us a byte.
  static constexpr std::size_t kLongestToken = 1024;
  // Tokens of more than kLong bytes are read in the order of their ids until they have kLongTogether bytes in
  // total; the remaining ones are never read.
  static constexpr std::size_t kLong = 256, kLongTogether = 64u << 10;
  // Tells whether every byte that UTF-8 uses is a token. If so, tokens can write every text of a grammar.
  bool complete() const { return complete_; }
  // Names the bytes that are no tokens, for a message: "the bytes 0x0A, 0x80".
  std::string missing() const;
  const TokenTrie& trie() const { return trie_; }
  // Returns the run classes (mask/runs.h). They are a cache that threads may share, so they may grow although
  // the vocabulary is const.
  Runs& runs() const { return *runs_; }
  std::size_t byte_size() const;

 private:
  std::shared_ptr<const void> keep_;
  Column<char> text_;
  Column<uint32_t> offsets_;
  std::vector<TokenId> eos_;      // sorted
  std::vector<TokenId> special_;  // sorted
  uint32_t longest_ = 0;
  ByteSet single_;  // tokens of one byte
  bool complete_ = false;
  TokenTrie trie_;
  std::unique_ptr<Runs> runs_;
};

}  // namespace structgen
