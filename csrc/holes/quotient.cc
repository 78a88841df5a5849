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
// - Every text of an alternative that is given can be completed with the suffix. Otherwise doubt_ says
//   so: the alternative is left out, and the grammar says that it may be smaller than it should be
//   (inexact()).
// - Crossings hold numbers of places, which stay when facts that threw are made anew.
//
// Costs. A fact for each rule and place that is asked for. Questions lead to questions at most kDeep
// deep, and at most kMostResolved of them are decided by making alternatives.
//
// Rejected. Reading the grammar backwards: lexemes and captured text are defined from the left. Keeping
// the suffix as a condition that is checked later: masks would lead into dead ends.
#include "holes/quotient.h"

#include <algorithm>
#include <map>
#include <set>
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
    : ExtendedProductions(base, lexed),
      regexes_(regexes),
      most_(most),
      root_(root),
      suffix_(std::move(suffix)),
      alive_(regexes_, base_, stacks_),
      path_({{Part::kAny, {}, 0, 0}, {Part::kText, suffix_, 0, 0}}, nullptr),
      places_(path_, alive_, lexed_ && !base_.restricted()),
      end_(places_.of(path_.last(), Alive::kClear)) {
  begin_anew();
}

// Facts that threw are half made and not kept, nor is what was proved by them.
void Quotient::begin_anew() {
  tried_ = tried_ || (facts_ && facts_->tried());
  facts_.emplace(regexes_, base_, alive_, places_, path_, true);
  reader_.reset();
  proofs_.clear();
  shown_.clear();
  decided_.clear();
  resolving_.clear();
}

// Own rule 0 is the start.
Symbol Quotient::crossing(const Crossing& c) {
  const uint64_t h = mix(mix(mix(c.kind, c.rule.v), mix(c.pending, c.from)), mix(c.to, c.text));
  const RuleId id = own_rule(crossing_index_.number(h, crossings_, c) + 1);
  return c.kind == Crossing::kRule ? Symbol::rule(id) : Symbol::reader(id);
}

uint32_t Quotient::text(const std::string& t) { return numbered(text_index_, texts_, t, t); }

// The bytes of the suffix in front of a place. Spot 0 is the hole, and the spot behind byte i is i + 1; of
// the spots behind the whole suffix each counts as the last.
std::size_t Quotient::suffix_bytes(At at) const {
  return std::min<std::size_t>(places_.spot(at), path_.last()) - 1;
}

// Where the suffix's first byte may not follow a lexeme, the mark may not follow it either.
RegexId Quotient::marked(RegexId follow) const {
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
  const std::pair key(number, context);
  if (const auto known = lexemes_.find(key); known != lexemes_.end()) return known->second;
  std::vector<LexemePart> parts;
  if (number % 2 == 0) {
    for (const LexemePart& part : base_.lexeme(number / 2, context))
      parts.push_back({part.regex, marked(part.follow)});
  } else {
    const auto [lexeme, end, follow] = cut_lexemes_[number / 2];
    for (const LexemePart& part : base_.lexeme(lexeme, context)) {
      if (!path_.ends(end) && part.follow != follow) continue;
      // `end - 1` bytes of the suffix belong to the lexeme; see suffix_bytes().
      const RegexId begun = before_text(regexes_, part.regex, std::string_view(suffix_).substr(0, end - 1));
      const RegexId some = regexes_.nullable(begun) ? regexes_.minus(begun, RegexArena::epsilon()) : begun;
      if (!regexes_.judged_empty(some)) parts.push_back({some, RegexArena::empty()});
      if (regexes_.nullable(begun)) parts.push_back({regexes_.byte(kEdge), RegexArena::empty()});
    }
  }
  return lexemes_.emplace(key, std::move(parts)).first->second;
}

Symbol Quotient::cut_lexeme(uint32_t lexeme, Path::Spot end, RegexId follow) {
  const CutLexeme key{lexeme, end, path_.ends(end) ? RegexId{0} : follow};
  return Symbol::lexeme(2 * numbered(cut_lexeme_index_, cut_lexemes_, key, key) + 1);
}

Symbol Quotient::translate(Symbol s) const {
  if (s.kind() == Symbol::kFollow) return Symbol::follow(marked(s.regex()));
  if (s.kind() == Symbol::kLexeme) return Symbol::lexeme(2 * s.number());
  return ExtendedProductions::translate(s);
}

// ---- what is known of a place ----

// The exits of a head from a place, as if proved.
std::vector<Quotient::At> Quotient::exits(Facts::Head head, At from) {
  const Facts::Found found = facts_->ask(head, from);
  doubt_.text = doubt_.text || found.unsure;
  std::vector<At> out;
  for (At e : found.exits) add_once(out, places_.proved(e));
  return out;
}

