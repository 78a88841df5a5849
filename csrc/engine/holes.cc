// How questions about texts with holes are answered for a compiled grammar: each question has a construction.
//
//     infill         a prefix and a suffix: the grammar of the texts between them. The parser reads the
//                    prefix; what is left of the grammar (holes/rest.h) is divided by the suffix
//                    (holes/quotient.h)
//     can_complete   fixed texts with holes: facts over the whole path (holes/facts.h), then a text that
//                    shows it
//     conditioned    a grammar and a condition on the whole text: holes/intersection.h. If the condition is a
//                    range of bytes, the bytes are counted beside the states where budget/range.cc can tell
//                    which tokens fit
//
// Canvases, whose slots are filled in any order, are in holes/canvas.h.
//
// The hard part is a prefix that ends inside an item that is compared: `["a","b` HOLE `b"]` with uniqueItems.
// Which texts this item may have depends on the suffix. So the prefix is read again from the beginning of
// this item, by the productions of those texts of the grammar that end with the suffix (Middles:
// outside_items(), inside_).
//
// Invariants.
// - The answer is "yes" only with a text that the grammar's own parser reads, and "no" only with a proof.
//   Every other answer is "not known".
// - The memory of a call that belongs to no grammar yet is looked at as work is charged (Sized).
// - The grammar's world is locked during a call, and everything that is made belongs to this world.
//
// Costs. Those of the constructions, within the limit of a matcher's call and 200 units for each byte
// of fixed text. Grammars that limit tokens are refused, because it is not known how the text of a hole
// is cut into tokens.
#include "engine/holes.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/told.h"
#include "base/work.h"
#include "holes/fact_base.h"
#include "holes/intersection.h"
#include "holes/quotient.h"
#include "holes/rest.h"
#include "regex/lower_pattern.h"
#include "regex/syntax.h"

namespace structgen {

namespace {

// Reading a byte of fixed text costs this many units of work.
constexpr int64_t kReadByte = 200;
// All holes of a text together may have at most this many tokens.
constexpr uint64_t kMostTokens = 1u << 16;

int64_t work_of(const Grammar& g, std::size_t bytes) {
  return std::min(Meter::kEndless, g.mask_work() + kReadByte * static_cast<int64_t>(bytes));
}

void refuse_limits(const Grammar& g) {
  if (g.limited())
    throw Error(ErrorKind::kGrammar,
                "a grammar that limits tokens (max_tokens) cannot have holes in its texts");
  if (g.epoch()->parser.edged())
    throw Error(
        ErrorKind::kGrammar,
        "a grammar that asks for ordinary tokens, whatever their text, cannot have holes in its texts");
}

// Counts the bytes of an object that belongs to no grammar yet. While a Sized lives, every checkpoint adds
// them to the grammar's bytes and checks the sum.
template <class T>
class Sized {
 public:
  Sized(Grammar& g, const T& of) : grammar_(g), of_(of), scope_(meter.task(), Meter::kEndless, &look, this) {}
  Sized(const Sized&) = delete;
  Sized& operator=(const Sized&) = delete;

