#include "grammar/lexemes.h"

#include <algorithm>
#include <unordered_map>

#include "base/components.h"
#include "base/error.h"
#include "base/undo.h"
#include "strings/json_inside.h"
#include "strings/json_spelling.h"

namespace structgen {

namespace {

// The automaton of a lexeme beside its rivals may have at most this many states; otherwise it throws.
constexpr uint32_t kMaxPairs = 20'000;
// A lexeme may have at most this many parts, one for each set of bytes that may not follow; otherwise it
// throws.
constexpr std::size_t kMaxForbidden = 16;

// A lazy language: the texts of a lexeme behind which one given set of bytes may not follow.
class SplitLanguage : public LazyLanguage {
 public:
  struct State {
    std::vector<std::pair<ByteSet, uint32_t>> next;
    bool final = false;
  };
  explicit SplitLanguage(std::vector<State> states) : states_(std::move(states)) {}
  RegexId unfold(RegexArena& arena, uint32_t s) override {
    std::vector<RegexId> parts;
    if (states_[s].final) parts.push_back(RegexArena::epsilon());
    for (const auto& [bytes, to] : states_[s].next)
      parts.push_back(arena.cat(arena.bytes(bytes), arena.lazy(definition, to, states_[to].final, false)));
    return arena.alt(std::span<const RegexId>(parts));
  }

