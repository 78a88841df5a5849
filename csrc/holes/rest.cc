#include "holes/rest.h"

#include <algorithm>

#include "base/depth.h"
#include "base/error.h"
#include "base/work.h"

namespace structgen {

namespace {
// go_down() throws if more paths than this lead down the stacks to the readers of open captures.
constexpr std::size_t kMostPaths = 10'000;
}  // namespace

RestOfText::RestOfText(Productions& base, Parser& parser, StateId state)
    : ExtendedProductions(base, base.traits_of(RuleId{0}).plain), parser_(parser), state_(state) {
  own_.push_back({Own::kStart});
  start(start_);
}

// Returns the symbol of the rule that reads a set of stacks.
Symbol RestOfText::stack(StackId s) {
  return Symbol::rule(own_rule(stacks_.remember(s.v, [&] {
    own_.push_back({Own::kStack, s});
    return static_cast<uint32_t>(own_.size() - 1);
  })));
}

// Adds an alternative for each path down the stacks; a path ends where it has met the readers of all open
// captures. `open` counts the captures that begin on the path itself, whose readers come first. `label` says
// that a labelled regex was just read, so the next reader is told a label.
void RestOfText::go_down(StackId s, std::vector<std::string>& captured, uint32_t open, bool label,
                         std::vector<Symbol>& above, Alternatives& out) {
  check_depth();
  charge();
  if (out.ends.size() > kMostPaths)
    throw Error(ErrorKind::kBudgetExceeded, "the text before the hole has too many readings");
  const StackArena& stacks = parser_.stacks();
  if (captured.empty() && open == 0 && !label) {
    if (s != StackArena::end()) above.push_back(stack(s));
    out.add(above);
    if (s != StackArena::end()) above.pop_back();
    return;
  }
  if (stacks.has_end(s)) out.add(above);
  for (const StackEntry& e : stacks.entries(s)) {
    const bool reads = e.top.kind() == Symbol::kReader && !label;
    if (!reads || open > 0) {
      go_on(e, captured, open, label, above, out);
      continue;
    }
    // A capture around this one captures its text as well.
    const std::string text = captured.back();
    captured.pop_back();
    own_.push_back({Own::kReader, {}, e.top.rule_id(), text});
    above.push_back(Symbol::reader(own_rule(own_.size() - 1)));
    if (!captured.empty()) captured.back() += text;
    go_down(e.rest, captured, 0, false, above, out);
    if (!captured.empty()) captured.back().resize(captured.back().size() - text.size());
    captured.push_back(text);
    above.pop_back();
  }
}

// Goes on below the top symbol of an entry of the stacks, if this symbol is no reader of an open capture.
void RestOfText::go_on(const StackEntry& e, std::vector<std::string>& captured, uint32_t open, bool label,
                       std::vector<Symbol>& above, Alternatives& out) {
  if (e.top.kind() == Symbol::kCapture) ++open;
  if (e.top.kind() == Symbol::kReader && !label && open > 0) --open;
  const bool labels = e.top.kind() == Symbol::kTerminal && parser_.regexes().node(e.top.regex()).labelled;
  above.push_back(translate(e.top));
  go_down(e.rest, captured, open, labels, above, out);
  above.pop_back();
}

// Writes the alternatives of the start, at least one for each item of the state.
void RestOfText::start(Alternatives& out) {
  if (parser_.state(state_).accepting) out.add({});
  const std::vector<Item> items(parser_.items(state_).begin(), parser_.items(state_).end());
  for (const Item& i : items) {
    std::vector<std::string> captured;
    CaptureId c = i.capture;
    // CaptureArena gives the innermost capture first. Its text for a capture is only the part that belongs to
    // no capture further inside.
    while (c.v > 1) captured.push_back(parser_.captures().innermost(c));
    std::reverse(captured.begin(), captured.end());
    std::vector<Symbol> above(captured.size(), Symbol::capture());
    above.push_back(Symbol::terminal(i.regex));
    go_down(i.stack, captured, 0, parser_.regexes().node(i.regex).labelled, above, out);
  }
}

void RestOfText::expand_own(uint32_t n, const Reading& reading, Alternatives& out) {
  if (n >= own_.size()) throw Error(ErrorKind::kValue, "rule out of range");
  const Own& own = own_[n];
  switch (own.kind) {
    case Own::kStart: out = start_; return;
    case Own::kReader: {
      const bool text = reading.kind == Reading::kText;
      return expand(of(own.reader), text ? Reading::of_text(own.text + reading.text) : reading, out);
    }
    case Own::kStack: break;
  }
  const StackId s = own.stack;
  if (parser_.stacks().has_end(s)) out.add({});
  std::vector<std::string> captured;
  std::vector<Symbol> above;
  for (const StackEntry& e : parser_.stacks().entries(s)) go_on(e, captured, 0, false, above, out);
}

bool RestOfText::narrow(RuleId rule, const Choice& choice, RuleId& out, bool& any) {
  if (is_own(rule)) return false;
  std::vector<RuleId> rules;
  for (const RuleId r : choice.rules) {
    if (is_own(r)) return false;
    rules.push_back(RuleId{r.v / 2});
  }
  if (!base_.narrow(RuleId{rule.v / 2}, {choice.texts, rules, choice.others}, out, any)) return false;
  out = of(out);
  return true;
}

}  // namespace structgen
