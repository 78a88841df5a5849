// The states to which single tokens lead from a state inside a run of characters (a JSON string, `[a-z
// ]{400}`), or from a state in front of a string.
//
//     called by     TokenGraph (edges of a state) and Trial (tokens in doubt)
//     with          a state, and a visitor that takes states and tokens
//     hands back    each state to which some token leads, with the tokens that lead there
//     asks          mask/runs.h, which lists the tokens of a run by the place where they end
//
// In: a state and a visitor. Out: calls of the visitor. Cost: some hundred steps for the ways out of the run,
// and a walk over the tokens that begin in front of the string; for comparison, a walk over the whole trie
// would visit each of a hundred thousand tokens.
//
// Example: inside `"name": "..` a token of whole characters leads back to the same state. Only tokens that
// end within a character (an escape begun, a part of UTF-8) or behind the closing quote lead elsewhere, and
// mask/runs.h lists them for every run of the vocabulary. If a run counts its characters, the tokens of n
// characters lead to one state, and all counts share the lists of tokens.
//
// The visitor also gets tokens of the run that the mask does not allow; the visitor itself compares them with
// the mask.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/work.h"
#include "mask/fill.h"
#include "mask/slices.h"
#include "mask/vocabulary.h"
#include "parse/state.h"

namespace structgen {

class Targets {
 public:
  Targets(Parser& parser, MaskBuilder& masks, Slices& slices, const Vocabulary& vocabulary)
      : parser_(parser), masks_(masks), slices_(slices), vocabulary_(vocabulary) {}

  // Visits the states behind `from` by the tokens of a run of characters. Returns false and visits nothing if
  // `from` stands neither inside a run nor in front of one; with `strings`, a quote must end the run. All
  // states are blind (MaskBuilder::blind). The visitor's functions:
  //    void reach(StateId to, std::span<const TokenId> tokens);   these tokens lead to the state `to`
  //    bool whole(StateId to, const Words& tokens);               many tokens, as a row, lead to `to`;
  //                                                               true: the tokens then go to take()
  //    bool begun(StateId to, RegexId rest, tokens);              these tokens end within a character, and
  //                                                               `rest` leads from there to `to`; false:
  //                                                               the tokens then go to reach()
  //    bool takes(StateId to);                                    asked before reach(); true: the tokens go
  //                                                               to take() instead
  //    void take(const Words& tokens);                            these tokens are taken
  //    bool stops(StateId at);                                    true: nothing behind `at` is visited
  //    void stopped(std::span<const TokenId> tokens);             these tokens lead to such a state `at` or
  //                                                               beyond it
  //    void done(Words tokens);                                   all these tokens were visited
  template <class Visitor>
  bool visit(StateId from, bool strings, Visitor& visitor) {
    Run run;
    if (counts(from, strings, run)) {
      inside_counted(from, run, visitor);
    } else if (run_behind(from, run)) {
      if (from != run.inside) walk_to_run(from, run, visitor);
      inside_endless(run, visitor);
    } else {
      return false;
    }
    for (const auto& [byte, left] : run.left) leave(run, byte, left, visitor);
    return true;
  }

 private:
  StateId step(StateId s, uint8_t b) { return masks_.blind(parser_.step(s, b)); }
  // A run of characters; the state stands inside it or in front of it.
  struct Run {
    RunClass* of = nullptr;
    RegexId element;
    // The state inside the run. In a run without a minimum or maximum, each element leads back to it.
    StateId inside;
    // The bytes that may follow the run, such as the quote of a string, each with the state behind it.
    std::vector<std::pair<uint8_t, StateId>> left;
    uint32_t min = 0, max = kUnbounded;
  };
  // Find a run without a minimum or maximum, and write it to `out`. endless() looks at the state itself,
  // run_behind() also behind one more character.
  bool run_behind(StateId from, Run& out);
  bool endless(StateId s, Run& out);
  // Returns true if s is inside a run with a minimum or maximum, and writes the run to `out`.
  bool counts(StateId s, bool strings, Run& out);

  // Visits the tokens of a run without a minimum or maximum. Those of whole characters all lead back to its
  // state. Those that end inside a character lead to one state for each begun character.
  template <class Visitor>
  void inside_endless(const Run& run, Visitor& visitor) {
    const RunCuts& cuts = run.of->cuts();
    if (visitor.whole(run.inside, cuts.whole)) visitor.take(cuts.whole);
    for (const RunCuts::Part& part : cuts.parts) {
      charge();
      if (visitor.begun(run.inside, parser_.regexes().run(run.element, part.begun), part.tokens)) continue;
      const StateId s = walk(run.inside, part.begun);
      if (s != Parser::dead()) visitor.reach(s, part.tokens);
    }
  }

