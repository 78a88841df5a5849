// How parse states are made and stepped; state.h says what they are for.
//
// The problem. A grammar that is not regular needs a stack, and an ambiguous grammar needs several stacks at
// once. Copying a stack at each byte costs as much as the stack is deep. And two texts that lead to the same
// point should share everything that is known about what may follow.
//
// The idea. A state is a set of items. An item is a regex, the rest of the terminal that is being read,
// above a set of stacks, which hold the symbols behind the terminal. Stacks are shared graphs
// (parse/stack.h), so a set of them is one number. For S -> "a" S "b" | "", behind the text `aa`:
//
//     what is on the stack     S "b" "b", S first
//     frontier()               what the stack begins with: `a` above S "b" "b" "b", and, because S may be
//                              empty, `b` above "b"
//     the state                two items: (a, S "b" "b" "b") and (b, "b")
//     step(`b`)                the derivative of `b` is the empty text, so the item ends, and the frontier of
//                              the stack "b" takes its place: (b, end)
//
// A byte takes a derivative of each regex. Where a regex may end, the frontier of its stacks is merged
// in. A frontier depends on the stacks alone, so it is kept, and most steps are a derivative and a
// look-up.
//
// Captured text (keys, items under uniqueItems) makes a state for each text: the item holds a
// CaptureId, and the transitions of such states are kept per byte and not per class.
//
// Invariants.
// - States are interned. normalise() unites the regexes above one stack, and the stacks below one regex. So
//   two texts behind which the same may follow lead to one state, unless the order of reading matters.
// - No state but dead() is a dead end, unless the grammar is `unproven` (GrammarTraits): an item is only
//   added above stacks that can be read to their end (alive.h).
// - A frontier has no item that could read nothing more: nullable terminals and rules were followed down the
//   stack.
// - An answer that is empty because alternatives were omitted (base/effort.h) is never kept: fed() makes such
//   a state again with more work.
//
// Costs. A known step is two loads. A new step costs a derivative for each item, the frontier of each stack
// that is met for the first time, and one look-up. The bytes of a token within literals, such as `name` in a
// key, are one step (advance()). Items of a state, rules in a row before the first character, and frontiers
// within frontiers are limited.
//
// Rejected.
// - LR tables: ambiguous grammars have conflicts, and a grammar whose rules appear while a text is read
//   (objects of JSON Schema) has no table.
// - A graph of stacks for each text, as in GLR and Earley parsers: the nodes of such a graph hold positions
//   in the text, so two texts share nothing.
#include "parse/state.h"

#include <algorithm>

#include "base/depth.h"
#include "base/effort.h"
#include "base/error.h"
#include "base/sorted.h"
#include "base/told.h"
#include "base/undo.h"
#include "base/work.h"

