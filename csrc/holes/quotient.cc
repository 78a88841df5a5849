// Which rules a quotient has, and what it asks to find their alternatives; quotient.h has the construction
// and its source.
//
// An example. S -> "{" M "}", M -> "k" | "k" "," M and the suffix `,k}`. A text that ends with it has one
// symbol of each rule across the border, where the suffix begins:
//
//     S crosses           alternative "{" M "}": M crosses, and "}" is read in the suffix: S' -> "{" M'
//     M crosses to "k"    M -> "k" "," M with the border before ",": M' -> "k"
//     and further left    M -> "k" "," M with M across it: M' -> "k" "," M'
//
// So S' has the texts `{k`, `{k,k`, ...: all u for which u`,k}` is in S. An alternative is made by
// quotient_crossing.cc, if the questions of quotient_questions.cc say that it leads to an end.
//
// The questions. A head is a rule, a reader with what it is told, or the end of an alternative.
//
//     question    asks                         who asks           what is searched            kept
//     exits()     where does a head end?       cross(), behind()  the facts                   by the facts
//     leads()     does a head lead there?      cross(), behind()  as decide(); unknown: no,   -
//                                                                 and the doubt is noted
//     decide()    yes, no, unknown             leads(), possible  the facts; an exit that is  decided_
//                                              fit_...()          assumed needs a proof
//     proof()     a text that leads there      decide(), fit_...  two witnesses of the        proofs_
//                                                                 facts, read by a parser
//     resolve()   the same without a witness   decide()           the alternatives across     decided_
//                                                                 the border, a level deeper
//     fit()       with which items does a      cross()            the items of a proof, each  -
//                 reader lead there?                              told to the reader
//
// Compared items. The items of uniqueItems before the border are not known when the suffix is read, so facts
// assume that they differ, and decide() takes an assumed exit only with a proof.
//
// Invariants.
// - Every text of an alternative that is given can be completed with the suffix. If it is not decided whether
//   this holds for an alternative, the alternative is left out and doubt_ is set; the grammar may then lack
//   texts (inexact()).
// - Crossings hold numbers of places. These numbers stay valid when facts are made anew after an exception.
// - decided_ never holds kUnknown: a question may be unknown only because it was met again while it was being
//   resolved.
//
// Rejected. Reading the grammar backwards: lexemes and captured text are defined from the left. Keeping
// the suffix as a condition that is checked later: masks would lead into dead ends.
#include "holes/quotient.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/undo.h"
#include "holes/right.h"

