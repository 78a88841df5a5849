// The engine beside a judge of JSON Schema that shares nothing with it: random schemas, every small value.
//
// - Solver, productions, parser: a value's text is taken exactly if the judge finds the value valid, and a
//   schema is refused only where no small value is.
// - Masks and slices: a bit is set exactly where the token is accepted, with caches and without.
// - Budgets: a token is left in a mask exactly where the text can still end in time, found by trying every
//   way to go on.
// - Histories: what a mask is does not depend on what was asked before it.
//
// The judge reads types, constants, bounds, lengths, members, items and the Boolean keywords. Strings have
// letters of one byte, so that characters can be counted as bytes.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/compile.h"
#include "engine/matcher.h"
#include "random.h"
#include "schema/read/json.h"

using namespace structgen;
using structgen_tests::Random;
using structgen_tests::times;

namespace {

// ---- the judge ----

// A value as a text that equal values share. Numbers are small whole ones here.
std::string canonical(const Json& j, JsonRef v) {
  switch (j.type(v)) {
    case JsonType::kNull: return "null";
    case JsonType::kTrue: return "true";
    case JsonType::kFalse: return "false";
    case JsonType::kNumber: return std::to_string(std::stoi(std::string(j.text(v))));
    case JsonType::kString: return '"' + std::string(j.text(v)) + '"';
    case JsonType::kArray: {
      std::string out = "[";
      for (uint32_t i = 0; i < j.size(v); ++i) out += canonical(j, j.item(v, i)) + ",";
      return out + "]";
    }
    case JsonType::kObject: {
      std::map<std::string, std::string> members;
      for (uint32_t i = 0; i < j.size(v); ++i) members[std::string(j.key(v, i))] = canonical(j, j.item(v, i));
      std::string out = "{";
      for (const auto& [name, value] : members) out += name + ":" + value + ",";
      return out + "}";
    }
  }
  return {};
}

class Judge {
 public:
  Judge(const Json& schema, const Json& value) : s_(schema), v_(value) {}

  bool valid(JsonRef s, JsonRef v) const {
    if (s_.is_bool(s)) return s_.type(s) == JsonType::kTrue;
    const auto with = [&](const char* keyword, auto&& holds) {
      const JsonRef k = s_.find(s, keyword);
      return k == kNoJson || holds(k);
    };
    const auto count = [&](JsonRef k) { return static_cast<uint32_t>(std::stoi(std::string(s_.text(k)))); };
    const auto inner = [&](JsonRef k) { return valid(k, v); };
    bool out = with("type", [&](JsonRef k) {
      if (s_.is_string(k)) return is(s_.text(k), v);
      for (uint32_t i = 0; i < s_.size(k); ++i)
        if (is(s_.text(s_.item(k, i)), v)) return true;
      return false;
    });
    out = out && with("const", [&](JsonRef k) { return canonical(s_, k) == canonical(v_, v); });
    out = out && with("enum", [&](JsonRef k) {
            for (uint32_t i = 0; i < s_.size(k); ++i)
              if (canonical(s_, s_.item(k, i)) == canonical(v_, v)) return true;
            return false;
          });
    out = out && with("not", [&](JsonRef k) { return !inner(k); });
    out = out && with("allOf", [&](JsonRef k) { return branches(k, v) == s_.size(k); });
    out = out && with("anyOf", [&](JsonRef k) { return branches(k, v) > 0; });
    out = out && with("oneOf", [&](JsonRef k) { return branches(k, v) == 1; });
    out = out && with("if", [&](JsonRef k) { return with(inner(k) ? "then" : "else", inner); });
    if (v_.is_number(v)) {
      const int x = std::stoi(std::string(v_.text(v)));
      const auto bound = [&](JsonRef k) { return std::stoi(std::string(s_.text(k))); };
      out = out && with("minimum", [&](JsonRef k) { return x >= bound(k); });
      out = out && with("exclusiveMaximum", [&](JsonRef k) { return x < bound(k); });
      out = out && with("multipleOf", [&](JsonRef k) { return x % bound(k) == 0; });
    }
    if (v_.is_string(v)) {
      out = out && with("minLength", [&](JsonRef k) { return v_.text(v).size() >= count(k); });
      out = out && with("maxLength", [&](JsonRef k) { return v_.text(v).size() <= count(k); });
      out =
          out && with("pattern", [&](JsonRef k) { return v_.text(v).find(s_.text(k)) != std::string::npos; });
    }
    if (v_.is_array(v)) {
      const uint32_t n = v_.size(v);
      out = out && with("minItems", [&](JsonRef k) { return n >= count(k); });
      out = out && with("maxItems", [&](JsonRef k) { return n <= count(k); });
      out = out && with("items", [&](JsonRef k) { return items(k, v) == n; });
      out = out && with("contains", [&](JsonRef k) { return items(k, v) > 0; });
      out = out && with("uniqueItems", [&](JsonRef) {
              std::set<std::string> all;
              for (uint32_t i = 0; i < n; ++i) all.insert(canonical(v_, v_.item(v, i)));
              return all.size() == n;
            });
    }
    if (v_.is_object(v)) out = out && object(s, v);
    return out;
  }

