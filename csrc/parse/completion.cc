// How a shortest text is found that completes a state; completion.h says who needs one.
//
// The problem. A budget needs the shortest text that ends what was begun. Rules refer to each other in
// circles, and their alternatives appear only when they are expanded, so no table of lengths can be
// computed beforehand.
//
// The idea. A depth-first search that keeps what it learns. rule() tries the alternatives of a rule,
// those with the least text of their own first, and stops when the next one cannot be shorter. A rule
// in progress counts as endless: a shortest derivation has no rule within itself (Knuth 1977). Behind
// `{"a": [`, in a schema whose items are objects of the same kind:
//
//     item()        the regex at hand, then its stacks, symbol by symbol: stack()
//     rule(items)   alternatives `]` (1 byte) and item (`{`, 1 byte, and more): `]` is tried first
//     best          `]`; the other one needs at least 1 byte more (floor()), so it is not looked into
//     then          the rest of the stack: `}`. The completion is `]}`
//
// A symbol has several ways if lexemes may run into each other: each pending (parse/alive.h) keeps its
// own shortest text. Among texts of one length the first in the order of bytes wins, so there is one
// answer.
//
// What the search misses. A rule in progress hides the alternatives that lead through it. An answer
// that was found meanwhile is marked with the depth of the shallowest such rule (low_). It goes to
// rules_ only if no rule above was hidden; else it is a Partial, which is forgotten when that rule is
// closed. If the search finds nothing although there is a text (rules that need each other in a
// circle), settle() computes the least fixpoint over the rules that were met.
//
// Rules without an end. An array whose items are compared has another rule behind each item. A search that
// follows them deeper and deeper never returns where no item brings the end nearer: of oneOf [{items: M},
// {items: integers, contains: large, unique}], `[7,0,1,2,...` is in both as long as the items differ. So
// rule() searches within a number of bytes, which doubles until no text that was cut off (cut_) can be
// shorter than the best one.
//
// Invariants.
// - A text that is returned completes the state: the parser reads it to its end.
// - What is kept is a function of its key. No answer depends on what was asked before.
// - If text is captured, the search ran with that text. If the text is not known, poison_ says so, and
//   text_matters() tells the caller.
//
// Costs. Work is charged: 10 units per rule, and those of the witnesses of regexes. A rule is expanded
// once for each restriction on the next byte (a Pending, parse/alive.h) that stands before it. Ways from
// where stacks join are kept; a straight stack is walked anew, with a search of its own for each symbol.
//
// Rejected.
// - Dijkstra over rules: the alternatives of all rules would have to be known before the first answer.
// - Exact lengths without texts, and the text on demand: budgets cut the text into tokens, so it is
//   needed.
#include "parse/completion.h"

#include <algorithm>

#include "base/depth.h"
#include "base/error.h"
#include "base/told.h"
#include "base/undo.h"
#include "base/work.h"

