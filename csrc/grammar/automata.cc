// Rules of a grammar as minimal automata over their symbols.
//
// The problem. A grammar of expressions has one rule for each level of operators. After a name the
// stack holds all fifteen levels, each with "and now perhaps my operator", and every state asks all of
// them.
//
// The idea. A rule and the rules that it calls become one finite automaton over symbols. A call that must
// come back to the middle of its own rule (between brackets) stays a symbol. The automaton is made
// deterministic and minimal, and its states become the new rules.
//
//     expr: term ("+" term)*          term: NAME | "(" expr ")"
//     Network    term is merged in; expr between brackets stays a symbol
//     minimal    0 -NAME-> 1, 0 -"("-> 2, 1 -"+"-> 0, 2 -expr-> 3, 3 -")"-> 1; 1 accepts
//     rules      expr = NAME e1 | "(" e2     e1 = nothing | "+" expr     e2 = expr e3     e3 = ")" e1
//     stack      after `a` it is one symbol, e1, however many levels of operators there are
//
// Steps. Calls finds which rules recur, and how. Network is a graph with empty edges; a node stands for what
// may still be read, so a call with a continuation that was met before is an edge to the node that exists.
// Then come determinise (subsets), minimise (Moore's refinement) and to_automata (states as rules).
//
// Invariants. Each rule keeps its language. Grammars with notes or limits are left as they are, because
// those are positions in the rules; so are counted rules and rules with hidden left recursion. State 0 is
// the rule itself. Rules that are no longer called lose their alternatives.
//
// Costs. Linear in what is merged in. A rule beyond kMaxNodes or kMaxStates is tried again without its
// own recursion, and then left as it was.
//
// Rejected: merging rules everywhere. A rule behind something of its caller would be copied for each
// place; this only pays for small ones (kSmall symbols).
#include "grammar/automata.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "base/components.h"
#include "base/depth.h"
#include "base/sorted.h"
#include "base/work.h"
#include "regex/regex.h"

namespace structgen {

namespace {

// If a network has more nodes than this, it is made again with fewer rules merged in. If it is still too
// large, its rule stays as it is.
constexpr uint32_t kMaxNodes = 1'000;
// The same for an automaton of more states than this.
constexpr uint32_t kMaxStates = 400;
// A merged rule may have rules merged into it. A network with more than this many such levels counts as too
// large.
constexpr uint32_t kMaxNesting = 200;
// A rule is merged into each of its callers if it has at most this many symbols, counting those of all rules
// that it calls.
constexpr uint32_t kSmall = 16;

// Which rules call which, before any rule is rewritten.
class Calls {
 public:
  explicit Calls(const Cfg& cfg, RegexArena& regexes) : cfg_(cfg), regexes_(regexes) {
    connect();
    sizes();
    const uint32_t n = static_cast<uint32_t>(cfg.rules.size());
    std::vector<uint32_t> members(cfg.groups + 1, 0);
    for (const CfgRule& r : cfg.rules) ++members[r.group];
    left_.assign(n, kPlain);
    for (uint32_t r = 0; r < n; ++r)
      if (cfg.rules[r].group != 0)
        left_[r] = members[cfg.rules[r].group] == 1 && direct(r) ? kDirect : kHidden;
  }
  bool recursive(uint32_t r) const { return recursive_[r]; }
  // Returns true if both rules call each other, directly or through other rules.
  bool together(uint32_t a, uint32_t b) const { return component_[a] == component_[b]; }
  bool small(uint32_t r) const { return size_[r] <= kSmall; }
  bool left_recursive(uint32_t r) const { return left_[r] == kDirect; }
  // Returns true if the rule is left-recursive in a way that a network cannot hold: through other rules, or
  // behind symbols that may be empty.
  bool fixed(uint32_t r) const { return left_[r] == kHidden; }

 private:
  enum Left : uint8_t { kPlain, kDirect, kHidden };

  // Returns true if the rule is left-recursive by its own first symbols only: r -> r a | b.
  bool direct(uint32_t r) const {
    for (const CfgSequence& sequence : cfg_.rules[r].alternatives)
      for (std::size_t i = 0; i < sequence.size(); ++i) {
        const CfgSymbol s = sequence[i];
        if (i > 0 && s == CfgSymbol{CfgSymbol::kRule, r}) return false;
        if (i == 0 && s == CfgSymbol{CfgSymbol::kRule, r}) {
          if (cfg_.rules[r].nullable) return false;
          break;
        }
        if (!nullable(cfg_, regexes_, s)) break;
      }
    return !cfg_.rules[r].counted;
  }

