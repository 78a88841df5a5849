// Looks properties up in tables; see unicode.h.
#include "regex/unicode.h"

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/depth.h"

namespace structgen {

namespace {

struct UnicodeProperty {
  std::string_view names;
  // The property's ranges are the entries from `begin` to end - 1 of the table of ranges.
  uint32_t begin, end;
};

// One row of case folding: each of the characters first, first + stride, ..., last folds to itself plus
// `delta`. A to Z are one row.
struct FoldRun {
  uint32_t first, last, stride;
  int32_t delta;
};

#include "regex/unicode_tables.inc"

bool names_match(std::string_view names, std::string_view wanted) {
  while (!names.empty()) {
    const std::size_t comma = names.find(',');
    if (names.substr(0, comma) == wanted) return true;
    if (comma == std::string_view::npos) return false;
    names.remove_prefix(comma + 1);
  }
  return false;
}

const UnicodeProperty* find(std::span<const UnicodeProperty> table, std::string_view name) {
  for (const UnicodeProperty& p : table)
    if (names_match(p.names, name)) return &p;
  return nullptr;
}

void append(std::vector<CodepointRange>& out, const uint32_t* flat, const UnicodeProperty& p) {
  for (uint32_t i = p.begin; i < p.end; ++i) out.push_back({flat[2 * i], flat[2 * i + 1]});
}

CodepointSet to_set(const uint32_t* flat, const UnicodeProperty& p) {
  std::vector<CodepointRange> out;
  append(out, flat, p);
  return CodepointSet(std::move(out));
}

// A general category that is the union of others: L is Lu, Ll, Lt, Lm and Lo.
struct Group {
  std::string_view names, members;
};
constexpr Group kGroups[] = {
    {"L,Letter", "Lu,Ll,Lt,Lm,Lo"},
    {"LC,Cased_Letter", "Lu,Ll,Lt"},
    {"M,Mark,Combining_Mark", "Mn,Mc,Me"},
    {"N,Number", "Nd,Nl,No"},
    {"P,Punctuation,punct", "Pc,Pd,Ps,Pe,Pi,Pf,Po"},
    {"S,Symbol", "Sm,Sc,Sk,So"},
    {"Z,Separator", "Zs,Zl,Zp"},
    {"C,Other", "Cc,Cf,Co,Cn"},
};

// Returns the set of a general category. Unassigned (Cn) has no table of its own: it is what no other
// category has.
std::optional<CodepointSet> category(std::string_view name) {
  check_depth();
  if (const UnicodeProperty* p = find(kCategory, name)) return to_set(kCategoryRanges, *p);
  if (name == "Cn" || name == "Unassigned") {
    std::vector<CodepointRange> assigned;
    for (const UnicodeProperty& p : kCategory) append(assigned, kCategoryRanges, p);
    return CodepointSet(std::move(assigned)).complement();
  }
  for (const Group& g : kGroups) {
    if (!names_match(g.names, name)) continue;
    CodepointSet out;
    for (std::string_view rest = g.members; !rest.empty();) {
      out = out | *category(rest.substr(0, 2));
      rest.remove_prefix(rest.size() > 2 ? 3 : 2);
    }
    return out;
  }
  return std::nullopt;
}

std::optional<CodepointSet> script(std::string_view name, bool extensions) {
  const UnicodeProperty* p = find(kScript, name);
  if (!p) return std::nullopt;
  CodepointSet out = to_set(kScriptRanges, *p);
  if (!extensions) return out;
  if (names_match(p->names, "Common") || names_match(p->names, "Inherited")) {
    // A character with explicit script extensions does not belong to the script Common.
    std::vector<CodepointRange> extra;
    for (const UnicodeProperty& q : kScriptExtra) append(extra, kScriptExtraRanges, q);
    return out - CodepointSet(std::move(extra));
  }
  return out | to_set(kScriptExtraRanges, *find(kScriptExtra, name));
}

std::optional<CodepointSet> binary(std::string_view name) {
  if (name == "Any") return CodepointSet::all();
  if (name == "ASCII") return CodepointSet{{0, 0x7F}};
  if (name == "Assigned") return category("Cn")->complement();
  if (const UnicodeProperty* p = find(kBinary, name)) return to_set(kBinaryRanges, *p);
  return std::nullopt;
}

using FoldPair = std::pair<uint32_t, uint32_t>;

const std::vector<FoldPair>& fold_pairs() {
  static const std::vector<FoldPair> pairs = [] {
    std::vector<FoldPair> out;
    for (const FoldRun& r : kFold)
      for (uint32_t c = r.first; c <= r.last; c += r.stride)
        out.emplace_back(c, static_cast<uint32_t>(static_cast<int64_t>(c) + r.delta));
    return out;
  }();
  return pairs;
}

}  // namespace

std::optional<CodepointSet> unicode_property(std::string_view name, std::string_view value) {
  if (name == "General_Category" || name == "gc") return category(value);
  if (name == "Script" || name == "sc") return script(value, false);
  if (name == "Script_Extensions" || name == "scx") return script(value, true);
  if (!value.empty()) return std::nullopt;
  if (std::optional<CodepointSet> found = category(name)) return found;
  return binary(name);
}

CodepointSet case_closure(const CodepointSet& set) {
  // The flag i makes characters equal in classes: a character f, and every character that folds to f.
  std::vector<CodepointRange> targets;
  for (const auto& [c, f] : fold_pairs())
    if (set.contains(c) || set.contains(f)) targets.push_back({f, f});
  const CodepointSet touched(std::move(targets));
  std::vector<CodepointRange> out = set.ranges();
  for (const auto& [c, f] : fold_pairs())
    if (touched.contains(f)) {
      out.push_back({c, c});
      out.push_back({f, f});
    }
  return CodepointSet(std::move(out));
}

// Python's re compares by str.lower() and a list of pairs (Lib/re/_casefix.py). These four classes are not in
// Unicode's simple case folding.
CodepointSet python_case_closure(const CodepointSet& set) {
  static const CodepointSet equal[] = {{{'I', 'I'}, {'i', 'i'}, {0x130, 0x131}},
                                       {{0x390, 0x390}, {0x1FD3, 0x1FD3}},
                                       {{0x3B0, 0x3B0}, {0x1FE3, 0x1FE3}},
                                       {{0xFB05, 0xFB06}}};
  CodepointSet out = case_closure(set);
  for (const CodepointSet& letters : equal)
    if (!(set & letters).empty()) out = out | letters;
  return out;
}

CodepointSet ascii_case_closure(const CodepointSet& set) {
  std::vector<CodepointRange> out = set.ranges();
  for (uint32_t c = 'A'; c <= 'Z'; ++c)
    if (const uint32_t lower = c - 'A' + 'a'; set.contains(c) || set.contains(lower)) {
      out.push_back({c, c});
      out.push_back({lower, lower});
    }
  return CodepointSet(std::move(out));
}

const CodepointSet& ascii_digit() {
  static const CodepointSet set{{'0', '9'}};
  return set;
}

const CodepointSet& ascii_word() {
  static const CodepointSet set{{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
  return set;
}

const CodepointSet& ascii_space() {
  static const CodepointSet set{{9, 13}, {' ', ' '}};
  return set;
}

const CodepointSet& ecma_space() {
  static const CodepointSet set = CodepointSet{{9, 13}, {0x2028, 0x2029}, {0xFEFF, 0xFEFF}} | *category("Zs");
  return set;
}

const CodepointSet& python_space() {
  static const CodepointSet set =
      CodepointSet{{9, 13}, {0x1C, 0x1F}, {0x85, 0x85}, {0x2028, 0x2029}} | *category("Zs");
  return set;
}

const CodepointSet& python_digit() {
  static const CodepointSet set = *category("Nd");
  return set;
}

const CodepointSet& python_word() {
  static const CodepointSet set = CodepointSet::one('_') | *category("L") | *category("N");
  return set;
}

}  // namespace structgen
