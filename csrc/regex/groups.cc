// How the named groups of a text are found: a pattern becomes a program (Program), and a search runs all
// readings of the text at once, in the order of preference (Search); groups.h has the rules.
//
// Example, `(?P<x>a+)(?P<y>a*)` on `aaa`: after each character there is one reading that goes on with x
// and one that has gone on to y. The first is preferred, so x is 0 to 3 and y is 3 to 3.
//
// Invariants. Of two readings at the same instruction only the preferred one is kept, so there are at
// most as many readings as instructions. Events of a reading are a list from its end to its beginning,
// and readings share the events that they have in common.
//
// Rejected. Backtracking, as Python's `re` does it: `(a*)*b` takes exponential time on a text of many a.
#include "regex/groups.h"

#include <algorithm>
#include <ranges>
#include <unordered_map>

#include "base/depth.h"
#include "base/error.h"
#include "base/utf8.h"
#include "base/work.h"

namespace structgen {

namespace {

// A program has at most this many instructions. The body of a counter is written several times.
constexpr std::size_t kMaxOps = 200'000;
constexpr uint64_t kMaxSteps = 100'000'000;
// One search remembers at most this many events; an event is the beginning or end of a group.
constexpr std::size_t kMaxEvents = 10'000'000;
constexpr uint32_t kNone = 0xFFFFFFFFu;

[[noreturn]] void too_much() {
  throw Error(ErrorKind::kBudgetExceeded, "finding the groups of this pattern in this text takes too long");
}

// One instruction. kChar, kClass: read a character. kSplit: try `a` first, then `b`. kJump: go on at `a`.
// kOpen, kClose: a group begins or ends here. kAssert: go on if the assertion holds. kMatch: the pattern has
// matched.
struct Step {
  enum Kind : uint8_t { kChar, kClass, kSplit, kJump, kOpen, kClose, kAssert, kMatch } kind;
  // The operands. kChar: `a` is the character. kClass: `a` is the set. kOpen, kClose: `a` is the group's
  // name. kAssert: `a` is the node. kSplit, kJump: the next instructions.
  uint32_t a = 0, b = 0;
};

// A pattern as a list of instructions: `(?P<x>a)|b` is split 1,5; open x; char a; close x; jump 6; char
// b; match.
class Program {
 public:
  // `root` is a node of the pattern. `groups` is false in the body of an assertion, whose groups are not
  // reported.
  Program(const Pattern& pattern, uint32_t root, bool groups) : pattern_(pattern) {
    if (groups)
      for (const PatternGroup& g : pattern.groups) marks_.emplace_back(g.node, g.name);
    std::ranges::stable_sort(marks_, {}, &Mark::first);
    emit(root);
    push(Step::kMatch);
  }
  const std::vector<Step>& ops() const { return ops_; }

 private:
  uint32_t push(Step::Kind kind, uint32_t a = 0, uint32_t b = 0) {
    if (ops_.size() >= kMaxOps) too_much();
    ops_.push_back({kind, a, b});
    return static_cast<uint32_t>(ops_.size() - 1);
  }
  uint32_t here() const { return static_cast<uint32_t>(ops_.size()); }

  void emit(uint32_t node) {
    const auto marks = std::ranges::equal_range(marks_, node, {}, &Mark::first);
    // Several groups may consist of this node. The marks are sorted from the inner group to the outer one, as
    // they close. They open in the reverse order.
    for (const Mark& m : std::views::reverse(marks)) push(Step::kOpen, m.second);
    emit_bare(node);
    for (const Mark& m : marks) push(Step::kClose, m.second);
  }

