// How nodes of a front end become terminals where they are regular and rules where they are not; lower.h
// says why.
//
// An example. `start: item ("," item)*`, `item: WORD | "(" start ")"`, `ws: " " ws |`:
//
//     regular(ws)       a rule that repeats its own beginning or end is a loop: loop() makes `" "*` of it
//     regular(item)     it refers to start, which is in progress: not regular
//     rules             start -> item rest; rest -> nothing | "," item rest; item -> WORD | "(" start ")"
//     terminals         "," and WORD are regexes; neighbouring regular parts are joined to one terminal,
//                       unless they are wide: a wide one stays a regex that other rules share
//
// regular() answers once per node. An expression in progress contains itself through rules, so it is
// not regular there. A rule is merged into its place while that stays small (kMaxInlined): a terminal
// has an exact mask, while a rule costs a state for every position in it.
//
// The lexemes of a grammar with a lexer are not joined, because where one ends is decided by all of
// them together (grammar/lexemes.h).
//
// Invariants. The texts are those of the source: merging, joining and loops change no language.
#include "grammar/lower.h"

#include <algorithm>
#include <unordered_map>

#include "base/components.h"
#include "base/depth.h"
#include "base/error.h"
#include "base/work.h"
#include "grammar/substring.h"
#include "parse/productions.h"
#include "regex/regex.h"
#include "regex/syntax.h"

namespace structgen {

namespace {

// Expressions may nest at most this deep, and so may rules that are merged into each other; a deeper grammar
// is refused.
constexpr uint32_t kMaxDepth = 1'000;
// A rule is merged into a terminal only if the terminal then has at most this many nodes.
constexpr uint64_t kMaxInlined = 20'000;

class Lowering {
 public:
  Lowering(RegexArena& regexes, const GrammarSource& source)
      : regexes_(regexes),
        source_(source),
        regular_(source.nodes.size()),
        rules_(source.rules.size()),
        rule_numbers_(source.rules.size(), kNone) {}

  Lowered run(uint32_t start) {
    for (const Lexeme& l : source_.lexemes) {
      const std::optional<RegexId> r = regular(l.node);
      if (!r) throw Error(ErrorKind::kGrammar, "terminal '" + l.name + "' is not regular");
      LexemeLanguage language{*r, l.priority, l.literal, l.alone, l.lazy, *r};
      if (l.whole >= 0) {
        const std::optional<RegexId> whole = regular(static_cast<uint32_t>(l.whole));
        if (!whole) throw Error(ErrorKind::kGrammar, "terminal '" + l.name + "' is not regular");
        language.whole = *whole;
      }
      language.inside = l.inside;
      out_.cfg.optional.push_back(regexes_.nullable(*r));
      out_.lexemes.push_back(language);
    }
    out_.cfg.gaps = source_.gaps;
    out_.cfg.warnings = source_.warnings;
    out_.cfg.start = number(start);
    for (std::size_t i = 0; i < todo_.size(); ++i) {
      const auto [rule, node] = todo_[i];
      std::vector<CfgSequence> alternatives;
      this->alternatives(node, alternatives);
      out_.cfg.rules[rule].alternatives = std::move(alternatives);
    }
    const std::vector<bool> met = used();
    for (uint32_t r = 0; r < source_.rules.size(); ++r)
      if (!source_.rules[r].name.empty() && !met[r])
        out_.cfg.warnings.push_back("rule '" + source_.rules[r].name + "' is not used");
    for (uint32_t r = 0; r < source_.rules.size(); ++r)
      if (!source_.rules[r].name.empty() && rules_[r].state == Regular::kYes &&
          regexes_.is_empty(rules_[r].regex))
        out_.cfg.warnings.push_back(useless(source_.rules[r].name));
    return std::move(out_);
  }

  RegexId one(uint32_t node) {
    const std::optional<RegexId> r = regular(node);
    if (!r) throw Error(ErrorKind::kGrammar, "a mark between values is not regular");
    return *r;
  }

 private:
  static constexpr uint32_t kNone = 0xFFFFFFFFu;
  // What is known of a node or rule: whether it is regular, and then its regex and the size of the regex.
  struct Regular {
    enum { kNew, kOpen, kNo, kYes } state = kNew;
    RegexId regex;
    uint64_t size = 0;
  };

