// Productions of an object whose members are elements; see elements.h.
//
// In: object states. Out: alternatives. Cost: an alternative a name on offer, or one for all where there are
// many; what follows a name is expanded once the name was read.
//
// What a text means where a string and another value are written alike is not decided here: a value's texts
// are those of each of its kinds.
#include "schema/write/elements.h"

#include <algorithm>
#include <bit>

#include "base/error.h"
#include "base/utf8.h"
#include "schema/write/productions.h"

namespace structgen {

namespace {
// What one reads as a text of `r` where a newline in front and one behind are taken off.
RegexId within_newlines(RegexArena& regexes, RegexId r) {
  const RegexId newline = regexes.byte('\n');
  const RegexId begins = regexes.cat(newline, RegexArena::anything());
  const RegexId ends = regexes.cat(RegexArena::anything(), newline);
  const RegexId no_front = regexes.minus(r, begins), no_back = regexes.minus(r, ends);
  const RegexId parts[] = {regexes.minus(no_front, ends), regexes.cat(newline, no_back),
                           regexes.cat(no_front, newline), regexes.cat(newline, regexes.cat(r, newline))};
  return regexes.alt(std::span<const RegexId>(parts));
}
}  // namespace

namespace {

constexpr std::size_t kListed = 500;  // names on offer that have an alternative each

constexpr uint32_t all_but(Kind k) { return kAllKinds & ~kind_bit(k); }

// A pattern that finds any of the texts.
std::string finding(const std::vector<std::string>& texts) {
  std::string out;
  for (const std::string& t : texts) {
    if (!out.empty()) out += '|';
    for (char c : t) {
      if (std::string_view("^$\\.*+?()[]{}|/").find(c) != std::string_view::npos) out += '\\';
      out += c;
    }
  }
  return out;
}

uint32_t kinds(std::size_t written) {
  switch (static_cast<Written>(written)) {
    case Written::kText: return kind_bit(Kind::kString);
    case Written::kNull: return kind_bit(Kind::kNull);
    case Written::kBoolean: return kind_bit(Kind::kFalse) | kind_bit(Kind::kTrue);
    case Written::kNumber: return kind_bit(Kind::kNumber);
    case Written::kArray: return kind_bit(Kind::kArray);
    case Written::kObject: return kind_bit(Kind::kObject);
  }
  return 0;
}

}  // namespace

// The objects of the schema that can be written: their strings never hold the mark that ends them, nor their
// keys what ends a key.
FormulaId JsonProductions::arguments(FormulaId root, bool keys, bool values) {
  const ElementText& text = layout_.elements->text;
  const auto found = [&](std::vector<std::string> texts) {
    texts.insert(texts.end(), layout_.excludes.begin(), layout_.excludes.end());
    return formulas_.atom(Op::kPattern, formulas_.intern_text(finding(texts)));
  };
  const auto no_key = [&](FormulaId strings) {
    return formulas_.all(formulas_.language(strings), FormulaSpace::no());
  };
  FormulaId out = formulas_.both(root, formulas_.types(kind_bit(Kind::kObject)));
  free_ = text.quoted ? FormulaSpace::no() : formulas_.negate(found({text.close}));
  const FormulaId raw = formulas_.either(formulas_.types(all_but(Kind::kString)), free_);
  if (values && !text.quoted) out = formulas_.both(out, formulas_.all(formulas_.any_key(), raw));
  if (keys && (!text.key_never.empty() || !layout_.excludes.empty()))
    out = formulas_.both(out, no_key(found(text.key_never)));
  if (keys && !text.key_pattern.empty())
    out = formulas_.both(
        out, no_key(formulas_.negate(formulas_.atom(Op::kPattern, formulas_.intern_text(text.key_pattern)))));
  return out;
}

// Why the schema has values, and none that can be written.
void JsonProductions::unwritable(FormulaId root) {
  solver_.refill();
  std::string why = "parameters outside JSON need an object schema";
  if (solver_.nonempty(arguments(root, false, false))) {
    const bool keys = !solver_.nonempty(arguments(root, true, false));
    why = keys ? "a key that must be there cannot be written in this style"
               : "a string that must be there holds what ends a value in this style";
  }
  throw Error(ErrorKind::kUnsatisfiableSchema, why).in(schemas_->pointer(schemas_->root()));
}

void JsonProductions::expand_arguments(const Rule& r, Alternatives& out) {
  const RegexId blank = layout_.elements->marks.blank;
  uint32_t more = kOrderBranches;
  for_each_object(solver_.restrict(FormulaId{r.a}, Kind::kObject), more, [&](FormulaId p) {
    if (!solver_.objects().productive(p)) return;
    const Symbol members = call(kFirstMembers, solver_.objects().start(p).v, 0, 0);
    if (blank == RegexArena::epsilon())
      out.add({members});
    else
      out.add({Symbol::terminal(blank), members});
  });
}

void JsonProductions::add_elements(const Rule& r, const Offers& offers, bool nearest, Alternatives& out) {
  const ElementMarks<RegexId>& marks = layout_.elements->marks;
  const RegexId before = r.kind == kMembers ? regexes_.cat(marks.between, marks.before) : marks.before;
  const auto begin = [&](std::initializer_list<Symbol> rest) {
    std::vector<Symbol> sequence;
    if (before != RegexArena::epsilon()) sequence.push_back(Symbol::terminal(before));
    sequence.insert(sequence.end(), rest);
    out.add(sequence);
  };
  if (offers.close) {
    out.add({});
    if (nearest) return;
  }
  const Plan& plan = solver_.objects().plan(solver_.objects().state(ObjectId{r.a}).plan);
  std::size_t count = 0;
  for (uint64_t w : offers.names) count += static_cast<std::size_t>(std::popcount(w));
  if (count > kListed) {  // as many alternatives are too many for a parse state: the key is read as a text
    std::vector<std::string> names;
    for (uint32_t i = 0; i < plan.names.size(); ++i)
      if (has_bit(offers.names, i)) names.push_back(plan.texts[i]);
    begin({Symbol::capture(), Symbol::terminal(regexes_.cat(keys_->any_of(names), marks.middle)),
           call(kListedElement, r.a, 0, 0)});
  }
  for (uint32_t i = 0; i < plan.names.size() && count <= kListed; ++i) {
    if (!has_bit(offers.names, i)) continue;
    const RegexId parts[] = {before, keys_->one(plan.texts[i]), marks.middle};
    out.add(
        {Symbol::terminal(regexes_.cat(std::span<const RegexId>(parts))), call(kNamedElement, r.a, i, 0)});
  }
  for (uint32_t c : offers.classes)
    begin(
        {Symbol::capture(),
         Symbol::terminal(regexes_.cat(solver_.objects().free_texts(ObjectId{r.a}, c, *keys_), marks.middle)),
         call(kFreeElement, r.a, c, 0)});
}

// The key of an element, from the text read up to where the mark behind it ends.
std::string JsonProductions::key_of(std::string_view read) const {
  const ElementText& text = layout_.elements->text;
  // A special token in the mark's place begins with a byte that no text has.
  std::string_view key = read.substr(0, std::min(read.find(text.middle), read.find('\xFF')));
  if (!text.keys->write) return std::string(key);
  std::string out;
  while (!key.empty()) {
    std::size_t length = 1;
    char c = key[0];
    for (char plain : {'&', '"'}) {
      const std::string mark = written(std::string_view(&plain, 1), *text.keys);
      if (key.starts_with(mark)) {
        c = plain;
        length = mark.size();
      }
    }
    out += c;
    key.remove_prefix(length);
  }
  return out;
}

void JsonProductions::add_members(const std::vector<Objects::Step>& steps, bool nearest, Alternatives& out) {
  for (const Objects::Step& step : nearest_steps(steps, nearest))
    out.add({call(kElement, step.value.v, 0, 0), call(kMembers, step.next.v, 0, 0)});
}

// The value of a member, from behind its key to the next one.
void JsonProductions::expand_element(const Rule& r, Alternatives& out) {
  const ElementMarks<RegexId>& marks = layout_.elements->marks;
  const FormulaId v{r.a};
  const RegexId close = regexes_.cat(marks.close, marks.blank);
  std::vector<Symbol> sequence;
  const auto end = [&](RegexId mark) {
    if (mark != RegexArena::epsilon()) sequence.push_back(Symbol::terminal(mark));
    out.add(sequence);
  };
  if (layout_.elements->text.quoted) {
    sequence.push_back(call(kValue, v.v, 0, 0));
    return end(close);
  }
  const auto begin = [&](RegexId after) {
    sequence.clear();
    if (after != RegexArena::epsilon()) sequence.push_back(Symbol::terminal(after));
  };
  const FormulaId strings = solver_.restrict(v, Kind::kString);
  if (solver_.nonempty(formulas_.both(v, formulas_.types(kind_bit(Kind::kString))))) {
    RegexId texts = strings_->of(strings);
    // Every text without the mark is one that newlines were taken off.
    if (layout_.elements->text.newlines && strings != free_) texts = within_newlines(regexes_, texts);
    begin(marks.after[0]);
    sequence.push_back(Symbol::terminal(regexes_.cat(texts, close)));
    out.add(sequence);
  }
  for (std::size_t i = 1; i < kWritten; ++i) {
    bool seen = false;
    uint32_t mask = 0;
    for (std::size_t k = 1; k < kWritten; ++k)
      if (marks.after[k] == marks.after[i]) {
        seen = seen || k < i;
        mask |= kinds(k);
      }
    if (seen || (strings == free_ && marks.after[i] == marks.after[0]))
      continue;  // any text is taken as it is
    const FormulaId value = formulas_.both(v, formulas_.types(mask));
    if (!solver_.nonempty(value)) continue;
    begin(regexes_.cat(marks.after[i], marks.blank));
    sequence.push_back(call(kValue, value.v, 0, 0));
    end(regexes_.cat(marks.blank, close));
  }
}

}  // namespace structgen
