// How facts are found: "this rule, begun at this place of the path, may end at these places".
//
// The problem. A text with holes stands for very many texts. Without trying them: does the grammar have one
// of these texts, which parts of the grammar read which stretch of it, and which text shows that?
//
// The idea. The text is a path of spots (holes/path.h): a fixed byte leads from one spot to the next,
// and a hole leads round to its own spot. A fact is a rule at a place (a spot, and the bytes that may
// not follow the lexeme read last) with its exits. For S -> "a" S "b" | "" and the text `a` HOLE `b`,
// spots 0 (before a), 1 (the hole), 2 (the end):
//
//     (S, 0)            waits for "a": spot 1. Then S is asked for at 1
//     (S, 1)            exit 1, by the empty text; "a" in the hole leads to 1, so S waits for itself there;
//                       behind it "b" leads to 1, in the hole, and to 2, the fixed byte: exits 1 and 2
//     (S, 0) goes on    from 1 "b" leads to 1 and 2. Exit 2 is the end, so the text can be completed
//
// A step is an alternative that is read up to a symbol. Steps are interned, so each is taken once. A
// step that needs a fact is put on the fact's list (`waiting`) and goes on with every exit that is
// found later. There is no recursion, because a hole that leads round would never end.
//
// Captured text. If both ends of a captured text are fixed, its reader is told the text. If few texts are
// possible, the reader is told each of them. Otherwise the reader is told that the text differs from all
// others (Reading::kFresh). A place behind such a reader may be `assumed`; the proved place is another place.
// Quotient proves an assumption or says that it cannot.
//
// Witnesses. Each exit has one way: a tree of terminals and stretches. This is the first way that was found,
// or a shortest way (prefer_short()): if a shorter way to a step or an exit is found, the steps behind it are
// taken again, so that lengths settle as in the method of Bellman and Ford. witness() writes the text of a
// way, letters and digits first so that people can read it; `vary` chooses different texts for stretches that
// are compared, such as items of uniqueItems.
//
// Invariants.
// - Once run() has emptied the list, a fact has all its exits, unless it is `unsure`: poison stood in
//   its way. An unsure fact makes every fact unsure that waits for it (doubt()).
// - Heads and alternatives stay where they are. A place is pushed before its key, so every key leads to
//   a place.
//
// Costs. A step for each symbol and place that is met; a stretch of a regex is read once for each regex
// and spot. Linear in the fixed text where rules end at few places, at most quadratic in it for each
// rule.
//
// Rejected. A parser over sets of bytes: it would forget which part read which stretch, and a hole of
// any length has no last state. Earley items over spots give the same table; facts keep only the parts
// of it that are asked for from the left.
#include "holes/facts.h"

#include <algorithm>
#include <optional>
#include <set>
#include <unordered_set>

#include "base/depth.h"
#include "base/error.h"
#include "base/undo.h"
#include "base/work.h"
#include "holes/anywhere.h"