bool Quotient::leads(Facts::Head head, At from, At to) {
  return noted(decide(head, from, to)) == Verdict::kYes;
}

// A proved exit is a yes. An exit that is only assumed needs a proof; without any exit the answer is
// no.
Verdict Quotient::decide(Facts::Head head, At from, At to) {
  const Facts::Found found = facts_->ask(head, from);
  bool assumed = false;
  for (At e : found.exits) {
    if (!done(places_.proved(e), to)) continue;
    if (!places_.assumed(e)) return Verdict::kYes;
    assumed = true;
  }
  if (!assumed) {
    doubt_.text = doubt_.text || found.unsure;
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
  std::unique_ptr<const Proof> out;
  for (At e : facts_->ask(head, from).exits) {
    if (out || !done(places_.proved(e), to)) continue;
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

// Appends a text of a rule or a reader of the quotient; `told` is the captured text in front of a reader.
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
    if (!reader && base_.compared(rule)) out.items.push_back(text);
    return true;
  }
  const Crossing c = crossings_[s.rule_id().v / 2 - 1];
  const bool ended = c.kind == Crossing::kEnded;
  if (ended) told += texts_[c.text];
  const Facts::Head head =
      reader ? facts_->reader(c.rule, Reading::of_text(std::move(told))) : facts_->head(c.rule);
  const Proof* shown = proof(head, ended ? c.from : places_.of(0, c.pending), c.to);
  if (!shown) return false;
  if (c.kind == Crossing::kRule && base_.compared(c.rule))
    out.items.push_back(shown->text);
  else
    out.items.insert(out.items.end(), shown->items.begin(), shown->items.end());
  if (!ended) out.text.append(shown->text, 0, shown->text.size() - suffix_bytes(c.to));
  return true;
}

// Decides by making the alternatives: each alternative that is given has been proved.
Verdict Quotient::resolve(Facts::Head head, At from, At to) {
  const Question key{head, from, to};
  // A question that is being resolved further up counts as not known, so the recursion ends.
  if (crossed(from) || resolving_.size() == kDeep || ++resolved_ > kMostResolved ||
      std::find(resolving_.begin(), resolving_.end(), key) != resolving_.end())
    return Verdict::kUnknown;
  const Doubt before = std::exchange(doubt_, {});
  resolving_.push_back(key);
  Alternatives out;
  cross(head, places_.pending(from), to, out);
  resolving_.pop_back();
  bool yes = false, shown = false;
  for (const std::span<const Symbol> s : out.each()) {
    if (s.size() == 1 && s[0] == Symbol::terminal(RegexArena::poison())) continue;
    yes = true;
    auto p = std::make_unique<Proof>();
    if (shown || !compose(s, to, *p) || !reads(head, p->text)) continue;
    prove(key, std::move(p));
    shown = true;
  }
  const Verdict v = yes                                    ? Verdict::kYes
                    : doubt_.question || !out.ends.empty() ? Verdict::kUnknown
                                                           : Verdict::kNo;
  doubt_ = before;
  if (v != Verdict::kUnknown) decided_[key] = v;
  return v;
}

// ---- items that are compared ----

Verdict Quotient::told(RuleId reader, const std::string& text, At from, At to) {
  return decide(facts_->reader(reader, Reading::of_text(text)), from, to);
}

// Restricts `rule`, whose text the reader is told, to those texts with which the reader leads from one
// place to another. False: there are none.
bool Quotient::fit(RuleId reader, At from, At to, Symbol& rule) {
  if (!base_.compares(reader)) return true;
  const Alternatives& all = facts_->alternatives(facts_->reader(reader, Reading::fresh()));
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
    const bool leads = noted(told(reader, text, from, to)) == Verdict::kYes;
    if (std::vector<std::string>* const list = leads ? good : bad) list->push_back(text);
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
      doubt_.question = true;
      return false;
    }
  } else if (!base_.values(rule.rule_id(), kTriedValues, some)) {
    doubt_.question = true;
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
    noted(others);
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
    doubt_.question = doubt_.question || any;
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

Verdict Quotient::possible() {
  Undo anew([&] { begin_anew(); });
  begin();
  const Verdict out = decide(facts_->head(root_), places_.of(0, Alive::kClear), end_);
  anew.keep();
  return out == Verdict::kNo && doubt_.text ? Verdict::kUnknown : out;
}

std::size_t Quotient::fits() {
  const Path::Spot s = facts_->stretches().furthest();
  return s == 0 ? 0 : s - 1;
}

// Adds an alternative unless it is there already.
void Quotient::add(std::vector<Symbol> sequence, Alternatives& out) {
  // There are few: one for each place at which the text may end.
  for (const std::span<const Symbol> known : out.each())
    if (std::ranges::equal(sequence, known)) return;
  out.add(sequence);
}

// The symbols of the quotient behind the symbol that crosses the border, whose text ends at `at` in the
// suffix. Symbols that read only suffix are left out, so one empty list means: the rest can be read. Only
// readers of captures that began before the border stay. Each is told its captured text, the suffix up to the
// reader included. For M -> capture KEY reader ":" VALUE and the suffix `b":1}` the border lies in KEY:
//
//     the captured text goes on     `a` before the border and `b"` of the suffix: the key is `ab"`
//     the list                      one reader (kEnded, reader, from behind `b"`, to the end, text `b"`)
//     the alternative               capture KEY' reader', where KEY' has the beginnings of keys with `b"`
//     behind
//
// The reader may lead to several places, so there is a list for each.
std::vector<std::vector<Symbol>> Quotient::behind(const Symbol* s, const Symbol* end, At at, uint32_t label,
                                                  uint32_t captures, At to) {
  check_depth();
  std::vector<std::vector<Symbol>> out;
  if (captures == 0) {
    const bool before = std::exchange(doubt_.text, false);
    const bool read = s == end ? done(at, to) : leads(facts_->tail(s, end, label), at, to);
    doubt_.text = before || (doubt_.text && !read);
    if (read) out.emplace_back();
    return out;
  }
  const Symbol* reader = s + (label != 0);
  while (reader != end && reader->kind() != Symbol::kReader) ++reader;
  if (reader == end) return out;
  const std::vector<At> from = reader == s ? std::vector<At>{at} : exits(facts_->tail(s, reader, label), at);
  for (At f : from)
    for (At t : exits(facts_->reader(reader->rule_id(), Reading::fresh()), f)) {
      // The captured text goes on into the suffix, up to the place where the reader stands.
      const uint32_t read = text(suffix_.substr(0, places_.spot(f) - 1));
      const bool last = reader + 1 == end && done(t, to);
      const Symbol told =
          crossing({Crossing::kEnded, reader->rule_id(), Alive::kClear, f, last ? to : t, read});
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
        places_(of.places_),
        regexes_(of.regexes_),
        begin_(all.data()),
        end_(all.data() + all.size()),
        to_(to),
        out_(out),
        here_{places_.of(0, from)} {}

  void run() {
    q_.doubt_.text = false;
    for (const Symbol* s = begin_; s != end_ && !here_.empty(); ++s) {
      charge();
      if (q_.enough(out_)) return;
      next_.clear();
      switch (s->kind()) {
        case Symbol::kLimit:
          throw Error(ErrorKind::kGrammar, "a text with holes cannot have limits on tokens (max_tokens)");
        // A capture and a note stand unchanged in front of the next crossing. They read nothing, so the place
        // stays.
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
      before_.push_back(q_.translate(*s));
      here_.swap(next_);
    }
    if (!q_.doubt_.text) return;
    if (!q_.resolving_.empty())
      q_.doubt_.question = true;
    else
      // There may be more alternatives: a walk without captured text asks again with the text (mask/fill.h).
      q_.add({Symbol::terminal(RegexArena::poison())}, out_);
  }

 private:
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
      q_.alive_.steps(s, places_.pending(a), steps_);
      add_once(next_, places_.of(places_.spot(a), steps_.front().to));
    }
  }

  // A terminal whose text ends at a spot of the suffix becomes its quotient by the suffix up to there.
  void put_terminal(RegexId r, Path::Spot spot, const std::vector<Symbol>& after) {
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
      const Alive::Pending p = places_.pending(a);
      steps_.clear();
      if (terminal)
        steps_.push_back({Alive::kClear, q_.alive_.restricted(s->regex(), q_.alive_.follow(p))});
      else
        q_.alive_.steps(*s, p, steps_);
      for (const Alive::Step& part : steps_) {
        if (part.regex == RegexArena::poison() || part.regex == RegexArena::empty()) continue;
        for (const Stretches::Exit& e : facts_.stretches().exits(part.regex, 0)) {
          const At at = places_.of(e.spot, part.to);
          if (!q_.crossed(at)) {
            add_once(next_, at);
            continue;
          }
          // The parser checks a pending restriction where the text is read, at its first byte.
          for (const std::vector<Symbol>& after : q_.behind(s + 1, end_, at, 0, captures_, to_))
            if (terminal)
              put_terminal(s->regex(), e.spot, after);
            else
              put(q_.cut_lexeme(s->number(), e.spot, q_.alive_.follow(part.to)), after);
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
    // The labels that are kept where the border lies within the literal,
    std::map<std::pair<Path::Spot, std::vector<Symbol>>, std::set<uint32_t>> split;
    // and where it lies behind it.
    std::map<std::pair<At, std::vector<Symbol>>, std::set<uint32_t>> whole;
    const auto only = [&](const std::set<uint32_t>& labels, bool labelled) {
      return regexes_.with_labels(set, std::vector(labels.begin(), labels.end()), labelled);
    };
    for (const Stretches::Exit& e : facts_.stretches().exits(set, 0)) {
      if (e.label == 0) continue;
      if (e.spot > 1) {
        const At at = places_.of(e.spot, Alive::kClear);
        for (std::vector<Symbol>& after : q_.behind(s + 1, end_, at, e.label, captures_, to_))
          split[{e.spot, std::move(after)}].insert(e.label - 1);
        continue;
      }
      const Facts::Head head = facts_.reader(reader, Reading::of_label(e.label - 1));
      const At begin = places_.of(0, Alive::kClear);
      for (At x : q_.exits(head, begin)) {
        if (!q_.crossed(x)) {
          add_once(next_, x);
          continue;
        }
        const At end = goal(s + 1, x, captures_);
        if (!q_.leads(head, begin, end)) continue;
        for (std::vector<Symbol>& after : q_.behind(s + 2, end_, x, 0, captures_, to_))
          whole[{end, std::move(after)}].insert(e.label - 1);
      }
    }
    for (auto& [key, kept] : split) put_terminal(only(kept, false), key.first, key.second);
    for (auto& [key, kept] : whole) {
      std::vector<Symbol> rest{q_.crossing({Crossing::kReader, reader, Alive::kClear, 0, key.first})};
      rest.insert(rest.end(), key.second.begin(), key.second.end());
      put(Symbol::terminal(only(kept, true)), rest);
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
            const Crossing told = q_.crossings_[after.front().rule_id().v / 2 - 1];
            if (!q_.fit(told.rule, told.from, told.to, crossing)) continue;
          }
          if (q_.leads(facts_.head(crossing.rule_id()), a, end))
            put(q_.crossing({Crossing::kRule, crossing.rule_id(), pending(a), 0, end}), after);
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
          if (fits) before_.back() = q_.translate(item);
          for (const std::vector<Symbol>& after : q_.behind(s + 1, end_, e, 0, open, to_))
            put(q_.crossing({Crossing::kReader, s->rule_id(), pending(a), 0, end}), after);
          if (fits) before_.back() = whole;
        }
      }
    captures_ = open;
  }

  Alive::Pending pending(At at) const { return q_.alive_.without_follow(places_.pending(at)); }

  Quotient& q_;
  Facts& facts_;
  Places& places_;
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
    if (enough(out)) return;
    Crossings(*this, symbols, from, to, out).run();
  }
}

