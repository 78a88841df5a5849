// How one derivation of a text is chosen, and how the spans of its named parts are found; spans.h has the
// rules of the choice.
//
// The problem. A capture such as (?P<year>...), or `name: rule` in Lark, is a pair of notes in the grammar.
// Parse states hold no positions, so that texts can share states. So afterwards it is not known where a note
// was passed. An ambiguous text may have exponentially many derivations, of which one has to be chosen.
//
// The idea. Three passes over the text, each over all derivations at once. Between two bytes there is a
// graph of nodes: a set of stacks, or one symbol above a set of rests. For (?P<x>a*)(?P<y>a*) and `aa`:
//
//     forwards()    every way to read the bytes: `a` by x or by y, split at any of three places
//     backwards()   for each node the stacks from which the end is reached (`good`): a way that reads the
//                   next byte may fail later
//     choose()      from the left, at each place the notes in order of preference. x begins, and ends as late
//                   as it can, so x is `aa` and y is empty
//
// A note is an edge that reads nothing. So a choice is made only where a part begins or ends, and only among
// nodes whose `good` is not empty. So no choice has to be taken back.
//
// Invariants.
// - An item of a place is a pair of regex and capture, with all stacks below it. A place has no more items
//   than the parser's state there, whatever the number of derivations.
// - `good` only grows, so the fixpoint over rules that match the empty text ends.
// - Limits on tokens (parse/limits.h) drop stacks where a token begins; backwards() undoes the count of the
//   marks there.
//
// Costs. Linear in the text for grammars of bounded ambiguity: a few microseconds for a byte at which
// parts begin and end. The memory is that of the places. Readings at a place and nodes between two
// bytes are limited.
//
// Rejected.
// - Tags in the automaton (Laurikari 2000): states with tags differ by positions in the text, so masks would
//   not be shared.
// - Backtracking: exponential in ambiguous texts.
#include "parse/spans.h"

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <optional>
#include <tuple>
#include <unordered_map>

#include "base/depth.h"
#include "base/error.h"
#include "base/work.h"

namespace structgen {

namespace {

constexpr uint32_t kMaxReadings = 5'000;
constexpr uint32_t kMaxNodes = 200'000;
constexpr uint32_t kMaxStackDepth = 20'000;
constexpr uint32_t kNone = 0xFFFFFFFFu;
constexpr std::size_t kNowhere = static_cast<std::size_t>(-1);

[[noreturn]] void too_much(const char* what) { throw Error(ErrorKind::kBudgetExceeded, what); }

// What tells the nodes at one place apart. If `set` is true, the node is the set of stacks `stack`; otherwise
// it is the symbol `top` above these stacks. `capture` is the open capture, `label` the label of a literal
// that has just been read. `follow` and `context` are those of the kFollow and kAfter symbols that were
// passed on the way (parse/alive.h).
struct Key {
  bool set;
  uint32_t top;
  uint32_t stack;
  uint32_t capture;
  uint32_t follow;
  uint32_t context;
  uint32_t label;
  friend auto operator<=>(const Key&, const Key&) = default;
};

// An edge between two nodes of one place; no byte is read. kPop leads from a set to one of its top symbols,
// kExpand from a rule to one of its alternatives, kNote past a note, kSame anywhere else.
struct Edge {
  enum Kind : uint8_t { kPop, kExpand, kSame, kNote } kind;
  uint32_t to;
  // For kExpand: the symbols of the alternative but the first one, which were pushed below it.
  std::span<const Symbol> pushed;
};

// A way for a node to read the next byte: an item of the place, by its index, and the symbol that was pushed
// below it, if any.
struct Reads {
  uint32_t item;
  std::optional<Symbol> pushed;
};

struct Node {
  Key key;
  std::vector<Edge> out;
  std::vector<Reads> reads;
  // The part of the node's stacks with which the rest of the text can be read.
  StackId good = StackArena::none();
};

// The graph at the point in front of byte i of the text is places_[i].
struct Place {
  std::vector<Item> items;
  // good[k]: the part of item k's stacks with which the rest of the text can be read.
  std::vector<StackId> good;
  // stays[k]: item k of the place before, after its byte, is this item here; kNone if it cannot read the
  // byte.
  std::vector<uint32_t> stays;
  // ends[k]: if item k of the place before ends here, the text goes on at this node; kNone if it cannot end.
  std::vector<uint32_t> ends;
  std::vector<Node> nodes;
};

class Search {
 public:
  Search(Parser& parser, Productions& productions, std::string_view text, bool complete,
         std::span<const std::size_t> tokens)
      : parser_(parser),
        productions_(productions),
        regexes_(parser.regexes()),
        stacks_(parser.stacks()),
        text_(text),
        complete_(complete),
        places_(text.size() + 1),
        begins_(text.size() + 1) {
    for (std::size_t at : tokens) begins_[at] = true;
  }

