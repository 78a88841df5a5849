#include "holes/anywhere.h"

#include <algorithm>
#include <memory>
#include <string>
#include <unordered_map>

#include "base/error.h"
#include "base/flat_map.h"
#include "base/sorted.h"
#include "base/work.h"

namespace structgen {

namespace {
// anywhere() throws kSchemaTooComplex for a regex with more derivatives than this.
constexpr std::size_t kMostLeft = 200'000;
struct Known : RegexCache {
  std::unordered_map<uint32_t, std::unique_ptr<const Anywhere>> of;
  std::size_t bytes = 0;
  std::size_t byte_size() const override { return bytes; }
};

bool hex(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

bool is_wide_set(RegexArena& regexes, RegexId r) {
  if (regexes.node(r).kind != RegexKind::kLiteralSet) return false;
  const LiteralSet& s = regexes.literal_set_of(r);
  return s.escape == 0 && s.hi - s.lo > 1;
}
}  // namespace

RegexId without_exceptions(RegexArena& regexes, RegexId r) {
  const RegexNode& n = regexes.node(r);
  if (n.kind != RegexKind::kAnd) return r;
  RegexId kept = RegexArena::empty();
  for (uint32_t i = 0; i < n.n; ++i) {
    const RegexNode& k = regexes.node(RegexId{n.kids[i]});
    if (k.kind == RegexKind::kNot && regexes.node(RegexId{k.a}).finite) continue;
    if (kept != RegexArena::empty()) return r;
    kept = RegexId{n.kids[i]};
  }
  if (kept == RegexArena::empty()) return r;
  // If `kept` is E* X, a text of X with more E in front is a text of X, too. The beginning that was read is
  // not known, so it may have been long enough that the whole text is none of the few excluded ones. If
  // `kept` has another form, this need not hold.
  const RegexNode& k = regexes.node(kept);
  if (k.kind != RegexKind::kCat) return r;
  const RegexNode& body = regexes.node(RegexId{k.a});
  const bool any = body.kind == RegexKind::kRepeat && body.min == 0 && body.max == kUnbounded &&
                   !regexes.node(RegexId{body.a}).boolean;
  return any ? kept : r;
}

const Anywhere& anywhere(RegexArena& regexes, RegexId r) {
  Known& known = regexes.cache<Known>();
  std::unique_ptr<const Anywhere>& slot = known.of[r.v];
  if (slot) return *slot;
  auto out = std::make_unique<Anywhere>();
  FlatMap<uint32_t, bool> seen;
  const auto meet = [&](RegexId d, bool read) {
    if (d == RegexArena::empty()) return;
    const RegexNode& n = regexes.node(d);
    if (read && n.nullable) out->labels.push_back(n.label());
    if (n.only_ends()) return;
    d = without_exceptions(regexes, d);
    if (!seen.emplace(d.v, true).second) return;
    if (out->left.size() + out->sets.size() >= kMostLeft)
      too_complex("a hole may leave a pattern in too many states; shorten the pattern, or its repetitions");
    (is_wide_set(regexes, d) ? out->sets : out->left).push_back(d);
  };
  meet(r, false);
  for (std::size_t i = 0; i < out->left.size(); ++i) {
    const RegexId d = out->left[i];
    const ClassMap& classes = regexes.classes(d);
    bool met[256] = {};
    regexes.steps(d).for_each([&](uint8_t b) {
      if (std::exchange(met[classes.of[b]], true)) return;
      charge();
      meet(regexes.step(d, b), true);
    });
  }
  for (RegexId set : out->sets) {
    const LiteralSet s = regexes.literal_set_of(set);
    if (!s.labelled) {
      out->labels.push_back(0);
      continue;
    }
    for (uint32_t i = s.lo; i < s.hi; ++i)
      if (regexes.tables().any_allowed(s.subset, i, i + 1))
        out->labels.push_back(regexes.tables().table(s.table).labels[i] + 1);
  }
  sort_unique(out->labels);
  out->left.shrink_to_fit();
  slot = std::move(out);
  return *slot;
}

// Finds the literals of a set that may end inside `rest`, at its first quote. The spelling of a literal
// without escapes ends with the bytes of `rest` before this quote. The first `most` of these bytes may
// instead belong to an escape that began before `rest`: if `\u0061` is cut behind `\u00`, `rest` begins with
// `61`.
Endings ending_in(RegexArena& regexes, RegexId set, std::string_view rest) {
  Endings out;
  const LiteralSet s = regexes.literal_set_of(set);
  const LiteralTable& table = regexes.tables().table(s.table);
  const std::size_t quote = rest.find('"');
  if (quote == std::string_view::npos) return out;
  const std::string_view tail = rest.substr(0, quote);
  const bool escapes = tail.find('\\') != std::string_view::npos;
  // The number of bytes at the beginning of `tail` that may belong to an escape.
  std::size_t most = 0;
  if (!tail.empty() && std::string_view("bfnrtu/").find(tail[0]) != std::string_view::npos) most = 1;
  std::size_t digits = tail.empty() || tail[0] != 'u' ? 0 : 1;
  for (const std::size_t from = digits; digits < tail.size() && digits - from < 4 && hex(tail[digits]);)
    ++digits;
  most = std::max(most, digits);
  std::vector<uint64_t> bits((table.texts.size() + 63) / 64, 0);
  charge(s.hi - s.lo);
  // A literal that may end in an escape goes to `others`. Of every other literal the last bytes are compared
  // with `tail`.
  for (uint32_t i = s.lo; i < s.hi; ++i) {
    if (!regexes.tables().any_allowed(s.subset, i, i + 1)) continue;
    const std::string_view text = std::string_view(table.texts[i]).substr(s.depth);
    const bool odd = std::any_of(text.begin(), text.end(), [](char c) {
      return c == '"' || c == '\\' || static_cast<uint8_t>(c) < 0x20;
    });
    const bool ends = text.ends_with(tail);
    bool may = escapes || odd;
    for (std::size_t k = 1; k <= most && !may; ++k) may = text.ends_with(tail.substr(k));
    if (may) {
      bits[i >> 6] = 1ull << (i & 63);
      out.others.push_back(regexes.restricted_set(set, bits, s.labelled));
      bits[i >> 6] = 0;
    } else if (ends) {
      out.plain.push_back(s.labelled ? table.labels[i] + 1 : 0);
    }
  }
  return out;
}

}  // namespace structgen
