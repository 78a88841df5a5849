// How the alternatives are found whose last text is the suffix's; quotient.h has the construction and
// its source.
//
// An example. S -> "{" M "}", M -> "k" | "k" "," M and the suffix `,k}`. A text that ends with it has one
// symbol of each rule across the border, where the suffix begins:
//
//     S crosses           alternative "{" M "}": M crosses, and "}" is read in the suffix: S' -> "{" M'
//     M crosses to "k"    M -> "k" "," M with the border before ",": M' -> "k"
//     and further left    M -> "k" "," M with M across it: M' -> "k" "," M'
//
// So S' has the texts `{k`, `{k,k`, ...: all u for which u`,k}` is in S. Whether an alternative leads
// anywhere is asked of the facts (holes/facts.h) over "any text, then the suffix": leads(head, from,
// to).
//
// cross_alternative() goes through the symbols from the left with the places that they may lead to. A
// symbol whose exit lies in the suffix (crossed()) is the one across the border. behind() then asks
// whether the symbols after it can be read in the rest of the suffix, and gives the readers that have
// to be told a captured text.
//
// Compared items. The items of uniqueItems before the border are not known when the suffix is read, so
// facts assume that they differ. decide() takes an assumed fact only with a proof: a text that leads
// there and that a parser reads. The text comes from the facts (proof()), is put together from parts
// that were proved (compose()), or is made by looking at the alternatives one by one (resolve()).
// fit_apart() and fit_again() restrict a rule of items: they take out the values that would repeat an
// item of the suffix, or leave only those that must repeat one.
//
// Invariants.
// - Every text of an alternative that is given can be completed with the suffix. Otherwise unknown_ is
//   set: the alternative is left out, and the grammar says that it may be smaller than it should be
//   (inexact()).
// - A rule of the quotient has an odd number, and a rule of the base twice its own, so both can stand
//   in one alternative.
// - Facts that threw are made anew with the same numbers for the same places, because rules that were
//   given hold those numbers.
//
// Costs. A fact for each rule and place that is asked for. Questions lead to questions at most kDeep
// deep, and at most kMostResolved of them are decided by making alternatives.
//
// Rejected. Reading the grammar backwards: lexemes and captured text are defined from the left. Keeping
// the suffix as a condition that is checked later: masks would lead into dead ends.
#include "holes/quotient.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/depth.h"
#include "base/error.h"
#include "base/sorted.h"
#include "base/undo.h"
#include "base/work.h"
#include "holes/right.h"