namespace structgen {

namespace {
// The most rules of one search. Beyond them the search takes the first way that it finds. At ten times as
// many it fails.
constexpr uint64_t kMaxSteps = 2'000;
// The most bytes of one text.
constexpr uint32_t kMaxText = 200'000;
constexpr const char* kNotFound = "no text was found of what is too much to tell";
constexpr uint32_t kClean = 0xFFFFFFFFu;
// The first bound of a search, in bytes. It doubles until an answer is proved.
constexpr uint32_t kFirstRoom = 16;
// The work of one search for a text that is as short as the best one: half a millisecond.
constexpr int64_t kTieWork = 5'000;
// The work of a byte of a regex's text: a search that finds it makes a node for each at least. The work of an
// error in the frames of one rule.
constexpr std::size_t kByteWork = 16;
constexpr int64_t kFrameWork = 40;
// A lower bound looks into rules down to this depth.
constexpr uint32_t kFloorDepth = 3;
// If at most so many names may come, the value of each member is looked at before a member is chosen.
constexpr std::size_t kFewChoices = 64;

// Labels count from 1, so that "no label" has a key of its own.
uint64_t rule_key(RuleId r, const Reading& reading) {
  return (static_cast<uint64_t>(r.v) << 32) | (reading.kind == Reading::kLabel ? reading.label + 1 : 0);
}
}  // namespace

std::size_t Completion::size_of(const Ways& ways) {
  std::size_t out = 104;
  for (const Way& w : ways) out += sizeof(Way) + size_of(w.text);
  return out;
}

const Completion::Kept::Entry* Completion::Kept::find(const Key& key) const {
  uint32_t id;
  const bool known =
      index_.find(mix(key.rule, key.from), [&](uint32_t i) { return entries_[i].key == key; }, id);
  return known ? &entries_[id] : nullptr;
}

void Completion::Kept::add(const Key& key, const Ways& ways, bool poison) {
  std::vector<KeptWay> kept;
  for (const Way& w : ways)
    kept.push_back({pool_.copy(std::span<const char>(w.text)).data(), static_cast<uint32_t>(w.text.size()),
                    w.to, w.capture});
  const Entry entry{key, pool_.copy(std::span<const KeptWay>(kept)), poison};
  index_.find_or_add(
      mix(key.rule, key.from), [&](uint32_t i) { return entries_[i].key == key; },
      [&] { return entries_.emplace_back(entry); });
}

Completion::Ways Completion::Kept::ways(const Entry& entry) {
  Ways out;
  for (const KeptWay& w : entry.ways) out.push_back({w.to, {w.text, w.size}, w.capture});
  return out;
}

// Keeps a way if it is better than the one with the same pending: shorter, or earlier in the order of
// bytes.
void Completion::keep(Ways& best, Pending to, std::string text, CaptureId c) {
  for (Way& w : best)
    if (w.to == to) {
      if (text.size() < w.text.size() || (text.size() == w.text.size() && text < w.text))
        w = {to, std::move(text), c};
      return;
    }
  best.push_back({to, std::move(text), c});
}

// A shortest text of a regex, which is kept. The mark of an edge (kEdge) counts as the empty text. A shortest
// text of E{m,n} t is m times the text of E, then the text of t, so the counts of a run need no searches.
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
      charge(1 + run.min / 64);
      const std::string& one = shortest(run.element);
      for (uint32_t i = 0; i < run.min; ++i) text += one;
      text += shortest(run.tail);
      found = true;
    } else {
      found = parser_.regexes().witness(r, text);
    }
  } catch (const Error& e) {
    // This limit belongs to one search and not to the call, so another search would meet it again.
    if (e.kind() == ErrorKind::kSchemaTooComplex) unknown_.insert(r.v);
    throw;
  }
  if (!found) throw Error(ErrorKind::kBudgetExceeded, kNotFound);
  charge(static_cast<int64_t>(kByteWork * text.size()));
  const auto it = regexes_.emplace(r.v, std::move(text)).first;
  bytes_ += size_of(it->second);
  return it->second;
}

// A lower bound of the bytes of a text of r. An edge in r is no text, hence the 1 in grammars with
// edges.
uint32_t Completion::floor(RegexId r) {
  const uint32_t least = parser_.regexes().least_length(r);
  return parser_.marked() ? std::min(1u, parser_.marks(r) ? 0u : least) : least;
}

// A lower bound of the bytes of the symbols. Rules are looked into up to kFloorDepth; captured text
// counts as empty.
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

// The same for those symbols alone that are rules. Each rule is expanded once.
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
  // Deeper calls see fewer rules, so their bounds are lower. Only the bound of depth 0 is kept.
  if (depth == 0) floors_.emplace(key, out);
  return out;
}

