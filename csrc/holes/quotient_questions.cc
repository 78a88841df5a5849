// The questions that a quotient asks of its facts: whether a head leads from one place to another, and with
// which items. quotient.h says what the answers are used for, and quotient.cc has a table of the questions.
//
// In: a head and two places. Out: yes, no, or unknown; a text that shows a yes. Cost: a look-up for a
// question that was decided before, otherwise a proof. While one rule is made, at most kMostResolved
// questions are decided by making alternatives.
//
// An exit that is proved is a yes. An exit that is assumed (Alternatives::assumed) needs a proof: a text that
// leads there and that a parser reads. For arrays of distinct items and the suffix `,2]`:
//
//     the facts          the rule of items leads to the end, if the items in the hole differ from 2
//     proof()            a witness of the facts, `[0,2]`, is read by a parser: yes
//     resolve()          if the parser reads no witness, the alternatives across the border are made. Each of
//                        them has been proved; compose() puts a text of one together
#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/sorted.h"
#include "holes/quotient.h"

namespace structgen {

namespace {
// If an item has at most this many values, the reader is asked about each of them.
constexpr uint32_t kTriedValues = 64;
// If a proof has more items than this, it is not used to compare items.
constexpr std::size_t kMostItems = 1024;
// At most this many proofs that end at one place are kept for other questions.
constexpr std::size_t kKeptProofs = 16;
// Resolving a question may ask further questions. At this depth resolve() leaves them undecided.
constexpr std::size_t kDeep = 6;
// The number of questions that resolve() may decide while one rule of the quotient is made.
constexpr uint32_t kMostResolved = 400;
}  // namespace

// Returns the places at which texts of a head end that begin at `from`. An assumed place is returned as the
// proved place of the same spot and pending.
std::vector<Quotient::At> Quotient::exits(Facts::Head head, At from) {
  const Facts::Found found = facts_->ask(head, from);
  doubt_.text = doubt_.text || found.unsure;
  std::vector<At> out;
  for (At e : found.exits) add_once(out, places_.proved(e));
  return out;
}

bool Quotient::leads(const Question& q) { return noted(decide(q)) == Verdict::kYes; }

// Decides a question: yes if an exit is proved, no if there is no exit. If all exits are assumed, a proof
// decides.
Verdict Quotient::decide(const Question& q) {
  const Facts::Found found = facts_->ask(q.head, q.from);
  bool assumed = false;
  for (At e : found.exits) {
    if (!done(places_.proved(e), q.to)) continue;
    if (!places_.assumed(e)) return Verdict::kYes;
    assumed = true;
  }
  if (!assumed) {
    doubt_.text = doubt_.text || found.unsure;
    return Verdict::kNo;
  }
  if (const auto known = decided_.find(q); known != decided_.end()) return known->second;
  return proof(q) ? Verdict::kYes : resolve(q);
}

const Quotient::Proof* Quotient::proof(const Question& q) {
  if (const auto known = proofs_.find(q); known != proofs_.end()) return known->second.get();
  std::unique_ptr<const Proof> out;
  for (At e : facts_->ask(q.head, q.from).exits)
    if (!out && done(places_.proved(e), q.to))
      out = find_proof(q.head, q.from, e, facts_->alternatives(q.head));
  return prove(q, std::move(out));
}

// Keeps a proof for its question. The text of the proof is also listed under the place where it ends, because
// other questions that end at this place may use the text.
const Quotient::Proof* Quotient::prove(const Question& q, std::unique_ptr<const Proof> found) {
  if (found) {
    std::deque<std::string>& shown = shown_[q.to];
    shown.push_front(found->text);
    if (shown.size() > kKeptProofs) shown.pop_back();
  }
  return (proofs_[q] = std::move(found)).get();
}

// Makes a proof from an alternative: it joins a text of each symbol before the border and the proved text of
// the symbol that crosses it. Returns false if a text is missing.
bool Quotient::compose(std::span<const Symbol> alternative, At to, Proof& out) {
  std::size_t captured = 0;
  for (const Symbol& s : alternative) {
    switch (s.kind()) {
      case Symbol::kNote: continue;
      case Symbol::kCapture: captured = out.text.size(); continue;
      case Symbol::kTerminal: {
        const RegexNode n = regexes_.node(s.regex());
        if (n.labelled || s.regex() == RegexArena::poison()) return false;
        if (n.nullable) continue;
        std::vector<std::string> some;
        facts_->stretches().texts(s.regex(), 0, 0, 1, some);
        if (some.empty()) return false;
        out.text += some.front();
        continue;
      }
      case Symbol::kRule:
      case Symbol::kReader:
        if (!compose_rule(s, out.text.substr(captured), out)) return false;
        continue;
      default: return false;
    }
  }
  out.text += suffix_.substr(0, suffix_bytes(to));
  return true;
}

// Appends a text of a rule or reader of the quotient. `told` is the captured text that a reader is told.
bool Quotient::compose_rule(Symbol s, std::string told, Proof& out) {
  const bool reader = s.kind() == Symbol::kReader;
  if (!is_own(s.rule_id())) {
    const RuleId rule{s.rule_id().v / 2};
    const At begin = places_.of(0, Alive::kClear);
    std::string text;
    if (!facts_->witness(
            reader ? facts_->reader(rule, Reading::of_text(std::move(told))) : facts_->head(rule), begin,
            begin, true, text))
      return false;
    out.text += text;
    if (!reader && base_.traits_of(rule).compared) out.items.push_back(text);
    return true;
  }
  const Crossing c = crossing_of(s);
  const bool ended = c.kind == Crossing::kEnded;
  if (ended) told += texts_[c.text];
  const Facts::Head head =
      reader ? facts_->reader(c.rule, Reading::of_text(std::move(told))) : facts_->head(c.rule);
  const Proof* shown = proof({head, ended ? c.from : places_.of(0, c.pending), c.to});
  if (!shown) return false;
  if (c.kind == Crossing::kRule && base_.traits_of(c.rule).compared)
    out.items.push_back(shown->text);
  else
    out.items.insert(out.items.end(), shown->items.begin(), shown->items.end());
  if (!ended) out.text.append(shown->text, 0, shown->text.size() - suffix_bytes(c.to));
  return true;
}

// Decides a question by making the alternatives of its head. cross() adds only alternatives that a proof
// supports, so one alternative is enough for a yes.
Verdict Quotient::resolve(const Question& q) {
  // A question that is under way already stays undecided. Otherwise the recursion would not end.
  if (crossed(q.from) || resolving_.size() == kDeep || ++resolved_ > kMostResolved ||
      std::ranges::find(resolving_, q) != resolving_.end())
    return Verdict::kUnknown;
  const Doubt before = std::exchange(doubt_, {});
  resolving_.push_back(q);
  Alternatives out;
  cross(q.head, places_.pending(q.from), q.to, out);
  resolving_.pop_back();
  bool yes = false, shown = false;
  for (const std::span<const Symbol> s : out.each()) {
    if (s.size() == 1 && s[0] == Symbol::terminal(RegexArena::poison())) continue;
    yes = true;
    auto p = std::make_unique<Proof>();
    if (shown || !compose(s, q.to, *p) || !reads(facts_->alternatives(q.head), p->text)) continue;
    prove(q, std::move(p));
    shown = true;
  }
  const Verdict v = yes                                    ? Verdict::kYes
                    : doubt_.question || !out.ends.empty() ? Verdict::kUnknown
                                                           : Verdict::kNo;
  doubt_ = before;
  if (v != Verdict::kUnknown) decided_[q] = v;
  return v;
}

// Returns a rule with those texts of `rule` after which the reader leads from one place to another. Returns
// nothing if there are none.
std::optional<RuleId> Quotient::fit(RuleId reader, RuleId rule, At from, At to) {
  if (!base_.traits_of(reader).compares) return rule;
  const Alternatives& all = facts_->alternatives(facts_->reader(reader, Reading::fresh()));
  if (all.ends.empty()) return std::nullopt;
  const RuleId first = all.symbols.front().rule_id(), last = all.symbols.back().rule_id();
  // "Fresh" means that an item differs from all others. If the reader only assumes exits of a fresh item, two
  // items must be equal; otherwise all items must differ.
  return all.assumed.size() == all.ends.size() ? fit_apart({reader, rule, from, to}, first)
                                               : fit_again({reader, rule, from, to}, first, last);
}

// Returns a rule with the chosen texts of a rule (Productions::narrow()), or nothing if the productions
// cannot make one.
std::optional<RuleId> Quotient::narrowed(RuleId rule, const Productions::Choice& choice) {
  RuleId out;
  bool any = false;
  return base_.narrow(rule, choice, out, any) && any ? std::optional(out) : std::nullopt;
}

// Returns those of the texts with which the reader leads on, or with `leads` false those with which it does
// not.
std::vector<std::string> Quotient::told(const Item& item, const std::vector<std::string>& texts, bool leads) {
  std::vector<std::string> out;
  RuleId one;
  bool any = true;
  for (const std::string& text : texts) {
    if (!base_.narrow(item.rule, {{&text, 1}, {}, false}, one, any))
      too_complex(
          "items that must differ or repeat cannot be compared across the hole; end the prefix outside the "
          "array");
    const Question q{facts_->reader(item.reader, Reading::of_text(text)), item.from, item.to};
    if (any && this->leads(q) == leads) out.push_back(text);
  }
  return out;
}

// For items that must all differ: returns a rule with those texts of the item that leave the others possible,
// or nothing. `rest` is the rule behind an item that no other item repeats. One proof of `rest` is enough:
// the reader leads on with every text that repeats none of the proof's items. So only the proof's items have
// to be tried, and those that fail are excluded.
std::optional<RuleId> Quotient::fit_apart(const Item& item, RuleId rest) {
  const Question others{facts_->head(rest), item.from, item.to};
  const Verdict possible = decide(others);
  if (possible == Verdict::kNo) return std::nullopt;
  const Proof* shown = possible == Verdict::kYes ? proof(others) : nullptr;
  std::vector<std::string> some;
  bool enough;
  if (shown && shown->items.size() <= kMostItems) {
    some = shown->items;
    sort_unique(some);
    enough = base_.compared_with(item.reader, kMostItems, some);
  } else {
    enough = base_.values(item.rule, kTriedValues, some);
  }
  if (!enough) {
    doubt_.question = true;
    return std::nullopt;
  }
  const std::vector<std::string> bad = told(item, some, false);
  return bad.empty() ? item.rule : narrowed(item.rule, {bad, {}, true});
}

// For items of which two must be equal: returns a rule with those texts of the item behind which two items
// can still be equal, or nothing. `rest` is the rule behind the item if the equal pair is still to come,
// `free` the rule behind it if the item is one of the pair and nothing more is asked.
std::optional<RuleId> Quotient::fit_again(const Item& item, RuleId rest, RuleId free) {
  const Verdict others = decide({facts_->head(rest), item.from, item.to});
  if (others == Verdict::kYes) return item.rule;
  const Question any{facts_->head(free), item.from, item.to};
  if (decide(any) == Verdict::kNo) {
    noted(others);
    return std::nullopt;
  }
  std::vector<std::string> some;
  std::vector<RuleId> rules;
  bool all = base_.values(item.rule, kTriedValues, some);
  if (!all) {
    if (const Proof* shown = proof(any)) some = shown->items;
    if (!crossed(item.from)) rules = free_items(free, item.from, item.to);
    // If the hole has ended and no pair of later items can be equal, the item must repeat an item whose text
    // is known.
    all = crossed(item.from) && others == Verdict::kNo;
  }
  const std::vector<std::string> good = told(item, some, true);
  if (!all && narrowed(item.rule, {good, rules, true})) doubt_.question = true;
  return narrowed(item.rule, {good, rules, false});
}

// Returns the rules of items that may come among the next few items of the hole.
std::vector<RuleId> Quotient::free_items(RuleId rest, At from, At to) {
  std::vector<RuleId> todo{rest}, out;
  for (std::size_t i = 0; i < todo.size() && i < 4; ++i) {
    const Alternatives& all = facts_->alternatives(facts_->head(todo[i]));
    for (const std::span<const Symbol> s : all.each()) {
      if (s.size() < 2 || s.back().kind() != Symbol::kRule || s[s.size() - 2].kind() != Symbol::kRule ||
          !base_.traits_of(s[s.size() - 2].rule_id()).compared)
        continue;
      const RuleId next = s.back().rule_id();
      if (decide({facts_->head(next), from, to}) == Verdict::kYes) out.push_back(s[s.size() - 2].rule_id());
      if (std::ranges::find(todo, next) == todo.end()) todo.push_back(next);
    }
  }
  return out;
}

}  // namespace structgen
