#include "holes/quotient.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/error.h"
#include "base/undo.h"
#include "base/work.h"
#include "holes/right.h"

namespace structgen {

namespace {
constexpr std::size_t kMostExceptions = 64;  // texts of the suffix that a captured text is not to be
}  // namespace

Quotient::Quotient(RegexArena& regexes, Productions& base, RuleId root, bool lexed, std::string suffix)
    : regexes_(regexes), base_(base), root_(root), lexed_(lexed), suffix_(std::move(suffix)) {
  alive_ = std::make_unique<Alive>(regexes_, base_, stacks_);
  path_ = std::make_unique<Path>(std::vector<Part>{{Part::kAny, {}, 0, 0}, {Part::kText, suffix_, 0, 0}},
                                 nullptr);
  begin_anew();
}

// What is half found is not kept: facts that threw begin anew, with the same numbers for the same places.
void Quotient::begin_anew() {
  std::vector<std::pair<Facts::Spot, Alive::Pending>> places;
  if (facts_)
    for (At a = 0; a < facts_->places(); ++a) places.emplace_back(facts_->spot(a), facts_->pending(a));
  facts_ = std::make_unique<Facts>(regexes_, base_, *alive_, *path_, lexed_);
  end_ = facts_->at(path_->last(), Alive::kClear);
  for (const auto& [spot, pending] : places) facts_->at(spot, pending);
}

Symbol Quotient::own(const Own& o) {
  const uint64_t h = mix(mix(mix(o.kind, o.a), mix(o.b, o.c)), mix(o.d, o.text));
  const uint32_t n = own_index_.find_or_add(
      h, [&](uint32_t i) { return own_[i] == o; },
      [&] {
        own_.push_back(o);
        return static_cast<uint32_t>(own_.size() - 1);
      });
  const uint64_t rule = 2 * static_cast<uint64_t>(n + 1) + 1;  // 1 is the start
  if (rule > kMaxNumber) throw Error(ErrorKind::kBudgetExceeded, "the grammar has too many rules");
  const RuleId id{static_cast<uint32_t>(rule)};
  return o.kind == Own::kCross ? Symbol::rule(id) : Symbol::reader(id);
}

uint32_t Quotient::text(const std::string& t) { return numbered(text_index_, texts_, t, t); }

// What may not follow a lexeme may not be the suffix's first byte either.
RegexId Quotient::marked(RegexId follow) {
  if (follow == RegexArena::empty()) return follow;
  ByteSet set = regexes_.byte_set(regexes_.node(follow).a);
  if (!set.has(static_cast<uint8_t>(suffix_[0]))) return follow;
  set.add(kEdge);
  return regexes_.bytes(set);
}

// A lexeme that crosses is one of its own, because how far it reaches depends on the context, and that only
// on what is read: it is what the base's is in that context, if it leaves behind what was asked for.
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

Symbol Quotient::number(Symbol s) {
  if (s.kind() == Symbol::kFollow) return Symbol::follow(marked(s.regex()));
  if (s.kind() == Symbol::kLexeme) return Symbol::lexeme(2 * s.number());
  if (s.kind() != Symbol::kRule && s.kind() != Symbol::kReader) return s;
  if (s.rule_id().v > kMaxNumber / 2)
    throw Error(ErrorKind::kBudgetExceeded, "the grammar has too many rules");
  const RuleId r{2 * s.rule_id().v};
  return s.kind() == Symbol::kRule ? Symbol::rule(r) : Symbol::reader(r);
}

bool Quotient::leads(Facts::Head head, At from, At to) {
  const Facts::Found found = facts_->ask(head, from);
  for (At e : found.exits)
    if (done(e, to)) return true;
  unsure_ = unsure_ || found.unsure;
  return false;
}

bool Quotient::possible(bool& unsure) {
  Undo anew([&] { begin_anew(); });
  unsure_ = false;
  const bool out = leads(facts_->head(root_), facts_->at(0, Alive::kClear), end_);
  unsure = unsure_;
  anew.keep();
  return out;
}

std::size_t Quotient::fits() {
  const Facts::Spot s = facts_->furthest();
  return s == 0 ? 0 : s - 1;
}

void Quotient::add(std::vector<Symbol> sequence, Alternatives& out) {
  uint32_t begin = 0;  // few: an alternative a place where the text may end
  for (uint32_t end : out.ends) {
    if (std::equal(sequence.begin(), sequence.end(), out.symbols.begin() + begin, out.symbols.begin() + end))
      return;
    begin = end;
  }
  out.add(sequence);
}

// A terminal whose text ends at a spot of the suffix.
void Quotient::add_crossing(const std::vector<Symbol>& before, RegexId r, Facts::Spot spot,
                            const std::vector<Symbol>& after, Alternatives& out) {
  const RegexId begun = before_text(regexes_, r, std::string_view(suffix_).substr(0, spot - 1));
  std::vector<Symbol> sequence = before;
  const auto put = [&](RegexId part) {
    if (regexes_.judged_empty(part)) return;
    sequence.push_back(Symbol::terminal(part));
    sequence.insert(sequence.end(), after.begin(), after.end());
    add(sequence, out);
    sequence.resize(before.size());
  };
  if (!lexed_ || !after.empty() || !regexes_.nullable(begun)) return put(begun);
  put(regexes_.minus(begun, RegexArena::epsilon()));
  put(regexes_.byte(kEdge));
}

// What stands behind a symbol whose text ends at `at`, in the suffix: nothing, but for readers of captures
// that began before the border. Each is told what was captured and the suffix up to it. A list a way.
std::vector<std::vector<Symbol>> Quotient::behind(const Symbol* s, const Symbol* end, At at, uint32_t label,
                                                  uint32_t captures, At to) {
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
  const auto exits = [&](Facts::Head head, At from) {
    const Facts::Found found = facts_->ask(head, from);
    unsure_ = unsure_ || found.unsure;
    return std::vector<At>(found.exits.begin(), found.exits.end());
  };
  Reading fresh;
  fresh.kind = Reading::kFresh;
  const std::vector<At> from = reader == s ? std::vector<At>{at} : exits(facts_->tail(s, reader, label), at);
  for (At f : from)
    for (At t : exits(facts_->reader(reader->rule_id(), fresh), f)) {
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

// A captured rule was read before the border, and a reader leads from there to `to` if it was told of a text
// that differs from all others. Texts in the suffix are some of those others: the rule becomes one without
// those that would not lead there. False: it has no text then.
//
// Without it a text might be begun that can end in such a text alone: of items "aa" and "ab", all different,
// with "aa" in the suffix, `"aa` could be read, and its quote not.
bool Quotient::tells_apart(RuleId reader, At from, At to, Symbol& rule) {
  if (!base_.begun_here(reader)) return true;
  std::vector<std::string> bad;
  RuleId kept = rule.rule_id();
  bool any = true;
  for (std::size_t i = 0; i < facts_->texts_met().size(); ++i) {  // more of them are met on the way
    Reading told;
    told.kind = Reading::kText;
    told.text = facts_->texts_met()[i];
    if (!base_.except(rule.rule_id(), {&told.text, 1}, kept, any)) return true;
    if (kept == rule.rule_id()) continue;
    const Facts::Found found = facts_->ask(facts_->reader(reader, told), from);
    if (!found.unsure &&
        std::none_of(found.exits.begin(), found.exits.end(), [&](At e) { return done(e, to); }))
      bad.push_back(told.text);
    if (bad.size() == kMostExceptions) break;
  }
  if (bad.empty() || !base_.except(rule.rule_id(), bad, kept, any)) return true;
  rule = Symbol::rule(kept);
  return any;
}

void Quotient::cross(Facts::Head head, Alive::Pending from, At to, Alternatives& out) {
  const Alternatives& all = facts_->alternatives(head);
  uint32_t begin = 0;
  for (uint32_t end : all.ends) {
    cross_alternative({all.symbols.data() + begin, end - begin}, from, to, out);
    begin = end;
  }
}

namespace {
void add_once(std::vector<uint32_t>& list, uint32_t a) {
  if (std::find(list.begin(), list.end(), a) == list.end()) list.push_back(a);
}
}  // namespace

// A labelled set of literals and its reader. Of the literals those are kept that lead to the end.
void Quotient::cross_set(const Symbol* s, const Symbol* end, uint32_t captures, At to,
                         const std::vector<Symbol>& before, std::vector<At>& next, Alternatives& out) {
  const RegexId set = s->regex();
  const RuleId reader = s[1].rule_id();
  if (regexes_.node(set).kind != RegexKind::kJsonSet) too_complex("a label that is no literal's");
  const JsonSet of = regexes_.json_set_of(set);
  const LiteralTable& table = regexes_.tables().table(of.table);
  const std::size_t words = (table.texts.size() + 63) / 64;
  const auto bits = [&](uint32_t label, std::vector<uint64_t>& to_bits) {
    to_bits.resize(words, 0);
    for (uint32_t i = of.lo; i < of.hi; ++i)
      if (table.labels[i] == label) to_bits[i >> 6] |= 1ull << (i & 63);
  };
  const auto exits = facts_->reads(set, 0);
  const std::vector<Facts::Exit> found(exits.begin(), exits.end());
  std::map<std::pair<Facts::Spot, std::vector<Symbol>>, std::vector<uint64_t>> split;  // the border within
  std::map<std::pair<At, std::vector<Symbol>>, std::vector<uint64_t>> whole;           // or behind them
  for (const Facts::Exit& e : found) {
    if (e.label == 0) continue;
    if (e.spot > 1) {
      const At at = facts_->at(e.spot, Alive::kClear);
      for (std::vector<Symbol>& after : behind(s + 1, end, at, e.label, captures, to))
        bits(e.label - 1, split[{e.spot, std::move(after)}]);
      continue;
    }
    Reading reading;
    reading.kind = Reading::kLabel;
    reading.label = e.label - 1;
    const Facts::Found read = facts_->ask(facts_->reader(reader, reading), facts_->at(0, Alive::kClear));
    unsure_ = unsure_ || read.unsure;
    const std::vector<At> ends(read.exits.begin(), read.exits.end());
    for (At x : ends) {
      if (!crossed(x)) {
        add_once(next, x);
        continue;
      }
      const At goal = s + 2 == end && captures == 0 ? to : x;
      for (std::vector<Symbol>& after : behind(s + 2, end, x, 0, captures, to))
        bits(e.label - 1, whole[{goal, std::move(after)}]);
    }
  }
  for (auto& [key, kept] : split)
    add_crossing(before, regexes_.narrowed_set(set, kept, false), key.first, key.second, out);
  for (auto& [key, kept] : whole) {
    std::vector<Symbol> sequence = before;
    sequence.push_back(Symbol::terminal(regexes_.narrowed_set(set, kept, true)));
    sequence.push_back(own({Own::kReader, reader.v, Alive::kClear, key.first, 0, 0}));
    sequence.insert(sequence.end(), key.second.begin(), key.second.end());
    add(std::move(sequence), out);
  }
}

void Quotient::cross_alternative(std::span<const Symbol> all, Alive::Pending from, At to, Alternatives& out) {
  const Symbol* const end = all.data() + all.size();
  std::vector<Symbol> before;
  std::vector<At> here{facts_->at(0, from)}, next;
  uint32_t captures = 0;  // that are open, all of them begun before the border
  std::vector<Alive::Step> steps;
  unsure_ = false;
  // `open`: captures behind the symbol.
  const auto add_rule = [&](const Symbol* s, Own::Kind kind, At at, At exit, uint32_t open,
                            const std::vector<Symbol>& before) {
    const At goal = s + 1 == end && open == 0 ? to : exit;
    for (const std::vector<Symbol>& after : behind(s + 1, end, exit, 0, open, to)) {
      Symbol rule = *s;
      if (kind == Own::kCross && open != 0 && s != all.data() && s[-1].kind() == Symbol::kCapture &&
          s[1].kind() == Symbol::kReader) {
        const Own told = own_[after.front().rule_id().v / 2 - 1];
        if (!tells_apart(RuleId{told.a}, told.c, told.d, rule)) continue;
        if (!(rule == *s) && !leads(facts_->head(rule.rule_id()), at, goal)) continue;
      }
      std::vector<Symbol> sequence = before;
      sequence.push_back(
          own({kind, rule.rule_id().v, alive_->without_follow(facts_->pending(at)), goal, 0, 0}));
      sequence.insert(sequence.end(), after.begin(), after.end());
      add(std::move(sequence), out);
    }
  };
  for (const Symbol* s = all.data(); s != end && !here.empty(); ++s) {
    charge();
    next.clear();
    switch (s->kind()) {
      case Symbol::kNote: before.push_back(*s); continue;
      case Symbol::kLimit:
        throw Error(ErrorKind::kGrammar, "a text with holes cannot have limits on tokens (max_tokens)");
      case Symbol::kCapture:
        captures = facts_->opened(captures, here.front());
        before.push_back(*s);
        continue;
      case Symbol::kAfter:
      case Symbol::kFollow:
        for (At a : here) {
          steps.clear();
          alive_->steps(*s, facts_->pending(a), steps);
          add_once(next, facts_->at(facts_->spot(a), steps.front().to));
        }
        before.push_back(number(*s));
        break;
      case Symbol::kLexeme:
      case Symbol::kTerminal: {
        const bool terminal = s->kind() == Symbol::kTerminal;
        if (terminal && s->regex() == RegexArena::poison()) return add({*s}, out);
        if (terminal && regexes_.node(s->regex()).labelled) {
          if (s + 1 == end || s[1].kind() != Symbol::kReader) too_complex("a label that nobody reads");
          cross_set(s, end, captures, to, before, next, out);
          before.push_back(*s);
          ++s;
          before.push_back(number(*s));
          break;
        }
        for (At a : here) {
          const Alive::Pending p = facts_->pending(a);
          steps.clear();
          if (terminal)
            steps.push_back({Alive::kClear, alive_->restricted(s->regex(), alive_->follow(p))});
          else
            alive_->steps(*s, p, steps);
          for (const Alive::Step& part : steps) {
            if (part.regex == RegexArena::poison() || part.regex == RegexArena::empty()) continue;
            const auto exits = facts_->reads(part.regex, 0);
            const std::vector<Facts::Exit> found(exits.begin(), exits.end());
            for (const Facts::Exit& e : found) {
              const At at = facts_->at(e.spot, part.to);
              if (!crossed(at)) {
                add_once(next, at);
                continue;
              }
              // What may not follow is asked where the text is read, of its first byte.
              for (const std::vector<Symbol>& after : behind(s + 1, end, at, 0, captures, to)) {
                if (terminal) {
                  add_crossing(before, s->regex(), e.spot, after, out);
                  continue;
                }
                std::vector<Symbol> sequence = before;
                sequence.push_back(crossing(s->number(), e.spot, alive_->follow(part.to)));
                sequence.insert(sequence.end(), after.begin(), after.end());
                add(std::move(sequence), out);
              }
            }
          }
          if (terminal && regexes_.nullable(s->regex())) add_once(next, a);
        }
        before.push_back(number(*s));
        break;
      }
      case Symbol::kRule: {
        const Facts::Head head = facts_->head(s->rule_id());
        for (At a : here) {
          const Facts::Found found = facts_->ask(head, a);
          const std::vector<At> exits(found.exits.begin(), found.exits.end());
          unsure_ = unsure_ || found.unsure;
          for (At e : exits) {
            if (crossed(e))
              add_rule(s, Own::kCross, a, e, captures, before);
            else
              add_once(next, e);
          }
        }
        before.push_back(number(*s));
        break;
      }
      case Symbol::kReader: {
        const bool alone =
            s - all.data() >= 2 && s[-1].kind() == Symbol::kTerminal && s[-2].kind() == Symbol::kCapture;
        const RegexId read = alone ? s[-1].regex() : RegexArena::poison();
        const bool ruled =
            s - all.data() >= 2 && s[-1].kind() == Symbol::kRule && s[-2].kind() == Symbol::kCapture;
        const uint32_t open = captures == 0 ? 0 : facts_->outer(captures);
        for (At a : here)
          for (const Reading& reading : facts_->readings(captures, a, read)) {
            const Facts::Found found = facts_->ask(facts_->reader(s->rule_id(), reading), a);
            const std::vector<At> exits(found.exits.begin(), found.exits.end());
            unsure_ = unsure_ || found.unsure;
            for (At e : exits) {
              if (!crossed(e)) {
                add_once(next, e);
                continue;
              }
              Symbol rule = ruled ? s[-1] : Symbol{};
              if (!ruled || reading.kind != Reading::kFresh) {
                add_rule(s, Own::kReader, a, e, open, before);
              } else if (tells_apart(s->rule_id(), a, e, rule)) {
                std::vector<Symbol> kept = before;
                kept.back() = number(rule);
                add_rule(s, Own::kReader, a, e, open, kept);
              }
            }
          }
        captures = open;
        before.push_back(number(*s));
        break;
      }
    }
    here.swap(next);
  }
  if (!unsure_) return;
  // Perhaps more: a walk that did not say what was captured asks again with the text (mask/fill.h).
  add({Symbol::terminal(RegexArena::poison())}, out);
}

void Quotient::expand(RuleId rule, const Reading& reading, Alternatives& out) {
  if (rule.v % 2 == 0) {
    base_.expand(RuleId{rule.v / 2}, reading, out);
    for (Symbol& s : out.symbols) s = number(s);
    return;
  }
  Undo anew([&] { begin_anew(); });
  if (rule.v == 1) {
    cross(facts_->head(root_), Alive::kClear, end_, out);
    return anew.keep();
  }
  if (rule.v / 2 > own_.size()) throw Error(ErrorKind::kValue, "rule out of range");
  const Own o = own_[rule.v / 2 - 1];
  switch (o.kind) {
    case Own::kCross: cross(facts_->head(RuleId{o.a}), o.b, o.c, out); break;
    case Own::kReader: cross(facts_->reader(RuleId{o.a}, reading), o.b, o.c, out); break;
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