 private:
  bool is(std::string_view type, JsonRef v) const {
    switch (v_.type(v)) {
      case JsonType::kNull: return type == "null";
      case JsonType::kTrue:
      case JsonType::kFalse: return type == "boolean";
      case JsonType::kNumber: return type == "integer" || type == "number";
      case JsonType::kString: return type == "string";
      case JsonType::kArray: return type == "array";
      case JsonType::kObject: return type == "object";
    }
    return false;
  }
  uint32_t branches(JsonRef list, JsonRef v) const {
    uint32_t n = 0;
    for (uint32_t i = 0; i < s_.size(list); ++i) n += valid(s_.item(list, i), v);
    return n;
  }
  uint32_t items(JsonRef s, JsonRef v) const {
    uint32_t n = 0;
    for (uint32_t i = 0; i < v_.size(v); ++i) n += valid(s, v_.item(v, i));
    return n;
  }
  bool object(JsonRef s, JsonRef v) const {
    const JsonRef listed = s_.find(s, "properties"), others = s_.find(s, "additionalProperties");
    for (uint32_t i = 0; i < v_.size(v); ++i) {
      const JsonRef known = listed == kNoJson ? kNoJson : s_.find(listed, v_.key(v, i));
      if (known != kNoJson ? !valid(known, v_.item(v, i))
                           : others != kNoJson && !valid(others, v_.item(v, i)))
        return false;
    }
    const JsonRef required = s_.find(s, "required"), least = s_.find(s, "minProperties");
    for (uint32_t i = 0; required != kNoJson && i < s_.size(required); ++i)
      if (v_.find(v, s_.text(s_.item(required, i))) == kNoJson) return false;
    return least == kNoJson || v_.size(v) >= static_cast<uint32_t>(std::stoi(std::string(s_.text(least))));
  }