  // Visits the tokens of a run with a minimum or maximum. All tokens of n characters lead to one state, found
  // by reading one character n times.
  template <class Visitor>
  void inside_counted(StateId from, const Run& run, Visitor& visitor) {
    const RunCounts& counts = run.of->counts();
    std::vector<StateId> after(run.of->longest() + 1, Parser::dead());
    after[0] = from;
    std::string_view one;
    // The visitor takes the tokens of 1 element, of 2 elements, and so on up to `taken` elements. If it takes
    // all, one row holds all tokens.
    std::size_t taken = 0;
    for (std::size_t i = 0; i < counts.wholes.size(); ++i) {
      const RunCounts::Whole& w = counts.wholes[i];
      if (w.count > run.max) break;
      charge(2);
      const std::string_view text = vocabulary_.bytes(w.row.empty() ? w.tokens[0] : first(w.row));
      if (w.count == 1) one = text;
      const bool next = !one.empty() && after[w.count - 1] != Parser::dead();
      const StateId s = next ? walk(after[w.count - 1], one) : walk(from, text);
      after[w.count] = s;
      if (s == Parser::dead()) continue;
      const bool all = w.row.empty() ? taken == i && visitor.takes(s) : visitor.whole(s, w.row);
      if (all && taken == i)
        ++taken;
      else if (w.row.empty())
        visitor.reach(s, w.tokens);
      else if (all)
        visitor.take(w.row);
    }
    if (taken > 0 && taken == counts.wholes.size()) {
      visitor.take(counts.whole);
    } else {
      for (const RunCounts::Whole& w : std::span(counts.wholes).first(taken))
        if (w.row.empty())
          visitor.reach(after[w.count], w.tokens);
        else
          visitor.take(w.row);
    }
    for (const RunCounts::Part& part : counts.parts) {
      if (part.count >= run.max) continue;
      charge();
      if (part.count + 1 < after.size() && after[part.count + 1] != Parser::dead() &&
          visitor.begun(after[part.count + 1], parser_.regexes().run(run.element, part.begun), part.tokens))
        continue;
      const bool known = part.count < after.size() && after[part.count] != Parser::dead();
      const StateId s =
          known ? walk(after[part.count], part.begun) : walk(from, vocabulary_.bytes(part.tokens[0]));
      if (s != Parser::dead()) visitor.reach(s, part.tokens);
    }
  }

  StateId walk(StateId s, std::string_view bytes) {
    for (char b : bytes)
      if (s != Parser::dead()) s = step(s, static_cast<uint8_t>(b));
    return s;
  }
  static TokenId first(const Words& row);

  // If `from` stands in front of the run, visits the tokens that begin there: a name begins with a letter,
  // and the run of its other characters stands behind this letter. A token that leads to the state of the run
  // behind the same bytes is skipped, because the functions for runs visit it.
  template <class Visitor>
  void walk_to_run(StateId from, const Run& run, Visitor& visitor) {
    const TokenTrie& trie = vocabulary_.trie();
    Words done(vocabulary_.words());
    const auto mark = [&](std::span<const TokenId> tokens) {
      for (TokenId t : tokens) set_bit(done, t);
    };
    struct Open {
      uint32_t node;
      // `state` is the state behind the bytes so far, `as_run` the one that the run alone has there; dead()
      // if it cannot read them.
      StateId state, as_run;
    };
    std::vector<Open> todo{{0, from, run.inside}};
    while (!todo.empty()) {
      const auto [at, state, as_run] = todo.back();
      todo.pop_back();
      const TokenTrie::Kids& kids = trie.kids(at);
      charge(2);
      (kids.set & parser_.live(state)).for_each([&](uint8_t b) {
        const StateId next = step(state, b);
        const uint32_t child = trie.child(kids, b);
        if (next == Parser::dead()) return;
        const StateId same = as_run == Parser::dead() || b == '"' ? Parser::dead() : step(as_run, b);
        if (next == same) return;
        if (visitor.stops(next)) {
          visitor.stopped(trie.subtree_tokens(child));
          return mark(trie.subtree_tokens(child));
        }
        if (const auto tokens = trie.tokens(child); !tokens.empty()) {
          visitor.reach(next, tokens);
          mark(tokens);
        }
        if (!trie.leaf(child)) todo.push_back({child, next, same});
      });
    }
    visitor.done(std::move(done));
  }

  // Visits the tokens that leave the run by a byte, as a trie of the bytes behind it. The states along the
  // current path of this trie are kept.
  template <class Visitor>
  void leave(const Run& run, uint8_t byte, StateId left, Visitor& visitor) {
    const RunExits& exits = run.of->exits(byte);
    const auto& nodes = exits.suffixes.nodes;
    const auto& entries = exits.suffixes.entries;
    std::vector<TokenId> buffer;
    const auto tokens = [&](auto first, auto last) -> std::span<const TokenId> {
      buffer.clear();
      for (; first != last; ++first)
        if (first->count >= run.min && first->count <= run.max) buffer.push_back(first->token);
      return buffer;
    };
    if (visitor.stops(left)) {
      visitor.stopped(tokens(exits.ends.begin(), exits.ends.end()));
      visitor.stopped(tokens(entries.begin(), entries.end()));
      return;
    }
    visitor.reach(left, tokens(exits.ends.begin(), exits.ends.end()));
    std::vector<StateId> at(exits.suffixes.depth + 1, left);
    for (uint32_t i = 0; i + 1 < nodes.size();) {
      charge();
      const StateId next = step(at[nodes[i].depth - 1], nodes[i].byte);
      if (next == Parser::dead()) {
        i = nodes[i].end;
        continue;
      }
      at[nodes[i].depth] = next;
      const auto from = entries.begin() + nodes[i].first;
      if (visitor.stops(next)) {
        visitor.stopped(tokens(from, entries.begin() + nodes[nodes[i].end].first));
        i = nodes[i].end;
        continue;
      }
      if (nodes[i].first < nodes[i + 1].first)
        visitor.reach(next, tokens(from, entries.begin() + nodes[i + 1].first));
      ++i;
    }
  }

  Parser& parser_;
  MaskBuilder& masks_;
  Slices& slices_;
  const Vocabulary& vocabulary_;
};

}  // namespace structgen