  std::vector<Span> run(RuleId start) {
    forwards(stacks_.push(Symbol::rule(start), StackArena::end()));
    backwards();
    choose();
    std::stable_sort(spans_.begin(), spans_.end(), [](const Span& x, const Span& y) {
      return std::tuple(x.begin, y.end) < std::tuple(y.begin, x.end);
    });
    return std::move(spans_);
  }

 private:
  void forwards(StackId start) {
    at_ = 0;
    begin_place();
    node({true, 0, start.v, 0, RegexArena::empty().v, kNone, kNone});
    grow();
    for (at_ = 1; at_ < places_.size(); ++at_) {
      begin_place();
      Place& now = places_[at_];
      const uint8_t byte = static_cast<uint8_t>(text_[at_ - 1]);
      const std::vector<Item>& before = places_[at_ - 1].items;
      now.stays.assign(before.size(), kNone);
      now.ends.assign(before.size(), kNone);
      for (std::size_t p = 0; p < before.size(); ++p) {
        const StackId stack = ahead(at_ - 1, before[p].stack);
        if (stack == StackArena::none()) continue;
        const RegexId d = regexes_.next(before[p].regex, byte);
        if (d == RegexArena::empty()) continue;
        const CaptureId capture = parser_.captures().append(before[p].capture, byte);
        const RegexNode& n = regexes_.node(d);
        if (!n.only_ends()) now.stays[p] = item(d, stack, capture);
        if (n.nullable)
          now.ends[p] = node({true, 0, stack.v, capture.v, RegexArena::empty().v, kNone,
                              n.kind == RegexKind::kDone ? n.min : kNone});
      }
      grow();
    }
  }

  // Returns the stacks as they are behind this place's byte. If a token begins with this byte, stacks whose
  // limit is used up are dropped (parse/limits.h). back() is the inverse.
  StackId ahead(std::size_t place, StackId s) {
    return begins_[place] ? parser_.limits().begin_token_exactly(s) : s;
  }
  StackId back(std::size_t place, StackId s) { return begins_[place] ? parser_.limits().take_back(s) : s; }

  void begin_place() {
    numbers_.clear();
    items_.clear();
    todo_.clear();
  }

  // Returns the number of the item with this regex and capture at the current place, after adding `stack` to
  // its stacks.
  uint32_t item(RegexId regex, StackId stack, CaptureId capture) {
    std::vector<Item>& items = places_[at_].items;
    const auto [it, fresh] =
        items_.try_emplace(std::pair(regex.v, capture.v), static_cast<uint32_t>(items.size()));
    if (fresh) {
      if (items.size() > kMaxReadings) too_much("too many readings of the text are open to find captures");
      items.push_back({regex, stack, capture});
    } else {
      items[it->second].stack = stacks_.unite(items[it->second].stack, stack);
    }
    return it->second;
  }

  uint32_t node(const Key& key) {
    std::vector<Node>& nodes = places_[at_].nodes;
    const auto [it, fresh] = numbers_.try_emplace(key, static_cast<uint32_t>(nodes.size()));
    if (fresh) {
      charge();
      if (nodes.size() > kMaxNodes) too_much("too many readings of the text are open to find captures");
      nodes.emplace_back().key = key;
      todo_.push_back(it->second);
    }
    return it->second;
  }

  void edge(uint32_t from, Edge::Kind kind, const Key& to, std::span<const Symbol> pushed = {}) {
    const uint32_t number = node(to);
    places_[at_].nodes[from].out.push_back({kind, number, pushed});
  }

  void grow() {
    while (!todo_.empty()) {
      const uint32_t n = todo_.back();
      todo_.pop_back();
      const Key key = places_[at_].nodes[n].key;
      if (key.set) {
        for (const StackEntry& e : stacks_.entries(StackId{key.stack})) {
          Key to = key;
          to.set = false;
          to.top = e.top.v;
          to.stack = e.rest.v;
          edge(n, Edge::kPop, to);
        }
      } else {
        symbol(n, key);
      }
    }
  }