  Deeper deeper() { return Deeper(depth_, kMaxDepth, ErrorKind::kGrammar, "the grammar nests too deeply"); }

  // Returns all valid UTF-8 texts that are not in r. Without the restriction a complement would hold broken
  // UTF-8.
  RegexId utf8_not(RegexId r) { return regexes_.minus(any_text(regexes_, kUtf8), r); }

  // Returns the regex of a node, or nothing if it is not regular. Each node is computed once.
  std::optional<RegexId> regular(uint32_t node) {
    check_depth();
    Regular& known = regular_[node];
    if (known.state == Regular::kYes) return known.regex;
    // kOpen: the node is being computed. It contains itself, so it is not regular here.
    if (known.state == Regular::kNo || known.state == Regular::kOpen) return {};
    const Deeper level = deeper();
    known.state = Regular::kOpen;
    uint64_t size = 1;
    const std::optional<RegexId> r = compute(source_.nodes[node], size);
    Regular& slot = regular_[node];
    slot.state = r ? Regular::kYes : Regular::kNo;
    if (r) slot.regex = *r;
    slot.size = size;
    return r;
  }

  // Computes the regex of a node from its kids. Sets `size` to the nodes of this regex as a tree.
  std::optional<RegexId> compute(const GrammarNode& n, uint64_t& size) {
    switch (n.op) {
      case NodeOp::kEmpty: return RegexArena::epsilon();
      case NodeOp::kNever: return RegexArena::empty();
      case NodeOp::kBytes: size = 1 + n.text.size() / 8; return regexes_.literal(n.text);
      case NodeOp::kByte: {
        ByteSet set;
        for (char c : n.text) set.add(static_cast<uint8_t>(c));
        return regexes_.bytes(set);
      }
      case NodeOp::kChars: return utf8_class(regexes_, CodepointSet(n.ranges));
      case NodeOp::kPattern:
        size = 1 + n.text.size() / 4;
        return lower(regexes_, parse_pattern(n.text, Flavor::kPython), Match::kFull);
      case NodeOp::kTokens: {
        std::vector<RegexId> parts;
        for (const std::string& t : n.units) parts.push_back(regexes_.literal(t));
        size = 1 + n.units.size();
        return regexes_.alt(std::span<const RegexId>(parts));
      }
      case NodeOp::kSubstring: size = 1 + n.units.size(); return substring(regexes_, n.units, n.a);
      case NodeOp::kRule: return regular_rule(n.a, size);
      case NodeOp::kLexeme:
      case NodeOp::kPart:
      case NodeOp::kGap:
      case NodeOp::kLimit:
      case NodeOp::kSplit:
      case NodeOp::kCapture: return {};
      default: break;
    }
    charge(2 + static_cast<int64_t>(n.kids.size()));
    std::vector<RegexId> kids;
    bool all = true;
    for (uint32_t k : n.kids) {
      // The other kids are computed even if this one is not regular, because their regexes are needed later.
      const std::optional<RegexId> r = regular(k);
      if (!r)
        all = false;
      else
        kids.push_back(*r);
      size += regular_[k].size;
    }
    if (!all) return {};
    if (size > kMaxInlined) return {};
    switch (n.op) {
      case NodeOp::kSequence: return regexes_.cat(std::span<const RegexId>(kids));
      case NodeOp::kChoice: return regexes_.alt(std::span<const RegexId>(kids));
      case NodeOp::kRepeat: return regexes_.repeat(kids[0], n.a, n.b);
      case NodeOp::kNot: return utf8_not(kids[0]);
      case NodeOp::kShortest: {
        // The texts of r that do not begin with a shorter text of r.
        const RegexId more = regexes_.cat(regexes_.bytes(ByteSet::all()), RegexArena::anything());
        return regexes_.minus(kids[0], regexes_.cat(kids[0], more));
      }
      case NodeOp::kBoth: return regexes_.both(std::span<const RegexId>(kids));
      default: return {};
    }
  }

