// What a search for shortest texts keeps of regexes and rules: the shortest texts, lower bounds of their
// bytes, and how long an answer holds. completion.cc has the method and the table of the questions.
//
// In: a rule, what it is told, a pending. Out: its shortest texts. Cost: 10 units of work for each rule that
// is expanded, once for each pending; a look-up afterwards.
//
// While a rule is being searched (it is open), alternatives that lead back into it are skipped. For A -> "x"
// B | "yyy" and B -> A "z" | "ww", asked for A:
//
//     A, depth 0    "x" B comes first: 1 byte of its own
//     B, depth 1    A is open at depth 0 and counts as endless, so now_.low is 0. The answer is `ww`
//     note(B)       0 is less than 1: the answer goes to found_, and to the list of depth 0
//     tie()         "yyy" has as many bytes as `xww`, which comes first in the order of bytes and stays
//     note(A)       no rule above A was met: the answer goes to rules_, and that of B is forgotten
#include <algorithm>

#include "base/depth.h"
#include "base/error.h"
#include "base/told.h"
#include "base/undo.h"
#include "base/work.h"
#include "parse/completion.h"

namespace structgen {

namespace {
constexpr const char* kNotFound = "no text was found of what is too much to tell";
// The search begins with texts of at most this many bytes. The number doubles until the best text is proved
// to be shortest.
constexpr uint32_t kFirstRoom = 16;
// The units of work for finding a text as short as the best one but earlier in the order of bytes: half a
// millisecond.
constexpr int64_t kTieWork = 5'000;
// Work is charged by bytes. A byte of a shortest text that a search finds costs kByteWork units, because the
// search makes at least one node for each byte. Copying kCopied bytes of a text costs one unit.
constexpr std::size_t kByteWork = 16, kCopied = 64;
// Lower bounds (floor()) expand rules within rules down to this depth.
constexpr uint32_t kFloorDepth = 3;

// The key contains label + 1, so that 0 means "no label".
uint64_t rule_key(RuleId r, const Reading& reading) {
  return (static_cast<uint64_t>(r.v) << 32) | (reading.kind == Reading::kLabel ? reading.label + 1 : 0);
}
}  // namespace

std::size_t Completion::size_of(const ShortTexts& texts) {
  std::size_t out = 104;
  for (const ShortText& w : texts) out += sizeof(ShortText) + size_of(w.text);
  return out;
}

const Completion::Kept::Entry* Completion::Kept::find(const Key& key) const {
  uint32_t id;
  const bool known =
      index_.find(mix(key.rule, key.from), [&](uint32_t i) { return entries_[i].key == key; }, id);
  return known ? &entries_[id] : nullptr;
}

void Completion::Kept::add(const Key& key, const ShortTexts& texts, bool poison) {
  std::vector<KeptText> kept;
  for (const ShortText& w : texts)
    kept.push_back({pool_.copy(std::span<const char>(w.text)).data(), static_cast<uint32_t>(w.text.size()),
                    w.to, w.capture});
  const Entry entry{key, pool_.copy(std::span<const KeptText>(kept)), poison};
  index_.find_or_add(
      mix(key.rule, key.from), [&](uint32_t i) { return entries_[i].key == key; },
      [&] { return entries_.emplace_back(entry); });
}

Completion::ShortTexts Completion::Kept::texts(const Entry& entry) {
  ShortTexts out;
  for (const KeptText& w : entry.texts) out.push_back({w.to, {w.text, w.size}, w.capture});
  return out;
}

// Keeps a text, unless `best` has a better text with the same pending: a shorter text, or a text of equal
// length that is earlier in the order of bytes.
void Completion::keep(ShortTexts& best, Pending to, std::string text, CaptureId c) {
  for (ShortText& w : best)
    if (w.to == to) {
      if (text.size() < w.text.size() || (text.size() == w.text.size() && text < w.text))
        w = {to, std::move(text), c};
      return;
    }
  best.push_back({to, std::move(text), c});
}

void Completion::keep_all(ShortTexts& best, ShortTexts found) {
  for (ShortText& w : found) keep(best, w.to, std::move(w.text), {});
}

// Returns a shortest text of a regex, without kEdge, and remembers it. For a regex E{m,n} t this is m times
// the shortest text of E, then the shortest text of t, so that a large m needs no search.
const std::string& Completion::shortest(RegexId r) {
  static const std::string nothing;
  if (parser_.marks(r)) return nothing;
  const auto known = regexes_.find(r.v);
  if (known != regexes_.end()) return known->second;
  if (parser_.regexes().node(r).shortest > kMaxText)
    throw Error(ErrorKind::kBudgetExceeded, "the shortest completion is too long to compute");
  if (unknown_.contains(r.v)) throw Error(ErrorKind::kSchemaTooComplex, kNotFound);
  std::string text;
  bool found = false;
  try {
    const RegexNode& node = parser_.regexes().node(r);
    const RegexArena::Counter run = parser_.regexes().counter(r);
    if (run.counted && run.min > 1 && !node.boolean && !node.lazy && !node.labelled && !parser_.marked()) {
      check_depth();
      const std::string& one = shortest(run.element);
      const std::string& tail = shortest(run.tail);
      charge(static_cast<int64_t>(1 + (run.min * one.size() + tail.size()) / kCopied));
      for (uint32_t i = 0; i < run.min; ++i) text += one;
      text += tail;
      found = true;
    } else {
      found = parser_.regexes().witness(r, text);
      charge(static_cast<int64_t>(kByteWork * text.size()));
    }
  } catch (const Error& e) {
    // The search met its own limit and would meet it again in the next call, so the regex is noted as
    // unknown. If instead the work of this call was used up, the next call may have more work, so nothing is
    // noted.
    if (e.kind() == ErrorKind::kSchemaTooComplex) unknown_.insert(r.v);
    throw;
  }
  if (!found) throw Error(ErrorKind::kBudgetExceeded, kNotFound);
  const auto it = regexes_.emplace(r.v, std::move(text)).first;
  bytes_ += size_of(it->second);
  return it->second;
}

// Returns a lower bound of the bytes of a text of r. In grammars with edges it subtracts one: kEdge is a byte
// of the regex, but no byte of a text.
uint32_t Completion::floor(RegexId r) {
  const uint32_t least = parser_.regexes().least_length(r);
  return parser_.marked() ? std::min(1u, parser_.marks(r) ? 0u : least) : least;
}

// Returns a lower bound of the bytes of the symbols. Rules are expanded down to kFloorDepth. A reader of
// captured text counts as 0 bytes.
uint32_t Completion::floor(std::span<const Symbol> symbols, uint32_t depth) {
  uint64_t out = 0;
  for (const Symbol s : symbols) {
    switch (s.kind()) {
      case Symbol::kTerminal:
        if (s.regex() != RegexArena::poison()) out += floor(s.regex());
        break;
      case Symbol::kLexeme: ++out; break;
      case Symbol::kRule: out += floor(s.rule_id(), Reading{}, depth + 1); break;
      default: break;
    }
  }
  return static_cast<uint32_t>(std::min<uint64_t>(out, kMaxText));
}

// Returns a lower bound of the bytes of those symbols that are rules; each rule is expanded once.
uint64_t Completion::floor_of_rules(std::span<const Symbol> symbols) {
  uint64_t out = 0;
  for (const Symbol s : symbols)
    if (s.kind() == Symbol::kRule) out += floor(s.rule_id(), Reading{}, kFloorDepth);
  return out;
}

uint32_t Completion::floor(RuleId r, const Reading& reading, uint32_t depth) {
  if (depth > kFloorDepth || parser_.marked()) return 0;
  const uint64_t key = rule_key(r, reading);
  if (const uint32_t* known = floors_.find(key)) return *known;
  charge(10);
  Alternatives alts;
  productions_.expand_shortest(r, reading, alts);
  uint32_t out = alts.ends.empty() ? 0 : kMaxText;
  for (const std::span<const Symbol> symbols : alts.each()) out = std::min(out, floor(symbols, depth));
  // A call at a greater depth expands fewer rules and gives a lower bound. Only the bound of depth 0 is
  // remembered.
  if (depth == 0) floors_.emplace(key, out);
  return out;
}

// Returns a lower bound of the bytes of those symbols that are no rules.
uint64_t Completion::own_text(std::span<const Symbol> symbols) {
  uint64_t least = 0;
  for (Symbol s : symbols)
    if (s.kind() == Symbol::kTerminal)
      least += floor(s.regex());
    else if (s.kind() == Symbol::kLexeme || s.kind() == Symbol::kReader)
      ++least;
  return least;
}

// Returns the shortest texts of a rule. If no other rule is open, it searches with room for kFirstRoom bytes
// first, and doubles the room until the best text is proved to be shortest.
Completion::ShortTexts Completion::rule(RuleId r, const Reading& reading, Pending from) {
  if (depth_ > 0) return within(r, reading, from);
  for (uint32_t room = kFirstRoom;; room *= 2) {
    now_.room = room;
    now_.cut = kNone;
    found_.clear();
    until_.clear();
    ShortTexts out = within(r, reading, from);
    const uint32_t cut = std::exchange(now_.cut, kNone);
    now_.room = kNone;
    const auto proved = [&](const ShortText& w) { return w.text.size() < cut; };
    if (cut == kNone || (!out.empty() && std::ranges::all_of(out, proved))) return out;
    if (room > kMaxText)
      throw Error(ErrorKind::kBudgetExceeded, "the shortest completion is too long to find");
    steps_ = 0;
    productions_.start_search();
  }
}

// Returns the shortest texts of a rule if no search is needed. For a rule that is open, the list is empty: a
// text of a rule that contains another text of the same rule is longer than the inner text.
std::optional<Completion::ShortTexts> Completion::known(const Key& key) {
  if (const Kept::Entry* kept = rules_.find(key)) {
    now_.poison = now_.poison || kept->poison;
    return Kept::texts(*kept);
  }
  if (const auto it = found_.find(key);
      it != found_.end() && (it->second.exact() || now_.room <= it->second.room)) {
    now_.low = std::min(now_.low, it->second.low);
    now_.cut = std::min(now_.cut, it->second.cut);
    return it->second.texts;
  }
  const auto open = open_.find(key);
  if (open == open_.end()) return std::nullopt;
  now_.low = std::min(now_.low, open->second);
  return ShortTexts{};
}

// Returns the shortest texts of a rule, of at most now_.room bytes.
Completion::ShortTexts Completion::within(RuleId r, const Reading& reading, Pending from) {
  check_depth();
  const bool memo = reading.kind == Reading::kNone || reading.kind == Reading::kLabel;
  const bool plain = parser_.alive().plain(r);
  if (!plain) from = Alive::kClear;
  const Key key{rule_key(r, reading), from};
  if (settling_ && reading.kind == Reading::kNone && plain) return settled(key);
  if (memo)
    if (std::optional<ShortTexts> texts = known(key)) return *std::move(texts);
  if (reading.kind == Reading::kText && now_.room == 0) {
    now_.cut = 0;
    return {};
  }
  if (depth_ >= recursion_ || ++steps_ > 10 * kMaxSteps)
    throw Error(ErrorKind::kBudgetExceeded, "the shortest completion takes too long to find");
  ++work_;
  charge(10);
  const Progress outer = std::exchange(now_, {now_.room});
  const uint32_t mine = depth_++;
  if (memo) open_.emplace(key, mine);
  ShortTexts best = search(r, reading, from);
  if (memo) open_.erase(key);
  depth_ = mine;
  // A text that was left out has at least `cut` bytes. If that is more than the best text has, the best text
  // is shortest.
  if (!plain && !best.empty() && best[0].text.size() < now_.cut) now_.cut = kNone;
  if (memo) note(key, outer.room, best);
  now_ = {outer.room, std::min(now_.cut, outer.cut), std::min(now_.low < mine ? now_.low : kClean, outer.low),
          now_.poison || outer.poison};
  return best;
}

// Returns the shortest texts of the alternatives of a rule. The alternatives with the smallest lower bound
// are searched first; the end of an object comes before one more member.
Completion::ShortTexts Completion::search(RuleId r, const Reading& reading, Pending from) {
  const uint32_t room = now_.room;
  const bool one = !parser_.alive().plain(r);
  Alternatives alts;
  productions_.expand_shortest(r, reading, alts);
  ShortTexts best;
  for (const auto& [least, symbols] : by_cost(alts, [&](std::span<const Symbol> s) { return own_text(s); })) {
    // Only a text that is no longer than the best text can replace the best text.
    if (!best.empty() && one) now_.room = std::min(room, static_cast<uint32_t>(best[0].text.size()) + 1);
    // After kMaxSteps rules the first text found is taken, although it may not be shortest.
    if (!best.empty() && ((one && least > best[0].text.size()) || steps_ > kMaxSteps)) break;
    if (best.empty() || !one)
      keep_all(best, sequence(symbols, from, {}));
    else
      tie(least, symbols, from, best);
  }
  return best;
}

// Looks for a text that is as short as the best text and earlier in the order of bytes. If the search takes
// too much work, the best text stays.
void Completion::tie(uint64_t least, std::span<const Symbol> symbols, Pending from, ShortTexts& best) {
  // Where the lower bound of the rules is larger than the best text, the alternative has only longer texts,
  // such as one more item.
  const auto seek = [&] {
    if (least + floor_of_rules(symbols) <= best[0].text.size()) keep_all(best, sequence(symbols, from, {}));
  };
  // A tie() inside another tie() shares the work of the outermost tie(), and only the outermost tie() catches
  // the error. If each of a thousand open rules caught the error, catching would take most of the time.
  if (std::exchange(ties_, true)) {
    seek();
    return productions_.start_search();
  }
  const Progress before = now_;
  const uint32_t depth = depth_;
  const Told<bool> others = told_with_work_left([&] {
    const Undo outermost([this] { ties_ = false; });
    const WorkScope part(meter.task(), kTieWork);
    seek();
  });
  // The productions count the steps of a search, too. The steps of this search must not count for the search
  // around it.
  productions_.start_search();
  if (others) return;
  std::erase_if(open_, [&](const auto& o) { return o.second >= depth; });
  depth_ = depth;
  now_ = before;
}

// Remembers the result for a rule that is now closed. The result is final if the search skipped no
// alternative of a rule further out, and if `room` cut off no text. Otherwise the result is a Partial.
// Results from inside this rule that skipped alternatives because of it are dropped, so that a later question
// searches again.
void Completion::note(const Key& key, uint32_t room, const ShortTexts& best) {
  forget_from(depth_);
  const bool hidden = now_.low < depth_;
  if (!hidden && now_.cut == kNone) return rules_.add(key, best, now_.poison);
  found_.insert_or_assign(key, Partial{best, hidden ? now_.low : kClean, room, now_.cut});
  if (!hidden) return;
  if (until_.size() <= now_.low) until_.resize(now_.low + 1);
  until_[now_.low].push_back(key);
}

// Drops the results in found_ that hold only while a rule of this depth, or a deeper one, is open. A result
// that was replaced in the meantime has another `low` and stays.
void Completion::forget_from(uint32_t depth) {
  for (; until_.size() > depth; until_.pop_back())
    for (const Key& key : until_.back())
      if (const auto it = found_.find(key);
          it != found_.end() && it->second.low >= depth && it->second.low != kClean)
        found_.erase(it);
}

}  // namespace structgen