  // Adds the edges of a node that is a symbol above stacks. They are the ways in which Parser::follow() reads
  // this symbol.
  void symbol(uint32_t n, const Key& key) {
    const Symbol top{key.top};
    const StackId rest{key.stack};
    // The node behind the symbol: the set of the stacks below it.
    Key below = key;
    below.set = true;
    below.top = 0;
    below.label = kNone;
    switch (top.kind()) {
      case Symbol::kTerminal: {
        if (!parser_.alive().stack(rest)) return;
        const RegexNode& whole = regexes_.node(top.regex());
        if (whole.nullable) {
          Key after = below;
          if (whole.kind == RegexKind::kDone) after.label = whole.min;
          edge(n, Edge::kSame, after);
        }
        reads(n, parser_.restricted(top.regex(), RegexId{key.follow}), rest, CaptureId{key.capture}, {});
        return;
      }
      case Symbol::kLexeme:
        if (key.context == kNone) return;
        for (const LexemePart& part : productions_.lexeme(top.number(), key.context)) {
          std::optional<Symbol> pushed;
          if (part.follow != RegexArena::empty()) pushed = Symbol::follow(part.follow);
          const StackId stack = pushed ? stacks_.push(*pushed, rest) : rest;
          if (!parser_.alive().stack(stack)) continue;
          reads(n, parser_.restricted(part.regex, RegexId{key.follow}), stack, CaptureId{key.capture},
                pushed);
        }
        return;
      case Symbol::kCapture:
        below.capture = parser_.captures().start(CaptureId{key.capture}).v;
        return edge(n, Edge::kSame, below);
      case Symbol::kAfter: below.context = top.number(); return edge(n, Edge::kSame, below);
      case Symbol::kFollow:
        below.follow = top.regex().v;
        if (key.follow != RegexArena::empty().v)
          below.follow = regexes_
                             .bytes(regexes_.byte_set(regexes_.node(top.regex()).a) |
                                    regexes_.byte_set(regexes_.node(RegexId{key.follow}).a))
                             .v;
        return edge(n, Edge::kSame, below);
      case Symbol::kNote: return edge(n, Edge::kNote, below);
      case Symbol::kLimit: return edge(n, Edge::kSame, below);
      case Symbol::kRule: {
        const auto [it, fresh] = expansions_.try_emplace(top.rule_id().v);
        if (fresh) productions_.expand(top.rule_id(), Reading{}, it->second);
        return expand(n, it->second, rest, key, below);
      }
      case Symbol::kReader: {
        Reading r;
        r.kind = Reading::kUnknown;
        CaptureId outer{key.capture};
        if (key.label != kNone) {
          r.kind = Reading::kLabel;
          r.label = key.label;
        } else if (key.capture > 1) {
          r.kind = Reading::kText;
          r.text = parser_.captures().finish(CaptureId{key.capture}, outer);
        }
        productions_.expand(top.rule_id(), r, read_.emplace_back());
        Key inside = key;
        inside.capture = below.capture = outer.v;
        return expand(n, read_.back(), rest, inside, below);
      }
    }
  }

  void expand(uint32_t n, const Alternatives& alternatives, StackId rest, const Key& key, const Key& below) {
    for (const std::span<const Symbol> symbols : alternatives.each()) {
      if (symbols.empty()) {
        edge(n, Edge::kSame, below);
      } else {
        const std::span<const Symbol> tail = symbols.subspan(1);
        Key to = key;
        to.label = kNone;
        to.top = symbols[0].v;
        to.stack = stacks_.push(tail, rest).v;
        edge(n, Edge::kExpand, to, tail);
      }
    }
  }

  // Adds an item for a regex that can read a byte. If the regex has the empty text, too, the caller has
  // already added an edge for it.
  void reads(uint32_t n, RegexId regex, StackId stack, CaptureId capture, std::optional<Symbol> pushed) {
    const RegexNode& r = regexes_.node(regex);
    if (regex == RegexArena::empty() || regex == RegexArena::poison() || r.kind == RegexKind::kEpsilon ||
        r.kind == RegexKind::kDone)
      return;
    const uint32_t number = item(regex, stack, capture);
    places_[at_].nodes[n].reads.push_back({number, pushed});
  }