  const Json& s_;
  const Json& v_;
};

bool judged(const Json& schema, const std::string& value) {
  const Json parsed = Json::parse(value);
  return Judge(schema, parsed).valid(0, 0);
}

// ---- cases ----

const std::vector<std::string>& small_values() {
  static const std::vector<std::string> all = [] {
    const std::vector<std::string> scalars{"null", "true", "false", "0",     "1",
                                           "2",    "-1",   "\"\"",  "\"a\"", "\"ab\""};
    std::vector<std::string> out = scalars;
    out.insert(out.end(), {"\"b\"", "\"aba\"", "[]", "{}", "[[]]", "[{}]", "3", "4"});
    for (const std::string& x : scalars) {
      out.push_back("[" + x + "]");
      out.push_back("{\"a\":" + x + "}");
      out.push_back("{\"b\":" + x + "}");
      for (const std::string& y : {scalars[0], scalars[1], scalars[4], scalars[8]}) {
        out.push_back("[" + x + "," + y + "]");
        out.push_back("{\"a\":" + x + ",\"b\":" + y + "}");
      }
    }
    return out;
  }();
  return all;
}

std::string drawn(Random& random, int depth) {
  const auto kid = [&] { return drawn(random, depth - 1); };
  if (depth == 0 || random.chance(15)) {
    constexpr const char* kLeaves[] = {"true",
                                       "false",
                                       "{}",
                                       R"({"type":"integer"})",
                                       R"({"type":"string"})",
                                       R"({"type":["null","boolean"]})",
                                       R"({"const":1})",
                                       R"({"enum":["a",2,null,[1]]})",
                                       R"({"minimum":1})",
                                       R"({"exclusiveMaximum":2})",
                                       R"({"type":"integer","multipleOf":2})",
                                       R"({"maxLength":1})",
                                       R"({"minLength":2,"type":"string"})",
                                       R"({"pattern":"b"})",
                                       R"({"enum":["ab","b",true]})"};
    return kLeaves[random.below(std::size(kLeaves))];
  }
  std::vector<std::string> parts;
  const auto add = [&](uint32_t percent, auto&& part) {
    if (random.chance(percent)) parts.push_back(part());
  };
  const auto number = [&] { return std::to_string(random.below(3)); };
  add(25, [&] { return std::string(R"("type":")") + (random.chance(50) ? "object\"" : "array\""); });
  add(30, [&] { return R"("properties":{"a":)" + kid() + R"(,"b":)" + kid() + "}"; });
  add(20, [&] { return std::string(R"("required":["a"])"); });
  add(20, [&] { return R"("additionalProperties":)" + kid(); });
  add(10, [&] { return R"("minProperties":)" + number(); });
  add(20, [&] { return R"("items":)" + kid(); });
  add(10, [&] { return R"("contains":)" + kid(); });
  add(10, [&] { return std::string(R"("uniqueItems":true)"); });
  add(10, [&] { return R"("minItems":)" + number(); });
  add(15, [&] { return R"("maxItems":)" + number(); });
  add(20, [&] { return R"("not":)" + kid(); });
  add(15, [&] { return R"("anyOf":[)" + kid() + "," + kid() + "]"; });
  add(15, [&] { return R"("oneOf":[)" + kid() + "," + kid() + "]"; });
  add(15, [&] { return R"("allOf":[)" + kid() + "," + kid() + "]"; });
  add(10, [&] { return R"("if":)" + kid() + R"(,"then":)" + kid() + R"(,"else":)" + kid(); });
  std::string out = "{";
  for (const std::string& part : parts) out += (out.size() > 1 ? "," : "") + part;
  return out + "}";
}

constexpr TokenId kEos = 0;

std::shared_ptr<const Vocabulary> vocabulary(bool all_bytes) {
  std::vector<std::string> tokens{""};
  if (all_bytes)
    for (int b = 0; b < 256; ++b) tokens.emplace_back(1, static_cast<char>(b));
  else
    for (const char c : std::string("[]{},:\"ab12")) tokens.emplace_back(1, c);
  for (const char* piece : {"null", "true", "false", "\"a\"", "\"a\":", "{\"", "\",", "[[", "ab", "1]", "-1"})
    tokens.emplace_back(piece);
  const std::vector<std::string_view> views(tokens.begin(), tokens.end());
  return std::make_shared<Vocabulary>(views, std::vector<TokenId>{kEos}, std::vector<TokenId>{});
}

JsonOptions compact() {
  JsonOptions out;
  out.layout.mode = JsonLayout::kCompact;
  return out;
}

// Null: no value exists.
std::shared_ptr<Grammar> compiled(Compiler& compiler, const std::string& schema) {
  try {
    return compiler.json_schema(schema, {}, compact());
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::kUnsatisfiableSchema) throw;
    return nullptr;
  }
}