namespace structgen {

namespace {
// Rules may be entered one inside the other, before a byte is read, at most this deep. A deeper grammar is
// refused.
constexpr uint32_t kMaxClosureDepth = 2'000;
// A frontier may need the frontiers of other stacks. At most this many are built one inside the other.
constexpr uint32_t kMaxNested = 100;
// From this many pairs of a lexeme and a set of stacks on, normalise() unites the stacks of equal lexemes.
constexpr std::size_t kManyLexemes = 500;
constexpr uint32_t kMaxItems = 5'000;
// At most this many edges may follow each other without a byte of text between them.
constexpr uint32_t kMaxEdges = 64;
constexpr const char* kTooDeep = "rules nest too deeply before the first character";
}  // namespace

Parser::Parser(RegexArena& regexes, Productions& productions)
    : regexes_(regexes),
      productions_(productions),
      edged_(productions.traits().edged),
      marked_(edged_ || productions.traits().bordered),
      alive_(regexes, productions, stacks_),
      limits_(stacks_) {
  states_.emplace_back();  // dead
  states_[0].classes = regexes_.class_maps().one();
  states_[0].live = &lives_[lives_.emplace_back()];
}

std::size_t Parser::byte_size() const {
  return states_.byte_size() + lives_.byte_size() + live_index_.byte_size() + index_.byte_size() +
         pool_.byte_size() + stacks_.byte_size() + captures_.byte_size() + frontiers_.byte_size() +
         frontier_of_.byte_size() + expansions_.byte_size() + expansion_index_.byte_size() +
         capture_steps_.byte_size() + alive_.byte_size() + limits_.byte_size() + limited_.byte_size() +
         edges_.byte_size() + singles_[0].byte_size() + singles_[1].byte_size();
}

void Parser::look_at_size() {
  // Sizes are checked whenever this many states and sets of stacks were added.
  constexpr uint32_t kLook = 512;
  if (states_.size() + stacks_.size() < next_look_) return;
  if (byte_size() > regexes_.most()) out_of_memory(regexes_.most());
  next_look_ = states_.size() + stacks_.size() + kLook;
}

AlternativeList Parser::expand(RuleId rule) {
  if (const uint32_t* known = expansion_index_.find(rule.v)) return expansions_[*known];
  Alternatives alts;
  const Omissions omissions(omitted_);
  expand(rule, Reading{}, alts);
  if (omissions.any()) return {};
  const AlternativeList kept{pool_.copy(std::span<const Symbol>(alts.symbols)),
                             pool_.copy(std::span<const uint32_t>(alts.ends))};
  expansion_index_.emplace(rule.v, expansions_.emplace_back(kept));
  return kept;
}

// Appends the alternatives of a rule. If finding them takes too much work, a world that omits appends none,
// and omitted_ counts it.
void Parser::expand(RuleId rule, const Reading& reading, Alternatives& out) {
  const Effort& effort = regexes_.effort();
  if (!effort.omits()) return productions_.expand(rule, reading, out);
  const WorkScope part(meter.task(), effort.share());
  const uint64_t before = productions_.omitted();
  if (told([&] { productions_.expand(rule, reading, out); }) &&
      (!out.ends.empty() || productions_.omitted() == before))
    return;
  ++omitted_;
  out = {};
}

// Returns the state that make() returns. make() returns nothing if everything that may follow was omitted. An
// earlier mask promised that the text can be completed. So make() is then called once more, and undecided
// questions are asked anew, with most of the work that is left.
template <class F>
StateId Parser::fed(F&& make) {
  if (const std::optional<StateId> made = make()) return *made;
  forget_starved();
  if (!regexes_.effort().again()) {
    const LookAgain more(regexes_.effort());
    if (const std::optional<StateId> made = make()) return *made;
    forget_starved();
  }
  throw Error(ErrorKind::kBudgetExceeded, "what may follow takes too much work to tell");
}

void Parser::forget_starved() {
  for (StackId s : starved_) frontier_of_[s.v] = 0;
  starved_.clear();
}

void Parser::add_item(RegexId regex, StackId stack, CaptureId capture, Frontier& out) {
  const Item item{regex, stack, capture};
  // Without a capture, following symbols leads to each item once, because it stops at stacks that were
  // visited. With a capture, symbols may lead to the same item again, so the list is searched.
  if (capture.v != 0 && std::find(out.items.begin(), out.items.end(), item) != out.items.end()) return;
  if (out.items.size() > kMaxItems)
    throw Error(ErrorKind::kBudgetExceeded, "a parse state has too many alternatives");
  const RegexNode& n = regexes_.node(regex);
  const bool only_end = n.only_ends();
  if (!only_end) out.items.push_back(item);
  if (!n.nullable) return;
  Reading reading;
  if (n.kind == RegexKind::kDone) {
    reading.kind = Reading::kLabel;
    reading.label = n.min;
  }
  close(stack, capture, reading, out);
}

void Parser::follow_alternatives(AlternativeList alts, StackId rest, CaptureId capture, Frontier& out) {
  charge(static_cast<int64_t>(alts.symbols.size()));
  for (const std::span<const Symbol> symbols : alts.each())
    if (symbols.empty())
      close(rest, capture, Reading{}, out);
    else
      follow(symbols[0], stacks_.push(symbols.subspan(1), rest), capture, Reading{}, out);
}

// Adds the items with which the symbol `top`, above the stacks `rest`, can begin. If it is a reader, it is
// told `reading`.
void Parser::follow(Symbol top, StackId rest, CaptureId capture, const Reading& reading, Frontier& out) {
  check_depth();
  switch (top.kind()) {
    case Symbol::kTerminal:
      if (alive_.stack(rest)) add_item(top.regex(), rest, capture, out);
      return;
    case Symbol::kCapture: close(rest, captures_.start(capture), Reading{}, out); return;
    case Symbol::kLexeme: out.lexemes.push_back({top.number(), rest}); return;
    case Symbol::kAfter: merge_in_context(frontier(rest), top.number(), out); return;
    case Symbol::kFollow: merge_restricted(frontier(rest), top.regex(), out); return;
    case Symbol::kNote:
    case Symbol::kLimit: close(rest, capture, Reading{}, out); return;
    case Symbol::kRule: {
      // Without a capture a rule is followed once above these stacks. Another alternative, or a cycle of
      // rules with an empty text, may lead here again.
      if (capture.v == 0 && base_ != StackArena::none() && !first_visit(stacks_.push(top, rest))) return;
      const Deeper level(depth_, kMaxClosureDepth, ErrorKind::kBudgetExceeded, kTooDeep);
      follow_alternatives(expand(top.rule_id()), rest, capture, out);
      return;
    }
    case Symbol::kReader: {
      Reading r = reading;
      CaptureId outer = capture;
      if (r.kind == Reading::kNone && capture.v != 0) {
        if (capture == CaptureArena::unknown()) {
          r.kind = Reading::kUnknown;
          outer = CaptureId{0};
        } else {
          r.kind = Reading::kText;
          r.text = captures_.finish(capture, outer);
        }
      }
      if (r.kind == Reading::kNone) r.kind = Reading::kUnknown;
      Alternatives alts;
      expand(top.rule_id(), r, alts);
      follow_alternatives(alts.list(), rest, outer, out);
      return;
    }
  }
}

bool Parser::first_visit(StackId s) {
  if (visited_.size() <= s.v) visited_.resize(std::max<std::size_t>(stacks_.size(), s.v + 1));
  if (visited_[s.v] == visit_) return false;
  visited_[s.v] = visit_;
  return true;
}

// Adds the items with which a set of stacks can begin. Without a capture these are the items of the set's
// frontier. For the set base_, close() only notes that the symbol above may read nothing (reached_);
// build_frontier() then adds the items of base_.
void Parser::close(StackId stack, CaptureId capture, const Reading& reading, Frontier& out) {
  if (capture.v == 0 && reading.kind == Reading::kNone) {
    if (base_ == StackArena::none()) return merge(frontier(stack), out);
    if (stack == base_) {
      reached_ = true;
      return;
    }
  }
  const Deeper level(depth_, kMaxClosureDepth, ErrorKind::kBudgetExceeded, kTooDeep);
  charge(4);
  look_at_size();
  if (stacks_.has_end(stack)) out.accepting = true;
  for (const StackEntry& e : stacks_.entries(stack)) follow(e.top, e.rest, capture, reading, out);
}

void Parser::merge(const KnownFrontier& from, Frontier& out) {
  omitted_ += from.starved;
  out.items.insert(out.items.end(), from.items().begin(), from.items().end());
  out.lexemes.insert(out.lexemes.end(), from.lexemes().begin(), from.lexemes().end());
  out.accepting = out.accepting || from.accepting;
}

// Adds the items of a frontier, but no text whose first byte is in `follow`.
void Parser::merge_restricted(const KnownFrontier& from, RegexId follow, Frontier& out) {
  for (const Item& i : from.items()) {
    const RegexId r = restricted(i.regex, follow);
    // An item that is left with only the empty text is not added: the items behind it are in this frontier
    // already.
    if (r != RegexArena::empty() && r != RegexArena::epsilon()) out.items.push_back({r, i.stack, i.capture});
  }
  out.lexemes.insert(out.lexemes.end(), from.lexemes().begin(), from.lexemes().end());
  out.accepting = out.accepting || from.accepting;
}

// Adds the items of a frontier. A frontier keeps its lexemes as they are while the context is unknown. Here
// the context is known, so each part of a lexeme becomes an item.
void Parser::merge_in_context(const KnownFrontier& from, uint32_t context, Frontier& out) {
  out.items.insert(out.items.end(), from.items().begin(), from.items().end());
  out.accepting = out.accepting || from.accepting;
  for (const Pending& p : from.lexemes())
    for (const LexemePart& part : productions_.lexeme(p.lexeme, context)) {
      StackId stack = p.stack;
      if (part.follow != RegexArena::empty()) stack = stacks_.push(Symbol::follow(part.follow), stack);
      if (alive_.stack(stack)) out.items.push_back({part.regex, stack, CaptureId{0}});
    }
}

// Collects the items with which a set of stacks can begin. For each entry these are the items of its top
// symbol and, if this symbol may read nothing, the items of the stacks below. The frontiers of the stacks
// below are known, so a deeper stack costs only its new symbol. If such a frontier is not known, `missing` is
// set to its stacks, and the result is false.
bool Parser::build_frontier(StackId stack, Frontier& out, StackId& missing) {
  out.accepting = stacks_.has_end(stack);
  for (const StackEntry& e : stacks_.entries(stack)) {
    charge(2);
    base_ = e.rest;
    reached_ = false;
    ++visit_;
    depth_ = 0;
    if (e.top.kind() == Symbol::kFollow || e.top.kind() == Symbol::kAfter) {
      const KnownFrontier* below = known_frontier(e.rest);
      if (!below) {
        missing = e.rest;
        return false;
      }
      if (e.top.kind() == Symbol::kFollow)
        merge_restricted(*below, e.top.regex(), out);
      else
        merge_in_context(*below, e.top.number(), out);
      continue;
    }
    follow(e.top, e.rest, CaptureId{0}, Reading{}, out);
    if (!reached_) continue;
    const KnownFrontier* below = known_frontier(e.rest);
    if (!below) {
      missing = e.rest;
      return false;
    }
    merge(*below, out);
    if (out.items.size() + out.lexemes.size() < kMaxItems / 2) continue;
    normalise(out.items);
    normalise(out.lexemes);
  }
  charge(static_cast<int64_t>(out.items.size() + out.lexemes.size()));
  normalise(out.items);
  normalise(out.lexemes);
  if (out.items.size() + out.lexemes.size() > kMaxItems)
    throw Error(ErrorKind::kBudgetExceeded, "a parse state has too many alternatives");
  return true;
}

const Parser::KnownFrontier& Parser::frontier(StackId stack) {
  check_depth();
  if (const KnownFrontier* known = known_frontier(stack)) return *known;
  // Stacks may be deep, so a loop builds the frontiers below first. Asking what may follow a lexeme builds
  // another frontier inside this one, so the members that describe the frontier under way are saved and
  // restored.
  const StackId base = base_;
  const bool reached = reached_;
  const uint32_t visit = visit_, depth = depth_;
  const auto restore = [&] {
    base_ = base;
    reached_ = reached;
    depth_ = depth;
    visit_ = std::max(visit, visit_);
    nested_ -= nested_ > 0;
  };
  SmallVector<StackId, 8> todo;
  todo.push_back(stack);
  if (++nested_ > kMaxNested) {
    nested_ = 0;
    throw Error(ErrorKind::kBudgetExceeded, kTooDeep);
  }
  try {
    while (!todo.empty()) {
      const StackId at = todo.back();
      StackId missing;
      if (known_frontier(at)) {
        todo.pop_back();
        continue;
      }
      Frontier f = borrow();
      const Omissions omissions(omitted_);
      if (build_frontier(at, f, missing)) {
        const bool starved = f.empty() && omissions.any();
        const std::span<const Item> items = pool_.copy(std::span<const Item>(f.items));
        const std::span<const Pending> lexemes = pool_.copy(std::span<const Pending>(f.lexemes));
        while (frontier_of_.size() <= at.v) frontier_of_.emplace_back();
        frontier_of_[at.v] = 1 + frontiers_.emplace_back(KnownFrontier{
                                     items.data(), lexemes.data(), static_cast<uint32_t>(items.size()),
                                     static_cast<uint32_t>(lexemes.size()), f.accepting, starved});
        if (starved) starved_.push_back(at);
        todo.pop_back();
      } else {
        todo.push_back(missing);
      }
      spare_.push_back(std::move(f));
    }
  } catch (...) {
    restore();
    throw;
  }
  restore();
  return *known_frontier(stack);
}

// Sorts the items, unites regexes above equal stacks, then stacks below equal regexes.
void Parser::normalise(std::vector<Item>& items) {
  if (items.size() < 2) return;
  std::sort(items.begin(), items.end(), [](const Item& x, const Item& y) {
    return std::tie(x.stack.v, x.capture.v, x.regex.v) < std::tie(y.stack.v, y.capture.v, y.regex.v);
  });
  SmallVector<Item, 16> merged;
  SmallVector<RegexId, 16> group;
  for (std::size_t i = 0; i < items.size();) {
    std::size_t j = i;
    group.clear();
    for (; j < items.size() && items[j].stack == items[i].stack && items[j].capture == items[i].capture;
         ++j) {
      // A labelled regex must end with its own label, and poison never ends. Such a regex is not united with
      // another one.
      if (regexes_.node(items[j].regex).labelled || items[j].regex == RegexArena::poison())
        merged.push_back(items[j]);
      else
        group.push_back(items[j].regex);
    }
    if (!group.empty())
      merged.push_back(
          {group.size() == 1 ? group[0] : regexes_.alt(group), items[i].stack, items[i].capture});
    i = j;
  }
  std::sort(merged.begin(), merged.end(), [](const Item& x, const Item& y) {
    return std::tie(x.regex.v, x.capture.v, x.stack.v) < std::tie(y.regex.v, y.capture.v, y.stack.v);
  });
  items.clear();
  SmallVector<StackId, 16> stacks;
  for (std::size_t i = 0; i < merged.size();) {
    Item item = merged[i];
    stacks.clear();
    for (; i < merged.size() && merged[i].regex == item.regex && merged[i].capture == item.capture; ++i)
      stacks.push_back(merged[i].stack);
    item.stack = stacks_.unite(stacks);
    items.push_back(item);
  }
  items.erase(std::unique(items.begin(), items.end()), items.end());
}

// In a long list the stacks of each lexeme are united; otherwise an ambiguous grammar would add entries with
// every byte of the text. In a short list entries stay apart: an entry that cannot be read to its end is then
// dropped alone.
void Parser::normalise(std::vector<Pending>& lexemes) {
  sort_unique(lexemes);
  if (lexemes.size() < kManyLexemes) return;
  std::size_t n = 0;
  SmallVector<StackId, 16> stacks;
  for (std::size_t i = 0; i < lexemes.size();) {
    const uint32_t lexeme = lexemes[i].lexeme;
    stacks.clear();
    for (; i < lexemes.size() && lexemes[i].lexeme == lexeme; ++i) stacks.push_back(lexemes[i].stack);
    lexemes[n++] = {lexeme, stacks_.unite(stacks)};
  }
  lexemes.resize(n);
}

// Returns true if the text may end here, provided that a token ends here, too.
bool Parser::ends_at_edge(std::span<const Item> items, uint32_t depth) {
  check_depth();
  if (depth == kMaxEdges) return false;
  for (const Item& i : items) {
    const RegexId after = regexes_.step(i.regex, kEdge);
    if (after == RegexArena::empty() || !regexes_.nullable(after)) continue;
    const KnownFrontier& below = frontier(i.stack);
    if (below.accepting || ends_at_edge(below.items(), depth + 1)) return true;
  }
  return false;
}

StateId Parser::at_edge(StateId s) {
  if (!edged_ || s == dead() || !live(s).has(kEdge)) return s;
  if (const auto* known = edges_.find(s.v)) return StateId{*known};
  std::vector<Item> all(items(s).begin(), items(s).end());
  StateId to = s;
  for (uint32_t n = 0; n < kMaxEdges && (to = step(to, kEdge)) != dead(); ++n)
    all.insert(all.end(), items(to).begin(), items(to).end());
  const StateId out = of_items(std::move(all), state(s).accepting);
  edges_.emplace(s.v, out.v);
  return out;
}

// Returns the state of items that normalise() has sorted. `kept` says that their memory is in pool_ already.
StateId Parser::intern(std::span<const Item> items, bool accepting, bool kept) {
  if (marked_ && !accepting) accepting = ends_at_edge(items, 0);
  if (items.empty() && !accepting) return dead();
  uint64_t h = accepting;
  for (const Item& i : items) h = mix(mix(mix(h, i.regex.v), i.stack.v), i.capture.v);
  const uint32_t id = index_.find_or_add(
      h,
      [&](uint32_t k) {
        const State& s = states_[k];
        return s.accepting == accepting && s.n == items.size() &&
               std::equal(items.begin(), items.end(), s.items);
      },
      [&] {
        look_at_size();
        const uint32_t k = states_.emplace_back();
        State& s = states_[k];
        s.items = kept ? items.data() : pool_.copy(items).data();
        s.n = static_cast<uint32_t>(items.size());
        s.accepting = accepting;
        for (const Item& i : items) {
          s.capturing = s.capturing || i.capture.v > 1;
          s.poisoned = s.poisoned || i.regex == RegexArena::poison();
        }
        return k;
      });
  return StateId{id};
}

StateId Parser::make(std::span<const Item> items, bool accepting) {
  Frontier f;
  f.accepting = accepting;
  depth_ = 0;
  for (const Item& i : items) add_item(i.regex, i.stack, i.capture, f);
  normalise(f.items);
  return intern(f.items, f.accepting);
}

StateId Parser::make(const Item& item) {
  const auto made = [&] {
    return item.regex == RegexArena::epsilon() ? fed([&] { return continued(item.stack, item.capture); })
                                               : make({&item, 1}, false);
  };
  if (item.capture.v != 0 && item.capture != CaptureArena::unknown()) return made();
  FlatMap<uint64_t, StateId>& known = singles_[item.capture.v != 0];
  const uint64_t key = (static_cast<uint64_t>(item.regex.v) << 32) | item.stack.v;
  if (const StateId* s = known.find(key)) return *s;
  const Omissions omissions(omitted_);
  const StateId out = made();
  if (!omissions.any()) known.emplace(key, out);
  return out;
}

StateId Parser::of_items(std::vector<Item> items, bool accepting) {
  normalise(items);
  return intern(items, accepting);
}

StateId Parser::one_way(StateId s, std::size_t item, const std::function<std::size_t(StackId)>& choose) {
  Item only = items(s)[item];
  std::vector<Symbol> tops;
  StackId at = only.stack;
  while (!stacks_.has_end(at)) {
    const StackEntry e = stacks_.entries(at)[choose(at)];
    tops.push_back(e.top);
    at = e.rest;
    charge();
  }
  only.stack = stacks_.push(std::span<const Symbol>(tops), StackArena::end());
  if (!alive_.stack(only.stack)) return dead();
  return of_items({only}, state(s).accepting);
}

StateId Parser::continuation(StackId stack, CaptureId capture) {
  return make(Item{RegexArena::epsilon(), stack, capture});
}

// Returns the state behind `stack`; no value if all that may follow was omitted.
std::optional<StateId> Parser::continued(StackId stack, CaptureId capture) {
  const Omissions omissions(omitted_);
  if (capture.v == 0) {
    const KnownFrontier& known = frontier(stack);
    omitted_ += known.starved;
    if (known.empty() && omissions.any()) return std::nullopt;
    return intern(known.items(), known.accepting, true);
  }
  Frontier f;
  depth_ = 0;
  close(stack, capture, Reading{}, f);
  if (f.empty() && omissions.any()) return std::nullopt;
  normalise(f.items);
  return intern(f.items, f.accepting);
}

StateId Parser::start(RuleId rule) {
  return continuation(stacks_.push(Symbol::rule(rule), StackArena::end()), CaptureId{0});
}

// Returns an empty frontier. Its memory is reused, because a walk makes thousands of frontiers.
Parser::Frontier Parser::borrow() {
  if (spare_.empty()) return {};
  Frontier out = std::move(spare_.back());
  spare_.pop_back();
  out.items.clear();
  out.lexemes.clear();
  out.accepting = false;
  return out;
}

StateId Parser::step_uncached(StateId s, uint8_t byte) {
  return fed([&] { return stepped(s, byte); });
}

// Returns the state behind the byte. It has the derivative of each item and, where a derivative may be empty,
// the items of the frontier below. Returns nothing if everything that may follow was omitted.
std::optional<StateId> Parser::stepped(StateId s, uint8_t byte) {
  const std::span<const Item> from = items(s);
  charge(6 + 4 * static_cast<int64_t>(from.size()));
  Frontier f = borrow();
  const Omissions omissions(omitted_);
  SmallVector<StackId, 4> starved;
  std::span<const Item> last;
  depth_ = 0;
  for (const Item& i : from) {
    const RegexId d = regexes_.step(i.regex, byte);
    if (d == RegexArena::empty()) continue;
    const CaptureId capture = captures_.append(i.capture, byte);
    const RegexNode& n = regexes_.node(d);
    if (!n.nullable) {
      f.items.push_back({d, i.stack, capture});
    } else if (n.kind != RegexKind::kDone && capture.v == 0) {
      if (d != RegexArena::epsilon()) f.items.push_back({d, i.stack, capture});
      const KnownFrontier& below = frontier(i.stack);
      if (below.starved) starved.push_back(i.stack);
      merge(below, f);
      last = below.items();
    } else {
      add_item(d, i.stack, capture, f);
    }
  }
  if (omissions.any() && !f.accepting && f.lexemes.empty() &&
      // An item does not count if the continuation of its stacks was omitted: such an item could read blanks,
      // but nothing behind the blanks.
      std::ranges::all_of(
          f.items, [&](const Item& i) { return std::ranges::find(starved, i.stack) != starved.end(); }))
    return std::nullopt;
  normalise(f.items);
  // If the items are those of one frontier, the state uses the frontier's list and copies nothing.
  const bool kept = std::ranges::equal(f.items, last);
  const StateId out = intern(kept ? last : f.items, f.accepting, kept);
  spare_.push_back(std::move(f));
  return out;
}

// Returns the state behind a text without making the states and derivatives in between, if no item can end
// inside the text. Returns nothing if RegexArena::past() has no answer for some item, or if nothing may
// follow.
std::optional<StateId> Parser::past(StateId s, std::string_view text) {
  if (marked_ || regexes_.effort().omits()) return std::nullopt;
  std::vector<Item> to;
  for (const Item& i : items(s)) {
    const std::optional<RegexId> rest = regexes_.past(i.regex, text);
    if (!rest) return std::nullopt;
    if (*rest == RegexArena::empty()) continue;
    CaptureId capture = i.capture;
    for (char b : text) capture = captures_.append(capture, static_cast<uint8_t>(b));
    to.push_back({*rest, i.stack, capture});
  }
  if (to.empty()) return std::nullopt;
  normalise(to);
  return intern(to, false);
}

StateId Parser::advance(StateId s, std::string_view text, std::size_t& read) {
  std::size_t jumps = 0;
  for (const Jump* j = states_[s.v].jumps.load(std::memory_order_relaxed); j; j = j->next) ++jumps;
  const std::string_view within = text.substr(0, text.find('"'));
  if (within.size() > 1 && jumps < kMostJumps && s != dead())
    if (const std::optional<StateId> to = past(s, within)) {
      Jump* const jump = pool_.allocate<Jump>(1);
      *jump = {states_[s.v].jumps.load(std::memory_order_relaxed),
               {pool_.copy(std::span<const char>(within)).data(), within.size()},
               *to};
      states_[s.v].jumps.store(jump, std::memory_order_release);
      read = within.size();
      return *to;
    }
  read = 1;
  return step(s, static_cast<uint8_t>(text[0]));
}

// Makes the table of successors, when a state is first stepped. About half of the states stand behind the
// last byte of a token and are never stepped, so they need no table.
std::atomic<uint32_t>* Parser::make_row(StateId s) {
  State& st = states_[s.v];
  const ClassMap* c = regexes_.class_maps().one();
  for (const Item& i : items(s)) c = regexes_.class_maps().product(c, &regexes_.classes(i.regex));
  static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t));
  auto* const next = reinterpret_cast<std::atomic<uint32_t>*>(pool_.allocate<uint32_t>(c->n));
  for (uint32_t i = 0; i < c->n; ++i) new (next + i) std::atomic<uint32_t>(unknown().v);
  st.classes = c;
  st.next.store(next, std::memory_order_release);
  return next;
}