namespace structgen {

Quotient::Quotient(RegexArena& regexes, Productions& base, RuleId root, bool lexed, std::string suffix,
                   std::size_t most)
    : ExtendedProductions(base, lexed),
      FactBase(regexes, base, {{{Part::kAny, {}, 0, 0}, {Part::kText, suffix, 0, 0}}, nullptr},
               Facts::Aim::kQuotient, lexed && !base.traits().restricted, most),
      root_(root),
      suffix_(std::move(suffix)),
      end_(places_.of(path_.last(), Alive::kClear)) {}

// Drops the facts, and all proofs that rest on them. Called after an exception.
void Quotient::begin_anew() {
  FactBase::begin_anew();
  proofs_.clear();
  shown_.clear();
  decided_.clear();
  resolving_.clear();
}

// Returns the symbol of a crossing. The quotient's added rule i + 1 is crossing i; added rule 0 is the start.
Symbol Quotient::crossing(const Crossing& c) {
  const uint64_t h = mix(mix(mix(c.kind, c.rule.v), mix(c.pending, c.from.v)), mix(c.to.v, c.text));
  const RuleId id = own_rule(crossing_index_.number(h, crossings_, c) + 1);
  return c.kind == Crossing::kRule ? Symbol::rule(id) : Symbol::reader(id);
}

uint32_t Quotient::text(const std::string& t) { return numbered(text_index_, texts_, t, t); }

// Returns the number of bytes of the suffix before a place. Spot 0 lies in the hole, spot 1 in front of the
// suffix, and spot i + 1 behind i bytes of it; spots behind the suffix count as its end.
std::size_t Quotient::suffix_bytes(At at) const {
  return std::min<std::size_t>(places_.spot(at), path_.last()) - 1;
}

// Returns `follow`, the bytes that may not follow a lexeme. If the suffix's first byte is among them, the
// mark kEdge is added.
RegexId Quotient::marked(RegexId follow) const {
  if (follow == RegexArena::empty()) return follow;
  ByteSet set = regexes_.byte_set(regexes_.node(follow).a);
  if (!set.has(static_cast<uint8_t>(suffix_[0]))) return follow;
  set.add(kEdge);
  return regexes_.bytes(set);
}

// Returns the parts of a lexeme. A lexeme that crosses the border (CutLexeme) has a number of its own. Its
// context is that of the base's lexeme, because a context depends only on the text before it. Its parts are
// those of the base's lexeme with the CutLexeme's `follow`, without the bytes of the suffix at their end.
std::span<const LexemePart> Quotient::lexeme(uint32_t number, uint32_t context) {
  return remember(lexemes_, {number, context}, [&] {
    return number % 2 == 0 ? whole_lexeme(number / 2, context) : cut_parts(cut_lexemes_[number / 2], context);
  });
}

std::vector<LexemePart> Quotient::whole_lexeme(uint32_t lexeme, uint32_t context) {
  std::vector<LexemePart> out;
  for (const LexemePart& part : base_.lexeme(lexeme, context))
    out.push_back({part.regex, marked(part.follow)});
  return out;
}

std::vector<LexemePart> Quotient::cut_parts(const CutLexeme& cut, uint32_t context) {
  std::vector<LexemePart> out;
  for (const LexemePart& part : base_.lexeme(cut.lexeme, context)) {
    if (!path_.ends(cut.end) && part.follow != cut.follow) continue;
    // The lexeme reads the first `end - 1` bytes of the suffix (suffix_bytes()), so these are cut from its
    // end.
    const RegexId begun = before_text(regexes_, part.regex, std::string_view(suffix_).substr(0, cut.end - 1));
    const RegexId some = regexes_.nullable(begun) ? regexes_.minus(begun, RegexArena::epsilon()) : begun;
    if (!regexes_.judged_empty(some)) out.push_back({some, RegexArena::empty()});
    if (regexes_.nullable(begun)) out.push_back({regexes_.byte(kEdge), RegexArena::empty()});
  }
  return out;
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

Verdict Quotient::possible() {
  Undo anew([&] { begin_anew(); });
  begin();
  const Verdict out = decide({facts_->head(root_), places_.of(0, Alive::kClear), end_});
  anew.keep();
  return out == Verdict::kNo && doubt_.text ? Verdict::kUnknown : out;
}

std::size_t Quotient::fits() {
  const Path::Spot s = facts_->stretches().furthest();
  return s == 0 ? 0 : s - 1;
}

// Adds an alternative, unless `out` already has it.
void Quotient::add(std::vector<Symbol> sequence, Alternatives& out) {
  // The list is short: it has one alternative for each place at which the text may end. A linear search is
  // enough.
  for (const std::span<const Symbol> known : out.each())
    if (std::ranges::equal(sequence, known)) return;
  out.add(sequence);
}

// Writes the alternatives of a head that cross the border. If it finds none but a question was left
// undecided, it writes one alternative that is the text of a proof.
void Quotient::cross_some(Facts::Head head, Alive::Pending from, At to, Alternatives& out) {
  cross(head, from, to, out);
  inexact_ = inexact_ || doubt_.question;
  if (!doubt_.question || !out.ends.empty()) return;
  const std::size_t behind = suffix_bytes(to);
  for (const std::string& text : shown_[to])
    if (reads(facts_->alternatives(head), text) && text.size() >= behind)
      return out.add(
          {Symbol::terminal(regexes_.literal(std::string_view(text).substr(0, text.size() - behind)))});
}

void Quotient::expand_own(uint32_t n, const Reading& reading, Alternatives& out) {
  if (n > crossings_.size()) throw Error(ErrorKind::kValue, "rule out of range");
  Undo anew([&] { begin_anew(); });
  begin();
  const Crossing c =
      n == 0 ? Crossing{.kind = Crossing::kRule, .rule = root_, .to = end_} : crossings_[n - 1];
  switch (c.kind) {
    case Crossing::kRule: cross_some(facts_->head(c.rule), c.pending, c.to, out); break;
    case Crossing::kReader: cross_some(facts_->reader(c.rule, reading), c.pending, c.to, out); break;
    case Crossing::kEnded: {
      const Reading told = reading.kind == Reading::kText ? Reading::of_text(reading.text + texts_[c.text])
                                                          : Reading::unknown();
      if (leads({facts_->reader(c.rule, told), c.from, c.to}))
        out.add({});
      else if (doubt_.text)
        out.add({Symbol::terminal(RegexArena::poison())});
      break;
    }
  }
  anew.keep();
}

}  // namespace structgen