  // Sets `good` of all items and nodes, from the last place to the first. The `good` of an item follows from
  // the next place, that of a node from the items of its own place.
  void backwards() {
    for (at_ = places_.size(); at_-- > 0;) {
      Place& now = places_[at_];
      now.good.assign(now.items.size(), StackArena::none());
      if (at_ + 1 == places_.size()) {
        if (!complete_)
          // At the end of the text another token may begin and use up a limit. The stacks that are dropped
          // then are not good.
          for (std::size_t k = 0; k < now.items.size(); ++k) {
            StackLimits& limits = parser_.limits();
            now.good[k] = limits.take_back(limits.begin_token_exactly(now.items[k].stack));
          }
      } else {
        const Place& next = places_[at_ + 1];
        for (std::size_t k = 0; k < now.items.size(); ++k) {
          StackId good = StackArena::none();
          if (next.stays[k] != kNone) good = common(next.good[next.stays[k]], ahead(at_, now.items[k].stack));
          if (next.ends[k] != kNone) good = stacks_.unite(good, next.nodes[next.ends[k]].good);
          now.good[k] = back(at_, good);
        }
      }
      // Rules that match the empty text may form cycles, so the pass is repeated until no node changes.
      for (bool changed = true; changed;) {
        changed = false;
        for (std::size_t n = now.nodes.size(); n-- > 0;) {
          const StackId good = judged(now, now.nodes[n]);
          changed = changed || good != now.nodes[n].good;
          now.nodes[n].good = good;
        }
      }
    }
  }

  // Computes `good` of a node from its edges and from the items that it reads.
  StackId judged(const Place& now, const Node& n) {
    StackId good = n.good;
    if (n.key.set && complete_ && at_ + 1 == places_.size() && stacks_.has_end(StackId{n.key.stack}))
      good = stacks_.unite(good, StackArena::end());
    for (const Edge& e : n.out) {
      const StackId to = now.nodes[e.to].good;
      if (to == StackArena::none()) continue;
      if (e.kind == Edge::kPop)
        good = stacks_.unite(good, stacks_.push(Symbol{now.nodes[e.to].key.top}, to));
      else
        good = stacks_.unite(good, stripped(to, e.pushed));
    }
    for (const Reads& r : n.reads) {
      const StackId all = r.pushed ? stacks_.push(*r.pushed, StackId{n.key.stack}) : StackId{n.key.stack};
      const StackId to = common(now.good[r.item], all);
      good = stacks_.unite(good, r.pushed ? stripped(to, {&*r.pushed, 1}) : to);
    }
    return good;
  }

  // Returns the stacks below the given symbols, of those stacks that begin with them. Others are dropped.
  StackId stripped(StackId s, std::span<const Symbol> symbols) const {
    for (Symbol top : symbols) {
      StackId below = StackArena::none();
      for (const StackEntry& e : stacks_.entries(s))
        if (e.top == top) below = e.rest;
      s = below;
    }
    return s;
  }

  StackId common(StackId a, StackId b, uint32_t depth = 0) {
    check_depth();
    if (a == b || a == StackArena::none()) return a;
    if (b == StackArena::none()) return b;
    if (depth > kMaxStackDepth) too_much("the text nests too deeply to find captures");
    if (b < a) std::swap(a, b);
    const uint64_t key = (static_cast<uint64_t>(a.v) << 32) | b.v;
    if (const auto it = common_.find(key); it != common_.end()) return it->second;
    StackId out = stacks_.has_end(a) && stacks_.has_end(b) ? StackArena::end() : StackArena::none();
    const auto x = stacks_.entries(a), y = stacks_.entries(b);
    for (const StackEntry& e : x)
      for (const StackEntry& f : y)
        if (e.top == f.top) {
          const StackId rest = common(e.rest, f.rest, depth + 1);
          if (rest != StackArena::none()) out = stacks_.unite(out, stacks_.push(e.top, rest));
        }
    common_.emplace(key, out);
    return out;
  }

  // A set of items or of nodes, by number. Each item or node has the part of its stacks that the choices so
  // far leave.
  using Chosen = std::map<uint32_t, StackId>;