// The alternatives across the border. A rule was promised to have a text, so a text that showed it is given
// where no alternative is known.
void Quotient::cross_some(Facts::Head head, Alive::Pending from, At to, Alternatives& out) {
  cross(head, from, to, out);
  inexact_ = inexact_ || doubt_.question;
  if (!doubt_.question || !out.ends.empty()) return;
  const std::size_t behind = suffix_bytes(to);
  for (const std::string& text : shown_[to])
    if (reads(head, text) && text.size() >= behind)
      return out.add(
          {Symbol::terminal(regexes_.literal(std::string_view(text).substr(0, text.size() - behind)))});
}

void Quotient::expand_own(uint32_t n, const Reading& reading, Alternatives& out) {
  if (n > crossings_.size()) throw Error(ErrorKind::kValue, "rule out of range");
  Undo anew([&] { begin_anew(); });
  begin();
  const Crossing c = n == 0 ? Crossing{Crossing::kRule, root_, Alive::kClear, 0, end_} : crossings_[n - 1];
  switch (c.kind) {
    case Crossing::kRule: cross_some(facts_->head(c.rule), c.pending, c.to, out); break;
    case Crossing::kReader: cross_some(facts_->reader(c.rule, reading), c.pending, c.to, out); break;
    case Crossing::kEnded: {
      const Reading told = reading.kind == Reading::kText ? Reading::of_text(reading.text + texts_[c.text])
                                                          : Reading::unknown();
      if (leads(facts_->reader(c.rule, told), c.from, c.to))
        out.add({});
      else if (doubt_.text)
        out.add({Symbol::terminal(RegexArena::poison())});
      break;
    }
  }
  anew.keep();
}

}  // namespace structgen
