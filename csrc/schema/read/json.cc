// Parses JSON text into a tree of nodes; json.h has the form of the tree.
//
// The problem. A schema may be megabytes long and nested a million levels deep, it may be written by an
// attacker, and its numbers must keep every digit.
//
// The idea. One pass over a copy of the text without recursion: open_ is the stack of containers that are
// not closed, and elements_ holds their finished elements. A scalar is a range of the copy (`1e400` stays
// `1e400`). An escape is decoded in place, because no character is longer than its escape. A closed container
// gets a range of children_:
//
//     {"a": [1, 2]}    nodes 0 object, 1 the key `a`, 2 array, 3 `1`, 4 `2`; the array's children are 3
//                      and 4, and the object's child is 2, with key 1
//
// Invariants. A node has a number before its children do, so parents come first. Of equal keys the last key
// counts. Every error names the byte at which the parser stands.
#include "schema/read/json.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "base/error.h"
#include "base/utf8.h"
#include "base/work.h"

namespace structgen {

namespace {
// An object of at least this many members gets a hash table for find(). Most objects of a schema have fewer
// than ten, and comparing ten names is faster than a hash.
constexpr uint32_t kIndexFrom = 24;
}  // namespace

JsonRef Json::find(JsonRef object, std::string_view key) const {
  const Node& n = nodes_[object];
  if (n.type != JsonType::kObject) return kNoJson;
  if (n.n < kIndexFrom) {
    for (uint32_t i = 0; i < n.n; ++i)
      if (this->key(object, i) == key) return item(object, i);
    return kNoJson;
  }
  auto& index = index_[object];
  if (index.empty())
    for (uint32_t i = 0; i < n.n; ++i) index.emplace(this->key(object, i), item(object, i));
  const auto it = index.find(key);
  return it == index.end() ? kNoJson : it->second;
}

// Builds one Json. It does not recurse: open_ is the stack of containers that are not closed, and elements_
// holds the finished elements of all these containers, those of the innermost container last.
//
// For `{"a": [1, 2]}`, just before `]` is read: open_ = {object, array}, keys_ = {"a"}, elements_ = {1, 2}.
// close() then moves 1 and 2 into the array's range of children_, and the array becomes an element of the
// object.
class JsonParser {
 public:
  explicit JsonParser(std::string_view text) : size_(text.size()) {
    if (text.size() > 0x7FFFFFFF) fail("the document exceeds 2 GB");
    out_.text_ = text;
    in_ = out_.text_.data();
  }

  Json run() {
    if (rest().starts_with("\xEF\xBB\xBF")) at_ = 3;
    const std::size_t scale = std::min<std::size_t>(size_, 1u << 20);
    out_.nodes_.reserve(scale / 16 + 8);
    out_.children_.reserve(scale / 32 + 8);
    out_.keys_.reserve(scale / 32 + 8);
    elements_.reserve(64);
    open_.reserve(16);
    keys_.reserve(16);
    space();
    JsonRef done = kNoJson;
    while (true) {
      if (done == kNoJson) done = value();
      space();
      if (open_.empty()) break;
      // value() has opened a container, whose first element comes next.
      if (done == kNoJson) continue;
      done = after_element(done);
    }
    if (at_ != size_) fail("unexpected text after the JSON value");
    return std::move(out_);
  }

 private:
  // A container that is not closed yet. Its elements begin at elements_[begin]; they end where those of the
  // next container in open_ begin.
  struct Open {
    JsonRef node;
    uint32_t begin;
  };
  struct Element {
    JsonRef key, value;
  };

  // Throws an error that names the offset at which the parser stands.
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(ErrorKind::kGrammar, "invalid JSON: " + what).at(static_cast<int64_t>(at_));
  }
  void space() {
    while (in_[at_] == ' ' || in_[at_] == '\n' || in_[at_] == '\t' || in_[at_] == '\r') ++at_;
  }
  // std::string puts a NUL behind the text, so no test for the end is needed.
  char peek() const { return in_[at_]; }
  std::string_view rest() const { return {in_ + at_, size_ - at_}; }
  // Appends a node. Reading 16 bytes of text costs one unit of work. The units are charged here, 1 KB of text
  // at a time, because every document consists of nodes.
  JsonRef add(JsonType type, uint32_t begin = 0, uint32_t n = 0) {
    if (at_ >= charged_ + 1024) {
      charge(static_cast<int64_t>((at_ - charged_) / 16));
      charged_ = at_;
    }
    out_.nodes_.push_back({type, begin, n});
    return static_cast<JsonRef>(out_.nodes_.size() - 1);
  }

