#include "mask/vocabulary.h"

#include <algorithm>

#include "base/error.h"
#include "base/sorted.h"
#include "mask/runs.h"
#include "parse/productions.h"

namespace structgen {

namespace {
// From this many tokens on, a vocabulary makes the runs of JSON strings at once; for 131,072 tokens this
// takes 3 ms. A smaller one makes them for the first mask inside a string.
constexpr uint32_t kLargeVocabulary = 1u << 16;
// Tokens with one of these bytes are never read. No UTF-8 has them: kEdge stands between two tokens, and
// kSpecialByte begins the path of a special token. The 0 ends the list.
constexpr char kReservedBytes[] = {static_cast<char>(kEdge), static_cast<char>(Vocabulary::kSpecialByte), 0};
}  // namespace

std::string Vocabulary::special_path(TokenId t) {
  const uint32_t n = static_cast<uint32_t>(t);
  return {static_cast<char>(kSpecialByte), static_cast<char>(n >> 24), static_cast<char>(n >> 16),
          static_cast<char>(n >> 8), static_cast<char>(n)};
}

Vocabulary::Vocabulary(const std::vector<std::string_view>& tokens, std::vector<TokenId> eos,
                       std::vector<TokenId> special)
    : eos_(std::move(eos)), special_(std::move(special)), runs_(std::make_unique<Runs>(*this)) {
  if (tokens.empty()) throw Error(ErrorKind::kVocabulary, "the vocabulary is empty");
  if (tokens.size() > 100'000'000) throw Error(ErrorKind::kVocabulary, "the vocabulary has too many ids");
  sort_unique(eos_);
  std::sort(special_.begin(), special_.end());
  for (const std::vector<TokenId>* ids : {&eos_, &special_})
    for (TokenId t : *ids)
      if (t < 0 || static_cast<std::size_t>(t) >= tokens.size())
        throw Error(ErrorKind::kVocabulary, "token id " + std::to_string(t) +
                                                " is outside the vocabulary of " +
                                                std::to_string(tokens.size()) + " ids");
  std::size_t total = 0;
  for (const auto& t : tokens) total += t.size() <= kLongestToken ? t.size() : 0;
  total += 5 * special_.size();
  if (total > 0xF0000000ull) throw Error(ErrorKind::kVocabulary, "the vocabulary's text exceeds 4 GB");
  std::vector<char> text;
  std::vector<uint32_t> offsets;
  text.reserve(total);
  offsets.reserve(tokens.size() + 1);
  std::vector<std::pair<std::string_view, TokenId>> entries;
  entries.reserve(tokens.size());
  std::size_t long_text = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    offsets.push_back(static_cast<uint32_t>(text.size()));
    const TokenId id = static_cast<TokenId>(i);
    // No grammar reads an EOS token as text, so it has no bytes.
    if (is_eos(id)) continue;
    if (is_special(id)) {
      const std::string path = special_path(id);
      text.insert(text.end(), path.begin(), path.end());
    } else if (tokens[i].size() <= kLongestToken &&
               tokens[i].find_first_of(kReservedBytes) == std::string_view::npos) {
      // Once the long tokens together exceed kLongTogether, no further long token is read.
      if (tokens[i].size() > kLong && (long_text += tokens[i].size()) > kLongTogether) continue;
      text.insert(text.end(), tokens[i].begin(), tokens[i].end());
    }
    longest_ = std::max(longest_, static_cast<uint32_t>(text.size() - offsets.back()));
  }
  offsets.push_back(static_cast<uint32_t>(text.size()));
  text_.own(std::move(text));
  offsets_.own(std::move(offsets));
  for (uint32_t i = 0; i < size(); ++i)
    if (const auto b = bytes(static_cast<TokenId>(i)); !b.empty())
      entries.emplace_back(b, static_cast<TokenId>(i));
  trie_.build(std::move(entries));
  look_for_bytes();
}

namespace {
// Tells whether UTF-8 uses the byte: 0xC0, 0xC1 and the bytes above 0xF4 are in no text (RFC 3629).
bool in_texts(int b) { return b <= 0xF4 && b != 0xC0 && b != 0xC1; }
}  // namespace

void Vocabulary::look_for_bytes() {
  if (trie_.leaf(0)) return;
  const TokenTrie::Kids& kids = trie_.kids(0);
  kids.set.for_each([&](uint8_t b) {
    if (!trie_.tokens(trie_.child(kids, b)).empty()) single_.add(b);
  });
  complete_ = true;
  for (int b = 0; b < 256; ++b)
    complete_ = complete_ && (!in_texts(b) || single_.has(static_cast<uint8_t>(b)));
  if (size() >= kLargeVocabulary) runs_->prepare();
}

std::string Vocabulary::missing() const {
  static const char* hex = "0123456789ABCDEF";
  std::string out;
  int n = 0;
  for (int b = 0; b < 256; ++b) {
    if (!in_texts(b) || single_.has(static_cast<uint8_t>(b)) || ++n > 4) continue;
    if (n > 1) out += ", ";
    out += {'0', 'x', hex[b >> 4], hex[b & 15]};
  }
  return (n == 1 ? "the byte " : "the bytes ") + out +
         (n > 4 ? " and " + std::to_string(n - 4) + " more" : "");
}

Vocabulary::Vocabulary(const Parts& parts, const TokenTrie::Parts& trie, std::shared_ptr<const void> keep)
    : keep_(std::move(keep)),
      eos_(parts.eos.begin(), parts.eos.end()),
      special_(parts.special.begin(), parts.special.end()),
      runs_(std::make_unique<Runs>(*this)) {
  text_.view(parts.text);
  offsets_.view(parts.offsets);
  trie_.view(trie);
  for (std::size_t i = 1; i < offsets_.size(); ++i)
    if (offsets_[i] > offsets_[i - 1]) longest_ = std::max(longest_, offsets_[i] - offsets_[i - 1]);
}

Vocabulary::~Vocabulary() = default;

bool Vocabulary::sound() const {
  if (offsets_.size() < 2 || offsets_.size() > 100'000'001 || offsets_[0] != 0) return false;
  for (std::size_t i = 1; i < offsets_.size(); ++i)
    if (offsets_[i] < offsets_[i - 1]) return false;
  if (offsets_[size()] != text_.size() || eos_.empty()) return false;
  for (const std::vector<TokenId>* ids : {&eos_, &special_}) {
    if (!std::is_sorted(ids->begin(), ids->end())) return false;
    for (TokenId t : *ids)
      if (t < 0 || static_cast<uint32_t>(t) >= size()) return false;
  }
  return longest_ <= kLongestToken && trie_.sound(size(), longest_);
}

bool Vocabulary::is_eos(TokenId t) const { return std::binary_search(eos_.begin(), eos_.end(), t); }
bool Vocabulary::is_special(TokenId t) const {
  return std::binary_search(special_.begin(), special_.end(), t);
}

std::size_t Vocabulary::byte_size() const {
  return text_.byte_size() + offsets_.byte_size() + trie_.byte_size() + runs_->byte_size();
}

}  // namespace structgen