StateId Parser::step(StateId s, uint8_t byte) {
  State& st = states_[s.v];
  if (!st.capturing && s != dead()) {
    std::atomic<uint32_t>* next = st.next.load(std::memory_order_relaxed);
    if (!next) next = make_row(s);
    std::atomic<uint32_t>& slot = next[st.classes->of[byte]];
    const uint32_t known = slot.load(std::memory_order_relaxed);
    if (known != unknown().v) return StateId{known};
    const StateId out = step_uncached(s, st.classes->rep[st.classes->of[byte]]);
    slot.store(out.v, std::memory_order_release);
    return out;
  }
  if (s == dead()) return s;
  const uint64_t key = (static_cast<uint64_t>(s.v) << 8) | byte;
  if (const auto* known = capture_steps_.find(key)) return StateId{*known};
  const StateId out = step_uncached(s, byte);
  capture_steps_.emplace(key, out.v);
  return out;
}

template <class Effort>
StateId Parser::step_with(StateId s, uint8_t byte) {
  if (const StateId known = step(s, byte); known != dead() || s == dead()) return known;
  StateId out;
  {
    const Effort effort(regexes_.effort());
    out = step_uncached(s, byte);
  }
  if (out == dead()) return out;
  State& st = states_[s.v];
  if (st.capturing)
    capture_steps_[(static_cast<uint64_t>(s.v) << 8) | byte] = out.v;
  else
    st.next.load(std::memory_order_relaxed)[st.classes->of[byte]].store(out.v, std::memory_order_release);
  st.live = nullptr;
  return out;
}