 private:
  std::vector<State> states_;
};

uint64_t key(RegexId a, RegexId b) { return (static_cast<uint64_t>(a.v) << 32) | b.v; }

}  // namespace

Lexemes::Lexemes(RegexArena& regexes, std::vector<LexemeLanguage> all)
    : regexes_(regexes), all_(std::move(all)) {
  for (LexemeLanguage& l : all_)
    for (RegexId* r : {&l.regex, &l.whole})
      if (regexes_.nullable(*r)) *r = regexes_.minus(*r, RegexArena::epsilon());
}

bool Lexemes::overlap(RegexId a, RegexId b) {
  if ((regexes_.live(a) & regexes_.live(b)).none()) return false;
  return remember(overlaps_, key(a, b), [&] { return !regexes_.is_empty(regexes_.both(a, b)); });
}

bool Lexemes::inside(RegexId literal, RegexId pattern) {
  return remember(insides_, key(literal, pattern),
                  [&] { return regexes_.is_empty(regexes_.minus(literal, pattern)); });
}

// Returns the bytes with which a rival lexeme would end. `rivals` is what is left of all rivals behind the
// text so far.
ByteSet Lexemes::longer(RegexId rivals) {
  ByteSet out;
  if (rivals == RegexArena::empty()) return out;
  const ClassMap& classes = regexes_.classes(rivals);
  for (int b = 0; b < 256; ++b) {
    const uint8_t byte = static_cast<uint8_t>(b);
    if (classes.rep[classes.of[byte]] != byte) {
      if (out.has(classes.rep[classes.of[byte]])) out.add(byte);
    } else if (regexes_.nullable(regexes_.next(rivals, byte))) {
      out.add(byte);
    }
  }
  return out;
}

// Splits the texts of a lexeme into parts, by the bytes that may not follow: with such a byte a rival, or the
// lexeme itself, would read on. It visits pairs of a state of the lexeme and a state of its rivals. Most
// lexemes have one part.
const std::vector<LexemePart>& Lexemes::split(RegexId regex, RegexId rivals) {
  const auto known = splits_.find(key(regex, rivals));
  if (known != splits_.end()) return known->second;
  struct Pair {
    RegexId r, c;
  };
  std::vector<Pair> pairs{{regex, rivals}};
  std::vector<SplitLanguage::State> states(1);
  // By pair: the index in `endings` of the bytes that may not follow a text that ends there; -1 if none ends
  // there.
  std::vector<int> ending;
  std::vector<ByteSet> endings;
  std::unordered_map<uint64_t, uint32_t> index{{key(regex, rivals), 0}};
  for (uint32_t i = 0; i < pairs.size(); ++i) {
    const Pair p = pairs[i];
    ending.push_back(-1);
    if (regexes_.nullable(p.r)) {
      const ByteSet after = longer(p.c);
      const auto at = std::find(endings.begin(), endings.end(), after);
      ending[i] = static_cast<int>(at - endings.begin());
      if (at == endings.end()) endings.push_back(after);
    }
    const ClassMap* classes = regexes_.class_maps().product(&regexes_.classes(p.r), &regexes_.classes(p.c));
    std::vector<ByteSet> bytes_of(classes->n);
    for (int b = 0; b < 256; ++b) bytes_of[classes->of[b]].add(static_cast<uint8_t>(b));
    std::vector<std::pair<ByteSet, uint32_t>> next;
    for (uint16_t k = 0; k < classes->n; ++k) {
      const RegexId r = regexes_.next(p.r, classes->rep[k]);
      if (r == RegexArena::empty()) continue;
      const RegexId c = regexes_.next(p.c, classes->rep[k]);
      const auto [it, fresh] = index.try_emplace(key(r, c), static_cast<uint32_t>(pairs.size()));
      if (fresh) pairs.push_back({r, c});
      const uint32_t to = it->second;
      const auto same = std::find_if(next.begin(), next.end(), [&](const auto& e) { return e.second == to; });
      if (same == next.end())
        next.emplace_back(bytes_of[k], to);
      else
        same->first |= bytes_of[k];
    }
    if (states.size() < pairs.size()) states.resize(pairs.size());
    states[i].next = std::move(next);
    if (pairs.size() > kMaxPairs || endings.size() > kMaxForbidden)
      throw Error(ErrorKind::kSchemaTooComplex,
                  "a terminal and those that begin like it have too many states");
  }
  std::vector<LexemePart> parts;
  const auto follow = [&](const ByteSet& set) {
    return set.none() ? RegexArena::empty() : regexes_.bytes(set);
  };
  if (endings.size() == 1) {
    parts.push_back({regex, follow(endings[0])});
  } else {
    std::vector<std::vector<uint32_t>> back(states.size());
    for (uint32_t i = 0; i < states.size(); ++i)
      for (const auto& [bytes, to] : states[i].next) back[to].push_back(i);
    for (std::size_t e = 0; e < endings.size(); ++e) {
      // The states from which a text of this part can still end. The automaton of the part consists of them.
      std::vector<uint32_t> ends;
      for (uint32_t i = 0; i < states.size(); ++i)
        if (ending[i] == static_cast<int>(e)) ends.push_back(i);
      const std::vector<bool> reaches = reached(states.size(), std::move(ends), [&](uint32_t i, auto&& go) {
        for (uint32_t from : back[i]) go(from);
      });
      if (!reaches[0]) continue;
      std::vector<SplitLanguage::State> kept(states.size());
      for (uint32_t i = 0; i < states.size(); ++i) {
        kept[i].final = ending[i] == static_cast<int>(e);
        for (const auto& next : states[i].next)
          if (reaches[next.second]) kept[i].next.push_back(next);
      }
      const bool final = kept[0].final;
      const uint32_t definition = regexes_.define<SplitLanguage>(std::move(kept)).definition;
      parts.push_back({regexes_.lazy(definition, 0, final, false), follow(endings[e])});
    }
  }
  return splits_.emplace(key(regex, rivals), std::move(parts)).first->second;
}

// Returns the regex without those exclusions that forbid single words: NAME for "NAME but not `if`". They
// decide nothing about how far a longer text reaches.
RegexId Lexemes::reach(RegexId r) {
  const std::vector<RegexId> kept = regexes_.without_words(r);
  return kept.empty() ? r : regexes_.both(std::span<const RegexId>(kept));
}

// Computes the parts of a lexeme in a context of the lexemes `together`. `taken` holds texts of the lexeme
// that are read as a literal: `if` is no NAME. `cut` holds texts at which a lazy lexeme, or one of higher
// priority, ends; no text of this lexeme may go beyond one.
void Lexemes::compute(uint32_t t, std::span<const uint32_t> together, std::vector<LexemePart>& out) {
  const LexemeLanguage& me = all_[t];
  const RegexId reach = this->reach(me.regex);
  std::vector<RegexId> rivals{reach}, taken, cut;
  for (uint32_t u : together) {
    const LexemeLanguage& other = all_[u];
    if (u == t || me.alone || other.priority < me.priority) continue;
    // A lazy lexeme ends as soon as it matches, so this lexeme cannot go on there.
    if (other.lazy) {
      if ((regexes_.live(me.regex) & regexes_.live(other.whole)).none()) continue;
      const bool both = me.lazy && other.priority == me.priority;
      cut.push_back(both ? regexes_.cat(other.whole, regexes_.bytes(ByteSet::all())) : other.whole);
      rivals.push_back(other.whole);
      continue;
    }
    if (me.lazy && other.priority == me.priority) continue;
    if (other.regex == me.regex) {
      // The other lexeme has all texts of this one and wins each of them. Nothing is left for this one.
      if (other.priority > me.priority || (other.literal && !me.literal)) return;
      continue;
    }
    if ((regexes_.live(me.regex) & regexes_.live(other.regex)).none()) continue;
    if (other.priority > me.priority)
      cut.push_back(other.regex);
    else if (other.literal && !me.literal && overlap(me.regex, other.regex))
      taken.push_back(other.regex);
    // A literal whose text this lexeme matches (a keyword, for NAME) is no rival: where the literal could
    // read on, so could this lexeme itself.
    if (!(other.literal && !me.literal && inside(other.regex, me.regex))) rivals.push_back(other.regex);
  }
  RegexId regex = me.regex;
  if (!taken.empty()) regex = regexes_.minus(regex, regexes_.alt(std::span<const RegexId>(taken)));
  if (!cut.empty())
    regex = regexes_.minus(regex,
                           regexes_.cat(regexes_.alt(std::span<const RegexId>(cut)), RegexArena::anything()));
  if (regexes_.is_empty(regex)) return;
  if (me.lazy) return out.push_back({regex, RegexArena::empty()});
  if (regex != reach && cut.empty() && rivals.size() == 1) {
    // Only single words were excluded, so the same bytes may follow as without the exclusions.
    const std::vector<LexemePart>& plain = split(reach, reach);
    if (plain.size() == 1) return out.push_back({regex, plain[0].follow});
  }
  out = split(regex, regexes_.alt(std::span<const RegexId>(rivals)));
}

std::span<const LexemePart> Lexemes::parts(uint32_t lexeme, std::span<const uint32_t> together,
                                           uint32_t context) {
  const uint64_t at = (static_cast<uint64_t>(lexeme) << 32) | context;
  const auto known = parts_.find(at);
  if (known != parts_.end()) return known->second;
  std::vector<LexemePart> out;
  compute(lexeme, together, out);
  if (all_[lexeme].inside)
    for (LexemePart& part : out) part = {inside_json(regexes_, part.regex), spelled(part.follow)};
  return parts_.emplace(at, std::move(out)).first->second;
}

// Returns those bytes of `follow` that a JSON string holds unescaped.
RegexId Lexemes::spelled(RegexId follow) const {
  if (follow == RegexArena::empty()) return follow;
  ByteSet plain = regexes_.byte_set(regexes_.node(follow).a);
  for (uint32_t c = 0; c < 0x80; ++c)
    if (plain_escape(c) != 0) plain.remove(static_cast<uint8_t>(c));
  return plain.none() ? RegexArena::empty() : regexes_.bytes(plain);
}

bool Lexemes::always_separable(const std::vector<std::vector<uint32_t>>& gaps) {
  if (gaps.size() != 1) return false;
  // The bytes that alone make an ignored text, such as a blank.
  ByteSet blanks;
  for (uint32_t l : gaps[0])
    for (int b = 0; b < 128; ++b)
      if (regexes_.nullable(regexes_.next(all_[l].regex, static_cast<uint8_t>(b))))
        blanks.add(static_cast<uint8_t>(b));
  if (blanks.none()) return false;
  std::vector<RegexId> everything;
  for (const LexemeLanguage& l : all_) everything.push_back(l.regex);
  const RegexId any = regexes_.alt(std::span<const RegexId>(everything));
  std::vector<RegexId> words;
  for (const LexemeLanguage& l : all_)
    if (l.literal) words.push_back(l.regex);
  const RegexId word = regexes_.alt(std::span<const RegexId>(words));
  for (uint32_t t = 0; t < all_.size(); ++t) {
    // A lazy lexeme may win all texts of another lexeme.
    if (all_[t].lazy && all_.size() > 1) return false;
    const bool blank = std::find(gaps[0].begin(), gaps[0].end(), t) != gaps[0].end();
    if (all_[t].priority != all_[0].priority) return false;
    if (!blank && (regexes_.live(all_[t].regex) & blanks).any()) return false;
    // If all texts of a pattern are literals, too, nothing may be left of it.
    if (!all_[t].literal && inside(all_[t].regex, word)) return false;
    for (const LexemePart& p : split(all_[t].regex, any)) {
      if (p.follow == RegexArena::empty()) continue;
      const ByteSet& after = regexes_.byte_set(regexes_.node(p.follow).a);
      // Behind an ignored text comes another ignored text, or a lexeme whose first byte is no blank.
      const bool only_blanks = blank && (after & ~blanks).none();
      if (!only_blanks && (blanks & ~after).none()) return false;
    }
  }
  return true;
}

}  // namespace structgen
