// Sets of captured values; captured.h has the problem, the idea and the invariants.
//
// Costs. add: n log n for n values in all. behind: one step for each value that has the part, or for each
// value that was added since a set whose answer is known, whichever are fewer. covered: one step for each
// value that was added since a set whose answer is known.
#include "schema/decide/captured.h"

#include <algorithm>

#include "base/depth.h"
#include "base/sorted.h"
#include "base/undo.h"
#include "base/work.h"
#include "numbers/decimal.h"
#include "schema/lower/lower.h"
#include "strings/json_spelling.h"

namespace structgen {

namespace {

// add() merges chunks of fewer values than this; larger chunks stay as they are.
constexpr std::size_t kMostMerged = 8'192;

std::string canonical(const Json& j, JsonRef node) {
  check_depth();
  switch (j.type(node)) {
    case JsonType::kNull: return "null";
    case JsonType::kTrue: return "true";
    case JsonType::kFalse: return "false";
    case JsonType::kString: return Captured::key(j.text(node));
    case JsonType::kNumber: {
      const Decimal d = Decimal::parse_any(j.text(node));
      if (d.zero()) return "0";
      return (d.negative ? "-" : "") + d.digits + "e" + std::to_string(d.exponent);
    }
    case JsonType::kArray: {
      std::string out = "[";
      for (uint32_t i = 0; i < j.size(node); ++i) {
        if (i) out += ',';
        out += canonical(j, j.item(node, i));
      }
      return out + "]";
    }
    case JsonType::kObject: {
      std::map<std::string, std::string> members;
      for (uint32_t i = 0; i < j.size(node); ++i)
        members[Captured::key(j.key(node, i))] = canonical(j, j.item(node, i));
      return Captured::object(members);
    }
  }
  return {};
}

// Merges the sorted list `more` into the sorted list `to`, without repetitions.
template <class T>
void merge(std::vector<T>& to, const std::vector<T>& more) {
  const auto middle = to.insert(to.end(), more.begin(), more.end());
  std::inplace_merge(to.begin(), middle, to.end());
  to.erase(std::unique(to.begin(), to.end()), to.end());
}

}  // namespace

std::string Captured::canonical(std::string_view json) {
  const Json j = Json::parse(json);
  return structgen::canonical(j, 0);
}

std::string Captured::object(const std::map<std::string, std::string>& members) {
  std::string out = "{";
  for (const auto& [key, value] : members) out += (out.size() > 1 ? "," : "") + key + ":" + value;
  return out + "}";
}

std::string Captured::key(std::string_view name) { return "\"" + json_body(name); }

bool Captured::find(const std::string& text, ValueNumber& out) const {
  return value_index_.find(
      hash_bytes(text.data(), text.size(), 0), [&](uint32_t i) { return values_[i].text == text; }, out.v);
}

Captured::ValueNumber Captured::intern(const std::string& text) {
  ValueNumber known;
  if (find(text, known)) return known;
  Value v{text, {}};
  if (composite(text)) {
    const Json j = Json::parse(text);
    for (uint32_t i = 0; i < j.size(0); ++i)
      v.parts.emplace_back(text[0] == '{' ? key(j.key(0, i)) : std::string(kFirstItem),
                           structgen::canonical(j, j.item(0, i)));
  }
  charge(static_cast<int64_t>(text.size() / 8 + 1));
  return ValueNumber{value_index_.find_or_add(
      hash_bytes(text.data(), text.size(), 0), [](uint32_t) { return false; },
      [&] {
        const ValueNumber n{static_cast<uint32_t>(values_.size())};
        values_.push_back(std::move(v));
        Undo undo([&] { values_.pop_back(); });
        // Of an array only the first item is indexed. behind() and covered() ask about no other item: when
        // the first item is removed, the second item becomes the first.
        const auto& parts = values_.back().parts;
        for (std::size_t i = 0; i < (text[0] == '[' ? std::min<std::size_t>(1, parts.size()) : parts.size());
             ++i) {
          having_[parts[i].first + '\n' + parts[i].second].push_back(n);
          held_ += 128 + parts[i].first.size() + parts[i].second.size();
        }
        held_ += 96 + 2 * text.size();
        undo.keep();
        return n.v;
      })};
}

const std::string* Captured::part(ValueNumber value, std::string_view name) const {
  const auto& parts = values_[value.v].parts;
  const auto at = std::ranges::find(parts, name, [](const auto& p) { return std::string_view(p.first); });
  return at == parts.end() ? nullptr : &at->second;
}

std::string Captured::without(ValueNumber value, std::string_view name) const {
  const Value& v = values_[value.v];
  std::string out(1, v.text[0]);
  bool found = false;
  for (const auto& [key, text] : v.parts) {
    if (!found && key == name) {
      found = true;
      continue;
    }
    if (out.size() > 1) out += ',';
    if (v.text[0] == '{') out += key + ':';
    out += text;
  }
  return out + v.text.back();
}

std::string Captured::with(const std::string& rest, std::string_view name, const std::string& value) const {
  const bool empty = rest.size() == 2;
  if (name == kFirstItem) return "[" + value + (empty ? "" : ",") + rest.substr(1);
  const Json j = Json::parse(rest);
  std::map<std::string, std::string> members{{std::string(name), value}};
  for (uint32_t i = 0; i < j.size(0); ++i) members[key(j.key(0, i))] = structgen::canonical(j, j.item(0, i));
  return object(members);
}

Captured::ChunkId Captured::chunk(Values values) {
  uint64_t h = values.size();
  for (ValueNumber v : values) h = mix(h, v.v);
  return ChunkId{chunk_index_.find_or_add(
      h, [&](uint32_t i) { return chunks_[i].values == values; },
      [&] {
        Chunk c;
        std::vector<std::string> simple;
        for (ValueNumber v : values) {
          const Value& value = values_[v.v];
          c.arrays = c.arrays || value.text[0] == '[';
          c.objects = c.objects || value.text[0] == '{';
          if (!composite(value.text)) simple.push_back(value.text);
          for (const auto& [name, text] : value.parts) c.parts.push_back(name);
        }
        sort_unique(c.parts);
        c.simple = formula(simple);
        held_ += sizeof(Chunk) + 4 * values.size();
        c.values = std::move(values);
        chunks_.push_back(std::move(c));
        return static_cast<uint32_t>(chunks_.size() - 1);
      })};
}

CapturedId Captured::add(CapturedId set, const std::string& value) { return add(set, intern(value)); }

// Adds a value to the set as a chunk of its own. The new chunk absorbs the last chunk of the list as long as
// this chunk is no larger, as a carry does in a binary counter. A chunk becomes one alternative of a regex,
// so its size is bounded (kMostMerged).
CapturedId Captured::add(CapturedId set, ValueNumber value) {
  if (contains(set, value)) return set;
  std::vector<ChunkId> next = lists_[set.v].chunks;
  Values merged{value};
  while (!next.empty() && chunks_[next.back().v].values.size() <= merged.size() &&
         merged.size() < kMostMerged) {
    merge(merged, chunks_[next.back().v].values);
    next.pop_back();
  }
  next.push_back(chunk(std::move(merged)));
  uint64_t h = 11;
  for (ChunkId c : next) h = mix(h, c.v);
  return CapturedId{list_index_.find_or_add(
      h, [&](uint32_t i) { return lists_[i].chunks == next; },
      [&] {
        held_ += sizeof(List) + 4 * next.size();
        lists_.push_back({std::move(next), set, value});
        return static_cast<uint32_t>(lists_.size() - 1);
      })};
}

CapturedId Captured::join(CapturedId a, CapturedId b) {
  if (size(a) < size(b)) std::swap(a, b);
  const std::vector<ChunkId> chunks = lists_[b.v].chunks;
  for (ChunkId c : chunks) {
    const Values values = chunks_[c.v].values;
    for (ValueNumber v : values) a = add(a, v);
  }
  return a;
}

bool Captured::contains(CapturedId set, ValueNumber value) const {
  return std::ranges::any_of(lists_[set.v].chunks, [&](ChunkId c) {
    return std::ranges::binary_search(chunks_[c.v].values, value);
  });
}

bool Captured::contains(CapturedId set, const std::string& value) const {
  ValueNumber known;
  return set.v != 0 && find(value, known) && contains(set, known);
}

uint32_t Captured::size(CapturedId set) const {
  std::size_t n = 0;
  for (ChunkId c : lists_[set.v].chunks) n += chunks_[c.v].values.size();
  return static_cast<uint32_t>(n);
}

std::vector<std::string> Captured::texts(CapturedId set) const {
  std::vector<std::string> out;
  for (ChunkId c : lists_[set.v].chunks)
    for (ValueNumber v : chunks_[c.v].values) out.push_back(values_[v.v].text);
  return out;
}

bool Captured::has(CapturedId set, std::string_view part) const {
  return std::ranges::any_of(lists_[set.v].chunks, [&](ChunkId c) {
    return std::ranges::binary_search(chunks_[c.v].parts, part, {},
                                      [](const std::string& p) { return std::string_view(p); });
  });
}

std::vector<std::string> Captured::keys(CapturedId set) const {
  std::vector<std::string> out;
  for (ChunkId c : lists_[set.v].chunks) merge(out, chunks_[c.v].parts);
  return out;
}

std::vector<std::string> Captured::first_items(CapturedId set) const {
  std::vector<std::string> out;
  for (ChunkId c : lists_[set.v].chunks)
    for (ValueNumber v : chunks_[c.v].values)
      if (const std::string* first = part(v, kFirstItem)) out.push_back(*first);
  return out;
}

CapturedId Captured::behind(CapturedId set, std::string_view part_name, const std::string& value) {
  const std::string member = std::string(part_name) + '\n' + value;
  const auto having = having_.find(member);
  if (having == having_.end()) return {};
  std::vector<ValueNumber> added;
  CapturedId at = set, out;
  const auto known = [&] {
    const auto it = behind_.find({at, member});
    if (it == behind_.end()) return false;
    out = it->second;
    return true;
  };
  while (at.v != 0 && !known() && added.size() <= having->second.size()) {
    added.push_back(lists_[at.v].last);
    at = lists_[at.v].before;
  }
  charge(static_cast<int64_t>(added.size() + 1));
  if (at.v != 0 && !known()) {
    added.clear();
    for (ValueNumber v : having->second)
      if (contains(set, v)) added.push_back(v);
    std::ranges::reverse(added);
  }
  for (std::size_t i = added.size(); i-- > 0;)
    if (const std::string* v = part(added[i], part_name); v && *v == value)
      out = add(out, without(added[i], part_name));
  behind_[{set, member}] = out;
  held_ += 96 + member.size();
  return out;
}

CapturedId Captured::covered(CapturedId set, std::string_view part_name,
                             const std::vector<std::string>& rests) {
  std::string question(part_name);
  for (const std::string& r : rests) question += '\n' + r;
  std::vector<ValueNumber> added;
  CapturedId at = set, out;
  for (; at.v != 0; at = lists_[at.v].before) {
    if (const auto it = covered_.find({at, question}); it != covered_.end()) {
      out = it->second;
      break;
    }
    added.push_back(lists_[at.v].last);
  }
  for (std::size_t i = added.size(); i-- > 0;) {
    charge();
    const std::string* v = part(added[i], part_name);
    if (!v || (part_name == kFirstItem) != (values_[added[i].v].text[0] == '[')) continue;
    const std::string value = *v;
    if (!rests.empty() && !std::ranges::binary_search(rests, without(added[i], part_name))) continue;
    if (std::ranges::all_of(rests,
                            [&](const std::string& r) { return contains(set, with(r, part_name, value)); }))
      out = add(out, value);
  }
  if (set.v != 0) {
    covered_[{set, question}] = out;
    held_ += 96 + question.size();
  }
  return out;
}

ValueId Captured::formula(const std::vector<std::string>& texts) {
  if (texts.empty()) return FormulaSpace::no();
  std::string text = "[";
  for (const std::string& v : texts) text += (text.size() > 1 ? "," : "") + v;
  return lowering_.values(Json::parse(text + "]"), 0);
}

ValueId Captured::member(CapturedId set) {
  std::vector<ValueId> kids;
  std::vector<std::string> composites;
  for (ChunkId c : lists_[set.v].chunks) {
    kids.push_back(chunks_[c.v].simple);
    for (ValueNumber v : chunks_[c.v].values)
      if (composite(values_[v.v].text)) composites.push_back(values_[v.v].text);
  }
  kids.push_back(formula(composites));
  return formulas_.any_of(kids);
}

ValueId Captured::outside(CapturedId set) {
  std::vector<ValueId> kids;
  bool arrays = false, objects = false;
  for (ChunkId c : lists_[set.v].chunks) {
    kids.push_back(formulas_.deny(chunks_[c.v].simple));
    arrays = arrays || chunks_[c.v].arrays;
    objects = objects || chunks_[c.v].objects;
  }
  if (arrays) kids.push_back(formulas_.literal(Kind::kArray, formulas_.atom(Op::kArrayOutside, set.v)));
  if (objects) kids.push_back(formulas_.literal(Kind::kObject, formulas_.atom(Op::kObjectOutside, set.v)));
  return formulas_.all_of(kids);
}

}  // namespace structgen
