// The tokens behind which an item or key of JSON may have ended.
//
// In: a vocabulary, and what kind of place a token begins at. Out: whether a token may end an item at such a
// place; for places where few tokens may, these tokens as the non-zero words of a row; the tokens that end a
// string, grouped by the bytes that they add to it. Cost: a look at the tokens that hold a quote or a
// bracket, for each kind of place that is asked for.
//
// For a text whose items must differ, every mask needs the tokens that end an item (engine/distinct.h). In a
// string of an array that compares its items, these are the tokens with a quote: 496 of the 130,072 tokens of
// the tekken vocabulary, with 74 different texts in front of the quote:
//
//     `",`  `"]`  `":`       add nothing: one look-up among the items for all three
//     `a"`  `a",`            add an `a`
//     `"]}`  `\n",`          judged by themselves: they end more than the string, or have an escape
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "base/sorted.h"
#include "mask/runs.h"
#include "mask/vocabulary.h"

namespace structgen {

class ItemEnds {
 public:
  struct Place {
    bool string = false;
    // True if the text stands inside a number or a word (`true`, `false`, `null`).
    bool word = false;
    // True if some open container compares its items.
    bool open = false;
    // True if the innermost container compares its items, and these may be words.
    bool words = false;
    // True if an open container other than the innermost compares its items.
    bool outer = false;
    // True if the items of the innermost container must be texts of a list. A token may then also be refused
    // because it uses up the list's last text.
    bool list = false;
    uint8_t number() const {
      return static_cast<uint8_t>(string | word << 1 | open << 2 | words << 3 | outer << 4 | list << 5);
    }
  };
  // Tells whether the token may end an item. Tokens that only end a string are left to quotes().
  static bool may_end(Place place, std::string_view bytes) {
    if (bytes.empty()) return false;
    if (place.word && place.words) return true;
    if (place.list && (place.string || bytes.find_first_of("\",") != bytes.npos)) return true;
    // No open container compares items. Only a token that opens such a container and writes an item into it
    // can end an item.
    if (!place.open) {
      const std::size_t bracket = bytes.find_first_of("[{");
      if (bracket == bytes.npos || bytes.find(',', bracket) == bytes.npos) return false;
    }
    std::size_t i = 0;
    if (place.string) {
      const std::size_t quote = bytes.find('"');
      if (quote == bytes.npos) return false;
      if (bytes.find('\\') < quote) return true;
      i = quote + 1;
    }
    for (; i < bytes.size(); ++i) {
      const char b = bytes[i];
      if (b == '"') return bytes.find('"', i + 1) != bytes.npos;
      // The first item of a new container repeats no other item. Only a token that goes on to `,`, `]` or `}`
      // can end a later item.
      if (b == '[' || b == '{') return bytes.find_first_of(",]}", i + 1) != bytes.npos;
      if ((b == ']' || b == '}') && place.outer) return true;
      if (place.words && std::string_view("]} \t\n\r,:").find(b) == std::string_view::npos) return true;
    }
    return false;
  }

  // A row with few bits, as pairs: the index of a word and the bits of this word.
  using Bits = std::vector<std::pair<uint32_t, uint32_t>>;
  // The tokens that begin with the bytes `added`, followed by a quote. `added` holds neither a backslash nor
  // a quote.
  struct Quote {
    std::string_view added;
    std::vector<TokenId> tokens;
  };

  explicit ItemEnds(const Vocabulary& vocabulary) : vocabulary_(vocabulary) {}
  static constexpr std::size_t kPlaces = 64;
  // Returns the tokens for which may_end() is true. The place must be in a string, or not in `words`. The
  // caller holds the world's lock.
  const Bits& at(Place place) {
    Bits& out = places_[place.number()];
    if (made_ >> place.number() & 1) return out;
    for (const TokenId t : holding("\"[]{},")) {
      if (!may_end(place, vocabulary_.bytes(t))) continue;
      const uint32_t word = static_cast<uint32_t>(t) >> 5;
      if (out.empty() || out.back().first != word) out.emplace_back(word, 0);
      out.back().second |= 1u << (t & 31);
    }
    made_ |= uint64_t{1} << place.number();
    bytes_ += out.capacity() * sizeof(out[0]);
    return out;
  }
  // Returns the tokens that end a string, grouped by the bytes in front of the quote. The caller holds the
  // world's lock.
  const std::vector<Quote>& quotes() {
    if (!quotes_.empty()) return quotes_;
    std::map<std::string_view, std::vector<TokenId>> by_text;
    for (const TokenId t : holding("\"")) {
      const std::string_view bytes = vocabulary_.bytes(t);
      const std::size_t quote = bytes.find('"');
      if (bytes.find('\\') > quote) by_text[bytes.substr(0, quote)].push_back(t);
    }
    // If no token has a quote, this empty group stands there to say that the search was made.
    by_text.try_emplace({});
    for (auto& [text, tokens] : by_text) {
      bytes_ += sizeof(Quote) + tokens.capacity() * sizeof(TokenId);
      quotes_.push_back({text, std::move(tokens)});
    }
    return quotes_;
  }
  std::size_t byte_size() const { return bytes_; }

 private:
  // Returns the tokens that contain at least one of `bytes`, sorted.
  std::vector<TokenId> holding(std::string_view bytes) const {
    const TokenTrie& trie = vocabulary_.trie();
    std::vector<TokenId> out;
    for (const char b : bytes)
      for (const uint32_t node : vocabulary_.runs().index().of(static_cast<uint8_t>(b))) {
        const auto below = trie.subtree_tokens(node);
        out.insert(out.end(), below.begin(), below.end());
      }
    sort_unique(out);
    return out;
  }

  const Vocabulary& vocabulary_;
  std::array<Bits, kPlaces> places_;
  // One bit for each place, set if places_ holds its tokens.
  uint64_t made_ = 0;
  std::vector<Quote> quotes_;
  std::size_t bytes_ = 0;
};

}  // namespace structgen