// A set of literals, followed by the reader of its label: the literal decides what follows, so each
// literal is tried with its own continuation. For {"id": 1, "description": "..."} it is a choice of the
// pair that is short, not of the name.
Completion::Ways Completion::labelled(RegexId r, RuleId reader) {
  check_depth();
  RegexArena& regexes = parser_.regexes();
  Ways best;
  Reading reading;
  reading.kind = Reading::kLabel;
  const RegexNode node = regexes.node(r);
  const bool literals = node.kind == RegexKind::kLiteralSet;
  if (literals && regexes.literal_set_of(r).escape != 0) {
    // Behind a backslash each byte that may come leaves other literals.
    regexes.live(r).for_each([&](uint8_t b) {
      for (Way& w : labelled(regexes.step(r, b), reader)) keep(best, w.to, static_cast<char>(b) + w.text, {});
    });
    return best;
  }
  if (!literals) {
    const std::string text = shortest(r);
    const RegexNode& end = regexes.node(regexes.run(r, text));
    if (end.kind != RegexKind::kDone) return {};
    reading.label = end.min;
    for (Way& w : behind(text.size(), [&] { return rule(reader, reading, Alive::kClear); }))
      keep(best, w.to, text + w.text, {});
    return best;
  }
  const LiteralSet set = regexes.literal_set_of(r);
  const LiteralTable& table = regexes.tables().table(set.table);
  struct Choice {
    std::string text;
    uint32_t label, least;
  };
  std::vector<Choice> choices;
  for (uint32_t i = set.lo; i < set.hi; ++i) {
    if (!regexes.tables().any_allowed(set.subset, i, i + 1)) continue;
    std::string text = written(std::string_view(table.texts[i]).substr(set.depth), regexes.spelling());
    text += static_cast<char>(regexes.spelling().end);
    choices.push_back({std::move(text), table.labels[i], 0});
  }
  // The value of a member counts at its lower bound here, so a name with a long value is not looked
  // into.
  for (Choice& c : choices) {
    reading.label = c.label;
    c.least = static_cast<uint32_t>(c.text.size());
    if (choices.size() > 1 && choices.size() <= kFewChoices) c.least += floor(reader, reading, 0);
  }
  std::stable_sort(choices.begin(), choices.end(),
                   [](const Choice& x, const Choice& y) { return x.least < y.least; });
  // Of several names of one length the first one wins.
  for (const Choice& c : choices) {
    if (!best.empty() && c.least >= best[0].text.size()) break;
    reading.label = c.label;
    for (Way& w : behind(c.text.size(), [&] { return rule(reader, reading, Alive::kClear); }))
      keep(best, w.to, c.text + w.text, {});
  }
  return best;
}

// Appends a text to a capture that is open and known.
void Completion::capture(CaptureId& c, std::string_view text) {
  if (c.v <= 1) return;
  for (char b : text) c = parser_.captures().append(c, static_cast<uint8_t>(b));
}

// The ways of one symbol.
Completion::Ways Completion::symbol(Symbol s, Pending from) {
  if (s.kind() == Symbol::kRule) {
    Ways found = rule(s.rule_id(), Reading{}, from);
    if (parser_.alive().plain(s.rule_id()) || from == Alive::kClear) return found;
    // A rule of another kind of grammar knows no pendings. Its text is taken if its first byte may
    // stand here.
    const RegexId follow = parser_.alive().follow(from);
    std::erase_if(found, [&](const Way& w) {
      return !w.text.empty() && follow != RegexArena::empty() &&
             parser_.regexes()
                 .byte_set(parser_.regexes().node(follow).a)
                 .has(static_cast<uint8_t>(w.text[0]));
    });
    return found;
  }
  std::vector<Alive::Step> steps;
  parser_.alive().steps(s, from, steps);
  Ways out;
  for (const Alive::Step& step : steps)
    if (step.regex == RegexArena::poison())
      poison_ = true;
    else
      keep(out, step.to, shortest(step.regex), {});
  return out;
}

// Expands the reader of the innermost capture, which ends here.
Completion::Ways Completion::read(RuleId reader, CaptureId& c, Pending from) {
  Reading reading;
  reading.kind = Reading::kUnknown;
  if (c.v > 1) {
    CaptureId outer;
    reading.kind = Reading::kText;
    reading.text = parser_.captures().finish(c, outer);
    c = outer;
  }
  return rule(reader, reading, from);
}