  // Chooses one derivation, from place to place. At a place it follows all edges that pass no note, then
  // passes the note with the best rank, and again follows edges. It stops when reading the next byte ranks
  // before all notes that are left.
  void choose() {
    Chosen items;
    for (at_ = 0; at_ < places_.size(); ++at_) {
      const Place& now = places_[at_];
      Chosen here, next;
      const auto add = [&](Chosen& to, uint32_t number, StackId s, StackId good) {
        s = common(s, good);
        if (s == StackArena::none()) return;
        const auto [it, fresh] = to.try_emplace(number, s);
        if (!fresh) it->second = stacks_.unite(it->second, s);
      };
      if (at_ == 0) {
        if (!now.nodes.empty()) add(here, 0, StackId{now.nodes[0].key.stack}, now.nodes[0].good);
      } else {
        for (const auto& [k, chosen] : items) {
          const StackId s = ahead(at_ - 1, chosen);
          if (now.stays[k] != kNone) add(next, now.stays[k], s, now.good[now.stays[k]]);
          if (now.ends[k] != kNone) add(here, now.ends[k], s, now.nodes[now.ends[k]].good);
        }
      }
      std::vector<Chosen> met;
      while (true) {
        met.push_back(here);
        bool end = false;
        std::map<std::pair<int, uint32_t>, Chosen> notes;
        std::vector<uint32_t> todo;
        for (const auto& [n, s] : here) todo.push_back(n);
        while (!todo.empty()) {
          const uint32_t n = todo.back();
          todo.pop_back();
          const Node& from = now.nodes[n];
          const StackId s = here[n];
          if (from.key.set && stacks_.has_end(s)) end = true;
          for (const Reads& r : from.reads)
            add(next, r.item, r.pushed ? stacks_.push(*r.pushed, s) : s, now.good[r.item]);
          for (const Edge& e : from.out) {
            const Node& to = now.nodes[e.to];
            StackId passed = s;
            if (e.kind == Edge::kPop)
              passed = stripped(s, std::array{Symbol{to.key.top}});
            else if (e.kind == Edge::kExpand)
              passed = stacks_.push(e.pushed, s);
            if (e.kind == Edge::kNote) {
              const uint32_t number = Symbol{from.key.top}.number();
              add(notes[{rank(number), number}], e.to, passed, to.good);
              continue;
            }
            const auto known = here.find(e.to);
            const StackId before = known == here.end() ? StackArena::none() : known->second;
            add(here, e.to, passed, to.good);
            if (const auto after = here.find(e.to); after != here.end() && after->second != before)
              todo.push_back(e.to);
          }
        }
        const Chosen* best = nullptr;
        for (const auto& [what, to] : notes) {
          if (what.first > 0 && (end || !next.empty())) break;
          if (to.empty() || std::find(met.begin(), met.end(), to) != met.end()) continue;
          best = &to;
          note(what.second);
          break;
        }
        if (!best) break;
        if (met.size() > kMaxReadings) too_much("too many captures begin at one place");
        here = Chosen(*best);
        next.clear();
      }
      items = std::move(next);
    }
  }

  // Returns the rank of a note: the note with the smallest one is passed first. Notes below 0 are passed
  // before the next byte is read; notes above 0 only if no byte can be read.
  static int rank(uint32_t number) {
    switch (note_kind(number)) {
      case NoteKind::kEnter: return -3;
      case NoteKind::kOpen: return -2;
      case NoteKind::kOpened:
      case NoteKind::kClosed: return -1;
      case NoteKind::kGap:
      case NoteKind::kGapEnd:
      case NoteKind::kLeave: return 1;
      case NoteKind::kClose: return 2;
    }
    return 0;
  }

  // Acts on a note that is passed: a capture begins, or the innermost open capture of this name ends.
  void note(uint32_t number) {
    const uint32_t name = note_name(number);
    const auto close = [&](std::size_t end) {
      for (std::size_t i = open_.size(); i-- > 0;)
        if (open_[i].name == name) {
          if (gap_.end == end && gap_.begin >= open_[i].begin) end = gap_.begin;
          spans_.push_back({name, open_[i].begin, end});
          open_.erase(open_.begin() + static_cast<std::ptrdiff_t>(i));
          return;
        }
    };
    const std::size_t entered = entered_.empty() ? 0 : entered_.back();
    switch (note_kind(number)) {
      case NoteKind::kEnter: return entered_.push_back(at_);
      case NoteKind::kLeave:
        if (!entered_.empty()) entered_.pop_back();
        return;
      case NoteKind::kOpen: return open_.push_back({name, at_, 0});
      case NoteKind::kOpened: return open_.push_back({name, entered, 0});
      case NoteKind::kClose: return close(at_);
      case NoteKind::kClosed: return close(entered);
      case NoteKind::kGap: gap_.begin = at_; return;
      case NoteKind::kGapEnd: gap_.end = at_; return;
    }
  }

  Parser& parser_;
  Productions& productions_;
  RegexArena& regexes_;
  StackArena& stacks_;
  std::string_view text_;
  const bool complete_;
  std::vector<Place> places_;
  std::vector<bool> begins_;
  std::size_t at_ = 0;
  std::map<Key, uint32_t> numbers_;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> items_;
  std::vector<uint32_t> todo_;
  std::unordered_map<uint32_t, Alternatives> expansions_;
  std::deque<Alternatives> read_;
  std::unordered_map<uint64_t, StackId> common_;
  std::vector<Span> open_, spans_;
  std::vector<std::size_t> entered_;
  Span gap_{0, kNowhere, kNowhere};
};

}  // namespace

std::vector<Span> find_spans(Parser& parser, Productions& productions, RuleId start, std::string_view text,
                             bool complete, std::span<const std::size_t> tokens) {
  return Search(parser, productions, text, complete, tokens).run(start);
}

}  // namespace structgen