 private:
  static void look(void* self) {
    const Sized& s = *static_cast<Sized*>(self);
    s.grammar_.look_at_size(*s.grammar_.epoch(), s.of_.byte_size());
  }
  Grammar& grammar_;
  const T& of_;
  const WorkScope scope_;
};

// The productions of all middles: the texts that may stand between a prefix and a suffix. These productions
// are made in up to four layers, each from the layer before; top() is the last layer:
//
//     rest_       what the grammar allows behind the prefix
//     quotient_   rest_ divided by the suffix
//     inside_     if the prefix ends inside a compared item: a parser of quotient_ from that item's beginning
//     begun_      what inside_ leaves behind the rest of the prefix
class Middles {
 public:
  Middles(std::shared_ptr<Grammar> grammar, std::string_view prefix, const std::string& suffix)
      : grammar_(std::move(grammar)), parser_(grammar_->world().regexes, grammar_->productions()) {
    const Sized watch(*grammar_, *this);
    const std::shared_ptr<Epoch> epoch = grammar_->epoch();
    StateId s = grammar_->start(), outside = s;
    // If the prefix ends inside an item that is compared (uniqueItems): the offset where the outermost such
    // item begins.
    std::size_t begin = 0;
    for (std::size_t i = 0; i < prefix.size(); ++i) {
      const uint8_t b = static_cast<uint8_t>(prefix[i]);
      if (const StateId before = outside_items(epoch->parser, s, b); before != Parser::dead()) {
        outside = before;
        begin = i;
      }
      s = b >= kEdge ? Parser::dead() : epoch->parser.step(s, b);
      if (s == Parser::dead())
        throw Error(ErrorKind::kUnsatisfiableInfill, "no text of the grammar begins with the prefix")
            .at(static_cast<int64_t>(i))
            .in("prefix");
    }
    if (outside_items(epoch->parser, s, -1) == s) begin = prefix.size();
    Parser::ImportMemo memo;
    rest_.emplace(grammar_->productions(), parser_, parser_.import(epoch->parser, s, memo));
    if (suffix.empty()) return;
    quotient_.emplace(grammar_->world().regexes, *rest_, rest_->rule(), rest_->lexed(), suffix,
                      grammar_->world().policy.middles());
    const Verdict possible = quotient_->possible();
    if (possible == Verdict::kNo) refuse(suffix, false);
    if (begin < prefix.size()) {
      // The suffix may forbid some texts of the item in which the prefix ends. So the item is read again from
      // its beginning, by the productions that know the suffix.
      const std::size_t fits = quotient_->fits();
      quotient_.reset();
      rest_.emplace(grammar_->productions(), parser_, parser_.import(epoch->parser, outside, memo));
      quotient_.emplace(grammar_->world().regexes, *rest_, rest_->rule(), rest_->lexed(), suffix,
                        grammar_->world().policy.middles());
      inside_.emplace(grammar_->world().regexes, *quotient_);
      s = inside_->start(quotient_->rule());
      for (std::size_t i = begin; i < prefix.size() && s != Parser::dead(); ++i)
        s = inside_->step(s, static_cast<uint8_t>(prefix[i]));
      if (s == Parser::dead()) refuse(suffix, quotient_->inexact(), fits);
      begun_.emplace(*quotient_, *inside_, s);
    } else if (possible == Verdict::kUnknown && quotient_->possible() != Verdict::kYes) {
      refuse(suffix, true);
    }
  }
  RuleId rule() const { return begun_ ? begun_->rule() : quotient_ ? quotient_->rule() : rest_->rule(); }

  Productions& top() {
    if (begun_) return *begun_;
    if (quotient_) return *quotient_;
    return *rest_;
  }
  std::size_t byte_size() const {
    return begun_      ? begun_->byte_size()
           : quotient_ ? quotient_->byte_size()
           : rest_     ? rest_->byte_size()
                       : parser_.byte_size();
  }