  void connect() {
    const uint32_t n = static_cast<uint32_t>(cfg_.rules.size());
    std::vector<std::vector<uint32_t>> calls(n);
    for (uint32_t r = 0; r < n; ++r)
      for (const CfgSequence& sequence : cfg_.rules[r].alternatives)
        for (CfgSymbol s : sequence)
          if (s.kind == CfgSymbol::kRule) calls[r].push_back(s.id);
    component_.assign(n, 0);
    recursive_.assign(n, false);
    uint32_t number = 0;
    components(calls, [&](std::span<const uint32_t> members, bool recursive) {
      ++number;
      for (uint32_t member : members) {
        component_[member] = number;
        recursive_[member] = recursive;
      }
      finished_.insert(finished_.end(), members.begin(), members.end());
    });
  }

  // Counts the symbols of each rule and of all rules that it calls; a recursive rule counts as large.
  // finished_ has a rule behind the rules that it calls, so one pass is enough.
  void sizes() {
    size_.assign(cfg_.rules.size(), kSmall + 1);
    for (uint32_t r : finished_) {
      if (recursive_[r]) continue;
      uint32_t size = 0;
      for (const CfgSequence& sequence : cfg_.rules[r].alternatives)
        for (CfgSymbol s : sequence)
          size = std::min(kSmall + 1, size + (s.kind == CfgSymbol::kRule ? size_[s.id] : 1));
      size_[r] = size;
    }
  }

  const Cfg& cfg_;
  RegexArena& regexes_;
  std::vector<uint32_t> component_, finished_, size_;
  std::vector<bool> recursive_;
  std::vector<Left> left_;
};

struct Edge {
  CfgSymbol symbol;
  uint32_t to;
};

// A nondeterministic automaton of a rule and of the rules merged into it. A node stands for what may still be
// read. rule(r, to) makes the node from which a text of rule r leads to the node `to`, once for each r and
// `to`.
class Network {
 public:
  // With `recursive`, the rules that are recursive through the root are merged in, too.
  Network(const Cfg& cfg, const Calls& calls, uint32_t root, bool recursive)
      : cfg_(cfg), calls_(calls), root_(root), recursive_(recursive) {
    end_ = node();
    start_ = rule(root, end_, true, true);
  }
  // Returns false if the network became too large. It is then incomplete, and of no use.
  bool fits() const { return nodes_.size() <= kMaxNodes && !deep_; }
  uint32_t start() const { return start_; }
  uint32_t end() const { return end_; }
  const std::vector<Edge>& edges(uint32_t n) const { return nodes_[n].edges; }
  const std::vector<uint32_t>& empty(uint32_t n) const { return nodes_[n].empty; }
  uint32_t size() const { return static_cast<uint32_t>(nodes_.size()); }

 private:
  struct Node {
    std::vector<Edge> edges;
    std::vector<uint32_t> empty;
  };
  uint32_t node() {
    nodes_.emplace_back();
    return static_cast<uint32_t>(nodes_.size() - 1);
  }

  // Returns the node from which a text of rule `r` leads to the node `to`. `first` says that nothing is read
  // between the caller's beginning and this call, `last` that nothing is read between this call and the
  // caller's end.
  uint32_t rule(uint32_t r, uint32_t to, bool first, bool last) {
    check_depth();
    const auto [it, fresh] = made_.try_emplace((static_cast<uint64_t>(r) << 32) | to, 0);
    if (!fresh) return it->second;
    const uint32_t entry = it->second = node();
    if (path_.size() >= kMaxNesting || !fits()) {
      deep_ = true;
      return entry;
    }
    path_.push_back(r);
    uint32_t exit = to;
    // The left recursion r -> r a | b becomes one b, then any number of a.
    const bool left = calls_.left_recursive(r);
    if (left) {
      exit = node();
      nodes_[exit].empty.push_back(to);
    }
    for (const CfgSequence& alternative : cfg_.rules[r].alternatives) {
      const bool again = left && alternative.front() == CfgSymbol{CfgSymbol::kRule, r};
      sequence(alternative, again ? 1 : 0, again ? exit : entry, exit, first && !again, last);
    }
    path_.pop_back();
    return entry;
  }

  void sequence(const CfgSequence& symbols, std::size_t begin, uint32_t from, uint32_t to, bool first,
                bool last) {
    if (begin == symbols.size()) nodes_[from].empty.push_back(to);
    for (std::size_t i = begin; i < symbols.size(); ++i) {
      const bool ends = i + 1 == symbols.size();
      const uint32_t target = ends ? to : node();
      add(symbols[i], from, target, first && i == begin, last && ends, i != begin);
      from = target;
    }
  }