// The ways of a sequence, symbol by symbol. `c` is the capture that is open where it begins.
Completion::Ways Completion::sequence(std::span<const Symbol> symbols, Pending from, CaptureId c) {
  check_depth();
  Ways now{{from, "", c}};
  for (std::size_t i = 0; i < symbols.size() && !now.empty(); ++i) {
    const Symbol s = symbols[i];
    if (s.kind() == Symbol::kCapture) {
      for (Way& w : now) w.capture = parser_.captures().start(w.capture);
      continue;
    }
    const bool labels =
        s.kind() == Symbol::kTerminal && parser_.regexes().node(s.regex()).labelled && i + 1 < symbols.size();
    Ways next;
    for (const Way& w : now) {
      if (s.kind() == Symbol::kTerminal && s.regex() == RegexArena::poison()) {
        poison_ = true;
        continue;
      }
      CaptureId here = w.capture;
      const std::span<const Symbol> rest = symbols.subspan(i + (labels ? 2 : 1));
      const Ways parts = behind(w.text.size() + own_text(rest), [&] {
        return labels                        ? labelled(s.regex(), symbols[i + 1].rule_id())
               : s.kind() == Symbol::kReader ? read(s.rule_id(), here, w.to)
                                             : symbol(s, w.to);
      });
      for (const Way& part : parts) {
        CaptureId after = here;
        capture(after, part.text);
        if (w.text.size() + part.text.size() <= kMaxText) keep(next, part.to, w.text + part.text, after);
      }
    }
    if (labels) ++i;
    now = std::move(next);
  }
  return now;
}

// A lower bound of the bytes of the symbols that are no rules.
uint64_t Completion::own_text(std::span<const Symbol> symbols) {
  uint64_t least = 0;
  for (Symbol s : symbols)
    if (s.kind() == Symbol::kTerminal)
      least += floor(s.regex());
    else if (s.kind() == Symbol::kLexeme || s.kind() == Symbol::kReader)
      ++least;
  return least;
}

// What f() returns, a search for the rest of a text of which so many bytes are written already. The search
// has so many bytes less of room_, and where it was cut short (cut_) counts from the beginning of the text
// again.
template <class F>
Completion::Ways Completion::behind(std::size_t bytes, F&& f) {
  const uint32_t room = room_, cut = std::exchange(cut_, kNone);
  room_ -= static_cast<uint32_t>(std::min<std::size_t>(room, bytes));
  Ways out = f();
  cut_ = static_cast<uint32_t>(std::min<uint64_t>(cut, uint64_t{cut_} + bytes));
  room_ = room;
  return out;
}

// The ways of a rule. The outermost call deepens its limit: it looks for ways of at most kFirstRoom bytes,
// then of twice as many.
Completion::Ways Completion::rule(RuleId r, const Reading& reading, Pending from) {
  if (depth_ > 0) return within(r, reading, from);
  for (uint32_t room = kFirstRoom;; room *= 2) {
    room_ = room;
    cut_ = kNone;
    found_.clear();
    until_.clear();
    Ways out = within(r, reading, from);
    const uint32_t cut = std::exchange(cut_, kNone);
    room_ = kNone;
    const auto proved = [&](const Way& w) { return w.text.size() < cut; };
    if (cut == kNone || (!out.empty() && std::ranges::all_of(out, proved))) return out;
    if (room > kMaxText)
      throw Error(ErrorKind::kBudgetExceeded, "the shortest completion is too long to find");
    steps_ = 0;
    productions_.start_search();
  }
}

