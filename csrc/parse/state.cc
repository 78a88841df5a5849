#include "parse/state.h"

#include <algorithm>

#include "base/error.h"

namespace structgen {

namespace {
constexpr uint32_t kMaxClosureDepth = 2'000;  // nullable and unit rules in a row
constexpr uint32_t kMaxItems = 5'000;         // of one state
}  // namespace

Parser::Parser(RegexArena& regexes, Productions& productions) : regexes_(regexes), productions_(productions) {
  states_.emplace_back();  // dead
  states_[0].classes = regexes_.class_maps().one();
  states_[0].live_known = true;
}

std::size_t Parser::byte_size() const {
  return states_.byte_size() + index_.byte_size() + pool_.byte_size() + stacks_.byte_size() +
         captures_.byte_size() + frontiers_.size() * 160 + expansions_.size() * 120 + capture_steps_.size() * 40;
}

const Alternatives& Parser::expand(RuleId rule) {
  const auto it = expansions_.find(rule.v);
  if (it != expansions_.end()) return it->second;
  Alternatives alts;
  productions_.expand(rule, Reading{}, alts);
  return expansions_.emplace(rule.v, std::move(alts)).first->second;
}

void Parser::add_item(RegexId regex, StackId stack, CaptureId capture, Frontier& out) {
  const Item item{regex, stack, capture};
  if (std::find(out.items.begin(), out.items.end(), item) != out.items.end()) return;
  if (out.items.size() > kMaxItems)
    throw Error(ErrorKind::kBudgetExceeded, "a parse state has too many alternatives");
  const RegexNode& n = regexes_.node(regex);
  const bool only_end = n.kind == RegexKind::kEpsilon || n.kind == RegexKind::kDone;
  if (!only_end) out.items.push_back(item);
  if (!n.nullable) return;
  Reading reading;
  if (n.kind == RegexKind::kDone) {
    reading.kind = Reading::kLabel;
    reading.label = n.min;
  }
  close(stack, capture, reading, out);
}

void Parser::follow_alternatives(const Alternatives& alts, StackId rest, CaptureId capture, Frontier& out) {
  uint32_t begin = 0;
  for (uint32_t end : alts.ends) {
    if (begin == end) {
      close(rest, capture, Reading{}, out);
    } else {
      const std::span<const Symbol> tail(alts.symbols.data() + begin + 1, end - begin - 1);
      follow(alts.symbols[begin], stacks_.push(tail, rest), capture, Reading{}, out);
    }
    begin = end;
  }
}

void Parser::follow(Symbol top, StackId rest, CaptureId capture, const Reading& reading, Frontier& out) {
  switch (top.kind()) {
    case Symbol::kTerminal:
      add_item(top.regex(), rest, capture, out);
      return;
    case Symbol::kCapture:
      close(rest, captures_.start(capture), Reading{}, out);
      return;
    case Symbol::kRule: {
      const Alternatives alts = expand(top.rule_id());  // a copy: expanding may rehash the map
      follow_alternatives(alts, rest, capture, out);
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
      productions_.expand(top.rule_id(), r, alts);
      follow_alternatives(alts, rest, outer, out);
      return;
    }
  }
}

void Parser::close(StackId stack, CaptureId capture, const Reading& reading, Frontier& out) {
  if (++depth_ > kMaxClosureDepth) {
    depth_ = 0;
    throw Error(ErrorKind::kBudgetExceeded, "too many rules in a row match the empty text");
  }
  if (stacks_.has_end(stack)) out.accepting = true;
  for (const StackEntry& e : stacks_.entries(stack)) follow(e.top, e.rest, capture, reading, out);
  --depth_;
}

const Parser::Frontier& Parser::frontier(StackId stack) {
  const auto it = frontiers_.find(stack.v);
  if (it != frontiers_.end()) return it->second;
  Frontier f;
  depth_ = 0;
  close(stack, CaptureId{0}, Reading{}, f);
  normalise(f.items);
  return frontiers_.emplace(stack.v, std::move(f)).first->second;
}

// Equal rests become one regex, equal regexes one set of rests.
void Parser::normalise(std::vector<Item>& items) {
  if (items.size() < 2) return;
  std::sort(items.begin(), items.end(), [](const Item& x, const Item& y) {
    return std::tie(x.stack.v, x.capture.v, x.regex.v) < std::tie(y.stack.v, y.capture.v, y.regex.v);
  });
  std::vector<Item> merged;
  std::vector<RegexId> group;
  for (std::size_t i = 0; i < items.size();) {
    std::size_t j = i;
    group.clear();
    for (; j < items.size() && items[j].stack == items[i].stack && items[j].capture == items[i].capture; ++j) {
      // A labelled regex ends in a label, poison in nothing at all: neither can share a union.
      if (regexes_.node(items[j].regex).labelled || items[j].regex == RegexArena::poison())
        merged.push_back(items[j]);
      else
        group.push_back(items[j].regex);
    }
    if (!group.empty())
      merged.push_back({group.size() == 1 ? group[0] : regexes_.alt(std::span<const RegexId>(group)), items[i].stack,
                        items[i].capture});
    i = j;
  }
  std::sort(merged.begin(), merged.end(), [](const Item& x, const Item& y) {
    return std::tie(x.regex.v, x.capture.v, x.stack.v) < std::tie(y.regex.v, y.capture.v, y.stack.v);
  });
  items.clear();
  for (const Item& item : merged) {
    if (!items.empty() && items.back().regex == item.regex && items.back().capture == item.capture)
      items.back().stack = stacks_.unite(items.back().stack, item.stack);
    else
      items.push_back(item);
  }
}

StateId Parser::intern(const std::vector<Item>& items, bool accepting) {
  if (items.empty() && !accepting) return dead();
  uint64_t h = accepting;
  for (const Item& i : items) h = mix(mix(mix(h, i.regex.v), i.stack.v), i.capture.v);
  const uint32_t id = index_.find_or_add(
      h,
      [&](uint32_t k) {
        const State& s = states_[k];
        return s.accepting == accepting && s.n == items.size() && std::equal(items.begin(), items.end(), s.items);
      },
      [&] {
        const uint32_t k = states_.emplace_back();
        State& s = states_[k];
        s.items = pool_.copy(std::span<const Item>(items)).data();
        s.n = static_cast<uint32_t>(items.size());
        s.accepting = accepting;
        const ClassMap* c = regexes_.class_maps().one();
        for (const Item& i : items) {
          c = regexes_.class_maps().product(c, &regexes_.classes(i.regex));
          s.capturing = s.capturing || i.capture.v > 1;
          s.poisoned = s.poisoned || i.regex == RegexArena::poison();
        }
        s.classes = c;
        if (!s.capturing) {
          uint32_t* next = pool_.allocate<uint32_t>(c->n);
          std::fill(next, next + c->n, unknown().v);
          s.next = next;
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

StateId Parser::subset(std::vector<Item> items, bool accepting) {
  normalise(items);
  return intern(items, accepting);
}

StateId Parser::continuation(StackId stack, CaptureId capture) {
  if (capture.v == 0) {
    const Frontier& f = frontier(stack);
    return intern(f.items, f.accepting);
  }
  Frontier f;
  depth_ = 0;
  close(stack, capture, Reading{}, f);
  normalise(f.items);
  return intern(f.items, f.accepting);
}

StateId Parser::start(RuleId rule) {
  return continuation(stacks_.push(Symbol::rule(rule), StackArena::end()), CaptureId{0});
}

StateId Parser::step_uncached(StateId s, uint8_t byte) {
  const std::span<const Item> from = items(s);
  Frontier f;
  depth_ = 0;
  for (const Item& i : from) {
    const RegexId d = regexes_.next(i.regex, byte);
    if (d == RegexArena::empty()) continue;
    const CaptureId capture = captures_.append(i.capture, byte);
    const RegexNode& n = regexes_.node(d);
    if (!n.nullable) {
      f.items.push_back({d, i.stack, capture});
    } else if (n.kind != RegexKind::kDone && capture.v == 0) {
      if (d != RegexArena::epsilon()) f.items.push_back({d, i.stack, capture});
      const Frontier& rest = frontier(i.stack);
      f.items.insert(f.items.end(), rest.items.begin(), rest.items.end());
      f.accepting = f.accepting || rest.accepting;
    } else {
      add_item(d, i.stack, capture, f);
    }
  }
  normalise(f.items);
  f.items.erase(std::unique(f.items.begin(), f.items.end()), f.items.end());
  return intern(f.items, f.accepting);
}

StateId Parser::step(StateId s, uint8_t byte) {
  State& st = states_[s.v];
  if (st.next) {
    std::atomic_ref<uint32_t> slot(st.next[st.classes->of[byte]]);
    const uint32_t known = slot.load(std::memory_order_relaxed);
    if (known != unknown().v) return StateId{known};
    const StateId out = step_uncached(s, st.classes->rep[st.classes->of[byte]]);
    slot.store(out.v, std::memory_order_release);
    return out;
  }
  if (s == dead()) return s;
  const uint64_t key = (static_cast<uint64_t>(s.v) << 8) | byte;
  if (const auto it = capture_steps_.find(key); it != capture_steps_.end()) return StateId{it->second};
  const StateId out = step_uncached(s, byte);
  capture_steps_.emplace(key, out.v);
  return out;
}

const ByteSet& Parser::live(StateId s) {
  State& st = states_[s.v];
  if (!st.live_known) {
    ByteSet set;
    for (const Item& i : items(s)) set |= regexes_.live(i.regex);
    st.live = set;
    st.live_known = true;
  }
  return st.live;
}

StackId Parser::import_stack(Parser& from, StackId s, ImportMemo& memo) {
  if (s.v <= 1) return s;
  // Iterative post-order: stacks may be deep.
  std::vector<uint32_t> todo{s.v};
  while (!todo.empty()) {
    const StackId at{todo.back()};
    if (memo.count(at.v)) {
      todo.pop_back();
      continue;
    }
    bool ready = true;
    for (const StackEntry& e : from.stacks_.entries(at))
      if (e.rest.v > 1 && !memo.count(e.rest.v)) {
        todo.push_back(e.rest.v);
        ready = false;
      }
    if (!ready) continue;
    StackId out = from.stacks_.has_end(at) ? StackArena::end() : StackArena::none();
    for (const StackEntry& e : from.stacks_.entries(at)) {
      const StackId rest = e.rest.v <= 1 ? e.rest : StackId{memo[e.rest.v]};
      out = stacks_.unite(out, stacks_.push(e.top, rest));
    }
    memo[at.v] = out.v;
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