namespace structgen {

namespace {
// At most so many values of an item are tried one by one.
constexpr uint32_t kTriedValues = 64;
// The most items of a proof.
constexpr std::size_t kMostItems = 1024;
// At most so many proofs of a place are kept. Other questions try them again.
constexpr std::size_t kKeptProofs = 16;
// Questions may lead to questions down to this depth.
constexpr std::size_t kDeep = 6;
// At most so many questions are decided by making alternatives.
constexpr uint32_t kMostResolved = 400;

void add_once(std::vector<uint32_t>& list, uint32_t a) {
  if (std::find(list.begin(), list.end(), a) == list.end()) list.push_back(a);
}
}  // namespace

Quotient::Quotient(RegexArena& regexes, Productions& base, RuleId root, bool lexed, std::string suffix,
                   std::size_t most)
    : regexes_(regexes), most_(most), base_(base), root_(root), lexed_(lexed), suffix_(std::move(suffix)) {
  alive_ = std::make_unique<Alive>(regexes_, base_, stacks_);
  path_ = std::make_unique<Path>(std::vector<Part>{{Part::kAny, {}, 0, 0}, {Part::kText, suffix_, 0, 0}},
                                 nullptr);
  begin_anew();
}

// Facts that threw are half made and not kept. They begin anew, with the same numbers for the same
// places.
void Quotient::begin_anew() {
  std::vector<std::tuple<Facts::Spot, Alive::Pending, bool>> places;
  if (facts_)
    for (At a = 0; a < facts_->places(); ++a)
      places.emplace_back(facts_->spot(a), facts_->pending(a), facts_->assumed(a));
  tried_ = tried_ || (facts_ && facts_->tried());
  facts_ = std::make_unique<Facts>(regexes_, base_, *alive_, *path_, lexed_, true);
  end_ = facts_->at(path_->last(), Alive::kClear);
  for (const auto& [spot, pending, assumed] : places) facts_->at(spot, pending, assumed);
  reader_.reset();
  proofs_.clear();
  shown_.clear();
  decided_.clear();
  resolving_.clear();
  one_ = false;
}

// The number of a rule of the quotient, new or known.
Symbol Quotient::own(const Own& o) {
  const uint64_t h = mix(mix(mix(o.kind, o.a), mix(o.b, o.c)), mix(o.d, o.text));
  const uint32_t n = own_index_.number(h, own_, o);
  // Rule 1 is the start.
  const uint64_t rule = 2 * static_cast<uint64_t>(n + 1) + 1;
  if (rule > kMaxNumber) throw Error(ErrorKind::kBudgetExceeded, "the grammar has too many rules");
  const RuleId id{static_cast<uint32_t>(rule)};
  return o.kind == Own::kCross ? Symbol::rule(id) : Symbol::reader(id);
}

uint32_t Quotient::text(const std::string& t) { return numbered(text_index_, texts_, t, t); }

// Where the suffix's first byte may not follow a lexeme, the mark may not follow it either.
RegexId Quotient::marked(RegexId follow) {
  if (follow == RegexArena::empty()) return follow;
  ByteSet set = regexes_.byte_set(regexes_.node(follow).a);
  if (!set.has(static_cast<uint8_t>(suffix_[0]))) return follow;
  set.add(kEdge);
  return regexes_.bytes(set);
}

// A lexeme that crosses the border is a lexeme of its own, because its length depends on the context,
// and the context only on text before it. Its parts are the quotients of the base's parts in that
// context, if they leave behind the restriction that was asked for.
std::span<const LexemePart> Quotient::lexeme(uint32_t number, uint32_t context) {
  const auto [it, fresh] = lexemes_.try_emplace({number, context});
  if (!fresh) return it->second;
  Undo forget([&] { lexemes_.erase({number, context}); });
  std::vector<LexemePart> parts;
  if (number % 2 == 0) {
    for (const LexemePart& part : base_.lexeme(number / 2, context))
      parts.push_back({part.regex, marked(part.follow)});
  } else {
    const auto [lexeme, spot, follow] = crossing_[number / 2];
    for (const LexemePart& part : base_.lexeme(lexeme, context)) {
      if (!path_->ends(spot) && part.follow.v != follow) continue;
      // The spot behind byte i of the suffix is i + 1, because spot 0 is the hole: `spot - 1` bytes of
      // the suffix belong to the lexeme.
      const RegexId begun = before_text(regexes_, part.regex, std::string_view(suffix_).substr(0, spot - 1));
      const RegexId some = regexes_.nullable(begun) ? regexes_.minus(begun, RegexArena::epsilon()) : begun;
      if (!regexes_.judged_empty(some)) parts.push_back({some, RegexArena::empty()});
      if (regexes_.nullable(begun)) parts.push_back({regexes_.byte(kEdge), RegexArena::empty()});
    }
  }
  std::vector<LexemePart>& out = lexemes_[{number, context}];
  out = std::move(parts);
  forget.keep();
  return out;
}

Symbol Quotient::crossing(uint32_t lexeme, Facts::Spot spot, RegexId follow) {
  const std::tuple<uint32_t, Facts::Spot, uint32_t> key{lexeme, spot, path_->ends(spot) ? 0 : follow.v};
  const uint32_t n = numbered(crossing_index_, crossing_, key, key);
  return Symbol::lexeme(2 * n + 1);
}

// A symbol of the base in the numbering of the quotient.
Symbol Quotient::number(Symbol s) {
  if (s.kind() == Symbol::kFollow) return Symbol::follow(marked(s.regex()));
  if (s.kind() == Symbol::kLexeme) return Symbol::lexeme(2 * s.number());
  if (s.kind() != Symbol::kRule && s.kind() != Symbol::kReader) return s;
  if (s.rule_id().v > kMaxNumber / 2)
    throw Error(ErrorKind::kBudgetExceeded, "the grammar has too many rules");
  const RuleId r{2 * s.rule_id().v};
  return s.kind() == Symbol::kRule ? Symbol::rule(r) : Symbol::reader(r);
}

// ---- what is known of a place ----

// The exits of a head from a place, as if proved.
std::vector<Quotient::At> Quotient::exits(Facts::Head head, At from) {
  const Facts::Found found = facts_->ask(head, from);
  unsure_ = unsure_ || found.unsure;
  const std::vector<At> all(found.exits.begin(), found.exits.end());
  std::vector<At> out;
  for (At e : all) add_once(out, facts_->plain(e));
  return out;
}

bool Quotient::leads(Facts::Head head, At from, At to) {
  const Verdict v = decide(head, from, to);
  unknown_ = unknown_ || v == Verdict::kUnknown;
  return v == Verdict::kYes;
}

// A proved exit is a yes. An exit that is only assumed needs a proof; without any exit the answer is
// no.
Verdict Quotient::decide(Facts::Head head, At from, At to) {
  const Facts::Found found = facts_->ask(head, from);
  const bool unsure = found.unsure;
  const std::vector<At> all(found.exits.begin(), found.exits.end());
  bool assumed = false;
  for (At e : all) {
    if (!done(facts_->plain(e), to)) continue;
    if (!facts_->assumed(e)) return Verdict::kYes;
    assumed = true;
  }
  if (!assumed) {
    unsure_ = unsure_ || unsure;
    return Verdict::kNo;
  }
  if (const auto known = decided_.find({head, from, to}); known != decided_.end()) return known->second;
  if (proof(head, from, to)) return Verdict::kYes;
  return resolve(head, from, to);
}

// Whether a parser of the base reads the text as one of the head's alternatives.
bool Quotient::reads(Facts::Head head, const std::string& text) {
  if (!reader_ || reader_->byte_size() > most_) reader_ = std::make_unique<Parser>(regexes_, base_);
  return reads_one(*reader_, facts_->alternatives(head), text);
}

// A proof: a text of the facts that a parser reads. Two witnesses are tried, with and without `vary`.
const Quotient::Proof* Quotient::proof(Facts::Head head, At from, At to) {
  const Question key{head, from, to};
  if (const auto known = proofs_.find(key); known != proofs_.end()) return known->second.get();
  const Facts::Found found = facts_->ask(head, from);
  const std::vector<At> all(found.exits.begin(), found.exits.end());
  std::unique_ptr<const Proof> out;
  for (At e : all) {
    if (out || !done(facts_->plain(e), to)) continue;
    for (bool vary : {true, false}) {
      Proof p;
      if (!facts_->witness(head, from, e, vary, p.text, &p.items) || !reads(head, p.text)) continue;
      out = std::make_unique<const Proof>(std::move(p));
      break;
    }
  }
  return prove(key, std::move(out));
}

// Keeps a proof, and its text for other questions about the same place.
const Quotient::Proof* Quotient::prove(const Question& question, std::unique_ptr<const Proof> found) {
  if (found) {
    std::deque<std::string>& shown = shown_[std::get<2>(question)];
    shown.push_front(found->text);
    if (shown.size() > kKeptProofs) shown.pop_back();
  }
  return (proofs_[question] = std::move(found)).get();
}

// Puts a proof together: some text of each symbol before the border, and the proved text of the one
// across it.
bool Quotient::compose(std::span<const Symbol> alternative, At to, Proof& out) {
  std::size_t captured = 0;
  const At begin = facts_->at(0, Alive::kClear);
  const auto part = [&](At at) { return std::min<std::size_t>(facts_->spot(at), path_->last()) - 1; };
  Reading told;
  told.kind = Reading::kText;
  for (const Symbol& s : alternative) {
    switch (s.kind()) {
      case Symbol::kNote: continue;
      case Symbol::kCapture: captured = out.text.size(); continue;
      case Symbol::kTerminal: {
        const RegexNode n = regexes_.node(s.regex());
        if (n.labelled || s.regex() == RegexArena::poison()) return false;
        std::vector<std::string> some;
        if (!n.nullable) facts_->texts(s.regex(), 0, 0, 1, some);
        if (!n.nullable && some.empty()) return false;
        if (!n.nullable) out.text += some.front();
        continue;
      }
      case Symbol::kRule:
      case Symbol::kReader: break;
      default: return false;
    }
    told.text = out.text.substr(captured);
    const auto head = [&](RuleId rule, bool reader) {
      return reader ? facts_->reader(rule, told) : facts_->head(rule);
    };
    const RuleId rule = s.rule_id();
    if (rule.v % 2 == 0) {
      std::string text;
      if (!facts_->witness(head(RuleId{rule.v / 2}, s.kind() == Symbol::kReader), begin, begin, true, text))
        return false;
      out.text += text;
      if (s.kind() == Symbol::kRule && base_.compared(RuleId{rule.v / 2})) out.items.push_back(text);
      continue;
    }
    const Own o = own_[rule.v / 2 - 1];
    if (o.kind == Own::kEnded) told.text += texts_[o.text];
    const Proof* shown = o.kind == Own::kEnded
                             ? proof(head(RuleId{o.a}, true), o.c, o.d)
                             : proof(head(RuleId{o.a}, o.kind == Own::kReader), facts_->at(0, o.b), o.c);
    if (!shown) return false;
    if (o.kind == Own::kCross && base_.compared(RuleId{o.a}))
      out.items.push_back(shown->text);
    else
      out.items.insert(out.items.end(), shown->items.begin(), shown->items.end());
    if (o.kind != Own::kEnded) out.text.append(shown->text, 0, shown->text.size() - part(o.c));
  }
  out.text += suffix_.substr(0, part(to));
  return true;
}

// Decides by making the alternatives: each alternative that is given has been proved.
Verdict Quotient::resolve(Facts::Head head, At from, At to) {
  const Question key{head, from, to};
  // A question that is being resolved further up counts as not known, so the recursion ends.
  if (crossed(from) || resolving_.size() == kDeep || ++resolved_ > kMostResolved ||
      std::find(resolving_.begin(), resolving_.end(), key) != resolving_.end())
    return Verdict::kUnknown;
  const bool unsure = std::exchange(unsure_, false), unknown = std::exchange(unknown_, false);
  const bool one = std::exchange(one_, true);
  resolving_.push_back(key);
  Alternatives out;
  cross(head, facts_->pending(from), to, out);
  resolving_.pop_back();
  one_ = one;
  bool yes = false, shown = false;
  for (const std::span<const Symbol> s : out.each()) {
    if (s.size() == 1 && s[0] == Symbol::terminal(RegexArena::poison())) continue;
    yes = true;
    auto p = std::make_unique<Proof>();
    if (shown || !compose(s, to, *p) || !reads(head, p->text)) continue;
    prove(key, std::move(p));
    shown = true;
  }
  const Verdict v = yes ? Verdict::kYes : unknown_ || !out.ends.empty() ? Verdict::kUnknown : Verdict::kNo;
  unsure_ = unsure;
  unknown_ = unknown;
  if (v != Verdict::kUnknown) decided_[key] = v;
  return v;
}

// ---- items that are compared ----

Verdict Quotient::told(RuleId reader, const std::string& text, At from, At to) {
  Reading reading;
  reading.kind = Reading::kText;
  reading.text = text;
  return decide(facts_->reader(reader, reading), from, to);
}

// Restricts `rule`, whose text the reader is told, to those texts with which the reader leads from one
// place to another. False: there are none.
bool Quotient::fit(RuleId reader, At from, At to, Symbol& rule) {
  if (!base_.compares(reader)) return true;
  Reading fresh;
  fresh.kind = Reading::kFresh;
  const Alternatives& all = facts_->alternatives(facts_->reader(reader, fresh));
  if (all.ends.empty()) return false;
  const RuleId first = all.symbols.front().rule_id(), last = all.symbols.back().rule_id();
  // If every alternative of a fresh text rests on an assumption, the items have to differ; otherwise
  // two of them have to be equal.
  if (all.assumed.size() == all.ends.size()) return fit_apart(reader, first, from, to, rule);
  return fit_again(reader, first, last, from, to, rule);
}

// Sorts the texts of a compared rule by whether the reader, told one of them, leads from one place to
// another. A list may be null.
void Quotient::sort_told(RuleId reader, RuleId rule, const std::vector<std::string>& texts, At from, At to,
                         std::vector<std::string>* good, std::vector<std::string>* bad) {
  RuleId kept;
  bool any = true;
  for (const std::string& text : texts) {
    if (!base_.narrow(rule, {{&text, 1}, {}, false}, kept, any))
      too_complex(
          "items that must differ or repeat cannot be compared across the hole; end the prefix outside the "
          "array");
    if (!any) continue;
    const Verdict v = told(reader, text, from, to);
    unknown_ = unknown_ || v == Verdict::kUnknown;
    if (std::vector<std::string>* const list = v == Verdict::kYes ? good : bad) list->push_back(text);
  }
}

// The items have to differ. `rest`: the rule that follows an item which no later item repeats.
bool Quotient::fit_apart(RuleId reader, RuleId rest, At from, At to, Symbol& rule) {
  const Facts::Head head = facts_->head(rest);
  const Verdict possible = decide(head, from, to);
  if (possible == Verdict::kNo) return false;
  const Proof* shown = possible == Verdict::kYes ? proof(head, from, to) : nullptr;
  std::vector<std::string> some, bad;
  if (shown && shown->items.size() <= kMostItems) {
    some = shown->items;
    sort_unique(some);
    if (!base_.compared_with(reader, kMostItems, some)) {
      unknown_ = true;
      return false;
    }
  } else if (!base_.values(rule.rule_id(), kTriedValues, some)) {
    unknown_ = true;
    return false;
  }
  RuleId kept = rule.rule_id();
  bool any = true;
  sort_told(reader, rule.rule_id(), some, from, to, nullptr, &bad);
  if (bad.empty()) return true;
  base_.narrow(rule.rule_id(), {bad, {}, true}, kept, any);
  rule = Symbol::rule(kept);
  return any;
}

// Two of the items have to be equal. `rest`: the rule that follows where two others are equal; `free`:
// the rule that would follow if no equality were asked for.
bool Quotient::fit_again(RuleId reader, RuleId rest, RuleId free, At from, At to, Symbol& rule) {
  const Verdict others = decide(facts_->head(rest), from, to);
  if (others == Verdict::kYes) return true;
  const Facts::Head head = facts_->head(free);
  if (decide(head, from, to) == Verdict::kNo) {
    unknown_ = unknown_ || others == Verdict::kUnknown;
    return false;
  }
  std::vector<std::string> some, good;
  std::vector<RuleId> rules;
  bool all = base_.values(rule.rule_id(), kTriedValues, some);
  if (!all) {
    if (const Proof* shown = proof(head, from, to)) some = shown->items;
    if (!crossed(from)) free_items(free, from, to, rules);
    // If only known text is left, its items are all that can be repeated.
    all = crossed(from) && others == Verdict::kNo;
  }
  RuleId kept = rule.rule_id();
  bool any = false;
  sort_told(reader, rule.rule_id(), some, from, to, &good, nullptr);
  if (!all) {
    base_.narrow(rule.rule_id(), {good, rules, true}, kept, any);
    unknown_ = unknown_ || any;
  }
  base_.narrow(rule.rule_id(), {good, rules, false}, kept, any);
  rule = Symbol::rule(kept);
  return any;
}

// The rules of items that may come in the hole, at its first few places.
void Quotient::free_items(RuleId rest, At from, At to, std::vector<RuleId>& out) {
  std::vector<RuleId> todo{rest};
  for (std::size_t i = 0; i < todo.size() && i < 4; ++i) {
    const Alternatives& all = facts_->alternatives(facts_->head(todo[i]));
    for (const std::span<const Symbol> s : all.each()) {
      if (s.size() < 2 || s.back().kind() != Symbol::kRule || s[s.size() - 2].kind() != Symbol::kRule ||
          !base_.compared(s[s.size() - 2].rule_id()))
        continue;
      const RuleId next = s.back().rule_id();
      if (decide(facts_->head(next), from, to) == Verdict::kYes) out.push_back(s[s.size() - 2].rule_id());
      if (std::find(todo.begin(), todo.end(), next) == todo.end()) todo.push_back(next);
    }
  }
}

bool Quotient::possible(bool& unsure) {
  Undo anew([&] { begin_anew(); });
  unsure_ = unknown_ = false;
  resolved_ = 0;
  const bool out = leads(facts_->head(root_), facts_->at(0, Alive::kClear), end_);
  unsure = unsure_ || unknown_;
  anew.keep();
  return out;
}

std::size_t Quotient::fits() {
  const Facts::Spot s = facts_->furthest();
  return s == 0 ? 0 : s - 1;
}

// Adds an alternative unless it is there already.
void Quotient::add(std::vector<Symbol> sequence, Alternatives& out) {
  // There are few: one for each place at which the text may end.
  for (const std::span<const Symbol> known : out.each())
    if (std::ranges::equal(sequence, known)) return;
  out.add(sequence);
}

// The symbols of the quotient behind the symbol that crosses the border; its text ends at `at` in the suffix.
// Only readers of captures that began before the border stay: each is told its captured text, the suffix up
// to the reader included. The quotient gets one alternative for each list of symbols.
std::vector<std::vector<Symbol>> Quotient::behind(const Symbol* s, const Symbol* end, At at, uint32_t label,
                                                  uint32_t captures, At to) {
  check_depth();
  std::vector<std::vector<Symbol>> out;
  if (captures == 0) {
    const bool before = std::exchange(unsure_, false);
    const bool read = s == end ? done(at, to) : leads(facts_->tail(s, end, label), at, to);
    unsure_ = before || (unsure_ && !read);
    if (read) out.emplace_back();
    return out;
  }
  const Symbol* reader = s + (label != 0);
  while (reader != end && reader->kind() != Symbol::kReader) ++reader;
  if (reader == end) return out;
  Reading fresh;
  fresh.kind = Reading::kFresh;
  const std::vector<At> from = reader == s ? std::vector<At>{at} : exits(facts_->tail(s, reader, label), at);
  for (At f : from)
    for (At t : exits(facts_->reader(reader->rule_id(), fresh), f)) {
      // The captured text goes on into the suffix, up to the place where the reader stands.
      const uint32_t read = text(suffix_.substr(0, facts_->spot(f) - 1));
      const bool last = reader + 1 == end && done(t, to);
      const Symbol told = own({Own::kEnded, reader->rule_id().v, 0, f, last ? to : t, read});
      for (const std::vector<Symbol>& more : behind(reader + 1, end, t, 0, facts_->outer(captures), to)) {
        out.push_back({told});
        out.back().insert(out.back().end(), more.begin(), more.end());
      }
    }
  return out;
}

// Crosses the border in one alternative. It reads the symbols from the left, at all places of the hole at
// once, and adds an alternative of the quotient for each symbol whose text holds the border.
class Quotient::Crossings {
 public:
  Crossings(Quotient& of, std::span<const Symbol> all, Alive::Pending from, At to, Alternatives& out)
      : q_(of),
        facts_(*of.facts_),
        regexes_(of.regexes_),
        begin_(all.data()),
        end_(all.data() + all.size()),
        to_(to),
        out_(out),
        here_{facts_.at(0, from)} {}