  // Returns the regex of a rule, or nothing if it is not regular. A rule that calls itself only at one end is
  // a loop, which is regular.
  std::optional<RegexId> regular_rule(uint32_t rule, uint64_t& size) {
    if (!source_.rules[rule].defined)
      throw Error(ErrorKind::kGrammar, "rule '" + source_.rules[rule].name + "' is not defined");
    Regular& known = rules_[rule];
    if (known.state == Regular::kNew) {
      known.state = Regular::kOpen;
      uint64_t whole = 0;
      std::optional<RegexId> r;
      if (mentions(source_.rules[rule].node, rule)) {
        r = loop(rule, whole);
      } else {
        r = regular(source_.rules[rule].node);
        whole = regular_[source_.rules[rule].node].size;
      }
      Regular& slot = rules_[rule];
      slot.size = whole;
      if (r) slot.regex = *r;
      slot.state = r ? Regular::kYes : Regular::kNo;
    }
    const Regular& found = rules_[rule];
    if (found.state != Regular::kYes) return {};
    size = found.size + 1;
    return found.regex;
  }

  // Returns true if the expression calls the rule directly.
  bool mentions(uint32_t node, uint32_t rule) {
    bool found = false;
    reached(source_.nodes.size(), {node}, [&](uint32_t at, auto&& go) {
      const GrammarNode& n = source_.nodes[at];
      found = found || (n.op == NodeOp::kRule && n.a == rule);
      for (uint32_t k : n.kids) go(k);
    });
    return found;
  }

  // Returns a* b for rule -> a rule | b, and b a* for rule -> rule a | b. Returns nothing if the rule calls
  // itself elsewhere, too.
  std::optional<RegexId> loop(uint32_t rule, uint64_t& size) {
    check_depth();
    for (const bool right : {true, false}) {
      std::vector<RegexId> again, last;
      size = 0;
      if (!split_loop(source_.rules[rule].node, rule, right, RegexArena::epsilon(), again, last, size))
        continue;
      const RegexId a = regexes_.star(regexes_.alt(std::span<const RegexId>(again)));
      const RegexId b = regexes_.alt(std::span<const RegexId>(last));
      return right ? regexes_.cat(a, b) : regexes_.cat(b, a);
    }
    return {};
  }

  // Splits the expression of a rule that calls itself at one end. For r = `"a" r | "b"`, `again` gets `"a"`
  // and `last` gets `"b"`. `right` says that the call stands at the right end. `around` is what stands beside
  // the call in the expressions around `node`. Returns false if a call stands in the middle.
  bool split_loop(uint32_t node, uint32_t rule, bool right, RegexId around, std::vector<RegexId>& again,
                  std::vector<RegexId>& last, uint64_t& size) {
    check_depth();
    const Deeper level = deeper();
    const GrammarNode& n = source_.nodes[node];
    const auto with = [&](RegexId r) { return right ? regexes_.cat(around, r) : regexes_.cat(r, around); };
    if (!mentions(node, rule)) {
      const std::optional<RegexId> r = regular(node);
      size += regular_[node].size;
      if (!r || size > kMaxInlined) return false;
      last.push_back(with(*r));
      return true;
    }
    switch (n.op) {
      case NodeOp::kRule: again.push_back(around); return true;
      case NodeOp::kChoice:
        return std::all_of(n.kids.begin(), n.kids.end(),
                           [&](uint32_t k) { return split_loop(k, rule, right, around, again, last, size); });
      case NodeOp::kRepeat:
        if (n.a != 0 || n.b != 1) return false;
        last.push_back(around);
        return split_loop(n.kids[0], rule, right, around, again, last, size);
      case NodeOp::kSequence: {
        const uint32_t inner = right ? n.kids.back() : n.kids.front();
        RegexId rest = around;
        for (std::size_t i = 0; i + 1 < n.kids.size(); ++i) {
          const uint32_t k = right ? n.kids[i] : n.kids[n.kids.size() - 1 - i];
          if (mentions(k, rule)) return false;
          const std::optional<RegexId> r = regular(k);
          size += regular_[k].size;
          if (!r || size > kMaxInlined) return false;
          rest = right ? regexes_.cat(rest, *r) : regexes_.cat(*r, rest);
        }
        return split_loop(inner, rule, right, rest, again, last, size);
      }
      default: return false;
    }
  }