  // Reads a scalar and returns its node, or opens a container. For a container with elements it returns
  // kNoJson; `{}` and `[]` are complete at once.
  JsonRef value() {
    switch (peek()) {
      case '{': return open(JsonType::kObject, '}');
      case '[': return open(JsonType::kArray, ']');
      case '"': return string();
      case 't': return word("true", JsonType::kTrue);
      case 'f': return word("false", JsonType::kFalse);
      case 'n': return word("null", JsonType::kNull);
      default: return number();
    }
  }
  // Opens a container. The first key of an object is read here, so that value() reads values only.
  JsonRef open(JsonType type, char close) {
    ++at_;
    const JsonRef node = add(type);
    space();
    if (peek() == close) {
      ++at_;
      return node;
    }
    open_.push_back({node, static_cast<uint32_t>(elements_.size())});
    if (type == JsonType::kObject) member_key();
    return kNoJson;
  }
  // Reads a key and the colon behind it. The key stays in keys_ until its value is complete.
  void member_key() {
    space();
    if (peek() != '"') fail("expected a member name in double quotes");
    keys_.push_back(string());
    space();
    if (peek() != ':') fail("expected ':' after a member name");
    ++at_;
    space();
  }
  // Adds a complete value to the innermost container, and reads the comma or the closing bracket behind it.
  // Returns the container if this closed it, because it is now a complete value itself; otherwise kNoJson.
  JsonRef after_element(JsonRef element) {
    const bool object = out_.nodes_[open_.back().node].type == JsonType::kObject;
    elements_.push_back({object ? keys_.back() : kNoJson, element});
    if (object) keys_.pop_back();
    const char c = peek();
    if (c == ',') {
      ++at_;
      space();
      if (object) member_key();
      return kNoJson;
    }
    if (c != (object ? '}' : ']')) fail(object ? "expected ',' or '}'" : "expected ',' or ']'");
    ++at_;
    return close();
  }
  // Moves the elements of the innermost container from elements_ to its range of children_ and keys_. They
  // lie side by side, because every container inside it has already moved its own.
  JsonRef close() {
    const Open o = open_.back();
    open_.pop_back();
    Json::Node& n = out_.nodes_[o.node];
    if (n.type == JsonType::kObject) drop_duplicates(o.begin);
    n.begin = static_cast<uint32_t>(out_.children_.size());
    n.n = static_cast<uint32_t>(elements_.size()) - o.begin;
    for (std::size_t i = o.begin; i < elements_.size(); ++i) {
      out_.children_.push_back(elements_[i].value);
      out_.keys_.push_back(elements_[i].key);
    }
    elements_.resize(o.begin);
    return o.node;
  }
  // Removes members of the innermost object whose key occurs again behind them: `{"a": 1, "b": 2, "a": 3}`
  // keeps `b` and the last `a`, in this order. The keys of a small object are compared pairwise, which needs
  // no memory. A large one needs a hash table: hostile schemas have objects with a million keys.
  void drop_duplicates(std::size_t begin) {
    const std::span<Element> all(elements_.begin() + static_cast<std::ptrdiff_t>(begin), elements_.end());
    bool twice = false;
    if (all.size() < 8) {
      for (std::size_t i = 0; i < all.size() && !twice; ++i)
        for (std::size_t j = i + 1; j < all.size() && !twice; ++j)
          twice = out_.text(all[i].key) == out_.text(all[j].key);
      if (!twice) return;
    }
    std::unordered_map<std::string_view, std::size_t> last;
    for (std::size_t i = 0; i < all.size(); ++i) {
      auto [it, fresh] = last.try_emplace(out_.text(all[i].key), i);
      if (!fresh) {
        twice = true;
        it->second = i;
      }
    }
    if (!twice) return;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < all.size(); ++i)
      if (last[out_.text(all[i].key)] == i) all[kept++] = all[i];
    elements_.resize(begin + kept);
  }
  // Reads `true`, `false` or `null`. An error points at the beginning of the word.
  JsonRef word(std::string_view w, JsonType type) {
    if (!rest().starts_with(w)) fail("unexpected text");
    at_ += w.size();
    return add(type);
  }
  // Reads a number by the grammar of RFC 8259, which has no `+1`, `.5`, `1.` or `01`. After a leading
  // `0` only a fraction or an exponent may follow; in `01` the number ends before the `1`, and the
  // caller reports the `1`.
  JsonRef number() {
    const std::size_t begin = at_;
    const auto digits = [&] {
      const std::size_t from = at_;
      while (peek() >= '0' && peek() <= '9') ++at_;
      if (at_ == from)
        fail(from == begin ? (at_ == size_ ? "the text ends early" : "unexpected character")
                           : "expected a digit");
    };
    if (peek() == '-') ++at_;
    if (peek() == '0')
      ++at_;
    else
      digits();
    if (peek() == '.') {
      ++at_;
      digits();
    }
    if (peek() == 'e' || peek() == 'E') {
      ++at_;
      if (peek() == '+' || peek() == '-') ++at_;
      digits();
    }
    return add(JsonType::kNumber, static_cast<uint32_t>(begin), static_cast<uint32_t>(at_ - begin));
  }
  // Reads a string and decodes it in place. The bytes before the first escape stay where they are; those
  // behind it move to the front, to `to`. Bytes above 0x7F are not checked here.
  JsonRef string() {
    const std::size_t begin = ++at_;
    run_of_characters();
    std::size_t to = at_;
    while (in_[at_] == '\\') {
      to += escape(in_ + to);
      const std::size_t from = at_;
      run_of_characters();
      std::memmove(in_ + to, in_ + from, at_ - from);
      to += at_ - from;
    }
    if (at_ == size_) fail("a string is not closed");
    if (in_[at_] != '"') fail("a control character inside a string");
    ++at_;
    return add(JsonType::kString, static_cast<uint32_t>(begin), static_cast<uint32_t>(to - begin));
  }
  void run_of_characters() {
    while (in_[at_] != '"' && in_[at_] != '\\' && static_cast<uint8_t>(in_[at_]) >= 0x20) ++at_;
  }
  uint32_t hex4() {
    uint32_t v = 0;
    for (int i = 0; i < 4; ++i, ++at_) {
      const char c = peek();
      const int d = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : -1;
      if (d < 0) fail("expected four hexadecimal digits after \\u");
      v = v * 16 + static_cast<uint32_t>(d);
    }
    return v;
  }
  // Reads one escape, writes its character to `out`, and returns the character's number of bytes. A high
  // surrogate and a low surrogate behind it make one character. A high surrogate alone stands for itself:
  // JSON allows it, and a `pattern` or `const` may contain one. In `"\ud83d\u0041"` the second escape is no
  // low surrogate, so it is read again from its backslash.
  std::size_t escape(char* out) {
    ++at_;
    const char c = peek();
    ++at_;
    const auto plain = [&](char meant) { return *out = meant, std::size_t{1}; };
    switch (c) {
      case '"':
      case '\\':
      case '/': return plain(c);
      case 'b': return plain('\b');
      case 'f': return plain('\f');
      case 'n': return plain('\n');
      case 'r': return plain('\r');
      case 't': return plain('\t');
      case 'u': break;
      default: --at_; fail("unknown escape in a string");
    }
    uint32_t cp = hex4();
    if (cp >= 0xD800 && cp < 0xDC00 && rest().starts_with("\\u")) {
      const std::size_t back = at_;
      at_ += 2;
      const uint32_t low = hex4();
      if (low >= 0xDC00 && low < 0xE000)
        cp = 0x10000 + ((cp - 0xD800) << 10) + (low - 0xDC00);
      else
        at_ = back;
    }
    std::string character;
    append_utf8(character, cp);
    return character.copy(out, character.size());
  }

  // The text that is read, which is also out_.text_, and its number of bytes.
  char* in_ = nullptr;
  std::size_t size_;
  std::size_t at_ = 0, charged_ = 0;
  Json out_;
  std::vector<Open> open_;
  std::vector<Element> elements_;
  // The keys that were read and whose values are not complete: one for each open object.
  std::vector<JsonRef> keys_;
};

Json Json::parse(std::string_view text) {
  charge(1 + static_cast<int64_t>(std::min<std::size_t>(text.size(), 1024) / 16));
  return JsonParser(text).run();
}

}  // namespace structgen