  // Writes the instructions of a node, but not of the groups that consist of this node.
  void emit_bare(uint32_t node) {
    check_depth();
    const PatternNode& n = pattern_.nodes[node];
    switch (n.kind) {
      case PatternKind::kEmpty: return;
      case PatternKind::kChar: push(Step::kChar, n.a); return;
      case PatternKind::kClass: push(Step::kClass, n.a); return;
      case PatternKind::kCat:
        for (uint32_t k : pattern_.kids_of(n)) emit(k);
        return;
      case PatternKind::kAlt: {
        std::vector<uint32_t> ends;
        const auto kids = pattern_.kids_of(n);
        for (std::size_t i = 0; i < kids.size(); ++i) {
          const bool last = i + 1 == kids.size();
          const uint32_t split = last ? kNone : push(Step::kSplit);
          if (!last) ops_[split].a = here();
          emit(kids[i]);
          if (last) break;
          ends.push_back(push(Step::kJump));
          ops_[split].b = here();
        }
        for (uint32_t e : ends) ops_[e].a = here();
        return;
      }
      case PatternKind::kRepeat: {
        for (uint32_t i = 0; i < n.min; ++i) emit(n.a);
        if (n.max == kNoMaximum) {
          const uint32_t split = push(Step::kSplit);
          const uint32_t body = here();
          emit(n.a);
          push(Step::kJump, split);
          choose(split, body, here(), n.lazy);
          return;
        }
        std::vector<std::pair<uint32_t, uint32_t>> splits;  // each with its body
        for (uint32_t i = n.min; i < n.max; ++i) {
          const uint32_t split = push(Step::kSplit);
          splits.emplace_back(split, here());
          emit(n.a);
        }
        for (const auto& [split, body] : splits) choose(split, body, here(), n.lazy);
        return;
      }
      case PatternKind::kStart:
      case PatternKind::kEnd:
      case PatternKind::kBoundary:
      case PatternKind::kLookahead:
      case PatternKind::kLookbehind: push(Step::kAssert, node); return;
    }
  }

  // Sets the two targets of a split: a greedy repetition tries the body first, a lazy one what follows it.
  void choose(uint32_t split, uint32_t body, uint32_t out, bool lazy) {
    ops_[split].a = lazy ? out : body;
    ops_[split].b = lazy ? body : out;
  }

  // A node, and the index of the name of a group that consists of this node.
  using Mark = std::pair<uint32_t, uint32_t>;
  const Pattern& pattern_;
  std::vector<Mark> marks_;  // by node, those of one node from the inside out; empty where none is asked for
  std::vector<Step> ops_;
};

// Runs programs over one text. A reading is one way to match the text so far. Readings that part at some
// point share the events before it, so all events together are a tree with the beginning of the text as its
// root.
class Search {
 public:
  Search(const Pattern& pattern, std::string_view text, bool complete)
      : pattern_(pattern), text_(text), complete_(complete) {}

  // Runs the pattern over the text, and returns the groups of the reading that a backtracking engine would
  // find first.
  std::vector<GroupSpan> groups() {
    const Program program(pattern_, pattern_.root, true);
    const uint32_t last = run(program.ops(), 0, kWhole);
    std::vector<uint32_t> order;
    for (uint32_t e = last; e != kNone; e = events_[e].before) order.push_back(e);
    std::vector<GroupSpan> out;
    std::vector<std::vector<std::size_t>> open(pattern_.names.size());
    for (std::size_t i = order.size(); i-- > 0;) {
      const Event& e = events_[order[i]];
      if (!e.close) {
        open[e.name].push_back(e.at);
        continue;
      }
      out.push_back({e.name, open[e.name].back(), e.at});
      open[e.name].pop_back();
    }
    std::stable_sort(out.begin(), out.end(), [](const GroupSpan& x, const GroupSpan& y) {
      return x.begin != y.begin ? x.begin < y.begin : x.end > y.end;
    });
    return out;
  }

 private:
  // The beginning or the end of a group. `before` is the index of the event before it in the same reading, or
  // kNone.
  struct Event {
    uint32_t name;
    bool close;
    std::size_t at;
    uint32_t before;
  };
  // A reading of the text so far: the instruction that comes next, and its last event.
  struct Thread {
    uint32_t op, events;
  };
  static constexpr std::size_t kWhole = ~std::size_t{0}, kSome = kWhole - 1;

  // Runs a program from byte `begin`.
  // - end = kWhole: runs to the end of the text. Returns the last event of the preferred reading, or kNone if
  //   there is no reading.
  // - end = kSome: returns 0 as soon as a beginning of the text matches, and kNone if no beginning does.
  // - Otherwise: returns 0 if the text from `begin` to `end` matches, and kNone if it does not.
  uint32_t run(const std::vector<Step>& ops, std::size_t begin, std::size_t end) {
    std::vector<Thread> now, next;
    std::vector<uint32_t> seen(ops.size(), kNone);
    uint32_t step = 0;
    uint32_t matched = kNone;
    bool found = false;
    const bool whole = end == kWhole;
    std::size_t at = begin;
    add(ops, {0, kNone}, at, step, seen, now, found, matched);
    const std::size_t stop = end < kSome ? end : text_.size();
    while (at < stop) {
      if (found && end == kSome) return 0;
      if (now.empty()) return kNone;
      uint32_t length;
      const uint32_t c = decode_utf8(text_, at, length);
      if (length == 0) break;
      at += length;
      ++step;
      found = false;
      matched = kNone;
      next.clear();
      for (const Thread& t : now) {
        const Step& op = ops[t.op];
        if (op.kind == Step::kChar ? op.a == c : op.kind == Step::kClass && pattern_.sets[op.a].contains(c))
          add(ops, {t.op + 1, t.events}, at, step, seen, next, found, matched);
      }
      now.swap(next);
    }
    if (!whole) return found && (end == kSome || at == end) ? 0 : kNone;
    if (complete_) return found ? matched : kNone;
    return now.empty() ? kNone : now.front().events;
  }