  void run() {
    q_.unsure_ = false;
    for (const Symbol* s = begin_; s != end_ && !here_.empty(); ++s) {
      charge();
      if (enough()) return;
      next_.clear();
      switch (s->kind()) {
        case Symbol::kLimit:
          throw Error(ErrorKind::kGrammar, "a text with holes cannot have limits on tokens (max_tokens)");
        // Both are put in front as they are, and lead from no place to another.
        case Symbol::kCapture: captures_ = facts_.opened(captures_, here_.front()); [[fallthrough]];
        case Symbol::kNote: before_.push_back(*s); continue;
        case Symbol::kAfter:
        case Symbol::kFollow: mark(*s); break;
        case Symbol::kTerminal:
          if (s->regex() == RegexArena::poison()) return q_.add({*s}, out_);
          if (regexes_.node(s->regex()).labelled) {
            if (s + 1 == end_ || s[1].kind() != Symbol::kReader) too_complex("a label that nobody reads");
            literals(s);
            before_.push_back(*s++);
            break;
          }
          [[fallthrough]];
        case Symbol::kLexeme: text(s); break;
        case Symbol::kRule: rule(s); break;
        case Symbol::kReader: reader(s); break;
      }
      before_.push_back(q_.number(*s));
      here_.swap(next_);
    }
    if (!q_.unsure_) return;
    if (q_.one_)
      q_.unknown_ = true;
    else
      // There may be more alternatives: a walk without captured text asks again with the text (mask/fill.h).
      q_.add({Symbol::terminal(RegexArena::poison())}, out_);
  }