// The ways of a rule within room_: those that are known, else those that a search finds. The search keeps
// track of open rules.
Completion::Ways Completion::within(RuleId r, const Reading& reading, Pending from) {
  check_depth();
  const bool memo = reading.kind == Reading::kNone || reading.kind == Reading::kLabel;
  if (!parser_.alive().plain(r)) from = Alive::kClear;
  const Key key{rule_key(r, reading), from};
  if (settling_ && reading.kind == Reading::kNone && parser_.alive().plain(r)) return settled(key);
  if (memo) {
    if (const Kept::Entry* known = rules_.find(key)) {
      poison_ = poison_ || known->poison;
      return Kept::ways(*known);
    }
    if (const auto it = found_.find(key);
        it != found_.end() && (it->second.exact() || room_ <= it->second.room)) {
      low_ = std::min(low_, it->second.low);
      cut_ = std::min(cut_, it->second.cut);
      return it->second.ways;
    }
    if (const auto it = open_.find(key); it != open_.end()) {
      low_ = std::min(low_, it->second);
      return {};
    }
  }
  if (reading.kind == Reading::kText && room_ == 0) {
    cut_ = 0;
    return {};
  }
  if (depth_ >= recursion_ || ++steps_ > 10 * kMaxSteps)
    throw Error(ErrorKind::kBudgetExceeded, "the shortest completion takes too long to find");
  ++work_;
  charge(10);
  const uint32_t before = low_, mine = depth_++, room = room_, cut_before = std::exchange(cut_, kNone);
  const bool poison_before = poison_;
  low_ = kClean;
  poison_ = false;
  if (memo) open_.emplace(key, mine);
  Alternatives alts;
  productions_.expand_shortest(r, reading, alts);
  Ways best;
  const bool one = !parser_.alive().plain(r);
  // Short alternatives first: closing an object is found before another member is tried.
  for (const auto& [least, symbols] : by_cost(alts, [&](std::span<const Symbol> s) { return own_text(s); })) {
    // Only a text that is no longer can be better.
    if (!best.empty() && one) room_ = std::min(room, static_cast<uint32_t>(best[0].text.size()) + 1);
    // Beyond the limit of steps the first way is good enough.
    if (!best.empty() && ((one && least > best[0].text.size()) || steps_ > kMaxSteps)) break;
    if (best.empty() || !one) {
      for (Way& w : sequence(symbols, from, {})) keep(best, w.to, std::move(w.text), {});
      continue;
    }
    // An equally short text may come first in the order of bytes. If that is too much to tell, the
    // answer stays.
    const uint32_t met = low_, cut = cut_, left = room_;
    const bool poison = poison_;
    // An alternative with one more item in front of the rest is longer, whatever follows.
    const auto seek = [&] {
      return least + floor_of_rules(symbols) > best[0].text.size() ? Ways{} : sequence(symbols, from, {});
    };
    // A search within such a search has the same limit, so its errors go on to the outer one. If each of a
    // thousand open rules caught them, the errors took most of the time.
    if (std::exchange(ties_, true)) {
      for (Way& w : seek()) keep(best, w.to, std::move(w.text), {});
      productions_.start_search();
      continue;
    }
    Told<Ways> others = told([&] {
      const Undo outermost([this] { ties_ = false; });
      const WorkScope part(meter.task(), kTieWork);
      return seek();
    });
    // These steps must not count against the limit of the search at hand.
    productions_.start_search();
    if (!others) {
      if (meter.exhausted()) std::move(others).value();
      std::erase_if(open_, [&](const auto& o) { return o.second > mine; });
      depth_ = mine + 1;
      low_ = met;
      cut_ = cut;
      room_ = left;
      poison_ = poison;
      continue;
    }
    for (Way& w : *others) keep(best, w.to, std::move(w.text), {});
  }
  if (memo) open_.erase(key);
  depth_ = mine;
  room_ = room;
  if (one && !best.empty() && best[0].text.size() < cut_) cut_ = kNone;
  if (memo) {
    // Alternatives that this rule hid are visible now, so answers without them are made again.
    forget_from(mine);
    if (low_ >= mine && cut_ == kNone) {
      rules_.add(key, best, poison_);
    } else {
      const uint32_t low = low_ >= mine ? kClean : low_;
      found_.insert_or_assign(key, Partial{best, low, room, cut_});
      if (low != kClean) {
        if (until_.size() <= low) until_.resize(low + 1);
        until_[low].push_back(key);
      }
    }
  }
  low_ = low_ >= mine ? before : std::min(low_, before);
  cut_ = std::min(cut_, cut_before);
  poison_ = poison_ || poison_before;
  return best;
}