  // Adds one symbol as an edge from one node to another. `own` says that `from` has no other edges.
  void add(CfgSymbol s, uint32_t from, uint32_t to, bool first, bool last, bool own) {
    check_depth();
    if (s.kind != CfgSymbol::kRule) {
      nodes_[from].edges.push_back({s, to});
      return;
    }
    const CfgRule& r = cfg_.rules[s.id];
    // An unbounded repetition becomes a loop at one node. If `from` has other edges, the loop gets a node of
    // its own; otherwise the loop could be left by those edges.
    if (r.counted && r.max == kUnbounded && r.min <= 1 && r.group == 0) {
      const CfgSequence& body = r.alternatives[0];
      uint32_t at = from;
      if (r.min == 1) {
        at = node();
        sequence(body, 0, from, at, first, false);
      } else if (!own) {
        at = node();
        nodes_[from].empty.push_back(at);
      }
      sequence(body, 0, at, at, false, false);
      nodes_[at].empty.push_back(to);
      return;
    }
    if (taken_in(s.id, to, first || last)) {
      const bool named = !r.part;
      const uint32_t entry = rule(s.id, to, named || first, named || last);
      nodes_[from].empty.push_back(entry);
    } else {
      nodes_[from].edges.push_back({s, to});
    }
  }

  // Returns true if this call is replaced by nodes of the called rule. `bare` says that the call is the
  // caller's first or last symbol.
  bool taken_in(uint32_t r, uint32_t to, bool bare) const {
    if (made_.count((static_cast<uint64_t>(r) << 32) | to)) return true;
    if (cfg_.rules[r].counted || calls_.fixed(r)) return false;
    if (std::find(path_.begin(), path_.end(), r) != path_.end()) return false;
    if (cfg_.rules[r].part && (calls_.together(r, root_) || !calls_.recursive(r))) return true;
    if (calls_.recursive(r)) return recursive_ && bare && calls_.together(r, root_);
    return calls_.small(r);
  }