 private:
  bool enough() const { return q_.one_ && !out_.ends.empty(); }

  // The place where the crossing symbol s has to lead, if it may lead to `exit`.
  At goal(const Symbol* s, At exit, uint32_t open) const { return s + 1 == end_ && open == 0 ? to_ : exit; }

  // Adds what stands before, the crossing symbol, and one of the ways behind it.
  void put(Symbol crossing, const std::vector<Symbol>& after) {
    std::vector<Symbol> sequence = before_;
    sequence.push_back(crossing);
    sequence.insert(sequence.end(), after.begin(), after.end());
    q_.add(std::move(sequence), out_);
  }

  // A symbol that reads nothing changes what may not follow.
  void mark(Symbol s) {
    for (At a : here_) {
      steps_.clear();
      q_.alive_->steps(s, facts_.pending(a), steps_);
      add_once(next_, facts_.at(facts_.spot(a), steps_.front().to));
    }
  }

  // A terminal whose text ends at a spot of the suffix becomes its quotient by the suffix up to there.
  void put_terminal(RegexId r, Facts::Spot spot, const std::vector<Symbol>& after) {
    const RegexId begun = before_text(regexes_, r, std::string_view(q_.suffix_).substr(0, spot - 1));
    const auto some = [&](RegexId part) {
      if (!regexes_.judged_empty(part)) put(Symbol::terminal(part), after);
    };
    if (!q_.lexed_ || !after.empty() || !regexes_.nullable(begun)) return some(begun);
    some(regexes_.minus(begun, RegexArena::epsilon()));
    some(regexes_.byte(kEdge));
  }