// Forgets the answers of found_ that end with an open rule of this depth or a deeper one. An answer that was
// replaced may end with another rule.
void Completion::forget_from(uint32_t depth) {
  for (; until_.size() > depth; until_.pop_back())
    for (const Key& key : until_.back())
      if (const auto it = found_.find(key);
          it != found_.end() && it->second.low >= depth && it->second.low != kClean)
        found_.erase(it);
}

// Goes down a stack. There is a choice only where stacks join. The symbols behind an open capture
// depend on its text, so nothing is remembered for them.
Completion::Ways Completion::stack(StackId s, Pending from, CaptureId c) {
  check_depth();
  Ways done, now{{from, "", c}};
  while (!now.empty()) {
    // Each symbol has a search of its own.
    if (depth_ == 0 && !settling_) steps_ = 0;
    for (const Way& w : now) work_ += 1 + w.text.size() / 256;
    charge(static_cast<int64_t>(4 * now.size()));
    if (parser_.stacks().has_end(s)) {
      for (Way& w : now) keep(done, Alive::kClear, std::move(w.text), {});
      break;
    }
    const auto entries = parser_.stacks().entries(s);
    if (entries.size() != 1) {
      for (const Way& w : now) {
        const bool memo = w.capture.v <= 1 && !settling_;
        const Key key{s.v, w.to};
        Ways best;
        if (const Kept::Entry* known = memo ? stacks_.find(key) : nullptr) {
          best = Kept::ways(*known);
          poison_ = poison_ || known->poison;
        } else {
          const bool poison_before = poison_;
          poison_ = false;
          for (const StackEntry& e : entries) {
            const Symbol top = e.top;
            for (const Way& first : sequence({&top, 1}, w.to, w.capture))
              for (const Way& rest : stack(e.rest, first.to, first.capture))
                keep(best, Alive::kClear, first.text + rest.text, {});
          }
          if (memo && !best.empty() && best[0].text.size() < 4096) stacks_.add(key, best, poison_);
          poison_ = poison_ || poison_before;
        }
        for (const Way& rest : best) keep(done, Alive::kClear, w.text + rest.text, {});
      }
      break;
    }
    const StackEntry e = entries[0];
    const Symbol top = e.top;
    Ways next;
    for (const Way& w : now)
      for (const Way& part : sequence({&top, 1}, w.to, w.capture))
        keep(next, part.to, w.text + part.text, part.capture);
    for (const Way& w : next)
      if (w.text.size() > 64u * kMaxText)
        throw Error(ErrorKind::kBudgetExceeded, "the shortest completion is too long");
    now = std::move(next);
    s = e.rest;
  }
  return done;
}

// The ways of an item: the rest of its regex, then its stacks.
Completion::Ways Completion::item(const Item& i) {
  if (i.regex == RegexArena::poison()) {
    poison_ = true;
    return {};
  }
  Ways best;
  CaptureId c = i.capture;
  if (!parser_.regexes().node(i.regex).labelled) {
    const std::string text = shortest(i.regex);
    capture(c, text);
    for (const Way& w : stack(i.stack, Alive::kClear, c)) keep(best, w.to, text + w.text, {});
    return best;
  }
  for (const StackEntry& e : parser_.stacks().entries(i.stack)) {
    for (const Way& first : labelled(i.regex, e.top.rule_id())) {
      CaptureId here = c;
      capture(here, first.text);
      for (const Way& rest : stack(e.rest, first.to, here)) keep(best, rest.to, first.text + rest.text, {});
    }
  }
  return best;
}