  // Follows a reading through all instructions that read no character, and appends those at which it stops to
  // `out`, preferred ones first. An instruction is visited once: of two readings that reach it, the first one
  // is preferred.
  void add(const std::vector<Step>& ops, Thread from, std::size_t at, uint32_t step,
           std::vector<uint32_t>& seen, std::vector<Thread>& out, bool& found, uint32_t& matched) {
    const std::size_t floor = todo_.size();
    todo_.push_back(from);
    while (todo_.size() > floor) {
      Thread t = todo_.back();
      todo_.pop_back();
      if (seen[t.op] == step) continue;
      seen[t.op] = step;
      charge();
      if (++steps_ > kMaxSteps) too_much();
      const Step& op = ops[t.op];
      switch (op.kind) {
        case Step::kChar:
        case Step::kClass: out.push_back(t); break;
        case Step::kSplit:
          todo_.push_back({op.b, t.events});
          todo_.push_back({op.a, t.events});
          break;
        case Step::kJump: todo_.push_back({op.a, t.events}); break;
        case Step::kOpen:
        case Step::kClose:
          if (events_.size() >= kMaxEvents) too_much();
          events_.push_back({op.a, op.kind == Step::kClose, at, t.events});
          todo_.push_back({t.op + 1, static_cast<uint32_t>(events_.size() - 1)});
          break;
        case Step::kAssert:
          if (holds(op.a, at)) todo_.push_back({t.op + 1, t.events});
          break;
        case Step::kMatch:
          if (!found) matched = t.events;
          found = true;
          // The pattern may end here while the text goes on. The reading keeps its rank among the others.
          out.push_back(t);
          break;
      }
    }
  }

  bool word_at(std::size_t at) const {
    uint32_t length;
    const uint32_t c = decode_utf8(text_, at, length);
    return length != 0 && pattern_.word.contains(c);
  }
  // Returns the offset at which the character begins that ends at `at`.
  std::size_t back(std::size_t at) const {
    do --at;
    while (at > 0 && (static_cast<uint8_t>(text_[at]) & 0xC0) == 0x80);
    return at;
  }

  const Program& program(uint32_t node) {
    return programs_.try_emplace(node, pattern_, node, false).first->second;
  }

  // Returns true if the assertion holds at offset `at`. The body of a look-behind must match some text that
  // ends there, so every beginning that its length allows is tried.
  bool holds(uint32_t node, std::size_t at) {
    check_depth();
    const PatternNode& n = pattern_.nodes[node];
    switch (n.kind) {
      case PatternKind::kStart: return at == 0;
      case PatternKind::kEnd: return complete_ && at == text_.size();
      case PatternKind::kBoundary: {
        const bool before = at > 0 && word_at(back(at));
        return (before != (at < text_.size() && word_at(at))) != n.negated;
      }
      case PatternKind::kLookahead: return (run(program(n.a).ops(), at, kSome) == 0) != n.negated;
      default: break;
    }
    const PatternNode& child = pattern_.nodes[n.a];
    std::size_t begin = at;
    bool found = false;
    for (uint32_t back_by = 0;; ++back_by) {
      if (back_by >= child.shortest && run(program(n.a).ops(), begin, at) == 0) {
        found = true;
        break;
      }
      if (begin == 0 || back_by >= child.longest) break;
      begin = back(begin);
    }
    return found != n.negated;
  }

  const Pattern& pattern_;
  const std::string_view text_;
  const bool complete_;
  // The programs of the bodies of assertions, by node; each is made on first use.
  std::unordered_map<uint32_t, Program> programs_;
  std::vector<Event> events_;
  std::vector<Thread> todo_;
  uint64_t steps_ = 0;
};

}  // namespace

std::vector<GroupSpan> find_groups(const Pattern& pattern, std::string_view text, bool complete) {
  return Search(pattern, text, complete).groups();
}

}  // namespace structgen