  // A terminal or a lexeme. Its text ends in the hole, or crosses.
  void text(const Symbol* s) {
    const bool terminal = s->kind() == Symbol::kTerminal;
    for (At a : here_) {
      const Alive::Pending p = facts_.pending(a);
      steps_.clear();
      if (terminal)
        steps_.push_back({Alive::kClear, q_.alive_->restricted(s->regex(), q_.alive_->follow(p))});
      else
        q_.alive_->steps(*s, p, steps_);
      for (const Alive::Step& part : steps_) {
        if (part.regex == RegexArena::poison() || part.regex == RegexArena::empty()) continue;
        const auto reached = facts_.reads(part.regex, 0);
        const std::vector<Facts::Exit> found(reached.begin(), reached.end());
        for (const Facts::Exit& e : found) {
          const At at = facts_.at(e.spot, part.to);
          if (!q_.crossed(at)) {
            add_once(next_, at);
            continue;
          }
          // The parser checks a pending restriction where the text is read, at its first byte.
          for (const std::vector<Symbol>& after : q_.behind(s + 1, end_, at, 0, captures_, to_))
            if (terminal)
              put_terminal(s->regex(), e.spot, after);
            else
              put(q_.crossing(s->number(), e.spot, q_.alive_->follow(part.to)), after);
        }
      }
      if (terminal && regexes_.nullable(s->regex())) add_once(next_, a);
    }
  }