 private:
  [[noreturn]] void refuse(const std::string& suffix, bool unsure) {
    refuse(suffix, unsure, quotient_->fits());
  }
  [[noreturn]] static void refuse(const std::string& suffix, bool unsure, std::size_t at) {
    if (unsure)
      throw Error(ErrorKind::kSchemaTooComplex,
                  "whether the suffix can follow cannot be decided: it depends on which items or keys the "
                  "hole repeats");
    throw Error(ErrorKind::kUnsatisfiableInfill,
                at < suffix.size()
                    ? "nothing between the prefix and the suffix leads to this byte of the suffix"
                    : "no text of the grammar can end with the suffix")
        .at(static_cast<int64_t>(at))
        .in("suffix");
  }
  // Returns the state without those parse items that are inside a compared text other than a key. Returns
  // dead() if one of these can read the byte `next`, unless this byte ends the text, as a comma ends a
  // number. A `next` of -1 stands for any byte.
  StateId outside_items(Parser& parser, StateId s, int next) const {
    if (!parser.state(s).capturing) return s;
    std::vector<Item> left;
    for (const Item& i : parser.items(s)) {
      if (!inside_item(parser, i))
        left.push_back(i);
      else if (next < 0 || parser.regexes().step(i.regex, static_cast<uint8_t>(next)) != RegexArena::empty())
        return Parser::dead();
    }
    return left.size() == parser.state(s).n ? s : parser.of_items(std::move(left), parser.state(s).accepting);
  }
  // Returns true if a parse item is inside a compared text that is not just a key: an item of an array with
  // uniqueItems.
  bool inside_item(Parser& parser, const Item& i) const {
    CaptureId outer = i.capture;
    if (outer.v <= 1) return false;
    parser.captures().innermost(outer);
    // A labelled regex reads the name of a member. A text that is captured above the reader of this name
    // belongs to an item around the object.
    if (outer.v > 1 || parser.regexes().node(i.regex).labelled) return true;
    for (const StackEntry& e : parser.stacks().entries(i.stack))
      if (e.top.kind() != Symbol::kReader || grammar_->productions().traits_of(e.top.rule_id()).compares)
        return true;
    return false;
  }
  std::shared_ptr<Grammar> grammar_;
  Parser parser_;
  std::optional<RestOfText> rest_;
  std::optional<Quotient> quotient_;
  std::optional<Parser> inside_;
  struct Begun : RestOfText {
    using RestOfText::RestOfText;
    std::size_t byte_size() const override { return RestOfText::byte_size() + base_.byte_size(); }
  };
  std::optional<Begun> begun_;
};

// Tries once to answer can_complete(). attempt() looks for a path through all parts (holes/facts.h) and has
// the grammar's own parser read a text of this path.
Filling attempt(Grammar& g, const std::vector<Part>& parts) {
  FactBase fact_base(g.world().regexes, g.productions(), {parts, &g.vocabulary()}, Facts::Aim::kText, false,
                     0, &g.epoch()->parser);
  const Sized watch(g, fact_base);
  Facts& facts = fact_base.facts();
  const Facts::Head root = facts.head(g.start_rule());
  const PlaceId from = fact_base.places().of(fact_base.path().first(), Alive::kClear);
  const Facts::Found found = facts.ask(root, from);
  bool any = false;
  for (PlaceId e : found.exits) {
    if (!fact_base.path().ends(fact_base.places().spot(e))) continue;
    any = true;
    if (const auto shown = fact_base.find_proof(root, from, e, facts.alternatives(root)))
      return {Verdict::kYes, shown->text};
  }
  return {any || found.unsure || g.partial() ? Verdict::kUnknown : Verdict::kNo, {}};
}

// What a condition, or an operand of it, asks of a text: it matches a regex, and its number of bytes lies in
// a range.
struct Wanted {
  std::optional<RegexId> regex;
  ByteRange bytes;
  RegexId whole(RegexArena& r) const {
    if (bytes.least > bytes.most) return RegexArena::empty();
    const RegexId all =
        r.repeat(r.bytes(ByteSet::all()), count(bytes.least, kUnbounded - 1), count(bytes.most, kUnbounded));
    return regex ? r.both(*regex, all) : all;
  }
  bool ranged() const { return bytes.least > 0 || bytes.most != ByteRange::kAny; }
  static uint32_t count(std::size_t n, uint32_t most) {
    return static_cast<uint32_t>(std::min<std::size_t>(n, most));
  }
};

ByteRange both(const ByteRange& a, const ByteRange& b) {
  return {std::max(a.least, b.least), std::min(a.most, b.most)};
}

// Evaluates the steps of a condition. Under kAnd a range of bytes stays a range, which rows can count. Under
// kOr or kNot it must become a regex.
Wanted read(RegexArena& r, const std::vector<ConditionStep>& condition) {
  std::vector<Wanted> stack;
  const auto pop = [&] {
    if (stack.empty())
      throw Error(ErrorKind::kValue, "the condition is incomplete: an operator lacks an operand");
    const Wanted out = stack.back();
    stack.pop_back();
    return out;
  };
  const RegexId any = r.star(r.bytes(ByteSet::all()));
  for (const ConditionStep& c : condition) {
    charge();
    switch (c.kind) {
      case ConditionStep::kRegex:
        stack.push_back({lower(r, parse_pattern(c.texts.at(0), Flavor::kPython, true), Match::kFull), {}});
        break;
      case ConditionStep::kContains: {
        std::vector<RegexId> parts;
        for (const std::string& t : c.texts) parts.push_back(r.literal(t));
        stack.push_back({r.cat(any, r.cat(r.alt(std::span<const RegexId>(parts)), any)), {}});
        break;
      }
      case ConditionStep::kBytes:
        stack.push_back({std::nullopt, {c.lo, c.hi >= kUnbounded ? ByteRange::kAny : c.hi}});
        break;
      case ConditionStep::kNot: stack.push_back({r.negate(pop().whole(r)), {}}); break;
      case ConditionStep::kAnd: {
        const Wanted b = pop(), a = pop();
        stack.push_back({a.regex && b.regex ? r.both(*a.regex, *b.regex)
                         : a.regex          ? a.regex
                                            : b.regex,
                         both(a.bytes, b.bytes)});
        break;
      }
      case ConditionStep::kOr: {
        const Wanted b = pop(), a = pop();
        stack.push_back({r.alt(a.whole(r), b.whole(r)), {}});
        break;
      }
    }
  }
  const Wanted out = pop();
  if (!stack.empty())
    throw Error(ErrorKind::kValue, "the condition is incomplete: an operand is left without an operator");
  return out;
}

[[noreturn]] void refuse_condition() {
  throw Error(ErrorKind::kUnsatisfiableInfill, "no text of the grammar meets the condition").in("condition");
}

std::shared_ptr<Grammar> intersected(const std::shared_ptr<Grammar>& grammar, RegexId whole) {
  const auto some =
      std::make_shared<Intersection>(grammar->world().regexes, grammar->productions(), grammar->start_rule(),
                                     grammar->productions().traits_of(RuleId{0}).plain, whole, grammar);
  const Verdict possible = some->possible();
  if (possible == Verdict::kNo) refuse_condition();
  if (possible == Verdict::kUnknown)
    throw Error(ErrorKind::kSchemaTooComplex,
                "whether a text meets the condition cannot be decided: it depends on which items or keys "
                "it repeats");
  auto out =
      std::make_shared<Grammar>(grammar->shared_world(), some, some->rule(), std::vector<const SchemaSet*>{},
                                grammar->mask_work(), grammar->warnings(), grammar->captures());
  if (grammar->groups()) out->set_groups(*grammar->groups());
  if (grammar->partial()) out->note_partial();
  if (out->start() == Parser::dead()) refuse_condition();
  return out;
}

// Returns the grammar with a range of bytes that its rows count. Returns null if rows cannot count it
// (budget/range.cc), so that an intersection is needed.
std::shared_ptr<Grammar> ranged(const std::shared_ptr<Grammar>& grammar, ByteRange bytes) {
  if (!grammar->vocabulary().complete() || grammar->omits() || grammar->partial()) return nullptr;
  Epoch& epoch = *grammar->epoch();
  // Unproven productions prove a shortest text to exist, but not a text of each length.
  if (epoch.parser.unproven() && bytes.least > 0) return nullptr;
  const StateId start = grammar->start();
  const auto shortest = [&] {
    const WorkScope part(Task::kHoles, share_of_work());
    return epoch.completion.of(start).size();
  };
  Told<std::size_t> least = told(shortest);
  if (!least) return nullptr;
  if (*least > bytes.most || bytes.least > bytes.most) refuse_condition();
  // No text has fewer than *least bytes, so the lower end of the range excludes nothing.
  if (bytes.least <= *least) bytes.least = 0;
  if (bytes.least == 0 && bytes.most == ByteRange::kAny) return grammar;
  auto out = std::make_shared<Grammar>(grammar, bytes);
  if (bytes.least == 0) return out;
  const StateId first = out->start();
  Budget budget(out->epoch()->budgets, false, out->mask_work(), {&first, 1}, {}, {bytes, 0});
  Told<bool> can = told([&] {
    const WorkScope part(Task::kHoles, share_of_work());
    return budget.completable(first, 0);
  });
  if (can && *can) return out;
  if (can && budget.exact()) refuse_condition();
  return nullptr;
}

}  // namespace

std::shared_ptr<Grammar> without_range(const std::shared_ptr<Grammar>& grammar) {
  if (!grammar->of_any_length()) return grammar;
  std::lock_guard hold(grammar->world().lock);
  const WorkScope scope(Task::kHoles, work_of(*grammar, 1000));
  return intersected(grammar->of_any_length(),
                     Wanted{std::nullopt, grammar->bytes()}.whole(grammar->world().regexes));
}

std::shared_ptr<Grammar> conditioned(const std::shared_ptr<Grammar>& of,
                                     const std::vector<ConditionStep>& condition) {
  std::lock_guard hold(of->world().lock);
  refuse_limits(*of);
  const WorkScope scope(Task::kHoles, work_of(*of, 1000));
  RegexArena& regexes = of->world().regexes;
  Wanted wanted = read(regexes, condition);
  wanted.bytes = both(wanted.bytes, of->bytes());
  const std::shared_ptr<Grammar> grammar = of->of_any_length() ? of->of_any_length() : of;
  if (!wanted.regex && !wanted.ranged()) return grammar;
  if (wanted.ranged()) {
    const std::shared_ptr<Grammar> met = wanted.regex ? intersected(grammar, *wanted.regex) : grammar;
    if (auto out = ranged(met, wanted.bytes)) return out;
  }
  return intersected(grammar, wanted.ranged() ? wanted.whole(regexes) : *wanted.regex);
}

Filling can_complete(const std::shared_ptr<Grammar>& of, std::vector<Part> parts) {
  const std::shared_ptr<Grammar> grammar = without_range(of);
  std::size_t bytes = 0;
  uint64_t tokens = 0;
  for (const Part& p : parts) {
    bytes += p.text.size();
    if (p.kind == Part::kTokens) tokens += std::min(p.lo, kMostTokens + 1);
  }
  if (tokens > kMostTokens)
    throw Error(ErrorKind::kValue, "the gaps have more than " + std::to_string(kMostTokens) + " tokens");
  std::lock_guard hold(grammar->world().lock);
  refuse_limits(*grammar);
  const WorkScope whole(Task::kHoles, work_of(*grammar, bytes));
  const auto answer = [&](const std::vector<Part>& of, int64_t work) {
    const GrammarWork scope(*grammar, nullptr, Task::kHoles, work);
    return told([&] { return attempt(*grammar, of); }).value_or(Filling{});
  };
  if (tokens > 0) {
    // Questions about bytes are cheaper and may settle a question about n tokens. No n tokens have more bytes
    // than n times the longest token, so a "no" for up to that many bytes is a "no". If every byte is a
    // token, n bytes can be written as n tokens, so a "yes" for n bytes is a "yes".
    const auto in_bytes = [&](uint64_t least, uint64_t most) {
      std::vector<Part> out = parts;
      for (Part& p : out)
        if (p.kind == Part::kTokens) p = {Part::kBytes, {}, p.lo * least, p.lo * most};
      return out;
    };
    if (grammar->vocabulary().special().empty()) {
      const Filling above = answer(in_bytes(1, grammar->vocabulary().longest()), meter.left() / 2);
      if (above.verdict == Verdict::kNo) return above;
    }
    if (grammar->vocabulary().complete()) {
      Filling below = answer(in_bytes(1, 1), meter.left() / 2);
      if (below.verdict == Verdict::kYes) return below;
    }
  }
  return answer(parts, meter.left());
}

std::shared_ptr<Grammar> infill(std::shared_ptr<Grammar> grammar, std::string prefix, std::string suffix) {
  // A hole inside a hole is a hole of the outer grammar, with more text around it: both prefixes are joined,
  // and so are both suffixes.
  if (const Grammar::Around* around = grammar->around()) {
    prefix = around->prefix + prefix;
    suffix += around->suffix;
    std::shared_ptr<Grammar> whole = around->grammar;
    grammar = std::move(whole);
  }
  grammar = without_range(grammar);
  std::lock_guard hold(grammar->world().lock);
  refuse_limits(*grammar);
  const GrammarWork scope(*grammar, nullptr, Task::kHoles, work_of(*grammar, prefix.size() + suffix.size()));
  const auto middles = std::make_shared<Middles>(grammar, prefix, suffix);
  auto out = std::make_shared<Grammar>(
      grammar->shared_world(), std::shared_ptr<Productions>(middles, &middles->top()), middles->rule(),
      std::vector<const SchemaSet*>{}, grammar->mask_work(), grammar->warnings(), grammar->captures());
  if (out->start() == Parser::dead())
    throw Error(ErrorKind::kUnsatisfiableInfill,
                "nothing between the prefix and the suffix leads to the suffix")
        .at(0)
        .in("suffix");
  out->set_around({std::move(grammar), std::move(prefix), std::move(suffix)});
  return out;
}

}  // namespace structgen
