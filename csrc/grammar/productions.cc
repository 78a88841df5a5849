#include "grammar/productions.h"

#include "base/components.h"
#include "base/error.h"
#include "regex/regex.h"

namespace structgen {

CfgProductions::CfgProductions(RegexArena& regexes, Cfg cfg, std::vector<LexemeLanguage> lexemes)
    : regexes_(regexes),
      cfg_(std::move(cfg)),
      lexemes_(regexes, std::move(lexemes)),
      groups_(cfg_.groups + 1),
      members_(cfg_.groups + 1) {
  for (uint32_t r = 0; r < cfg_.rules.size(); ++r) members_[cfg_.rules[r].group].push_back(r);
  restricted_ = !cfg_.contexts.empty() && !lexemes_.always_separable(cfg_.gaps);
  if (cfg_.limits.empty()) return;
  // callers[r] are the rules that call r. A rule may limit tokens if a rule that it calls does, so the search
  // goes from called rules to callers.
  std::vector<std::vector<uint32_t>> callers(cfg_.rules.size());
  std::vector<uint32_t> todo;
  for (uint32_t r = 0; r < cfg_.rules.size(); ++r)
    for (const CfgSequence& sequence : cfg_.rules[r].alternatives)
      for (const CfgSymbol s : sequence) {
        if (s.kind == CfgSymbol::kRule) callers[s.id].push_back(r);
        if (s.kind == CfgSymbol::kLimit) todo.push_back(r);
      }
  limits_ = reached(cfg_.rules.size(), std::move(todo), [&](uint32_t r, auto&& go) {
    for (uint32_t caller : callers[r]) go(caller);
  });
}

RuleTraits CfgProductions::traits_of(RuleId rule) const {
  RuleTraits out{.plain = !cfg_.contexts.empty(), .limits = false};
  if (limits_.empty()) return out;
  const uint32_t n = rule.v / stride_, rules = static_cast<uint32_t>(cfg_.rules.size());
  out.limits =
      limits_[n < rules ? n : made_[n - rules].a];  // a rule of a left-recursive group leads to all of it
  return out;
}

void CfgProductions::set_part(uint32_t i, Symbol symbol) {
  if (parts_.size() <= i) parts_.resize(i + 1);
  parts_[i] = symbol;
}

Symbol CfgProductions::symbol(CfgSymbol s) const {
  switch (s.kind) {
    case CfgSymbol::kTerminal: return Symbol::terminal(RegexId{s.id});
    case CfgSymbol::kRule: return Symbol::rule(RuleId{s.id * stride_});
    case CfgSymbol::kLexeme: return Symbol::lexeme(s.id);
    case CfgSymbol::kPart: return parts_[s.id];
    case CfgSymbol::kNote: return Symbol::note(s.id);
    case CfgSymbol::kAfter: return Symbol::after(s.id);
    case CfgSymbol::kLimit: return Symbol::limit(s.id);
    // analyse() has replaced every gap by a rule.
    case CfgSymbol::kGap: break;
  }
  return {};
}

// Returns the symbol of a made rule. Made rules are numbered behind those of the Cfg.
Symbol CfgProductions::made(Made::Kind kind, uint32_t a, uint32_t b, uint32_t c) {
  const Made m{kind, a, b, c};
  const uint32_t i = made_index_.number(mix(mix(mix(kind, a), b), c), made_, m);
  const uint64_t number = (static_cast<uint64_t>(cfg_.rules.size()) + i) * stride_;
  if (number > kMaxNumber) throw Error(ErrorKind::kBudgetExceeded, "the grammar has too many rules");
  return Symbol::rule(RuleId{static_cast<uint32_t>(number)});
}

bool CfgProductions::nullable(CfgSymbol s) const {
  switch (s.kind) {
    case CfgSymbol::kTerminal: return regexes_.nullable(RegexId{s.id});
    case CfgSymbol::kRule: return cfg_.rules[s.id].nullable;
    case CfgSymbol::kNote:
    case CfgSymbol::kLimit:
    case CfgSymbol::kAfter: return true;
    default: return false;
  }
}

// Returns the corners of a group, made when it is first asked for. A note in front of a rule of the group
// becomes kOpened, which says that the capture began where the group's text began.
const CfgProductions::Group& CfgProductions::group(uint32_t number) {
  std::unique_ptr<Group>& slot = groups_[number];
  if (slot) return *slot;
  auto made = std::make_unique<Group>();
  for (uint32_t r : members_[number])
    for (const CfgSequence& sequence : cfg_.rules[r].alternatives)
      for_each_first(sequence, [&](std::size_t i) {
        const CfgSymbol first = sequence[i];
        Corner corner{r,
                      first,
                      {sequence.begin() + static_cast<std::ptrdiff_t>(i) + 1, sequence.end()},
                      notes(sequence, i)};
        if (first.kind == CfgSymbol::kRule && cfg_.rules[first.id].group == number) {
          for (CfgSymbol& n : corner.notes)
            n.id = note_number(note_kind(n.id) == NoteKind::kOpen ? NoteKind::kOpened : NoteKind::kClosed,
                               note_name(n.id));
          made->noted = made->noted || !corner.notes.empty();
          if (first.id != r || !corner.rest.empty()) made->ups[first.id].push_back(std::move(corner));
        } else {
          made->starts.push_back(std::move(corner));
        }
      });
  slot = std::move(made);
  return *slot;
}

// Returns a symbol with the texts of s except the empty one.
Symbol CfgProductions::some(CfgSymbol s) {
  if (!nullable(s)) return symbol(s);
  if (s.kind == CfgSymbol::kTerminal)
    return Symbol::terminal(regexes_.minus(RegexId{s.id}, RegexArena::epsilon()));
  return made(Made::kSome, s.id, 0, 0);
}

// Appends alternatives for the texts of a rule except the empty one. There is one for each symbol that may
// read the first byte; in it, this symbol is not empty.
void CfgProductions::expand_some(uint32_t id, Alternatives& out) {
  const CfgRule& rule = cfg_.rules[id];
  std::vector<Symbol> sequence;
  // In a left-recursive rule, only the alternative without symbols has the empty text. It is left out.
  if (rule.group != 0) {
    Alternatives all;
    expand(RuleId{id * stride_}, {}, all);
    for (const std::span<const Symbol> symbols : all.each())
      if (!symbols.empty()) out.add(symbols);
    return;
  }
  for (const CfgSequence& alternative : rule.alternatives)
    for_each_first(alternative, [&](std::size_t i) {
      const Symbol first = some(alternative[i]);
      if (first.kind() == Symbol::kTerminal && first.regex() == RegexArena::empty()) return;
      sequence.clear();
      append(notes(alternative, i), sequence);
      sequence.push_back(first);
      append({alternative.begin() + static_cast<std::ptrdiff_t>(i) + 1, alternative.end()}, sequence);
      // If x may be empty, x{min,max} has the same texts as x{0,max}, because empty repetitions count, too.
      if (rule.counted && rule.max != 1) {
        bool empty = true;
        for (CfgSymbol s : alternative) empty = empty && nullable(s);
        sequence.push_back(made(Made::kCount, id, rule.min == 0 || empty ? 0 : rule.min - 1,
                                rule.max == kUnbounded ? kUnbounded : rule.max - 1));
      }
      out.add(sequence);
    });
}

std::vector<CfgSymbol> CfgProductions::notes(const CfgSequence& sequence, std::size_t n) {
  std::vector<CfgSymbol> out;
  for (std::size_t i = 0; i < n; ++i)
    if (sequence[i].kind == CfgSymbol::kNote) out.push_back(sequence[i]);
  return out;
}

void CfgProductions::append(const std::vector<CfgSymbol>& from, std::vector<Symbol>& to) const {
  for (CfgSymbol s : from) to.push_back(symbol(s));
}

// Appends the alternatives of a rule of the Cfg (plain, counted or left-recursive) or of a made rule (kTail,
// kCount, kSome).
void CfgProductions::expand(RuleId id, const Reading&, Alternatives& out) {
  const uint32_t local = id.v / stride_;
  std::vector<Symbol> sequence;
  if (local < cfg_.rules.size()) {
    const CfgRule& rule = cfg_.rules[local];
    if (rule.counted) return expand(made(Made::kCount, local, rule.min, rule.max).rule_id(), {}, out);
    if (rule.group == 0) {
      for (const CfgSequence& alternative : rule.alternatives) {
        sequence.clear();
        append(alternative, sequence);
        out.add(sequence);
      }
      return;
    }
    for (const Corner& c : group(rule.group).starts) {
      const Symbol first = some(c.first);
      if (first.kind() == Symbol::kTerminal && first.regex() == RegexArena::empty()) continue;
      sequence.clear();
      if (group(rule.group).noted) sequence.push_back(Symbol::note(note_number(NoteKind::kEnter, 0)));
      append(c.notes, sequence);
      sequence.push_back(first);
      append(c.rest, sequence);
      sequence.push_back(made(Made::kTail, local, c.rule, 0));
      out.add(sequence);
    }
    if (rule.nullable) out.add({});
    return;
  }
  if (local - cfg_.rules.size() >= made_.size()) throw Error(ErrorKind::kValue, "rule out of range");
  const Made m = made_[local - static_cast<uint32_t>(cfg_.rules.size())];
  if (m.kind == Made::kSome) return expand_some(m.a, out);
  if (m.kind == Made::kTail) {
    const Group& g = group(cfg_.rules[m.a].group);
    if (m.a == m.b && g.noted) out.add({Symbol::note(note_number(NoteKind::kLeave, 0))});
    if (m.a == m.b && !g.noted) out.add({});
    const auto ups = g.ups.find(m.b);
    if (ups == g.ups.end()) return;
    for (const Corner& c : ups->second) {
      sequence.clear();
      append(c.notes, sequence);
      append(c.rest, sequence);
      sequence.push_back(made(Made::kTail, m.a, c.rule, 0));
      out.add(sequence);
    }
    return;
  }
  const uint32_t max = m.c == kUnbounded ? kUnbounded : m.c - 1;
  if (m.b == 0) out.add({});
  if (m.c == 0) return;
  append(cfg_.rules[m.a].alternatives[0], sequence);
  if (max != 0) sequence.push_back(made(Made::kCount, m.a, m.b == 0 ? 0 : m.b - 1, max));
  out.add(sequence);
}

std::span<const LexemePart> CfgProductions::lexeme(uint32_t lexeme, uint32_t context) {
  return lexemes_.parts(lexeme, cfg_.contexts[context], context);
}

}  // namespace structgen