  // A labelled set of literals and its reader. Only literals that lead to the end are kept, in one set for
  // each way to go on.
  void literals(const Symbol* s) {
    const RegexId set = s->regex();
    const RuleId reader = s[1].rule_id();
    if (regexes_.node(set).kind != RegexKind::kLiteralSet) too_complex("a label that is no literal's");
    const LiteralSet of = regexes_.literal_set_of(set);
    const LiteralTable& table = regexes_.tables().table(of.table);
    using Bits = std::vector<uint64_t>;
    const auto keep = [&](uint32_t label, Bits& bits) {
      bits.resize((table.texts.size() + 63) / 64, 0);
      for (uint32_t i = of.lo; i < of.hi; ++i)
        if (table.labels[i] == label) bits[i >> 6] |= 1ull << (i & 63);
    };
    const auto reached = facts_.reads(set, 0);
    const std::vector<Facts::Exit> found(reached.begin(), reached.end());
    // The literals that are kept where the border lies within the literal,
    std::map<std::pair<Facts::Spot, std::vector<Symbol>>, Bits> split;
    // and where it lies behind it.
    std::map<std::pair<At, std::vector<Symbol>>, Bits> whole;
    for (const Facts::Exit& e : found) {
      if (e.label == 0) continue;
      if (e.spot > 1) {
        const At at = facts_.at(e.spot, Alive::kClear);
        for (std::vector<Symbol>& after : q_.behind(s + 1, end_, at, e.label, captures_, to_))
          keep(e.label - 1, split[{e.spot, std::move(after)}]);
        continue;
      }
      Reading reading;
      reading.kind = Reading::kLabel;
      reading.label = e.label - 1;
      const Facts::Head head = facts_.reader(reader, reading);
      const At begin = facts_.at(0, Alive::kClear);
      for (At x : q_.exits(head, begin)) {
        if (!q_.crossed(x)) {
          add_once(next_, x);
          continue;
        }
        const At end = goal(s + 1, x, captures_);
        if (!q_.leads(head, begin, end)) continue;
        for (std::vector<Symbol>& after : q_.behind(s + 2, end_, x, 0, captures_, to_))
          keep(e.label - 1, whole[{end, std::move(after)}]);
      }
    }
    for (auto& [key, kept] : split)
      put_terminal(regexes_.restricted_set(set, kept, false), key.first, key.second);
    for (auto& [key, kept] : whole) {
      std::vector<Symbol> rest{q_.own({Own::kReader, reader.v, Alive::kClear, key.first, 0, 0})};
      rest.insert(rest.end(), key.second.begin(), key.second.end());
      put(Symbol::terminal(regexes_.restricted_set(set, kept, true)), rest);
    }
  }

