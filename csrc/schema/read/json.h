// Ordered JSON documents, into which schemas are read.
//
// In: JSON text (UTF-8). Out: a flat tree. Objects keep the order of their members, and numbers keep their
// text. Of two equal keys the last counts. Cost: one linear pass. An explicit stack lets memory alone bound
// the depth.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace structgen {

enum class JsonType : uint8_t { kNull, kFalse, kTrue, kNumber, kString, kArray, kObject };

using JsonRef = uint32_t;  // index of a node; 0 is the root
constexpr JsonRef kNoJson = 0xFFFFFFFFu;

class Json {
 public:
  // Parses a JSON text. Throws kGrammar, which names the offset of the fault.
  static Json parse(std::string_view text);

  JsonType type(JsonRef r) const { return nodes_[r].type; }
  bool is_object(JsonRef r) const { return type(r) == JsonType::kObject; }
  bool is_array(JsonRef r) const { return type(r) == JsonType::kArray; }
  bool is_string(JsonRef r) const { return type(r) == JsonType::kString; }
  bool is_number(JsonRef r) const { return type(r) == JsonType::kNumber; }
  bool is_bool(JsonRef r) const { return type(r) == JsonType::kTrue || type(r) == JsonType::kFalse; }
  // Returns the text of a string, decoded to UTF-8, or of a number, as written. Half of a surrogate pair is
  // decoded to three bytes.
  std::string_view text(JsonRef r) const { return {text_.data() + nodes_[r].begin, nodes_[r].n}; }
  uint32_t size(JsonRef r) const { return nodes_[r].n; }
  JsonRef item(JsonRef r, uint32_t i) const { return children_[nodes_[r].begin + i]; }
  std::string_view key(JsonRef object, uint32_t i) const { return text(keys_[nodes_[object].begin + i]); }
  JsonRef find(JsonRef object, std::string_view key) const;  // kNoJson when absent
  uint32_t node_count() const { return static_cast<uint32_t>(nodes_.size()); }

 private:
  friend class JsonParser;
  struct Node {
    JsonType type = JsonType::kNull;
    uint32_t begin = 0;  // into text_ (numbers, strings) or children_ (containers)
    uint32_t n = 0;
  };
  std::vector<Node> nodes_;
  std::vector<JsonRef> children_;
  std::vector<JsonRef> keys_;  // parallel to children_: string nodes (kNoJson in arrays)
  std::string text_;           // as it was read, escapes decoded in place
  mutable std::unordered_map<JsonRef, std::unordered_map<std::string_view, JsonRef>> index_;  // large objects
};

}  // namespace structgen