template StateId Parser::step_with<LookAgain>(StateId s, uint8_t byte);
template StateId Parser::step_with<Trust>(StateId s, uint8_t byte);

const ByteSet& Parser::live(StateId s) {
  State& st = states_[s.v];
  if (!st.live) {
    ByteSet set;
    for (const Item& i : items(s)) set |= regexes_.steps(i.regex);
    st.live = &lives_[live_index_.number(mix(mix(set.w[0], set.w[1]), mix(set.w[2], set.w[3])), lives_, set)];
  }
  return *st.live;
}

uint32_t Parser::least_limit(StateId s) {
  uint32_t least = StackLimits::kUnlimited;
  for (const Item& i : items(s)) least = std::min(least, limits_.least(i.stack));
  return least;
}

bool Parser::may_limit(StateId s) {
  for (const Item& i : items(s))
    if (may_limit(i.stack)) return true;
  return false;
}

// With `begin`, returns the state after a token has begun. Without it, returns the state without the marks on
// its stacks.
StateId Parser::limited(StateId s, bool begin) {
  if (least_limit(s) == StackLimits::kUnlimited) return s;
  const uint64_t key = (static_cast<uint64_t>(s.v) << 1) | begin;
  if (const auto* known = limited_.find(key)) return StateId{*known};
  std::vector<Item> out;
  for (Item i : items(s)) {
    i.stack = begin ? limits_.begin_token(i.stack) : limits_.without(i.stack);
    if (i.stack != StackArena::none()) out.push_back(i);
  }
  const StateId to = of_items(std::move(out), state(s).accepting);
  limited_.emplace(key, to.v);
  return to;
}

