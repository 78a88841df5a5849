// The alternatives of a rule across the border between a hole and its suffix. quotient.h says who needs them,
// and quotient.cc has an example.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/depth.h"
#include "base/error.h"
#include "base/work.h"
#include "holes/quotient.h"
#include "holes/right.h"

namespace structgen {

// Returns what may stand behind a symbol that crosses the border and whose text ends at the place `at` in the
// suffix, as symbols of the quotient. Symbols that read only suffix are left out, so one empty list says that
// the rest can be read. A reader stays if its capture began before the border: it is told its captured text
// with the suffix up to the reader. For M -> capture KEY reader ":" VALUE and the suffix `b":1}` the border
// lies in KEY:
//
//     the captured text goes on     `a` before the border and `b"` of the suffix: the key is `ab"`
//     the list                      one reader (kEnded, reader, from behind `b"`, to the end, text `b"`)
//     the alternative               capture KEY' reader'. KEY' has the keys that end with `b"`, without
//                                   this end
//
// A reader may lead to several places, so there is a list for each.
std::vector<std::vector<Symbol>> Quotient::behind(const Symbol* s, const Symbol* end, At at, uint32_t label,
                                                  uint32_t captures, At to) {
  check_depth();
  std::vector<std::vector<Symbol>> out;
  if (captures == 0) {
    const bool before = std::exchange(doubt_.text, false);
    const bool read = s == end ? done(at, to) : leads({facts_->tail(s, end, label), at, to});
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
      const uint32_t read = text(suffix_.substr(0, places_.spot(f) - 1));
      const bool last = reader + 1 == end && done(t, to);
      const Symbol told = crossing({.kind = Crossing::kEnded,
                                    .rule = reader->rule_id(),
                                    .from = f,
                                    .to = last ? to : t,
                                    .text = read});
      for (const std::vector<Symbol>& more : behind(reader + 1, end, t, 0, facts_->outer(captures), to)) {
        out.push_back({told});
        out.back().insert(out.back().end(), more.begin(), more.end());
      }
    }
  return out;
}

// Finds where the border may lie in one alternative. It reads the symbols from the left, from all places of
// the hole at once. For each symbol whose text may cross the border it adds an alternative of the quotient.
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
        // Captures and notes read nothing, so the place stays. They are copied into the new alternative.
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
      // Poison says that captured text may allow more alternatives. Whoever meets poison in a mask asks again
      // with the text (mask/fill.h).
      q_.add({Symbol::terminal(RegexArena::poison())}, out_);
  }

 private:
  // Returns the place to which the crossing symbol s must lead, of whose exits `exit` is one: `to_` if s is
  // the last symbol.
  At goal(const Symbol* s, At exit, uint32_t open) const { return s + 1 == end_ && open == 0 ? to_ : exit; }

  void put(Symbol crossing, const std::vector<Symbol>& after) {
    std::vector<Symbol> sequence = before_;
    sequence.push_back(crossing);
    sequence.insert(sequence.end(), after.begin(), after.end());
    q_.add(std::move(sequence), out_);
  }

  // Calls f with each exit of a head that lies in the suffix. The exits in the hole become the places of the
  // next symbol.
  template <class F>
  void each_crossing(Facts::Head head, At from, F&& f) {
    for (At e : q_.exits(head, from))
      if (q_.crossed(e))
        f(e);
      else
        add_once(next_, e);
  }

  // Reads a kFollow or kAfter symbol. It reads no text, but changes what may not follow (pending).
  void mark(Symbol s) {
    for (At a : here_) {
      steps_.clear();
      q_.alive_.steps(s, places_.pending(a), steps_);
      add_once(next_, places_.of(places_.spot(a), steps_.front().to));
    }
  }

  // Adds a terminal that crosses the border. Its texts lose their end, which is the suffix up to `spot`.
  void put_terminal(RegexId r, Path::Spot spot, const std::vector<Symbol>& after) {
    const RegexId begun = before_text(regexes_, r, std::string_view(q_.suffix_).substr(0, spot - 1));
    const auto some = [&](RegexId part) {
      if (!regexes_.judged_empty(part)) put(Symbol::terminal(part), after);
    };
    if (!q_.lexed_ || !after.empty() || !regexes_.nullable(begun)) return some(begun);
    some(regexes_.minus(begun, RegexArena::epsilon()));
    some(regexes_.byte(kEdge));
  }

  // Reads a terminal or a lexeme. Its text ends in the hole or crosses the border.
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
          // The lexeme in front may forbid the first byte. The parser of the quotient checks that, so it is
          // not checked here.
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

  // Reads a labelled set of literals with its reader. Only literals that lead to the end are kept. Literals
  // with equal symbols behind them stay in one set.
  void literals(const Symbol* s) {
    const RegexId set = s->regex();
    const RuleId reader = s[1].rule_id();
    if (regexes_.node(set).kind != RegexKind::kLiteralSet) too_complex("a label that is no literal's");
    // The labels of literals across the border, by the spot where the literal ends and what follows it.
    std::map<std::pair<Path::Spot, std::vector<Symbol>>, std::set<uint32_t>> split;
    // The labels of the literals kept whole, if the border lies behind the literal.
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
      each_crossing(head, begin, [&](At x) {
        const At end = goal(s + 1, x, captures_);
        if (!q_.leads({head, begin, end})) return;
        for (std::vector<Symbol>& after : q_.behind(s + 2, end_, x, 0, captures_, to_))
          whole[{end, std::move(after)}].insert(e.label - 1);
      });
    }
    for (auto& [key, kept] : split) put_terminal(only(kept, false), key.first, key.second);
    for (auto& [key, kept] : whole) {
      std::vector<Symbol> rest{q_.crossing({.kind = Crossing::kReader, .rule = reader, .to = key.first})};
      rest.insert(rest.end(), key.second.begin(), key.second.end());
      put(Symbol::terminal(only(kept, true)), rest);
    }
  }

  // Reads a rule, whose text ends in the hole or crosses the border. Where it crosses, an alternative gets
  // the rule's own crossing: M of S -> "{" M "}" becomes M'. A rule between a capture and its reader, such as
  // an item, keeps only those texts that the reader accepts.
  void rule(const Symbol* s) {
    const Facts::Head head = facts_.head(s->rule_id());
    for (At a : here_)
      each_crossing(head, a, [&](At e) {
        const At end = goal(s, e, captures_);
        for (const std::vector<Symbol>& after : q_.behind(s + 1, end_, e, 0, captures_, to_)) {
          RuleId rule = s->rule_id();
          if (captures_ != 0 && s != begin_ && s[-1].kind() == Symbol::kCapture &&
              s[1].kind() == Symbol::kReader) {
            const Crossing told = q_.crossing_of(after.front());
            const std::optional<RuleId> fitting = q_.fit(told.rule, rule, told.from, told.to);
            if (!fitting) continue;
            rule = *fitting;
          }
          if (q_.leads({facts_.head(rule), a, end}))
            put(q_.crossing({.kind = Crossing::kRule, .rule = rule, .pending = pending(a), .to = end}),
                after);
        }
      });
  }

  // Reads a reader whose captured text lies in the hole. Facts are asked about the reader with each Reading
  // that its captured text may have. If the captured text is an item that is compared with other items, the
  // symbol of the item is narrowed to the items with which the reader leads on.
  void reader(const Symbol* s) {
    const bool captured = s - begin_ >= 2 && s[-2].kind() == Symbol::kCapture;
    const bool alone = captured && s[-1].kind() == Symbol::kTerminal;
    const bool ruled = captured && s[-1].kind() == Symbol::kRule;
    const RegexId read = alone ? s[-1].regex() : RegexArena::poison();
    const uint32_t open = captures_ == 0 ? 0 : facts_.outer(captures_);
    for (At a : here_)
      for (const Reading& reading : facts_.readings(captures_, a, {read})) {
        const Facts::Head head = facts_.reader(s->rule_id(), reading);
        const bool fits =
            ruled && reading.kind == Reading::kFresh && q_.base_.traits_of(s->rule_id()).compares;
        each_crossing(head, a, [&](At e) {
          const At end = goal(s, e, open);
          std::optional<RuleId> item;
          if (fits) item = q_.fit(s->rule_id(), s[-1].rule_id(), a, end);
          if (fits ? !item : !q_.leads({head, a, end})) return;
          // The symbol before the reader is the item. It is narrowed to the items with which the reader leads
          // to the exit.
          const Symbol whole = before_.back();
          if (item) before_.back() = q_.translate(Symbol::rule(*item));
          for (const std::vector<Symbol>& after : q_.behind(s + 1, end_, e, 0, open, to_))
            put(q_.crossing(
                    {.kind = Crossing::kReader, .rule = s->rule_id(), .pending = pending(a), .to = end}),
                after);
          before_.back() = whole;
        });
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
  // before_ holds the symbols of the new alternative so far, here_ the places to which they lead, and next_
  // the places behind the next symbol.
  std::vector<Symbol> before_;
  std::vector<At> here_, next_;
  // The list of open captures (Facts::opened()); all of them began before the border.
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

}  // namespace structgen