  const Cfg& cfg_;
  const Calls& calls_;
  const uint32_t root_;
  const bool recursive_;
  std::vector<Node> nodes_;
  std::unordered_map<uint64_t, uint32_t> made_;
  std::vector<uint32_t> path_;
  uint32_t start_ = 0, end_ = 0;
  bool deep_ = false;
};

// A deterministic automaton that reads symbols; state 0 is the start.
struct Automaton {
  struct State {
    std::vector<Edge> edges;
    bool accepting = false;
  };
  std::vector<State> states;
};

// Makes the network deterministic: a state is a set of nodes. Returns false if there are more than kMaxStates
// states.
bool determinise(const Network& network, Automaton& out) {
  std::map<std::vector<uint32_t>, uint32_t> numbers;
  std::vector<std::vector<uint32_t>> sets;
  const auto number = [&](std::vector<uint32_t> set) {
    const std::vector<bool> met = reached(network.size(), std::move(set), [&](uint32_t n, auto&& go) {
      for (uint32_t e : network.empty(n)) go(e);
    });
    std::vector<uint32_t> closed;
    // A set keeps only the end and the nodes with an edge that reads a symbol. Other nodes make no difference
    // between sets.
    for (uint32_t n = 0; n < met.size(); ++n)
      if (met[n] && (!network.edges(n).empty() || n == network.end())) closed.push_back(n);
    const auto [it, fresh] = numbers.try_emplace(std::move(closed), static_cast<uint32_t>(sets.size()));
    if (fresh) sets.push_back(it->first);
    return it->second;
  };
  number({network.start()});
  for (uint32_t s = 0; s < sets.size(); ++s) {
    if (sets.size() > kMaxStates) return false;
    std::map<CfgSymbol, std::vector<uint32_t>> next;
    bool accepting = false;
    charge(static_cast<int64_t>(sets[s].size()));
    for (uint32_t n : sets[s]) {
      accepting = accepting || n == network.end();
      for (const Edge& e : network.edges(n)) next[e.symbol].push_back(e.to);
    }
    Automaton::State state;
    state.accepting = accepting;
    for (auto& [symbol, to] : next) {
      sort_unique(to);
      state.edges.push_back({symbol, number(std::move(to))});
    }
    out.states.push_back(std::move(state));
  }
  return true;
}

// Merges states from which the same sequences of symbols are accepted. It splits classes of states until no
// class can be split (Moore's algorithm).
void minimise(Automaton& a) {
  std::vector<uint32_t> of(a.states.size());
  for (std::size_t s = 0; s < of.size(); ++s) of[s] = a.states[s].accepting;
  for (std::size_t classes = 0;;) {
    std::map<std::vector<uint32_t>, uint32_t> numbers;
    std::vector<uint32_t> next(of.size());
    for (std::size_t s = 0; s < of.size(); ++s) {
      charge(2 + static_cast<int64_t>(a.states[s].edges.size()));
      std::vector<uint32_t> key{of[s]};
      for (const Edge& e : a.states[s].edges) {
        key.push_back(e.symbol.kind);
        key.push_back(e.symbol.id);
        key.push_back(of[e.to]);
      }
      next[s] = numbers.try_emplace(std::move(key), static_cast<uint32_t>(numbers.size())).first->second;
    }
    of = std::move(next);
    if (numbers.size() == classes) break;
    classes = numbers.size();
  }
  // Classes are numbered in the order of their first states, so the start's class has the number 0.
  Automaton out;
  for (std::size_t s = 0; s < of.size(); ++s)
    if (of[s] == out.states.size()) {
      out.states.push_back(std::move(a.states[s]));
      for (Edge& e : out.states.back().edges) e.to = of[e.to];
    }
  a = std::move(out);
}

// Makes the automaton of a rule. Rules that are recursive through it are merged in; if the result is too
// large, they are not. Returns false if it is too large even then.
bool automaton(const Cfg& cfg, const Calls& calls, uint32_t root, Automaton& out) {
  for (const bool recursive : {true, false}) {
    if (!recursive && !calls.recursive(root)) break;
    out.states.clear();
    const Network network(cfg, calls, root, recursive);
    if (network.fits() && determinise(network, out)) return true;
  }
  return false;
}

}  // namespace

// Replaces each rule that the start rule needs by the states of its automaton. The start state takes the
// rule's number; each other state is a new rule.
void to_automata(Cfg& cfg, RegexArena& regexes) {
  for (const CfgRule& r : cfg.rules)
    for (const CfgSequence& sequence : r.alternatives)
      for (CfgSymbol s : sequence)
        if (s.kind == CfgSymbol::kNote || s.kind == CfgSymbol::kLimit) return;
  const Calls calls(cfg, regexes);
  const uint32_t n = static_cast<uint32_t>(cfg.rules.size());
  std::vector<CfgRule> made;
  std::vector<std::vector<CfgSequence>> rewritten(n);
  std::vector<bool> met(n, false), done(n, false);
  std::vector<uint32_t> todo;
  const auto need = [&](uint32_t r) {
    if (met[r]) return;
    met[r] = true;
    todo.push_back(r);
  };
  need(cfg.start);
  while (!todo.empty()) {
    const uint32_t root = todo.back();
    todo.pop_back();
    const auto keep = [&] {
      for (const CfgSequence& sequence : cfg.rules[root].alternatives)
        for (CfgSymbol s : sequence)
          if (s.kind == CfgSymbol::kRule) need(s.id);
    };
    if (cfg.rules[root].counted || calls.fixed(root)) {
      keep();
      continue;
    }
    Automaton a;
    if (!automaton(cfg, calls, root, a)) {
      keep();
      continue;
    }
    minimise(a);
    const uint32_t first = n + static_cast<uint32_t>(made.size());
    const auto number = [&](uint32_t state) { return state == 0 ? root : first + state - 1; };
    for (uint32_t s = 0; s < a.states.size(); ++s) {
      std::vector<CfgSequence> alternatives;
      if (a.states[s].accepting) alternatives.push_back({});
      for (const Edge& e : a.states[s].edges) {
        if (e.symbol.kind == CfgSymbol::kRule) need(e.symbol.id);
        CfgSequence sequence{e.symbol};
        const Automaton::State& to = a.states[e.to];
        if (!to.accepting || !to.edges.empty()) sequence.push_back({CfgSymbol::kRule, number(e.to)});
        alternatives.push_back(std::move(sequence));
      }
      if (s == 0) {
        rewritten[root] = std::move(alternatives);
        done[root] = true;
      } else {
        made.emplace_back();
        made.back().productive = true;
        made.back().alternatives = std::move(alternatives);
      }
    }
  }
  for (uint32_t r = 0; r < n; ++r) {
    if (done[r]) cfg.rules[r].alternatives = std::move(rewritten[r]);
    if (!met[r]) cfg.rules[r].alternatives.clear();
  }
  for (CfgRule& r : made) cfg.rules.push_back(std::move(r));
}

}  // namespace structgen