bool bit(const std::vector<uint32_t>& row, TokenId t) {
  return row[static_cast<uint32_t>(t) / 32] >> (t % 32) & 1;
}

std::vector<TokenId> allowed(const std::vector<uint32_t>& row, uint32_t size) {
  std::vector<TokenId> out;
  for (uint32_t t = 0; t < size; ++t)
    if (bit(row, static_cast<TokenId>(t))) out.push_back(static_cast<TokenId>(t));
  return out;
}

// The mask within a budget; nothing where it is proved that nothing fits.
std::vector<uint32_t> within(Matcher& m, uint32_t words, std::size_t budget) {
  std::vector<uint32_t> row(words);
  if (!m.fill_row_within(row.data(), budget)) row.assign(words, 0);
  return row;
}

// Whether some `tokens` tokens, the end token among them, complete the text: every way is tried.
bool ends(const Matcher& m, uint32_t size, std::size_t tokens) {
  if (m.is_terminated()) return true;
  if (tokens == 0) return false;
  if (m.is_accepting()) return true;
  if (tokens == 1) return false;
  for (uint32_t t = 1; t < size; ++t) {
    Matcher next(m);
    if (next.accept_token(static_cast<TokenId>(t)) && ends(next, size, tokens - 1)) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("engine: a value is taken exactly if it is valid, and a schema refused only where none is") {
  Compiler compiler(vocabulary(true), true, 64 << 20);
  uint32_t refused = 0, valid = 0, invalid = 0;
  for (uint32_t seed = 0; seed < times(2'000); ++seed) {
    Random random(seed);
    const std::string text = drawn(random, 1 + static_cast<int>(random.below(3)));
    INFO("seed ", seed, ": ", text);
    const Json schema = Json::parse(text);
    const std::shared_ptr<Grammar> grammar = compiled(compiler, text);
    refused += !grammar;
    for (const std::string& value : small_values()) {
      const bool expected = judged(schema, value);
      bool found = false;
      if (grammar) {
        Matcher m(grammar);
        found = m.accept_bytes(value) && m.is_accepting();
      }
      INFO("value ", value);
      REQUIRE(found == expected);
      (expected ? valid : invalid) += 1;
    }
    if (!grammar) continue;
    // What the engine itself writes is valid.
    Matcher m(grammar);
    const std::string shortest = m.shortest_completion();
    INFO("shortest ", shortest);
    REQUIRE(m.accept_bytes(shortest));
    if (shortest.find('.') == std::string::npos && shortest.find("e") == std::string::npos)
      CHECK(judged(schema, shortest));
  }
  CHECK(refused > times(2'000) / 50);
  CHECK(std::min(valid, invalid) > times(2'000) * 20);
}

TEST_CASE("engine: a bit is set exactly where the token is accepted, with caches and without") {
  const auto words = vocabulary(true);
  Compiler cached(words, true, 64 << 20), plain(words, false, 64 << 20);
  std::size_t bits = 0;
  for (uint32_t seed = 0; seed < times(300); ++seed) {
    Random random(seed + 1'000);
    const std::string text = drawn(random, 1 + static_cast<int>(random.below(3)));
    INFO("seed ", seed, ": ", text);
    const auto one = compiled(cached, text), other = compiled(plain, text);
    REQUIRE((one == nullptr) == (other == nullptr));
    if (!one) continue;
    Matcher m(one), n(other);
    std::vector<uint32_t> row(words->words()), again(words->words());
    for (uint32_t step = 0; step < 10 && !m.is_terminated(); ++step) {
      m.fill_row(row.data());
      n.fill_row(again.data());
      REQUIRE(row == again);
      for (uint32_t t = 0; t < words->size(); ++t) {
        Matcher next(m);
        REQUIRE(bit(row, static_cast<TokenId>(t)) == next.accept_token(static_cast<TokenId>(t)));
        ++bits;
      }
      const std::vector<TokenId> all = allowed(row, words->size());
      REQUIRE(!all.empty());  // no dead ends
      const TokenId t = all[random.below(static_cast<uint32_t>(all.size()))];
      REQUIRE((m.accept_token(t) && n.accept_token(t)));
    }
  }
  CHECK(bits > times(300) * 500);
}

TEST_CASE("engine: within a budget a token is left exactly where the text can still end in time") {
  const auto words = vocabulary(false);
  Compiler compiler(words, true, 64 << 20);
  std::size_t kept = 0, taken = 0;
  for (uint32_t seed = 0; seed < times(200); ++seed) {
    Random random(seed + 2'000);
    const std::string text = drawn(random, 1 + static_cast<int>(random.below(2)));
    INFO("seed ", seed, ": ", text);
    std::shared_ptr<Grammar> grammar;
    try {
      grammar = compiled(compiler, text);
    } catch (const Error& e) {  // the vocabulary cannot write it
      continue;
    }
    if (!grammar) continue;
    Matcher m(grammar);
    std::vector<uint32_t> row(words->words());
    for (uint32_t step = 0; step < 5 && !m.is_terminated(); ++step) {
      try {
        m.fill_row(row.data());
      } catch (const Error& e) {  // nothing that the vocabulary can write
        break;
      }
      const std::size_t budget = 1 + random.below(3);
      const std::vector<uint32_t> narrow = within(m, words->words(), budget);
      if (m.mask_exact())
        for (const TokenId t : allowed(row, words->size())) {
          Matcher next(m);
          REQUIRE(next.accept_token(t));
          INFO("after ", step, " tokens, budget ", budget, ", token ", t);
          const bool fits = ends(next, words->size(), budget - 1);
          REQUIRE(bit(narrow, t) == fits);
          (fits ? kept : taken) += 1;
        }
      const std::vector<TokenId> all = allowed(row, words->size());
      if (all.empty()) break;
      REQUIRE(m.accept_token(all[random.below(static_cast<uint32_t>(all.size()))]));
    }
  }
  CHECK(std::min(kept, taken) > times(200));
}

TEST_CASE("engine: a mask does not depend on what was asked before it") {
  const auto words = vocabulary(true);
  std::size_t masks = 0;
  for (uint32_t seed = 0; seed < times(300); ++seed) {
    Random random(seed + 3'000);
    const std::string text = drawn(random, 1 + static_cast<int>(random.below(3)));
    INFO("seed ", seed, ": ", text);
    Compiler compiler(words, true, 64 << 20);
    const auto grammar = compiled(compiler, text);
    if (!grammar) continue;
    // A text and budgets, asked about in one order by matchers of one grammar, and in the other one by one,
    // each in a compiler of its own.
    Matcher walk(grammar);
    std::vector<TokenId> tokens;
    std::vector<uint32_t> row(words->words());
    for (uint32_t step = 0; step < 6 && !walk.is_terminated(); ++step) {
      walk.fill_row(row.data());
      const std::vector<TokenId> all = allowed(row, words->size());
      tokens.push_back(all[random.below(static_cast<uint32_t>(all.size()))]);
      REQUIRE(walk.accept_token(tokens.back()));
    }
    for (uint32_t asked = 0; asked < 4; ++asked) {
      const std::size_t length = random.below(static_cast<uint32_t>(tokens.size())),
                        budget = random.below(12);
      const auto mask = [&](Compiler& of) -> std::optional<std::vector<uint32_t>> {
        Matcher m(compiled(of, text));
        REQUIRE(m.accept_tokens({tokens.data(), length}));
        try {
          return within(m, words->words(), budget);
        } catch (const Error& e) {
          return std::nullopt;  // nothing was found, and nothing proved
        }
      };
      Compiler fresh(words, true, 64 << 20);
      const auto used = mask(compiler), once = mask(fresh);
      INFO("after ", length, " tokens, budget ", budget);
      if (used && once) REQUIRE(*used == *once);
      masks += used && once;
    }
  }
  CHECK(masks > times(300));
}