  void rule(const Symbol* s) {
    const Facts::Head head = facts_.head(s->rule_id());
    for (At a : here_)
      for (At e : q_.exits(head, a)) {
        if (!q_.crossed(e)) {
          add_once(next_, e);
          continue;
        }
        const At end = goal(s, e, captures_);
        for (const std::vector<Symbol>& after : q_.behind(s + 1, end_, e, 0, captures_, to_)) {
          Symbol crossing = *s;
          if (captures_ != 0 && s != begin_ && s[-1].kind() == Symbol::kCapture &&
              s[1].kind() == Symbol::kReader) {
            const Own told = q_.own_[after.front().rule_id().v / 2 - 1];
            if (!q_.fit(RuleId{told.a}, told.c, told.d, crossing)) continue;
          }
          if (q_.leads(facts_.head(crossing.rule_id()), a, end))
            put(q_.own({Own::kCross, crossing.rule_id().v, pending(a), end, 0, 0}), after);
        }
      }
  }

  void reader(const Symbol* s) {
    const bool captured = s - begin_ >= 2 && s[-2].kind() == Symbol::kCapture;
    const bool alone = captured && s[-1].kind() == Symbol::kTerminal;
    const bool ruled = captured && s[-1].kind() == Symbol::kRule;
    const RegexId read = alone ? s[-1].regex() : RegexArena::poison();
    const uint32_t open = captures_ == 0 ? 0 : facts_.outer(captures_);
    for (At a : here_)
      for (const Reading& reading : facts_.readings(captures_, a, {read})) {
        const Facts::Head head = facts_.reader(s->rule_id(), reading);
        const bool fits = ruled && reading.kind == Reading::kFresh && q_.base_.compares(s->rule_id());
        for (At e : q_.exits(head, a)) {
          if (!q_.crossed(e)) {
            add_once(next_, e);
            continue;
          }
          const At end = goal(s, e, open);
          Symbol item = ruled ? s[-1] : *s;
          if (fits ? !q_.fit(s->rule_id(), a, end, item) : !q_.leads(head, a, end)) continue;
          // The item that was read before is one of those with which the reader leads there.
          const Symbol whole = before_.back();
          if (fits) before_.back() = q_.number(item);
          for (const std::vector<Symbol>& after : q_.behind(s + 1, end_, e, 0, open, to_))
            put(q_.own({Own::kReader, s->rule_id().v, pending(a), end, 0, 0}), after);
          if (fits) before_.back() = whole;
        }
      }
    captures_ = open;
  }

