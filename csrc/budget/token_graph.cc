#include "budget/token_graph.h"

#include <bit>
#include <unordered_set>

#include "budget/token_steps.h"

namespace structgen {

namespace {
// A state keeps at most this many edges. If it has more, Edges::all is false.
constexpr std::size_t kAlike = 4'096;
// The edges out of a run of characters cost kOutOfRun, and kEdgeOfRun more for each edge.
constexpr uint64_t kOutOfRun = 1'000;
constexpr uint64_t kEdgeOfRun = 8;
}  // namespace

void TokenGraph::trim() {
  if (byte_size() <= most_) return;
  edges_.clear();
  too_dear_ = {};
  bytes_ = 0;
}

StateId TokenGraph::step(StateId s, TokenId t) {
  if (limited_) s = parser_.begin_token(s);
  for (char b : vocabulary_.bytes(t))
    if (s != Parser::dead()) s = begin(parser_.step(s, static_cast<uint8_t>(b)));
  return s;
}

// Makes the edges of a state inside a string from its mask, without a walk over all tokens. Returns false for
// any other state.
bool TokenGraph::of_run(StateId s, Edges& out) {
  if (limited_ || exact_) return false;
  struct Add {
    TokenGraph& graph;
    StateId from;
    Edges& out;
    std::vector<uint32_t> row;
    std::unordered_set<uint32_t> seen;
    void add(StateId to, TokenId t) {
      if (seen.insert(to.v).second) out.to.emplace_back(to, t);
    }
    void mask() {
      if (!row.empty()) return;
      row.resize(graph.vocabulary_.words());
      write_row(*graph.masks_.mask(from), graph.vocabulary_, row.data());
    }
    void reach(StateId to, std::span<const TokenId> tokens) {
      mask();
      if (seen.contains(to.v)) return;
      for (TokenId t : tokens)
        if (has_bit(row.data(), t)) return add(to, t);
    }
    bool whole(StateId to, const Words& tokens) {
      mask();
      for (uint32_t w = 0; w < tokens.size(); ++w)
        if (const uint32_t bits = tokens[w] & row[w]) {
          add(to, static_cast<TokenId>(w * 32 + static_cast<uint32_t>(std::countr_zero(bits))));
          break;
        }
      return false;
    }
    bool begun(StateId, RegexId, std::span<const TokenId>) { return false; }
    bool takes(StateId) { return false; }
    void take(const Words&) {}
    bool stops(StateId at) { return graph.ends_in_text(at, out); }
    void stopped(std::span<const TokenId>) {}
    void done(const Words& tokens) {
      mask();
      for (uint32_t w = 0; w < tokens.size(); ++w) row[w] &= ~tokens[w];
    }
  } add{*this, s, out, {}, {}};
  if (!targets_.visit(s, true, add)) return false;
  out.cost = kOutOfRun + kEdgeOfRun * out.to.size();
  return true;
}

// Returns true if captured text decides everything that follows s. If captured text decides anything behind
// s, `out.all` becomes false.
bool TokenGraph::ends_in_text(StateId s, Edges& out) const {
  const State& st = parser_.state(s);
  if (!st.poisoned) return false;
  out.all = false;
  return decided_by_text(st);
}

// Makes the edges by a walk down the trie. Returns false if the walk takes more than `work`.
bool TokenGraph::by_walk(StateId s, Edges& out, uint64_t work) {
  const TokenTrie& trie = vocabulary_.trie();
  std::unordered_set<uint32_t> seen;
  const StateId from = limited_ ? parser_.begin_token(s) : s;
  StateId last = Parser::unknown();
  bool many = false;
  return SearchCost::walk(parser_, trie, from == Parser::dead() ? from : begin(from), work, out.cost,
                          [&](uint32_t node, StateId before, StateId next) {
                            if (many) return Parser::dead();
                            if (next != before) next = begin(next);
                            if (ends_in_text(next, out)) return Parser::dead();
                            if (next != last && !trie.tokens(node).empty()) {
                              last = next;
                              if (seen.insert(next.v).second) {
                                if (out.to.size() == kAlike) {
                                  out.all = false;
                                  many = true;
                                  return Parser::dead();
                                }
                                out.to.emplace_back(next, trie.tokens(node)[0]);
                              }
                            }
                            return next;
                          });
}

// The cost of known edges is compared with `work`, too, so that an old graph answers as a new graph would.
const TokenGraph::Edges* TokenGraph::edges(StateId s, uint64_t work) {
  if (work < SearchCost::kLeast) return nullptr;
  if (const auto it = edges_.find(s.v); it != edges_.end())
    return it->second.cost <= work ? &it->second : nullptr;
  const uint64_t* tried = too_dear_.find(s.v);
  if (tried && work <= *tried) return nullptr;
  Edges out;
  if ((!of_run(s, out) && !by_walk(s, out, work)) || out.cost > work) {
    too_dear_.emplace(s.v, work).first = work;
    return nullptr;
  }
  out.to.shrink_to_fit();
  bytes_ += sizeof(Edges) + 64 + out.to.capacity() * sizeof(out.to[0]);
  return &edges_.emplace(s.v, std::move(out)).first->second;
}

}  // namespace structgen