  uint32_t fresh(std::string name) {
    const uint32_t r = static_cast<uint32_t>(out_.cfg.rules.size());
    out_.cfg.rules.emplace_back();
    out_.cfg.rules.back().name = std::move(name);
    return r;
  }
  uint32_t helper(uint32_t node) {
    const auto [it, first] = helpers_.try_emplace(node, 0);
    if (first) {
      it->second = fresh("");
      out_.cfg.rules[it->second].part = true;
      todo_.emplace_back(it->second, node);
    }
    return it->second;
  }
  uint32_t number(uint32_t rule) {
    if (rule_numbers_[rule] == kNone) {
      if (!source_.rules[rule].defined)
        throw Error(ErrorKind::kGrammar, "rule '" + source_.rules[rule].name + "' is not defined");
      rule_numbers_[rule] = fresh(source_.rules[rule].name);
      uint64_t size = 0;
      if (const std::optional<RegexId> r = regular_rule(rule, size))
        out_.cfg.rules[rule_numbers_[rule]].alternatives.push_back({{CfgSymbol::kTerminal, r->v}});
      else
        todo_.emplace_back(rule_numbers_[rule], source_.rules[rule].node);
    }
    return rule_numbers_[rule];
  }
  // Returns which rules of the source became rules of the Cfg. A rule that did not gets a warning.
  std::vector<bool> used() const {
    std::vector<bool> out(source_.rules.size(), false);
    std::vector<uint32_t> begin;
    for (uint32_t r = 0; r < source_.rules.size(); ++r)
      if (rule_numbers_[r] != kNone) {
        out[r] = true;
        begin.push_back(source_.rules[r].node);
      }
    reached(source_.nodes.size(), std::move(begin), [&](uint32_t at, auto&& go) {
      const GrammarNode& n = source_.nodes[at];
      for (uint32_t k : n.kids) go(k);
      if (n.op == NodeOp::kRule) {
        out[n.a] = true;
        go(source_.rules[n.a].node);
      } else if (n.op == NodeOp::kLexeme) {
        go(source_.lexemes[n.a].node);
      } else if (n.op == NodeOp::kGap) {
        for (uint32_t l : source_.gaps[n.a]) go(source_.lexemes[l].node);
      }
    });
    return out;
  }

  // Appends the alternatives of a node. Choices inside choices are flattened, and all regular alternatives
  // are joined into one terminal.
  void alternatives(uint32_t node, std::vector<CfgSequence>& out) {
    check_depth();
    const Deeper level = deeper();
    if (const std::optional<RegexId> r = regular(node)) {
      out.push_back({{CfgSymbol::kTerminal, r->v}});
      return;
    }
    const GrammarNode& n = source_.nodes[node];
    if (n.op == NodeOp::kChoice) {
      std::vector<RegexId> plain;
      for (uint32_t k : n.kids)
        if (const std::optional<RegexId> r = regular(k))
          plain.push_back(*r);
        else
          alternatives(k, out);
      if (!plain.empty())
        out.push_back({{CfgSymbol::kTerminal, regexes_.alt(std::span<const RegexId>(plain)).v}});
      return;
    }
    if (n.op == NodeOp::kRepeat && n.a == 0 && n.b == 1) {
      out.push_back({});
      alternatives(n.kids[0], out);
      return;
    }
    CfgSequence sequence;
    symbols(node, sequence);
    out.push_back(std::move(sequence));
  }