// What is known of a rule so far. The rule that asks is looked at again when more becomes known.
Completion::Ways Completion::settled(const Key& key) {
  const auto [it, fresh] = settled_.try_emplace(key);
  if (fresh) todo_.push_back(key);
  std::vector<Key>& users = it->second.users;
  if (at_ && std::find(users.begin(), users.end(), *at_) == users.end()) users.push_back(*at_);
  return it->second.ways;
}

// Least fixpoint over the rules that were asked for.
void Completion::settle() {
  Alternatives alts;
  while (!todo_.empty()) {
    if (++steps_ > 10 * kMaxSteps)
      throw Error(ErrorKind::kBudgetExceeded, "the shortest completion takes too long to find");
    ++work_;
    charge(10);
    const Key key = todo_.back();
    todo_.pop_back();
    settled_[key].waiting = false;
    at_ = &key;
    alts.symbols.clear();
    alts.ends.clear();
    productions_.expand(RuleId{static_cast<uint32_t>(key.rule >> 32)}, Reading{}, alts);
    const Ways before = settled_[key].ways;
    Ways best = before;
    for (const std::span<const Symbol> symbols : alts.each())
      for (Way& w : sequence(symbols, key.from, {})) keep(best, w.to, std::move(w.text), {});
    at_ = nullptr;
    const auto same = [](const Way& x, const Way& y) { return x.to == y.to && x.text == y.text; };
    if (std::equal(best.begin(), best.end(), before.begin(), before.end(), same)) continue;
    bytes_ += std::max(size_of(best), size_of(before)) - size_of(before);
    Settled& known = settled_[key];
    known.ways = std::move(best);
    for (const Key& user : known.users) {
      Settled& u = settled_[user];
      if (u.waiting) continue;
      u.waiting = true;
      todo_.push_back(user);
    }
  }
}

// All ways of a state: by the search, and if that finds nothing, by the fixpoint.
Completion::Ways Completion::all(StateId s) {
  Ways out;
  for (const Item& i : parser_.items(s))
    for (Way& w : item(i)) keep(out, Alive::kClear, std::move(w.text), {});
  if (!out.empty()) return out;
  settling_ = true;
  try {
    do {
      settle();
      for (const Item& i : parser_.items(s))
        for (Way& w : item(i)) keep(out, Alive::kClear, std::move(w.text), {});
    } while (!todo_.empty());
    // The facts are not complete.
  } catch (...) {
    settled_.clear();
    todo_.clear();
    at_ = nullptr;
    settling_ = false;
    throw;
  }
  settling_ = false;
  settled_poison_ = settled_poison_ || poison_;
  poison_ = settled_poison_;
  return out;
}

void Completion::begin_search() {
  steps_ = 0;
  depth_ = 0;
  low_ = kClean;
  room_ = cut_ = kNone;
  poison_ = ties_ = false;
  open_.clear();
  found_.clear();
  until_.clear();
  productions_.start_search();
}

uint32_t Completion::length(RuleId r) {
  begin_search();
  const auto search = [&] {
    const Ways found = rule(r, Reading{}, Alive::kClear);
    return found.empty() ? kNone : static_cast<uint32_t>(found[0].text.size());
  };
  return told(search).value_or(kNone);
}

uint32_t Completion::length(RegexId r) {
  return told([&] { return static_cast<uint32_t>(shortest(r).size()); }).value_or(kNone);
}

const std::string& Completion::of(StateId s) {
  const auto [it, fresh] = states_.try_emplace(s.v);
  if (!fresh || parser_.state(s).accepting) return it->second;
  begin_search();
  try {
    Ways all = this->all(s);
    if (all.empty()) throw Error(ErrorKind::kBudgetExceeded, "no completion was found");
    if (poison_) tainted_states_.insert(s.v);
    std::string& out = states_[s.v] = std::move(all[0].text);
    out.shrink_to_fit();
    bytes_ += size_of(out);
    return out;
  } catch (...) {
    states_.erase(s.v);
    // The search may have stopped before it met poison.
    tainted_states_.insert(s.v);
    // The error passed through the frames of all open rules.
    meter.spend(kFrameWork * depth_);
    throw;
  }
}

}  // namespace structgen