  Alive::Pending pending(At at) const { return q_.alive_->without_follow(facts_.pending(at)); }

  Quotient& q_;
  Facts& facts_;
  RegexArena& regexes_;
  const Symbol* const begin_;
  const Symbol* const end_;
  const At to_;
  Alternatives& out_;
  // The symbols of the quotient for those that were read; the places that they lead to, and those behind the
  // next one.
  std::vector<Symbol> before_;
  std::vector<At> here_, next_;
  // The open captures; all of them began before the border.
  uint32_t captures_ = 0;
  std::vector<Alive::Step> steps_;
};

void Quotient::cross(Facts::Head head, Alive::Pending from, At to, Alternatives& out) {
  check_depth();
  for (const std::span<const Symbol> symbols : facts_->alternatives(head).each()) {
    if (one_ && !out.ends.empty()) return;
    Crossings(*this, symbols, from, to, out).run();
  }
}

void Quotient::expand(RuleId rule, const Reading& reading, Alternatives& out) {
  if (rule.v % 2 == 0) {
    base_.expand(RuleId{rule.v / 2}, reading, out);
    for (Symbol& s : out.symbols) s = number(s);
    return;
  }
  Undo anew([&] { begin_anew(); });
  unknown_ = false;
  resolved_ = 0;
  const auto cross_all = [&](Facts::Head head, Alive::Pending from, At to) {
    cross(head, from, to, out);
    inexact_ = inexact_ || unknown_;
    if (!unknown_ || !out.ends.empty()) return;
    // The rule was promised to have a text, so a text that showed it is given.
    const At begin = facts_->at(0, from);
    for (const std::string& text : shown_[to])
      if (reads(head, text)) {
        const std::size_t behind = std::min<std::size_t>(facts_->spot(to), path_->last()) - 1;
        if (text.size() >= behind && facts_->spot(begin) == 0)
          return out.add(
              {Symbol::terminal(regexes_.literal(std::string_view(text).substr(0, text.size() - behind)))});
      }
  };
  if (rule.v == 1) {
    cross_all(facts_->head(root_), Alive::kClear, end_);
    return anew.keep();
  }
  if (rule.v / 2 > own_.size()) throw Error(ErrorKind::kValue, "rule out of range");
  const Own o = own_[rule.v / 2 - 1];
  switch (o.kind) {
    case Own::kCross: cross_all(facts_->head(RuleId{o.a}), o.b, o.c); break;
    case Own::kReader: cross_all(facts_->reader(RuleId{o.a}, reading), o.b, o.c); break;
    case Own::kEnded: {
      Reading told = reading;
      if (told.kind == Reading::kText)
        told.text += texts_[o.text];
      else
        told.kind = Reading::kUnknown;
      unsure_ = false;
      if (leads(facts_->reader(RuleId{o.a}, told), o.c, o.d))
        out.add({});
      else if (unsure_)
        out.add({Symbol::terminal(RegexArena::poison())});
      break;
    }
  }
  anew.keep();
}

void Quotient::expand_shortest(RuleId rule, const Reading& reading, Alternatives& out) {
  if (rule.v % 2 != 0) return expand(rule, reading, out);
  base_.expand_shortest(RuleId{rule.v / 2}, reading, out);
  for (Symbol& s : out.symbols) s = number(s);
}

bool Quotient::bound(RuleId rule, Bound& out) {
  if (rule.v % 2 != 0 || !base_.bound(RuleId{rule.v / 2}, out)) return false;
  for (Symbol& s : out.all) s = number(s);
  for (Symbol& s : out.any) s = number(s);
  return true;
}

}  // namespace structgen