  void symbols(uint32_t node, CfgSequence& out) {
    check_depth();
    const Deeper level = deeper();
    if (const std::optional<RegexId> r = regular(node)) {
      terminal(*r, out);
      return;
    }
    const GrammarNode& n = source_.nodes[node];
    switch (n.op) {
      case NodeOp::kSequence:
        for (uint32_t k : n.kids) symbols(k, out);
        return;
      case NodeOp::kRule: out.push_back({CfgSymbol::kRule, number(n.a)}); return;
      case NodeOp::kLexeme: out.push_back({CfgSymbol::kLexeme, n.a}); return;
      case NodeOp::kPart: out.push_back({CfgSymbol::kPart, n.a}); return;
      case NodeOp::kGap: out.push_back({CfgSymbol::kGap, n.a}); return;
      case NodeOp::kChoice: out.push_back({CfgSymbol::kRule, helper(node)}); return;
      case NodeOp::kCapture: {
        const bool gap = source_.captures[n.a].empty();
        out.push_back({CfgSymbol::kNote, note_number(gap ? NoteKind::kGap : NoteKind::kOpen, n.a)});
        symbols(n.kids[0], out);
        out.push_back({CfgSymbol::kNote, note_number(gap ? NoteKind::kGapEnd : NoteKind::kClose, n.a)});
        return;
      }
      case NodeOp::kSplit:
        // Capture b is opened before capture a is closed. By parse/spans.h a capture begins wherever it can
        // and ends where nothing else can be read, so b becomes as long as possible.
        out.push_back({CfgSymbol::kNote, note_number(NoteKind::kOpen, n.a)});
        symbols(n.kids[0], out);
        out.push_back({CfgSymbol::kNote, note_number(NoteKind::kOpen, n.b)});
        out.push_back({CfgSymbol::kNote, note_number(NoteKind::kClose, n.a)});
        symbols(n.kids[1], out);
        out.push_back({CfgSymbol::kNote, note_number(NoteKind::kClose, n.b)});
        return;
      // A limit gets a rule of its own. Its mark then lies on the stack directly below the limited text.
      case NodeOp::kLimit: {
        const auto [it, first] = helpers_.try_emplace(node, 0);
        const uint32_t rule = first ? fresh("") : it->second;
        if (first) {
          helpers_[node] = rule;
          out_.cfg.limits.push_back({rule, n.a, n.text, n.place});
          CfgSequence body;
          symbols(n.kids[0], body);
          body.push_back({CfgSymbol::kLimit, n.a});
          out_.cfg.rules[rule].alternatives.push_back(std::move(body));
        }
        out.push_back({CfgSymbol::kRule, rule});
        return;
      }
      case NodeOp::kRepeat: {
        if (n.a == 0 && n.b == 1) {
          out.push_back({CfgSymbol::kRule, helper(node)});
          return;
        }
        const auto [it, first] = helpers_.try_emplace(node, 0);
        if (first) {
          it->second = fresh("");
          const uint32_t rule = it->second;
          CfgSequence body;
          symbols(n.kids[0], body);
          CfgRule& r = out_.cfg.rules[rule];
          r.counted = true;
          r.min = n.a;
          r.max = n.b;
          r.alternatives.push_back(std::move(body));
          out.push_back({CfgSymbol::kRule, rule});
          return;
        }
        out.push_back({CfgSymbol::kRule, it->second});
        return;
      }
      default:
        throw Error(ErrorKind::kTerminalsOnly, "`&`, `~` and shortest matches apply to terminals only");
    }
  }

  // Appends a terminal. If it and the terminal before it have few next bytes, they are joined. A terminal
  // with many next bytes stays alone: its masks are shared with other points of the grammar.
  void terminal(RegexId r, CfgSequence& out) {
    constexpr int kNarrow = 40;
    if (r == RegexArena::epsilon()) return;
    const auto narrow = [&](RegexId x) {
      return x != RegexArena::empty() && !regexes_.nullable(x) && regexes_.node(x).finite &&
             regexes_.live(x).count() < kNarrow && regexes_.node(x).shortest < 200;
    };
    if (!out.empty() && out.back().kind == CfgSymbol::kTerminal && narrow(RegexId{out.back().id}) &&
        narrow(r)) {
      out.back().id = regexes_.cat(RegexId{out.back().id}, r).v;
      return;
    }
    out.push_back({CfgSymbol::kTerminal, r.v});
  }

  RegexArena& regexes_;
  const GrammarSource& source_;
  Lowered out_;
  std::vector<Regular> regular_, rules_;
  std::vector<uint32_t> rule_numbers_;
  // Pairs of a rule of the Cfg and the expression from which its alternatives are made.
  std::vector<std::pair<uint32_t, uint32_t>> todo_;
  std::unordered_map<uint32_t, uint32_t> helpers_;
  uint32_t depth_ = 0;
};

}  // namespace

Lowered lower(RegexArena& regexes, const GrammarSource& source, uint32_t start) {
  return Lowering(regexes, source).run(start);
}

std::vector<RegexId> lower_regular(RegexArena& regexes, const GrammarSource& source,
                                   std::span<const uint32_t> nodes) {
  std::vector<RegexId> out;
  if (nodes.empty()) return out;
  Lowering lowering(regexes, source);
  for (const uint32_t node : nodes) out.push_back(lowering.one(node));
  return out;
}

}  // namespace structgen