namespace structgen {

namespace {
// The most captured texts of a hole that are tried one by one.
constexpr std::size_t kTriedTexts = 64;
// The most steps of the search for these texts.
constexpr std::size_t kTriedSteps = 4096;
// The most bytes of a witness.
constexpr std::size_t kMaxWitness = 1u << 20;
// The most texts of one terminal that are tried for a witness.
constexpr std::size_t kMaxVaried = 4096;
// A search for exits that has met kManyPairs pairs asks how many exits there can be.
constexpr std::size_t kManyPairs = 256;
// More bytes than any shortest text has.
constexpr uint64_t kAnyLength = ~uint64_t{0};
constexpr uint64_t key(uint32_t a, uint32_t b) { return (static_cast<uint64_t>(a) << 32) | b; }

// The order of bytes in witnesses: letters and digits come first, so that people can read them.
bool plain_first(uint8_t a, uint8_t b) {
  const auto odd = [](uint8_t c) {
    return !((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'));
  };
  return std::pair(odd(a), a) < std::pair(odd(b), b);
}

// The bytes with which texts of the regex may end; all bytes if the form of the regex does not tell.
ByteSet last_bytes(const RegexArena& regexes, RegexId r) {
  check_depth();
  const RegexNode& n = regexes.node(r);
  switch (n.kind) {
    case RegexKind::kBytes: return regexes.byte_set(n.a);
    case RegexKind::kLiteral: return ByteSet::of(static_cast<uint8_t>(n.text[n.n - 1]));
    case RegexKind::kCat: {
      const RegexId tail{n.b};
      return regexes.node(tail).nullable ? ByteSet::all() : last_bytes(regexes, tail);
    }
    case RegexKind::kAnd:
    case RegexKind::kAlt: {
      const bool every = n.kind == RegexKind::kAnd;
      ByteSet out = every ? ByteSet::all() : ByteSet{};
      for (uint32_t i = 0; i < n.n; ++i) {
        const ByteSet one = last_bytes(regexes, RegexId{n.kids[i]});
        out = every ? out & one : out | one;
      }
      return out;
    }
    default: return ByteSet::all();
  }
}

[[noreturn]] void few_values() {
  throw Error(
      ErrorKind::kSchemaTooComplex,
      "a condition cannot be decided where items have to differ (uniqueItems) that have few values in "
      "many spellings; strings=\"plain\" has one spelling of a string");
}
}  // namespace

Facts::Facts(RegexArena& regexes, Productions& productions, Alive& alive, Path& path, bool asked_again,
             bool marked)
    : regexes_(regexes),
      productions_(productions),
      alive_(alive),
      path_(path),
      free_(asked_again && !productions.restricted()),
      marked_(marked) {}

std::size_t Facts::byte_size() const {
  return places_.capacity() * sizeof(Place) + place_index_.byte_size() + heads_.size() * 200 +
         head_index_.byte_size() + facts_.capacity() * sizeof(Fact) + facts_.size() * 48 +
         fact_index_.byte_size() + left_.byte_size() + steps_.capacity() * sizeof(Step) +
         step_index_.byte_size() + ways_.capacity() * sizeof(Way) + read_index_.byte_size() +
         exits_.capacity() * sizeof(Exit) + shortest_bytes_ + path_.byte_size();
}

// In the last hole, other text can stand between two lexemes if no restriction holds. Then every byte may
// come next, and the pending restriction is dropped. A lexeme that begins with the text behind the hole is
// the exception, which the parser checks again.
Facts::At Facts::at(Spot spot, Alive::Pending pending, bool assumed) {
  if (pending != Alive::kClear && free_ && path_.loops(spot) && path_.text_behind(spot))
    pending = alive_.without_follow(pending);
  const uint64_t at = key(spot, pending) | (uint64_t{assumed} << 63);
  if (const uint32_t* known = place_index_.find(at)) return *known;
  // The place comes before its key: if memory runs out, no key leads to a place that is missing.
  places_.push_back({spot, pending, assumed});
  return place_index_.emplace(at, static_cast<uint32_t>(places_.size() - 1)).first;
}

Facts::Head Facts::reader(RuleId rule, const Reading& reading) {
  const auto add = [&] {
    heads_.emplace_back();
    heads_.back().rule = rule;
    heads_.back().reading = reading;
    return static_cast<Head>(heads_.size() - 1);
  };
  if (reading.kind == Reading::kText) {
    if (const auto known = told_.find({rule.v, reading.text}); known != told_.end()) return known->second;
    return told_.try_emplace({rule.v, reading.text}, add()).first->second;
  }
  const uint32_t told = reading.kind == Reading::kLabel     ? reading.label + 3
                        : reading.kind == Reading::kUnknown ? 1
                        : reading.kind == Reading::kFresh   ? 2
                                                            : 0;
  const uint64_t at = key(told, rule.v);
  if (const uint32_t* known = head_index_.find(at)) return *known;
  const Head out = add();
  head_index_.emplace(at, out);
  return out;
}

// Heads of tails are found by the addresses of their symbols, which stay where they are.
Facts::Head Facts::tail(const Symbol* begin, const Symbol* end, uint32_t label) {
  if (const auto known = tails_.find({begin, end, label}); known != tails_.end()) return known->second;
  heads_.emplace_back();
  Alternative& h = heads_.back();
  h.expanded = true;
  h.label = label;
  h.all.symbols.assign(begin, end);
  h.all.ends.push_back(static_cast<uint32_t>(h.all.symbols.size()));
  return tails_.try_emplace({begin, end, label}, static_cast<Head>(heads_.size() - 1)).first->second;
}

const Alternatives& Facts::alternatives(Head h) {
  Alternative& a = heads_[h];
  if (!a.expanded) {
    charge(4);
    Alternatives all;
    productions_.expand(a.rule, a.reading, all);
    charge(static_cast<int64_t>(all.symbols.size()));
    a.all = std::move(all);
    a.expanded = true;
    a.compared = a.reading.kind == Reading::kNone && productions_.compared(a.rule);
    a.reading = Reading{};
    a.rule = RuleId{0};
  }
  return a.all;
}

uint32_t Facts::opened(uint32_t captures, At here) {
  const uint64_t at = key(captures, here);
  if (const uint32_t* known = capture_index_.find(at)) return *known;
  captures_.push_back({here, captures});
  return capture_index_.emplace(at, static_cast<uint32_t>(captures_.size() - 1)).first;
}

// ---- regexes along the path ----

// All exits of a regex from a spot, found once: a search over pairs of derivative and spot. A hole
// before the last text is special: the derivatives after any text (anywhere.h) are stepped into that
// text, instead of being found by going round the hole.
std::span<const Facts::Exit> Facts::reads(RegexId r, Spot from) {
  const uint64_t at = key(r.v, from);
  if (const uint32_t* known = read_index_.find(at))
    return {exits_.data() + read_[*known].first, exits_.data() + read_[*known].second};
  std::vector<Exit> found;
  struct Open {
    RegexId regex;
    Spot spot;
  };
  std::vector<Open> todo, next;  // `next`: behind so many bytes, `todo`: behind one less
  uint32_t bytes = 0;
  FlatMap<uint64_t, bool> seen;
  // No pair can be met twice, so none is remembered.
  bool once = true;
  std::set<Spot> left;
  const auto leave = [&](Spot s, uint32_t label, uint32_t length) {
    furthest_ = std::max(furthest_, s < path_.nodes() ? s : 0);
    left.insert(s);
    found.push_back({s, label, length});
  };
  // A search of many pairs asks once how many exits there can be, and ends with the last of them.
  std::optional<std::size_t> most;
  const auto all_found = [&] {
    if (seen.size() < kManyPairs || regexes_.node(r).labelled) return false;
    if (!most) most = path_.spots_behind(from, last_bytes(regexes_, r));
    return left.size() == *most;
  };
  const auto meet = [&](RegexId d, Spot s) {
    if (d == RegexArena::empty()) return;
    if (!once && !seen.emplace(key(d.v, s), true).second) return;
    const RegexNode& n = regexes_.node(d);
    if (n.nullable)
      leave(s, n.kind == RegexKind::kDone ? n.min + 1 : 0, bytes);
    else
      furthest_ = std::max(furthest_, s < path_.nodes() ? s : 0);
    if (n.kind != RegexKind::kEpsilon && n.kind != RegexKind::kDone) next.push_back({d, s});
  };
  const auto step = [&](RegexId d, Spot s) {
    charge();
    if (path_.byte(s) < kEdge) meet(regexes_.step(d, path_.byte(s)), s + 1);
  };
  if (path_.loops(from) && path_.text_behind(from)) {
    once = false;
    bytes = 1;
    const Anywhere& all = anywhere(regexes_, r);
    const uint32_t least = regexes_.least_length(r);
    for (uint32_t label : all.labels) leave(from, label, least);
    for (RegexId left : all.left) step(left, from + 1);
    if (!all.sets.empty()) {
      const std::string rest = path_.text(from + 1, path_.last());
      for (RegexId set : all.sets) {
        const Endings ends = ending_in(regexes_, set, rest);
        for (uint32_t label : ends.plain) leave(from + 2 + static_cast<Spot>(rest.find('"')), label, least);
        for (RegexId other : ends.others)
          for (RegexId left : anywhere(regexes_, other).left) step(left, from + 1);
      }
    }
  } else {
    next.push_back({r, from});
  }
  while (!todo.empty() || !next.empty()) {
    if (todo.empty()) {
      if (all_found()) break;
      todo.swap(next);
      ++bytes;
      continue;
    }
    const auto [d, s] = todo.back();
    todo.pop_back();
    if (path_.single(s)) {
      step(d, s);
      continue;
    }
    once = false;
    const RegexId whole = path_.loops(s) ? without_exceptions(regexes_, d) : d;
    path_.for_each_here(s, [&](Spot here) {
      if (path_.single(here)) return step(whole, here);
      steps(whole, here, [&](uint8_t, RegexId behind, Spot to, bool first) {
        if (first) meet(behind, to);
      });
    });
  }
  // A regex that ends in several ways at one spot ends there once.
  std::sort(found.begin(), found.end(), [](const Exit& x, const Exit& y) {
    return std::tuple(x.spot, x.label, x.length) < std::tuple(y.spot, y.label, y.length);
  });
  found.erase(
      std::unique(found.begin(), found.end(),
                  [](const Exit& x, const Exit& y) { return x.spot == y.spot && x.label == y.label; }),
      found.end());
  const uint32_t begin = static_cast<uint32_t>(exits_.size());
  exits_.insert(exits_.end(), found.begin(), found.end());
  read_.push_back({begin, static_cast<uint32_t>(exits_.size())});
  read_index_.emplace(at, static_cast<uint32_t>(read_.size() - 1));
  return {exits_.data() + begin, exits_.data() + exits_.size()};
}

// Four passes over the graph of pairs (derivative, spot): find it, mark the pairs that lead to the end,
// compute the least number of bytes from each, and find whether it has a cycle, in which case there is
// no end of texts. Then texts are written in the order of their length.
bool Facts::texts(RegexId r, Spot from, Spot to, std::size_t most, std::vector<std::string>& out,
                  uint32_t label, bool finite) {
  struct Partial {
    RegexId regex;
    Spot spot;
    std::string text;
  };
  if (path_.fixed(from, to)) {
    out.push_back(path_.text(from, to));
    return true;
  }
  // Pairs are found forwards.
  std::vector<std::pair<uint32_t, uint32_t>> all;  // regex and spot
  FlatMap<uint64_t, uint32_t> number;
  std::vector<std::vector<uint32_t>> before, after;
  const auto add = [&](RegexId d, Spot s) {
    const auto [n, fresh] = number.emplace(key(d.v, s), static_cast<uint32_t>(all.size()));
    const uint32_t id = n;
    if (fresh) {
      all.push_back({d.v, s});
      before.emplace_back();
      after.emplace_back();
    }
    return id;
  };
  add(r, from);
  const auto ends = [&](uint32_t i) { return this->ends(RegexId{all[i].first}, all[i].second, to, label); };
  std::vector<std::vector<std::pair<uint8_t, uint32_t>>> ways;
  for (uint32_t i = 0; i < all.size(); ++i) {
    const RegexId d{all[i].first};
    const Spot s = all[i].second;
    ways.emplace_back();
    path_.for_each_here(s, [&](Spot here) {
      steps(d, here, [&](uint8_t b, RegexId behind, Spot to, bool first) {
        charge(2);  // an edge is kept in three lists
        const uint32_t k = add(behind, to);
        ways[i].push_back({b, k});
        if (!first) return;
        after[i].push_back(k);
        before[k].push_back(i);
      });
    });
  }
  std::vector<bool> leads(all.size(), false);
  std::vector<uint32_t> back;
  for (uint32_t i = 0; i < all.size(); ++i)
    if (ends(i)) {
      leads[i] = true;
      back.push_back(i);
    }
  while (!back.empty()) {
    const uint32_t i = back.back();
    back.pop_back();
    for (uint32_t p : before[i])
      if (!leads[p]) {
        leads[p] = true;
        back.push_back(p);
      }
  }
  if (!leads[0]) return true;
  // The least number of bytes to the end, and whether there is a cycle: then there are infinitely many
  // texts.
  constexpr uint32_t kFar = 0xFFFFFFFFu;
  std::vector<uint32_t> left(all.size(), kFar), open(all.size(), 0);
  for (uint32_t i = 0; i < all.size(); ++i)
    if (ends(i)) {
      left[i] = 0;
      back.push_back(i);
    }
  for (std::size_t k = 0; k < back.size(); ++k)
    for (uint32_t p : before[back[k]])
      if (left[p] == kFar) {
        left[p] = left[back[k]] + 1;
        back.push_back(p);
      }
  std::vector<uint32_t> ready;
  std::size_t nodes = 0, done = 0;
  for (uint32_t i = 0; i < all.size(); ++i) {
    if (!leads[i]) continue;
    ++nodes;
    for (uint32_t k : after[i]) open[i] += leads[k];
    if (open[i] == 0) ready.push_back(i);
  }
  while (!ready.empty()) {
    const uint32_t i = ready.back();
    ready.pop_back();
    ++done;
    for (uint32_t p : before[i])
      if (leads[p] && --open[p] == 0) ready.push_back(p);
  }
  const bool endless = done < nodes;
  if (endless && finite) return false;
  for (auto& list : ways)
    std::stable_sort(list.begin(), list.end(),
                     [](const auto& x, const auto& y) { return plain_first(x.first, y.first); });
  // All texts of one length, then those of the next.
  std::set<std::string> found;
  std::size_t taken = 0;
  const std::size_t longest = endless ? all.size() + most : all.size();
  for (std::size_t length = std::max<std::size_t>(left[0], 1); length <= longest; ++length) {
    std::string text;
    std::vector<std::pair<uint32_t, std::size_t>> way{{0, 0}};
    while (!way.empty()) {
      charge();
      if (++taken > kTriedSteps + 64 * (most + length)) return false;
      auto& [i, next] = way.back();
      const std::size_t more = length - text.size();
      if (next == 0 && more == 0 && left[i] == 0 && found.insert(text).second) {
        out.push_back(text);
        if (out.size() >= most) return false;
      }
      if (more == 0 || next == ways[i].size()) {
        way.pop_back();
        if (!text.empty()) text.pop_back();
        continue;
      }
      const auto [b, k] = ways[i][next++];
      if (left[k] > more - 1) continue;
      text.push_back(static_cast<char>(b));
      way.push_back({k, 0});
    }
  }
  return !endless;
}

// A shortest text of a leaf, the first in the order of letters and digits before other bytes; empty: none.
// The search goes in breadth, with one byte for each class. Pairs that need more bytes than the length of the
// leaf are left out; if this length is a mere lower bound, as in a hole, a second search has no bound.
const std::string& Facts::shortest(const Way& leaf) {
  const auto [it, fresh] = shortest_.try_emplace({leaf.regex.v, leaf.from, leaf.to, leaf.a});
  std::string& out = it->second;
  if (!fresh) return out;
  Undo forget([&] { shortest_.erase(it); });
  struct Met {
    RegexId regex;
    Spot spot;
    uint32_t before, bytes;
    uint8_t byte;
  };
  for (const uint64_t most : {uint64_t{leaf.length}, kAnyLength}) {
    std::vector<Met> met{{leaf.regex, leaf.from, kNone, 0, 0}}, next;
    FlatMap<uint64_t, bool> seen;
    for (uint32_t i = 0; i < met.size() && out.empty(); ++i) {
      next.clear();
      path_.for_each_here(met[i].spot, [&](Spot here) {
        steps(met[i].regex, here, [&](uint8_t b, RegexId behind, Spot to, bool) {
          const auto known = std::find_if(next.begin(), next.end(),
                                          [&](const Met& m) { return m.regex == behind && m.spot == to; });
          if (known == next.end())
            next.push_back({behind, to, i, met[i].bytes + 1, b});
          else if (plain_first(b, known->byte))
            known->byte = b;
        });
      });
      std::sort(next.begin(), next.end(),
                [](const Met& x, const Met& y) { return plain_first(x.byte, y.byte); });
      for (const Met& m : next) {
        if (ends(m.regex, m.spot, leaf.to, leaf.a)) {
          for (const Met* at = &m; at->before != kNone; at = &met[at->before])
            out.push_back(static_cast<char>(at->byte));
          std::reverse(out.begin(), out.end());
          break;
        }
        if (m.bytes + uint64_t{regexes_.least_length(m.regex)} <= most &&
            seen.emplace(key(m.regex.v, m.spot), true).second)
          met.push_back(m);
      }
    }
    if (!out.empty()) break;
  }
  forget.keep();
  shortest_bytes_ += out.capacity() + 96;
  return out;
}

// ---- captured text ----

// The texts of a regex that lead from one spot to the other, as messages to a reader; no value: there are
// many.
std::optional<std::vector<Reading>> Facts::few(RegexId r, Spot from, Spot to) {
  std::vector<std::string> all;
  if (!texts(r, from, to, kTriedTexts, all, 0, true)) return std::nullopt;
  std::vector<Reading> out(all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    out[i].kind = Reading::kText;
    out[i].text = std::move(all[i]);
  }
  return out;
}

std::vector<Reading> Facts::readings(uint32_t captures, At here, Captured captured) {
  const RegexId terminal = captured.regex;
  Reading out;
  if (captures == 0) {
    out.kind = Reading::kUnknown;
    return {out};
  }
  const Spot from = spot(captures_[captures].begin), to = spot(here);
  if (path_.fixed(from, to)) {
    out.kind = Reading::kText;
    out.text = path_.text(from, to);
    return {out};
  }
  // If all texts but a few are possible, there is always one more, so none is tried.
  if (terminal != RegexArena::poison() &&
      !(path_.loops(from) && without_exceptions(regexes_, terminal) != terminal)) {
    const auto known = few_.find({terminal.v, from, to});
    const auto it = known != few_.end()
                        ? known
                        : few_.emplace(std::tuple(terminal.v, from, to), few(terminal, from, to)).first;
    if (it->second) {
      tried_ = true;
      return *it->second;
    }
  }
  if (captured.few) few_values();
  out.kind = Reading::kFresh;
  return {out};
}

// The captured symbol stands between kCapture and the reader. Its texts are known if it is a terminal,
// or a rule whose alternatives are single terminals.
Facts::Captured Facts::captured(const Symbol* reader, const Symbol* begin) {
  const RegexId unknown = RegexArena::poison();
  if (!refuses_repeats_ || reader - begin < 2 || reader[-2].kind() != Symbol::kCapture) return {unknown};
  if (reader[-1].kind() == Symbol::kTerminal) return {reader[-1].regex()};
  if (reader[-1].kind() != Symbol::kRule) return {unknown};
  const RuleId rule = reader[-1].rule_id();
  std::vector<std::string> values;
  const bool few = productions_.values(rule, kTriedTexts, values);
  const Alternatives& all = alternatives(head(rule));
  std::vector<RegexId> parts;
  for (std::size_t i = 0, first = 0; i < all.ends.size(); first = all.ends[i++]) {
    const Symbol s = all.symbols[first];
    if (all.ends[i] - first != 1 || s.kind() != Symbol::kTerminal || s.regex() == unknown ||
        regexes_.node(s.regex()).labelled)
      return {unknown, few};
    parts.push_back(s.regex());
  }
  return {regexes_.alt(std::span<const RegexId>(parts)), few};
}

// ---- the worklist ----

uint32_t Facts::fact(Head h, At from) {
  const uint64_t k = key(h, from);
  if (const uint32_t* known = fact_index_.find(k)) return *known;
  const uint32_t id = static_cast<uint32_t>(facts_.size());
  facts_.emplace_back();
  facts_[id].head = h;
  facts_[id].from = from;
  fact_index_.emplace(k, id);
  const uint32_t label = heads_[h].label;
  // The alternatives are pushed in reverse, so that the first one is looked at first.
  const Alternatives& all = alternatives(h);
  if (refuses_repeats_ && !all.assumed.empty() && all.assumed.size() < all.ends.size())
    throw Error(
        ErrorKind::kSchemaTooComplex,
        "a condition cannot be decided where two items have to be equal: uniqueItems in `not` or `oneOf`");
  const auto assumes = [&](std::size_t i) {
    return marked_ && std::find(all.assumed.begin(), all.assumed.end(), i) != all.assumed.end();
  };
  for (std::size_t i = all.ends.size(); i-- > 0;)
    push({id, assumes(i) ? at(spot(from), pending(from), true) : from, 0, label,
          all.symbols.data() + (i == 0 ? 0 : all.ends[i - 1]), all.symbols.data() + all.ends[i], kNone});
  return id;
}

void Facts::push(const Step& s) {
  charge();
  const uint64_t h =
      mix(mix(mix(key(s.fact, s.at), key(s.captures, s.label)), reinterpret_cast<uintptr_t>(s.symbol)),
          reinterpret_cast<uintptr_t>(s.end));
  const uint32_t n = static_cast<uint32_t>(steps_.size());
  const uint32_t id = step_index_.find_or_add(
      h,
      [&](uint32_t i) {
        const Step& o = steps_[i];
        return o.fact == s.fact && o.at == s.at && o.symbol == s.symbol && o.end == s.end &&
               o.captures == s.captures && o.label == s.label;
      },
      [&] {
        steps_.push_back(s);
        return n;
      });
  if (id != n) {
    if (!short_ || length(steps_[id].way) <= length(s.way)) return;
    steps_[id].way = s.way;
  }
  todo_.push_back(id);
}

// Moves a step behind a rule or reader. A reader that was told a label ends no capture, so the open captures
// stay.
void Facts::go_on(Step& s) const {
  if (s.symbol->kind() == Symbol::kReader && s.label == 0 && s.captures)
    s.captures = captures_[s.captures].outer;
  s.label = 0;
  ++s.symbol;
}

// Notes a new exit of a fact, or a shorter way to one, and continues every step that waits for the fact. A
// place that was proved already is not noted as assumed.
void Facts::leave(uint32_t id, At to, uint32_t way) {
  // If the proved place is an exit already, the assumed place is not noted.
  if (assumed(to) && left_.find(exit_key(id, plain(to)))) return;
  const auto [n, fresh] = left_.emplace(exit_key(id, to), static_cast<uint32_t>(facts_[id].exits.size()));
  const uint32_t exit = n;
  if (!fresh && (!short_ || length(facts_[id].ways[exit]) <= length(way))) return;
  if (heads_[facts_[id].head].compared && way != kNone) {
    ways_.push_back({way, kNone, {}, spot(facts_[id].from), spot(to), length(way), false, true});
    way = static_cast<uint32_t>(ways_.size() - 1);
  }
  if (fresh) {
    facts_[id].exits.push_back(to);
    facts_[id].ways.push_back(way);
  } else {
    facts_[id].ways[exit] = way;
  }
  // push() may add facts, so facts_ is indexed anew in each round.
  for (std::size_t i = 0; i < facts_[id].waiting.size(); ++i) tell(facts_[id].waiting[i], to, way);
}

// A step that waits for a fact goes on from one of its exits.
void Facts::tell(uint32_t waiting, At exit, uint32_t way) {
  Step s = steps_[waiting];
  s.at = behind(exit, s.at);
  go_on(s);
  s.way = joined(s.way, way);
  push(s);
}

// Marks a fact and all that wait for it as unsure.
void Facts::doubt(uint32_t id) {
  std::vector<uint32_t> todo{id};
  while (!todo.empty()) {
    const uint32_t f = todo.back();
    todo.pop_back();
    if (facts_[f].unsure) continue;
    facts_[f].unsure = true;
    for (uint32_t w : facts_[f].waiting) todo.push_back(steps_[w].fact);
  }
}

// Whether the text of a rule that begins in the last hole must end there too, because the text behind
// the hole is shorter than what the rule needs behind it.
bool Facts::stays(RuleId rule, Spot from) const {
  return path_.loops(from) && path_.text_behind(from) && !productions_.plain(rule) &&
         productions_.needed_behind(rule) > path_.last() - from;
}

// Lets a step wait for a fact, and continues it with the exits found so far.
void Facts::call(Head h, uint32_t step) {
  const RuleId rule = steps_[step].symbol->rule_id();
  if (stays(rule, spot(steps_[step].at))) {
    Step s = steps_[step];
    s.at = at(spot(s.at), Alive::kClear, assumed(s.at));
    go_on(s);
    return push(s);
  }
  const uint32_t f = fact(h, plain(steps_[step].at));
  if (waits_.emplace(key(f, step), true).second) {
    facts_[f].waiting.push_back(step);
    if (facts_[f].unsure) doubt(steps_[step].fact);
  }
  for (std::size_t i = 0; i < facts_[f].exits.size(); ++i) tell(step, facts_[f].exits[i], facts_[f].ways[i]);
}

uint32_t Facts::leaf(RegexId r, Spot from, const Exit& exit, bool captured) {
  ways_.push_back({exit.label, kNone, r, from, exit.spot, exit.length, captured});
  return static_cast<uint32_t>(ways_.size() - 1);
}

uint32_t Facts::joined(uint32_t a, uint32_t b) {
  if (a == kNone) return b;
  if (b == kNone) return a;
  ways_.push_back({a, b, {}, 0, 0, length(a) + length(b)});
  return static_cast<uint32_t>(ways_.size() - 1);
}

// Continues a step behind a terminal or a part of a lexeme, once for each exit.
void Facts::after_terminal(const Step& from, RegexId r, Alive::Pending to) {
  const Spot begin = spot(from.at);
  const std::span<const Exit> all = reads(r, begin);
  const std::size_t first = static_cast<std::size_t>(all.data() - exits_.data()), n = all.size();
  // The terminal is the whole captured text so far, so its regex describes that text.
  const bool captured = from.captures && captures_[from.captures].begin == plain(from.at);
  for (std::size_t i = first; i < first + n; ++i) {
    Step s = from;
    ++s.symbol;
    s.label = exits_[i].label;
    s.at = at(exits_[i].spot, to, assumed(from.at));
    s.way = joined(from.way, leaf(r, begin, exits_[i], captured));
    push(s);
  }
}

// Takes a step up to its next rule. A step that moved is pushed as a new step, so that equal steps are taken
// once.
void Facts::proceed(uint32_t id) {
  Step s = steps_[id];
  for (;; ++s.symbol) {
    if (s.symbol == s.end) return leave(s.fact, s.at, s.way);
    switch (s.symbol->kind()) {
      case Symbol::kNote: continue;
      case Symbol::kLimit:
        throw Error(ErrorKind::kGrammar, "a text with holes cannot have limits on tokens (max_tokens)");
      case Symbol::kCapture: s.captures = opened(s.captures, plain(s.at)); continue;
      case Symbol::kAfter:
      case Symbol::kFollow:
        after_.clear();
        alive_.steps(*s.symbol, pending(s.at), after_);
        s.at = at(spot(s.at), after_.front().to, assumed(s.at));
        continue;
      case Symbol::kTerminal: {
        const RegexId r = s.symbol->regex();
        if (r == RegexArena::poison()) return doubt(s.fact);
        after_terminal(s, alive_.restricted(r, alive_.follow(pending(s.at))), Alive::kClear);
        const RegexNode& n = regexes_.node(r);
        if (!n.nullable) return;
        s.label = n.kind == RegexKind::kDone ? n.min + 1 : 0;
        continue;
      }
      case Symbol::kLexeme: {
        after_.clear();
        alive_.steps(*s.symbol, pending(s.at), after_);
        const std::vector<Alive::Step> parts = after_;
        for (const Alive::Step& part : parts)
          if (part.regex != RegexArena::poison()) after_terminal(s, part.regex, part.to);
        return;
      }
      case Symbol::kRule:
      case Symbol::kReader: break;
    }
    break;
  }
  if (s.symbol != steps_[id].symbol || s.at != steps_[id].at || s.captures != steps_[id].captures ||
      s.label != steps_[id].label)
    return push(s);
  if (s.symbol->kind() == Symbol::kRule) return call(head(s.symbol->rule_id()), id);
  const RuleId rule = s.symbol->rule_id();
  if (s.label) {
    Reading reading;
    reading.kind = Reading::kLabel;
    reading.label = s.label - 1;
    return call(reader(rule, reading), id);
  }
  RegexId terminal = RegexArena::poison();
  if (s.captures && s.way != kNone) {
    const Way& last = ways_[ways_[s.way].b == kNone ? s.way : ways_[s.way].b];
    if (last.b == kNone && last.captured && last.from == spot(captures_[s.captures].begin) &&
        last.to == spot(s.at))
      terminal = last.regex;
  }
  Captured text = captured(s.symbol, alternatives(facts_[s.fact].head).symbols.data());
  if (terminal != RegexArena::poison()) text.regex = terminal;
  for (const Reading& told : readings(s.captures, s.at, text)) call(reader(rule, told), id);
}

void Facts::run() {
  while (!todo_.empty()) {
    const uint32_t id = todo_.back();
    todo_.pop_back();
    proceed(id);
  }
}

Facts::Found Facts::ask(Head h, At from) {
  const uint32_t f = fact(h, from);
  run();
  return {facts_[f].exits, facts_[f].unsure};
}

// ---- witnesses ----

bool Facts::witness(Head h, At from, At to, bool vary, std::string& out, std::vector<std::string>* items) {
  const uint32_t f = fact(h, from);
  const auto found = std::find(facts_[f].exits.begin(), facts_[f].exits.end(), to);
  if (found == facts_[f].exits.end()) return false;
  const uint32_t top = facts_[f].ways[static_cast<std::size_t>(found - facts_[f].exits.begin())];
  std::vector<uint32_t> leaves, todo;
  // Ranges of leaves: the outermost items.
  std::vector<std::pair<std::size_t, std::size_t>> spans;
  // For each open item: todo.size() once it is done.
  std::vector<std::size_t> inside;
  if (top != kNone) todo.push_back(top);
  while (!todo.empty()) {
    const Way w = ways_[todo.back()];
    if (w.item) {
      if (inside.empty()) spans.emplace_back(leaves.size(), 0);
      inside.push_back(todo.size() - 1);
      todo.back() = w.a;
      continue;
    }
    if (w.b == kNone) {
      leaves.push_back(todo.back());
      todo.pop_back();
      if (leaves.size() > kMaxWitness) return false;
      while (!inside.empty() && inside.back() == todo.size()) {
        inside.pop_back();
        if (inside.empty()) spans.back().second = leaves.size();
      }
      continue;
    }
    todo.back() = w.b;
    todo.push_back(w.a);
  }
  std::unordered_set<std::string> used;
  // Fixed texts of the path count as used: an item in the hole must differ from those beside it.
  for (uint32_t l : leaves)
    if (path_.fixed(ways_[l].from, ways_[l].to)) used.insert(path_.text(ways_[l].from, ways_[l].to));
  // Offsets in the text before each leaf.
  std::vector<std::size_t> ends{0};
  for (uint32_t l : leaves) {
    const Way w = ways_[l];
    if (path_.fixed(w.from, w.to)) {
      out += path_.text(w.from, w.to);
    } else {
      const bool apart = vary || w.captured;
      const std::string* text = &shortest(w);
      std::vector<std::string> some;
      if (apart && used.contains(*text)) {
        texts(w.regex, w.from, w.to, std::min(kMaxVaried, used.size() + 2), some, w.a);
        for (const std::string& other : some) {
          text = &other;
          if (!used.contains(other)) break;
        }
      }
      if (text->empty()) return false;
      if (apart) used.insert(*text);
      out += *text;
    }
    if (out.size() > kMaxWitness) return false;
    ends.push_back(out.size());
  }
  if (items)
    for (const auto& [first, last] : spans)
      items->push_back(out.substr(ends[first], ends[last] - ends[first]));
  return true;
}

bool reads_one(Parser& parser, const Alternatives& all, std::string_view text) {
  for (const std::span<const Symbol> symbols : all.each()) {
    StateId s = parser.before(symbols);
    for (std::size_t i = 0; i < text.size() && s != Parser::dead(); ++i)
      s = parser.step(s, static_cast<uint8_t>(text[i]));
    if (s != Parser::dead() && parser.state(s).accepting) return true;
  }
  return false;
}

}  // namespace structgen