StackId Parser::import_stack(Parser& from, StackId s, ImportMemo& memo) {
  if (s.v <= 1) return s;
  // Sets of stacks below are copied first. A work list replaces the recursion, because stacks may be too
  // deep.
  std::vector<uint32_t> todo{s.v};
  while (!todo.empty()) {
    const StackId at{todo.back()};
    if (memo.find(at.v)) {
      todo.pop_back();
      continue;
    }
    bool ready = true;
    for (const StackEntry& e : from.stacks_.entries(at))
      if (e.rest.v > 1 && !memo.find(e.rest.v)) {
        todo.push_back(e.rest.v);
        ready = false;
      }
    if (!ready) continue;
    std::vector<StackId> parts{from.stacks_.has_end(at) ? StackArena::end() : StackArena::none()};
    for (const StackEntry& e : from.stacks_.entries(at)) {
      const StackId rest = e.rest.v <= 1 ? e.rest : StackId{memo[e.rest.v]};
      parts.push_back(stacks_.push(e.top, rest));
    }
    memo[at.v] = stacks_.unite(parts).v;
    todo.pop_back();
  }
  return StackId{memo[s.v]};
}

StateId Parser::import(Parser& from, StateId s, ImportMemo& memo) {
  std::vector<Item> out;
  for (Item i : from.items(s)) {
    i.stack = import_stack(from, i.stack, memo);
    i.capture = captures_.import(from.captures_, i.capture);
    out.push_back(i);
  }
  normalise(out);
  return intern(out, from.state(s).accepting);
}

}  // namespace structgen
