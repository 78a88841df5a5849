#include "engine/distinct.h"

#include <algorithm>
#include <utility>

#include "base/intern.h"
#include "schema/decide/captured.h"
#include "strings/json_spelling.h"

namespace structgen {

namespace {
constexpr uint64_t kSeed = 0xCBF29CE484222325ull;
uint64_t hashed(uint64_t h, char byte) { return (h ^ static_cast<uint8_t>(byte)) * 0x100000001B3ull; }
uint64_t hashed(uint64_t h, std::string_view bytes) {
  for (char b : bytes) h = hashed(h, b);
  return h;
}
uint32_t short_hash(uint64_t h) { return static_cast<uint32_t>(h ^ (h >> 32)); }
std::string canonical(std::string_view json) {
  const bool same = json[0] == '"' ? json.find('\\') == json.npos : json[0] >= 'a' && json[0] <= 'z';
  return same ? std::string(json) : Captured::canonical(json);
}

Distinct::Mode next(Distinct::Mode mode, char byte) {
  if (mode == Distinct::kEscape) return Distinct::kString;
  if (mode == Distinct::kString)
    return byte == '\\' ? Distinct::kEscape : byte == '"' ? Distinct::kBetween : Distinct::kString;
  switch (byte) {
    case '"': return Distinct::kString;
    case '[':
    case '{':
    case ']':
    case '}':
    case ' ':
    case '\t':
    case '\n':
    case '\r':
    case ',':
    case ':': return Distinct::kBetween;
    default: return Distinct::kWord;
  }
}

// Returns what a byte adds to the weight of an item. The weight of a string is its number of UTF-16 code
// units and quotes; the weight of a container counts its opening brackets, commas and colons. All spellings
// of a value therefore have one weight.
uint32_t weight(Distinct::Mode mode, char byte) {
  if (mode == Distinct::kEscape) return byte == 'u' ? -4u : 0;  // four digits follow
  if (mode == Distinct::kString)
    return (byte & 0xC0) == 0x80 ? 0 : static_cast<uint8_t>(byte) >= 0xF0 ? 2 : 1;
  return byte == '"' || byte == '[' || byte == '{' || byte == ',' || byte == ':';
}

// From this weight on, an item is written out as a canonical text only if an item of the same weight stands
// in the array. Lighter items are always compared.
constexpr uint32_t kHeavy = 32;
}  // namespace

std::string_view Distinct::json(const Item& item) const {
  const bool word = next(kBetween, text_[item.begin]) == kWord;
  return std::string_view(text_).substr(item.begin, item.at - word - item.begin);
}

std::size_t Distinct::slot(uint32_t array, uint32_t hash) const {
  return mix(hash, array) & (slots_.size() - 1);
}

template <class Same>
bool Distinct::member(uint32_t array, uint32_t hash, Same&& same) {
  enter();
  if (slots_.empty()) return false;
  for (std::size_t i = slot(array, hash); slots_[i] != 0; i = (i + 1) & (slots_.size() - 1))
    if (const Item& item = items_[slots_[i] - 1]; item.hash == hash && item.array == array && same(item))
      return true;
  return false;
}

bool Distinct::fresh(std::string_view json) {
  const std::string value = canonical(json);
  return !member(inner(), short_hash(hashed(kSeed, value)),
                 [&](const Item& item) { return canonical(this->json(item)) == value; });
}

bool Distinct::compares() const { return inner() != kNone && arrays_[inner()].items > 0; }

// Enters into the hash table all items that are not in it yet. The items are entered only when a question
// needs the table: a token that is only tried may end an item, and most such items are taken back at once.
void Distinct::enter() {
  const auto put = [&](uint32_t item) {
    std::size_t i = slot(items_[item].array, items_[item].hash);
    while (slots_[i] != 0) i = (i + 1) & (slots_.size() - 1);
    slots_[i] = item + 1;
  };
  for (; entered_ < items_.size(); ++entered_) {
    items_[entered_].hash = short_hash(hashed(kSeed, canonical(json(items_[entered_]))));
    if (2 * entered_ >= slots_.size()) {
      std::vector<uint32_t>(std::max<std::size_t>(16, 2 * slots_.size())).swap(slots_);
      for (uint32_t i = 0; i < entered_; ++i) put(i);
    }
    put(entered_);
  }
}

uint32_t Distinct::number(const List& list) {
  const auto known = std::ranges::find_if(lists_, [&](const List& l) {
    return l.table == list.table && l.allowed.data() == list.allowed.data();
  });
  const auto at = static_cast<uint32_t>(known - lists_.begin());
  if (known == lists_.end()) lists_.push_back(list);
  return at + 1;
}

std::size_t Distinct::text_number(const Item& item) const {
  const std::string text = from_json_body(canonical(json(item)).substr(1));
  const std::vector<std::string>& texts = lists_[arrays_[item.array].list - 1].table->texts;
  return static_cast<std::size_t>(std::ranges::lower_bound(texts, text) - texts.begin());
}

// Sets the bits of marked_ for the items of the innermost array. Its items are strings and contain no arrays,
// so they are the last elements of items_.
void Distinct::mark() {
  if (marked_of_ != inner()) {
    marked_.assign(list()->table->texts.size() / 64 + 1, 0);
    marked_of_ = inner();
    marks_ = static_cast<uint32_t>(items_.size()) - arrays_[inner()].items;
  }
  for (; marks_ < items_.size(); ++marks_) {
    const std::size_t n = text_number(items_[marks_]);
    marked_[n / 64] |= uint64_t{1} << (n % 64);
  }
}

bool Distinct::at_key() const {
  if (text_.back() != '"') return false;
  const std::size_t before = text_.find_last_not_of(" \t\n\r", text_.size() - 2);
  return text_[before] == '{' || text_[before] == ',';
}

void Distinct::begin() {
  if (inner() == kNone || (in_object() && !at_key())) return;
  arrays_[inner()].begin = static_cast<uint32_t>(text_.size() - 1);
  arrays_[inner()].weight = weight_ - weight(kBetween, text_.back());
}

// Ends the item that is being read; it stands in front of offset `at`, where the text has the weight
// `weight`. Returns false if the item repeats an earlier item.
bool Distinct::end(std::size_t at, uint32_t weight) {
  const uint32_t of = inner();
  if (of == kNone) return true;
  Array& array = arrays_[of];
  if (array.begin == kNone) return true;
  weight -= array.weight;
  const uint64_t kind = uint64_t{of} << 32 | weight;
  if (weight < kHeavy || alike_.contains(kind)) {
    const bool known = at == judged_;
    const bool fresh =
        known ? judged_fresh_ : this->fresh(std::string_view(text_).substr(array.begin, at - array.begin));
    if (!known && at <= cut_) {
      judged_ = at;
      judged_fresh_ = fresh;
    }
    if (!fresh) return false;
  }
  uint32_t* const alike = weight >= kHeavy ? &alike_[kind] : nullptr;
  items_.push_back({of, array.begin, static_cast<uint32_t>(text_.size()), array.weight, weight, 0});
  if (alike) ++*alike;
  array.begin = kNone;
  ++array.items;
  return true;
}

// Whatever may throw is done first, because cut() cannot take back half a change.
bool Distinct::read(char byte, Kind kind, uint32_t more, uint32_t list) {
  text_ += byte;
  const Mode before = std::exchange(mode_, next(mode_, byte));
  const uint32_t weighed = weight_;
  weight_ += weight(before, byte);
  const auto size = static_cast<uint32_t>(text_.size());
  if (before == kString || before == kEscape) return mode_ != kBetween || end(size, weight_);
  const bool fresh = before != kWord || mode_ == kWord || end(size - 1, weighed);
  if (mode_ == kString || (mode_ == kWord && before != kWord)) begin();
  if (byte == '[' || byte == '{') {
    begin();
    if (kind == kDistinct) arrays_.push_back({kNone, 0, 0, byte == '{', list});
    open_.push_back({size, kind == kDistinct ? static_cast<uint32_t>(arrays_.size() - 1) : kNone,
                     std::max(more, static_cast<uint32_t>(this->more()))});
    distinct_ += kind == kDistinct;
  } else if ((byte == ']' || byte == '}') && !open_.empty()) {
    distinct_ -= inner() != kNone;
    closed_.push_back({size, open_.back()});
    open_.pop_back();
    return end(size, weight_) && fresh;
  }
  return fresh;
}

void Distinct::cut(std::size_t size, Mode mode) {
  mode_ = mode;
  cut_ = size;
  if (judged_ != kNone && judged_ > size) judged_ = kNone;
  if (size == text_.size()) return;
  for (std::size_t i = size; i < text_.size(); mode = next(mode, text_[i++]))
    weight_ -= weight(mode, text_[i]);
  if (hashed_ > size) hashed_from_ = kNone;
  for (; !items_.empty() && items_.back().at > size; items_.pop_back()) {
    const Item& item = items_.back();
    if (marked_of_ == item.array && marks_ == items_.size()) {
      const std::size_t n = text_number(item);
      marked_[n / 64] &= ~(uint64_t{1} << (n % 64));
      --marks_;
    }
    if (entered_ == items_.size()) {
      std::size_t i = slot(item.array, item.hash);
      while (slots_[i] != entered_) i = (i + 1) & (slots_.size() - 1);
      slots_[i] = 0;
      --entered_;
    }
    if (item.weight >= kHeavy) {
      const auto alike = alike_.find(uint64_t{item.array} << 32 | item.weight);
      if (--alike->second == 0) alike_.erase(alike);
    }
    arrays_[item.array].begin = item.begin;
    arrays_[item.array].weight = item.before;
    --arrays_[item.array].items;
  }
  text_.resize(size);
  for (;;) {
    // If the cut takes back the beginning of an item, the array has no item under way.
    if (inner() != kNone && arrays_[inner()].begin >= size) arrays_[inner()].begin = kNone;
    const uint32_t opened = open_.empty() ? 0 : open_.back().at;
    if (!closed_.empty() && closed_.back().at > std::max<std::size_t>(size, opened)) {
      open_.push_back(closed_.back().container);
      closed_.pop_back();
      distinct_ += inner() != kNone;
    } else if (opened > size) {
      if (inner() != kNone) {
        --distinct_;
        if (marked_of_ == inner()) marked_of_ = kNone;
        arrays_.pop_back();
      }
      open_.pop_back();
    } else {
      break;
    }
  }
}

std::string_view Distinct::word() const {
  if (mode_ != kWord || inner() == kNone || in_object()) return {};
  return std::string_view(text_).substr(arrays_[inner()].begin);
}

bool Distinct::may_repeat(std::string_view bytes) {
  if (mode_ == kEscape) return true;
  const uint32_t begin = arrays_[inner()].begin;
  if (hashed_from_ != begin) {
    hashed_from_ = hashed_ = begin;
    hash_ = kSeed;
    escaped_ = false;
  }
  if (escaped_) return true;
  const std::string_view more = std::string_view(text_).substr(hashed_);
  escaped_ = more.find('\\') != more.npos;
  hash_ = hashed(hash_, more);
  hashed_ = static_cast<uint32_t>(text_.size());
  return escaped_ ||
         member(inner(), short_hash(hashed(hashed(hash_, bytes), '"')), [](const Item&) { return true; });
}

}  // namespace structgen
