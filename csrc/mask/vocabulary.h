// The bytes of every token id, the end-of-sequence ids, and the trie over them.
//
// In: one byte string per id (empty = never text: special tokens, holes), EOS ids. Out: an immutable
// object shared by every grammar. Cost: a sort of the tokens; 131k tokens take about 60 ms.
// Duplicate byte strings are legal, tokens may be partial UTF-8.
// A special token has a path in the trie that no text has: the byte 0xFF, which UTF-8 does not use, and its
// id. Only a grammar that names the token can read that path. Tokens with that byte or 0xFE, which UTF-8 does
// not use either (kEdge), are never allowed; nor are very long ones, because a walk of the trie reads them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "mask/token_trie.h"

namespace structgen {

// A token's bit in a row of Vocabulary::words() words.
inline bool has_bit(const uint32_t* row, TokenId t) {
  return row[static_cast<uint32_t>(t) >> 5] >> (t & 31) & 1;
}
inline void set_bit(uint32_t* row, TokenId t) { row[static_cast<uint32_t>(t) >> 5] |= 1u << (t & 31); }
inline void clear_bit(uint32_t* row, TokenId t) { row[static_cast<uint32_t>(t) >> 5] &= ~(1u << (t & 31)); }

class Runs;

class Vocabulary {
 public:
  // Throws kVocabulary when there is no token, or an EOS id is out of range or carries text.
  Vocabulary(const std::vector<std::string_view>& tokens, std::vector<TokenId> eos,
             std::vector<TokenId> special);

  struct Parts {
    std::span<const char> text;
    std::span<const uint32_t> offsets;
    std::span<const TokenId> eos, special;
  };
  // One that was made before, in memory that `keep` holds. Ask sound() before anything else.
  Vocabulary(const Parts& parts, const TokenTrie::Parts& trie, std::shared_ptr<const void> keep);
  ~Vocabulary();
  Parts parts() const { return {text_.all(), offsets_.all(), eos_, special_}; }
  bool sound() const;
  void look_for_bytes();  // once it is sound

  uint32_t size() const { return static_cast<uint32_t>(offsets_.size() - 1); }
  uint32_t words() const { return (size() + 31) / 32; }  // int32 words of a bitmask row
  // Bytes of a token, the path of a special one; empty where it is never read or out of range.
  std::string_view bytes(TokenId t) const {
    if (t < 0 || static_cast<uint32_t>(t) >= size()) return {};
    return {text_.data() + offsets_[t], offsets_[t + 1] - offsets_[t]};
  }
  static std::string special_path(TokenId t);
  const std::vector<TokenId>& eos() const { return eos_; }
  const std::vector<TokenId>& special() const { return special_; }
  bool is_eos(TokenId t) const;
  bool is_special(TokenId t) const;
  uint32_t longest() const { return longest_; }
  // A longer token is never read. Real ones have up to 128 bytes, and a mask walks a token in 0.7 us a byte.
  static constexpr std::size_t kLongestToken = 1024;
  // All tokens of more than kLong bytes are read up to so many bytes together, by id.
  static constexpr std::size_t kLong = 256, kLongTogether = 64u << 10;
  // Whether every byte of UTF-8 is a token: then whatever a grammar asks for can be written.
  bool complete() const { return complete_; }
  std::string missing() const;  // the bytes that are no tokens, in words
  const TokenTrie& trie() const { return trie_; }
  // What is known of runs of characters; thread-safe, and no part of what the vocabulary is.
  Runs& runs() const { return *runs_; }
  std::size_t byte_size() const;

 private:
  std::shared_ptr<const void> keep_;  // the mapped file, where there is one
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
